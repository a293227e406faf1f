//! The plan of a query: a type for each shape, whose fields are the operators that run.

use super::{
    composite::GeometryScan,
    context::{ExecContext, Execution},
    level_jump::LevelJumpPlan,
    operator::OperatorTree,
    selection_plan::SelectionPlan,
};
use crate::resolve::query::Emit;

/// The plan of a query.
#[derive(Debug)]
pub(crate) enum QueryPlan {
    Selection(SelectionPlan),
    LevelJump(LevelJumpPlan),
    Geometry(GeometryScan),
}

impl QueryPlan {
    /// Runs the plan and passes each batch of the result to `emit`.
    pub(crate) fn execute<'f>(
        &'f self,
        context: ExecContext<'f>,
        emit: &'f mut Emit<'_>,
    ) -> Execution<'f> {
        match self {
            Self::Selection(plan) => plan.execute(context, emit),
            Self::LevelJump(plan) => Box::pin(plan.execute(context, emit)),
            Self::Geometry(scan) => Box::pin(scan.execute(context, emit)),
        }
    }

    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        match self {
            Self::Selection(plan) => plan.describe(tree),
            Self::LevelJump(plan) => plan.describe(tree),
            Self::Geometry(scan) => tree.push(scan),
        }
    }
}
