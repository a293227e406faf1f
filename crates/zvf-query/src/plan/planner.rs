//! The planner: turns a resolved query into a plan.

use std::sync::Arc;

use futures_util::future::try_join;
use zvf_catalog::{Diagnostics, LinkSet};
use zvf_model::root::LinksConvention;

use crate::{
    error::QueryError,
    exec::{
        chunk_scan::ChunkScan,
        clip::ClipOperator,
        composite::GeometryScan,
        empty::Empty,
        filter::Filter,
        gather::Gather,
        items_plan::ItemsPlan,
        level_jump::{LevelJump, LevelJumpPlan},
        limit::Limit,
        link_join::{LinkJoin, LinkObjects, LinksPlan, StreamedLinkJoin, WholeLinksPlan},
        link_scan::LinkScan,
        nearest::{Nearest, NearestPlan, NearestPointsPlan},
        object_columns::ObjectColumns,
        object_scan::{ObjectScan, OwnerScan},
        paths::{PathScan, PathsPlan},
        points::PointsPlan,
        query_plan::QueryPlan,
        selection_plan::SelectionPlan,
    },
    geometry::Mode,
    query::{NearestTo, Query, Shape},
    resolve::query::LevelQuery,
    session::Session,
};

impl LevelQuery<'_> {
    /// Plans the query. Reads metadata, and what naming the cells of links takes.
    pub(crate) async fn physical_plan(
        &self,
        diagnostics: &Diagnostics,
    ) -> Result<QueryPlan, QueryError> {
        if let Some(name) = &self.query.geometry {
            return Ok(QueryPlan::Geometry(GeometryScan(name.clone())));
        }
        let Some(levels) = self.query.drill else {
            return Planner::new(self, diagnostics)
                .plan()
                .await
                .map(QueryPlan::Selection);
        };
        // The limit applies to the vertices that are reached.
        let start = Query {
            limit: None,
            ..self.query.clone()
        };
        let start = Session::new(self.catalog).resolve(&start).await?;
        let input = Planner::new(&start, diagnostics).plan().await?;
        let jump = LevelJump(levels);
        Ok(QueryPlan::LevelJump(LevelJumpPlan { jump, input }))
    }
}

/// Inputs of the scans of points and links.
struct ScanInputs {
    /// `None` when the level has no vertices.
    scan: Option<ChunkScan>,
    links: Option<Arc<LinkSet>>,
    /// Reads objects to name the owners of vertices.
    owners: Option<OwnerScan>,
    gather: Gather,
}

/// The choice of a plan for a query.
struct Planner<'p, 'q> {
    query: &'p LevelQuery<'q>,
    diagnostics: &'p Diagnostics,
}

impl<'p, 'q> Planner<'p, 'q> {
    fn new(query: &'p LevelQuery<'q>, diagnostics: &'p Diagnostics) -> Self {
        Self { query, diagnostics }
    }

    async fn plan(&self) -> Result<SelectionPlan, QueryError> {
        if let Some(nearest) = self.query.query.nearest {
            return self.nearest(nearest).await;
        }
        match self.query.shape {
            Shape::Points if !self.query.selects_objects() => self.points().await,
            Shape::Points | Shape::Paths => self.paths().await.map(SelectionPlan::Items),
            Shape::Links if self.query.is_everything() => self.whole_links().await,
            Shape::Links => self.links().await.map(SelectionPlan::Items),
        }
    }

    /// Plans a search for the nearest rows.
    async fn nearest(&self, nearest: NearestTo) -> Result<SelectionPlan, QueryError> {
        let query = self.query;
        if query.selects_objects() {
            return Err(QueryError::Unsupported(
                "a search for the nearest cannot be combined with a selection of objects: \
                 use one or the other",
            ));
        }
        let nearest = Nearest(nearest);
        if query.shape == Shape::Points {
            return self.nearest_points(nearest).await;
        }
        if query.area.is_some() {
            return Err(QueryError::Unsupported(
                "a search for the nearest paths or links cannot be combined with a region: \
                 use one or the other",
            ));
        }
        let input = match query.shape {
            Shape::Links => self.links().await?,
            Shape::Points | Shape::Paths => self.paths().await?,
        };
        Ok(SelectionPlan::Nearest(NearestPlan { nearest, input }))
    }

    async fn nearest_points(&self, nearest: Nearest) -> Result<SelectionPlan, QueryError> {
        let inputs = self.scan_inputs().await?;
        let Some(scan) = inputs.scan else {
            return Ok(SelectionPlan::Empty(Empty::without_links()));
        };
        Ok(SelectionPlan::NearestPoints(NearestPointsPlan {
            columns: ObjectColumns { reads_ahead: false },
            nearest,
            gather: inputs.gather,
            filter: self.filter(),
            scan,
            owners: inputs.owners,
        }))
    }

