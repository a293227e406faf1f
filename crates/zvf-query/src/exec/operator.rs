//! The nodes of a physical plan.

use core::fmt::{self, Write};
use std::sync::Arc;

use crate::{
    catalog::{links::LinkSet, schema::Schema},
    geometry::Mode,
    query::{NearestTo, Region, Shape},
    resolve::query::LevelQuery,
};

/// An operator with the operators it takes its input from.
#[derive(Debug)]
pub(crate) struct PlanNode {
    /// Number of the node in its plan. Inputs have smaller numbers.
    pub(crate) id: usize,
    pub(crate) operator: Operator,
    pub(crate) inputs: Vec<PlanNode>,
}

/// A step of a physical plan.
///
/// A closed set rather than a trait. The executor, the pipelines and `EXPLAIN` match on it without
/// default arms, so the compiler points out what a new operator lacks there. Sources apply the
/// operators above them by name: see "Adding an operator of queries" in CONTRIBUTING.md.
#[derive(Debug)]
pub(crate) enum Operator {
    /// Reads, in order, the chunks that neither the region nor the lists of chunks exclude.
    ChunkScan(ChunkScan),
    /// Reads the chunks that the paths or points of its objects go through.
    PathScan(PathScan),
    /// Reads manifests of objects, and selects objects by id, group and predicate.
    ObjectScan(ObjectScan),
    /// Reads cells of links.
    LinkScan(LinkScan),
    /// Reads an additional geometry of a composite store.
    GeometryScan(String),
    /// Returns one batch without rows: the level has no vertices.
    Empty(Empty),
    /// Selects rows by region and predicate.
    Filter,
    /// Splits or drops what crosses the border of the region.
    Clip,
    /// Passes the first vertices, paths or links on.
    Limit(u64),
    /// Copies the selected rows into columns of a batch.
    Gather,
    /// Joins links with the vertices at their ends, and selects them.
    LinkJoin,
    /// Joins all links of a level with its vertices, batch by batch.
    ///
    /// Also gathers the vertices: keeps the output rows of each chunk, not its vertices.
    StreamedLinkJoin,
    /// Keeps the rows nearest to a position.
    Nearest(NearestTo),
    /// Follows links to another level.
    LevelJump(i32),
    /// Appends the attributes of the objects in the result.
    ObjectColumns,
}

/// Parameters of [`Operator::ChunkScan`].
#[derive(Debug)]
pub(crate) struct ChunkScan {
    pub(crate) schema: Arc<Schema>,
    /// Reads fragment indexes even if rows do not depend on them.
    pub(crate) fragments: bool,
    /// The fragments of a chunk are its bins, and only bins that touch the region are read.
    pub(crate) bins: bool,
    /// Returns the object of each row.
    pub(crate) owners: bool,
}

/// Parameters of [`Operator::PathScan`].
#[derive(Debug)]
pub(crate) struct PathScan {
    pub(crate) schema: Arc<Schema>,
}

/// Parameters of [`Operator::ObjectScan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectScan {
    /// All objects of the level, to name the owners of vertices.
    Owners,
    /// Objects that the query selects.
    Selected,
}

/// Parameters of [`Operator::LinkScan`].
#[derive(Debug)]
pub(crate) struct LinkScan {
    /// The links of the level; `None` when it stores none.
    pub(crate) set: Option<Arc<LinkSet>>,
    /// True if consecutive rows of a fragment are linked.
    pub(crate) implied: bool,
}

/// Parameters of [`Operator::Empty`].
#[derive(Debug)]
pub(crate) struct Empty {
    /// The width of links, where the level has links.
    pub(crate) links: Option<u32>,
}

