//! The dialect in which generation 0.10 writes attributes: the Zarr Vectors convention.
//!
//! Everything else in this workspace knows attributes as 0.9 has them. [`read`] converts the attributes of a
//! node of 0.10 when it is parsed, and [`stored`] converts them back when it is written; both leave
//! attributes of other generations unchanged.
//!
//! | node | 0.10 | as 0.9 has it |
//! |---|---|---|
//! | every node with a role | an entry in `zarr_conventions` | kept, as the mark of the dialect |
//! | root | `zarr_vectors` of kind `root`, with `axes` | `zarr_vectors`, and `multiscales[0].axes` |
//! | root | `multiscales.layout`, a list of `asset` | `multiscales[0].datasets`, a list of `path` |
//! | root | `proj:projjson`, `proj:code` or `proj:wkt2` | `zarr_vectors.crs` |
//! | level | `zarr_vectors` of kind `level` | `zarr_vectors_level` |
//! | arrays and families | `zarr_vectors` of their kind | members of the attributes, and `zv_array` |
//!
//! A null is an absent member. Members of `zarr_vectors` that the format does not define stay in it, and
//! attributes of other programs stay beside it. A layout has no transforms: those of others are kept but never
//! applied, and those of 0.9 are not written, because the bins are members of the level.

use serde_json::Value;

use super::{
    Attributes, Excerpt, Fields, JsonMembers, MetadataError, MetadataFault,
    places::{
        BLOCK, CONVENTIONS, ENTRY, KIND, LEVEL_BLOCK, MEMBERS, MULTISCALES, OLD_TAG, TAG, TYPES,
        UUID, ZARR_VECTORS_UUID, entries, is_of,
    },
};
use crate::{generation::Generation, key::Key};

pub(crate) use super::places::{is_marked, place};

/// Key of the `zarr.json` of the root.
const METADATA: &str = "zarr.json";
const ROOT: &str = "root";
const LEVEL: &str = "level";
const PARAMETRIC: &str = "parametric";
const CRS: &str = "crs";
const USER_METADATA: &str = "user_metadata";
const TRANSFORMS: &str = "coordinateTransformations";
/// Attributes of a coordinate reference system, in the order in which readers take them.
const PROJJSON: &str = "proj:projjson";
const CODE: &str = "proj:code";
const WKT2: &str = "proj:wkt2";

const MULTISCALES_UUID: &str = "d35379db-88df-4056-af3a-620245f8e347";
const PROJ_UUID: &str = "f17cb550-5864-4468-aeb7-f3180cfb622f";

/// A kind of node, and its tag in 0.9.
const KINDS: [(&str, &str); 15] = [
    ("vertices", "vertices"),
    ("vertex_fragments", "vertex_fragments"),
    ("link_fragments", "link_fragments"),
    ("links", "links"),
    ("links_family", "links_family"),
    ("vertex_attribute", "attribute"),
    ("fragment_attribute", "fragment_attribute"),
    ("link_attribute", "link_attribute"),
    ("link_attribute_family", "link_attribute_family"),
    ("object_index", "object_index"),
    ("object_attribute", "object_attribute"),
    ("groups", "groups"),
    ("group_attribute", "groupings_attribute"),
    ("parametric_objects", "parametric_objects"),
    ("parametric_names", "parametric_names"),
];

/// Member of the entry that [`read`] adds to a node without one. It is never stored.
const MISSING: &str = "zvf_missing";

/// Changes the members of the format in the stored attributes of a node, in either dialect.
pub(crate) fn change_members(attributes: &mut Attributes, change: impl FnOnce(&mut Attributes)) {
    match attributes.get_mut(BLOCK) {
        Some(Value::Object(block)) if block.get(KIND).is_some_and(Value::is_string) => {
            change(block);
        }
        _ => change(attributes),
    }
}

