//! The parts of a plan that batches pass through without being collected.

use super::{
    limit::Limit,
    operator::{Operator, PlanNode},
};

/// The operators between the root of a plan and the next source below it.
///
/// Batches pass through them one by one, so none of them is held. An operator that a plan lacks
/// does not run.
#[derive(Clone, Copy)]
pub(crate) struct Pipeline<'p> {
    pub(crate) source: &'p PlanNode,
    /// The node that filters rows.
    pub(crate) filter: Option<usize>,
    /// Clips paths and links that cross the border of the region.
    pub(crate) clips: bool,
    limit: Option<u64>,
    /// The node that appends columns of objects.
    columns: Option<usize>,
}

impl<'p> Pipeline<'p> {
    /// Cuts the topmost pipeline from a plan.
    pub(crate) fn new(root: &'p PlanNode) -> Self {
        let mut pipeline = Self {
            source: root,
            filter: None,
            clips: false,
            limit: None,
            columns: None,
        };
        loop {
            let node = pipeline.source;
            match &node.operator {
                Operator::ObjectColumns => pipeline.columns = Some(node.id),
                Operator::Filter => pipeline.filter = Some(node.id),
                Operator::Clip => pipeline.clips = true,
                Operator::Limit(rows) => pipeline.limit = Some(*rows),
                Operator::Gather => {}
                Operator::ChunkScan(_)
                | Operator::PathScan(_)
                | Operator::ObjectScan(_)
                | Operator::LinkScan(_)
                | Operator::GeometryScan(_)
                | Operator::Empty(_)
                | Operator::LinkJoin
                | Operator::StreamedLinkJoin
                | Operator::Nearest(_)
                | Operator::LevelJump(_) => return pipeline,
            }
            let Some(input) = node.inputs.first() else {
                return pipeline;
            };
            pipeline.source = input;
        }
    }

    /// Returns the pipeline below the source, with the columns of this one.
    pub(crate) fn below(&self, input: &'p PlanNode) -> Self {
        Self {
            columns: self.columns,
            ..Self::new(input)
        }
    }

    /// Returns the limit of the pipeline, before any row has passed.
    pub(crate) fn limit(&self) -> Limit {
        Limit::new(self.limit)
    }

    /// Returns the id of the node that appends columns of objects, or of the source.
    pub(crate) fn columns(&self) -> usize {
        self.columns.unwrap_or(self.source.id)
    }

    /// Returns the id of the scan of objects below the source, or of the source.
    pub(crate) fn objects(&self) -> usize {
        let is_scan = |operator: &Operator| matches!(operator, Operator::ObjectScan(_));
        self.source.find(&is_scan).unwrap_or(self.source).id
    }
}
