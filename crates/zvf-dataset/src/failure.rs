//! The causes of errors. [`Error`](crate::Error) is a box of one.

#[cfg(feature = "pyramid")]
use zvf_build::coarsen::{CoarsenError, SparsityError};
#[cfg(feature = "write")]
use zvf_build::{BuildError, edit::EditError};
use zvf_catalog::CatalogError;
use zvf_format::{
    fragment::FragmentIndexError, manifest::ManifestError, open_rows::OpenRowsError,
    vlen::VlenFrameError,
};
use zvf_model::{
    detection::GenerationError,
    error_kind::ErrorKind,
    fetch::FetchProblem,
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

use crate::{state_error::StateError, task_plan_error::TaskPlanError};

/// The cause of a failed operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The address cannot be opened.
    #[error("{0}")]
    Open(#[source] OpenError),
    /// The state of the store does not allow the operation.
    #[error("{0}")]
    State(#[from] StateError),
    /// A store before 0.9 that cannot be listed.
    #[error(
        "{address} cannot list its contents, and only stores of format 0.9 open without a listing; \
         allow listing, open a copy in a folder or zip file, or migrate it to 0.9"
    )]
    Unlistable {
        /// The address.
        address: String,
        /// The cause.
        source: ListError,
    },
    /// A store to count that cannot be listed.
    #[error(
        "{address} cannot list its contents, which counting requires; \
         allow listing, or count a copy in a folder or zip file"
    )]
    Uncountable {
        /// The address.
        address: String,
        /// The cause.
        source: ListError,
    },
    /// The store belongs to no supported generation.
    #[error("{0}")]
    Generation(#[from] GenerationError),
    /// Metadata is invalid.
    #[error("{0}")]
    Metadata(#[from] MetadataError),
    /// The cells of an array cannot be decoded.
    #[error("{node}: its cells cannot be read")]
    Array {
        /// The array.
        node: Key,
        /// The cause.
        source: CellArrayError,
    },
    /// A listed chunk lies outside the array.
    #[error("{node}: a listed chunk lies outside the array")]
    Index {
        /// The array.
        node: Key,
        /// The cause.
        source: IndexError,
    },
    /// The cell of a listed chunk is missing.
    #[error("{node}: chunk {cell} is listed, but missing")]
    MissingCell {
        /// The array.
        node: Key,
        /// The chunk.
        cell: String,
    },
    /// An array does not hold one byte string per chunk.
    #[error("{node}: not an array of one byte string per chunk")]
    NoCells {
        /// The array.
        node: Key,
    },
    /// A file is shorter or longer than its length field.
    #[error("{key}: has {bytes} bytes, but starts with another length; it is truncated or damaged")]
    CutCell {
        /// The file.
        key: Key,
        /// Its size.
        bytes: u64,
    },
    /// A cell is not a whole number of rows.
    #[error(
        "{node}: a chunk has {bytes} bytes, which is not a whole number of rows of {row} bytes"
    )]
    Rows {
        /// The array.
        node: Key,
        /// Bytes of the cell.
        bytes: u64,
        /// Bytes of a row.
        row: u64,
    },
    /// A fragment index is invalid.
    #[error("{node}: not a fragment index")]
    Fragments {
        /// The array.
        node: Key,
        /// The cause.
        source: FragmentIndexError,
    },
    /// A node has files but no metadata.
    #[error("{node}/zarr.json is missing, but the folder has other files")]
    MissingNode {
        /// The node.
        node: Key,
    },
    /// A required array is missing.
    #[error("{node} is missing")]
    MissingArray {
        /// The array.
        node: Key,
    },
    /// Fragments reach past the end of their chunk.
    #[error("{node}: refers to {rows} rows of a chunk that has {capacity}")]
    NoRoom {
        /// The fragment index.
        node: Key,
        /// Rows it reaches.
        rows: u64,
        /// Capacity of a chunk in rows.
        capacity: u64,
    },
    /// The numbers of manifests and objects differ.
    #[error("{node}: has {manifests} manifests, but {objects} objects")]
    Manifests {
        /// The array.
        node: Key,
        /// Elements it has.
        manifests: u64,
        /// Objects that the index declares.
        objects: u64,
    },
    /// An array has more chunks than the limit.
    #[error("{node}: has {cells} chunks, which exceeds the limit")]
    TooManyCells {
        /// The array.
        node: Key,
        /// Its chunks.
        cells: u64,
    },
    /// The offsets of manifests do not fit their data.
    #[error("{node}: its offsets do not fit its data")]
    OpenRows {
        /// The array.
        node: Key,
        /// The cause.
        source: OpenRowsError,
    },
    /// A manifest is invalid.
    #[error("{node}: an element is not a manifest")]
    Manifest {
        /// The array.
        node: Key,
        /// The cause.
        source: ManifestError,
    },
    /// An array is larger than the memory budget.
    #[error(
        "{node}: has {bytes} bytes, but the memory budget is {budget}; raise it to read this store"
    )]
    OverBudget {
        /// The array.
        node: Key,
        /// Its size.
        bytes: u64,
        /// The budget.
        budget: u64,
    },
    /// A chunk of manifests is not a frame.
    #[error("{node}: a chunk is not a frame of byte strings")]
    Frame {
        /// The array.
        node: Key,
        /// The cause.
        source: VlenFrameError,
    },
    /// A name in the store cannot be part of a key.
    #[error("{name:?} in the store cannot be part of a key")]
    Name {
        /// The name.
        name: String,
        /// The cause.
        source: KeyError,
    },
    /// A level cannot be read.
    #[error("{0}")]
    Catalog(#[from] CatalogError),
    /// A query fails.
    #[error("{0}")]
    Query(#[source] QueryError),
    /// An object cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// Children cannot be listed.
    #[error("{0}")]
    List(#[from] ListError),
    /// A cell cannot be read.
    #[error("{0}")]
    Cell(#[source] CellError),
    /// The geometry or the design is rejected.
    #[cfg(feature = "write")]
    #[error("{0}")]
    Build(#[from] BuildError),
    /// Coarser levels cannot be built.
    #[error("no coarser level can be built: {why}")]
    NoPyramid {
        /// The cause.
        why: &'static str,
    },
    /// A rule names an attribute that does not exist.
    #[error("vertices, fragments and links have no attribute {name}; they have {known}")]
    PyramidAttribute {
        /// Its name.
        name: String,
        /// Existing names.
        known: String,
    },
    /// Chunks of a level would not be a whole number of its bins.
    #[error(
        "level {level}: its chunks are not a whole number of its bins or cells; choose cells that \
         divide the chunks"
    )]
    PyramidBins {
        /// The level.
        level: LevelId,
        /// The cause.
        source: BinsError,
    },
    /// The requested sparsity keeps no object, or more objects than exist.
    #[cfg(feature = "pyramid")]
    #[error("{0}")]
    Sparsity(#[from] SparsityError),
    /// The parts of the finer level do not fit together.
    #[cfg(feature = "pyramid")]
    #[error("{0}")]
    Coarsen(#[from] CoarsenError),
    /// An object cannot be written.
    #[error("{0}")]
    Write(#[from] WriteError),
    /// A cell cannot be encoded.
    #[error("{key} cannot be encoded")]
    Encode {
        /// The object.
        key: Key,
        /// The cause.
        source: EncodeError,
    },
    /// The work stopped because the program is ending, or because other work failed.
    #[error("the work was interrupted")]
    Interrupted,
    /// A store cannot be created.
    #[error("{address} cannot be created")]
    Create {
        /// The address.
        address: String,
        /// The cause.
        source: CreateError,
    },
    /// A transaction cannot continue.
    #[error("{0}")]
    Transaction(#[from] TransactionError),
    /// A transaction was not committed, or not applied in full.
    #[error("{0}")]
    Commit(#[from] CommitError),
    /// The change does not fit the level.
    #[cfg(feature = "write")]
    #[error("{0}")]
    Edit(#[from] EditError),
    /// A level holds a part of its content, so that a change of it would be computed from a part.
    #[error(
        "{level}: the level is additive, and coarser levels hold the rest of its content; build \
         complete levels with zvf pyramid --overwrite, or write the result of a query to a new \
         store"
    )]
    AdditiveLevel {
        /// The level.
        level: Key,
    },
    /// An attribute cannot be written.
    #[error("{name}: {why}")]
    Attribute {
        /// The attribute, or the array it is computed from.
        name: String,
        /// The cause.
        why: &'static str,
    },
    /// A node is not JSON.
    #[error("{key} is not JSON")]
    Json {
        /// The node.
        key: Key,
        /// The cause.
        source: serde_json::Error,
    },
    /// A query result holds rows that geometry cannot express.
    #[error("{what} cannot be written: {why}")]
    NotGeometry {
        /// The rows.
        what: String,
        /// The cause.
        why: &'static str,
    },
    /// The check of the expected size stopped the creation.
    #[error("{0}")]
    Declined(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// Geometry cannot be read.
    #[error("the geometry cannot be read")]
    Source(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// A plan of tasks cannot be used.
    #[error("{address}")]
    Plan {
        /// The plan, or the store that it is for.
        address: String,
        /// The problem.
        source: TaskPlanError,
    },
    /// Parts cannot be kept between two passes.
    #[error("{path} cannot hold the data that does not fit in memory")]
    Scratch {
        /// The file or folder.
        path: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The runtime of `zvf::blocking` cannot start.
    #[error("the runtime for blocking operations cannot start")]
    Runtime(#[source] std::io::Error),
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NotFound(address) => Self::State(StateError::NoStore {
                address,
                exists: false,
            }),
            error => Self::Open(error),
        }
    }
}

/// An error of a level is the same in a query and elsewhere.
impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Catalog(error) => Self::Catalog(error),
            error => Self::Query(error),
        }
    }
}

impl From<CellError> for Failure {
    fn from(error: CellError) -> Self {
        match error {
            CellError::Read(error) => Self::Read(error),
            CellError::Interrupted { .. } => Self::Interrupted,
            error => Self::Cell(error),
        }
    }
}

impl Failure {
    /// Returns the failure of a source of geometry, whose columns may disagree.
    #[cfg(feature = "write")]
    pub fn of_source(error: Box<dyn core::error::Error + Send + Sync>) -> Self {
        let error = error.downcast().map(|error| Self::Build(*error));
        error.unwrap_or_else(Self::Source)
    }

    /// Returns the class of the failure. A new variant must be assigned to a class here.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Open(error) => error.kind(),
            Self::State(error) => error.kind(),
            Self::Metadata(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Query(error) => error.kind(),
            Self::Read(error) => error.kind(),
            Self::List(error) => error.kind(),
            Self::Cell(error) => error.kind(),
            Self::Array { source, .. } => source.kind(),
            Self::Write(error) => error.kind(),
            Self::Create { source, .. } => source.kind(),
            Self::Transaction(error) => error.kind(),
            Self::Commit(error) => error.kind(),
            Self::Plan { source, .. } => source.kind(),
            Self::Index { .. }
            | Self::MissingCell { .. }
            | Self::NoCells { .. }
            | Self::CutCell { .. }
            | Self::Rows { .. }
            | Self::Fragments { .. }
            | Self::MissingNode { .. }
            | Self::MissingArray { .. }
            | Self::NoRoom { .. }
            | Self::Manifests { .. }
            | Self::TooManyCells { .. }
            | Self::OpenRows { .. }
            | Self::Manifest { .. }
            | Self::Frame { .. }
            | Self::Name { .. }
            | Self::Json { .. } => ErrorKind::Damaged,
            Self::Generation(_)
            | Self::Unlistable { .. }
            | Self::Uncountable { .. }
            | Self::AdditiveLevel { .. }
            | Self::Encode { .. } => ErrorKind::Unsupported,
            Self::OverBudget { .. } => ErrorKind::OverBudget,
            #[cfg(feature = "write")]
            Self::Edit(EditError::Damaged { .. } | EditError::Missing { .. }) => ErrorKind::Damaged,
            #[cfg(feature = "write")]
            Self::Build(_) | Self::Edit(_) => ErrorKind::InvalidInput,
            #[cfg(feature = "pyramid")]
            Self::Sparsity(_) | Self::Coarsen(_) => ErrorKind::InvalidInput,
            Self::NoPyramid { .. }
            | Self::PyramidAttribute { .. }
            | Self::PyramidBins { .. }
            | Self::Attribute { .. }
            | Self::NotGeometry { .. } => ErrorKind::InvalidInput,
            Self::Interrupted | Self::Declined(_) | Self::Source(_) => ErrorKind::Interrupted,
            Self::Scratch { .. } | Self::Runtime(_) => ErrorKind::Unavailable,
        }
    }

    /// Returns whether the same operation may succeed later.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::State(StateError::Changed { .. })
            | Self::Commit(CommitError::Conflict { .. }) => true,
            Self::Read(error) => error.is_transient(),
            Self::List(error) => error.is_transient(),
            Self::Catalog(error) => is_transient_read(error),
            Self::Write(error) => error.is_transient(),
            Self::Transaction(error)
            | Self::Create {
                source: CreateError::Failed(error),
                ..
            }
            | Self::Commit(CommitError::Failed(error)) => error.is_transient(),
            _ => false,
        }
    }

    /// Returns the array, object or file that the failure is about, if it is known.
    pub(crate) fn key(&self) -> Option<&Key> {
        match self {
            Self::Array { node, .. }
            | Self::Index { node, .. }
            | Self::MissingCell { node, .. }
            | Self::NoCells { node }
            | Self::Rows { node, .. }
            | Self::Fragments { node, .. }
            | Self::MissingNode { node }
            | Self::MissingArray { node }
            | Self::NoRoom { node, .. }
            | Self::Manifests { node, .. }
            | Self::TooManyCells { node, .. }
            | Self::OpenRows { node, .. }
            | Self::Manifest { node, .. }
            | Self::OverBudget { node, .. }
            | Self::Frame { node, .. } => Some(node),
            Self::CutCell { key, .. } | Self::Encode { key, .. } | Self::Json { key, .. } => {
                Some(key)
            }
            Self::AdditiveLevel { level } => Some(level),
            Self::Metadata(error) => Some(&error.key),
            Self::Read(error) => Some(error.key()),
            Self::Cell(error) => Some(error.key()),
            Self::Write(error) => Some(error.key()),
            Self::Catalog(CatalogError::Damaged(damage)) => Some(&damage.key),
            Self::Catalog(CatalogError::Fetch(error)) => Some(&error.key),
            Self::Catalog(CatalogError::Metadata(error)) => Some(&error.key),
            #[cfg(feature = "write")]
            Self::Edit(error) => error.node(),
            _ => None,
        }
    }

    /// Returns whether the store cannot be listed.
    pub(crate) fn is_unlistable(&self) -> bool {
        match self {
            Self::List(error) => matches!(error, ListError::Unlistable { .. }),
            Self::Catalog(CatalogError::Fetch(error)) => error.problem == FetchProblem::Unlistable,
            _ => false,
        }
    }

    /// Returns the error of opening a store that takes a listing.
    pub(crate) fn while_opening(self, address: String) -> Self {
        match self {
            missing @ Self::List(ListError::NoBucket { .. }) => missing,
            Self::List(source) => Self::Unlistable { address, source },
            failure => failure,
        }
    }

    /// Returns whether the store was changed while it was read.
    pub(crate) fn is_changed(&self) -> bool {
        match self {
            Self::State(StateError::Changed { .. }) => true,
            Self::Catalog(CatalogError::Fetch(error)) => error.problem == FetchProblem::Changed,
            _ => false,
        }
    }
}

fn is_transient_read(error: &CatalogError) -> bool {
    let mut source = core::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<ListError>() {
            return error.is_transient();
        }
        // Merged reads return shared copies of one error.
        let read = cause.downcast_ref::<ReadError>();
        let cell = cause.downcast_ref::<CellError>();
        let read = read.or(match cell {
            Some(CellError::Read(error)) => Some(error),
            _ => None,
        });
        if let Some(error) = read {
            return error.is_transient();
        }
        source = cause.source();
    }
    false
}