/// Converts the stored attributes of node `key`, or of its `zarr.json`, if they are of 0.10.
///
/// A node without the entry in `zarr_conventions` counts as one of 0.10 if `zarr_vectors` has a kind.
pub(crate) fn read(key: &Key, attributes: &mut Attributes) -> Result<(), MetadataError> {
    let kind = {
        let fields = Fields::attributes(key, attributes);
        refuse_required(&fields)?;
        let block = fields.get(BLOCK);
        let has_kind = block
            .as_ref()
            .and_then(|block| block.value().get(KIND))
            .is_some_and(Value::is_string);
        if !has_kind && !is_marked(attributes) {
            return Ok(());
        }
        let at = fields.require(BLOCK)?.fields()?.require(KIND)?;
        let kind = at.text()?;
        let is_root = key.is_root() || key.as_str() == METADATA;
        if is_root && kind != ROOT {
            return Err(at.disagrees("the node's place"));
        }
        if let Some(scales) = fields.get(MULTISCALES).filter(|_| kind == ROOT) {
            scales.fields()?;
        }
        let is_known = [ROOT, LEVEL, PARAMETRIC].contains(&kind)
            || KINDS.iter().any(|(known, _)| *known == kind);
        if !is_known {
            return Err(at.unknown_word(kind, "a kind of node"));
        }
        kind.to_owned()
    };
    let Some(Value::Object(mut block)) = attributes.remove(BLOCK) else {
        return Ok(());
    };
    if !is_marked(attributes) {
        let entry = JsonMembers::default()
            .with(UUID, ZARR_VECTORS_UUID)
            .with(MISSING, true);
        push(attributes, entry);
    }
    block.remove(KIND);
    block.retain(|_, value| !value.is_null());
    match kind.as_str() {
        ROOT => read_root(attributes, block),
        LEVEL => {
            attributes.insert(LEVEL_BLOCK.to_owned(), block.into());
        }
        kind => read_array(attributes, block, kind),
    }
    Ok(())
}

/// Adds an entry to the list of conventions.
fn push(attributes: &mut Attributes, entry: JsonMembers) {
    let mut list: Vec<Value> = entries(attributes).cloned().collect();
    list.push(entry.into());
    attributes.insert(CONVENTIONS.to_owned(), list.into());
}

/// Removes the marks of entries that the node did not have.
fn complete(attributes: &mut Attributes) {
    let list = attributes
        .get_mut(CONVENTIONS)
        .and_then(Value::as_array_mut);
    for entry in list.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.remove(MISSING);
    }
}

/// Returns the list of conventions that node `key` of 0.10 should have, if its own lacks one.
pub(crate) fn missing_conventions(key: &Key, attributes: &Attributes) -> Option<Value> {
    if !is_marked(attributes) {
        return None;
    }
    let mut marked = attributes.clone();
    mark(key, &mut marked);
    complete(&mut marked);
    let list = marked.remove(CONVENTIONS)?;
    (attributes.get(CONVENTIONS) != Some(&list)).then_some(list)
}

fn read_root(attributes: &mut Attributes, mut block: Attributes) {
    let mut scales = match attributes.remove(MULTISCALES) {
        Some(Value::Object(scales)) => scales,
        _ => Attributes::new(),
    };
    let layout = scales.remove(ENTRY);
    // Not those of another form of `multiscales`.
    scales.retain(|name, _| !["axes", "datasets"].contains(&name.as_str()));
    let datasets = layout.map(|layout| match layout {
        Value::Array(entries) => entries.into_iter().map(dataset).collect(),
        other => other,
    });
    let scale = JsonMembers::of(scales)
        .with_some("axes", block.remove("axes"))
        .with_some("datasets", datasets);
    for name in [PROJJSON, CODE, WKT2] {
        let crs = attributes.get(name).filter(|crs| !crs.is_null());
        if crs.is_some() && !block.contains_key(CRS) {
            let crs = attributes.remove(name).unwrap_or_default();
            block.insert(CRS.to_owned(), crs);
        }
    }
    attributes.insert(BLOCK.to_owned(), block.into());
    attributes.insert(MULTISCALES.to_owned(), vec![Value::from(scale)].into());
}

/// Returns the dataset of an entry in the layout. Its other members are kept where no reader applies them.
fn dataset(entry: Value) -> Value {
    match entry {
        Value::Object(mut entry) => {
            let path = entry.remove("asset");
            JsonMembers::default()
                .with_some("path", path)
                .with_some(ENTRY, (!entry.is_empty()).then_some(entry))
                .into()
        }
        other => other,
    }
}

fn read_array(attributes: &mut Attributes, block: Attributes, kind: &str) {
    let tag = KINDS.iter().find(|(known, _)| *known == kind);
    if let Some((_, tag)) = tag {
        attributes.insert(TAG.to_owned(), (*tag).into());
    }
    let mut rest = Attributes::new();
    for (name, value) in block {
        if MEMBERS.contains(&name.as_str()) {
            attributes.insert(name, value);
        } else {
            rest.insert(name, value);
        }
    }
    if !rest.is_empty() {
        attributes.insert(BLOCK.to_owned(), rest.into());
    }
}

