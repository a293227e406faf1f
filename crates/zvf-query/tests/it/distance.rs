//! Distances compared with dense sampling, and the k nearest with sorting.

use proptest::prelude::*;
use zvf_query::geometry::{
    Bbox, KNearest, squared_distance_to_bbox, squared_distance_to_point,
    squared_distance_to_segment, squared_distance_to_triangle,
};

proptest! {
    #[test]
    fn distances_match_dense_sampling(
        point in prop::array::uniform3(-3.0..3.0_f64),
        corners in prop::array::uniform3(prop::array::uniform3(-2.0..2.0_f64)),
    ) {
        let [a, b, c] = corners.each_ref().map(<[f64; 3]>::as_slice);
        let steps = 60_i32;
        let (mut on_side, mut on_face) = (f64::INFINITY, f64::INFINITY);
        for i in 0..=steps {
            for j in 0..=steps - i {
                let (u, v) = (f64::from(i) / f64::from(steps), f64::from(j) / f64::from(steps));
                let p = [0, 1, 2].map(|k: usize| a[k] + u * (b[k] - a[k]) + v * (c[k] - a[k]));
                let squared = squared_distance_to_point(&point, &p);
                on_face = on_face.min(squared);
                if j == 0 {
                    on_side = on_side.min(squared);
                }
            }
        }
        let side = squared_distance_to_segment(&point, [a, b]);
        let face = squared_distance_to_triangle(&point, [a, b, c]);
        prop_assert!(side <= on_side + 1e-9 && face <= on_face + 1e-9);
        // Samples are at most a fifteenth of a side of 7 apart.
        prop_assert!(side.sqrt() + 0.12 > on_side.sqrt());
        prop_assert!(face.sqrt() + 0.24 > on_face.sqrt());
        prop_assert!(face <= side);
        prop_assert_eq!(face, squared_distance_to_triangle(&point, [c, a, b]));
    }

    #[test]
    fn the_distance_of_a_box_is_that_of_its_nearest_point(
        point in prop::array::uniform3(-9..9_i32),
        lo in prop::array::uniform3(-4..4_i32),
        size in prop::array::uniform3(0..4_i32),
    ) {
        let hi = [0, 1, 2].map(|k: usize| lo[k] + size[k]);
        let nearest = [0, 1, 2].map(|k: usize| f64::from(point[k].clamp(lo[k], hi[k])));
        let bbox = Bbox::new(&lo.map(f64::from), &hi.map(f64::from)).unwrap();
        let point = point.map(f64::from);
        prop_assert_eq!(squared_distance_to_bbox(&point, &bbox), squared_distance_to_point(&point, &nearest));
    }

    #[test]
    fn the_k_nearest_equal_the_first_after_sorting(
        squared in prop::collection::vec((0..20_u8).prop_map(f64::from), 0..60),
        k in 0..20_usize,
    ) {
        let mut wanted: Vec<(f64, usize)> = squared.iter().copied().zip(0..).collect();
        let mut forward = KNearest::new(k);
        let mut backward = KNearest::new(k);
        for (squared, row) in &wanted {
            forward.push(*squared, *row);
        }
        for (squared, row) in wanted.iter().rev() {
            let admitted = backward.admits(*squared);
            backward.push(*squared, *row);
            prop_assert!(admitted || backward.len() == k);
        }
        wanted.sort_by(|a, b| a.partial_cmp(b).unwrap());
        wanted.truncate(k);
        prop_assert_eq!(&forward.into_sorted(), &wanted);
        prop_assert_eq!(&backward.into_sorted(), &wanted);
    }
}

#[test]
fn degenerate_primitives_are_points_and_segments() {
    let far: &[f64] = &[3.0, 4.0];
    let origin: &[f64] = &[0.0, 0.0];
    assert_eq!(squared_distance_to_segment(far, [origin, origin]), 25.0);
    assert_eq!(squared_distance_to_triangle(far, [origin; 3]), 25.0);
    let line: [&[f64]; 3] = [&[0.0, 0.0], &[1.0, 0.0], &[6.0, 0.0]];
    assert_eq!(squared_distance_to_triangle(far, line), 16.0);
}

#[test]
fn nan_distances_and_k_of_zero_are_ignored() {
    let mut none = KNearest::new(0);
    none.push(0.0, 1);
    assert!(none.is_empty() && !none.admits(0.0));
    let mut one = KNearest::new(1);
    one.push(f64::NAN, 0);
    assert!(one.is_empty() && !one.admits(f64::NAN));
    one.push(f64::INFINITY, 7);
    one.push(-0.0, 5);
    one.push(0.0, 4);
    assert_eq!(one.into_sorted(), [(0.0, 4)]);
    // Memory depends on the number of items, not on k.
    assert!(KNearest::<u8>::new(usize::MAX).is_empty());
}
