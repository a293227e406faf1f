//! Migration of the links of a level.

mod aligned;
mod finish;
mod steps;
mod written;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use zvf_build::{
    Output,
    migrate::{ChunkExtent, LinkArrayKey, LinkRecordPolicy, LinkTarget, MigrationNote},
};
use zvf_catalog::{CellLinks, LinkCells};
use zvf_dataset::{Failure, base, nodes::place};
use zvf_format::{
    links::{AxisScales, LinkWidth},
    path::Delta,
};
use zvf_model::{
    array::LinkFamily,
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, LinkForm as LinkForms},
    level::LevelId,
    metadata::Attributes,
    root::LinksConvention,
    word::Word,
};
use zvf_write::job::share;

use self::aligned::AlignedCells;
pub(super) use self::written::{CopiedLinks, WrittenLinks, coords};
use super::{
    Migration,
    level::Level,
    parts::{Batches, Target},
    too_far,
    units::{AddedLinks, Unit, UnitLinks, units},
};

/// Links of one delta during their migration.
pub(super) struct Links<'a> {
    pub(super) cells: &'a LinkCells,
    pub(super) form: LinkTarget,
    pub(super) extent: ChunkExtent,
    pub(super) arity: usize,
    /// `true` if links lead from children to parents of a skeleton.
    is_tree: bool,
    /// `true` if links between chunks name the parent first, as in skeletons written by streaming.
    names_parents_first: bool,
    /// Chunks that the first end of a link can be in, and the other ends; `None` for any chunk.
    intact: [Option<Arc<HashSet<ChunkCoord>>>; 2],
    /// Links added to the cell of a chunk.
    pub(super) added: BTreeMap<Vec<i64>, AddedLinks>,
    written: WrittenLinks,
    repaired: u64,
    unexplained: u64,
    /// Number of links that end in other chunks, and of links to parents among them.
    dangling: u64,
    orphans: u64,
}

/// The unread links of one delta and number of ends.
struct LinkWork<'a> {
    links: Links<'a>,
    /// Cells whose records contain their chunks.
    tables: Vec<usize>,
    /// Other links outside cells of one chunk.
    units: Vec<(Vec<ChunkCoord>, Unit)>,
    aligned: AlignedCells,
}

impl LinkWork<'_> {
    /// Returns whether units and chunks are independent of each other, so that tasks can share
    /// them: no link is repaired, and none of a unit is added to a cell of one chunk.
    fn is_divisible(&self, level: &Level) -> bool {
        let is_inside = |(chunks, _): &(Vec<ChunkCoord>, Unit)| {
            chunks.iter().all(|chunk| Some(chunk) == chunks.first())
        };
        let is_added = self.links.form.is_current() && self.units.iter().any(is_inside);
        level.bridges.is_none() && self.tables.is_empty() && !is_added
    }

    /// Returns the numbers of units and of chunks, which all tasks and the commit find.
    fn counts(&self) -> (usize, usize) {
        (self.units.len(), self.aligned.chunks(&self.links).len())
    }
}

