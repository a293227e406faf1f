//! Arrays of a partly rebuilt level: their current cells, and the cells to delete.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use zvf_build::Output;
use zvf_format::path::Delta;
use zvf_model::{grid::ChunkCoord, key::Key, level::LevelId};
use zvf_store::Read;

use super::super::{build::Build, tally::Part};
use crate::{
    failure::Failure,
    nodes,
    writer::encode::{Arrays, text},
};

/// Upper bound on the files of a level.
const MAX_FILES: usize = 1 << 26;

/// The previous arrays of the level, by path.
pub(super) struct PreviousArrays {
    nodes: BTreeMap<String, Value>,
    /// Paths of the groups of the level.
    groups: BTreeSet<String>,
    /// Paths of the links to coarser levels, which are rebuilt with those levels.
    to_coarser: Vec<String>,
}

/// Folders of a level whose groups exist only while they contain an array.
const FAMILIES: [&str; 4] = [
    "vertex_attributes",
    "fragment_attributes",
    "links",
    "link_attributes",
];

impl PreviousArrays {
    /// Reads the nodes of the level's arrays, and of the links to the level; `None` if an array is
    /// sharded.
    pub(super) async fn read(build: &Build<'_>) -> Result<Option<Self>, Failure> {
        let store = build.source.dataset.store();
        let mut folders = vec![build.target.to_string()];
        for from in 0..build.target.number() {
            let step = i32::try_from(build.target.number() - from).unwrap_or(i32::MAX);
            folders.push(format!("{from}/links/{}", Delta::new(step)));
        }
        let (mut paths, mut to_coarser) = (Vec::new(), Vec::new());
        for folder in folders {
            let key = nodes::named(Key::parse(&folder), &folder)?;
            for file in store.list_all(&key, MAX_FILES).await? {
                let is_up = folder == build.target.to_string() && file.name.starts_with("links/+");
                if let Some(path) = file.name.strip_suffix("/zarr.json") {
                    let paths = if is_up { &mut to_coarser } else { &mut paths };
                    paths.push(format!("{folder}/{path}"));
                }
            }
        }
        let mut reads = Vec::new();
        for path in &paths {
            let key = nodes::named(Key::parse(path), path)?;
            reads.push(Read::full(nodes::metadata(&key)?));
        }
        let (mut found, mut groups) = (BTreeMap::new(), BTreeSet::new());
        for (path, bytes) in paths.into_iter().zip(store.read(&reads).await?) {
            let json: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let Some(json) = json else { continue };
            if listed(&json).is_some() {
                if json.to_string().contains("sharding_indexed") {
                    // A rebuilt shard would have to contain the unchanged cells as well.
                    return Ok(None);
                }
                found.insert(path, json);
            } else if json["node_type"] == "group" {
                groups.insert(path);
            }
        }
        Ok(Some(Self {
            nodes: found,
            groups,
            to_coarser,
        }))
    }

    /// Writes the current nodes of all arrays and deletes obsolete cells. Returns `false` if an
    /// array cannot hold the new cells beside the unchanged ones.
    pub(super) async fn merge(
        &self,
        build: &mut Build<'_>,
        stale: &BTreeSet<ChunkCoord>,
        attributes: &BTreeMap<String, Map<String, Value>>,
    ) -> Result<bool, Failure> {
        let mut put = std::mem::take(&mut build.tally.put);
        let none = Map::new();
        let required = build.required();
        let mut outputs = Vec::new();
        for (path, before) in &self.nodes {
            let part = put.remove(path).unwrap_or_default();
            let new: BTreeSet<Vec<i64>> = part.chunks.iter().cloned().collect();
            let mut chunks: Vec<Vec<i64>> = Vec::new();
            let mut removed: Vec<Vec<i64>> = Vec::new();
            for chunk in listed(before).unwrap_or_default() {
                match () {
                    () if new.contains(&chunk) => {}
                    () if is_stale(build, path, before, &chunk, stale) => removed.push(chunk),
                    () => chunks.push(chunk),
                }
            }
            self.delete(build, path, before, &removed).await?;
            chunks.extend(new);
            if chunks.is_empty() && !required.contains(path) {
                let key = nodes::named(Key::parse(path), path)?;
                build.transaction().delete(nodes::metadata(&key)?).await?;
                continue;
            }
            let own = before.get("attributes").cloned().map(own_attributes);
            let known = attributes.get(path);
            let whole = Part {
                chunks,
                // The attributes of the finer level take precedence.
                attributes: part.attributes.or(own.filter(|_| known.is_none())),
            };
            let old = known.unwrap_or(&none);
            let node = whole.node(build.shared_of(path), path, old)?;
            if let Output::Node { json, .. } = &node {
                let same = |key: &str| json.get(key) == before.get(key);
                let origin = |json: &Value| json.pointer("/attributes/chunk_grid_origin").cloned();
                if !same("shape") || origin(json) != origin(before) || !is_compatible(before, json)
                {
                    return Ok(false);
                }
            }
            build.tally.families.insert(path.clone());
            outputs.push(node);
        }
        for (path, part) in put {
            let old = attributes.get(&path).unwrap_or(&none);
            outputs.push(part.node(build.shared_of(&path), &path, old)?);
            build.tally.families.insert(path);
        }
        let objects = outputs.into_iter().map(|output| match output {
            Output::Node { path, json } => {
                let key = nodes::named(Key::parse(&path).and_then(|key| key.metadata()), &path)?;
                Ok((key, text(&json)))
            }
            Output::Cell { array, .. } => Err(Failure::NoCells {
                node: nodes::named(Key::parse(&array), &array)?,
            }),
        });
        let objects = objects.collect::<Result<Vec<_>, Failure>>()?;
        build.writer.put(objects).await?;
        self.delete_groups(build).await?;
        Ok(true)
    }

