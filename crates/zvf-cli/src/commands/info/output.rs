//! The description of a store as text and as JSON.

use std::fmt::{self, Write};

use serde_json::{Value, json};
use zvf::{AttributeInfo, LevelInfo, LinkInfo, StoreInfo, ValueRange, Word, numeric};
use zvf_model::{grid::Bounds, root::Axis};

use super::description::StoreDescription;
use crate::{
    commands::links,
    display::{count_noun, group_digits, narrow_bound, narrow_float, printable},
    text_table,
};

/// Maximum length of a coordinate reference system in the text.
const MAX_CRS_CHARS: usize = 60;

/// Returns the description as one JSON object.
pub(super) fn object(description: &StoreDescription) -> Value {
    let info = &description.info;
    let bounds = info.bounds.as_ref();
    let levels = info.levels.iter().enumerate().map(|(at, level)| {
        let mut object = json!({
            "level": level.level.number(),
            "vertices": level.vertices,
            "chunks": level.chunks,
            "objects": level.objects,
            "links": level.links,
            "bytes": level.bytes,
            "behind": level.is_behind,
            "additive": level.is_additive,
        });
        if let (Some(links), Some(object)) = (&description.logical_links, object.as_object_mut()) {
            let links = links.get(at).copied().flatten();
            object.insert("logical_links".to_owned(), json!(links));
        }
        if let (Some(lists), Some(object)) = (&description.link_lists, object.as_object_mut()) {
            let links = lists.get(at).into_iter().flatten().map(links::object);
            object.insert("stored_links".to_owned(), links.collect());
        }
        object
    });
    let axes = description
        .axes
        .iter()
        .map(|axis| json!({"name": axis.name, "type": axis.kind, "unit": axis.unit}));
    let attributes = description
        .attributes
        .iter()
        .map(|(attribute, range)| attribute_object(attribute, range.as_ref()));
    let positions = description.positions.as_ref();
    let conventions = description
        .conventions
        .iter()
        .map(|(name, word)| ((*name).to_owned(), json!(word)));
    json!({
        "generation": info.generation.to_string(),
        "profile": info.profile,
        "version": description.version,
        "written_by": description.transaction.map(|transaction| json!({
            "program": "zvf",
            "transaction": transaction,
        })),
        "converted_from": description.source_formats,
        "name": description.name,
        "geometry": kinds(info),
        "axes": info.axes,
        "axis_details": axes.collect::<Vec<Value>>(),
        "winding_order": description.winding,
        "directed": description.directed,
        "conventions": conventions.collect::<serde_json::Map<String, Value>>(),
        "capabilities": description.capabilities,
        "required_capabilities": description.required_capabilities,
        "crs": description.crs,
        "bounds": bounds.map(|bounds| json!([bounds.lower(), bounds.upper()])),
        "positions": positions.map(|positions| positions.dtype),
        "chunk_shape": description.chunk_shape,
        "bin_shape": description.bin_shape,
        "codecs": positions.map(|positions| &positions.codecs),
        "shard_shape": positions.and_then(|positions| positions.shard_shape.as_ref()),
        "levels": levels.collect::<Vec<Value>>(),
        "attributes": attributes.collect::<Vec<Value>>(),
        "groups": description.groups,
        "notes": info.notes,
    })
}

fn attribute_object(attribute: &AttributeInfo, range: Option<&ValueRange>) -> Value {
    let mut object = json!({
        "scope": attribute.scope.name(),
        "name": attribute.name,
        "type": attribute.data_type,
        "channels": attribute.channels,
        "channel_names": attribute.channel_names,
        "unit": attribute.unit,
        "description": attribute.description,
        "categories": attribute.categories,
    });
    if let (Some(range), Some(object)) = (range, object.as_object_mut()) {
        let limits = range
            .limits
            .map(|(low, high)| json!([number(low), number(high)]));
        object.insert("range".to_owned(), json!(limits));
        object.insert("nulls".to_owned(), json!(range.nulls));
    }
    object
}

/// Converts a number to JSON; an infinite one becomes text.
fn number(value: numeric::Value) -> Value {
    match value {
        numeric::Value::Bool(value) => json!(value),
        numeric::Value::Int(value) => json!(value),
        numeric::Value::UInt(value) => json!(value),
        numeric::Value::Float(value) if value.is_finite() => json!(value),
        value => json!(value.to_f64().to_string()),
    }
}

