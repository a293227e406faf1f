//! What a query asks for.

use zvf_model::{grid::ChunkCoord, level::LevelId};

use crate::{
    geometry::{Bbox, Mode, Position, Sphere},
    predicate::{Predicate, Scope},
};

/// What to read of a store, the same for every geometry and generation.
///
/// A query says which *level*, what to *select* of it, and which columns to
/// read with it. All selections must hold; without any, everything is
/// selected.
///
/// What is selected are **vertices** of point clouds, **paths** of lines,
/// polylines and streamlines, and **links** of graphs, skeletons and meshes
/// with the vertices at their ends:
///
/// | | [`Mode::Touch`] | [`Mode::Within`] | [`Mode::Clip`] |
/// |---|---|---|---|
/// | vertices | in the region | the same | the same |
/// | paths | whole, when a segment or lone vertex comes into it | whole, when all vertices are in it | the pieces in it |
/// | links | whole, when the segment or face comes into it; vertices in it and at ends of such links | with all ends in it; vertices in it | the part in it; vertices in it and new ones on its border |
///
/// A predicate selects like a region: a vertex is *in* when it is true for it.
/// Parts of it that look at links alone select links instead, with the vertices at
/// their ends and no others; parts that look at objects or groups alone select
/// objects: members of any one group that such a part is true for. With a region, a
/// path or link must be selected by both.
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
pub struct Query {
    /// Which level.
    pub level: LevelChoice,
    /// How to read it; by the store's kind of geometry when `None`.
    pub shape: Option<Shape>,
    /// Where.
    pub region: Option<Region>,
    /// How the region and the predicate select.
    pub mode: Mode,
    /// How clipping treats segments and faces that cross the border.
    pub clip: Clip,
    /// The nearest to a place, the nearest first and those as near as each other in
    /// the order they would have otherwise. Of links, with the vertices at their ends
    /// alone.
    pub nearest: Option<NearestTo>,
    /// These objects, in this order, then those of `groups` by ascending id; an
    /// object named twice is given twice, its links and their vertices once.
    pub objects: Option<Vec<i64>>,
    /// Members of these groups. Together with `objects`, both are selected.
    pub groups: Option<Vec<u64>>,
    /// Only vertices of these chunks. Paths are cut into runs of consecutive
    /// pieces inside, each selected by itself; of links all ends must be inside.
    /// Empty selects nothing.
    pub chunks: Option<Vec<ChunkCoord>>,
    /// What must hold of attributes.
    pub filter: Option<Predicate>,
    /// Value of the attribute that chunks the level.
    pub chunked_by: Option<serde_json::Value>,
    /// Which attributes to read.
    pub columns: Selection,
    /// Whether each vertex comes with the object it belongs to, which takes reading all
    /// manifests where vertices are selected by place. True by default.
    pub owners: bool,
    /// The first so many vertices, paths or links: of paths that are clipped their
    /// parts, of links those that are cut and not what becomes of them. Links come
    /// with the vertices at their ends alone; where no link is selected, vertices
    /// are limited.
    pub limit: Option<u64>,
    /// Instead of what is selected, the vertices of the level so many levels
    /// on that it is linked to: up to the coarser for positive numbers. Limit and
    /// columns are those of what is reached.
    pub drill: Option<i32>,
    /// A further geometry of a composite store, by its name.
    pub geometry: Option<String>,
    /// Whether to leave out what cannot be read and list it in
    /// [`QueryResult::skipped`](crate::QueryResult::skipped), rather than fail.
    pub keep_going: bool,
}

/// How vertices are read: by themselves, along paths, or with their links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Vertices: point clouds.
    Points,
    /// Paths: lines, polylines, streamlines.
    Paths,
    /// Vertices and links: graphs, skeletons, meshes.
    Links,
}

/// Which level of a store.
///
/// Levels that are behind what was changed since they were made are read when they
/// are named by number, and passed over otherwise; the answer says so in its notes.
///
/// Points of additive levels are on one level each: of such a level, points are
/// given together with those of all coarser ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LevelChoice {
    /// This one.
    Number(LevelId),
    /// The coarsest whose bins are at most so many times those of level 0, along
    /// every axis.
    Scale(f64),
    /// The finest with at most so many vertices, as declared; the coarsest when
    /// all have more.
    Vertices(u64),
    /// As fine as so many vertices of what is selected can be, see [`VertexBudget`].
    Budget(VertexBudget),
}

