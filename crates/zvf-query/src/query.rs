//! The request of a query.

use zvf_catalog::Selection;
use zvf_model::{grid::ChunkCoord, json::Json, level::LevelId};

use crate::{
    geometry::{Bbox, Mode, Position, Sphere},
    predicate::Predicate,
};

/// A request to a store, in one form for every geometry and generation.
///
/// A query names a *level*, *selects* a part of it, and lists the columns to read. All selections
/// must hold; a query without selections reads the whole level.
///
/// A query selects **vertices** of point clouds, **paths** of lines, polylines and streamlines, and
/// **links** of graphs, skeletons and meshes with the vertices at their ends:
///
/// | | [`Mode::Touch`] | [`Mode::Within`] | [`Mode::Clip`] |
/// |---|---|---|---|
/// | vertices | inside the region | inside the region | inside the region |
/// | paths | whole paths with a segment or single vertex that touches the region | whole paths with all vertices inside | the parts inside |
/// | links | whole links whose segment or face touches the region; vertices inside and at ends of these links | links with all ends inside; vertices inside | the parts inside; vertices inside and new ones on the border |
///
/// A predicate returns only rows for which it is true: of vertices, links, or objects. A path is
/// split into the runs of vertices for which it is true, which are parts of the same object, and a
/// link is returned if it is true at all ends. The region then selects among these parts and links.
/// [`mode`](Self::mode()) changes that: in [`Mode::Touch`], a path or link is returned whole if the
/// predicate is true for one of its vertices, in [`Mode::Within`] if it is true for all.
///
/// Parts of the predicate that use link attributes only select links instead, with the vertices at
/// their ends and no others. Parts that use attributes of objects or groups only select objects: the
/// members of any group for which such a part is true.
///
/// ```
/// use zvf_query::{Query, geometry::{Bbox, Mode}, predicate::Predicate};
///
/// let query = Query::new()
///     .region(Bbox::parse("0,0,0,10,10,10")?)
///     .mode(Mode::Clip)
///     .filter(Predicate::parse("vertex.radius > 2")?)
///     .limit(1000);
/// assert_eq!(query.mode, Mode::Clip);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own, with a setter"
)]
pub struct Query {
    /// The level to read.
    pub level: LevelChoice,
    /// The elements to read; those of the store's kind of geometry if `None`.
    pub shape: Option<Shape>,
    /// The region to select.
    pub region: Option<Region>,
    /// The way in which the region selects paths and links.
    pub mode: Mode,
    /// The way in which the predicate selects paths and links. In [`Mode::Clip`], the default,
    /// the query returns no vertex for which the predicate is not true. Has no effect if
    /// `mode` is [`Mode::Clip`].
    pub predicate_mode: Mode,
    /// The treatment of segments and faces that cross the border.
    pub clip: Clip,
    /// Selects the elements nearest to a position, in ascending order of distance. Elements at the
    /// same distance keep their order. Links come with the vertices at their ends only.
    pub nearest: Option<NearestTo>,
    /// Selects objects by id. They are returned in this order, followed by the members of `groups`
    /// by ascending id. An object named twice is returned twice, its links and their vertices once.
    pub objects: Option<Vec<i64>>,
    /// Selects the members of groups, in addition to `objects`.
    pub groups: Option<Vec<u64>>,
    /// Restricts the query to vertices of these chunks. Each run of consecutive fragments of
    /// a path in these chunks is treated as a separate path. All ends of a link must be inside. An empty list
    /// selects nothing.
    pub chunks: Option<Vec<ChunkCoord>>,
    /// The predicate on attributes.
    pub filter: Option<Predicate>,
    /// The value of the attribute by which the level is chunked.
    pub chunked_by: Option<Json>,
    /// The attributes to read.
    pub columns: Selection,
    /// Returns the object of each vertex. This reads all manifests if vertices are selected by
    /// region. True by default.
    pub owners: bool,
    /// Maximum number of vertices, paths or links to return, in order. Parts of clipped paths count
    /// as paths; a link that is split counts once. Links come with the vertices at their ends only.
    /// If no link is selected, the limit applies to vertices.
    pub limit: Option<u64>,
    /// Returns, instead of the selection, the vertices it is linked to this many levels away:
    /// positive numbers lead to coarser levels. Limit and columns apply to the vertices reached.
    /// Clipping drops segments and faces that cross the border: new vertices have no links.
    pub drill: Option<i32>,
    /// The name of an additional geometry of a composite store to read.
    pub geometry: Option<String>,
    /// Returns the [address](crate::QueryResult::row_ids) of each vertex. Requires level 0, and no
    /// new vertices on a border.
    pub row_ids: bool,
    /// Returns the corners of faces counter-clockwise, seen from outside, as files and pictures of
    /// surfaces have them; otherwise in the [order](zvf_model::root::WindingOrder) of the store.
    pub counter_clockwise: bool,
    /// Reads an additive level alone, without the coarser levels that complete it.
    pub own_level: bool,
    /// Skips damaged parts and lists them in
    /// [`QueryResult::skipped`](crate::QueryResult::skipped) instead of failing.
    pub keep_going: bool,
}

