//! The gaps between ranges that are worth reading.

use core::ops::Range;

use super::{coalesce::MergeLimits, range::ByteRange};

/// Limits for merging ranges of one object into one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergePolicy {
    pub(crate) limits: MergeLimits,
    /// Lowers the gap limit to suit a batch; `None` applies `limits` to every batch.
    pub(crate) gaps: Option<GapPolicy>,
}

impl MergePolicy {
    /// Returns the limits for reads that are sent together, given by object.
    pub(crate) fn limits_for<'a, R>(self, objects: impl Iterator<Item = R>) -> MergeLimits
    where
        R: Iterator<Item = &'a ByteRange>,
    {
        match self.gaps {
            Some(gaps) => gaps.limits_for(self.limits, objects),
            None => self.limits,
        }
    }
}

/// The cost of gaps where requests have a high latency and run concurrently.
///
/// While all requests of a batch are in flight together, one more request adds no time, but the
/// bytes of a gap do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GapPolicy {
    /// A gap up to this size always costs less than a request.
    pub(crate) free_gap: u64,
    /// The number of requests in a batch above which gaps are read, the smallest first.
    pub(crate) max_requests: usize,
}

impl GapPolicy {
    /// Returns `limits` with the smallest gap that leaves at most `max_requests` requests, or with
    /// their own gap if none does.
    fn limits_for<'a, R>(self, limits: MergeLimits, objects: impl Iterator<Item = R>) -> MergeLimits
    where
        R: Iterator<Item = &'a ByteRange>,
    {
        let mut objects_read = 0_usize;
        let mut gaps = Vec::new();
        for ranges in objects {
            let mut bounded: Vec<&Range<u64>> = ranges
                .filter_map(|range| match range {
                    ByteRange::Bounded(range) => Some(range),
                    ByteRange::Full | ByteRange::From(_) | ByteRange::Suffix(_) => None,
                })
                .collect();
            bounded.sort_unstable_by_key(|range| range.start);
            let mut end = bounded.first().map_or(0, |range| range.start);
            objects_read = objects_read.saturating_add(1);
            for range in bounded {
                let gap = range.start.saturating_sub(end);
                if gap > self.free_gap {
                    gaps.push(gap);
                }
                end = end.max(range.end);
            }
        }
        // Each gap that is not read splits one request in two.
        let max_splits = self.max_requests.saturating_sub(objects_read);
        let excess = gaps.len().saturating_sub(max_splits);
        let gap = match excess.checked_sub(1) {
            None => self.free_gap,
            Some(last) => *gaps.select_nth_unstable(last).1,
        };
        MergeLimits {
            gap: gap.min(limits.gap),
            ..limits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: MergeLimits = MergeLimits {
        gap: 1000,
        size: 1 << 20,
    };

    fn gap(policy: GapPolicy, objects: &[&[Range<u64>]]) -> u64 {
        let objects: Vec<Vec<ByteRange>> = objects
            .iter()
            .map(|ranges| ranges.iter().cloned().map(ByteRange::Bounded).collect())
            .collect();
        let objects = objects.iter().map(|ranges| ranges.iter());
        policy.limits_for(LIMITS, objects).gap
    }

    #[test]
    fn gaps_are_skipped_until_there_are_too_many_requests() {
        let at_most = |max_requests| GapPolicy {
            free_gap: 5,
            max_requests,
        };
        // Gaps of 3, 20, 300 and, in an object of its own, 50.
        let [one, two] = [
            [0..10, 13..20, 40..50, 350..360].as_slice(),
            [0..10, 60..70].as_slice(),
        ];
        let objects = [one, two];
        assert_eq!(gap(at_most(5), &objects), 5, "all five are sent at once");
        assert_eq!(gap(at_most(4), &objects), 20);
        assert_eq!(gap(at_most(3), &objects), 50);
        assert_eq!(gap(at_most(2), &objects), 300);
        assert_eq!(gap(at_most(1), &objects), 300, "objects are not merged");
    }

    #[test]
    fn no_gap_is_larger_than_the_limit() {
        let policy = GapPolicy {
            free_gap: 0,
            max_requests: 1,
        };
        assert_eq!(gap(policy, &[&[0..1, 5000..5001]]), 1000);
        assert_eq!(gap(policy, &[&[40..50, 0..60, 45..70]]), 0, "no gaps");
        assert_eq!(gap(policy, &[]), 0);
    }
}
