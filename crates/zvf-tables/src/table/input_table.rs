//! Conversion of tables of vertices, links, objects and groups to interchange arrays.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use zvf::{ColumnValues, NumericColumn, Scope};

use super::{
    ColumnError, GeometryReadOptions, StoreDescription,
    arrays::{InputGroup, InterchangeArrays, links_of_column},
    column::{FileColumn, join_channels},
};
use crate::{AttributeRename, display::len_u64};
use crate::{FileError, FileFault};

/// Columns with an equal number of rows.
#[derive(Debug)]
pub(crate) struct InputTable {
    pub(crate) file: Arc<Path>,
    pub(crate) columns: Vec<FileColumn>,
    /// Names of the axes, if the file has them.
    pub(crate) axes: Option<Vec<String>>,
    /// Coordinate reference system, if the file has one.
    pub(crate) crs: Option<serde_json::Value>,
    /// Description of the store, if the file has one.
    pub(crate) description: Option<StoreDescription>,
}

/// Names of axis columns if neither the file nor the user names them.
pub(crate) const AXES: [&str; 4] = ["x", "y", "z", "w"];

impl InputTable {
    /// Removes and returns a column.
    fn take(&mut self, name: &str) -> Option<FileColumn> {
        let at = self.columns.iter().position(|column| column.label == name);
        at.map(|at| self.columns.remove(at))
    }

    fn need(&mut self, name: &str) -> Result<FileColumn, FileError> {
        let columns = self.names();
        self.take(name).ok_or_else(|| {
            FileFault::NoColumn {
                column: name.to_owned(),
                columns,
            }
            .of(&self.file)
        })
    }

    fn names(&self) -> Vec<String> {
        let columns = self.columns.iter();
        columns.map(|column| column.label.clone()).collect()
    }

    /// Gives the columns of paths and objects the names that mean them. Returns the renames that are
    /// left.
    pub(crate) fn rename_structure(&mut self, renames: &[AttributeRename]) -> Vec<AttributeRename> {
        rename_columns(&mut self.columns, renames, &["object_id", "part"])
    }

    /// Removes the columns of the axes and returns the coordinates with the names of the axes.
    fn positions(
        &mut self,
        requested: Option<&[String]>,
    ) -> Result<(NumericColumn, Vec<String>), FileError> {
        let names = match requested.or(self.axes.as_deref()) {
            Some(names) => names.to_vec(),
            None => {
                let names = self.names().into_iter();
                names.filter(|name| AXES.contains(&name.as_str())).collect()
            }
        };
        if names.is_empty() {
            return Err(FileFault::NoAxes(self.names()).of(&self.file));
        }
        let columns: Result<Vec<FileColumn>, _> =
            names.iter().map(|name| self.need(name)).collect();
        let columns = columns?;
        let mut parts = Vec::with_capacity(columns.len());
        for column in &columns {
            let numbers = column.numbers()?;
            if numbers.row_len() != 1 {
                return Err(column.error(ColumnError::Columns {
                    expected: 1,
                    found: numbers.row_len(),
                }));
            }
            parts.push(numbers);
        }
        let numbers = join_channels(&parts).map_err(|error| match columns.first() {
            Some(column) => column.error(error),
            None => FileFault::NoPositions(names.clone()).of(&self.file),
        });
        Ok((numbers?, names))
    }
}

/// Gives columns those new names that are in `names`. Returns the renames that are left.
pub(crate) fn rename_columns(
    columns: &mut [FileColumn],
    renames: &[AttributeRename],
    names: &[&str],
) -> Vec<AttributeRename> {
    let mut left = renames.to_vec();
    left.retain(|rename| {
        let is_named = names.contains(&rename.new.as_str());
        let mut columns = columns.iter_mut();
        match columns.find(|column| is_named && column.label == rename.old) {
            None => true,
            Some(column) => {
                column.label.clone_from(&rename.new);
                false
            }
        }
    });
    left
}

/// Converts a table with one row per vertex.
pub(crate) fn vertices(
    mut table: InputTable,
    options: &GeometryReadOptions,
) -> Result<InterchangeArrays, FileError> {
    let (positions, axes) = table.positions(options.axes.as_deref())?;
    let mut arrays = InterchangeArrays::new(positions);
    arrays.axes = Some(axes);
    arrays.crs = table.crs.take();
    arrays.description = table.description.take().unwrap_or_default();
    arrays.row_ids = table.take("row_id");
    let id = table.take("object_id");
    if options.kind.is_paths() {
        let object = match (table.take("object"), id) {
            (Some(_), Some(id)) => return Err(id.error(ColumnError::Twice)),
            (object, id) => object.or(id),
        };
        let objects = object.map(|column| column.ids()).transpose()?;
        match table.take("part") {
            Some(part) => parts(&part.ids()?, objects.as_deref(), &mut arrays),
            None => arrays.object_ids = objects,
        }
    } else {
        for name in ["part", "object"] {
            if let Some(column) = table.take(name) {
                return Err(column.error(ColumnError::OfPaths(name.to_owned())));
            }
        }
        arrays.object_ids = id.map(|column| column.ids()).transpose()?;
    }
    for column in table.columns {
        let label = column.label.clone();
        let of_chunks = |scope: &str| Scope::OF_CHUNKS.into_iter().find(|own| own.name() == scope);
        match label.split_once('.') {
            Some((scope, name)) => match of_chunks(scope) {
                Some(scope) => arrays.columns_mut(scope).push(column.named(name)),
                None => {
                    check_scope(&column, scope)?;
                    arrays.vertex.push(column.named(&label));
                }
            },
            None => arrays.vertex.push(column.named(&label)),
        }
    }
    Ok(arrays)
}

