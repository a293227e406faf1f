//! The state of a partitioner as bytes, for the process that finishes the store.
//!
//! ```text
//! u64  length of the header
//! JSON header: outline, design, counts, columns of tables
//! i64  ids of paths
//! u32  runs of paths: path, chunk, fragment number
//! i64  ids of the objects that tables describe
//! ...  values of each column of the tables
//! ```

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use zvf_format::numeric::Kind;
use zvf_model::column::{Column, ColumnValues, NULL_CODE, NumericColumn};

use crate::{
    design::{AxisSpec, CellCompression, Design, OutOfBounds, Purpose, ShardingPolicy},
    error::BuildError,
    geometry::Geometry,
    large::json::{compression, floats, integers, naturals, numeric, read_compression},
    large::outline::Outline,
    large::piece::{cut, numbers, take},
    large::splitter::Partitioner,
    parametric::{Formula, FormulaSet},
};

impl Partitioner {
    /// Serializes the state after the last batch, with the tables for [`finish`](Self::finish).
    pub fn to_bytes(&self, tables: &Geometry) -> Vec<u8> {
        let families = [&tables.object, &tables.fragment, &tables.group];
        let header = json!({
            "outline": self.outline.to_json(&self.chunks),
            "why": self.outline.space.why,
            "axes": axes(&self.outline.axes),
            "design": design(&self.outline.design),
            "parts": self.parts,
            "paths": self.paths.len(),
            "stretches": self.stretches.len(),
            "objects": tables.objects.as_ref().map(Vec::len),
            "groups": tables.groups,
            "columns": families.map(|columns| columns.iter().map(column).collect::<Vec<_>>()),
        });
        let header = header.to_string();
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend(header.bytes());
        out.extend(self.paths.iter().flat_map(|id| id.to_le_bytes()));
        for (path, chunk, fragment) in &self.stretches {
            let numbers = [*path, *chunk, *fragment];
            out.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
        }
        let objects = tables.objects.iter().flatten();
        out.extend(objects.flat_map(|id| id.to_le_bytes()));
        for column in families.into_iter().flatten() {
            match &column.values {
                ColumnValues::Numeric(numbers) => out.extend(&numbers.bytes),
                ColumnValues::Dictionary { codes, .. } => {
                    out.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
                }
            }
            let nulls = column.nulls.iter().flatten();
            out.extend(nulls.map(|is_null| u8::from(*is_null)));
        }
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
        let mut length = [0; 8];
        length.copy_from_slice(take(&mut bytes, 8)?);
        let length = usize::try_from(u64::from_le_bytes(length)).map_err(|_| cut())?;
        let header = serde_json::from_slice(take(&mut bytes, length)?).map_err(|_| cut())?;
        let state = read(&header, &mut bytes)?;
        match bytes.is_empty() {
            true => Ok(state),
            false => Err(cut()),
        }
    }
}

fn read(header: &Value, bytes: &mut &[u8]) -> Result<(Partitioner, Geometry), BuildError> {
    let (mut outline, chunks) = Outline::from_json(&header["outline"])?;
    outline.design = read_design(&header["design"]).ok_or_else(cut)?;
    outline.axes = read_axes(&header["axes"]).ok_or_else(cut)?;
    outline.space.why = texts(&header["why"]).ok_or_else(cut)?;
    let count = |json: &Value| {
        let count = json.as_u64().ok_or_else(cut)?;
        usize::try_from(count).map_err(|_| cut())
    };
    let ids = |bytes: &mut &[u8], count: usize| {
        let ids = take(bytes, count.saturating_mul(8))?;
        Ok::<Vec<i64>, BuildError>(numbers(ids).map(i64::from_le_bytes).collect())
    };
    let paths = ids(bytes, count(&header["paths"])?)?;
    let stretches = take(bytes, count(&header["stretches"])?.saturating_mul(12))?;
    let stretches = stretches.chunks_exact(12).map(|run| {
        let mut three = numbers(run).map(u32::from_le_bytes);
        let mut next = || three.next().unwrap_or_default();
        (next(), next(), next())
    });
    let stretches: Vec<(u32, u32, u32)> = stretches.collect();
    let is_known = |(path, chunk, _): &(u32, u32, u32)| {
        (*path as usize) < paths.len() && (*chunk as usize) < chunks.len()
    };
    if !stretches.iter().all(is_known) {
        return Err(cut());
    }
    let positions = NumericColumn::new(outline.positions.0, outline.positions.1 as u32);
    let mut tables = Geometry::new(positions);
    if !header["objects"].is_null() {
        tables.objects = Some(ids(bytes, count(&header["objects"])?)?);
    }
    tables.groups = groups(&header["groups"]).ok_or_else(cut)?;
    let families = [&mut tables.object, &mut tables.fragment, &mut tables.group];
    for (columns, family) in families.into_iter().zip(0..) {
        for one in header["columns"][family].as_array().ok_or_else(cut)? {
            columns.push(read_column(one, bytes)?);
        }
    }
    let splitter = Partitioner {
        words: vec![HashMap::new(); outline.fields.len()],
        outline,
        parts: count(&header["parts"])?,
        numbers: HashMap::new(),
        chunks,
        ends: Vec::new(),
        paths,
        stretches,
        first: 0,
    };
    Ok((splitter, tables))
}

