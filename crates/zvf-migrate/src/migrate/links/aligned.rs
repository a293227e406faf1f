//! Links in cells of one chunk: payloads that are copied unchanged, and links added to them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures_util::future::join;
use zvf_build::migrate::{AlignedLinks, ChunkExtent, LinkArrayKey, MigrationNote};
use zvf_catalog::{CellLinks, Damage, Fault, LinkBlobs, LinkCells, StoredArray};
use zvf_dataset::{Failure, nodes::place};
use zvf_format::path::Delta;
use zvf_model::{
    array::FragmentArray, grid::ChunkCoord, key::Key, layout::ArrayRole, metadata::Attributes,
};

use super::{LinkWork, Links};
use crate::migrate::{
    Migration,
    level::Level,
    parts::{Batches, Target},
    too_far,
    units::LinkValues,
};

/// Link cells of one chunk each, and the groups of the links inside chunks.
pub(super) struct AlignedCells {
    cells: BTreeMap<ChunkCoord, usize>,
    groups: Option<StoredArray>,
}

impl AlignedCells {
    pub(super) fn new(links: &LinkCells, cells: Vec<usize>, groups: Option<StoredArray>) -> Self {
        let chunk = |cell: usize| Some((links.chunks(cell)?.first()?.clone(), cell));
        Self {
            cells: cells.into_iter().filter_map(chunk).collect(),
            groups,
        }
    }

    /// Returns all chunks with links or groups, ascending, after links were added to chunks.
    pub(super) fn chunks(&self, links: &Links<'_>) -> Vec<ChunkCoord> {
        let mut chunks: BTreeSet<ChunkCoord> = self.cells.keys().cloned().collect();
        let added = links.added.keys();
        chunks.extend(added.map(|chunk| ChunkCoord::new(chunk.as_slice())));
        let groups = self.groups.iter();
        chunks.extend(groups.flat_map(|groups| groups.chunks().iter().cloned()));
        chunks.into_iter().collect()
    }

    fn groups_target<'a>(
        &'a self,
        links: &Links<'_>,
        extent: &'a ChunkExtent,
        none: &'a Attributes,
    ) -> Result<Target<'a>, Failure> {
        Ok(Target {
            key: place(links.form.keys().node(&ArrayRole::LinkFragments))?,
            extent,
            arity: links.arity,
            old: self.groups.as_ref().map_or(none, StoredArray::attributes),
            keys: Vec::new(),
        })
    }
}

/// The content of a cell of one chunk.
struct Own {
    payload: Bytes,
    values: Vec<Option<Bytes>>,
}

