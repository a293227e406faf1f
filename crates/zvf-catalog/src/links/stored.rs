//! Reads all links of a level as stored.

use std::collections::HashMap;

use zvf_format::{numeric::ByteOrder, path::Delta};
use zvf_model::{
    array::CellAttribute,
    fetch::BoxFuture,
    grid::ChunkCoord,
    key::Key,
    layout::{CrossChunkForm, LinkForm},
    level::LevelId,
    scope::Scope,
};

use super::{LinkRecords, LinkSet, LinkSource, LinkView};
use crate::{
    catalog::Catalog,
    cell_rows::CellRows,
    chunked_array::child,
    diagnostics::Diagnostics,
    diagnostics::Skipped,
    error::{CatalogError, Damage, Fault},
    level::Level,
    schema::labels,
    selection::Selection,
};
use zvf_model::column::{Column, ColumnValues, NumericColumn};

/// All links of a delta as stored: ends by chunk and row, including every copy of a link and known
/// defects of writers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredLinks {
    /// One family from 0.9 on; up to 0.8.1 the links inside chunks and the links between chunks,
    /// each if present.
    pub families: Vec<StoredLinkFamily>,
    /// `false` if rows in links between chunks are not rows of vertices, as in stores of lines and
    /// in stores of paths up to 0.7.
    pub rows_are_known: bool,
    /// Damage that was skipped; empty unless the caller requested to keep going.
    pub missing: Vec<Skipped>,
    /// Known defects of the store.
    pub notes: Vec<String>,
}

/// Links of one family, in the order of the format.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredLinkFamily {
    /// Number of ends per link.
    pub width: u32,
    /// `true` if the order of ends is significant.
    pub directed: bool,
    /// Chunks of the ends.
    pub chunks: Vec<ChunkCoord>,
    /// For each end an index into `chunks` and a row, in the order in which the writer received
    /// the ends. For a delta other than 0, the first end of a link is in a chunk of the level, the
    /// others are in chunks of the other level.
    pub ends: Vec<(u32, u64)>,
    /// Attributes with one row per link. Dictionary attributes hold codes.
    pub attributes: Vec<Column>,
}

impl StoredLinkFamily {
    /// Returns the number of links.
    pub fn len(&self) -> usize {
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        self.ends.len().checked_div(width).unwrap_or(0)
    }

    /// Returns whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns chunk and row of each end of a link.
    pub fn ends_of(&self, link: usize) -> impl Iterator<Item = (&ChunkCoord, u64)> {
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        let start = link.saturating_mul(width);
        let ends = self.ends.get(start..start.saturating_add(width));
        ends.unwrap_or_default().iter().filter_map(|(chunk, row)| {
            let chunk = self.chunks.get(usize::try_from(*chunk).ok()?)?;
            Some((chunk, *row))
        })
    }
}

impl Catalog<'_> {
    /// Returns the deltas of a level's links; 0 stands for links inside the level. Takes one round
    /// trip.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the level does not exist or cannot be listed.
    pub fn stored_link_deltas(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<Vec<Delta>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.link_deltas(&level).await
        })
    }

    /// Reads all links of a level to the level `delta` levels on, with these attributes; `None` if
    /// it has none. Takes three round trips, and up to three more to find all attributes. All
    /// links are in memory at once.
    ///
    /// With `keep_going`, damage is skipped and listed in the result.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if data is damaged or cannot be read.
    pub fn stored_links<'f>(
        &'f self,
        level: LevelId,
        delta: Delta,
        columns: &'f Selection,
        keep_going: bool,
    ) -> BoxFuture<'f, Result<Option<StoredLinks>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            // Only links of 0.9 need the other level, to compute its chunks.
            let is_needed = self.layout.links == LinkForm::PerOffsets && delta != Delta::INTRA;
            let target = if is_needed {
                let number = level
                    .id()
                    .offset(delta.levels())
                    .ok_or_else(|| self.no_level(level.id()))?;
                Some(self.level(number).await?)
            } else {
                None
            };
            let names = match columns {
                Selection::All => self.link_attribute_names(&level, delta).await?,
                Selection::Named(names) => {
                    let of_links = |(scope, _): &&(Option<Scope>, String)| {
                        matches!(scope, None | Some(Scope::Link))
                    };
                    let names = names.iter().filter(of_links);
                    names.map(|(_, name)| name.clone()).collect()
                }
            };
            let diagnostics = Diagnostics::new(keep_going);
            let set = self.links(
                &level,
                target.as_deref(),
                delta,
                &names,
                LinkView::Stored,
                &diagnostics,
            );
            let Some(set) = set.await? else {
                return Ok(None);
            };
            let mut absent = set.attributes.iter();
            if let Some(absent) = absent.find(|attribute| attribute.metadata.is_none())
                && *columns != Selection::All
            {
                return Err(CatalogError::NoAttribute {
                    scope: Some(Scope::Link),
                    name: absent.name.clone(),
                    present: Vec::new(),
                });
            }
            let cells: Vec<usize> = (0..set.cells.len()).collect();
            let read = self.link_cells(&level, &set, &cells, &diagnostics).await?;
            set.note_counts(&read, &diagnostics);
            let families = families(&set, &read)?;
            let (missing, notes) = diagnostics.finish();
            Ok(Some(StoredLinks {
                families,
                rows_are_known: set.rows_are_known,
                missing,
                notes,
            }))
        })
    }

    /// Returns the names of a delta's link attributes, ascending. Takes two round trips: a listing
    /// of all attributes, and a check of those of this delta.
    pub(crate) async fn link_attribute_names(
        &self,
        level: &Level,
        delta: Delta,
    ) -> Result<Vec<String>, CatalogError> {
        let node = Self::node_of(level)?;
        let mut names = Vec::new();
        let mut keys: Vec<Key> = Vec::new();
        let folder = child(&node, "link_attributes")?;
        let inside = self.children(level, &folder).await?;
        for name in inside.iter() {
            names.push(name.clone());
            keys.push(child(&child(&folder, name)?, &delta.to_string())?);
        }
        if self.layout.cross_chunk != CrossChunkForm::Links {
            let folder = child(&node, "cross_chunk_link_attributes")?;
            let between = self.children(level, &folder).await?;
            for name in between.iter() {
                names.push(name.clone());
                keys.push(child(&child(&folder, name)?, &delta.to_string())?);
            }
        }
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let nodes = self.fetch.nodes(&keys).await?;
        let found: Vec<String> = names
            .into_iter()
            .zip(nodes)
            .filter_map(|(name, node)| node.map(|_| name))
            .collect();
        Ok(labels(&found).to_vec())
    }
}

