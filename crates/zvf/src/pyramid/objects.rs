//! What a level says of its objects: which vertices they have. Ids, attributes and
//! groups are those of the level before.

use bytes::Bytes;
use serde_json::Map;
use zvf_build::Output;
use zvf_format::manifest::ObjectManifestBuilder;
use zvf_model::key::Key;
use zvf_store::Read;

use super::build::Build;
use crate::{error::Error, nodes};

/// Families that are copied as they are.
const COPIED: [&str; 3] = ["object_attributes", "groups", "group_attributes"];
/// Files of tables.
const MOST_FILES: usize = 1 << 22;
/// Files that are copied at a time.
const AT_ONCE: usize = 256;

impl Build<'_> {
    /// The object index.
    pub(super) async fn object_index(&mut self) -> Result<(), Error> {
        if self.source.objects.is_none() {
            return Ok(());
        }
        let ids = self.source.ids();
        let rows = ids.len() as u64;
        let arity = self.shared.coarse.arity;
        // In the order of each object, and of chunks where it has none.
        let numbers = self.tally.chunk_of.clone();
        let rank = {
            let mut order: Vec<usize> = (0..numbers.len()).collect();
            order.sort_unstable_by_key(|number| &numbers[*number]);
            let mut rank = vec![0u32; numbers.len()];
            for (place, number) in (0u32..).zip(order) {
                rank[number] = place;
            }
            rank
        };
        let mut named = std::mem::take(&mut self.tally.named);
        named.sort_unstable_by_key(|(named, chunk)| {
            (
                named.object,
                named.at,
                rank[*chunk as usize],
                named.fragment,
            )
        });
        let step = self.shared.form.manifests_at_once();
        let level = self.target.number();
        let mut at = 0;
        let mut present = 0;
        let sorted = ids.is_sorted();
        let mut objects: Vec<u32> = named.iter().map(|(named, _)| named.object).collect();
        objects.dedup();
        self.tally.present = objects.len() as u64;
        let nodes = self.shared.form.object_index(
            level,
            &Map::new(),
            arity,
            (rows, self.tally.present, sorted),
        );
        let mut outputs: Vec<Output> = nodes;
        for first in (0..rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let last = (first + step).min(rows);
            let mut blobs: Vec<Vec<u8>> = Vec::new();
            for object in first..last {
                let mut builder = ObjectManifestBuilder::new(arity);
                while let Some((own, chunk)) = named
                    .get(at)
                    .filter(|(own, _)| u64::from(own.object) == object)
                {
                    let coords = numbers[*chunk as usize].coords();
                    let pushed = builder.push_single(coords, own.fragment);
                    pushed.map_err(|_| Error::NoPyramid {
                        why: "an object has more pieces than a manifest holds",
                    })?;
                    at += 1;
                }
                blobs.push(builder.finish());
            }
            present += blobs.len();
            outputs.push(
                self.shared
                    .form
                    .manifests(level, rows, first / step, &blobs)?,
            );
        }
        debug_assert_eq!(present as u64, rows);
        outputs.extend(self.shared.form.ids(level, &ids));
        self.put(outputs).await
    }

    /// Attributes of objects, groups and their attributes, file by file.
    pub(super) async fn tables(&mut self) -> Result<(), Error> {
        let store = self.source.dataset.store().clone();
        for family in COPIED {
            let from = format!("{}/{family}", self.source.id);
            let to = format!("{}/{family}", self.target);
            let key = nodes::named(Key::parse(&from), &from)?;
            let files = store.list_all(&key, MOST_FILES).await?;
            for part in files.chunks(AT_ONCE) {
                let mut reads = Vec::new();
                let mut keys = Vec::new();
                for file in part {
                    let name = &file.name;
                    reads.push(Read::full(nodes::named(
                        Key::parse(&format!("{from}/{name}")),
                        name,
                    )?));
                    keys.push(nodes::named(Key::parse(&format!("{to}/{name}")), name)?);
                }
                let read = store.read(&reads).await?;
                let found = keys.into_iter().zip(read);
                let objects: Vec<(Key, Bytes)> = found
                    .filter_map(|(key, bytes)| Some((key, bytes?)))
                    .collect();
                self.put_objects(objects).await?;
            }
        }
        Ok(())
    }

    /// The same where there are such tables already: those that are gone are deleted.
    pub(super) async fn replace_tables(&mut self) -> Result<(), Error> {
        let store = self.source.dataset.store().clone();
        for family in COPIED {
            let path = format!("{}/{family}", self.target);
            let key = nodes::named(Key::parse(&path), &path)?;
            for file in store.list_all(&key, MOST_FILES).await? {
                let name = format!("{path}/{}", file.name);
                self.transaction
                    .delete(nodes::named(Key::parse(&name), &name)?)
                    .await?;
            }
        }
        self.tables().await
    }

    /// Whether a node is in the store.
    pub(super) async fn is_there(&self, path: &str) -> Result<bool, Error> {
        let key = nodes::named(Key::parse(path), path)?;
        Ok(nodes::read_one(self.source.dataset.store(), &key)
            .await?
            .is_some())
    }
}
