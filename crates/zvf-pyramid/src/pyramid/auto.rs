//! Chooses the levels of a pyramid from the contents of the store.

use zvf_build::{
    ShardingPolicy,
    coarsen::{
        Amount, CoarsenMethod, MethodKind, MethodOptions, MethodScale, NO_POINTS, NO_TOLERANCE,
        Ownership, Placement, Sparsity, Strategy,
    },
};
use zvf_dataset::Failure;
use zvf_model::{geometry_kind::GeometryKind, grid::ChunkCoord};

use super::{
    LevelDesign, ObjectSelection,
    source::{LevelSize, Source},
};

/// A level with fewer vertices is coarse enough to be the last.
const MAX_COARSEST_VERTICES: u64 = 100_000;
/// Target ratio of the vertices of a level to those of the next.
const VERTEX_RATIO: f64 = 8.0;
/// Target ratio for the surface of a mesh: a quarter of the faces is half the resolution.
const FACE_RATIO: f64 = 4.0;
/// Ratio of the paths of a level to those of the next. ADR 49 has measurements.
const PATH_RATIO: f64 = 4.0;
/// A level has at least this many paths, or all.
const MIN_PATHS: u64 = 10_000;
/// Upper bound on the number of levels.
const MAX_LEVELS: u32 = 24;
/// Number of chunks sampled.
const SAMPLE: usize = 12;
/// Number of vertices after which sampling stops.
const SAMPLE_VERTICES: usize = 400_000;
/// Maximum number of times an extent is halved in the search for a cell size.
const MAX_HALVINGS: u32 = 24;

/// Options for levels chosen automatically. The contents of the store determine the options that
/// are not set.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AutoLevels {
    /// Method. Default: `Subset` for points, `Simplify` for paths and skeletons, `Bins` for graphs
    /// and `Collapse` for meshes. By default, a level of paths also keeps a quarter of them only.
    pub method: Option<MethodKind>,
    /// Number of levels. Default: levels are added until one has fewer than 100,000 vertices or a
    /// single chunk.
    pub levels: Option<u32>,
    /// Growth of cells, tolerances or steps from level to level, along each axis; for meshes, the
    /// ratio of vertices. Each is above 1, and the last repeats.
    pub factors: Vec<f64>,
    /// Extent of the cells of the first level.
    pub cell: Option<Vec<f64>>,
    /// Maximum displacement of lines in the first level, and of surfaces in every level.
    pub tolerance: Option<f64>,
    /// Position of the vertex that represents a cell.
    pub placement: Placement,
    /// True if objects share the vertex of a cell.
    pub share: bool,
    /// Number of points that each cell keeps, at least 1.
    pub keep: Option<u32>,
    /// Seed of random choices.
    pub seed: u64,
    /// Drops connected components of meshes with fewer faces.
    pub cull: u32,
    /// Number of chunks, along each axis, that one chunk of the next level covers.
    pub chunk_scale: Option<u32>,
    /// Objects that each level keeps of the next finer level; the last selection repeats. Default:
    /// all objects with a method, and without one a quarter of the paths, but at least 10,000.
    pub sparsity: Vec<ObjectSelection>,
    /// True if each point is on exactly one level.
    pub additive: bool,
    /// Number of cells of a level in each shard. Default: that of the finer level.
    pub sharding: Option<ShardingPolicy>,
}

/// Sampled vertices of a level.
#[derive(Default)]
struct Sample {
    axes: usize,
    /// Positions, and the object of each.
    positions: Vec<f64>,
    owners: Vec<u32>,
    /// Median distance between consecutive vertices of a fragment.
    step: Option<f64>,
}

