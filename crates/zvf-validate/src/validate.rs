//! The entry point, which runs the levels of checks in order.

use std::sync::{Mutex, PoisonError};

use zvf_model::{
    fetch::{BoxFuture, Port},
    key::Key,
};

use crate::{
    consistency,
    context::Context,
    finding::ValidationReport,
    metadata,
    options::ValidateOptions,
    rule::Depth,
    rules, semantics,
    share::{ShareMode, ShareReport, ValidationShare},
    store::StoreMetadata,
    structure,
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
        let mode = ShareMode::All;
        let context = Context::new(fetch, options, &mode);
        check(&context).await;
        context.finish()
    })
}

/// Checks the chunks of one share of a store. The shares of all tasks together are what
/// [`validate_joined`] needs.
///
/// Every task must see the same listing and nodes behind `fetch`. Options must be those of all
/// tasks; [`max_findings_per_rule`](ValidateOptions::max_findings_per_rule) may not be less than in
/// the joined validation.
pub fn validate_share<'f>(
    fetch: Port<'f>,
    options: &'f ValidateOptions,
    share: ValidationShare,
) -> BoxFuture<'f, ShareReport> {
    Box::pin(async move {
        let mode = ShareMode::One(share, Mutex::default());
        let context = Context::new(fetch, options, &mode);
        if options.depth >= Depth::Consistency
            && let Some(store) = structure::check(&context).await
        {
            consistency::check(&context, &store).await;
            if options.depth >= Depth::Semantics {
                semantics::check_share(&context, &store).await;
            }
        }
        drop(context);
        match mode {
            ShareMode::One(_, found) => found.into_inner().unwrap_or_else(PoisonError::into_inner),
            _ => ShareReport::default(),
        }
    })
}

/// Validates a store as [`validate()`], with the outcomes of shares instead of the
/// cells that they checked. The report is the same. Reads everything that no share has an outcome
/// for.
pub fn validate_joined<'f>(
    fetch: Port<'f>,
    options: &'f ValidateOptions,
    shares: &'f ShareReport,
) -> BoxFuture<'f, ValidationReport> {
    Box::pin(async move {
        let mode = ShareMode::Joined(shares);
        let context = Context::new(fetch, options, &mode);
        check(&context).await;
        context.finish()
    })
}

async fn check(context: &Context<'_>) {
    let depth = context.options.depth;
    let Some(store) = structure::check(context).await else {
        if depth >= Depth::Metadata {
            not_run(context, depth);
        }
        return;
    };
    check_store(context, &store).await;
    // All checks name places as 0.9 has them.
    context.for_each(|finding| {
        let key = match finding.path.as_str() {
            "" => Some(Key::root()),
            path => Key::parse(path).ok(),
        };
        let node = key.and_then(|key| store.tree.node(&key));
        if let (Some(node), Some(place)) = (node, &finding.location) {
            finding.location = Some(node.stored_place(place));
        }
    });
}

async fn check_store(context: &Context<'_>, store: &StoreMetadata) {
    let depth = context.options.depth;
    if depth < Depth::Metadata {
        return metadata::check_links(context, store);
    }
    metadata::check(context, store);
    if depth < Depth::Consistency {
        return;
    }
    let counted = consistency::check(context, store).await;
    if depth < Depth::Semantics {
        return;
    }
    semantics::check(context, store, &counted).await;
}

/// Reports that all levels after the first were skipped.
fn not_run(context: &Context<'_>, depth: Depth) {
    let root = Key::root();
    let rules = [
        &rules::metadata::NOT_RUN,
        &rules::consistency::NOT_RUN,
        &rules::semantics::NOT_RUN,
    ];
    for rule in rules.into_iter().filter(|rule| rule.depth <= depth) {
        context.report(rule, &root, "the store cannot be opened");
    }
}
