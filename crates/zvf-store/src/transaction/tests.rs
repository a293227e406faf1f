//! Commits to simulated buckets that lose responses or ignore preconditions.

use core::fmt;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use futures_util::{FutureExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    memory::InMemory, path::Path,
};
use zvf_model::key::Key;

use super::{CommitError, CreateError, TransactionError};
use crate::{
    backend::{Backend, BackendProfile},
    io::{Read, WriteError},
    store::{OpenOptions, Store},
};

/// A fault in a conditional put.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    /// The bucket does not support preconditions and returns an error.
    Unknown,
    /// The bucket ignores preconditions and writes the object.
    Ignored,
    /// The put succeeds and is repeated; the response is that of the repetition.
    DoneTwice,
    /// The put succeeds, but its response is lost.
    DoneUnheard,
    /// The put is lost.
    Unheard,
    /// The put is lost, and another writer commits meanwhile.
    TakenOver,
}

#[derive(Debug)]
struct Bucket {
    memory: InMemory,
    flaw: Flaw,
    /// The object whose put has the fault.
    flawed: &'static str,
    /// True until the fault has occurred.
    armed: AtomicBool,
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

fn lost() -> Error {
    Error::Generic {
        store: "bucket",
        source: "Server returned error response, status code: 500".into(),
    }
}

#[async_trait::async_trait]
impl ObjectStore for Bucket {
    async fn put_opts(
        &self,
        at: &Path,
        body: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if self.flaw == Flaw::Ignored {
            return self.memory.put_opts(at, body, PutOptions::default()).await;
        }
        let conditional = options.mode != PutMode::Overwrite && at.as_ref() == self.flawed;
        if !conditional || !self.armed.swap(false, SeqCst) {
            return self.memory.put_opts(at, body, options).await;
        }
        match self.flaw {
            Flaw::Unknown => Err(Error::NotImplemented {
                operation: "a condition".into(),
                implementer: "bucket".into(),
            }),
            Flaw::Ignored => self.memory.put_opts(at, body, PutOptions::default()).await,
            Flaw::DoneTwice => {
                self.memory
                    .put_opts(at, body.clone(), options.clone())
                    .await?;
                self.memory.put_opts(at, body, options).await
            }
            Flaw::DoneUnheard => {
                self.memory.put_opts(at, body, options).await?;
                Err(lost())
            }
            Flaw::Unheard => Err(lost()),
            Flaw::TakenOver => {
                let root = r#"{"attributes": {"zvf": {"transaction": 1, "id": "ab"}}}"#;
                let log = r#"{"format": 1, "id": "ab", "touched": ["b"], "keys": ["b"]}"#;
                let log_at = Path::from(".zvf/log/1.json");
                let always = PutOptions::default();
                self.memory
                    .put_opts(at, root.into(), always.clone())
                    .await?;
                self.memory.put_opts(&log_at, log.into(), always).await?;
                Err(lost())
            }
        }
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.memory.get_opts(at, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.memory.put_multipart_opts(at, options).await
    }

    fn delete_stream(
        &self,
        at: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.memory.delete_stream(at)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.memory.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.memory.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.memory.copy_opts(from, to, options).await
    }
}

fn bucket(flaw: Flaw) -> Store {
    bucket_with(flaw, "zarr.json").0
}

fn bucket_with(flaw: Flaw, flawed: &'static str) -> (Store, Arc<Bucket>) {
    let bucket = Arc::new(Bucket {
        memory: InMemory::new(),
        flaw,
        flawed,
        armed: AtomicBool::new(true),
    });
    let objects: Arc<dyn ObjectStore> = Arc::<Bucket>::clone(&bucket);
    let backend = Backend::Objects(objects);
    let options = OpenOptions::default();
    let name = "bucket".to_owned();
    let store = Store::new(
        name,
        backend,
        Path::default(),
        None,
        BackendProfile::NETWORK,
        &options,
    );
    (store, bucket)
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

const ROOT: &[u8] = b"{}";

/// Commits a transaction that puts one object. Returns the result and the object read afterwards.
fn commit(flaw: Flaw) -> (core::result::Result<u64, CommitError>, Option<bytes::Bytes>) {
    let store = bucket(flaw);
    now(async {
        let root = vec![(key("zarr.json"), ROOT.into())];
        store.put_many(root).await.unwrap();
        let mut transaction = store.begin().await.unwrap();
        transaction.put(key("a"), "new".into()).await.unwrap();
        transaction.touch("a");
        let committed = transaction.commit(ROOT).await;
        if let Err(CommitError::Uncertain { .. }) = &committed {
            let again = transaction.commit(ROOT).await.unwrap_err();
            let over = matches!(again, CommitError::Failed(TransactionError::Finished));
            assert!(over, "{again:?}");
            // The journal and the object stay, because the put may still arrive.
            transaction.abort().await.unwrap();
            let staged = store.list_reserved(&key(".zvf")).await.unwrap();
            assert_eq!(staged.len(), 2, "{staged:?}");
        }
        let read = store.read_one(Read::full(key("a"))).await.unwrap();
        (committed.map(|committed| committed.transaction), read)
    })
}

#[test]
fn a_commit_with_a_lost_response_is_recognised() {
    for flaw in [Flaw::DoneTwice, Flaw::DoneUnheard] {
        let (committed, object) = commit(flaw);
        assert_eq!(committed.unwrap(), 1, "{flaw:?}");
        assert_eq!(object.unwrap(), "new", "{flaw:?}");
    }
}

#[test]
fn a_commit_that_may_still_arrive_is_uncertain() {
    let (committed, object) = commit(Flaw::Unheard);
    let error = committed.unwrap_err();
    assert!(
        matches!(error, CommitError::Uncertain { transaction: 1, .. }),
        "{error:?}"
    );
    assert_eq!(object, None);
}

#[test]
fn a_commit_that_can_no_longer_arrive_is_not_uncertain() {
    let (committed, object) = commit(Flaw::TakenOver);
    let error = committed.unwrap_err();
    let moved = matches!(
        error,
        CommitError::Outdated {
            base: 0,
            current: 1
        }
    );
    assert!(moved, "{error:?}");
    assert_eq!(object, None);
}

#[test]
fn a_bucket_without_preconditions_is_rejected() {
    for (flaw, at) in [
        (Flaw::Unknown, "zarr.json"),
        (Flaw::Ignored, "journal.json"),
    ] {
        let (committed, object) = commit(flaw);
        let error = committed.unwrap_err();
        let refused = matches!(
            &error,
            CommitError::Failed(TransactionError::Write(WriteError::Unconditional { key: k, .. }))
                if k.name() == Some(at)
        );
        assert!(refused, "{error:?}");
        assert_eq!(object, None);
    }
}

#[test]
fn a_creation_with_a_lost_response_is_recognised() {
    let create = |flaw| {
        now(async {
            let creation = bucket(flaw).begin_create().await?;
            creation.commit(ROOT).await
        })
    };
    create(Flaw::DoneTwice).unwrap();
    for flaw in [Flaw::Unknown, Flaw::Ignored] {
        let error = create(flaw).unwrap_err();
        let unconditional = matches!(
            error,
            CreateError::Failed(TransactionError::Write(WriteError::Unconditional { .. }))
        );
        assert!(unconditional, "{flaw:?}: {error:?}");
    }
}

#[test]
fn a_reservation_with_a_lost_response_is_recognised() {
    let (store, bucket) = bucket_with(Flaw::DoneTwice, ".zvf/creating");
    now(async {
        let creation = store.begin_create().await.unwrap();
        let id = creation.id().to_owned();
        bucket.armed.store(true, SeqCst);
        creation.suspend().await.unwrap();
        assert!(!bucket.armed.load(SeqCst));
        store.check_suspended(&id).await.unwrap();
        let other = store.begin_create().await.unwrap_err();
        assert!(matches!(other, CreateError::Leftovers), "{other:?}");
        store
            .resume_create(&id)
            .await
            .unwrap()
            .commit(ROOT)
            .await
            .unwrap();
    });
}
