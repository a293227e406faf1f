//! Plans that a search for the nearest runs.

use zvf_catalog::Schema;

use super::{
    context::{ExecContext, Execution},
    empty::Empty,
    link_join::LinksPlan,
    operator::OperatorTree,
    paths::PathsPlan,
};
use crate::resolve::query::Emit;

/// A selection of paths or links, which a search for the nearest runs repeatedly.
#[derive(Debug)]
pub(crate) enum ItemsPlan {
    Paths(PathsPlan),
    Links(LinksPlan),
    Empty(Empty),
}

impl ItemsPlan {
    /// Runs the plan and passes each batch of the result to `emit`.
    pub(crate) fn execute<'f>(
        &'f self,
        context: ExecContext<'f>,
        emit: &'f mut Emit<'_>,
    ) -> Execution<'f> {
        match self {
            Self::Paths(plan) => Box::pin(plan.execute(context, emit)),
            Self::Links(plan) => Box::pin(plan.execute(context, emit)),
            Self::Empty(plan) => Box::pin(plan.execute(context, emit)),
        }
    }

    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        match self {
            Self::Paths(plan) => plan.describe(tree),
            Self::Links(plan) => plan.describe(tree),
            Self::Empty(plan) => tree.push(plan),
        }
    }

    /// Returns the schema of the scan of vertices; `None` for a level without vertices.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Paths(plan) => Some(&plan.scan.schema),
            Self::Links(plan) => Some(&plan.scan.schema),
            Self::Empty(_) => None,
        }
    }
}
