//! Which levels there are to be, where nobody says.

use zvf_build::{
    ShardingPolicy,
    coarsen::{Amount, CoarsenMethod, Placement, Sparsity, Strategy},
};
use zvf_model::{grid::ChunkCoord, root::GeometryType};

use super::{
    LevelDesign, ObjectSelection,
    source::{Known, Source},
};
use crate::failure::Failure;

/// Vertices of a level that is coarse enough.
const ENOUGH: u64 = 100_000;
/// How many times fewer vertices the next level is to have.
const FEWER: f64 = 8.0;
/// The same for the surface of a mesh, of which a quarter is half as fine.
const FEWER_FACES: f64 = 4.0;
/// Upper bound on the number of levels.
const MOST_LEVELS: u32 = 24;
/// Chunks that are looked at.
const SAMPLE: usize = 12;
/// Vertices that are looked at.
const SAMPLE_VERTICES: usize = 400_000;
/// How often an extent is halved to find cells.
const HALVINGS: u32 = 24;

/// Which way vertices become fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// One for all in a cell.
    Bins,
    /// Some of the points in a cell.
    Subset,
    /// What lines need to be nowhere farther than a tolerance.
    Simplify,
    /// Every so many of a line.
    Stride,
    /// Edges of a mesh collapse.
    Collapse,
}

impl MethodKind {
    /// Every way there is.
    pub const ALL: [Self; 5] = [
        Self::Bins,
        Self::Subset,
        Self::Simplify,
        Self::Stride,
        Self::Collapse,
    ];

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bins => "bins",
            Self::Subset => "subset",
            Self::Simplify => "simplify",
            Self::Stride => "stride",
            Self::Collapse => "collapse",
        }
    }
}

/// Levels as they are chosen: what is not said depends on what is in the store.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AutoLevels {
    /// Which way. By default points are subsets, paths and graphs have bins, skeletons
    /// are simplified and meshes collapsed.
    pub way: Option<MethodKind>,
    /// How many levels; as many as it takes for the coarsest to have less than 100,000
    /// vertices or one chunk when not said.
    pub levels: Option<u32>,
    /// How much larger cells, tolerances or steps are from level to level, along each
    /// axis; the last counts on. For meshes how many times fewer vertices there are.
    pub factors: Vec<f64>,
    /// Extent of the first level's cells.
    pub cell: Option<Vec<f64>>,
    /// How far lines may move in the first level, and surfaces in all.
    pub tolerance: Option<f64>,
    /// Where the one vertex of a cell is.
    pub placing: Placement,
    /// Whether objects share points.
    pub share: bool,
    /// Points of a cell that stay.
    pub keep: Option<u32>,
    /// What is drawn by lot.
    pub seed: u64,
    /// Components of meshes that are dropped when they have fewer faces.
    pub cull: u32,
    /// How many chunks make one of the next level, along all axes.
    pub chunk_scale: Option<u32>,
    /// Which objects each level keeps of those before; the last counts on.
    pub sparsity: Vec<ObjectSelection>,
    /// Whether levels hold each point once.
    pub additive: bool,
    /// How many cells of a level go in one object; as many as of the store's when not
    /// said.
    pub sharding: Option<ShardingPolicy>,
}

/// Some of a level.
#[derive(Default)]
struct Sample {
    axes: usize,
    /// Positions, and which object they are of.
    places: Vec<f64>,
    owners: Vec<u32>,
    /// The median distance between vertices that follow each other.
    step: Option<f64>,
}

impl AutoLevels {
    /// Whether it has to know how many vertices there are, which takes a look at every
    /// file.
    pub(super) fn counts(&self) -> bool {
        let has_end = self.levels.is_some() || !self.factors.is_empty();
        !has_end || matches!(self.way, None | Some(MethodKind::Subset))
    }

