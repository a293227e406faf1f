//! Addition of planned geometry to a level.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use zvf_model::{
    column::{Column, NumericColumn},
    key::Key,
    root::RootChange,
};

use super::{
    change::{Edits, LevelChange},
    chunk::{Chunk, Fragment},
    error::{EditError, damaged},
    image::{CellId, LevelSnapshot},
    tables::Table,
};
use crate::{coordinates, error::BuildError, plan::WritePlan};

impl LevelSnapshot {
    /// Appends planned geometry to chunks and tables.
    pub(super) fn add(
        &mut self,
        plan: &WritePlan,
        change: &LevelChange,
        chunks: &mut BTreeMap<Vec<i64>, Chunk>,
        cells: &mut BTreeMap<CellId, Chunk>,
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let vertex = self.vertex_columns(&plan.geometry.vertex)?;
        let fragment = self.fragment_columns(plan)?;
        let mut bases: Vec<(u64, u32)> = Vec::with_capacity(plan.layout.chunks.len());
        for (number, coords) in (0u32..).zip(&plan.layout.chunks) {
            let chunk = chunks.entry(coords.clone()).or_default();
            bases.push((chunk.rows, chunk.fragments.len() as u32));
            chunk.positions.extend(plan.positions(number));
            for (path, column) in &vertex {
                let bytes = chunk.vertex.entry(path.clone()).or_default();
                check_width(path, coords, bytes, chunk.rows, &column.numbers)?;
                bytes.extend(column.gather(plan.input(number)));
            }
            let start = chunk.rows;
            let fragments = plan.layout.fragments(number as usize);
            for (path, column) in &fragment {
                let bytes = chunk.fragment.entry(path.clone()).or_default();
                check_width(path, coords, bytes, chunk.fragments.len() as u64, column)?;
                let first = plan.layout.fragment_starts[number as usize];
                for row in first..first + fragments.len() {
                    let values = column.row(row).ok_or_else(|| BuildError::RowCount {
                        what: "fragment attribute",
                        name: path.name().unwrap_or_default().to_owned(),
                        expected: first + fragments.len(),
                        found: column.len(),
                    })?;
                    bytes.extend_from_slice(values);
                }
            }
            chunk.push_ranges(fragments.iter().map(|fragment| u64::from(fragment.rows)));
            edits.added += chunk.rows - start;
            if plan.objects.is_none() {
                self.sort_into_bins(chunk)?;
            }
        }
        self.add_objects(plan, change, &bases, edits)?;
        self.add_links(plan, &bases, cells)?;
        let bounds = [(&plan.space.lower, true), (&plan.space.upper, false)];
        for (corner, min) in bounds {
            let own = if min {
                &mut self.lower
            } else {
                &mut self.upper
            };
            for (own, found) in own.iter_mut().zip(corner) {
                *own = if min {
                    own.min(*found)
                } else {
                    own.max(*found)
                };
            }
        }
        RootChange::of(&mut self.root).set_bounds(&self.lower, &self.upper);
        Ok(())
    }

    /// Sorts the points of a chunk into its bins.
    pub(super) fn sort_into_bins(&self, chunk: &mut Chunk) -> Result<(), EditError> {
        let order: Vec<u64> = chunk
            .fragments
            .iter()
            .flat_map(|fragment| fragment.rows().collect::<Vec<_>>())
            .collect();
        let positions = NumericColumn {
            bytes: chunk.positions.clone(),
            ..NumericColumn::new(self.positions, self.axes as u32)
        };
        let (count, bins) = match &self.bins {
            Some(bins) => {
                let mut numbers = Vec::with_capacity(order.len());
                let mut values = Vec::new();
                for &row in &order {
                    let row = row as usize;
                    coordinates::block(&positions, row..row + 1, &mut values);
                    let place = bins.place_of(&values);
                    let vertices = &self.keys.vertices;
                    let place =
                        place.ok_or_else(|| damaged(vertices, "a position that is none"))?;
                    numbers.push(place.bin);
                }
                (bins.count(), numbers)
            }
            None => (1, vec![0; order.len()]),
        };
        let mut sorted: Vec<usize> = (0..order.len()).collect();
        sorted.sort_by_key(|at| bins[*at]);
        let rows: Vec<usize> = sorted.iter().map(|at| order[*at] as usize).collect();
        let before = usize::try_from(chunk.rows).unwrap_or(0).max(1);
        let gather = |bytes: &mut Vec<u8>| {
            let size = bytes.len() / before;
            let all = rows
                .iter()
                .flat_map(|row| bytes[row * size..(row + 1) * size].iter());
            *bytes = all.copied().collect();
        };
        gather(&mut chunk.positions);
        chunk.vertex.values_mut().for_each(gather);
        if !chunk.fragment.is_empty() {
            return Err(EditError::Unsupported("bins have attributes"));
        }
        chunk.rows = rows.len() as u64;
        let mut counts = vec![0u64; usize::try_from(count).unwrap_or(1)];
        for bin in &bins {
            counts[*bin as usize] += 1;
        }
        let mut start = 0;
        chunk.fragments = counts
            .iter()
            .map(|rows| {
                let end = start + rows;
                let fragment = Fragment::Range(start, end);
                start = end;
                fragment
            })
            .collect();
        Ok(())
    }

