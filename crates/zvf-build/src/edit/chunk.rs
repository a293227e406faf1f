//! Decoded chunk of a level.

use std::collections::BTreeMap;

use zvf_format::fragment::{FragmentIndex, FragmentIndexBuilder};
use zvf_model::key::Key;

use super::error::{EditError, damaged};

/// Vertices of a chunk with attributes and fragments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Chunk {
    /// Number of rows.
    pub(super) rows: u64,
    pub(super) positions: Vec<u8>,
    pub(super) fragments: Vec<Fragment>,
    /// Vertex and fragment attributes by array.
    pub(super) vertex: BTreeMap<Key, Vec<u8>>,
    pub(super) fragment: BTreeMap<Key, Vec<u8>>,
}

/// Rows of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fragment {
    Range(u64, u64),
    List(Vec<u64>),
}

impl Fragment {
    pub(super) fn rows(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::Range(start, end) => Box::new(*start..*end),
            Self::List(rows) => Box::new(rows.iter().copied()),
        }
    }

    fn end(&self) -> u64 {
        match self {
            Self::Range(_, end) => *end,
            Self::List(rows) => rows.iter().max().map_or(0, |row| row + 1),
        }
    }
}

impl Chunk {
    /// Decodes a fragment index over `rows` rows.
    pub(super) fn fragments(
        array: &Key,
        coords: &[i64],
        bytes: &[u8],
        rows: u64,
    ) -> Result<Vec<Fragment>, EditError> {
        let index =
            FragmentIndex::parse(bytes).map_err(|error| damaged(array, error).in_chunk(coords))?;
        let mut fragments = Vec::new();
        for rows_of in &index {
            let fragment = match rows_of {
                zvf_format::fragment::Rows::Range(range) => Fragment::Range(range.start, range.end),
                zvf_format::fragment::Rows::List(list) => Fragment::List(list.iter().collect()),
            };
            if fragment.end() > rows && fragment.rows().next().is_some() {
                let why = format!("a fragment ends at row {} of {rows}", fragment.end());
                return Err(damaged(array, why).in_chunk(coords));
            }
            fragments.push(fragment);
        }
        Ok(fragments)
    }

    /// Encodes the fragment index as a cell of `array`.
    pub(super) fn index(&self, array: &Key) -> Result<Vec<u8>, EditError> {
        let mut builder = FragmentIndexBuilder::default();
        for fragment in &self.fragments {
            let pushed = match fragment {
                Fragment::Range(start, end) => builder.push_range(*start..*end),
                Fragment::List(rows) => builder.push_list(rows),
            };
            pushed.map_err(|error| damaged(array, error))?;
        }
        Ok(builder.finish())
    }

    /// Adds the fragments of appended rows, and the rows.
    pub(super) fn push_ranges(&mut self, rows: impl IntoIterator<Item = u64>) {
        for rows in rows {
            let start = self.rows;
            self.rows += rows;
            self.fragments.push(Fragment::Range(start, self.rows));
        }
    }

    /// Drops rows and returns the new number of each row, or `None`.
    pub(super) fn without(&mut self, removed: &[bool]) -> Vec<Option<u64>> {
        let mut next = 0;
        let numbers: Vec<Option<u64>> = removed
            .iter()
            .map(|removed| {
                let number = (!removed).then_some(next);
                next += u64::from(!removed);
                number
            })
            .collect();
        let rows = usize::try_from(self.rows).unwrap_or(0).max(1);
        let keep = |bytes: &mut Vec<u8>| {
            let size = bytes.len() / rows;
            let kept = bytes
                .chunks_exact(size.max(1))
                .zip(removed)
                .filter(|(_, removed)| !**removed)
                .flat_map(|(row, _)| row);
            *bytes = kept.copied().collect();
        };
        keep(&mut self.positions);
        self.vertex.values_mut().for_each(keep);
        // The number of remaining rows before each row, and of all.
        let mut kept = Vec::with_capacity(removed.len().saturating_add(1));
        kept.push(0);
        for removed in removed {
            let before = kept.last().copied().unwrap_or(0);
            kept.push(before + u64::from(!removed));
        }
        for fragment in &mut self.fragments {
            // An empty range starts at the end of the remaining rows before it.
            let before = |row: u64| {
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                kept.get(row).copied().unwrap_or(next)
            };
            *fragment = match fragment {
                Fragment::Range(start, end) => Fragment::Range(before(*start), before(*end)),
                Fragment::List(rows) => {
                    let row =
                        |row: &u64| numbers.get(usize::try_from(*row).ok()?).copied().flatten();
                    Fragment::List(rows.iter().filter_map(row).collect())
                }
            };
        }
        self.rows = next;
        numbers
    }
}
