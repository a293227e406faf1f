//! A document has one meaning: a member of a node that queries refuse is refused by edits and
//! migration with the same error, and reported by validation.

mod recorded;

use core::fmt;
use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use zvf::{
    Column, Dataset, Design, Editor, Error, ErrorKind, Geometry, GeometryBuilder, GeometryKind,
    LevelId, NumericColumn, OpenOptions, OutOfBounds, Profile, Query, Severity, ValidateOptions,
    VertexOwners, validate,
};
use zvf_catalog::{Catalog, Scope};
use zvf_query::QueryError;
use zvf_testkit::golden::Files;

use crate::{block_on, drafts::created, migrated::migrated};

/// One change of a member of a node.
#[derive(Clone, Debug)]
struct Damage {
    /// Path of the node.
    node: String,
    /// Path of the member in the node.
    member: String,
    /// The change.
    change: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.node, self.member, self.change)
    }
}

/// The error of a part of the library.
#[derive(Clone, Debug)]
struct Refusal {
    kind: ErrorKind,
    /// The node of the key.
    node: Option<String>,
    text: String,
}

impl Refusal {
    fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.node) == (other.kind, &other.node)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let node = error.key().map(|key| {
            let node = key.as_str().split("/c/").next().unwrap();
            let node = node.strip_suffix("zarr.json").unwrap_or(node);
            node.trim_end_matches('/').to_owned()
        });
        Self {
            kind: error.kind(),
            node,
            text: zvf_model::error_chain::error_chain(&error),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}: {}", self.kind, self.node, self.text)
    }
}

/// Returns geometry of a kind with attributes of every scope, and objects from `first` on.
fn geometry(kind: GeometryKind, first: i64) -> GeometryBuilder {
    let rows: [[f32; 2]; 8] = [
        [1.0, 1.0],
        [2.0, 1.5],
        [3.0, 2.0],
        [11.0, 2.0],
        [12.0, 2.5],
        [13.0, 3.0],
        [14.0, 1.0],
        [15.0, 2.0],
    ];
    let mut geometry = Geometry::builder(NumericColumn::from(rows.to_vec()));
    let heights = (0_u8..8).map(f32::from);
    let texts = ["a", "b", "a", "c", "a", "b", "a", "c"].map(Some);
    geometry.vertex = vec![
        Column::new("height", NumericColumn::float32(1, heights)),
        Column::text("label", texts),
    ];
    if kind.is_paths() {
        let ends = match kind {
            GeometryKind::Lines => vec![0, 2, 4, 6, 8],
            _ => vec![0, 5, 8],
        };
        let count = i64::try_from(ends.len()).unwrap() - 1;
        geometry = geometry.paths(ends, (first..first + count).collect::<Vec<_>>());
    } else {
        let owners = [0, 0, 0, 0, 0, 1, 1, 1].map(|owner| first + owner);
        geometry.owners = VertexOwners::Vertices(owners.to_vec());
    }
    match kind {
        GeometryKind::Skeletons => geometry.links.ends = vec![1, 0, 2, 1, 3, 2, 4, 3, 6, 5, 7, 6],
        GeometryKind::Graphs => geometry.links.ends = vec![0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7],
        GeometryKind::Mesh => {
            geometry = geometry.links(3, vec![0, 1, 2, 2, 3, 4, 5, 6, 7]);
        }
        _ => {}
    }
    if matches!(kind, GeometryKind::Graphs | GeometryKind::Mesh) {
        let links = u8::try_from(geometry.links.len()).unwrap();
        let weights = (0..links).map(f32::from);
        geometry.link = vec![Column::new("weight", NumericColumn::float32(1, weights))];
    }
    let objects = match geometry.owners.paths() {
        0 => 2,
        paths => paths,
    };
    let rows = u8::try_from(objects).unwrap();
    let of_objects = |add: u8| NumericColumn::float32(1, (0..rows).map(|row| f32::from(row + add)));
    geometry.fragment = vec![Column::new("quality", of_objects(1))];
    geometry.object = vec![
        Column::new("score", of_objects(2)),
        Column::text(
            "name",
            (0..rows).map(|row| Some(["x", "yy"][usize::from(row % 2)])),
        ),
    ];
    geometry.groups = BTreeMap::from([(0, vec![first]), (1, vec![first, first + 1])]);
    geometry.group = vec![Column::new("share", NumericColumn::float64(1, [0.5, 1.0]))];
    geometry
}

