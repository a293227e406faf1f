//! The region of a query on the grid of chunks.

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

/// The grid of chunks and bins of a level.
#[derive(Clone, Debug)]
pub(crate) struct ChunkSpace {
    axes: usize,
    shape: ChunkShape,
    bins: Option<Bins>,
    /// True if positions were rounded after their chunk was chosen.
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

    /// Returns the range of chunk coordinates along each axis that can contain a vertex in `bbox`;
    /// `None` if the box is empty.
    ///
    /// Vertices of coarse levels are assigned to chunks before their positions are rounded to
    /// float32, and binned vertices to the chunk of their bin, so the box is widened.
    fn chunk_range(&self, bbox: &Bbox) -> Option<Vec<RangeInclusive<i64>>> {
        let (mut lo, mut hi) = (bbox.lo().to_vec(), bbox.hi().to_vec());
        if self.rounded {
            for lo in &mut lo {
                *lo = round_down(*lo);
            }
            for hi in &mut hi {
                *hi = round_up(*hi);
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

    /// Returns the bounding box of a chunk, widened by the error of rounding.
    pub(crate) fn chunk_box(&self, chunk: &ChunkCoord) -> Option<Bbox> {
        let coords = chunk.spatial(self.axes)?;
        let (mut lo, mut hi) = ([0.0; MAX_AXES], [0.0; MAX_AXES]);
        let corners = lo.iter_mut().zip(&mut hi);
        for ((lo, hi), (coord, extent)) in corners.zip(coords.iter().zip(self.shape.extents())) {
            (*lo, *hi) = ends(*coord, *extent);
        }
        Bbox::new(lo.get(..self.axes)?, hi.get(..self.axes)?).ok()
    }

    /// Returns a lower bound on the squared distance between a position and any vertex of `chunks` or
    /// line between them.
    pub(crate) fn squared_distance<'c>(
        &self,
        position: &Position,
        chunks: impl IntoIterator<Item = &'c ChunkCoord>,
    ) -> f64 {
        let hull = self.hull(chunks);
        hull.map_or(0.0, |hull| squared_distance_to_bbox(position, &hull))
    }

    /// Returns the bounding box of several chunks.
    pub(crate) fn hull<'c>(
        &self,
        chunks: impl IntoIterator<Item = &'c ChunkCoord>,
    ) -> Option<Bbox> {
        let mut boxes = chunks.into_iter().filter_map(|chunk| self.chunk_box(chunk));
        let first = boxes.next()?;
        Some(boxes.fold(first, |hull, chunk| around(&hull, &chunk)))
    }
}

/// Returns the bounds of a chunk along an axis, widened by the error of rounding.
fn ends(chunk: i64, extent: f64) -> (f64, f64) {
    // Exact up to 2^53, beyond which no chunk exists.
    let at = float(chunk);
    (round_down(at * extent), round_up((at + 1.0) * extent))
}

/// The part of a line on which a value is at most a bound. The line is at its first end at 0, and at
/// its last one at 1.
enum Crossing {
    /// After this point, or slightly before.
    After(f64),
    /// Before this point, or slightly after.
    Before(f64),
    /// Anywhere or nowhere.
    Unknown,
}

impl Crossing {
    /// Returns where a line between two values is at most `max`.
    fn of([first, last]: [f64; 2], max: f64) -> Self {
        let largest = first.abs().max(last.abs()).max(max.abs());
        // More than the error of rounding.
        let slack = largest * 1e-12 + f64::MIN_POSITIVE;
        let step = last - first;
        let at = (max + slack - first) / step;
        if !(at.is_finite() && step.is_finite()) {
            Self::Unknown
        } else if first > last {
            Self::After(at)
        } else {
            Self::Before(at)
        }
    }
}

/// Returns the bounding box of two boxes.
pub(crate) fn around(one: &Bbox, other: &Bbox) -> Bbox {
    let lo: Vec<f64> = combine(one.lo(), other.lo(), f64::min);
    let hi: Vec<f64> = combine(one.hi(), other.hi(), f64::max);
    Bbox::new(&lo, &hi).unwrap_or(*one)
}

fn combine(one: &[f64], other: &[f64], pick: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let both = one.iter().zip(other);
    both.map(|(one, other)| pick(*one, *other)).collect()
}

/// Adds one part in four million, more than the error of rounding to float32.
fn round_up(value: f64) -> f64 {
    value + value.abs() * 2.5e-7 + 1e-40
}

fn round_down(value: f64) -> f64 {
    -round_up(-value)
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "std turns an i64 into a float in no other way; a rounded chunk is widened"
)]
fn float(value: i64) -> f64 {
    value as f64
}

/// The region of a query on a level.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    region: Region,
    bounds: Bbox,
    chunk_range: Option<Vec<RangeInclusive<i64>>>,
    space: ChunkSpace,
}

