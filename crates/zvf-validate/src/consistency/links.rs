//! Links of every delta, in every form, and their attributes.

mod cell;
mod chunk_lookup;
mod copies;
mod groups;
mod totals;
mod values;

use zvf_format::path::Delta;
use zvf_model::{
    error_chain::error_chain,
    fetch::{AnyArray, CellRef, CellRequest, FetchProblem},
    grid::ChunkCoord,
    key::Key,
    layout::CrossChunkForm,
    level::LevelId,
};

use super::{LinkSum, StoreCounts, chunks::presence};
use crate::{
    batch::CellPayload,
    chunk_pass::ChunkPass,
    chunked_part::ChunkedPart,
    context::Context,
    links::{LinkPart, LinkStorage, deltas, open},
    rules::consistency as rules,
    store::LevelScope,
};

use self::{
    cell::PartChecks, chunk_lookup::ChunkLookup, copies::Copies, groups::Groups, totals::Totals,
};

pub(crate) use self::{chunk_lookup::ChunkVertices, totals::between_levels};

pub(super) async fn check(context: &Context<'_>, scope: LevelScope<'_>, counted: &mut StoreCounts) {
    old_form(context, scope);
    let deltas = deltas(scope.store, scope.level);
    let groups = Groups::read(context, scope).await;
    let mut has_inside = false;
    for delta in deltas {
        let own = scope.level.id;
        let target = own.offset(delta.levels());
        // A level that changed since numbers its vertices otherwise. A refresh writes the links again.
        let is_current = target.is_none_or(|target| {
            let (finer, coarser) = (own.min(target), own.max(target));
            let mut stale = scope.root.stale_levels();
            !stale.any(|level| finer < level && level <= coarser)
        });
        let lookup =
            |level: Option<LevelId>| ChunkLookup::of(counted, level.filter(|_| is_current));
        let family = Family {
            context,
            scope,
            delta,
            own: lookup(Some(own)),
            target: lookup(target),
            groups: groups.as_ref(),
        };
        let sum = family.check(&mut has_inside).await;
        if let Some(counts) = counted.levels.get_mut(&scope.level.id) {
            counts.links.insert(delta, sum);
        }
    }
    if let Some(groups) = groups.filter(|_| !has_inside) {
        groups.report_unexpected(context);
    }
}

/// Reports links in the form of older generations, which readers of 0.9 do not see.
fn old_form(context: &Context<'_>, scope: LevelScope<'_>) {
    if scope.store.layout().cross_chunk != CrossChunkForm::Links {
        return;
    }
    for delta in scope.store.names(scope.level, "cross_chunk_links") {
        let key = scope.level.key.join("cross_chunk_links");
        let Ok(key) = key.and_then(|key| key.join(delta)) else {
            continue;
        };
        if !scope.store.tree.folders(&key).is_empty() {
            let message = "readers of 0.9 look for them in links";
            context.report(&rules::LINK_LEGACY_FORM, &key, message);
        }
    }
}

/// The checks of the links of one delta.
struct Family<'a, 'c> {
    context: &'a Context<'c>,
    scope: LevelScope<'a>,
    delta: Delta,
    own: ChunkLookup<'a>,
    target: ChunkLookup<'a>,
    groups: Option<&'a Groups>,
}

impl Family<'_, '_> {
    async fn check(&self, has_inside: &mut bool) -> LinkSum {
        let found = open(self.context, self.scope, self.delta).await;
        let mut totals = Totals::new(&found.families, found.is_whole);
        let mut copies = Copies::default();
        let mut sum = LinkSum::of(&found.parts, found.is_whole);
        let attributes = values::open(self.context, self.scope, &found.parts);
        let mut columns = vec![None; attributes.len()];
        let cells = found.parts.iter().map(|part| &part.cells);
        let cells = cells.chain(attributes.iter().flat_map(values::Attribute::cells));
        for cells in cells {
            if let LinkStorage::Each(cells) = cells {
                let seed = cells.key.as_str();
                presence::check(self.context, &self.scope.store.tree, cells, seed).await;
            }
        }
        for (number, part) in found.parts.iter().enumerate() {
            *has_inside |= part.is_inside;
            let mine: Vec<_> = attributes
                .iter()
                .map(|attribute| attribute.of(number))
                .collect();
            let mut checking = PartChecks::new(self.context, part, self.own, self.target, &mut sum);
            checking.copies = Some(&mut copies);
            checking.values = values::of_part(&attributes, number);
            checking.groups = self.groups.filter(|_| part.is_inside);
            match &part.cells {
                LinkStorage::Each(cells) => {
                    self.each(part, cells, &mine, &mut checking).await;
                    self.flat(&attributes, number, &mut checking).await;
                }
                LinkStorage::Table(_) => self.table(part, &mine, &mut checking).await,
                LinkStorage::Pairs(array) => self.pairs(part, array, &mut checking).await,
            }
            totals.add(part, checking.finish(&mut columns));
        }
        copies.finish(self.context);
        totals.finish(self.context);
        sum.is_whole &= totals.is_whole();
        sum
    }

