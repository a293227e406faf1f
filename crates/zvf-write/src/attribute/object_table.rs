//! Tables of attributes of objects, on every level.

use std::collections::HashMap;

use zvf_build::{BuildError, Column, ColumnValues, NumericColumn, edit::EditError};
use zvf_catalog::Scope;
use zvf_dataset::{Dataset, Failure, nodes};
use zvf_format::numeric::Kind;
use zvf_model::{layout::GroupRole, level::LevelId, metadata::Attributes};
use zvf_store::Transaction;

use super::{AttributeLocation, AttributeSpec, present};
use crate::{
    form::form,
    stale::coarser_levels,
    writer::cell_writer::{CellWriter, StagedTransaction},
};

/// The treatment of rows of an existing attribute that get no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OldRows {
    /// They remain; the attribute must have the type of the values.
    Kept,
    /// They remain if the attribute has the type of the values, and are lost otherwise.
    OfEqualType,
    /// They are lost, with the unit and description of the attribute.
    Dropped,
}

/// Stages attributes of objects on every level that has them: `columns` have a row for each of `ids`,
/// which are objects of level 0. Geometry does not depend on them, so no level becomes stale. Returns the
/// number of bytes.
pub(super) async fn stage(
    dataset: &Dataset,
    transaction: &mut Transaction,
    ids: &[i64],
    columns: &[Column],
    old: OldRows,
) -> Result<u64, Failure> {
    let mut levels = vec![LevelId::FULL];
    levels.extend(coarser_levels(dataset.store(), LevelId::FULL).await?);
    let (catalog, form) = (dataset.catalog(), form(dataset).await?);
    let mut outputs = Vec::new();
    let mut replaced = Vec::new();
    for level in levels {
        let Some(rows) = rows_of(dataset, level, ids).await? else {
            continue;
        };
        let names = dataset
            .catalog()
            .attribute_list(level, Scope::Object)
            .await?;
        for column in columns {
            let mut spec = AttributeSpec::new(column.name.clone(), Kind::UInt8);
            spec.overwrite = true;
            let location = AttributeLocation::find(dataset, &spec, Scope::Object, level).await?;
            let (mut whole, mut attributes) = (None, Attributes::new());
            if old != OldRows::Dropped && names.contains(&column.name) {
                let stored = catalog.object_values(level, &column.name, None).await?;
                match type_error(&stored, column) {
                    None => {
                        whole = Some(stored);
                        let node = nodes::read_one(dataset.store(), &location.key).await?;
                        attributes = node
                            .map(|node| node.attributes().clone())
                            .unwrap_or_default();
                    }
                    Some(_) if old == OldRows::OfEqualType => {}
                    Some(error) => return Err(error.into()),
                }
            }
            let values = merged(column, whole.as_ref(), &rows);
            let staged = form.object_attribute(&location.key, &attributes, &values);
            outputs.extend(staged.map_err(EditError::Build)?);
            replaced.push(location);
        }
        outputs.extend(present(dataset, GroupRole::ObjectAttributes, level).await?);
    }
    for location in replaced {
        location.delete_replaced(transaction).await?;
    }
    let generation = dataset.layout().generation;
    let writer = CellWriter::new(StagedTransaction::new(&mut *transaction), generation);
    writer.write(outputs).await?;
    Ok(writer.take_report().bytes)
}

/// Returns the row of the values of each object of a level; `None` if the level has no objects.
async fn rows_of(
    dataset: &Dataset,
    level: LevelId,
    ids: &[i64],
) -> Result<Option<Vec<Option<usize>>>, Failure> {
    let objects = match dataset.catalog().object_list(level).await? {
        Some(objects) => objects,
        None if level != LevelId::FULL => return Ok(None),
        None => {
            return Err(Failure::Attribute {
                name: "object_id".to_owned(),
                why: "the store has no objects",
            });
        }
    };
    let count = objects.len();
    let indices: HashMap<i64, usize> = (0..count)
        .filter_map(|at| Some((objects.id(at)?, at)))
        .collect();
    let mut rows: Vec<Option<usize>> = vec![None; count];
    for (from, id) in ids.iter().enumerate() {
        let Some(row) = indices.get(id).and_then(|index| rows.get_mut(*index)) else {
            if level == LevelId::FULL {
                return Err(EditError::UnknownObject(*id).into());
            }
            // Coarser levels may have fewer objects.
            continue;
        };
        if row.replace(from).is_some() {
            return Err(EditError::Build(BuildError::DuplicateObject(*id)).into());
        }
    }
    Ok(Some(rows))
}

/// Returns the error if an existing attribute has another type than a column.
fn type_error(old: &Column, column: &Column) -> Option<EditError> {
    let text = |values: &ColumnValues| match values {
        ColumnValues::Numeric(numbers) => format!("{} x {}", numbers.width, numbers.kind.name()),
        ColumnValues::Dictionary { .. } => "text".to_owned(),
    };
    let (expected, found) = (text(&old.values), text(&column.values));
    (expected != found).then(|| EditError::AttributeType {
        what: "object attribute",
        name: column.name.clone(),
        expected,
        found,
    })
}

/// Returns a row for each object: the given one, or else the old one, or else null.
fn merged(column: &Column, old: Option<&Column>, rows: &[Option<usize>]) -> Column {
    let from = |at: usize| match rows.get(at).copied().flatten() {
        Some(row) => Some((column, row)),
        None => old.filter(|old| at < old.len()).map(|old| (old, at)),
    };
    let is_null = |at: usize| from(at).is_none_or(|(column, row)| column.is_null(row));
    let nulls: Vec<bool> = (0..rows.len()).map(is_null).collect();
    match &column.values {
        ColumnValues::Numeric(numbers) => {
            let mut all = NumericColumn::new(numbers.kind, numbers.width);
            for at in 0..rows.len() {
                let bytes = from(at).and_then(|(column, row)| match &column.values {
                    ColumnValues::Numeric(numbers) => numbers.row(row),
                    ColumnValues::Dictionary { .. } => None,
                });
                match bytes {
                    Some(bytes) => all.bytes.extend_from_slice(bytes),
                    None => all.bytes.resize(all.bytes.len() + all.row_size(), 0),
                }
            }
            Column {
                nulls: nulls.contains(&true).then_some(nulls),
                ..Column::new(column.name.clone(), all)
            }
        }
        ColumnValues::Dictionary { .. } => {
            let texts = (0..rows.len()).map(|at| {
                let (column, row) = from(at)?;
                column.text_at(row)
            });
            Column::text(column.name.clone(), texts)
        }
    }
}
