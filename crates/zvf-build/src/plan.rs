//! Plan of a new store: nodes, and tasks that encode cells.

mod draco;
mod estimate;
mod formulas;
mod objects;
mod v08;
mod v09;

use std::collections::BTreeMap;

use zvf_format::{
    links::{LinkWidth, RowForm},
    path::ChunkCoords,
};

use crate::{
    GeometryKind, bounds, check,
    design::{AxisSpec, Design, Profile},
    error::BuildError,
    fragment_column::{by_fragment, by_object, owner_column},
    geometry::{Geometry, GeometryBuilder, LinkEnds, VertexOwners},
    link_placement::{self, Cell, CrossChunkPolicy, LinkPlacement},
    metadata::{self, Encoding},
    objects::ObjectRows,
    output::Output,
    sharding,
    sizing::FragmentKind,
    spatial_layout::{self, ArrayGrid, SpatialLayout},
    stored_column::StoredColumn,
    vertex_layout::{Grouping, Trees, VertexLayout, is_tree},
};
use zvf_model::{
    array::CellAttributeRole as Role,
    column::Column,
    generation::Generation,
    layout::{LevelKeys, VERTEX_FRAGMENTS, VERTICES},
    level::LevelId,
    metadata::Attributes,
    scope::Scope,
};

pub(crate) use estimate::CellCounts;
pub use estimate::PlanEstimate;
pub(crate) use objects::{LoggedColumn, LoggedObjects};

/// Plan of a new store: its nodes, and tasks that encode its cells. Equal geometry and design give
/// equal plans, and equal tasks give equal cells on any machine and in any order.
#[derive(Debug)]
pub struct WritePlan {
    /// The columns that encoding still needs.
    pub(crate) geometry: GeometryBuilder,
    /// Number of vertices.
    pub(crate) vertices: u64,
    pub(crate) design: Design,
    pub(crate) space: SpatialLayout,
    pub(crate) axes: Vec<AxisSpec>,
    pub(crate) grid: ArrayGrid,
    pub(crate) shard: Option<Vec<u64>>,
    pub(crate) layout: VertexLayout,
    pub(crate) objects: Option<ObjectRows>,
    /// Objects that are not in `objects`, because their cells are written from a log.
    pub(crate) logged: Option<LoggedObjects>,
    pub(crate) links: Option<LinkPlacement>,
    pub(crate) vertex: Vec<StoredColumn>,
    /// Attributes of fragments, with a row for each fragment of the layout.
    pub(crate) fragment: Vec<StoredColumn>,
    pub(crate) link: Vec<StoredColumn>,
    /// Chunks of each task.
    pub(crate) tasks: Vec<Vec<u32>>,
    pub(crate) encoding: Encoding,
}

/// Approximate number of vertices in a task.
const TASK: usize = 1 << 16;

/// Size and shapes of a planned store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanSummary {
    /// Number of vertices.
    pub vertices: u64,
    /// Number of objects in the index.
    pub objects: u64,
    /// Number of stored links; links implied by fragments are not counted.
    pub links: u64,
    /// Number of chunks with vertices.
    pub chunks: u64,
    /// Extent of a chunk along each axis.
    pub chunk_shape: Vec<f64>,
    /// Extent of a bin along each axis, where there are bins.
    pub bin_shape: Option<Vec<f64>>,
    /// Reasons for shapes that were chosen automatically.
    pub why: Vec<String>,
}

impl WritePlan {
    /// Returns the generation of the store.
    pub fn generation(&self) -> Generation {
        self.design.profile.layout().generation
    }

    /// Validates the input and decides the chunk, row and fragment of every vertex.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the geometry does not fit together or the design has no
    /// place for it.
    pub fn new(geometry: Geometry, design: Design) -> Result<Self, BuildError> {
        Self::of(geometry, design, false)
    }

    /// Plans a new store and consumes the geometry: columns are moved rather than copied, and links
    /// are released once their cells exist.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new); also [`BuildError::AttributeIsAxis`].
    pub fn new_consuming(geometry: Geometry, design: Design) -> Result<Self, BuildError> {
        check::check_axes_of_conditions(&geometry, &design)?;
        Self::of(geometry, design, true)
    }

