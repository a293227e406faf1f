//! Ids of objects, and where each is.

use crate::error::Fault;

/// The id of each row.
#[derive(Clone, Debug)]
pub(crate) enum ObjectIds {
    /// Rows are ids.
    Rows(usize),
    /// These ascend.
    Ascending(Vec<i64>),
    /// These do not, with their places in ascending order of ids.
    Mixed(Vec<i64>, Vec<u32>),
}

impl Default for ObjectIds {
    fn default() -> Self {
        Self::Rows(0)
    }
}

impl ObjectIds {
    /// Ids as stored. O(n), O(n log n) when they do not ascend.
    pub(crate) fn new(ids: Vec<i64>, declared_sorted: bool) -> Result<Self, Fault> {
        let mut pairs = ids.windows(2).filter_map(|pair| match pair {
            [a, b] if a >= b => Some((*a, *b)),
            _ => None,
        });
        match pairs.next() {
            None => Ok(Self::Ascending(ids)),
            Some((a, b)) if a == b => Err(Fault::Twice(a)),
            Some(_) if declared_sorted => Err(Fault::Order),
            Some(_) => {
                let id = |place: &u32| {
                    let place = usize::try_from(*place).ok();
                    place.and_then(|place| ids.get(place)).copied()
                };
                let end = u32::try_from(ids.len()).map_err(|_| Fault::Range)?;
                let mut places: Vec<u32> = (0..end).collect();
                places.sort_unstable_by_key(id);
                let mut sorted = places.windows(2).filter_map(|pair| match pair {
                    [a, b] if id(a) == id(b) => id(a),
                    _ => None,
                });
                match sorted.next() {
                    Some(id) => Err(Fault::Twice(id)),
                    None => Ok(Self::Mixed(ids, places)),
                }
            }
        }
    }

    /// The id of a place.
    pub(crate) fn id(&self, place: usize) -> Option<i64> {
        match self {
            Self::Rows(rows) => i64::try_from(place).ok().filter(|_| place < *rows),
            Self::Ascending(ids) | Self::Mixed(ids, _) => ids.get(place).copied(),
        }
    }

    /// The place of an id. O(log n).
    pub(crate) fn find(&self, id: i64) -> Option<usize> {
        match self {
            Self::Rows(rows) => usize::try_from(id).ok().filter(|place| place < rows),
            Self::Ascending(ids) => ids.binary_search(&id).ok(),
            Self::Mixed(_, places) => {
                let place_of = |place: &u32| usize::try_from(*place).unwrap_or(usize::MAX);
                let by_id = |place: &u32| self.id(place_of(place)).cmp(&Some(id));
                let at = places.binary_search_by(by_id).ok()?;
                places.get(at).map(place_of)
            }
        }
    }

    /// Bytes held.
    pub(crate) fn size(&self) -> u64 {
        let bytes = match self {
            Self::Rows(_) => 0,
            Self::Ascending(ids) => ids.len().saturating_mul(8),
            Self::Mixed(ids, _) => ids.len().saturating_mul(12),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_any_order() {
        let ids = [7_i64, -3, i64::MAX, 0, i64::MIN, 12];
        let mixed = ObjectIds::new(ids.to_vec(), false).unwrap_or_default();
        for (place, id) in ids.into_iter().enumerate() {
            assert_eq!(mixed.find(id), Some(place));
            assert_eq!(mixed.id(place), Some(id));
        }
        assert_eq!([1, -4, 13].map(|id| mixed.find(id)), [None; 3]);
        let rows = ObjectIds::Rows(3);
        assert_eq!(
            [-1, 0, 2, 3].map(|id| rows.find(id)),
            [None, Some(0), Some(2), None]
        );
        assert!(matches!(
            ObjectIds::new(ids.to_vec(), true),
            Err(Fault::Order)
        ));
        assert!(matches!(
            ObjectIds::new(vec![1, 2, 2], true),
            Err(Fault::Twice(2))
        ));
        assert!(matches!(
            ObjectIds::new(vec![5, 1, 5], false),
            Err(Fault::Twice(5))
        ));
        assert!(matches!(
            ObjectIds::new(vec![], true),
            Ok(ObjectIds::Ascending(_))
        ));
    }
}
