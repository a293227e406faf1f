//! Open levels of a store: their arrays, objects, links and tables.

pub(crate) mod composite;
pub(crate) mod coordinates;
pub(crate) mod extras;
pub(crate) mod family;
pub(crate) mod fragments;
pub(crate) mod level;
pub(crate) mod links;
pub(crate) mod listing;
pub(crate) mod objects;
pub(crate) mod parametric;
pub(crate) mod schema;
pub(crate) mod stored;
pub(crate) mod tables;
