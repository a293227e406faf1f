//! The planner: turns a resolved query into a tree of operators.

use std::sync::Arc;

use futures_util::future::try_join;
use zvf_format::links::LinkWidth;
use zvf_model::root::LinksConvention;

use crate::{
    catalog::links::LinkSet,
    diagnostics::Diagnostics,
    error::QueryError,
    exec::operator::{ChunkScan, Empty, LinkScan, ObjectScan, Operator, PathScan, PlanNode},
    geometry::Mode,
    query::{Query, Shape},
    resolve::query::LevelQuery,
};

impl LevelQuery<'_> {
    /// Plans the query. Reads metadata, and what naming the cells of links takes.
    pub(crate) async fn physical_plan(
        &self,
        diagnostics: &Diagnostics,
    ) -> Result<PlanNode, QueryError> {
        let drill = self.query.drill.filter(|_| self.query.geometry.is_none());
        let Some(levels) = drill else {
            return Planner::new(self, diagnostics).plan().await;
        };
        // The limit applies to the vertices that are reached.
        let start = Query {
            limit: None,
            ..self.query.clone()
        };
        let start = self.session.resolve(&start).await?;
        let mut planner = Planner::new(&start, diagnostics);
        let input = planner.plan().await?;
        Ok(planner.above(Operator::LevelJump(levels), input))
    }
}

/// The scan of chunks of a query on points or links.
struct ScanInputs {
    /// `None` when the level has no vertices.
    scan: Option<ChunkScan>,
    links: Option<Arc<LinkSet>>,
    /// Reads objects to name the owners of vertices.
    needs_owners: bool,
}

/// A plan under construction.
struct Planner<'p, 'q> {
    query: &'p LevelQuery<'q>,
    diagnostics: &'p Diagnostics,
    nodes: usize,
}

impl<'p, 'q> Planner<'p, 'q> {
    fn new(query: &'p LevelQuery<'q>, diagnostics: &'p Diagnostics) -> Self {
        Self {
            query,
            diagnostics,
            nodes: 0,
        }
    }

    fn node(&mut self, operator: Operator, inputs: Vec<PlanNode>) -> PlanNode {
        let id = self.nodes;
        self.nodes = self.nodes.saturating_add(1);
        PlanNode {
            id,
            operator,
            inputs,
        }
    }

    fn above(&mut self, operator: Operator, input: PlanNode) -> PlanNode {
        self.node(operator, vec![input])
    }

    async fn plan(&mut self) -> Result<PlanNode, QueryError> {
        let query = self.query.query;
        if let Some(name) = &query.geometry {
            return Ok(self.node(Operator::GeometryScan(name.clone()), Vec::new()));
        }
        if query.nearest.is_some() {
            return self.nearest().await;
        }
        self.select().await
    }

    /// Plans a search for the nearest rows.
    async fn nearest(&mut self) -> Result<PlanNode, QueryError> {
        let query = self.query;
        if query.selects_objects() {
            return Err(QueryError::Unsupported(
                "a search for the nearest cannot be combined with a selection of objects: \
                 use one or the other",
            ));
        }
        let nearest = query.query.nearest.ok_or(QueryError::NoScale)?;
        if query.shape != Shape::Points {
            if query.area.is_some() {
                return Err(QueryError::Unsupported(
                    "a search for the nearest paths or links cannot be combined with a region: \
                     use one or the other",
                ));
            }
            let input = self.select().await?;
            return Ok(self.above(Operator::Nearest(nearest), input));
        }
        let mut inputs = self.scan_inputs().await?;
        let Some(input) = self.scan(&mut inputs) else {
            return Ok(self.empty(None));
        };
        let input = self.filtered(input);
        let plan = self.above(Operator::Nearest(nearest), input);
        Ok(self.with_object_columns(plan))
    }

    /// Plans the selection by region, objects and predicate.
    async fn select(&mut self) -> Result<PlanNode, QueryError> {
        match self.query.shape {
            Shape::Links => self.links().await,
            Shape::Paths => self.paths().await,
            Shape::Points if self.query.selects_objects() => self.paths().await,
            Shape::Points => self.points().await,
        }
    }

    async fn points(&mut self) -> Result<PlanNode, QueryError> {
        let mut inputs = self.scan_inputs().await?;
        let Some(scan) = self.scan(&mut inputs) else {
            return Ok(self.empty(None));
        };
        let plan = self.filtered(scan);
        let plan = self.limited(plan);
        let plan = self.above(Operator::Gather, plan);
        Ok(self.with_object_columns(plan))
    }

