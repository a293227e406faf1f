//! Additional geometries of composite stores.

use futures_util::future::try_join_all;
use zvf_format::{links::LinkWidth, numeric::Value};
use zvf_model::{
    array::{CompositeLinks, GeometryIndex},
    fetch::BoxFuture,
    key::Key,
    layout::ArrayRole,
    level::LevelId,
};

use crate::{
    catalog::Catalog,
    chunked_array::child,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    level::Level,
    schema::Schema,
};
use zvf_model::column::ColumnValues;

/// An additional geometry of a composite store. It has vertices and links, but neither objects nor
/// attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompositeGeometry {
    /// Kind and name of the geometry.
    pub kind: String,
    /// Declared number of vertices.
    pub vertices: Option<u64>,
    /// Declared number of edges, faces or polylines. The ends of polylines are not stored.
    pub parts: Option<u64>,
    /// The links; `None` if there are none.
    pub links: Option<CompositeGeometryLinks>,
}

/// Links of an additional geometry. They number vertices in the order in which the writer received
/// them, but the store keeps vertices by chunk. The ends are therefore only certain if the writer
/// received the vertices of each chunk together, with chunks in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompositeGeometryLinks {
    /// Number of links.
    pub count: u64,
    /// Number of ends per link.
    pub width: LinkWidth,
}

/// The links of an additional geometry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositeLinkRows {
    /// Number of ends of each link.
    pub width: LinkWidth,
    /// Ends of all links, as numbers of vertices in the order in which the writer received them.
    pub ends: Vec<u64>,
}

impl Catalog<'_> {
    /// Returns the additional geometries of a level, ascending by kind; none if the store is not
    /// composite. Takes at most three round trips.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the level does not exist or the metadata of the geometries is
    /// invalid.
    pub fn composite(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<Vec<CompositeGeometry>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let node = Self::node_of(&level)?;
            let Some(key) = self.described_at(&level, &ArrayRole::GeometryIndex)? else {
                return Ok(Vec::new());
            };
            let nodes = self.fetch.nodes(core::slice::from_ref(&key)).await?;
            let Some(index) = nodes.into_iter().next().flatten() else {
                return Ok(Vec::new());
            };
            let index = GeometryIndex::parse(&key, index.attributes())?.value;
            let geometries = index.geometries.into_iter().map(|(kind, geometry)| {
                let node = &node;
                async move {
                    let links = match &geometry.links {
                        Some(name) => Some(self.further_links(&child(node, name)?).await?),
                        None => None,
                    };
                    Ok::<_, CatalogError>(CompositeGeometry {
                        kind,
                        vertices: geometry.vertex_count,
                        parts: geometry.part_count,
                        links,
                    })
                }
            });
            try_join_all(geometries).await
        })
    }

    async fn further_links(&self, key: &Key) -> Result<CompositeGeometryLinks, CatalogError> {
        let nodes = self.fetch.nodes(core::slice::from_ref(key)).await?;
        let node = nodes
            .into_iter()
            .next()
            .flatten()
            .ok_or_else(|| Damage::new(key, Fault::Missing))?;
        let links = CompositeLinks::parse(key, node.attributes())?.value;
        Ok(CompositeGeometryLinks {
            count: links.link_count,
            width: links.width,
        })
    }

    /// Opens the vertices of an additional geometry; `None` if the level has no geometry of this
    /// name. Takes one round trip on first use.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the metadata of the vertices is invalid.
    pub fn composite_schema<'f>(
        &'f self,
        level: &'f Level,
        name: &'f str,
    ) -> BoxFuture<'f, Result<Option<Schema>, CatalogError>> {
        Box::pin(async move {
            let part = ArrayRole::CompositeVertices(name);
            let Some(vertices) = self.chunked_array(level, &part).await? else {
                return Ok(None);
            };
            Schema::of_vertices(vertices, self.root.axes.len()).map(Some)
        })
    }

    /// Reads the links of an additional geometry as stored; `None` if it has none. Takes two round
    /// trips.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the links are damaged.
    pub fn stored_composite_links<'f>(
        &'f self,
        level: LevelId,
        name: &'f str,
    ) -> BoxFuture<'f, Result<Option<CompositeLinkRows>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.composite_link_rows(&level, name, &Diagnostics::new(false))
                .await
        })
    }

    /// Reads the links of an additional geometry of an open level, as
    /// [`stored_composite_links`](Self::stored_composite_links) does, and notes that they do not number
    /// the vertices as stored.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the links are damaged.
    pub fn composite_link_rows<'f>(
        &'f self,
        level: &'f Level,
        name: &'f str,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Option<CompositeLinkRows>, CatalogError>> {
        Box::pin(async move {
            let part = ArrayRole::CompositeLinks(name);
            let Some(family) = self.chunked_array(level, &part).await? else {
                return Ok(None);
            };
            let metadata = CompositeLinks::parse(&family.node, &family.attributes)?.value;
            let width: LinkWidth = metadata.width;
            let columns = u64::try_from(width.get()).unwrap_or(u64::MAX);
            let table = self
                .int64_rows_at(&family.node, name, columns)
                .await?
                .ok_or_else(|| Damage::new(&family.node, Fault::Missing))?;
            let column = self.table_column(&table, None, diagnostics).await?;
            let rows = match &column.values {
                ColumnValues::Numeric(rows) => rows.view(),
                ColumnValues::Dictionary { .. } => None,
            };
            let rows = rows.ok_or_else(|| Damage::new(&family.node, Fault::Kind))?;
            let mut ends = Vec::with_capacity(rows.rows().saturating_mul(width.get()));
            for row in 0..rows.rows() {
                for column in 0..rows.columns().get() {
                    let end = match rows.value(row, column) {
                        Some(Value::Int(end)) => u64::try_from(end).ok(),
                        Some(Value::UInt(end)) => Some(end),
                        _ => None,
                    };
                    ends.push(end.ok_or_else(|| Damage::new(&family.node, Fault::Range))?);
                }
            }
            if usize::try_from(rows.columns().get()) != Ok(width.get()) && !ends.is_empty() {
                let (found, expected) = (rows.columns().get().into(), metadata.width.get());
                let expected = u64::try_from(expected).unwrap_or(u64::MAX);
                return Err(Damage::new(&family.node, Fault::Count { found, expected }).into());
            }
            diagnostics.note(format!(
                "{}: counts vertices in the order of the input, which is not stored",
                family.node
            ));
            Ok(Some(CompositeLinkRows { width, ends }))
        })
    }
}
