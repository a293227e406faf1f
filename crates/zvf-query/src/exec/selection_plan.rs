//! Plans of vertices of the level of the query.

use zvf_catalog::Schema;

use super::{
    context::{ExecContext, Execution},
    empty::Empty,
    items_plan::ItemsPlan,
    link_join::WholeLinksPlan,
    nearest::{NearestPlan, NearestPointsPlan},
    operator::OperatorTree,
    points::PointsPlan,
};
use crate::resolve::query::Emit;

/// A plan that selects vertices of the level of the query.
#[derive(Debug)]
pub(crate) enum SelectionPlan {
    Points(PointsPlan),
    NearestPoints(NearestPointsPlan),
    /// Paths or links.
    Items(ItemsPlan),
    WholeLinks(WholeLinksPlan),
    Nearest(NearestPlan),
    Empty(Empty),
}

impl SelectionPlan {
    /// Runs the plan and passes each batch of the result to `emit`.
    pub(crate) fn execute<'f>(
        &'f self,
        context: ExecContext<'f>,
        emit: &'f mut Emit<'_>,
    ) -> Execution<'f> {
        match self {
            Self::Points(plan) => Box::pin(plan.execute(context, emit)),
            Self::NearestPoints(plan) => Box::pin(plan.execute(context, emit)),
            Self::Items(plan) => plan.execute(context, emit),
            Self::WholeLinks(plan) => Box::pin(plan.execute(context, emit)),
            Self::Nearest(plan) => Box::pin(plan.execute(context, emit)),
            Self::Empty(plan) => Box::pin(plan.execute(context, emit)),
        }
    }

    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        match self {
            Self::Points(plan) => plan.describe(tree),
            Self::NearestPoints(plan) => plan.describe(tree),
            Self::Items(plan) => plan.describe(tree),
            Self::WholeLinks(plan) => plan.describe(tree),
            Self::Nearest(plan) => plan.describe(tree),
            Self::Empty(plan) => tree.push(plan),
        }
    }

    /// Returns the schema of the scan of vertices; `None` for a level without vertices.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Points(plan) => Some(&plan.scan.schema),
            Self::NearestPoints(plan) => Some(&plan.scan.schema),
            Self::Items(plan) => plan.schema(),
            Self::WholeLinks(plan) => Some(&plan.scan.schema),
            Self::Nearest(plan) => plan.input.schema(),
            Self::Empty(_) => None,
        }
    }
}
