//! Reads cells of links one by one, for tools that rewrite them.

use std::sync::Arc;

use bytes::Bytes;
use zvf_format::{
    links::{LinkWidth, RowForm},
    numeric::{ByteOrder, Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::CellAttribute, fetch::BoxFuture, grid::ChunkCoord, key::Key, layout::LinkForm,
    level::LevelId,
};

use super::{LinkCellForm, LinkSet, LinkStorage, LinkView, read::cell_request};
use crate::{
    catalog::Catalog,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    level::Level,
};

/// All cells of the links of one delta, with all attributes; none of them is read yet.
#[derive(Debug)]
pub struct LinkCells {
    level: Arc<Level>,
    set: LinkSet,
}

/// The links of a cell as stored, with ends in the order in which the writer received them.
#[derive(Clone, Debug)]
pub struct CellLinks {
    /// Number of ends per link.
    pub width: LinkWidth,
    /// Chunks of the ends.
    pub chunks: Vec<ChunkCoord>,
    /// For each end an index into `chunks` and a row.
    pub ends: Vec<(u32, u64)>,
    /// For each attribute the encoded values of all links; `None` if there are none.
    pub values: Vec<Option<Bytes>>,
}

/// The payloads of a cell's links and of their attributes.
#[derive(Clone, Debug)]
pub struct LinkBlobs {
    /// Payload of the links.
    pub links: Bytes,
    /// Payload of each attribute, if it has one.
    pub values: Vec<Option<Bytes>>,
}

impl LinkCells {
    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.set.cells.len()
    }

    /// Returns whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.set.cells.is_empty()
    }

    /// Returns the chunks of a cell's ends, in stored order; `None` for a table, whose records
    /// contain their chunks.
    pub fn chunks(&self, cell: usize) -> Option<&[ChunkCoord]> {
        self.set.cells.get(cell)?.chunks.as_deref()
    }

    /// Returns the number of ends of a cell's links.
    pub fn width(&self, cell: usize) -> Option<LinkWidth> {
        let source = self.set.cells.get(cell)?.source;
        Some(self.set.sources.get(source)?.width)
    }

    /// Returns the node of a cell's family.
    pub fn family(&self, cell: usize) -> Option<&Key> {
        let source = self.set.cells.get(cell)?.source;
        Some(&self.set.sources.get(source)?.family_node)
    }

    /// Returns whether a cell's payload is rows of int64 with ends in the writer's order and
    /// nothing else, in groups unless the links are inside a chunk.
    pub fn is_plain(&self, cell: usize) -> bool {
        let int64 = Dtype::new(Kind::Int64, ByteOrder::Little);
        let source = self.set.cells.get(cell).map(|cell| cell.source);
        let form = source.and_then(|source| self.set.sources.get(source));
        match form.map(|source| &source.form) {
            Some(LinkCellForm::Flat(dtype) | LinkCellForm::Groups(dtype, RowForm::Plain)) => {
                *dtype == int64
            }
            _ => false,
        }
    }

    /// Returns whether a cell is stored per chunk: the chunks of its ends have equal coordinates,
    /// and no other number is part of its key.
    pub fn is_aligned(&self, cell: usize) -> bool {
        let Some(cell) = self.set.cells.get(cell) else {
            return false;
        };
        let source = self.set.sources.get(cell.source);
        let keyed = source.is_some_and(|source| {
            !matches!(
                source.form,
                LinkCellForm::Records | LinkCellForm::Table(_) | LinkCellForm::Pairs(..)
            )
        });
        let chunks = cell.chunks.as_deref().unwrap_or_default();
        let mut pairs = chunks.iter().zip(chunks.iter().skip(1));
        keyed && !chunks.is_empty() && pairs.all(|(one, next)| one == next)
    }

    /// Returns whether links inside chunks have an array, even an empty one.
    pub fn has_inside(&self) -> bool {
        let sources = self.set.sources.iter();
        let mut forms = sources.map(|source| &source.form);
        self.set.delta == Delta::INTRA
            && forms.any(|form| {
                matches!(
                    form,
                    LinkCellForm::Flat(_) | LinkCellForm::MaybeGroups | LinkCellForm::Padded(_)
                )
            })
    }

    /// Returns the nodes of all families with their number of ends per link: one node from 0.9 on;
    /// up to 0.8.1 one for links inside chunks and one for links between them.
    pub fn families(&self) -> Vec<(Key, LinkWidth)> {
        let sources = self.set.sources.iter();
        let all = sources.map(|source| (source.family_node.clone(), source.width));
        let mut families: Vec<(Key, LinkWidth)> = all.collect();
        families.dedup();
        families
    }

    /// Returns the names of the attributes, with the metadata of attributes that have values.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, Option<&CellAttribute>)> {
        let attributes = self.set.attributes.iter();
        attributes.map(|attribute| (attribute.name.as_str(), attribute.metadata.as_deref()))
    }

    /// Returns the nodes of an attribute; each describes the values of some cells.
    pub fn attribute_nodes(&self, attribute: usize) -> Vec<Key> {
        let sources = self.set.sources.iter();
        let values = sources.filter_map(|source| source.attributes.get(attribute)?.as_ref());
        let nodes = values.map(|values| match &values.cells {
            LinkStorage::Each(family) => family.node.clone(),
            LinkStorage::Table(key, _) => key.parent().unwrap_or_else(Key::root),
            LinkStorage::Pairs(array) => array.node().clone(),
        });
        nodes.collect()
    }

    /// Returns whether rows in links between chunks are rows of vertices.
    pub fn rows_are_known(&self) -> bool {
        self.set.rows_are_known
    }

    /// Returns whether rows of links may be wrong in chunks of several fragments.
    pub fn may_be_shuffled(&self) -> bool {
        self.set.may_be_shuffled
    }

    /// Returns the children of link arrays that are not chunks.
    pub fn unrecognized_children(&self) -> Vec<Key> {
        let sources = self.set.sources.iter();
        let families = sources.filter_map(|source| match &source.cells {
            LinkStorage::Each(family) => Some(family),
            LinkStorage::Table(..) | LinkStorage::Pairs(_) => None,
        });
        let unrecognized_children = families.flat_map(|family| {
            let unrecognized_children = family.unrecognized_children.iter();
            unrecognized_children.filter_map(|name| family.node.join(name).ok())
        });
        unrecognized_children.collect()
    }
}

