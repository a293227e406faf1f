//! Scan of links: the cells of a level and which of them a query reads.

use std::sync::Arc;

use zvf_format::path::Delta;

use crate::{
    catalog::links::{LinkSet, LinkSetCache, LinkView},
    diagnostics::Diagnostics,
    error::QueryError,
    resolve::query::LevelQuery,
    sync::lock,
};

impl LevelQuery<'_> {
    /// Returns the links of the level.
    ///
    /// Naming all their cells takes longer than a small query, so they are cached in the level,
    /// unless naming them reports something that each query must repeat.
    pub(crate) async fn link_set(
        &self,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Arc<LinkSet>>, QueryError> {
        let attributes = &self.read.link;
        let cache = self.level.extension::<LinkSetCache>();
        let known = lock(&cache.0).clone();
        if let Some((_, set)) = known.filter(|(of, _)| of == attributes) {
            return Ok(set);
        }
        let (level, told) = (&*self.level, Diagnostics::new(diagnostics.keeps_going()));
        let session = self.session;
        let view = LinkView::Logical;
        let set = session.links(level, Some(level), Delta::INTRA, attributes, view, &told);
        let set = set.await?.map(Arc::new);
        if told.is_empty() {
            *lock(&cache.0) = Some((attributes.clone(), set.clone()));
        }
        diagnostics.absorb(&told);
        Ok(set)
    }
}
