//! Cells of links, found by the chunks of the ends.

use std::collections::{BTreeMap, HashMap};

use super::{LinkCell, Place};

/// Cells that links are put into. Where a cell is takes a path to say; that is done
/// once for all links between the same chunks, which come by the million.
#[derive(Debug, Default)]
pub(super) struct Cells {
    all: Vec<LinkCell>,
    by_place: BTreeMap<Place, usize>,
    /// By the numbers of the chunks, in the order in which ends are stored.
    by_ways: HashMap<Vec<u32>, usize>,
    /// That of the last link, as the next is often alike.
    last: Option<(Vec<u32>, usize)>,
}

impl Cells {
    /// The cell of links between these chunks, which `make` says where to put;
    /// `None` when it has no place.
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