impl Catalog<'_> {
    /// Opens all links of a level to the level `delta` levels on, with all attributes; `None` if
    /// it has none. Takes at most four round trips.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if metadata is damaged.
    pub fn all_link_cells(
        &self,
        level: LevelId,
        delta: Delta,
    ) -> BoxFuture<'_, Result<Option<LinkCells>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            // Only links of 0.9 need the other level, to compute its chunks.
            let is_needed = self.layout.links == LinkForm::PerOffsets && delta != Delta::INTRA;
            let target = if is_needed {
                // Links to a level that does not exist may be stored nevertheless.
                match level.id().offset(delta.levels()) {
                    None => None,
                    Some(number) => match self.level(number).await {
                        Err(CatalogError::NoLevel { .. }) => None,
                        target => Some(target?),
                    },
                }
            } else {
                None
            };
            let names = self.link_attribute_names(&level, delta).await?;
            let (diagnostics, view) = (Diagnostics::new(false), LinkView::Stored);
            let target = target.as_deref();
            let set = self
                .links(&level, target, delta, &names, view, &diagnostics)
                .await?;
            Ok(set.map(|set| LinkCells { level, set }))
        })
    }

    /// Reads the links of these cells, in this order, in one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if a cell is damaged or the links exceed the memory budget.
    pub fn read_links<'f>(
        &'f self,
        links: &'f LinkCells,
        cells: &'f [usize],
    ) -> BoxFuture<'f, Result<Vec<CellLinks>, CatalogError>> {
        Box::pin(async move {
            let diagnostics = Diagnostics::new(false);
            let read = self.link_cells(&links.level, &links.set, cells, &diagnostics);
            let mut found = Vec::with_capacity(cells.len());
            for (records, cell) in read.await?.into_iter().zip(cells) {
                let width = links.width(*cell);
                let values = records.attributes.into_iter();
                found.push(CellLinks {
                    width: width.ok_or_else(|| Damage::new(&records.node, Fault::NoWidth))?,
                    chunks: records.chunks,
                    ends: records.ends,
                    values: values.map(|values| values.map(|rows| rows.bytes)).collect(),
                });
            }
            Ok(found)
        })
    }

    /// Reads the payloads of these cells and their attributes, in this order, in one round trip.
    /// Each cell fails alone.
    pub fn read_link_blobs<'f>(
        &'f self,
        links: &'f LinkCells,
        cells: &'f [usize],
    ) -> BoxFuture<'f, Vec<Result<LinkBlobs, Damage>>> {
        Box::pin(async move {
            let mut wanted = Vec::new();
            let mut requested = Vec::with_capacity(cells.len());
            for cell in cells {
                let Some(cell) = links.set.cells.get(*cell) else {
                    continue;
                };
                let Some(source) = links.set.sources.get(cell.source) else {
                    continue;
                };
                let mut push = |cells| {
                    wanted.push(cell_request(cells, &cell.at)?);
                    Some(wanted.len().saturating_sub(1))
                };
                let own = push(&source.cells);
                let values = source.attributes.iter();
                let values: Vec<Option<usize>> = values
                    .map(|values| values.as_ref().and_then(|values| push(&values.cells)))
                    .collect();
                requested.push((cell, source, own, values));
            }
            let mut results = if wanted.is_empty() {
                Vec::new()
            } else {
                self.fetch.cells(&wanted).await
            };
            let mut take = |slot: Option<usize>, node: &Key, at: &ChunkCoord| {
                let result = slot.and_then(|slot| results.get_mut(slot));
                let result = result.map(|result| core::mem::replace(result, Ok(None)));
                let fault = match result {
                    Some(Ok(Some(cell))) => return Ok(cell.bytes),
                    Some(Ok(None)) | None => Fault::MissingCell,
                    Some(Err(error)) => Fault::Fetch(error),
                };
                Err(Damage::in_chunk(node, at, fault))
            };
            let mut read = Vec::with_capacity(requested.len());
            for (cell, source, own, values) in requested {
                let own = take(own, &source.node, &cell.at);
                let each = source.attributes.iter().zip(values);
                let values: Result<Vec<Option<Bytes>>, Damage> = each
                    .map(|(attribute, slot)| {
                        let (Some(attribute), Some(_)) = (attribute, slot) else {
                            return Ok(None);
                        };
                        take(slot, attribute.cells.node(), &cell.at).map(Some)
                    })
                    .collect();
                read.push(own.and_then(|links| {
                    Ok(LinkBlobs {
                        links,
                        values: values?,
                    })
                }));
            }
            read
        })
    }
}