/// Returns a created store of a kind, without the copy of its nodes.
async fn store(kind: GeometryKind) -> Files {
    let mut design = Design::new(kind);
    design.chunk_shape = Some(vec![10.0; 2]);
    let mut files = created(geometry(kind, 10), design).await;
    without_copy(&mut files);
    files
}

/// Removes the copy of the nodes.
fn without_copy(files: &mut Files) {
    edit(files, "", |root| {
        let attributes = root["attributes"].as_object_mut().unwrap();
        attributes.remove("zvf_nodes");
    });
}

/// Changes the node at `path`.
fn edit(files: &mut Files, path: &str, change: impl FnOnce(&mut Json)) {
    let key = match path {
        "" => "zarr.json".to_owned(),
        path => format!("{path}/zarr.json"),
    };
    let (_, bytes) = files.iter_mut().find(|(name, _)| *name == key).unwrap();
    let mut node = serde_json::from_slice(bytes).unwrap();
    change(&mut node);
    *bytes = node.to_string().into_bytes();
}

/// Returns every change of every member of every node.
fn all_damage(files: &Files) -> Vec<Damage> {
    let mut all = Vec::new();
    for (key, bytes) in files {
        let Some(node) = key.strip_suffix("zarr.json") else {
            continue;
        };
        let json: Json = serde_json::from_slice(bytes).unwrap();
        let mut members = Vec::new();
        members_of(&json, "", &mut members);
        for member in members {
            for change in ["removed", "another type", "another value"] {
                all.push(Damage {
                    node: node.trim_end_matches('/').to_owned(),
                    member: member.clone(),
                    change,
                });
            }
        }
    }
    all
}

fn members_of(json: &Json, above: &str, members: &mut Vec<String>) {
    let mut push = |name: &str, value: &Json| {
        let member = format!("{above}/{name}");
        members.push(member.clone());
        members_of(value, &member, members);
    };
    match json {
        Json::Object(object) => object.iter().for_each(|(name, value)| push(name, value)),
        // The others of a list are like the first.
        Json::Array(list) => list.iter().take(1).for_each(|value| push("0", value)),
        _ => {}
    }
}

/// Applies a change; `false` if it changes nothing.
fn damaged(files: &mut Files, damage: &Damage) -> bool {
    let mut is_changed = false;
    edit(files, &damage.node, |node| {
        let (above, name) = damage.member.rsplit_once('/').unwrap();
        let parent = node.pointer_mut(above).unwrap();
        if damage.change == "removed" {
            match parent {
                Json::Object(object) => is_changed = object.remove(name).is_some(),
                Json::Array(list) => {
                    list.remove(0);
                    is_changed = true;
                }
                _ => {}
            }
            return;
        }
        let value = node.pointer_mut(&damage.member).unwrap();
        let new = if damage.change == "another type" {
            of_another_type(value)
        } else {
            another_value(value)
        };
        is_changed = *value != new;
        *value = new;
    });
    is_changed
}

fn of_another_type(value: &Json) -> Json {
    match value {
        Json::String(_) => json!(7),
        Json::Number(_) => json!("seven"),
        Json::Bool(_) => json!([]),
        Json::Array(_) => json!({}),
        Json::Object(_) | Json::Null => json!(true),
    }
}

fn another_value(value: &Json) -> Json {
    match value {
        Json::String(text) if text == "float32" => json!("float64"),
        Json::String(text) => json!(format!("{text}x")),
        Json::Number(number) if number.is_f64() => json!(number.as_f64().unwrap() + 1.5),
        Json::Number(number) => json!(number.as_i64().unwrap() + 1),
        Json::Bool(flag) => json!(!flag),
        Json::Array(list) => {
            let mut list = list.clone();
            list.extend(list.first().cloned());
            json!(list)
        }
        Json::Object(object) => {
            let unknown = [("unknown".to_owned(), json!("member"))];
            let all = object.clone().into_iter().chain(unknown);
            json!(all.collect::<Map<String, Json>>())
        }
        Json::Null => json!(0),
    }
}

fn in_memory(files: &Files) -> zvf::Store {
    OpenOptions::default().from_memory(files.clone()).unwrap()
}

