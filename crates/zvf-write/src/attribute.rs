//! Attributes of vertices and objects, computed from positions.

mod object;
mod object_table;
mod removal;
mod row_values;
mod rows;
pub mod tasks;
mod vertex;

use core::fmt;
use std::{num::NonZeroU32, sync::Arc};

use bytes::Bytes;
use zvf_build::{BuildError, Output, Profile};
use zvf_catalog::{Catalog, StoredArray};
use zvf_dataset::{Dataset, Error, Failure, Location, Progress, StateError, base, nodes};
use zvf_format::{
    fragment::FragmentIndex,
    numeric::{Dtype, Kind, NumericRows, Value as Number},
};
use zvf_model::{
    array::{VertexEncoding, Vertices},
    attribute_name,
    fetch::BoxFuture,
    generation::Generation,
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, GroupRole},
    level::{LevelId, LevelMetadataChange},
    metadata::Attributes,
    scope::Scope,
    zarr::Node,
};
use zvf_store::{OpenOptions, Store, Transaction};

pub use object::ObjectReduction;
pub(crate) use removal::remove as remove_attributes;
pub use rows::TableOptions;
pub(crate) use rows::{TableKeys, write as write_table};

use crate::{
    commit::{commit_or_abort, unfinished},
    stale::{coarser_levels, mark_stale},
    writer::{encode::root_bytes, or_changed},
};

/// Maximum number of files of an attribute.
const MAX_FILES: usize = 1 << 26;
/// Number of cells read in one round trip.
const BATCH_CELLS: usize = 256;

/// The attribute to write.
#[derive(Clone)]
#[non_exhaustive]
pub struct AttributeSpec {
    /// The name.
    pub name: String,
    /// The type of its values.
    pub kind: Kind,
    /// The shape of the values of a vertex: `[]` for one value.
    pub row_shape: Vec<u64>,
    /// Replaces an existing attribute of this name.
    pub overwrite: bool,
    /// Approximate number of bytes of positions and values held at a time. A larger shard exceeds
    /// it.
    pub memory: u64,
    /// Callback for progress: the number of chunks read and of chunks with values, and twice the number
    /// of all chunks. Default: none.
    pub progress: Option<Progress>,
}

impl fmt::Debug for AttributeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttributeSpec")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("row_shape", &self.row_shape)
            .field("overwrite", &self.overwrite)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl AttributeSpec {
    /// Returns the specification of one value per vertex, with 512 MiB of memory.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            row_shape: Vec::new(),
            overwrite: false,
            memory: 512 << 20,
            progress: None,
        }
    }

    zvf_model::setters! {
        memory: u64,
        overwrite: bool,
        progress: Progress,
        row_shape: Vec<u64>,
    }

    fn error(&self, why: &'static str) -> Failure {
        Failure::Attribute {
            name: self.name.clone(),
            why,
        }
    }

    /// Size of the values of a vertex in bytes.
    fn row(&self) -> Option<usize> {
        let extents = self.row_shape.iter();
        let columns = extents.map(|extent| usize::try_from(*extent).ok());
        let size = Some(self.kind.size());
        columns.fold(size, |size, extent| size?.checked_mul(extent?))
    }
}

/// The result of writing an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributeReport {
    /// Number of vertices with values.
    pub vertices: u64,
    /// Number of objects of a table of objects.
    pub objects: u64,
    /// Number of their chunks.
    pub chunks: u64,
    /// Number of calls of the function.
    pub batches: u64,
    /// Number of uploaded bytes.
    pub bytes: u64,
    /// The number of the transaction.
    pub transaction: u64,
    /// The reason why the change could not be finished after its commit, as on a full disk; `None` as
    /// a rule. Readers see the whole change, and the next change of the store finishes it.
    pub unfinished: Option<String>,
}

/// A function from positions to values. Positions are in row order, one number per axis. The result
/// is one little-endian row per position.
pub type VertexFn =
    dyn Fn(&[f64]) -> Result<Vec<u8>, Box<dyn core::error::Error + Send + Sync>> + Send + Sync;

