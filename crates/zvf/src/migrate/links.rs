//! Migration of the links of a level.

mod aligned;
mod finish;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use zvf_build::{
    Output,
    migrate::{ChunkExtent, LinkArrayKey, LinkRecordPolicy, LinkTarget, MigrationNote},
};
use zvf_format::{
    links::{AxisScales, LinkWidth},
    path::Delta,
};
use zvf_model::{grid::ChunkCoord, key::Key, layout::LinkForm as LinkForms};
use zvf_query::{CellLinks, LinkCells};

use self::aligned::AlignedCells;
use super::{
    Migration,
    level::Level,
    no_place,
    parts::{Batches, Target},
    units::{AddedLinks, Unit, UnitLinks, units},
};
use crate::failure::Failure;

/// Links of one delta during their migration.
pub(super) struct Links<'a> {
    pub(super) cells: &'a LinkCells,
    pub(super) form: LinkTarget,
    pub(super) extent: ChunkExtent,
    pub(super) arity: usize,
    /// Chunks with a cell, by array or family.
    pub(super) cell_indexes: BTreeMap<LinkArrayKey, Vec<Vec<i64>>>,
    /// Chunks with a cell of each attribute, by array or family.
    pub(super) valued: Vec<BTreeMap<LinkArrayKey, Vec<Vec<i64>>>>,
    /// Bytes of a row of each attribute; 0 while unknown.
    pub(super) rows: Vec<usize>,
    pub(super) filled_rows: Vec<u64>,
    /// Links added to the cell of a chunk.
    pub(super) added: BTreeMap<Vec<i64>, AddedLinks>,
    /// Numbers of migrated links, of links between chunks among them, and of stored rows.
    pub(super) logical: u64,
    pub(super) crossing: u64,
    pub(super) physical: u64,
    repaired: u64,
    unexplained: u64,
    copies: u64,
}

impl Links<'_> {
    /// Registers the array or family and those of its attributes with the writer.
    pub(super) fn begin(
        &self,
        migration: &Migration<'_>,
        array_key: &LinkArrayKey,
    ) -> Result<(), Failure> {
        let none = Map::new();
        let names = self.cells.attributes();
        let paths = names.map(|(name, _)| self.form.attribute_path(name, array_key));
        for path in paths.chain([self.form.path(array_key)]) {
            self.target(path, &none).begin(migration)?;
        }
        Ok(())
    }

    fn target<'b>(&'b self, path: String, old: &'b Map<String, Value>) -> Target<'b> {
        Target {
            path,
            extent: &self.extent,
            arity: self.arity,
            old,
            keys: Vec::new(),
        }
    }

    /// Corrects the rows of links between pieces of paths.
    fn repair(&mut self, level: &Level, unit: &mut UnitLinks) {
        if let Some(bridges) = &level.bridges {
            let chunks: Vec<&[i64]> = unit.chunks.iter().map(ChunkCoord::coords).collect();
            let (repaired, unexplained) = self.form.repair(bridges, &chunks, &mut unit.ends);
            self.repaired += repaired;
            self.unexplained += unexplained;
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
        if !self.cell_indexes.contains_key(array_key) {
            self.cell_indexes.insert(array_key.clone(), Vec::new());
            self.begin(migration, array_key)?;
        }
        let none = Map::new();
        let names: Vec<String> = self
            .cells
            .attributes()
            .map(|(name, _)| name.to_owned())
            .collect();
        let mut target = self.target(self.form.path(array_key), &none);
        target.cell(migration, at, payload, outputs)?;
        let keys = target.keys;
        self.cell_indexes
            .entry(array_key.clone())
            .or_default()
            .extend(keys);
        for (number, (name, values)) in names.iter().zip(values).enumerate() {
            let Some(values) = values else {
                continue;
            };
            let mut target = self.target(self.form.attribute_path(name, array_key), &none);
            target.cell(migration, at, values, outputs)?;
            let keys = target.keys;
            if let Some(valued) = self.valued.get_mut(number) {
                valued.entry(array_key.clone()).or_default().extend(keys);
            }
        }
        Ok(())
    }
}

