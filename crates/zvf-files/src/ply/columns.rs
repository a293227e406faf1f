//! Properties of an element as columns.

use zvf::{Column, NumericColumn, numeric::Kind};
use zvf_model::attribute_name::label;

use super::{
    header::{AXES, ElementDeclaration, PropertyDeclaration},
    values::PlyValues,
};
use crate::{FileError, FileFault, fields::scatter, names::AttributeNames, values::to_f64};

/// Names of properties that form one attribute.
const FAMILIES: [(&[&str], &str); 3] = [
    (&["red", "green", "blue", "alpha"], "rgba"),
    (&["red", "green", "blue"], "rgb"),
    (&["nx", "ny", "nz"], "normal"),
];

/// Name of the column that joins x, y and z. Names of properties have no spaces.
const POSITIONS: &str = "x y z";

/// The scalar properties of some rows of an element.
#[derive(Debug, Default)]
pub(super) struct PropertyColumns {
    columns: Vec<(String, NumericColumn)>,
}

impl PropertyColumns {
    /// Creates columns without rows. Lists have none.
    pub(super) fn of(element: &ElementDeclaration) -> Self {
        let scalars = element.properties.iter().filter(|it| it.count.is_none());
        let column = |property: &PropertyDeclaration| {
            (property.name.clone(), NumericColumn::new(property.kind, 1))
        };
        Self {
            columns: scalars.map(column).collect(),
        }
    }

    /// Reads the next rows of an element. Lists are not kept.
    pub(super) fn read(
        element: &ElementDeclaration,
        rows: u64,
        values: &mut PlyValues,
    ) -> Result<Self, FileError> {
        let mut columns = Self::of(element);
        if !element.has_lists() && !values.is_text() {
            if element.name == "vertex" {
                columns.join_positions();
            }
            values.columns(rows, &mut columns.columns)?;
            return Ok(columns);
        }
        for _ in 0..rows {
            let mut targets = columns.columns.iter_mut();
            for property in &element.properties {
                if property.count.is_some() {
                    skip_list(property, values)?;
                } else if let Some((_, column)) = targets.next() {
                    values.value(property.kind, &mut column.bytes)?;
                }
            }
        }
        Ok(columns)
    }

    /// Skips rows of an element.
    pub(super) fn skip(
        element: &ElementDeclaration,
        rows: u64,
        values: &mut PlyValues,
    ) -> Result<(), FileError> {
        if !element.has_lists() && !values.is_text() {
            let row = element.properties.iter().map(|it| it.kind.size());
            let row = u64::try_from(row.sum::<usize>()).unwrap_or(u64::MAX);
            return values.skip(rows.saturating_mul(row));
        }
        let mut bytes = Vec::new();
        for _ in 0..rows {
            for property in &element.properties {
                bytes.clear();
                match property.count {
                    Some(_) => skip_list(property, values)?,
                    None => values.value(property.kind, &mut bytes)?,
                }
            }
        }
        Ok(())
    }

    /// Reads a value of a scalar property, which are counted from 0.
    pub(super) fn value(
        &mut self,
        scalar: usize,
        kind: Kind,
        values: &mut PlyValues,
    ) -> Result<(), FileError> {
        match self.columns.get_mut(scalar) {
            Some((_, column)) => values.value(kind, &mut column.bytes),
            None => Ok(()),
        }
    }

    /// Joins x, y and z into one column, if they follow each other and have one type. They are then
    /// read together.
    fn join_positions(&mut self) {
        let is_xyz = |columns: &[(String, NumericColumn)]| {
            let names = columns.iter().map(|(name, _)| name.as_str());
            let mut pairs = columns.windows(2);
            names.eq(AXES)
                && pairs.all(|pair| match pair {
                    [(_, one), (_, two)] => one.kind == two.kind,
                    _ => true,
                })
        };
        let Some(at) = self.columns.windows(3).position(is_xyz) else {
            return;
        };
        let rest = self.columns.split_off(at.saturating_add(3));
        self.columns.truncate(at.saturating_add(1));
        if let Some((name, column)) = self.columns.last_mut() {
            POSITIONS.clone_into(name);
            column.width = 3;
        }
        self.columns.extend(rest);
    }

    fn take(&mut self, name: &str) -> Option<NumericColumn> {
        let at = self.columns.iter().position(|(other, _)| other == name)?;
        Some(self.columns.remove(at).1)
    }

