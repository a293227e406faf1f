//! NIfTI volumes: `.nii` and `.nii.gz`, NIfTI-1 and NIfTI-2, of either byte order.
//!
//! | part | bytes | content |
//! |---|---|---|
//! | header | 348, of NIfTI-2 540 | shape, type, scaling, and the map from voxels to positions |
//! | extensions | up to `vox_offset`, which is 352 or more, of NIfTI-2 544 | skipped |
//! | voxels | | column by column, the first axis fastest |
//!
//! The map from voxels to positions is the sform if `sform_code` is above 0, otherwise the qform if
//! `qform_code` is above 0, otherwise voxel indices times the voxel sizes in `pixdim`.

mod gzip;
mod header;

pub use crate::error::NiftiError;
pub use header::NiftiTransform;

use std::sync::Arc;

use serde_json::{Map, Value};
use zvf_format::numeric::{self, ByteOrder, Kind, NumericRows};

use crate::{
    ByteSource, ChunkGrid, DenseArray, DenseError, Hyperslab, NumpyDtype, ReadCost,
    array::checked_len,
    hyperslab::product,
    npy::{NpyArray, NpyLayout},
    sample::Affine,
};
use header::{MAX_HEADER_LEN, NiftiHeader};

/// A NIfTI file as a dense array.
///
/// A header with a scaling (`scl_slope`, `scl_inter`) makes the elements floats: float32 if they
/// are stored in up to 16 bits or as float32, otherwise float64. The array has at least three axes;
/// further axes of extent 1 at the end are dropped.
#[derive(Debug)]
pub struct NiftiArray {
    voxels: NpyArray,
    dtype: NumpyDtype,
    scaling: Option<Scaling>,
    voxel_to_world: Option<Affine>,
    world_to_voxel: Option<Affine>,
    unit: f64,
    transform: NiftiTransform,
}

/// A linear map of stored values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scaling {
    slope: f64,
    intercept: f64,
    /// The type of scaled values.
    kind: Kind,
}

impl NiftiArray {
    /// Opens a file and reads its header. A file compressed by gzip is decompressed into a
    /// temporary file without name, up to the size that its header states.
    ///
    /// # Errors
    ///
    /// [`DenseError::Nifti`] if it is not a NIfTI file or ends early.
    pub fn open(source: Arc<dyn ByteSource>, budget: Option<u64>) -> Result<Self, DenseError> {
        let name = source.name().to_owned();
        let fail = |error| DenseError::nifti(&name, error);
        let is_compressed = gzip::is_gzip(&*source)?;
        let head = if is_compressed {
            gzip::first_bytes(&source, MAX_HEADER_LEN)?
        } else {
            let len = source.len().min(MAX_HEADER_LEN);
            source.read(0..len)?.into_owned()
        };
        let header = NiftiHeader::parse(&head).map_err(fail)?;
        let stored = numeric::Dtype::new(header.kind, header.order);
        let size = u64::try_from(header.kind.size()).unwrap_or(u64::MAX);
        let len = product(header.shape.iter().copied().chain([size]));
        let end = len
            .and_then(|len| len.checked_add(header.start))
            .ok_or_else(|| fail(NiftiError::Shape))?;
        let source = if is_compressed {
            gzip::decompressed(&source, end)?
        } else {
            source
        };
        if source.len() < end {
            return Err(fail(NiftiError::Size {
                needed: end,
                found: source.len(),
            }));
        }
        let scaling = header.scaling.map(|(slope, intercept)| Scaling {
            slope,
            intercept,
            kind: match header.kind {
                Kind::Int8 | Kind::UInt8 | Kind::Int16 | Kind::UInt16 | Kind::Float32 => {
                    Kind::Float32
                }
                _ => Kind::Float64,
            },
        });
        let layout = NpyLayout {
            dtype: NumpyDtype::Number(stored),
            is_fortran: true,
            shape: header.shape,
            start: header.start,
        };
        Ok(Self {
            voxels: NpyArray::with_layout(source, layout, budget)?,
            dtype: NumpyDtype::Number(match scaling {
                Some(scaling) => numeric::Dtype::new(scaling.kind, ByteOrder::Little),
                None => stored,
            }),
            scaling,
            voxel_to_world: header.voxel_to_world,
            world_to_voxel: header.world_to_voxel,
            unit: header.unit,
            transform: header.transform,
        })
    }