    async fn paths(&mut self) -> Result<PlanNode, QueryError> {
        let Some(schema) = self.query.schema(true).await? else {
            return Ok(self.empty(None));
        };
        let schema = Arc::new(schema);
        let objects = self.node(Operator::ObjectScan(ObjectScan::Selected), Vec::new());
        let plan = self.above(Operator::PathScan(PathScan { schema }), objects);
        let plan = self.filtered(plan);
        let plan = self.clipped(plan);
        let plan = self.limited(plan);
        let plan = self.above(Operator::Gather, plan);
        Ok(self.with_object_columns(plan))
    }

    async fn links(&mut self) -> Result<PlanNode, QueryError> {
        let mut inputs = self.scan_inputs().await?;
        let set = inputs.links.as_deref();
        self.query.check_link_attributes(set).await?;
        let Some(scan) = self.scan(&mut inputs) else {
            let width = inputs.links.as_ref();
            let width = width.and_then(|set| set.width().ok().flatten());
            let width = width.map_or(2, LinkWidth::get);
            return Ok(self.empty(Some(u32::try_from(width).unwrap_or(2))));
        };
        let vertices = self.filtered(scan);
        let scan = LinkScan::new(inputs.links, &self.query.convention);
        let links = self.node(Operator::LinkScan(scan), Vec::new());
        let inputs = vec![vertices, links];
        if self.query.is_everything() {
            let plan = self.node(Operator::StreamedLinkJoin, inputs);
            return Ok(self.with_object_columns(plan));
        }
        let plan = self.node(Operator::LinkJoin, inputs);
        // Links are limited before they are split, so that a limit counts links of the store.
        let plan = self.limited(plan);
        let plan = self.above(Operator::Gather, plan);
        let plan = self.clipped(plan);
        Ok(self.with_object_columns(plan))
    }

    /// Reads what the scans of points and links need to know. The object index and the links
    /// are looked up side by side.
    async fn scan_inputs(&self) -> Result<ScanInputs, QueryError> {
        let query = self.query;
        let index = query.session.object_index(&query.level);
        let (index, links) = if query.shape == Shape::Links {
            try_join(index, query.link_set(self.diagnostics)).await?
        } else {
            (index.await?, None)
        };
        let has_index = index.is_some();
        let needs_owners = has_index && query.needs_objects();
        let is_near = query.query.nearest.is_some();
        let is_points = query.shape == Shape::Points;
        let bins = is_points && !is_near && !has_index && query.has_bins();
        // Selected objects are fragments, even where their ids are not shown.
        let by_links = !is_points && (query.selects_objects() || self.has_implied_links());
        let fragments =
            needs_owners || bins || by_links || !query.tiles() || !query.read.fragment.is_empty();
        let schema = query.schema(fragments).await?.map(Arc::new);
        let scan = schema.map(|schema| ChunkScan {
            schema,
            fragments,
            bins,
            owners: query.shows_objects() && has_index,
        });
        Ok(ScanInputs {
            scan,
            links,
            needs_owners,
        })
    }

    fn has_implied_links(&self) -> bool {
        self.query.convention == LinksConvention::ImplicitWithBranches
    }

    /// Plans the scan of chunks with the objects it needs; `None` without vertices.
    fn scan(&mut self, inputs: &mut ScanInputs) -> Option<PlanNode> {
        let scan = inputs.scan.take()?;
        let objects = if self.query.selects_objects() {
            Some(ObjectScan::Selected)
        } else {
            inputs.needs_owners.then_some(ObjectScan::Owners)
        };
        let objects = objects.map(|scan| self.node(Operator::ObjectScan(scan), Vec::new()));
        Some(self.node(Operator::ChunkScan(scan), objects.into_iter().collect()))
    }

    fn empty(&mut self, links: Option<u32>) -> PlanNode {
        self.node(Operator::Empty(Empty { links }), Vec::new())
    }

    fn filtered(&mut self, input: PlanNode) -> PlanNode {
        let query = self.query;
        // The search for the nearest paths and links runs its input in spheres.
        let is_searched = query.query.nearest.is_some() && query.shape != Shape::Points;
        if query.area.is_none() && query.filter.vertex.is_none() && !is_searched {
            return input;
        }
        self.above(Operator::Filter, input)
    }

    fn clipped(&mut self, input: PlanNode) -> PlanNode {
        let query = self.query;
        let is_clipped = query.area_mode == Mode::Clip && query.shape != Shape::Points;
        if query.area.is_none() || !is_clipped {
            return input;
        }
        self.above(Operator::Clip, input)
    }

    fn limited(&mut self, input: PlanNode) -> PlanNode {
        // The nearest are limited by their count.
        let query = self.query.query;
        match query.limit.filter(|_| query.nearest.is_none()) {
            Some(rows) => self.above(Operator::Limit(rows), input),
            None => input,
        }
    }

    fn with_object_columns(&mut self, input: PlanNode) -> PlanNode {
        self.above(Operator::ObjectColumns, input)
    }
}
