//! Links up to 0.8.1, stored separately inside and between chunks.

use std::sync::Arc;

use futures_util::future::{try_join, try_join_all};
use zvf_format::{
    links::RowForm,
    numeric::{ByteOrder, Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::{CellAttribute, LinkFamily, LinkStore, SHARD_PREFIX},
    fetch::{CellRef, CellRequest},
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, CrossChunkForm, LinkOffsets},
    metadata::Attributes,
};

use super::{
    AttributeCells, LinkCellForm, LinkCellSource, LinkSource, LinkStorage, LinkView, OpenedLinks,
    open::declared, unlisted::is_unlistable,
};
use crate::{
    catalog::Catalog,
    chunked_array::{ChunkedArray, child},
    error::{CatalogError, Damage, Fault},
    level::Level,
};

/// Name of the array with the values of all links between chunks.
const FLAT: &str = "data";
/// The type of rows of links, except in padded arrays.
const INT64: (Kind, ByteOrder) = (Kind::Int64, ByteOrder::Little);

impl Catalog<'_> {
    /// Opens the links of a delta inside and between chunks.
    pub(super) async fn legacy_links(
        &self,
        level: &Level,
        delta: Delta,
        attributes: &[String],
        view: LinkView,
    ) -> Result<OpenedLinks, CatalogError> {
        let inside = self.links_inside(level, delta, attributes);
        let between = self.links_between(level, delta, attributes, view);
        let (inside, between) = try_join(inside, between).await?;
        let mut opened = OpenedLinks::default();
        for (source, mut cells) in inside.into_iter().chain(between) {
            for cell in &mut cells {
                cell.source = opened.sources.len();
            }
            opened.cells.append(&mut cells);
            opened.sources.push(source);
        }
        Ok(opened)
    }

    /// Opens links whose ends are all in chunks of equal coordinates.
    async fn links_inside(
        &self,
        level: &Level,
        delta: Delta,
        attributes: &[String],
    ) -> Result<Option<(LinkSource, Vec<LinkCellSource>)>, CatalogError> {
        // The path of these links depends on neither width nor arity.
        let offsets = LinkOffsets::Segment("self");
        let part = ArrayRole::Links(delta, offsets);
        let values = self.array_values(level, delta, offsets, attributes);
        let (cells, values) = try_join(self.chunked_array(level, &part), values).await?;
        let Some(cells) = cells else {
            return Ok(None);
        };
        let family = LinkFamily::parse_intra(&cells.node, delta, &cells.attributes)?.value;
        let Some(family) = family else {
            return match cells.chunks() {
                Some(chunks) if chunks.is_empty() => Ok(None),
                _ => Err(Damage::new(&cells.node, Fault::NoWidth).into()),
            };
        };
        let (kind, order) = INT64;
        let dtype = Dtype::new(kind, order);
        let form = match cells.padded() {
            Some(padded) => {
                let expected = family.width.get();
                let found = usize::try_from(padded.columns).unwrap_or(usize::MAX);
                if found != expected {
                    let fault = Fault::Width { found, expected };
                    return Err(Damage::new(&cells.node, fault).into());
                }
                LinkCellForm::Padded(padded.kind)
            }
            None if delta == Delta::INTRA && self.has_link_fragments(level).await? => {
                LinkCellForm::Flat(dtype)
            }
            None if delta == Delta::INTRA => LinkCellForm::MaybeGroups,
            None => LinkCellForm::Groups(dtype, RowForm::Plain),
        };
        let chunks = match cells.chunks() {
            Some(chunks) => chunks,
            None => self.padded_chunks(level, &cells).await?,
        };
        let ends = family.width.get();
        let cell = |chunk: ChunkCoord| LinkCellSource {
            chunks: Some(vec![chunk.clone(); ends]),
            is_inside: delta == Delta::INTRA,
            source: 0,
            at: chunk,
        };
        let found = chunks.into_iter().map(cell).collect();
        let source = LinkSource {
            node: cells.node.clone(),
            family_node: cells.node.clone(),
            cells: LinkStorage::Each(cells),
            form,
            width: family.width,
            directed: family.directed,
            is_reversed: false,
            family: 0,
            records: family.physical_records(),
            attributes: values,
        };
        Ok(Some((source, found)))
    }

    /// Returns whether a level has fragments of links. Takes a listing on first use; a store that
    /// cannot list is taken to have them.
    async fn has_link_fragments(&self, level: &Level) -> Result<bool, CatalogError> {
        let key = self.link_node(level, &ArrayRole::LinkFragments)?;
        match self.children(level, &key).await {
            Ok(names) => Ok(!names.is_empty()),
            Err(error) if is_unlistable(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns the chunks for which a padded array may have links: those with vertices.
    async fn padded_chunks(
        &self,
        level: &Level,
        cells: &ChunkedArray,
    ) -> Result<Vec<ChunkCoord>, CatalogError> {
        let fragments = self
            .chunked_array(level, &ArrayRole::VertexFragments)
            .await?;
        let chunks = fragments
            .and_then(|fragments| fragments.chunks())
            .unwrap_or_default()
            .into_iter();
        Ok(chunks.filter(|chunk| cells.has(chunk)).collect())
    }

    /// Opens links between chunks.
    async fn links_between(
        &self,
        level: &Level,
        delta: Delta,
        attributes: &[String],
        view: LinkView,
    ) -> Result<Option<(LinkSource, Vec<LinkCellSource>)>, CatalogError> {
        if delta == Delta::INTRA
            && let Some(array) = self.vertex_pairs(level).await?
        {
            let opened = self.numbered_links(level, array, attributes.len());
            return opened.await.map(Some);
        }
        let part = ArrayRole::CrossChunkLinks(delta);
        let key = self.link_node(level, &part)?;
        let is_table = self.layout.cross_chunk == CrossChunkForm::Table;
        let values = attributes
            .iter()
            .map(|name| self.value_node(level, name, delta, is_table));
        let node = self.cell_node(level, &part, &key, is_table);
        let (node, values) = try_join(node, try_join_all(values)).await?;
        let Some((node, names)) = node else {
            return Ok(None);
        };
        let family = LinkFamily::parse_cross_chunk(&key, delta, &node)?.value;
        let Some(family) = family else {
            if names.is_empty() {
                return Ok(None);
            }
            return Err(Damage::new(&key, Fault::NoWidth).into());
        };
        let expected = self.arity(level);
        let arity = family.sid_ndim.unwrap_or(expected);
        if arity != expected {
            let found = arity;
            return Err(Damage::new(&key, Fault::Arity { found, expected }).into());
        }
        let (cells, form, found) = if is_table {
            let cell = LinkCellSource {
                chunks: None,
                is_inside: false,
                source: 0,
                at: ChunkCoord::new([]),
            };
            let table = LinkStorage::Table(child(&key, "data")?, family.num_links == Some(0));
            (table, LinkCellForm::Table(arity), vec![cell])
        } else {
            let ends = family.width.get();
            let cells = self
                .keyed_cells(&key, node, &names, ends.saturating_mul(arity))
                .await?;
            let found = keyed(&cells, &family, arity, view);
            (
                LinkStorage::Each(Arc::new(cells)),
                LinkCellForm::Records,
                found,
            )
        };
        let numbers = family.width.get().saturating_mul(arity);
        let values = values
            .into_iter()
            .map(|values| self.values_between(values, &cells, numbers));
        let values = try_join_all(values).await?;
        let source = LinkSource {
            node: key.clone(),
            family_node: key,
            cells,
            form,
            width: family.width,
            directed: family.directed,
            is_reversed: false,
            family: 1,
            records: declared(&family, view),
            attributes: values,
        };
        Ok(Some((source, found)))
    }

    /// Reads the attributes of a node of cells and the names of its cells.
    async fn cell_node(
        &self,
        level: &Level,
        part: &ArrayRole<'_>,
        key: &Key,
        is_table: bool,
    ) -> Result<Option<(Attributes, Arc<Vec<String>>)>, CatalogError> {
        let names = async {
            if is_table {
                return Ok(Arc::default());
            }
            self.children(level, key).await
        };
        let (node, names) = try_join(self.chunked_array(level, part), names).await?;
        match node {
            None if is_table => {
                let data = self.fetch.nodes(&[child(key, "data")?]).await?;
                if data.into_iter().any(|node| node.is_some()) {
                    Err(Damage::new(key, Fault::Missing).into())
                } else {
                    Ok(None)
                }
            }
            None if names.is_empty() => Ok(None),
            None => Err(Damage::new(key, Fault::Missing).into()),
            Some(node) if node.bare().is_some_and(|node| node.as_array().is_some()) => {
                Err(Damage::new(key, Fault::Kind).into())
            }
            Some(node) => Ok(Some((node.attributes.clone(), names))),
        }
    }

    /// Reads the node of an attribute and the names of its cells.
    async fn value_node(
        &self,
        level: &Level,
        name: &str,
        delta: Delta,
        is_table: bool,
    ) -> Result<Option<ValueNode>, CatalogError> {
        let part = ArrayRole::CrossChunkLinkAttribute(name, delta);
        let key = self.link_node(level, &part)?;
        let node = self.cell_node(level, &part, &key, is_table).await?;
        Ok(node.map(|(attributes, names)| ValueNode {
            key,
            attributes,
            names,
        }))
    }

    /// Opens the values of links between chunks: a table beside a table of links; beside cells of
    /// links, cells or one array with the rows of all cells.
    async fn values_between(
        &self,
        node: Option<ValueNode>,
        links: &LinkStorage,
        numbers: usize,
    ) -> Result<Option<AttributeCells>, CatalogError> {
        let Some(node) = node else {
            return Ok(None);
        };
        let metadata = CellAttribute::parse(&node.key, &node.attributes)?.value;
        let cells = match links {
            LinkStorage::Table(..) => {
                LinkStorage::Table(child(&node.key, FLAT)?, metadata.num_links == Some(0))
            }
            LinkStorage::Each(links) if *node.names == [FLAT] => {
                LinkStorage::Each(Arc::new(self.flat_values(node, links).await?))
            }
            LinkStorage::Each(_) | LinkStorage::Pairs(_) => {
                let cells = self.keyed_cells(&node.key, node.attributes, &node.names, numbers);
                LinkStorage::Each(Arc::new(cells.await?))
            }
        };
        Ok(Some(AttributeCells {
            metadata: Arc::new(metadata),
            cells,
        }))
    }

    /// Divides the rows of one array among the cells of links, in the order of their keys as text.
    /// Takes one round trip, for the number of links of each cell.
    async fn flat_values(
        &self,
        node: ValueNode,
        links: &ChunkedArray,
    ) -> Result<ChunkedArray, CatalogError> {
        let data = child(&node.key, FLAT)?;
        let mut keys = links.chunks().unwrap_or_default();
        keys.sort_by_cached_key(ToString::to_string);
        let mut wanted = vec![CellRequest {
            cell: CellRef::Child(data.clone()),
            part: Some(0..1),
        }];
        let (keys, counts): (Vec<ChunkCoord>, Vec<CellRequest>) = keys
            .into_iter()
            .filter_map(|key| {
                let count = links.cell_request(&key, Some(0..8))?;
                Some((key, count))
            })
            .unzip();
        wanted.extend(counts);
        let mut found = self.fetch.cells(&wanted).await.into_iter();
        let bytes = match found.next() {
            Some(Ok(Some(data))) => data.size,
            Some(Ok(None)) | None => return Err(Damage::new(&data, Fault::MissingCell).into()),
            Some(Err(error)) => return Err(Damage::new(&data, Fault::Fetch(error)).into()),
        };
        let (mut starts, mut end) = (Vec::with_capacity(keys.len()), 0_u64);
        for (key, fetched) in keys.iter().zip(found) {
            let damage = |fault| Damage::in_chunk(&links.node, key, fault);
            let begin = fetched
                .map_err(|error| damage(Fault::Fetch(error)))?
                .ok_or_else(|| damage(Fault::MissingCell))?;
            starts.push(end);
            let first = begin.bytes.first_chunk::<8>();
            let records = first.map_or(0, |bytes| u64::from_le_bytes(*bytes));
            end = end.saturating_add(records);
        }
        let row = bytes.checked_div(end).unwrap_or(0);
        if row.checked_mul(end) != Some(bytes) {
            return Err(Damage::new(&data, Fault::Uneven { bytes, rows: end }).into());
        }
        let ends = starts.iter().skip(1).copied().chain([end]);
        let spans = starts
            .iter()
            .zip(ends)
            .map(|(start, end)| start.saturating_mul(row)..end.saturating_mul(row));
        let parts: Vec<_> = keys.into_iter().zip(spans).collect();
        Ok(ChunkedArray::of_parts(
            &node.key,
            node.attributes,
            &data,
            parts,
        ))
    }

    /// Opens cells whose keys have this many numbers. Any other name is an error, because it
    /// belongs to another layout that also called itself 0.8.
    async fn keyed_cells(
        &self,
        key: &Key,
        attributes: Attributes,
        names: &[String],
        numbers: usize,
    ) -> Result<ChunkedArray, CatalogError> {
        for name in names {
            let known = name.starts_with(SHARD_PREFIX) || ChunkCoord::parse(name, numbers).is_ok();
            if !known {
                return Err(Damage::new(&child(key, name)?, Fault::LinkCell).into());
            }
        }
        ChunkedArray::of_children(self.fetch, key, attributes, names, numbers).await
    }
}

/// The node of an attribute of links between chunks.
struct ValueNode {
    key: Key,
    attributes: Attributes,
    names: Arc<Vec<String>>,
}

/// Returns the cells of links between chunks, sorted by their keys as text.
fn keyed(
    cells: &ChunkedArray,
    family: &LinkFamily,
    arity: usize,
    view: LinkView,
) -> Vec<LinkCellSource> {
    let mut keys = cells.chunks().unwrap_or_default();
    keys.sort_by_cached_key(ToString::to_string);
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let chunks: Vec<ChunkCoord> = key
            .coords()
            .chunks(arity.max(1))
            .map(ChunkCoord::new)
            .collect();
        let leads = chunks.first().is_some_and(|first| {
            let mut others = chunks.iter();
            others.all(|other| other >= first)
        });
        // The copy of a link that starts in its least chunk represents the link.
        if family.store == LinkStore::Duplicate && view == LinkView::Logical && !leads {
            continue;
        }
        let mut pairs = chunks.iter().zip(chunks.iter().skip(1));
        found.push(LinkCellSource {
            is_inside: family.delta == Delta::INTRA && pairs.all(|(one, next)| one == next),
            chunks: Some(chunks),
            source: 0,
            at: key,
        });
    }
    found
}