/// Writes an attribute of the vertices of level 0 in one transaction. Cells are stored in the form
/// of the vertices, and coarser levels become stale.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use std::sync::Arc;
/// use zvf::{AttributeSpec, Dataset, Query, numeric::Kind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let points = Geometry::new(positions);
/// # let mut design = Design::new(GeometryKind::Points);
/// # design.chunk_shape = Some(vec![10.0; 3]);
/// # zvf::create(address, &points, design, &Default::default()).await?;
/// let height = AttributeSpec::new("height", Kind::Float64);
/// let of_each = Arc::new(|positions: &[f64]| {
///     let rows = positions.chunks_exact(3);
///     Ok(rows.flat_map(|row| row[1].to_le_bytes()).collect())
/// });
/// let written = zvf::write_vertex_attribute(address, &height, of_each).await?;
/// assert_eq!(written.vertices, 3);
/// let all = Dataset::open(address).await?.query(&Query::new()).await?;
/// assert_eq!(all.vertex.len(), 1);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`StateError::AttributeExists`] when the attribute exists and `overwrite` is not set;
/// [`ErrorKind::InvalidInput`](zvf_model::error_kind::ErrorKind::InvalidInput) when the name is invalid or the
/// number of values is wrong; [`StateError::Unchangeable`] for stores before 0.9; an error [from
/// the caller](Error::is_from_caller) with the error of `values`; [`Error`] otherwise.
pub async fn write_vertex_attribute(
    location: impl Into<Location>,
    spec: &AttributeSpec,
    values: Arc<VertexFn>,
) -> Result<AttributeReport, Error> {
    Ok(write(location.into(), spec, None, values).await?)
}

/// Writes an attribute of objects in one transaction: the values of their vertices of level 0,
/// reduced to `float64`. Objects without values have none. Coarser levels get the values of their objects.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use std::sync::Arc;
/// use zvf::{AttributeSpec, ObjectReduction, numeric::Kind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let paths = Geometry::builder(positions).paths(vec![0, 2, 3], vec![7, 8]).build()?;
/// # zvf::create(address, &paths, Design::new(GeometryKind::Streamlines), &Default::default()).await?;
/// let height = AttributeSpec::new("mean_height", Kind::Float64);
/// let of_each = Arc::new(|positions: &[f64]| {
///     let rows = positions.chunks_exact(3);
///     Ok(rows.flat_map(|row| row[1].to_le_bytes()).collect())
/// });
/// zvf::write_object_attribute(address, &height, ObjectReduction::Mean, of_each).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// See [`write_vertex_attribute`]; also an [`Error`] if the store has no objects.
pub async fn write_object_attribute(
    location: impl Into<Location>,
    spec: &AttributeSpec,
    reduction: ObjectReduction,
    values: Arc<VertexFn>,
) -> Result<AttributeReport, Error> {
    Ok(write(location.into(), spec, Some(reduction), values).await?)
}

/// Writes an attribute of vertices, or its reduction to objects.
fn write(
    location: Location,
    spec: &AttributeSpec,
    reduction: Option<ObjectReduction>,
    values: Arc<VertexFn>,
) -> BoxFuture<'_, Result<AttributeReport, Failure>> {
    Box::pin(async move {
        let store = location.open(&OpenOptions::default())?;
        let mut transaction = begin(&store).await?;
        // Reads from here on see the state that the transaction is based on.
        let staged = async {
            let dataset = base::open(store.without_node_copy()).await?;
            match reduction {
                None => vertex::write(&dataset, &mut transaction, spec, values).await,
                Some(reduction) => {
                    object::write(&dataset, &mut transaction, spec, reduction, values).await
                }
            }
        };
        let staged = staged.await;
        finish(&store, transaction, staged).await
    })
}

