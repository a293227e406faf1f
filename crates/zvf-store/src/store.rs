//! An open store: reads, writes and listings of its objects.

use core::{fmt, time::Duration};
use std::{
    collections::BTreeMap,
    path::{Path as FilePath, PathBuf},
    sync::{Arc, Mutex, OnceLock, atomic::AtomicBool},
};

use object_store::{ObjectStore, path::Path};
use zvf_model::{
    key::Key,
    node_copy::{CopiedNode, NodeCopy},
};

use crate::{
    backend::{Address, Backend, BackendProfile, Scheme, SimulatedNetwork},
    io::{ListedFile, MergeLimits, MergePolicy, Read, RetryPolicy},
    seal::{Entries, Inventory, RowTable},
};

mod activity;
mod enclosing;
mod fetch;
mod file_read;
mod file_write;
#[cfg(feature = "object_store")]
mod from_object_store;
mod list;
mod list_folder;
mod machine_memory;
mod options;
mod overlay;
mod range_support;
mod read;
mod regular_file;
mod sealed;
mod sizes;
mod snapshot;
mod stat;
mod write;
mod write_hook;
#[cfg(feature = "zarrs")]
mod zarrs;

use activity::Recorder;
use range_support::RangeSupport;
use write_hook::WriteHook;

pub use activity::Activity;
pub use enclosing::enclosing_store;
pub use options::{Follow, OpenOptions};
pub use stat::ObjectStat;

pub(crate) use crate::io::{RESERVED_FOLDER, is_reserved};
pub(crate) use file_write::WriteGuard;
pub(crate) use list::ReservedFile;
pub(crate) use overlay::{Overlay, StagedObject};
pub(crate) use snapshot::{HeadComparison, SeenHead, Snapshot};

/// An open store: a folder, a bucket or memory, or, read-only, a web server or a zip file.
///
/// Cloning is cheap; clones share connections, counters and the request log.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// Objects to read from other keys while a committed transaction is being applied.
    overlay: Option<Arc<Overlay>>,
    /// Copy of the nodes from the root, which spares reading them.
    node_copy: Option<Arc<NodeCopy>>,
    uses_node_copy: bool,
    /// The state that this store is read at.
    snapshot: Option<Arc<Snapshot>>,
    /// The inventory that reads are checked against.
    seal: Option<Arc<Inventory>>,
    /// Facts from earlier reads, if they are kept.
    kept: Option<Arc<SeenObjects>>,
}

/// Facts from earlier reads that [`Store::seal_differences`] needs.
#[derive(Debug, Default)]
struct SeenObjects {
    /// Entries of the objects that were read whole.
    entries: Mutex<Entries>,
    /// The row tables of cells that were read whole, by their name in the inventory.
    tables: Mutex<BTreeMap<String, RowTable>>,
    /// The listing of the whole store.
    files: OnceLock<Vec<ListedFile>>,
}

/// Default of [`OpenOptions::settled_after`], above the error of clocks that buckets accept.
const SETTLED_AFTER: Duration = Duration::from_hours(1);

struct Inner {
    name: String,
    backend: Backend,
    root: Path,
    /// The folder on disk, if the store is one.
    folder: Option<PathBuf>,
    /// Sync files and folders to the disk.
    durable: bool,
    profile: BackendProfile,
    budget: u64,
    retry_policy: RetryPolicy,
    recorder: Recorder,
    capabilities: Capabilities,
    write_hook: WriteHook,
    simulated_network: Option<SimulatedNetwork>,
    /// See [`OpenOptions::settled_after`].
    settled_after: Duration,
    /// See [`OpenOptions::snapshots`].
    checks_head: bool,
    /// See [`OpenOptions::seal`].
    checks_seal: bool,
}

/// Capabilities of a server, known only from its responses.
#[derive(Debug, Default)]
pub(crate) struct Capabilities {
    pub(crate) lacks_suffixes: AtomicBool,
    ranges: RangeSupport,
    /// A put with an outdated version was refused.
    pub(crate) compares_versions: AtomicBool,
    /// A web server lists objects; empty until it had to be checked.
    pub(crate) lists: OnceLock<bool>,
}