/// Returns the attributes of a node as they are stored: those of a [marked](is_marked) node in the dialect of
/// 0.10, and others unchanged.
pub(crate) fn stored(attributes: &Attributes) -> Attributes {
    let mut stored = attributes.clone();
    if !is_marked(attributes) {
        return stored;
    }
    complete(&mut stored);
    if let Some(Value::Object(block)) = stored.remove(LEVEL_BLOCK) {
        put_block(&mut stored, LEVEL, block);
    } else if let Some(kind) = kind_of(&stored) {
        let mut block = match stored.remove(BLOCK) {
            Some(Value::Object(rest)) => rest,
            _ => Attributes::new(),
        };
        stored.remove(TAG);
        stored.remove(OLD_TAG);
        for name in MEMBERS {
            if let Some(value) = stored.remove(name) {
                block.insert(name.to_owned(), value);
            }
        }
        put_block(&mut stored, kind, block);
    } else if stored.contains_key(BLOCK) {
        store_root(&mut stored);
    }
    stored
}

/// Returns the kind of an array or family; `None` for other nodes.
fn kind_of(attributes: &Attributes) -> Option<&'static str> {
    let tag = attributes
        .get(TAG)
        .or_else(|| attributes.get(OLD_TAG))
        .and_then(Value::as_str);
    let known = KINDS.iter().find(|(_, known)| Some(*known) == tag);
    match known {
        Some((kind, _)) => Some(*kind),
        None => attributes.contains_key(TYPES).then_some(PARAMETRIC),
    }
}

fn put_block(attributes: &mut Attributes, kind: &str, mut block: Attributes) {
    block.retain(|_, value| !value.is_null());
    let block = JsonMembers::default().with(KIND, kind).with_all(&block);
    attributes.insert(BLOCK.to_owned(), block.into());
}

fn store_root(attributes: &mut Attributes) {
    let Some(Value::Object(mut block)) = attributes.remove(BLOCK) else {
        return;
    };
    let mut scales = match attributes.remove(MULTISCALES) {
        Some(Value::Array(mut scales)) if !scales.is_empty() => match scales.swap_remove(0) {
            Value::Object(scales) => scales,
            _ => Attributes::new(),
        },
        _ => Attributes::new(),
    };
    remove_form(&mut scales);
    let layout = scales.remove("datasets").map(|datasets| match datasets {
        Value::Array(datasets) => datasets.into_iter().map(entry).collect(),
        other => other,
    });
    if let Some(axes) = scales.remove("axes") {
        block.insert("axes".to_owned(), axes);
    }
    if let Some(name) = block.get(CRS).and_then(crs_name) {
        let crs = block.remove(CRS).unwrap_or_default();
        attributes.insert(name.to_owned(), crs);
    }
    if let Some(own) = block.remove(USER_METADATA) {
        attributes.entry(USER_METADATA).or_insert(own);
    }
    let scales = JsonMembers::default()
        .with_some(ENTRY, layout)
        .with_all(&scales);
    attributes.insert(MULTISCALES.to_owned(), scales.into());
    put_block(attributes, ROOT, block);
}

/// Returns the entry in the layout of a dataset.
fn entry(dataset: Value) -> Value {
    match dataset {
        Value::Object(mut dataset) => {
            let asset = dataset.remove("path");
            dataset.remove(TRANSFORMS);
            let members = match dataset.remove(ENTRY) {
                Some(Value::Object(members)) => members,
                _ => Attributes::new(),
            };
            JsonMembers::default()
                .with_some("asset", asset)
                .with_all(&members)
                .with_all(&dataset)
                .into()
        }
        other => other,
    }
}

/// Returns the attribute of a coordinate reference system; `None` if the convention has none for it.
fn crs_name(crs: &Value) -> Option<&'static str> {
    match crs {
        Value::Object(_) => Some(PROJJSON),
        Value::String(text) => {
            let is_code =
                text.split(':').count() == 2 && !text.starts_with(':') && !text.ends_with(':');
            Some(if is_code && !text.contains('[') {
                CODE
            } else {
                WKT2
            })
        }
        _ => None,
    }
}

/// Removes the members by which viewers recognise `multiscales` of 0.9.
fn remove_form(scales: &mut Attributes) {
    scales.remove("version");
    if scales.get("name").and_then(Value::as_str) == Some("default") {
        scales.remove("name");
    }
    scales.remove("metadata");
}

/// Marks the attributes of node `key`, for a store of this generation, or removes the mark.
pub(crate) fn adapt(key: &Key, attributes: &mut Attributes, generation: Generation) {
    if generation >= Generation::V0_10 {
        mark(key, attributes);
    } else {
        remove(key, attributes);
    }
}

