//! Chunk and bin arithmetic compared with integers.

use std::collections::BTreeSet;

use proptest::prelude::*;
use zvf_model::grid::{Bins, Bounds, ChunkCoord, ChunkShape, Grid, GridError};

fn shape(extents: &[f64]) -> ChunkShape {
    ChunkShape::new(extents).unwrap()
}

fn bbox(lower: &[f64], upper: &[f64]) -> Bounds {
    Bounds::new(lower, upper).unwrap()
}

#[track_caller]
fn chunk(extent: f64, x: f64, want: Option<i64>) {
    let found = shape(&[extent]).chunk_of(&[x]);
    assert_eq!(found.map(|chunk| chunk.coords()[0]), want);
}

#[test]
fn borders_belong_to_the_upper_chunk() {
    chunk(10.0, 10.0, Some(1));
    chunk(10.0, 9.999, Some(0));
    chunk(10.0, -0.125, Some(-1));
    chunk(10.0, -10.0, Some(-1));
    chunk(10.0, -0.0, Some(0));
    // float32 0.3 is more than 0.3, and is not rounded back.
    chunk(0.3, f64::from(0.3_f32), Some(1));
}

#[test]
fn positions_that_are_not_finite_have_no_chunk() {
    chunk(1.0, f64::NAN, None);
    chunk(1.0, f64::INFINITY, None);
    chunk(1.0, 1e300, None);
    chunk(1e-300, 1e300, None);
    assert_eq!(shape(&[1.0, 1.0]).chunk_of(&[0.0]), None);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(ChunkShape::new(&[bad]).is_err());
    }
    assert!(ChunkShape::new(&[]).is_err());
}

#[test]
fn grids_cover_bounds_with_both_ends() {
    let grid = Grid::of_bounds(&bbox(&[0.0, -1.0], &[64.0, 1.0]), &shape(&[32.0, 32.0])).unwrap();
    assert_eq!(grid.shape(), [3, 2]);
    assert_eq!(grid.origin(), [0, -1]);
    assert_eq!(grid.cell_of(&[2, -1]), Ok(vec![2, 0]));
    let outside = GridError::Outside { axis: 1, chunk: 1 };
    assert_eq!(grid.cell_of(&[0, 1]), Err(outside));
    assert_eq!(
        grid.cell_of(&[-1, 0]),
        Err(GridError::Outside { axis: 0, chunk: -1 })
    );
    let axes = GridError::Axes {
        expected: 2,
        found: 1,
    };
    assert_eq!(grid.cell_of(&[0]), Err(axes));
    // At least one cell, also for inverted bounds.
    let grid = Grid::of_bounds(&bbox(&[50.0], &[0.0]), &shape(&[10.0])).unwrap();
    assert_eq!((grid.shape(), grid.origin()), (&[1][..], &[5][..]));
}

#[test]
fn grids_at_the_ends_of_the_numbers() {
    let grid = Grid::new(Some(&[i64::MIN]), &[5]).unwrap();
    assert_eq!(grid.cell_of(&[i64::MIN + 4]), Ok(vec![4]));
    assert!(grid.cell_of(&[i64::MAX]).is_err());
    assert_eq!(Grid::new(Some(&[i64::MAX]), &[1]), Err(GridError::Range));
    assert_eq!(Grid::new(None, &[u64::MAX]), Err(GridError::Range));
    let far = bbox(&[-1e30], &[1e30]);
    assert_eq!(Grid::of_bounds(&far, &shape(&[1.0])), Err(GridError::Range));
}

#[test]
fn empty_boxes_select_nothing() {
    let chunks = shape(&[10.0, 10.0]);
    let here = ChunkCoord::new([0, 0]);
    for empty in [
        bbox(&[f64::NAN, 0.0], &[1.0, 1.0]),
        bbox(&[0.0, 0.0], &[1.0, f64::NAN]),
        bbox(&[0.0, 5.0], &[1.0, 4.0]),
        bbox(&[0.0], &[1.0]),
    ] {
        let touched = chunks.chunks_touching(&empty);
        assert!(touched.is_empty());
        assert_eq!(touched.count(), Some(0));
        assert!(!touched.contains(&here));
        assert_eq!(touched.within(10).unwrap().count(), 0);
    }
}

#[test]
fn unbounded_boxes_do_not_allocate() {
    let everything = bbox(&[f64::NEG_INFINITY; 3], &[f64::INFINITY; 3]);
    let chunks = shape(&[1.0; 3]).chunks_touching(&everything);
    assert_eq!(chunks.count(), None);
    assert_eq!(chunks.within(1 << 20).unwrap_err().count, None);
    let present = [[-5, 0, 7], [1, 2, 3]].map(ChunkCoord::new);
    assert!(chunks.select(&present).eq(present.iter()));
    let wide = bbox(&[0.0; 3], &[99.0; 3]);
    let error = shape(&[1.0; 3]).chunks_touching(&wide).within(1000);
    assert_eq!(error.unwrap_err().count, Some(1_000_000));
}

