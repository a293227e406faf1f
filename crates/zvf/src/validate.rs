//! Validation of stores in place.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use zvf_dataset::{Error, Failure, Location, Progress, StateError, nodes};
use zvf_model::{
    error_chain::error_chain,
    fetch::{AnyArray, BoxFuture, CellOptions, CellRequest, Fetch, FetchError, Fetched, Port},
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{CellReader, OpenOptions, Read, Store};
use zvf_validate::{Depth, Finding, ValidateOptions, ValidationReport, rules::consistency};

/// Checks a store, even one that [`Dataset::open`](zvf_dataset::Dataset::open) rejects. A sealed store is
/// also compared with its inventory.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::ValidateOptions;
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
/// let report = zvf::validate(address, &ValidateOptions::default()).await?;
/// for finding in &report.findings {
///     println!("{}: {}", finding.rule.code, finding.message);
/// }
/// assert!(report.is_ok());
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error`] if the address cannot be opened, or the journal of a committed transaction cannot be
/// read, or if others change the store each time it is checked. Faults of the store are in the report.
pub async fn validate(
    location: impl Into<Location>,
    options: &ValidateOptions,
) -> Result<ValidationReport, Error> {
    let store = location.into().open(&OpenOptions::default())?;
    Ok(validate_store(store, options, None).await?)
}

/// Checks a store, as [`validate`], and calls `progress` with the number of bytes read, and of bytes
/// to read. The latter is an estimate: the size of the store, once for each level of checks that reads
/// cells.
///
/// # Errors
///
/// See [`validate`].
pub async fn validate_with_progress(
    location: impl Into<Location>,
    options: &ValidateOptions,
    progress: Progress,
) -> Result<ValidationReport, Error> {
    let store = location.into().open(&OpenOptions::default())?;
    Ok(validate_store(store, options, Some(progress)).await?)
}

/// Number of times that a store is checked that others change meanwhile.
const ATTEMPTS: usize = 3;

pub(crate) fn validate_store(
    store: Store,
    options: &ValidateOptions,
    progress: Option<Progress>,
) -> BoxFuture<'_, Result<ValidationReport, Failure>> {
    Box::pin(async move { Ok(validate_state(&store, options, progress).await?.0) })
}

/// Checks one committed state of a store. Returns the report, and the root's `zarr.json` of this state.
///
/// # Errors
///
/// [`StateError::Changed`] if others change the store during each attempt: a part of each state may
/// differ from all states.
pub(crate) async fn validate_state(
    store: &Store,
    options: &ValidateOptions,
    progress: Option<Progress>,
) -> Result<(ValidationReport, Option<Bytes>), Failure> {
    for _ in 0..ATTEMPTS {
        let (view, root) = committed_state(store.clone(), options.depth).await?;
        let cells = CellReader::new(view.clone());
        let mut report = match &progress {
            None => zvf_validate::validate(cells.port(), options).await,
            Some(progress) => {
                let counted = CountedReads::new(cells, options.depth, progress.clone());
                let report = zvf_validate::validate(Port::new(&counted), options).await;
                counted.finish();
                report
            }
        };
        add_seal_differences(&view, root.as_ref(), options, &mut report).await;
        if read_root(store).await? == root {
            return Ok((report, root));
        }
    }
    Err(Failure::State(StateError::Changed {
        address: store.to_string(),
    }))
}

/// Returns the last committed state of a store, and the root's `zarr.json`. For checks of cells of a
/// sealed store, entries of its inventory are kept.
pub(crate) async fn committed_state(
    store: Store,
    depth: Depth,
) -> Result<(Store, Option<Bytes>), Failure> {
    let root = read_root(&store).await?;
    let store = match &root {
        Some(bytes) => store.committed_view(bytes).await?,
        None => store,
    };
    let store = match &root {
        Some(root) if depth >= Depth::Consistency && Store::is_sealed_by(root) => {
            store.keeping_entries()
        }
        _ => store,
    };
    Ok((store, root))
}

/// Reads the root's `zarr.json`.
pub(crate) async fn read_root(store: &Store) -> Result<Option<Bytes>, Failure> {
    let root = nodes::metadata(&Key::root())?;
    Ok(store.read_one(Read::full(root)).await?)
}

/// Compares a sealed store with its inventory.
pub(crate) async fn add_seal_differences(
    store: &Store,
    root: Option<&Bytes>,
    options: &ValidateOptions,
    report: &mut ValidationReport,
) {
    let Some(root) = root.filter(|_| options.depth >= Depth::Consistency) else {
        return;
    };
    let rule = &consistency::INVENTORY;
    let found: Vec<Finding> = match store.seal_differences(root).await {
        Ok(found) => found
            .iter()
            .map(|(key, source)| Finding::new(rule, key.as_str(), source.to_string()))
            .collect(),
        Err(error) => {
            let rule = &consistency::CELL_NOT_CHECKED;
            vec![Finding::new(rule, "", error_chain(&error))]
        }
    };
    report.extend(found, options.max_findings_per_rule);
}

/// A port that reports the number of bytes read.
struct CountedReads {
    cells: CellReader,
    progress: Progress,
    /// Number of levels of checks that read all cells.
    passes: u64,
    /// Number of bytes read before.
    before: u64,
    /// Expected number of bytes.
    total: AtomicU64,
}

impl CountedReads {
    fn new(cells: CellReader, depth: Depth, progress: Progress) -> Self {
        let before = cells.store().activity().bytes_read;
        let passes = if depth >= Depth::Semantics { 2 } else { 1 };
        Self {
            cells,
            progress,
            passes,
            before,
            total: AtomicU64::new(0),
        }
    }

    fn report(&self) {
        let total = self.total.load(Ordering::Relaxed);
        let read = self.cells.store().activity().bytes_read;
        (self.progress)(read.saturating_sub(self.before).min(total), total);
    }

    fn finish(&self) {
        let total = self.total.load(Ordering::Relaxed);
        (self.progress)(total, total);
    }
}

impl Fetch for CountedReads {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.cells.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.cells.nodes(keys).await
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let found = self.cells.cells(wanted, options).await;
        self.report();
        found
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.cells.children(key).await
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.cells.sizes(keys).await
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        let files = self.cells.files(prefix).await?;
        let bytes = files
            .iter()
            .map(|(_, bytes)| *bytes)
            .fold(0, u64::saturating_add);
        // The listing of the whole store comes first.
        let total = bytes.saturating_mul(self.passes);
        self.total.fetch_max(total, Ordering::Relaxed);
        self.report();
        Ok(files)
    }

    fn confirm_now(&self) -> Option<Result<(), FetchError>> {
        self.cells.confirm_now()
    }

    async fn confirm(&self) -> Result<(), FetchError> {
        self.cells.confirm().await
    }

    fn budget(&self) -> u64 {
        self.cells.budget()
    }

    fn at_once(&self) -> u64 {
        self.cells.at_once()
    }
}