impl Store {
    pub(crate) fn new(
        name: String,
        backend: Backend,
        root: Path,
        folder: Option<PathBuf>,
        profile: BackendProfile,
        options: &OpenOptions,
    ) -> Self {
        // With a simulated network the store behaves like a bucket, not like a folder.
        let (folder, profile) = match options.simulated_network {
            Some(_) => (None, BackendProfile::NETWORK),
            None => (folder, profile),
        };
        let inner = Inner {
            name,
            backend,
            root,
            folder,
            durable: options.durable,
            profile: BackendProfile {
                merge: MergePolicy {
                    limits: options.merge_limits.unwrap_or(profile.merge.limits),
                    // Explicit limits apply to every batch.
                    gaps: profile
                        .merge
                        .gaps
                        .filter(|_| options.merge_limits.is_none()),
                },
                concurrency: options.concurrency.unwrap_or(profile.concurrency).max(1),
                is_remote: profile.is_remote,
            },
            budget: options.budget,
            retry_policy: RetryPolicy {
                max_retries: options.retries,
                timeout: options.retry_timeout,
            },
            recorder: Recorder::new(options.record_requests),
            capabilities: Capabilities::default(),
            write_hook: options.write_hook.clone(),
            simulated_network: options.simulated_network,
            settled_after: options.settled_after.unwrap_or(SETTLED_AFTER),
            // Objects of a simulated network count as settled, unless a test sets another age.
            checks_head: options.snapshots
                && (options.simulated_network.is_none() || options.settled_after.is_some()),
            checks_seal: options.seal,
        };
        Self {
            inner: Arc::new(inner),
            overlay: None,
            node_copy: None,
            uses_node_copy: profile.is_remote && options.node_copy,
            snapshot: None,
            seal: None,
            kept: None,
        }
    }

    /// Returns this store with reads redirected by `overlay`.
    pub(crate) fn with_overlay(&self, overlay: Overlay) -> Self {
        Self {
            overlay: Some(Arc::new(overlay)),
            node_copy: None,
            ..self.clone()
        }
    }

