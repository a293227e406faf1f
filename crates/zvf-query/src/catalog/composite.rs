//! Further geometries of composite stores.

use futures_util::future::BoxFuture;
use zvf_format::{links::LinkWidth, numeric::Value};
use zvf_model::{array::CompositeLinks, layout::Part, level::LevelId};

use crate::{
    batch::vertices::Owners,
    catalog::level::{Level, Session},
    catalog::schema::Schema,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    exec::chunk::{ChunkRequest, Rows},
    query::Selection,
    resolve::query::{Emit, LevelQuery, VertexFilter},
    result::{Links, Values},
};

impl LevelQuery<'_> {
    /// Vertices of a further geometry, and its links as they are stored: they
    /// count the vertices in the order they were given in, which is not stored.
    pub(crate) async fn further_geometry(
        &self,
        name: &str,
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let query = self.query;
        let beyond_place = query.filter.is_some()
            || self.selects_objects()
            || query.nearest.is_some()
            || query.drill.is_some()
            || matches!(&query.columns, Selection::Named(names) if !names.is_empty());
        if beyond_place {
            return Err(QueryError::Unsupported(
                "a further geometry has no objects, attributes or levels: ask for it by place alone",
            ));
        }
        let part = Part::CompositeVertices(name);
        let vertices = self.session.family(&self.level, &part).await?;
        let vertices = vertices.ok_or_else(|| QueryError::NoGeometry(name.to_owned()))?;
        let metadata =
            zvf_model::array::Vertices::parse(&vertices.node, &vertices.attributes)?.value;
        let schema = Schema {
            dtype: metadata.dtype,
            axes: self.space.axes(),
            vertices,
            fragments: None,
            vertex: Vec::new(),
            fragment: Vec::new(),
        };
        let filter = VertexFilter {
            predicate: None,
            object_columns: Vec::new(),
        };
        let mut chunks = self.chunks(&schema)?;
        if let Some(area) = &self.area {
            chunks.retain(|chunk| area.reaches(chunk));
        }
        let requests = chunks.into_iter().map(|chunk| ChunkRequest {
            chunk,
            fragments: false,
            rows: Rows::All,
        });
        let chunks = self
            .session
            .chunks(&schema, requests.collect(), diagnostics)
            .await?;
        let mut builder = self.vertices(&schema, false);
        let mut left = usize::try_from(self.limit()).unwrap_or(usize::MAX);
        for chunk in chunks.iter().flatten() {
            let mut selected = chunk.runs();
            self.retain_selected(&schema, chunk, &mut selected, &filter, &Owners::default())?;
            selected.truncate(left);
            left = left.saturating_sub(selected.len());
            builder.push(&schema, chunk, &selected, |_| crate::NO_OBJECT, diagnostics)?;
        }
        let mut answer = self.empty_answer();
        builder.finish(&mut answer);
        let is_whole = self.area.is_none() && self.allowed()?.is_everything();
        if is_whole && self.query.limit.is_none() {
            let links = self
                .session
                .further_link_rows(&self.level, name, diagnostics);
            answer.links = links.await?;
        }
        let _ = emit(answer);
        Ok(())
    }
}

impl Session<'_> {
    /// Links of a further geometry as they are stored; `None` when it has none. Two
    /// round trips.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when they are damaged.
    pub fn stored_further_links<'f>(
        &'f self,
        level: LevelId,
        name: &'f str,
    ) -> BoxFuture<'f, Result<Option<Links>, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.further_link_rows(&level, name, &Diagnostics::new(false))
                .await
        })
    }

    async fn further_link_rows(
        &self,
        level: &Level,
        name: &str,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Links>, QueryError> {
        let part = Part::CompositeLinks(name);
        let Some(family) = self.family(level, &part).await? else {
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