    /// Deletes groups that have no array any more. Groups that a level has even without arrays are
    /// written afterwards.
    async fn delete_groups(&self, build: &mut Build<'_>) -> Result<(), Failure> {
        let families = build.families();
        for path in &self.groups {
            let folder = path.split('/').nth(1);
            let is_of_family = folder.is_some_and(|folder| FAMILIES.contains(&folder));
            let mut left = families.iter().chain(&self.to_coarser);
            let has_array = left.any(|left| {
                let below = left.strip_prefix(path.as_str());
                below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
            });
            if is_of_family && !has_array {
                let key = nodes::named(Key::parse(path), path)?;
                build.transaction().delete(nodes::metadata(&key)?).await?;
            }
        }
        Ok(())
    }

    async fn delete(
        &self,
        build: &mut Build<'_>,
        path: &str,
        before: &Value,
        removed: &[Vec<i64>],
    ) -> Result<(), Failure> {
        if removed.is_empty() {
            return Ok(());
        }
        let node = Output::Node {
            path: path.to_owned(),
            json: before.clone(),
        };
        let array = Arrays::of(&[node])?.get(path)?;
        for chunk in removed {
            let index = nodes::element(&array, chunk)?;
            let (key, _) = array.locate(&index).map_err(|source| Failure::Index {
                node: array.node().clone(),
                source,
            })?;
            build.transaction().delete(key).await?;
        }
        Ok(())
    }
}

/// Returns whether unchanged cells keep their meaning: the same type and shape, and words that are
/// only appended.
fn is_compatible(before: &Value, now: &Value) -> bool {
    let attributes =
        |json: &Value, name: &str| json.pointer(&format!("/attributes/{name}")).cloned();
    let words = |json: &Value| match attributes(json, "categories") {
        Some(Value::Array(words)) => words,
        _ => Vec::new(),
    };
    let same = |name: &str| attributes(before, name) == attributes(now, name);
    same("dtype")
        && same("row_shape")
        && same("_FillValue")
        && words(now).starts_with(&words(before))
}

/// Returns the attributes of an array without its chunks.
fn own_attributes(attributes: Value) -> Value {
    let mut attributes = attributes;
    if let Some(map) = attributes.as_object_mut() {
        map.remove("nonempty_chunks");
        map.remove("chunk_grid_origin");
    }
    attributes
}

/// Returns the chunks that an array declares as non-empty.
fn listed(json: &Value) -> Option<Vec<Vec<i64>>> {
    let names = json.pointer("/attributes/nonempty_chunks")?.as_array()?;
    let names = names.iter().map(|name| {
        let numbers = name.as_str()?.split('.').map(|number| number.parse().ok());
        numbers.collect::<Option<Vec<i64>>>()
    });
    names.collect()
}

/// Returns whether a cell depends on a stale chunk.
fn is_stale(
    build: &Build<'_>,
    path: &str,
    before: &Value,
    chunk: &[i64],
    stale: &BTreeSet<ChunkCoord>,
) -> bool {
    let level = path.split('/').next().and_then(LevelId::parse);
    let own = ChunkCoord::new(chunk.to_vec());
    if level != Some(build.target) {
        // Links from a finer level, whose chunks are finer too.
        let coarse = build.coarse_of(level, &own);
        return coarse.is_none_or(|coarse| stale.contains(&coarse));
    }
    if stale.contains(&own) {
        return true;
    }
    let delta = before
        .pointer("/attributes/level_delta")
        .and_then(Value::as_i64);
    if delta != Some(0) {
        return false;
    }
    let offsets = before
        .pointer("/attributes/offsets")
        .and_then(Value::as_array);
    offsets.into_iter().flatten().any(|offset| {
        let offset = offset
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_i64);
        let other: Vec<i64> = chunk.iter().zip(offset).map(|(at, by)| at + by).collect();
        stale.contains(&ChunkCoord::new(other))
    })
}