/// Adds the entries of the conventions to a node that has a role.
fn mark(key: &Key, attributes: &mut Attributes) {
    if let Some(tag) = parametric_tag(key) {
        attributes.entry(TAG).or_insert_with(|| tag.into());
    }
    let is_root = key.is_root() && attributes.get(BLOCK).is_some_and(Value::is_object);
    if !is_root && !attributes.contains_key(LEVEL_BLOCK) && kind_of(attributes).is_none() {
        return;
    }
    let short = || JsonMembers::default().with(UUID, ZARR_VECTORS_UUID);
    let mut needed = Vec::new();
    if is_root {
        needed.push((ZARR_VECTORS_UUID, short().with("name", BLOCK)));
        needed.push((
            MULTISCALES_UUID,
            registered(
                MULTISCALES_UUID,
                MULTISCALES,
                "Multiscale layout of zarr datasets",
            ),
        ));
        let crs = attributes.get(BLOCK).and_then(|block| block.get(CRS));
        if crs.and_then(crs_name).is_some() {
            let what = "Coordinate reference system information for geospatial data";
            needed.push((PROJ_UUID, registered(PROJ_UUID, "proj", what)));
        }
    } else {
        needed.push((ZARR_VECTORS_UUID, short()));
    }
    for (uuid, entry) in needed {
        if !entries(attributes).any(|known| is_of(known, uuid)) {
            push(attributes, entry);
        }
    }
}

/// Returns the entry of a registered convention, whose name is that of its repository.
fn registered(uuid: &str, name: &str, description: &str) -> JsonMembers {
    let raw = "https://raw.githubusercontent.com/zarr-conventions";
    let schema = format!("{raw}/{name}/refs/tags/v0.1/schema.json");
    let spec = format!("https://github.com/zarr-conventions/{name}/blob/v0.1/README.md");
    JsonMembers::default()
        .with(UUID, uuid)
        .with("schema_url", schema)
        .with("spec_url", spec)
        .with("name", name)
        .with("description", description)
}

/// Removes what only a node of 0.10 has.
fn remove(key: &Key, attributes: &mut Attributes) {
    if !is_marked(attributes) {
        return;
    }
    if parametric_tag(key).is_some() {
        attributes.remove(TAG);
    }
    let own = [ZARR_VECTORS_UUID, MULTISCALES_UUID, PROJ_UUID];
    if let Some(Value::Array(list)) = attributes.get_mut(CONVENTIONS) {
        list.retain(|entry| !own.iter().any(|uuid| is_of(entry, uuid)));
        if list.is_empty() {
            attributes.remove(CONVENTIONS);
        }
    }
    if key.is_root() {
        restore_form(attributes);
    } else if let Some(Value::Object(rest)) = attributes.remove(BLOCK) {
        for (name, value) in rest {
            attributes.entry(name).or_insert(value);
        }
    }
}

/// Adds the members by which viewers recognise `multiscales` of 0.9.
fn restore_form(attributes: &mut Attributes) {
    let scale = attributes
        .get_mut(MULTISCALES)
        .and_then(|all| all.get_mut(0));
    let Some(scale) = scale.and_then(Value::as_object_mut) else {
        return;
    };
    let format = JsonMembers::default().with("format", BLOCK);
    let form: [(&str, Value); 3] = [
        ("version", "0.4".into()),
        ("name", "default".into()),
        ("metadata", format.into()),
    ];
    for (name, value) in form {
        scale.entry(name).or_insert(value);
    }
    let datasets = scale.get_mut("datasets").and_then(Value::as_array_mut);
    for dataset in datasets.into_iter().flatten() {
        if let Some(dataset) = dataset.as_object_mut() {
            dataset.remove(ENTRY);
        }
    }
}

/// Returns the tag of a table of parametric objects, which has none in 0.9.
fn parametric_tag(key: &Key) -> Option<&'static str> {
    let mut names = key.as_str().split('/');
    if names.next() != Some(PARAMETRIC) {
        return None;
    }
    match (names.next(), names.next(), names.next()) {
        (Some("groups"), None, _) => Some("groups"),
        (Some("object_attributes"), Some(_), None) => Some("object_attribute"),
        (Some("group_attributes"), Some(_), None) => Some("groupings_attribute"),
        _ => None,
    }
}

/// Fails if a convention that a reader has to implement is unknown.
fn refuse_required(fields: &Fields<'_>) -> Result<(), MetadataError> {
    let Some(list) = fields.get(CONVENTIONS) else {
        return Ok(());
    };
    let Ok(entries) = list.items() else {
        return Ok(());
    };
    let known = [ZARR_VECTORS_UUID, MULTISCALES_UUID, PROJ_UUID];
    for at in entries {
        let entry = at.value();
        let is_required = entry.get("must_understand") == Some(&Value::Bool(true));
        if is_required && !known.iter().any(|uuid| is_of(entry, uuid)) {
            let names = ["name", UUID, "schema_url", "spec_url"];
            let mut names = names.iter().filter_map(|name| entry.get(*name)?.as_str());
            let name = Excerpt::of(names.next().unwrap_or("without a name"));
            return Err(at.error(MetadataFault::Convention(name)));
        }
    }
    Ok(())
}