/// Begins a transaction on a store whose attributes can be changed.
async fn begin(store: &Store) -> Result<Transaction, Failure> {
    let dataset = base::open(store.without_node_copy()).await?;
    let profile = dataset.layout().profile();
    let declared = dataset.root().version.and_then(Generation::of_version);
    let is_current = dataset.layout().generation.is_current();
    if !is_current || declared != Some(dataset.layout().generation) {
        let profile = if is_current {
            "an unknown version"
        } else {
            profile
        };
        let address = store.to_string();
        return Err(Failure::State(StateError::Unchangeable {
            address,
            profile,
        }));
    }
    Ok(store.begin().await?)
}

/// Commits a transaction with its staged root, or aborts it if staging failed.
async fn finish(
    store: &Store,
    transaction: Transaction,
    staged: Result<(Bytes, AttributeReport), Failure>,
) -> Result<AttributeReport, Failure> {
    match staged {
        Ok((root, mut written)) => {
            let committed = commit_or_abort(transaction, &root).await?;
            written.unfinished = unfinished(&committed);
            written.transaction = committed.transaction;
            Ok(written)
        }
        Err(error) => {
            // The next writer deletes leftovers.
            let base = transaction.base();
            let _ = transaction.abort().await;
            Err(or_changed(store, base, error).await)
        }
    }
}

/// The location of an attribute.
struct AttributeLocation {
    key: Key,
    /// Size of the values of a vertex in bytes.
    row: usize,
    /// Files of the attribute that it replaces.
    old: Vec<Key>,
}

impl AttributeLocation {
    /// Finds the location in a family of attributes.
    async fn find(
        dataset: &Dataset,
        spec: &AttributeSpec,
        scope: Scope,
        level: LevelId,
    ) -> Result<Self, Failure> {
        if let Some(why) = attribute_name::problem(&spec.name) {
            return Err(spec.error(why));
        }
        let keys = Profile::V09.keys(level);
        let key = nodes::place(keys.node(&scope.array(&spec.name)))?;
        let row = spec
            .row()
            .filter(|row| *row > 0)
            .ok_or_else(|| spec.error("a vertex has no value, or too many"))?;
        let store = dataset.store();
        let old = match nodes::read_one(store, &key).await? {
            Some(_) if !spec.overwrite => {
                let name = spec.name.clone();
                let of = scope.plural();
                return Err(Failure::State(StateError::AttributeExists { name, of }));
            }
            Some(_) => store.list_to_delete(&key, MAX_FILES).await?,
            None => {
                let mut axes = dataset.root().axes.iter();
                if scope == Scope::Vertex && axes.any(|axis| axis.name == spec.name) {
                    return Err(BuildError::AttributeIsAxis(spec.name.clone()).into());
                }
                Vec::new()
            }
        };
        let old = old.iter().map(|file| nodes::below(&key, &file.name));
        Ok(Self {
            old: old.collect::<Result<_, _>>()?,
            key,
            row,
        })
    }

    /// Deletes the files of the replaced attribute, before others are staged in their places.
    async fn delete_replaced(&self, transaction: &mut Transaction) -> Result<(), Failure> {
        for key in &self.old {
            transaction.delete(key.clone()).await?;
        }
        Ok(())
    }
}

/// Returns the vertices of level 0 and the type of coordinates.
async fn raw_vertices(
    dataset: &Dataset,
    spec: &AttributeSpec,
) -> Result<(StoredArray, Dtype), Failure> {
    let catalog = dataset.catalog();
    let part = catalog
        .stored_array(LevelId::FULL, &ArrayRole::Vertices)
        .await?
        .ok_or_else(|| spec.error("the store has no vertices"))?;
    let vertices = Vertices::parse(part.node(), part.attributes())?.value;
    if vertices.encoding != VertexEncoding::Raw {
        return Err(spec.error("vertices are compressed with Draco, which is not decoded"));
    }
    Ok((part, vertices.dtype))
}

