//! What is to be written: nodes, and tasks that make cells.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf_format::{
    fragment::FragmentIndexBuilder,
    links::{LinkWidth, RowForm},
    path::ChunkCoords,
};

use crate::{
    arrange::{Arranged, Grouping, Trees, is_tree},
    check,
    columns::Column,
    coordinates,
    design::{AxisSpec, Design, OutOfBounds, Profile, ShardingPolicy},
    error::BuildError,
    filing::{Filed, Policy},
    geometry::{Attribute, Geometry, GeometryKind},
    layout,
    nodes::{self, Encoding},
    objects::Objects,
    outside,
    space::{self, SpatialLayout},
};

/// A store to be written: what its nodes say, and tasks that make its cells. Equal
/// geometry and design make equal plans, and equal tasks equal cells, whoever runs
/// them and in whatever order.
#[derive(Debug)]
pub struct WritePlan {
    pub(crate) geometry: Geometry,
    /// Number of vertices.
    pub(crate) vertices: u64,
    pub(crate) design: Design,
    pub(crate) space: SpatialLayout,
    pub(crate) axes: Vec<AxisSpec>,
    pub(crate) grid: (Vec<i64>, Vec<u64>),
    pub(crate) shard: Option<Vec<u64>>,
    pub(crate) arranged: Arranged,
    pub(crate) objects: Option<Objects>,
    pub(crate) links: Option<Filed>,
    pub(crate) vertex: Vec<Column>,
    pub(crate) fragment: Vec<Column>,
    pub(crate) link: Vec<Column>,
    /// Chunks by task.
    pub(crate) tasks: Vec<Vec<u32>>,
    pub(crate) encoding: Encoding,
}

/// Something to write.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The `zarr.json` of a group or an array.
    Node {
        /// Its path.
        path: String,
        /// What it says.
        json: Value,
    },
    /// A cell of an array.
    Cell {
        /// The array's path.
        array: String,
        /// The element.
        index: Vec<u64>,
        /// Its payload.
        payload: Vec<u8>,
    },
}

/// Vertices of a task, about.
const TASK: usize = 1 << 16;

/// What a plan comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanSummary {
    /// Vertices.
    pub vertices: u64,
    /// Objects in the index.
    pub objects: u64,
    /// Links, those that fragments imply not counted.
    pub links: u64,
    /// Chunks with vertices.
    pub chunks: u64,
    /// Extent of a chunk.
    pub chunk_shape: Vec<f64>,
    /// Extent of a bin, where there are bins.
    pub bin_shape: Option<Vec<f64>>,
    /// What was chosen, and why.
    pub why: Vec<String>,
}

impl WritePlan {
    /// Decides where everything goes.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the geometry does not fit together or the design has no
    /// place for it.
    pub fn new(geometry: Geometry, design: Design) -> Result<Self, BuildError> {
        Self::of(geometry, design, false)
    }