impl Migration<'_> {
    /// Migrates the link cells of some chunks, with the groups of links inside the chunks.
    pub(super) async fn aligned(
        &self,
        links: &mut Links<'_>,
        cells: &AlignedCells,
        chunks: &[ChunkCoord],
    ) -> Result<(), Failure> {
        let groups = cells.groups.as_ref();
        let has_groups = links.form.delta == Delta::INTRA && !chunks.is_empty();
        let extent = links.extent.clone();
        let none = Attributes::new();
        let mut index_to = cells.groups_target(links, &extent, &none)?;
        index_to.begin(self)?;
        self.writer.expect(chunks.len());
        let (mut at, mut batches) = (0, Batches::new());
        while at < chunks.len() {
            let end = batches.end(at, chunks.len());
            let batch = &chunks[at..end];
            let catalog = self.catalog();
            let indexes = async {
                let Some(groups) = groups else {
                    return Vec::new();
                };
                let has = |chunk: &&ChunkCoord| groups.chunks().binary_search(chunk).is_ok();
                let present: Vec<ChunkCoord> = batch.iter().filter(has).cloned().collect();
                let read = catalog.stored_cells(groups, &present).await;
                present.into_iter().zip(read).collect()
            };
            let (own, indexes) = join(self.own_cells(links, cells, batch), indexes).await;
            let (mut own, mut bytes, mut outputs) = (own?, 0, Vec::new());
            let mut indexes: BTreeMap<ChunkCoord, _> = indexes.into_iter().collect();
            for chunk in batch {
                let index = match indexes.remove(chunk) {
                    None => None,
                    Some(Ok(index)) => Some(index),
                    Some(Err(damage)) => {
                        self.damaged(damage)?;
                        None
                    }
                };
                let own = own.remove(chunk);
                bytes += own.as_ref().map_or(0, |own| own.payload.len() as u64);
                let rows = own.as_ref().map_or(0, |own| links.form.count(&own.payload));
                if links.is_lost(0, chunk) || links.is_lost(1, chunk) {
                    links.dangling += rows;
                    continue;
                }
                let more = links
                    .added
                    .get(chunk.coords())
                    .map(|more| more.links.clone())
                    .unwrap_or_default();
                if has_groups {
                    let is_missing = index.is_none() && rows > 0;
                    links.written.ungrouped += u64::from(is_missing);
                    let made = more
                        .groups(index.as_deref(), rows)
                        .map_err(|error| of_groups(&index_to.key, chunk, error.into()));
                    match made {
                        Ok(made) => index_to.cell(self, chunk.coords(), made, &mut outputs)?,
                        Err(damage) => self.damaged(damage)?,
                    }
                }
                if own.is_some() || !more.is_empty() {
                    self.put_aligned(links, chunk, own, &mut outputs)?;
                }
            }
            self.writer.write(outputs).await?;
            batches.adapt(end - at, bytes);
            self.writer.done(end - at);
            at = end;
        }
        links.written.is_grouped |= has_groups;
        links.written.grouped.extend(index_to.keys);
        Ok(())
    }

    /// Writes the node of the groups of links, after all cells.
    pub(super) async fn finish_aligned(
        &self,
        level: &Level,
        work: &LinkWork<'_>,
    ) -> Result<(), Failure> {
        let LinkWork { links, aligned, .. } = work;
        let has_groups = aligned.groups.is_some() && links.form.delta == Delta::INTRA;
        if links.written.is_grouped || has_groups {
            let none = Attributes::new();
            let mut index_to = aligned.groups_target(links, &links.extent, &none)?;
            index_to.keys.clone_from(&links.written.grouped);
            let path = index_to.key.to_string();
            index_to
                .end(self, FragmentArray::Links.to_attributes())
                .await?;
            let what = "groups of links that were missing; the links of a chunk are now one group";
            let ungrouped = links.written.ungrouped;
            self.repaired(MigrationNote::new(path, what, ungrouped));
        }
        if !aligned.cells.is_empty() {
            self.shuffled(level, links);
        }
        Ok(())
    }

    pub(super) async fn groups_of_links(
        &self,
        level: &Level,
        links: &Links<'_>,
    ) -> Result<Option<StoredArray>, Failure> {
        if links.form.delta != Delta::INTRA {
            return Ok(None);
        }
        let part = self
            .catalog()
            .stored_array(level.id, &ArrayRole::LinkFragments)
            .await;
        Ok(self.skip_damaged(part)?.flatten())
    }

    /// Reads the cells of these chunks: unchanged, or encoded again if the source has another form.
    async fn own_cells(
        &self,
        links: &Links<'_>,
        cells: &AlignedCells,
        chunks: &[ChunkCoord],
    ) -> Result<BTreeMap<ChunkCoord, Own>, Failure> {
        let present = chunks
            .iter()
            .filter_map(|chunk| Some((chunk.clone(), *cells.cells.get(chunk)?)));
        let (plain, others): (Vec<_>, Vec<_>) =
            present.partition(|(_, cell)| links.cells.is_plain(*cell));
        let mut own = BTreeMap::new();
        let wanted: Vec<usize> = plain.iter().map(|(_, cell)| *cell).collect();
        let read = self.catalog().read_link_blobs(links.cells, &wanted).await;
        for ((chunk, cell), blobs) in plain.into_iter().zip(read) {
            let checked = blobs.and_then(|blobs| check(links, &chunk, cell, blobs));
            match checked {
                Ok(LinkBlobs { links, values }) => {
                    let payload = links;
                    own.insert(chunk, Own { payload, values });
                }
                Err(damage) => self.damaged(damage)?,
            }
        }
        let wanted: Vec<usize> = others.iter().map(|(_, cell)| *cell).collect();
        let read = if wanted.is_empty() {
            Vec::new()
        } else {
            self.read_links(links.cells, &wanted).await?
        };
        for ((chunk, _), read) in others.into_iter().zip(read) {
            let Some(CellLinks { ends, values, .. }) = read else {
                continue;
            };
            let rows = AlignedLinks::new(ends.iter().map(|(_, row)| *row), Vec::new());
            let payload = links
                .form
                .aligned_payload(&[], &rows)
                .map_err(|error| damage(links, &chunk, ragged(error)))
                .map_err(zvf_catalog::CatalogError::from)?;
            let payload = Bytes::from(payload);
            own.insert(chunk, Own { payload, values });
        }
        Ok(own)
    }

    /// Writes a cell of one chunk, with the links added to it.
    fn put_aligned(
        &self,
        links: &mut Links<'_>,
        chunk: &ChunkCoord,
        own: Option<Own>,
        outputs: &mut Vec<zvf_build::Output>,
    ) -> Result<(), Failure> {
        let array_key: Option<LinkArrayKey> = links.form.aligned(chunk.coords());
        let array_key = array_key.ok_or_else(too_far)?;
        let added = links.added.remove(chunk.coords()).unwrap_or_default();
        let is_there = own.is_some();
        let (payload, mut values) = match own {
            Some(own) => (own.payload, own.values),
            None => (Bytes::new(), Vec::new()),
        };
        let count = links.form.count(&payload);
        links.written.logical += count;
        links.written.physical += count;
        values.resize(links.written.valued.len(), None);
        let more = added.links.from.len();
        let mut all = Vec::with_capacity(values.len());
        for (number, own) in values.into_iter().enumerate() {
            let metadata = links
                .cells
                .attributes()
                .nth(number)
                .and_then(|(_, attributes)| attributes);
            let mut joined = LinkValues::new(metadata);
            let of = usize::try_from(count).unwrap_or(usize::MAX);
            // Links without values get fill values only if other links of the cell have values.
            joined.push(of, own.as_deref());
            if more > 0 {
                let values = added.values.get(number).and_then(Option::as_deref);
                joined.push(more, values);
            }
            links.written.rows[number] = joined.row.max(links.written.rows[number]);
            links.written.filled_rows[number] += joined.filled_rows;
            all.push(match (joined.all(), &own) {
                (Some(bytes), _) => Some(bytes.to_vec()),
                (None, Some(own)) => Some(own.to_vec()),
                (None, None) => None,
            });
        }
        let payload = match more {
            0 => Ok(Vec::from(payload)),
            _ => links.form.aligned_payload(&payload, &added.links),
        };
        let payload = payload
            .map_err(|error| damage(links, chunk, ragged(error)))
            .map_err(zvf_catalog::CatalogError::from)?;
        if is_there || !payload.is_empty() {
            let rows = usize::try_from(count).unwrap_or(usize::MAX);
            links.note_unvalued(&array_key, chunk.coords(), rows.saturating_add(more), &all);
            links.cell(self, &array_key, chunk.coords(), payload, all, outputs)?;
        }
        Ok(())
    }

    /// Records that links may name wrong vertices.
    fn shuffled(&self, level: &Level, links: &Links<'_>) {
        if links.form.delta != Delta::INTRA || !links.cells.may_be_shuffled() {
            return;
        }
        let several = level
            .chunks
            .values()
            .filter(|facts| facts.fragments > 1)
            .count();
        let why = "up to 0.8.0, vertices of several objects in a chunk were put in order after \
                   their links were numbered";
        let what = "chunks whose links may refer to the wrong vertices";
        let family = level.keys.node(&ArrayRole::LinkFamily(Delta::INTRA));
        let path = family.map_or_else(|_| String::new(), |family| family.to_string());
        self.lost(MigrationNote::new(path, what, several as u64).because(why));
    }
}