/// Calls the function and checks the number of values.
fn computed_values(
    make: &VertexFn,
    full: &Batch,
    axes: usize,
    row: usize,
    spec: &AttributeSpec,
) -> Result<Vec<u8>, Failure> {
    let bytes = make(&full.positions).map_err(Failure::Source)?;
    if bytes.len() != full.positions.len() / axes.max(1) * row {
        return Err(spec.error("there are not as many values as vertices"));
    }
    Ok(bytes)
}

/// Returns the root, with coarser levels stale in `chunks`.
async fn root(
    dataset: &Dataset,
    transaction: &mut Transaction,
    chunks: &[ChunkCoord],
) -> Result<Bytes, Failure> {
    let coarser = coarser_levels(dataset.store(), LevelId::FULL).await?;
    let mut root = touched_root(transaction)?;
    mark_stale(&mut root, &coarser, chunks.iter().cloned());
    Ok(root_bytes(root, dataset.layout().generation))
}

/// Returns the root after a change that makes no level stale.
fn unchanged_levels(dataset: &Dataset, transaction: &mut Transaction) -> Result<Bytes, Failure> {
    Ok(root_bytes(
        touched_root(transaction)?,
        dataset.layout().generation,
    ))
}

/// Returns the attributes of the root. The transaction conflicts with every change of the vertices.
fn touched_root(transaction: &mut Transaction) -> Result<Attributes, Failure> {
    transaction.touch("*");
    let key = nodes::metadata(&Key::root())?;
    let root = Node::parse(&key, transaction.root())?;
    Ok(root.attributes().clone())
}

/// Returns the array whose cells count the values of a scope of [chunks](Scope::OF_CHUNKS).
async fn counted(
    dataset: &Dataset,
    scope: Scope,
    vertices: StoredArray,
) -> Result<StoredArray, Failure> {
    match scope {
        Scope::Fragment => fragment_indexes(dataset).await,
        Scope::Vertex | Scope::Link | Scope::Object | Scope::Group => Ok(vertices),
    }
}

/// Returns the fragment indexes of level 0.
async fn fragment_indexes(dataset: &Dataset) -> Result<StoredArray, Failure> {
    let role = ArrayRole::VertexFragments;
    let found = dataset.catalog().stored_array(LevelId::FULL, &role).await?;
    found.ok_or_else(|| Failure::Attribute {
        name: "vertex_fragments".to_owned(),
        why: "the store has no fragments",
    })
}

/// Parses the fragment index of a chunk.
fn fragment_index<'c>(chunk: &ChunkCoord, cell: &'c [u8]) -> Result<FragmentIndex<'c>, Failure> {
    FragmentIndex::parse(cell).map_err(|_| Failure::Attribute {
        name: cell_name(&ArrayRole::VertexFragments, chunk),
        why: "it is not a fragment index",
    })
}

/// The positions of some chunks.
#[derive(Default)]
struct Batch {
    positions: Vec<f64>,
    /// Chunks with their numbers of vertices.
    rows: Vec<(ChunkCoord, usize)>,
    /// The present values of the attribute by chunk, if some remain.
    old: Vec<Option<Bytes>>,
}

impl Batch {
    fn add(
        &mut self,
        chunk: &ChunkCoord,
        cell: &[u8],
        dtype: Dtype,
        axes: usize,
    ) -> Result<(), Failure> {
        let axes: Option<NonZeroU32> = u32::try_from(axes)
            .ok()
            .and_then(|axes| axes.try_into().ok());
        let broken = || Failure::Attribute {
            name: cell_name(&ArrayRole::Vertices, chunk),
            why: "its size is not a whole number of positions",
        };
        let axes = axes.ok_or_else(broken)?;
        let rows = NumericRows::parse(cell, dtype, axes).map_err(|_| broken())?;
        match dtype.kind() {
            Kind::Float32 => {
                let elements = rows.elements::<f32>();
                let values = elements
                    .iter()
                    .flat_map(zvf_format::numeric::Elements::iter);
                self.positions.extend(values.map(f64::from));
            }
            Kind::Float64 => {
                let values = rows.elements::<f64>();
                self.positions
                    .extend(values.iter().flat_map(zvf_format::numeric::Elements::iter));
            }
            _ => {
                let columns = 0..axes.get();
                let places =
                    (0..rows.rows()).flat_map(|row| columns.clone().map(move |at| (row, at)));
                let values =
                    places.map(|(row, at)| rows.value(row, at).map_or(f64::NAN, Number::to_f64));
                self.positions.extend(values);
            }
        }
        self.rows.push((chunk.clone(), rows.rows()));
        Ok(())
    }