#[test]
fn leading_attribute_coordinates_are_ignored() {
    let chunks = shape(&[10.0]).chunks_touching(&bbox(&[0.0], &[9.0]));
    assert!(chunks.contains(&ChunkCoord::new([7, 0])));
    assert!(!chunks.contains(&ChunkCoord::new([0, 7])));
    assert!(!chunks.contains(&ChunkCoord::new([])));
}

#[test]
fn bins_that_do_not_fill_a_chunk_are_refused() {
    let chunk = shape(&[8.0, 8.0]);
    assert!(Bins::new(&chunk, shape(&[5.0, 8.0])).is_err());
    assert!(Bins::new(&chunk, shape(&[16.0, 8.0])).is_err());
    assert!(Bins::new(&chunk, shape(&[8.0])).is_err());
    assert!(Bins::new(&shape(&[1e30]), shape(&[1e-30])).is_err());
    // Divides except for rounding.
    let bins = Bins::new(&shape(&[0.3]), shape(&[0.1])).unwrap();
    assert_eq!(bins.count(), 3);
}

#[test]
fn bins_are_numbered_last_axis_fastest() {
    let bins = Bins::new(&shape(&[10.0; 3]), shape(&[5.0; 3])).unwrap();
    let place = bins.place_of(&[1.0, 6.0, 6.0]).unwrap();
    assert_eq!((place.chunk, place.bin), (ChunkCoord::new([0, 0, 0]), 3));
    let place = bins.place_of(&[-1.0, 1.0, 1.0]).unwrap();
    assert_eq!((place.chunk, place.bin), (ChunkCoord::new([-1, 0, 0]), 4));
    assert_eq!(bins.local_of(4), Some(vec![1, 0, 0]));
    assert_eq!(bins.local_of(8), None);
    assert_eq!(bins.number_of(&[1, 1, 1]), Some(7));
    assert_eq!(bins.number_of(&[2, 0, 0]), None);
    assert_eq!(bins.place_of(&[f64::NAN, 0.0, 0.0]), None);
}

#[test]
fn scales_over_the_root_are_whole() {
    let root = shape(&[8.0, 0.1]);
    let scale = shape(&[16.0, 0.3]).scale_over(&root).unwrap();
    assert_eq!(scale.iter().map(|n| n.get()).collect::<Vec<_>>(), [2, 3]);
    assert!(shape(&[12.0, 0.1]).scale_over(&root).is_err());
    assert!(shape(&[4.0, 0.1]).scale_over(&root).is_err());
    assert!(shape(&[8.0]).scale_over(&root).is_err());
}

