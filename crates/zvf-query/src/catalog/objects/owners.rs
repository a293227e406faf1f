//! Which object has each fragment.

use zvf_model::grid::ChunkCoord;

use super::Objects;
use crate::result::{NO_OBJECT, SEVERAL_OBJECTS};

/// The objects of all fragments, by chunk.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// Where each chunk's begin, by its number; one more than there are chunks.
    starts: Vec<usize>,
    owned: Vec<Owned>,
}

/// A fragment of an object, by its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Owned {
    fragment: u32,
    place: u32,
}

impl Owners {
    pub(super) fn of(objects: &Objects) -> Self {
        let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        // First how many each chunk has, then where they go.
        let mut starts = vec![0_usize; objects.chunks.len().saturating_add(1)];
        for piece in &objects.pieces {
            if let Some(count) = starts.get_mut(index(piece.chunk).saturating_add(1)) {
                *count = count.saturating_add(1);
            }
        }
        let mut before = 0_usize;
        for start in &mut starts {
            before = before.saturating_add(*start);
            *start = before;
        }
        let mut next = starts.clone();
        let mut owned = vec![Owned::default(); objects.pieces.len()];
        for place in 0..objects.len() {
            let number = u32::try_from(place).unwrap_or(u32::MAX);
            for piece in objects.fragments(place) {
                let Some(at) = next.get_mut(index(piece.chunk)) else {
                    continue;
                };
                if let Some(owned) = owned.get_mut(*at) {
                    let fragment = piece.fragment;
                    *owned = Owned {
                        fragment,
                        place: number,
                    };
                }
                *at = at.saturating_add(1);
            }
        }
        for range in starts.windows(2) {
            if let [start, end] = range
                && let Some(chunk) = owned.get_mut(*start..*end)
            {
                chunk.sort_unstable();
            }
        }
        Self { starts, owned }
    }

    pub(super) fn of_chunk<'a>(
        &'a self,
        objects: &'a Objects,
        chunk: &ChunkCoord,
    ) -> ChunkOwners<'a> {
        let number = objects.number_of(chunk);
        let number = number.and_then(|number| usize::try_from(number).ok());
        let range = number.and_then(|number| {
            let end = self.starts.get(number.checked_add(1)?)?;
            self.owned.get(*self.starts.get(number)?..*end)
        });
        let owned = range.unwrap_or_default();
        ChunkOwners { objects, owned }
    }
}

/// Which object has each fragment of one chunk.
#[derive(Clone, Copy, Debug)]
pub struct ChunkOwners<'a> {
    objects: &'a Objects,
    owned: &'a [Owned],
}

impl<'a> ChunkOwners<'a> {
    /// Whether no object has a fragment of the chunk.
    pub fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    /// Fragments with the places of the objects that have them, ascending. Of an
    /// object that names a fragment twice, twice.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, usize)> + use<'a> {
        let place = |owned: &Owned| usize::try_from(owned.place).unwrap_or(usize::MAX);
        self.owned
            .iter()
            .map(move |owned| (owned.fragment, place(owned)))
    }

    /// Places of the objects that have a fragment, ascending. O(log n).
    pub fn places(&self, fragment: u32) -> impl Iterator<Item = usize> + use<'a> {
        let owned = self.of_fragment(fragment);
        // Of an object that names it twice, once.
        let places = owned.chunk_by(|a, b| a.place == b.place);
        places.filter_map(|owned| usize::try_from(owned.first()?.place).ok())
    }

    /// The id of the object that has a fragment, [`NO_OBJECT`] when none has and
    /// [`SEVERAL_OBJECTS`] when several have. O(log n).
    pub fn id(&self, fragment: u32) -> i64 {
        let mut places = self.places(fragment);
        match (places.next(), places.next()) {
            (None, _) => NO_OBJECT,
            (Some(place), None) => self.objects.id(place).unwrap_or(NO_OBJECT),
            (Some(_), Some(_)) => SEVERAL_OBJECTS,
        }
    }

    fn of_fragment(&self, fragment: u32) -> &'a [Owned] {
        let start = self
            .owned
            .partition_point(|owned| owned.fragment < fragment);
        let rest = self.owned.get(start..).unwrap_or_default();
        let end = rest.partition_point(|owned| owned.fragment == fragment);
        rest.get(..end).unwrap_or_default()
    }
}
