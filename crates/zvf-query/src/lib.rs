//! Queries on Zarr Vectors stores: what they mean, what they need, what they
//! select.
//!
//! A [`Query`] is asked of a [`Session`]: metadata, and a way to read
//! ([`zvf_model::fetch::Port`]). The plans in here ask through it and wait; they
//! open nothing themselves and know no executor. `zvf::Dataset` puts a session
//! over a real store.
//!
//! | module or type | answers |
//! |---|---|
//! | [`Query`], [`Answer`] | what is selected, and what comes back, for every kind of geometry and every generation |
//! | [`Session`] | asks: [`query`](Session::query), [`batches`](Session::batches), [`count`](Session::count), [`explain`](Session::explain); lists objects, groups and links as stored |
//! | [`geometry`] | does this point, segment, triangle or face come into the box or sphere, lie within it, and which part of it does? which are the k nearest? |
//! | [`predicate`] | what does `--where` say, and does a row satisfy it? |
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod answer;
mod area;
mod budget;
mod build;
mod choice;
mod chunk;
mod closest;
mod composite;
mod coordinates;
mod cores;
mod cut;
mod drill;
mod error;
mod explain;
mod extras;
mod family;
mod filter;
mod fragments;
mod held;
mod level;
mod linked;
mod links;
mod listing;
#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "JSON is written where it is used"
)]
mod memory;
mod merge;
mod missing;
mod nearest;
mod objects;
mod parametric;
mod paths;
mod plan;
mod points;
mod query;
mod run;
mod schema;
mod stored;
mod tables;
mod vertices;

pub mod geometry;
pub mod predicate;

pub use answer::{
    Answer, Column, Group, LevelUse, Links, Missing, NO_OBJECT, Parts, Rows, SEVERAL_OBJECTS,
    Values,
};
pub use closest::closest;
pub use error::{Damage, Fault, QueryError};
pub use explain::{Explanation, Reads};
pub use extras::{FurtherGeometry, FurtherLinks, Header};
pub use level::{Levels, Session};
pub use links::{CellLinks, LinkBlobs, LinkCells, StoredLinkFamily, StoredLinks};
pub use objects::{Objects, OwnersOfChunk, Piece, SomeObjects, StoredManifests};
pub use parametric::{Coefficient, Parametric, ParametricObject};
pub use query::{Budget, Cut, LevelChoice, NearestTo, Query, Region, Selection, Shape};
pub use run::{Counts, Outcome};
pub use stored::{PaddedRows, StoredPart};
pub use tables::{GroupList, ScopedColumns};