/// Groups the records of all cells by family.
fn families(set: &LinkSet, read: &[LinkRecords]) -> Result<Vec<StoredLinkFamily>, CatalogError> {
    let mut families = Vec::new();
    let mut numbers: Vec<usize> = set.sources.iter().map(|source| source.family).collect();
    numbers.dedup();
    for number in numbers {
        let of_family = |source: &&LinkSource| source.family == number;
        let Some(source) = set.sources.iter().find(of_family) else {
            continue;
        };
        let cells = set.cells.iter().zip(read).filter(|(cell, _)| {
            let source = set.sources.get(cell.source);
            source.is_some_and(|source| source.family == number)
        });
        let records: Vec<&LinkRecords> = cells.map(|(_, records)| records).collect();
        let mut family = StoredLinkFamily {
            width: u32::try_from(source.width.get()).unwrap_or(u32::MAX),
            directed: source.directed,
            chunks: Vec::new(),
            ends: Vec::new(),
            attributes: Vec::new(),
        };
        join(&mut family, &records)?;
        for (at, attribute) in set.attributes.iter().enumerate() {
            let Some(metadata) = &attribute.metadata else {
                continue;
            };
            let cells = records.iter().map(|records| {
                let values = records.attributes.get(at).and_then(Option::as_ref);
                (records.len(), values)
            });
            let column = column(&source.node, &attribute.name, metadata, cells)?;
            family.attributes.push(column);
        }
        families.push(family);
    }
    Ok(families)
}

/// Joins the records of several cells into one list of chunks and ends.
fn join(family: &mut StoredLinkFamily, records: &[&LinkRecords]) -> Result<(), CatalogError> {
    let mut numbers = HashMap::new();
    for cell in records {
        let mut renumbered = Vec::with_capacity(cell.chunks.len());
        for chunk in &cell.chunks {
            let next = numbers.len();
            let number = *numbers.entry(chunk.clone()).or_insert(next);
            if number == next {
                family.chunks.push(chunk.clone());
            }
            renumbered.push(number);
        }
        for (chunk, row) in &cell.ends {
            let chunk = usize::try_from(*chunk).ok();
            let number = chunk.and_then(|chunk| renumbered.get(chunk));
            let number = number.and_then(|number| u32::try_from(*number).ok());
            // Every index fits: there are fewer chunks than bytes in memory.
            let number = number.ok_or(CatalogError::Unsupported(
                "the links refer to too many chunks",
            ))?;
            family.ends.push((number, *row));
        }
    }
    Ok(())
}

/// Joins the values of an attribute in several cells. All rows are null if no cell has values.
fn column<'a>(
    node: &Key,
    name: &str,
    metadata: &CellAttribute,
    cells: impl Iterator<Item = (usize, Option<&'a CellRows>)> + Clone,
) -> Result<Column, CatalogError> {
    let widths = cells
        .clone()
        .find_map(|(rows, values)| Some(values.filter(|_| rows > 0)?.columns));
    let mut rows = NumericColumn::new(metadata.dtype.kind(), widths.unwrap_or(1));
    let mut missing = Vec::new();
    for (count, values) in cells {
        missing.resize(missing.len().saturating_add(count), values.is_none());
        let size = count.saturating_mul(rows.row_size());
        match values {
            None => rows.bytes.resize(rows.bytes.len().saturating_add(size), 0),
            Some(values) if values.bytes.len() != size => {
                let bytes = u64::try_from(values.bytes.len()).unwrap_or(u64::MAX);
                let rows = u64::try_from(count).unwrap_or(u64::MAX);
                return Err(Damage::new(node, Fault::Uneven { bytes, rows }).into());
            }
            Some(values) => rows.bytes.extend_from_slice(&values.bytes),
        }
    }
    if metadata.dtype.order() == ByteOrder::Big {
        // A complex number consists of two numbers.
        let kind = metadata.dtype.kind();
        let parts = if kind.name().starts_with("complex") {
            2
        } else {
            1
        };
        let size = kind.size().checked_div(parts).unwrap_or(1).max(1);
        rows.bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(Column {
        name: name.to_owned(),
        values: ColumnValues::Numeric(rows),
        nulls: missing.contains(&true).then_some(missing),
    })
}
