//! Declared capabilities and links between levels, compared with the store.

use serde_json::json;
use zvf_format::path::Delta;
use zvf_model::{
    key::Key,
    level::{ADDITIVE_LEVELS, Refinement},
    root::{CrossLevel, CrossLevelDepth, RootMetadata},
    word::Word,
};

use crate::{
    context::Context,
    rules::{metadata as rules, structure},
    store::{LevelNode, StoreMetadata},
};

const MULTISCALE_LINKS: &str = "multiscale_links";
const SHARED_FRAGMENTS: &str = "shared_fragments";
const PRESERVED_IDS: &str = "preserved_object_ids";
/// Tokens that no metadata can contradict.
const SILENT: [&str; 4] = [
    "dense_manifests",
    "fragment_index",
    "fragment_link_groups",
    "partitioned_cross_chunk_links",
];
const PLACE: [&str; 2] = ["zarr_vectors", "format_capabilities"];

/// Checks that links between levels are declared, the only check of capabilities in L1.
pub(crate) fn check_links(context: &Context<'_>, store: &StoreMetadata) {
    if let Some(root) = &store.root {
        let facts = facts(store);
        report_missing(context, root, &facts, |token| token == MULTISCALE_LINKS);
    }
}

/// A token, whether the store uses it, and how.
type Fact = (&'static str, bool, &'static str);

pub(super) fn check(context: &Context<'_>, store: &StoreMetadata, root: &RootMetadata) {
    let facts = facts(store);
    if facts
        .iter()
        .any(|(token, holds, _)| *token == ADDITIVE_LEVELS && *holds)
    {
        required(context, root);
    }
    report_missing(context, root, &facts, |_| true);
    let right = right(root, &facts);
    let key = Key::root();
    for token in &root.capabilities {
        if !is_true(&facts, token) {
            let message = format!("{token:?} is listed, but the store does not use it");
            let (rule, value) = (&rules::CAPABILITY_UNUSED, Some(json!(right)));
            context.report_attribute(rule, &key, &PLACE, message, value);
        } else if !SILENT.contains(&token.as_str()) && !facts.iter().any(|fact| fact.0 == token) {
            let place = format!("attributes.{}", PLACE.join("."));
            let message = format!("{token:?}");
            context.report_at(&rules::CAPABILITY_UNKNOWN, &key, place, message);
        }
    }
    storage(context, root, &between_levels(store));
}

/// Returns what the store shows of each token.
fn facts(store: &StoreMetadata) -> [Fact; 4] {
    let mut levels = store
        .levels
        .iter()
        .filter_map(|level| level.metadata.as_ref());
    let shares = levels.clone().any(|level| level.shared_fragments);
    let keeps = levels.clone().any(|level| level.preserves_object_ids);
    let adds = levels.any(|level| level.refinement == Refinement::Add);
    [
        (
            MULTISCALE_LINKS,
            !between_levels(store).is_empty(),
            "there are links between levels",
        ),
        (
            SHARED_FRAGMENTS,
            shares,
            "a level declares shared fragments",
        ),
        (
            PRESERVED_IDS,
            keeps,
            "a level declares that it preserves object ids",
        ),
        (ADDITIVE_LEVELS, adds, "a level is additive"),
    ]
}

fn is_true(facts: &[Fact], token: &str) -> bool {
    let fact = facts.iter().find(|(name, ..)| *name == token);
    fact.is_none_or(|(_, holds, _)| *holds)
}

/// Returns the list of capabilities as it should be.
fn right<'a>(root: &'a RootMetadata, facts: &[Fact]) -> Vec<&'a str> {
    let kept = root.capabilities.iter().map(String::as_str);
    let missing = facts
        .iter()
        .filter(|fact| is_missing(root, fact))
        .map(|(token, ..)| *token);
    kept.filter(|token| is_true(facts, token))
        .chain(missing)
        .collect()
}

fn is_missing(root: &RootMetadata, (token, holds, _): &Fact) -> bool {
    *holds && !root.capabilities.iter().any(|given| given == token)
}

/// Reports those of the missing tokens that `is_meant` selects.
fn report_missing(
    context: &Context<'_>,
    root: &RootMetadata,
    facts: &[Fact],
    is_meant: impl Fn(&str) -> bool,
) {
    let missing = facts.iter().filter(|fact| is_missing(root, fact));
    for (token, _, why) in missing.filter(|(token, ..)| is_meant(token)) {
        let message = format!("{token:?} is missing: {why}");
        let rule = match *token {
            MULTISCALE_LINKS => &structure::LINKS_UNDECLARED,
            _ => &rules::CAPABILITY_MISSING,
        };
        let value = Some(json!(right(root, facts)));
        context.report_attribute(rule, &Key::root(), &PLACE, message, value);
    }
}

/// Checks that a store with additive levels requires readers to know them.
fn required(context: &Context<'_>, root: &RootMetadata) {
    let listed = &root.required_capabilities;
    if listed.iter().any(|token| token == ADDITIVE_LEVELS) {
        return;
    }
    let mut right = listed.clone();
    right.push(ADDITIVE_LEVELS.to_owned());
    let (rule, path) = (
        &rules::ADDITIVE_UNDECLARED,
        ["zarr_vectors", "required_capabilities"],
    );
    let message = format!("{ADDITIVE_LEVELS:?} is missing: a level is additive");
    context.report_attribute(rule, &Key::root(), &path, message, Some(json!(right)));
}

/// Compares the links between levels with the root's declaration.
fn storage(context: &Context<'_>, root: &RootMetadata, between: &[(Key, Delta)]) {
    for (key, delta) in between {
        let levels = delta.levels();
        let message = match root.cross_level_storage.as_ref().and_then(Word::known) {
            Some(CrossLevel::None) => "cross_level_storage is \"none\"".to_owned(),
            Some(CrossLevel::Implicit) if levels < 0 => {
                "cross_level_storage is \"implicit\", which excludes links to finer levels"
                    .to_owned()
            }
            _ => match root.cross_level_depth {
                Some(CrossLevelDepth::Levels(depth)) if levels.unsigned_abs() > depth => {
                    format!("cross_level_depth is {depth}")
                }
                _ => continue,
            },
        };
        context.report(&rules::CROSS_LEVEL, key, message);
    }
}

/// Returns the families of links to another level.
fn between_levels(store: &StoreMetadata) -> Vec<(Key, Delta)> {
    let families = |level: &LevelNode| {
        let parents = ["links", "cross_chunk_links"]
            .into_iter()
            .filter_map(|name| level.key.join(name).ok());
        let found = parents.flat_map(|parent| {
            let names = store.tree.folders(&parent).into_iter();
            let found = names.filter_map(|name| {
                let delta = Delta::parse(name).ok()?;
                let key = parent.join(name).ok()?;
                (delta != Delta::INTRA).then_some((key, delta))
            });
            found.collect::<Vec<_>>()
        });
        found.collect::<Vec<_>>()
    };
    store.levels.iter().flat_map(families).collect()
}
