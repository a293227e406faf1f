//! The state of a partitioner as bytes, for the process that finishes the store.
//!
//! ```text
//! u64  length of the header
//! JSON header: outline, design, counts
//! ...  log of paths
//! ...  tables, as `spill` encodes a batch
//! ```

use serde_json::{Value, json};
use zvf_format::numeric::Kind;
use zvf_model::{draco::PositionBits, json::Json, root::WindingOrder};

use crate::{
    CellCompression,
    design::{AxisSpec, Design, ManifestForm, OutOfBounds, Purpose, ShardingPolicy},
    error::BuildError,
    geometry::Geometry,
    large::json::{
        compression, floats, integers, naturals, numeric, read_compression, read_draco,
        read_step_links, texts,
    },
    large::linked_rows::Runs,
    large::outline::Outline,
    large::path_log::PathLog,
    large::piece::{damaged, take},
    large::spill::{count, decode_batch, encode_batch, read_header},
    large::splitter::Partitioner,
    parametric::{Formula, FormulaSet},
};

impl Partitioner {
    /// Serializes the state after the last batch, with the tables for [`finish`](Self::finish).
    pub fn to_bytes(&self, tables: &Geometry) -> Vec<u8> {
        let header = json!({
            "outline": self.outline.to_json(&self.chunks),
            "why": self.outline.space.why,
            "axes": axes(&self.outline.axes),
            "design": design_to_json(&self.outline.design),
            "parts": self.parts,
            "dropped": self.dropped,
            "paths": self.log.bytes.len(),
        })
        .to_string();
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend(header.bytes());
        out.extend(&self.log.bytes);
        out.extend(encode_batch(tables));
        out
    }

    /// Parses the output of [`to_bytes`](Self::to_bytes). The result supports
    /// [`parts`](Self::parts), [`settled`](Self::settled) and [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the bytes are not an output of `to_bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, Geometry), BuildError> {
        let mut bytes = bytes;
        let header = read_header(&mut bytes)?;
        let (mut outline, chunks) = Outline::from_json(&header["outline"])?;
        outline.design = design_from_json(&header["design"])?;
        outline.axes = read_axes(&header["axes"]).ok_or_else(damaged)?;
        outline.space.why = texts(&header["why"]).ok_or_else(damaged)?;
        let mut partitioner = Self::new(outline, count(&header["parts"])?);
        partitioner.chunks = chunks;
        partitioner.read_paths(&header, &mut bytes)?;
        Ok((partitioner, decode_batch(bytes)?))
    }

    /// Serializes what [`append`](Self::append) takes: the state after the last batch, without the
    /// outline.
    pub fn share_to_bytes(&self) -> Vec<u8> {
        let words = self.outline.fields.iter().map(|field| &field.words);
        let missing = self.outline.fields.iter().map(|field| field.missing);
        let header = json!({
            "chunks": self.chunks,
            "ends": self.ends,
            "words": words.collect::<Vec<_>>(),
            "missing": missing.collect::<Vec<_>>(),
            "runs": self.runs.len(),
            "dropped": self.dropped,
            "paths": self.log.bytes.len(),
        })
        .to_string();
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend(header.bytes());
        self.runs.write(&mut out);
        out.extend(&self.log.bytes);
        out
    }

    /// Parses the output of [`share_to_bytes`](Self::share_to_bytes) of a partitioner with this
    /// outline.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the bytes are not an output of `share_to_bytes`.
    pub fn share_from_bytes(outline: Outline, bytes: &[u8]) -> Result<Self, BuildError> {
        let mut bytes = bytes;
        let header = read_header(&mut bytes)?;
        let mut share = Self::new(outline, 1);
        let lists = |name: &str| header[name].as_array().ok_or_else(damaged);
        for (json, field) in lists("words")?.iter().zip(&mut share.outline.fields) {
            field.words = texts(json).ok_or_else(damaged)?;
        }
        for (json, field) in lists("missing")?.iter().zip(&mut share.outline.fields) {
            field.missing = json.as_bool().ok_or_else(damaged)?;
        }
        let chunks = lists("chunks")?.iter().map(integers);
        share.chunks = chunks.collect::<Option<_>>().ok_or_else(damaged)?;
        let end = |json: &Value| {
            let fragments = u32::try_from(json[1].as_u64()?).ok()?;
            Some((json[0].as_u64()?, fragments))
        };
        let ends = lists("ends")?.iter().map(end);
        share.ends = ends.collect::<Option<_>>().ok_or_else(damaged)?;
        if share.ends.len() != share.chunks.len() {
            return Err(damaged());
        }
        let runs = count(&header["runs"])?;
        share.runs = Runs::read(&mut bytes, runs, share.chunks.len())?;
        share.read_paths(&header, &mut bytes)?;
        if bytes.is_empty() {
            Ok(share)
        } else {
            Err(damaged())
        }
    }

    fn read_paths(&mut self, header: &Value, bytes: &mut &[u8]) -> Result<(), BuildError> {
        let records = take(bytes, count(&header["paths"])?)?.to_vec();
        let fields = &self.outline.object_fields;
        self.log = PathLog::parse(records, fields, self.chunks.len())?;
        let dropped = header["dropped"]
            .as_array()
            .ok_or_else(damaged)?
            .iter()
            .map(|one| Some((one[0].as_u64()?, one[1].as_i64()?)));
        self.dropped = dropped.collect::<Option<_>>().ok_or_else(damaged)?;
        Ok(())
    }
}

