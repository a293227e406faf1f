//! A region as chunks see it: which of them can hold some of it.

use core::ops::RangeInclusive;

use zvf_model::{
    grid::{Bins, Bounds, ChunkCoord, ChunkShape},
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
};

use crate::{
    error::QueryError,
    geometry::{Bbox, MAX_AXES, Mode, Position, Primitive, squared_distance_to_bbox},
    query::Region,
};

/// Space as a level cuts it into chunks.
#[derive(Clone, Debug)]
pub(crate) struct ChunkSpace {
    axes: usize,
    shape: ChunkShape,
    bins: Option<Bins>,
    /// Whether positions were rounded after their chunk was chosen.
    rounded: bool,
}

impl ChunkSpace {
    pub(crate) fn of(level: &LevelMetadata, root: &RootMetadata) -> Self {
        let bins = level.bins(root).ok().filter(|bins| bins.count() > 1);
        Self {
            axes: root.axes.len(),
            shape: level.effective_chunk_shape(root).clone(),
            bins,
            rounded: level.level != LevelId::FULL,
        }
    }

    pub(crate) fn axes(&self) -> usize {
        self.axes
    }

    pub(crate) fn bins(&self) -> Option<&Bins> {
        self.bins.as_ref()
    }

    /// The coordinates, along each axis, of chunks that can hold a vertex in
    /// `bbox`; `None` when the box holds nothing.
    ///
    /// Vertices of coarse levels are filed by their place before it was rounded
    /// to float32, binned ones by the chunk of their bin.
    fn reach(&self, bbox: &Bbox) -> Option<Vec<RangeInclusive<i64>>> {
        let (mut lo, mut hi) = (bbox.lo().to_vec(), bbox.hi().to_vec());
        if self.rounded {
            for lo in &mut lo {
                *lo = below(*lo);
            }
            for hi in &mut hi {
                *hi = above(*hi);
            }
        }
        let bounds = Bounds::new(&lo, &hi).ok()?;
        let chunks = self.shape.chunks_touching(&bounds);
        if chunks.is_empty() {
            return None;
        }
        let mut axes = chunks.axes().to_vec();
        if let Some(bins) = &self.bins {
            let touching = bins.shape().chunks_touching(&bounds);
            let counts = bins.per_chunk().iter();
            for ((axis, bin), count) in axes.iter_mut().zip(touching.axes()).zip(counts) {
                let chunk = |bin: &i64| bin.div_euclid(i64::from(count.get()));
                let start = (*axis.start()).min(chunk(bin.start()));
                *axis = start..=(*axis.end()).max(chunk(bin.end()));
            }
        }
        Some(axes)
    }

    /// The box a chunk's vertices are in, widened by what rounding may move them.
    pub(crate) fn chunk_box(&self, chunk: &ChunkCoord) -> Option<Bbox> {
        let coords = chunk.spatial(self.axes)?;
        let (mut lo, mut hi) = ([0.0; MAX_AXES], [0.0; MAX_AXES]);
        let corners = lo.iter_mut().zip(&mut hi);
        for ((lo, hi), (coord, extent)) in corners.zip(coords.iter().zip(self.shape.extents())) {
            (*lo, *hi) = ends(*coord, *extent);
        }
        Bbox::new(lo.get(..self.axes)?, hi.get(..self.axes)?).ok()
    }

    /// The squared distance of a place from the nearest point that a chunk, or a
    /// straight line between two of `chunks`, can hold.
    pub(crate) fn squared_distance<'c>(
        &self,
        place: &Position,
        chunks: impl IntoIterator<Item = &'c ChunkCoord>,
    ) -> f64 {
        let hull = self.hull(chunks);
        hull.map_or(0.0, |hull| squared_distance_to_bbox(place, &hull))
    }

    /// The box around several chunks.
    pub(crate) fn hull<'c>(
        &self,
        chunks: impl IntoIterator<Item = &'c ChunkCoord>,
    ) -> Option<Bbox> {
        let mut boxes = chunks.into_iter().filter_map(|chunk| self.chunk_box(chunk));
        let first = boxes.next()?;
        Some(boxes.fold(first, |hull, chunk| around(&hull, &chunk)))
    }
}

