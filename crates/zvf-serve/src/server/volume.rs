//! Dense arrays as precomputed volumes.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::json;
use zvf_dense::{AxisRange, DenseArray, Hyperslab};
use zvf_format::numeric::{ByteOrder, Dtype, Kind};
use zvf_model::level::LevelId;
use zvf_precomputed::{Dimension, Dimensions};

use super::{
    cache::{CachedResponse, ResponseCache},
    reply::{BINARY, JSON, Reply},
};
use crate::{
    layers::{Layer, LayerKind, SourceTransform, space::ViewerSpace},
    view::StoreView,
};

/// Voxels along each axis of a chunk.
const CHUNK: u64 = 64;
/// Coarser scales: each leaves out every second voxel of the one before.
const MAX_SCALES: u32 = 3;
/// Voxels along the longest axis that need no coarser scale.
const FINE: u64 = 256;
const NANOMETRES: f64 = 1e9;

/// The positions of the voxels of a dense array with three axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumePlacement {
    /// Rows of the map from the index of a voxel's centre to a position.
    rows: [[f64; 4]; 3],
    /// The unit of positions, in metres.
    unit: f64,
}

impl VolumePlacement {
    /// Places cubic voxels with an edge of this many metres. A corner of the first one is at the
    /// origin.
    pub fn cubes(edge: f64) -> Self {
        Self {
            rows: [
                [1.0, 0.0, 0.0, 0.5],
                [0.0, 1.0, 0.0, 0.5],
                [0.0, 0.0, 1.0, 0.5],
            ],
            unit: edge,
        }
    }

    /// Places voxels by an affine map, such as that of a NIfTI header: `rows` map the index of a
    /// voxel, which is that of its centre, to a position in units of this many metres.
    ///
    /// # Errors
    ///
    /// [`VolumePlacementError`] unless the numbers are finite, and each voxel has an extent along each axis.
    pub fn affine(rows: [[f64; 4]; 3], unit: f64) -> Result<Self, VolumePlacementError> {
        let map = Self { rows, unit };
        let numbers = rows.as_flattened().iter().chain([&unit]);
        let edges = map.edges();
        let is_solid = edges.iter().all(|edge| edge.is_normal()) && unit > 0.0;
        if is_solid && numbers.copied().all(f64::is_finite) {
            Ok(map)
        } else {
            Err(VolumePlacementError)
        }
    }

    /// Returns the extents of a voxel along its axes, in metres.
    fn edges(&self) -> [f64; 3] {
        core::array::from_fn(|axis| {
            let column = self.rows.iter().filter_map(|row| row.get(axis));
            column.map(|step| step * step).sum::<f64>().sqrt() * self.unit
        })
    }

    /// Returns the rows of the map from corners of voxels, in voxels, to positions.
    fn corner_rows(&self) -> [[f64; 4]; 3] {
        self.rows
            .map(|[x, y, z, shift]| [x, y, z, shift - (x + y + z) / 2.0])
    }
}

/// A map of voxels that is not finite, or that gives voxels no volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the voxels have no volume, or their positions are not finite")]
pub struct VolumePlacementError;

/// A dense array that is served.
#[derive(Debug)]
pub(super) struct VolumeSource {
    pub(super) name: String,
    pub(super) view: StoreView,
    array: Arc<dyn DenseArray>,
    info: Bytes,
    scales: u32,
}

/// An array that is not a volume.
#[derive(Debug, thiserror::Error)]
pub(super) enum VolumeError {
    #[error("an array with {0} axes is not a volume; three axes are needed")]
    Axes(usize),
    #[error("elements of type {0} cannot be drawn")]
    Type(String),
    #[error("the array is empty")]
    Empty,
}

impl VolumeSource {
    /// Prepares an array whose voxels are placed by `map`.
    pub(super) fn new(
        name: String,
        array: Arc<dyn DenseArray>,
        map: &VolumePlacement,
    ) -> Result<Self, VolumeError> {
        let shape = array.shape().to_vec();
        let [x, y, z] = shape.as_slice() else {
            return Err(VolumeError::Axes(shape.len()));
        };
        if shape.contains(&0) {
            return Err(VolumeError::Empty);
        }
        let kind = array.dtype().number().map(Dtype::kind);
        let data_type = kind
            .and_then(data_type)
            .ok_or_else(|| VolumeError::Type(format!("{:?}", array.dtype())))?;
        let longest = *x.max(y).max(z);
        let coarse = (0..MAX_SCALES).find(|scale| longest >> scale <= FINE);
        let scales = coarse.map_or(MAX_SCALES, |scale| scale.saturating_add(1));
        let edges = map.edges();
        let documents = (0..scales).map(|scale| {
            let step = 1_u64 << scale;
            let size: Vec<u64> = shape.iter().map(|extent| extent.div_ceil(step)).collect();
            let resolution = edges.map(|edge| edge * NANOMETRES * f64::from(1_u32 << scale));
            json!({
                "key": scale.to_string(),
                "size": size,
                "resolution": resolution,
                "voxel_offset": [0, 0, 0],
                "chunk_sizes": [[CHUNK, CHUNK, CHUNK]],
                "encoding": "raw",
            })
        });
        let info = json!({
            "@type": "neuroglancer_multiscale_volume",
            "type": "image",
            "data_type": data_type,
            "num_channels": 1,
            "scales": documents.collect::<Vec<_>>(),
        });
        Ok(Self {
            view: view(&shape, map),
            name,
            array,
            info: info.to_string().into(),
            scales,
        })
    }