/// Serializes a design.
pub fn design_to_json(design: &Design) -> Value {
    let sharding = match &design.sharding {
        ShardingPolicy::None => json!("none"),
        ShardingPolicy::Auto => json!("auto"),
        ShardingPolicy::Shape(shape) => json!(shape),
    };
    let out_of_bounds = match design.out_of_bounds {
        OutOfBounds::Reject => "reject",
        OutOfBounds::Drop => "drop",
        OutOfBounds::Expand => "expand",
    };
    let purpose = match design.purpose {
        Purpose::Auto => "auto",
        Purpose::Lookup => "lookup",
        Purpose::Scan => "scan",
    };
    let parametric = design.parametric.as_ref().map(|set| {
        let objects = set
            .objects
            .iter()
            .map(|one| json!([one.type_id, one.name, one.coefficients]));
        json!({
            "types": set.types,
            "objects": objects.collect::<Vec<_>>(),
            "groups": set.groups,
        })
    });
    json!({
        "kind": design.kind.name(),
        "profile": design.profile.name(),
        "chunk_shape": design.chunk_shape,
        "bin_shape": design.bin_shape,
        "dtype": design.dtype.map(Kind::name),
        "compression": compression(design.compression),
        "table_compression": design.table_compression.map(compression).map(|one| json!([one])),
        "checksums": design.has_checksums(),
        "draco": design.draco.map(PositionBits::get),
        "has_dense_index": design.object_index == ManifestForm::Dense,
        "sharding": sharding,
        "directed": design.directed,
        "duplicate": design.duplicate,
        "step_links": design.step_links.word(),
        "flat_link_attributes": design.flat_link_attributes,
        "fragment_owners": design.fragment_owners,
        "winding": design.winding.map(WindingOrder::as_str),
        "bounds": design.bounds,
        "out_of_bounds": out_of_bounds,
        "purpose": purpose,
        "axes": design.axes.as_deref().map(axes),
        "crs": design.crs.as_ref().map(|crs| json!([crs])),
        "name": design.name,
        "parametric": parametric,
        "headers": design.headers.as_ref(),
        "attribute_specs": design.attribute_specs,
    })
}

/// Parses the output of [`design_to_json`].
///
/// # Errors
///
/// [`BuildError`] when the JSON is not an output of `design_to_json`.
pub fn design_from_json(json: &Value) -> Result<Design, BuildError> {
    read_design(json).ok_or_else(damaged)
}

