//! Repair of findings that have one correct value.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::{Map, Value};
use zvf_build::Output;
use zvf_dataset::{Error, Failure, Location, StateError, nodes};
use zvf_model::{
    fetch::BoxFuture,
    generation::Generation,
    key::Key,
    level::LevelId,
    node_copy::MEMBER,
    zarr::{self, Node},
};
use zvf_store::{
    CellRead, CellReader, CommitError, CommitReport, OpenOptions, Read, Store, Transaction,
};
use zvf_validate::{
    Finding, Fix, ValidateOptions, ValidationReport,
    rules::{consistency as rules, metadata},
};
use zvf_write::{
    commit::{commit_or_abort, unfinished},
    stale::{coarser_levels, mark_all_stale},
    writer::{
        MAX_FILES,
        cell_writer::{Destination, StagedTransaction},
        encode::{Arrays, encoded},
    },
};

use crate::validate::{validate_state, validate_store};

/// Maximum number of rounds. A fix may reveal another finding: lists of chunks, then counts.
const MAX_ROUNDS: usize = 4;
/// Number of retries after conflicts.
const RETRIES: usize = 16;
/// Maximum number of findings of a rule that a round fixes.
const MAX_FIXES_PER_RULE: usize = 1 << 20;

/// An attribute by its path, and its new value.
type Change<'a> = (&'a [String], Option<&'a Value>);

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Repaired findings, in order.
    pub repaired: Vec<Finding>,
    /// The number of the last transaction; `None` when nothing was repaired.
    pub transaction: Option<u64>,
    /// The remaining findings, which have no single correct value, or whose value may follow from
    /// damaged data ([`Finding::obstacle`]).
    pub left: ValidationReport,
    /// Number of files that differed from the inventory of a sealed store, and that
    /// [`repair_trusting_files`] took as right.
    pub trusted: u64,
    /// The reason why the change could not be finished after its commit, as on a full disk; `None` as
    /// a rule. Readers see the whole change, and the next change of the store finishes it.
    pub unfinished: Option<String>,
}

