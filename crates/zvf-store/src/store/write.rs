//! Puts, deletes and renames of objects.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use object_store::{Error as Failure, ObjectStore, ObjectStoreExt, PutMode, path::Path};
use zvf_model::key::Key;

use super::{
    Store,
    file_write::{WriteGuard, WriteMode},
};
use crate::{
    backend::{self, FailureKind, gave_up_early, is_below_file, status},
    io::{ObjectVersion, Precondition, WriteError},
    threads::run_to_end,
};

impl Store {
    /// Puts objects concurrently, replacing existing ones.
    ///
    /// Each object appears whole or not at all. When this fails, some of them may exist.
    ///
    /// # Errors
    ///
    /// The first [`WriteError`].
    pub async fn put_many(&self, objects: Vec<(Key, Bytes)>) -> Result<(), WriteError> {
        self.put_all(objects, WriteMode::Atomic, None).await
    }

    /// Puts objects that no reader looks up before another object is put. A process that dies may
    /// leave part of one. Threads that write files hold `guard` until they end.
    pub(crate) async fn put_many_non_atomic(
        &self,
        objects: Vec<(Key, Bytes)>,
        guard: Option<WriteGuard>,
    ) -> Result<(), WriteError> {
        self.put_all(objects, WriteMode::Direct, guard).await
    }

    async fn put_all(
        &self,
        objects: Vec<(Key, Bytes)>,
        mode: WriteMode,
        guard: Option<WriteGuard>,
    ) -> Result<(), WriteError> {
        let objects = self.put_files(objects, mode, guard.as_ref()).await?;
        let Some(guard) = guard.filter(|_| !objects.is_empty()) else {
            return self.put_objects(objects).await;
        };
        let store = self.clone();
        let put = run_to_end(async move {
            let put = store.put_objects(objects).await;
            drop(guard);
            put
        });
        put.await.unwrap_or_else(|error| {
            let (key, source) = (Key::root(), Box::new(error));
            Err(WriteError::Io { key, source })
        })
    }

    async fn put_objects(&self, objects: Vec<(Key, Bytes)>) -> Result<(), WriteError> {
        let puts = objects.into_iter().map(|(key, bytes)| async move {
            self.put_if(&key, bytes, &Precondition::None)
                .await
                .map(drop)
        });
        self.run_concurrently(puts).await
    }

    /// Puts an object if none exists at the key, and returns whether it did. Of several concurrent
    /// callers, one succeeds.
    ///
    /// When a request is retried because its response was lost, an object put by the first attempt
    /// counts as existing.
    ///
    /// # Errors
    ///
    /// [`WriteError`].
    pub async fn put_if_absent(&self, key: Key, bytes: Bytes) -> Result<bool, WriteError> {
        let put = self.put_if(&key, bytes, &Precondition::Absent).await?;
        Ok(put.is_some())
    }

    /// Deletes objects concurrently. An absent object is not an error.
    ///
    /// # Errors
    ///
    /// The first [`WriteError`].
    pub async fn delete_many(&self, keys: Vec<Key>) -> Result<(), WriteError> {
        let deletes = keys.iter().map(|key| self.delete_unsynced(key));
        self.run_concurrently(deletes).await?;
        self.sync_folders_of(&keys).await
    }

    /// Runs futures concurrently, up to the limit of the store, until the first error.
    ///
    /// The futures are collected first, so that the iterator, which may not be `Send`, is not held
    /// across an await.
    pub(crate) fn run_concurrently<E, T: Future<Output = Result<(), E>>>(
        &self,
        futures: impl Iterator<Item = T>,
    ) -> impl Future<Output = Result<(), E>> {
        run_all(futures.collect(), self.concurrency())
    }

    /// Puts an object if `precondition` holds. Returns its new version, or `None` when the precondition
    /// does not hold.
    pub(crate) async fn put_if(
        &self,
        key: &Key,
        bytes: Bytes,
        precondition: &Precondition,
    ) -> Result<Option<ObjectVersion>, WriteError> {
        let (objects, path) = self.writable(key)?;
        let (operation, mode) = match precondition {
            Precondition::None => ("put", PutMode::Overwrite),
            Precondition::Absent => ("put-new", PutMode::Create),
            Precondition::Matches(tag) => ("put-over", PutMode::Update(tag.clone().into())),
        };
        self.write_hook().call(operation, key);
        self.recorder().write(bytes.len());
        let put = || {
            let options = mode.clone().into();
            objects.put_opts(&path, bytes.clone().into(), options)
        };
        let outcome = match self.retry_policy().run(put, gave_up_early).await {
            Ok(put) => Ok(Some(put.into())),
            // S3 responds to a conditional put over a deleted object with "not found", below.
            Err(
                Failure::AlreadyExists { .. }
                | Failure::Precondition { .. }
                | Failure::NotModified { .. },
            ) if *precondition != Precondition::None => Ok(None),
            Err(Failure::NotFound { .. }) if matches!(precondition, Precondition::Matches(_)) => {
                Ok(None)
            }
            Err(failure @ (Failure::NotImplemented { .. } | Failure::NotSupported { .. }))
                if *precondition != Precondition::None =>
            {
                Err(WriteError::Unconditional {
                    key: key.clone(),
                    source: Box::new(failure),
                })
            }
            // S3 responds with 501 to a condition header that it does not implement.
            Err(failure)
                if *precondition != Precondition::None && status(&failure) == Some(501) =>
            {
                Err(WriteError::Unconditional {
                    key: key.clone(),
                    source: Box::new(failure),
                })
            }
            Err(failure) => Err(self.write_error(key, failure)),
        };
        self.write_hook().call(operation, key);
        outcome
    }

