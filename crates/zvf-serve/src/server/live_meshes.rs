//! Meshes of one state of a store, encoded when they are asked for.
//!
//! A viewer asks for the manifest of an object and then for ranges of its fragments. The encoded
//! object is kept, so that it is encoded once.

use std::panic::resume_unwind;

use bytes::Bytes;
use tokio::{
    sync::{Mutex, MutexGuard},
    task::{JoinError, spawn_blocking},
};
use zvf::{Dataset, Query};

use super::cache::{AnswerCache, KnownAnswer};
use crate::layers::{
    LayerError,
    meshes::{EncodedMesh, MeshLevels, encode},
};

/// Bytes of encoded meshes of a store that are kept.
const KEPT: usize = 96 << 20;
/// Largest encoded mesh: an object that is not kept would be encoded for each range.
const MOST_BYTES: usize = 60 << 20;
/// Objects that are encoded at once.
const AT_ONCE: usize = 8;

/// The meshes of a store.
#[derive(Debug)]
pub(super) struct LiveMeshes {
    levels: MeshLevels,
    encoded: AnswerCache,
    /// Held while an object is encoded, so that the requests for its parts wait for one encoding.
    encoding: [Mutex<()>; AT_ONCE],
    /// Stands for the locks if there are none.
    any: Mutex<()>,
}

impl LiveMeshes {
    pub(super) fn new(levels: MeshLevels) -> Self {
        Self {
            levels,
            encoded: AnswerCache::new(KEPT),
            encoding: Default::default(),
            any: Mutex::default(),
        }
    }

    /// Returns a file that is kept; `None` if it is not known whether there is one.
    pub(super) fn known(&self, name: &str) -> Option<KnownAnswer> {
        self.encoded.get(name)
    }

    /// Waits until no other request encodes this object.
    pub(super) async fn lock(&self, id: u64) -> MutexGuard<'_, ()> {
        let place = usize::try_from(id).unwrap_or(0).checked_rem(AT_ONCE);
        let lock = self.encoding.get(place.unwrap_or(0));
        lock.unwrap_or(&self.any).lock().await
    }

    /// Encodes an object and keeps its files, or that there are none.
    pub(super) async fn encode(
        &self,
        dataset: &Dataset,
        id: u64,
        query: Option<Query>,
    ) -> Result<(), LayerError> {
        let encoded = match query {
            Some(query) => self.read(dataset, id, &query).await?,
            None => None,
        };
        let (manifest, data) = match encoded {
            Some(EncodedMesh { data, .. }) if data.len() > MOST_BYTES => {
                return Err(LayerError::TooLarge("an encoded mesh", MOST_BYTES));
            }
            Some(EncodedMesh { manifest, data }) => {
                (Some(Bytes::from(manifest)), Some(Bytes::from(data)))
            }
            None => (None, None),
        };
        self.encoded.put(format!("{id}.index"), manifest.into());
        self.encoded.put(id.to_string(), data.into());
        Ok(())
    }

    async fn read(
        &self,
        dataset: &Dataset,
        id: u64,
        query: &Query,
    ) -> Result<Option<EncodedMesh>, LayerError> {
        let results = self.levels.read(dataset, query).await?;
        let levels = self.levels.clone();
        let encoding = spawn_blocking(move || {
            let meshes = levels.meshes(&results, &mut 0).into_iter();
            let mut meshes = meshes.filter(|mesh| mesh.object == id);
            match meshes.next() {
                Some(mesh) => encode(&mesh.levels),
                None => Ok(None),
            }
        });
        match encoding.await.map_err(JoinError::try_into_panic) {
            Ok(encoded) => encoded,
            Err(Ok(panic)) => resume_unwind(panic),
            // The server ends.
            Err(Err(_)) => Ok(None),
        }
    }
}