impl AutoLevels {
    /// Returns options that the contents of the store determine completely.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        additive: bool,
        cell: Vec<f64>,
        chunk_scale: u32,
        cull: u32,
        factors: Vec<f64>,
        keep: u32,
        levels: u32,
        method: MethodKind,
        placement: Placement,
        seed: u64,
        share: bool,
        sharding: ShardingPolicy,
        sparsity: Vec<ObjectSelection>,
        tolerance: f64,
    }

    /// Rejects cells, factors, tolerances and numbers of points that no level of `axes` axes can have.
    pub(super) fn check(&self, axes: usize) -> Result<(), Failure> {
        let is_extent = |extent: &f64| extent.is_finite() && *extent > 0.0;
        let is_cell = |cell: &Vec<f64>| cell.len() == axes && cell.iter().all(is_extent);
        if !self.cell.as_ref().is_none_or(is_cell) {
            return Err(Failure::NoPyramid {
                why: "its cells need one extent above 0 for each axis",
            });
        }
        let is_factor = |factor: &f64| factor.is_finite() && *factor > 1.0;
        if !self.factors.iter().all(is_factor) {
            return Err(Failure::NoPyramid {
                why: "its factors must be finite and above 1",
            });
        }
        let is_distance = |tolerance: f64| {
            let scale = self.method.map(MethodKind::scale);
            let may_be_infinite = scale != Some(MethodScale::Tolerance);
            tolerance >= 0.0 && (may_be_infinite || tolerance.is_finite())
        };
        if !self.tolerance.is_none_or(is_distance) {
            return Err(Failure::NoPyramid { why: NO_TOLERANCE });
        }
        match self.keep {
            Some(0) => Err(Failure::NoPyramid { why: NO_POINTS }),
            _ => Ok(()),
        }
    }

    /// Returns whether the number of vertices must be known, which takes reading the level's files.
    pub(super) fn counts(&self) -> bool {
        let has_end = self.levels.is_some() || !self.factors.is_empty();
        !has_end || self.method.is_none_or(MethodKind::samples_points)
    }

    /// Returns the tolerance of the next level of lines, a finite number.
    fn line_tolerance(
        &self,
        sample: &Sample,
        factor: Option<f64>,
        before: Option<&LevelDesign>,
    ) -> f64 {
        let tolerance = match before.and_then(|design| design.method.tolerance()) {
            Some(last) => last * factor.unwrap_or(2.0),
            None => self.tolerance.or(sample.step).unwrap_or(1.0),
        };
        tolerance.min(f64::MAX)
    }

    /// Designs the next level; `None` if the pyramid is complete.
    pub(super) async fn next(
        &self,
        source: &Source<'_>,
        step: u32,
        known: Option<LevelSize>,
        before: Option<&LevelDesign>,
    ) -> Result<Option<LevelDesign>, Failure> {
        let is_last = match self.levels {
            Some(levels) => step >= levels,
            None if !self.factors.is_empty() => step as usize >= self.factors.len(),
            // Chunks on both sides of the origin are never merged.
            None => known.is_some_and(|known| {
                let is_stuck = before.is_some() && known.fewer.is_some_and(|fewer| fewer < 1.05);
                known.vertices < MAX_COARSEST_VERTICES || known.chunks <= 1 || is_stuck
            }),
        };
        let is_empty = known.is_some_and(|known| known.vertices == 0);
        if is_last || step >= MAX_LEVELS || is_empty || source.chunks().is_empty() {
            return Ok(None);
        }
        let way = self.method_for(source, known, before);
        let sparsity = match self.sparsity.get(step as usize).or(self.sparsity.last()) {
            Some(sparsity) if source.objects.is_some() => Some(sparsity.clone()),
            // Objects with a point or two cannot lose points, so that whole objects are dropped.
            None if way.samples_points() => self.fewer_points(source, known),
            None if self.method.is_none() && way == MethodKind::Simplify && source.is_paths() => {
                self.fewer_paths(source)
            }
            _ => None,
        };
        let root = source.dataset.root();
        let own = source
            .metadata
            .effective_chunk_shape(root)
            .extents()
            .to_vec();
        let factor = self
            .factors
            .get(step as usize)
            .or(self.factors.last())
            .copied();
        let is_sampled = self.samples(way, factor, before);
        let sample = Sample::of(source, is_sampled).await?;
        // Chunks are merged by the ratio of the vertices, so that their size in bytes stays about
        // equal.
        let fewer = match way.scale() {
            MethodScale::Ratio => factor.unwrap_or(FACE_RATIO),
            _ => VERTEX_RATIO,
        };
        let chunk_scale = match self.chunk_scale {
            Some(scale) => spatial(source, scale.max(1)),
            None => scales(source, fewer),
        };
        let chunk: Vec<f64> = own
            .iter()
            .zip(&chunk_scale)
            .map(|(extent, scale)| extent * f64::from(*scale))
            .collect();
        let cell = |share: bool| match (
            &self.cell,
            factor,
            before.and_then(|design| design.method.cell()),
        ) {
            (Some(cell), _, None) => cell.clone(),
            (_, factor, Some(cell)) => cell
                .iter()
                .map(|extent| extent * factor.unwrap_or(2.0))
                .collect(),
            // The reference implementation makes cells as large as bins times the factor.
            (None, Some(factor), None) => {
                let bins = source.metadata.effective_bin_shape(root).extents();
                bins.iter().map(|extent| extent * factor).collect()
            }
            (None, None, None) => sample.cell(&chunk, VERTEX_RATIO, share),
        };
        let method = way.with(MethodOptions {
            cell: match way.scale() {
                MethodScale::Cell { merged } => nested(&cell(merged), &chunk),
                _ => Vec::new(),
            },
            placement: self.placement,
            share: self.share,
            keep: self.keep.unwrap_or(1),
            seed: self.seed,
            tolerance: match way.scale() {
                MethodScale::Tolerance => self.line_tolerance(&sample, factor, before),
                _ => self.tolerance.unwrap_or(f64::INFINITY),
            },
            step: factor.map_or(2, |factor| factor.round().clamp(2.0, 1e6) as u32),
            ratio: fewer,
            cull: self.cull,
        });
        Ok(Some(LevelDesign {
            method,
            chunk_scale,
            sparsity,
            additive: false,
            sharding: self.sharding.clone(),
        }))
    }

    /// Returns whether the extent of cells or the tolerance has to be computed from a sample.
    fn samples(&self, way: MethodKind, factor: Option<f64>, before: Option<&LevelDesign>) -> bool {
        let before = before.map(|design| &design.method);
        match way.scale() {
            MethodScale::Cell { .. } => {
                let is_said = factor.is_some() || self.cell.is_some();
                !is_said && before.and_then(CoarsenMethod::cell).is_none()
            }
            MethodScale::Tolerance => {
                self.tolerance.is_none() && before.and_then(CoarsenMethod::tolerance).is_none()
            }
            MethodScale::Step | MethodScale::Ratio => false,
        }
    }

    /// Selects objects to keep if objects have little more than a point each.
    fn fewer_points(
        &self,
        source: &Source<'_>,
        known: Option<LevelSize>,
    ) -> Option<ObjectSelection> {
        let is_many = objects_with_vertices(source)? as f64 * 2.0 > known?.vertices as f64 / 2.0;
        is_many.then(|| self.drawn(Amount::Share(1.0 / VERTEX_RATIO)))
    }

    /// Selects a part of the paths; `None` if there are few.
    fn fewer_paths(&self, source: &Source<'_>) -> Option<ObjectSelection> {
        let paths = objects_with_vertices(source)?;
        let amount = if paths as f64 / PATH_RATIO >= MIN_PATHS as f64 {
            Amount::Share(1.0 / PATH_RATIO)
        } else {
            Amount::Count(MIN_PATHS)
        };
        (paths > MIN_PATHS).then(|| self.drawn(amount))
    }

    /// Selects objects by hashes of their ids, so that levels are nested.
    fn drawn(&self, amount: Amount) -> ObjectSelection {
        ObjectSelection {
            sparsity: Sparsity {
                amount,
                strategy: Strategy::Random { seed: self.seed },
            },
            attribute: None,
        }
    }

    /// Designs all additive levels. Each is a sample of level 0 with the same seed, so that each
    /// point is on one level. Cells and chunks double from level to level.
    pub(super) async fn design_additive(
        &self,
        source: &Source<'_>,
        known: LevelSize,
    ) -> Result<Vec<LevelDesign>, Failure> {
        if !self.factors.is_empty()
            || !self.sparsity.is_empty()
            || self
                .method
                .is_some_and(|method| method != MethodKind::Subset)
        {
            return Err(Failure::NoPyramid {
                why: "additive levels take neither --method, --factors nor --sparsity",
            });
        }
        if source.links.is_some() || source.is_paths() {
            return Err(Failure::NoPyramid {
                why: "only levels of points can be additive",
            });
        }
        let mut count = 0;
        let mut left = known.vertices as f64;
        while left >= MAX_COARSEST_VERTICES as f64 && count < MAX_LEVELS {
            count += 1;
            left /= VERTEX_RATIO;
        }
        let count = self.levels.unwrap_or(count).min(MAX_LEVELS);
        let root = source.dataset.root();
        let chunk = source
            .metadata
            .effective_chunk_shape(root)
            .extents()
            .to_vec();
        let first = match &self.cell {
            Some(cell) => cell.clone(),
            None => Sample::of(source, true)
                .await?
                .cell(&chunk, VERTEX_RATIO, false),
        };
        let first = nested(&first, &chunk);
        let cell = |level: u32| -> Vec<f64> {
            let scales = spatial(source, 2u32.pow(level));
            let axes = first.iter().zip(scales);
            axes.map(|(extent, scale)| extent * f64::from(scale))
                .collect()
        };
        let designs = (0..count).map(|level| LevelDesign {
            method: CoarsenMethod::Subset {
                cell: cell(level),
                keep: self.keep.unwrap_or(1),
                seed: self.seed,
                without: (level + 1 < count).then(|| cell(level + 1)),
            },
            chunk_scale: spatial(source, 2u32.pow(level + 1)),
            sparsity: None,
            additive: true,
            sharding: self.sharding.clone(),
        });
        Ok(designs.collect())
    }

    /// Returns the requested method, or the default for the geometry.
    fn method_for(
        &self,
        source: &Source<'_>,
        known: Option<LevelSize>,
        before: Option<&LevelDesign>,
    ) -> MethodKind {
        if let Some(method) = self.method {
            return method;
        }
        let is_linked = source.links.is_some() && !source.is_paths();
        if is_linked && source.shape(false) == Ownership::Shared {
            return MethodKind::Bins;
        }
        if source.links.as_ref().is_some_and(|links| links.width == 3) {
            return MethodKind::Collapse;
        }
        if source.dataset.root().holds(GeometryKind::Skeletons) && source.links.is_some() {
            // Once only branch points and end points are left, lines cannot become simpler.
            let fewer = known.and_then(|known| known.fewer);
            let is_stuck = fewer.is_some_and(|fewer| fewer < 1.5);
            let was_bins = matches!(
                before.map(|design| &design.method),
                Some(CoarsenMethod::Bins { .. })
            );
            return if is_stuck || was_bins {
                MethodKind::Bins
            } else {
                MethodKind::Simplify
            };
        }
        match (source.is_paths(), source.links.is_some()) {
            // Only the other method has cells.
            (true, _) if self.cell.is_none() => MethodKind::Simplify,
            (false, false) => MethodKind::Subset,
            _ => MethodKind::Bins,
        }
    }
}

