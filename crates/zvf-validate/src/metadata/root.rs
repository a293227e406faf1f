//! Metadata of the root.

use std::collections::BTreeSet;

use serde_json::Value;
use zvf_model::{
    detection::DetectionNote,
    key::Key,
    metadata::{MetadataFault, MetadataNote},
    root::RootMetadata,
    scope::Scope,
    word::Word,
};

use super::{capabilities, faults, ome, scales};
use crate::{
    context::Context, rules::metadata as rules, store::StoreMetadata, structure::required,
};

pub(super) fn check(context: &Context<'_>, store: &StoreMetadata) {
    let key = Key::root();
    for note in &store.detection.notes {
        let rule = match note {
            DetectionNote::VersionMissing | DetectionNote::VersionMalformed(_) => {
                &rules::VERSION_MISSING
            }
            DetectionNote::VersionOverridden { .. } => &rules::VERSION_MISMATCH,
            _ => &rules::MIXED_GENERATIONS,
        };
        let place = "attributes.zarr_vectors.zv_version";
        match note {
            DetectionNote::Mixed(_) => context.report(rule, &key, note),
            _ => context.report_at(rule, &key, place, note),
        }
    }
    levels(context, store);
    let Some(root) = &store.root else {
        return;
    };
    for note in &root.notes {
        noted(context, &key, note);
    }
    fields(context, store, &key, root);
    capabilities::check(context, store, root);
    scales::check(context, store, root);
    ome::check(context, store, root);
}

/// Reports a tolerated fault, under a more specific rule where the field has one.
fn noted(context: &Context<'_>, key: &Key, note: &MetadataNote) {
    let path = note.path.as_str();
    if path == "attributes.zarr_vectors.zv_version" {
        // Detection of the generation reports it.
        return;
    }
    let rule = match &note.fault {
        MetadataFault::Word { .. } if path.contains("geometry_types") => &rules::GEOMETRY_UNKNOWN,
        MetadataFault::Disagrees { .. } if path.ends_with("bounds") => &rules::BOUNDS,
        fault => faults::rule(fault),
    };
    let message = format!("{}; {}", note.fault, note.assumed);
    context.report_at(rule, key, &note.path, message);
}

fn fields(context: &Context<'_>, store: &StoreMetadata, key: &Key, root: &RootMetadata) {
    let place = |field: &str| format!("attributes.zarr_vectors.{field}");
    if root.geometry_kinds.is_empty()
        && store
            .levels
            .iter()
            .any(|level| required::is_filled(store, level))
    {
        let message = "the list is empty, but there are vertices";
        context.report_at(&rules::GEOMETRY_NONE, key, place("geometry_types"), message);
    }
    let kinds = root.geometry_kinds.iter().map(Word::as_str);
    twice(context, key, &place("geometry_types"), kinds);
    let tokens = root.capabilities.iter().map(String::as_str);
    twice(context, key, &place("format_capabilities"), tokens);
    let required = root.required_capabilities.iter().map(String::as_str);
    twice(context, key, &place("required_capabilities"), required);
    for name in root.unknown.keys() {
        let message = "no version of the format defines this field";
        context.report_at(&rules::UNKNOWN_FIELD, key, place(name), message);
    }
    if let Some(crs) = &root.crs
        && !crs.is_object()
        && !(store.layout().generation.is_preview() && crs.is_string())
    {
        let message = "not an object";
        context.report_at(&rules::FIELD_TYPE, key, place("crs"), message);
    }
    for (scope, names) in root.attribute_specs.iter().flatten() {
        let place = place(&format!("attribute_specs.{scope}"));
        if Scope::parse(scope).is_none() {
            let message = format!("not one of {:?}", Scope::ALL.map(Scope::name));
            context.report_at(&rules::UNKNOWN_WORD, key, &place, message);
        }
        let specs = names.as_object();
        if specs.is_none_or(|specs| !specs.values().all(Value::is_object)) {
            let message = "not an object of objects";
            context.report_at(&rules::FIELD_TYPE, key, &place, message);
        }
    }
}

fn twice<'a>(context: &Context<'_>, key: &Key, place: &str, words: impl Iterator<Item = &'a str>) {
    let mut seen = BTreeSet::new();
    for word in words.filter(|word| !seen.insert(word.to_owned())) {
        let message = format!("{word:?} is a duplicate");
        context.report_at(&rules::DUPLICATE, key, place, message);
    }
}

/// Checks that levels are numbered 0, 1, 2, ….
fn levels(context: &Context<'_>, store: &StoreMetadata) {
    for (expected, level) in (0..).zip(&store.levels) {
        if level.id.number() != expected {
            let message = format!(
                "level {level} exists, but level {expected} does not",
                level = level.id
            );
            return context.report(&rules::LEVELS, &level.key, message);
        }
    }
}
