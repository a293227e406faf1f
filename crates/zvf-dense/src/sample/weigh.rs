//! Values of points, out of tiles in memory.
//!
//! Most points have all their voxels in one tile, and are near the point before: their
//! tile is at hand, and their voxels lie at known distances. What is around the others is
//! looked up voxel by voxel.

use super::{
    Interpolation, MOST_AXES,
    cache::Tile,
    kernel::{Kernel, MOST_TAPS, Spot, Step, Taps, cubic, linear},
    tiles::{Span, Tiling},
    values::{Number, Voxels, put},
};

/// A tile with its voxels as what they are.
#[derive(Debug)]
pub(super) struct ArrayView<'a, N> {
    number: u64,
    span: Span,
    strides: [usize; MOST_AXES],
    voxels: &'a [N],
}

impl<'a, N> ArrayView<'a, N> {
    fn new(tile: &'a Tile, voxels: &'a [N]) -> Self {
        Self {
            number: tile.number,
            span: tile.span,
            strides: tile.strides,
            voxels,
        }
    }

    /// Asks for the first voxel of each row of three axes; what follows it is there with it.
    fn expect(&self, spot: &Spot) {
        let ([planes, rows, voxel, ..], [plane, row, unit, ..]) = (spot, &self.strides);
        let [of_planes, of_rows, start, ..] = &self.span.start;
        let ahead = |at: u64, start: &u64, stride: &usize| {
            let at = usize::try_from(at.wrapping_sub(*start)).unwrap_or(usize::MAX);
            at.wrapping_mul(*stride)
        };
        let first = ahead(voxel.first, start, unit);
        for at in planes.first..=planes.last {
            let plane = ahead(at, of_planes, plane).wrapping_add(first);
            for at in rows.first..=rows.last {
                let voxel = ahead(at, of_rows, row).wrapping_add(plane);
                if let Some(voxel) = self.voxels.get(voxel) {
                    fetch(voxel);
                }
            }
        }
    }
}

/// Tiles, as what their voxels are.
pub(super) enum Views<'a> {
    Bytes(Vec<ArrayView<'a, u8>>),
    Single(Vec<ArrayView<'a, f32>>),
    Double(Vec<ArrayView<'a, f64>>),
}

impl<'a> Views<'a> {
    /// Of tiles that are all of one form, as those of an array are.
    pub(super) fn of(tiles: impl Iterator<Item = &'a Tile>) -> Self {
        let (mut bytes, mut single, mut double) = (Vec::new(), Vec::new(), Vec::new());
        for tile in tiles {
            match &tile.voxels {
                Voxels::Bytes(voxels) => bytes.push(ArrayView::new(tile, voxels)),
                Voxels::Single(voxels) => single.push(ArrayView::new(tile, voxels)),
                Voxels::Double(voxels) => double.push(ArrayView::new(tile, voxels)),
            }
        }
        match () {
            () if !single.is_empty() => Self::Single(single),
            () if !double.is_empty() => Self::Double(double),
            () => Self::Bytes(bytes),
        }
    }
}

/// Has the processor fetch what is soon needed.
#[cfg(target_arch = "x86_64")]
fn fetch<N>(voxel: &N) {
    safe_arch::prefetch_t0(voxel);
}

#[cfg(not(target_arch = "x86_64"))]
fn fetch<N>(_: &N) {}

/// Finds the tiles of points, one after the other.
#[derive(Debug)]
pub(super) struct Finder<'a, N> {
    kernel: &'a Kernel,
    tiling: &'a Tiling,
    /// By number, ascending.
    tiles: &'a [ArrayView<'a, N>],
    /// Of the point before.
    near: Option<&'a ArrayView<'a, N>>,
}

