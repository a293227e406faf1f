//! Whether vertices are where they belong.

use core::{num::NonZeroU32, ops::Range};

use zvf_format::{
    fragment::{FragmentIndex, Rows},
    numeric::{ByteOrder, Dtype, Kind, NumericRows, Value},
};
use zvf_model::grid::{Bins, Bounds, ChunkCoord, ChunkShape};

use super::region::{self, Coordinate};

/// How a level cuts space.
#[derive(Debug)]
pub(crate) struct Space<'a> {
    pub(crate) dtype: Dtype,
    pub(crate) chunk_shape: &'a ChunkShape,
    pub(crate) bounds: Option<&'a Bounds>,
    /// How chunks are cut, where fragments are bins.
    pub(crate) bins: Option<Bins>,
}

/// Vertices that are not where they belong: how many, and the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Astray {
    pub(crate) not_finite: Count,
    pub(crate) elsewhere: Count,
    pub(crate) out_of_bounds: Count,
    /// Rows that are in another bin than their fragment is of.
    pub(crate) misbinned: Count,
    /// The corners of those out of bounds.
    pub(crate) corners: Option<(Vec<f64>, Vec<f64>)>,
}

/// How many, and the first of them.
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

impl Space<'_> {
    pub(crate) fn axes(&self) -> usize {
        self.chunk_shape.axes()
    }

    /// Bytes of a vertex.
    pub(crate) fn row(&self) -> usize {
        self.axes().saturating_mul(self.dtype.size())
    }

    /// The vertices of a chunk that are not where they belong. The bytes are whole
    /// rows.
    pub(crate) fn astray(
        &self,
        chunk: &ChunkCoord,
        bytes: &[u8],
        index: Option<&FragmentIndex<'_>>,
    ) -> Astray {
        let coords = chunk.spatial(self.axes()).unwrap_or_default();
        let little = self.dtype.order() == ByteOrder::Little;
        let all_right = match self.dtype.kind() {
            Kind::Float32 if little => self.all_right::<f32>(coords, bytes, index),
            Kind::Float64 if little => self.all_right::<f64>(coords, bytes, index),
            _ => false,
        };
        match all_right {
            true => Astray::default(),
            false => self.each(coords, bytes, index),
        }
    }

    /// Whether all vertices certainly are where they belong.
    fn all_right<T: Coordinate>(
        &self,
        coords: &[i64],
        bytes: &[u8],
        index: Option<&FragmentIndex<'_>>,
    ) -> bool {
        let binned = self.bins.as_ref().zip(index);
        let found = match binned.filter(|(bins, index)| is_bins(bins, index)) {
            Some((bins, index)) => self.bins_right::<T>(bins, coords, bytes, index),
            None => self.chunk_right::<T>(coords, bytes),
        };
        found.unwrap_or(false)
    }

    fn chunk_right<T: Coordinate>(&self, coords: &[i64], bytes: &[u8]) -> Option<bool> {
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

    /// The coordinates of cell `number` along an axis that are in the bounds.
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

    fn bins_right<T: Coordinate>(
        &self,
        bins: &Bins,
        coords: &[i64],
        bytes: &[u8],
        index: &FragmentIndex<'_>,
    ) -> Option<bool> {
        let mut edges: Vec<Vec<(T, T)>> = Vec::with_capacity(self.axes());
        let axes = bins.per_chunk().iter().zip(bins.shape().extents());
        for (axis, ((count, extent), coord)) in axes.zip(coords).enumerate() {
            let count = i64::from(count.get());
            let start = coord.checked_mul(count)?;
            let cells =
                (start..start.checked_add(count)?).map(|number| self.within(axis, *extent, number));
            edges.push(cells.collect::<Option<_>>()?);
        }
        // Else ranges may be many times the chunk.
        if !index.tiles(self.rows_in(bytes)) {
            return None;
        }
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        let mut local = vec![0_usize; edges.len()];
        for rows in index {
            let Rows::Range(rows) = rows else {
                return None;
            };
            if !rows.is_empty() {
                lower.clear();
                upper.clear();
                for (edges, at) in edges.iter().zip(&local) {
                    let (low, high) = edges.get(*at)?;
                    lower.push(*low);
                    upper.push(*high);
                }
                if !T::between(bytes.get(self.bytes_of(&rows)?)?, &lower, &upper) {
                    return Some(false);
                }
            }
            for (at, edges) in local.iter_mut().zip(&edges).rev() {
                *at = at.saturating_add(1);
                if *at < edges.len() {
                    break;
                }
                *at = 0;
            }
        }
        Some(true)
    }

    fn rows_in(&self, bytes: &[u8]) -> u64 {
        let rows = bytes.len().checked_div(self.row()).unwrap_or(0);
        u64::try_from(rows).unwrap_or(u64::MAX)
    }

    fn bytes_of(&self, rows: &Range<u64>) -> Option<Range<usize>> {
        let byte = |row: u64| usize::try_from(row).ok()?.checked_mul(self.row());
        Some(byte(rows.start)?..byte(rows.end)?)
    }

    /// Looks at each vertex.
    fn each(&self, coords: &[i64], bytes: &[u8], index: Option<&FragmentIndex<'_>>) -> Astray {
        let mut astray = Astray::default();
        let columns = u32::try_from(self.axes()).ok().and_then(NonZeroU32::new);
        let rows = columns.and_then(|axes| NumericRows::parse(bytes, self.dtype, axes).ok());
        let Some(rows) = rows else {
            return astray;
        };
        let mut position = vec![0.0; self.axes()];
        for (row, at) in (0_u64..).zip(0..rows.rows()) {
            for (axis, number) in (0_u32..).zip(&mut position) {
                *number = rows.value(at, axis).map_or(f64::NAN, number_of);
            }
            if !position.iter().all(|number| number.is_finite()) {
                astray.not_finite.add(row);
                continue;
            }
            if !self.is_in_chunk(coords, &position) {
                astray.elsewhere.add(row);
            }
            if !self.is_in_bounds(&position) {
                astray.out_of_bounds.add(row);
                widen(&mut astray.corners, &position);
            }
        }
        if let (Some(bins), Some(index)) = (&self.bins, index)
            && is_bins(bins, index)
        {
            let lens = index.iter().map(|rows| rows.len());
            let more = lens.fold(0, u64::saturating_add);
            if let Some(more @ 1..) = more.checked_sub(self.rows_in(bytes)) {
                // Rows that several bins have.
                astray.misbinned = Count {
                    count: more,
                    first: 0,
                };
                return astray;
            }
            for (number, fragment) in (0_u64..).zip(index) {
                for row in fragment.iter() {
                    let at = usize::try_from(row).unwrap_or(usize::MAX);
                    for (axis, number) in (0_u32..).zip(&mut position) {
                        *number = rows.value(at, axis).map_or(f64::NAN, number_of);
                    }
                    // Others are found already.
                    let place = bins.place_of(&position);
                    let place = place.filter(|place| place.chunk.coords() == coords);
                    if place.is_some_and(|place| place.bin != number) {
                        astray.misbinned.add(row);
                    }
                }
            }
        }
        astray
    }

    /// Of points in bins, the chunk follows from the bin: that can differ from
    /// where the position is by rounding.
    fn is_in_chunk(&self, coords: &[i64], position: &[f64]) -> bool {
        let mut axes = coords.iter().zip(self.chunk_shape.extents()).zip(position);
        let within = axes.all(|((coord, extent), number)| {
            let coord = region::exact(*coord);
            // Both are whole.
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
                let (lower, upper) = match single {
                    true => (
                        f64::from(region::lower_bound::<f32>(*lower)),
                        f64::from(region::upper_bound::<f32>(*upper)),
                    ),
                    false => (*lower, *upper),
                };
                lower <= *number && *number <= upper
            })
    }
}

/// Whether a chunk has a fragment for each bin.
pub(crate) fn is_bins(bins: &Bins, index: &FragmentIndex<'_>) -> bool {
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

/// A coordinate; complex ones are none.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "positions are divided as 64-bit floats, whatever they are stored as"
)]
fn number_of(value: Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(value)),
        Value::Int(value) => value as f64,
        Value::UInt(value) => value as f64,
        Value::Float(value) => value,
        Value::Complex { .. } => f64::NAN,
    }
}
