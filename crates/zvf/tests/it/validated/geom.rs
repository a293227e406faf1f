//! Links and geometry.

mod healthy;
mod links;
mod made;
mod pyramids;
mod shapes;