impl<'a, N> Finder<'a, N> {
    pub(super) fn new(
        kernel: &'a Kernel,
        tiling: &'a Tiling,
        tiles: &'a [ArrayView<'a, N>],
    ) -> Self {
        Self {
            kernel,
            tiling,
            tiles,
            near: None,
        }
    }

    /// Asks the processor for the voxels of a place that is soon looked up, where one tile is
    /// all there is and they may be anywhere in it.
    pub(super) fn expect(&self, spot: &Spot) {
        if let ([tile], 3) = (self.tiles, self.kernel.axes()) {
            tile.expect(spot);
        }
    }

    /// The tile that has all voxels of a place, when one has.
    fn whole(&mut self, spot: &Spot) -> Option<&'a ArrayView<'a, N>> {
        let axes = self.kernel.axes();
        let near = self.near.filter(|near| near.span.has(spot, axes));
        if near.is_some() {
            return near;
        }
        self.near = self.tile(spot.iter().map(|step| step.first));
        self.near.filter(|near| near.span.has(spot, axes))
    }

    /// The tile that has a voxel.
    fn tile(&self, voxel: impl Iterator<Item = u64>) -> Option<&'a ArrayView<'a, N>> {
        let number = self.tiling.of(voxel);
        let found = self.tiles.binary_search_by_key(&number, |tile| tile.number);
        found.ok().and_then(|at| self.tiles.get(at))
    }

    /// The tile that has a voxel, and where in it.
    fn voxel(&mut self, voxel: &[u64]) -> Option<(&'a ArrayView<'a, N>, usize)> {
        let has = |tile: &&ArrayView<'_, N>| {
            let span = tile.span.start.iter().zip(&tile.span.end);
            let mut axes = span.zip(voxel);
            axes.all(|((start, end), at)| (start..end).contains(&at))
        };
        let tile = match self.near.filter(has) {
            Some(near) => near,
            None => self.tile(voxel.iter().copied())?,
        };
        self.near = Some(tile);
        let axes = voxel.iter().zip(&tile.span.start).zip(&tile.strides);
        let offsets = axes.map(|((at, start), stride)| {
            let ahead = usize::try_from(at.saturating_sub(*start));
            ahead.unwrap_or(usize::MAX).saturating_mul(*stride)
        });
        Some((tile, offsets.fold(0, usize::saturating_add)))
    }
}

impl Finder<'_, u8> {
    /// Copies the nearest voxel.
    pub(super) fn copy(&mut self, spot: &Spot, into: &mut [u8]) {
        let place = spot.map(|step| step.base);
        let axes = self.kernel.axes();
        let found = self.voxel(place.get(..axes).unwrap_or_default());
        let bytes = found.and_then(|(tile, at)| {
            let end = at.checked_add(into.len())?;
            tile.voxels.get(at..end)
        });
        if let Some(bytes) = bytes {
            into.copy_from_slice(bytes);
        }
    }
}

impl<N: Number> Finder<'_, N> {
    /// Writes the values at a place, each of `size` bytes.
    pub(super) fn weigh(&mut self, spot: &Spot, size: usize, into: &mut [u8]) {
        let tile = self.whole(spot);
        let axes = self.kernel.axes();
        let done = tile.and_then(|tile| match self.kernel.interpolation() {
            Interpolation::Nearest => None,
            Interpolation::Linear => inside(tile, spot, axes, size, into, linear),
            Interpolation::Cubic => inside(tile, spot, axes, size, into, cubic),
        });
        if done.is_none() {
            self.across(spot, size, into);
        }
    }

    /// The same voxel by voxel, wherever they are, and whatever.
    fn across(&mut self, spot: &Spot, size: usize, into: &mut [u8]) {
        let kernel = self.kernel;
        let axes = kernel.axes();
        let interpolation = kernel.interpolation();
        let taps = kernel.taps(spot, interpolation);
        for (column, into) in into.chunks_exact_mut(size.max(1)).enumerate() {
            let mut place = [0; MOST_AXES];
            let own = taps.get(..axes).unwrap_or_default();
            let mut sum = self.sum(own, (&mut place, 0), column);
            if sum.has_nan && interpolation == Interpolation::Cubic {
                let taps = kernel.taps(spot, Interpolation::Linear);
                let own = taps.get(..axes).unwrap_or_default();
                sum = self.sum(own, (&mut place, 0), column);
            }
            put(sum.value(), into);
        }
    }

    /// The sum over these axes, added up in the order of [`inside`]: values do not depend on
    /// where tiles end.
    fn sum(
        &mut self,
        taps: &[Taps],
        (place, axis): (&mut [u64; MOST_AXES], usize),
        column: usize,
    ) -> Sum {
        let Some((own, rest)) = taps.split_first() else {
            let found = self.voxel(place.get(..axis).unwrap_or_default());
            let value = found.and_then(|(tile, at)| tile.voxels.get(at.checked_add(column)?));
            return Sum::of(value.map_or(f64::NAN, |value| value.wide()));
        };
        let mut sum = Sum::default();
        for (voxel, weight) in own.voxel.iter().zip(&own.weight).take(own.count) {
            // A voxel without weight does not count, NaN or not.
            if *weight == 0.0 {
                continue;
            }
            if let Some(into) = place.get_mut(axis) {
                *into = *voxel;
            }
            let next = axis.saturating_add(1);
            sum.add(self.sum(rest, (&mut *place, next), column), *weight);
        }
        sum
    }
}

/// A weighted sum of voxels, without those that are NaN.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: f64,
    weight: f64,
    has_nan: bool,
}

