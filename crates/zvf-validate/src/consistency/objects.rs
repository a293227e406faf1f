//! Objects, groups and their attributes.

use serde_json::json;
use zvf_model::{geometry_kind::GeometryKind, layout::ArrayRole};

use self::owners::Owners;
use super::{
    Ids, LevelCounts,
    manifests::{ManifestRow, Manifests},
};
use crate::{context::Context, rules::consistency as rules, store::LevelScope};

mod members;
mod owners;
mod tables;

pub(super) use members::Members;
pub(super) use tables::{attribute, groups};

pub(super) async fn check(context: &Context<'_>, scope: LevelScope<'_>, counts: &mut LevelCounts) {
    if let Some(manifests) = Manifests::open(context, scope) {
        counts.objects = manifests.rows();
        counts.ids = check_index(context, scope, &manifests, counts).await;
    }
    // Only the checks of the object index need them.
    counts.filled.clear();
    let (level, tree) = (&scope.level.key, &scope.store.tree);
    for folder in ["object_attributes", "group_attributes"] {
        for name in scope.store.names(scope.level, folder) {
            if let Ok(key) = level.join_path(&format!("{folder}/{name}")) {
                attribute(context, tree, &key).await;
            }
        }
    }
    let members = counts.ids.as_ref().map(Members::new);
    if let Ok(key) = level.join(scope.store.layout().names.groups) {
        groups(context, tree, &key, members.as_ref()).await;
    }
}

/// Checks the object index, and returns its ids.
async fn check_index(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    manifests: &Manifests,
    counts: &mut LevelCounts,
) -> Option<Ids> {
    let (key, index) = (&manifests.key, &manifests.index);
    let ids = manifests.ids(context).await;
    if let Some(Ids::Table(ids)) = &ids {
        check_ids(context, manifests, ids);
    }
    let mut owners = Owners::new(context, manifests, counts);
    let (mut present, mut absent, mut lost) = (0_u64, (0_u64, 0_u64), false);
    let each = |row, entry: ManifestRow<'_>| match entry {
        ManifestRow::Manifest(manifest) => {
            if !manifest.is_empty() {
                present = present.saturating_add(1);
            }
            let id = ids.as_ref().and_then(|ids| ids.get(row));
            owners.add(row, id, &manifest);
        }
        ManifestRow::Absent => {
            let (first, count) = &mut absent;
            if *count == 0 {
                *first = row;
            }
            *count = count.saturating_add(1);
        }
        ManifestRow::Lost => lost = true,
    };
    let all_read = manifests.each(context, each).await && !lost;
    let (first, absent) = absent;
    if absent > 0 {
        let message = format!("{absent} rows, first {first}");
        context.report(&rules::NO_MANIFEST, key, message);
    }
    // Without cells, only num_present tells whether manifests are lost or all empty.
    if let Some(array) = manifests.without_cells(&scope.store.tree)
        && index.num_present != Some(0)
    {
        let message = match index.num_present {
            Some(declared) => format!("all of them, but num_present is {declared}"),
            None => {
                "all of them, but num_present does not say that no object is present".to_owned()
            }
        };
        context.report(&rules::CELL_MISSING, array, message);
    }
    if let Some(declared) = index.num_present.filter(|declared| *declared != present)
        && all_read
    {
        let message = format!("{declared} declared, but {present} present");
        let (rule, name) = (&rules::NUM_PRESENT, "num_present");
        // Absent manifests may be lost ones, which only the declared number shows.
        if absent > 0 {
            context.report_at(rule, key, format_args!("attributes.{name}"), message);
        } else {
            context.report_attribute(rule, key, &[name], message, Some(json!(present)));
        }
    }
    if owners.share() {
        counts.shares = true;
        if !scope.metadata.shared_fragments {
            let message = owners.shared_message();
            let path = ["zarr_vectors_level", "shared_fragments"];
            let level = &scope.level.key;
            let value = Some(json!(true));
            context.report_attribute(&rules::UNDECLARED_SHARING, level, &path, message, value);
        }
    }
    if all_read {
        report_unowned(context, scope, &owners, counts);
        if let Some(ids) = &ids {
            owners.is_complete = absent == 0 && manifests.has_ids(&scope.store.tree);
            owners.compare(context, scope, ids, &counts.filled).await;
        }
    }
    ids
}

/// Checks that ids are distinct, and sorted if the index declares it.
fn check_ids(context: &Context<'_>, manifests: &Manifests, ids: &[i64]) {
    let key = &manifests.key;
    if manifests.index.ids_sorted && !ids.is_sorted() {
        let message = "the ids do not ascend";
        let value = Some(json!(false));
        let path = ["object_ids_sorted"];
        context.report_attribute(&rules::IDS_UNSORTED, key, &path, message, value);
    }
    let mut ascending = ids.to_vec();
    ascending.sort_unstable();
    let pairs = ascending.iter().zip(ascending.iter().skip(1));
    for (id, _) in pairs.filter(|(id, next)| id == next) {
        let message = format!("several rows have id {id}");
        context.report(&rules::DUPLICATE_ID, key, message);
    }
}

/// Reports fragments with vertices that no manifest names.
fn report_unowned(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    owners: &Owners<'_>,
    counts: &LevelCounts,
) {
    let Some(fragments) = scope.store.at(scope.level, &ArrayRole::VertexFragments) else {
        return;
    };
    let kinds = &scope.root.geometry_kinds;
    let rule = if kinds.iter().all(|kind| *kind == GeometryKind::Points) {
        &rules::UNOWNED_POINTS
    } else {
        &rules::UNOWNED
    };
    for (chunk, first, count) in owners.unowned(&counts.filled) {
        let message = format!("{count} fragments with vertices, first {first}");
        context.report_in_chunk(rule, &fragments, &chunk, message);
    }
}
