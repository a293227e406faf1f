//! Weighted values of points, computed from tiles in memory.
//!
//! Most points have all their voxels in one tile and are close to the previous point. Their tile is
//! already known, and their voxels are at constant distances. Other points look up each voxel
//! separately.

use super::{
    Interpolation, MAX_AXES,
    cache::Tile,
    kernel::{Kernel, MAX_TAPS, Spot, Step, Taps, cubic, linear},
    tiles::{Span, Tiling},
    values::{Number, Voxels, put},
};

/// A tile with typed voxels.
#[derive(Debug)]
pub(super) struct ArrayView<'a, N> {
    number: u64,
    span: Span,
    strides: [usize; MAX_AXES],
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

    /// Prefetches the first voxel of each row of a location with three axes. The rest of a row
    /// usually shares its cache line.
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

/// Tiles with typed voxels.
pub(super) enum Views<'a> {
    Bytes(Vec<ArrayView<'a, u8>>),
    Single(Vec<ArrayView<'a, f32>>),
    Double(Vec<ArrayView<'a, f64>>),
}

impl<'a> Views<'a> {
    /// Creates views of tiles in the same representation, as all tiles of an array are.
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

/// Prefetches a voxel into the processor cache.
#[cfg(target_arch = "x86_64")]
fn fetch<N>(voxel: &N) {
    safe_arch::prefetch_t0(voxel);
}

#[cfg(not(target_arch = "x86_64"))]
fn fetch<N>(_: &N) {}

/// A lookup of tiles for consecutive points.
#[derive(Debug)]
pub(super) struct Finder<'a, N> {
    kernel: &'a Kernel,
    tiling: &'a Tiling,
    /// Tiles by ascending number.
    tiles: &'a [ArrayView<'a, N>],
    /// The tile of the previous point.
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

    /// Prefetches the voxels of a location in a single tile with three axes, where locations are
    /// random.
    pub(super) fn expect(&self, spot: &Spot) {
        if let ([tile], 3) = (self.tiles, self.kernel.axes()) {
            tile.expect(spot);
        }
    }

    /// Returns the tile that contains all voxels of a location; `None` if they span several tiles.
    fn whole(&mut self, spot: &Spot) -> Option<&'a ArrayView<'a, N>> {
        let axes = self.kernel.axes();
        let near = self.near.filter(|near| near.span.has(spot, axes));
        if near.is_some() {
            return near;
        }
        self.near = self.tile(spot.iter().map(|step| step.first));
        self.near.filter(|near| near.span.has(spot, axes))
    }

    /// Returns the tile that contains a voxel.
    fn tile(&self, voxel: impl Iterator<Item = u64>) -> Option<&'a ArrayView<'a, N>> {
        let number = self.tiling.of(voxel);
        let found = self.tiles.binary_search_by_key(&number, |tile| tile.number);
        found.ok().and_then(|at| self.tiles.get(at))
    }

    /// Returns the tile that contains a voxel, and the offset of the voxel in it.
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
    /// Writes the values at a location, each of `size` bytes.
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

    /// Computes the values at a location voxel by voxel: across tiles, at the edge, and with NaN.
    fn across(&mut self, spot: &Spot, size: usize, into: &mut [u8]) {
        let kernel = self.kernel;
        let axes = kernel.axes();
        let interpolation = kernel.interpolation();
        let taps = kernel.taps(spot, interpolation);
        for (column, into) in into.chunks_exact_mut(size.max(1)).enumerate() {
            let mut place = [0; MAX_AXES];
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

    /// Sums over the remaining axes in the order of [`inside`], so that values do not depend on the
    /// borders of tiles.
    fn sum(
        &mut self,
        taps: &[Taps],
        (place, axis): (&mut [u64; MAX_AXES], usize),
        column: usize,
    ) -> Sum {
        let Some((own, rest)) = taps.split_first() else {
            let found = self.voxel(place.get(..axis).unwrap_or_default());
            let value = found.and_then(|(tile, at)| tile.voxels.get(at.checked_add(column)?));
            return Sum::of(value.map_or(f64::NAN, |value| value.wide()));
        };
        let mut sum = Sum::default();
        for (voxel, weight) in own.voxel.iter().zip(&own.weight).take(own.count) {
            // A voxel without weight is ignored, even if it is NaN.
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

/// A weighted sum of voxels that ignores NaN voxels.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: f64,
    weight: f64,
    has_nan: bool,
}

impl Sum {
    /// Creates the sum of one voxel.
    fn of(value: f64) -> Self {
        if value.is_nan() {
            Self {
                has_nan: true,
                ..Self::default()
            }
        } else {
            Self {
                total: value,
                weight: 1.0,
                has_nan: false,
            }
        }
    }

    fn add(&mut self, part: Self, weight: f64) {
        self.total += weight * part.total;
        self.weight += weight * part.weight;
        self.has_nan |= part.has_nan;
    }

    fn value(self) -> f64 {
        if !self.has_nan {
            self.total
        } else if self.weight >= 0.5 {
            self.total / self.weight
        } else {
            f64::NAN
        }
    }
}

/// Writes the values at a location whose voxels, `K` along each axis, are all in one tile. Returns
/// `None` if the edge cuts them off, or if a sum is NaN, because a voxel is NaN or an infinite
/// voxel has no weight.
fn inside<N: Number, const K: usize>(
    tile: &ArrayView<'_, N>,
    spot: &Spot,
    axes: usize,
    size: usize,
    into: &mut [u8],
    weights: fn(f64) -> [f64; K],
) -> Option<()> {
    let mut all = [[0.0; K]; MAX_AXES];
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

/// Returns the offset of the first of `K` voxels along an axis of a tile, and the weights.
fn along<const K: usize>(
    step: &Step,
    start: u64,
    end: u64,
    weights: fn(f64) -> [f64; K],
) -> Option<(usize, [f64; K])> {
    let before = u64::from(K == MAX_TAPS);
    let width = u64::try_from(K).ok()?;
    let at = step.base.checked_sub(before)?.checked_sub(start)?;
    let len = end.checked_sub(start)?;
    if at.checked_add(width)? <= len {
        return Some((usize::try_from(at).ok()?, weights(step.t)));
    }
    // On the last voxel of the tile: use the voxel before it and itself, with swapped weights.
    let is_last = K == 2 && step.t <= 0.0;
    let mut weight = weights(step.t);
    weight.reverse();
    let at = at.checked_sub(1).filter(|_| is_last)?;
    Some((usize::try_from(at).ok()?, weight))
}

/// Sums over three axes; voxels are contiguous along the last one.
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

/// Sums over any number of axes.
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