/// How many vertices an answer may have.
///
/// What is selected is counted level by level, by the fragment indexes of the chunks it
/// may be in. The finest level that has no more than may be given is given. Where
/// vertices stand alone, the next is given in its place in
/// regions that get more vertices by it, as many as there is room for: the nearest to
/// the focus first, then those that get the fewest more. Regions are the chunks of the
/// coarser level, or the least boxes that chunks of both fill.
///
/// Links do not cross levels: paths and what is linked come from one level.
///
/// Of chunks that a region cuts, the share that is in it is an estimate; rest of paths,
/// other ends of links and new vertices on a border are not counted. An answer that
/// has too many then is not given, and asked for again, coarser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VertexBudget {
    /// Vertices, at most.
    pub vertices: u64,
    /// Where it has to be finest.
    pub focus: Option<Position>,
}

impl VertexBudget {
    /// So many vertices.
    pub fn new(vertices: u64) -> Self {
        Self {
            vertices,
            focus: None,
        }
    }

    /// Finest at a place.
    #[must_use]
    pub fn focus(mut self, place: Position) -> Self {
        self.focus = Some(place);
        self
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

/// A part of space.
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
pub enum Clip {
    /// Splits them: the part inside ends in new vertices on the border. Attributes of a new
    /// vertex are interpolated if they are floats, and copied from the nearer end otherwise.
    /// Boxes only.
    #[default]
    Split,
    /// Drops them: only segments and faces between vertices inside stay, and vertices without
    /// a neighbour inside.
    Drop,
}

/// The so many nearest to a place: vertices, paths or links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearestTo {
    /// The place.
    pub place: Position,
    /// How many.
    pub count: usize,
}

/// Which attributes to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All there are. Takes a listing of what there is.
    #[default]
    All,
    /// These, an error when one is not there. A name without scope is that of
    /// every scope that has it.
    Named(Vec<(Option<Scope>, String)>),
}

impl Selection {
    /// No attributes.
    pub fn none() -> Self {
        Self::Named(Vec::new())
    }
}

impl Default for Query {
    fn default() -> Self {
        Self {
            level: LevelChoice::default(),
            shape: None,
            region: None,
            mode: Mode::default(),
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
            keep_going: false,
        }
    }
}

impl Query {
    /// Everything of level 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of this level.
    #[must_use]
    pub fn level(mut self, level: impl Into<LevelChoice>) -> Self {
        self.level = level.into();
        self
    }

    /// Read this way, whatever kind of geometry the store says it has.
    #[must_use]
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = Some(shape);
        self
    }

    /// In this region.
    #[must_use]
    pub fn region(mut self, region: impl Into<Region>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// Selecting in this way.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how clipping treats segments and faces that cross the border.
    #[must_use]
    pub fn clip(mut self, clip: Clip) -> Self {
        self.clip = clip;
        self
    }

    /// The `count` nearest to `place`.
    #[must_use]
    pub fn nearest(mut self, place: Position, count: usize) -> Self {
        self.nearest = Some(NearestTo { place, count });
        self
    }

    /// These objects.
    #[must_use]
    pub fn objects(mut self, ids: impl Into<Vec<i64>>) -> Self {
        self.objects = Some(ids.into());
        self
    }

    /// The members of these groups.
    #[must_use]
    pub fn groups(mut self, groups: impl Into<Vec<u64>>) -> Self {
        self.groups = Some(groups.into());
        self
    }

    /// Of these chunks.
    #[must_use]
    pub fn chunks(mut self, chunks: impl Into<Vec<ChunkCoord>>) -> Self {
        self.chunks = Some(chunks.into());
        self
    }

    /// For which this holds.
    #[must_use]
    pub fn filter(mut self, predicate: Predicate) -> Self {
        self.filter = Some(predicate);
        self
    }

    /// With these attributes.
    #[must_use]
    pub fn columns(mut self, columns: Selection) -> Self {
        self.columns = columns;
        self
    }

    /// Sets whether each vertex comes with the object it belongs to.
    #[must_use]
    pub fn owners(mut self, owners: bool) -> Self {
        self.owners = owners;
        self
    }

    /// The first so many.
    #[must_use]
    pub fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// What this is linked to so many levels on.
    #[must_use]
    pub fn drill(mut self, levels: i32) -> Self {
        self.drill = Some(levels);
        self
    }

    /// Leaving out what is damaged.
    #[must_use]
    pub fn keep_going(mut self) -> Self {
        self.keep_going = true;
        self
    }

    /// Whether it looks at all there is of a level, so that its cells are of no use to the next
    /// query, which would rather find those of its neighbourhood.
    pub(crate) fn goes_through_all(&self) -> bool {
        self.region.is_none()
            && self.nearest.is_none()
            && self.objects.is_none()
            && self.groups.is_none()
            && self.chunks.is_none()
            && self.limit.is_none()
    }
}
