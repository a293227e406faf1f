//! Links between chunks as one array of pairs of numbered vertices, in padded stores.

use std::sync::Arc;

use zvf_format::links::LinkWidth;
use zvf_model::{
    array::{VertexNumbering, VertexPairs},
    grid::ChunkCoord,
    layout::{ArrayRole, ChunkForm},
    zarr::{Array, Node},
};

use super::{LinkCellForm, LinkCellSource, LinkSource, LinkStorage};
use crate::{
    catalog::Catalog,
    chunked_array::child,
    error::{CatalogError, Damage, Fault},
    fragments::FragmentTable,
    level::Level,
};

impl Catalog<'_> {
    /// Returns the array of links between chunks; `None` if the links have cells.
    pub(super) async fn vertex_pairs(&self, level: &Level) -> Result<Option<Array>, CatalogError> {
        if self.layout.chunks != ChunkForm::Padded {
            return Ok(None);
        }
        let key = child(&Self::node_of(level)?, "cross_chunk_links")?;
        let node = self.fetch.nodes(&[key]).await?.pop().flatten();
        Ok(match node {
            Some(Node::Array(array)) => Some(array),
            _ => None,
        })
    }

    /// Opens the array of links between chunks, one cell for each of its chunks. Reads the fragments
    /// of all chunks, which tell how many vertices they have.
    pub(super) async fn numbered_links(
        &self,
        level: &Level,
        array: Array,
        attributes: usize,
    ) -> Result<(LinkSource, Vec<LinkCellSource>), CatalogError> {
        let key = child(&Self::node_of(level)?, "cross_chunk_links")?;
        let pairs = VertexPairs::parse(&key, &array)?;
        let numbering = self.vertex_numbering(level).await?;
        let array = self.fetch.array(&key, Arc::new(array))?;
        let cell = |chunk: u64| LinkCellSource {
            chunks: None,
            is_inside: false,
            source: 0,
            // Arrays have fewer chunks than bytes.
            at: ChunkCoord::new([i64::try_from(chunk).unwrap_or(i64::MAX)]),
        };
        let cells = (0..pairs.chunks()).map(cell).collect();
        let source = LinkSource {
            node: key.clone(),
            family_node: key,
            cells: LinkStorage::Pairs(array),
            form: LinkCellForm::Pairs(pairs, numbering),
            width: LinkWidth::EDGE,
            directed: false,
            is_reversed: false,
            family: 1,
            records: None,
            attributes: (0..attributes).map(|_| None).collect(),
        };
        Ok((source, cells))
    }

    /// Numbers the vertices of a level. Takes one round trip for the fragments of all chunks.
    async fn vertex_numbering(&self, level: &Level) -> Result<VertexNumbering, CatalogError> {
        let part = ArrayRole::VertexFragments;
        let Some(fragments) = self.chunked_array(level, &part).await? else {
            return Ok(VertexNumbering::default());
        };
        let chunks = fragments.chunks().unwrap_or_default();
        let (chunks, wanted): (Vec<_>, Vec<_>) = chunks
            .into_iter()
            .filter_map(|chunk| {
                let request = fragments.cell_request(&chunk, None)?;
                Some((chunk, request))
            })
            .unzip();
        let mut rows = Vec::with_capacity(chunks.len());
        for (chunk, found) in chunks.into_iter().zip(self.fetch.cells(&wanted).await) {
            let damage = |fault| Damage::in_chunk(&fragments.node, &chunk, fault);
            let found = found.map_err(|error| damage(Fault::Fetch(error)))?;
            let blob = found.ok_or_else(|| damage(Fault::MissingCell))?.bytes;
            let table = FragmentTable::parse(&blob)
                .map_err(|error| Damage::in_chunk(&fragments.node, &chunk, error))?;
            let extent = table.extent();
            rows.push((chunk, extent));
        }
        Ok(VertexNumbering::new(rows))
    }
}