    fn of(geometry: Geometry, design: Design, settles: bool) -> Result<Self, BuildError> {
        check::check(&geometry, &design)?;
        let geometry = bounds::stored(geometry.into_builder(), &design)?;
        let (mut geometry, (lower, upper)) = bounds::bounded(geometry, &design)?;
        let (objects, rows) = ObjectRows::of(&geometry, &design)?.unzip();
        let rows: Vec<u32> = rows.unwrap_or_default();
        // Following links takes temporary memory, so it comes before other allocations.
        let trees = match (is_tree(design.kind), &objects) {
            (true, Some(objects)) => Some(Trees::new(&geometry, &rows, &objects.ids)?),
            _ => None,
        };
        let fragments = FragmentKind::of_geometry(objects.is_some());
        let vertices = geometry.vertices() as u64;
        let space = SpatialLayout::of(
            &design,
            &geometry.positions,
            lower,
            upper,
            fragments,
            vertices,
        )?;
        let found = (space.lower.as_slice(), space.upper.as_slice());
        let within = design.bounds.is_none().then_some(found);
        let assigned = spatial_layout::assign(&geometry.positions, &space, fragments, within)?;
        let grid = space.grid(fragments)?;
        let count = objects.as_ref().map_or(0, |objects| objects.ids.len());
        let mut layout = if let Some(offsets) = geometry.owners.offsets() {
            VertexLayout::of_paths(assigned, offsets, count, &rows)
        } else {
            let grouping = match (&objects, &trees) {
                (None, _) => Grouping::Bins {
                    count: space.bin_count()?,
                    // Readers of 0.9 use the fragment number as the bin number, so empty bins need
                    // fragments.
                    empty: design.profile.is_current(),
                },
                (Some(_), Some(trees)) => Grouping::Trees {
                    objects: count,
                    rows: &rows,
                    trees,
                },
                (Some(_), None) => Grouping::Owners {
                    objects: count,
                    rows: &rows,
                },
            };
            VertexLayout::new(assigned, &grouping)
        };
        let has_trees = trees.is_some();
        drop((trees, rows));
        let links = links(&geometry, &design, &layout, has_trees)?;
        if settles {
            geometry.links = LinkEnds::default();
            geometry.owners = VertexOwners::default();
            layout.chunk_of = Vec::new();
        }
        let current = design.profile.is_current();
        let fragment = fragment_columns(&geometry, &design, &layout, objects.as_ref())?;
        if settles {
            geometry.fragment = Vec::new();
            geometry.fragment_rows = Vec::new();
        }
        let columns = |given: &mut Vec<Column>, scope: Scope, role| {
            let attributes = if settles {
                core::mem::take(given)
            } else {
                given.clone()
            };
            let attributes = attributes.into_iter();
            let columns = attributes.map(|attribute| {
                let column = StoredColumn::of(attribute, role, current)?;
                Ok(column.with_channel_names(&design.attribute_specs, scope))
            });
            columns.collect::<Result<Vec<_>, BuildError>>()
        };
        let bytes = geometry.positions.bytes.len() as u64;
        let shard = sharding::shard(&design, &grid.shape, layout.chunks.len() as u64, bytes)?;
        let mut plan = Self {
            vertex: columns(&mut geometry.vertex, Scope::Vertex, Role::Vertex)?,
            fragment,
            link: columns(&mut geometry.link, Scope::Link, Role::Link)?,
            axes: match &design.axes {
                Some(axes) => axes.clone(),
                None => metadata::default_axes(geometry.axes()),
            },
            encoding: Encoding::of_cells(&design),
            vertices,
            geometry,
            design,
            space,
            grid,
            shard,
            layout,
            objects,
            logged: None,
            links,
            tasks: Vec::new(),
        };
        plan.tasks = plan.split_into_tasks();
        check_cells(&plan)?;
        Ok(plan)
    }