    /// Counts the vertices of a chunk, whose cell has positions, or its fragments, whose cell is a fragment
    /// index.
    fn count(
        &mut self,
        chunk: &ChunkCoord,
        cell: &[u8],
        scope: Scope,
        dtype: Dtype,
        axes: usize,
    ) -> Result<(), Failure> {
        let rows = match scope {
            Scope::Vertex => {
                let size = dtype.size().saturating_mul(axes).max(1);
                if !cell.len().is_multiple_of(size) {
                    return Err(Failure::Attribute {
                        name: cell_name(&ArrayRole::Vertices, chunk),
                        why: "its size is not a whole number of positions",
                    });
                }
                cell.len() / size
            }
            Scope::Fragment => {
                let fragments = fragment_index(chunk, cell)?.len();
                usize::try_from(fragments).unwrap_or(usize::MAX)
            }
            // Their rows are not those of a chunk.
            Scope::Link | Scope::Object | Scope::Group => 0,
        };
        self.rows.push((chunk.clone(), rows));
        Ok(())
    }

    /// Reads the present values of an attribute in these chunks.
    async fn add_old(
        &mut self,
        catalog: Catalog<'_>,
        array: &StoredArray,
        chunks: &[ChunkCoord],
    ) -> Result<(), Failure> {
        let is_stored = |chunk: &ChunkCoord| array.chunks().binary_search(chunk).is_ok();
        let there: Vec<ChunkCoord> = chunks
            .iter()
            .filter(|chunk| is_stored(chunk))
            .cloned()
            .collect();
        let mut cells = catalog.stored_cells(array, &there).await.into_iter();
        for chunk in chunks {
            let cell = if is_stored(chunk) {
                cells
                    .next()
                    .transpose()
                    .map_err(zvf_catalog::CatalogError::from)?
            } else {
                None
            };
            self.old.push(cell);
        }
        Ok(())
    }

    fn vertices(&self) -> u64 {
        self.rows.iter().map(|(_, rows)| *rows as u64).sum()
    }
}

/// Returns the nodes above an attribute: the level, which lists the family as present, and the
/// group of the family if it does not exist.
async fn present(
    dataset: &Dataset,
    family: GroupRole<'_>,
    level: LevelId,
) -> Result<Vec<Output>, Failure> {
    let keys = Profile::V09.keys(level);
    let level = nodes::place(keys.level())?;
    let mut node = node_of(dataset, &level).await?;
    if let Node::Group(group) = &mut node
        && let Some(mut change) = LevelMetadataChange::of_existing(&mut group.attributes)
    {
        change.add_array_present(family.name());
    }
    let mut outputs = vec![Output::Node { key: level, node }];
    let group = nodes::place(keys.group(family))?;
    if nodes::read_one(dataset.store(), &group).await?.is_none() {
        outputs.push(Output::empty_group(group));
    }
    Ok(outputs)
}

/// Returns the name of a cell of level 0 for a message.
fn cell_name(part: &ArrayRole<'_>, chunk: &ChunkCoord) -> String {
    let node = Profile::V09.keys(LevelId::FULL).node(part);
    node.map_or_else(|_| chunk.to_string(), |node| format!("{node}/{chunk}"))
}

/// Reads a node that must exist.
async fn node_of(dataset: &Dataset, key: &Key) -> Result<Node, Failure> {
    let node = nodes::read_one(dataset.store(), key).await?;
    node.ok_or_else(|| Failure::MissingNode { node: key.clone() })
}