/// Repairs the findings of a store that have one correct value, each round in one transaction.
///
/// A value that follows from damaged data is not correct, so that findings about damage leave others
/// unrepaired ([`Finding::obstacle`]). In a sealed store, every file that differs from the inventory
/// counts as damaged.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::ValidateOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let points = Geometry::new(positions);
/// # let mut design = Design::new(GeometryKind::Points);
/// # design.chunk_shape = Some(vec![10.0; 3]);
/// # zvf::create(address, &points, design, &Default::default()).await?;
/// let repaired = zvf::repair(address, &ValidateOptions::default()).await?;
/// assert!(repaired.transaction.is_none(), "there is nothing to do");
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error`] when the store cannot be written, or others keep changing it.
pub async fn repair(
    location: impl Into<Location>,
    options: &ValidateOptions,
) -> Result<RepairReport, Error> {
    let store = location.into().open(&OpenOptions::default())?;
    Ok(repair_store(store, options, Trust::Inventory).await?)
}

/// Repairs a store as [`repair`] does, and takes its files as right where they differ from the inventory
/// of a sealed store or from the node copy. Another program that changes a store leaves such
/// differences. Nothing distinguishes them from damage: call this only if no file was damaged.
///
/// A sealed store has to be [sealed again](crate::seal_validated) afterwards.
///
/// # Errors
///
/// [`Error`], as for [`repair`].
pub async fn repair_trusting_files(
    location: impl Into<Location>,
    options: &ValidateOptions,
) -> Result<RepairReport, Error> {
    let store = location.into().open(&OpenOptions::default())?;
    Ok(repair_store(store, options, Trust::Files).await?)
}

/// The side that is right where files differ from the inventory or from the node copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Inventory,
    Files,
}

fn repair_store(
    store: Store,
    options: &ValidateOptions,
    trust: Trust,
) -> BoxFuture<'_, Result<RepairReport, Failure>> {
    Box::pin(async move {
        let looked = options
            .clone()
            .max_findings_per_rule(MAX_FIXES_PER_RULE.max(options.max_findings_per_rule));
        let mut repaired = RepairReport::default();
        let mut retries = RETRIES;
        for _ in 0..MAX_ROUNDS {
            let found = loop {
                match round(&store, &looked, trust).await {
                    Err(
                        Failure::State(StateError::Changed { .. })
                        | Failure::Commit(
                            CommitError::Outdated { .. } | CommitError::Conflict { .. },
                        ),
                    ) if retries > 0 => {
                        retries -= 1;
                    }
                    round => break round?,
                }
            };
            repaired.trusted = repaired.trusted.max(found.trusted);
            let Some(committed) = found.committed else {
                break;
            };
            repaired.transaction = Some(committed.transaction);
            repaired.unfinished = unfinished(&committed);
            repaired.repaired.extend(found.repaired);
        }
        repaired.left = validate_store(store, options, None).await?;
        Ok(repaired)
    })
}

/// The result of a round.
#[derive(Debug)]
struct Round {
    trusted: u64,
    repaired: Vec<Finding>,
    /// `None` if there is nothing to repair.
    committed: Option<CommitReport>,
}

/// Runs one round.
async fn round(store: &Store, options: &ValidateOptions, trust: Trust) -> Result<Round, Failure> {
    let (mut report, root) = validate_state(store, options, None).await?;
    let trusted = match trust {
        Trust::Inventory => 0,
        Trust::Files => trust_files(&mut report),
    };
    let mut found: Vec<Finding> = report.findings.into_iter().filter(has_fix).collect();
    // Unlisted chunks are not counted, so that lists are repaired first.
    if found.iter().any(is_list) {
        found.retain(is_list);
    }
    let committed = match found.as_slice() {
        [] => None,
        found => Some(fix(store, root.as_ref(), found).await?),
    };
    Ok(Round {
        trusted,
        repaired: found,
        committed,
    })
}

/// Removes the findings about files that differ from the inventory or from the node copy, so that
/// they withhold no fix, and adds the rewrite of the copy. Returns the number of files that differ from
/// the inventory.
fn trust_files(report: &mut ValidationReport) -> u64 {
    let differing = report.remove_rule(&rules::INVENTORY);
    if report.remove_rule(&metadata::NODE_COPY) > 0 {
        let root = Key::root();
        let message = "rewritten from the nodes";
        let fix = Fix::Attribute {
            node: root.clone(),
            path: vec![MEMBER.to_owned()],
            value: None,
        };
        let finding = Finding::new(&metadata::NODE_COPY, root.as_str(), message);
        report.findings.push(finding.fix(fix));
    }
    differing
}

/// Commits the fixes of findings of the state with this root.
async fn fix(
    store: &Store,
    root: Option<&Bytes>,
    found: &[Finding],
) -> Result<CommitReport, Failure> {
    let mut transaction = store.begin().await?;
    if root != Some(transaction.root()) {
        transaction.abort().await?;
        return Err(Failure::State(StateError::Changed {
            address: store.to_string(),
        }));
    }
    match stage(store, &mut transaction, found).await {
        Ok(root) => Ok(commit_or_abort(transaction, &root).await?),
        Err(error) => {
            let _ = transaction.abort().await;
            Err(error)
        }
    }
}

/// Returns whether a finding concerns the chunk list of an array.
fn is_list(finding: &Finding) -> bool {
    [&rules::CHUNK_LIST, &rules::CELL_UNLISTED].contains(&finding.rule)
}

/// Returns the finest level to which a fix adds chunks.
fn extended_level(found: &[Finding]) -> Option<LevelId> {
    let lists = found.iter().filter(|finding| is_list(finding));
    let nodes = lists.filter_map(|finding| match finding.fix.as_ref()? {
        Fix::Attribute { node, .. } => Some(node),
        Fix::Cell { array, .. } => Some(array),
    });
    let levels = nodes.filter_map(|node| LevelId::parse(node.as_str().split('/').next()?));
    levels.min()
}

fn has_fix(finding: &Finding) -> bool {
    finding.fix.is_some()
}

/// Stages all fixes. Returns the new root.
async fn stage(
    store: &Store,
    transaction: &mut Transaction,
    found: &[Finding],
) -> Result<Bytes, Failure> {
    let mut cells: BTreeMap<&Key, BTreeMap<&[u64], &[u8]>> = BTreeMap::new();
    let mut attributes: BTreeMap<&Key, Vec<Change<'_>>> = BTreeMap::new();
    for fix in found.iter().filter_map(|finding| finding.fix.as_ref()) {
        match fix {
            Fix::Attribute { node, path, value } => {
                let of_node = attributes.entry(node).or_default();
                of_node.push((path, value.as_ref()));
            }
            Fix::Cell {
                array,
                element,
                payload,
            } => {
                cells.entry(array).or_default().insert(element, payload);
            }
        }
    }
    let mut root = document(&Key::root(), transaction.root())?;
    let mut objects = Vec::new();
    for (node, changes) in attributes {
        let file = nodes::metadata(node)?;
        if node.is_root() {
            for change in changes {
                // The copy is complete only when all nodes are read.
                if change.0 == [MEMBER] {
                    copy_nodes(store, transaction).await?;
                }
                set(&mut root, change);
            }
            continue;
        }
        let mut json = match store.read_one(Read::full(file.clone())).await? {
            Some(bytes) => document(node, &bytes)?,
            // Older writers omit some groups.
            None => Node::group(Map::new()).to_json(),
        };
        for change in changes {
            set(&mut json, change);
        }
        objects.push((file, text(node, json)));
    }
    for (array, cells) in cells {
        objects.extend(rewritten(store, array, cells).await?);
    }
    // Coarser levels were built without these chunks.
    if let Some(level) = extended_level(found)
        && let Some(attributes) = root["attributes"].as_object_mut()
    {
        mark_all_stale(attributes, level, &coarser_levels(store, level).await?);
    }
    // A concurrent change of one of these objects is a conflict: it was computed from wrong data.
    for (key, _) in &objects {
        transaction.touch(key.as_str());
    }
    let staged = StagedTransaction::new(transaction);
    staged.put(objects).await?;
    Ok(text(&Key::root(), root))
}

/// Rebuilds the copy of the nodes from the stored nodes.
async fn copy_nodes(store: &Store, transaction: &mut Transaction) -> Result<(), Failure> {
    let files = store
        .list_all(&Key::root(), MAX_FILES)
        .await?
        .into_iter()
        .filter(|file| file.name.ends_with("/zarr.json"));
    let keys = files
        .map(|file| nodes::named(Key::parse(&file.name), &file.name))
        .collect::<Result<Vec<_>, _>>()?;
    let reads: Vec<Read> = keys.iter().cloned().map(Read::full).collect();
    let present = store.read(&reads).await?;
    let present = keys.into_iter().zip(present);
    transaction.rebuild_node_copy_with(present.filter_map(|(key, bytes)| Some((key, bytes?))));
    Ok(())
}

/// Parses the `zarr.json` of a node, which may not be a valid node, with the names of 0.9.
fn document(node: &Key, bytes: &[u8]) -> Result<Value, Failure> {
    let json = serde_json::from_slice(bytes).map_err(|source| Failure::Json {
        key: node.clone(),
        source,
    })?;
    Ok(zarr::with_common_names(node, json)?)
}

/// Sets or removes one attribute.
fn set(node: &mut Value, (path, value): Change<'_>) {
    let mut at = &mut node["attributes"];
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    for name in parents {
        at = match at {
            Value::Array(items) => {
                let item = name.parse().ok().and_then(|at: usize| items.get_mut(at));
                let Some(item) = item else {
                    return;
                };
                item
            }
            at => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                &mut at[name.as_str()]
            }
        };
    }
    match (at, value) {
        (Value::Array(items), Some(value)) => {
            let item = last.parse().ok().and_then(|at: usize| items.get_mut(at));
            if let Some(item) = item {
                *item = value.clone();
            }
        }
        (Value::Object(fields), None) => {
            fields.remove(last);
        }
        (at, Some(value)) => {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            at[last.as_str()] = value.clone();
        }
        (_, None) => {}
    }
}

/// Encodes the `zarr.json` of a node as indented JSON, as other writers do.
fn text(node: &Key, json: Value) -> Bytes {
    let json = zarr::with_stored_names(node, json);
    // Serialization cannot fail: keys of a `Value` are strings.
    Bytes::from(serde_json::to_vec_pretty(&json).unwrap_or_default())
}

/// Encodes cells, with the other cells of their shards.
async fn rewritten(
    store: &Store,
    array: &Key,
    mut cells: BTreeMap<&[u64], &[u8]>,
) -> Result<Vec<(Key, Bytes)>, Failure> {
    let file = nodes::metadata(array)?;
    let Some(bytes) = store.read_one(Read::full(file.clone())).await? else {
        let node = array.clone();
        return Err(Failure::MissingNode { node });
    };
    let Node::Array(metadata) = Node::parse(&file, &bytes)? else {
        let node = array.clone();
        return Err(Failure::NoCells { node });
    };
    let node = Output::node(array.clone(), metadata.clone());
    // Only cells are encoded, which are the same in all generations.
    let arrays = Arrays::of(Generation::V0_9, &[node])?;
    let source = arrays.get(array)?;
    let reader = CellReader::new(store.clone());
    let mut others: Vec<(Vec<u64>, Bytes)> = Vec::new();
    if let Some(sharding) = metadata.sharding() {
        let mut shards = BTreeSet::new();
        for element in cells.keys() {
            let index = |source| Failure::Index {
                node: array.clone(),
                source,
            };
            shards.insert(metadata.chunk_of(element).map_err(index)?);
        }
        let inner: Vec<u64> = metadata
            .chunk_shape
            .iter()
            .zip(&sharding.chunk_shape)
            .map(|(outer, inner)| outer / (*inner).max(1))
            .collect();
        for shard in shards {
            for element in elements(&shard, &inner, &metadata.shape) {
                if cells.contains_key(element.as_slice()) {
                    continue;
                }
                let cell = CellRead {
                    array: &source,
                    index: &element,
                    part: None,
                };
                if let Some(payload) = reader.read_one(cell).await? {
                    others.push((element, payload));
                }
            }
        }
    }
    for (element, payload) in &others {
        cells.insert(element, payload);
    }
    let outputs = cells.into_iter().map(|(index, payload)| Output::Cell {
        array: array.clone(),
        index: index.to_vec(),
        payload: payload.to_vec(),
    });
    encoded(&arrays, outputs.collect())
}

/// Returns the elements of a shard of `inner` cells that lie in the array.
fn elements(shard: &[u64], inner: &[u64], shape: &[u64]) -> Vec<Vec<u64>> {
    let mut elements = vec![Vec::new()];
    for ((at, inner), extent) in shard.iter().zip(inner).zip(shape) {
        let first = at.saturating_mul(*inner);
        let last = first.saturating_add(*inner).min(*extent);
        elements = elements
            .into_iter()
            .flat_map(|element: Vec<u64>| {
                (first..last).map(move |at| {
                    let mut element = element.clone();
                    element.push(at);
                    element
                })
            })
            .collect();
    }
    elements
}

#[cfg(test)]
mod tests {
    use zvf_build::{Design, Geometry, GeometryKind, NumericColumn};
    use zvf_write::{editor::Editor, writer::CreateOptions};

    use super::*;
    use crate::OutOfBounds;

    #[tokio::test]
    async fn findings_of_an_older_state_are_not_fixed() {
        let none: [(&str, &[u8]); 0] = [];
        let store = OpenOptions::default().from_memory(none).unwrap();
        let points = Geometry::new(NumericColumn::float32(3, [0.5; 6]));
        let mut design = Design::new(GeometryKind::Points);
        design.chunk_shape = Some(vec![1.0; 3]);
        let options = CreateOptions::new().seal(false);
        zvf_write::writer::create(store.clone(), points, design, &options)
            .await
            .unwrap();
        let options = ValidateOptions::default();
        let (_, root) = validate_state(&store, &options, None).await.unwrap();
        let node = Key::parse("0/vertices").unwrap();
        let mut finding = Finding::new(&rules::CHUNK_LIST, node.as_str(), "a chunk is missing");
        finding.fix = Some(Fix::Attribute {
            node,
            path: vec!["nonempty_chunks".to_owned()],
            value: Some(serde_json::json!([[0, 0, 0]])),
        });
        let editor = Editor::open(&store).await.unwrap();
        let more = Geometry::new(NumericColumn::float32(3, [7.5; 3]));
        editor.append(&more, OutOfBounds::Expand).await.unwrap();
        let fixed = fix(&store, root.as_ref(), &[finding]).await;
        assert!(
            matches!(fixed, Err(Failure::State(StateError::Changed { .. }))),
            "{fixed:?}"
        );
        let report = validate_store(store, &options, None).await.unwrap();
        assert!(report.is_ok(), "{report:?}");
    }
}