/// The elements that a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Vertices: point clouds.
    Points,
    /// Paths: lines, polylines, streamlines.
    Paths,
    /// Vertices and links: graphs, skeletons, meshes.
    Links,
}

/// The choice of a level of a store.
///
/// A stale level, which was not refreshed after an edit, is read only if it is named by number.
/// Other choices skip it and report that in the notes of the result.
///
/// Each point of additive levels is stored on one level: a query returns the points of such a level
/// together with those of all coarser ones. A level whose `refinement` is `add` is returned, whatever
/// its geometry, together with the coarser levels that complete it. [`Query::own_level`] selects
/// what the level itself stores.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LevelChoice {
    /// The level with this number.
    Number(LevelId),
    /// The coarsest level whose bins are at most this many times as large as those of level 0, along
    /// every axis.
    Scale(f64),
    /// The finest level that declares at most this many vertices; the coarsest level if all declare
    /// more.
    Vertices(u64),
    /// The finest levels whose selected vertices fit into a budget, see [`VertexBudget`].
    Budget(VertexBudget),
}

/// An upper bound on the vertices of a result.
///
/// Selected vertices are counted level by level with the fragment indexes of the chunks concerned.
/// The query reads the finest level that fits into the budget. For points, it reads the next finer
/// level instead in as many regions as still fit: regions near the focus first, then regions that
/// gain few vertices. Regions are the chunks of the coarser level, or the smallest boxes that
/// chunks of both levels tile.
///
/// If a fifth of the budget or more is left then, the next region is read from the finer level as well,
/// with as many vertices as fit, at even distances in their order.
///
/// Links do not cross levels, so links come from one level, and so does each path. If paths leave a fifth
/// of the budget or more, as many of them as fit come from the next finer level, in the order in which
/// levels keep objects by default.
///
/// The share of a chunk that is inside the region is an estimate, and the rest of paths, other ends
/// of links and new vertices on a border are not counted. If a result exceeds the budget, the query
/// runs again on a coarser level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VertexBudget {
    /// Maximum number of vertices.
    pub vertices: u64,
    /// The position around which the result is finest.
    pub focus: Option<Position>,
}

impl VertexBudget {
    /// Creates a budget of this many vertices.
    pub fn new(vertices: u64) -> Self {
        Self {
            vertices,
            focus: None,
        }
    }

    zvf_model::setters! {
        focus: Position,
    }
}

impl From<VertexBudget> for LevelChoice {
    fn from(budget: VertexBudget) -> Self {
        Self::Budget(budget)
    }
}

impl Default for LevelChoice {
    fn default() -> Self {
        Self::Number(LevelId::new(0))
    }
}

/// A region of space.
#[derive(Clone, Debug, PartialEq)]
pub enum Region {
    /// A box, its border included.
    Box(Bbox),
    /// A sphere, its surface included.
    Sphere(Sphere),
}