impl Operator {
    /// Returns the name of the operator.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::ChunkScan(_) => "ChunkScan",
            Self::PathScan(_) => "PathScan",
            Self::ObjectScan(_) => "ObjectScan",
            Self::LinkScan(_) => "LinkScan",
            Self::GeometryScan(_) => "GeometryScan",
            Self::Empty(_) => "Empty",
            Self::Filter => "Filter",
            Self::Clip => "Clip",
            Self::Limit(_) => "Limit",
            Self::Gather => "Gather",
            Self::LinkJoin => "LinkJoin",
            Self::StreamedLinkJoin => "StreamedLinkJoin",
            Self::Nearest(_) => "Nearest",
            Self::LevelJump(_) => "LevelJump",
            Self::ObjectColumns => "ObjectColumns",
        }
    }

    /// Returns the parameters of the operator in the form `key=value, key=value`.
    pub(crate) fn details(&self, query: &LevelQuery<'_>) -> String {
        let mut details = Details::default();
        match self {
            Self::ChunkScan(scan) => {
                let chunks = query.scanned_chunks(&scan.schema);
                details.add("chunks", chunks.map_or(0, |chunks| chunks.len()));
                if scan.bins {
                    details.add("rows", "bins");
                }
                if !query.read.vertex.is_empty() {
                    details.list("columns", &query.read.vertex);
                }
            }
            Self::PathScan(scan) => {
                if let Some(chunks) = query.nearby_chunks(&scan.schema).ok().flatten() {
                    details.add("nearby_chunks", chunks.len());
                }
                if !query.read.vertex.is_empty() {
                    details.list("columns", &query.read.vertex);
                }
            }
            Self::ObjectScan(ObjectScan::Owners) => details.add("objects", "all"),
            Self::ObjectScan(ObjectScan::Selected) => {
                let ids = query.query.objects.as_ref();
                let groups = query.query.groups.as_ref();
                if let Some(ids) = ids {
                    details.add("objects", ids.len());
                }
                if let Some(groups) = groups {
                    details.add("groups", groups.len());
                }
                if ids.is_none() && groups.is_none() {
                    details.add("objects", "all");
                }
                if let Some(predicate) = &query.filter.object {
                    details.add("predicate", predicate);
                }
                for predicate in &query.filter.group {
                    details.add("predicate", predicate);
                }
            }
            Self::LinkScan(scan) => {
                let cells = scan.set.as_ref().map_or(0, |set| set.cells.len());
                details.add("cells", cells);
                if scan.implied {
                    details.add("implied", true);
                }
            }
            Self::GeometryScan(name) => details.add("geometry", name),
            Self::Filter => {
                if let Some(nearest) = &query.query.nearest
                    && query.shape != Shape::Points
                {
                    details.add(
                        "region",
                        format_args!("sphere of the nearest {}", nearest.count),
                    );
                }
                if let Some(region) = &query.query.region {
                    details.add("region", RegionText(region));
                    if query.shape != Shape::Points {
                        details.add("mode", mode(query.area_mode));
                    }
                }
                if let Some(predicate) = &query.filter.vertex {
                    details.add("predicate", predicate);
                    if query.shape != Shape::Points && query.predicate_mode() != Mode::Clip {
                        details.add("predicate_mode", mode(query.predicate_mode()));
                    }
                }
            }
            Self::Clip => {
                let by = format!("{:?}", query.query.border_clip()).to_lowercase();
                details.add("by", by);
            }
            Self::Limit(rows) => details.add("rows", rows),
            Self::Gather => details.list("columns", &query.shown.vertex),
            Self::LinkJoin => {
                if let Some(predicate) = &query.filter.link {
                    details.add("predicate", predicate);
                }
            }
            Self::Nearest(nearest) => {
                let position: Vec<String> = nearest.position.iter().map(f64::to_string).collect();
                details.add("count", nearest.count);
                details.add("position", format_args!("({})", position.join(", ")));
            }
            Self::LevelJump(levels) => details.add("levels", levels),
            Self::ObjectColumns => details.list("columns", &query.shown.object),
            Self::StreamedLinkJoin | Self::Empty(_) => {}
        }
        details.0
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Touch => "touch",
        Mode::Within => "within",
        Mode::Clip => "clip",
    }
}

/// Parameters as text.
#[derive(Default)]
struct Details(String);

impl Details {
    fn add(&mut self, key: &str, value: impl fmt::Display) {
        let comma = if self.0.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(self.0, "{comma}{key}={value}");
    }

    fn list(&mut self, key: &str, values: &[String]) {
        self.add(key, format_args!("[{}]", values.join(", ")));
    }
}

/// A region as text.
struct RegionText<'r>(&'r Region);

impl fmt::Display for RegionText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[f64]| {
            let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
            numbers.join(", ")
        };
        match self.0 {
            Region::Box(bbox) => write!(f, "box({} to {})", list(bbox.lo()), list(bbox.hi())),
            Region::Sphere(sphere) => {
                write!(
                    f,
                    "sphere({}, radius {})",
                    list(sphere.centre()),
                    sphere.radius()
                )
            }
        }
    }
}

impl PlanNode {
    /// Calls `visit` for the node and its inputs, parents first, with their depth.
    pub(crate) fn walk<'n>(&'n self, depth: usize, visit: &mut dyn FnMut(&'n Self, usize)) {
        visit(self, depth);
        for input in &self.inputs {
            input.walk(depth.saturating_add(1), visit);
        }
    }

    /// Returns the schema of the scan of vertices nearest to the node.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        let own = match &self.operator {
            Operator::ChunkScan(scan) => Some(&*scan.schema),
            Operator::PathScan(scan) => Some(&*scan.schema),
            _ => None,
        };
        own.or_else(|| self.inputs.iter().find_map(Self::schema))
    }

    /// Returns the input of this kind nearest to the node.
    pub(crate) fn find(&self, is_wanted: &dyn Fn(&Operator) -> bool) -> Option<&Self> {
        if is_wanted(&self.operator) {
            return Some(self);
        }
        self.inputs.iter().find_map(|input| input.find(is_wanted))
    }
}
