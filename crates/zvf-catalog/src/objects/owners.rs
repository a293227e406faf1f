//! Owners of fragments: the inverse of manifests.

use zvf_model::grid::ChunkCoord;

use super::ObjectSet;

/// The owners of all fragments, by chunk.
#[derive(Debug, Default)]
pub(crate) struct FragmentOwners {
    /// Start of each chunk's fragments in `owned`, and the end of the last.
    starts: Vec<usize>,
    owned: Vec<Ownership>,
}

/// A fragment and the position of an object that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Ownership {
    fragment: u32,
    position: u32,
}

impl FragmentOwners {
    pub(super) fn of(objects: &ObjectSet) -> Self {
        let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        // A counting sort by chunk: count, then distribute.
        let mut starts = vec![0_usize; objects.chunks.len().saturating_add(1)];
        for fragment_ref in &objects.fragments {
            if let Some(count) = starts.get_mut(index(fragment_ref.chunk).saturating_add(1)) {
                *count = count.saturating_add(1);
            }
        }
        let mut before = 0_usize;
        for start in &mut starts {
            before = before.saturating_add(*start);
            *start = before;
        }
        let mut next = starts.clone();
        let mut owned = vec![Ownership::default(); objects.fragments.len()];
        for position in 0..objects.len() {
            let number = u32::try_from(position).unwrap_or(u32::MAX);
            for fragment_ref in objects.fragments(position) {
                let Some(at) = next.get_mut(index(fragment_ref.chunk)) else {
                    continue;
                };
                if let Some(owned) = owned.get_mut(*at) {
                    let fragment = fragment_ref.fragment;
                    *owned = Ownership {
                        fragment,
                        position: number,
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
        objects: &ObjectSet,
        chunk: &ChunkCoord,
    ) -> ChunkOwners<'a> {
        let number = objects.number_of(chunk);
        let number = number.and_then(|number| usize::try_from(number).ok());
        let range = number.and_then(|number| {
            let end = self.starts.get(number.checked_add(1)?)?;
            self.owned.get(*self.starts.get(number)?..*end)
        });
        let owned = range.unwrap_or_default();
        ChunkOwners { owned }
    }
}

/// The owners of the fragments of one chunk.
#[derive(Clone, Copy, Debug)]
pub struct ChunkOwners<'a> {
    owned: &'a [Ownership],
}

impl<'a> ChunkOwners<'a> {
    /// Returns whether no object has a fragment of the chunk.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    /// Returns pairs of a fragment and the position of an object that has it, ascending. A fragment
    /// that a manifest repeats is repeated.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, usize)> + use<'a> {
        let position = |owned: &Ownership| usize::try_from(owned.position).unwrap_or(usize::MAX);
        self.owned
            .iter()
            .map(move |owned| (owned.fragment, position(owned)))
    }

    /// Returns the positions of the objects that have a fragment, ascending. O(log n).
    #[inline]
    pub fn positions(&self, fragment: u32) -> impl Iterator<Item = usize> + use<'a> {
        let owned = self.of_fragment(fragment);
        // A manifest may repeat a fragment.
        let positions = owned.chunk_by(|a, b| a.position == b.position);
        positions.filter_map(|owned| usize::try_from(owned.first()?.position).ok())
    }

    #[inline]
    fn of_fragment(&self, fragment: u32) -> &'a [Ownership] {
        let start = self
            .owned
            .partition_point(|owned| owned.fragment < fragment);
        let rest = self.owned.get(start..).unwrap_or_default();
        let end = rest.partition_point(|owned| owned.fragment == fragment);
        rest.get(..end).unwrap_or_default()
    }
}
