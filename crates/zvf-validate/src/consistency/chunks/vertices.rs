//! Positions of vertices in chunks, bins and bounds.

use core::{num::NonZeroU32, ops::Range};

use zvf_format::{
    fragment::{FragmentIndex, Rows},
    numeric::{ByteOrder, Dtype, Kind, NumericRows, Value},
};
use zvf_model::grid::{Bins, Bounds, ChunkCoord, ChunkShape};

use super::region::{self, Coordinate};

/// The chunks, bins and bounds of a level.
#[derive(Debug)]
pub(crate) struct VertexSpace<'a> {
    pub(crate) dtype: Dtype,
    pub(crate) chunk_shape: &'a ChunkShape,
    pub(crate) bounds: Option<&'a Bounds>,
    /// Bins of a chunk, if fragments are bins.
    pub(crate) bins: Option<Bins>,
    /// Fragments are bins in any case. Since 0.9 a chunk may also have fragments that are none, if their
    /// number is not that of the bins.
    pub(crate) are_bins: bool,
}

/// Counts of misplaced vertices, each with the first row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MisplacedCounts {
    pub(crate) not_finite: Count,
    pub(crate) elsewhere: Count,
    pub(crate) out_of_bounds: Count,
    /// Rows in the fragment of another bin.
    pub(crate) misbinned: Count,
    /// True if fragments are not bins, neither all of them nor those with points.
    pub(crate) is_unbinned: bool,
    /// Corners of the box around the rows outside the bounds.
    pub(crate) corners: Option<(Vec<f64>, Vec<f64>)>,
}

/// A number of rows, and the first of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) count: u64,
    pub(crate) first: u64,
}

impl Count {
    pub(crate) fn add(&mut self, row: u64) {
        if self.count == 0 {
            self.first = row;
        }
        self.count = self.count.saturating_add(1);
    }
}

