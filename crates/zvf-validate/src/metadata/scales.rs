//! `multiscales`: axes, and the bins of every level.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zvf_model::{
    key::Key,
    level::LevelId,
    root::{MultiscaleDataset, RootMetadata},
};

use crate::{context::Context, rules::metadata as rules, store::StoreMetadata};

/// Relative tolerance of bins, which are written as decimals.
const TOLERANCE: f64 = 1e-6;
const PLACE: &str = "attributes.multiscales[0]";

pub(super) fn check(context: &Context<'_>, store: &StoreMetadata, root: &RootMetadata) {
    axes(context, root);
    datasets(context, store, root);
    if store.layout().generation.is_preview() {
        // The layout only names the levels, which declare their bins.
        return;
    }
    form(context, store);
    for dataset in &root.datasets {
        if store.level(dataset.level).is_some() {
            bins(context, root, dataset);
        }
    }
}

fn axes(context: &Context<'_>, root: &RootMetadata) {
    let key = Key::root();
    let place = format!("{PLACE}.axes");
    let mut seen = BTreeSet::new();
    for axis in root.axes.iter().filter(|axis| !seen.insert(&axis.name)) {
        let message = format!("two axes are named {:?}", axis.name);
        context.report_at(&rules::AXIS_NAMES, &key, &place, message);
    }
    // The order that NGFF requires.
    let rank = |kind: &Option<String>| match kind.as_deref() {
        Some("time") => 0,
        Some("channel") => 1,
        Some("space") => 3,
        _ => 2,
    };
    let ranks: Vec<u8> = root.axes.iter().map(|axis| rank(&axis.kind)).collect();
    if !ranks.is_sorted() {
        let message = "the order must be time, channels, others, space";
        context.report_at(&rules::AXES, &key, &place, message);
    }
    let is_space = |kind: &Option<String>| kind.as_deref() == Some("space");
    let space = root.axes.iter().filter(|axis| is_space(&axis.kind)).count();
    // Stores with one axis are rare, and viewers do not show them anyway.
    if space < 2 && root.axes.len() > 1 {
        let message = format!("{space} of type \"space\", but viewers need two");
        context.report_at(&rules::AXES, &key, &place, message);
    }
}

/// Checks the fields by which viewers recognise the entry.
fn form(context: &Context<'_>, store: &StoreMetadata) {
    let Some(entry) = entry(store) else {
        return;
    };
    let format = entry
        .get("metadata")
        .and_then(|attributes| attributes.get("format"));
    let expected = [
        ("version", entry.get("version"), "0.4"),
        ("metadata.format", format, "zarr_vectors"),
    ];
    for (name, found, expected) in expected {
        if found.and_then(Value::as_str) != Some(expected) {
            let found = found.unwrap_or(&Value::Null);
            let message = format!("{found}, but writers store {expected:?}");
            let place = format!("{PLACE}.{name}");
            context.report_at(&rules::MULTISCALES, &Key::root(), place, message);
        }
    }
}

/// Returns the first entry of `multiscales`.
fn entry(store: &StoreMetadata) -> Option<&Value> {
    let root = store.tree.node(&Key::root())?;
    root.attributes().get("multiscales")?.get(0)
}

/// Checks that each level has one entry, in order.
fn datasets(context: &Context<'_>, store: &StoreMetadata, root: &RootMetadata) {
    let key = Key::root();
    let place = format!("{PLACE}.datasets");
    let right = repaired(store, root);
    let fix = |message: String, rule| match right.clone() {
        Some(right) => {
            context.report_attribute(rule, &key, &["multiscales"], message, Some(right));
        }
        None => context.report_at(rule, &key, &place, message),
    };
    for level in store
        .levels
        .iter()
        .filter(|level| root.dataset(level.id).is_none())
    {
        let message = format!("level {} has no entry", level.id);
        match level.id {
            LevelId::FULL => fix(message, &rules::DATASET_MISSING),
            _ => context.report_at(&rules::DATASET_MISSING, &key, &place, message),
        }
    }
    for dataset in &root.datasets {
        if store.level(dataset.level).is_none() {
            let message = format!("it names level {}, which does not exist", dataset.level);
            fix(message, &rules::DATASET_WITHOUT_LEVEL);
        }
    }
    if !root.datasets.is_sorted_by_key(|dataset| dataset.level) {
        let message = "levels do not ascend".to_owned();
        fix(message, &rules::DATASET_ORDER);
    }
}

/// Returns `multiscales` with one entry per level, in order. Missing entries of coarser levels are
/// not added, as their bins are unknown.
fn repaired(store: &StoreMetadata, root: &RootMetadata) -> Option<Value> {
    let attributes = store.tree.node(&Key::root())?.attributes();
    let mut right = attributes.get("multiscales")?.clone();
    let entries = right.get_mut(0)?.as_object_mut()?;
    let given = entries.get("datasets").and_then(Value::as_array);
    let level = |item: &Value| LevelId::parse(item.get("path")?.as_str()?);
    let given = given
        .into_iter()
        .flatten()
        .filter_map(|item| Some((level(item)?, item.clone())));
    let mut items: Vec<(LevelId, Value)> = given
        .filter(|(level, _)| store.level(*level).is_some())
        // An unreadable entry of level 0 is rebuilt.
        .filter(|(level, _)| *level != LevelId::FULL || root.dataset(*level).is_some())
        .collect();
    items.sort_by_key(|(level, _)| *level);
    items.dedup_by_key(|(level, _)| *level);
    if root.dataset(LevelId::FULL).is_none() && store.level(LevelId::FULL).is_some() {
        let bin = root.bin_shape().extents();
        let half: Vec<f64> = bin.iter().map(|extent| extent / 2.0).collect();
        let first = json!({"path": "0", "coordinateTransformations": [
            {"type": "scale", "scale": vec![1.0; bin.len()]},
            {"type": "translation", "translation": half},
        ]});
        items.insert(0, (LevelId::FULL, first));
    }
    let items = items.into_iter().map(|(_, item)| item);
    entries.insert("datasets".to_owned(), Value::Array(items.collect()));
    Some(right)
}

/// Checks that scale is the bin divided by that of level 0, and translation half a bin.
fn bins(context: &Context<'_>, root: &RootMetadata, dataset: &MultiscaleDataset) {
    let key = Key::root();
    let level = dataset.level;
    let place = format!("{PLACE}.datasets");
    let find = |message: String| {
        let message = format!("level {level}: {message}");
        context.report_at(&rules::SCALE, &key, &place, message);
    };
    let Some(scale) = &dataset.scale else {
        return find("no scale".to_owned());
    };
    let base = root.bin_shape().extents();
    let bin: Vec<f64> = base.iter().zip(scale).map(|(base, by)| base * by).collect();
    if level == LevelId::FULL {
        if !scale.iter().all(|by| is_near(*by, 1.0)) {
            find(format!(
                "its scale is {scale:?}, but scales are relative to level 0"
            ));
        }
        // Writers may store the coordinate offset here instead.
        let offset = dataset.translation.as_ref() == root.coordinate_offset.as_ref();
        if offset && root.coordinate_offset.is_some() {
            return;
        }
    }
    if let Some(half) = &dataset.translation {
        let same = half
            .iter()
            .zip(&bin)
            .all(|(half, bin)| is_near(half * 2.0, *bin));
        if !same {
            find(format!(
                "by its scale a bin is {bin:?}, but its translation is not half of that: {half:?}"
            ));
        }
    }
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= TOLERANCE * expected.abs().max(found.abs())
}
