//! What a store has besides its geometry: headers of other formats, further
//! geometries.

use futures_util::future::BoxFuture;
use zvf_model::{key::Key, metadata::Attributes};

use crate::{catalog::chunked_array::child, catalog::level::Session, error::QueryError};

/// The header of a file of another format that the store was made from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Header {
    /// The format.
    pub format: String,
    /// What the header said. Nobody but the format knows what it means.
    pub attributes: Attributes,
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
}
