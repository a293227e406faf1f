//! The declared convention of links, compared with the kinds of geometry and the links.

use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{
    geometry_kind::GeometryKind,
    key::Key,
    level::LevelId,
    root::{LinksConvention, RootMetadata},
    word::Word,
};

use crate::{
    consistency::StoreCounts, context::Context, rules::semantics as rules, store::StoreMetadata,
};

pub(super) fn check(
    context: &Context<'_>,
    store: &StoreMetadata,
    root: &RootMetadata,
    counted: &StoreCounts,
) {
    // Composite geometries have a convention each.
    let is_composite = store.level(LevelId::FULL).is_some_and(|level| {
        let index = level.key.join("geometry_index");
        index.is_ok_and(|key| store.tree.exists(&key))
    });
    if is_composite {
        return;
    }
    let convention = root.links_convention.clone().unwrap_or_default();
    for kind in root.kinds() {
        if !allows(kind, &convention) {
            let message = format!("{} is not valid for {}", convention.as_str(), kind.as_str());
            let place = "attributes.zarr_vectors.links_convention";
            context.report_at(&rules::CONVENTION, &Key::root(), place, message);
        }
    }
    for (id, counts) in &counted.levels {
        let Some(level) = store.level(*id) else {
            continue;
        };
        let Some(sum) = counts.links.get(&Delta::INTRA) else {
            continue;
        };
        let Ok(key) = level.key.join("links") else {
            continue;
        };
        if root.geometry_kinds == [GeometryKind::Points] && sum.records > 0 {
            let message = format!("{} links", sum.records);
            context.report(&rules::LINKED_POINTS, &key, message);
        }
        let width = sum.width.map_or(0, LinkWidth::get);
        if root.holds(GeometryKind::Mesh) && (1..3).contains(&width) {
            let message = format!("links of {width} ends");
            context.report(&rules::NO_FACES, &key, message);
        }
    }
}

fn allows(kind: GeometryKind, convention: &Word<LinksConvention>) -> bool {
    match kind {
        // Points have no links.
        GeometryKind::Points => true,
        GeometryKind::Skeletons if *convention == LinksConvention::Explicit => true,
        kind => *convention == LinksConvention::of(kind),
    }
}
