//! Migration of the object index, of groups, and of the attributes of both.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use zvf_build::{
    NumericColumn,
    migrate::{MigrationNote, ObjectIndexCounts, changed_type},
};
use zvf_catalog::{Damage, Fault, Scope, StoredManifests};
use zvf_dataset::{Failure, nodes::place};
use zvf_format::{
    manifest::{FragmentRef, ObjectManifest, ObjectManifestBuilder},
    numeric::Kind,
};
use zvf_model::{
    array::{GroupRange, Groups, Table, TableRole},
    generation::Generation,
    geometry_kind::GeometryKind,
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, GROUPS, GroupRole, OBJECT_INDEX},
    metadata::Attributes,
};
use zvf_query::{Column, ColumnValues};

use super::{Migration, level::Level};

/// Valid ids before 0.9, where the id of an object is its row.
const IDS: core::ops::Range<i64> = 0..1 << 26;
/// Rows allowed for unused ids, regardless of the number of objects.
const MAX_UNUSED_ROWS: i64 = 1 << 20;
/// Rows allowed for unused ids, per object.
const MAX_UNUSED_ROWS_PER_OBJECT: i64 = 64;
/// Maximum gap between two wanted rows of manifests that are read together.
const GAP: u64 = 1 << 10;
/// A manifest without blocks.
const EMPTY: [u8; 4] = [0; 4];

/// The source row of each target row.
pub(super) enum Order {
    /// The same row, for this many rows.
    Same(u64),
    /// The source row of the object whose id is the target row; `None` if no object has the id.
    ById(Vec<Option<u64>>),
}

/// Counts of manifests.
#[derive(Default)]
struct Tally {
    present: u64,
    /// Rows that were never written.
    unwritten: u64,
    shared: u64,
    /// References to fragments whose vertices were lost.
    lost: u64,
    /// Places where these were between others of an object.
    gaps: u64,
}

impl Order {
    fn len(&self) -> u64 {
        match self {
            Self::Same(rows) => *rows,
            Self::ById(rows) => rows.len() as u64,
        }
    }

    fn row(&self, at: u64) -> Option<u64> {
        match self {
            Self::Same(rows) => (at < *rows).then_some(at),
            Self::ById(rows) => rows.get(usize::try_from(at).ok()?).copied().flatten(),
        }
    }
}

