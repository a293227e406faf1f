//! Ids of objects and lookup of their positions.

use crate::error::Fault;

/// The ids of objects by position.
#[derive(Clone, Debug)]
pub(crate) enum ObjectIdTable {
    /// Ids equal positions; contains the number of objects.
    Rows(usize),
    /// Ascending ids.
    Ascending(Vec<i64>),
    /// Ids in any order, and their positions sorted by id.
    Mixed(Vec<i64>, Vec<u32>),
}

impl Default for ObjectIdTable {
    fn default() -> Self {
        Self::Rows(0)
    }
}

impl ObjectIdTable {
    /// Indexes stored ids. O(n), or O(n log n) if they do not ascend.
    ///
    /// # Errors
    ///
    /// Returns [`Fault`] if an id repeats, or if ids declared as sorted do not ascend.
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
                let id = |position: &u32| {
                    let position = usize::try_from(*position).ok();
                    position.and_then(|position| ids.get(position)).copied()
                };
                let end = u32::try_from(ids.len()).map_err(|_| Fault::Range)?;
                let mut positions: Vec<u32> = (0..end).collect();
                positions.sort_unstable_by_key(id);
                let mut sorted = positions.windows(2).filter_map(|pair| match pair {
                    [a, b] if id(a) == id(b) => id(a),
                    _ => None,
                });
                match sorted.next() {
                    Some(id) => Err(Fault::Twice(id)),
                    None => Ok(Self::Mixed(ids, positions)),
                }
            }
        }
    }

    /// Returns the id at a position.
    #[inline]
    pub(crate) fn id(&self, position: usize) -> Option<i64> {
        match self {
            Self::Rows(rows) => i64::try_from(position).ok().filter(|_| position < *rows),
            Self::Ascending(ids) | Self::Mixed(ids, _) => ids.get(position).copied(),
        }
    }

    /// Returns the position of an id. O(log n).
    pub(crate) fn find(&self, id: i64) -> Option<usize> {
        match self {
            Self::Rows(rows) => usize::try_from(id).ok().filter(|position| position < rows),
            Self::Ascending(ids) => ids.binary_search(&id).ok(),
            Self::Mixed(_, positions) => {
                let position_of = |position: &u32| usize::try_from(*position).unwrap_or(usize::MAX);
                let by_id = |position: &u32| self.id(position_of(position)).cmp(&Some(id));
                let at = positions.binary_search_by(by_id).ok()?;
                positions.get(at).map(position_of)
            }
        }
    }

    /// Returns the size in bytes.
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
    fn ids_are_found_whatever_their_order() {
        let ids = [7_i64, -3, i64::MAX, 0, i64::MIN, 12];
        let mixed = ObjectIdTable::new(ids.to_vec(), false).unwrap_or_default();
        for (position, id) in ids.into_iter().enumerate() {
            assert_eq!(mixed.find(id), Some(position));
            assert_eq!(mixed.id(position), Some(id));
        }
        assert_eq!([1, -4, 13].map(|id| mixed.find(id)), [None; 3]);
        let rows = ObjectIdTable::Rows(3);
        assert_eq!(
            [-1, 0, 2, 3].map(|id| rows.find(id)),
            [None, Some(0), Some(2), None]
        );
        assert!(matches!(
            ObjectIdTable::new(ids.to_vec(), true),
            Err(Fault::Order)
        ));
        assert!(matches!(
            ObjectIdTable::new(vec![1, 2, 2], true),
            Err(Fault::Twice(2))
        ));
        assert!(matches!(
            ObjectIdTable::new(vec![5, 1, 5], false),
            Err(Fault::Twice(5))
        ));
        assert!(matches!(
            ObjectIdTable::new(vec![], true),
            Ok(ObjectIdTable::Ascending(_))
        ));
    }
}
