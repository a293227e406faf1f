//! New names for attributes of a file.

use super::{GeometryReadError, arrays::InterchangeArrays, column::NamedColumn};
use std::path::Path;

use crate::AttributeRename;

/// A new name for an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rename {
    /// Name in the file, with or without a scope, as `vertex.NAME`.
    pub old: String,
    /// Name in the store.
    pub new: String,
}

impl Rename {
    /// Returns the new name for a file of `zvf-files`.
    pub fn of_field(&self) -> AttributeRename {
        AttributeRename::new(&self.old, &self.new)
    }

    /// Creates a new name for an attribute.
    pub fn new(old: &str, new: &str) -> Self {
        Self {
            old: old.to_owned(),
            new: new.to_owned(),
        }
    }
}

/// The renames of a file, and which of them have matched an attribute.
#[derive(Debug)]
pub(crate) struct Renaming<'r> {
    renames: &'r [Rename],
    is_used: Vec<bool>,
    /// Names of all attributes of the file.
    names: Vec<String>,
}

impl<'r> Renaming<'r> {
    pub(crate) fn new(renames: &'r [Rename]) -> Self {
        Self {
            renames,
            is_used: vec![false; renames.len()],
            names: Vec::new(),
        }
    }

    /// Returns the name in the store.
    pub(crate) fn name(&mut self, scope: &str, name: &str) -> String {
        self.names.push(format!("{scope}.{name}"));
        let mut found = None;
        for (rename, is_used) in self.renames.iter().zip(&mut self.is_used) {
            let with_scope = rename
                .old
                .strip_prefix(scope)
                .and_then(|rest| rest.strip_prefix('.'));
            if rename.old == name || with_scope == Some(name) {
                *is_used = true;
                found = Some(rename.new.clone());
            }
        }
        found.unwrap_or_else(|| name.to_owned())
    }

    /// Renames the attributes of arrays.
    pub(crate) fn apply(&mut self, arrays: &mut InterchangeArrays) {
        let description = &mut arrays.description;
        let mut apply = |scope: &str, columns: &mut [NamedColumn]| {
            for (name, _) in columns {
                let new = self.name(scope, name);
                description.rename_attribute(scope, name, &new);
                *name = new;
            }
        };
        apply("vertex", &mut arrays.vertex);
        apply("fragment", &mut arrays.fragment);
        apply("link", &mut arrays.link);
        apply("object", &mut arrays.object);
        apply("group", &mut arrays.group);
    }

    /// Checks that every rename found its attribute.
    pub(crate) fn finish(self, path: &Path) -> Result<(), GeometryReadError> {
        let mut renames = self.renames.iter().zip(&self.is_used);
        match renames.find(|(_, is_used)| !**is_used) {
            None => Ok(()),
            Some((rename, _)) => Err(GeometryReadError::Rename {
                path: path.to_path_buf(),
                name: rename.old.clone(),
                names: self.names,
            }),
        }
    }
}