    async fn points(&self) -> Result<SelectionPlan, QueryError> {
        let inputs = self.scan_inputs().await?;
        let Some(scan) = inputs.scan else {
            return Ok(SelectionPlan::Empty(Empty::without_links()));
        };
        Ok(SelectionPlan::Points(PointsPlan {
            columns: ObjectColumns { reads_ahead: false },
            gather: inputs.gather,
            limit: self.limit(),
            filter: self.filter(),
            scan,
            owners: inputs.owners,
        }))
    }

    async fn paths(&self) -> Result<ItemsPlan, QueryError> {
        let Some(schema) = self.query.schema(true).await? else {
            return Ok(ItemsPlan::Empty(Empty::without_links()));
        };
        let limit = self.limit();
        Ok(ItemsPlan::Paths(PathsPlan {
            columns: ObjectColumns {
                reads_ahead: limit.passes_all(),
            },
            gather: Gather {
                owners: self.query.shape == Shape::Points && self.query.shows_objects(),
            },
            limit,
            clip: self.clip(),
            filter: self.filter(),
            scan: PathScan {
                schema: Arc::new(schema),
            },
            objects: ObjectScan,
        }))
    }

    async fn links(&self) -> Result<ItemsPlan, QueryError> {
        let inputs = self.link_inputs().await?;
        let Some(scan) = inputs.scan else {
            return Ok(ItemsPlan::Empty(Empty::of_links(inputs.links.as_deref())));
        };
        let objects = match inputs.owners {
            _ if self.query.selects_objects() => LinkObjects::Selected(ObjectScan),
            Some(owners) => LinkObjects::Owners(owners),
            None => LinkObjects::None,
        };
        Ok(ItemsPlan::Links(LinksPlan {
            columns: ObjectColumns { reads_ahead: false },
            clip: self.clip(),
            gather: inputs.gather,
            limit: self.limit(),
            join: LinkJoin,
            filter: self.filter(),
            scan,
            objects,
            links: LinkScan::new(inputs.links, &self.query.convention),
        }))
    }

    async fn whole_links(&self) -> Result<SelectionPlan, QueryError> {
        let inputs = self.link_inputs().await?;
        let Some(scan) = inputs.scan else {
            return Ok(SelectionPlan::Empty(Empty::of_links(
                inputs.links.as_deref(),
            )));
        };
        Ok(SelectionPlan::WholeLinks(WholeLinksPlan {
            columns: ObjectColumns { reads_ahead: false },
            join: StreamedLinkJoin {
                gather: inputs.gather,
            },
            scan,
            owners: inputs.owners,
            links: LinkScan::new(inputs.links, &self.query.convention),
        }))
    }

    async fn link_inputs(&self) -> Result<ScanInputs, QueryError> {
        let inputs = self.scan_inputs().await?;
        let set = inputs.links.as_deref();
        self.query.check_link_attributes(set).await?;
        Ok(inputs)
    }

    /// Reads what the scans of points and links need to know. The object index and the links
    /// are looked up side by side.
    async fn scan_inputs(&self) -> Result<ScanInputs, QueryError> {
        let query = self.query;
        let index = async { Ok(query.catalog.object_index(&query.level).await?) };
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
        });
        Ok(ScanInputs {
            scan,
            links,
            owners: needs_owners.then_some(OwnerScan),
            gather: Gather {
                owners: query.shows_objects() && has_index,
            },
        })
    }

    fn has_implied_links(&self) -> bool {
        self.query.convention == LinksConvention::ImplicitWithBranches
    }

    fn filter(&self) -> Option<Filter> {
        let query = self.query;
        // The search for the nearest paths and links runs its input in spheres.
        let is_searched = query.query.nearest.is_some() && query.shape != Shape::Points;
        let is_filtered = query.area.is_some() || query.filter.vertex.is_some() || is_searched;
        is_filtered.then_some(Filter)
    }

    fn clip(&self) -> Option<ClipOperator> {
        let query = self.query;
        let is_clipped = query.area_mode == Mode::Clip && query.shape != Shape::Points;
        (query.area.is_some() && is_clipped).then_some(ClipOperator)
    }

    fn limit(&self) -> Limit {
        // The nearest are limited by their count.
        let query = self.query.query;
        Limit::new(query.limit.filter(|_| query.nearest.is_none()))
    }
}
