//! Coordinates of a file in the axes and units of a store.

use serde_json::Value;
use zvf::AxisSpec;
use zvf_files::{FileFormat, GeometryInput, LengthConversion, convert_lengths};
use zvf_model::root::RootMetadata;

/// Brings the coordinates of the input into the order and the units of the store's axes. `wanted` are
/// the names of the file's axes in that order. Notes what was converted, and what may not fit.
pub(super) fn to(
    root: &RootMetadata,
    wanted: &[String],
    format: FileFormat,
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
    let implied = format.implied_unit();
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
    if let (Some(of_file), Some(of_store)) = (&input.crs, &root.crs)
        && !is_same_system(of_file, of_store)
    {
        input.notes.push(format!(
            "the coordinates are not transformed: the file is in {}, and the store in {}",
            system_name(of_file),
            system_name(of_store)
        ));
    }
}

fn convert(
    conversions: &[LengthConversion],
    root: &RootMetadata,
    format: FileFormat,
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
    if format != FileFormat::Swc {
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
fn is_same_system(one: &Value, other: &Value) -> bool {
    match (one.get("id"), other.get("id")) {
        (Some(one), Some(other)) => {
            let text = |id: &Value, key| id.get(key).map(|part| part.to_string().replace('"', ""));
            ["authority", "code"]
                .into_iter()
                .all(|key| text(one, key) == text(other, key))
        }
        _ => one == other,
    }
}

fn system_name(system: &Value) -> String {
    let name = system.get("name").and_then(Value::as_str);
    name.map_or_else(|| "an unnamed system".to_owned(), str::to_owned)
}
