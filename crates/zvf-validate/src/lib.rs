//! Validation of Zarr Vectors stores.
//!
//! [`validate()`] reads a store through a [`Port`](zvf_model::fetch::Port) and reports every
//! violated rule, with a code that never changes. `zvf::validate` opens a store at an address and
//! validates it. The module [`rules`] and the page `docs/rules.md` list all rules.
//!
//! | level | checks |
//! |---|---|
//! | L1 [structure](rules::structure) | nodes and their types, from one listing and every `zarr.json` |
//! | L2 [metadata](rules::metadata) | the metadata of nodes; no I/O |
//! | L3 [consistency](rules::consistency) | every cell, decoded and compared with other cells |
//! | L4 [semantics](rules::semantics) | the meaning of the geometry |
//!
//! Validation does not stop at the first fault. A check that cannot run is a finding too.
//!
//! Several processes can validate one store: [`validate_share`] checks the cells of some chunks, and
//! [`validate_joined`] does the rest of the validation with the outcomes.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod batch;
mod chunk_pass;
mod chunked_part;
mod consistency;
mod context;
mod finding;
mod links;
mod metadata;
mod node_role;
mod options;
mod rule;
pub mod rules;
mod semantics;
mod share;
mod store;
mod structure;
mod table_array;
mod tree;
mod unlisted;
mod validate;

pub use finding::{Finding, Fix, ValidationReport};
pub use options::ValidateOptions;
pub use rule::{Depth, Remedy, Rule, Severity};
pub use share::{ShareReport, ValidationShare};
pub use validate::{validate, validate_joined, validate_share};
