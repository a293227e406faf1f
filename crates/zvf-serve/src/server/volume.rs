//! Dense arrays as precomputed volumes.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::json;
use zvf_dense::{AxisRange, DenseArray, Hyperslab};
use zvf_format::numeric::{ByteOrder, Dtype, Kind};
use zvf_precomputed::{Dimension, Dimensions};

use super::{
    cache::{AnswerCache, KnownAnswer},
    reply::{BINARY, JSON, Reply},
};
use crate::{
    layers::{Layer, LayerKind, space::ViewerSpace},
    view::StoreView,
};

/// Voxels along each axis of a chunk.
const CHUNK: u64 = 64;
/// Coarser scales: each leaves out every second voxel of the one before.
const MOST_SCALES: u32 = 3;
/// Voxels along the longest axis that need no coarser scale.
const FINE: u64 = 256;
const NANOMETRES: f64 = 1e9;

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
    /// Prepares an array whose voxels have an edge of `voxel` metres.
    pub(super) fn new(
        name: String,
        array: Arc<dyn DenseArray>,
        voxel: f64,
    ) -> Result<Self, VolumeError> {
        let shape = array.shape().to_vec();
        let [x, y, z] = shape.as_slice() else {
            return Err(VolumeError::Axes(shape.len()));
        };
        if shape.contains(&0) {
            return Err(VolumeError::Empty);
        }
        let kind = array.dtype().number().map(Dtype::kind);
        let data_type = kind.and_then(data_type);
        let data_type =
            data_type.ok_or_else(|| VolumeError::Type(format!("{:?}", array.dtype())))?;
        let longest = *x.max(y).max(z);
        let coarse = (0..MOST_SCALES).find(|scale| longest >> scale <= FINE);
        let scales = coarse.map_or(MOST_SCALES, |scale| scale.saturating_add(1));
        let documents = (0..scales).map(|scale| {
            let step = 1_u64 << scale;
            let size: Vec<u64> = shape.iter().map(|extent| extent.div_ceil(step)).collect();
            let edge = voxel * NANOMETRES * f64::from(1_u32 << scale);
            json!({
                "key": scale.to_string(),
                "size": size,
                "resolution": [edge, edge, edge],
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
            view: view(&shape, voxel),
            name,
            array,
            info: info.to_string().into(),
            scales,
        })
    }

    /// Answers a request for the document or a chunk.
    pub(super) async fn answer(&self, path: &[&str], cache: &AnswerCache) -> Reply {
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
        if let Some(KnownAnswer::Bytes(known)) = cache.get(&key) {
            return Reply::document(BINARY, known);
        }
        let array = Arc::clone(&self.array);
        let read = tokio::task::spawn_blocking(move || chunk(&*array, &selection));
        match read.await {
            Ok(Ok(bytes)) => {
                let bytes = Bytes::from(bytes);
                cache.put(key, KnownAnswer::Bytes(bytes.clone()));
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
        let axes = axes.into_iter().zip(shape).map(|(ends, extent)| {
            let (start, end) = ends.split_once('-')?;
            let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().ok()?);
            let is_chunk = start.is_multiple_of(CHUNK)
                && start < end
                && end == start.saturating_add(CHUNK).min(extent.div_ceil(step));
            let stop = end.saturating_mul(step).min(*extent);
            let range = AxisRange::new(start.saturating_mul(step), stop, step).ok();
            range.filter(|_| is_chunk)
        });
        let axes: Option<Vec<AxisRange>> = axes.collect();
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
                let element = x.saturating_mul(*ny).saturating_add(y);
                let element = element.saturating_mul(*nz).saturating_add(z);
                let start = element.saturating_mul(size);
                let Some(value) = buffer.get(start..start.saturating_add(size)) else {
                    continue;
                };
                match is_big {
                    true => bytes.extend(value.iter().rev()),
                    false => bytes.extend_from_slice(value),
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

fn view(shape: &[u64], voxel: f64) -> StoreView {
    let axes = ["x", "y", "z"].map(|name| Dimension {
        name: name.to_owned(),
        scale: voxel,
        unit: "m".to_owned(),
    });
    StoreView {
        layers: vec![Layer {
            kind: LayerKind::Volume,
            items: 1,
            shader: Some(
                "#uicontrol invlerp normalized\nvoid main() {\n  emitGrayscale(normalized());\n}"
                    .to_owned(),
            ),
            shown: Vec::new(),
            is_related: false,
        }],
        lower: vec![0.0; shape.len()],
        upper: shape.iter().map(|extent| number(*extent)).collect(),
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