impl Links<'_> {
    /// Registers the array or family and those of its attributes with the writer.
    pub(super) fn begin(
        &self,
        migration: &Migration<'_>,
        array_key: &LinkArrayKey,
    ) -> Result<(), Failure> {
        let none = Attributes::new();
        let names = self.cells.attributes();
        let keys = names.map(|(name, _)| self.form.attribute_key(name, array_key));
        for key in keys.chain([self.form.key(array_key)]) {
            self.target(place(key)?, &none).begin(migration)?;
        }
        Ok(())
    }

    fn target<'b>(&'b self, key: Key, old: &'b Attributes) -> Target<'b> {
        Target {
            key,
            extent: &self.extent,
            arity: self.arity,
            old,
            keys: Vec::new(),
        }
    }

    /// Corrects the order of child and parent and the rows of links between pieces of paths, and
    /// removes links to vertices that were lost.
    fn repair(&mut self, level: &Level, unit: &mut UnitLinks) {
        if self.names_parents_first {
            unit.put_children_first();
        }
        self.remove_dangling(unit);
        if let Some(bridges) = &level.bridges {
            let chunks: Vec<&[i64]> = unit.chunks.iter().map(ChunkCoord::coords).collect();
            let (repaired, unexplained) = self.form.repair(bridges, &chunks, &mut unit.ends);
            self.repaired += repaired;
            self.unexplained += unexplained;
        }
    }

    /// Returns whether a link cannot have this end, because the vertices of the chunk were lost.
    fn is_lost(&self, end: usize, chunk: &ChunkCoord) -> bool {
        let intact = self.intact.get(end.min(1)).and_then(Option::as_ref);
        intact.is_some_and(|intact| !intact.contains(chunk))
    }

    /// Removes links to vertices that were lost.
    fn remove_dangling(&mut self, unit: &mut UnitLinks) {
        if self.intact.iter().all(Option::is_none) {
            return;
        }
        let mut kept = Vec::new();
        for record in unit.ends.chunks_exact(self.form.width.get()) {
            let ends = record.iter().enumerate();
            let mut lost =
                ends.filter(|(end, (chunk, _))| self.is_lost(*end, &unit.chunks[*chunk as usize]));
            let first = lost.next().map(|(end, _)| end);
            kept.push(first.is_none());
            self.dangling += u64::from(first.is_some());
            self.orphans += u64::from(self.is_tree && first == Some(1));
        }
        unit.retain(&kept);
    }

    /// Records the attributes without values in a cell of this many links, for a target where all
    /// links have values if some have.
    fn note_unvalued(
        &mut self,
        array_key: &LinkArrayKey,
        at: &[i64],
        links: usize,
        values: &[Option<Vec<u8>>],
    ) {
        if !self.form.is_current() {
            return;
        }
        let unvalued = self.written.unvalued.iter_mut().zip(values);
        for (unvalued, _) in unvalued.filter(|(_, values)| values.is_none()) {
            let cells = unvalued.entry(array_key.clone()).or_default();
            cells.push((at.to_vec(), links as u64));
        }
    }

    /// Adds a cell of links with its attributes to `outputs`.
    pub(super) fn cell(
        &mut self,
        migration: &Migration<'_>,
        array_key: &LinkArrayKey,
        at: &[i64],
        payload: Vec<u8>,
        values: Vec<Option<Vec<u8>>>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        if !self.written.cell_indexes.contains_key(array_key) {
            self.written
                .cell_indexes
                .insert(array_key.clone(), Vec::new());
            self.begin(migration, array_key)?;
        }
        let none = Attributes::new();
        let names: Vec<String> = self
            .cells
            .attributes()
            .map(|(name, _)| name.to_owned())
            .collect();
        let mut target = self.target(place(self.form.key(array_key))?, &none);
        target.cell(migration, at, payload, outputs)?;
        let keys = target.keys;
        self.written
            .cell_indexes
            .entry(array_key.clone())
            .or_default()
            .extend(keys);
        for (number, (name, values)) in names.iter().zip(values).enumerate() {
            let Some(values) = values else {
                continue;
            };
            let key = place(self.form.attribute_key(name, array_key))?;
            let mut target = self.target(key, &none);
            target.cell(migration, at, values, outputs)?;
            let keys = target.keys;
            if let Some(valued) = self.written.valued.get_mut(number) {
                valued.entry(array_key.clone()).or_default().extend(keys);
            }
        }
        Ok(())
    }
}