    /// The same for a new store, whose cells do not need what was given as it was given:
    /// attributes are not copied, and links let go of once cells have them.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn new_consuming(geometry: Geometry, design: Design) -> Result<Self, BuildError> {
        Self::of(geometry, design, true)
    }

    fn of(geometry: Geometry, design: Design, settles: bool) -> Result<Self, BuildError> {
        check::check(&geometry, &design)?;
        let geometry = stored(geometry, &design)?;
        let (mut geometry, bounds) = bounded(geometry, &design)?;
        let (objects, rows) = Objects::of(&geometry, &design)?.unzip();
        let rows: Vec<u32> = rows.unwrap_or_default();
        // Before there is more: to follow links takes memory for a moment.
        let trees = match (is_tree(design.kind), &objects) {
            (true, Some(objects)) => Some(Trees::new(&geometry, &rows, &objects.ids)?),
            _ => None,
        };
        let binned = objects.is_none();
        let vertices = geometry.vertices() as u64;
        let space = SpatialLayout::of(&design, &geometry.positions, bounds, !binned, vertices)?;
        let found = (space.lower.as_slice(), space.upper.as_slice());
        let within = design.bounds.is_none().then_some(found);
        let assigned = space::assign(&geometry.positions, &space, binned, within)?;
        let grid = space.grid(binned)?;
        let count = objects.as_ref().map_or(0, |objects| objects.ids.len());
        let grouping = match (&objects, &trees) {
            (None, _) => Grouping::Bins {
                count: bin_count(&space)?,
                // Readers of 0.9 take the number of a fragment for that of its bin.
                empty: design.profile == Profile::V09,
            },
            (Some(_), Some(trees)) => Grouping::Trees {
                objects: count,
                rows: &rows,
                trees,
            },
            (Some(_), None) if design.kind.is_paths() => Grouping::Paths {
                objects: count,
                rows: &rows,
            },
            (Some(_), None) => Grouping::Owners {
                objects: count,
                rows: &rows,
            },
        };
        let mut arranged = Arranged::new(assigned, &geometry, &grouping);
        let has_trees = trees.is_some();
        drop((trees, rows));
        let links = links(&geometry, &design, &arranged, has_trees)?;
        if settles {
            geometry.links = Vec::new();
            geometry.part_offsets = None;
            geometry.part_objects = None;
            geometry.object_ids = None;
            arranged.chunk_of = Vec::new();
        }
        let current = design.profile == Profile::V09;
        let columns = |given: &mut Vec<Attribute>, tag| {
            let attributes = match settles {
                true => core::mem::take(given),
                false => given.clone(),
            };
            let attributes = attributes.into_iter();
            let columns = attributes.map(|attribute| Column::of(attribute, tag, current));
            columns.collect::<Result<Vec<_>, _>>()
        };
        let bytes = geometry.positions.bytes.len() as u64;
        let shard = shard(&design, &grid.1, arranged.chunks.len() as u64, bytes)?;
        let mut plan = Self {
            vertex: columns(&mut geometry.vertex, "attribute")?,
            fragment: columns(&mut geometry.fragment, "fragment_attribute")?,
            link: columns(&mut geometry.link, "link_attribute")?,
            axes: match &design.axes {
                Some(axes) => axes.clone(),
                None => nodes::default_axes(geometry.axes()),
            },
            encoding: Encoding::of_cells(&design),
            vertices,
            geometry,
            design,
            space,
            grid,
            shard,
            arranged,
            objects,
            links,
            tasks: Vec::new(),
        };
        plan.tasks = plan.share_out();
        layout::check_cells(&plan)?;
        Ok(plan)
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The generation and form it is written in.
    pub fn profile(&self) -> Profile {
        self.design.profile
    }

    /// What it comes to.
    pub fn summary(&self) -> PlanSummary {
        let objects = self.objects.as_ref().map_or(0, |objects| objects.ids.len());
        let bins = self.space.bins.as_ref().filter(|_| self.objects.is_none());
        PlanSummary {
            vertices: self.vertices,
            objects: objects as u64,
            links: self.links.as_ref().map_or(0, |links| links.logical as u64),
            chunks: self.arranged.chunks.len() as u64,
            chunk_shape: self.space.chunk.extents().to_vec(),
            bin_shape: bins.map(|bins| bins.shape().extents().to_vec()),
            why: self.space.why.clone(),
        }
    }

    /// The cells of a task: of all arrays, those of some chunks. All of an object
    /// that holds several cells is in one task.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a cell is more than the format can hold.
    pub fn run(&self, task: usize) -> Result<Vec<Output>, BuildError> {
        let chunks = self.tasks.get(task).map_or(&[][..], Vec::as_slice);
        layout::cells(self, chunks)
    }

    /// What all tasks need to be there, and what belongs to no chunk: nodes, the
    /// object index, tables. The root is not among them.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a name makes no key, or a table is more than the format
    /// can hold.
    pub fn rest(&self) -> Result<Vec<Output>, BuildError> {
        layout::rest(self)
    }

    /// The attributes of the root.
    pub fn root(&self) -> Map<String, Value> {
        nodes::root(&self.design, &self.space, &self.axes)
    }

    /// Chunks that share objects go together; otherwise enough to keep a core busy, and
    /// few enough to keep all of them so.
    pub(crate) fn share_out(&self) -> Vec<Vec<u32>> {
        let chunks = 0..self.arranged.chunks.len() as u32;
        let mut rows = 0;
        let mut tasks: BTreeMap<Vec<u64>, Vec<u32>> = BTreeMap::new();
        for chunk in chunks {
            let key = match &self.shard {
                Some(shard) => {
                    let index = self.index(chunk);
                    index
                        .iter()
                        .zip(shard)
                        .map(|(at, extent)| at / extent)
                        .collect()
                }
                None => {
                    let before = rows / TASK;
                    rows += self.arranged.vertices(chunk as usize).len();
                    vec![before as u64]
                }
            };
            tasks.entry(key).or_default().push(chunk);
        }
        tasks.into_values().collect()
    }

    /// The element of a chunk.
    pub(crate) fn index(&self, chunk: u32) -> Vec<u64> {
        let coords = self.arranged.chunks[chunk as usize].iter();
        let steps = coords.zip(&self.grid.0);
        steps
            .map(|(at, origin)| at.wrapping_sub(*origin).unsigned_abs())
            .collect()
    }

    /// The name of a chunk.
    pub(crate) fn name(&self, chunk: u32) -> String {
        ChunkCoords(&self.arranged.chunks[chunk as usize]).to_string()
    }

    /// The fragment index of a chunk.
    pub(crate) fn fragment_index(&self, chunk: u32) -> Vec<u8> {
        let mut builder = FragmentIndexBuilder::default();
        let mut start = 0;
        for fragment in self.arranged.fragments(chunk as usize) {
            let end = start + u64::from(fragment.rows);
            // Fragments and rows are below 2^32.
            let pushed = builder.push_range(start..end);
            debug_assert!(pushed.is_ok());
            start = end;
        }
        builder.finish()
    }

    /// Vertices of a chunk, in the rows of the input.
    pub(crate) fn input(&self, chunk: u32) -> impl ExactSizeIterator<Item = usize> + '_ {
        let vertices = self.arranged.vertices(chunk as usize).iter();
        vertices.map(|vertex| *vertex as usize)
    }

    /// The coordinates of a chunk's vertices.
    pub(crate) fn positions(&self, chunk: u32) -> Vec<u8> {
        self.geometry.positions.gathered(self.input(chunk))
    }

    /// Which arrays of links keep how their ends were put in order.
    pub(crate) fn form(&self, crosses: bool) -> RowForm {
        let permuted = crosses && (!self.design.directed || self.design.duplicate);
        match permuted || (crosses && self.design.profile != Profile::V09) {
            true => RowForm::Permuted,
            false => RowForm::Plain,
        }
    }
}

