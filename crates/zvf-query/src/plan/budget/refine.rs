//! Selection of the regions returned at the finer level.

use core::cmp::Ordering;

/// A region of space that is returned at one level or the next finer one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Region {
    /// Position in the grid of regions.
    pub(super) cell: Vec<i64>,
    /// Number of vertices at the coarser level.
    pub(super) coarse: u64,
    /// Number of vertices at the finer level.
    pub(super) fine: u64,
    /// Squared distance from the focus; 0 without one.
    pub(super) distance: f64,
}

impl Region {
    /// Returns the number of vertices that the finer level adds.
    pub(super) fn gain(&self) -> u64 {
        self.fine.saturating_sub(self.coarse)
    }

    /// Orders regions by the wish to refine them.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let distance = self.distance.total_cmp(&other.distance);
        let gain = distance.then(self.gain().cmp(&other.gain()));
        gain.then_with(|| self.cell.cmp(&other.cell))
    }
}

/// Selects the regions returned at the finer level, so that the total does not exceed the maximum:
/// the nearest first, then the regions that add the fewest vertices, each if it fits. No remaining
/// region that adds vertices would fit.
pub(super) fn refine(regions: &[Region], max: u64) -> Vec<bool> {
    let mut total = regions
        .iter()
        .map(|region| region.coarse)
        .fold(0, u64::saturating_add);
    let mut finer: Vec<(usize, &Region)> = regions
        .iter()
        .enumerate()
        .filter(|(_, region)| region.gain() > 0)
        .collect();
    finer.sort_by(|(_, a), (_, b)| a.order(b));
    let mut refined = vec![false; regions.len()];
    for (at, region) in finer {
        let with = total.saturating_add(region.gain());
        if let Some(refined) = refined.get_mut(at).filter(|_| with <= max) {
            (total, *refined) = (with, true);
        }
    }
    refined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn region(cell: i64, (coarse, fine, distance): (u64, u64, u8)) -> Region {
        Region {
            cell: vec![cell],
            coarse,
            fine,
            distance: f64::from(distance),
        }
    }

    fn total(regions: &[Region], refined: &[bool]) -> u64 {
        let both = regions.iter().zip(refined);
        both.map(|(region, refined)| if *refined { region.fine } else { region.coarse })
            .sum()
    }

    proptest! {
        #[test]
        fn as_many_regions_as_fit_are_refined(
            counts in proptest::collection::vec((0_u64..20, 0_u64..60, 0_u8..4), 0..12),
            more in 0_u64..200,
        ) {
            let regions: Vec<Region> = (0..)
                .zip(&counts)
                .map(|(cell, counts)| region(cell, *counts))
                .collect();
            let max = total(&regions, &vec![false; regions.len()]) + more;
            let refined = refine(&regions, max);
            let given = total(&regions, &refined);
            prop_assert!(given <= max);
            let more = |of: &Region| of.fine.saturating_sub(of.coarse);
            for (at, region) in regions.iter().enumerate() {
                if refined[at] || more(region) == 0 {
                    prop_assert!(!refined[at] || more(region) > 0);
                    continue;
                }
                // It does not fit now, and did not fit at its turn.
                let mut before = refined.clone();
                for (other, nearer) in regions.iter().enumerate() {
                    let key = |of: &Region| (of.distance.to_bits(), more(of));
                    before[other] &= key(nearer) <= key(region);
                }
                prop_assert!(total(&regions, &before) + more(region) > max);
            }
        }
    }

    #[test]
    fn the_nearest_regions_come_first_then_the_cheapest() {
        let regions = [(1, 9, 4), (1, 9, 0), (1, 3, 4), (1, 30, 0), (5, 2, 9)];
        let regions: Vec<Region> = (0..)
            .zip(regions)
            .map(|(cell, counts)| region(cell, counts))
            .collect();
        assert_eq!(refine(&regions, 19), [false, true, true, false, false]);
        assert_eq!(refine(&regions, 11), [false, false, true, false, false]);
        assert_eq!(refine(&regions, 10), [false; 5]);
    }
}