/// Reads everything.
async fn read(files: &Files) -> Result<(), Error> {
    let dataset = Dataset::open(in_memory(files)).await?;
    dataset.query(&Query::new()).await?;
    Ok(tables(&dataset.catalog(), LevelId::FULL).await?)
}

/// Reads the tables of a level.
async fn tables(catalog: &Catalog<'_>, level: LevelId) -> Result<(), QueryError> {
    catalog.object_list(level).await?;
    catalog.group_list(level).await?;
    for name in catalog.attribute_list(level, Scope::Object).await?.iter() {
        catalog.object_values(level, name, None).await?;
    }
    for name in catalog.attribute_list(level, Scope::Group).await?.iter() {
        catalog.group_values(level, name, None).await?;
    }
    Ok(())
}

/// Adds geometry, removes an object of it, and compacts the store.
async fn change(files: &Files, addition: &GeometryBuilder, object: i64) -> Result<(), Error> {
    let editor = Editor::open(in_memory(files)).await?;
    editor
        .append(&addition.clone().build()?, OutOfBounds::Reject)
        .await?;
    editor.remove(&[object]).await?;
    editor.compact().await?;
    Ok(())
}

async fn migrate(files: &Files) -> Result<(), Error> {
    let dataset = Dataset::open(in_memory(files)).await?;
    migrated(&dataset, Profile::V09).await?;
    Ok(())
}

/// Returns whether validation reports an error.
async fn is_reported(files: &Files) -> bool {
    let report = validate(in_memory(files), &ValidateOptions::default()).await;
    report.map_or(true, |report| {
        let mut findings = report.findings.iter();
        findings.any(|finding| finding.rule.severity == Severity::Error)
    })
}

/// A part of the library that need not agree with queries about some damage.
struct Exemption {
    /// `editor`, `migration` or `both`.
    part: &'static str,
    /// Node; `*` is any name.
    node: &'static str,
    /// Start of the member and the change.
    member: &'static str,
    reason: &'static str,
}

impl Exemption {
    /// Returns whether a part need not agree about some damage, which queries may have read.
    fn covers(&self, part: &str, damage: &Damage, is_read: bool) -> bool {
        let names = || self.node.split('/');
        let found = || damage.node.split('/');
        let is_node = names().count() == found().count()
            && names()
                .zip(found())
                .all(|(name, found)| ["*", found].contains(&name));
        let change = format!("{} {}", damage.member, damage.change);
        // Damage that queries refuse is in a node that they read.
        let is_case = is_read || self.reason != UNREAD;
        (self.part == part || self.part == "both")
            && is_case
            && is_node
            && change.starts_with(self.member)
            && !self.reason.is_empty()
    }
}

/// Nodes that queries never read, but a change or a migration writes again.
const UNREAD: &str = "queries do not read the node; it is written again, with its unknown members";

const fn unread(part: &'static str, node: &'static str) -> Exemption {
    Exemption {
        part,
        node,
        member: "",
        reason: UNREAD,
    }
}

const EXEMPTIONS: &[Exemption] = &[
    unread("migration", "*/vertex_attributes"),
    unread("migration", "*/fragment_attributes"),
    unread("migration", "*/links"),
    unread("migration", "*/link_attributes"),
    unread("migration", "*/link_attributes/*"),
    unread("both", "*/link_attributes/*/*"),
    unread("both", "*/object_attributes"),
    unread("both", "*/group_attributes"),
    unread("migration", "parametric/object_attributes"),
    unread("migration", "parametric/group_attributes"),
    Exemption {
        part: "both",
        node: "*/link_fragments",
        member: "",
        reason: "queries read cells of links whole without their groups, which are written again",
    },
    Exemption {
        part: "migration",
        node: "*/vertices",
        member: "/attributes/nonempty_chunks/0 removed",
        reason: "fragments disagree as well, and are read before the object index",
    },
    Exemption {
        part: "migration",
        node: "*/vertices/*",
        member: "/attributes/shard_index/",
        reason: "fragments without vertices have no rows in queries of points; they are not copied",
    },
];

/// Cells with another number of rows, which edits of zarr-vectors leave, are migrated as they are.
const COPIED: &str = "do not divide into";

