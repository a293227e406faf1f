//! Kinds of geometry.

use crate::word::words;

words! {
    /// Kind of geometry that a store holds.
    pub enum GeometryKind as "a kind of geometry" {
        /// Vertices without connections.
        Points = "point_cloud",
        /// Segments: paths of two vertices.
        Lines = "line",
        /// Paths of any length.
        Polylines = "polyline",
        /// Paths of tractography.
        Streamlines = "streamline",
        /// Trees with links (child, parent).
        Skeletons = "skeleton",
        /// Vertices and edges.
        Graphs = "graph",
        /// Vertices and faces.
        Mesh = "mesh",
    }
}

impl GeometryKind {
    /// Returns the name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Lines => "lines",
            Self::Polylines => "polylines",
            Self::Streamlines => "streamlines",
            Self::Skeletons => "skeletons",
            Self::Graphs => "graphs",
            Self::Mesh => "mesh",
        }
    }

    /// Returns the plural of the name, which messages start with.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Mesh => "meshes",
            other => other.name(),
        }
    }

    /// Returns whether objects are paths.
    pub fn is_paths(self) -> bool {
        matches!(self, Self::Lines | Self::Polylines | Self::Streamlines)
    }

    /// Returns whether vertices have links beyond the steps of paths.
    pub fn is_linked(self) -> bool {
        matches!(self, Self::Skeletons | Self::Graphs | Self::Mesh)
    }

    /// Returns whether links are faces, which have an order of corners.
    pub fn has_faces(self) -> bool {
        matches!(self, Self::Mesh)
    }
}
