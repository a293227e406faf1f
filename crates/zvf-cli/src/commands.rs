//! The commands of `zvf`: one module per verb, with its arguments, its work and its output.

pub(crate) mod append;
pub(crate) mod b2nd;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod convert;
pub mod create;
pub(crate) mod delete;
#[cfg(feature = "render")]
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod export;
pub(crate) mod info;
pub(crate) mod links;
pub(crate) mod man;
pub mod migrate;
pub mod pyramid;
pub mod query;
#[cfg(feature = "render")]
pub(crate) mod render;
pub(crate) mod sample;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod task;
pub(crate) mod tet;
pub mod validate;
