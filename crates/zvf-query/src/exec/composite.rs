//! Queries on the additional geometries of a composite store.

use zvf_model::layout::ArrayRole;

use super::{filter::Filter, limit::Limit};
use crate::{
    batch::vertices::Owners,
    catalog::chunk::{ChunkRequest, RequestedRows},
    catalog::schema::{Schema, position_dtype},
    diagnostics::Diagnostics,
    error::QueryError,
    query::Selection,
    resolve::query::{Emit, LevelQuery},
};

impl LevelQuery<'_> {
    /// Reads the vertices of an additional geometry and its links. Stored links number the vertices
    /// in the order in which the writer received them; the store does not keep that order.
    pub(crate) async fn composite_geometry(
        &self,
        name: &str,
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let query = self.query;
        let beyond_position = query.filter.is_some()
            || self.selects_objects()
            || query.nearest.is_some()
            || query.drill.is_some()
            || matches!(&query.columns, Selection::Named(names) if !names.is_empty());
        if beyond_position {
            return Err(QueryError::Unsupported(
                "an additional geometry has no objects, attributes or levels; select it by region only",
            ));
        }
        let part = ArrayRole::CompositeVertices(name);
        let vertices = self.session.chunked_array(&self.level, &part).await?;
        let vertices = vertices.ok_or_else(|| QueryError::NoGeometry(name.to_owned()))?;
        let metadata =
            zvf_model::array::Vertices::parse(&vertices.node, &vertices.attributes)?.value;
        let axes = self.space.axes();
        let schema = Schema {
            dtype: position_dtype(&vertices, &metadata, axes)?,
            axes,
            vertices,
            fragments: None,
            vertex: Vec::new(),
            fragment: Vec::new(),
            chunks: std::sync::OnceLock::new(),
        };
        let filter = Filter::by_area(&schema, self.area.as_ref());
        let mut chunks = self.chunks(&schema)?;
        if let Some(area) = &self.area {
            chunks.retain(|chunk| area.may_contain(chunk));
        }
        let requests = chunks.into_iter().map(|chunk| ChunkRequest {
            chunk,
            fragments: false,
            rows: RequestedRows::All,
        });
        let chunks = self
            .session
            .chunks(&schema, requests.collect(), diagnostics)
            .await?;
        let mut builder = self.vertices(&schema, false);
        let mut limit = Limit::new(self.query.limit);
        for chunk in chunks.iter().flatten() {
            let mut selected = filter.select(chunk, Owners::default())?;
            limit.truncate(&mut selected.rows);
            let object = |_| crate::NO_OBJECT;
            builder.push(&schema, chunk, &selected.rows, object, diagnostics)?;
        }
        let mut result = self.empty_result();
        builder.finish(&mut result);
        let is_whole = self.area.is_none() && self.allowed()?.is_everything();
        if is_whole && self.query.limit.is_none() {
            let links = self
                .session
                .composite_link_rows(&self.level, name, diagnostics);
            result.links = links.await?;
        }
        let _ = emit(result);
        Ok(())
    }
}