/// Where a chunk begins and ends along an axis, widened by what rounding may move.
fn ends(chunk: i64, extent: f64) -> (f64, f64) {
    // Exact up to 2^53, beyond which chunks are no real ones.
    let at = float(chunk);
    (below(at * extent), above((at + 1.0) * extent))
}

/// The box around two.
pub(crate) fn around(one: &Bbox, other: &Bbox) -> Bbox {
    let lo: Vec<f64> = pairs(one.lo(), other.lo(), f64::min);
    let hi: Vec<f64> = pairs(one.hi(), other.hi(), f64::max);
    Bbox::new(&lo, &hi).unwrap_or(*one)
}

fn pairs(one: &[f64], other: &[f64], pick: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let both = one.iter().zip(other);
    both.map(|(one, other)| pick(*one, *other)).collect()
}

/// A part in four million up: more than rounding to float32 moves a number.
fn above(value: f64) -> f64 {
    value + value.abs() * 2.5e-7 + 1e-40
}

fn below(value: f64) -> f64 {
    -above(-value)
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "std turns an i64 into a float in no other way; a rounded chunk is widened"
)]
fn float(value: i64) -> f64 {
    value as f64
}

/// A region of a query, on a level.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    region: Region,
    bounds: Bbox,
    reach: Option<Vec<RangeInclusive<i64>>>,
    space: ChunkSpace,
}

impl Area {
    /// # Errors
    ///
    /// When the region has other axes than the store.
    pub(crate) fn new(region: &Region, space: &ChunkSpace) -> Result<Self, QueryError> {
        let bounds = match region {
            Region::Box(bbox) => *bbox,
            Region::Sphere(sphere) => {
                let reach = |sign: f64| {
                    let axes = sphere.centre().iter();
                    axes.map(|c| {
                        let edge = c + sign * sphere.radius();
                        // What rounding may have moved inside.
                        edge + sign * edge.abs() * 1e-15
                    })
                    .collect::<Vec<_>>()
                };
                let (lo, hi) = (reach(-1.0), reach(1.0));
                Bbox::new(&lo, &hi).map_err(|_| QueryError::Axes {
                    expected: space.axes(),
                    found: lo.len(),
                })?
            }
        };
        if bounds.axes() != space.axes() {
            return Err(QueryError::Axes {
                expected: space.axes(),
                found: bounds.axes(),
            });
        }
        Ok(Self {
            region: region.clone(),
            reach: space.reach(&bounds),
            bounds,
            space: space.clone(),
        })
    }

    /// The region, when it is a box.
    pub(crate) fn bbox(&self) -> Option<&Bbox> {
        match &self.region {
            Region::Box(bbox) => Some(bbox),
            Region::Sphere(_) => None,
        }
    }

    /// About which part of a chunk is in it: of a sphere that of the box around it.
    pub(crate) fn share_of(&self, chunk: &ChunkCoord) -> f64 {
        let chunk = self.space.chunk_box(chunk);
        chunk.map_or(1.0, |chunk| self.share_between(chunk.lo(), chunk.hi()))
    }

    /// The same of a box.
    pub(crate) fn share_between(&self, lo: &[f64], hi: &[f64]) -> f64 {
        let bounds = self.bounds.lo().iter().zip(self.bounds.hi());
        let shares = lo.iter().zip(hi).zip(bounds).map(|((lo, hi), (from, to))| {
            let share = (to.min(*hi) - from.max(*lo)) / (hi - lo);
            // A box without extent is in it or not, and it hardly matters which.
            if share.is_nan() {
                1.0
            } else {
                share.clamp(0.0, 1.0)
            }
        });
        shares.product()
    }

    /// Whether a chunk can hold a vertex in it.
    pub(crate) fn reaches(&self, chunk: &ChunkCoord) -> bool {
        self.reaches_between(core::iter::once(chunk))
    }

