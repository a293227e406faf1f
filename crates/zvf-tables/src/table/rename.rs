//! New names for attributes of a file.

use std::path::Path;

use zvf::Scope;

use super::arrays::InterchangeArrays;
use crate::{AttributeRename, FileError, FileFault};

/// The renames of a file, and which of them have matched an attribute.
#[derive(Debug)]
pub(crate) struct Renaming<'r> {
    renames: &'r [AttributeRename],
    is_used: Vec<bool>,
    /// Names of all attributes of the file.
    names: Vec<String>,
}

impl<'r> Renaming<'r> {
    pub(crate) fn new(renames: &'r [AttributeRename]) -> Self {
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
        let mut description = std::mem::take(&mut arrays.description);
        for scope in Scope::ALL {
            for (name, _) in arrays.columns_mut(scope) {
                let new = self.name(scope.name(), name);
                description.rename_attribute(scope.name(), name, &new);
                *name = new;
            }
        }
        arrays.description = description;
    }

    /// Checks that every rename found its attribute.
    pub(crate) fn finish(self, path: &Path) -> Result<(), FileError> {
        let mut renames = self.renames.iter().zip(&self.is_used);
        match renames.find(|(_, is_used)| !**is_used) {
            None => Ok(()),
            Some((rename, _)) => Err(FileFault::Rename {
                name: rename.old.clone(),
                present: self.names,
            }
            .of(path)),
        }
    }
}