/// Returns the number of objects with vertices; `None` for a store without objects.
fn objects_with_vertices(source: &Source<'_>) -> Option<u64> {
    let objects = source.objects.as_deref()?;
    let indices = (0..objects.len()).filter(|index| !objects.fragments(*index).is_empty());
    Some(indices.count() as u64)
}

/// Returns `scale` for spatial axes, and 1 for others.
fn spatial(source: &Source<'_>, scale: u32) -> Vec<u32> {
    let axes = source.spatial_axes().into_iter();
    axes.map(|is_spatial| if is_spatial { scale } else { 1 })
        .collect()
}

/// Returns the number of chunks to merge along each axis when vertices become `fewer` times fewer.
/// Axes with the most chunks come first.
fn scales(source: &Source<'_>, fewer: f64) -> Vec<u32> {
    let chunks = source.chunks();
    let leading = usize::from(source.metadata.attribute_chunking.is_some());
    let arity = chunks.first().map_or(0, |chunk| chunk.coords().len());
    let span = |axis: usize| {
        let along = chunks.iter().map(|chunk: &ChunkCoord| chunk.coords()[axis]);
        let ends = along.clone().min().zip(along.max());
        ends.map_or(1, |(min, max)| max.abs_diff(min) + 1)
    };
    let spans: Vec<u64> = (leading..arity).map(span).collect();
    let mut scales = vec![1; spans.len()];
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|axis| std::cmp::Reverse(spans[*axis]));
    let mut left = fewer * 1.01;
    let is_spatial = source.spatial_axes();
    for axis in order {
        let is_spatial = is_spatial.get(axis).copied().unwrap_or(true);
        if left >= 2.0 && spans[axis] > 1 && is_spatial {
            scales[axis] = 2;
            left /= 2.0;
        }
    }
    scales
}

