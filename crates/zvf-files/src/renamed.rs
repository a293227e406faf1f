//! A reader that gives attributes other names.

use std::{collections::BTreeMap, error::Error, path::Path};

use serde_json::{Map, Value, json};
use zvf::{BuildError, Column, Geometry, GeometryBuilder, GeometrySource, LinkNumbering};

use crate::{
    AttributeRename, FileDescription, FileError, FileFault, FileHeader, GeometryReader,
    names::original,
};

/// Scopes, and the keys of headers with the names that attributes have in the file.
const SCOPES: [(&str, &str); 4] = [
    ("vertex", "names"),
    ("link", "link_names"),
    ("object", "object_names"),
    ("group", "group_names"),
];

/// A reader whose attributes have other names.
pub(crate) struct RenamedReader {
    reader: Box<dyn GeometryReader>,
    description: FileDescription,
    /// New names by scope and name.
    names: BTreeMap<(&'static str, String), String>,
}

impl RenamedReader {
    /// Finds the attributes to rename. Reads the first batch, and rewinds the file.
    ///
    /// # Errors
    ///
    /// [`FileFault::NoAttribute`] if an attribute does not exist, and the error of the first batch.
    pub(crate) fn new(
        mut reader: Box<dyn GeometryReader>,
        renames: &[AttributeRename],
        path: &Path,
    ) -> Result<Self, FileError> {
        let in_file = |error| match FileError::of_batch(error) {
            FileError {
                fault: FileFault::Batch(_),
                ..
            } => FileFault::Broken("the file cannot be read twice").of(path),
            error => error,
        };
        let batch = reader.next(1).map_err(in_file)?;
        reader.rewind().map_err(in_file)?;
        let mut found: Vec<(&'static str, String)> = Vec::new();
        let tables = reader.tables().map_err(in_file)?;
        for geometry in batch.into_iter().chain([tables]) {
            let mut geometry = geometry.into_builder();
            for (scope, columns) in families(&mut geometry) {
                found.extend(columns.iter().map(|column| (scope, column.name.clone())));
            }
        }
        let mut description = reader.description().clone();
        let mut names = BTreeMap::new();
        for rename in renames {
            let mut is_used = false;
            for (scope, name) in &found {
                let in_file = name_in_file(&description.header, scope, name);
                if is_of(rename, scope, name, &in_file) {
                    is_used = true;
                    names.insert((*scope, name.clone()), rename.new.clone());
                }
            }
            if !is_used {
                let present = found.iter().map(|(scope, name)| {
                    let name = name_in_file(&description.header, scope, name);
                    format!("{scope}.{name}")
                });
                return Err(FileFault::NoAttribute {
                    name: rename.old.clone(),
                    present: present.collect(),
                }
                .of(path));
            }
        }
        rename_header(&mut description.header, &names);
        Ok(Self {
            reader,
            description,
            names,
        })
    }

    fn renamed(&self, geometry: Geometry) -> Result<Geometry, BuildError> {
        let mut geometry = geometry.into_builder();
        for (scope, columns) in families(&mut geometry) {
            for column in columns {
                if let Some(new) = self.names.get(&(scope, column.name.clone())) {
                    column.name.clone_from(new);
                }
            }
        }
        geometry.build()
    }
}

/// Returns whether a new name is for the attribute `name`, which is `in_file` in the file.
fn is_of(rename: &AttributeRename, scope: &str, name: &str, in_file: &str) -> bool {
    let with_scope = rename.old.strip_prefix(scope);
    let rest = with_scope.and_then(|rest| rest.strip_prefix('.'));
    let mut forms = [Some(rename.old.as_str()), rest].into_iter().flatten();
    forms.any(|old| old == name || old == in_file)
}

/// Returns the attributes of each scope.
fn families(geometry: &mut GeometryBuilder) -> [(&'static str, &mut Vec<Column>); 4] {
    [
        ("vertex", &mut geometry.vertex),
        ("link", &mut geometry.link),
        ("object", &mut geometry.object),
        ("group", &mut geometry.group),
    ]
}

/// Returns the name that an attribute has in the file.
fn name_in_file(header: &FileHeader, scope: &str, name: &str) -> String {
    let key = SCOPES.iter().find(|(other, _)| *other == scope);
    let names = key.and_then(|(_, key)| header.get(*key));
    original(names, name).to_owned()
}

/// Renames the attributes that a header describes, so that writers find them, and keeps their names
/// in the file.
fn rename_header(header: &mut FileHeader, names: &BTreeMap<(&'static str, String), String>) {
    let mut in_file: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (scope, key) in SCOPES {
        if let Some(Value::Object(kept)) = header.get(key) {
            in_file.insert(key, kept.clone());
        }
        for ((of, name), new) in names {
            if *of == scope {
                let original = name_in_file(header, scope, name);
                let kept = in_file.entry(key).or_default();
                kept.remove(name);
                kept.insert(new.clone(), json!(original));
            }
        }
    }
    for (key, kept) in in_file {
        header.insert(key.to_owned(), kept.into());
    }
    for ((scope, name), new) in names {
        // Types of the arrays of TRX.
        let (key, folder) = match *scope {
            "vertex" => ("types", "dpv/"),
            "object" => ("types", "dps/"),
            _ => ("dpg", ""),
        };
        if let Some(Value::Object(types)) = header.get_mut(key)
            && let Some(kept) = types.remove(&format!("{folder}{name}"))
        {
            types.insert(format!("{folder}{new}"), kept);
        }
        // Values of surfaces.
        if let Some(Value::Array(columns)) = header.get_mut("columns") {
            for column in columns {
                if *scope == "vertex"
                    && column.get("attribute") == Some(&json!(name))
                    && let Some(column) = column.as_object_mut()
                {
                    column.insert("attribute".to_owned(), json!(new));
                }
            }
        }
    }
}

impl GeometrySource for RenamedReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let batch = self.reader.next(vertices)?;
        // Some notes come with the last batch.
        let notes = &self.reader.description().notes;
        self.description.notes.clone_from(notes);
        Ok(batch.map(|batch| self.renamed(batch)).transpose()?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.reader.rewind()
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(self.renamed(self.reader.tables()?)?)
    }

    fn link_numbering(&self) -> LinkNumbering {
        self.reader.link_numbering()
    }
}

impl GeometryReader for RenamedReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }

    fn is_whole(&self) -> bool {
        self.reader.is_whole()
    }
}
