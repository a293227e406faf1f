//! Objects of a level. The manifests are new; ids, attributes and groups are those of the finer
//! level.

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use rayon::prelude::*;
use zvf_build::{coarsen::FragmentReference, migrate::ObjectIndexCounts};
use zvf_dataset::{
    Failure,
    nodes::{self, place},
};
use zvf_format::manifest::ObjectManifestBuilder;
use zvf_model::{
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, GroupRole, LevelKeys},
    metadata::Attributes,
};
use zvf_store::Read;
use zvf_write::writer::{
    encode::{Arrays, encoded},
    run,
};

use super::build::Build;

/// Upper bound on the files of a family.
const MAX_FILES: usize = 1 << 22;
/// Number of files copied concurrently.
const BATCH_FILES: usize = 256;

impl Build<'_> {
    /// Writes the object index.
    pub(super) async fn object_index(&mut self) -> Result<(), Failure> {
        if self.source.objects.is_none() {
            return Ok(());
        }
        let ids = self.source.ids();
        let rows = ids.len() as u64;
        let arity = self.shared.coarse.arity;
        // Ordered by position in the object; where that is equal, by chunk.
        let numbers = self.tally.chunk_of.clone();
        let rank = {
            let mut order: Vec<usize> = (0..numbers.len()).collect();
            order.sort_unstable_by_key(|number| &numbers[*number]);
            let mut rank = vec![0u32; numbers.len()];
            for (position, number) in (0u32..).zip(order) {
                rank[number] = position;
            }
            rank
        };
        let mut named = std::mem::take(&mut self.tally.named);
        named.par_sort_unstable_by_key(|(named, chunk)| {
            (
                named.object,
                named.at,
                rank[*chunk as usize],
                named.fragment,
            )
        });
        let mut objects: Vec<u32> = named.iter().map(|(named, _)| named.object).collect();
        objects.dedup();
        self.tally.present = objects.len() as u64;
        let level = self.target;
        let form = &self.shared.form;
        let counts = ObjectIndexCounts {
            rows,
            present: self.tally.present,
            sorted: ids.is_sorted(),
        };
        let mut outputs = form.object_index(level, &Attributes::new(), arity, counts)?;
        let arrays = Arrays::of(self.source.dataset.layout().generation, &outputs)?;
        outputs.extend(form.ids(level, &ids)?);
        let shared = Arc::clone(&self.shared);
        let made = run(move || {
            let step = shared.form.manifests_at_once().max(1);
            let parts = (0..rows.div_ceil(step)).into_par_iter().map(|part| {
                let range = part * step..((part + 1) * step).min(rows);
                let blobs = manifests(&named, &numbers, range, arity)?;
                let cell = shared.form.manifests(level, rows, part, &blobs)?;
                encoded(&arrays, vec![cell])
            });
            parts.collect::<Result<Vec<_>, Failure>>()
        })
        .await?;
        self.writer.write(outputs).await?;
        self.writer.put(made.concat()).await
    }

    /// Copies attributes of objects, groups and attributes of groups, file by file.
    pub(super) async fn tables(&mut self) -> Result<(), Failure> {
        let store = self.source.dataset.store().clone();
        let from = copied(self.shared.fine.keys)?.into_iter();
        for (from, to) in from.zip(copied(self.shared.coarse.keys)?) {
            let files = store.list_all(&from, MAX_FILES).await?;
            for part in files.chunks(BATCH_FILES) {
                let mut reads = Vec::new();
                let mut keys = Vec::new();
                for file in part {
                    reads.push(Read::full(nodes::below(&from, &file.name)?));
                    keys.push(nodes::below(&to, &file.name)?);
                }
                let read = store.read(&reads).await?;
                let found = keys.into_iter().zip(read);
                let objects: Vec<(Key, Bytes)> = found
                    .filter_map(|(key, bytes)| Some((key, bytes?)))
                    .collect();
                self.writer.put(objects).await?;
            }
        }
        Ok(())
    }

    /// Replaces existing tables by copies. Files without a counterpart in the finer level are
    /// deleted.
    pub(super) async fn replace_tables(&mut self) -> Result<(), Failure> {
        for table in copied(self.shared.coarse.keys)? {
            self.delete_below(&table).await?;
        }
        self.tables().await
    }

    /// Replaces the existing object index, which may have more chunks.
    pub(super) async fn replace_object_index(&mut self) -> Result<(), Failure> {
        let index = self.shared.coarse.keys.node(&ArrayRole::Manifests);
        self.delete_below(&place(index)?).await?;
        self.object_index().await
    }

    /// Deletes the files in a folder.
    async fn delete_below(&mut self, folder: &Key) -> Result<(), Failure> {
        let store = self.source.dataset.store().clone();
        for file in store.list_to_delete(folder, MAX_FILES).await? {
            let key = nodes::below(folder, &file.name)?;
            self.transaction().delete(key).await?;
        }
        Ok(())
    }

    /// Returns whether a node exists in the store.
    pub(super) async fn is_there(&self, key: &Key) -> Result<bool, Failure> {
        Ok(nodes::read_one(self.source.dataset.store(), key)
            .await?
            .is_some())
    }
}

/// Returns the tables of a level that are copied unchanged.
fn copied(keys: LevelKeys) -> Result<[Key; 3], Failure> {
    Ok([
        place(keys.group(GroupRole::ObjectAttributes))?,
        place(keys.node(&ArrayRole::Groups))?,
        place(keys.group(GroupRole::GroupAttributes))?,
    ])
}

/// Encodes the manifests of a range of objects from all references, which are sorted by object.
fn manifests(
    named: &[(FragmentReference, u32)],
    chunks: &[ChunkCoord],
    objects: Range<u64>,
    arity: usize,
) -> Result<Vec<Vec<u8>>, Failure> {
    let of = |object: u64| named.partition_point(|(own, _)| u64::from(own.object) < object);
    let mut own = named
        .get(of(objects.start)..of(objects.end))
        .unwrap_or_default();
    let mut blobs = Vec::new();
    for object in objects {
        let mut builder = ObjectManifestBuilder::new(arity);
        while let [(first, chunk), rest @ ..] = own
            && u64::from(first.object) == object
        {
            let coords = chunks
                .get(*chunk as usize)
                .map_or(&[][..], ChunkCoord::coords);
            let pushed = builder.push_single(coords, first.fragment);
            pushed.map_err(|_| Failure::NoPyramid {
                why: "an object has more fragments than a manifest can list",
            })?;
            own = rest;
        }
        blobs.push(builder.finish());
    }
    Ok(blobs)
}