fn read_design(json: &Value) -> Option<Design> {
    use crate::{CellChecksums, GeometryKind, Profile};
    let text = |key: &str| json[key].as_str();
    let flag = |key: &str| json[key].as_bool();
    let named = |kind: &GeometryKind| Some(kind.name()) == text("kind");
    let mut design = Design::new(GeometryKind::ALL.into_iter().find(named)?);
    let named = |profile: &Profile| Some(profile.name()) == text("profile");
    design.profile = Profile::ALL.into_iter().find(named)?;
    design.chunk_shape = optional(&json["chunk_shape"], floats)?;
    design.bin_shape = optional(&json["bin_shape"], floats)?;
    design.dtype = optional(&json["dtype"], numeric)?;
    design.compression = read_compression(&json["compression"])?;
    let tables = |one: &Value| read_compression(one.get(0)?);
    design.table_compression = optional::<CellCompression>(&json["table_compression"], tables)?;
    design.checksums = if flag("checksums")? {
        CellChecksums::On
    } else {
        CellChecksums::Off
    };
    design.draco = read_draco(&json["draco"])?;
    design.object_index = if flag("has_dense_index")? {
        ManifestForm::Dense
    } else {
        ManifestForm::Manifests
    };
    design.sharding = match &json["sharding"] {
        Value::String(name) if name == "none" => ShardingPolicy::None,
        Value::String(name) if name == "auto" => ShardingPolicy::Auto,
        shape => ShardingPolicy::Shape(naturals(shape)?),
    };
    design.directed = flag("directed")?;
    design.duplicate = flag("duplicate")?;
    design.step_links = read_step_links(&json["step_links"])?;
    design.flat_link_attributes = flag("flat_link_attributes")?;
    design.fragment_owners = flag("fragment_owners")?;
    let winding = |word: &Value| WindingOrder::of_word(word.as_str()?);
    design.winding = optional(&json["winding"], winding)?;
    let bounds = |both: &Value| Some((floats(&both[0])?, floats(&both[1])?));
    design.bounds = optional(&json["bounds"], bounds)?;
    design.out_of_bounds = match text("out_of_bounds")? {
        "reject" => OutOfBounds::Reject,
        "drop" => OutOfBounds::Drop,
        "expand" => OutOfBounds::Expand,
        _ => return None,
    };
    design.purpose = match text("purpose")? {
        "auto" => Purpose::Auto,
        "lookup" => Purpose::Lookup,
        "scan" => Purpose::Scan,
        _ => return None,
    };
    design.axes = optional(&json["axes"], read_axes)?;
    design.crs = optional(&json["crs"], |crs| crs.get(0).cloned().map(Json::from))?;
    design.name = optional(&json["name"], |name| name.as_str().map(str::to_owned))?;
    design.parametric = optional(&json["parametric"], formulas)?;
    for (format, header) in json["headers"].as_object()? {
        let header = header.clone().into();
        design.headers.insert(format, header).ok()?;
    }
    design.attribute_specs = serde_json::from_value(json["attribute_specs"].clone()).ok()?;
    Some(design)
}

/// Parses a value that may be null; `None` if it is invalid.
#[expect(
    clippy::option_option,
    reason = "null is a value, and differs from an invalid one"
)]
fn optional<T>(json: &Value, read: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
    match json {
        Value::Null => Some(None),
        json => read(json).map(Some),
    }
}

fn axes(axes: &[AxisSpec]) -> Value {
    let axes = axes.iter();
    axes.map(|axis| json!([axis.name, axis.kind, axis.unit]))
        .collect()
}

fn read_axes(json: &Value) -> Option<Vec<AxisSpec>> {
    let axis = |json: &Value| {
        Some(AxisSpec {
            name: json[0].as_str()?.to_owned(),
            kind: json[1].as_str()?.to_owned(),
            unit: optional(&json[2], |unit| unit.as_str().map(str::to_owned))?,
        })
    };
    json.as_array()?.iter().map(axis).collect()
}

fn formulas(json: &Value) -> Option<FormulaSet> {
    let mut set = FormulaSet::default();
    for (number, names) in json["types"].as_object()? {
        let name = names[0].as_str()?.to_owned();
        let names = (name, texts(&names[1])?);
        set.types.insert(number.parse().ok()?, names);
    }
    for formula in json["objects"].as_array()? {
        set.objects.push(Formula {
            type_id: u32::try_from(formula[0].as_u64()?).ok()?,
            name: optional(&formula[1], |name| name.as_str().map(str::to_owned))?,
            coefficients: floats(&formula[2])?,
        });
    }
    for group in json["groups"].as_array()? {
        set.groups.push(integers(group)?);
    }
    Some(set)
}
