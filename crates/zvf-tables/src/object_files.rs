//! Names of files that hold one object each.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use crate::{FileError, FileFault};

const OBJECT: &str = "{object}";
const NAME: &str = "{name}";

/// A name of files with `{object}`, the id of an object, or `{name}`, its attribute `name`.
#[derive(Clone, Debug)]
pub struct ObjectFiles {
    template: String,
    used: HashSet<PathBuf>,
}

impl ObjectFiles {
    /// Returns the name of files, if it has a placeholder.
    pub fn parse(path: &Path) -> Option<Self> {
        let template = path.to_string_lossy();
        let has_any = template.contains(OBJECT) || template.contains(NAME);
        has_any.then(|| Self {
            template: template.into_owned(),
            used: HashSet::new(),
        })
    }

    /// Returns the file of the next object. An object whose name is not a valid file name has its id in
    /// the place of the name.
    ///
    /// # Errors
    ///
    /// [`FileError`] if an earlier object has the same file.
    pub fn path(&mut self, object: i64, name: Option<&str>) -> Result<PathBuf, FileError> {
        let id = object.to_string();
        let name = name.filter(|name| is_file_name(name)).unwrap_or(&id);
        let path = PathBuf::from(self.template.replace(OBJECT, &id).replace(NAME, name));
        if self.used.insert(path.clone()) {
            Ok(path)
        } else {
            let why = "two objects have one name; use {object} in the name of the file";
            Err(FileFault::Unsupported(why).of(&path))
        }
    }
}

/// Returns whether a name of an object can be the name of a file.
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '/' | '\\');
    !name.is_empty()
        && name != ".."
        && name != "."
        && name.len() <= 200
        && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_an_object() {
        let mut files = ObjectFiles::parse(Path::new("a/{object}-{name}.ply")).unwrap();
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(files.path(7, Some("soma")).ok(), path("a/7-soma.ply"));
        // A name cannot lead to another folder.
        assert_eq!(files.path(8, Some("../x")).ok(), path("a/8-8.ply"));
        assert_eq!(files.path(9, None).ok(), path("a/9-9.ply"));
        let again = files.path(7, Some("soma")).unwrap_err();
        assert!(again.to_string().contains("two objects have one name"));
        assert!(ObjectFiles::parse(Path::new("{id}.ply")).is_none());
    }
}
