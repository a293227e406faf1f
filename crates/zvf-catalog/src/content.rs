//! Opens a level for a change: all nodes and tables that queries of the level may read.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all, try_join4};
use zvf_format::manifest::ObjectManifest;
use zvf_model::{
    array::Vertices,
    fetch::BoxFuture,
    grid::ChunkCoord,
    key::Key,
    layout::ArrayRole,
    level::LevelId,
    level_content::{CellContent, ChunkArray, LevelContent, ObjectContent, TableContent},
    scope::Scope,
};

use crate::{
    catalog::Catalog,
    cell_rows::check_codes,
    chunked_array::ChunkedArray,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    level::Level,
    schema::Names,
    tables::GroupList,
};

/// The open arrays of a [`LevelContent`], to read their cells.
#[derive(Debug)]
pub struct LevelCells {
    arrays: HashMap<Key, OpenArray>,
}

/// An open array with the contents of its cells.
pub(super) type OpenArray = (Arc<ChunkedArray>, CellContent);

impl Catalog<'_> {
    /// Opens all arrays of a level, and reads its objects, groups and their attributes. Requires a
    /// store that can list. Takes at most five round trips, and more for tables of many cells.
    ///
    /// # Errors
    ///
    /// Returns the [`CatalogError`] of a query that reads the damaged part.
    pub fn level_content(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<(LevelContent, LevelCells), CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let chunks = self.chunk_content(&level);
            let links = self.link_content(&level);
            let objects = self.object_content(&level);
            let tables = self.all_tables(&level);
            let (chunks, (links, of_links), objects, tables) =
                try_join4(chunks, links, objects, tables).await?;
            let ([object_attributes, group_attributes], groups) = tables;
            let opened: Vec<OpenArray> = chunks.into_iter().chain(of_links).collect();
            if let (Some(objects), Some((vertices, _))) = (&objects, opened.first()) {
                self.check_chunks(&level, objects, vertices)?;
            }
            let mut arrays = Vec::with_capacity(opened.len());
            let mut cells = HashMap::with_capacity(opened.len());
            for (array, content) in opened {
                // Readers accept a chunk as a child of a group, as in older generations.
                let presence = array
                    .presence()
                    .ok_or_else(|| Damage::new(&array.node, Fault::Kind))?;
                arrays.push(ChunkArray {
                    node: array.node.clone(),
                    grid: presence.grid().clone(),
                    chunks: presence.chunks().collect(),
                    cells: content.clone(),
                });
                cells.insert(array.node.clone(), (array, content));
            }
            let content = LevelContent {
                metadata: level.metadata.clone(),
                arrays,
                links,
                objects,
                object_attributes,
                groups,
                group_attributes,
            };
            Ok((content, LevelCells { arrays: cells }))
        })
    }

    /// Reads the payloads of cells, each a chunk of an array, in one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if a cell does not exist or cannot be read.
    pub fn content_cells<'f>(
        &'f self,
        cells: &'f LevelCells,
        wanted: &'f [(Key, ChunkCoord)],
    ) -> BoxFuture<'f, Result<Vec<Bytes>, CatalogError>> {
        Box::pin(async move {
            let missing = |(node, chunk): &(Key, ChunkCoord)| {
                Damage::in_chunk(node, chunk, Fault::MissingCell)
            };
            let mut requests = Vec::with_capacity(wanted.len());
            for cell in wanted {
                let array = cells.arrays.get(&cell.0);
                let request = array.and_then(|(array, _)| array.cell_request(&cell.1, None));
                requests.push(request.ok_or_else(|| missing(cell))?);
            }
            let results = self.fetch.bypass_cache().cells(&requests).await;
            let read = results.into_iter().zip(wanted).map(|(result, cell)| {
                let (node, chunk) = cell;
                let fetched =
                    result.map_err(|error| Damage::in_chunk(node, chunk, Fault::Fetch(error)))?;
                let bytes = fetched.ok_or_else(|| missing(cell))?.bytes;
                let content = cells.arrays.get(node).map(|(_, content)| content);
                if let Some(CellContent::Attribute(metadata)) = content {
                    check_codes(metadata, node, chunk, &bytes)?;
                }
                Ok(bytes)
            });
            read.collect()
        })
    }

    /// Checks that the chunks of all manifests have vertices.
    fn check_chunks(
        &self,
        level: &Level,
        objects: &ObjectContent,
        vertices: &ChunkedArray,
    ) -> Result<(), CatalogError> {
        let mut checked = HashSet::new();
        for manifest in objects.manifests.iter().filter(|bytes| !bytes.is_empty()) {
            // The manifest is checked already.
            let Ok(manifest) = ObjectManifest::parse(manifest, objects.index.sid_ndim) else {
                continue;
            };
            for block in &manifest {
                let chunk = ChunkCoord::new(block.chunk.iter().collect::<Vec<i64>>());
                if checked.contains(&chunk) {
                    continue;
                }
                if !vertices.has(&chunk) {
                    let node = self
                        .described_at(level, &ArrayRole::Manifests)?
                        .map_or_else(|| Self::node_of(level), Ok)?;
                    return Err(Damage::new(&node, Fault::NoChunk(chunk)).into());
                }
                checked.insert(chunk);
            }
        }
        Ok(())
    }

    /// Opens the arrays of vertices and fragments, those of vertices first.
    async fn chunk_content(&self, level: &Level) -> Result<Vec<OpenArray>, CatalogError> {
        let lists = Scope::OF_CHUNKS.map(|scope| self.attribute_names(level, scope));
        let mut names = Names::default();
        for (scope, list) in Scope::OF_CHUNKS.into_iter().zip(try_join_all(lists).await?) {
            names.of_mut(scope).extend_from_slice(&list);
        }
        let schema = self.schema(level, &names, true);
        let groups = self.chunked_array(level, &ArrayRole::LinkFragments);
        let (schema, groups) = try_join(schema, groups).await?;
        let mut arrays = Vec::new();
        if let Some(schema) = schema {
            let vertices = Vertices::parse(&schema.vertices.node, &schema.vertices.attributes)?;
            arrays.push((schema.vertices, CellContent::Vertices(vertices.value)));
            let fragments = schema.fragments.into_iter();
            arrays.extend(fragments.map(|fragments| (fragments, CellContent::Fragments)));
            let attributes = schema.vertex.into_iter().chain(schema.fragment);
            arrays.extend(attributes.map(|attribute| {
                let metadata = CellContent::Attribute((*attribute.metadata).clone());
                (attribute.array, metadata)
            }));
        }
        arrays.extend(groups.map(|groups| (groups, CellContent::Fragments)));
        Ok(arrays)
    }

    /// Reads the attributes of objects and of groups, and the groups.
    async fn all_tables(
        &self,
        level: &Level,
    ) -> Result<([Vec<TableContent>; 2], Vec<Vec<i64>>), CatalogError> {
        let diagnostics = Diagnostics::new(false);
        let objects = self.tables_of(level, Scope::Object, &diagnostics);
        let of_groups = self.tables_of(level, Scope::Group, &diagnostics);
        let groups = self.groups(level, &diagnostics);
        let ((objects, of_groups), groups) = try_join(try_join(objects, of_groups), groups).await?;
        let groups = groups.map_or_else(|| Ok(Vec::new()), |groups| self.members(&groups));
        Ok(([objects, of_groups], groups?))
    }

    async fn tables_of(
        &self,
        level: &Level,
        scope: Scope,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<TableContent>, CatalogError> {
        let names = self.attribute_names(level, scope).await?;
        let tables = names.iter().map(|name| async move {
            let table = self.table(level, scope, name).await?;
            let column = self.table_column(&table, None, diagnostics).await?;
            let array = table.array();
            Ok::<_, CatalogError>(TableContent {
                node: array.node().clone(),
                array: Arc::clone(array.metadata()),
                column,
                fill_is_null: table.fill_is_null(),
            })
        });
        try_join_all(tables).await
    }

    /// Returns the members of all groups.
    fn members(&self, groups: &GroupList) -> Result<Vec<Vec<i64>>, CatalogError> {
        let mut left = self.fetch.budget();
        let mut members = Vec::new();
        for number in 0..groups.len() {
            let group = groups.group(number, left)?;
            let group = group.map(|group| group.members).unwrap_or_default();
            let bytes = u64::try_from(group.len()).unwrap_or(u64::MAX);
            left = left.saturating_sub(bytes.saturating_mul(8));
            members.push(group);
        }
        Ok(members)
    }
}