    /// Adds objects, or replaces removed objects of the same id.
    pub(super) fn add_objects(
        &mut self,
        plan: &WritePlan,
        change: &LevelChange,
        bases: &[(u64, u32)],
        edits: &mut Edits,
    ) -> Result<(), EditError> {
        let Some(objects) = &plan.objects else {
            if self.tables.ids.is_some() {
                return Err(EditError::Kind {
                    expected: "points of objects",
                    found: "points without objects; give them object_ids",
                });
            }
            return Ok(());
        };
        if self.tables.ids.is_none() && self.chunks().next().is_some() {
            return Err(EditError::Kind {
                expected: "points without objects",
                found: "points of objects",
            });
        }
        let new: BTreeSet<i64> = objects.ids.iter().copied().collect();
        let present =
            |id: &&i64| self.tables.row_of.contains_key(*id) && !change.remove.contains(*id);
        if let Some(id) = new.iter().find(present) {
            return Err(EditError::ObjectExists(*id));
        }
        let removed: BTreeSet<i64> = change.remove.difference(&new).copied().collect();
        self.tables.remove(&removed);
        for (row, id) in objects.ids.iter().enumerate() {
            let entries = plan.layout.manifests.of(row).iter();
            let fragments: Vec<_> = entries
                .map(|entry| {
                    let chunk = plan.layout.fragments[*entry as usize].chunk;
                    let coords = plan.layout.chunks[chunk as usize].clone();
                    (coords, bases[chunk as usize].1 + plan.layout.number(*entry))
                })
                .collect();
            edits.touched_objects.insert(*id);
            edits.objects.push(*id);
            match self.tables.row_of.get(id) {
                Some(row) => {
                    self.tables.manifests[*row] = self.tables.encoded(&fragments, self.axes)?;
                }
                None => self.tables.push(*id, &fragments, self.axes)?,
            }
        }
        for attribute in &plan.geometry.object {
            self.object_attribute(attribute, objects)?;
        }
        self.join_groups(&plan.geometry.groups);
        for (number, members) in &change.groups {
            for id in members {
                if !self.tables.row_of.contains_key(id) {
                    let what = format!("group {number}");
                    return Err(BuildError::UnknownObject { what, id: *id }.into());
                }
                edits.touched_objects.insert(*id);
            }
        }
        self.join_groups(&change.groups);
        self.group_attributes(&plan.geometry.group)
    }

    /// Adds members to groups.
    fn join_groups(&mut self, groups: &BTreeMap<u32, Vec<i64>>) {
        for (number, members) in groups {
            let number = *number as usize;
            if self.tables.groups.len() <= number {
                self.tables.groups.resize(number + 1, Vec::new());
            }
            let own = &mut self.tables.groups[number];
            let mut present: HashSet<i64> = own.iter().copied().collect();
            own.extend(members.iter().filter(|id| present.insert(**id)));
        }
    }

    pub(super) fn object_attribute(
        &mut self,
        attribute: &Column,
        objects: &crate::objects::ObjectRows,
    ) -> Result<(), EditError> {
        let rows = self.tables.manifests.len();
        let table = Table::like(
            attribute,
            self.tables.object.get(&attribute.name),
            false,
            rows,
        )?;
        let table = self
            .tables
            .object
            .entry(attribute.name.clone())
            .or_insert(table);
        for (row, id) in objects.ids.iter().enumerate() {
            // A null of a replaced object removes the stored value.
            let given = objects.attribute_rows[row];
            if let (Some(row), Some(at)) = (self.tables.row_of.get(id), given) {
                table.rows[*row] = Table::value(attribute, at);
            }
        }
        Ok(())
    }

    pub(super) fn group_attributes(&mut self, attributes: &[Column]) -> Result<(), EditError> {
        for attribute in attributes {
            let rows = self.tables.groups.len().max(attribute.values.len());
            if self.tables.groups.len() < rows {
                self.tables.groups.resize(rows, Vec::new());
            }
            let table = Table::like(
                attribute,
                self.tables.group.get(&attribute.name),
                true,
                rows,
            )?;
            let table = self
                .tables
                .group
                .entry(attribute.name.clone())
                .or_insert(table);
            table.rows.resize(rows, None);
            for at in 0..attribute.values.len() {
                // Existing values of a group are kept.
                if table.rows[at].is_none() {
                    table.rows[at] = Table::value(attribute, at);
                }
            }
        }
        Ok(())
    }
}

/// Checks that a stored cell has rows of the same size as `numbers`, which are appended to it.
///
/// # Errors
///
/// [`EditError::Damaged`] if the sizes differ: readers could not divide the cell into rows.
pub(super) fn check_width(
    array: &Key,
    chunk: &[i64],
    cell: &[u8],
    rows: u64,
    numbers: &NumericColumn,
) -> Result<(), EditError> {
    let expected = rows.saturating_mul(numbers.row_size() as u64);
    if cell.len() as u64 == expected {
        return Ok(());
    }
    let why = format!(
        "{} bytes, but {rows} rows of {} x {} have {expected}",
        cell.len(),
        numbers.row_len(),
        numbers.kind.name()
    );
    Err(damaged(array, why).in_chunk(chunk))
}
