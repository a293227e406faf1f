//! Decisions that precede writing.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use zvf_format::{links::LinkWidth, numeric::Kind};

use crate::{
    bounds,
    design::{AxisSpec, Design},
    error::BuildError,
    geometry::{Geometry, GeometryBuilder},
    link_placement::LinkPlacement,
    metadata::Encoding,
    objects::ObjectRows,
    plan::{CellCounts, LoggedObjects, PlanEstimate, WritePlan},
    sizing::FragmentKind,
    spatial_layout::{self, ArrayGrid, SpatialLayout},
    stored_column::StoredColumn,
    vertex_layout::VertexLayout,
};
use zvf_model::{column::NumericColumn, generation::Generation};

/// Decisions shared by all partitions of a store.
#[derive(Clone, Debug)]
pub struct Outline {
    pub(crate) design: Design,
    pub(crate) space: SpatialLayout,
    pub(crate) axes: Vec<AxisSpec>,
    pub(crate) grid: ArrayGrid,
    pub(crate) shard: Option<Vec<u64>>,
    /// Type of a coordinate, and number of axes.
    pub(crate) positions: (Kind, usize),
    pub(crate) has_objects: bool,
    pub(crate) fields: Vec<Field>,
    /// Numeric object attributes of paths that come with the batches.
    pub(crate) object_fields: Vec<Field>,
    /// Number of ends of a link.
    pub(crate) link_width: usize,
    /// Numeric attributes of links.
    pub(crate) link_fields: Vec<Field>,
}

/// Contents of a plan made from an outline.
pub(crate) struct PlanContents {
    pub(crate) vertices: u64,
    pub(crate) vertex: Vec<StoredColumn>,
    pub(crate) geometry: GeometryBuilder,
    pub(crate) layout: VertexLayout,
    pub(crate) objects: Option<ObjectRows>,
    pub(crate) logged: Option<LoggedObjects>,
    pub(crate) links: Option<LinkPlacement>,
    pub(crate) link: Vec<StoredColumn>,
    pub(crate) fragment: Vec<StoredColumn>,
}

/// Attribute of vertices or objects.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Type and number of values in a row; `None` for text.
    pub(crate) numbers: Option<(Kind, usize)>,
    /// Distinct words in order of appearance.
    pub(crate) words: Vec<String>,
    /// `true` if some vertices have no word.
    pub(crate) missing: bool,
}

impl Outline {
    /// Returns the generation of the store.
    pub fn generation(&self) -> Generation {
        self.design.profile.layout().generation
    }

    /// Creates a plan from these decisions.
    pub(crate) fn plan(&self, found: PlanContents) -> WritePlan {
        WritePlan {
            vertex: found.vertex,
            fragment: found.fragment,
            link: found.link,
            encoding: Encoding::of_cells(&self.design),
            vertices: found.vertices,
            geometry: found.geometry,
            design: self.design.clone(),
            space: self.space.clone(),
            axes: self.axes.clone(),
            grid: self.grid.clone(),
            shard: self.shard.clone(),
            layout: found.layout,
            objects: found.objects,
            logged: found.logged,
            links: found.links,
            tasks: Vec::new(),
        }
    }

    /// Returns the chunk and bin shapes and the reasons for them.
    pub fn space(&self) -> &SpatialLayout {
        &self.space
    }

    /// Returns the bytes of a vertex in a partition.
    pub fn row_size(&self) -> usize {
        let fields: usize = self
            .fields
            .iter()
            .map(|field| match field.numbers {
                Some((kind, columns)) => kind.size() * columns,
                None => 4,
            })
            .sum();
        self.positions.0.size() * self.positions.1 + fields + 8
    }

    /// Returns the size in bytes of a link in a partition.
    pub fn link_row_size(&self) -> usize {
        self.link_width * 8 + self.link_values()
    }

    /// Returns the size in bytes of the attributes of a link.
    pub(super) fn link_values(&self) -> usize {
        let numbers = self.link_fields.iter().filter_map(|field| field.numbers);
        numbers.map(|(kind, columns)| kind.size() * columns).sum()
    }