    /// Returns the response to a request for the document or a chunk.
    pub(super) async fn response(&self, path: &[&str], cache: &ResponseCache) -> Reply {
        let ["volume", rest @ ..] = path else {
            return Reply::not_found();
        };
        let (scale, name) = match rest {
            ["info"] => return Reply::document(JSON, self.info.clone()),
            [scale, name] => (*scale, *name),
            _ => return Reply::not_found(),
        };
        let Some(selection) = self.selection(scale, name) else {
            return Reply::not_found();
        };
        let key = format!("{}/{scale}/{name}", self.name);
        if let Some(CachedResponse::Bytes(known)) = cache.get(&key) {
            return Reply::document(BINARY, known);
        }
        let array = Arc::clone(&self.array);
        let read = tokio::task::spawn_blocking(move || chunk(&*array, &selection));
        match read.await {
            Ok(Ok(bytes)) => {
                let bytes = Bytes::from(bytes);
                cache.put(key, CachedResponse::Bytes(bytes.clone()));
                Reply::document(BINARY, bytes)
            }
            Ok(Err(error)) => {
                let message = zvf_model::error_chain::error_chain(&error);
                Reply::Failed(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
            Err(_) => Reply::Failed(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the volume was not read".to_owned(),
            ),
        }
    }

    /// Returns the voxels of a chunk: `0-64_64-128_0-50` of a scale.
    fn selection(&self, scale: &str, name: &str) -> Option<Hyperslab> {
        let scale: u32 = scale.parse().ok().filter(|scale| *scale < self.scales)?;
        let step = 1_u64.checked_shl(scale)?;
        let axes: Vec<&str> = name.split('_').collect();
        let shape = self.array.shape();
        if axes.len() != shape.len() {
            return None;
        }
        let axes: Option<Vec<AxisRange>> = axes
            .into_iter()
            .zip(shape)
            .map(|(ends, extent)| {
                let (start, end) = ends.split_once('-')?;
                let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().ok()?);
                let is_chunk = start.is_multiple_of(CHUNK)
                    && start < end
                    && end == start.saturating_add(CHUNK).min(extent.div_ceil(step));
                let stop = end.saturating_mul(step).min(*extent);
                let range = AxisRange::new(start.saturating_mul(step), stop, step).ok();
                range.filter(|_| is_chunk)
            })
            .collect();
        Some(axes?.into_iter().collect())
    }
}

/// Reads voxels, with the first axis fastest, in little-endian byte order.
fn chunk(array: &dyn DenseArray, selection: &Hyperslab) -> Result<Vec<u8>, zvf_dense::DenseError> {
    let buffer = array.slice(selection)?;
    let size = usize::try_from(array.dtype().size()).unwrap_or(1).max(1);
    let big = array.dtype().number();
    let is_big = big.is_some_and(|number| number.order() == ByteOrder::Big);
    let shape = selection.shape();
    let extents: Vec<usize> = shape
        .iter()
        .map(|extent| usize::try_from(*extent).unwrap_or(usize::MAX))
        .collect();
    let [nx, ny, nz] = extents.as_slice() else {
        return Ok(Vec::new());
    };
    let mut bytes = Vec::with_capacity(buffer.len());
    for z in 0..*nz {
        for y in 0..*ny {
            for x in 0..*nx {
                let element = x
                    .saturating_mul(*ny)
                    .saturating_add(y)
                    .saturating_mul(*nz)
                    .saturating_add(z);
                let start = element.saturating_mul(size);
                let Some(value) = buffer.get(start..start.saturating_add(size)) else {
                    continue;
                };
                if is_big {
                    bytes.extend(value.iter().rev());
                } else {
                    bytes.extend_from_slice(value);
                }
            }
        }
    }
    Ok(bytes)
}

fn data_type(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::UInt8 | Kind::Bool => "uint8",
        Kind::Int8 => "int8",
        Kind::UInt16 => "uint16",
        Kind::Int16 => "int16",
        Kind::UInt32 => "uint32",
        Kind::Int32 => "int32",
        Kind::UInt64 => "uint64",
        Kind::Float32 => "float32",
        _ => return None,
    })
}

