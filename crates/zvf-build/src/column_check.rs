//! Checks of the names and rows of columns.

use std::collections::HashSet;

use zvf_model::{
    attribute_name::{self, stored_name},
    column::{Column, ColumnValues},
    scope::Scope,
};

use crate::error::BuildError;

/// Returns the role of the attributes of a scope, for errors.
pub(crate) const fn role(scope: Scope) -> &'static str {
    match scope {
        Scope::Vertex => "vertex attribute",
        Scope::Fragment => "fragment attribute",
        Scope::Link => "link attribute",
        Scope::Object => "object attribute",
        Scope::Group => "group attribute",
    }
}

/// Checks the names of attributes, and that they have `rows` rows.
pub(crate) fn attributes(
    scope: Scope,
    attributes: &[Column],
    rows: usize,
) -> Result<(), BuildError> {
    names(scope, attributes)?;
    self::rows(scope, attributes, rows)
}

/// Checks that names are distinct and valid, and that numbers do not end inside a row.
pub(crate) fn names(scope: Scope, attributes: &[Column]) -> Result<(), BuildError> {
    let what = role(scope);
    let mut names = HashSet::new();
    for column in attributes {
        name_is_valid(what, &column.name)?;
        let name = || column.name.clone();
        if !names.insert(stored_name(&column.name)) {
            return Err(BuildError::DuplicateName { what, name: name() });
        }
        if let ColumnValues::Numeric(numbers) = &column.values
            && !numbers.bytes.len().is_multiple_of(numbers.row_size())
        {
            return Err(BuildError::PartialRow { what, name: name() });
        }
    }
    Ok(())
}

/// Checks that attributes have `rows` rows.
pub(crate) fn rows(scope: Scope, attributes: &[Column], rows: usize) -> Result<(), BuildError> {
    for column in attributes {
        let nulls = column.nulls.as_ref().map(Vec::len);
        for found in nulls.into_iter().chain([column.len()]) {
            length(role(scope), &column.name, rows, found)?;
        }
    }
    Ok(())
}

/// Checks that a name can be stored.
fn name_is_valid(what: &'static str, name: &str) -> Result<(), BuildError> {
    match attribute_name::problem(name) {
        None => Ok(()),
        Some(why) => Err(BuildError::InvalidName {
            what,
            name: name.to_owned(),
            why,
        }),
    }
}

/// Checks the number of rows of a column.
pub(crate) fn length(
    what: &'static str,
    name: &str,
    expected: usize,
    found: usize,
) -> Result<(), BuildError> {
    if expected == found {
        Ok(())
    } else {
        Err(BuildError::RowCount {
            what,
            name: name.to_owned(),
            expected,
            found,
        })
    }
}
