//! Errors of rendering.

/// Error of [`render()`](crate::render()) and [`level_statistics()`](crate::level_statistics()).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The store cannot be read or the query is invalid.
    #[error(transparent)]
    Store(#[from] zvf::Error),
    /// The size is out of range: 64 to 16384 pixels per side and 33 million pixels in all.
    #[error(
        "cannot draw a picture of {width} × {height} pixels: each side needs 64 to 16384 pixels, and both together at most 33 million"
    )]
    Size {
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
    /// No vertex with a finite position was found.
    #[error("there is nothing to draw: {0}")]
    Empty(&'static str),
    /// The data has links and exceeds the cache limit.
    #[error(
        "cannot draw more than {max} vertices with links: choose a coarser level, a box, or --budget"
    )]
    TooManyVertices {
        /// Maximum number of vertices.
        max: usize,
    },
    /// The attribute has a number of channels that does not define a colour.
    #[error(
        "{name} has {channels} channels: colours need one, or three or four as red, green, blue"
    )]
    Channels {
        /// Name of the attribute.
        name: String,
        /// Number of channels.
        channels: u32,
    },
    /// The attribute belongs to a scope that is not drawn.
    #[error(
        "{0} is an attribute of groups; colours need attributes of vertices, fragments, links or objects"
    )]
    Scope(String),
    /// Nothing in the picture has the attribute.
    #[error("no vertex, fragment, link or object in the picture has the attribute {0}")]
    Attribute(String),
    /// The query result is inconsistent.
    #[error("the query result is inconsistent: {0}")]
    InvalidResult(&'static str),
}