impl Migration<'_> {
    /// Migrates the links of all deltas. Tasks may have written cells of them.
    pub(super) async fn links(
        &self,
        level: &mut Level,
        all: Vec<(Delta, LinkCells)>,
        mut copied: Option<CopiedLinks>,
    ) -> Result<(), Failure> {
        for (delta, cells) in &all {
            for stray in cells.unrecognized_children() {
                self.lost(MigrationNote::new(
                    stray.to_string(),
                    "a name that is not a chunk",
                    1,
                ));
            }
            let widths = self.widths(cells);
            self.left_out(cells, &widths).await?;
            for width in widths {
                let mut work = self.link_work(level, *delta, cells, width).await?;
                match copied.as_mut().filter(|_| self.is_divisible(level, &work)) {
                    Some(copied) => {
                        let written = copied
                            .remove(&(*delta, width))
                            .filter(|own| own.counts == work.counts());
                        work.links.written = written.ok_or_else(|| self.outdated())?;
                    }
                    None => self.all_cells(level, &mut work).await?,
                }
                self.finish_aligned(level, &work).await?;
                self.finish_links(level, work.links).await?;
            }
        }
        self.orphans(level, &all).await
    }

    /// Writes the cells of links between chunks, then of those inside chunks.
    async fn all_cells(&self, level: &Level, work: &mut LinkWork<'_>) -> Result<(), Failure> {
        self.tables(level, work).await?;
        let LinkWork {
            links,
            units,
            aligned,
            ..
        } = work;
        self.crossing(level, links, units).await?;
        let chunks = aligned.chunks(links);
        self.aligned(links, aligned, &chunks).await
    }

    /// Returns whether tasks write the cells of links. A task does not know which chunks of others
    /// are damaged.
    fn is_divisible(&self, level: &Level, work: &LinkWork<'_>) -> bool {
        !self.options.skip_damaged && work.is_divisible(level)
    }

    /// Writes the share of a task in the cells of the links of a level.
    pub(super) async fn copy_links(
        &self,
        level: &Level,
        all: &[(Delta, LinkCells)],
        part: usize,
        parts: usize,
    ) -> Result<CopiedLinks, Failure> {
        let mut copied = CopiedLinks::new();
        for (delta, cells) in all {
            let mut known = self.state().lost.len();
            for width in self.widths(cells) {
                let mut work = self.link_work(level, *delta, cells, width).await?;
                // The commit opens the links again, and notes what is wrong with them.
                self.state().lost.truncate(known);
                if !self.is_divisible(level, &work) {
                    continue;
                }
                let counts = work.counts();
                let LinkWork {
                    links,
                    units,
                    aligned,
                    ..
                } = &mut work;
                let own = share(units.len(), part, parts);
                self.crossing(level, links, &units[own]).await?;
                let chunks = aligned.chunks(links);
                let own = share(chunks.len(), part, parts);
                self.aligned(links, aligned, &chunks[own]).await?;
                links.written.counts = counts;
                copied.insert((*delta, width), work.links.written);
                known = self.state().lost.len();
            }
        }
        Ok(copied)
    }

    /// Returns the numbers of ends of the links that are migrated. All links of a delta of a target
    /// of 0.9 have the same number of ends; if the source has two, that of links inside chunks is
    /// kept.
    fn widths(&self, cells: &LinkCells) -> BTreeSet<LinkWidth> {
        let families = cells.families();
        if !self.form.has_ids() {
            return families.into_iter().map(|own| own.1).collect();
        }
        let used = |family: &&(Key, LinkWidth)| {
            (0..cells.len()).any(|cell| cells.family(cell) == Some(&family.0))
        };
        let kept = families.iter().find(used).or(families.first());
        kept.map(|(_, width)| *width).into_iter().collect()
    }

    /// Records the cells of links of other widths than these, which are not migrated.
    ///
    /// Sources of 0.8 may have two widths, so that a wrong width of an intact node is only found by
    /// reading. The cells are read once, in batches, and damaged ones are an error as elsewhere.
    async fn left_out(
        &self,
        cells: &LinkCells,
        widths: &BTreeSet<LinkWidth>,
    ) -> Result<(), Failure> {
        let numbers: Vec<String> = widths.iter().map(|width| width.get().to_string()).collect();
        let kept = numbers.join(" or ");
        let families = cells.families().into_iter();
        for (node, other) in families.filter(|family| !widths.contains(&family.1)) {
            let own: Vec<usize> = (0..cells.len())
                .filter(|cell| cells.width(*cell) == Some(other))
                .collect();
            let (mut at, mut batches) = (0, Batches::new());
            while at < own.len() {
                let end = batches.end(at, own.len());
                let read = self.read_links(cells, &own[at..end]).await?;
                let ends = read.iter().flatten().map(|links| links.ends.len() as u64);
                batches.adapt(end - at, ends.sum::<u64>() * 16);
                at = end;
            }
            let why = format!(
                "links of {} ends, but links inside chunks have {kept}",
                other.get()
            );
            let what = "cells of links with another number of ends";
            self.lost(MigrationNote::new(node.to_string(), what, own.len() as u64).because(why));
        }
        Ok(())
    }

    /// Opens the links of a delta and number of ends.
    async fn link_work<'a>(
        &self,
        level: &Level,
        delta: Delta,
        cells: &'a LinkCells,
        width: LinkWidth,
    ) -> Result<LinkWork<'a>, Failure> {
        let mut policy = self.policy(cells, width).await?;
        let is_tree = delta == Delta::INTRA
            && width == LinkWidth::EDGE
            && self.source.root().links_convention
                == Some(Word::Known(LinksConvention::ImplicitWithBranches));
        let root = self.source.root();
        let names_parents_first =
            is_tree && policy.directed && root.names_parents_first(self.source.layout().generation);
        // Readers of 0.9 take the links of directed skeletons as links that name the parent first.
        policy.directed &= !is_tree;
        let scales = self.scales(level, delta).await?;
        let form = self.form.links(level.id, delta, width, policy, scales);
        let attributes = cells.attributes().count();
        let intact = {
            let state = self.state();
            let of = |level: LevelId| state.intact.get(&level).cloned();
            [of(level.id), level.id.offset(delta.levels()).and_then(of)]
        };
        let mut links = Links {
            cells,
            form,
            extent: level.extent.clone(),
            arity: level.arity,
            is_tree,
            names_parents_first,
            intact,
            added: BTreeMap::new(),
            written: WrittenLinks::new(attributes),
            repaired: 0,
            unexplained: 0,
            dangling: 0,
            orphans: 0,
        };
        let own: Vec<usize> = (0..cells.len())
            .filter(|cell| cells.width(*cell) == Some(width))
            .collect();
        for cell in &own {
            for chunk in cells.chunks(*cell).unwrap_or_default() {
                links.extent.reach(chunk.coords());
            }
        }
        let (aligned, others): (Vec<usize>, Vec<usize>) =
            own.into_iter().partition(|cell| cells.is_aligned(*cell));
        let tables = others.iter().copied();
        let groups = self.groups_of_links(level, &links).await?;
        Ok(LinkWork {
            tables: tables
                .filter(|cell| cells.chunks(*cell).is_none())
                .collect(),
            units: units(cells, &others).into_iter().collect(),
            aligned: AlignedCells::new(cells, aligned, groups),
            links,
        })
    }

    /// Returns whether the links are directed, and whether they have copies.
    async fn policy(
        &self,
        cells: &LinkCells,
        width: LinkWidth,
    ) -> Result<LinkRecordPolicy, Failure> {
        let mut policy = LinkRecordPolicy::default();
        for (node, own) in cells.families() {
            if own == width {
                let attributes = self.attributes(&node).await?;
                let (directed, duplicate) = LinkFamily::declared_policy(&attributes);
                policy.directed |= directed;
                policy.duplicate |= duplicate;
            }
        }
        Ok(policy)
    }

    /// Returns the ratio of the level's chunks to those of the target level; equal if the target
    /// level does not exist.
    async fn scales(&self, level: &Level, delta: Delta) -> Result<Vec<AxisScales>, Failure> {
        let equal = vec![AxisScales::EQUAL; level.arity];
        let target = level.id.offset(delta.levels());
        let target = target.filter(|target| self.source.levels().contains(target));
        let Some(target) = target else {
            if self.form.has_ids() {
                let why = "their chunks are assumed to be as large as those of the root";
                let path = place(level.keys.node(&ArrayRole::LinkFamily(delta)))?.to_string();
                self.lost(MigrationNote::new(path, "the level that links lead to", 1).because(why));
            }
            return Ok(equal);
        };
        if delta == Delta::INTRA {
            return Ok(equal);
        }
        let (own, target) = (
            base::level(self.source, level.id).await?,
            base::level(self.source, target).await?,
        );
        let scales = own.link_scales(&target, self.source.root());
        let damaged = |error: zvf_model::grid::ScaleError| zvf_catalog::Damage {
            key: Key::root(),
            chunk: None,
            fault: error.into(),
        };
        match scales {
            Ok(scales) => Ok(scales),
            // Only 0.9 uses the scales.
            Err(_) if !self.form.has_ids() => Ok(equal),
            Err(error) => Err(zvf_catalog::CatalogError::from(damaged(error)).into()),
        }
    }

    /// Migrates links of tables.
    async fn tables(&self, level: &Level, work: &mut LinkWork<'_>) -> Result<(), Failure> {
        let (catalog, links) = (self.catalog(), &mut work.links);
        for table in &work.tables {
            let read = self.skip_damaged(catalog.read_links(links.cells, &[*table]).await)?;
            let Some(read) = read else { continue };
            for chunk in read.iter().flat_map(|own| &own.chunks) {
                links.extent.reach(chunk.coords());
            }
            let mut unit = UnitLinks::of(links.cells, &read);
            drop(read);
            links.repair(level, &mut unit);
            let parts = unit.split_by_chunks(&links.form);
            self.writer.expect(parts.len());
            let mut outputs = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                self.file(links, &unit, part, &mut outputs)?;
                if outputs.len() >= 1 << 10 || number + 1 == parts.len() {
                    self.writer.write(core::mem::take(&mut outputs)).await?;
                }
                self.writer.done(1);
            }
        }
        Ok(())
    }

    /// Migrates links outside cells of one chunk, unit by unit.
    async fn crossing(
        &self,
        level: &Level,
        links: &mut Links<'_>,
        units: &[(Vec<ChunkCoord>, Unit)],
    ) -> Result<(), Failure> {
        self.writer.expect(units.len());
        let (mut at, mut batches) = (0, Batches::new());
        while at < units.len() {
            let end = batches.end(at, units.len());
            let batch = &units[at..end];
            let wanted: Vec<usize> = batch
                .iter()
                .flat_map(|(_, unit)| unit.cells.clone())
                .collect();
            let mut read = self.read_links(links.cells, &wanted).await?.into_iter();
            let mut outputs = Vec::new();
            let mut bytes = 0;
            for (_, unit) in batch {
                let own: Vec<CellLinks> = read.by_ref().take(unit.cells.len()).flatten().collect();
                let mut unit = UnitLinks::of(links.cells, &own);
                bytes += unit.ends.len() as u64 * 16;
                links.repair(level, &mut unit);
                let kept = self.without_copies(links, &unit);
                self.file(links, &unit, &kept, &mut outputs)?;
            }
            self.writer.write(outputs).await?;
            batches.adapt(end - at, bytes);
            self.writer.done(end - at);
            at = end;
        }
        Ok(())
    }

    /// Reads cells of links. Damaged cells are `None` if damage is skipped.
    pub(super) async fn read_links(
        &self,
        cells: &LinkCells,
        wanted: &[usize],
    ) -> Result<Vec<Option<CellLinks>>, Failure> {
        let catalog = self.catalog();
        match catalog.read_links(cells, wanted).await {
            Ok(read) => Ok(read.into_iter().map(Some).collect()),
            Err(_) if self.options.skip_damaged => {
                // Reading the cells one by one identifies the damaged one.
                let mut read = Vec::with_capacity(wanted.len());
                for cell in wanted {
                    let one = catalog.read_links(cells, &[*cell]).await;
                    read.push(self.skip_damaged(one)?.and_then(|mut one| one.pop()));
                }
                Ok(read)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Selects one copy of each link.
    fn without_copies(&self, links: &mut Links<'_>, unit: &UnitLinks) -> Vec<usize> {
        let count = unit.ends.len() / links.form.width.get();
        // Since 0.9, links between levels have no copies.
        let old = self.source.layout().links == LinkForms::PerDelta;
        if !links.form.duplicate || !(old || links.form.delta == Delta::INTRA) {
            return (0..count).collect();
        }
        let (kept, missing) = links.form.without_copies(&unit.ends, &unit.leaders);
        links.written.copies += missing;
        kept
    }

    fn file(
        &self,
        links: &mut Links<'_>,
        unit: &UnitLinks,
        own: &[usize],
        outputs: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        let chunks: Vec<&[i64]> = unit.chunks.iter().map(ChunkCoord::coords).collect();
        let placed_links = links.form.file(&chunks, &unit.ends, own)?;
        let (placed, added) = placed_links.ok_or_else(too_far)?;
        links.written.logical += own.len() as u64;
        links.written.crossing += own.len() as u64;
        for (values, (row, filled_rows)) in unit.values.iter().zip(
            links
                .written
                .rows
                .iter_mut()
                .zip(&mut links.written.filled_rows),
        ) {
            *row = values.row.max(*row);
            *filled_rows += values.filled_rows;
        }
        for ((array_key, at), cell) in placed {
            let values = unit.values.iter();
            let values: Vec<Option<Vec<u8>>> = values.map(|values| values.of(&cell.from)).collect();
            links.note_unvalued(&array_key, &at, cell.from.len(), &values);
            links.written.physical += cell.from.len() as u64;
            links.cell(self, &array_key, &at, cell.payload(), values, outputs)?;
        }
        for (chunk, more) in added {
            links.written.physical += more.from.len() as u64;
            let values = unit
                .values
                .iter()
                .map(|values| values.of(&more.from))
                .collect();
            let known = links.added.insert(
                chunk,
                AddedLinks {
                    links: more,
                    values,
                },
            );
            debug_assert!(known.is_none(), "a unit is all links of its chunks");
        }
        Ok(())
    }
}
