//! Application of a change to a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use zvf_model::{key::Key, scope::Scope};

use super::{
    change::{Edits, LevelChange},
    chunk::{Chunk, Fragment},
    error::{EditError, damaged, missing},
    image::{CellId, LevelSnapshot},
    links,
    remove::remove_rows,
};
use crate::GeometryKind;

impl LevelSnapshot {
    /// Applies a change. The cells that it [needs](LevelChange::needs) must be loaded.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the change does not fit the level, or the level is damaged.
    pub fn apply(mut self, change: &LevelChange) -> Result<Edits, EditError> {
        let mut edits = Edits::default();
        if self.kind == GeometryKind::Skeletons
            && self.links.as_ref().is_some_and(|family| family.directed)
        {
            return Err(EditError::Unsupported(
                "skeletons were streamed chunk by chunk",
            ));
        }
        let in_order = self.kind.is_paths() || self.kind == GeometryKind::Skeletons;
        if in_order && !change.remove_rows.is_empty() {
            return Err(EditError::PathVertices(self.kind.name()));
        }
        let touched = change.chunks(&self)?;
        let mut chunks = BTreeMap::new();
        for coords in &touched {
            chunks.insert(coords.clone(), self.chunk(coords)?);
        }
        edits.touched.clone_from(&touched);
        edits.touched_objects.extend(&change.remove);
        let fragments_gone = self.fragments_gone(change)?;
        let manifests = &self.tables.manifests_node;
        let moved = remove_rows(manifests, &mut chunks, change, &fragments_gone, &mut edits)?;
        let mut cells = self.links_after(&touched, &moved, &mut edits, change)?;
        let mut puts_tables = true;
        if change.compact {
            puts_tables = self.compact(&mut chunks)?;
        }
        if let Some(plan) = &change.add {
            self.add(plan, change, &mut chunks, &mut cells, &mut edits)?;
        } else {
            self.tables.remove(&change.remove);
            edits.objects.extend(&change.remove);
        }
        let emptied: BTreeSet<Vec<i64>> = chunks
            .iter()
            .filter(|(_, chunk)| chunk.rows == 0)
            .map(|(coords, _)| coords.clone())
            .collect();
        if !emptied.is_empty() {
            self.tables.remove_chunks(&emptied, self.axes)?;
        }
        if !change.remove.is_empty() {
            self.update_owners(&mut chunks)?;
        }
        self.put_chunks(&chunks, &mut edits)?;
        self.put_links(&cells, &mut edits)?;
        self.put_level(&chunks, &mut edits);
        if puts_tables {
            self.put_tables(&mut edits)?;
        }
        edits.root = self.root;
        Ok(edits)
    }

    /// Decodes a chunk of the snapshot.
    pub(super) fn chunk(&self, coords: &[i64]) -> Result<Chunk, EditError> {
        let cell = |array: &Key| self.cells.get(&(array.clone(), coords.to_vec()));
        let row = self.axes * self.positions.size();
        let mut chunk = Chunk::default();
        let (vertices, fragments) = (&self.keys.vertices, &self.keys.vertex_fragments);
        let array = self.arrays.get(vertices);
        let is_listed = array.is_some_and(|array| array.present.contains(coords));
        if is_listed {
            let positions = cell(vertices).ok_or_else(|| missing(vertices).in_chunk(coords))?;
            if !positions.len().is_multiple_of(row) {
                return Err(damaged(vertices, "not a whole number of rows").in_chunk(coords));
            }
            chunk.rows = (positions.len() / row) as u64;
            chunk.positions.clone_from(positions);
            let index = cell(fragments).ok_or_else(|| missing(fragments).in_chunk(coords))?;
            chunk.fragments = Chunk::fragments(fragments, coords, index, chunk.rows)?;
        }
        for array in self.arrays.keys() {
            let Some(scope) = self.keys.scope_of(array) else {
                continue;
            };
            let (rows, cells) = match scope {
                Scope::Vertex => (chunk.rows, &mut chunk.vertex),
                Scope::Fragment => (chunk.fragments.len() as u64, &mut chunk.fragment),
                // Their cells are not those of a chunk.
                Scope::Link | Scope::Object | Scope::Group => continue,
            };
            let bytes = cell(array).filter(|_| is_listed).cloned();
            let bytes = match (bytes, rows) {
                (Some(bytes), _) => bytes,
                (None, 0) => Vec::new(),
                (None, _) => return Err(missing(array).in_chunk(coords)),
            };
            if rows == 0 && !bytes.is_empty()
                || rows > 0 && !(bytes.len() as u64).is_multiple_of(rows)
            {
                return Err(damaged(array, "not a whole number of rows").in_chunk(coords));
            }
            cells.insert(array.clone(), bytes);
        }
        Ok(chunk)
    }

    /// Returns link cells with ends in touched chunks, renumbered.
    pub(super) fn links_after(
        &self,
        touched: &BTreeSet<Vec<i64>>,
        moved: &BTreeMap<Vec<i64>, Vec<Option<u64>>>,
        edits: &mut Edits,
        change: &LevelChange,
    ) -> Result<BTreeMap<CellId, Chunk>, EditError> {
        let mut cells = BTreeMap::new();
        for (key, offsets) in links::arrays(self)? {
            let array = &self.arrays[&key];
            let form = array.row_form();
            for source in &array.present {
                if !links::touches(source, &offsets, touched) {
                    continue;
                }
                let mut cell = links::load(self, &key, source)?;
                let others = offsets.iter().map(|offset| links::at(source, offset));
                let ends: Vec<Vec<i64>> = [source.clone()].into_iter().chain(others).collect();
                let (removed, severed) = links::renumber(&key, &mut cell, &ends, form, moved)?;
                if !self.has_copies() || links::is_leading(links::segment(&key)) {
                    edits.severed += severed;
                    edits.links += removed.iter().filter(|removed| **removed).count();
                }
                if removed.contains(&true) {
                    edits.unlinked.extend(ends);
                }
                cell.without(&removed);
                if change.compact && !cell.fragments.is_empty() {
                    cell.fragments = vec![Fragment::Range(0, cell.rows)];
                }
                cells.insert((key.clone(), source.clone()), cell);
            }
        }
        Ok(cells)
    }
}