    /// Returns the number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the profile of the store.
    pub fn profile(&self) -> Profile {
        self.design.profile
    }

    /// Returns the size and shapes of the store.
    pub fn summary(&self) -> PlanSummary {
        let bins = self.space.bins.as_ref().filter(|_| self.objects.is_none());
        PlanSummary {
            vertices: self.vertices,
            objects: self.object_count() as u64,
            links: self.links.as_ref().map_or(0, |links| links.logical as u64),
            chunks: self.layout.chunks.len() as u64,
            chunk_shape: self.space.chunk.extents().to_vec(),
            bin_shape: bins.map(|bins| bins.shape().extents().to_vec()),
            why: self.space.why.clone(),
        }
    }

    /// Returns the number of rows of the object index.
    pub(crate) fn object_count(&self) -> usize {
        match &self.logged {
            Some(logged) => logged.count,
            None => self.objects.as_ref().map_or(0, |objects| objects.ids.len()),
        }
    }

    /// Encodes the cells of a task: those of all arrays for some chunks. All cells of one shard
    /// belong to one task.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a cell is more than the format can hold.
    pub fn run(&self, task: usize) -> Result<Vec<Output>, BuildError> {
        let chunks = self.tasks.get(task).map_or(&[][..], Vec::as_slice);
        cells(self, chunks)
    }

    /// Returns the outputs that belong to no chunk: nodes, the object index and tables. The root is
    /// not included.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a name makes no key, or a table is more than the format
    /// can hold.
    pub fn rest(&self) -> Result<Vec<Output>, BuildError> {
        rest(self)
    }

    /// Returns the attributes of the root.
    pub fn root(&self) -> Attributes {
        metadata::root(&self.design, &self.space, &self.axes).to_attributes()
    }

    /// Returns the nodes of the level.
    pub(crate) fn keys(&self) -> LevelKeys {
        self.design.profile.keys(LevelId::FULL)
    }

    /// Splits chunks into tasks: the chunks of a shard together, else about [`TASK`] vertices each.
    pub(crate) fn split_into_tasks(&self) -> Vec<Vec<u32>> {
        let chunks = 0..self.layout.chunks.len() as u32;
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
                    rows += self.layout.vertices(chunk as usize).len();
                    vec![before as u64]
                }
            };
            tasks.entry(key).or_default().push(chunk);
        }
        tasks.into_values().collect()
    }

    /// Returns the grid index of a chunk.
    pub(crate) fn index(&self, chunk: u32) -> Vec<u64> {
        let coords = self.layout.chunks[chunk as usize].iter();
        let steps = coords.zip(&self.grid.origin);
        steps
            .map(|(at, origin)| at.wrapping_sub(*origin).unsigned_abs())
            .collect()
    }

    /// Returns the name of a chunk.
    pub(crate) fn name(&self, chunk: u32) -> String {
        ChunkCoords(&self.layout.chunks[chunk as usize]).to_string()
    }

    /// Encodes the fragment index of a chunk.
    pub(crate) fn fragment_index(&self, chunk: u32) -> Vec<u8> {
        let fragments = self.layout.fragments(chunk as usize);
        link_placement::ranges(fragments.iter().map(|fragment| u64::from(fragment.rows)))
    }

    /// Returns the sizes of the groups of links inside a chunk: steps of paths have one for each
    /// fragment of vertices, other links one for all.
    pub(crate) fn link_groups(&self, chunk: u32, cell: &Cell) -> Vec<u64> {
        if !self.design.has_steps_inside() {
            return vec![cell.len() as u64];
        }
        let fragments = self.layout.fragments(chunk as usize);
        let steps = fragments
            .iter()
            .map(|fragment| u64::from(fragment.rows).saturating_sub(1));
        steps.collect()
    }

    /// Returns the input rows of a chunk's vertices.
    pub(crate) fn input(&self, chunk: u32) -> impl ExactSizeIterator<Item = usize> + '_ {
        let vertices = self.layout.vertices(chunk as usize).iter();
        vertices.map(|vertex| *vertex as usize)
    }

    /// Returns the attributes with a cell for each chunk, by scope.
    pub(crate) fn chunk_columns(&self) -> impl Iterator<Item = (Scope, &[StoredColumn])> {
        Scope::OF_CHUNKS.into_iter().map(|scope| {
            let columns: &[StoredColumn] = match scope {
                Scope::Vertex => &self.vertex,
                Scope::Fragment => &self.fragment,
                Scope::Link | Scope::Object | Scope::Group => &[],
            };
            (scope, columns)
        })
    }

    /// Encodes the values of an attribute of a scope in a chunk.
    pub(crate) fn values(&self, scope: Scope, column: &StoredColumn, chunk: u32) -> Vec<u8> {
        let starts = &self.layout.fragment_starts;
        match scope {
            Scope::Vertex => column.gather(self.input(chunk)),
            Scope::Fragment => column.gather(starts[chunk as usize]..starts[chunk as usize + 1]),
            // Their rows are not those of a chunk.
            Scope::Link | Scope::Object | Scope::Group => Vec::new(),
        }
    }

    /// Encodes the coordinates of a chunk's vertices.
    pub(crate) fn positions(&self, chunk: u32) -> Vec<u8> {
        // The layout numbers the rows of these positions.
        let positions = &self.geometry.positions;
        positions.take_existing(self.input(chunk)).bytes
    }

    /// Returns the row form of link arrays: links that are reordered keep the permutation of their
    /// ends.
    pub(crate) fn form(&self, crosses: bool) -> RowForm {
        let policy = CrossChunkPolicy::of(&self.design);
        let permuted = crosses && (!policy.directed || policy.duplicate);
        if permuted || (crosses && !self.design.profile.is_current()) {
            RowForm::Permuted
        } else {
            RowForm::Plain
        }
    }
}

