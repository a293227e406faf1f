//! The division of annotations among levels.

use std::collections::BTreeMap;

use zvf_precomputed::{SpatialGrid, SpatialSampler};

/// A clustered cloud: half of the points in a thousandth of the volume.
fn cloud() -> Vec<[f32; 3]> {
    let unit = |seed: u64| {
        let [low, high, ..] = zvf_precomputed::murmurhash3_x86_128_low(seed).to_le_bytes();
        f32::from(u16::from_le_bytes([low, high])) / 65_536.0
    };
    let points = (0..40_000_u64).map(|id| {
        let scale = if id % 2 == 0 { 1.0 } else { 0.1 };
        [0, 1, 2].map(|axis| unit(3 * id + axis + 1_000_000) * scale * 100.0)
    });
    points.collect()
}

#[test]
fn no_cell_has_many_more_than_the_limit() {
    let points = cloud();
    let count = u64::try_from(points.len()).unwrap();
    let mut sampler = SpatialSampler::new(&[0.0; 3], &[100.0; 3], count, 500);
    for point in &points {
        sampler.count(point);
    }
    let levels = sampler.finish(500);
    assert!(levels.grids().len() > 2, "{:?}", levels.grids());
    let mut cells: BTreeMap<(usize, Vec<u64>), u64> = BTreeMap::new();
    for (id, point) in (0..).zip(&points) {
        let level = levels.level_of(id);
        *cells
            .entry((level, levels.grids()[level].cell_of(point)))
            .or_default() += 1;
    }
    assert_eq!(cells.values().sum::<u64>(), count);
    let fullest = cells.values().max().unwrap();
    // The hash gives the wanted number up to a few standard deviations.
    assert!(*fullest < 500 + 5 * 23, "{fullest}");
    assert!(cells[&(0, vec![0, 0, 0])] > 400);
}

#[test]
fn few_annotations_need_one_cell() {
    let mut sampler = SpatialSampler::new(&[0.0; 2], &[1.0, 5.0], 10, 500);
    (0..10).for_each(|_| sampler.count(&[0.5, 0.5]));
    let levels = sampler.finish(500);
    assert_eq!(levels.grids().len(), 1);
    assert_eq!(levels.grids()[0].shape, [1, 1]);
    assert!((0..10).all(|id| levels.level_of(id) == 0));
}

#[test]
fn grids_become_cubes() {
    let sampler = SpatialSampler::new(&[0.0; 3], &[100.0, 100.0, 10.0], 1 << 20, 100);
    let levels = {
        let mut sampler = sampler;
        (0..1 << 20).for_each(|_| sampler.count(&[1.0, 1.0, 1.0]));
        sampler.finish(100)
    };
    let shapes: Vec<&[u64]> = levels.grids().iter().map(|grid| &*grid.shape).collect();
    assert_eq!(shapes[..3], [[1, 1, 1], [2, 2, 1], [4, 4, 1]]);
    assert!(
        levels
            .grids()
            .iter()
            .all(|grid| grid.cell.iter().all(|cell| *cell > 0.0))
    );
}

#[test]
fn paths_lie_in_every_cell_that_they_touch() {
    let grid = SpatialGrid {
        lower: vec![0.0, 0.0],
        cell: vec![1.0, 1.0],
        shape: vec![4, 4],
    };
    let cells = grid.cells_of_path(&[0.5, 0.5, 2.5, 0.75, 2.5, 2.5]);
    assert_eq!(cells, [[0, 0], [1, 0], [2, 0], [2, 1], [2, 2]]);
    let diagonal = grid.cells_of_path(&[0.25, 0.5, 1.25, 1.5]);
    assert_eq!(diagonal, [[0, 0], [0, 1], [1, 1]]);
    let outside = grid.cells_of_path(&[-5.0, 0.5, 50.0, 0.5]);
    assert_eq!(outside, [[0, 0], [1, 0], [2, 0], [3, 0]]);
}