/// Returns the description as text.
pub(super) fn text(address: &str, description: &StoreDescription) -> Result<String, fmt::Error> {
    let info = &description.info;
    let mut text = String::new();
    writeln!(text, "{address}")?;
    let mut line = |title: &str, value: &str| writeln!(text, "  {title:10}  {value}");
    if let Some(name) = &description.name {
        line("name", &printable(name))?;
    }
    let mut generation = info.generation.to_string();
    if generation != info.profile {
        write!(generation, ", profile {}", info.profile)?;
    }
    if let Some(version) = &description.version
        && !version.starts_with(&generation)
    {
        write!(generation, ", declares {version}")?;
    }
    line("generation", &generation)?;
    if let Some(transaction) = description.transaction {
        line("written by", &format!("zvf, transaction {transaction}"))?;
    }
    if !description.source_formats.is_empty() {
        line("from", &description.source_formats.join(", "))?;
    }
    line("geometry", &kinds(info).join(", "))?;
    if description.directed == Some(true) {
        line("links", "directed")?;
    }
    if let Some(winding) = description.winding.as_deref().filter(|word| *word != "ccw") {
        line("winding", &printable(winding))?;
    }
    if let Some(crs) = &description.crs {
        line("crs", &crs_text(crs))?;
    }
    match &info.bounds {
        None => {
            let axes = description.axes.iter().map(axis_text);
            line("axes", &axes.collect::<Vec<_>>().join(", "))?;
        }
        Some(bounds) => {
            for (at, side) in sides(description, bounds).into_iter().enumerate() {
                line(if at == 0 { "bounds" } else { "" }, &side)?;
            }
        }
    }
    if let Some(positions) = &description.positions {
        line("positions", positions.dtype)?;
    }
    line("chunks", &shape(&description.chunk_shape))?;
    if description.bin_shape != description.chunk_shape {
        line("bins", &shape(&description.bin_shape))?;
    }
    if let Some(positions) = &description.positions {
        if !positions.codecs.is_empty() {
            line("codecs", &positions.codecs.join(", "))?;
        }
        if let Some(chunks) = &positions.shard_shape {
            line("shards", &format!("{} chunks", shape(chunks)))?;
        }
    }
    if let Some(groups) = description.groups {
        line("groups", &group_digits(groups))?;
    }
    if let Some(lists) = &description.link_lists {
        for (name, word) in &description.conventions {
            line(name, &printable(word))?;
        }
        if !description.capabilities.is_empty() {
            line(
                "capabilities",
                &printable(&description.capabilities.join(", ")),
            )?;
        }
        if !description.required_capabilities.is_empty() {
            let required = description.required_capabilities.join(", ");
            line("required", &printable(&required))?;
        }
        let links: Vec<LinkInfo> = lists.iter().flatten().cloned().collect();
        if !links.is_empty() {
            writeln!(text)?;
            for line in links::table(&links) {
                writeln!(text, "{line}")?;
            }
        }
    }
    writeln!(text)?;
    for line in text_table::align(&level_rows(description)) {
        writeln!(text, "{line}")?;
    }
    if !description.attributes.is_empty() {
        writeln!(text)?;
        for line in text_table::align_left(&attribute_rows(description)) {
            writeln!(text, "{line}")?;
        }
    }
    for note in notes(description) {
        write!(text, "\n{note}")?;
    }
    Ok(text.trim_end().to_owned())
}

/// Returns the limits of each axis.
fn sides(description: &StoreDescription, bounds: &Bounds) -> Vec<String> {
    let positions = description.positions.as_ref();
    let is_narrow = positions.is_some_and(|positions| is_narrow(positions.dtype));
    let limits = bounds.lower().iter().zip(bounds.upper());
    let axes = description.axes.iter().zip(limits);
    axes.map(|(axis, (lower, upper))| {
        let unit = axis.unit.as_deref().map(|unit| format!(" {unit}"));
        let kind = axis
            .kind
            .as_deref()
            .filter(|kind| *kind != "space")
            .map(|kind| format!(" ({kind})"));
        let (unit, kind) = (unit.unwrap_or_default(), kind.unwrap_or_default());
        let (lower, upper) = if is_narrow {
            (
                narrow_bound(*lower, |value| value < *lower),
                narrow_bound(*upper, |value| value > *upper),
            )
        } else {
            (lower.to_string(), upper.to_string())
        };
        format!("{} {lower} to {upper}{unit}{kind}", axis.name)
    })
    .collect()
}

fn level_rows(description: &StoreDescription) -> Vec<Vec<String>> {
    let mut titles = vec!["level", "vertices", "chunks", "objects"];
    match description.logical_links {
        Some(_) => titles.extend(["links", "stored links", "bytes"]),
        None => titles.extend(["links", "bytes"]),
    }
    let mut rows = vec![titles.into_iter().map(str::to_owned).collect()];
    let or_dash = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), group_digits);
    for (at, level) in description.info.levels.iter().enumerate() {
        let mut row = vec![
            level.level.to_string(),
            or_dash(level.vertices),
            group_digits(level.chunks),
            or_dash(level.objects),
        ];
        if let Some(links) = &description.logical_links {
            row.push(or_dash(links.get(at).copied().flatten()));
        }
        row.extend([or_dash(level.links), group_digits(level.bytes)]);
        rows.push(row);
    }
    rows
}

