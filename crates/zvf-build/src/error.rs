//! Why geometry is not written. Found before the first byte is.

use zvf_format::numeric::Kind;
use zvf_model::{
    grid::{BinsError, ShapeError},
    key::KeyError,
};

/// What is wrong with geometry, or with how it is to be stored.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No vertices at all.
    #[error("there are no vertices to write")]
    Empty,
    /// Coordinates that do not fill rows.
    #[error("{bytes} bytes of positions are no whole rows of {axes} {kind:?}")]
    PartialPositions {
        /// Bytes given.
        bytes: usize,
        /// Axes.
        axes: usize,
        /// What a number is.
        kind: Kind,
    },
    /// Another number of axes than the store or an option has.
    #[error("{what} has {found} axes and the positions have {expected}")]
    AxisCount {
        /// What has them.
        what: &'static str,
        /// Axes of the positions.
        expected: usize,
        /// Axes found.
        found: usize,
    },
    /// Positions of a kind that is no place in space.
    #[error("positions of {0:?} are no places in space; store floats or integers")]
    PositionKind(Kind),
    /// A coordinate that is not finite.
    #[error("vertex {vertex} has a coordinate of {value} on axis {axis}")]
    NotFinite {
        /// The vertex.
        vertex: usize,
        /// The axis.
        axis: usize,
        /// The coordinate.
        value: f64,
    },
    /// A coordinate that the declared type of positions cannot hold.
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
    /// A vertex outside the bounds of the store.
    #[error(
        "vertex {vertex} lies outside the bounds on axis {axis}: {value} is not in {lower} to {upper}; ignore or expand allow it"
    )]
    OutOfBounds {
        /// The vertex.
        vertex: usize,
        /// The axis.
        axis: usize,
        /// The coordinate.
        value: f64,
        /// The least of the axis.
        lower: f64,
        /// The greatest of the axis.
        upper: f64,
    },
    /// All vertices are outside the bounds, and those are to be left out.
    #[error("all vertices lie outside the bounds")]
    AllOutside,
    /// Bounds that are not finite, or upside down.
    #[error("bounds from {lower} to {upper} on axis {axis} are none")]
    InvalidBounds {
        /// The axis.
        axis: usize,
        /// The least.
        lower: f64,
        /// The greatest.
        upper: f64,
    },
    /// A column of another length than what it is of.
    #[error("{what} {name:?} has {found} rows where there are {expected}")]
    RowCount {
        /// What kind of column.
        what: &'static str,
        /// Its name.
        name: String,
        /// Rows it should have.
        expected: usize,
        /// Rows it has.
        found: usize,
    },
    /// Numbers that do not fill rows.
    #[error("{what} {name:?} ends inside a row")]
    PartialRow {
        /// What kind of column.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that is no identifier.
    #[error(
        "{what} cannot be called {name:?}: names are letters, digits and _, and do not start with a digit"
    )]
    InvalidName {
        /// What kind of column.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that is there twice.
    #[error("there are two {what}s called {name:?}")]
    DuplicateName {
        /// What kind of column.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that the format keeps for itself.
    #[error("the {what} {name:?} is written by the store itself")]
    ReservedName {
        /// What kind of column.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Something the kind of geometry has no place for.
    #[error("{kind} have no {what}")]
    Unsupported {
        /// The kind of geometry.
        kind: &'static str,
        /// What they have none of.
        what: &'static str,
    },
    /// Something the kind of geometry cannot be without.
    #[error("{kind} need {what}")]
    MissingInput {
        /// The kind of geometry.
        kind: &'static str,
        /// What they need.
        what: &'static str,
    },
    /// Offsets of parts that do not ascend from 0 to the number of vertices.
    #[error("part_offsets do not ascend from 0 to {vertices}: entry {at} is {found}")]
    PartOffsets {
        /// Number of vertices.
        vertices: usize,
        /// Which entry.
        at: usize,
        /// What it is.
        found: u64,
    },
    /// A line of other than two vertices.
    #[error("line {line} has {vertices} vertices")]
    LineVertices {
        /// Which line.
        line: usize,
        /// Its vertices.
        vertices: usize,
    },
    /// A link of too few or too many ends.
    #[error("links of {found} ends; {kind} have {expected}")]
    LinkWidth {
        /// The kind of geometry.
        kind: &'static str,
        /// What is possible.
        expected: &'static str,
        /// Ends given.
        found: usize,
    },
    /// Ends that do not fill links.
    #[error("{ends} ends are no whole links of {width}")]
    PartialLink {
        /// Ends given.
        ends: usize,
        /// Ends of a link.
        width: usize,
    },
    /// An end that is no vertex.
    #[error("link {link} names vertex {vertex} of {vertices}")]
    LinkEndOutOfRange {
        /// Which link.
        link: usize,
        /// What it names.
        vertex: i64,
        /// How many vertices there are.
        vertices: usize,
    },
    /// A vertex with two parents.
    #[error("vertex {vertex} has two parents, {first} and {second}: a skeleton is a tree")]
    MultipleParents {
        /// The child.
        vertex: usize,
        /// One parent.
        first: usize,
        /// Another.
        second: usize,
    },
    /// A vertex that is its own ancestor.
    #[error("vertex {0} is its own ancestor: a skeleton is a tree")]
    Cycle(usize),
    /// Parent and child of different objects.
    #[error("vertex {child} of object {object} has a parent in object {other}")]
    ParentInOtherObject {
        /// The child.
        child: usize,
        /// Its object.
        object: i64,
        /// The parent's.
        other: i64,
    },
    /// An id that stands for something else, or is negative where ids are rows.
    #[error("object id {id} is not possible: {why}")]
    ObjectId {
        /// The id.
        id: i64,
        /// Why not.
        why: &'static str,
    },
    /// Two objects of one id.
    #[error("there are two objects {0}")]
    DuplicateObject(i64),
    /// A row or group of an object that is not there.
    #[error("{what} names object {id}, which is not there")]
    UnknownObject {
        /// What names it.
        what: String,
        /// The id.
        id: i64,
    },
    /// Every number is taken, so none is left to stand for absent values.
    #[error(
        "object attribute {0:?} takes every value of its type, and none is left for absent objects; store it in a wider type"
    )]
    NoFillValue(String),
    /// A kind of number the profile has no place for.
    #[error("{what} {name:?} of {kind} cannot be stored in profile {profile}")]
    UnsupportedKind {
        /// What kind of column.
        what: &'static str,
        /// Its name.
        name: String,
        /// What its values are.
        kind: String,
        /// The profile.
        profile: &'static str,
    },
    /// A chunk or bin of no extent.
    #[error("chunk shape")]
    ChunkShape(#[from] ShapeError),
    /// Bins that do not fill chunks.
    #[error("bin shape")]
    BinShape(#[from] BinsError),
    /// Shards of another number of axes, or without extent.
    #[error("a shard of {0:?} chunks is not possible")]
    ShardShape(Vec<u64>),
    /// More chunks than an array can have.
    #[error("the bounds hold more chunks than an array can have; choose larger chunks")]
    TooManyChunks,
    /// A cell that 32 bits cannot count.
    #[error(
        "chunk {chunk} holds {bytes} bytes of {array}, and a cell at most 4294967295; choose smaller chunks"
    )]
    CellSize {
        /// The chunk.
        chunk: String,
        /// The array.
        array: String,
        /// Bytes of the cell.
        bytes: u64,
    },
    /// More vertices than one batch can have.
    #[error("a batch of {0} vertices; at most 4294967295 go at once")]
    TooManyVertices(usize),
    /// Chunks that one array cannot hold.
    #[error("the chunks of {0} are too far apart for one array")]
    ChunksTooFarApart(String),
    /// A policy that only links of generation 0.9 have.
    #[error("profile {0} stores links undirected and once")]
    LinkPolicy(&'static str),
    /// An option the profile has no place for.
    #[error("profile {profile} has no {what}")]
    UnsupportedOption {
        /// The profile.
        profile: &'static str,
        /// What it has none of.
        what: &'static str,
    },
    /// A formula of a type that is not declared.
    #[error("formula {place} is of type {type_id}, which is not declared")]
    UnknownFormulaType {
        /// Which formula.
        place: usize,
        /// Its type.
        type_id: u32,
    },
    /// A formula with other coefficients than its type has.
    #[error("formula {place} has {found} coefficients; its type has {expected}, all finite")]
    FormulaCoefficients {
        /// Which formula.
        place: usize,
        /// Coefficients of the type.
        expected: usize,
        /// Coefficients given.
        found: usize,
    },
    /// A name that makes no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A combination of names of axes that is not possible.
    #[error("axis names must be different and not empty")]
    AxisNames,
}
