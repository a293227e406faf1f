//! Outlines and partition results as JSON, for other processes.

use serde_json::{Value, json};
use zvf_format::numeric::{Dtype, Kind};
use zvf_model::{
    draco::PositionBits,
    grid::{Bins, ChunkShape},
};

use crate::{
    CellCompression, GeometryKind,
    design::{CellChecksums, Design, Profile, StepLinks},
    error::BuildError,
    large::outline::{Field, Outline},
    large::part::{ChunkSummary, PartitionResult},
    metadata,
    spatial_layout::{ArrayGrid, SpatialLayout},
};

impl Outline {
    /// Serializes the outline with the chunks by number.
    pub fn to_json(&self, chunks: &[Vec<i64>]) -> Value {
        let design = &self.design;
        let fields = self.fields.iter().map(described);
        let bins = self.space.bins.as_ref().map(|bins| bins.shape().extents());
        json!({
            "kind": design.kind.name(),
            "profile": design.profile.name(),
            "compression": compression(design.compression),
            "checksum": design.has_checksums(),
            "directed": design.directed,
            "duplicate": design.duplicate,
            "step_links": design.step_links.word(),
            "fragment_owners": design.fragment_owners,
            "chunk": self.space.chunk.extents(),
            "bins": bins,
            "lower": self.space.lower,
            "upper": self.space.upper,
            "origin": self.grid.origin,
            "shape": self.grid.shape,
            "shard": self.shard,
            "positions": [self.positions.0.name(), self.positions.1],
            "has_objects": self.has_objects,
            "fields": fields.collect::<Vec<Value>>(),
            "object_fields": self.object_fields.iter().map(described).collect::<Vec<Value>>(),
            "link_width": self.link_width,
            "link_fields": self.link_fields.iter().map(described).collect::<Vec<Value>>(),
            "draco": design.draco.map(PositionBits::get),
            "chunks": chunks,
        })
    }

    /// Parses the output of `to_json`.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the JSON is not an output of `to_json`.
    pub fn from_json(json: &Value) -> Result<(Self, Vec<Vec<i64>>), BuildError> {
        read(json).ok_or_else(super::piece::damaged)
    }
}

fn read(json: &Value) -> Option<(Outline, Vec<Vec<i64>>)> {
    let text = |key: &str| json[key].as_str();
    let kind = GeometryKind::ALL
        .into_iter()
        .find(|kind| Some(kind.name()) == text("kind"))?;
    let mut design = Design::new(kind);
    design.profile = Profile::ALL
        .into_iter()
        .find(|all| Some(all.name()) == text("profile"))?;
    design.compression = read_compression(&json["compression"])?;
    design.checksums = if json["checksum"].as_bool()? {
        CellChecksums::On
    } else {
        CellChecksums::Off
    };
    design.directed = json["directed"].as_bool()?;
    design.duplicate = json["duplicate"].as_bool()?;
    design.step_links = read_step_links(&json["step_links"])?;
    design.fragment_owners = json["fragment_owners"].as_bool()?;
    design.draco = read_draco(&json["draco"])?;
    let chunk = ChunkShape::new(&floats(&json["chunk"])?).ok()?;
    let bins = match floats(&json["bins"]) {
        None => None,
        Some(bins) => Some(Bins::new(&chunk, ChunkShape::new(&bins).ok()?).ok()?),
    };
    let (lower, upper) = (floats(&json["lower"])?, floats(&json["upper"])?);
    design.bounds = Some((lower.clone(), upper.clone()));
    let columns = usize::try_from(json["positions"][1].as_u64()?).ok()?;
    let fields =
        |key: &str| -> Option<Vec<Field>> { json[key].as_array()?.iter().map(field).collect() };
    let outline = Outline {
        axes: metadata::default_axes(columns),
        space: SpatialLayout {
            chunk,
            bins,
            lower,
            upper,
            why: Vec::new(),
        },
        design,
        grid: ArrayGrid {
            origin: integers(&json["origin"])?,
            shape: naturals(&json["shape"])?,
        },
        shard: naturals(&json["shard"]),
        positions: (numeric(&json["positions"][0])?, columns),
        has_objects: json["has_objects"].as_bool()?,
        fields: fields("fields")?,
        object_fields: fields("object_fields")?,
        link_width: usize::try_from(json["link_width"].as_u64()?).ok()?,
        link_fields: fields("link_fields")?,
    };
    let chunks = json["chunks"].as_array()?.iter().map(integers);
    Some((outline, chunks.collect::<Option<_>>()?))
}

