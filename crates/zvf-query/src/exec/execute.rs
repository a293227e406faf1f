//! Execution of a plan, pipeline by pipeline.

use futures_util::future::BoxFuture;

use super::{
    context::Context,
    operator::{Operator, PlanNode},
};
use crate::{
    error::QueryError,
    query::Shape,
    resolve::query::Emit,
    result::{Links, Parts},
};

/// The operators between the root of a plan and the next source below it.
///
/// Batches pass through them one by one, so none of them is held. An operator that a plan
/// lacks leaves its batches alone.
#[derive(Clone, Copy)]
pub(crate) struct Pipeline<'p> {
    pub(crate) source: &'p PlanNode,
    pub(crate) filter: Option<usize>,
    /// The node that appends columns of objects.
    pub(crate) columns: Option<usize>,
}

impl<'p> Pipeline<'p> {
    /// Cuts the topmost pipeline from a plan.
    pub(crate) fn new(root: &'p PlanNode) -> Self {
        let mut pipeline = Self {
            source: root,
            filter: None,
            columns: None,
        };
        loop {
            let node = pipeline.source;
            match &node.operator {
                Operator::ObjectColumns => pipeline.columns = Some(node.id),
                Operator::Filter => pipeline.filter = Some(node.id),
                Operator::Gather | Operator::Limit | Operator::Clip => {}
                _ => return pipeline,
            }
            let Some(input) = node.inputs.first() else {
                return pipeline;
            };
            pipeline.source = input;
        }
    }

    /// Returns the id of the first operator below the source that is wanted, or of the source.
    pub(crate) fn below(&self, is_wanted: &dyn Fn(&Operator) -> bool) -> usize {
        self.source.find(is_wanted).unwrap_or(self.source).id
    }
}

impl PlanNode {
    /// Runs the plan and passes each batch of the result to `emit`.
    pub(crate) fn execute<'f>(
        &'f self,
        context: Context<'f>,
        emit: &'f mut Emit<'_>,
    ) -> BoxFuture<'f, Result<(), QueryError>> {
        let pipeline = Pipeline::new(self);
        let source = pipeline.source;
        match &source.operator {
            Operator::ChunkScan(scan) => Box::pin(scan.execute(pipeline, context, emit)),
            Operator::PathScan(scan) => Box::pin(scan.execute(pipeline, context, emit)),
            Operator::LinkJoin(join) => Box::pin(join.execute(pipeline, context, emit)),
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
            // Only operators above a source and scans below one are left: they have no rows.
            _ => Box::pin(async { Ok(()) }),
        }
    }
}