impl Area {
    /// # Errors
    ///
    /// [`QueryError::Axes`] if the region has another number of axes than the store.
    pub(crate) fn new(region: &Region, space: &ChunkSpace) -> Result<Self, QueryError> {
        let bounds = match region {
            Region::Box(bbox) => *bbox,
            Region::Sphere(sphere) => {
                let chunk_range = |sign: f64| {
                    let axes = sphere.centre().iter();
                    axes.map(|c| {
                        let edge = c + sign * sphere.radius();
                        if edge.is_nan() {
                            // No position is in such a sphere: the bounds are those of an empty box.
                            return -sign * f64::INFINITY;
                        }
                        // Covers the error of rounding.
                        edge + sign * edge.abs() * 1e-15
                    })
                    .collect::<Vec<_>>()
                };
                let (lo, hi) = (chunk_range(-1.0), chunk_range(1.0));
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
            chunk_range: space.chunk_range(&bounds),
            bounds,
            space: space.clone(),
        })
    }

    /// Returns the region if it is a box.
    pub(crate) fn bbox(&self) -> Option<&Bbox> {
        match &self.region {
            Region::Box(bbox) => Some(bbox),
            Region::Sphere(_) => None,
        }
    }

    /// Estimates the share of a chunk that is in the region, or in the bounding box of a sphere.
    pub(crate) fn share_of(&self, chunk: &ChunkCoord) -> f64 {
        let chunk = self.space.chunk_box(chunk);
        chunk.map_or(1.0, |chunk| self.share_between(chunk.lo(), chunk.hi()))
    }

    /// Estimates the share of a box that is in the region.
    pub(crate) fn share_between(&self, lo: &[f64], hi: &[f64]) -> f64 {
        let bounds = self.bounds.lo().iter().zip(self.bounds.hi());
        let shares = lo.iter().zip(hi).zip(bounds).map(|((lo, hi), (from, to))| {
            let share = (to.min(*hi) - from.max(*lo)) / (hi - lo);
            // An empty box counts as inside.
            if share.is_nan() {
                1.0
            } else {
                share.clamp(0.0, 1.0)
            }
        });
        shares.product()
    }

    /// Returns the first coordinates of the chunks that can contain a vertex in the region; `None`
    /// if there are none.
    pub(crate) fn first_coordinates(&self) -> Option<&RangeInclusive<i64>> {
        self.chunk_range.as_ref()?.first()
    }

    /// Returns whether a chunk can contain a vertex in the region.
    pub(crate) fn may_contain(&self, chunk: &ChunkCoord) -> bool {
        self.may_cross(core::iter::once(chunk))
    }

