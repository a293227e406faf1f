//! All that is decided before a vertex is written.

use zvf_format::numeric::Kind;

use crate::{
    design::{AxisSpec, Design},
    geometry::Geometry,
    link_placement::LinkPlacement,
    metadata::Encoding,
    objects::Objects,
    plan::WritePlan,
    spatial_layout::SpatialLayout,
    stored_column::StoredColumn,
    vertex_layout::VertexLayout,
};

/// What parts and the whole have in common.
#[derive(Clone, Debug)]
pub struct Outline {
    pub(crate) design: Design,
    pub(crate) space: SpatialLayout,
    pub(crate) axes: Vec<AxisSpec>,
    pub(crate) grid: (Vec<i64>, Vec<u64>),
    pub(crate) shard: Option<Vec<u64>>,
    /// What a coordinate is, and how many a vertex has.
    pub(crate) positions: (Kind, usize),
    pub(crate) has_objects: bool,
    pub(crate) fields: Vec<Field>,
}

/// What a plan is of.
pub(crate) struct Found {
    pub(crate) vertices: u64,
    pub(crate) vertex: Vec<StoredColumn>,
    pub(crate) geometry: Geometry,
    pub(crate) layout: VertexLayout,
    pub(crate) objects: Option<Objects>,
    pub(crate) links: Option<LinkPlacement>,
}

/// An attribute of vertices.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// What its numbers are, and how many a row has; `None` for text.
    pub(crate) numbers: Option<(Kind, usize)>,
    /// Words in the order they came; once all came, in that of their letters.
    pub(crate) words: Vec<String>,
    /// Whether some vertices have no word.
    pub(crate) missing: bool,
}

impl Outline {
    /// A plan with all that is decided here.
    pub(crate) fn plan(&self, found: Found) -> WritePlan {
        WritePlan {
            vertex: found.vertex,
            fragment: Vec::new(),
            link: Vec::new(),
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
            links: found.links,
            tasks: Vec::new(),
        }
    }

    /// Extent of a chunk, that of a bin where there are bins, and why.
    pub fn space(&self) -> &SpatialLayout {
        &self.space
    }

    /// Bytes that a vertex takes in a part.
    pub fn row_size(&self) -> usize {
        let fields = self.fields.iter().map(|field| match field.numbers {
            Some((kind, columns)) => kind.size() * columns,
            None => 4,
        });
        let fields: usize = fields.sum();
        self.positions.0.size() * self.positions.1 + fields + 8
    }

    /// The object that a chunk goes in: the chunk itself without shards.
    pub(crate) fn shard_of(&self, chunk: &[i64]) -> Vec<u64> {
        let steps = chunk.iter().zip(&self.grid.0);
        let index = steps.map(|(at, origin)| at.wrapping_sub(*origin).unsigned_abs());
        match &self.shard {
            Some(shard) => index.zip(shard).map(|(at, extent)| at / extent).collect(),
            None => index.collect(),
        }
    }
}
