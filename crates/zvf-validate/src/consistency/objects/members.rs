//! Lookup of object ids.

use core::ops::Range;

use super::super::Ids;

/// The ids of a level, for the lookup of group members.
#[derive(Debug)]
pub(in crate::consistency) enum Members {
    /// All ids from 0 to below this count.
    Rows(u64),
    /// Ascending ids.
    Ids(Vec<i64>),
}

impl Members {
    pub(in crate::consistency) fn new(ids: &Ids) -> Self {
        match ids {
            Ids::Rows(rows) => Self::Rows(*rows),
            Ids::Table(ids) => {
                let mut ids = ids.clone();
                ids.sort_unstable();
                ids.dedup();
                Self::Ids(ids)
            }
        }
    }

    pub(in crate::consistency) fn has(&self, id: i64) -> bool {
        match self {
            Self::Rows(rows) => u64::try_from(id).is_ok_and(|id| id < *rows),
            Self::Ids(ids) => ids.binary_search(&id).is_ok(),
        }
    }

    /// Returns the number of ids in a range that do not exist. O(log n).
    pub(in crate::consistency) fn missing(&self, range: &Range<i64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let all = range.end.abs_diff(range.start);
        let present = match self {
            Self::Rows(rows) => {
                let rows = i64::try_from(*rows).unwrap_or(i64::MAX);
                let (start, end) = (range.start.max(0), range.end.min(rows));
                if start < end { end.abs_diff(start) } else { 0 }
            }
            Self::Ids(ids) => {
                let start = ids.partition_point(|id| *id < range.start);
                let end = ids.partition_point(|id| *id < range.end);
                u64::try_from(end.saturating_sub(start)).unwrap_or(u64::MAX)
            }
        };
        all.saturating_sub(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_counted_without_walking_them() {
        let rows = Members::new(&Ids::Rows(5));
        assert_eq!(rows.missing(&(0..5)), 0);
        assert_eq!(rows.missing(&(-2..7)), 4);
        assert_eq!(rows.missing(&(i64::MIN..i64::MAX)), u64::MAX - 5);
        assert_eq!(rows.missing(&(9..9)), 0);
        let ids = Members::new(&Ids::Table(vec![7, -3, 7, 100]));
        assert!(ids.has(-3) && !ids.has(0));
        assert_eq!(ids.missing(&(-3..8)), 9);
    }
}
