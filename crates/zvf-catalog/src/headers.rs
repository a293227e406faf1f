//! Headers of files of other formats that a store was converted from.

use zvf_model::{fetch::BoxFuture, key::Key, metadata::Attributes};

use crate::{catalog::Catalog, chunked_array::child, error::CatalogError};

/// Folder of the headers.
const HEADERS: &str = "headers";

/// The header of a file of another format that the store was converted from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Header {
    /// Name of the format.
    pub format: String,
    /// Content of the header, in the terms of its format.
    pub attributes: Attributes,
}

impl Catalog<'_> {
    /// Reads the headers of other formats, ascending by format. Takes one round trip after a
    /// listing.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the headers cannot be read or the store cannot list.
    pub fn headers(&self) -> BoxFuture<'_, Result<Vec<Header>, CatalogError>> {
        Box::pin(async move {
            let folder = child(&Key::root(), HEADERS)?;
            let formats = self.header_formats().await?;
            let keys = formats
                .iter()
                .map(|format| child(&folder, format))
                .collect::<Result<Vec<_>, _>>()?;
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let nodes = self.fetch.nodes(&keys).await?;
            // A folder without a zarr.json is not a header.
            let headers = formats.into_iter().zip(nodes).filter_map(|(format, node)| {
                let attributes = node?.attributes().clone();
                Some(Header { format, attributes })
            });
            Ok(headers.collect())
        })
    }

    /// Returns the names of the formats that may have a header, ascending. Takes a listing.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the store cannot list.
    pub fn header_formats(&self) -> BoxFuture<'_, Result<Vec<String>, CatalogError>> {
        Box::pin(async move {
            let folder = child(&Key::root(), HEADERS)?;
            Ok(self.fetch.children(&folder).await?)
        })
    }

    /// Reads the header of a format; `None` if it has none. Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the header is damaged or cannot be read.
    pub fn header<'f>(
        &'f self,
        format: &'f str,
    ) -> BoxFuture<'f, Result<Option<Header>, CatalogError>> {
        Box::pin(async move {
            let key = child(&child(&Key::root(), HEADERS)?, format)?;
            let nodes = self.fetch.nodes(&[key]).await?;
            Ok(nodes.into_iter().next().flatten().map(|node| Header {
                format: format.to_owned(),
                attributes: node.attributes().clone(),
            }))
        })
    }
}
