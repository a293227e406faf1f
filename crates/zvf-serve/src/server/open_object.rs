//! Reads stored objects, such as cells and metadata, for responses with their bytes.

use std::{io, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use hyper::StatusCode;
use zvf_model::key::Key;
use zvf_store::{ObjectStat, Read, ReadError, SnapshotError, Store, TransactionError};

use super::{
    object_cache::ObjectCache,
    reply::{BINARY, JSON, Pieces, Reply},
    request::Request,
};

/// Bytes of an object that are in memory at once.
const READ_BYTES: u64 = 4 << 20;

/// An object whose size is known, with the first bytes that a request is for. So most errors are
/// found before the response begins.
pub(super) struct OpenObject {
    store: Store,
    key: Key,
    stat: ObjectStat,
    first: Option<Bytes>,
}

/// An error of reading an object of a store.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The store cannot be opened at its present state.
    #[error(transparent)]
    Reopen(#[from] TransactionError),
}

impl ObjectError {
    pub(super) fn status(&self) -> StatusCode {
        let is_transient = match self {
            Self::Snapshot(SnapshotError::Changed) => true,
            Self::Snapshot(SnapshotError::Read(error))
            | Self::Reopen(TransactionError::Read(error)) => error.is_transient(),
            _ => false,
        };
        if is_transient {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

impl OpenObject {
    /// Opens an object of `store`; returns `None` if it is absent.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Changed`] if the store is no longer in the state of `store`.
    pub(super) async fn open(
        store: Store,
        key: &Key,
        request: &Request,
    ) -> Result<Option<Self>, ObjectError> {
        let read = Self::read(&store, key, request).await;
        store.confirm_snapshot().await?;
        let read = read.map_err(SnapshotError::Read)?;
        Ok(read.map(|(stat, first)| Self {
            store,
            key: key.clone(),
            stat,
            first,
        }))
    }

    async fn read(
        store: &Store,
        key: &Key,
        request: &Request,
    ) -> Result<Option<(ObjectStat, Option<Bytes>)>, ReadError> {
        let Some(mut stat) = store.stat(key).await? else {
            return Ok(None);
        };
        stat.e_tag = stat.e_tag.map(|tag| {
            if tag.starts_with('"') {
                tag
            } else {
                format!("\"{tag}\"")
            }
        });
        let Some(range) = request.body(stat.size, stat.e_tag.as_deref()) else {
            return Ok(Some((stat, None)));
        };
        let first = store.read_one(piece(key, range.start, range.end)).await?;
        Ok(first.map(|first| (stat, Some(first))))
    }

    /// Returns the response with the object or a part of it.
    pub(super) async fn reply(self, objects: &Arc<ObjectCache>) -> Reply {
        let Self {
            store,
            key,
            stat,
            first,
        } = self;
        let is_json = key.name() == Some("zarr.json");
        let first = match first {
            Some(first) => objects.with_permit(first).await,
            None => Bytes::new(),
        };
        let objects = Arc::clone(objects);
        let read = move |range: Range<u64>| -> Pieces {
            let (step, end) = (usize::try_from(READ_BYTES).unwrap_or(usize::MAX), range.end);
            let rest = range.step_by(step).skip(1).map(move |start| {
                let (store, objects) = (store.clone(), Arc::clone(&objects));
                let read = piece(&key, start, end);
                async move {
                    match store.read_one(read).await {
                        Ok(Some(bytes)) => Ok(objects.with_permit(bytes).await),
                        Ok(None) => Err(io::ErrorKind::NotFound.into()),
                        Err(error) => Err(io::Error::other(error)),
                    }
                }
            });
            let first = stream::once(async { Ok(first) });
            first.chain(stream::iter(rest).buffered(1)).boxed()
        };
        Reply::Object {
            content_type: if is_json { JSON } else { BINARY },
            size: stat.size,
            e_tag: stat.e_tag,
            read: Box::new(read),
        }
    }
}

/// Returns the read of the piece of an object that begins at `start`.
fn piece(key: &Key, start: u64, end: u64) -> Read {
    let stop = start.saturating_add(READ_BYTES).min(end);
    Read::bounded(key.clone(), start..stop)
}
