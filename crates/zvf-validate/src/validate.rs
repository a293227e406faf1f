//! The entry point, which runs the levels of checks in order.

use zvf_model::fetch::{BoxFuture, Port};

use crate::{
    consistency, context::Context, finding::ValidationReport, metadata, options::ValidateOptions,
    rule::Depth, rules, semantics, structure,
};

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
        context.report(rule, &root, "the store cannot be opened");
    }
}