impl From<Bbox> for Region {
    fn from(bbox: Bbox) -> Self {
        Self::Box(bbox)
    }
}

impl From<Sphere> for Region {
    fn from(sphere: Sphere) -> Self {
        Self::Sphere(sphere)
    }
}

/// The treatment of segments and faces that cross the border of a region under
/// [`Mode::Clip`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clip {
    /// Splits them: the part inside ends in new vertices on the border. Attributes of a new
    /// vertex are interpolated if they are floats, and copied from the nearer end otherwise.
    /// Boxes only.
    #[default]
    Split,
    /// Drops them. Segments and faces with all vertices inside remain, and so do vertices
    /// inside that are joined to no other vertex inside.
    Drop,
}

/// A search for the vertices, paths or links nearest to a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearestTo {
    /// The position, with coordinates up to 1e150. Vertices beyond 1e154 are at an infinite distance.
    pub position: Position,
    /// The number of elements to return.
    pub count: usize,
}

impl Query {
    /// Returns whether the query selects attributes by name.
    pub fn names_attributes(&self) -> bool {
        matches!(&self.columns, Selection::Named(named) if !named.is_empty())
    }
}

impl Default for Query {
    fn default() -> Self {
        Self {
            level: LevelChoice::default(),
            shape: None,
            region: None,
            mode: Mode::default(),
            predicate_mode: Mode::Clip,
            clip: Clip::default(),
            nearest: None,
            objects: None,
            groups: None,
            chunks: None,
            filter: None,
            chunked_by: None,
            columns: Selection::default(),
            owners: true,
            limit: None,
            drill: None,
            geometry: None,
            row_ids: false,
            counter_clockwise: false,
            own_level: false,
            keep_going: false,
        }
    }
}

impl Query {
    /// Creates a query for all of level 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the way in which both the region and the predicate select paths and links.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self.predicate_mode = mode;
        self
    }

    /// Selects the `count` elements nearest to `position`.
    #[must_use]
    pub fn nearest(mut self, position: Position, count: usize) -> Self {
        self.nearest = Some(NearestTo { position, count });
        self
    }

    zvf_model::setters! {
        chunked_by: into Json,
        chunks: into Vec<ChunkCoord>,
        clip: Clip,
        columns: Selection,
        counter_clockwise: bool,
        drill: i32,
        filter: Predicate,
        geometry: into String,
        groups: into Vec<u64>,
        keep_going: bool,
        level: into LevelChoice,
        limit: u64,
        objects: into Vec<i64>,
        own_level: bool,
        owners: bool,
        predicate_mode: Mode,
        region: into Region,
        row_ids: bool,
        shape: Shape,
    }

    /// Returns the treatment of what crosses the border. A level jump follows links of stored
    /// vertices, and new vertices on the border have none.
    pub(crate) fn border_clip(&self) -> Clip {
        match self.drill {
            None => self.clip,
            Some(_) => Clip::Drop,
        }
    }

    /// Returns whether the query scans a whole level. Its cells are then not cached, because they
    /// would evict the cells that the next query needs.
    pub(crate) fn scans_whole_level(&self) -> bool {
        self.region.is_none()
            && self.nearest.is_none()
            && self.objects.is_none()
            && self.groups.is_none()
            && self.chunks.is_none()
            && self.limit.is_none()
    }
}

/// Upper bounds on a batch of a streamed result.
///
/// A path is not cut: one that exceeds the bounds is a batch of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchOptions {
    /// Maximum number of vertices, or of links, in a batch.
    pub rows: usize,
    /// Approximate maximum size of the columns of a batch in bytes.
    pub bytes: u64,
}

impl Default for BatchOptions {
    /// 65,536 rows and 16 MiB.
    fn default() -> Self {
        Self {
            rows: 1 << 16,
            bytes: 16 << 20,
        }
    }
}

impl BatchOptions {
    /// Creates the default bounds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of vertices, or of links, in a batch; at least 1.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = rows.max(1);
        self
    }

    /// Sets the approximate maximum size of the columns of a batch; at least 1.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes.max(1);
        self
    }
}
