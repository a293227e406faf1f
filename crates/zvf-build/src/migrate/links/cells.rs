//! Lookup of link cells by the chunks of their ends.

use std::collections::{BTreeMap, HashMap};

use super::{LinkCell, Place};

/// Link cells under construction. The location of a cell is computed once for each tuple of chunks,
/// because millions of links share one.
#[derive(Debug, Default)]
pub(super) struct Cells {
    all: Vec<LinkCell>,
    by_place: BTreeMap<Place, usize>,
    /// Cells by chunk numbers in stored order.
    by_ways: HashMap<Vec<u32>, usize>,
    /// Cell of the last link: consecutive links often share one.
    last: Option<(Vec<u32>, usize)>,
}

impl Cells {
    /// Returns the cell of links between these chunks, created by `make` if new; `None` if it has
    /// no location.
    pub(super) fn of(
        &mut self,
        ways: &[u32],
        make: impl FnOnce() -> Option<(Place, LinkCell)>,
    ) -> Option<&mut LinkCell> {
        let at = match &self.last {
            Some((last, at)) if last == ways => *at,
            _ => {
                let at = match self.by_ways.get(ways) {
                    Some(at) => *at,
                    None => self.open(ways, make()?),
                };
                self.last = Some((ways.to_vec(), at));
                at
            }
        };
        self.all.get_mut(at)
    }

    fn open(&mut self, ways: &[u32], (place, cell): (Place, LinkCell)) -> usize {
        let next = self.all.len();
        let at = *self.by_place.entry(place).or_insert(next);
        if at == next {
            self.all.push(cell);
        }
        self.by_ways.insert(ways.to_vec(), at);
        at
    }

    pub(super) fn finish(self) -> BTreeMap<Place, LinkCell> {
        let mut places: Vec<(Place, usize)> = self.by_place.into_iter().collect();
        places.sort_unstable_by_key(|(_, at)| *at);
        let places = places.into_iter().map(|(place, _)| place);
        places.zip(self.all).collect()
    }
}
