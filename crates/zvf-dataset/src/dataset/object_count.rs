//! Counts objects that are not empty.

use bytes::Bytes;
use zvf_format::{manifest::ObjectManifest, open_rows::OpenRows, vlen::VlenFrame};
use zvf_model::{
    array::{ObjectIndex, ObjectIndexLayout},
    key::Key,
    layout::{ArrayRole, ObjectIndexForm},
    level::LevelId,
    zarr::Node,
};
use zvf_store::{CellArray, CellRead};

use super::Dataset;
use crate::{failure::Failure, nodes};

/// Upper bound on the chunks of a manifest array, above that of any known store. Absent chunks cost
/// a writer nothing, but each costs the reader a request.
const MAX_CELLS: u64 = 1 << 16;
/// Cells read concurrently.
const BATCH: u64 = 16;

/// Counts the objects with a fragment. Reads the manifests, because `num_present` is often missing
/// or stale.
pub(crate) async fn present(
    dataset: &Dataset,
    level: LevelId,
    index: &ObjectIndex,
) -> Result<u64, Failure> {
    if index.layout == ObjectIndexLayout::Dense {
        let objects = dataset
            .catalog()
            .object_list(level)
            .await?
            .unwrap_or_default();
        let present = (0..objects.len()).filter(|index| !objects.fragments(*index).is_empty());
        return Ok(u64::try_from(present.count()).unwrap_or(u64::MAX));
    }
    let sid_ndim = index.sid_ndim;
    let manifests = match table(dataset, level, &ArrayRole::Manifests).await {
        Err(Failure::MissingArray { .. }) if index.num_objects == 0 => return Ok(0),
        manifests => manifests?,
    };
    if dataset.layout().object_index == ObjectIndexForm::Open {
        let offsets = table(dataset, level, &ArrayRole::ManifestOffsets).await?;
        let data = bytes(dataset, &manifests).await?;
        let starts = bytes(dataset, &offsets).await?;
        let rows = OpenRows::parse(&data, &starts).map_err(|source| Failure::OpenRows {
            node: manifests.node().clone(),
            source,
        })?;
        return count(manifests.node(), rows.iter(), sid_ndim);
    }
    let single = manifests
        .metadata()
        .decoded_shape()
        .iter()
        .all(|extent| *extent == 1);
    let elements = manifests.metadata().elements();
    if elements != index.num_objects {
        return Err(Failure::Manifests {
            node: manifests.node().clone(),
            manifests: elements,
            objects: index.num_objects,
        });
    }
    let (mut present, mut stored) = (0_u64, false);
    let missing = |cell: u64| Failure::MissingCell {
        node: manifests.node().clone(),
        cell: cell.to_string(),
    };
    let per_cell = manifests
        .metadata()
        .decoded_shape()
        .first()
        .copied()
        .unwrap_or(1)
        .max(1);
    for start in (0..cells(&manifests)).step_by(usize::try_from(BATCH).unwrap_or(1)) {
        for (cell, payload) in (start..).zip(batch(dataset, &manifests, start).await?) {
            // An absent chunk holds empty manifests, unless the index declares more present objects
            // than the other chunks have.
            let before = cell.saturating_mul(per_cell);
            let rows = per_cell.min(elements.saturating_sub(before));
            if payload.is_none() && index.must_have_present(rows) {
                return Err(missing(cell));
            }
            stored |= payload.is_some();
            let payload = payload.unwrap_or_default();
            let node = manifests.node();
            let more = if payload.is_empty() {
                0
            } else if single {
                count(node, core::iter::once(&*payload), sid_ndim)?
            } else {
                let frame = VlenFrame::parse(&payload).map_err(|source| Failure::Frame {
                    node: node.clone(),
                    source,
                })?;
                count(node, frame.iter(), sid_ndim)?
            };
            present = present.saturating_add(more);
        }
    }
    // If every chunk is absent, all objects count as empty only if the store declares so.
    if !stored && index.num_objects > 0 && index.num_present != Some(0) {
        return Err(missing(0));
    }
    Ok(present)
}

/// Counts the manifests with a fragment. A deleted object leaves an empty row or a manifest without
/// blocks.
fn count<'a>(
    node: &Key,
    rows: impl Iterator<Item = &'a [u8]>,
    sid_ndim: usize,
) -> Result<u64, Failure> {
    let mut present = 0_u64;
    for row in rows.filter(|row| !row.is_empty()) {
        let manifest =
            ObjectManifest::parse(row, sid_ndim).map_err(|source| Failure::Manifest {
                node: node.clone(),
                source,
            })?;
        present = present.saturating_add(u64::from(!manifest.is_empty()));
    }
    Ok(present)
}

/// Opens the array with the values of `part`.
async fn table(
    dataset: &Dataset,
    level: LevelId,
    part: &ArrayRole<'_>,
) -> Result<CellArray, Failure> {
    let layout = dataset.layout();
    let key = layout
        .values_at(level, part)
        .transpose()
        .unwrap_or_else(|| Key::parse(&level.to_string()))
        .map_err(|source| Failure::Name {
            name: level.to_string(),
            source,
        })?;
    match nodes::read_one(dataset.store(), &key).await? {
        Some(Node::Array(array)) => {
            let array = nodes::cell_array(&key, array)?;
            match cells(&array) {
                ..=MAX_CELLS => Ok(array),
                cells => Err(Failure::TooManyCells { node: key, cells }),
            }
        }
        _ => Err(Failure::MissingArray { node: key }),
    }
}

/// Returns the number of cells of a one-dimensional array.
fn cells(array: &CellArray) -> u64 {
    let metadata = array.metadata();
    let cell = metadata.decoded_shape().first().copied().unwrap_or(1);
    metadata.elements().div_ceil(cell.max(1))
}

async fn batch(
    dataset: &Dataset,
    array: &CellArray,
    start: u64,
) -> Result<Vec<Option<Bytes>>, Failure> {
    let end = start.saturating_add(BATCH).min(cells(array));
    let indexes: Vec<[u64; 1]> = (start..end).map(|cell| [cell]).collect();
    let wanted: Vec<CellRead<'_>> = indexes
        .iter()
        .map(|index| CellRead {
            array,
            index,
            part: None,
        })
        .collect();
    Ok(dataset.cells().read(&wanted).await?)
}

/// Reads a whole array of bytes. A chunk of zeros may be absent, and the last chunk may extend past
/// the end of the array.
async fn bytes(dataset: &Dataset, array: &CellArray) -> Result<Vec<u8>, Failure> {
    let metadata = array.metadata();
    let (elements, budget) = (metadata.elements(), dataset.store().budget());
    let too_large = || Failure::OverBudget {
        node: array.node().clone(),
        bytes: elements,
        budget,
    };
    let wanted = usize::try_from(elements.min(budget)).map_err(|_| too_large())?;
    if elements > budget {
        return Err(too_large());
    }
    let cell = metadata.decoded_shape().first().copied().unwrap_or(1);
    let cell = usize::try_from(cell.min(elements)).unwrap_or(wanted);
    let mut all = Vec::new();
    for start in (0..cells(array)).step_by(usize::try_from(BATCH).unwrap_or(1)) {
        for payload in batch(dataset, array, start).await? {
            match payload {
                Some(payload) => all.extend_from_slice(&payload),
                None => all.resize(all.len().saturating_add(cell), 0),
            }
        }
    }
    all.truncate(wanted);
    Ok(all)
}
