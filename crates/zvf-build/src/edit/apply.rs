//! Application of a change to a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use zvf_format::path::ChunkCoords;

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
            edits.touched.insert(format!("0/{}", ChunkCoords(coords)));
        }
        edits
            .touched
            .extend(change.remove.iter().map(|id| format!("object/{id}")));
        let fragments_gone = self.fragments_gone(change)?;
        let moved = remove_rows(&mut chunks, change, &fragments_gone, &mut edits)?;
        let mut cells = self.links_after(&touched, &moved, &mut edits, change)?;
        let mut puts_tables = true;
        if change.compact {
            puts_tables = self.compact(&mut chunks)?;
        }
        if let Some(plan) = &change.add {
            self.add(plan, change, &mut chunks, &mut cells, &mut edits)?;
        } else {
            self.tables.remove(&change.remove);
        }
        let emptied = chunks.iter().filter(|(_, chunk)| chunk.rows == 0);
        let emptied: BTreeSet<Vec<i64>> = emptied.map(|(coords, _)| coords.clone()).collect();
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
        let cell = |path: &str| self.cells.get(&(path.to_owned(), coords.to_vec()));
        let row = self.axes * self.positions.size();
        let mut chunk = Chunk::default();
        let listed = |path: &str| {
            let array = self.arrays.get(path);
            array.is_some_and(|array| array.present.contains(coords))
        };
        if !listed("0/vertices") {
            for path in self.arrays.keys() {
                if path.starts_with("0/vertex_attributes/") {
                    chunk.vertex.insert(path.clone(), Vec::new());
                } else if path.starts_with("0/fragment_attributes/") {
                    chunk.fragment.insert(path.clone(), Vec::new());
                }
            }
            return Ok(chunk);
        }
        let positions = cell("0/vertices");
        let positions = positions.ok_or_else(|| missing("0/vertices").in_chunk(coords))?;
        if !positions.len().is_multiple_of(row) {
            return Err(damaged("0/vertices", "not a whole number of rows").in_chunk(coords));
        }
        chunk.rows = (positions.len() / row) as u64;
        chunk.positions.clone_from(positions);
        let index = cell("0/vertex_fragments");
        let index = index.ok_or_else(|| missing("0/vertex_fragments").in_chunk(coords))?;
        chunk.fragments = Chunk::fragments("0/vertex_fragments", coords, index, chunk.rows)?;
        for path in self.arrays.keys() {
            let of_vertices = path.starts_with("0/vertex_attributes/");
            let of_fragments = path.starts_with("0/fragment_attributes/");
            if !of_vertices && !of_fragments {
                continue;
            }
            let rows = if of_vertices {
                chunk.rows
            } else {
                chunk.fragments.len() as u64
            };
            let bytes = cell(path).cloned();
            let bytes = match (bytes, rows) {
                (Some(bytes), _) => bytes,
                (None, 0) => Vec::new(),
                (None, _) => return Err(missing(path).in_chunk(coords)),
            };
            if rows == 0 && !bytes.is_empty()
                || rows > 0 && !(bytes.len() as u64).is_multiple_of(rows)
            {
                return Err(damaged(path, "not a whole number of rows").in_chunk(coords));
            }
            if of_vertices {
                chunk.vertex.insert(path.clone(), bytes)
            } else {
                chunk.fragment.insert(path.clone(), bytes)
            };
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
        for (path, segment, offsets) in links::arrays(self)? {
            let array = &self.arrays[&path];
            let form = array.row_form;
            for source in &array.present {
                if !links::touches(source, &offsets, touched) {
                    continue;
                }
                let mut cell = links::load(self, &segment, source)?;
                let others = offsets.iter().map(|offset| links::at(source, offset));
                let ends: Vec<Vec<i64>> = [source.clone()].into_iter().chain(others).collect();
                let (removed, severed) = links::renumber(&mut cell, &ends, form, moved)?;
                let duplicate = self.links.as_ref().is_some_and(|family| family.duplicate);
                if !duplicate || links::is_leading(&segment) {
                    edits.severed += severed;
                    edits.links += removed.iter().filter(|removed| **removed).count();
                }
                if removed.contains(&true) {
                    let names = ends.iter().map(|chunk| format!("0/{}", ChunkCoords(chunk)));
                    edits.unlinked.extend(names);
                }
                cell.without(&removed);
                if change.compact && !cell.fragments.is_empty() {
                    cell.fragments = vec![Fragment::Range(0, cell.rows)];
                }
                cells.insert((segment.clone(), source.clone()), cell);
            }
        }
        Ok(cells)
    }
}
