//! Failed builds leave the completed levels. Killed builds are tested with the other kills.

use zvf::{
    CreateOptions, CrossLevel, ErrorKind, LevelDesign, OpenOptions, PyramidLevels, PyramidOptions,
    build_pyramid,
    coarsen::{CoarsenMethod, Placement},
};
use zvf_build::{GeometryKind, Profile, WritePlan};

use super::equal::files;
use crate::{
    block_on,
    validated::own::is_sound,
    written::random::{self, Case},
};

pub(super) fn bins(cell: f64) -> LevelDesign {
    LevelDesign {
        method: CoarsenMethod::Bins {
            cell: vec![cell; 3],
            placement: Placement::Mean,
            share: false,
        },
        chunk_scale: vec![1; 3],
        sparsity: None,
        additive: false,
        sharding: None,
    }
}

/// Creates a store with chunks of 8, written and read with these options.
pub(super) async fn store(kind: GeometryKind, open: &OpenOptions) -> zvf::Store {
    let mut cases = (0..).map(|seed| random::case(seed, kind, Profile::V09));
    let is_one = |case: &Case| case.geometry.positions.width == 3 && case.geometry.vertices() > 60;
    let Case {
        geometry,
        mut design,
        ..
    } = cases.find(is_one).unwrap();
    (design.chunk_shape, design.bin_shape) = (Some(vec![8.0; 3]), None);
    let none: [(&str, &[u8]); 0] = [];
    let store = open.from_memory(none).unwrap();
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    let written = zvf::create_from_plan(&store, plan, &CreateOptions::new().seal(false)).await;
    written.unwrap();
    store
}

/// The chunks of the second level have too few axes.
#[test]
fn a_failed_level_leaves_the_previous_ones() {
    for kind in GeometryKind::ALL {
        block_on(async {
            let open = OpenOptions::default();
            let [one, two] = [store(kind, &open).await, store(kind, &open).await];
            let mut options = PyramidOptions::default();
            options.cross_level = CrossLevel::Explicit;
            options.levels = PyramidLevels::Explicit(vec![bins(4.0)]);
            build_pyramid(&one, &options).await.unwrap();
            let mut two_axes = bins(8.0);
            two_axes.chunk_scale.pop();
            options.levels = PyramidLevels::Explicit(vec![bins(4.0), two_axes]);
            let made = build_pyramid(&two, &options).await;
            assert!(made.is_err(), "{made:?}");
            is_sound(&two, kind.name()).await;
            assert!(files(&one).await == files(&two).await, "{kind:?}");
            // Existing levels are replaced only on request.
            options.levels = PyramidLevels::Explicit(vec![bins(8.0)]);
            let made = build_pyramid(&two, &options).await;
            assert!(
                matches!(&made, Err(error) if error.kind() == ErrorKind::InvalidInput),
                "{made:?}"
            );
            assert!(files(&one).await == files(&two).await, "{kind:?}");
        });
    }
}

/// The collapse method only applies to triangles. Other geometry is rejected before a level is
/// read.
#[test]
fn collapse_is_rejected_without_triangles() {
    for kind in GeometryKind::ALL {
        if kind == GeometryKind::Mesh {
            continue;
        }
        block_on(async {
            let store = store(kind, &OpenOptions::default()).await;
            let mut design = bins(4.0);
            design.method = CoarsenMethod::Collapse {
                keep: 0.5,
                tolerance: f64::INFINITY,
                cull: 0,
            };
            let before = files(&store).await;
            let mut options = PyramidOptions::default();
            options.levels = PyramidLevels::Explicit(vec![design]);
            let made = build_pyramid(&store, &options).await;
            let is_refused = matches!(&made, Err(error) if error.kind() == ErrorKind::InvalidInput);
            assert!(is_refused, "{kind:?}: {made:?}");
            assert!(files(&store).await == before, "{kind:?}");
        });
    }
}

/// A damaged cell is an error, and nothing is written.
#[test]
fn a_damaged_level_is_not_coarsened() {
    for kind in GeometryKind::ALL {
        block_on(async {
            let open = OpenOptions::default();
            let whole = files(&store(kind, &open).await).await;
            let is_cell =
                |name: &&String| name.starts_with("0/vertices/") && !name.ends_with("zarr.json");
            let last = whole.keys().rfind(is_cell).unwrap().clone();
            let mut damaged = whole.clone();
            let cell = damaged.get_mut(&last).unwrap();
            cell.truncate(cell.len() - 1);
            let damaged_store = open.from_memory(damaged.clone()).unwrap();
            let mut options = PyramidOptions::default();
            options.levels = PyramidLevels::Explicit(vec![bins(4.0)]);
            let made = build_pyramid(&damaged_store, &options).await;
            assert!(made.is_err(), "{kind:?} {last}");
            assert!(files(&damaged_store).await == files(&damaged_store_of(&open, damaged)).await);
        });
    }
}

fn damaged_store_of(open: &OpenOptions, files: super::equal::Files) -> zvf::Store {
    open.from_memory(files).unwrap()
}
