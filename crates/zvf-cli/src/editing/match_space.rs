//! Coordinates of a file in the axes and units of a store.

use serde_json::Value;
use zvf::AxisSpec;
use zvf_files::{FileFormat, GeometryInput, LengthConversion, convert_lengths};
use zvf_model::root::RootMetadata;

/// Brings the coordinates of the input into the order and the units of the store's axes. `wanted` are
/// the names of the file's axes in that order. Notes what was converted.
pub(super) fn to(
    root: &RootMetadata,
    wanted: &[String],
    format: Option<FileFormat>,
    input: &mut GeometryInput,
) {
    let Some(names) = input.axes.clone() else {
        return;
    };
    let width = input.geometry.positions.row_len();
    if names.len() != width || wanted.len() != width {
        // Refused when it is added.
        return;
    }
    let place = |name: &String| names.iter().position(|other| other == name);
    let order: Option<Vec<usize>> = wanted.iter().map(place).collect();
    let order = match order {
        Some(order) => order,
        None => {
            let (given, taken) = (names.join(", "), wanted.join(", "));
            input.notes.push(format!(
                "the axes {given} of the file are taken as {taken}, in this order"
            ));
            (0..width).collect()
        }
    };
    if !order.iter().copied().eq(0..width) {
        let positions = &mut input.geometry.positions;
        let size = positions.kind.size();
        let rows = positions.bytes.chunks_exact(positions.row_size());
        positions.bytes = rows
            .flat_map(|row| order.iter().map(move |axis| &row[axis * size..][..size]))
            .flatten()
            .copied()
            .collect();
    }
    let implied = format.and_then(FileFormat::implied_unit);
    let conversions: Vec<LengthConversion> = order
        .iter()
        .zip(&root.axes)
        .map(|(at, axis)| {
            let mut of_file = input
                .description
                .axes
                .iter()
                .filter(|spec| Some(&spec.name) == names.get(*at));
            let from = of_file
                .next()
                .filter(|spec| spec.kind == "space")
                .and_then(|spec: &AxisSpec| spec.unit.as_deref().or(implied));
            let is_space = axis.kind.as_deref().is_none_or(|kind| kind == "space");
            let to = axis.unit.as_deref().filter(|_| is_space);
            LengthConversion::between(from, to)
        })
        .collect();
    convert(&conversions, root, format, input);
}

/// Returns the names of the coordinate reference systems of the input and of a store, if they differ.
pub(super) fn other_system(root: &RootMetadata, input: &GeometryInput) -> Option<(String, String)> {
    let (of_file, of_store) = (input.crs.as_ref()?, root.crs.as_ref()?);
    let is_other = !of_store.is_null() && !is_same_system(of_file, of_store);
    is_other.then(|| (system_name(of_file), system_name(of_store)))
}

fn convert(
    conversions: &[LengthConversion],
    root: &RootMetadata,
    format: Option<FileFormat>,
    input: &mut GeometryInput,
) {
    if conversions.iter().all(LengthConversion::is_identity) {
        return;
    }
    convert_lengths(&mut input.geometry.positions, conversions);
    for (axis, conversion) in root.axes.iter().zip(conversions) {
        if !conversion.is_identity() {
            let name = &axis.name;
            input.notes.push(format!("{name} converted {conversion}"));
        }
    }
    if format != Some(FileFormat::Swc) {
        return;
    }
    let mut radii = input.geometry.vertex.iter_mut();
    let Some(radius) = radii.find(|column| column.name == "radius") else {
        return;
    };
    match (conversions, &mut radius.values) {
        ([first, rest @ ..], zvf::ColumnValues::Numeric(numbers))
            if rest.iter().all(|other| other == first) =>
        {
            convert_lengths(numbers, std::slice::from_ref(first));
        }
        _ => {
            let note = "vertex.radius: kept as it is, because the units of axes differ";
            input.notes.push(note.to_owned());
        }
    }
}

/// Returns whether two coordinate reference systems are the same: by their identifiers, if both have
/// one.
fn is_same_system<'s>(one: &'s Value, other: &'s Value) -> bool {
    let id = |system: &'s Value| {
        system
            .get("id")
            .or_else(|| system.get("code").map(|_| system))
    };
    match (id(one), id(other)) {
        (Some(one), Some(other)) => {
            let text = |id: &Value, key| id.get(key).map(|part| part.to_string().replace('"', ""));
            let authority = |id| text(id, "authority").or_else(|| text(id, "type"));
            authority(one) == authority(other) && text(one, "code") == text(other, "code")
        }
        _ => one == other,
    }
}

/// Returns the name of a system, or else its code, or its description.
fn system_name(system: &Value) -> String {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let code = |id: &Value| {
        let authority = id.get("authority").or_else(|| id.get("type"))?;
        Some(format!("{}:{}", text(authority), text(id.get("code")?)))
    };
    let name = system
        .get("name")
        .or_else(|| system.get("frame"))
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty() && *name != "unnamed");
    let coded = || code(system.get("id").unwrap_or(system));
    let described = || {
        let text: String = system.to_string().chars().take(80).collect();
        format!("the system {text}")
    };
    name.map(str::to_owned)
        .or_else(coded)
        .unwrap_or_else(described)
}