    async fn each(
        &self,
        part: &LinkPart,
        cells: &ChunkedPart,
        values: &[Option<&LinkStorage>],
        checking: &mut PartChecks<'_, '_>,
    ) {
        // Only link fragments show the number of used rows of a padded array, and a share does not
        // have those of all chunks.
        if part.is_padded() && self.context.is_share() {
            return;
        }
        let values: Vec<Option<&ChunkedPart>> = values
            .iter()
            .map(|values| match values {
                Some(LinkStorage::Each(cells)) => Some(cells),
                _ => None,
            })
            .collect();
        checking.has_cells = values.iter().map(Option::is_some).collect();
        let mut parts = vec![cells];
        parts.extend(values.iter().flatten());
        let mut chunks: Vec<ChunkCoord> = parts.iter().flat_map(|part| part.chunks()).collect();
        if let Some(groups) = self.groups.filter(|_| part.is_inside) {
            chunks.extend(groups.chunks());
        }
        if part.is_padded() {
            chunks.extend(self.own.chunks());
        }
        chunks.sort_unstable();
        chunks.dedup();
        let pass = ChunkPass {
            name: format!("{} cells", cells.key),
            seed: cells.key.as_str(),
            parts: &parts,
            chunks: &chunks,
        };
        pass.run(self.context, checking).await;
    }

    /// Checks the attributes whose values for all cells are in one array.
    async fn flat(
        &self,
        attributes: &[values::Attribute],
        part: usize,
        checking: &mut PartChecks<'_, '_>,
    ) {
        // A share does not have all links.
        if self.context.is_share() {
            return;
        }
        for (number, attribute) in attributes.iter().enumerate() {
            if let Some(values) = attribute.flat(part) {
                let values = self.read(values).await;
                checking.flat(number, &values);
            }
        }
    }

    /// Checks a table of 0.6 or 0.7, which is one cell.
    async fn table(
        &self,
        part: &LinkPart,
        values: &[Option<&LinkStorage>],
        checking: &mut PartChecks<'_, '_>,
    ) {
        if self.context.is_share() {
            return;
        }
        let links = self.read(&part.cells).await;
        let mut read = Vec::with_capacity(values.len());
        for values in values {
            read.push(match values {
                Some(values) => self.read(values).await,
                None => CellPayload::Absent,
            });
        }
        let values: Vec<&CellPayload> = read.iter().collect();
        checking.cell(&ChunkCoord::new([]), &links, &values);
    }

    /// Checks the chunks of an array of pairs of numbered vertices.
    async fn pairs(&self, part: &LinkPart, array: &AnyArray, checking: &mut PartChecks<'_, '_>) {
        // A share does not number the vertices of all chunks.
        if self.context.is_share() {
            return;
        }
        for (at, wanted) in part.pair_requests(array) {
            // An absent chunk consists of fill values.
            let cell = self.fetched(array.node(), wanted).await;
            checking.cell(&at, &cell.unwrap_or(CellPayload::Absent), &[]);
        }
    }

    async fn read(&self, cells: &LinkStorage) -> CellPayload {
        let LinkStorage::Table(key) = cells else {
            return CellPayload::Absent;
        };
        if !self.scope.store.tree.exists(key) {
            return CellPayload::Absent;
        }
        let cell = CellRef::Child(key.clone());
        let wanted = CellRequest { cell, part: None };
        if let Some(found) = self.fetched(key, wanted).await {
            return found;
        }
        let message = "the cell is listed, but the store has no such object";
        self.context.report(&rules::CELL_MISSING, key, message);
        CellPayload::Unreadable
    }

    /// Reads a cell of an array; `None` if it is absent.
    async fn fetched(&self, key: &Key, wanted: CellRequest) -> Option<CellPayload> {
        match self.context.fetch.cells(&[wanted]).await.pop() {
            Some(Ok(Some(found))) => {
                self.context.checked(found.bytes.len());
                Some(CellPayload::Bytes(found.bytes))
            }
            Some(Err(error)) => {
                let rule = match error.problem {
                    FetchProblem::Damaged | FetchProblem::Unsupported => &rules::CELL_UNREADABLE,
                    _ => &rules::CELL_NOT_CHECKED,
                };
                let message = error_chain(&*error.source);
                self.context.report(rule, key, message);
                Some(CellPayload::Unreadable)
            }
            _ => None,
        }
    }
}
