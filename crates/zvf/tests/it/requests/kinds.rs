//! A store of each kind with some dozen chunks.

use zvf_testkit::stores::{Cells, Kind, Made, Recipe, make};

use super::Files;

/// Names, kinds and suitable seeds of stores, see [`fixed`].
pub(super) const KINDS: [(&str, Kind, u64); 6] = [
    ("points_in_bins", Kind::BinnedPoints, 40),
    ("points_of_objects", Kind::ObjectPoints, 13),
    ("polylines", Kind::Polylines, 7),
    ("graph", Kind::Graph, 101),
    ("skeleton", Kind::Skeleton, 14),
    ("mesh", Kind::Triangles, 480),
];

pub(super) const CELLS: [(&str, Cells); 3] = [
    ("plain", Cells::Plain),
    ("zstd", Cells::Zstd),
    ("sharded", Cells::Sharded),
];

/// Returns a store of one or two dozen chunks, with the attribute `radius`, groups, and objects
/// with ids.
pub(super) fn fixed(kind: Kind, cells: Cells) -> Made {
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