/// Parses the bits of a coordinate of Draco streams, or null; `None` if they are invalid.
#[expect(
    clippy::option_option,
    reason = "null is a value, and differs from an invalid one"
)]
pub(super) fn read_draco(json: &Value) -> Option<Option<PositionBits>> {
    match json {
        Value::Null => Some(None),
        bits => PositionBits::new(u8::try_from(bits.as_u64()?).ok()?).map(Some),
    }
}

/// Parses the word of steps of paths, or null for none; `None` if there are no such steps.
pub(super) fn read_step_links(json: &Value) -> Option<StepLinks> {
    match json {
        Value::Null => Some(StepLinks::None),
        word => StepLinks::parse(word.as_str()?),
    }
}

/// Serializes a compression; `null` is none.
pub(super) fn compression(compression: CellCompression) -> Value {
    match (compression.name(), compression.level()) {
        ("none", _) => json!(null),
        (name, None) => json!([name]),
        (name, Some((level, _))) => json!([name, level]),
    }
}

/// Parses the output of `compression`.
pub(super) fn read_compression(json: &Value) -> Option<CellCompression> {
    let level = json
        .get(1)
        .and_then(Value::as_i64)
        .map(i32::try_from)
        .transpose()
        .ok()?;
    let name = json.get(0).and_then(Value::as_str);
    CellCompression::new(name.unwrap_or("none"), level)
}

/// Serializes an attribute.
pub(super) fn described(field: &Field) -> Value {
    json!({
        "name": field.name,
        "numbers": field.numbers.map(|(kind, columns)| json!([kind.name(), columns])),
        "words": field.words,
        "missing": field.missing,
    })
}

/// Parses the output of `described`.
pub(super) fn field(json: &Value) -> Option<Field> {
    let numbers = match &json["numbers"] {
        Value::Null => None,
        both => Some((numeric(&both[0])?, usize::try_from(both[1].as_u64()?).ok()?)),
    };
    let words = json["words"].as_array()?.iter();
    Some(Field {
        name: json["name"].as_str()?.to_owned(),
        numbers,
        words: words
            .map(|word| word.as_str().map(str::to_owned))
            .collect::<Option<_>>()?,
        missing: json["missing"].as_bool()?,
    })
}

pub(super) fn numeric(json: &Value) -> Option<Kind> {
    Dtype::parse(json.as_str()?).ok().map(Dtype::kind)
}

pub(super) fn floats(json: &Value) -> Option<Vec<f64>> {
    json.as_array()?.iter().map(Value::as_f64).collect()
}

pub(super) fn integers(json: &Value) -> Option<Vec<i64>> {
    json.as_array()?.iter().map(Value::as_i64).collect()
}

pub(super) fn naturals(json: &Value) -> Option<Vec<u64>> {
    json.as_array()?.iter().map(Value::as_u64).collect()
}

impl PartitionResult {
    /// Serializes the result for the process that finishes the store.
    pub fn to_json(&self) -> Value {
        let chunks = self
            .chunks
            .iter()
            .map(|made| json!([made.coords, made.rows, made.fragments]));
        let links = self
            .links
            .iter()
            .map(|(chunks, links)| json!([chunks, links]));
        json!({
            "chunks": chunks.collect::<Vec<Value>>(),
            "links": links.collect::<Vec<Value>>(),
        })
    }

    /// Parses the output of `to_json`.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the JSON is not an output of `to_json`.
    pub fn from_json(json: &Value) -> Result<Self, BuildError> {
        result(json).ok_or_else(super::piece::damaged)
    }
}

fn result(json: &Value) -> Option<PartitionResult> {
    let chunk = |json: &Value| {
        let fragment = |json: &Value| {
            let rows = u32::try_from(json[0].as_u64()?).ok()?;
            Some((rows, json[1].as_i64()?))
        };
        let fragments = json[2].as_array()?.iter().map(fragment);
        Some(ChunkSummary {
            coords: integers(&json[0])?,
            rows: json[1].as_u64()?,
            fragments: fragments.collect::<Option<_>>()?,
        })
    };
    let link = |json: &Value| {
        let chunks = json[0].as_array()?.iter().map(integers);
        let links = u32::try_from(json[1].as_u64()?).ok()?;
        Some((chunks.collect::<Option<_>>()?, links))
    };
    let chunks = json["chunks"].as_array()?.iter().map(chunk);
    let links = json["links"].as_array()?.iter().map(link);
    Some(PartitionResult {
        chunks: chunks.collect::<Option<_>>()?,
        links: links.collect::<Option<_>>()?,
    })
}

/// Parses a list of texts.
pub(super) fn texts(json: &Value) -> Option<Vec<String>> {
    let texts = json.as_array()?.iter();
    texts.map(|text| text.as_str().map(str::to_owned)).collect()
}
