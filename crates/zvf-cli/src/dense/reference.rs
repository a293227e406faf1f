//! Reference images of tractograms.

use std::{error::Error, path::Path};

use zvf_dense::DenseArray;
use zvf_files::{FileHeader, grid_header};

use super::{MemoryArgs, nifti};

/// Reads the voxel grid of a NIfTI image.
///
/// # Errors
///
/// The file cannot be read, is of another format, or has no map to positions that can be inverted.
pub fn reference_grid(path: &Path) -> Result<FileHeader, Box<dyn Error>> {
    let name = path.display();
    let image = nifti(path, MemoryArgs::of(None))?
        .ok_or_else(|| format!("{name} is no reference image; give a .nii or .nii.gz file"))?;
    let millimetres = image.metres_per_unit() * 1000.0;
    let of_header = image.voxel_to_world()?.rows().iter();
    let rows: Vec<f64> = of_header.map(|value| value * millimetres).collect();
    let extents = image.shape().get(..3).unwrap_or_default();
    let no_grid = || format!("{name} has no voxel grid of three axes").into();
    grid_header(&rows, extents).ok_or_else(no_grid)
}