/// Returns the largest cell that is not larger than `cell` and divides `chunk` evenly.
fn nested(cell: &[f64], chunk: &[f64]) -> Vec<f64> {
    let own = cell.iter().zip(chunk);
    own.map(|(cell, chunk)| {
        let count = (chunk / cell - 1e-9).ceil().max(1.0);
        chunk / count
    })
    .collect()
}

impl Sample {
    /// Samples evenly spaced chunks of a level; empty if no sample is wanted.
    async fn of(source: &Source<'_>, is_wanted: bool) -> Result<Self, Failure> {
        if !is_wanted {
            return Ok(Self::default());
        }
        let chunks = source.chunks();
        let every = chunks.len().div_ceil(SAMPLE).max(1);
        let some: Vec<ChunkCoord> = chunks.into_iter().step_by(every).collect();
        let named = source.named();
        let mut sample = Self {
            axes: source.dataset.root().axes.len(),
            positions: Vec::new(),
            owners: Vec::new(),
            step: None,
        };
        let mut last: Vec<f64> = Vec::new();
        let mut steps = Vec::new();
        for chunk in some {
            let payloads = source.read(std::slice::from_ref(&chunk)).await?;
            for own in payloads {
                let empty = Vec::new();
                let named = named.get(&chunk).unwrap_or(&empty);
                let mut before: Option<u32> = None;
                source.positions(&chunk, &own, named, &mut |object, fragment, position| {
                    if before == Some(fragment) {
                        let squares = last.iter().zip(position).map(|(a, b)| (a - b) * (a - b));
                        steps.push(squares.sum::<f64>().sqrt());
                    }
                    before = Some(fragment);
                    last.clear();
                    last.extend_from_slice(position);
                    sample.owners.push(object);
                    sample.positions.extend_from_slice(position);
                })?;
            }
            if sample.owners.len() >= SAMPLE_VERTICES {
                break;
            }
        }
        let middle = steps.len() / 2;
        if !steps.is_empty() {
            steps.select_nth_unstable_by(middle, f64::total_cmp);
            sample.step = steps.get(middle).copied().filter(|step| *step > 0.0);
        }
        Ok(sample)
    }

