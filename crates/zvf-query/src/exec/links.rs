//! Links and the chunks at their ends, as the operators on links pass them on.

mod builder;
mod graph;
mod vertices;

pub(crate) use builder::{LinkBuilder, NumberedLinks, UnstoredLinks};
pub(crate) use graph::{LinkGraph, LinkNode, LinkRun, SelectedEnd, SelectedLinks};
pub(crate) use vertices::LinkVertices;
