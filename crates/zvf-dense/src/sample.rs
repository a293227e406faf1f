//! Interpolation of arrays at positions between their elements.

mod affine;
mod cache;
mod kernel;
mod overlap;
mod parts;
mod recipe;
mod tiles;
mod values;
mod weigh;
mod whole;

pub use crate::error::AffineError;
pub use affine::Affine;
pub use overlap::{ApartError, check_overlap, outside_note};
pub use recipe::SampleRecipe;

use core::ops::Deref;
use std::sync::{
    Arc, Mutex, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

use rayon::prelude::*;
use zvf_format::numeric::Kind;

use crate::{DenseArray, DenseError, NumpyDtype, ReadCost};
use cache::{Cache, Tile, add};
use kernel::{Kernel, Spot};
use tiles::Tiling;
use values::{Form, fill_of};
use weigh::{Finder, Views};
use whole::WholeArray;

/// Maximum number of axes of positions.
const MAX_AXES: usize = 8;
/// Maximum memory for voxels at a time, in bytes.
const MAX_VOXEL_BYTES: u64 = 256 << 20;
/// Maximum length of the values of one point, in bytes.
const MAX_ROW: usize = 1 << 30;
/// Number of points in one task of a thread.
const POINTS_PER_TASK: usize = 1 << 14;
/// Number of positions located before the voxels of the first are read; their loads overlap.
const PREFETCHED: usize = 16;

/// The method of interpolation between voxels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The nearest voxel; the one with the greater index halfway between two.
    Nearest,
    /// Linear interpolation between the two voxels along each axis.
    #[default]
    Linear,
    /// Catmull-Rom interpolation between the four voxels along each axis. It passes through the
    /// values at voxels and is smooth between them. It may exceed the range of the voxels at steep
    /// gradients.
    Cubic,
}

/// The value of positions outside all voxels. A position is inside a voxel if it is at most half a
/// voxel away from its centre along each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outside {
    /// A fixed value.
    Fill(f64),
    /// The value at the nearest position on the edge.
    Edge,
}

/// Options of a [`Sampler`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleOptions {
    /// The method between voxels.
    pub interpolation: Interpolation,
    /// The map from positions to voxel indices. Without it, positions are voxel indices.
    pub affine: Option<Affine>,
    /// The value of positions outside the array and of positions with NaN coordinates. Defaults to
    /// NaN, and to 0 for integers.
    pub outside: Option<Outside>,
    /// Limit in bytes on the memory for voxels at a time, in addition to positions and values. At
    /// most 256 MiB are used.
    pub budget: Option<u64>,
}

/// A sampler of an array at arbitrary positions.
///
/// The sampler caches the tiles it reads for later calls and evicts the least recently used ones.
/// If all voxels fit in memory and there are many points, the voxels are stored contiguously, which
/// is fastest for points in any order.
///
/// Axis `i` of positions, after the affine map, is axis `i` of the array. The centre of voxel `n`
/// is at `n`. Further axes of the array are values of each voxel.
///
/// Voxels that are NaN are ignored if the other voxels have at least half the weight; otherwise the
/// value is NaN. A NaN voxel without weight has no effect. Near NaN voxels, cubic interpolation
/// falls back to linear.
///
/// ```
/// use zvf_dense::{NumpyDtype, MemoryArray, sample::{SampleOptions, Sampler}};
///
/// let row = MemoryArray::new("row", NumpyDtype::parse("u1")?, vec![3], vec![0, 10, 40])?;
/// let sampled = Sampler::new(&row, 1, &SampleOptions::default())?.sample(&[0.5, 1.5, 7.0])?;
/// let values: Vec<&[u8]> = sampled.values.chunks(4).collect();
/// assert_eq!(values[..2], [5_f32.to_le_bytes(), 25_f32.to_le_bytes()]);
/// assert_eq!(sampled.outside, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sampler<A> {
    array: A,
    kernel: Kernel,
    /// The data type of voxels.
    dtype: zvf_format::numeric::Dtype,
    form: Form,
    /// The data type of sampled values.
    kind: Kind,
    /// The row of values for a point outside the array.
    fill: Vec<u8>,
    columns: usize,
    share: u64,
    cache: Mutex<Cache>,
    /// All voxels, allocated once there are enough points to justify it.
    whole: RwLock<Option<WholeArray>>,
    /// Number of points sampled over all calls.
    points: AtomicU64,
}