impl Migration<'_> {
    /// Migrates the links of all deltas.
    pub(super) async fn links(
        &self,
        level: &mut Level,
        all: Vec<(Delta, LinkCells)>,
    ) -> Result<(), Failure> {
        for (delta, cells) in &all {
            for stray in cells.unrecognized_children() {
                self.lost(MigrationNote::new(
                    stray.to_string(),
                    "a name that is not a chunk",
                    1,
                ));
            }
            if self.form.has_ids() {
                self.one_width(level, *delta, cells).await?;
                continue;
            }
            let widths: BTreeSet<LinkWidth> =
                cells.families().into_iter().map(|own| own.1).collect();
            for width in widths {
                self.links_of(level, *delta, cells, width).await?;
            }
        }
        self.orphans(level, &all).await
    }

    /// Migrates the links of a delta to a target whose links all have the same number of ends. If
    /// the source has two numbers, that of links inside chunks is kept.
    async fn one_width(
        &self,
        level: &mut Level,
        delta: Delta,
        cells: &LinkCells,
    ) -> Result<(), Failure> {
        let families = cells.families();
        let used = |family: &&(Key, LinkWidth)| {
            (0..cells.len()).any(|cell| cells.family(cell) == Some(&family.0))
        };
        let kept = families.iter().find(used).or(families.first());
        let Some((_, width)) = kept else {
            return Ok(());
        };
        for (node, other) in families.iter().filter(|family| family.1 != *width) {
            let count = (0..cells.len())
                .filter(|cell| cells.width(*cell) == Some(*other))
                .count();
            let why = format!(
                "links of {} ends, but links inside chunks have {}",
                other.get(),
                width.get()
            );
            let what = "cells of links with another number of ends";
            self.lost(MigrationNote::new(node.to_string(), what, count as u64).because(why));
        }
        self.links_of(level, delta, cells, *width).await
    }

    async fn links_of(
        &self,
        level: &mut Level,
        delta: Delta,
        cells: &LinkCells,
        width: LinkWidth,
    ) -> Result<(), Failure> {
        let policy = self.policy(cells, width).await?;
        let scales = self.scales(level, delta).await?;
        let form = self
            .form
            .links(level.id.number(), delta, width, policy, scales);
        let attributes = cells.attributes().count();
        let mut links = Links {
            cells,
            form,
            extent: level.extent.clone(),
            arity: level.arity,
            cell_indexes: BTreeMap::new(),
            valued: vec![BTreeMap::new(); attributes],
            rows: vec![0; attributes],
            filled_rows: vec![0; attributes],
            added: BTreeMap::new(),
            logical: 0,
            crossing: 0,
            physical: 0,
            repaired: 0,
            unexplained: 0,
            copies: 0,
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
        self.crossing(level, &mut links, &others).await?;
        let aligned = AlignedCells::new(cells, aligned);
        self.aligned(level, &mut links, &aligned).await?;
        self.finish_links(level, links).await
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
                let attributes = self.attributes(node.as_str()).await?;
                policy.directed |= attributes.get("directed") == Some(&Value::Bool(true));
                policy.duplicate |=
                    attributes.get("store").and_then(Value::as_str) == Some("duplicate");
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
                let path = format!("{}/links/{delta}", level.path);
                self.lost(MigrationNote::new(path, "the level that links lead to", 1).because(why));
            }
            return Ok(equal);
        };
        if delta == Delta::INTRA {
            return Ok(equal);
        }
        let (own, target) = (
            self.source.level_metadata(level.id).await?,
            self.source.level_metadata(target).await?,
        );
        let scales = own.link_scales(&target, self.source.root());
        let damaged = |error: zvf_model::grid::ScaleError| zvf_query::Damage {
            key: Key::root(),
            chunk: None,
            fault: error.into(),
        };
        match scales {
            Ok(scales) => Ok(scales),
            // Only 0.9 uses the scales.
            Err(_) if !self.form.has_ids() => Ok(equal),
            Err(error) => Err(zvf_query::QueryError::from(damaged(error)).into()),
        }
    }

    /// Migrates links outside cells of one chunk, unit by unit.
    async fn crossing(
        &self,
        level: &mut Level,
        links: &mut Links<'_>,
        cells: &[usize],
    ) -> Result<(), Failure> {
        let session = self.session();
        let tables: Vec<usize> = cells
            .iter()
            .copied()
            .filter(|cell| links.cells.chunks(*cell).is_none())
            .collect();
        for table in tables {
            let read = self.skip_damaged(session.read_links(links.cells, &[table]).await)?;
            let Some(read) = read else { continue };
            for chunk in read.iter().flat_map(|own| &own.chunks) {
                links.extent.reach(chunk.coords());
            }
            let mut unit = UnitLinks::of(links.cells, &read);
            drop(read);
            let parts = unit.split_by_chunks(&links.form);
            self.writer.expect(parts.len());
            links.repair(level, &mut unit);
            let mut outputs = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                self.file(links, &unit, part, &mut outputs)?;
                if outputs.len() >= 1 << 10 || number + 1 == parts.len() {
                    self.writer.write(core::mem::take(&mut outputs)).await?;
                }
                self.writer.done(1);
            }
        }
        let units: Vec<(Vec<ChunkCoord>, Unit)> = units(links.cells, cells).into_iter().collect();
        self.writer.expect(units.len());
        let (mut at, mut batches) = (0, Batches::new());
        while at < units.len() {
            let end = batches.end(at, units.len());
            let batch = &units[at..end];
            let wanted: Vec<usize> = batch
                .iter()
                .flat_map(|(_, unit)| unit.cells.clone())
                .collect();
            let read = self.read_links(links, &wanted).await?;
            let mut read = read.into_iter();
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
        links: &Links<'_>,
        wanted: &[usize],
    ) -> Result<Vec<Option<CellLinks>>, Failure> {
        let session = self.session();
        match session.read_links(links.cells, wanted).await {
            Ok(read) => Ok(read.into_iter().map(Some).collect()),
            Err(_) if self.options.skip_damaged => {
                // Reading the cells one by one identifies the damaged one.
                let mut read = Vec::with_capacity(wanted.len());
                for cell in wanted {
                    let one = session.read_links(links.cells, &[*cell]).await;
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
        links.copies += missing;
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
        let (placed, added) = placed_links.ok_or_else(|| no_place("links"))?;
        links.logical += own.len() as u64;
        links.crossing += own.len() as u64;
        for (values, (row, filled_rows)) in unit
            .values
            .iter()
            .zip(links.rows.iter_mut().zip(&mut links.filled_rows))
        {
            *row = values.row.max(*row);
            *filled_rows += values.filled_rows;
        }
        for ((array_key, at), cell) in placed {
            let values = unit
                .values
                .iter()
                .map(|values| values.of(&cell.from))
                .collect();
            links.physical += cell.from.len() as u64;
            links.cell(self, &array_key, &at, cell.payload(), values, outputs)?;
        }
        for (chunk, more) in added {
            links.physical += more.from.len() as u64;
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
