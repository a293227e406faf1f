//! Reads manifests as stored, for tools that rewrite them.

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use zvf_format::open_rows::OpenRows;
use zvf_model::{array::ObjectIndex, fetch::BoxFuture, key::Key, level::LevelId};

use super::{ObjectIdTable, ObjectTable, read::read_ids, table::Manifests};
use crate::{
    catalog::Catalog,
    error::{CatalogError, Damage, Fault},
};

/// The object index of a level, opened for reading manifests by row.
#[derive(Debug)]
pub struct StoredManifests {
    table: Arc<ObjectTable>,
    ids: ObjectIdTable,
    /// All manifests and their byte ranges, if they are concatenated.
    open: Option<(Bytes, Vec<Range<usize>>)>,
}

impl StoredManifests {
    /// Returns the node of the index.
    pub fn node(&self) -> &Key {
        &self.table.node
    }

    /// Returns the metadata of the index.
    pub fn index(&self) -> &ObjectIndex {
        &self.table.index
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.table.index.num_objects
    }

    /// Returns the id of a row.
    pub fn id(&self, row: u64) -> Option<i64> {
        self.ids.id(usize::try_from(row).ok()?)
    }

    /// Returns the row of an id. O(log n).
    pub fn find(&self, id: i64) -> Option<u64> {
        u64::try_from(self.ids.find(id)?).ok()
    }

    /// Returns the damage for a fault in the manifest of a row.
    pub(super) fn damage(&self, row: u64, fault: Fault) -> Damage {
        match &self.table.manifests {
            Manifests::Items(items) => items.damage(items.cell_of(row), fault),
            _ => Damage::new(self.node(), fault),
        }
    }

    /// Returns whether the manifest of a row, which was never written, may not be empty.
    pub(super) fn requires(&self, row: u64) -> bool {
        match &self.table.manifests {
            Manifests::Items(items) => self.table.requires(items, items.cell_of(row)),
            _ => false,
        }
    }
}

impl Catalog<'_> {
    /// Opens the manifests of a level with all ids; `None` if the level has no object index. Takes
    /// three round trips. Concatenated manifests are read at once.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the index is damaged.
    pub fn stored_manifests(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<Option<StoredManifests>, CatalogError>> {
        Box::pin(self.open_manifests(level))
    }

    async fn open_manifests(
        &self,
        level: LevelId,
    ) -> Result<Option<StoredManifests>, CatalogError> {
        let level = self.level(level).await?;
        let Some(table) = self.object_index(&level).await? else {
            return Ok(None);
        };
        if let Manifests::Dense { spans, blocks } = &table.manifests {
            let (bytes, spans, ids) = self.dense_manifests(&table, spans, blocks).await?;
            let open = Some((Bytes::from(bytes), spans));
            return Ok(Some(StoredManifests { table, ids, open }));
        }
        let ids = match &table.ids {
            None => ObjectIdTable::Rows(table.len()?),
            Some(array) => {
                let request = self.id_request(array)?;
                let results = self.fetch.cells(&request.wanted).await;
                read_ids(array, &request, results, table.index.ids_sorted)?
            }
        };
        let open = match &table.manifests {
            Manifests::Open { data, offsets } => {
                self.check_budget(data.size(None).saturating_add(offsets.size(None)))?;
                let (of_data, of_offsets) = (data.request(None), offsets.request(None));
                let wanted: Vec<_> = of_data
                    .wanted
                    .iter()
                    .chain(&of_offsets.wanted)
                    .cloned()
                    .collect();
                let mut results = self.fetch.cells(&wanted).await;
                let after = results.split_off(of_data.wanted.len().min(results.len()));
                let read = data.finish(&of_data, results);
                let starts = offsets.finish(&of_offsets, after);
                if let Some((_, damage)) = read.damaged.into_iter().chain(starts.damaged).next() {
                    return Err(damage.into());
                }
                let rows = OpenRows::parse(&read.bytes, &starts.bytes)
                    .map_err(|error| Damage::new(offsets.node(), error))?;
                let mut spans = Vec::with_capacity(rows.len());
                let mut end = 0_usize;
                for row in rows.iter() {
                    let start = end;
                    end = end.saturating_add(row.len());
                    spans.push(start..end);
                }
                Some((Bytes::from(read.bytes), spans))
            }
            Manifests::None | Manifests::Items(_) | Manifests::Dense { .. } => None,
        };
        Ok(Some(StoredManifests { table, ids, open }))
    }

    /// Reads the manifests of these rows as stored, in one round trip. A manifest that was never
    /// written is empty.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if a cell is damaged.
    pub fn manifest_rows<'f>(
        &'f self,
        manifests: &'f StoredManifests,
        rows: Range<u64>,
    ) -> BoxFuture<'f, Result<Vec<Bytes>, CatalogError>> {
        Box::pin(async move {
            let read = self.read_manifests(manifests, rows).await?.into_iter();
            Ok(read.map(Option::unwrap_or_default).collect())
        })
    }

    /// Reads manifests as [`manifest_rows`](Self::manifest_rows) does; `None` if never written.
    pub(super) async fn read_manifests(
        &self,
        manifests: &StoredManifests,
        rows: Range<u64>,
    ) -> Result<Vec<Option<Bytes>>, CatalogError> {
        let rows = rows.start..rows.end.min(manifests.rows());
        if let Some((data, spans)) = &manifests.open {
            let index = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
            let spans = spans.get(index(rows.start)..index(rows.end));
            let blobs = spans.unwrap_or_default().iter();
            return Ok(blobs.map(|span| Some(data.slice(span.clone()))).collect());
        }
        let Manifests::Items(items) = &manifests.table.manifests else {
            return Ok(Vec::new());
        };
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let cells = items.cell_of(rows.start)..=items.cell_of(rows.end.saturating_sub(1));
        let wanted: Vec<_> = cells.clone().map(|cell| items.cell_request(cell)).collect();
        let results = self.fetch.cells(&wanted).await;
        let mut read = Vec::new();
        for (cell, result) in cells.zip(results) {
            let (first, count) = items.rows_of(cell);
            let numbers = first..first.saturating_add(count);
            let payload = match result {
                Ok(payload) => payload.map(|payload| payload.bytes),
                Err(error) => return Err(items.damage(cell, Fault::Fetch(error)).into()),
            };
            let Some(payload) = payload else {
                read.extend(numbers.filter(|row| rows.contains(row)).map(|_| None));
                continue;
            };
            for (row, item) in numbers.zip(items.items(cell, &payload)?) {
                if rows.contains(&row) {
                    read.push(Some(payload.slice_ref(item)));
                }
            }
        }
        Ok(read)
    }
}
