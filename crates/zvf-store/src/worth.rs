//! How large a gap between ranges is worth reading over.

use core::ops::Range;

use crate::{coalesce::MergeLimits, range::ByteRange};

/// What gaps cost where requests take long and go side by side: as long as all of them
/// are on their way at once, one more takes no time, and bytes nobody asked for do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worth {
    /// A gap that costs less than a request whatever else is read.
    pub(crate) always: u64,
    /// Requests of one call from which on gaps are read over, the smallest first.
    pub(crate) requests: usize,
}

impl Worth {
    /// `limits` with the smallest gap that leaves no more than so many requests, or its
    /// own where none does.
    pub(crate) fn limits<'a, R>(
        self,
        limits: MergeLimits,
        objects: impl Iterator<Item = R>,
    ) -> MergeLimits
    where
        R: Iterator<Item = &'a ByteRange>,
    {
        let mut requests = 0_usize;
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
            requests = requests.saturating_add(1);
            for range in bounded {
                let gap = range.start.saturating_sub(end);
                if gap > self.always {
                    gaps.push(gap);
                }
                end = end.max(range.end);
            }
        }
        let most = self.requests.saturating_sub(requests);
        // With the gaps sorted, those before this one are read over.
        let over = gaps.len().saturating_sub(most);
        let gap = match over.checked_sub(1) {
            None => self.always,
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

    fn gap(worth: Worth, objects: &[&[Range<u64>]]) -> u64 {
        let objects: Vec<Vec<ByteRange>> = objects
            .iter()
            .map(|ranges| ranges.iter().cloned().map(ByteRange::Bounded).collect())
            .collect();
        let objects = objects.iter().map(|ranges| ranges.iter());
        worth.limits(LIMITS, objects).gap
    }

    #[test]
    fn gaps_are_left_out_until_there_are_too_many_requests() {
        let of = |requests| Worth {
            always: 5,
            requests,
        };
        // Gaps of 3, 20, 300 and, in an object of its own, 50.
        let [one, two] = [
            [0..10, 13..20, 40..50, 350..360].as_slice(),
            [0..10, 60..70].as_slice(),
        ];
        let objects = [one, two];
        assert_eq!(gap(of(5), &objects), 5, "all five go at once");
        assert_eq!(gap(of(4), &objects), 20);
        assert_eq!(gap(of(3), &objects), 50);
        assert_eq!(gap(of(2), &objects), 300);
        assert_eq!(gap(of(1), &objects), 300, "objects are not merged");
    }

    #[test]
    fn no_gap_is_larger_than_the_limit() {
        let of = Worth {
            always: 0,
            requests: 1,
        };
        assert_eq!(gap(of, &[&[0..1, 5000..5001]]), 1000);
        assert_eq!(gap(of, &[&[40..50, 0..60, 45..70]]), 0, "none are gaps");
        assert_eq!(gap(of, &[]), 0);
    }
}
