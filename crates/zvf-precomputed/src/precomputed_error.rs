//! The error of values in binary form.

/// The reason why a value cannot be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrecomputedError {
    /// The bytes end inside this part.
    #[error("the bytes end inside the {0}")]
    Truncated(&'static str),
    /// Bytes follow the value.
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    /// A count does not fit its field.
    #[error("the number of {0} does not fit its field")]
    Count(&'static str),
    /// A row of an edge or triangle is not below the number of vertices.
    #[error("row {row} is referenced, but there are {vertices} vertices")]
    Row {
        /// The row.
        row: u32,
        /// The number of vertices.
        vertices: u32,
    },
    /// The number of coordinates is not that of the kind of annotation.
    #[error("an annotation has {found} coordinates, but needs {wanted}")]
    Coordinates {
        /// The coordinates that the value has.
        found: usize,
        /// The coordinates that the kind and rank need.
        wanted: usize,
    },
    /// A polyline has fewer than two points, or not a whole number of points.
    #[error("a polyline with {0} coordinates is not two or more points")]
    Polyline(usize),
    /// The properties or relationships of an annotation are not those of the document.
    #[error("the {0} of an annotation are not those of the info document")]
    Schema(&'static str),
    /// A column does not have a value for each row.
    #[error("attribute {attribute} has {found} bytes, but needs {wanted}")]
    Column {
        /// Position of the attribute in the document.
        attribute: usize,
        /// Bytes that it has.
        found: usize,
        /// Bytes that the vertices need.
        wanted: usize,
    },
    /// A part of the manifest of a multi-resolution mesh is not finite, not positive, or too large.
    #[error("the {0} of a mesh cannot be used: it is not finite, not positive, or too large")]
    Manifest(&'static str),
    /// The nodes of a level of a multi-resolution mesh are not in Z order.
    #[error("the nodes of level {0} are not in Z order, or one of them occurs twice")]
    NodeOrder(usize),
    /// A node of a multi-resolution mesh is missing.
    #[error("level {level} has no node {node:?}, in which a finer fragment lies")]
    Parent {
        /// The level.
        level: usize,
        /// The node.
        node: [u32; 3],
    },
    /// Bytes are not a Draco mesh of triangles with integer positions, or a mesh cannot be written
    /// as one.
    #[error("the Draco mesh cannot be used: {0}")]
    Draco(&'static str),
}
