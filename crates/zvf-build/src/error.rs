//! Errors of planning a store, found before the first byte is written.

use zvf_format::numeric::Kind;
use zvf_model::{
    draco::DracoError,
    grid::{BinsError, ShapeError},
    key::KeyError,
    layout::AddressError,
};

/// Geometry or a design that cannot be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The geometry has no vertices.
    #[error("there are no vertices to write")]
    Empty,
    /// Coordinates end inside a row.
    #[error(
        "positions end inside a row: {bytes} bytes are not a multiple of {axes} {kind:?} values"
    )]
    PartialPositions {
        /// Bytes given.
        bytes: usize,
        /// Axes.
        axes: usize,
        /// Type of a coordinate.
        kind: Kind,
    },
    /// An option or the store has another number of axes than the positions.
    #[error("{what} has {found} axes, but the positions have {expected}")]
    AxisCount {
        /// Name of the option.
        what: &'static str,
        /// Axes of the positions.
        expected: usize,
        /// Axes found.
        found: usize,
    },
    /// Positions of a type that is not real, such as complex numbers.
    #[error("positions cannot be of type {0:?}; use floats or integers")]
    PositionKind(Kind),
    /// A dense object index in an older profile.
    #[error("only stores of 0.9 can have a dense object index")]
    DenseIndex,
    /// Vertices that Draco cannot encode.
    #[error("vertices cannot be encoded with Draco: {0}")]
    NoDraco(&'static str),
    /// A chunk that Draco cannot encode.
    #[error("chunk {chunk} cannot be encoded")]
    Draco {
        /// The chunk.
        chunk: String,
        /// The cause.
        source: DracoError,
    },
    /// A coordinate is infinite or NaN.
    #[error(
        "vertex {vertex} has a coordinate of {value} on axis {axis}, but positions must be finite; \
         remove the vertex (vertices and axes count from 0)"
    )]
    NotFinite {
        /// The vertex.
        vertex: usize,
        /// The axis.
        axis: usize,
        /// The coordinate.
        value: f64,
    },
    /// The declared type of positions cannot hold a coordinate.
    #[error(
        "vertex {vertex} has a coordinate of {value} on axis {axis}, which {kind:?} cannot hold"
    )]
    OutOfType {
        /// The vertex.
        vertex: usize,
        /// The axis.
        axis: usize,
        /// The coordinate.
        value: f64,
        /// The declared type.
        kind: Kind,
    },
    /// A vertex lies outside the bounds of the store.
    #[error(
        "vertex {vertex} lies outside the bounds on axis {axis}: {value} is not in {lower} to {upper}; drop such items, or expand the bounds"
    )]
    OutOfBounds {
        /// The vertex.
        vertex: usize,
        /// The axis.
        axis: usize,
        /// The coordinate.
        value: f64,
        /// Lower bound of the axis.
        lower: f64,
        /// Upper bound of the axis.
        upper: f64,
    },
    /// Every vertex lies outside the bounds, and such vertices are dropped.
    #[error("all vertices lie outside the bounds")]
    AllOutside,
    /// Bounds are not finite, or the lower bound is above the upper.
    #[error("bounds from {lower} to {upper} on axis {axis} are not a finite, ascending range")]
    InvalidBounds {
        /// The axis.
        axis: usize,
        /// Lower bound.
        lower: f64,
        /// Upper bound.
        upper: f64,
    },
    /// A column has another number of rows than the vertices, links or objects that it describes.
    #[error("{what} {name:?} has {found} rows, but {expected} are needed")]
    RowCount {
        /// Role of the column.
        what: &'static str,
        /// Name of the column.
        name: String,
        /// Expected number of rows.
        expected: usize,
        /// Number of rows found.
        found: usize,
    },
    /// The numbers of a column end inside a row.
    #[error("{what} {name:?} ends inside a row")]
    PartialRow {
        /// Role of the column.
        what: &'static str,
        /// Name of the column.
        name: String,
    },
    /// A name is empty or too long.
    #[error("{what} cannot be called {name:?}: {why}")]
    InvalidName {
        /// Role of the column.
        what: &'static str,
        /// The name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// An attribute of vertices has the name of an axis.
    #[error(
        "the vertex attribute {0:?} has the name of an axis, and conditions could not tell them apart; \
         rename the attribute, or give the axes other names"
    )]
    AttributeIsAxis(String),
    /// Two columns of one role share a name.
    #[error("there are two {what}s called {name:?}")]
    DuplicateName {
        /// Role of the column.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The format reserves the name of a column.
    #[error("the {what} {name:?} is reserved by the format; choose another name")]
    ReservedName {
        /// Role of the column.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The kind of geometry does not support an input.
    #[error("{kind} do not support {what}")]
    Unsupported {
        /// The kind of geometry.
        kind: &'static str,
        /// Unsupported input.
        what: &'static str,
    },
    /// Positions have more axes than a store can have.
    #[error(
        "positions have {vertices} rows of {axes} coordinates, but a vertex has 1 to 32; \
         transpose them if they have a column for each vertex"
    )]
    PositionAxes {
        /// Number of rows.
        vertices: usize,
        /// Number of coordinates in a row.
        axes: usize,
    },
    /// A required input is missing.
    #[error("{kind} need {what}")]
    MissingInput {
        /// The kind of geometry.
        kind: &'static str,
        /// Missing input.
        what: &'static str,
    },
    /// Part offsets do not ascend from 0 to the number of vertices.
    #[error("part_offsets do not ascend from 0 to {vertices}: entry {at} is {found}")]
    PartOffsets {
        /// Number of vertices.
        vertices: usize,
        /// Index of the offset.
        at: usize,
        /// Offset found.
        found: u64,
    },
    /// A line does not have exactly two vertices.
    #[error("line {line} has {vertices} vertices")]
    LineVertices {
        /// Index of the line.
        line: usize,
        /// Number of vertices of the line.
        vertices: usize,
    },
    /// Links have an unsupported number of ends.
    #[error("links have {found} ends, but {kind} need {expected}")]
    LinkWidth {
        /// The kind of geometry.
        kind: &'static str,
        /// Supported numbers of ends.
        expected: &'static str,
        /// Number of ends found.
        found: usize,
    },
    /// The link ends stop inside a link.
    #[error("{ends} link ends are not a multiple of {width}")]
    PartialLink {
        /// Number of ends found.
        ends: usize,
        /// Number of ends of a link.
        width: usize,
    },
    /// A link end is not the index of a vertex.
    #[error(
        "link {link} refers to vertex {vertex}, but there are {vertices} vertices; \
         they count from 0"
    )]
    LinkEndOutOfRange {
        /// Index of the link.
        link: usize,
        /// Vertex index found.
        vertex: i64,
        /// Number of vertices.
        vertices: usize,
    },
    /// A vertex of a skeleton has two parents.
    #[error("vertex {vertex} has two parents, {first} and {second}: a skeleton is a tree")]
    MultipleParents {
        /// Child vertex.
        vertex: usize,
        /// First parent.
        first: usize,
        /// Second parent.
        second: usize,
    },
    /// A vertex of a skeleton is its own ancestor.
    #[error("vertex {0} is its own ancestor: a skeleton is a tree")]
    Cycle(usize),
    /// A child and its parent belong to different objects.
    #[error("vertex {child} of object {object} has a parent in object {other}")]
    ParentInOtherObject {
        /// Child vertex.
        child: usize,
        /// Object of the child.
        object: i64,
        /// Object of the parent.
        other: i64,
    },
    /// An object id is reserved, or is not a valid row where ids are rows.
    #[error("object id {id} is invalid: {why}")]
    ObjectId {
        /// Object id.
        id: i64,
        /// Reason.
        why: &'static str,
    },
    /// Two objects share an id.
    #[error("object id {0} occurs twice")]
    DuplicateObject(i64),
    /// A group names an object that does not exist.
    #[error("{what} refers to object {id}, which does not exist")]
    UnknownObject {
        /// Source of the reference.
        what: String,
        /// Object id.
        id: i64,
    },
    /// A group has a number above the limit.
    #[error(
        "group number {0} is above 1048575; groups are rows of a table, so number them from 0 without large gaps"
    )]
    GroupNumber(u32),
    /// An object attribute leaves no value of its type to fill absent objects with.
    #[error(
        "object attribute {0:?} leaves no value of its type to fill absent objects with; use a wider type"
    )]
    NoFillValue(String),
    /// Vertices, links or fragments have no integer.
    #[error(
        "attribute {0:?} has rows without a value, which only floats and text can express; give it a value for each row or a floating-point type"
    )]
    NullInteger(String),
    /// The profile cannot store a column of this type.
    #[error("{what} {name:?} of {kind} cannot be stored in profile {profile}")]
    UnsupportedKind {
        /// Role of the column.
        what: &'static str,
        /// Name of the column.
        name: String,
        /// Type of the values.
        kind: String,
        /// The profile.
        profile: &'static str,
    },
    /// The chunk shape or bin shape has an extent that is not positive and finite.
    #[error("chunk shape")]
    ChunkShape(#[from] ShapeError),
    /// Bins do not divide chunks evenly.
    #[error("bin shape")]
    BinShape(#[from] BinsError),
    /// The shard shape has another number of axes, an extent of 0 or too many chunks.
    #[error(
        "shard shape {0:?} is invalid; use one positive extent for each axis and at most 1048576 chunks"
    )]
    ShardShape(Vec<u64>),
    /// The grid within the bounds has more chunks than an array can have.
    #[error("the bounds hold more chunks than an array can have; choose larger chunks")]
    TooManyChunks,
    /// A cell is larger than the 4 GiB limit of the format.
    #[error(
        "chunk {chunk} holds {bytes} bytes of {array}, but a cell holds at most 4294967295; choose smaller chunks"
    )]
    CellSize {
        /// The chunk.
        chunk: String,
        /// The array.
        array: String,
        /// Size of the cell in bytes.
        bytes: u64,
    },
    /// A batch has more than 2^32 - 1 vertices.
    #[error("a batch has {0} vertices, but at most 4294967295 are supported; use smaller batches")]
    TooManyVertices(usize),
    /// The chunks of an array are too far apart for its grid.
    #[error("the chunks of {0} are too far apart for one array; use larger chunks")]
    ChunksTooFarApart(String),
    /// Only faces have an order of corners.
    #[error("{0} have no faces, so they have no winding; only meshes do")]
    NoWinding(&'static str),
    /// Fragments without objects have no owners.
    #[error("{0} without objects have no owners of fragments; give them object ids")]
    NoOwners(&'static str),
    /// Vertices of a fragment have different values of an attribute of fragments.
    #[error(
        "fragment attribute {name} differs between vertices of fragment {fragment} of chunk {chunk}; \
         make it an attribute of vertices, or choose the chunks that it was made for"
    )]
    FragmentValues {
        /// The name of the attribute.
        name: String,
        /// Coordinates of the chunk.
        chunk: String,
        /// Number of the fragment in the chunk.
        fragment: u32,
    },
    /// The profile supports neither directed nor duplicated links.
    #[error("profile {0} supports neither directed nor duplicated links")]
    LinkPolicy(&'static str),
    /// The profile does not support an option.
    #[error("profile {profile} does not support {what}")]
    UnsupportedOption {
        /// The profile.
        profile: &'static str,
        /// Unsupported option.
        what: &'static str,
    },
    /// A formula has an undeclared type.
    #[error("formula {place} has the undeclared type {type_id}")]
    UnknownFormulaType {
        /// Index of the formula.
        place: usize,
        /// Type number of the formula.
        type_id: u32,
    },
    /// A formula has a wrong number of coefficients, or one that is not finite.
    #[error("formula {place} has {found} coefficients, but its type needs {expected} finite ones")]
    FormulaCoefficients {
        /// Index of the formula.
        place: usize,
        /// Number of coefficients of the type.
        expected: usize,
        /// Number of coefficients found.
        found: usize,
    },
    /// A name cannot be part of a storage key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The profile has no place for a part.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Axis names are empty or repeated.
    #[error("axis names are empty or repeated")]
    AxisNames,
    /// The coordinate reference system is not a JSON object.
    #[error(
        "the coordinate reference system is not a JSON object; give PROJJSON, or an object with a name"
    )]
    Crs,
    /// A declaration of an attribute names an unknown scope.
    #[error(
        "{0:?} is not a scope of attributes; declare them under vertex, fragment, link, object or group"
    )]
    AttributeScope(String),
}
