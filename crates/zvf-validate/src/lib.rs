//! Whether a Zarr Vectors store can be trusted.
//!
//! [`validate`] reads a store through the port of plans, [`Port`], and reports every
//! rule that does not hold, with a code that never changes. `zvf::validate` puts it
//! over a real store; `docs/rules.md` lists the [rules].
//!
//! | depth | looks at |
//! |---|---|
//! | L1 [structure](rules::structure) | nodes and their types: from one listing and every `zarr.json` |
//! | L2 [metadata](rules::metadata) | what nodes say: no I/O |
//! | L3 [consistency](rules::consistency) | every cell, decoded, and what cells say of each other |
//! | L4 [semantics](rules::semantics) | whether it is the geometry that it is said to be |
//!
//! Everything is reported, not only the first fault. What cannot be checked
//! because of something before is a finding too.
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

pub use finding::{Finding, Fix, Report};
pub use rule::{Depth, Mend, Rule, Severity};

use context::Context;

/// How a store is validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How deep.
    pub depth: Depth,
    /// How many findings of one rule are listed; the others are counted.
    pub most_of_a_rule: usize,
    /// Bytes of cells that are read at once.
    pub batch_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            depth: Depth::Semantics,
            most_of_a_rule: 1000,
            batch_bytes: 16 << 20,
        }
    }
}

/// Checks the store behind `fetch`. `zvf::validate` puts it over a real store, and has an
/// example that runs.
pub fn validate<'f>(fetch: Port<'f>, options: &'f Options) -> BoxFuture<'f, Report> {
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

/// Nothing of the depths after the first could be looked at.
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

/// What happened, with everything below it.
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
