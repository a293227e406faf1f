//! The interchange arrays out of tables: vertices, and beside them links, objects and
//! groups.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use zvf::build::{Numbers, Values};

use super::{
    ColumnError, Gaps, ReadError, Reading, Source,
    arrays::{Arrays, Group, Links},
    column::{Column, beside},
    csv,
};
use crate::output::Format;

/// Columns of equally many rows.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) file: Arc<Path>,
    pub(super) columns: Vec<Column>,
    /// What the file says are the axes.
    pub(super) axes: Option<Vec<String>>,
}

/// Axes when nothing says which they are.
const AXES: [&str; 4] = ["x", "y", "z", "w"];

pub(super) fn read(source: &Source, reading: &Reading) -> Result<Arrays, ReadError> {
    let mut arrays = vertices(table(source, reading.gaps)?, reading)?;
    arrays.files.push(source.path().to_path_buf());
    let links = reading.links.clone().or_else(|| source.beside("links"));
    if let Some(source) = links {
        let path = source.path().to_path_buf();
        if !reading.kind.is_linked() {
            let kind = reading.kind.name();
            return Err(ReadError::Links { path, kind });
        }
        links_of(table(&source, reading.gaps)?, &mut arrays)?;
        arrays.files.push(path);
    }
    if let Some(source) = source.beside("objects") {
        objects_of(table(&source, reading.gaps)?, &mut arrays)?;
        arrays.files.push(source.path().to_path_buf());
    }
    if let Some(source) = source.beside("groups") {
        groups_of(table(&source, reading.gaps)?, &mut arrays)?;
        arrays.files.push(source.path().to_path_buf());
    }
    Ok(arrays)
}

fn table(source: &Source, gaps: Gaps) -> Result<Table, ReadError> {
    match source.format() {
        Format::Csv => csv::table(source.path(), gaps),
        #[cfg(feature = "arrow")]
        Format::Arrow => super::columnar::arrow(source.path(), gaps),
        #[cfg(feature = "parquet")]
        Format::Parquet => super::columnar::parquet(source.path(), gaps),
        _ => Err(ReadError::NotBuilt {
            path: source.path().to_path_buf(),
        }),
    }
}

impl Table {
    /// Takes a column out.
    fn take(&mut self, name: &str) -> Option<Column> {
        let at = self.columns.iter().position(|column| column.label == name);
        at.map(|at| self.columns.remove(at))
    }

    fn need(&mut self, name: &str) -> Result<Column, ReadError> {
        let columns = self.names();
        self.take(name).ok_or_else(|| ReadError::NoColumn {
            path: self.file.to_path_buf(),
            column: name.to_owned(),
            columns,
        })
    }

    fn names(&self) -> Vec<String> {
        let columns = self.columns.iter();
        columns.map(|column| column.label.clone()).collect()
    }

    /// Takes the coordinates out, and says what the axes are called.
    fn positions(&mut self, asked: Option<&[String]>) -> Result<(Numbers, Vec<String>), ReadError> {
        let names = match asked.or(self.axes.as_deref()) {
            Some(names) => names.to_vec(),
            None => {
                let names = self.names().into_iter();
                names.filter(|name| AXES.contains(&name.as_str())).collect()
            }
        };
        if names.is_empty() {
            return Err(ReadError::NoAxes {
                path: self.file.to_path_buf(),
                columns: self.names(),
            });
        }
        let columns: Result<Vec<Column>, _> = names.iter().map(|name| self.need(name)).collect();
        let columns = columns?;
        let mut parts = Vec::with_capacity(columns.len());
        for column in &columns {
            let numbers = column.numbers()?;
            if numbers.columns != 1 {
                return Err(column.error(ColumnError::Columns {
                    expected: 1,
                    found: numbers.columns,
                }));
            }
            parts.push(numbers);
        }
        let numbers = beside(&parts).map_err(|error| match columns.first() {
            Some(column) => column.error(error),
            None => ReadError::NoPositions {
                path: self.file.to_path_buf(),
            },
        });
        Ok((numbers?, names))
    }
}

/// A row a vertex.
fn vertices(mut table: Table, reading: &Reading) -> Result<Arrays, ReadError> {
    let (positions, axes) = table.positions(reading.axes.as_deref())?;
    let mut arrays = Arrays::new(positions);
    arrays.axes = Some(axes);
    let id = table.take("object_id");
    if reading.kind.is_paths() {
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
        match label.split_once('.') {
            Some(("vertex", name)) => arrays.vertex.push(column.named(name)),
            Some(("fragment", name)) => arrays.fragment.push(column.named(name)),
            Some((scope, _)) => {
                check_scope(&column, scope)?;
                arrays.vertex.push(column.named(&label));
            }
            None => arrays.vertex.push(column.named(&label)),
        }
    }
    Ok(arrays)
}

/// Rows one after the other that agree are a path.
fn parts(parts: &[i64], objects: Option<&[i64]>, arrays: &mut Arrays) {
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
    offsets.push(crate::number::of_len(parts.len()));
    arrays.part_offsets = Some(offsets);
    arrays.part_objects = objects.map(|_| owners);
}

/// A row a link.
fn links_of(mut table: Table, arrays: &mut Arrays) -> Result<(), ReadError> {
    arrays.links = Some(Links::of(&table.need("links")?)?);
    for column in table.columns {
        let name = scoped(&column, "link")?;
        arrays.link.push(column.named(&name));
    }
    Ok(())
}

/// A row an object.
fn objects_of(mut table: Table, arrays: &mut Arrays) -> Result<(), ReadError> {
    arrays.objects = Some(table.need("object_id")?.ids()?);
    for column in table.columns {
        let name = scoped(&column, "object")?;
        arrays.object.push(column.named(&name));
    }
    Ok(())
}

/// A row a member of a group; groups by number or name.
fn groups_of(mut table: Table, arrays: &mut Arrays) -> Result<(), ReadError> {
    let column = Arc::new(table.need("group")?);
    let members = table.need("object_id")?.ids()?;
    let names: Vec<String> = match &column.values {
        Values::Numbers(_) => column.ids()?.iter().map(ToString::to_string).collect(),
        Values::Text(texts) => {
            let texts = texts.iter().enumerate().map(|(row, text)| {
                let error = || column.error(ColumnError::Missing(row));
                text.clone().ok_or_else(error)
            });
            texts.collect::<Result<_, _>>()?
        }
    };
    let mut groups: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (name, member) in names.into_iter().zip(members) {
        groups.entry(name).or_default().push(member);
    }
    let groups = groups.into_iter().map(|(name, members)| Group {
        name,
        members,
        column: Arc::clone(&column),
    });
    arrays.groups.extend(groups);
    Ok(())
}

/// The name of an attribute in its own table.
fn scoped(column: &Column, scope: &str) -> Result<String, ReadError> {
    match column.label.split_once('.') {
        Some((found, name)) if found == scope => Ok(name.to_owned()),
        Some((found, _)) if found != scope => {
            check_scope(column, found)?;
            Ok(column.label.clone())
        }
        _ => Ok(column.label.clone()),
    }
}

/// Whether the column is not of another table.
fn check_scope(column: &Column, scope: &str) -> Result<(), ReadError> {
    let table = match scope {
        "vertex" | "fragment" => "that of the vertices",
        "link" => "NAME.links",
        "object" => "NAME.objects",
        "group" => "NAME.groups",
        _ => return Ok(()),
    };
    Err(column.error(ColumnError::Elsewhere(table)))
}
