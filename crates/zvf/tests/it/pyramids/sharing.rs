//! Objects that share vertices of coarser levels.

use std::collections::BTreeSet;

use zvf::{
    Dataset, LevelDesign, ObjectSelection, PyramidLevels, PyramidOptions, build_pyramid,
    coarsen::{Amount, CoarsenMethod, Placement, Sparsity, Strategy},
};
use zvf_build::{Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn};
use zvf_testkit::stores::Random;

use super::{bins::distance, model::Level, random::store_of};
use crate::{block_on, validated::own::is_sound};

const BUNDLES: usize = 6;
const LINES: usize = 50;
const POINTS: usize = 80;

/// Returns lines along arcs, each slightly offset from that of its bundle.
fn tractogram() -> GeometryBuilder {
    let mut random = Random::new(2026);
    let (mut values, mut offsets) = (Vec::new(), vec![0]);
    for bundle in 0..BUNDLES {
        let turn = 0.4 + bundle as f64 * 0.3;
        let start = [0, 1, 2].map(|axis| (bundle * (axis + 2) % 5) as f64 * 7.0 - 12.0);
        for _ in 0..LINES {
            let beside = [(); 3].map(|()| random.unit() * 1.5);
            for point in 0..POINTS {
                let at = point as f64 / POINTS as f64;
                let arc = [
                    40.0 * at,
                    15.0 * (turn + 3.0 * at).sin(),
                    15.0 * (2.0 * at).cos(),
                ];
                for axis in 0..3 {
                    let noise = (random.unit() - 0.5) * 0.3;
                    values.push((start[axis] + arc[axis] + beside[axis] + noise) as f32);
                }
            }
            offsets.push((values.len() / 3) as u64);
        }
    }
    Geometry::builder(NumericColumn::float32(3, values)).paths(offsets, None)
}

#[test]
fn bundles_share_vertices_within_the_error_bound() {
    let mut design = Design::new(GeometryKind::Streamlines);
    design.chunk_shape = Some(vec![16.0; 3]);
    let mut options = PyramidOptions::default();
    let levels = [2.0, 4.0].map(|cell| LevelDesign {
        method: CoarsenMethod::Bins {
            cell: vec![cell; 3],
            placement: Placement::Mean,
            share: false,
        },
        chunk_scale: vec![1; 3],
        sparsity: None,
        additive: false,
        sharding: None,
    });
    options.levels = PyramidLevels::Explicit(levels.to_vec());
    block_on(async {
        let store = store_of(tractogram(), design.clone()).await;
        let made = build_pyramid(&store, &options).await.unwrap();
        is_sound(&store, "a tractogram").await;
        let dataset = Dataset::open(store).await.unwrap();
        let fine = Level::read(&dataset, 0, &design).await;
        assert_eq!(fine.vertices.len(), BUNDLES * LINES * POINTS);
        for (number, made) in (1..).zip(&made.levels) {
            let level = Level::read(&dataset, number, &design).await;
            let objects = level.objects.as_ref().unwrap();
            let named: usize = objects.iter().map(|(_, own)| own.len()).sum();
            let stored = level.vertices.len();
            let min = [2, 4][number as usize - 1];
            assert!(
                stored * min <= named,
                "level {number}: {stored} for {named}"
            );
            assert_eq!(
                (made.vertices, made.named),
                (stored as u64, Some(named as u64))
            );
            // Errors of successive levels add up.
            let moved: f64 = (0..number as usize)
                .map(|at| [2.0, 4.0][at] * 3.0_f64.sqrt())
                .sum();
            for (id, own) in objects.iter().step_by(17) {
                for vertex in fine.of(*id) {
                    let far = own
                        .iter()
                        .map(|at| distance(level.place(*at), fine.place(*vertex)))
                        .fold(f64::INFINITY, f64::min);
                    assert!(far <= moved, "object {id} of level {number} is {far} away");
                }
            }
        }
    });
}

/// Regression test: a subset of shared points kept all of them, also those of dropped objects.
#[test]
fn subsets_of_shared_points_have_the_points_of_kept_objects() {
    // Pairs of points of objects 1 and 2 that merge, two rows of object 2, and a short one of
    // object 1.
    let places = (0..60_u8).flat_map(|at| {
        let x = f32::from(at);
        [[x, 0.5], [x, 1.0], [x, 5.0], [x, 9.0]].concat()
    });
    let more = (0..20_u8).flat_map(|at| [f32::from(at), 15.0]);
    let geometry = Geometry::builder(NumericColumn::float32(2, places.chain(more)))
        .object_ids([[1, 2, 2, 2].repeat(60), vec![1; 20]].concat());
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![20.0; 2]);
    let level = |method: CoarsenMethod, kept: Option<ObjectSelection>| LevelDesign {
        method,
        chunk_scale: vec![1; 2],
        sparsity: kept,
        additive: false,
        sharding: None,
    };
    let bins = CoarsenMethod::Bins {
        cell: vec![2.0; 2],
        placement: Placement::Mean,
        share: true,
    };
    let subset = CoarsenMethod::Subset {
        cell: vec![10.0; 2],
        keep: 2,
        seed: 7,
        without: None,
    };
    let longest = ObjectSelection {
        sparsity: Sparsity {
            amount: Amount::Count(1),
            strategy: Strategy::Length,
        },
        attribute: None,
    };
    // Six larger cells with two points each, and two that only object 1 has.
    for (kept, present, vertices) in [(None, vec![1, 2], 16), (Some(longest), vec![2], 12)] {
        let mut options = PyramidOptions::default();
        let levels = [level(bins.clone(), None), level(subset.clone(), kept)];
        options.levels = PyramidLevels::Explicit(levels.to_vec());
        block_on(async {
            let store = store_of(geometry.clone(), design.clone()).await;
            let made = build_pyramid(&store, &options).await.unwrap();
            is_sound(&store, "shared points").await;
            let counts: Vec<u64> = made.levels.iter().map(|made| made.vertices).collect();
            assert_eq!(counts, [100, vertices]);
            let dataset = Dataset::open(store).await.unwrap();
            let level = Level::read(&dataset, 2, &design).await;
            assert!(level.present().iter().eq(&present), "{present:?}");
            let listed: BTreeSet<&usize> = level
                .objects
                .iter()
                .flatten()
                .flat_map(|(_, own)| own)
                .collect();
            assert_eq!(listed.len() as u64, vertices);
        });
    }
}