/// Values sampled at positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// One row of values per position, little-endian.
    pub values: Vec<u8>,
    /// Number of positions outside the array.
    pub outside: u64,
    /// The reads performed.
    pub reads: ReadCost,
}

impl Interpolation {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::Nearest, Self::Linear, Self::Cubic];

    /// Returns the name: `nearest`, `linear` or `cubic`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::Linear => "linear",
            Self::Cubic => "cubic",
        }
    }
}

impl<A> Sampler<A>
where
    A: Deref<Target: DenseArray> + Sync,
{
    /// Creates a sampler for positions with `axes` coordinates.
    ///
    /// # Errors
    ///
    /// [`DenseError::Sampling`] if the array is not of real numbers, has fewer than `axes` axes, or
    /// is empty, or if the affine map has another number of axes.
    pub fn new(array: A, axes: usize, options: &SampleOptions) -> Result<Self, DenseError> {
        let fail = |fault| DenseError::sampling(array.name(), fault);
        let dtype = match array.dtype() {
            NumpyDtype::Number(dtype) => *dtype,
            _ => return Err(fail("its elements are not numbers")),
        };
        if matches!(dtype.kind(), Kind::Complex64 | Kind::Complex128) {
            return Err(fail("complex numbers are not sampled"));
        }
        if axes == 0 || axes > MAX_AXES {
            return Err(fail("positions have 1 to 8 axes"));
        }
        let (Some(space), Some(channels)) = (array.shape().get(..axes), array.shape().get(axes..))
        else {
            return Err(fail("it has fewer axes than positions"));
        };
        if array.shape().contains(&0) {
            return Err(fail("it has no elements"));
        }
        if space.iter().any(|extent| *extent > kernel::MAX_VOXELS) {
            return Err(fail(
                "an axis has more voxels than positions can distinguish",
            ));
        }
        let affine = options.affine.clone();
        if affine.as_ref().is_some_and(|affine| affine.axes() != axes) {
            return Err(fail("the affine map has another number of axes"));
        }
        let columns = crate::hyperslab::product(channels.iter().copied());
        let columns = columns
            .and_then(|columns| usize::try_from(columns).ok())
            .ok_or_else(|| fail("a voxel has too many values"))?;
        let is_nearest = options.interpolation == Interpolation::Nearest;
        let is_float = matches!(dtype.kind(), Kind::Float16 | Kind::Float32 | Kind::Float64);
        let kind = match dtype.kind() {
            Kind::Float64 => Kind::Float64,
            kind if is_nearest && !is_float => kind,
            _ => Kind::Float32,
        };
        let is_exact = is_nearest && !is_float;
        let (fill, is_edge) = match options.outside {
            Some(Outside::Fill(fill)) => (fill, false),
            Some(Outside::Edge) if is_exact => (0.0, true),
            Some(Outside::Edge) => (f64::NAN, true),
            None if is_exact => (0.0, false),
            None => (f64::NAN, false),
        };
        let fill = fill_of(kind, fill).ok_or_else(|| {
            fail("its type does not hold the value for vertices outside; give another one")
        })?;
        if columns
            .checked_mul(size_of::<f64>())
            .is_none_or(|len| len > MAX_ROW)
        {
            return Err(fail("a voxel has too many values"));
        }
        Ok(Self {
            kernel: Kernel::new(affine, options.interpolation, space, is_edge),
            form: Form::of(dtype, kind, is_nearest),
            cache: Mutex::default(),
            whole: RwLock::default(),
            points: AtomicU64::new(0),
            dtype,
            kind,
            fill: fill.repeat(columns),
            columns,
            share: options
                .budget
                .unwrap_or(MAX_VOXEL_BYTES)
                .min(MAX_VOXEL_BYTES),
            array,
        })
    }

    /// Returns the data type of the values. Integers keep their type with
    /// [`Interpolation::Nearest`], `float64` stays `float64`, and every other combination gives
    /// `float32`.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the shape of the values of one position; `[]` for a single value.
    pub fn row_shape(&self) -> &[u64] {
        self.array
            .shape()
            .get(self.kernel.axes()..)
            .unwrap_or_default()
    }

    /// Returns the length of the values of one position in bytes.
    pub fn row_len(&self) -> usize {
        self.columns.saturating_mul(self.kind.size())
    }

    /// Samples the array at positions, given as consecutive coordinates.
    ///
    /// Concurrent calls take turns at reading, and each call uses the threads of rayon. Do not call
    /// this from parallel rayon tasks.
    ///
    /// A tile is a block, or a chunk if chunks have no blocks. As long as all needed tiles fit in
    /// memory, each is read once, over all calls. Otherwise points are processed in the order of
    /// their tiles, and a tile may be read again for points near its border.
    ///
    /// # Errors
    ///
    /// [`DenseError::Budget`] if the voxels around a single point exceed the budget; [`DenseError`]
    /// if the array cannot be read.
    pub fn sample(&self, positions: &[f64]) -> Result<Sampled, DenseError> {
        let axes = self.kernel.axes();
        let points = positions.len().checked_div(axes).unwrap_or(0);
        let row = self.row_len();
        let too_many = || DenseError::Budget {
            needed: u64::MAX,
            budget: u64::from(u32::MAX),
        };
        // Points are numbered with 32 bits.
        u32::try_from(points).map_err(|_| too_many())?;
        let len = points.checked_mul(row).ok_or_else(too_many)?;
        let mut values = Vec::new();
        values.try_reserve_exact(len).map_err(|_| too_many())?;
        values.resize(len, 0);
        let unit = self.columns.saturating_mul(self.form.size(self.dtype));
        let unit = u64::try_from(unit).unwrap_or(u64::MAX);
        let tiling = Tiling::new(&*self.array, &self.kernel, unit, self.share)?;
        let mut sampled = Sampled {
            values,
            ..Sampled::default()
        };
        let more = u64::try_from(points).unwrap_or(u64::MAX);
        let so_far = self.points.fetch_add(more, Ordering::Relaxed);
        if whole::is_worth(so_far.saturating_add(more), &tiling, self.share) {
            self.sample_whole(positions, &tiling, &mut sampled)?;
            return Ok(sampled);
        }
        let needs = self.needs(positions, &tiling);
        let costs = needs.iter().map(|tile| tiling.cost(*tile));
        if costs.fold(0, u64::saturating_add) <= self.share {
            let tiles = self.load(&needs, &tiling, &mut sampled.reads)?;
            let tiles = Views::of(tiles.iter().map(|tile| &**tile));
            self.all(&tiling, &tiles, positions, &mut sampled);
        } else {
            self.in_parts(positions, &tiling, &mut sampled)?;
        }
        Ok(sampled)
    }

    /// Samples positions whose tiles are all in memory.
    fn all(&self, tiling: &Tiling, views: &Views<'_>, positions: &[f64], into: &mut Sampled) {
        let (axes, row) = (self.kernel.axes(), self.row_len());
        let runs = positions.par_chunks(axes.saturating_mul(POINTS_PER_TASK).max(1));
        let values = into
            .values
            .par_chunks_mut(row.saturating_mul(POINTS_PER_TASK).max(1));
        let outside = runs
            .zip(values)
            .map(|(run, values)| self.run(tiling, views, run.chunks_exact(axes), values));
        into.outside = outside.sum();
    }

    /// Samples positions from the contiguous copy of all voxels.
    fn sample_whole(
        &self,
        positions: &[f64],
        tiling: &Tiling,
        sampled: &mut Sampled,
    ) -> Result<(), DenseError> {
        let is_complete =
            |whole: &Option<WholeArray>| whole.as_ref().is_some_and(WholeArray::is_complete);
        let read = || self.whole.read().unwrap_or_else(PoisonError::into_inner);
        if !is_complete(&read()) {
            let marked = whole::marks(positions, &self.kernel, tiling);
            let mut whole = self.whole.write().unwrap_or_else(PoisonError::into_inner);
            let whole = whole.get_or_insert_with(|| {
                let mut whole = WholeArray::new(tiling, self.kernel.axes(), self.form, self.unit());
                let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
                whole.adopt(cache.take(), self.form);
                whole
            });
            let name = self.array.name();
            let read = |tile| self.read(tile, tiling);
            let read_all = |whole: &Tiling| self.read(0, whole);
            let reads = whole.fill(&marked, (name, tiling, self.form), read, read_all)?;
            add(&mut sampled.reads, reads);
        }
        if let Some(whole) = &*read() {
            let views = Views::of(core::iter::once(whole.tile()));
            self.all(whole.tiling(), &views, positions, sampled);
        }
        Ok(())
    }

    /// Returns tiles from the cache, and reads the missing ones.
    fn load(
        &self,
        tiles: &[u64],
        tiling: &Tiling,
        reads: &mut ReadCost,
    ) -> Result<Vec<Arc<Tile>>, DenseError> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |tile| self.read(tile, tiling);
        let (tiles, taken) = cache.load(tiles, tiling, self.share, read)?;
        add(reads, taken);
        Ok(tiles)
    }

    fn read(&self, number: u64, tiling: &Tiling) -> Result<(Tile, ReadCost), DenseError> {
        let span = tiling.span(number);
        let selection = tiling.selection(&span);
        let array = &*self.array;
        let len = array.byte_len(&selection)?;
        let mut plan = ReadCost::default();
        let voxels = self.form.read(self.dtype, len, array.name(), |into| {
            plan = array.slice_into(&selection, into)?;
            Ok(())
        })?;
        let tile = Tile {
            number,
            strides: span.strides(self.kernel.axes(), self.unit()),
            span,
            voxels,
        };
        Ok((tile, plan))
    }

    /// Returns the distance between neighbouring voxels.
    fn unit(&self) -> usize {
        match self.form {
            Form::Bytes => self.row_len(),
            _ => self.columns,
        }
    }

    /// Samples positions in order and returns the number of positions outside the array.
    fn run<'p>(
        &self,
        tiling: &Tiling,
        views: &Views<'_>,
        positions: impl Iterator<Item = &'p [f64]>,
        into: &mut [u8],
    ) -> u64 {
        let (kernel, size) = (&self.kernel, self.kind.size());
        match views {
            Views::Bytes(tiles) => {
                let finder = Finder::new(kernel, tiling, tiles);
                self.each(finder, positions, into, Finder::copy)
            }
            Views::Single(tiles) => {
                let finder = Finder::new(kernel, tiling, tiles);
                self.each(finder, positions, into, |finder, spot, into| {
                    finder.weigh(spot, size, into);
                })
            }
            Views::Double(tiles) => {
                let finder = Finder::new(kernel, tiling, tiles);
                self.each(finder, positions, into, |finder, spot, into| {
                    finder.weigh(spot, size, into);
                })
            }
        }
    }

    /// Samples positions in batches: locates a batch and prefetches its voxels before it reads the
    /// first one, so that the memory accesses overlap.
    fn each<'a, 'p, N>(
        &self,
        mut finder: Finder<'a, N>,
        mut positions: impl Iterator<Item = &'p [f64]>,
        into: &mut [u8],
        put: impl Fn(&mut Finder<'a, N>, &Spot, &mut [u8]),
    ) -> u64 {
        let mut rows = into.chunks_exact_mut(self.fill.len().max(1));
        let mut ahead = [(Spot::default(), false); PREFETCHED];
        let mut outside = 0;
        loop {
            let mut count = 0;
            for ((spot, is_inside), position) in ahead.iter_mut().zip(&mut positions) {
                *is_inside = self.kernel.spot(position, spot);
                if *is_inside {
                    finder.expect(spot);
                }
                count += 1;
            }
            for ((spot, is_inside), into) in ahead.iter().take(count).zip(&mut rows) {
                if *is_inside {
                    put(&mut finder, spot, into);
                } else {
                    into.copy_from_slice(&self.fill);
                    outside += 1;
                }
            }
            if count < PREFETCHED {
                break;
            }
        }
        outside
    }
}