impl Migration<'_> {
    /// Migrates objects with their attributes.
    pub(super) async fn objects(&self, level: &mut Level) -> Result<(), Failure> {
        let catalog = self.catalog();
        let names = catalog.attribute_list(level.id, Scope::Object).await?;
        let manifests = self.skip_damaged(catalog.stored_manifests(level.id).await)?;
        let Some(Some(manifests)) = manifests else {
            for name in names.iter() {
                self.object_attribute(level, name, &Order::Same(0)).await?;
            }
            return Ok(());
        };
        level.facts.present.push(OBJECT_INDEX);
        // Every row has an id.
        let ids: Vec<i64> = (0..manifests.rows())
            .filter_map(|row| manifests.id(row))
            .collect();
        let order = self.order(&ids);
        self.state().object_rows.insert(level.id, order.len());
        let tally = self.manifests(level, &manifests, &order).await?;
        let sorted = ids.is_sorted();
        let old = self.attributes(manifests.node()).await?;
        let present = tally.present;
        let counts = ObjectIndexCounts {
            rows: order.len(),
            present,
            sorted,
        };
        let mut outputs = self
            .form
            .object_index(level.id, &old, level.arity, counts)?;
        outputs.extend(self.form.ids(level.id, &ids)?);
        self.writer.write(outputs).await?;
        if let Some(declared) = manifests.index().num_present
            && declared != present
        {
            let what = "a count of objects that differed from the manifests";
            self.repaired(MigrationNote::new(manifests.node().to_string(), what, 1));
        }
        let what = "manifests that were never written and are now empty";
        self.repaired(MigrationNote::new(
            manifests.node().to_string(),
            what,
            tally.unwritten,
        ));
        let what = "parts of objects whose vertices cannot be read";
        self.lost(MigrationNote::new(
            manifests.node().to_string(),
            what,
            tally.lost,
        ));
        if self.has_paths() {
            let what = "gaps in paths, whose ends are now connected";
            self.lost(MigrationNote::new(
                manifests.node().to_string(),
                what,
                tally.gaps,
            ));
        }
        self.shared(level, &manifests, tally.shared);
        for name in names.iter() {
            self.object_attribute(level, name, &order).await?;
        }
        match order {
            Order::Same(_) if !self.ids_fit(&ids) => self.renumbered(level, &ids).await,
            Order::Same(_) => Ok(()),
            Order::ById(rows) => {
                let gaps = rows.len().saturating_sub(ids.len()) as u64;
                let why = "0.8 has a row for each id from 0 on, so those in between are empty \
                           objects now";
                let path = self.ids_path(level);
                self.lost(MigrationNote::new(path, "ids that no object has", gaps).because(why));
                Ok(())
            }
        }
    }

    /// Returns whether the target can represent these ids.
    fn ids_fit(&self, ids: &[i64]) -> bool {
        let last = ids.iter().copied().max().unwrap_or(0);
        let count = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        let max = MAX_UNUSED_ROWS.max(MAX_UNUSED_ROWS_PER_OBJECT.saturating_mul(count));
        let is_row = |id: &i64| IDS.contains(id);
        self.form.has_ids() || (last < max && ids.iter().all(is_row))
    }

    fn order(&self, ids: &[i64]) -> Order {
        let are_rows = ids.iter().zip(0..).all(|(id, row)| *id == row);
        if self.form.has_ids() || are_rows || !self.ids_fit(ids) {
            return Order::Same(ids.len() as u64);
        }
        let last = ids.iter().copied().max().unwrap_or(-1);
        let mut order = vec![None; usize::try_from(last + 1).unwrap_or(0)];
        for (row, id) in (0..).zip(ids) {
            if let Some(at) = usize::try_from(*id).ok().and_then(|id| order.get_mut(id)) {
                *at = Some(row);
            }
        }
        Order::ById(order)
    }

    /// Writes ids that the target cannot represent as an attribute, and records the new ones.
    async fn renumbered(&self, level: &mut Level, ids: &[i64]) -> Result<(), Failure> {
        let name = self.free_name("object_id").await?;
        let mut numbers = NumericColumn::new(Kind::Int64, 1);
        numbers.bytes = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let rows = Column::new(&*name, numbers);
        let folder = GroupRole::ObjectAttributes;
        self.parent(&place(level.keys.group(folder))?).await?;
        level.facts.present.push(folder.name());
        let key = place(level.keys.node(&ArrayRole::ObjectAttribute(&name)))?;
        let none = Attributes::new();
        self.writer
            .write(self.form.object_attribute(&key, &none, &rows)?)
            .await?;
        level.renumbered = ids.iter().copied().zip(0..).collect();
        let why = format!(
            "0.8 has a row for each id from 0 on, and theirs are too large; objects are numbered \
             anew, and object_attributes/{name} has their ids"
        );
        let path = self.ids_path(level);
        let count = ids.len() as u64;
        self.lost(MigrationNote::new(path, "ids of objects", count).because(why));
        Ok(())
    }

    /// Returns the array of the ids of a level in the source, as notes name it.
    fn ids_path(&self, level: &Level) -> String {
        let layout = self.source.layout();
        let ids = layout.values_at(level.id, &ArrayRole::ObjectIds);
        ids.ok()
            .flatten()
            .map_or_else(String::new, |ids| ids.to_string())
    }

    /// Returns a name that no object attribute of any level has: `name`, or one with a number.
    async fn free_name(&self, name: &str) -> Result<String, Failure> {
        let catalog = self.catalog();
        let mut names = HashSet::new();
        for level in self.source.levels() {
            let own = catalog.attribute_list(*level, Scope::Object).await?;
            names.extend(own.iter().cloned());
        }
        let numbered = (2..).map(|number: u64| format!("{name}_{number}"));
        let mut all = core::iter::once(name.to_owned()).chain(numbered);
        let free = all.find(|name| !names.contains(name));
        Ok(free.unwrap_or_else(|| name.to_owned()))
    }

    /// Migrates all manifests, one chunk of the index at a time.
    async fn manifests(
        &self,
        level: &mut Level,
        manifests: &StoredManifests,
        order: &Order,
    ) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        let rows = order.len();
        let step = self.form.manifests_at_once();
        self.writer
            .register(&[self.form.manifest_array(level.id, rows)?])?;
        self.writer
            .expect(usize::try_from(rows.div_ceil(step)).unwrap_or(usize::MAX));
        for chunk in 0..rows.div_ceil(step) {
            let first = chunk * step;
            let last = (first + step).min(rows);
            let wanted: Vec<Option<u64>> = (first..last).map(|at| order.row(at)).collect();
            let mut blobs = self.manifest_blobs(manifests, &wanted).await?;
            for (row, blob) in wanted.iter().zip(&mut blobs) {
                let Some(row) = row else { continue };
                if blob.is_empty() {
                    tally.unwritten += 1;
                    *blob = Bytes::from_static(&EMPTY);
                    continue;
                }
                if self.options.skip_damaged
                    && let Some(rest) = without_lost(level, blob, &mut tally)
                {
                    *blob = Bytes::from(rest);
                }
                if let Err(fault) = Self::manifest(level, blob, &mut tally) {
                    let source = Box::new(fault);
                    self.damaged(Damage {
                        key: manifests.node().clone(),
                        chunk: None,
                        fault: Fault::Row { row: *row, source },
                    })?;
                    *blob = Bytes::from_static(&EMPTY);
                }
            }
            let output = self.form.manifests(level.id, rows, chunk, &blobs)?;
            self.writer.write(vec![output]).await?;
            self.writer.done(1);
        }
        Ok(tally)
    }

    /// Reads the manifests of these rows; without blocks for `None` and for skipped damage, and of
    /// zero bytes if never written.
    async fn manifest_blobs(
        &self,
        manifests: &StoredManifests,
        wanted: &[Option<u64>],
    ) -> Result<Vec<Bytes>, Failure> {
        let catalog = self.catalog();
        let mut blobs = vec![Bytes::from_static(&EMPTY); wanted.len()];
        let mut rows_of: Vec<(u64, usize)> = wanted
            .iter()
            .enumerate()
            .filter_map(|(index, row)| Some(((*row)?, index)))
            .collect();
        rows_of.sort_unstable();
        for run in rows_of.chunk_by(|a, b| b.0 - a.0 <= GAP) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                continue;
            };
            let read = catalog.manifest_rows(manifests, first.0..last.0 + 1).await;
            let Some(read) = self.skip_damaged(read)? else {
                continue;
            };
            for (row, index) in run {
                let at = usize::try_from(row - first.0).unwrap_or(usize::MAX);
                blobs[*index] = read.get(at).cloned().unwrap_or_default();
            }
        }
        Ok(blobs)
    }

    /// Checks a manifest against the chunks, and collects the links that its path implies.
    fn manifest(level: &mut Level, blob: &[u8], tally: &mut Tally) -> Result<(), Fault> {
        let manifest = ObjectManifest::parse(blob, level.arity)?;
        let mut pieces: Vec<(ChunkCoord, (u64, u64))> = Vec::new();
        // A path may reference its own fragment more than once.
        let mut own: HashSet<(ChunkCoord, u32)> = HashSet::new();
        for block in &manifest {
            let coords: Vec<i64> = block.chunk.iter().collect();
            let chunk = ChunkCoord::new(coords);
            let Some(facts) = level.chunks.get_mut(&chunk) else {
                return Err(Fault::NoChunk(chunk));
            };
            for fragment in block.fragments.iter() {
                if fragment >= facts.fragments {
                    let fragments = facts.fragments;
                    return Err(Fault::NoFragment {
                        fragment,
                        fragments,
                    });
                }
                let is_own = !own.insert((chunk.clone(), fragment));
                tally.shared += u64::from(facts.name(fragment) && !is_own);
                if let Some(Some(ends)) = facts.ends.get(fragment as usize) {
                    pieces.push((chunk.clone(), *ends));
                }
            }
        }
        tally.present += u64::from(!manifest.is_empty());
        if let Some(bridges) = &mut level.bridges {
            bridges.path(pieces.iter().map(|(chunk, ends)| (chunk.coords(), *ends)));
        }
        Ok(())
    }

    /// Records fragments that several objects reference.
    fn shared(&self, level: &mut Level, manifests: &StoredManifests, shared: u64) {
        if shared == 0 {
            return;
        }
        let path = manifests.node().to_string();
        level.facts.shares_fragments = true;
        if !level.declares_shared {
            let what = "fragments that several objects share, which was not declared";
            self.repaired(MigrationNote::new(&path, what, shared));
        }
        let generation = self.source.layout().generation;
        let old = matches!(generation, Generation::V0_6 | Generation::V0_7);
        if old && self.source.root().holds(GeometryKind::Mesh) {
            let why = "up to 0.7, all objects of a mesh refer to one fragment of each chunk";
            let what = "the assignment of vertices to objects";
            self.lost(MigrationNote::new(path, what, shared).because(why));
        }
    }

    async fn object_attribute(
        &self,
        level: &mut Level,
        name: &str,
        order: &Order,
    ) -> Result<(), Failure> {
        let folder = GroupRole::ObjectAttributes;
        let key = place(level.keys.node(&ArrayRole::ObjectAttribute(name)))?;
        let column = self.catalog().object_values(level.id, name, None).await;
        let Some(column) = self.skip_damaged(column)? else {
            return Ok(());
        };
        let old = self.attributes(&key).await?;
        self.check_extents(&key, &old);
        let rows = rows_of(&column, order);
        if self.loses_text(&key, &rows) {
            return Ok(());
        }
        if let Some(kind) = changed_type(&rows)
            && self.form.has_ids()
        {
            let what = "truth values, now stored as numbers because some are absent";
            let count = rows.values.len() as u64;
            self.lost(MigrationNote::new(key.to_string(), what, count).because(kind));
        }
        self.parent(&place(level.keys.group(folder))?).await?;
        level.facts.present.push(folder.name());
        self.writer
            .write(self.form.object_attribute(&key, &old, &rows)?)
            .await
    }

    /// Returns whether an attribute is text that the target has no form for, and records the loss.
    fn loses_text(&self, key: &Key, rows: &Column) -> bool {
        let is_lost =
            matches!(rows.values, ColumnValues::Dictionary { .. }) && !self.form.has_text();
        if is_lost {
            let count = rows.values.len() as u64;
            let what = "text, for which 0.8 has no form";
            self.lost(MigrationNote::new(key.to_string(), what, count));
        }
        is_lost
    }

    /// Records the loss of row shapes with several axes, which become flat.
    fn check_extents(&self, key: &Key, old: &Attributes) {
        let shape = Table::parse_array(key, old).value.shape;
        if shape.is_some_and(|shape| shape.len() > 2) {
            let what = "the shape of rows of several axes, which are now flat";
            self.lost(MigrationNote::new(key.to_string(), what, 1));
        }
    }

    /// Migrates groups with their attributes.
    pub(super) async fn groups(&self, level: &mut Level) -> Result<(), Failure> {
        let catalog = self.catalog();
        let key = place(level.keys.node(&ArrayRole::Groups))?;
        let list = self.skip_damaged(catalog.group_list(level.id).await)?;
        if let Some(Some(list)) = list {
            level.facts.present.push(GROUPS);
            let (mut members, ranges) = self.members(&list)?;
            if !level.renumbered.is_empty() {
                let before: usize = members.iter().map(Vec::len).sum();
                for own in &mut members {
                    let rows = own
                        .iter()
                        .filter_map(|id| level.renumbered.get(id).copied());
                    *own = rows.collect();
                }
                let after: usize = members.iter().map(Vec::len).sum();
                let what = "members of groups that are not objects";
                let lost = (before - after) as u64;
                self.lost(MigrationNote::new(key.to_string(), what, lost));
            }
            let old = self.attributes(&key).await?;
            let groups = described(true, &members, ranges);
            self.writer
                .write(self.form.groups(&key, &old, &groups, &members)?)
                .await?;
        }
        let names = catalog.attribute_list(level.id, Scope::Group).await?;
        let folder = GroupRole::GroupAttributes;
        for name in names.iter() {
            let key = place(level.keys.node(&ArrayRole::GroupAttribute(name)))?;
            let column = catalog.group_values(level.id, name, None).await;
            let Some(column) = self.skip_damaged(column)? else {
                continue;
            };
            let old = self.attributes(&key).await?;
            self.check_extents(&key, &old);
            let role = Some(TableRole::Group);
            if self.plain_attribute(&key, role, &old, column).await? {
                self.parent(&place(level.keys.group(folder))?).await?;
                level.facts.present.push(folder.name());
            }
        }
        Ok(())
    }

    /// Returns the members of groups as lists or, if the target supports them, as ranges of ids.
    #[expect(clippy::type_complexity, reason = "lists and ranges, used once")]
    pub(super) fn members(
        &self,
        list: &zvf_catalog::GroupList,
    ) -> Result<(Vec<Vec<i64>>, BTreeMap<u64, GroupRange>), Failure> {
        let (mut members, mut ranges) = (Vec::new(), BTreeMap::new());
        let budget = zvf_model::fetch::Fetch::budget(self.source.cells());
        let mut bytes = 0_u64;
        for group in 0..list.len() {
            let of_group = list.members(group);
            let range = of_group.and_then(|members| members.as_range());
            if let (Some(range), true) = (range, self.form.has_ids()) {
                let (start, stop) = (range.start, range.end);
                ranges.insert(group, GroupRange { start, stop });
                members.push(Vec::new());
                continue;
            }
            let count = of_group.map_or(0, |members| members.len());
            bytes = bytes.saturating_add(count.saturating_mul(16));
            if bytes > budget {
                let what = "the members of groups";
                return Err(zvf_catalog::CatalogError::OverBudget {
                    what,
                    bytes,
                    budget,
                }
                .into());
            }
            members.push(
                of_group
                    .map(|members| members.iter().collect())
                    .unwrap_or_default(),
            );
        }
        Ok((members, ranges))
    }

    /// Writes an attribute of groups or parametric objects, unchanged in order. Returns whether the target
    /// has a form for it.
    pub(super) async fn plain_attribute(
        &self,
        key: &Key,
        role: Option<TableRole>,
        old: &Attributes,
        column: Column,
    ) -> Result<bool, Failure> {
        let rows = column.values.len() as u64;
        let rows = rows_of(&column, &Order::Same(rows));
        if self.loses_text(key, &rows) {
            return Ok(false);
        }
        let is_absent = |row: &usize| rows.is_null(*row);
        let absent = (0..rows.values.len()).filter(is_absent).count();
        if absent > 0 && !self.form.keeps_absent(role, &rows) {
            let what = "missing values, which the new store cannot mark as missing";
            self.lost(MigrationNote::new(key.to_string(), what, absent as u64));
        }
        let outputs = self.form.plain_attribute(key, role, old, &rows)?;
        self.writer.write(outputs).await?;
        Ok(true)
    }
}

