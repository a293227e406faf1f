//! A store of each kind, some dozen chunks each.

use zvf_testkit::stores::{Cells, Kind, Made, Recipe, make};

use super::Files;

pub(super) const KINDS: [(&str, Kind); 6] = [
    ("points_in_bins", Kind::BinnedPoints),
    ("points_of_objects", Kind::ObjectPoints),
    ("polylines", Kind::Polylines),
    ("graph", Kind::Graph),
    ("skeleton", Kind::Skeleton),
    ("mesh", Kind::Triangles),
];

pub(super) const CELLS: [(&str, Cells); 3] = [
    ("plain", Cells::Plain),
    ("zstd", Cells::Zstd),
    ("sharded", Cells::Sharded),
];

/// The store of the first seed that gives some dozen chunks, the attribute
/// `radius`, groups, and objects that are numbered.
pub(super) fn fixed(kind: Kind, cells: Cells) -> Made {
    let recipe = |seed| Recipe {
        seed,
        kind,
        axes: 2,
        size: 100,
        ..Recipe::default()
    };
    let seed = (0..).find(|seed| {
        let Made { files, truth } = make(&recipe(*seed));
        let radius = truth.vertex_attributes.iter().any(|a| a.name == "radius");
        let objects = truth.objects.as_ref().is_none_or(|objects| {
            let are_rows = objects
                .iter()
                .zip(0..)
                .all(|(object, row)| object.id == row);
            objects.len() > 3 && truth.groups.is_some() && are_rows
        });
        let stored = truth.links.iter().filter(|link| link.stored).count();
        let arrays = files
            .iter()
            .filter(|(key, _)| key.starts_with("0/links/0/") && key.ends_with("/zarr.json"));
        let links = !kind.is_linked() || stored > 8 && arrays.count() < 16;
        (12..=24).contains(&truth.chunks().len()) && radius && objects && links
    });
    make(&Recipe {
        cells,
        ..recipe(seed.unwrap())
    })
}

pub(super) fn files(made: &Made) -> Files {
    made.files.iter().cloned().collect()
}
