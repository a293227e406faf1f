//! The summary of an export, which a plan keeps after its commit.

use serde_json::{Value, json};
use zvf_model::{json::member, level::LevelId};
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
        let layer = layer?;
        Some(Self {
            kind,
            level,
            items: member(layer, "items")?,
            shader: member(layer, "shader").unwrap_or_default(),
            shown: member(layer, "shown").unwrap_or_default(),
            is_related: member(layer, "is_related")?,
            transform: None,
        })
    }

    /// Parses the members `kind`, `level` and `layer` of a description.
    pub(super) fn parse(json: &Value) -> Option<Self> {
        let kind: &str = member(json, "kind")?;
        let mut kinds = LayerKind::OF_STORES.into_iter();
        let kind = kinds.find(|known| known.folder() == kind)?;
        let level = LevelId::new(member(json, "level")?);
        Self::from_json(kind, level, json.get("layer"))
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
        let layers = json.get("layers")?.as_array()?.iter().map(Layer::parse);
        let axes = member::<Vec<(String, f64, String)>>(json, "axes")?
            .into_iter()
            .map(|(name, scale, unit)| Dimension { name, scale, unit });
        Some(Self {
            view: StoreView {
                layers: layers.collect::<Option<_>>()?,
                lower: member(json, "lower")?,
                upper: member(json, "upper")?,
                space: ViewerSpace {
                    dimensions: Dimensions(axes.collect()),
                    notes: Vec::new(),
                },
            },
            files: member(json, "files")?,
            bytes: member(json, "bytes")?,
            kept: 0,
            notes: member(json, "notes")?,
        })
    }
}
