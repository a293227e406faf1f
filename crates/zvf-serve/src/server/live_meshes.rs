//! Meshes of one state of a store, encoded on request.
//!
//! A viewer asks for the manifest of an object and then for ranges of its fragments. The encoded
//! object is kept, so that it is encoded once.

use std::panic::resume_unwind;

use tokio::{
    sync::MutexGuard,
    task::{JoinError, spawn_blocking},
};
use zvf::{Dataset, Query};

use super::{cache::KnownAnswer, object_cache::ObjectCache};
use crate::layers::{
    LayerError,
    meshes::{EncodedMesh, MeshLevels, encode},
};

const WHAT: &str = "an encoded mesh";

/// The meshes of a store.
#[derive(Debug)]
pub(super) struct LiveMeshes {
    levels: MeshLevels,
    encoded: ObjectCache,
}

impl LiveMeshes {
    pub(super) fn new(levels: MeshLevels) -> Self {
        Self {
            levels,
            encoded: ObjectCache::new(),
        }
    }

    /// Returns a file that is kept; `None` if it is not known whether there is one.
    pub(super) fn known(&self, name: &str) -> Option<KnownAnswer> {
        self.encoded.known(name)
    }

    /// Waits until no other request encodes this object.
    pub(super) async fn lock(&self, id: u64) -> MutexGuard<'_, ()> {
        self.encoded.lock(id).await
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
            Some(EncodedMesh { manifest, data }) => (Some(manifest), Some(data)),
            None => (None, None),
        };
        self.encoded.put(format!("{id}.index"), manifest, WHAT)?;
        self.encoded.put(id.to_string(), data, WHAT)
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
