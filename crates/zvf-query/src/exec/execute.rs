//! Execution of a plan, pipeline by pipeline.

use zvf_model::fetch::BoxFuture;

use super::{
    context::ExecContext,
    operator::{Operator, PlanNode},
    pipeline::Pipeline,
};
use crate::{
    error::QueryError,
    query::Shape,
    resolve::query::Emit,
    result::{Links, Parts},
};

impl PlanNode {
    /// Runs the plan and passes each batch of the result to `emit`.
    pub(crate) fn execute<'f>(
        &'f self,
        context: ExecContext<'f>,
        emit: &'f mut Emit<'_>,
    ) -> BoxFuture<'f, Result<(), QueryError>> {
        let pipeline = Pipeline::new(self);
        let source = pipeline.source;
        match &source.operator {
            Operator::ChunkScan(scan) => Box::pin(scan.execute(pipeline, context, emit)),
            Operator::PathScan(scan) => Box::pin(scan.execute(pipeline, context, emit)),
            Operator::LinkJoin => Box::pin(super::link_join::execute(pipeline, context, emit)),
            Operator::StreamedLinkJoin => {
                Box::pin(super::link_join::stream(pipeline, context, emit))
            }
            Operator::Nearest(nearest) => {
                Box::pin(super::nearest::execute(nearest, pipeline, context, emit))
            }
            Operator::LevelJump(levels) => {
                Box::pin(super::level_jump::execute(*levels, source, context, emit))
            }
            Operator::GeometryScan(name) => Box::pin(async move {
                let query = context.scope(source.id);
                query
                    .composite_geometry(name, context.diagnostics, emit)
                    .await
            }),
            Operator::Empty(empty) => Box::pin(async move {
                let query = context.scope(source.id);
                let mut result = query.without_vertices().await?;
                if query.shape == Shape::Paths {
                    result.parts = Some(Parts {
                        offsets: vec![0],
                        objects: Vec::new(),
                    });
                }
                result.links = empty.links.map(|width| Links {
                    width,
                    ends: Vec::new(),
                });
                let _ = emit(result);
                Ok(())
            }),
            // These are above a source or below one, and have no rows of their own.
            Operator::ObjectScan(_)
            | Operator::LinkScan(_)
            | Operator::Filter
            | Operator::Clip
            | Operator::Limit(_)
            | Operator::Gather
            | Operator::ObjectColumns => Box::pin(async { Ok(()) }),
        }
    }
}