    /// Takes the columns x, y and z as positions.
    pub(super) fn positions(&mut self) -> Result<NumericColumn, FileFault> {
        if let Some(positions) = self.take(POSITIONS) {
            return Ok(positions);
        }
        let names = self.columns.iter().map(|(name, _)| name.as_str());
        let all: Vec<&str> = names.collect();
        if let Some(name) = AXES.into_iter().find(|name| !all.contains(name)) {
            let found = format!("without {name}, and with {}", all.join(", "));
            let expected =
                "its coordinates are x, y and z; rename others, as in --rename px=x --rename py=y";
            return Err(FileFault::field("the element vertex", found, expected));
        }
        Ok(joined(
            AXES.into_iter()
                .filter_map(|name| self.take(name))
                .collect(),
        ))
    }

    /// Takes a column of integers.
    pub(super) fn take_integers(&mut self, name: &str) -> Option<Vec<i64>> {
        let integers = self.integers(name)?;
        self.take(name);
        Some(integers)
    }

    /// Returns a column of integers.
    pub(super) fn integers(&self, name: &str) -> Option<Vec<i64>> {
        let found = self.columns.iter().find(|(other, _)| other == name)?;
        let numbers = to_f64(&found.1)?;
        let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
        if !numbers.iter().all(is_whole) {
            return None;
        }
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "the numbers are whole and below 2^53"
        )]
        Some(numbers.into_iter().map(|number| number as i64).collect())
    }

    /// Returns the attributes that the remaining columns form.
    pub(super) fn attributes(&mut self) -> Vec<Column> {
        let mut names = AttributeNames::default();
        let mut attributes = Vec::new();
        let mut pending = std::mem::take(&mut self.columns);
        while !pending.is_empty() {
            let (count, name) = family(&pending);
            let members: Vec<NumericColumn> =
                pending.drain(..count).map(|(_, column)| column).collect();
            attributes.push(Column::new(names.add(&label(&name)), joined(members)));
        }
        attributes
    }
}

/// Reads a list without keeping it.
pub(super) fn skip_list(
    list: &PropertyDeclaration,
    values: &mut PlyValues,
) -> Result<(), FileError> {
    let mut bytes = Vec::new();
    for _ in 0..values.integer(list.count.unwrap_or(Kind::UInt8))?.max(0) {
        bytes.clear();
        values.value(list.kind, &mut bytes)?;
    }
    Ok(())
}

/// Returns how many of the first columns form an attribute, and its name.
fn family(columns: &[(String, NumericColumn)]) -> (usize, String) {
    let kind = columns.first().map(|(_, column)| column.kind);
    let alike: Vec<&str> = columns
        .iter()
        .take_while(|(_, column)| Some(column.kind) == kind)
        .map(|(name, _)| name.as_str())
        .collect();
    for (members, name) in FAMILIES {
        if alike.starts_with(members) {
            return (members.len(), name.to_owned());
        }
    }
    let first = alike.first().copied().unwrap_or_default();
    if let Some(base) = first.strip_suffix("_0").filter(|base| !base.is_empty()) {
        let numbered = alike.iter().enumerate();
        let count = numbered
            .take_while(|(at, name)| **name == format!("{base}_{at}"))
            .count();
        if count > 1 {
            return (count, base.to_owned());
        }
    }
    (1, first.to_owned())
}

/// Joins columns of one number to one column. Columns of several types become float64.
fn joined(mut columns: Vec<NumericColumn>) -> NumericColumn {
    if let [_] = columns.as_slice()
        && let Some(only) = columns.pop()
    {
        return only;
    }
    let mut kind = columns.first().map_or(Kind::Float32, |column| column.kind);
    let width = u32::try_from(columns.len()).unwrap_or(u32::MAX);
    if columns.iter().any(|column| column.kind != kind) {
        for column in &mut columns {
            *column = NumericColumn::float64(1, to_f64(column).unwrap_or_default());
        }
        kind = Kind::Float64;
    }
    let mut all = NumericColumn::new(kind, width);
    let size = kind.size();
    let row = size.saturating_mul(columns.len());
    let rows = columns.iter().map(NumericColumn::len).min().unwrap_or(0);
    all.bytes = vec![0; rows.saturating_mul(row)];
    for (at, column) in columns.iter().enumerate() {
        let start = at.saturating_mul(size);
        scatter(&column.bytes, size, &mut all.bytes, row, start);
    }
    all
}