    /// The next level, if there is to be one.
    pub(super) async fn next(
        &self,
        source: &Source<'_>,
        step: u32,
        known: Option<Known>,
        before: Option<&LevelDesign>,
    ) -> Result<Option<LevelDesign>, Failure> {
        let is_last = match self.levels {
            Some(levels) => step >= levels,
            None if !self.factors.is_empty() => step as usize >= self.factors.len(),
            // Chunks on both sides of the origin never become one.
            None => known.is_some_and(|known| {
                let is_stuck = before.is_some() && known.fewer.is_some_and(|fewer| fewer < 1.05);
                known.vertices < ENOUGH || known.chunks <= 1 || is_stuck
            }),
        };
        let is_empty = known.is_some_and(|known| known.vertices == 0);
        if is_last || step >= MOST_LEVELS || is_empty || source.chunks().is_empty() {
            return Ok(None);
        }
        let way = self.way(source, known, before);
        let sparsity = match self.sparsity.get(step as usize).or(self.sparsity.last()) {
            Some(sparsity) if source.objects.is_some() => Some(sparsity.clone()),
            // Objects of a point or two cannot have fewer points.
            None if way == MethodKind::Subset => self.fewer_points(source, known),
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
        // More than one chunk becomes one where vertices become fewer, so that chunks
        // stay as large as they are.
        let fewer = match way {
            MethodKind::Collapse => factor.unwrap_or(FEWER_FACES),
            _ => FEWER,
        };
        let chunk_scale = match self.chunk_scale {
            Some(scale) => vec![scale.max(1); own.len()],
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
            // As large as bins times the factor, as the reference has it.
            (None, Some(factor), None) => {
                let bins = source.metadata.effective_bin_shape(root).extents();
                bins.iter().map(|extent| extent * factor).collect()
            }
            (None, None, None) => sample.cell(&chunk, FEWER, share),
        };
        let longer = |first: f64, last: Option<f64>| match last {
            Some(last) => last * factor.unwrap_or(2.0),
            None => first,
        };
        let method = match way {
            MethodKind::Bins => CoarsenMethod::Bins {
                cell: nested(&cell(true), &chunk),
                placing: self.placing,
                share: self.share,
            },
            MethodKind::Subset => CoarsenMethod::Subset {
                cell: nested(&cell(false), &chunk),
                keep: self.keep.unwrap_or(1),
                seed: self.seed,
                without: None,
            },
            MethodKind::Simplify => CoarsenMethod::Simplify {
                tolerance: longer(
                    self.tolerance.or(sample.step).unwrap_or(1.0),
                    before.and_then(|design| design.method.tolerance()),
                ),
            },
            MethodKind::Stride => CoarsenMethod::Stride {
                step: factor.map_or(2, |factor| factor.round().clamp(2.0, 1e6) as u32),
            },
            MethodKind::Collapse => CoarsenMethod::Collapse {
                keep: 1.0 / fewer.max(1.0),
                tolerance: self.tolerance.unwrap_or(f64::INFINITY),
                cull: self.cull,
            },
        };
        Ok(Some(LevelDesign {
            method,
            chunk_scale,
            sparsity,
            additive: false,
            sharding: self.sharding.clone(),
        }))
    }

    /// Whether how large cells or tolerances are depends on what is in the level.
    fn samples(&self, way: MethodKind, factor: Option<f64>, before: Option<&LevelDesign>) -> bool {
        let before = before.map(|design| &design.method);
        match way {
            MethodKind::Bins | MethodKind::Subset => {
                let is_said = factor.is_some() || self.cell.is_some();
                !is_said && before.and_then(CoarsenMethod::cell).is_none()
            }
            MethodKind::Simplify => {
                self.tolerance.is_none() && before.and_then(CoarsenMethod::tolerance).is_none()
            }
            MethodKind::Stride | MethodKind::Collapse => false,
        }
    }

    /// Where objects have hardly more than a point each, that some of them stay.
    fn fewer_points(&self, source: &Source<'_>, known: Option<Known>) -> Option<ObjectSelection> {
        let (objects, known) = (source.objects.as_deref()?, known?);
        let places = (0..objects.len()).filter(|place| !objects.fragments(*place).is_empty());
        let is_many = places.count() as f64 * 2.0 > known.vertices as f64 / 2.0;
        is_many.then_some(ObjectSelection {
            sparsity: Sparsity {
                amount: Amount::Share(1.0 / FEWER),
                strategy: Strategy::Random { seed: self.seed },
            },
            attribute: None,
        })
    }

    /// Levels that hold each point once, all at once: each of level 0, and all of the same
    /// draw. Cells and chunks double from level to level.
    pub(super) async fn once(
        &self,
        source: &Source<'_>,
        known: Known,
    ) -> Result<Vec<LevelDesign>, Failure> {
        if !self.factors.is_empty()
            || !self.sparsity.is_empty()
            || self.way.is_some_and(|way| way != MethodKind::Subset)
        {
            return Err(Failure::NoPyramid {
                why: "levels that hold each point once are subsets of all objects, whose cells double",
            });
        }
        if source.links.is_some() || source.is_paths() {
            return Err(Failure::NoPyramid {
                why: "only points can be on one level each",
            });
        }
        let mut count = 0;
        let mut left = known.vertices as f64;
        while left >= ENOUGH as f64 && count < MOST_LEVELS {
            count += 1;
            left /= FEWER;
        }
        let count = self.levels.unwrap_or(count).min(MOST_LEVELS);
        let root = source.dataset.root();
        let chunk = source
            .metadata
            .effective_chunk_shape(root)
            .extents()
            .to_vec();
        let first = match &self.cell {
            Some(cell) => cell.clone(),
            None => Sample::of(source, true).await?.cell(&chunk, FEWER, false),
        };
        let first = nested(&first, &chunk);
        let cell = |level: u32| -> Vec<f64> {
            first
                .iter()
                .map(|extent| extent * f64::from(2u32.pow(level)))
                .collect()
        };
        let designs = (0..count).map(|level| LevelDesign {
            method: CoarsenMethod::Subset {
                cell: cell(level),
                keep: self.keep.unwrap_or(1),
                seed: self.seed,
                without: (level + 1 < count).then(|| cell(level + 1)),
            },
            chunk_scale: vec![2u32.pow(level + 1); chunk.len()],
            sparsity: None,
            additive: true,
            sharding: self.sharding.clone(),
        });
        Ok(designs.collect())
    }

    /// Which way, where nobody says.
    fn way(
        &self,
        source: &Source<'_>,
        known: Option<Known>,
        before: Option<&LevelDesign>,
    ) -> MethodKind {
        if let Some(way) = self.way {
            return way;
        }
        let kinds = &source.dataset.root().geometry_kinds;
        let has = |kind: &GeometryType| kinds.contains(kind);
        if source.links.as_ref().is_some_and(|links| links.width == 3) {
            return MethodKind::Collapse;
        }
        if has(&GeometryType::Skeleton) {
            // Once only branch points and ends are left, lines cannot be simpler.
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
        let is_points = source.links.is_none() && !source.is_paths();
        if is_points {
            MethodKind::Subset
        } else {
            MethodKind::Bins
        }
    }
}

/// How many chunks become one along each axis, for vertices that are so many times
/// fewer: along the axes that have most of them first.
fn scales(source: &Source<'_>, fewer: f64) -> Vec<u32> {
    let chunks = source.chunks();
    let leading = usize::from(source.metadata.attribute_chunking.is_some());
    let arity = chunks.first().map_or(0, |chunk| chunk.coords().len());
    let span = |axis: usize| {
        let along = chunks.iter().map(|chunk: &ChunkCoord| chunk.coords()[axis]);
        let ends = along.clone().min().zip(along.max());
        ends.map_or(1, |(least, most)| most.abs_diff(least) + 1)
    };
    let spans: Vec<u64> = (leading..arity).map(span).collect();
    let mut scales = vec![1; spans.len()];
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|axis| std::cmp::Reverse(spans[*axis]));
    let mut left = fewer * 1.01;
    for axis in order {
        if left >= 2.0 && spans[axis] > 1 {
            scales[axis] = 2;
            left /= 2.0;
        }
    }
    scales
}

/// The largest cell that is not larger, and of which chunks are a whole number.
fn nested(cell: &[f64], chunk: &[f64]) -> Vec<f64> {
    let own = cell.iter().zip(chunk);
    own.map(|(cell, chunk)| {
        let count = (chunk / cell - 1e-9).ceil().max(1.0);
        chunk / count
    })
    .collect()
}

impl Sample {
    /// Some chunks of a level, taken evenly, if any are wanted.
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
            places: Vec::new(),
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
                source.places(&chunk, &own, named, &mut |object, fragment, place| {
                    if before == Some(fragment) {
                        let squares = last.iter().zip(place).map(|(a, b)| (a - b) * (a - b));
                        steps.push(squares.sum::<f64>().sqrt());
                    }
                    before = Some(fragment);
                    last.clear();
                    last.extend_from_slice(place);
                    sample.owners.push(object);
                    sample.places.extend_from_slice(place);
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

    /// The extent of cells of which there are so many times fewer than vertices, as
    /// nearly as halving chunks comes to it.
    fn cell(&self, chunk: &[f64], fewer: f64, share: bool) -> Vec<f64> {
        let edge = chunk.iter().copied().fold(0.0, f64::max);
        let wanted = self.owners.len() as f64 / fewer;
        let (mut best, mut least) = (chunk.to_vec(), f64::INFINITY);
        for halving in 0..HALVINGS {
            let edge = edge / f64::from(2u32.pow(halving));
            // Nearly cubes, of which chunks are a whole number.
            let cell: Vec<f64> = chunk
                .iter()
                .map(|extent| extent / (extent / edge).log2().round().max(0.0).exp2())
                .collect();
            let cells = self.cells(&cell, share);
            let off = (cells.max(1.0) / wanted.max(1.0)).ln().abs();
            if off < least {
                (best, least) = (cell, off);
            }
            if cells > wanted {
                break;
            }
        }
        best
    }

    /// How many cells have vertices, each counted for every object where they do not
    /// share.
    fn cells(&self, cell: &[f64], share: bool) -> f64 {
        let places = self.places.chunks_exact(self.axes.max(1));
        let keys = places.zip(&self.owners).map(|(place, owner)| {
            let whose = if share { 0 } else { u64::from(*owner) };
            // Two that happen to have one key are counted as one: cells are chosen by halves.
            place.iter().zip(cell).fold(whose, |key, (x, extent)| {
                let at = (x / extent).floor() as i64;
                (key.rotate_left(29) ^ at.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            })
        });
        let mut keys: Vec<u64> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len() as f64
    }
}
