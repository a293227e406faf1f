//! Golden stores from the perspective of a reader: files by path, nodes, listings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use zvf_model::{
    detection::{Detection, Evidence, FamilyForm, NodeForm},
    generation::Generation,
    key::Key,
    level::{LevelId, LevelMetadata},
    metadata::{Attributes, MetadataError},
    root::RootMetadata,
    scope::Scope,
    zarr::Node,
};
use zvf_testkit::golden::Golden;

pub(crate) const ARCHIVES: [&str; 4] = ["zvf-06", "zvf-07", "zvf-08", "zvf-09"];

/// One store of an archive.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) name: String,
    pub(crate) generation: Generation,
    pub(crate) expected: Json,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// Returns every store of an archive.
pub(crate) fn stores(archive: &str) -> Vec<Store> {
    let golden = Golden::open(archive);
    let found = golden.files().filter_map(|(path, _)| {
        let old = path
            .strip_suffix(".expected.json")
            .map(|name| (name, ".zv"));
        let new = path.strip_suffix("/expected.json");
        old.or(new.map(|name| (name, "/store.zarrvectors")))
    });
    found
        .map(|(name, suffix)| {
            let expected = match suffix {
                ".zv" => golden.json(&format!("{name}.expected.json")),
                _ => golden.json(&format!("{name}/expected.json")),
            };
            let prefix = format!("{name}{suffix}/");
            let files = golden.files().filter_map(|(path, bytes)| {
                Some((path.strip_prefix(&prefix)?.to_owned(), bytes.to_vec()))
            });
            Store {
                name: format!("{archive}/{name}"),
                generation: generation(archive, name),
                expected,
                files: files.collect(),
            }
        })
        .collect()
}

pub(crate) fn all() -> impl Iterator<Item = Store> {
    ARCHIVES.into_iter().flat_map(stores)
}

fn generation(archive: &str, name: &str) -> Generation {
    match (archive, name.split('/').next()) {
        ("zvf-06", _) => Generation::V0_6,
        ("zvf-07", _) => Generation::V0_7,
        ("zvf-08", Some("0.8.0")) => Generation::V0_8_0,
        ("zvf-08", Some("0.8.1")) => Generation::V0_8_1,
        ("zvf-09", _) => Generation::V0_9,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn key(path: &str) -> Key {
    match path {
        "" => Key::root(),
        _ => Key::parse(path).unwrap(),
    }
}

impl Store {
    /// Returns the node at `path`, if it has a `zarr.json`.
    pub(crate) fn node(&self, path: &str) -> Option<Node> {
        let file = key(path).metadata().unwrap();
        let bytes = self.files.get(file.as_str())?;
        Some(Node::parse(&file, bytes).unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }

    pub(crate) fn attributes(&self, path: &str) -> Attributes {
        let node = self.node(path);
        node.map(|node| node.attributes().clone())
            .unwrap_or_default()
    }

    /// Returns the names of the folders in `path`.
    pub(crate) fn children(&self, path: &str) -> BTreeSet<String> {
        let prefix = match path {
            "" => String::new(),
            _ => format!("{path}/"),
        };
        let below = self
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(&prefix));
        below
            .filter_map(|rest| Some(rest.split_once('/')?.0.to_owned()))
            .collect()
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        self.files.keys().any(|file| file.starts_with(&prefix))
    }

    pub(crate) fn levels(&self) -> Vec<LevelId> {
        let names = self.children("");
        let mut levels: Vec<_> = names
            .iter()
            .filter_map(|name| LevelId::parse(name))
            .collect();
        levels.sort_unstable();
        levels
    }

    pub(crate) fn try_root(&self) -> Result<RootMetadata, MetadataError> {
        RootMetadata::parse(&key("zarr.json"), &self.attributes(""))
    }

    pub(crate) fn root(&self) -> RootMetadata {
        self.try_root()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    pub(crate) fn level(&self, level: LevelId) -> LevelMetadata {
        let path = level.to_string();
        let file = key(&path).metadata().unwrap();
        let read = LevelMetadata::parse(&file, level, &self.attributes(&path), &self.root());
        read.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn form(&self, path: &str) -> Option<NodeForm> {
        match self.node(path) {
            Some(node) => Some(NodeForm::of(&node)),
            None => self.exists(path).then_some(NodeForm::Group),
        }
    }

    fn families(&self, path: &str) -> Vec<FamilyForm> {
        let families = self.children(path).into_iter().map(|delta| {
            let path = format!("{path}/{delta}");
            let child = |name: String| {
                let form = self.form(&format!("{path}/{name}"));
                (name, form)
            };
            FamilyForm {
                node: self.form(&path).unwrap(),
                attributes: self.attributes(&path),
                children: self
                    .children(&path)
                    .into_iter()
                    .filter(|name| name != "c")
                    .map(child)
                    .collect(),
            }
        });
        families.collect()
    }

    /// Returns the structure of the nodes at `level`.
    pub(crate) fn evidence(&self, level: LevelId) -> Evidence {
        let at = |path: &str| format!("{level}/{path}");
        let any_child = |path: &str| {
            let child = self.children(&at(path)).pop_first()?;
            self.form(&at(&format!("{path}/{child}")))
        };
        let mut evidence = Evidence::of_root(&self.attributes(""));
        evidence.vertices = self.form(&at("vertices"));
        evidence.vertex_group_offsets = self.exists(&at("vertex_group_offsets"));
        evidence.links = self.families(&at("links"));
        evidence.cross_chunk_links = self.families(&at("cross_chunk_links"));
        let index = at("object_index");
        evidence.object_index = self.exists(&index).then(|| self.attributes(&index));
        evidence.object_attribute =
            any_child("object_attributes").or_else(|| any_child("group_attributes"));
        let children = self.children(&level.to_string());
        let mut composite = children.iter().filter(|name| name.starts_with("links_"));
        evidence.composite_links = composite.next().and_then(|name| self.form(&at(name)));
        evidence.parametric_objects = self.form("parametric/objects");
        evidence.groups = self.form(&at("groups"));
        let mut scopes = Scope::ALL.to_vec();
        scopes.retain(|scope| self.exists(&at(scope.group().name())));
        evidence.scopes = scopes;
        evidence
    }

    pub(crate) fn detect(&self) -> Detection {
        let detection = self.evidence(LevelId::FULL).detect();
        detection.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// Prints the comparisons for `xtask conformance`.
#[expect(clippy::print_stdout, reason = "the test runner shows it on request")]
pub(crate) fn report(compared: std::fmt::Arguments<'_>) {
    println!("conformance: {compared}");
}
