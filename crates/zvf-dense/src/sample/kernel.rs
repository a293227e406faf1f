//! Which voxels a position has, and what each weighs.

use super::{Affine, Interpolation, MOST_AXES};

/// Most voxels along an axis that a value is made of.
pub(super) const MOST_TAPS: usize = 4;

/// How positions become voxels.
#[derive(Debug)]
pub(super) struct Kernel {
    /// From positions to indices, where they are not the same.
    affine: Option<Affine>,
    interpolation: Interpolation,
    /// Voxels along each axis.
    shape: Vec<u64>,
    /// The last of them, and where it is.
    lasts: Vec<(u64, f64)>,
    is_edge: bool,
}

/// Where a position is along an axis.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// The voxel at or before it; the nearest where that is taken.
    pub(super) base: u64,
    /// How far it is from there to the next: 0 up to but not including 1.
    pub(super) t: f64,
    /// The first voxel that has weight, and the last.
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Where a position is, axis by axis.
pub(super) type Spot = [Step; MOST_AXES];

/// Voxels along one axis, and what each weighs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taps {
    pub(super) voxel: [u64; MOST_TAPS],
    pub(super) weight: [f64; MOST_TAPS],
    pub(super) count: usize,
}

impl Kernel {
    pub(super) fn new(
        affine: Option<Affine>,
        interpolation: Interpolation,
        shape: &[u64],
        is_edge: bool,
    ) -> Self {
        let lasts = shape.iter().map(|extent| extent.saturating_sub(1));
        Self {
            affine,
            interpolation,
            shape: shape.to_vec(),
            lasts: lasts.map(|last| (last, float(last))).collect(),
            is_edge,
        }
    }

    pub(super) fn axes(&self) -> usize {
        self.shape.len()
    }

    /// Voxels along each axis.
    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    pub(super) fn interpolation(&self) -> Interpolation {
        self.interpolation
    }

    /// The most voxels along an axis that a value is made of.
    pub(super) fn width(&self) -> u64 {
        match self.interpolation {
            Interpolation::Nearest => 1,
            Interpolation::Linear => 2,
            Interpolation::Cubic => 4,
        }
    }

    /// Where a position is, moved to a centre at the edge from beyond it; whether it is
    /// in a voxel.
    pub(super) fn spot(&self, position: &[f64], into: &mut Spot) -> bool {
        match &self.affine {
            None => self.place(position.iter().copied(), into),
            Some(affine) => self.place(affine.apply(position), into),
        }
    }

    #[inline]
    fn place(&self, indices: impl Iterator<Item = f64>, into: &mut Spot) -> bool {
        let axes = indices.zip(&self.lasts).zip(into);
        for ((at, (end, last)), into) in axes {
            let is_inside = (-0.5..=last + 0.5).contains(&at);
            if !(is_inside || self.is_edge && !at.is_nan()) {
                return false;
            }
            *into = self.step(at.clamp(0.0, *last), *end);
        }
        true
    }

    /// Where a place on an axis is, of which `end` is the last voxel.
    #[inline]
    fn step(&self, at: f64, end: u64) -> Step {
        if self.interpolation == Interpolation::Nearest {
            let base = whole(at + 0.5).min(end);
            return Step {
                base,
                t: 0.0,
                first: base,
                last: base,
            };
        }
        let base = whole(at).min(end);
        let t = at - float(base);
        // On a voxel its neighbours weigh nothing.
        let (before, after) = match (t > 0.0, self.interpolation) {
            (false, _) => (0, 0),
            (_, Interpolation::Cubic) => (1, 2),
            _ => (0, 1),
        };
        Step {
            base,
            t,
            first: base.saturating_sub(before),
            last: base.saturating_add(after).min(end),
        }
    }

    /// The voxels of a place along each axis; past the edge the last one repeats.
    pub(super) fn taps(&self, spot: &Spot, interpolation: Interpolation) -> [Taps; MOST_AXES] {
        let mut all = [Taps::default(); MOST_AXES];
        for ((taps, step), extent) in all.iter_mut().zip(spot).zip(&self.shape) {
            let (weight, count) = match interpolation {
                Interpolation::Nearest => ([1.0, 0.0, 0.0, 0.0], 1),
                Interpolation::Linear => {
                    let [a, b] = linear(step.t);
                    ([a, b, 0.0, 0.0], 2)
                }
                Interpolation::Cubic => (cubic(step.t), 4),
            };
            taps.count = count;
            taps.weight = weight;
            // The first of four is one before; below 0 it is 0.
            let before = u64::from(interpolation == Interpolation::Cubic);
            for (ahead, voxel) in (0_u64..).zip(taps.voxel.iter_mut().take(count)) {
                let at = step.base.saturating_add(ahead).saturating_sub(before);
                *voxel = at.min(extent.saturating_sub(1));
            }
        }
        all
    }
}

/// Weights of two voxels, `t` of the way from the first to the second.
pub(super) fn linear(t: f64) -> [f64; 2] {
    [1.0 - t, t]
}

/// Weights of four voxels, `t` of the way from the second to the third.
pub(super) fn cubic(t: f64) -> [f64; MOST_TAPS] {
    let (t2, t3) = (t * t, t * t * t);
    [
        0.5 * (2.0 * t2 - t3 - t),
        0.5 * (3.0 * t3 - 5.0 * t2 + 2.0),
        0.5 * (4.0 * t2 - 3.0 * t3 + t),
        0.5 * (t3 - t2),
    ]
}

/// The most voxels along an axis: positions tell no more apart.
pub(super) const MOST_VOXELS: u64 = 1 << 53;

// By way of signed integers, which processors convert in one step.

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "at most 2^53"
)]
fn float(index: u64) -> f64 {
    index.cast_signed() as f64
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "rounds down what is from 0 to 2^53"
)]
fn whole(at: f64) -> u64 {
    (at as i64).cast_unsigned()
}
