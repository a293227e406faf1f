//! The folders of sources, by their `info` documents.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::keyed::read_file;
use crate::{FileDescription, FileError, FileFault, FileFormat};

use zvf::GeometryKind;

const INFO: &str = "info";
/// Upper bound on the size of a document, which has a place in memory.
const MAX_INFO: u64 = 1 << 30;

/// The format of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    Skeletons,
    Annotations,
    LegacyMesh,
    MultilodMesh,
    SegmentProperties,
}

impl SourceKind {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Skeletons, "neuroglancer_skeletons"),
        (Self::Annotations, "neuroglancer_annotations_v1"),
        (Self::LegacyMesh, "neuroglancer_legacy_mesh"),
        (Self::MultilodMesh, "neuroglancer_multilod_draco"),
        (Self::SegmentProperties, "neuroglancer_segment_properties"),
    ];

    fn name(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns whether the source has geometry.
    fn is_layer(self) -> bool {
        self != Self::SegmentProperties
    }
}

/// A source in a folder.
#[derive(Debug)]
pub(super) struct PrecomputedSource {
    pub(super) folder: PathBuf,
    pub(super) kind: SourceKind,
    /// The document.
    pub(super) info: Vec<u8>,
    /// Folder of the properties of segments that the folder above names or contains.
    pub(super) outer_properties: Option<PathBuf>,
}

impl PrecomputedSource {
    /// Finds the source of a folder: its own, or the only one in the folders that it contains.
    pub(super) fn find(path: &Path) -> Result<Self, FileError> {
        let mut outer_properties = None;
        if let Some((info, document)) = document(path)? {
            match kind_of(&document) {
                Some(kind) if kind.is_layer() => {
                    return Ok(Self {
                        folder: path.to_path_buf(),
                        kind,
                        info,
                        outer_properties,
                    });
                }
                Some(_) => return Err(FileFault::NoLayer.of(path)),
                None if document.get("redirect").is_some() => {
                    let why = "the info document redirects to another address, which is not \
                               followed; copy that folder and name it";
                    return Err(FileFault::Unsupported(why).of(path));
                }
                None => {
                    let folder = document.get("segment_properties").and_then(Value::as_str);
                    let folder = folder.and_then(|folder| below(path, folder));
                    outer_properties = folder.filter(|folder| folder.is_dir());
                }
            }
        }
        let mut layers: Vec<(String, SourceKind, Vec<u8>)> = Vec::new();
        for name in folders(path)? {
            let Some((info, document)) = document(&path.join(&name))? else {
                continue;
            };
            match kind_of(&document) {
                Some(kind) if kind.is_layer() => layers.push((name, kind, info)),
                Some(_) if outer_properties.is_none() => outer_properties = Some(path.join(name)),
                _ => {}
            }
        }
        if layers.len() > 1 {
            let names: Vec<&str> = layers.iter().map(|(name, ..)| name.as_str()).collect();
            return Err(FileFault::SeveralLayers(names.join(", ")).of(path));
        }
        let layer = layers.pop().map(|(name, kind, info)| Self {
            folder: path.join(name),
            kind,
            info,
            outer_properties,
        });
        layer.ok_or_else(|| FileFault::NoLayer.of(path))
    }

    /// Returns the path of the document, for errors.
    pub(super) fn info_path(&self) -> PathBuf {
        self.folder.join(INFO)
    }

    /// Starts the description of the geometry.
    pub(super) fn description(&self, kind: GeometryKind) -> FileDescription {
        let mut description = FileDescription::new(FileFormat::Precomputed, kind);
        let name = self.kind.name();
        description.header.insert("type".to_owned(), name.into());
        description
    }

    /// Returns a folder that the document names.
    pub(super) fn folder_of(&self, key: &str) -> Result<PathBuf, FileError> {
        below(&self.folder, key).ok_or_else(|| {
            let expected = "the name of a folder in the source; other folders are not read";
            FileFault::field("a folder of the info document", key, expected).of(&self.info_path())
        })
    }
}

/// Returns a path below a folder; `None` if it may lead out of the folder.
fn below(folder: &Path, key: &str) -> Option<PathBuf> {
    let is_name =
        |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', ':', '\0']);
    let key = key.strip_prefix("./").unwrap_or(key);
    let key = key.strip_suffix('/').unwrap_or(key);
    key.split('/').all(is_name).then(|| folder.join(key))
}

/// Reads the document of a folder; `None` if it has none.
pub(super) fn document(folder: &Path) -> Result<Option<(Vec<u8>, Value)>, FileError> {
    let path = folder.join(INFO);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = read_file(&path, MAX_INFO)?;
    let value = serde_json::from_slice(&bytes).map_err(|error| FileFault::Json(error).of(&path))?;
    Ok(Some((bytes, value)))
}

fn kind_of(document: &Value) -> Option<SourceKind> {
    let name = document.get("@type")?.as_str()?;
    let mut kinds = SourceKind::ALL.into_iter();
    kinds
        .find(|(_, known)| *known == name)
        .map(|(kind, _)| kind)
}

/// Lists the folders in a folder by name.
fn folders(folder: &Path) -> Result<Vec<String>, FileError> {
    let in_folder = |source| FileFault::Io(source).of(folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(in_folder)? {
        let entry = entry.map_err(in_folder)?;
        if entry.path().is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_do_not_lead_out() {
        let folder = Path::new("a");
        assert_eq!(below(folder, "./b/c/"), Some(PathBuf::from("a/b/c")));
        for key in [
            "",
            "..",
            "../b",
            "b/../../c",
            "/etc",
            "b//c",
            "C:\\b",
            "b\0",
        ] {
            assert_eq!(below(folder, key), None, "{key}");
        }
    }
}
