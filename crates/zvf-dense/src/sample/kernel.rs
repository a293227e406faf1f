//! Which voxels a position has, and what each weighs.

use super::{Affine, Interpolation, MOST_AXES, regions::Region, values::Voxels};

/// Indices of voxels, not whole, by axis.
pub(super) type Place = [f64; MOST_AXES];

/// How positions become voxels.
#[derive(Debug)]
pub(super) struct Kernel {
    affine: Affine,
    interpolation: Interpolation,
    /// Voxels along each axis.
    shape: Vec<u64>,
    is_edge: bool,
}

/// Voxels along one axis: how far from the start of those that were read, and what
/// each weighs.
#[derive(Clone, Copy, Debug, Default)]
struct Taps {
    at: [usize; 4],
    weight: [f64; 4],
    count: usize,
}

impl Kernel {
    pub(super) fn new(
        affine: Affine,
        interpolation: Interpolation,
        shape: &[u64],
        is_edge: bool,
    ) -> Self {
        Self {
            affine,
            interpolation,
            shape: shape.to_vec(),
            is_edge,
        }
    }

    pub(super) fn axes(&self) -> usize {
        self.shape.len()
    }

    /// Where a point is, moved to a centre at the edge from beyond it; `None`
    /// when it is in no voxel.
    pub(super) fn place(&self, positions: &[f64], point: u32) -> Option<Place> {
        let axes = self.axes();
        let start = usize::try_from(point).ok()?.checked_mul(axes)?;
        let position = positions.get(start..start.checked_add(axes)?)?;
        let mut place = [0.0; MOST_AXES];
        let indices = self.affine.apply(position).zip(&self.shape);
        for (into, (at, extent)) in place.iter_mut().zip(indices) {
            let last = float(extent.saturating_sub(1));
            let is_inside = (-0.5..=last + 0.5).contains(&at);
            if !(is_inside || self.is_edge && !at.is_nan()) {
                return None;
            }
            *into = at.clamp(0.0, last);
        }
        Some(place)
    }

    /// The first of the voxels along an axis that a place has before the edge
    /// cuts them, and how many come before and after it.
    pub(super) fn base(&self, at: f64) -> u64 {
        match self.interpolation {
            Interpolation::Nearest => whole(at + 0.5),
            _ => whole(at),
        }
    }

    /// Voxels before and after the base.
    pub(super) fn reach(&self) -> (u64, u64) {
        match self.interpolation {
            Interpolation::Nearest => (0, 0),
            Interpolation::Linear => (0, 1),
            Interpolation::Cubic => (1, 2),
        }
    }

    /// Voxels along each axis.
    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// What was read around a region, to be sampled.
    pub(super) fn window<'a>(&'a self, region: &'a Region, columns: usize) -> Window<'a> {
        Window {
            kernel: self,
            region,
            columns,
        }
    }
}

/// Voxels around points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    kernel: &'a Kernel,
    region: &'a Region,
    columns: usize,
}

impl Window<'_> {
    /// The values at a place.
    pub(super) fn value(&self, place: &Place, voxels: &Voxels, into: &mut Vec<u8>) {
        let interpolation = self.kernel.interpolation;
        let taps = self.taps(place, interpolation);
        let axes = self.kernel.axes();
        let taps = taps.get(..axes).unwrap_or_default();
        for column in 0..self.columns {
            if interpolation == Interpolation::Nearest {
                let first = taps.iter().filter_map(|taps| taps.at.first());
                voxels.copy(first.fold(column, |sum, at| sum.saturating_add(*at)), into);
                continue;
            }
            let mut sum = Sum::default();
            sum.add(voxels, taps, column, 1.0);
            if sum.has_nan && interpolation == Interpolation::Cubic {
                let taps = self.taps(place, Interpolation::Linear);
                sum = Sum::default();
                sum.add(voxels, taps.get(..axes).unwrap_or_default(), column, 1.0);
            }
            voxels.put(sum.value(), into);
        }
    }

    /// The voxels of a place along each axis.
    fn taps(&self, place: &Place, interpolation: Interpolation) -> [Taps; MOST_AXES] {
        let mut all = [Taps::default(); MOST_AXES];
        let axes = self.region.starts.iter().zip(&self.region.counts);
        let axes = axes.zip(place).zip(&self.kernel.shape);
        let mut stride = self.columns;
        // From the last axis on, which is the fastest.
        let mut strides = [0; MOST_AXES];
        for (into, count) in strides
            .iter_mut()
            .take(self.kernel.axes())
            .rev()
            .zip(self.region.counts.iter().rev())
        {
            *into = stride;
            stride = stride.saturating_mul(usize::try_from(*count).unwrap_or(usize::MAX));
        }
        for ((taps, stride), (((start, _), at), extent)) in all.iter_mut().zip(strides).zip(axes) {
            let base = whole(*at);
            let t = at - float(base);
            let (first, weight, count) = match interpolation {
                Interpolation::Nearest => (whole(at + 0.5), [1.0, 0.0, 0.0, 0.0], 1),
                Interpolation::Linear => (base, [1.0 - t, t, 0.0, 0.0], 2),
                Interpolation::Cubic => (base, cubic(t), 4),
            };
            // The first of four is one before; below 0 it is 0.
            let before = u64::from(interpolation == Interpolation::Cubic);
            taps.count = count;
            taps.weight = weight;
            for (step, into) in (0_u64..).zip(taps.at.iter_mut().take(count)) {
                let voxel = first.saturating_add(step).saturating_sub(before);
                let voxel = voxel.min(extent.saturating_sub(1));
                let offset = usize::try_from(voxel.saturating_sub(*start));
                *into = offset.unwrap_or(usize::MAX).saturating_mul(stride);
            }
        }
        all
    }
}

/// A weighted sum of voxels.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: f64,
    weight: f64,
    has_nan: bool,
}

impl Sum {
    fn add(&mut self, voxels: &Voxels, taps: &[Taps], at: usize, weight: f64) {
        let Some((axis, rest)) = taps.split_first() else {
            let value = voxels.get(at);
            if value.is_nan() {
                self.has_nan = true;
            } else {
                self.total += weight * value;
                self.weight += weight;
            }
            return;
        };
        let taps = axis.at.iter().zip(&axis.weight).take(axis.count);
        for (step, own) in taps {
            // A voxel without weight does not count, NaN or not.
            if *own != 0.0 {
                self.add(voxels, rest, at.saturating_add(*step), weight * own);
            }
        }
    }

    fn value(self) -> f64 {
        match self.has_nan {
            false => self.total,
            true if self.weight >= 0.5 => self.total / self.weight,
            true => f64::NAN,
        }
    }
}

/// Weights of four voxels, `t` of the way from the second to the third.
fn cubic(t: f64) -> [f64; 4] {
    let (t2, t3) = (t * t, t * t * t);
    [
        0.5 * (2.0 * t2 - t3 - t),
        0.5 * (3.0 * t3 - 5.0 * t2 + 2.0),
        0.5 * (4.0 * t2 - 3.0 * t3 + t),
        0.5 * (t3 - t2),
    ]
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "beyond 2^53 positions cannot tell voxels apart"
)]
fn float(index: u64) -> f64 {
    index as f64
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds down, and stops at the ends"
)]
fn whole(at: f64) -> u64 {
    at as u64
}