/// Returns the metadata of groups with these members.
pub(super) fn described(
    is_tagged: bool,
    members: &[Vec<i64>],
    ranges: BTreeMap<u64, GroupRange>,
) -> Groups {
    Groups {
        is_tagged,
        num_groups: Some(members.len() as u64),
        ranges,
    }
}

/// Returns the rest of a manifest that names fragments whose vertices were lost; `None` if it names
/// none.
fn without_lost(level: &Level, blob: &[u8], tally: &mut Tally) -> Option<Vec<u8>> {
    let manifest = ObjectManifest::parse(blob, level.arity).ok()?;
    let mut rest = ObjectManifestBuilder::new(level.arity);
    let (mut lost, mut gaps) = (0, 0);
    let (mut is_begun, mut is_cut) = (false, false);
    for block in &manifest {
        let coords: Vec<i64> = block.chunk.iter().collect();
        let chunk = level.chunks.get(&ChunkCoord::new(coords.as_slice()));
        let count = chunk.map_or(0, |facts| facts.fragments);
        let kept: Vec<u32> = match &block.fragments {
            FragmentRef::Range(range) => (range.start..range.end.min(count)).collect(),
            fragments => fragments.iter().filter(|own| *own < count).collect(),
        };
        let missing = block.fragments.len() - kept.len();
        // Parts of a valid manifest fit into one.
        match missing {
            0 => rest.push(&block).ok()?,
            _ if kept.is_empty() => &mut rest,
            _ => rest.push_list(&coords, &kept).ok()?,
        };
        if !kept.is_empty() {
            gaps += u64::from(is_cut);
            (is_begun, is_cut) = (true, false);
        }
        is_cut |= is_begun && missing > 0;
        lost += missing as u64;
    }
    tally.lost += lost;
    tally.gaps += gaps;
    (lost > 0).then(|| rest.finish())
}

/// Returns the rows of a column in the order of the target.
fn rows_of(column: &Column, order: &Order) -> Column {
    let there = column.values.len() as u64;
    // A column may have fewer or more rows than there are objects.
    let count = match order {
        Order::Same(rows) => (*rows).max(there),
        Order::ById(rows) => rows.len() as u64,
    };
    let missing = column.nulls.as_deref();
    let source = |at: u64| {
        let row = match order {
            Order::Same(_) => Some(at),
            Order::ById(_) => order.row(at),
        };
        let row = row.filter(|row| *row < there)?;
        let index = usize::try_from(row).ok()?;
        let absent = missing.is_some_and(|missing| missing.get(index) == Some(&true));
        (!absent).then_some(index)
    };
    // A row past the end is null.
    column.take((0..count).map(|at| source(at).unwrap_or(usize::MAX)))
}