/// Makes a path of each run of rows with equal part and object.
fn parts(parts: &[i64], objects: Option<&[i64]>, arrays: &mut InterchangeArrays) {
    let mut offsets = Vec::new();
    let mut owners = Vec::new();
    let mut last = None;
    for (row, part) in (0_u64..).zip(parts) {
        let at = usize::try_from(row).unwrap_or(usize::MAX);
        let object = objects.and_then(|objects| objects.get(at)).copied();
        if last != Some((*part, object)) {
            offsets.push(row);
            owners.extend(object);
            last = Some((*part, object));
        }
    }
    offsets.push(len_u64(parts.len()));
    arrays.part_offsets = Some(offsets);
    arrays.part_objects = objects.map(|_| owners);
}

/// Converts a table with one row per link.
pub(crate) fn add_links(
    mut table: InputTable,
    arrays: &mut InterchangeArrays,
) -> Result<(), FileError> {
    let columns = table.names();
    let ends = table
        .take("links")
        .ok_or_else(|| FileFault::NoEnds(columns).of(&table.file))?;
    arrays.links = Some(links_of_column(&ends)?);
    for column in table.columns {
        let name = scoped(&column, "link")?;
        arrays.link.push(column.named(&name));
    }
    Ok(())
}

/// Converts a table with one row per object.
pub(crate) fn add_objects(
    mut table: InputTable,
    arrays: &mut InterchangeArrays,
) -> Result<(), FileError> {
    arrays.objects = Some(table.need("object_id")?.ids()?);
    for column in table.columns {
        let name = scoped(&column, "object")?;
        arrays.object.push(column.named(&name));
    }
    Ok(())
}

/// Converts a table with one row per member of a group. Groups have numbers or names.
pub(crate) fn add_groups(
    mut table: InputTable,
    arrays: &mut InterchangeArrays,
) -> Result<(), FileError> {
    let column = Arc::new(table.need("group")?);
    let members = table.need("object_id")?.ids()?;
    let names: Vec<String> = match &column.values {
        ColumnValues::Numeric(_) => column.ids()?.iter().map(ToString::to_string).collect(),
        texts @ ColumnValues::Dictionary { .. } => {
            let texts = texts.texts().enumerate().map(|(row, text)| {
                let error = || column.error(ColumnError::Missing(row));
                text.map(str::to_owned).ok_or_else(error)
            });
            texts.collect::<Result<_, _>>()?
        }
    };
    let mut groups: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (name, member) in names.into_iter().zip(members) {
        groups.entry(name).or_default().push(member);
    }
    let groups = groups.into_iter().map(|(name, members)| InputGroup {
        name,
        members,
        column: Arc::clone(&column),
    });
    arrays.groups.extend(groups);
    Ok(())
}

/// Reads one row per group number, counted from 0.
pub(crate) fn add_group_attributes(
    mut table: InputTable,
    arrays: &mut InterchangeArrays,
) -> Result<(), FileError> {
    let column = table.need("group")?;
    let numbers = column.ids()?;
    if let Some(row) = (0_i64..).zip(&numbers).position(|(row, id)| row != *id) {
        return Err(column.error(ColumnError::Order(row)));
    }
    for column in table.columns {
        let name = scoped(&column, "group")?;
        arrays.group.push(column.named(&name));
    }
    Ok(())
}

/// Returns the name of an attribute of the table's scope.
fn scoped(column: &FileColumn, scope: &str) -> Result<String, FileError> {
    match column.label.split_once('.') {
        Some((found, name)) if found == scope => Ok(name.to_owned()),
        Some((found, _)) if found != scope => {
            check_scope(column, found)?;
            Ok(column.label.clone())
        }
        _ => Ok(column.label.clone()),
    }
}

/// Rejects a column that belongs in another table.
fn check_scope(column: &FileColumn, scope: &str) -> Result<(), FileError> {
    let table = match Scope::parse(scope) {
        Some(Scope::Link) => "NAME.links",
        Some(Scope::Object) => "NAME.objects",
        Some(Scope::Group) => "NAME.groups",
        Some(Scope::Vertex | Scope::Fragment) => "that of the vertices",
        None => return Ok(()),
    };
    Err(column.error(ColumnError::Elsewhere(table)))
}