fn view(shape: &[u64], map: &VolumePlacement) -> StoreView {
    let rows = map.corner_rows();
    // The box around a box: each row takes the ends of the axes by the signs of its factors.
    let ends = rows.map(|[x, y, z, shift]| {
        let axes = [x, y, z].into_iter().zip(shape);
        axes.fold((shift, shift), |(lower, upper), (factor, extent)| {
            let along = factor * number(*extent);
            (lower + along.min(0.0), upper + along.max(0.0))
        })
    });
    let axes = ["x", "y", "z"].map(|name| Dimension {
        name: name.to_owned(),
        scale: map.unit,
        unit: "m".to_owned(),
    });
    let transform = SourceTransform {
        rows,
        input: map.edges(),
        output: map.unit,
    };
    StoreView {
        layers: vec![Layer {
            kind: LayerKind::Volume,
            level: LevelId::FULL,
            items: 1,
            shader: Some(
                "#uicontrol invlerp normalized\nvoid main() {\n  emitGrayscale(normalized());\n}"
                    .to_owned(),
            ),
            shown: Vec::new(),
            is_related: false,
            transform: Some(transform),
        }],
        lower: ends.iter().map(|(lower, _)| *lower).collect(),
        upper: ends.iter().map(|(_, upper)| *upper).collect(),
        space: ViewerSpace {
            dimensions: Dimensions(axes.to_vec()),
            notes: Vec::new(),
        },
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "extents of arrays that can be drawn are below 2^53"
)]
fn number(extent: u64) -> f64 {
    extent as f64
}

#[cfg(test)]
mod tests {
    use zvf_dense::{MemorySource, npy::NpyArray};

    use super::*;

    fn source(map: &VolumePlacement) -> VolumeSource {
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 4)}";
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").bytes());
        bytes.extend(0..24);
        let source = MemorySource::new("v.npy", bytes);
        let array = NpyArray::open(Arc::new(source), None).unwrap();
        VolumeSource::new("v".to_owned(), Arc::new(array), map).unwrap()
    }

    #[test]
    fn cubes_begin_at_the_origin() {
        let volume = source(&VolumePlacement::cubes(2e-3));
        assert_eq!(volume.view.lower, [0.0; 3]);
        assert_eq!(volume.view.upper, [2.0, 3.0, 4.0]);
        let info: serde_json::Value = serde_json::from_slice(&volume.info).unwrap();
        assert_eq!(info["scales"][0]["resolution"], json!([2e6, 2e6, 2e6]));
    }

    /// The first axis of voxels runs along -y in steps of 2, the second along x in steps of 3.
    #[test]
    fn an_affine_map_places_the_centres_of_voxels() {
        let rows = [
            [0.0, 3.0, 0.0, 10.0],
            [-2.0, 0.0, 0.0, 20.0],
            [0.0, 0.0, 1.0, 30.0],
        ];
        let map = VolumePlacement::affine(rows, 1e-3).unwrap();
        let volume = source(&map);
        assert_eq!(volume.view.lower, [8.5, 17.0, 29.5]);
        assert_eq!(volume.view.upper, [17.5, 21.0, 33.5]);
        let info: serde_json::Value = serde_json::from_slice(&volume.info).unwrap();
        assert_eq!(info["scales"][0]["resolution"], json!([2e6, 3e6, 1e6]));
        let transform = volume.view.layers[0].transform.as_ref().unwrap();
        assert_eq!(json!(transform.input), json!([2e-3, 3e-3, 1e-3]));
        // The centre of voxel 1, 2, 3.
        let centre = transform
            .rows
            .map(|[x, y, z, shift]| 1.5 * x + 2.5 * y + 3.5 * z + shift);
        assert_eq!(json!(centre), json!([16.0, 18.0, 33.0]));
    }

    #[test]
    fn flat_and_infinite_maps_are_refused() {
        let mut rows = [
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0],
        ];
        assert_eq!(
            VolumePlacement::affine(rows, 1.0),
            Err(VolumePlacementError)
        );
        rows[2][2] = 1.0;
        assert_eq!(
            VolumePlacement::affine(rows, 0.0),
            Err(VolumePlacementError)
        );
        rows[0][3] = f64::INFINITY;
        assert_eq!(
            VolumePlacement::affine(rows, 1.0),
            Err(VolumePlacementError)
        );
    }
}
