//! Attributes of the nodes of graphs, some of which are coordinates.

use zvf::{AxisSpec, Column, ColumnValues, NumericColumn, numeric::Kind};

use crate::{
    FileFault,
    values::{narrow, to_f64},
};

/// Removes the coordinates from the attributes of nodes: the names in `axes`, otherwise `x`, `y` and,
/// if it exists, `z`, in any case of letters. `nodes` returns the name of the node in a row.
///
/// # Errors
///
/// [`FileFault::NoCoordinates`] if an attribute does not exist, [`FileFault::Unplaced`] if a node has
/// no number, and [`FileFault::NotFinite`].
pub(crate) fn take_coordinates(
    columns: &mut Vec<Column>,
    axes: &[String],
    nodes: impl Fn(usize) -> String,
) -> Result<(NumericColumn, Vec<AxisSpec>), FileFault> {
    let place = |name: &str| {
        let exact = columns.iter().position(|column| column.name == name);
        exact.or_else(|| {
            let mut columns = columns.iter();
            columns.position(|column| column.name.eq_ignore_ascii_case(name))
        })
    };
    let names: Vec<String> = match axes {
        [] => {
            let names = ["x", "y", "z"].into_iter();
            let present = names.filter(|name| *name != "z" || place(name).is_some());
            present.map(str::to_owned).collect()
        }
        axes => axes.to_vec(),
    };
    let places: Option<Vec<usize>> = names.iter().map(|name| place(name)).collect();
    let Some(places) = places else {
        return Err(FileFault::NoCoordinates {
            axes: names,
            present: columns.iter().map(|column| column.name.clone()).collect(),
        });
    };
    let mut is_narrow = true;
    let mut channels: Vec<Vec<f64>> = Vec::new();
    for (at, name) in places.iter().zip(&names) {
        let Some(column) = columns.get(*at) else {
            continue;
        };
        let unplaced = |row| FileFault::Unplaced {
            node: nodes(row),
            axis: name.clone(),
        };
        if let Some(row) = column.nulls.iter().flatten().position(|is_null| *is_null) {
            return Err(unplaced(row));
        }
        let values = match &column.values {
            ColumnValues::Numeric(numbers) => {
                is_narrow &= numbers.kind == Kind::Float32;
                let values = to_f64(numbers).filter(|_| numbers.width == 1);
                values.ok_or(FileFault::Coordinates(numbers.kind))?
            }
            ColumnValues::Dictionary { .. } => {
                is_narrow = false;
                let number = |(row, text): (usize, Option<&str>)| {
                    let number = text.and_then(|text| text.parse::<f64>().ok());
                    number.ok_or_else(|| unplaced(row))
                };
                let values = column.texts().enumerate().map(number);
                values.collect::<Result<Vec<f64>, FileFault>>()?
            }
        };
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(FileFault::NotFinite(*value));
        }
        channels.push(values);
    }
    let rows = channels.first().map_or(0, Vec::len);
    let at = |row: usize| {
        let channels = channels.iter();
        channels.map(move |channel| channel.get(row).copied().unwrap_or(0.0))
    };
    let values = (0..rows).flat_map(at);
    let width = u32::try_from(channels.len()).unwrap_or(u32::MAX);
    let positions = if is_narrow {
        NumericColumn::float32(width, values.map(narrow))
    } else {
        NumericColumn::float64(width, values)
    };
    let mut index = 0_usize;
    columns.retain(|_| {
        let is_kept = !places.contains(&index);
        index = index.saturating_add(1);
        is_kept
    });
    Ok((positions, names.into_iter().map(AxisSpec::new).collect()))
}