impl VertexSpace<'_> {
    pub(crate) fn axes(&self) -> usize {
        self.chunk_shape.axes()
    }

    /// Bytes per vertex.
    pub(crate) fn row(&self) -> usize {
        self.axes().saturating_mul(self.dtype.size())
    }

    /// Finds the misplaced vertices of a chunk. The bytes must be whole rows.
    pub(crate) fn misplaced(
        &self,
        chunk: &ChunkCoord,
        bytes: &[u8],
        index: Option<&FragmentIndex<'_>>,
    ) -> MisplacedCounts {
        let coords = chunk.spatial(self.axes()).unwrap_or_default();
        let little = self.dtype.order() == ByteOrder::Little;
        let all_in_place = match self.dtype.kind() {
            Kind::Float32 if little => self.all_in_place::<f32>(coords, bytes, index),
            Kind::Float64 if little => self.all_in_place::<f64>(coords, bytes, index),
            _ => false,
        };
        if all_in_place {
            MisplacedCounts::default()
        } else {
            self.each(coords, bytes, index)
        }
    }

    /// Returns whether all vertices are certainly in place. A false result requires the exact test.
    fn all_in_place<T: Coordinate>(
        &self,
        coords: &[i64],
        bytes: &[u8],
        index: Option<&FragmentIndex<'_>>,
    ) -> bool {
        let found = match self.bins.as_ref().zip(index) {
            Some((bins, index)) => self.bins_in_place::<T>(bins, coords, bytes, index),
            None => self.chunk_in_place::<T>(coords, bytes),
        };
        found.unwrap_or(false)
    }

    fn chunk_in_place<T: Coordinate>(&self, coords: &[i64], bytes: &[u8]) -> Option<bool> {
        let axes = coords.iter().zip(self.chunk_shape.extents()).enumerate();
        let mut lower: Vec<T> = Vec::with_capacity(self.axes());
        let mut upper: Vec<T> = Vec::with_capacity(self.axes());
        for (axis, (coord, extent)) in axes {
            let (low, high) = self.within(axis, *extent, *coord)?;
            lower.push(low);
            upper.push(high);
        }
        Some(T::between(bytes, &lower, &upper))
    }

    /// Returns the coordinates of cell `number` along an axis, clipped to the bounds.
    fn within<T: Coordinate>(&self, axis: usize, extent: f64, number: i64) -> Option<(T, T)> {
        let mut low: T = region::first_of(extent, number)?;
        let mut high: T = region::last_of(extent, number)?;
        if let Some(bounds) = self.bounds {
            let bound = region::lower_bound(*bounds.lower().get(axis)?);
            if low < bound {
                low = bound;
            }
            let bound = region::upper_bound(*bounds.upper().get(axis)?);
            if bound < high {
                high = bound;
            }
        }
        Some((low, high))
    }

    fn bins_in_place<T: Coordinate>(
        &self,
        bins: &Bins,
        coords: &[i64],
        bytes: &[u8],
        index: &FragmentIndex<'_>,
    ) -> Option<bool> {
        // Otherwise ranges may sum up to many times the chunk.
        if !index.tiles(self.rows_in(bytes)) {
            return None;
        }
        // Edges of each bin by axis, computed on first use.
        let mut edges: Vec<Vec<Option<(T, T)>>> = Vec::with_capacity(self.axes());
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        let all = is_bins(bins, index);
        let max = usize::try_from(index.len()).ok()?.checked_add(1)?;
        for count in bins.per_chunk() {
            // Each fragment needs at most one more edge, which bounds the memory.
            let count = usize::try_from(count.get()).ok()?;
            if all || count <= max.saturating_mul(64) {
                edges.push(vec![None; count]);
            } else {
                return None;
            }
        }
        let mut last = None;
        for (number, rows) in (0_u64..).zip(index) {
            let Rows::Range(rows) = rows else {
                return None;
            };
            if rows.is_empty() {
                continue;
            }
            let own = bytes.get(self.bytes_of(&rows)?)?;
            let number = if all {
                number
            } else {
                self.bin_of(bins, coords, own)?
            };
            if last >= Some(number) {
                return Some(false);
            }
            last = Some(number);
            lower.clear();
            upper.clear();
            let local = bins.local_of(number)?;
            let axes = local.iter().zip(&mut edges).zip(bins.per_chunk());
            for (axis, ((at, edges), count)) in axes.enumerate() {
                let edge = edges.get_mut(usize::try_from(*at).ok()?)?;
                if edge.is_none() {
                    let start = coords.get(axis)?.checked_mul(i64::from(count.get()))?;
                    let cell = start.checked_add(i64::from(*at))?;
                    let extent = bins.shape().extents().get(axis)?;
                    *edge = Some(self.within(axis, *extent, cell)?);
                }
                let (low, high) = (*edge)?;
                lower.push(low);
                upper.push(high);
            }
            if !T::between(own, &lower, &upper) {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns the bin of the first of some vertices, if it is in this chunk.
    fn bin_of(&self, bins: &Bins, coords: &[i64], bytes: &[u8]) -> Option<u64> {
        let columns = NonZeroU32::new(u32::try_from(self.axes()).ok()?)?;
        let first = NumericRows::parse(bytes.get(..self.row())?, self.dtype, columns).ok()?;
        let axes = 0..columns.get();
        let position: Option<Vec<f64>> = axes
            .map(|axis| first.value(0, axis).map(Value::to_f64))
            .collect();
        let place = bins.place_of(&position?)?;
        (place.chunk.coords() == coords).then_some(place.bin)
    }

    fn rows_in(&self, bytes: &[u8]) -> u64 {
        let rows = bytes.len().checked_div(self.row()).unwrap_or(0);
        u64::try_from(rows).unwrap_or(u64::MAX)
    }

    fn bytes_of(&self, rows: &Range<u64>) -> Option<Range<usize>> {
        let byte = |row: u64| usize::try_from(row).ok()?.checked_mul(self.row());
        Some(byte(rows.start)?..byte(rows.end)?)
    }

    /// Tests each vertex exactly.
    fn each(
        &self,
        coords: &[i64],
        bytes: &[u8],
        index: Option<&FragmentIndex<'_>>,
    ) -> MisplacedCounts {
        let mut misplaced = MisplacedCounts::default();
        let columns = u32::try_from(self.axes()).ok().and_then(NonZeroU32::new);
        let rows = columns.and_then(|axes| NumericRows::parse(bytes, self.dtype, axes).ok());
        let Some(rows) = rows else {
            return misplaced;
        };
        let mut position = vec![0.0; self.axes()];
        for (row, at) in (0_u64..).zip(0..rows.rows()) {
            for (axis, number) in (0_u32..).zip(&mut position) {
                *number = rows.value(at, axis).map_or(f64::NAN, Value::to_f64);
            }
            if !position.iter().all(|number| number.is_finite()) {
                misplaced.not_finite.add(row);
                continue;
            }
            if !self.is_in_chunk(coords, &position) {
                misplaced.elsewhere.add(row);
            }
            if !self.is_in_bounds(&position) {
                misplaced.out_of_bounds.add(row);
                widen(&mut misplaced.corners, &position);
            }
        }
        if let (Some(bins), Some(index)) = (&self.bins, index) {
            let misbinned = self.misbinned(bins, coords, &rows, index);
            if self.are_bins || is_bins(bins, index) {
                misplaced.misbinned = misbinned;
            } else {
                misplaced.is_unbinned = misbinned.count > 0;
            }
        }
        misplaced
    }

    /// Counts rows in the fragment of another bin.
    fn misbinned(
        &self,
        bins: &Bins,
        coords: &[i64],
        rows: &NumericRows<'_>,
        index: &FragmentIndex<'_>,
    ) -> Count {
        let mut wrong = Count::default();
        let all = is_bins(bins, index);
        let present = u64::try_from(rows.rows()).unwrap_or(u64::MAX);
        let lens = index.iter().map(|rows| rows.len());
        let more = lens.fold(0, u64::saturating_add).checked_sub(present);
        if let Some(count @ 1..) = more {
            // Some rows are in several bins.
            wrong = Count { count, first: 0 };
            return wrong;
        }
        let mut position = vec![0.0; self.axes()];
        let mut last = None;
        for (number, fragment) in (0_u64..).zip(index) {
            let mut expected = all.then_some(number);
            for row in &fragment {
                let at = usize::try_from(row).unwrap_or(usize::MAX);
                for (axis, number) in (0_u32..).zip(&mut position) {
                    *number = rows.value(at, axis).map_or(f64::NAN, Value::to_f64);
                }
                let place = bins.place_of(&position);
                // Vertices in other chunks are counted already.
                let Some(place) = place.filter(|place| place.chunk.coords() == coords) else {
                    continue;
                };
                // If empty bins are omitted, the first row shows the bin.
                let bin = *expected.get_or_insert(place.bin);
                if place.bin != bin || last >= Some(bin) {
                    wrong.add(row);
                }
            }
            last = expected.or(last);
        }
        wrong
    }

    /// Returns whether a position is in a chunk. For binned points the chunk follows from the bin,
    /// which may differ by rounding from the chunk of the position.
    fn is_in_chunk(&self, coords: &[i64], position: &[f64]) -> bool {
        let mut axes = coords.iter().zip(self.chunk_shape.extents()).zip(position);
        let within = axes.all(|((coord, extent), number)| {
            let coord = region::exact(*coord);
            // Both are integers, so 0.5 separates equal from unequal.
            coord.is_some_and(|coord| ((number / extent).floor() - coord).abs() < 0.5)
        });
        let by_bin = || self.bins.as_ref()?.place_of(position);
        (within && coords.len() == position.len())
            || by_bin().is_some_and(|place| place.chunk.coords() == coords)
    }

    fn is_in_bounds(&self, position: &[f64]) -> bool {
        let Some(bounds) = self.bounds else {
            return true;
        };
        let single = self.dtype.kind() == Kind::Float32;
        let corners = bounds.lower().iter().zip(bounds.upper());
        position
            .iter()
            .zip(corners)
            .all(|(number, (lower, upper))| {
                let (lower, upper) = if single {
                    (
                        f64::from(region::lower_bound::<f32>(*lower)),
                        f64::from(region::upper_bound::<f32>(*upper)),
                    )
                } else {
                    (*lower, *upper)
                };
                lower <= *number && *number <= upper
            })
    }
}

/// Returns whether a chunk has one fragment per bin.
fn is_bins(bins: &Bins, index: &FragmentIndex<'_>) -> bool {
    u64::from(index.len()) == bins.count()
}

fn widen(corners: &mut Option<(Vec<f64>, Vec<f64>)>, position: &[f64]) {
    let (lower, upper) = corners.get_or_insert_with(|| (position.to_vec(), position.to_vec()));
    for (own, number) in lower.iter_mut().zip(position) {
        *own = own.min(*number);
    }
    for (own, number) in upper.iter_mut().zip(position) {
        *own = own.max(*number);
    }
}
