//! Coordinates of a file in the axes and units of a store.

use serde_json::Value;
use zvf::AxisSpec;
use zvf_model::root::RootMetadata;

use crate::{
    FileFormat, GeometryInput,
    axis_unit_error::AxisUnitError,
    axis_units::{is_same_unit, unit_of_axis},
    length::{LengthConversion, LengthUnit, convert_lengths},
};

/// Brings the coordinates of the input into the order and the units of the store's axes. `wanted` are
/// the names of the file's axes in that order, and `unit` is the unit of a file that states none.
/// Notes what was converted.
///
/// # Errors
///
/// [`AxisUnitError`] if the file has another unit than `unit`, or one that cannot be converted.
pub fn match_space(
    root: &RootMetadata,
    wanted: &[String],
    format: Option<FileFormat>,
    unit: Option<&str>,
    input: &mut GeometryInput,
) -> Result<(), AxisUnitError> {
    let names = input.axes.clone().unwrap_or_else(|| wanted.to_vec());
    let width = input.geometry.positions.row_len();
    if names.len() != width || wanted.len() != width {
        // Refused when it is added.
        return Ok(());
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
            .flat_map(|row| {
                let number = move |axis: &usize| {
                    let start = axis.saturating_mul(size);
                    row.get(start..start.saturating_add(size))
                };
                order.iter().filter_map(number)
            })
            .flatten()
            .copied()
            .collect();
    }
    let conversion = |(at, axis): (&usize, &zvf_model::root::Axis)| {
        let name = names.get(*at).cloned().unwrap_or_default();
        let mut axes = input.description.axes.iter();
        let described = axes.find(|spec| spec.name == name).cloned();
        let mut of_file = described.unwrap_or_else(|| AxisSpec::new(name));
        if let Some(kind) = axis.kind.as_ref().filter(|_| of_file.unit.is_none()) {
            of_file.kind.clone_from(kind);
        }
        let from = unit_of_axis(&of_file, unit, format)?;
        match (from, &axis.unit) {
            (Some(file), Some(store)) if !is_same_unit(&file, store) => {
                let (from, to) = (LengthUnit::of(&file), LengthUnit::of(store));
                if of_file.kind != "space" || from.is_none() || to.is_none() {
                    let (axis, store) = (of_file.name, store.clone());
                    return Err(AxisUnitError::NoLength { axis, file, store });
                }
                Ok(LengthConversion::between(Some(&file), Some(store)))
            }
            _ => Ok(LengthConversion::between(None, None)),
        }
    };
    let conversions: Vec<LengthConversion> = order
        .iter()
        .zip(&root.axes)
        .map(conversion)
        .collect::<Result<_, _>>()?;
    convert(&conversions, root, format, input);
    Ok(())
}

/// Returns the names of the coordinate reference systems of the input and of a store, if they differ.
pub fn other_system(root: &RootMetadata, input: &GeometryInput) -> Option<(String, String)> {
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