/// The positions as what they are to be stored as.
pub(crate) fn stored(mut geometry: Geometry, design: &Design) -> Result<Geometry, BuildError> {
    match design.dtype {
        Some(kind) if kind != geometry.positions.kind => {
            geometry.positions = coordinates::converted(&geometry.positions, kind)?;
            Ok(geometry)
        }
        _ => Ok(geometry),
    }
}

/// The least and the greatest of each axis.
pub(crate) type Corners = (Vec<f64>, Vec<f64>);

/// The bounds of the store, and what of the geometry is in them.
pub(crate) fn bounded(
    geometry: Geometry,
    design: &Design,
) -> Result<(Geometry, Corners), BuildError> {
    let found = coordinates::extent(&geometry.positions)?;
    let Some((lower, upper)) = &design.bounds else {
        return Ok((geometry, found));
    };
    let axes = geometry.axes();
    for bounds in [lower, upper] {
        if bounds.len() != axes {
            let (what, found) = ("the list of bounds", bounds.len());
            return Err(BuildError::AxisCount {
                what,
                expected: axes,
                found,
            });
        }
    }
    let pairs = lower.iter().zip(upper).enumerate();
    for (axis, (&lower, &upper)) in pairs {
        if !(lower.is_finite() && upper.is_finite() && lower <= upper) {
            return Err(BuildError::InvalidBounds { axis, lower, upper });
        }
    }
    let inside = |axis: usize| lower[axis] <= found.0[axis] && found.1[axis] <= upper[axis];
    if (0..axes).all(inside) {
        return Ok((geometry, (lower.clone(), upper.clone())));
    }
    match design.out_of_bounds {
        OutOfBounds::Reject => Err(outside::first(&geometry.positions, lower, upper)),
        OutOfBounds::Drop => {
            let geometry = outside::without(geometry, design.kind.is_linked(), lower, upper)?;
            Ok((geometry, (lower.clone(), upper.clone())))
        }
        OutOfBounds::Expand => {
            let least = lower.iter().zip(&found.0).map(|(a, b)| a.min(*b));
            let most = upper.iter().zip(&found.1).map(|(a, b)| a.max(*b));
            Ok((geometry, (least.collect(), most.collect())))
        }
    }
}

pub(crate) fn bin_count(space: &SpatialLayout) -> Result<u32, BuildError> {
    let count = space.bins.as_ref().map_or(1, zvf_model::grid::Bins::count);
    // Each has 16 bytes in every chunk.
    match u32::try_from(count) {
        Ok(count) if count <= 1 << 24 => Ok(count),
        _ => Err(BuildError::BinShape(zvf_model::grid::BinsError::Count)),
    }
}