    /// Returns this store without an overlay, a node copy, a snapshot or an inventory: objects are
    /// read from their keys.
    pub(crate) fn without_overlay(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            overlay: None,
            node_copy: None,
            uses_node_copy: self.uses_node_copy,
            snapshot: None,
            seal: None,
            kept: None,
        }
    }

    /// Returns whether to take nodes from the copy in the root: true for stores over the network,
    /// unless [`OpenOptions::node_copy`] is off. Elsewhere nodes are cheap to read.
    #[doc(hidden)]
    pub fn uses_node_copy(&self) -> bool {
        self.uses_node_copy
    }

    /// Returns this store without its node copy, so that every node is read. Writers need this.
    #[must_use]
    #[doc(hidden)]
    pub fn without_node_copy(&self) -> Self {
        Self {
            node_copy: None,
            uses_node_copy: false,
            ..self.clone()
        }
    }

    /// Returns this store with nodes taken from `copy` instead of read.
    #[must_use]
    #[doc(hidden)]
    pub fn with_node_copy(&self, copy: NodeCopy) -> Self {
        Self {
            node_copy: Some(Arc::new(copy)),
            ..self.clone()
        }
    }

    /// Returns what the node copy knows of a node, or `None` when the node has to be read.
    #[doc(hidden)]
    pub fn copied_node(&self, key: &Key) -> Option<CopiedNode> {
        let copy = self.node_copy.as_ref().filter(|_| !key.is_root())?;
        match copy.get(key) {
            CopiedNode::Separate => None,
            known => Some(known),
        }
    }

    /// Returns the names of the children of a node that are nodes or contain nodes, from the node
    /// copy, or `None` when they have to be listed.
    #[doc(hidden)]
    pub fn copied_children(&self, key: &Key) -> Option<Vec<String>> {
        let copy = self.node_copy.as_ref()?;
        (!copy.may_be_array(key)).then(|| copy.children(key))
    }

    /// Returns this store without an overlay or a node copy. The snapshot stays.
    pub(crate) fn without_view(&self) -> Self {
        Self {
            overlay: None,
            node_copy: None,
            seal: None,
            ..self.clone()
        }
    }

    /// Returns this store with its reads counted by `snapshot`.
    pub(crate) fn with_snapshot(&self, snapshot: Snapshot) -> Self {
        Self {
            snapshot: Some(Arc::new(snapshot)),
            ..self.clone()
        }
    }

    pub(crate) fn snapshot_state(&self) -> Option<&Arc<Snapshot>> {
        self.snapshot.as_ref()
    }

    /// Returns the age at which an object cannot be newer than the head; `None` if the head is
    /// compared after every read, which takes no request in a folder or in memory.
    pub(crate) fn settled_after(&self) -> Option<Duration> {
        (!self.is_near()).then_some(self.inner.settled_after)
    }

    /// Returns whether a request takes no round trip over a network, real or simulated.
    #[doc(hidden)]
    pub fn is_near(&self) -> bool {
        let is_near = self.folder().is_some() || self.inner.name == "memory:";
        is_near && self.inner.simulated_network.is_none()
    }

    fn checks_head(&self) -> bool {
        self.inner.checks_head
    }

    fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_deref()
    }

    pub(crate) fn folder(&self) -> Option<&FilePath> {
        self.inner.folder.as_deref()
    }

    fn is_durable(&self) -> bool {
        self.inner.durable
    }

    /// Returns the request counters since the store was opened.
    pub fn activity(&self) -> Activity {
        self.inner.recorder.activity()
    }

    /// Returns the read requests since the last call, in the order they were made, and clears the
    /// log. Empty unless [`OpenOptions::record_requests`] is on.
    pub fn take_request_log(&self) -> Vec<Read> {
        self.inner.recorder.take_log()
    }

    /// Returns the maximum number of bytes that one call may read.
    pub fn budget(&self) -> u64 {
        self.inner.budget
    }

    /// Returns the limits within which ranges are merged.
    #[doc(hidden)]
    pub fn merge_limits(&self) -> MergeLimits {
        self.inner.profile.merge.limits
    }

    fn merge_policy(&self) -> MergePolicy {
        self.inner.profile.merge
    }

    /// Waits as long as a response of `bytes` bytes takes over the simulated network, if any.
    async fn simulate_latency(&self, bytes: u64) {
        if let Some(network) = self.inner.simulated_network {
            network.wait(bytes).await;
        }
    }

    pub(crate) fn concurrency(&self) -> usize {
        self.inner.profile.concurrency
    }

    fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// Returns the object store, unless the store is a zip file.
    #[cfg_attr(
        not(feature = "zip"),
        expect(
            clippy::unnecessary_wraps,
            reason = "the signature does not depend on features"
        )
    )]
    pub(crate) fn objects(&self) -> Option<&Arc<dyn ObjectStore>> {
        match self.backend() {
            Backend::Objects(objects) => Some(objects),
            #[cfg(feature = "zip")]
            Backend::Zip(_) => None,
        }
    }

    fn root(&self) -> &Path {
        &self.inner.root
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.inner.retry_policy
    }

    /// Returns whether the store is a plain web server.
    fn is_web(&self) -> bool {
        let address = Address::parse(&self.inner.name);
        matches!(address, Ok(Address::Network(Scheme::Http, _)))
    }

    fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    fn write_hook(&self) -> &WriteHook {
        &self.inner.write_hook
    }

    fn capabilities(&self) -> &Capabilities {
        &self.inner.capabilities
    }
}

/// Writes the address with which the store was opened.
impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.name)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.name).finish()
    }
}
