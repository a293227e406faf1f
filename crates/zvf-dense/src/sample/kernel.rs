//! The voxels around a position and their weights.

use super::{Affine, Interpolation, MAX_AXES};

/// Maximum number of voxels along an axis that contribute to a value.
pub(super) const MAX_TAPS: usize = 4;

/// The mapping from positions to voxels.
#[derive(Debug)]
pub(super) struct Kernel {
    /// The map from positions to voxel indices; `None` for the identity.
    affine: Option<Affine>,
    interpolation: Interpolation,
    /// Number of voxels along each axis.
    shape: Vec<u64>,
    /// The index of the last voxel along each axis, as an integer and as a float.
    lasts: Vec<(u64, f64)>,
    is_edge: bool,
}

/// The location of a position along one axis.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// The voxel at or before the position; with nearest interpolation, the nearest voxel.
    pub(super) base: u64,
    /// The fraction of the distance from `base` to the next voxel, from 0 to below 1.
    pub(super) t: f64,
    /// The first and last voxels with weight.
    pub(super) first: u64,
    pub(super) last: u64,
}

/// The location of a position along each axis.
pub(super) type Spot = [Step; MAX_AXES];

/// The voxels along one axis and their weights.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taps {
    pub(super) voxel: [u64; MAX_TAPS],
    pub(super) weight: [f64; MAX_TAPS],
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

    /// Returns the number of voxels along each axis.
    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    pub(super) fn interpolation(&self) -> Interpolation {
        self.interpolation
    }

    /// Returns the maximum number of voxels along an axis that contribute to a value.
    pub(super) fn width(&self) -> u64 {
        match self.interpolation {
            Interpolation::Nearest => 1,
            Interpolation::Linear => 2,
            Interpolation::Cubic => 4,
        }
    }

    /// Locates a position and returns whether it has a value. Positions are clamped to the centres
    /// of the voxels at the edge.
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

    /// Locates a coordinate on an axis whose last voxel is `end`.
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
        // Exactly on a voxel, the neighbours have no weight.
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

    /// Returns the voxels and weights along each axis. Beyond the edge, the last voxel repeats.
    pub(super) fn taps(&self, spot: &Spot, interpolation: Interpolation) -> [Taps; MAX_AXES] {
        let mut all = [Taps::default(); MAX_AXES];
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
            // The first of four voxels is the one before `base`, clamped to 0.
            let before = u64::from(interpolation == Interpolation::Cubic);
            for (ahead, voxel) in (0_u64..).zip(taps.voxel.iter_mut().take(count)) {
                let at = step.base.saturating_add(ahead).saturating_sub(before);
                *voxel = at.min(extent.saturating_sub(1));
            }
        }
        all
    }
}

/// Returns the weights of two voxels at fraction `t` between them.
pub(super) fn linear(t: f64) -> [f64; 2] {
    [1.0 - t, t]
}

/// Returns the Catmull-Rom weights of four voxels at fraction `t` between the second and the third.
pub(super) fn cubic(t: f64) -> [f64; MAX_TAPS] {
    let (t2, t3) = (t * t, t * t * t);
    [
        0.5 * (2.0 * t2 - t3 - t),
        0.5 * (3.0 * t3 - 5.0 * t2 + 2.0),
        0.5 * (4.0 * t2 - 3.0 * t3 + t),
        0.5 * (t3 - t2),
    ]
}

/// Maximum number of voxels along an axis: the integers that `f64` represents exactly.
pub(super) const MAX_VOXELS: u64 = 1 << 53;

// These conversions go through signed integers, which processors convert in one instruction.

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
