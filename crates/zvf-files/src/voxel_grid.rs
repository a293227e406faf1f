//! Voxel grids of tractograms: the image in whose space a TRK or TRX file places its streamlines.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    FileHeader, StoreDescription,
    affine::VoxelMap,
    length::{LengthUnit, MILLIMETER},
    values::{AxisOrder, narrow, whole},
};

/// Names of the formats with a voxel grid.
const FORMATS: [&str; 2] = ["trk", "trx"];

/// Returns the header of the voxel grid of an image: the first three rows of the matrix from voxels to
/// positions in millimetres, and the number of voxels along each axis. `None` if the matrix cannot be
/// inverted, or there are other numbers of values.
pub fn grid_header(rows: &[f64], shape: &[u64]) -> Option<FileHeader> {
    let (rows, rest) = rows.as_chunks::<4>();
    let affine = VoxelMap(rows.try_into().ok().filter(|_| rest.is_empty())?);
    affine.inverse()?;
    let dimensions: [u64; 3] = shape.try_into().ok()?;
    let mut header = FileHeader::new();
    header.insert("voxel_to_rasmm".to_owned(), affine.to_json());
    header.insert("dimensions".to_owned(), dimensions.to_vec().into());
    Some(header)
}

/// Replaces the voxel grid in the headers of a store.
pub fn replace_grid(headers: &mut BTreeMap<String, FileHeader>, grid: &FileHeader) {
    for name in FORMATS {
        if let Some(header) = headers.get_mut(name) {
            // It has the grid as well.
            if name == "trk" {
                header.remove("header");
            }
            if let Some(own) = header.get_mut("header").and_then(Value::as_object_mut) {
                own.remove("VOXEL_TO_RASMM");
                own.remove("DIMENSIONS");
            }
            header.extend(grid.clone());
        }
    }
    if !FORMATS.iter().any(|name| headers.contains_key(*name)) {
        headers.insert("trx".to_owned(), grid.clone());
    }
}

/// The map of voxels to the world, and the number of voxels along each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VoxelGrid {
    pub(crate) affine: VoxelMap,
    pub(crate) dimensions: [u64; 3],
}

impl VoxelGrid {
    /// Returns the grid of the tractogram that a store comes from; `None` if its headers have none.
    pub(crate) fn kept(description: &StoreDescription) -> Option<Self> {
        let headers = FORMATS.iter();
        let mut headers = headers.filter_map(|name| description.headers.get(*name));
        headers.find_map(|header| {
            let affine = header.get("voxel_to_rasmm").and_then(VoxelMap::from_json);
            let affine = affine.filter(|affine| affine.inverse().is_some())?;
            let mut dimensions = [1; 3];
            if let Some(values) = header.get("dimensions").and_then(Value::as_array) {
                for (target, value) in dimensions.iter_mut().zip(values) {
                    *target = value.as_u64().unwrap_or(1);
                }
            }
            Some(Self { affine, dimensions })
        })
    }

    /// Returns a grid of cubes of 1 mm that encloses an extent: each voxel has a side of a power of two
    /// if the file holds no such number of them, or if 32-bit floats do not hold the corner exactly.
    fn enclosing(extent: &PointExtent) -> Self {
        let mut size = 1.0;
        loop {
            let origin = extent.least.map(|least| floor(least, size));
            let axes = origin.iter().zip(extent.most);
            // A voxel extends half of its side beyond its centre, where its coordinate is whole.
            let counts = axes
                .map(|(origin, most)| ((most - origin) / size).floor() + 2.0)
                .map(|count| i16::try_from(whole(count)?).ok());
            if let Some(counts) = counts.collect::<Option<Vec<i16>>>() {
                let mut grid = Self {
                    affine: VoxelMap::scaled(size, origin),
                    dimensions: [1; 3],
                };
                for (target, count) in grid.dimensions.iter_mut().zip(counts) {
                    *target = u64::from(count.unsigned_abs());
                }
                return grid;
            }
            size *= 2.0;
        }
    }
}

/// Distance from the origin beyond which points have no voxel. Coordinates of TRK files count from the corner
/// of the grid, and would exceed 32-bit floats if that were farther.
const FARTHEST: f64 = 1e30;

/// Returns a multiple of a size, as a 32-bit float, that is not greater than a number.
fn floor(number: f64, size: f64) -> f64 {
    let floor = (number / size).floor() * size;
    let near = narrow(floor);
    f64::from(if f64::from(near) > floor {
        near.next_down()
    } else {
        near
    })
}

/// The grid of a file that is written.
#[derive(Clone, Debug)]
pub(crate) enum FileGrid {
    /// That of the file from which the store comes.
    Kept(VoxelGrid),
    /// One that is made up, because the store has that of no image. It encloses this extent, and all
    /// points of the file at its end.
    MadeUp(Option<PointExtent>),
}

/// The least and the greatest coordinates along each axis.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PointExtent {
    least: [f64; 3],
    most: [f64; 3],
}

impl FileGrid {
    /// Returns the grid that a store keeps, or one of its bounds, so that all files from a store have the
    /// same one.
    pub(crate) fn of_store(description: &StoreDescription) -> Self {
        if let Some(kept) = VoxelGrid::kept(description) {
            return Self::Kept(kept);
        }
        let mut made_up = Self::MadeUp(None);
        let names = description.axes.iter().map(|axis| axis.name.as_str());
        let order = AxisOrder::of_names(&names.collect::<Vec<&str>>());
        if let (Some(bounds), Some(order)) = (&description.bounds, order) {
            for corner in [bounds.lower(), bounds.upper()] {
                let corner: Vec<f64> = description
                    .axes
                    .iter()
                    .zip(corner)
                    .map(|(axis, value)| {
                        let unit = LengthUnit::of_axis(axis);
                        unit.map_or(*value, |unit| unit.in_unit(MILLIMETER).apply(*value))
                    })
                    .collect();
                made_up.enclose(&[order.point(&corner)]);
            }
        }
        made_up
    }

    /// Extends a grid that is made up to points. Coordinates that are not finite have no voxel.
    pub(crate) fn enclose(&mut self, points: &[[f64; 3]]) {
        let Self::MadeUp(extent) = self else {
            return;
        };
        let are_finite = |point: &&[f64; 3]| point.iter().all(|value| value.is_finite());
        for point in points.iter().filter(are_finite) {
            let point = point.map(|value| value.clamp(-FARTHEST, FARTHEST));
            let extent = extent.get_or_insert(PointExtent {
                least: point,
                most: point,
            });
            for (least, value) in extent.least.iter_mut().zip(point) {
                *least = least.min(value);
            }
            for (most, value) in extent.most.iter_mut().zip(point) {
                *most = most.max(value);
            }
        }
    }

    /// Returns the grid.
    pub(crate) fn grid(&self) -> VoxelGrid {
        match self {
            Self::Kept(grid) => *grid,
            Self::MadeUp(extent) => VoxelGrid::enclosing(&extent.unwrap_or_default()),
        }
    }

    /// Returns a note about a grid that is made up.
    pub(crate) fn note(&self) -> Option<String> {
        let note =
            "made up: the voxel grid, around the streamlines, because that of no image is known";
        matches!(self, Self::MadeUp(_)).then(|| note.to_owned())
    }
}
