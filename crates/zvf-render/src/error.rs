//! Why there is no picture.

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The store cannot be read, or not asked for this.
    #[error(transparent)]
    Store(#[from] zvf::Error),
    /// A picture has sides of 64 to 16384 dots, and of 33 million at most in all.
    #[error(
        "a picture of {width} × {height} dots is not drawn: each side has 64 to 16384, both together 33 million at most"
    )]
    Size {
        /// Dots of a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// Nothing was found that has a place.
    #[error("there is nothing to draw: {0}")]
    Empty(&'static str),
    /// More than memory is meant for.
    #[error(
        "more than {max} vertices with links are not drawn at once: ask for a coarser level, a box, or --budget"
    )]
    TooManyVertices {
        /// How many may be.
        max: usize,
    },
    /// An attribute that no colour can be made of.
    #[error(
        "{name} has {channels} numbers a row: colours are made of one, or of three as red, green, blue"
    )]
    Channels {
        /// The attribute.
        name: String,
        /// Numbers of a row.
        channels: u32,
    },
    /// An attribute of what is not drawn.
    #[error(
        "{0} is of groups; colours are made of attributes of vertices, fragments, links and objects"
    )]
    Scope(String),
    /// An attribute that nothing in the picture has.
    #[error("nothing that is drawn has the attribute {0}")]
    Attribute(String),
    /// Rows that are not there.
    #[error("the answer is broken: {0}")]
    InvalidResult(&'static str),
}