    /// Returns the number of ends of a link.
    pub(super) fn link_ends(&self) -> Result<LinkWidth, BuildError> {
        LinkWidth::new(self.link_width as u64).map_err(|_| BuildError::LinkWidth {
            kind: self.design.kind.plural(),
            expected: "1 to 8",
            found: self.link_width,
        })
    }

    /// Returns the partition of a chunk.
    pub(super) fn part_of(&self, chunk: &[i64], parts: usize) -> usize {
        // This hasher has no seed, so the partition is equal on every machine.
        let mut hasher = DefaultHasher::new();
        self.shard_of(chunk).hash(&mut hasher);
        (hasher.finish() % parts as u64) as usize
    }

    /// Estimates the size of the store that the partitions form, with vertices in these chunks.
    /// Links between chunks are not counted.
    pub fn estimate(&self, vertices: u64, chunks: &[Vec<i64>]) -> PlanEstimate {
        self.estimate_of(vertices, chunks.len() as u64, self.shards_of(chunks))
    }

    /// Estimates the size of the store from a sample of the vertices, before all are divided. The
    /// number of chunks is derived from how often two vertices of the sample share one. It is exact
    /// if the sample holds all vertices, and otherwise too low where some chunks are much fuller than
    /// others.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a vertex has no chunk.
    pub fn estimate_sampled(
        &self,
        sample: NumericColumn,
        vertices: u64,
    ) -> Result<PlanEstimate, BuildError> {
        let sample = match bounds::bounded(Geometry::builder(sample), &self.design) {
            Ok((inside, _)) => inside.positions,
            Err(BuildError::AllOutside) => NumericColumn::new(self.positions.0, 1),
            Err(error) => return Err(error),
        };
        let rows = sample.len() as u64;
        if rows == 0 {
            return Ok(self.estimate_of(0, 0, 0));
        }
        let fragments = FragmentKind::of_geometry(self.has_objects);
        let assigned = spatial_layout::assign(&sample, &self.space, fragments, None)?;
        let mut counts = vec![0_u64; assigned.chunks.len()];
        for chunk in &assigned.chunk_of {
            counts[*chunk as usize] += 1;
        }
        let sampled = counts.len() as u64;
        let pairs: u64 = counts.iter().map(|count| count * (count - 1)).sum();
        // Vertices in the chunk of a vertex, besides itself: those of the sample, scaled.
        let others = u128::from(pairs) * u128::from(vertices) / u128::from(rows) / u128::from(rows);
        let spread = u128::from(vertices) / (others + 1);
        let chunks = if rows < vertices {
            sampled.max(u64::try_from(spread).unwrap_or(u64::MAX))
        } else {
            sampled
        };
        let shards = match self.shard {
            None => chunks,
            Some(_) => self.shards_of(&assigned.chunks),
        };
        Ok(self.estimate_of(vertices, chunks, shards))
    }

    fn shards_of(&self, chunks: &[Vec<i64>]) -> u64 {
        let shards: BTreeSet<Vec<u64>> = chunks.iter().map(|chunk| self.shard_of(chunk)).collect();
        shards.len() as u64
    }

    fn estimate_of(&self, vertices: u64, chunks: u64, shards: u64) -> PlanEstimate {
        let counts = CellCounts {
            vertices,
            chunks,
            shards,
            arrays: (2 + self.fields.len()) as u64,
            link_cells: 0,
            row: self.row_size() as u64,
            link_bytes: 0,
        };
        counts.estimate(&self.design, &self.space)
    }

    /// Returns the shard of a chunk: the chunk itself without shards.
    pub(crate) fn shard_of(&self, chunk: &[i64]) -> Vec<u64> {
        let steps = chunk.iter().zip(&self.grid.origin);
        let index = steps.map(|(at, origin)| at.wrapping_sub(*origin).unsigned_abs());
        match &self.shard {
            Some(shard) => index.zip(shard).map(|(at, extent)| at / extent).collect(),
            None => index.collect(),
        }
    }
}
