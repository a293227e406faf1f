//! Values of an array at positions between its elements.

mod affine;
mod kernel;
mod regions;
mod values;

pub use affine::{Affine, AffineError};

use rayon::prelude::*;
use zvf_format::numeric::Kind;

use crate::{DenseArray, DenseError, Dtype, ReadPlan};
use kernel::Kernel;
use regions::{Region, Regions};
use values::{Voxels, fill_of};

/// Most axes of positions.
const MOST_AXES: usize = 8;
/// Most memory for voxels at a time.
const SHARE: u64 = 256 << 20;
/// Points that are sampled one after the other on a core.
const RUN: usize = 1 << 14;

/// How a value between voxels is made of those around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The voxel that is nearest; the one with the greater index in the middle.
    Nearest,
    /// The two voxels along each axis, by how near they are.
    #[default]
    Linear,
    /// The four voxels along each axis, as Catmull and Rom weigh them: through the values
    /// at voxels, smooth between, and beyond the least and greatest at steep places.
    Cubic,
}

/// What a position has that is in no voxel. It is in one while it is at most half
/// a voxel away from a centre along each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outside {
    /// This value.
    Fill(f64),
    /// What the nearest position at the edge has.
    Edge,
}

/// How an array is sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleOptions {
    /// Between voxels.
    pub interpolation: Interpolation,
    /// From positions to indices of voxels; positions are indices without.
    pub affine: Option<Affine>,
    /// Beyond the edge; NaN, and 0 of integers, when not said. A position
    /// that is no number has the value too.
    pub outside: Option<Outside>,
    /// The most bytes of memory for voxels at a time, beside positions and values; at
    /// most 256 MiB are used.
    pub budget: Option<u64>,
}

/// An array, to be sampled.
///
/// Axis number `i` of positions, after the affine map, is axis number `i` of the array, and
/// the centre of voxel `n` is at `n`. Axes that the array has beyond those are values of
/// each voxel.
///
/// Voxels that are NaN, and have weight, are left out where those that are not have half the
/// weight at least, and make the value NaN otherwise. Cubic values near NaN are linear.
///
/// ```
/// use zvf_dense::{Dtype, MemoryArray, sample::{SampleOptions, Sampler}};
///
/// let row = MemoryArray::new("row", Dtype::parse("u1")?, vec![3], vec![0, 10, 40])?;
/// let sampled = Sampler::new(&row, 1, &SampleOptions::default())?.sample(&[0.5, 1.5, 7.0])?;
/// let values: Vec<&[u8]> = sampled.values.chunks(4).collect();
/// assert_eq!(values[..2], [5_f32.to_le_bytes(), 25_f32.to_le_bytes()]);
/// assert_eq!(sampled.outside, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sampler<'a> {
    array: &'a dyn DenseArray,
    kernel: Kernel,
    /// Of the voxels.
    dtype: zvf_format::numeric::Dtype,
    /// Of the values.
    kind: Kind,
    fill: Vec<u8>,
    columns: usize,
    share: u64,
}

/// Values at positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// A row for each position, little-endian.
    pub values: Vec<u8>,
    /// Positions that are in no voxel.
    pub outside: u64,
    /// What was read.
    pub reads: ReadPlan,
}

impl<'a> Sampler<'a> {
    /// An array to be sampled at positions of so many axes.
    ///
    /// # Errors
    ///
    /// [`DenseError::Sampling`] when the array has no real numbers, fewer axes, or no
    /// elements, or the affine map is of another number of axes.
    pub fn new(
        array: &'a dyn DenseArray,
        axes: usize,
        options: &SampleOptions,
    ) -> Result<Self, DenseError> {
        let fail = |fault| DenseError::sampling(array.name(), fault);
        let dtype = match array.dtype() {
            Dtype::Number(dtype) => *dtype,
            _ => return Err(fail("its elements are no numbers")),
        };
        if matches!(dtype.kind(), Kind::Complex64 | Kind::Complex128) {
            return Err(fail("complex numbers are not sampled"));
        }
        if axes == 0 || axes > MOST_AXES {
            return Err(fail("positions have 1 to 8 axes"));
        }
        let (Some(space), Some(channels)) = (array.shape().get(..axes), array.shape().get(axes..))
        else {
            return Err(fail("it has fewer axes than positions"));
        };
        if array.shape().contains(&0) {
            return Err(fail("it has no elements"));
        }
        let affine = options
            .affine
            .clone()
            .unwrap_or_else(|| Affine::identity(axes));
        if affine.axes() != axes {
            return Err(fail("the affine map has another number of axes"));
        }
        let columns = crate::selection::product(channels.iter().copied());
        let columns = columns.and_then(|columns| usize::try_from(columns).ok());
        let columns = columns.ok_or_else(|| fail("a voxel has too many values"))?;
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
        let fill = fill_of(kind, fill);
        Ok(Self {
            kernel: Kernel::new(affine, options.interpolation, space, is_edge),
            dtype,
            kind,
            fill: fill.ok_or_else(|| fail("the value outside is none of its type"))?,
            columns,
            share: options.budget.unwrap_or(SHARE).min(SHARE),
            array,
        })
    }

