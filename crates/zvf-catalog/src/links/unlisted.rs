//! Finds links in stores that cannot list: probes possible names and verifies the number of
//! records found.

use std::collections::BTreeSet;

use zvf_format::{
    links::{AxisScales, LinkWidth},
    path::{Delta, OffsetCoords, Offsets},
};
use zvf_model::{
    array::{LinkFamily, LinkStore},
    fetch::{FetchError, FetchProblem},
    key::Key,
    layout::{ArrayRole, LinkOffsets},
};

use super::{LinkCellForm, LinkStorage, LinkView, OpenedLinks, decode};
use crate::{
    catalog::Catalog,
    chunked_array::child,
    error::{CatalogError, Damage, Fault},
    level::Level,
};

/// Maximum number of arrays probed per family: enough for faces of four axes.
const MAX_PROBED_ARRAYS: usize = 1 << 13;

/// Returns whether the store cannot list.
pub(super) fn is_unlistable(error: &CatalogError) -> bool {
    matches!(error, CatalogError::Fetch(error) if error.problem == FetchProblem::Unlistable)
}

/// Returns the error for links that cannot be proven complete.
fn unlistable(key: &Key, why: &'static str) -> CatalogError {
    CatalogError::Fetch(FetchError {
        key: key.clone(),
        problem: FetchProblem::Unlistable,
        source: why.into(),
    })
}

impl Catalog<'_> {
    /// Returns the deltas that have a node, among those to all levels of the root. Takes one round
    /// trip.
    pub(super) async fn probe_deltas(
        &self,
        level: &Level,
        old: bool,
    ) -> Result<Vec<Delta>, CatalogError> {
        let levels = self.root.datasets.iter().map(|dataset| dataset.level);
        let this = i64::from(level.id().number());
        let deltas: BTreeSet<Delta> = levels
            .map(|other| i64::from(other.number()).saturating_sub(this))
            .filter_map(|delta| i32::try_from(delta).ok())
            .chain([0])
            .map(Delta::new)
            .collect();
        let node = Self::node_of(level)?;
        let mut folders = vec![child(&node, "links")?];
        if old {
            folders.push(child(&node, "cross_chunk_links")?);
        }
        let mut keys = Vec::new();
        for folder in &folders {
            for delta in &deltas {
                keys.push(child(folder, &delta.to_string())?);
            }
        }
        let nodes = self.fetch.nodes(&keys).await?;
        let all = deltas.iter().cycle().zip(nodes);
        let found: BTreeSet<Delta> = all
            .filter_map(|(delta, node)| node.is_some().then_some(*delta))
            .collect();
        Ok(found.into_iter().collect())
    }

    /// Finds the arrays of a 0.9 family among those between neighbouring chunks. Takes three round
    /// trips: the list of nodes that may exist, the nodes that do, and the sizes of all cells. The
    /// cells must contain as many records as the family declares.
    ///
    /// # Errors
    ///
    /// Returns [`FetchProblem::Unlistable`] if other arrays exist or their absence cannot be
    /// proven.
    pub(super) async fn probe_segments(
        &self,
        level: &Level,
        delta: Delta,
        family: &LinkFamily,
        scales: &[AxisScales],
    ) -> Result<Vec<String>, CatalogError> {
        let key = self.link_node(level, &ArrayRole::LinkFamily(delta))?;
        let Some(expected) = family.physical_records() else {
            return Err(unlistable(&key, "the number of links is not declared"));
        };
        let tried = neighbours(family, scales.len());
        let Some(tried) = tried else {
            return Err(unlistable(&key, "there may be too many arrays to probe"));
        };
        let mut keys = Vec::with_capacity(tried.len());
        for segment in &tried {
            let part = ArrayRole::Links(delta, LinkOffsets::Segment(segment));
            keys.push(self.link_node(level, &part)?);
        }
        let nodes = self.fetch.nodes(&keys).await?;
        let mut found: Vec<String> = tried
            .into_iter()
            .zip(nodes)
            .filter_map(|(segment, node)| node.map(|_| segment))
            .collect();
        found.sort_unstable();
        let opened = self.open_arrays(level, family, scales, &found, &[], LinkView::Stored);
        let loaded = self.count_records(&opened.await?).await?;
        if loaded != expected {
            return Err(unlistable(&key, "some links were not found"));
        }
        Self::remember_children(level, key, found.clone());
        Ok(found)
    }

    /// Counts the records of all cells by the first bytes of their payloads.
    async fn count_records(&self, opened: &OpenedLinks) -> Result<u64, CatalogError> {
        let mut wanted = Vec::with_capacity(opened.cells.len());
        let mut of = Vec::with_capacity(opened.cells.len());
        for cell in &opened.cells {
            let Some(source) = opened.sources.get(cell.source) else {
                continue;
            };
            let LinkStorage::Each(family) = &source.cells else {
                continue;
            };
            // A row has at least one byte; a blob of groups starts with the number of groups.
            let part = match source.form {
                LinkCellForm::Flat(_) => 0..1,
                _ => 0..8,
            };
            if let Some(request) = family.cell_request(&cell.at, Some(part)) {
                wanted.push(request);
                of.push((cell, source, family));
            }
        }
        if wanted.is_empty() {
            return Ok(0);
        }
        let results = self.fetch.cells(&wanted).await;
        let mut records = 0_u64;
        for ((cell, source, family), result) in of.into_iter().zip(results) {
            let damage = |fault| Damage::in_chunk(&family.node, &cell.at, fault);
            let begin = result
                .map_err(|error| damage(Fault::Fetch(error)))?
                .ok_or_else(|| damage(Fault::MissingCell))?;
            let size = family.payload_size(&cell.at, begin.size);
            let (bytes, row) = match &source.form {
                LinkCellForm::Groups(dtype, form) => {
                    let groups = begin
                        .bytes
                        .first_chunk::<8>()
                        .copied()
                        .map_or(0, u64::from_le_bytes);
                    let header = groups.saturating_add(1).saturating_mul(8);
                    let columns = decode::row_columns(source.width, *form);
                    (
                        size.saturating_sub(header),
                        columns.saturating_mul(dtype.size()),
                    )
                }
                LinkCellForm::Flat(dtype) => {
                    (size, source.width.get().saturating_mul(dtype.size()))
                }
                _ => (size, 1),
            };
            let row = u64::try_from(row).unwrap_or(u64::MAX);
            records = records.saturating_add(bytes.checked_div(row).unwrap_or(0));
        }
        Ok(records)
    }
}

