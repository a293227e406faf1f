//! The parts of a plan that batches pass through without being collected.

use super::operator::{Operator, PlanNode};

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