/// Places the links of the geometry, or the steps of paths where the design requests them.
fn links(
    geometry: &GeometryBuilder,
    design: &Design,
    layout: &VertexLayout,
    has_trees: bool,
) -> Result<Option<LinkPlacement>, BuildError> {
    let LinkEnds { width, ends } = &geometry.links;
    let width = LinkWidth::new(*width as u64).map_err(|_| BuildError::LinkWidth {
        kind: design.kind.plural(),
        expected: "1 to 8",
        found: *width,
    })?;
    let policy = CrossChunkPolicy::of(design);
    if design.kind.is_linked() {
        let rows = layout.rows();
        let heads = if has_trees { heads(layout) } else { Vec::new() };
        let implied = |child: usize, parent: usize| {
            has_trees
                && layout.chunk_of[child] == layout.chunk_of[parent]
                && rows[child] == rows[parent] + 1
                && !heads[child]
        };
        return LinkPlacement::new(layout, &rows, width, ends, policy, implied).map(Some);
    }
    if design.kind == GeometryKind::Points || !design.has_step_links() {
        return Ok(None);
    }
    let mut steps = Vec::new();
    let offsets = geometry.owners.offsets().unwrap_or_default();
    for ends in offsets.windows(2) {
        for vertex in ends[0] + 1..ends[1] {
            let at = vertex as usize;
            if layout.chunk_of[at] != layout.chunk_of[at - 1] {
                steps.extend([at as i64 - 1, at as i64]);
            }
        }
    }
    let has_inside = design.has_steps_inside();
    if steps.is_empty() && !has_inside {
        return Ok(None);
    }
    let rows = layout.rows();
    let width = LinkWidth::EDGE;
    let mut placed = LinkPlacement::new(layout, &rows, width, &steps, policy, |_, _| false)?;
    if has_inside {
        placed.add_steps_inside(layout);
    }
    Ok(Some(placed))
}

/// Returns whether each vertex is the first of its fragment.
fn heads(layout: &VertexLayout) -> Vec<bool> {
    let mut heads = vec![false; layout.order.len()];
    let mut at = 0;
    for fragment in &layout.fragments {
        if let Some(vertex) = layout.order.get(at).filter(|_| fragment.rows > 0) {
            heads[*vertex as usize] = true;
        }
        at += fragment.rows as usize;
    }
    heads
}

