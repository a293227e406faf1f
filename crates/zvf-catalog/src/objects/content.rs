//! Reads the object index of a level for a change.

use bytes::Bytes;
use zvf_format::manifest::ObjectManifest;
use zvf_model::level_content::ObjectContent;

use crate::{
    catalog::Catalog,
    error::{CatalogError, Fault},
    level::Level,
};

/// Memory of an object: its id, and a reference to its manifest.
const BYTES_PER_OBJECT: u64 = 48;

impl Catalog<'_> {
    /// Reads ids and manifests of all objects as stored; `None` if the level has no object index.
    pub(crate) async fn object_content(
        &self,
        level: &Level,
    ) -> Result<Option<ObjectContent>, CatalogError> {
        let Some(manifests) = self.stored_manifests(level.id()).await? else {
            return Ok(None);
        };
        let objects = manifests.rows();
        self.check_budget(objects.saturating_mul(BYTES_PER_OBJECT))?;
        let read = self.read_manifests(&manifests, 0..objects).await?;
        let index = manifests.index();
        let mut rows = Vec::with_capacity(read.len());
        for (row, manifest) in (0_u64..).zip(read) {
            let Some(manifest) = manifest else {
                if manifests.requires(row) {
                    return Err(manifests.damage(row, Fault::MissingCell).into());
                }
                rows.push(Bytes::new());
                continue;
            };
            if !manifest.is_empty() {
                ObjectManifest::parse(&manifest, index.sid_ndim).map_err(|error| {
                    let source = Box::new(Fault::from(error));
                    manifests.damage(row, Fault::Row { row, source })
                })?;
            }
            rows.push(manifest);
        }
        let ids = (0..objects).filter_map(|row| manifests.id(row));
        Ok(Some(ObjectContent {
            index: index.clone(),
            ids: ids.collect(),
            manifests: rows,
        }))
    }
}
