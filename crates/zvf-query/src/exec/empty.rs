//! The result of a level without vertices.

use zvf_catalog::LinkSet;
use zvf_format::links::LinkWidth;

use super::{context::ExecContext, operator::Operator};
use crate::{
    error::QueryError,
    query::Shape,
    resolve::query::Emit,
    result::{Links, Parts},
};

/// The operator that returns one batch without rows: the level has no vertices.
#[derive(Debug)]
pub(crate) struct Empty {
    /// The width of links, for a query on links.
    links: Option<u32>,
}

impl Operator for Empty {
    const NAME: &'static str = "Empty";
}

impl Empty {
    /// Creates the plan of points and paths.
    pub(crate) const fn without_links() -> Self {
        Self { links: None }
    }

    /// Creates the plan of links.
    pub(crate) fn of_links(set: Option<&LinkSet>) -> Self {
        let width = set
            .and_then(|set| set.width().ok().flatten())
            .map_or(2, LinkWidth::get);
        Self {
            links: Some(u32::try_from(width).unwrap_or(2)),
        }
    }

    /// Emits the batch.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let query = context.query;
        let mut result = query.without_vertices().await?;
        if query.shape == Shape::Paths {
            result.parts = Some(Parts {
                offsets: vec![0],
                objects: Vec::new(),
            });
        }
        result.links = self.links.map(|width| Links {
            width,
            ends: Vec::new(),
        });
        let _ = emit(result);
        Ok(())
    }
}