/// Reasons why a store that is read cannot be changed, beside the capabilities of edits.
const OWN_REASONS: &[&str] = &[
    // Queries need no bounds, but a vertex must not be written outside them.
    "no bounds",
    "lies outside the bounds",
    // Queries take links and paths as they are, but a plan of a change depends on the kind.
    "does not declare its kind of geometry",
    "only stores of 0.9 and 0.10 can be changed",
    // Queries return no value, but appended values would be assigned to earlier rows.
    "chunk 0.0 is missing",
    "chunk 0.0.0 is missing",
    // Queries ignore rows without an object, which a change would drop.
    "more rows than there are objects",
    // Codes without a dictionary are numbers.
    "in the store, but text in the addition",
];

/// Number of the damages of a store that are skipped between two that are tested.
fn step() -> usize {
    let scale = usize::from(zvf_testkit::sample::cases(1_u16));
    12_usize.div_ceil(scale)
}

fn check(kind: GeometryKind, first: usize) {
    block_on(async {
        let whole = store(kind).await;
        // Geometry in each chunk.
        let addition = geometry(kind, 20);
        read(&whole).await.unwrap();
        change(&whole, &addition, 20).await.unwrap();
        migrate(&whole).await.unwrap();
        assert!(!is_reported(&whole).await);
        let (mut faults, mut refused) = (Vec::new(), 0);
        for damage in all_damage(&whole).iter().skip(first).step_by(step()) {
            let mut files = whole.clone();
            if !damaged(&mut files, damage) {
                continue;
            }
            let answers = Answers {
                reader: read(&files).await.map_err(Refusal::from),
                editor: change(&files, &addition, 20).await.map_err(Refusal::from),
                migration: migrate(&files).await.map_err(Refusal::from),
                is_reported: is_reported(&files).await,
            };
            refused += usize::from(answers.reader.is_err());
            answers.compare("", damage, &mut faults);
        }
        assert!(refused > 10, "{refused}");
        let count = faults.len();
        assert!(faults.is_empty(), "{count} faults\n{}", faults.join("\n"));
    });
}

/// Whether the reader, the editor and the migration accept a store, and the validator reports it.
struct Answers {
    reader: Result<(), Refusal>,
    editor: Result<(), Refusal>,
    migration: Result<(), Refusal>,
    is_reported: bool,
}

impl Answers {
    /// Adds a line for each part that disagrees with queries.
    fn compare(&self, store: &str, damage: &Damage, faults: &mut Vec<String>) {
        let parts = [("editor", &self.editor), ("migration", &self.migration)];
        let reader = self.reader.as_ref();
        let is_read = reader.is_ok();
        let copied = reader.is_err_and(|error| error.text.contains(COPIED));
        let parts = parts.iter().filter(|(part, result)| {
            let is_copied = copied && *part == "migration" && result.is_ok();
            let mut exemptions = EXEMPTIONS.iter();
            !(is_copied || exemptions.any(|exemption| exemption.covers(part, damage, is_read)))
        });
        let damage = format!("{store} {damage}");
        let Err(reader) = reader else {
            let refusals = parts.filter_map(|(part, result)| Some((part, result.as_ref().err()?)));
            for (part, other) in refusals {
                let mut reasons = OWN_REASONS.iter();
                if !reasons.any(|reason| other.text.contains(reason)) {
                    faults.push(format!("{damage}: read, but {part} {other}"));
                }
            }
            return;
        };
        for (part, other) in parts {
            if !other.as_ref().is_err_and(|other| reader.is_same(other)) {
                faults.push(format!("{damage}: queries {reader}, {part} {other:?}"));
            }
        }
        if !self.is_reported {
            faults.push(format!("{damage}: not reported: {reader}"));
        }
    }
}

#[test]
fn nodes_of_points_have_one_meaning() {
    check(GeometryKind::Points, 0);
}

#[test]
fn nodes_of_polylines_have_one_meaning() {
    check(GeometryKind::Polylines, 2);
}

#[test]
fn nodes_of_skeletons_have_one_meaning() {
    check(GeometryKind::Skeletons, 4);
}

#[test]
fn nodes_of_graphs_have_one_meaning() {
    check(GeometryKind::Graphs, 6);
}

#[test]
fn nodes_of_meshes_have_one_meaning() {
    check(GeometryKind::Mesh, 8);
}

#[test]
fn nodes_of_lines_have_one_meaning() {
    check(GeometryKind::Lines, 1);
}

#[test]
fn nodes_of_streamlines_have_one_meaning() {
    check(GeometryKind::Streamlines, 3);
}