    /// What values are: integers stay what they are where the nearest is taken, `float64`
    /// stays, and all others are `float32`.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The shape of the values of one position: `[]` for one.
    pub fn row_shape(&self) -> &[u64] {
        self.array
            .shape()
            .get(self.kernel.axes()..)
            .unwrap_or_default()
    }

    /// Bytes of the values of one position.
    pub fn row_len(&self) -> usize {
        self.columns.saturating_mul(self.kind.size())
    }

    /// Values at positions, which follow each other axis by axis.
    ///
    /// Points are parted along borders of chunks until what is around them fits in memory,
    /// and is not more chunks than points; each part is one read. So no chunk is read
    /// twice but for the voxels that points near its border have in the next part.
    ///
    /// # Errors
    ///
    /// [`DenseError::Budget`] when the voxels around one point are more than that;
    /// [`DenseError`] when the array cannot be read.
    pub fn sample(&self, positions: &[f64]) -> Result<Sampled, DenseError> {
        let axes = self.kernel.axes();
        let points = positions.len().checked_div(axes).unwrap_or(0);
        let budget = u64::from(u32::MAX);
        let last = u32::try_from(points).map_err(|_| DenseError::Budget {
            needed: u64::try_from(points).unwrap_or(u64::MAX),
            budget,
        })?;
        let row = self.row_len();
        let too_many = || DenseError::Budget {
            needed: u64::MAX,
            budget,
        };
        let len = points.checked_mul(row).ok_or_else(too_many)?;
        let mut values = Vec::new();
        values.try_reserve_exact(len).map_err(|_| too_many())?;
        values.resize(len, 0);
        values
            .par_chunks_mut(row.saturating_mul(RUN).max(1))
            .for_each(|run| {
                run.chunks_exact_mut(row.max(1))
                    .for_each(|value| value.copy_from_slice(&self.fill.repeat(self.columns)));
            });
        let inside: Vec<u32> = (0..last)
            .into_par_iter()
            .filter(|point| self.kernel.place(positions, *point).is_some())
            .collect();
        let mut sampled = Sampled {
            values,
            outside: u64::try_from(points.saturating_sub(inside.len())).unwrap_or(u64::MAX),
            reads: ReadPlan::default(),
        };
        let size = self
            .dtype
            .size()
            .saturating_add(Voxels::size(self.dtype, self.kind));
        let mut regions = Regions::new(&self.kernel, positions, inside);
        let bytes = self.columns.saturating_mul(size);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        while let Some(region) = regions.next(self.array.grid().chunk_shape(), bytes, self.share) {
            self.region(positions, &region?, &mut sampled)?;
        }
        Ok(sampled)
    }

    /// Reads what is around the points of a region, and samples them.
    fn region(
        &self,
        positions: &[f64],
        region: &Region,
        sampled: &mut Sampled,
    ) -> Result<(), DenseError> {
        let selection = region.selection(self.row_shape());
        let mut bytes = vec![0; self.array.byte_len(&selection)?];
        let plan = self.array.slice_into(&selection, &mut bytes)?;
        let reads = &mut sampled.reads;
        for (sum, more) in [
            (&mut reads.chunks, plan.chunks),
            (&mut reads.blocks, plan.blocks),
            (&mut reads.bytes_read, plan.bytes_read),
            (&mut reads.bytes, plan.bytes),
        ] {
            *sum = sum.saturating_add(more);
        }
        let voxels = Voxels::new(bytes, self.dtype, self.kind);
        let grid = self.kernel.window(region, self.columns);
        let row = self.row_len();
        let runs: Vec<Vec<u8>> = region
            .points
            .par_chunks(RUN)
            .map(|run| {
                let mut values = Vec::with_capacity(run.len().saturating_mul(row));
                for point in run {
                    match self.kernel.place(positions, *point) {
                        Some(place) => grid.value(&place, &voxels, &mut values),
                        None => values.extend(self.fill.repeat(self.columns)),
                    }
                }
                values
            })
            .collect();
        let rows = runs.iter().flat_map(|run| run.chunks_exact(row.max(1)));
        for (point, value) in region.points.iter().zip(rows) {
            let at = usize::try_from(*point)
                .unwrap_or(usize::MAX)
                .saturating_mul(row);
            let into = sampled.values.get_mut(at..at.saturating_add(row));
            if let Some(into) = into {
                into.copy_from_slice(value);
            }
        }
        Ok(())
    }
}
