//! Further geometries of composite stores, and files outside the format, which are copied
//! unchanged.

use std::collections::BTreeSet;

use futures_util::future::{join, join_all};
use zvf_build::{
    Output,
    migrate::{self, MigrationNote},
};
use zvf_dataset::{
    Failure,
    nodes::{self, place},
};
use zvf_model::{
    array::{CompositeLinks, GeometryIndex, Vertices},
    generation::Generation,
    key::Key,
    layout::{ArrayRole, GEOMETRY_INDEX, PARAMETRIC},
    level::LevelId,
};
use zvf_store::Read;

use super::{
    Migration,
    level::Level,
    parts::{Batches, Target, unrecognized_children},
};

/// Upper bound on the files of a copied folder.
const MAX_FILES: usize = 1 << 24;
/// Approximate bytes of files copied concurrently.
const BATCH_BYTES: u64 = 64 << 20;

impl Migration<'_> {
    /// Migrates the further geometries of a level.
    pub(super) async fn composite(&self, level: &mut Level) -> Result<(), Failure> {
        let key = place(level.keys.node(&ArrayRole::GeometryIndex))?;
        let attributes = self.attributes(&key).await?;
        if nodes::read_one(self.source.store(), &key).await?.is_none() {
            return Ok(());
        }
        let index = GeometryIndex::parse(&key, &attributes)?.value;
        self.writer
            .write(vec![Output::group(key, attributes)])
            .await?;
        for (kind, geometry) in &index.geometries {
            let chunks = self.further_vertices(level, kind).await?;
            if geometry.links.is_none() {
                continue;
            }
            let key = place(level.keys.node(&ArrayRole::CompositeLinks(kind)))?;
            let catalog = self.catalog();
            let links = catalog.stored_composite_links(level.id, kind).await;
            if let Some(Some(links)) = self.skip_damaged(links)? {
                let old = self.attributes(&key).await?;
                let ends: Vec<i64> = links
                    .ends
                    .iter()
                    .map(|end| i64::try_from(*end).unwrap_or(-1))
                    .collect();
                let width = CompositeLinks::parse(&key, &old)?.value.width;
                self.writer
                    .write(self.form.composite_links(&key, &old, width, &ends)?)
                    .await?;
                if chunks < 2 {
                    continue;
                }
                let why = "they count vertices in the order of the input, which is not stored";
                let what = "the vertices to which links of an additional geometry refer, in several chunks";
                self.lost(
                    MigrationNote::new(key.to_string(), what, (ends.len() / width.get()) as u64)
                        .because(why),
                );
            }
        }
        Ok(())
    }

    async fn further_vertices(&self, level: &mut Level, kind: &str) -> Result<usize, Failure> {
        let catalog = self.catalog();
        let part = catalog
            .stored_array(level.id, &ArrayRole::CompositeVertices(kind))
            .await;
        let Some(Some(part)) = self.skip_damaged(part)? else {
            return Ok(0);
        };
        self.lost(unrecognized_children(&part));
        let metadata = Vertices::parse(part.node(), part.attributes())?.value;
        for chunk in part.chunks() {
            level.extent.reach(chunk.coords());
        }
        let mut target = Target {
            key: place(level.keys.node(&ArrayRole::CompositeVertices(kind)))?,
            extent: &level.extent,
            arity: level.arity,
            old: part.attributes(),
            keys: Vec::new(),
        };
        target.begin(self)?;
        let (chunks, mut batches) = (part.chunks(), Batches::new());
        self.writer.expect(chunks.len());
        let (mut at, mut waiting) = (0, Vec::new());
        while at < chunks.len() || !waiting.is_empty() {
            let end = batches.end(at, chunks.len());
            let batch = &chunks[at..end];
            let read = catalog.stored_cells(&part, batch);
            let (read, put) = join(read, self.writer.write(core::mem::take(&mut waiting))).await;
            put?;
            let mut bytes = 0;
            for (chunk, cell) in batch.iter().zip(read) {
                match cell {
                    Ok(cell) => {
                        bytes += cell.len() as u64;
                        target.cell(self, chunk.coords(), Vec::from(cell), &mut waiting)?;
                    }
                    Err(damage) => self.damaged(damage)?,
                }
            }
            batches.adapt(end - at, bytes);
            self.writer.done(end - at);
            at = end;
        }
        // Targets of any generation tag them.
        let attributes = metadata.to_attributes(Generation::V0_9);
        target.end(self, attributes).await?;
        Ok(chunks.len())
    }

    /// Copies the files of a level that are not part of the format.
    pub(super) async fn other_nodes(&self, level: &Level) -> Result<(), Failure> {
        let keys = &level.keys;
        let index = self
            .attributes(&place(keys.node(&ArrayRole::GeometryIndex))?)
            .await?;
        let mut further = BTreeSet::new();
        for kind in index.keys() {
            let parts = [
                ArrayRole::CompositeVertices(kind),
                ArrayRole::CompositeLinks(kind),
            ];
            for part in parts {
                let key = place(keys.node(&part))?;
                further.extend(key.name().map(str::to_owned));
            }
        }
        let names = self.source.layout().names;
        let is_part = |name: &str| {
            migrate::is_level_array(names.written(name))
                || name == GEOMETRY_INDEX
                || further.contains(name)
        };
        let files = self.others(&place(keys.level())?, is_part).await?;
        self.copy_files(&files).await
    }

    /// Copies the files of the root that are not part of the format, and headers.
    pub(super) async fn other_root_nodes(&self, levels: &[LevelId]) -> Result<(), Failure> {
        let damaged = self.damaged_headers().await?;
        let levels: BTreeSet<String> = levels.iter().map(ToString::to_string).collect();
        let is_part = |name: &str| name == PARAMETRIC || levels.contains(name);
        let mut files = self.others(&Key::root(), is_part).await?;
        files.retain(|(key, _)| !damaged.iter().any(|header| key.is_below(header)));
        self.copy_files(&files).await
    }

    /// Returns the nodes of the headers that are damaged, if damage is skipped.
    async fn damaged_headers(&self) -> Result<Vec<Key>, Failure> {
        let catalog = self.catalog();
        let listed = catalog.header_formats().await;
        // A damaged list is reported as lost, and then there is no header to leave out.
        let formats = self.skip_damaged(listed)?.unwrap_or_default();
        let headers = formats.iter().map(|format| catalog.header(format));
        let folder = nodes::child(&Key::root(), "headers")?;
        let mut damaged = Vec::new();
        for (format, header) in formats.iter().zip(join_all(headers).await) {
            if self.skip_damaged(header)?.is_none() {
                damaged.push(nodes::child(&folder, format)?);
            }
        }
        Ok(damaged)
    }

    /// Lists the files and those in the folders below a node, with their sizes, except for folders
    /// that `is_part` selects.
    async fn others(
        &self,
        key: &Key,
        is_part: impl Fn(&str) -> bool,
    ) -> Result<Vec<(Key, u64)>, Failure> {
        let store = self.source.store();
        let listing = nodes::children(store, key).await?;
        let mut files: Vec<(Key, u64)> = Vec::new();
        for file in listing.files {
            // The parts of a level are folders, so that no file next to them is a part.
            if file.name != "zarr.json" {
                files.push((nodes::child(key, &file.name)?, file.size));
            }
        }
        for folder in listing.folders.iter().filter(|name| !is_part(name)) {
            let folder = nodes::child(key, folder)?;
            for file in store.list_all(&folder, MAX_FILES).await? {
                files.push((nodes::below(&folder, &file.name)?, file.size));
            }
        }
        Ok(files)
    }

    /// Copies files with these sizes.
    async fn copy_files(&self, files: &[(Key, u64)]) -> Result<(), Failure> {
        let store = self.source.store();
        self.writer.expect(files.len());
        let mut rest = files;
        while !rest.is_empty() {
            let mut bytes = 0_u64;
            let fits = |file: &&(Key, u64)| {
                bytes = bytes.saturating_add(file.1);
                bytes <= BATCH_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (batch, after) = rest.split_at(count);
            let keys = batch.iter().map(|(key, _)| key);
            let reads: Vec<Read> = keys.clone().cloned().map(Read::full).collect();
            let read = store.read(&reads).await?;
            let objects = keys
                .cloned()
                .zip(read)
                .filter_map(|(key, bytes)| Some((key, bytes?)));
            self.writer.put(objects.collect()).await?;
            self.writer.done(count);
            rest = after;
        }
        Ok(())
    }
}
