//! Validation of Zarr Vectors stores.
//!
//! [`validate`] reads a store through a [`Port`] and reports every violated rule, with a code that
//! never changes. `zvf::validate` opens a store at an address and validates it. The module
//! [`rules`] and the page `docs/rules.md` list all rules.
//!
//! | level | checks |
//! |---|---|
//! | L1 [structure](rules::structure) | nodes and their types, from one listing and every `zarr.json` |
//! | L2 [metadata](rules::metadata) | the metadata of nodes; no I/O |
//! | L3 [consistency](rules::consistency) | every cell, decoded and compared with other cells |
//! | L4 [semantics](rules::semantics) | the meaning of the geometry |
//!
//! Validation does not stop at the first fault. A check that cannot run is a finding too.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions, clippy::indexing_slicing, clippy::string_slice)]

mod batch;
mod cells;
mod consistency;
mod context;
mod finding;
mod links;
mod metadata;
mod place;
mod rows;
mod rule;
pub mod rules;
mod semantics;
mod store;
mod structure;
mod tree;

use futures_util::future::BoxFuture;
use zvf_model::fetch::Port;

pub use finding::{Finding, Fix, ValidationReport};
pub use rule::{Depth, Remedy, Rule, Severity};

use context::Context;

/// Options of [`validate`].
///
/// ```
/// use zvf_validate::{Depth, ValidateOptions};
///
/// let options = ValidateOptions::default().depth(Depth::Metadata).max_findings_per_rule(10);
/// assert_eq!(options.depth, Depth::Metadata);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidateOptions {
    /// Deepest level of checks that runs. Default: [`Depth::Semantics`].
    pub depth: Depth,
    /// Maximum number of findings listed per rule; further ones are only counted. Default: 1000.
    pub max_findings_per_rule: usize,
    /// Maximum number of stored bytes of cells read in one batch. Default: 16 MiB.
    pub batch_bytes: u64,
}

impl ValidateOptions {
    /// Sets the deepest level of checks that runs.
    #[must_use]
    pub fn depth(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the maximum number of findings listed per rule.
    #[must_use]
    pub fn max_findings_per_rule(mut self, max: usize) -> Self {
        self.max_findings_per_rule = max;
        self
    }

    /// Sets the maximum number of stored bytes of cells read in one batch. A batch holds at least
    /// one chunk.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: u64) -> Self {
        self.batch_bytes = bytes;
        self
    }
}

impl Default for ValidateOptions {
    fn default() -> Self {
        Self {
            depth: Depth::Semantics,
            max_findings_per_rule: 1000,
            batch_bytes: 16 << 20,
        }
    }
}

/// Validates the store behind `fetch`.
///
/// Reads are batched: a level takes a number of round trips proportional to its stored bytes over
/// [`ValidateOptions::batch_bytes`]. Faults of the store are findings in the report, never errors.
///
/// `zvf::validate` does this for a store at an address; its documentation has an example.
pub fn validate<'f>(
    fetch: Port<'f>,
    options: &'f ValidateOptions,
) -> BoxFuture<'f, ValidationReport> {
    Box::pin(async move {
        let context = Context::new(fetch, options);
        check(&context).await;
        context.finish()
    })
}

async fn check(context: &Context<'_>) {
    let depth = context.options.depth;
    let store = structure::check(context).await;
    if depth < Depth::Metadata {
        return;
    }
    let Some(store) = store else {
        return not_run(context, depth);
    };
    metadata::check(context, &store);
    if depth < Depth::Consistency {
        return;
    }
    let counted = consistency::check(context, &store).await;
    if depth < Depth::Semantics {
        return;
    }
    semantics::check(context, &store, &counted).await;
}

/// Reports that all levels after the first were skipped.
fn not_run(context: &Context<'_>, depth: Depth) {
    let root = zvf_model::key::Key::root();
    let rules = [
        &rules::metadata::NOT_RUN,
        &rules::consistency::NOT_RUN,
        &rules::semantics::NOT_RUN,
    ];
    for rule in rules.into_iter().filter(|rule| rule.depth <= depth) {
        context.find(rule, &root, "the store cannot be opened");
    }
}

/// Returns the message of an error and of its sources.
fn message(error: &(dyn core::error::Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let text = error.to_string();
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        below = error.source();
    }
    message
}
