//! Declared capabilities and links between levels, compared with the store.

use serde_json::json;
use zvf_format::path::Delta;
use zvf_model::{
    key::Key,
    level::{ADDITIVE_LEVELS, Refinement},
    root::{CrossLevel, RootMetadata},
    word::Word,
};

use crate::{
    context::Context,
    rules::metadata as rules,
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

pub(super) fn check(context: &Context<'_>, store: &StoreMetadata, root: &RootMetadata) {
    let between = between_levels(store);
    let mut levels = store
        .levels
        .iter()
        .filter_map(|level| level.metadata.as_ref());
    let shares = levels.clone().any(|level| level.shared_fragments);
    let keeps = levels.clone().any(|level| level.preserves_object_ids);
    let adds = levels.any(|level| level.refinement == Refinement::Add);
    if adds {
        required(context, root);
    }
    let facts = [
        (
            MULTISCALE_LINKS,
            !between.is_empty(),
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
    ];
    let has = |token: &str| root.capabilities.iter().any(|given| given == token);
    let is_true = |token: &String| {
        let fact = facts.iter().find(|(name, ..)| name == token);
        fact.is_none_or(|(_, holds, _)| *holds)
    };
    let missing = facts
        .iter()
        .filter(|(token, holds, _)| *holds && !has(token));
    let kept = root.capabilities.iter().filter(|token| is_true(token));
    let right: Vec<&str> = kept
        .map(String::as_str)
        .chain(missing.clone().map(|(token, ..)| *token))
        .collect();
    let key = Key::root();
    for (token, _, why) in missing {
        let message = format!("{token:?} is missing: {why}");
        let (rule, value) = (&rules::CAPABILITY_MISSING, Some(json!(right)));
        context.report_attribute(rule, &key, &PLACE, message, value);
    }
    for token in &root.capabilities {
        if !is_true(token) {
            let message = format!("{token:?} is listed, but the store does not use it");
            let (rule, value) = (&rules::CAPABILITY_UNUSED, Some(json!(right)));
            context.report_attribute(rule, &key, &PLACE, message, value);
        } else if !SILENT.contains(&token.as_str()) && !facts.iter().any(|fact| fact.0 == token) {
            let place = format!("attributes.{}", PLACE.join("."));
            let message = format!("{token:?}");
            context.report_at(&rules::CAPABILITY_UNKNOWN, &key, place, message);
        }
    }
    storage(context, root, &between);
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
        let depth = root.cross_level_depth.filter(|depth| *depth >= 0);
        let message = match root.cross_level_storage.as_ref().and_then(Word::known) {
            Some(CrossLevel::None) => "cross_level_storage is \"none\"".to_owned(),
            Some(CrossLevel::Implicit) if levels < 0 => {
                "cross_level_storage is \"implicit\", which excludes links to finer levels"
                    .to_owned()
            }
            _ => match depth {
                Some(depth) if levels.unsigned_abs() > depth.unsigned_abs() => {
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