    /// Checks that the store refuses a put over an object of another version.
    ///
    /// Some servers ignore the condition and put regardless. The check is made once, by putting the
    /// bytes that `key` already has.
    pub(crate) async fn check_conditional_puts(
        &self,
        key: &Key,
        bytes: Bytes,
    ) -> Result<(), WriteError> {
        let compares = &self.capabilities().compares_versions;
        if compares.load(Ordering::Relaxed) {
            return Ok(());
        }
        // No object has this version: Google counts generations in microseconds.
        let (e_tag, version) = (Some("\"zvf\"".to_owned()), Some("1".to_owned()));
        let outdated = Precondition::Matches(ObjectVersion { e_tag, version });
        self.check_refuses(key, bytes, &outdated).await?;
        compares.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that the store refuses a put whose precondition does not hold.
    pub(crate) async fn check_refuses(
        &self,
        key: &Key,
        bytes: Bytes,
        precondition: &Precondition,
    ) -> Result<(), WriteError> {
        match self.put_if(key, bytes, precondition).await? {
            None => Ok(()),
            Some(_) => Err(WriteError::Unconditional {
                key: key.clone(),
                source: "the store accepted a put whose precondition did not hold".into(),
            }),
        }
    }

    /// Deletes an object, which may be absent.
    pub(crate) async fn delete(&self, key: &Key) -> Result<(), WriteError> {
        self.delete_unsynced(key).await?;
        self.sync_folders_of(core::slice::from_ref(key)).await
    }

    async fn delete_unsynced(&self, key: &Key) -> Result<(), WriteError> {
        let (objects, path) = self.writable(key)?;
        self.write_hook().call("delete", key);
        self.recorder().delete();
        let delete = || objects.delete(&path);
        let outcome = match self.retry_policy().run(delete, gave_up_early).await {
            Err(Failure::NotFound { .. }) => Ok(()),
            Err(failure) if is_below_file(&failure) => Ok(()),
            // A folder is not an object. It is in place of the file when a transaction that
            // deleted the file and put objects below its name is applied a second time.
            Err(_) if self.is_folder(key) => Ok(()),
            outcome => outcome.map_err(|failure| self.write_error(key, failure)),
        };
        self.write_hook().call("delete", key);
        outcome
    }

    /// Returns whether a folder exists on disk at `key`.
    fn is_folder(&self, key: &Key) -> bool {
        let path = self.folder().map(|root| root.join(key.as_str()));
        path.is_some_and(|path| path.is_dir())
    }

    /// Moves an object over another. Returns whether it existed.
    pub(crate) async fn rename(&self, from: &Key, to: &Key) -> Result<bool, WriteError> {
        let (objects, source) = self.writable(from)?;
        let (_, target) = self.writable(to)?;
        self.write_hook().call("rename", to);
        self.recorder().write(0);
        let outcome = match objects.rename(&source, &target).await {
            Ok(()) => Ok(true),
            Err(Failure::NotFound { .. }) => Ok(false),
            Err(failure) => Err(self.write_error(to, failure)),
        };
        self.write_hook().call("rename", to);
        outcome
    }

    /// Checks that the store is not read-only.
    pub(crate) fn check_writable(&self) -> Result<(), WriteError> {
        self.writable(&Key::root()).map(drop)
    }

    /// Returns the object store to write to, and the path of `key` in it.
    fn writable(&self, key: &Key) -> Result<(&Arc<dyn ObjectStore>, Path), WriteError> {
        let objects = self
            .objects()
            .filter(|_| !self.is_web())
            .ok_or_else(|| WriteError::ReadOnly { key: key.clone() })?;
        let path = Path::parse(key).map_err(|source| self.write_error(key, source.into()))?;
        Ok((objects, self.root().parts().chain(path.parts()).collect()))
    }

    /// Converts an error of `object_store`.
    fn write_error(&self, key: &Key, failure: Failure) -> WriteError {
        let key = key.clone();
        match backend::write_failure(&self.inner.name, failure) {
            (FailureKind::Unauthenticated, source) => WriteError::Unauthenticated { key, source },
            (FailureKind::Forbidden, source) => WriteError::Forbidden { key, source },
            (FailureKind::Throttled, source) => WriteError::Throttled { key, source },
            (FailureKind::Unavailable, source) => WriteError::Unavailable { key, source },
            (FailureKind::Other, source) => WriteError::Io { key, source },
        }
    }
}

/// Runs futures, at most `at_once` at a time. After a failure no future starts, and the first error
/// is returned when the running ones have ended: a thread that writes files does not stop when its
/// future is dropped, and would write behind the back of a caller that cleans up.
async fn run_all<E, T: Future<Output = Result<(), E>>>(
    futures: Vec<T>,
    at_once: usize,
) -> Result<(), E> {
    let has_failed = AtomicBool::new(false);
    let futures = futures
        .into_iter()
        .take_while(|_| !has_failed.load(Ordering::Relaxed));
    let mut running = stream::iter(futures).buffer_unordered(at_once);
    let mut all = Ok(());
    while let Some(ended) = running.next().await {
        if ended.is_err() && all.is_ok() {
            has_failed.store(true, Ordering::Relaxed);
            all = ended;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test]
    async fn a_failure_is_returned_when_nothing_runs_any_more() {
        let (started, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (to_start, to_end) = (&started, &ended);
        let put = |number: usize| async move {
            to_start.fetch_add(1, Ordering::Relaxed);
            if number == 0 {
                return Err(number);
            }
            for _ in 0..number {
                tokio::task::yield_now().await;
            }
            to_end.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let all = run_all((0..10).map(put).collect(), 4).await;
        assert_eq!(all, Err(0));
        assert_eq!((started.into_inner(), ended.into_inner()), (4, 3));
    }
}