    /// Returns whether a line or face between vertices of these chunks can enter the region.
    pub(crate) fn may_cross<'c>(
        &self,
        chunks: impl IntoIterator<Item = &'c ChunkCoord> + Clone,
    ) -> bool {
        let Some(chunk_range) = &self.chunk_range else {
            return false;
        };
        let axes = self.space.axes();
        chunk_range.iter().enumerate().all(|(axis, range)| {
            let mut coords = chunks
                .clone()
                .into_iter()
                .filter_map(|chunk| chunk.spatial(axes)?.get(axis).copied());
            let Some(first) = coords.next() else {
                return false;
            };
            let (lo, hi) = coords.fold((first, first), |(lo, hi), c| (lo.min(c), hi.max(c)));
            lo <= *range.end() && *range.start() <= hi
        }) && self.is_near(chunks)
    }

    /// Returns whether chunks are near enough to a sphere, which does not fill its bounding box.
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

    /// Returns whether a line or face between `known` vertices and any vertices of `unknown` chunks
    /// may enter the region. Called for every segment of every path near the region.
    ///
    /// Tests the bounding box of all corners. If there are two, the corners are the ends of a line:
    /// also tests whether a box interpolated between those of its ends overlaps the region.
    pub(crate) fn may_intersect(&self, known: &[&[f64]], unknown: &[&ChunkCoord]) -> bool {
        let axes = self.space.axes();
        let is_line = known.len().saturating_add(unknown.len()) == 2;
        // Where between its ends a line may be in the region.
        let mut start = 0.0_f64;
        let mut end = 1.0_f64;
        let mut bounds = self
            .bounds
            .lo()
            .iter()
            .zip(self.bounds.hi())
            .zip(self.space.shape.extents())
            .enumerate();
        bounds.all(|(axis, ((from, to), extent))| {
            let known = known
                .iter()
                .filter_map(|point| point.get(axis))
                .map(|value| (*value, *value));
            let unknown = unknown.iter().filter_map(|chunk| {
                let at = chunk.spatial(axes)?.get(axis)?;
                Some(ends(*at, *extent))
            });
            let mut corners = known.chain(unknown);
            let Some(first) = corners.next() else {
                return false;
            };
            let last = corners.fold(first, |last, corner| {
                if is_line {
                    return corner;
                }
                (last.0.min(corner.0), last.1.max(corner.1))
            });
            if is_line {
                let below = Crossing::of([first.0, last.0], *to);
                let above = Crossing::of([-first.1, -last.1], -*from);
                for crossing in [below, above] {
                    match crossing {
                        Crossing::After(t) => start = start.max(t),
                        Crossing::Before(t) => end = end.min(t),
                        Crossing::Unknown => {}
                    }
                }
            }
            let (lo, hi) = (first.0.min(last.0), first.1.max(last.1));
            from <= to && lo <= *to && *from <= hi && start <= end
        })
    }

    /// Returns whether a box overlaps the bounds of the region.
    pub(crate) fn overlaps(&self, extent: &Bbox) -> bool {
        self.bounds.overlaps(extent)
    }

    /// Returns whether a primitive with all corners in the region is inside it. In an infinite box, a
    /// corner at infinity is inside, but has no position.
    pub(crate) fn decides_by_corners(&self) -> bool {
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

    /// Returns the numbers of the bins of a chunk that touch the region, and the number of all bins.
    pub(crate) fn bins_of(&self, chunk: &ChunkCoord) -> Option<(Vec<u32>, u64)> {
        let bins = self.space.bins()?;
        let bounds = Bounds::new(self.bounds.lo(), self.bounds.hi()).ok()?;
        let touching = bins.touching(chunk.spatial(self.space.axes())?, &bounds);
        let numbers = touching.map(|bin| u32::try_from(bin).ok());
        Some((numbers.collect::<Option<_>>()?, bins.count()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{array::uniform3, prelude::*};

    use super::*;

    fn area(lo: &[f64], hi: &[f64], extent: f64) -> Area {
        let space = ChunkSpace {
            axes: lo.len(),
            shape: ChunkShape::new(&vec![extent; lo.len()]).unwrap(),
            bins: None,
            rounded: false,
        };
        Area::new(&Region::Box(Bbox::new(lo, hi).unwrap()), &space).unwrap()
    }

    fn chunk(coords: &[i64]) -> ChunkCoord {
        ChunkCoord::new(coords)
    }

    #[test]
    fn lines_between_chunks_stay_in_their_convex_hull() {
        let (left, below) = (chunk(&[0, 1]), chunk(&[1, 0]));
        let check = |lo: [f64; 2], expected: bool| {
            let area = area(&lo, &lo.map(|lo| lo + 0.1), 1.0);
            assert_eq!(
                area.may_intersect(&[], &[&left, &below]),
                expected,
                "{lo:?}"
            );
            assert_eq!(
                area.may_intersect(&[], &[&below, &left]),
                expected,
                "{lo:?}"
            );
            // A face may have its third corner anywhere in these chunks.
            assert!(area.may_intersect(&[], &[&left, &below, &below]), "{lo:?}");
        };
        check([1.2, 1.2], true);
        check([1.6, 1.6], false);
        check([0.8, 0.8], true);
        check([0.2, 0.2], false);
        // A line from (0, 1.5) to chunk (1, 0) is at 1.125 or below where x is 1.5.
        let known: &[&[f64]] = &[&[0.0, 1.5]];
        assert!(area(&[1.5, 0.9], &[1.6, 2.0], 1.0).may_intersect(known, &[&below]));
        assert!(!area(&[1.5, 1.2], &[1.6, 2.0], 1.0).may_intersect(known, &[&below]));
    }

    #[test]
    fn lines_of_infinite_length_may_be_anywhere_between_their_ends() {
        let ends: [&[f64]; 2] = [&[-1.7e308, 0.0], &[1.7e308, 1.0]];
        let area = area(&[-1.0, 0.4], &[1.0, 0.6], 1.0);
        assert!(area.touches(Primitive::Segment(ends)));
        assert!(area.may_intersect(&ends, &[]));
    }

    proptest! {
        #[test]
        fn every_line_that_enters_the_region_may_intersect(
            chunks in [uniform3(-3_i64..3), uniform3(-3_i64..3)],
            within in [uniform3(0.0_f64..1.0), uniform3(0.0_f64..1.0)],
            lo in uniform3(-4.0_f64..4.0),
            size in 0.0_f64..2.0,
            scale in prop_oneof![Just(1.0), Just(1e-3), Just(1e9)],
        ) {
            let hi = lo.map(|lo| (lo + size) * scale);
            let area = area(&lo.map(|lo| lo * scale), &hi, scale);
            let corner = |at: usize| -> Vec<f64> {
                let axes = chunks[at].iter().zip(&within[at]);
                axes.map(|(chunk, within)| (float(*chunk) + within) * scale).collect()
            };
            let (first, last) = (corner(0), corner(1));
            if area.touches(Primitive::Segment([&first, &last])) {
                let both = [chunk(&chunks[0]), chunk(&chunks[1])];
                prop_assert!(area.may_intersect(&[], &[&both[0], &both[1]]));
                prop_assert!(area.may_intersect(&[&first], &[&both[1]]));
                prop_assert!(area.may_intersect(&[&last], &[&both[0]]));
                prop_assert!(area.may_intersect(&[&first, &last], &[]));
            }
        }
    }
}
