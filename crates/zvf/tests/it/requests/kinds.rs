//! A store of each kind with some dozen chunks.

use zvf_testkit::stores::{Cells, Made, Recipe, StoreKind, make};

use super::Files;

/// Names, kinds and suitable seeds of stores, see [`fixed`].
pub(super) const KINDS: [(&str, StoreKind, u64); 6] = [
    ("points_in_bins", StoreKind::BinnedPoints, 40),
    ("points_of_objects", StoreKind::ObjectPoints, 13),
    ("polylines", StoreKind::Polylines, 7),
    ("graph", StoreKind::Graph, 101),
    ("skeleton", StoreKind::Skeleton, 14),
    ("mesh", StoreKind::Triangles, 480),
];

pub(super) const CELLS: [(&str, Cells); 3] = [
    ("plain", Cells::Plain),
    ("zstd", Cells::Zstd),
    ("sharded", Cells::Sharded),
];

/// Returns a store of one or two dozen chunks, with the attribute `radius`, groups, and objects
/// with ids.
pub(super) fn fixed(kind: StoreKind, cells: Cells) -> Made {
    let (_, _, seed) = KINDS
        .into_iter()
        .find(|(_, other, _)| *other == kind)
        .unwrap();
    let made = make(&Recipe {
        seed,
        kind,
        cells,
        axes: 2,
        size: 100,
        ..Recipe::default()
    });
    let truth = &made.truth;
    assert!((12..=24).contains(&truth.chunks().len()));
    assert!(truth.vertex_attributes.iter().any(|a| a.name == "radius"));
    assert!(truth.objects.as_ref().is_none_or(|objects| {
        let are_rows = objects
            .iter()
            .zip(0..)
            .all(|(object, row)| object.id == row);
        objects.len() > 3 && truth.groups.is_some() && are_rows
    }));
    let stored = truth.links.iter().filter(|link| link.stored).count();
    assert!(!kind.is_linked() || stored > 8);
    made
}

pub(super) fn files(made: &Made) -> Files {
    made.files.iter().cloned().collect()
}
