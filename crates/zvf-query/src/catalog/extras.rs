//! What a store has besides its geometry: headers of other formats, further
//! geometries.

use futures_util::future::{BoxFuture, try_join_all};
use zvf_format::links::LinkWidth;
use zvf_model::{
    array::{CompositeLinks, GeometryIndex},
    key::Key,
    layout::Part,
    level::LevelId,
    metadata::Attributes,
};

use crate::{
    catalog::family::child,
    catalog::level::Session,
    error::{Damage, Fault, QueryError},
};

/// The header of a file of another format that the store was made from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Header {
    /// The format.
    pub format: String,
    /// What the header said. Nobody but the format knows what it means.
    pub attributes: Attributes,
}

/// A geometry of a composite store besides the one that all others are about: it
/// has vertices and links, but neither objects nor attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FurtherGeometry {
    /// What it is, and its name.
    pub kind: String,
    /// How many vertices it has, as declared.
    pub vertices: Option<u64>,
    /// How many edges, faces or polylines it has, as declared. Where polylines
    /// end is not stored.
    pub parts: Option<u64>,
    /// Its links; `None` when it has none.
    pub links: Option<FurtherLinks>,
}

/// Links of a further geometry. They count vertices as those were given, and the
/// store keeps them by chunk: who ends a link is only certain where vertices of
/// one chunk were given together, with the chunks in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FurtherLinks {
    /// How many.
    pub count: u64,
    /// Ends of each.
    pub width: LinkWidth,
}

impl Session<'_> {
    /// Headers of other formats, ascending by format. One round trip after a
    /// listing.
    ///
    /// # Errors
    ///
    /// [`QueryError`], also when the store cannot list.
    pub fn headers(&self) -> BoxFuture<'_, Result<Vec<Header>, QueryError>> {
        Box::pin(async move {
            let folder = child(&Key::root(), "headers")?;
            let formats = self.fetch.children(&folder).await?;
            let keys = formats.iter().map(|format| child(&folder, format));
            let keys = keys.collect::<Result<Vec<_>, _>>()?;
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let nodes = self.fetch.nodes(&keys).await?;
            // A folder without a zarr.json is no header.
            let headers = formats.into_iter().zip(nodes).filter_map(|(format, node)| {
                let attributes = node?.attributes().clone();
                Some(Header { format, attributes })
            });
            Ok(headers.collect())
        })
    }

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
    ) -> BoxFuture<'_, Result<Vec<FurtherGeometry>, QueryError>> {
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
                    Ok::<_, QueryError>(FurtherGeometry {
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

    async fn further_links(&self, key: &Key) -> Result<FurtherLinks, QueryError> {
        let nodes = self.fetch.nodes(core::slice::from_ref(key)).await?;
        let node = nodes.into_iter().next().flatten();
        let node = node.ok_or_else(|| Damage::new(key, Fault::Missing))?;
        let links = CompositeLinks::parse(key, node.attributes())?.value;
        Ok(FurtherLinks {
            count: links.link_count,
            width: links.width,
        })
    }
}
