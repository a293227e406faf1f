//! Queries on the additional geometries of a composite store.

use zvf_catalog::{ChunkRequest, RequestedRows, Selection};
use zvf_model::object_ids::Owner;

use super::{
    context::ExecContext,
    filter::RowFilter,
    limit::Limit,
    operator::{Details, Operator},
};
use crate::{
    batch::vertices::Owners,
    error::QueryError,
    resolve::query::{Emit, LevelQuery},
    result::Links,
};

/// The operator that reads an additional geometry of a composite store, by its name.
#[derive(Debug)]
pub(crate) struct GeometryScan(pub(crate) String);

impl Operator for GeometryScan {
    const NAME: &'static str = "GeometryScan";

    fn details(&self, _: &LevelQuery<'_>, details: &mut Details) {
        details.add("geometry", &self.0);
    }
}

impl GeometryScan {
    /// Reads the vertices of an additional geometry and its links. Stored links number the vertices
    /// in the order in which the writer received them; the store does not keep that order.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let name = self.0.as_str();
        let ExecContext {
            query,
            catalog,
            diagnostics,
        } = context.of(self);
        let request = query.query;
        let beyond_position = request.filter.is_some()
            || query.selects_objects()
            || request.nearest.is_some()
            || request.drill.is_some()
            || matches!(&request.columns, Selection::Named(names) if !names.is_empty());
        if beyond_position {
            return Err(QueryError::Unsupported(
                "an additional geometry has no objects, attributes or levels; select it by region only",
            ));
        }
        let schema = catalog
            .composite_schema(&query.level, name)
            .await?
            .ok_or_else(|| QueryError::NoGeometry(name.to_owned()))?;
        let filter = RowFilter::by_area(&schema, query.area.as_ref());
        let mut chunks = query.chunks(&schema)?;
        if let Some(area) = &query.area {
            chunks.retain(|chunk| area.may_contain(chunk));
        }
        let requests = chunks
            .into_iter()
            .map(|chunk| ChunkRequest {
                chunk,
                fragments: false,
                rows: RequestedRows::All,
            })
            .collect();
        let chunks = catalog.chunks(&schema, requests, diagnostics).await?;
        let mut builder = query.vertices(&schema, false);
        let mut limit = Limit::new(request.limit);
        for chunk in chunks.iter().flatten() {
            let mut selected = filter.select(chunk, Owners::default())?;
            limit.truncate(&mut selected.rows);
            let object = |_| Owner::None;
            builder.push(&schema, chunk, &selected.rows, object, diagnostics)?;
        }
        let mut result = query.empty_result();
        builder.finish(&mut result);
        let is_whole = query.area.is_none() && query.allowed()?.is_everything();
        if is_whole && request.limit.is_none() {
            let links = catalog.composite_link_rows(&query.level, name, diagnostics);
            result.links = links.await?.map(|links| Links {
                width: u32::try_from(links.width.get()).unwrap_or(u32::MAX),
                ends: links.ends,
            });
        }
        let _ = emit(result);
        Ok(())
    }
}
