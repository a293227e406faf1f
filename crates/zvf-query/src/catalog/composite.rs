//! Additional geometries of composite stores.

use futures_util::future::{BoxFuture, try_join_all};
use zvf_format::{links::LinkWidth, numeric::Value};
use zvf_model::{
    array::{CompositeLinks, GeometryIndex},
    key::Key,
    layout::Part,
    level::LevelId,
};

use crate::{
    catalog::chunked_array::child,
    catalog::level::{Level, Session},
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    result::{Links, Values},
};

/// A geometry of a composite store besides the one that all others are about: it
/// has vertices and links, but neither objects nor attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompositeGeometry {
    /// What it is, and its name.
    pub kind: String,
    /// How many vertices it has, as declared.
    pub vertices: Option<u64>,
    /// How many edges, faces or polylines it has, as declared. Where polylines
    /// end is not stored.
    pub parts: Option<u64>,
    /// Its links; `None` when it has none.
    pub links: Option<CompositeGeometryLinks>,
}

/// Links of a further geometry. They count vertices as those were given, and the
/// store keeps them by chunk: who ends a link is only certain where vertices of
/// one chunk were given together, with the chunks in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompositeGeometryLinks {
    /// How many.
    pub count: u64,
    /// Ends of each.
    pub width: LinkWidth,
}

impl Session<'_> {
    /// Further geometries of a level, ascending by kind; none when the store is
    /// not composite. Three round trips at most.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the level is not there, or what it says of them cannot
    /// be understood.
    pub fn composite(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<Vec<CompositeGeometry>, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let node = Self::node_of(&level)?;
            let key = self.layout.described_at(level.id(), &Part::GeometryIndex);
            let key = key.map_err(|source| QueryError::Name {
                name: level.id().to_string(),
                source,
            })?;
            let Some(key) = key else {
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
                    Ok::<_, QueryError>(CompositeGeometry {
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

    async fn further_links(&self, key: &Key) -> Result<CompositeGeometryLinks, QueryError> {
        let nodes = self.fetch.nodes(core::slice::from_ref(key)).await?;
        let node = nodes.into_iter().next().flatten();
        let node = node.ok_or_else(|| Damage::new(key, Fault::Missing))?;
        let links = CompositeLinks::parse(key, node.attributes())?.value;
        Ok(CompositeGeometryLinks {
            count: links.link_count,
            width: links.width,
        })
    }

    /// Links of a further geometry as they are stored; `None` when it has none. Two
    /// round trips.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when they are damaged.
    pub fn stored_composite_links<'f>(
        &'f self,
        level: LevelId,
        name: &'f str,
    ) -> BoxFuture<'f, Result<Option<Links>, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.composite_link_rows(&level, name, &Diagnostics::new(false))
                .await
        })
    }

    pub(crate) async fn composite_link_rows(
        &self,
        level: &Level,
        name: &str,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Links>, QueryError> {
        let part = Part::CompositeLinks(name);
        let Some(family) = self.chunked_array(level, &part).await? else {
            return Ok(None);
        };
        let metadata = CompositeLinks::parse(&family.node, &family.attributes)?.value;
        let width: LinkWidth = metadata.width;
        let columns = u64::try_from(width.get()).unwrap_or(u64::MAX);
        let table = self.int64_rows_at(&family.node, name, columns);
        let table = table.await?;
        let table = table.ok_or_else(|| Damage::new(&family.node, Fault::Missing))?;
        let column = self.table_column(&table, None, diagnostics).await?;
        let rows = match &column.values {
            Values::Numbers(rows) => rows.view(),
            Values::Words { .. } => None,
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
            "{}: counts vertices in the order they were given in, which is not stored",
            family.node
        ));
        Ok(Some(Links {
            width: u32::try_from(width.get()).unwrap_or(u32::MAX),
            ends,
        }))
    }
}
