//! The summary of an export, which a plan keeps after its commit.

use serde_json::{Value, json};
use zvf_model::level::LevelId;
use zvf_precomputed::{Dimension, Dimensions};

use super::ExportReport;
use crate::{
    layers::{Layer, LayerKind, space::ViewerSpace},
    view::StoreView,
};

impl Layer {
    /// Returns what [`from_json`](Self::from_json) needs.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "items": self.items,
            "shader": self.shader,
            "shown": self.shown,
            "is_related": self.is_related,
        })
    }

    /// Returns the layer of an interrupted export; `None` if it was left out.
    pub(super) fn from_json(
        kind: LayerKind,
        level: LevelId,
        layer: Option<&Value>,
    ) -> Option<Self> {
        let layer = layer.filter(|layer| layer.is_object())?;
        let shown = layer
            .get("shown")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64);
        Some(Self {
            kind,
            level,
            items: layer.get("items").and_then(Value::as_u64)?,
            shader: layer
                .get("shader")
                .and_then(Value::as_str)
                .map(str::to_owned),
            shown: shown.collect(),
            is_related: layer.get("is_related").and_then(Value::as_bool)?,
            transform: None,
        })
    }
}

impl ExportReport {
    /// Returns what [`from_json`](Self::from_json) needs.
    pub(super) fn to_json(&self) -> Value {
        let view = &self.view;
        let layers = view.layers.iter().map(|layer| {
            json!({
                "kind": layer.kind.folder(),
                "level": layer.level.number(),
                "layer": layer.to_json(),
            })
        });
        let axes = view
            .space
            .dimensions
            .0
            .iter()
            .map(|axis| json!([axis.name, axis.scale, axis.unit]));
        json!({
            "layers": layers.collect::<Value>(),
            "lower": view.lower,
            "upper": view.upper,
            "axes": axes.collect::<Value>(),
            "files": self.files,
            "bytes": self.bytes,
            "notes": self.notes,
        })
    }

    pub(super) fn from_json(json: &Value) -> Option<Self> {
        let layers = json.get("layers")?.as_array()?.iter().map(|layer| {
            let kind = layer.get("kind")?.as_str()?;
            let mut kinds = LayerKind::OF_STORES.into_iter();
            let kind = kinds.find(|known| known.folder() == kind)?;
            let level = u32::try_from(layer.get("level")?.as_u64()?).ok()?;
            Layer::from_json(kind, LevelId::new(level), layer.get("layer"))
        });
        let axes = json.get("axes")?.as_array()?.iter().map(|axis| {
            let [name, scale, unit] = axis.as_array()?.as_slice() else {
                return None;
            };
            Some(Dimension {
                name: name.as_str()?.to_owned(),
                scale: scale.as_f64()?,
                unit: unit.as_str()?.to_owned(),
            })
        });
        let notes = json
            .get("notes")?
            .as_array()?
            .iter()
            .map(|note| note.as_str().map(str::to_owned));
        Some(Self {
            view: StoreView {
                layers: layers.collect::<Option<_>>()?,
                lower: numbers(json.get("lower")?)?,
                upper: numbers(json.get("upper")?)?,
                space: ViewerSpace {
                    dimensions: Dimensions(axes.collect::<Option<_>>()?),
                    notes: Vec::new(),
                },
            },
            files: json.get("files")?.as_u64()?,
            bytes: json.get("bytes")?.as_u64()?,
            kept: 0,
            notes: notes.collect::<Option<_>>()?,
        })
    }
}

/// Parses a list of numbers.
pub(super) fn numbers(json: &Value) -> Option<Vec<f64>> {
    json.as_array()?.iter().map(Value::as_f64).collect()
}