fn of_groups(key: &Key, chunk: &ChunkCoord, fault: Fault) -> Damage {
    Damage {
        key: key.clone(),
        chunk: Some(chunk.clone()),
        fault,
    }
}

/// Checks that a payload decodes as links.
fn check(
    links: &Links<'_>,
    chunk: &ChunkCoord,
    cell: usize,
    blobs: LinkBlobs,
) -> Result<LinkBlobs, Damage> {
    let width = links.cells.width(cell).unwrap_or(links.form.width);
    let form = zvf_format::links::RowForm::Plain;
    let fault: Result<(), Fault> = match links.form.delta == Delta::INTRA {
        true => zvf_format::links::LinkRows::parse(&blobs.links, width, form)
            .map(|_| ())
            .map_err(Fault::from),
        false if blobs.links.is_empty() => Ok(()),
        false => zvf_format::links::RaggedLinks::parse(&blobs.links, width, form)
            .map(|_| ())
            .map_err(Fault::from),
    };
    match fault {
        Ok(()) => Ok(blobs),
        Err(fault) => Err(damage(links, chunk, fault)),
    }
}

fn ragged(error: zvf_format::ragged::RaggedError) -> Fault {
    Fault::RaggedLinks(error.into())
}

fn damage(links: &Links<'_>, chunk: &ChunkCoord, fault: Fault) -> Damage {
    let node = links.cells.families().into_iter().next();
    Damage {
        key: node.map_or_else(Key::root, |(node, _)| node),
        chunk: Some(chunk.clone()),
        fault,
    }
}