/// Generates positions and shapes in eighths, so that every quotient of the oracle is exact.
fn eighths(range: std::ops::Range<i64>) -> impl Strategy<Value = i64> {
    range
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn of_eighths(number: i64) -> f64 {
    number as f64 / 8.0
}

proptest! {
    #[test]
    fn chunks_are_integer_division(
        axes in prop::collection::vec((eighths(-2000..2000), 1..200i64), 1..5)
    ) {
        let extents: Vec<f64> = axes.iter().map(|&(_, extent)| of_eighths(extent)).collect();
        let position: Vec<f64> = axes.iter().map(|&(x, _)| of_eighths(x)).collect();
        let want: Vec<i64> = axes.iter().map(|&(x, extent)| x.div_euclid(extent)).collect();
        let found = shape(&extents).chunk_of(&position);
        prop_assert_eq!(found, Some(ChunkCoord::new(want)));
    }

    #[test]
    fn chunks_of_a_box_are_those_of_its_points(
        axes in prop::collection::vec((eighths(-60..60), 0..60i64, 3..40i64), 1..3),
        limit in 0..200u64,
    ) {
        let extents: Vec<f64> = axes.iter().map(|&(.., extent)| of_eighths(extent)).collect();
        let lower: Vec<f64> = axes.iter().map(|&(x, ..)| of_eighths(x)).collect();
        let upper: Vec<f64> = axes.iter().map(|&(x, size, _)| of_eighths(x + size)).collect();
        let shape = shape(&extents);
        let bounds = bbox(&lower, &upper);
        let touched = shape.chunks_touching(&bounds);
        // Every point on the lattice, by enumeration.
        let mut want = BTreeSet::from([vec![]]);
        for &(x, size, extent) in &axes {
            let coords: BTreeSet<i64> = (x..=x + size).map(|x| x.div_euclid(extent)).collect();
            want = want
                .iter()
                .flat_map(|head| {
                    let coord = |&coord: &i64| head.iter().copied().chain([coord]).collect();
                    coords.iter().map(coord).collect::<Vec<Vec<i64>>>()
                })
                .collect();
        }
        let count = want.len() as u64;
        prop_assert_eq!(touched.count(), Some(count));
        match touched.within(limit) {
            Ok(all) => {
                let all: Vec<Vec<i64>> = all.map(|chunk| chunk.coords().to_vec()).collect();
                prop_assert_eq!(all, want.iter().cloned().collect::<Vec<_>>());
            }
            Err(error) => prop_assert!(error.count > Some(limit)),
        }
        let grid = Grid::of_bounds(&bounds, &shape).unwrap();
        prop_assert_eq!(grid.shape().iter().product::<u64>(), count);
        for chunk in &want {
            prop_assert!(touched.contains(&ChunkCoord::new(chunk.clone())));
            let cell = grid.cell_of(chunk).unwrap();
            prop_assert_eq!(grid.chunk_of(&cell), Some(ChunkCoord::new(chunk.clone())));
        }
    }

    #[test]
    fn bins_are_integer_division(
        axes in prop::collection::vec((eighths(-500..500), 1..12i64, 1..6i64), 1..4),
        size in 0..80i64,
    ) {
        let bin: Vec<f64> = axes.iter().map(|&(_, bin, _)| of_eighths(bin)).collect();
        let chunk: Vec<f64> = axes.iter().map(|&(_, bin, n)| of_eighths(bin * n)).collect();
        let position: Vec<f64> = axes.iter().map(|&(x, ..)| of_eighths(x)).collect();
        let bins = Bins::new(&shape(&chunk), shape(&bin)).unwrap();
        let place = bins.place_of(&position).unwrap();
        let want: Vec<i64> = axes.iter().map(|&(x, bin, n)| x.div_euclid(bin * n)).collect();
        prop_assert_eq!(place.chunk.coords(), &want[..]);
        // Exact shapes: the chunk of the bin is the chunk of the position.
        prop_assert_eq!(shape(&chunk).chunk_of(&position), Some(place.chunk.clone()));
        let number = axes.iter().fold(0, |number, &(x, bin, n)| {
            number * n + x.div_euclid(bin).rem_euclid(n)
        });
        prop_assert_eq!(i64::try_from(place.bin).unwrap(), number);
        let local = bins.local_of(place.bin).unwrap();
        prop_assert_eq!(bins.number_of(&local), Some(place.bin));
        prop_assert!(place.bin < bins.count());

        // A box touches exactly the bins whose box it intersects.
        let upper: Vec<f64> = axes.iter().map(|&(x, ..)| of_eighths(x + size)).collect();
        let bounds = bbox(&position, &upper);
        let found: Vec<u64> = bins.touching(place.chunk.coords(), &bounds).collect();
        let meets = |number: &u64| {
            let local = bins.local_of(*number).unwrap();
            axes.iter().zip(&local).zip(&want).all(|((&(x, bin, n), &local), &chunk)| {
                let start = (chunk * n + i64::from(local)) * bin;
                x < start + bin && start <= x + size
            })
        };
        let want: Vec<u64> = (0..bins.count()).filter(meets).collect();
        prop_assert_eq!(found, want);
    }

    #[test]
    fn arbitrary_numbers_never_panic(
        lower in prop::collection::vec(any::<f64>(), 1..4),
        upper in prop::collection::vec(any::<f64>(), 1..4),
        extents in prop::collection::vec(any::<f64>(), 1..4),
        coords in prop::collection::vec(any::<i64>(), 1..4),
    ) {
        let Ok(shape) = ChunkShape::new(&extents) else {
            return Ok(());
        };
        let _ = shape.chunk_of(&lower);
        let Ok(bounds) = Bounds::new(&lower, &upper) else {
            return Ok(());
        };
        let touched = shape.chunks_touching(&bounds);
        let _ = (touched.count(), touched.contains(&ChunkCoord::new(coords.clone())));
        if let Ok(all) = touched.within(1000) {
            prop_assert_eq!(Some(all.count() as u64), touched.count());
        }
        let _ = Grid::of_bounds(&bounds, &shape);
        let fine: Vec<f64> = extents.iter().map(|extent| extent / 4.0).collect();
        if let Ok(bins) = ChunkShape::new(&fine).map_err(drop).and_then(|fine| {
            Bins::new(&shape, fine).map_err(drop)
        }) {
            prop_assert!(bins.touching(&coords, &bounds).count() <= 64);
            let _ = bins.place_of(&lower);
        }
    }
}