/// Encodes the cells of some chunks.
pub(crate) fn cells(plan: &WritePlan, chunks: &[u32]) -> Result<Vec<Output>, BuildError> {
    match plan.design.profile {
        Profile::V09 | Profile::V10 => v09::cells(plan, chunks),
        Profile::V08 | Profile::Padded => v08::cells(plan, chunks),
    }
}

/// Returns all other outputs except the root.
pub(crate) fn rest(plan: &WritePlan) -> Result<Vec<Output>, BuildError> {
    let mut outputs = match plan.design.profile {
        Profile::V09 | Profile::V10 => v09::rest(plan)?,
        Profile::V08 | Profile::Padded => v08::rest(plan)?,
    };
    formulas::write(plan, &mut outputs)?;
    Ok(outputs)
}

/// Rejects cells larger than 4 GiB before any is encoded.
pub(crate) fn check_cells(plan: &WritePlan) -> Result<(), BuildError> {
    let positions = plan.geometry.positions.row_size();
    let widths: Vec<_> = plan
        .vertex
        .iter()
        .map(|column| (&*column.name, column.numbers.row_size()))
        .chain([(VERTICES, positions)])
        .collect();
    let check = |chunk: u32, array: &str, bytes: u64| {
        if is_countable(bytes) {
            Ok(())
        } else {
            Err(BuildError::CellSize {
                chunk: plan.name(chunk),
                array: array.to_owned(),
                bytes,
            })
        }
    };
    for chunk in 0..plan.layout.chunks.len() as u32 {
        let rows = plan.layout.vertices(chunk as usize).len() as u64;
        for (array, width) in &widths {
            check(chunk, array, rows.saturating_mul(*width as u64))?;
        }
        let fragments = plan.layout.fragments(chunk as usize).len() as u64;
        check(
            chunk,
            VERTEX_FRAGMENTS,
            fragments.saturating_mul(17).saturating_add(32),
        )?;
    }
    let Some(links) = &plan.links else {
        return Ok(());
    };
    let row = links.width.get() as u64 * 8 + 16;
    let inside = links.inside.iter().map(|(chunk, cell)| (*chunk, cell));
    let between = links
        .between
        .iter()
        .filter_map(|(chunks, cell)| Some((*chunks.first()?, cell)));
    for (chunk, cell) in inside.chain(between) {
        check(chunk, "links", (cell.len() as u64).saturating_mul(row))?;
    }
    Ok(())
}

/// Returns whether a 32-bit frame can state the size of a cell.
fn is_countable(bytes: u64) -> bool {
    u32::try_from(bytes).is_ok()
}

/// Returns the attributes of fragments, with a row for each fragment.
fn fragment_columns(
    geometry: &GeometryBuilder,
    design: &Design,
    layout: &VertexLayout,
    objects: Option<&ObjectRows>,
) -> Result<Vec<StoredColumn>, BuildError> {
    let is_current = design.profile.is_current();
    let by_objects = geometry
        .fragment
        .iter()
        .map(|column| Ok(by_object(column, layout, objects)));
    let by_vertices = geometry
        .fragment_rows
        .iter()
        .map(|column| by_fragment(column, layout));
    let mut columns = by_objects
        .chain(by_vertices)
        .map(|column| {
            let column = StoredColumn::of(column?, Role::Fragment, is_current)?;
            Ok(column.with_channel_names(&design.attribute_specs, Scope::Fragment))
        })
        .collect::<Result<Vec<_>, BuildError>>()?;
    if design.fragment_owners {
        let objects = objects.ok_or(BuildError::NoOwners(design.kind.plural()))?;
        columns.push(owner_column(layout, &objects.ids, is_current)?);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::is_countable;

    #[test]
    fn w11_cells_of_4_gib_are_rejected() {
        assert!(is_countable(u64::from(u32::MAX)));
        assert!(!is_countable(1 << 32));
    }
}