    /// Returns the cell extent that reduces the vertices by the factor `fewer` most closely, among
    /// repeated halvings of the chunk.
    fn cell(&self, chunk: &[f64], fewer: f64, share: bool) -> Vec<f64> {
        let edge = chunk.iter().copied().fold(0.0, f64::max);
        let wanted = self.owners.len() as f64 / fewer;
        let (mut best, mut min) = (chunk.to_vec(), f64::INFINITY);
        for halving in 0..MAX_HALVINGS {
            let edge = edge / f64::from(2u32.pow(halving));
            // Cells are nearly cubes, and divide the chunk evenly.
            let cell: Vec<f64> = chunk
                .iter()
                .map(|extent| extent / (extent / edge).log2().round().max(0.0).exp2())
                .collect();
            let cells = self.cells(&cell, share);
            let off = (cells.max(1.0) / wanted.max(1.0)).ln().abs();
            if off < min {
                (best, min) = (cell, off);
            }
            if cells > wanted {
                break;
            }
        }
        best
    }

    /// Counts cells with vertices. Without sharing, a cell counts once for each object.
    fn cells(&self, cell: &[f64], share: bool) -> f64 {
        let positions = self.positions.chunks_exact(self.axes.max(1));
        let mut keys: Vec<u64> = positions
            .zip(&self.owners)
            .map(|(position, owner)| {
                let whose = if share { 0 } else { u64::from(*owner) };
                // A hash collision counts two cells as one, which does not matter for a choice among
                // halvings.
                position.iter().zip(cell).fold(whose, |key, (x, extent)| {
                    let at = (x / extent).floor() as i64;
                    (key.rotate_left(29) ^ at.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                })
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len() as f64
    }
}