    /// Returns the map from voxel indices to positions. The index of a voxel is that of its centre.
    ///
    /// # Errors
    ///
    /// [`NiftiError::Singular`] if the transform cannot be inverted.
    pub fn voxel_to_world(&self) -> Result<&Affine, DenseError> {
        self.world_to_voxel()?;
        self.voxel_to_world.as_ref().ok_or_else(|| self.singular())
    }

    /// Returns the length of a unit of positions in metres: a millimetre unless the header names
    /// another unit.
    pub fn metres_per_unit(&self) -> f64 {
        self.unit
    }

    /// Returns the map from positions to voxel indices: the inverse of the header's transform.
    ///
    /// # Errors
    ///
    /// [`NiftiError::Singular`] if the transform cannot be inverted.
    pub fn world_to_voxel(&self) -> Result<&Affine, DenseError> {
        self.world_to_voxel.as_ref().ok_or_else(|| self.singular())
    }

    /// Returns the map to voxel indices of positions in units of these lengths in metres, one for each
    /// axis. Without a length, they are in the unit of the file.
    ///
    /// # Errors
    ///
    /// [`NiftiError::Singular`] if the transform cannot be inverted.
    pub fn map_from(&self, metres: &[Option<f64>]) -> Result<Affine, DenseError> {
        let factors = metres
            .iter()
            .map(|own| own.map_or(1.0, |own| own / self.unit));
        Ok(self
            .world_to_voxel()?
            .scaled(&factors.collect::<Vec<f64>>()))
    }

    fn singular(&self) -> DenseError {
        DenseError::nifti(self.name(), NiftiError::Singular(self.transform.name()))
    }

    /// Returns the field of the header that defines the map.
    pub fn transform(&self) -> NiftiTransform {
        self.transform
    }
}

impl Scaling {
    /// Writes scaled values, little-endian.
    fn apply(self, stored: NumericRows<'_>, into: &mut [u8]) {
        let scaled = (0..stored.rows()).map(|row| {
            let value = stored
                .value(row, 0)
                .map_or(f64::NAN, numeric::Value::to_f64);
            value * self.slope + self.intercept
        });
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "std rounds an f64 to an f32 in no other way"
        )]
        match self.kind {
            Kind::Float32 => {
                for (slot, value) in into.chunks_exact_mut(4).zip(scaled) {
                    slot.copy_from_slice(&(value as f32).to_le_bytes());
                }
            }
            _ => {
                for (slot, value) in into.chunks_exact_mut(8).zip(scaled) {
                    slot.copy_from_slice(&value.to_le_bytes());
                }
            }
        }
    }
}

impl DenseArray for NiftiArray {
    fn name(&self) -> &str {
        self.voxels.name()
    }

    fn dtype(&self) -> &NumpyDtype {
        &self.dtype
    }

    fn grid(&self) -> &ChunkGrid {
        self.voxels.grid()
    }

    fn attributes(&self) -> &Map<String, Value> {
        self.voxels.attributes()
    }

    fn budget(&self) -> u64 {
        self.voxels.budget()
    }

    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        self.voxels.read_plan(selection)
    }

    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError> {
        let Some(scaling) = self.scaling else {
            return self.voxels.slice_into(selection, into);
        };
        checked_len(self, selection, into)?;
        // Scaled values are at least as wide as stored ones, so `into` bounds this buffer.
        let given = u64::try_from(into.len()).unwrap_or(u64::MAX);
        let stored = self.voxels.slice_within(selection, given)?;
        let cost = self.voxels.read_plan(selection)?;
        if let Some(dtype) = self.voxels.dtype().number() {
            let rows = NumericRows::parse(&stored, dtype, core::num::NonZeroU32::MIN).map_err(
                |source| DenseError::Numbers {
                    name: self.name().to_owned(),
                    source,
                },
            )?;
            scaling.apply(rows, into);
        }
        Ok(cost)
    }
}
