//! Merging of byte ranges of one object into fewer requests.

use core::ops::Range;

/// The limits within which two ranges of one object become one request.
///
/// A request costs a round trip and bytes in a gap cost transfer time, so cheaper requests call
/// for smaller limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeLimits {
    /// Maximum number of unrequested bytes between two ranges.
    pub gap: u64,
    /// Maximum size of a merged request. A single range may be longer.
    pub size: u64,
}

/// The result of [`coalesce`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoalescedRanges {
    /// The ranges to fetch, ascending by start.
    pub fetches: Vec<Range<u64>>,
    /// For each input range, the index of the fetch that contains it.
    pub fetch_of: Vec<usize>,
}

/// Merges ranges of one object, in O(n log n) and without I/O.
///
/// Every input range lies in one fetch. A fetch of several ranges is no longer than `limits.size`,
/// unless one of them is, and has no gap above `limits.gap`. Empty and reversed ranges are kept
/// unchanged.
///
/// ```
/// use zvf_store::{MergeLimits, coalesce};
///
/// let limits = MergeLimits { gap: 10, size: 100 };
/// let merged = coalesce(&[40..50, 0..8, 12..20], limits);
/// assert_eq!(merged.fetches, [0..20, 40..50]);
/// assert_eq!(merged.fetch_of, [1, 0, 0]);
/// ```
pub fn coalesce(ranges: &[Range<u64>], limits: MergeLimits) -> CoalescedRanges {
    let mut order: Vec<(usize, &Range<u64>)> = ranges.iter().enumerate().collect();
    order.sort_by_key(|(_, range)| (range.start, range.end));
    let mut fetches: Vec<Range<u64>> = Vec::new();
    let mut fetch_of = vec![0; ranges.len()];
    for (index, range) in order {
        match fetches.last_mut() {
            Some(last) if joins(last, range, limits) => last.end = last.end.max(range.end),
            _ => fetches.push(range.clone()),
        }
        if let Some(fetch) = fetch_of.get_mut(index) {
            *fetch = fetches.len().saturating_sub(1);
        }
    }
    CoalescedRanges { fetches, fetch_of }
}

/// Returns whether `range`, which starts no earlier than `last`, is merged into it.
fn joins(last: &Range<u64>, range: &Range<u64>, limits: MergeLimits) -> bool {
    let inside = range.end <= last.end && range.start < last.end;
    let gap = range.start.saturating_sub(last.end);
    let size = range.end.max(last.end).saturating_sub(last.start);
    inside || gap <= limits.gap && size <= limits.size
}
