//! Opens the links inside a level for a change.

use std::sync::Arc;

use zvf_format::path::Delta;
use zvf_model::{
    array::{LinkArray, LinkFamily},
    layout::ArrayRole,
    level_content::CellContent,
};

use super::{LinkStorage, LinkView};
use crate::{
    catalog::Catalog, content::OpenArray, diagnostics::Diagnostics, error::CatalogError,
    level::Level,
};

impl Catalog<'_> {
    /// Opens the family of the links inside a level, and the arrays of links and of their
    /// attributes. `None` without links.
    pub(crate) async fn link_content(
        &self,
        level: &Level,
    ) -> Result<(Option<LinkFamily>, Vec<OpenArray>), CatalogError> {
        let delta = Delta::INTRA;
        let names = self.link_attribute_names(level, delta).await?;
        let (diagnostics, view) = (Diagnostics::new(false), LinkView::Stored);
        let set = self
            .links(level, None, delta, &names, view, &diagnostics)
            .await?;
        // `links` has opened the family.
        let role = ArrayRole::LinkFamily(delta);
        let Some(node) = self.chunked_array(level, &role).await? else {
            return Ok((None, Vec::new()));
        };
        let family = LinkFamily::parse(&node.node, delta, &node.attributes)?.value;
        let Some(family) = family else {
            return Ok((None, Vec::new()));
        };
        let mut arrays = Vec::new();
        for source in set.iter().flat_map(|set| &set.sources) {
            let LinkStorage::Each(cells) = &source.cells else {
                continue;
            };
            let path = cells.node.as_str();
            let segment = path.rsplit_once('/').map_or(path, |(_, segment)| segment);
            let links = LinkArray::parse(&cells.node, segment, &cells.attributes, &family)?;
            arrays.push((Arc::clone(cells), CellContent::Links(links.value)));
            for values in source.attributes.iter().flatten() {
                if let LinkStorage::Each(cells) = &values.cells {
                    let metadata = CellContent::Attribute((*values.metadata).clone());
                    arrays.push((Arc::clone(cells), metadata));
                }
            }
        }
        Ok((Some(family), arrays))
    }
}
