//! One-sided Hausdorff distance between shapes, measured without knowledge of how they were made.

mod nearest;

use super::distance::square;
use nearest::Tree;

/// Points, segments or triangles.
#[derive(Clone, Copy, Debug)]
pub struct Simplices<'a> {
    /// Number of axes.
    pub axes: usize,
    /// Positions, row by row.
    pub positions: &'a [f64],
    /// Corners of an element: 1, 2 or 3.
    pub width: usize,
    /// Corner rows of each element. Elements with rows that do not exist are skipped; corners may
    /// repeat.
    pub links: &'a [u32],
}

/// Distance of one shape from another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HausdorffDistance {
    /// Largest distance of a corner of the first shape from the second, which is exact.
    pub corners: f64,
    /// Largest distance of a sample, corners included.
    pub samples: f64,
    /// Upper bound on the distance of any point of the first shape.
    pub bound: f64,
    /// Number of samples.
    pub count: u64,
}

/// Measures the one-sided Hausdorff distance: the distance from `to` of the point of `from` that is
/// farthest from it. Infinite if `to` is empty, and 0 if `from` is empty.
///
/// Distances of samples are exact up to rounding. Elements are sampled at their corners and on a
/// grid of equal steps along their edges, no longer than `spacing`; with an infinite spacing only
/// at corners. Every point of an element is within the longest step of a sample, so `bound` exceeds
/// `samples` by at most that step. Each sample costs one tree search.
pub fn hausdorff_one_sided(
    from: &Simplices<'_>,
    to: &Simplices<'_>,
    spacing: f64,
) -> HausdorffDistance {
    let tree = Tree::new(to);
    let mut found = HausdorffDistance {
        corners: 0.0,
        samples: 0.0,
        bound: 0.0,
        count: 0,
    };
    let mut position = vec![0.0; from.axes];
    let mut longest_step = 0.0f64;
    let mut seen = vec![false; from.positions.len() / from.axes.max(1)];
    for element in from.iter() {
        let corners = |at: usize| from.position(element[at]);
        let longest = (0..element.len())
            .flat_map(|a| (0..a).map(move |b| (a, b)))
            .map(|(a, b)| square(corners(a), corners(b)).sqrt())
            .fold(0.0, f64::max);
        let steps = match (longest / spacing).ceil() {
            steps if steps >= 1.0 => steps.min(f64::from(u16::MAX)) as u32,
            _ => 1,
        };
        let mut farthest = 0.0f64;
        for [a, b] in samples(element.len(), steps) {
            let shares = [steps - a - b, a, b];
            position.fill(0.0);
            for (corner, share) in element.iter().zip(shares) {
                let share = f64::from(share) / f64::from(steps);
                for (sum, number) in position.iter_mut().zip(from.position(*corner)) {
                    *sum += number * share;
                }
            }
            let corner = shares.iter().position(|share| *share == steps);
            if let Some(corner) = corner {
                let row = element[corner] as usize;
                position.copy_from_slice(from.position(element[corner]));
                if std::mem::replace(&mut seen[row], true) {
                    continue;
                }
            }
            let distance = tree.nearest(&position);
            found.count += 1;
            farthest = farthest.max(distance);
            if corner.is_some() {
                found.corners = found.corners.max(distance);
            }
        }
        found.samples = found.samples.max(farthest);
        if element.len() > 1 {
            longest_step = longest_step.max(longest / f64::from(steps));
        }
    }
    found.bound = found.samples + longest_step;
    found
}

/// Maximum number of steps along an edge of a sampled element.
const MAX_STEPS: f64 = 64.0;
/// Upper bound on the distance of a point of a triangle from its nearest corner, over the longest
/// edge: the circumradius of an equilateral triangle.
const TO_CORNER: f64 = 0.577_350_27;

/// Bounds the two-sided Hausdorff distance of two surfaces: the distance of `new` from `old` is
/// sampled on a grid of steps no longer than `spacing`, and the distance of `old` from `new` is the
/// smaller of `known` and a bound from its corners.
///
/// Positions that are not finite have no distance and are skipped.
///
/// Searches end as soon as an element is near enough not to matter for the maximum.
pub(super) fn two_sided_bound(
    old: &Simplices<'_>,
    new: &Simplices<'_>,
    spacing: f64,
    known: f64,
) -> f64 {
    let rows = old.positions.len() / old.axes.max(1);
    // Reach of the elements at each corner; negative for unused rows.
    let mut reach = vec![-1.0f64; rows];
    for element in old.iter() {
        let longest = longest_edge(old, element);
        for row in element {
            let own = &mut reach[*row as usize];
            *own = own.max(longest * TO_CORNER);
        }
    }
    let tree = Tree::new(new);
    let mut forward = 0.0f64;
    for (row, reach) in (0..).zip(&reach) {
        let is_finite = reach.is_finite() && old.position(row).iter().all(|at| at.is_finite());
        if *reach >= 0.0 && is_finite && forward < known {
            let near_enough = forward - reach;
            let distance = tree.nearest_beyond(old.position(row), near_enough);
            forward = forward.max(distance + reach);
        }
    }
    let tree = Tree::new(old);
    let mut backward = 0.0f64;
    let mut position = vec![0.0; new.axes];
    for element in new.iter() {
        let steps = (longest_edge(new, element) / spacing).ceil();
        let steps = if steps >= 1.0 {
            steps.min(MAX_STEPS) as u32
        } else {
            1
        };
        for [a, b] in samples(element.len(), steps) {
            position.fill(0.0);
            for (corner, share) in element.iter().zip([steps - a - b, a, b]) {
                let share = f64::from(share) / f64::from(steps);
                for (sum, number) in position.iter_mut().zip(new.position(*corner)) {
                    *sum += number * share;
                }
            }
            if position.iter().all(|at| at.is_finite()) {
                backward = backward.max(tree.nearest_beyond(&position, backward));
            }
        }
    }
    let backward = if backward.is_finite() {
        backward
    } else {
        known
    };
    forward.min(known).max(backward)
}

fn longest_edge(shape: &Simplices<'_>, element: &[u32]) -> f64 {
    let pairs = (0..element.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let squares =
        pairs.map(|(a, b)| square(shape.position(element[a]), shape.position(element[b])));
    squares.fold(0.0, f64::max).sqrt()
}

/// Barycentric weights of the second and third corner of each sample.
fn samples(width: usize, steps: u32) -> impl Iterator<Item = [u32; 2]> {
    let max = move |at: usize, left: u32| if at < width { left } else { 0 };
    (0..=max(1, steps)).flat_map(move |a| (0..=max(2, steps - a)).map(move |b| [a, b]))
}

impl<'a> Simplices<'a> {
    fn iter(&self) -> impl Iterator<Item = &'a [u32]> {
        let rows = self.positions.len() / self.axes.max(1);
        (self.links.chunks_exact(self.width.clamp(1, 3)))
            .filter(move |element| element.iter().all(|row| (*row as usize) < rows))
    }

    fn position(&self, row: u32) -> &'a [f64] {
        &self.positions[row as usize * self.axes..(row as usize + 1) * self.axes]
    }
}