    /// Whether a straight line or face between vertices of these chunks can come
    /// into it.
    pub(crate) fn reaches_between<'c>(
        &self,
        chunks: impl IntoIterator<Item = &'c ChunkCoord> + Clone,
    ) -> bool {
        let Some(reach) = &self.reach else {
            return false;
        };
        let axes = self.space.axes();
        reach.iter().enumerate().all(|(axis, range)| {
            let coords = chunks.clone().into_iter();
            let mut coords = coords.filter_map(|chunk| chunk.spatial(axes)?.get(axis).copied());
            let Some(first) = coords.next() else {
                return false;
            };
            let (lo, hi) = coords.fold((first, first), |(lo, hi), c| (lo.min(c), hi.max(c)));
            lo <= *range.end() && *range.start() <= hi
        }) && self.is_near(chunks)
    }

    /// Spheres do not fill their box.
    fn is_near<'c>(&self, chunks: impl IntoIterator<Item = &'c ChunkCoord>) -> bool {
        let Region::Sphere(sphere) = &self.region else {
            return true;
        };
        let Ok(centre) = Position::new(sphere.centre()) else {
            return false;
        };
        let squared = self.space.squared_distance(&centre, chunks);
        squared <= sphere.radius() * sphere.radius() * (1.0 + 1e-12)
    }

    /// Whether a line from `known` vertices to somewhere in `unknown` chunks may
    /// come into it: whether the box around all of them does. A query for a box asks it of
    /// every step of every path near.
    pub(crate) fn may_meet(&self, known: &[&[f64]], unknown: &[&ChunkCoord]) -> bool {
        let axes = self.space.axes();
        let bounds = self.bounds.lo().iter().zip(self.bounds.hi());
        let mut bounds = bounds.zip(self.space.shape.extents()).enumerate();
        bounds.all(|(axis, ((from, to), extent))| {
            let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
            for value in known.iter().filter_map(|point| point.get(axis)) {
                (lo, hi) = (lo.min(*value), hi.max(*value));
            }
            for chunk in unknown {
                if let Some(at) = chunk.spatial(axes).and_then(|coords| coords.get(axis)) {
                    let (least, most) = ends(*at, *extent);
                    (lo, hi) = (lo.min(least), hi.max(most));
                }
            }
            from <= to && lo <= *to && *from <= hi
        })
    }

    /// Whether something that fills a box may come into it.
    pub(crate) fn meets(&self, extent: &Bbox) -> bool {
        self.bounds.meets(extent)
    }

    /// Whether what has all its corners in it is all in it: a corner may be in a box without
    /// end and nowhere all the same.
    pub(crate) fn holds_corners(&self) -> bool {
        let bounds = self.bounds.lo().iter().chain(self.bounds.hi());
        self.bbox().is_some() && bounds.copied().all(f64::is_finite)
    }

    pub(crate) fn touches(&self, primitive: Primitive<'_>) -> bool {
        match &self.region {
            Region::Box(bbox) => bbox.touches(primitive),
            Region::Sphere(sphere) => sphere.touches(primitive),
        }
    }

    pub(crate) fn contains(&self, primitive: Primitive<'_>) -> bool {
        match &self.region {
            Region::Box(bbox) => bbox.contains(primitive),
            Region::Sphere(sphere) => sphere.contains(primitive),
        }
    }

    pub(crate) fn selects(&self, mode: Mode, primitive: Primitive<'_>) -> bool {
        match mode {
            Mode::Within => self.contains(primitive),
            Mode::Touch | Mode::Clip => self.touches(primitive),
        }
    }

    /// The numbers of the bins of a chunk that it touches.
    pub(crate) fn bins_of(&self, chunk: &ChunkCoord) -> Option<(Vec<u32>, u64)> {
        let bins = self.space.bins()?;
        let bounds = Bounds::new(self.bounds.lo(), self.bounds.hi()).ok()?;
        let touching = bins.touching(chunk.spatial(self.space.axes())?, &bounds);
        let numbers = touching.map(|bin| u32::try_from(bin).ok());
        Some((numbers.collect::<Option<_>>()?, bins.count()))
    }
}
