//! Scan of links: the cells of a level, and the selection of cells that a query reads.

use std::sync::{Arc, Mutex};

use zvf_catalog::{
    CatalogError, Diagnostics, FragmentsByChunk, LinkCellSource, LinkRecords, LinkSet, LinkView,
    advise_naming_attributes,
};
use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{grid::ChunkCoord, root::LinksConvention, word::Word};

use super::{
    context::ExecContext,
    operator::{Details, Operator},
};
use crate::{
    error::QueryError, geometry::Mode, predicate::Scope, resolve::query::LevelQuery, sync::lock,
};

/// The links inside a level, with the attributes last requested.
#[derive(Debug, Default)]
struct LinkSetCache(Mutex<Option<CachedLinks>>);

/// Names of attributes and the links opened with them; `None` for a level without links.
type CachedLinks = (Vec<String>, Option<Arc<LinkSet>>);

/// The operator that reads cells of links.
#[derive(Debug)]
pub(crate) struct LinkScan {
    /// The links of the level; `None` when it stores none.
    pub(crate) set: Option<Arc<LinkSet>>,
    /// True if consecutive rows of a fragment are linked.
    pub(crate) implied: bool,
}

impl Operator for LinkScan {
    const NAME: &'static str = "LinkScan";

    fn details(&self, _: &LevelQuery<'_>, details: &mut Details) {
        let cells = self.set.as_ref().map_or(0, |set| set.cells.len());
        details.add("cells", cells);
        if self.implied {
            details.add("implied", true);
        }
    }
}

impl LinkScan {
    /// Creates a scan of the links of a level.
    pub(crate) fn new(set: Option<Arc<LinkSet>>, convention: &Word<LinksConvention>) -> Self {
        let width = set.as_ref().and_then(|set| set.width().ok().flatten());
        // Implied links have two ends, and stored links of other widths none that they could replace.
        let are_edges = width.is_none_or(|width| width == LinkWidth::EDGE);
        Self {
            set,
            implied: are_edges && *convention == LinksConvention::ImplicitWithBranches,
        }
    }

    /// Reports links that cannot be read.
    pub(crate) fn note_unknown_rows(&self, context: ExecContext<'_>) {
        if self.set.as_ref().is_some_and(|set| !set.rows_are_known) {
            context.diagnostics.note(
                "links between chunks are left out: writers of paths did not store the rows of \
                 their ends; read the store as paths",
            );
        }
    }

    /// Returns the cells that can hold a selected link. With `members`, links are between
    /// fragments of selected objects.
    pub(crate) fn cells(
        &self,
        query: &LevelQuery<'_>,
        members: Option<&FragmentsByChunk>,
    ) -> Result<Vec<usize>, QueryError> {
        let allowed = query.allowed()?;
        let is_scanned = |chunk: &ChunkCoord| {
            allowed.allows(chunk) && members.is_none_or(|members| members.contains(chunk))
        };
        let is_within = query.link_mode() == Mode::Within;
        let reaches = |chunks: &[ChunkCoord]| match &query.area {
            None => true,
            // Links with an end outside the region are not selected.
            Some(area) if is_within => self.concerns(chunks, |chunk| area.may_contain(chunk)),
            Some(area) => area.may_cross(chunks),
        };
        let is_candidate = |cell: &LinkCellSource| {
            let chunks = cell.chunks.as_ref();
            self.has_rows(cell)
                && chunks.is_none_or(|chunks| reaches(chunks) && self.concerns(chunks, is_scanned))
        };
        let Some(set) = &self.set else {
            return Ok(Vec::new());
        };
        let mut cells = match members {
            Some(members) => set.cells_at(members.chunks()),
            None => (0..set.cells.len()).collect(),
        };
        cells.retain(|cell| set.cells.get(*cell).is_some_and(is_candidate));
        Ok(cells)
    }

    /// Returns whether the rows of a cell are those of vertices: writers of paths stored other
    /// rows in links between chunks.
    fn has_rows(&self, cell: &LinkCellSource) -> bool {
        cell.is_inside || self.set.as_ref().is_some_and(|set| set.rows_are_known)
    }

    /// Returns whether records between `chunks` can change the result. Records that leave the
    /// scanned chunks are not in it, but in a skeleton they still replace the implied link of a
    /// vertex.
    fn concerns(&self, chunks: &[ChunkCoord], is_scanned: impl Fn(&ChunkCoord) -> bool) -> bool {
        if self.implied {
            chunks.iter().any(is_scanned)
        } else {
            chunks.iter().all(is_scanned)
        }
    }
}

impl ExecContext<'_> {
    /// Reads cells of links, except those in the cache. With `members`, the fragments of objects by
    /// chunk, cells may contain only the links of these fragments.
    pub(crate) async fn read_links(
        self,
        set: &LinkSet,
        cells: &[usize],
        members: Option<&FragmentsByChunk>,
    ) -> Result<Vec<LinkRecords>, QueryError> {
        let (catalog, level, diagnostics) = (self.catalog, &self.query.level, self.diagnostics);
        let Some(cache) = &self.query.cache else {
            let read = match members {
                Some(members) => catalog.member_links(level, set, cells, members, diagnostics),
                None => catalog.link_cells(level, set, cells, diagnostics),
            };
            return Ok(read.await?);
        };
        let is_cached = |cell: &&usize| lock(&cache.links).contains_key(*cell);
        let new: Vec<usize> = cells
            .iter()
            .filter(|cell| !is_cached(cell))
            .copied()
            .collect();
        let read = catalog.link_cells(level, set, &new, diagnostics).await?;
        let mut links = lock(&cache.links);
        links.extend(new.into_iter().zip(read));
        Ok(cells
            .iter()
            .filter_map(|cell| links.get(cell).cloned())
            .collect())
    }
}

impl LevelQuery<'_> {
    /// Returns the links of the level.
    ///
    /// Listing all cells takes longer than a small query, so the links are cached in the level,
    /// unless the listing records damage or notes that each query must report.
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
        let catalog = self.catalog;
        let view = LinkView::Logical;
        let set = catalog
            .links(level, Some(level), Delta::INTRA, attributes, view, &told)
            .await?
            .map(Arc::new);
        if told.is_empty() {
            *lock(&cache.0) = Some((attributes.clone(), set.clone()));
        }
        diagnostics.absorb(&told);
        Ok(set)
    }

    /// Checks that the attributes of links in the predicate exist, as far as the level can be listed.
    /// Takes a listing if an attribute has no values among the links, as on a level without links.
    pub(crate) async fn check_link_attributes(
        &self,
        set: Option<&LinkSet>,
    ) -> Result<(), QueryError> {
        let with_values = |name: &String| {
            let mut attributes = set.iter().flat_map(|set| &set.attributes);
            attributes.any(|attribute| attribute.name == *name && attribute.metadata.is_some())
        };
        for name in &self.filter.names.link {
            if with_values(name) {
                continue;
            }
            let listed = self
                .catalog
                .own_attribute_names(&self.level, Scope::Link)
                .await;
            match listed.map_err(advise_naming_attributes) {
                Ok(names) if names.contains(name) => {}
                Ok(_) => {
                    let absent = self
                        .catalog
                        .absent_attribute(&self.level, Scope::Link, name)?;
                    return Err(absent.into());
                }
                // Only a listing tells an attribute without values from one that does not exist.
                Err(CatalogError::Nameless(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