fn column(column: &Column) -> Value {
    let (numbers, words) = match &column.values {
        ColumnValues::Numeric(numbers) => (Some(json!([numbers.kind.name(), numbers.width])), None),
        ColumnValues::Dictionary { words, .. } => (None, Some(words)),
    };
    json!({
        "name": column.name,
        "rows": column.values.len(),
        "numbers": numbers,
        "words": words.map(|words| words.to_vec()),
        "nulls": column.nulls.is_some(),
    })
}

fn read_column(json: &Value, bytes: &mut &[u8]) -> Result<Column, BuildError> {
    let name = json["name"].as_str().ok_or_else(cut)?;
    let rows = json["rows"].as_u64().ok_or_else(cut)?;
    let rows = usize::try_from(rows).map_err(|_| cut())?;
    let values = match &json["numbers"] {
        Value::Null => {
            let words = texts(&json["words"]).ok_or_else(cut)?;
            let codes = take(bytes, rows.saturating_mul(4))?;
            let codes: Vec<u32> = numbers(codes).map(u32::from_le_bytes).collect();
            let is_word = |code: &u32| *code == NULL_CODE || (*code as usize) < words.len();
            if !codes.iter().all(is_word) {
                return Err(cut());
            }
            let words = words.into();
            ColumnValues::Dictionary { codes, words }
        }
        both => {
            let kind = numeric(&both[0]).ok_or_else(cut)?;
            let width = both[1].as_u64().and_then(|width| u32::try_from(width).ok());
            let empty = NumericColumn::new(kind, width.ok_or_else(cut)?);
            let values = take(bytes, rows.saturating_mul(empty.row_size()))?;
            ColumnValues::Numeric(empty.with_bytes(values.to_vec()))
        }
    };
    let mut column = Column::new(name, values);
    if json["nulls"].as_bool().ok_or_else(cut)? {
        let nulls = take(bytes, rows)?.iter().map(|byte| *byte != 0);
        column.nulls = Some(nulls.collect());
    }
    Ok(column)
}

fn design(design: &Design) -> Value {
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
        let objects = set.objects.iter();
        let objects = objects.map(|one| json!([one.type_id, one.name, one.coefficients]));
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
        "sharding": sharding,
        "directed": design.directed,
        "duplicate": design.duplicate,
        "step_links": design.step_links,
        "bounds": design.bounds,
        "out_of_bounds": out_of_bounds,
        "purpose": purpose,
        "axes": design.axes.as_deref().map(axes),
        "crs": design.crs.as_ref().map(|crs| json!([crs])),
        "name": design.name,
        "parametric": parametric,
        "headers": design.headers,
    })
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
    design.checksums = match flag("checksums")? {
        true => CellChecksums::On,
        false => CellChecksums::Off,
    };
    design.sharding = match &json["sharding"] {
        Value::String(name) if name == "none" => ShardingPolicy::None,
        Value::String(name) if name == "auto" => ShardingPolicy::Auto,
        shape => ShardingPolicy::Shape(naturals(shape)?),
    };
    design.directed = flag("directed")?;
    design.duplicate = flag("duplicate")?;
    design.step_links = flag("step_links")?;
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
    design.crs = optional(&json["crs"], |crs| crs.get(0).cloned())?;
    design.name = optional(&json["name"], |name| name.as_str().map(str::to_owned))?;
    design.parametric = optional(&json["parametric"], formulas)?;
    for (format, header) in json["headers"].as_object()? {
        let header: &Map<String, Value> = header.as_object()?;
        design.headers.insert(format.clone(), header.clone());
    }
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

fn texts(json: &Value) -> Option<Vec<String>> {
    let texts = json.as_array()?.iter();
    texts.map(|text| text.as_str().map(str::to_owned)).collect()
}

fn groups(json: &Value) -> Option<BTreeMap<u32, Vec<i64>>> {
    let groups = json.as_object()?.iter();
    groups
        .map(|(group, members)| Some((group.parse().ok()?, integers(members)?)))
        .collect()
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
