//! The error inside the crate, with one variant for each cause. Public functions return the groups
//! of [`Error`](crate::Error).

use futures_util::future::BoxFuture;
use zvf_build::{
    BuildError,
    coarsen::{CoarsenError, SparsityError},
    edit::EditError,
};
use zvf_format::{
    fragment::FragmentIndexError, manifest::ManifestError, open_rows::OpenRowsError,
    vlen::VlenFrameError,
};
use zvf_model::{
    detection::GenerationError,
    grid::BinsError,
    key::{Key, KeyError},
    level::LevelId,
    metadata::MetadataError,
    zarr::IndexError,
};
use zvf_query::QueryError;
use zvf_store::{
    CellArrayError, CellError, CommitError, CreateError, EncodeError, ListError, OpenError,
    ReadError, TransactionError, WriteError,
};

use crate::error::Error;

/// The cause of a failed operation.
#[derive(Debug, thiserror::Error)]

pub(crate) enum Failure {
    /// The address names no store that can be reached.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no `zarr.json` at the address.
    #[error("{address} is not a Zarr store: it has no zarr.json")]
    NoStore {
        /// The address.
        address: String,
    },
    /// The store has no level.
    #[error("{address} has no level: no child of its root is named by a number")]
    NoLevel {
        /// The address.
        address: String,
    },
    /// A level is asked for that is not there.
    #[error("{address} has no level {level}")]
    AbsentLevel {
        /// The address.
        address: String,
        /// The level.
        level: LevelId,
    },
    /// A store of before 0.9 where nothing can be listed.
    #[error(
        "{address} cannot list what is in it, and only stores of format 0.9 are opened without; \
         allow listing, open a copy in a folder or zip file, or rewrite it as 0.9"
    )]
    Unlistable {
        /// The address.
        address: String,
        /// What the store said.
        source: ListError,
    },
    /// A store that is to be counted where nothing can be listed.
    #[error(
        "{address} cannot list what is in it, which counting needs; \
         allow listing, or count a copy in a folder or zip file"
    )]
    Uncountable {
        /// The address.
        address: String,
        /// What the store said.
        source: ListError,
    },
    /// The store is of a generation that is not read, or of none.
    #[error(transparent)]
    Generation(#[from] GenerationError),
    /// Metadata cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// An array cannot be read as its metadata stand.
    #[error("{node}: its cells cannot be read")]
    Array {
        /// The array.
        node: Key,
        /// Why.
        source: CellArrayError,
    },
    /// A chunk is listed that the array cannot hold.
    #[error("{node}: lists a chunk that it cannot hold")]
    Index {
        /// The array.
        node: Key,
        /// Why.
        source: IndexError,
    },
    /// A chunk is listed, and its cell is not there.
    #[error("{node}: chunk {cell} is listed, but missing")]
    MissingCell {
        /// The array.
        node: Key,
        /// The chunk.
        cell: String,
    },
    /// An array that should hold a byte string a chunk does not.
    #[error("{node}: is no array of one byte string a chunk")]
    NoCells {
        /// The array.
        node: Key,
    },
    /// A file is not as long as it says.
    #[error("{key}: has {bytes} bytes, but starts with another length; it was cut or damaged")]
    CutCell {
        /// The file.
        key: Key,
        /// Its size.
        bytes: u64,
    },
    /// A cell is no whole number of rows.
    #[error("{node}: a chunk has {bytes} bytes, which are no whole number of {row} byte rows")]
    Rows {
        /// The array.
        node: Key,
        /// Bytes of the cell.
        bytes: u64,
        /// Bytes of a row.
        row: u64,
    },
    /// A fragment index cannot be read.
    #[error("{node}: is no fragment index")]
    Fragments {
        /// The array.
        node: Key,
        /// Why.
        source: FragmentIndexError,
    },
    /// A node has files, but its metadata are missing.
    #[error("{node}/zarr.json is missing, but there are files beside it")]
    MissingNode {
        /// The node.
        node: Key,
    },
    /// An array is missing that others need.
    #[error("{node} is missing")]
    MissingArray {
        /// The array.
        node: Key,
    },
    /// Fragments reach further than the chunk they are in.
    #[error("{node}: reaches {rows} rows in a chunk of {room}")]
    NoRoom {
        /// The fragment index.
        node: Key,
        /// Rows it reaches.
        rows: u64,
        /// Rows a chunk has room for.
        room: u64,
    },
    /// There is another number of manifests than of objects.
    #[error("{node}: has {manifests} manifests for {objects} objects")]
    Manifests {
        /// The array.
        node: Key,
        /// Elements it has.
        manifests: u64,
        /// Objects that the index says there are.
        objects: u64,
    },
    /// An array has more chunks than are looked for.
    #[error("{node}: is cut into {cells} chunks, more than any real store has")]
    TooManyCells {
        /// The array.
        node: Key,
        /// Its chunks.
        cells: u64,
    },
    /// Manifests cannot be told apart.
    #[error("{node}: its offsets do not fit its data")]
    OpenRows {
        /// The array.
        node: Key,
        /// Why.
        source: OpenRowsError,
    },
    /// A manifest cannot be read.
    #[error("{node}: an item is no manifest")]
    Manifest {
        /// The array.
        node: Key,
        /// Why.
        source: ManifestError,
    },
    /// An array is larger than the memory budget.
    #[error(
        "{node}: has {bytes} bytes, the memory budget is {budget}; raise it to read this store"
    )]
    OverBudget {
        /// The array.
        node: Key,
        /// Its size.
        bytes: u64,
        /// The budget.
        budget: u64,
    },
    /// A chunk of manifests is no frame.
    #[error("{node}: a chunk is no frame of byte strings")]
    Frame {
        /// The array.
        node: Key,
        /// Why.
        source: VlenFrameError,
    },
    /// A name in the store cannot be part of a key.
    #[error("{name:?} in the store cannot be part of a key")]
    Name {
        /// The name.
        name: String,
        /// Why.
        source: KeyError,
    },
    /// A query cannot be answered.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Objects cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Children cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// A cell cannot be read.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// Geometry that is not written as it is.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Coarser levels of the store are not made.
    #[error("no level is made: {why}")]
    NoPyramid {
        /// Why.
        why: &'static str,
    },
    /// A rule is for an attribute that is not there.
    #[error("there is no attribute {name} of vertices, fragments or links; there is {known}")]
    PyramidAttribute {
        /// Its name.
        name: String,
        /// Names there are.
        known: String,
    },
    /// Chunks of a level would be no whole number of its bins.
    #[error("level {level}: its chunks are no whole number of its bins or cells")]
    PyramidBins {
        /// The level.
        level: LevelId,
        /// Why.
        source: BinsError,
    },
    /// What is asked for keeps no objects, or more than all.
    #[error(transparent)]
    Sparsity(#[from] SparsityError),
    /// What a level is made of does not fit together.
    #[error(transparent)]
    Coarsen(#[from] CoarsenError),
    /// An object cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A cell cannot be encoded.
    #[error("{key} cannot be encoded")]
    Encode {
        /// The object.
        key: Key,
        /// Why.
        source: EncodeError,
    },
    /// Work was given up because the program is ending.
    #[error("the work was interrupted")]
    Interrupted,
    /// A store cannot be made.
    #[error("{address} cannot be made")]
    Create {
        /// The address.
        address: String,
        /// Why.
        source: CreateError,
    },
    /// A transaction cannot go on.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    /// A transaction was not committed, or not to its end.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A level cannot be changed as asked.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A store of another generation than the one that is changed.
    #[error(
        "{address} is a store of {profile}; only stores of 0.9 are changed, so write it anew as one"
    )]
    Unchangeable {
        /// The address.
        address: String,
        /// The profile.
        profile: &'static str,
    },
    /// Objects that are linked to others, which would lose the links.
    #[error(
        "{links} links to other objects would be lost; name the objects at their other ends as well"
    )]
    Severed {
        /// Links that would be lost.
        links: usize,
    },
    /// An attribute that is to be written is there.
    #[error("an attribute {name} of {of} is there already")]
    AttributeExists {
        /// Its name.
        name: String,
        /// What has it: vertices or objects.
        of: &'static str,
    },
    /// An attribute cannot be written.
    #[error("{name}: {why}")]
    Attribute {
        /// The attribute, or what it is made of.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// A node is no JSON.
    #[error("{key} is no JSON")]
    Json {
        /// The node.
        key: Key,
        /// Why.
        source: serde_json::Error,
    },
    /// A query result holds rows that geometry cannot express.
    #[error("{what} cannot be written: {why}")]
    NotGeometry {
        /// The rows.
        what: String,
        /// Why.
        why: &'static str,
    },
    /// Geometry cannot be read.
    #[error("the geometry cannot be read")]
    Source(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// Parts cannot be kept between two passes.
    #[error("{path} cannot be used for what does not fit in memory")]
    Scratch {
        /// The file or folder.
        path: String,
        /// What happened.
        source: std::io::Error,
    },
}

/// Boxes the future of a public method.
pub(crate) fn boxed<'a, T>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'a,
) -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(async move { Ok(work.await?) })
}