/// The links that are stored: those given, or the steps of paths from chunk to
/// chunk where these are asked for.
fn links(
    geometry: &Geometry,
    design: &Design,
    arranged: &Arranged,
    has_trees: bool,
) -> Result<Option<Filed>, BuildError> {
    let width = LinkWidth::new(geometry.link_width as u64).map_err(|_| BuildError::LinkWidth {
        kind: design.kind.name(),
        expected: "1 to 8",
        found: geometry.link_width,
    })?;
    let policy = Policy {
        directed: design.directed,
        duplicate: design.duplicate,
    };
    if design.kind.is_linked() {
        let rows = arranged.rows();
        let heads = match has_trees {
            true => heads(arranged),
            false => Vec::new(),
        };
        let implied = |child: usize, parent: usize| {
            has_trees
                && arranged.chunk_of[child] == arranged.chunk_of[parent]
                && rows[child] == rows[parent] + 1
                && !heads[child]
        };
        return Filed::new(arranged, &rows, width, &geometry.links, policy, implied).map(Some);
    }
    if design.kind == GeometryKind::Points || !design.has_step_links() {
        return Ok(None);
    }
    let mut steps = Vec::new();
    let offsets = geometry.part_offsets.as_deref().unwrap_or_default();
    for ends in offsets.windows(2) {
        for vertex in ends[0] + 1..ends[1] {
            let at = vertex as usize;
            if arranged.chunk_of[at] != arranged.chunk_of[at - 1] {
                steps.extend([at as i64 - 1, at as i64]);
            }
        }
    }
    if steps.is_empty() {
        return Ok(None);
    }
    let rows = arranged.rows();
    Filed::new(arranged, &rows, LinkWidth::EDGE, &steps, policy, |_, _| {
        false
    })
    .map(Some)
}

/// Whether each vertex is the first of its fragment.
fn heads(arranged: &Arranged) -> Vec<bool> {
    let mut heads = vec![false; arranged.order.len()];
    let mut at = 0;
    for fragment in &arranged.fragments {
        if let Some(vertex) = arranged.order.get(at).filter(|_| fragment.rows > 0) {
            heads[*vertex as usize] = true;
        }
        at += fragment.rows as usize;
    }
    heads
}

/// Bytes of an object that shards aim at.
const SHARD: u64 = 16 << 20;

/// How many chunks go in one object, of so many chunks with so many bytes of
/// positions.
pub(crate) fn shard(
    design: &Design,
    grid: &[u64],
    chunks: u64,
    bytes: u64,
) -> Result<Option<Vec<u64>>, BuildError> {
    let shape = match &design.sharding {
        ShardingPolicy::None => return Ok(None),
        ShardingPolicy::Shape(shape) => {
            if shape.len() != grid.len() || shape.contains(&0) {
                return Err(BuildError::ShardShape(shape.clone()));
            }
            shape.clone()
        }
        ShardingPolicy::Auto => {
            let cell = (bytes / chunks.max(1)).max(1);
            let mut shape = vec![1u64; grid.len()];
            // The longest axis of the grid that still fits is doubled.
            loop {
                let cells: u64 = shape.iter().product();
                let open = (0..grid.len()).filter(|axis| shape[*axis] < grid[*axis]);
                let axis = open.min_by_key(|axis| shape[*axis]);
                match axis {
                    Some(axis) if cells * cell * 2 <= SHARD && cells < 1 << 12 => shape[axis] *= 2,
                    _ => break shape,
                }
            }
        }
    };
    if design.profile != Profile::V09 {
        return Err(BuildError::UnsupportedOption {
            profile: design.profile.name(),
            what: "shards",
        });
    }
    let cells = shape
        .iter()
        .try_fold(1u64, |n, extent| n.checked_mul(*extent));
    match cells {
        Some(cells) if cells <= 1 << 20 => Ok(Some(shape)),
        _ => Err(BuildError::ShardShape(shape)),
    }
}

/// What a node says, as JSON object.
pub(crate) fn says(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A node.
pub(crate) fn node(path: impl Into<String>, json: Value) -> Output {
    Output::Node {
        path: path.into(),
        json,
    }
}

/// A group.
pub(crate) fn group(path: impl Into<String>, attributes: Value) -> Output {
    node(path, nodes::group(&says(attributes)))
}

/// A group that says nothing.
pub(crate) fn bare(path: impl Into<String>) -> Output {
    group(path, json!({}))
}
