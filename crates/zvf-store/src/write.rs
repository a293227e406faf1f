//! Putting and deleting objects.

use core::{error::Error, fmt};
use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{
    Error as Failure, ObjectStore, ObjectStoreExt, PutMode, PutResult, UpdateVersion, path::Path,
};
use zvf_model::key::Key;

use crate::{
    failure::{self, Kind, gave_up_early, is_below_a_file, status},
    store::Store,
    write_files::Appear,
};

/// Why an object cannot be put or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Nothing can be written to a web server or a zip file.
    #[error("{key}: the store can only be read")]
    ReadOnly {
        /// The object.
        key: Key,
    },
    /// The store puts without looking at what is there, so that two who write
    /// at once would overwrite each other.
    #[error("{key}: the store has no conditional puts, and cannot be written by several at a time")]
    Unconditional {
        /// The object.
        key: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store wants to know who asks.
    #[error("{key}: not authenticated")]
    Unauthenticated {
        /// The object.
        key: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Who asks may not write this.
    #[error("{key}: not permitted")]
    Forbidden {
        /// The object.
        key: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store asked to slow down and still did after the last retry.
    #[error("{key}: the store asks to slow down")]
    Throttled {
        /// The object.
        key: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store cannot be reached or does not work, after the last retry.
    #[error("{key}: the store is not available")]
    Unavailable {
        /// The object.
        key: Key,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Anything else.
    #[error("{key}: cannot be written")]
    Io {
        /// The object.
        key: Key,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl WriteError {
    /// The key of the object.
    pub fn key(&self) -> &Key {
        match self {
            Self::ReadOnly { key }
            | Self::Unconditional { key, .. }
            | Self::Unauthenticated { key, .. }
            | Self::Forbidden { key, .. }
            | Self::Throttled { key, .. }
            | Self::Unavailable { key, .. }
            | Self::Io { key, .. } => key,
        }
    }

    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }
}

/// What tells one state of an object from the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) e_tag: Option<String>,
    /// What Google's buckets compare instead.
    pub(crate) version: Option<String>,
}

impl Tag {
    /// Whether there is one: not all stores have tags.
    pub(crate) fn tells(&self) -> bool {
        self.e_tag.is_some() || self.version.is_some()
    }
}

/// What must be there for an object to be put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Always,
    Absent,
    Is(Tag),
}

impl Store {
    /// Puts objects, in place of what is there. Each appears whole or not at
    /// all; of several, some may be there when this fails.
    ///
    /// As many go side by side as requests may be.
    ///
    /// # Errors
    ///
    /// The first [`WriteError`].
    pub async fn put_many(&self, objects: Vec<(Key, Bytes)>) -> Result<(), WriteError> {
        self.put_all(objects, Appear::Whole).await
    }

    /// Puts objects that nobody looks at before something else is put: of those, a
    /// process that dies may leave half of one.
    pub(crate) async fn put_unseen(&self, objects: Vec<(Key, Bytes)>) -> Result<(), WriteError> {
        self.put_all(objects, Appear::Unseen).await
    }

    async fn put_all(&self, objects: Vec<(Key, Bytes)>, appear: Appear) -> Result<(), WriteError> {
        let objects = self.put_files(objects, appear).await?;
        let puts = objects.into_iter().map(|(key, bytes)| async move {
            self.put_if(&key, bytes, &Condition::Always).await.map(drop)
        });
        self.side_by_side(puts).await
    }

    /// Puts an object unless there is one; whether it did. Of several who try
    /// at once, one does.
    ///
    /// When a request is repeated because its answer was lost, an object that
    /// the first one put counts as one that was there.
    ///
    /// # Errors
    ///
    /// [`WriteError`].
    pub async fn put_if_absent(&self, key: Key, bytes: Bytes) -> Result<bool, WriteError> {
        let put = self.put_if(&key, bytes, &Condition::Absent).await?;
        Ok(put.is_some())
    }

    /// Deletes objects; one that is absent already is no failure.
    ///
    /// # Errors
    ///
    /// The first [`WriteError`].
    pub async fn delete_many(&self, keys: Vec<Key>) -> Result<(), WriteError> {
        let deletes = keys
            .into_iter()
            .map(|key| async move { self.delete(&key).await });
        self.side_by_side(deletes).await
    }

    /// Runs all, as many at once as requests may be, up to the first failure.
    ///
    /// Collected first: what makes the futures is not held while they run, of
    /// which the compiler could not tell that it goes to another thread.
    pub(crate) fn side_by_side<E, T: Future<Output = Result<(), E>>>(
        &self,
        all: impl Iterator<Item = T>,
    ) -> impl Future<Output = Result<(), E>> {
        let all: Vec<T> = all.collect();
        let all = stream::iter(all).buffer_unordered(self.concurrency());
        all.try_for_each(|()| async { Ok(()) })
    }

    /// Puts an object under a condition; its new tag, or `None` when the
    /// condition does not hold.
    pub(crate) async fn put_if(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<Option<Tag>, WriteError> {
        let (objects, path) = self.writable(key)?;
        let (operation, mode) = match condition {
            Condition::Always => ("put", PutMode::Overwrite),
            Condition::Absent => ("put-new", PutMode::Create),
            Condition::Is(tag) => ("put-over", PutMode::Update(tag.clone().into())),
        };
        self.hook().call(operation, key);
        self.recorder().write(bytes.len());
        let put = || {
            let options = mode.clone().into();
            objects.put_opts(&path, bytes.clone().into(), options)
        };
        let outcome = match self.tries().until_whole(put, gave_up_early).await {
            Ok(put) => Ok(Some(put.into())),
            // S3 says of an object that is gone that it is not found.
            Err(
                Failure::AlreadyExists { .. }
                | Failure::Precondition { .. }
                | Failure::NotModified { .. },
            ) if *condition != Condition::Always => Ok(None),
            Err(Failure::NotFound { .. }) if matches!(condition, Condition::Is(_)) => Ok(None),
            Err(failure @ (Failure::NotImplemented { .. } | Failure::NotSupported { .. }))
                if *condition != Condition::Always =>
            {
                Err(WriteError::Unconditional {
                    key: key.clone(),
                    source: Box::new(failure),
                })
            }
            // What S3 answers to a header that it knows, and does not follow.
            Err(failure) if *condition != Condition::Always && status(&failure) == Some(501) => {
                Err(WriteError::Unconditional {
                    key: key.clone(),
                    source: Box::new(failure),
                })
            }
            Err(failure) => Err(sort(key, failure)),
        };
        self.hook().call(operation, key);
        outcome
    }

    /// That a put is refused when what is there is not what it is to replace.
    /// Some stores do not know the condition, and put all the same. Asked once,
    /// by putting what `key` has already.
    pub(crate) async fn check_compares(&self, key: &Key, bytes: Bytes) -> Result<(), WriteError> {
        let compares = &self.lacks().compares;
        if compares.load(Ordering::Relaxed) {
            return Ok(());
        }
        // No object was ever the first: Google counts in microseconds.
        let (e_tag, version) = (Some("\"zvf\"".to_owned()), Some("1".to_owned()));
        let other = Condition::Is(Tag { e_tag, version });
        self.check_refuses(key, bytes, &other).await?;
        compares.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// That a put is refused under a condition that does not hold.
    pub(crate) async fn check_refuses(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<(), WriteError> {
        match self.put_if(key, bytes, condition).await? {
            None => Ok(()),
            Some(_) => Err(WriteError::Unconditional {
                key: key.clone(),
                source: "a put was done under a condition that did not hold".into(),
            }),
        }
    }

    /// Deletes an object that may be there.
    pub(crate) async fn delete(&self, key: &Key) -> Result<(), WriteError> {
        let (objects, path) = self.writable(key)?;
        self.hook().call("delete", key);
        self.recorder().delete();
        let delete = || objects.delete(&path);
        let outcome = match self.tries().until_whole(delete, gave_up_early).await {
            Err(Failure::NotFound { .. }) => Ok(()),
            Err(failure) if is_below_a_file(&failure) => Ok(()),
            // A folder is no object. There is one where a file was when a transaction that
            // took the file away and put others below its name is applied once more.
            Err(_) if self.is_folder(key) => Ok(()),
            outcome => outcome.map_err(|failure| sort(key, failure)),
        };
        self.hook().call("delete", key);
        outcome
    }

    /// Whether there is a folder at a key, on disk.
    fn is_folder(&self, key: &Key) -> bool {
        let path = self.folder().map(|root| root.join(key.as_str()));
        path.is_some_and(|path| path.is_dir())
    }

    /// Moves an object in place of another; whether it was there.
    pub(crate) async fn rename(&self, from: &Key, to: &Key) -> Result<bool, WriteError> {
        let (objects, source) = self.writable(from)?;
        let (_, target) = self.writable(to)?;
        self.hook().call("rename", to);
        self.recorder().write(0);
        let outcome = match objects.rename(&source, &target).await {
            Ok(()) => Ok(true),
            Err(Failure::NotFound { .. }) => Ok(false),
            Err(failure) => Err(sort(to, failure)),
        };
        self.hook().call("rename", to);
        outcome
    }

    /// That something can be written at all.
    pub(crate) fn check_writable(&self) -> Result<(), WriteError> {
        self.writable(&Key::root()).map(drop)
    }

    /// What writes, and where an object is in it.
    fn writable(&self, key: &Key) -> Result<(&Arc<dyn ObjectStore>, Path), WriteError> {
        let objects = self.objects().filter(|_| !self.is_web());
        let objects = objects.ok_or_else(|| WriteError::ReadOnly { key: key.clone() })?;
        let path = Path::parse(key).map_err(|source| sort(key, source.into()))?;
        Ok((objects, self.root().parts().chain(path.parts()).collect()))
    }
}

fn sort(key: &Key, failure: Failure) -> WriteError {
    let key = key.clone();
    match failure::sort(failure) {
        (Kind::Unauthenticated, source) => WriteError::Unauthenticated { key, source },
        (Kind::Forbidden, source) => WriteError::Forbidden { key, source },
        (Kind::Throttled, source) => WriteError::Throttled { key, source },
        (Kind::Unavailable, source) => WriteError::Unavailable { key, source },
        (Kind::Other, source) => WriteError::Io { key, source },
    }
}

impl From<PutResult> for Tag {
    fn from(put: PutResult) -> Self {
        Self {
            e_tag: put.e_tag,
            version: put.version,
        }
    }
}

impl From<Tag> for UpdateVersion {
    fn from(tag: Tag) -> Self {
        Self {
            e_tag: tag.e_tag,
            version: tag.version,
        }
    }
}

pub(crate) type Called = dyn Fn(&str, &Key) + Send + Sync;

/// What a test of crashes wants called around each change of the store.
#[derive(Clone, Default)]
pub(crate) struct Hook(Option<Arc<Called>>);

impl Hook {
    pub(crate) fn new(hook: Arc<Called>) -> Self {
        Self(Some(hook))
    }

    pub(crate) fn call(&self, operation: &str, key: &Key) {
        if let Some(hook) = &self.0 {
            hook(operation, key);
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.0.is_some()).finish()
    }
}