fn attribute_rows(description: &StoreDescription) -> Vec<Vec<String>> {
    let has_units = description
        .attributes
        .iter()
        .any(|(info, _)| info.unit.is_some());
    let has_descriptions = description
        .attributes
        .iter()
        .any(|(info, _)| info.description.is_some());
    let has_ranges = description
        .attributes
        .iter()
        .any(|(_, range)| range.is_some());
    let mut titles = vec!["attribute", "type"];
    titles.extend(has_units.then_some("unit"));
    titles.extend(has_ranges.then_some("range"));
    titles.extend(has_descriptions.then_some("description"));
    let mut rows = vec![titles.into_iter().map(str::to_owned).collect()];
    for (attribute, range) in &description.attributes {
        let mut row = vec![
            format!("{}.{}", attribute.scope.name(), attribute.name),
            type_text(attribute),
        ];
        if has_units {
            row.push(attribute.unit.as_deref().map(printable).unwrap_or_default());
        }
        if has_ranges {
            row.push(
                range
                    .as_ref()
                    .map(|range| range_text(attribute, range))
                    .unwrap_or_default(),
            );
        }
        if has_descriptions {
            row.push(
                attribute
                    .description
                    .as_deref()
                    .map(printable)
                    .unwrap_or_default(),
            );
        }
        rows.push(row);
    }
    rows
}

fn type_text(attribute: &AttributeInfo) -> String {
    let mut parts = vec![attribute.data_type.clone()];
    if let Some(channels) = attribute.channels.filter(|channels| *channels != 1) {
        parts.push(format!("× {channels}"));
    }
    let mut names = attribute.channel_names.iter().enumerate();
    if names.any(|(at, name)| *name != format!("ch{at}")) {
        parts.push(format!("({})", attribute.channel_names.join(", ")));
    }
    if let Some(categories) = attribute.categories {
        let words = count_noun(categories, "category", "categories");
        parts.push(format!("of {words}"));
    }
    parts.join(" ")
}

/// Returns whether numbers of a type have fewer digits than float64.
fn is_narrow(data_type: &str) -> bool {
    matches!(data_type, "float16" | "float32")
}

fn range_text(attribute: &AttributeInfo, range: &ValueRange) -> String {
    let plain = |value: numeric::Value| match (value, number(value)) {
        (numeric::Value::Float(value), _) if is_narrow(&attribute.data_type) => narrow_float(value),
        (_, Value::String(text)) => text,
        (_, value) => value.to_string(),
    };
    let limits = range
        .limits
        .map(|(low, high)| format!("{} to {}", plain(low), plain(high)));
    let nulls = (range.nulls > 0).then(|| format!("{} missing", group_digits(range.nulls)));
    let parts: Vec<String> = limits.into_iter().chain(nulls).collect();
    parts.join(", ")
}

fn notes(description: &StoreDescription) -> Vec<String> {
    let info = &description.info;
    let of = |is: fn(&&LevelInfo) -> bool| {
        let levels: Vec<String> = info
            .levels
            .iter()
            .filter(is)
            .map(|level| level.level.to_string())
            .collect();
        levels.join(", ")
    };
    let mut notes = Vec::new();
    let behind = of(|level| level.is_behind);
    if !behind.is_empty() {
        let fix = "out of date since the store changed (zvf pyramid --refresh)";
        notes.push(format!("{fix}: {behind}"));
    }
    let additive = of(|level| level.is_additive);
    if !additive.is_empty() {
        let text = "additive, drawn together with all coarser levels";
        notes.push(format!("{text}: {additive}"));
    }
    if description.has_implied_links && description.logical_links.is_none() {
        let text = "links implied by the order of rows are not counted; --physical counts both";
        notes.push(text.to_owned());
    }
    notes.extend(info.notes.iter().map(|note| format!("note: {note}")));
    notes
}

fn kinds(info: &StoreInfo) -> Vec<&str> {
    let kinds = info.geometry.iter();
    kinds.map(Word::as_str).collect()
}

fn axis_text(axis: &Axis) -> String {
    match &axis.unit {
        Some(unit) => format!("{} ({unit})", axis.name),
        None => axis.name.clone(),
    }
}

/// Names a coordinate reference system: its authority code or name, or the start of its JSON.
fn crs_text(crs: &Value) -> String {
    let member = |name: &str| crs.get(name).and_then(Value::as_str);
    let id = crs.get("id").and_then(|id| {
        let (authority, code) = (id.get("authority")?.as_str()?, id.get("code")?);
        let code = code
            .as_str()
            .map_or_else(|| code.to_string(), str::to_owned);
        Some(format!("{authority}:{code}"))
    });
    let text = match (id, member("name")) {
        (Some(id), Some(name)) if id != name => format!("{id}, {name}"),
        (Some(id), _) => id,
        (None, Some(name)) => name.to_owned(),
        (None, None) => crs.to_string(),
    };
    match text.char_indices().nth(MAX_CRS_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn shape(extents: &[impl ToString]) -> String {
    let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
    extents.join(" × ")
}
