//! Arrays of a partly rebuilt level: their current cells, and the cells to delete.

use std::collections::{BTreeMap, BTreeSet};

use zvf_build::Output;
use zvf_dataset::{
    Failure,
    nodes::{self, cell_array, place},
};
use zvf_format::path::Delta;
use zvf_model::{
    array::{CellAttribute, Presence},
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, GroupRole, LevelKeys},
    level::LevelId,
    metadata::Attributes,
    scope::Scope,
    zarr::{Array, Node},
};
use zvf_store::Read;
use zvf_write::writer::encode::bytes_of;

use super::super::{build::Build, tally::Part};

/// Upper bound on the files of a level.
const MAX_FILES: usize = 1 << 26;

/// The previous arrays of the level, by key.
pub(super) struct PreviousArrays {
    nodes: BTreeMap<Key, Array>,
    /// Groups of the level.
    groups: BTreeSet<Key>,
    /// Links to coarser levels, which are rebuilt with those levels.
    to_coarser: Vec<Key>,
}

impl PreviousArrays {
    /// Reads the nodes of the level's arrays, and of the links to the level; `None` if an array is
    /// sharded.
    pub(super) async fn read(build: &Build<'_>) -> Result<Option<Self>, Failure> {
        let store = build.source.dataset.store();
        let keys = build.shared.coarse.keys;
        let level = place(keys.level())?;
        let mut folders = vec![level.clone()];
        for from in 0..build.target.number() {
            let step = i32::try_from(build.target.number() - from).unwrap_or(i32::MAX);
            let from = LevelKeys {
                level: LevelId::new(from),
                ..keys
            };
            let family = ArrayRole::LinkFamily(Delta::new(step));
            folders.push(place(from.node(&family))?);
        }
        let links = place(keys.group(GroupRole::Links))?;
        let is_up = |key: &Key| {
            let delta = key.segments().nth(2).map(Delta::parse);
            key.is_below(&links) && matches!(delta, Some(Ok(delta)) if delta.levels() > 0)
        };
        let (mut found, mut to_coarser) = (Vec::new(), Vec::new());
        for folder in folders {
            for file in store.list_all(&folder, MAX_FILES).await? {
                if let Some(path) = file.name.strip_suffix("/zarr.json") {
                    let key = nodes::below(&folder, path)?;
                    let keys = if is_up(&key) {
                        &mut to_coarser
                    } else {
                        &mut found
                    };
                    keys.push(key);
                }
            }
        }
        let files: Vec<Key> = found
            .iter()
            .map(nodes::metadata)
            .collect::<Result<_, _>>()?;
        let reads: Vec<Read> = files.iter().cloned().map(Read::full).collect();
        let (mut arrays, mut groups) = (BTreeMap::new(), BTreeSet::new());
        let read = files.iter().zip(store.read(&reads).await?);
        for (key, (file, bytes)) in found.into_iter().zip(read) {
            let Some(bytes) = bytes else { continue };
            match Node::parse(file, &bytes)? {
                Node::Group(_) => drop(groups.insert(key)),
                Node::Array(array) if !Presence::is_listed(&array.attributes) => {
                    // The chunks of other arrays are not known.
                    if !build.shared.coarse.keys.is_table(&key) {
                        return Ok(None);
                    }
                }
                // A rebuilt shard would have to contain the unchanged cells as well.
                Node::Array(array) if array.sharding().is_some() => return Ok(None),
                Node::Array(array) => drop(arrays.insert(key, array)),
            }
        }
        Ok(Some(Self {
            nodes: arrays,
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
        attributes: &BTreeMap<Key, Attributes>,
    ) -> Result<bool, Failure> {
        let mut put = std::mem::take(&mut build.tally.put);
        let none = Attributes::new();
        let required = build.required()?;
        let mut outputs = Vec::new();
        for (key, before) in &self.nodes {
            let part = put.remove(key).unwrap_or_default();
            let new: BTreeSet<Vec<i64>> = part.chunks.iter().cloned().collect();
            let mut chunks: Vec<Vec<i64>> = Vec::new();
            let mut removed: Vec<Vec<i64>> = Vec::new();
            let described = values_of(key, before);
            let presence = Presence::parse(key, before, before.rank())?.value;
            for chunk in presence.chunks() {
                let coords = chunk.coords().to_vec();
                if new.contains(&coords) {
                    continue;
                }
                if is_stale(build, key, described.as_ref(), &chunk, stale) {
                    removed.push(coords);
                } else {
                    chunks.push(coords);
                }
            }
            delete(build, key, before, &removed).await?;
            chunks.extend(new);
            if chunks.is_empty() && !required.contains(key) {
                build.transaction().delete(nodes::metadata(key)?).await?;
                continue;
            }
            let mut own = before.attributes.clone();
            Presence::remove(&mut own);
            let known = attributes.get(key);
            let whole = Part {
                chunks,
                // The attributes of the finer level take precedence.
                attributes: part.attributes.or(known.is_none().then_some(own)),
            };
            let old = known.unwrap_or(&none);
            let output = whole.node(build.shared_of(key), key, old)?;
            if let Output::Node {
                node: Node::Array(now),
                ..
            } = &output
            {
                let now_listed = Presence::parse(key, now, now.rank())?.value;
                let now_described = values_of(key, now);
                let is_same_grid = now_listed.grid() == presence.grid();
                if !is_same_grid || !is_compatible(described.as_ref(), now_described.as_ref()) {
                    return Ok(false);
                }
            }
            build.tally.families.insert(key.clone());
            outputs.push(output);
        }
        for (key, part) in put {
            let old = attributes.get(&key).unwrap_or(&none);
            outputs.push(part.node(build.shared_of(&key), &key, old)?);
            build.tally.families.insert(key);
        }
        let generation = build.source.dataset.layout().generation;
        let objects = outputs
            .into_iter()
            .map(|output| match output {
                Output::Node { key, node } => {
                    Ok((nodes::metadata(&key)?, bytes_of(&key, node, generation)))
                }
                Output::Cell { array, .. } => Err(Failure::NoCells { node: array }),
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        build.writer.put(objects).await?;
        self.delete_groups(build).await?;
        Ok(true)
    }

    /// Deletes groups that have no array any more: those of links, and of attributes in cells. Groups
    /// that a level has even without arrays are written afterwards.
    async fn delete_groups(&self, build: &mut Build<'_>) -> Result<(), Failure> {
        let families = build.families();
        for group in &self.groups {
            let folder = group.segments().nth(1);
            let mut scopes = Scope::ALL.into_iter().filter(|scope| scope.is_in_cells());
            let is_of_family = folder == Some(GroupRole::Links.name())
                || scopes.any(|scope| folder == Some(scope.group().name()));
            let mut left = families.iter().chain(&self.to_coarser);
            let has_array = left.any(|left| left == group || left.is_below(group));
            if is_of_family && !has_array {
                build.transaction().delete(nodes::metadata(group)?).await?;
            }
        }
        Ok(())
    }
}

/// Deletes the cells of some chunks of an array.
async fn delete(
    build: &mut Build<'_>,
    node: &Key,
    array: &Array,
    removed: &[Vec<i64>],
) -> Result<(), Failure> {
    if removed.is_empty() {
        return Ok(());
    }
    let array = cell_array(node, array.clone())?;
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

/// Returns the description of the values in the cells of an array; `None` if they are no values, but
/// fragment indexes.
fn values_of(key: &Key, array: &Array) -> Option<CellAttribute> {
    let described = CellAttribute::parse(key, &array.attributes);
    described.ok().map(|described| described.value)
}

/// Returns whether unchanged cells keep their meaning: the same type and shape, and words that are
/// only appended.
fn is_compatible(before: Option<&CellAttribute>, now: Option<&CellAttribute>) -> bool {
    let (Some(before), Some(now)) = (before, now) else {
        return before.is_none() && now.is_none();
    };
    let words = |metadata: &CellAttribute| {
        let dictionary = metadata.dictionary.as_ref();
        dictionary.map_or_else(Vec::new, |dictionary| dictionary.categories.clone())
    };
    let fill = |metadata: &CellAttribute| metadata.dictionary.as_ref()?.fill;
    before.dtype == now.dtype
        && before.row_shape == now.row_shape
        && fill(before) == fill(now)
        && words(now).starts_with(&words(before))
}

/// Returns whether a cell depends on a stale chunk.
fn is_stale(
    build: &Build<'_>,
    node: &Key,
    described: Option<&CellAttribute>,
    chunk: &ChunkCoord,
    stale: &BTreeSet<ChunkCoord>,
) -> bool {
    let level = node.segments().next().and_then(LevelId::parse);
    if level != Some(build.target) {
        // Links from a finer level, whose chunks are finer too.
        let coarse = build.coarse_of(level, chunk);
        return coarse.is_none_or(|coarse| stale.contains(&coarse));
    }
    if stale.contains(chunk) {
        return true;
    }
    let Some(described) = described.filter(|described| described.level_delta == Some(0)) else {
        return false;
    };
    described.offsets.iter().flatten().any(|offset| {
        let steps = chunk.coords().iter().zip(offset);
        let other: Vec<i64> = steps.map(|(at, by)| at + by).collect();
        stale.contains(&ChunkCoord::new(other))
    })
}
