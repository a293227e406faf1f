//! Counts of links, compared with the declared counts.

use std::collections::BTreeMap;

use serde_json::json;
use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{
    array::{LinkFamily, LinkStore},
    key::Key,
    layout::ArrayRole,
    root::{CrossLevel, RootMetadata},
    word::Word,
};

use super::cell::LinkCounts;
use crate::{
    consistency::{LinkSum, StoreCounts},
    context::Context,
    links::LinkPart,
    rules::consistency as rules,
    store::StoreMetadata,
};

/// Counts of the families of a delta.
#[derive(Debug)]
pub(super) struct Totals {
    families: BTreeMap<Key, (LinkFamily, LinkCounts)>,
    /// All parts could be opened.
    is_open: bool,
}

impl Totals {
    pub(super) fn new(families: &[(Key, LinkFamily)], is_open: bool) -> Self {
        let families = families.iter().map(|(key, family)| {
            let held = (family.clone(), LinkCounts::default());
            (key.clone(), held)
        });
        Self {
            families: families.collect(),
            is_open,
        }
    }

    pub(super) fn add(&mut self, part: &LinkPart, more: LinkCounts) {
        if let Some((_, held)) = self.families.get_mut(&part.family_key) {
            held.rows = held.rows.saturating_add(more.rows);
            held.links = held.links.saturating_add(more.links);
            held.is_cut |= more.is_cut;
        }
    }

    /// Returns whether every link was read.
    pub(super) fn is_whole(&self) -> bool {
        self.is_open && !self.families.values().any(|(_, held)| held.is_cut)
    }

    pub(super) fn finish(&self, context: &Context<'_>) {
        for (key, (family, held)) in &self.families {
            if held.is_cut || !self.is_open {
                continue;
            }
            let count = |name: &str, found: u64, declared: u64| {
                let message = format!("{declared} declared, but the cells hold {found}");
                let value = Some(json!(found));
                context.report_attribute(&rules::LINK_COUNT, key, &[name], message, value);
            };
            match family.num_links {
                Some(declared) if declared != held.links => {
                    count("num_links", held.links, declared);
                }
                // Links inside chunks up to 0.8.1 have no declared count.
                None if held.rows > 0 && family.sid_ndim.is_some() => {
                    let message = format!("missing, but there are {} links", held.links);
                    let value = Some(json!(held.links));
                    let rule = &rules::LINK_UNCOUNTED;
                    context.report_attribute(rule, key, &["num_links"], message, value);
                }
                _ => {}
            }
            let assumed = match family.store {
                LinkStore::Duplicate => family.num_links,
                LinkStore::Canonical => None,
            };
            match family.num_physical_records.or(assumed) {
                Some(declared) if declared != held.rows => {
                    count("num_physical_records", held.rows, declared);
                }
                _ => {}
            }
        }
    }
}

/// Compares the links between levels in both directions, after all levels were read.
pub(crate) fn between_levels(
    context: &Context<'_>,
    store: &StoreMetadata,
    root: &RootMetadata,
    counted: &StoreCounts,
) {
    for (level, counts) in &counted.levels {
        let crossing = counts.links.iter().filter(|(delta, _)| delta.levels() != 0);
        for (delta, links) in crossing {
            let Some(other) = level.offset(delta.levels()) else {
                continue;
            };
            let back = Delta::new(delta.levels().saturating_neg());
            let counterpart = counted
                .levels
                .get(&other)
                .and_then(|counts| counts.links.get(&back));
            // Two families are compared once.
            if delta.levels() < 0 && counterpart.is_some() {
                continue;
            }
            let (Some(at), Some(other)) = (store.level(*level), store.level(other)) else {
                continue;
            };
            let at = store.at(at, &ArrayRole::LinkFamily(*delta));
            let other = store.at(other, &ArrayRole::LinkFamily(back));
            if let (Some(at), Some(other)) = (at, other) {
                mirror(context, root, (&at, links), (&other, counterpart));
            }
        }
    }
}

/// Compares links to another level with those back.
fn mirror(
    context: &Context<'_>,
    root: &RootMetadata,
    (at, links): (&Key, &LinkSum),
    (other, counterpart): (&Key, Option<&LinkSum>),
) {
    let Some(back) = counterpart else {
        let is_declared = root.cross_level_storage == Some(Word::Known(CrossLevel::Explicit));
        if is_declared && links.records > 0 {
            let message =
                format!("the store links levels in both directions, but {at} has no counterpart");
            context.report(&rules::LINK_MIRROR, other, message);
        }
        return;
    };
    let is_edge = |sum: &LinkSum| sum.width == Some(LinkWidth::EDGE);
    if !links.is_whole || !back.is_whole || !is_edge(links) || !is_edge(back) {
        return;
    }
    if links.records != back.records {
        let message = format!("{} links, but {at} has {}", back.records, links.records);
        context.report(&rules::LINK_MIRROR, other, message);
    } else if links.digest != back.digest {
        let message = format!("as many links as {at}, but other ones");
        context.report(&rules::LINK_MIRROR, other, message);
    }
}

impl LinkSum {
    pub(super) fn of(parts: &[LinkPart], is_whole: bool) -> Self {
        Self {
            width: parts.first().map(LinkPart::width),
            is_whole,
            ..Self::default()
        }
    }
}