/// Returns the segments of arrays between neighbouring chunks. For undirected links stored once,
/// only the canonical segments.
fn neighbours(family: &LinkFamily, arity: usize) -> Option<Vec<String>> {
    let others = family.width.get().saturating_sub(1);
    let numbers = others.checked_mul(arity)?;
    let count = 3_usize.checked_pow(u32::try_from(numbers).ok()?)?;
    if count > MAX_PROBED_ARRAYS {
        return None;
    }
    let sorted =
        family.store == LinkStore::Canonical && !family.directed && family.delta == Delta::INTRA;
    let mut found = Vec::new();
    for number in 0..count {
        let mut rest = number;
        let mut digits = Vec::with_capacity(numbers);
        for _ in 0..numbers {
            let digit = i64::try_from(rest.checked_rem(3)?).ok()?;
            digits.push(digit.checked_sub(1)?);
            rest = rest.checked_div(3)?;
        }
        let offsets: Vec<&[i64]> = digits.chunks(arity.max(1)).collect();
        let segment = OffsetCoords(&offsets).to_string();
        if !sorted || is_canonical(&segment, family.width, arity) {
            found.push(segment);
        }
    }
    Some(found)
}

fn is_canonical(segment: &str, width: LinkWidth, arity: usize) -> bool {
    Offsets::parse(segment, width, arity).is_ok_and(|offsets| offsets.is_canonical())
}
