//! Links between chunks of a level, derived from the links of the finer level.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};
use zvf_build::{
    BuildError, Output,
    coarsen::{AggregatedAttribute, Aggregation, NO_VERTEX, contract_links},
    migrate::{LinkArrayKey, LinkAttributeType, LinkTarget, LinkTotals},
};
use zvf_catalog::CellLinks;
use zvf_dataset::{Failure, nodes::place};
use zvf_model::{grid::ChunkCoord, key::Key, layout::GroupRole, metadata::Attributes};

use super::{
    build::{Build, LinkCounts},
    job::{NewCell, columns, file},
    shards::LastSteps,
    source::{Links, SortedLinks},
};

/// Number of cells read per batch.
const BATCH_CELLS: usize = 1024;

impl Build<'_> {
    /// Builds the links whose ends are in different chunks.
    pub(super) async fn crossing(&mut self, sorted: &SortedLinks) -> Result<(), Failure> {
        let (Some(links), Some(form)) = (&self.source.links, self.shared.links.clone()) else {
            return Ok(());
        };
        let mut batch: Vec<(&Vec<ChunkCoord>, &Vec<usize>)> = Vec::new();
        let mut cells = 0;
        let only = self.only.clone();
        let is_made = |chunks: &[ChunkCoord]| {
            let only = only.as_ref();
            only.is_none_or(|(stale, _)| chunks.iter().any(|chunk| stale.contains(chunk)))
        };
        let mut units: Vec<_> = sorted
            .between
            .iter()
            .filter(|(chunks, _)| is_made(chunks))
            .collect();
        let shared = Arc::clone(&self.shared);
        let coarse = &shared.coarse;
        units.sort_by_cached_key(|(chunks, _)| {
            chunks
                .first()
                .and_then(|chunk| shared.shard_of(coarse, chunk))
        });
        let mut last_steps = LastSteps::default();
        for (step, (chunks, _)) in units.iter().enumerate() {
            for chunk in *chunks {
                last_steps.record(&shared, coarse, chunk, step);
            }
        }
        let mut units = units.into_iter().peekable();
        let mut done = 0;
        while let Some(unit) = units.next() {
            cells += unit.1.len();
            batch.push(unit);
            if cells < BATCH_CELLS && units.peek().is_some() {
                continue;
            }
            let wanted: Vec<usize> = batch
                .iter()
                .flat_map(|(_, cells)| cells.iter().copied())
                .collect();
            let mut read = self.source.read_links(&wanted).await?.into_iter();
            let mut new = Vec::new();
            done += batch.len();
            for (chunks, cells) in batch.drain(..) {
                let own: Vec<CellLinks> = read.by_ref().take(cells.len()).collect();
                self.unit(links, &form, chunks, &own, &mut new)?;
            }
            cells = 0;
            self.put_cells(&shared, new, &last_steps, done).await?;
        }
        Ok(())
    }

    /// Builds all links between the same chunks.
    fn unit(
        &mut self,
        links: &Links,
        form: &LinkTarget,
        chunks: &[ChunkCoord],
        read: &[CellLinks],
        new: &mut Vec<NewCell>,
    ) -> Result<(), Failure> {
        let width = links.width;
        let mut ends: Vec<u64> = Vec::new();
        let (mut values, mut counts) = (vec![Vec::new(); links.fields.len()], Vec::new());
        for cell in read.iter().filter(|cell| self.source.is_first_copy(cell)) {
            let of: Vec<(u64, Option<&Vec<u32>>)> = cell
                .chunks
                .iter()
                .map(|chunk| {
                    let coarse = self.source.chunk_of(chunk, &self.scale);
                    let number = chunks.binary_search(&coarse).unwrap_or(0) as u64;
                    (number << 32, self.tally.parents.get(chunk))
                })
                .collect();
            for (chunk, row) in &cell.ends {
                let end = of.get(*chunk as usize).and_then(|(number, parents)| {
                    let row = usize::try_from(*row).ok()?;
                    let parent = *parents.as_ref()?.get(row)?;
                    Some((number, parent))
                });
                // A row out of range was rejected when its chunk was built.
                ends.push(match end {
                    Some((_, NO_VERTEX)) | None => u64::MAX,
                    Some((number, parent)) => number | u64::from(parent),
                });
            }
            counts.push(cell.ends.len() / width);
            for (all, own) in values.iter_mut().zip(&cell.values) {
                all.push(own.as_deref());
            }
        }
        let is_tree = self.shared.recipe.shape == zvf_build::coarsen::Ownership::Trees;
        let (kept, into) = contract_links(&ends, width, links.directed || is_tree);
        let count = kept.len() / width;
        if count == 0 {
            return Ok(());
        }
        self.tally.links += count as u64;
        self.tally.crossing += count as u64;
        let names = vec!["of links"; counts.len()];
        let mut columns_of: Vec<Option<(Vec<u8>, usize)>> = Vec::new();
        for (field, cells) in links.fields.iter().zip(&values) {
            let payload = field.merged(cells, &counts, &names, &into, count)?;
            columns_of.push(payload.map(|payload| {
                let row = payload.len() / count;
                (payload, row)
            }));
        }
        let coords: Vec<&[i64]> = chunks.iter().map(ChunkCoord::coords).collect();
        let mut ends: Vec<(u32, u64)> = kept
            .iter()
            .map(|end| ((end >> 32) as u32, end & u64::from(u32::MAX)))
            .collect();
        if links.is_turned {
            ends.chunks_exact_mut(2).for_each(<[_]>::reverse);
        }
        let all: Vec<usize> = (0..count).collect();
        let arity = self.shared.coarse.arity;
        let mut placed_links: Vec<(LinkArrayKey, Vec<i64>, Vec<usize>)> = Vec::new();
        file(
            form,
            &coords,
            &ends,
            &all,
            arity,
            new,
            &mut |array_key, at, from| {
                placed_links.push((array_key.clone(), at.to_vec(), from.to_vec()));
            },
        )?;
        self.tally.physical += placed_links
            .iter()
            .map(|(.., from)| from.len() as u64)
            .sum::<u64>();
        for (array_key, at, from) in placed_links {
            for (field, column) in links.fields.iter().zip(&columns_of) {
                let Some((payload, row)) = column else {
                    continue;
                };
                let own: Vec<u8> = from
                    .iter()
                    .flat_map(|link| &payload[link * row..(link + 1) * row])
                    .copied()
                    .collect();
                let wide = columns(&own, from.len() as u64, field.made().size());
                let about = LinkAttributeType {
                    name: &field.name,
                    dtype: field.made(),
                    columns: wide,
                };
                let attributes = form.attribute(&array_key, about, arity, from.len() as u64);
                let node = place(form.attribute_key(&field.name, &array_key))?;
                new.push(NewCell::with_attributes(node, &at, own, attributes));
            }
        }
        Ok(())
    }

    /// Writes the nodes above links: families and attributes.
    pub(super) async fn link_families(&mut self) -> Result<(), Failure> {
        let mut outputs = Vec::new();
        let keys = self.shared.coarse.keys;
        let empty =
            |role: GroupRole<'_>| Ok::<_, Failure>(Output::empty_group(place(keys.group(role))?));
        let arity = self.shared.coarse.arity;
        let any = LinkArrayKey::Offsets(String::new());
        let logical = self.tally.links;
        let paths = self.families();
        if let (Some(form), Some(links)) = (&self.shared.links, &self.source.links) {
            let attributes = &links.attributes;
            let crossing = self.tally.crossing;
            let copies = self.tally.physical - (logical - crossing);
            let totals = LinkTotals::new(logical, self.tally.physical);
            outputs.push(empty(GroupRole::Links)?);
            let array_keys = if form.is_current() {
                outputs.push(family(form, &any, attributes, arity, totals)?);
                vec![any.clone()]
            } else {
                outputs.push(empty(GroupRole::CrossChunkLinks)?);
                let (inside, between) = (LinkArrayKey::Aligned, LinkArrayKey::CrossChunk);
                outputs.push(family(form, &inside, attributes, arity, totals)?);
                let totals = LinkTotals::new(crossing, copies);
                outputs.push(family(form, &between, attributes, arity, totals)?);
                vec![inside, between]
            };
            for array_key in array_keys {
                let is_between = array_key == LinkArrayKey::CrossChunk;
                if !links.fields.is_empty() {
                    outputs.push(empty(if is_between {
                        GroupRole::CrossChunkLinkAttributes
                    } else {
                        GroupRole::LinkAttributes
                    })?);
                }
                for (field, attributes) in links.fields.iter().zip(&links.field_attributes) {
                    outputs.push(empty(if is_between {
                        GroupRole::CrossChunkLinkAttribute(&field.name)
                    } else {
                        GroupRole::LinkAttribute(&field.name)
                    })?);
                    if form.is_current() {
                        let family = form.attribute_family(&field.name, logical);
                        outputs.push(family.map_err(BuildError::from)?);
                    } else {
                        let mut attributes = attributes.clone();
                        let columns = columns_of(field, &mut attributes);
                        let own = form.attribute(
                            &array_key,
                            LinkAttributeType {
                                name: &field.name,
                                dtype: field.made(),
                                columns,
                            },
                            arity,
                            crossing,
                        );
                        attributes.extend(own);
                        let node = place(form.attribute_key(&field.name, &array_key))?;
                        outputs.push(Output::group(node, attributes));
                    }
                }
            }
        }
        let count = (self.tally.between_levels, self.tally.between_chunks);
        let shared = &self.shared;
        let own = [
            (&shared.up, shared.fine.arity),
            (&shared.down, shared.coarse.arity),
        ]
        .into_iter()
        .filter_map(|(form, arity)| Some((form.clone()?, arity, count)));
        let all: Vec<(LinkTarget, usize, LinkCounts)> =
            own.chain(std::mem::take(&mut self.between)).collect();
        let none = Attributes::new();
        for (form, arity, (count, crossing)) in all {
            if form.is_current() {
                let totals = LinkTotals::new(count, count);
                outputs.push(family(&form, &any, &none, arity, totals)?);
                continue;
            }
            let totals = LinkTotals::new(crossing, crossing);
            for array_key in [LinkArrayKey::Aligned, LinkArrayKey::CrossChunk] {
                if paths.contains(&place(form.key(&array_key))?) {
                    outputs.push(family(&form, &array_key, &none, arity, totals)?);
                }
            }
        }
        self.folders(&mut outputs).await?;
        self.writer.write(outputs).await
    }

    /// Adds the groups above links that do not exist yet.
    async fn folders(&self, outputs: &mut Vec<Output>) -> Result<(), Failure> {
        let mut folders: BTreeSet<Key> = BTreeSet::new();
        for output in outputs.iter() {
            if let Output::Node { key, .. } = output {
                let segments: Vec<&str> = key.segments().collect();
                if let [level, folder, _, ..] = segments.as_slice() {
                    folders.insert(place(Key::root().join_all(&[level, folder]))?);
                }
            }
        }
        let level = place(self.shared.coarse.keys.level())?;
        for folder in folders {
            let known = outputs
                .iter()
                .any(|output| matches!(output, Output::Node { key, .. } if *key == folder));
            let is_old = !folder.is_below(&level);
            if known || is_old && self.is_there(&folder).await? {
                continue;
            }
            outputs.push(Output::empty_group(folder));
        }
        Ok(())
    }
}

/// Returns the node of a family of links.
fn family(
    form: &LinkTarget,
    array_key: &LinkArrayKey,
    old: &Attributes,
    arity: usize,
    totals: LinkTotals,
) -> Result<Output, Failure> {
    let family = form.family(array_key, old, arity, totals);
    Ok(family.map_err(BuildError::from)?)
}

/// Returns the number of values in a row as the node of the finer level declares it, and removes
/// the declaration.
fn columns_of(field: &AggregatedAttribute, attributes: &mut Map<String, Value>) -> usize {
    let row_shape = attributes.remove("row_shape");
    let shape = row_shape.as_ref().and_then(Value::as_array);
    let columns = shape.map(|shape| shape.iter().filter_map(Value::as_u64).product::<u64>());
    if field.rule == Aggregation::Count {
        attributes.remove("channel_names");
    }
    match (field.rule, columns) {
        (Aggregation::Count, _) | (_, None) => 1,
        (_, Some(columns)) => usize::try_from(columns).unwrap_or(1),
    }
}