impl Sum {
    /// One voxel.
    fn of(value: f64) -> Self {
        match value.is_nan() {
            true => Self {
                has_nan: true,
                ..Self::default()
            },
            false => Self {
                total: value,
                weight: 1.0,
                has_nan: false,
            },
        }
    }

    fn add(&mut self, part: Self, weight: f64) {
        self.total += weight * part.total;
        self.weight += weight * part.weight;
        self.has_nan |= part.has_nan;
    }

    fn value(self) -> f64 {
        match self.has_nan {
            false => self.total,
            true if self.weight >= 0.5 => self.total / self.weight,
            true => f64::NAN,
        }
    }
}

/// Values of a place of which a tile has all voxels, `K` along each axis. `None` where the
/// edge cuts them, and where the sum is NaN: a voxel is, or one that is infinite weighs nothing.
fn inside<N: Number, const K: usize>(
    tile: &ArrayView<'_, N>,
    spot: &Spot,
    axes: usize,
    size: usize,
    into: &mut [u8],
    weights: fn(f64) -> [f64; K],
) -> Option<()> {
    let mut all = [[0.0; K]; MOST_AXES];
    let mut first = 0_usize;
    let span = tile.span.start.iter().zip(&tile.span.end);
    let steps = spot.iter().zip(span).zip(&tile.strides).take(axes);
    for (own, ((step, (start, end)), stride)) in all.iter_mut().zip(steps) {
        let (at, weight) = along(step, *start, *end, weights)?;
        *own = weight;
        first = first.checked_add(at.checked_mul(*stride)?)?;
    }
    let (all, strides) = (all.get(..axes)?, tile.strides.get(..axes)?);
    for (column, into) in into.chunks_exact_mut(size.max(1)).enumerate() {
        let at = first.checked_add(column)?;
        let value = match (all, strides) {
            (weights @ [_, _, _], [plane, row, 1]) => {
                cube(tile.voxels, at, weights, (*plane, *row))?
            }
            _ => sum(tile.voxels, at, all, strides)?,
        };
        if value.is_nan() {
            return None;
        }
        put(value, into);
    }
    Some(())
}

/// Where the first of `K` voxels is in a tile, along an axis, and what they weigh.
fn along<const K: usize>(
    step: &Step,
    start: u64,
    end: u64,
    weights: fn(f64) -> [f64; K],
) -> Option<(usize, [f64; K])> {
    let before = u64::from(K == MOST_TAPS);
    let width = u64::try_from(K).ok()?;
    let at = step.base.checked_sub(before)?.checked_sub(start)?;
    let len = end.checked_sub(start)?;
    if at.checked_add(width)? <= len {
        return Some((usize::try_from(at).ok()?, weights(step.t)));
    }
    // On the last of two voxels, which then are the one before and this.
    let is_last = K == 2 && step.t <= 0.0;
    let mut weight = weights(step.t);
    weight.reverse();
    let at = at.checked_sub(1).filter(|_| is_last)?;
    Some((usize::try_from(at).ok()?, weight))
}

/// A sum over three axes, of which the last has its voxels side by side.
#[inline]
fn cube<N: Number, const K: usize>(
    voxels: &[N],
    at: usize,
    weights: &[[f64; K]],
    (to_plane, to_row): (usize, usize),
) -> Option<f64> {
    let [of_planes, of_rows, of_voxels] = weights else {
        return None;
    };
    let mut total = 0.0;
    let mut plane = at;
    for of_plane in of_planes {
        let mut row = plane;
        let mut in_plane = 0.0;
        for of_row in of_rows {
            let own = voxels.get(row..)?.first_chunk::<K>()?;
            let mut in_row = 0.0;
            for (weight, voxel) in of_voxels.iter().zip(own) {
                in_row += weight * voxel.wide();
            }
            in_plane += of_row * in_row;
            row = row.wrapping_add(to_row);
        }
        total += of_plane * in_plane;
        plane = plane.wrapping_add(to_plane);
    }
    Some(total)
}

/// A sum over any axes.
fn sum<N: Number, const K: usize>(
    voxels: &[N],
    at: usize,
    weights: &[[f64; K]],
    strides: &[usize],
) -> Option<f64> {
    let (Some((own, weights)), Some((stride, strides))) =
        (weights.split_first(), strides.split_first())
    else {
        return voxels.get(at).map(|voxel| voxel.wide());
    };
    let mut total = 0.0;
    let mut place = at;
    for weight in own {
        total += weight * sum(voxels, place, weights, strides)?;
        place = place.wrapping_add(*stride);
    }
    Some(total)
}
