//! Points parted until what is around them can be read at once.

use rayon::prelude::*;

use super::{MOST_AXES, kernel::Kernel};
use crate::{DenseError, Selection, selection::AxisRange};

/// Points, and the voxels around them.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) points: Vec<u32>,
    /// The first voxel along each axis.
    pub(super) starts: Vec<u64>,
    /// How many.
    pub(super) counts: Vec<u64>,
}

impl Region {
    /// What is read: the voxels, with all their values.
    pub(super) fn selection(&self, channels: &[u64]) -> Selection {
        let space = self.starts.iter().zip(&self.counts);
        let space = space.map(|(start, count)| {
            let end = start.saturating_add(*count);
            AxisRange::whole(end).portion(*start..end)
        });
        space
            .chain(channels.iter().copied().map(AxisRange::whole))
            .collect()
    }
}

/// Least and greatest base of points along each axis.
type Span = [(u64, u64); MOST_AXES];

/// Where to part points: along which axis, and the first voxel of the second part.
type Cut = (usize, u64);

/// Regions still to come.
pub(super) struct Regions<'a> {
    kernel: &'a Kernel,
    positions: &'a [f64],
    waiting: Vec<Vec<u32>>,
}

impl<'a> Regions<'a> {
    pub(super) fn new(kernel: &'a Kernel, positions: &'a [f64], points: Vec<u32>) -> Self {
        Self {
            kernel,
            positions,
            waiting: vec![points],
        }
    }

    /// The next region of at most `share` bytes, of voxels of `bytes`.
    pub(super) fn next(
        &mut self,
        chunk: &[u64],
        bytes: u64,
        share: u64,
    ) -> Option<Result<Region, DenseError>> {
        loop {
            let points = self.waiting.pop()?;
            if points.is_empty() {
                continue;
            }
            let span = self.span(&points);
            let region = self.around(points, &span);
            let counts = region.counts.iter().copied().chain([bytes]);
            let needed = crate::selection::product(counts).unwrap_or(u64::MAX);
            let axes = span.iter().zip(chunk).take(self.kernel.axes()).enumerate();
            let chunks = axes.clone().map(|(_, (&(first, last), &len))| {
                let (first, last) = (first / len.max(1), last / len.max(1));
                last.saturating_sub(first).saturating_add(1)
            });
            let all = crate::selection::product(chunks.clone()).unwrap_or(u64::MAX);
            let is_dense = u64::try_from(region.points.len()).is_ok_and(|points| all <= points);
            if needed <= share && (all == 1 || is_dense) {
                return Some(Ok(region));
            }
            let cut = match all {
                1 => {
                    let longest = axes.max_by_key(|(_, ((first, last), _))| last - first);
                    let longest = longest.filter(|(_, ((first, last), _))| first < last);
                    longest.map(|(axis, (&(first, last), _))| {
                        let half = last.saturating_sub(first).div_ceil(2);
                        (axis, first.saturating_add(half))
                    })
                }
                _ => axes.zip(chunks).max_by_key(|(_, chunks)| *chunks).map(
                    |((axis, (&(first, _), &len)), chunks)| {
                        let middle = (first / len.max(1)).saturating_add(chunks / 2);
                        (axis, middle.saturating_mul(len))
                    },
                ),
            };
            match cut {
                Some(cut) => self.part(region.points, cut),
                None => {
                    return Some(Err(DenseError::Budget {
                        needed,
                        budget: share,
                    }));
                }
            }
        }
    }

    fn part(&mut self, points: Vec<u32>, (axis, middle): Cut) {
        let is_before = |point: &u32| {
            let place = self.kernel.place(self.positions, *point);
            let at = place.and_then(|place| place.get(axis).copied());
            at.is_some_and(|at| self.base(axis, at) < middle)
        };
        let (before, after): (Vec<u32>, Vec<u32>) = points.into_par_iter().partition(is_before);
        self.waiting.push(after);
        self.waiting.push(before);
    }

    /// The voxel that a point is filed under, which is one of the array.
    fn base(&self, axis: usize, at: f64) -> u64 {
        let extent = self.kernel.shape().get(axis).copied().unwrap_or(0);
        self.kernel.base(at).min(extent.saturating_sub(1))
    }

    fn span(&self, points: &[u32]) -> Span {
        let none = [(u64::MAX, 0); MOST_AXES];
        let add = |mut span: Span, point: &u32| {
            let place = self.kernel.place(self.positions, *point);
            let axes = span.iter_mut().zip(place.iter().flatten()).enumerate();
            for (axis, ((first, last), at)) in axes.take(self.kernel.axes()) {
                let base = self.base(axis, *at);
                (*first, *last) = ((*first).min(base), (*last).max(base));
            }
            span
        };
        let both = |mut a: Span, b: Span| {
            for (a, b) in a.iter_mut().zip(b) {
                *a = (a.0.min(b.0), a.1.max(b.1));
            }
            a
        };
        points.par_iter().fold(|| none, add).reduce(|| none, both)
    }

    /// The region of points with these bases.
    fn around(&self, points: Vec<u32>, span: &Span) -> Region {
        let (before, after) = self.kernel.reach();
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        for ((first, last), extent) in span.iter().zip(self.kernel.shape()) {
            let start = first.saturating_sub(before);
            let end = last.saturating_add(after).saturating_add(1).min(*extent);
            starts.push(start);
            counts.push(end.saturating_sub(start));
        }
        Region {
            points,
            starts,
            counts,
        }
    }
}
