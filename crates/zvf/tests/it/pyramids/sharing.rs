//! Bundles of streamlines, many of which share vertices of coarser levels.

use zvf::{
    Dataset, LevelDesign, PyramidLevels, PyramidOptions, build_pyramid,
    coarsen::{CoarsenMethod, Placement},
};
use zvf_build::{Design, Geometry, GeometryKind, NumericColumn};
use zvf_testkit::stores::Random;

use super::{bins::distance, model::Level, random::store_of};
use crate::{block_on, validated::own::is_sound};

const BUNDLES: usize = 6;
const LINES: usize = 50;
const POINTS: usize = 80;

/// Returns lines along arcs, each slightly offset from that of its bundle.
fn tractogram() -> Geometry {
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
    let mut geometry = Geometry::new(NumericColumn::float32(3, values));
    geometry.part_offsets = Some(offsets);
    geometry
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
                        .map(|at| distance(level.place(*at), fine.place(*vertex)));
                    let far = far.fold(f64::INFINITY, f64::min);
                    assert!(far <= moved, "object {id} of level {number} is {far} away");
                }
            }
        }
    });
}
