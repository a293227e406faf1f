//! Clipped geometry lies in the box and on the primitive, and is complete.

use proptest::prelude::*;
use zvf_query::geometry::{Bbox, ClippedTriangle, Primitive};

use crate::oracle::{Case, case, cut, grazing};

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

#[track_caller]
fn check_triangle(bbox: Bbox, corners: [&[f64]; 3]) -> Option<ClippedTriangle> {
    let part = bbox.clip_triangle(corners);
    assert_eq!(part.is_some(), bbox.touches(Primitive::Triangle(corners)));
    let part = part?;
    assert!(!part.vertices.is_empty() && part.vertices.len() <= 3 + 2 * bbox.axes());
    for vertex in &part.vertices {
        assert!(bbox.contains(Primitive::Point(&vertex.position)));
        assert!(vertex.weights.iter().all(|weight| *weight >= 0.0));
        assert!(near(vertex.weights.iter().sum(), 1.0));
        for (axis, value) in vertex.position.iter().enumerate() {
            let weighted = vertex.weights.iter().zip(corners);
            let mean: f64 = weighted.map(|(weight, corner)| weight * corner[axis]).sum();
            assert!(near(mean, *value), "{vertex:?} of {corners:?}");
        }
    }
    Some(part)
}

/// Returns the lowest and highest value on an axis.
fn extent<'a>(points: impl Iterator<Item = &'a [f64]> + Clone, axis: usize) -> (f64, f64) {
    let values = points.map(|point| point[axis]);
    let low = values.clone().fold(f64::INFINITY, f64::min);
    (low, values.fold(f64::NEG_INFINITY, f64::max))
}

#[track_caller]
fn check_against_rationals(case: &Case) {
    let positions = case.positions();
    let [a, b, c] = [0, 1, 2].map(|at: usize| positions[at].as_slice());
    let exact = cut(&case.lo, &case.hi, &case.corners);
    let part = check_triangle(case.bbox(), [a, b, c]);
    assert_eq!(part.is_some(), !exact.is_empty());
    let Some(part) = part else { return };
    let exact: Vec<Vec<f64>> = exact
        .iter()
        .map(|point| point.iter().map(|value| value.to_f64()).collect())
        .collect();
    for axis in 0..case.lo.len() {
        let found = extent(part.vertices.iter().map(|vertex| &*vertex.position), axis);
        let wanted = extent(exact.iter().map(Vec::as_slice), axis);
        assert!(
            near(found.0, wanted.0) && near(found.1, wanted.1),
            "{case:?}"
        );
    }
    // The exact vertices and those found are the same.
    let close = |p: &[f64], q: &[f64]| p.iter().zip(q).all(|(a, b)| near(*a, *b));
    for point in &exact {
        assert!(
            part.vertices
                .iter()
                .any(|vertex| close(&vertex.position, point))
        );
    }
    for vertex in &part.vertices {
        assert!(exact.iter().any(|point| close(&vertex.position, point)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(1500)))]

    #[test]
    fn clipped_triangles_equal_the_rational_oracle(case in prop_oneof![case(3), grazing()]) {
        check_against_rationals(&case);
    }

    #[test]
    fn clipped_triangles_of_arbitrary_floats_are_valid(
        corners in prop::array::uniform3(prop::array::uniform3(-2.0..2.0_f64)),
        lo in prop::array::uniform3(-1.0..0.5_f64),
        size in prop::array::uniform3(0.0..1.0_f64),
    ) {
        let hi = [0, 1, 2].map(|k: usize| lo[k] + size[k]);
        let corners = corners.each_ref().map(<[f64; 3]>::as_slice);
        check_triangle(Bbox::new(&lo, &hi).unwrap(), corners);
    }

    #[test]
    fn clipped_segments_equal_the_rational_oracle(case in case(2)) {
        let (bbox, positions) = (case.bbox(), case.positions());
        let ends = [&*positions[0], &*positions[1]];
        let part = bbox.clip_segment(ends);
        let exact = cut(&case.lo, &case.hi, &case.corners);
        prop_assert_eq!(part.is_some(), !exact.is_empty());
        let Some(part) = part else { return Ok(()) };
        prop_assert!(0.0 <= part.t0 && part.t0 <= part.t1 && part.t1 <= 1.0);
        for (t, position) in [(part.t0, part.start), (part.t1, part.end)] {
            prop_assert!(bbox.contains(Primitive::Point(&position)));
            for (axis, value) in position.iter().enumerate() {
                let mean = (1.0 - t) * ends[0][axis] + t * ends[1][axis];
                prop_assert!(near(mean, *value));
            }
        }
        let exact: Vec<Vec<f64>> = exact
            .iter()
            .map(|point| point.iter().map(|value| value.to_f64()).collect())
            .collect();
        for axis in 0..case.lo.len() {
            let found = extent([&*part.start, &*part.end].into_iter(), axis);
            let wanted = extent(exact.iter().map(Vec::as_slice), axis);
            prop_assert!(near(found.0, wanted.0) && near(found.1, wanted.1));
        }
        // The reversed segment gives the same part.
        let back = bbox.clip_segment([ends[1], ends[0]]).unwrap();
        prop_assert!(near(back.t0, 1.0 - part.t1) || ends[0] == ends[1]);
    }

    /// Samples in the parameter interval lie in the box.
    #[test]
    fn clipped_segments_contain_exactly_the_samples_in_the_box(
        ends in prop::array::uniform2(prop::array::uniform4(-2.0..2.0_f64)),
        lo in prop::array::uniform4(-1.0..0.5_f64),
        size in prop::array::uniform4(0.0..1.5_f64),
    ) {
        let hi = [0, 1, 2, 3].map(|k: usize| lo[k] + size[k]);
        let bbox = Bbox::new(&lo, &hi).unwrap();
        let part = bbox.clip_segment([&ends[0], &ends[1]]);
        for step in 0..=100_i32 {
            let t = f64::from(step) / 100.0;
            let p = [0, 1, 2, 3].map(|k: usize| (1.0 - t) * ends[0][k] + t * ends[1][k]);
            let inside = part.is_some_and(|part| part.t0 <= t && t <= part.t1);
            let depth = (0..4)
                .map(|k| (p[k] - lo[k]).min(hi[k] - p[k]))
                .fold(f64::INFINITY, f64::min);
            if depth.abs() > 1e-9 {
                prop_assert_eq!(inside, depth > 0.0);
            }
        }
    }
}

#[test]
fn geometry_inside_the_box_is_unchanged() {
    let bbox = Bbox::parse("0,0,1,1").unwrap();
    let corners: [&[f64]; 3] = [&[0.0, 0.0], &[0.3, 0.1], &[1.0, 1.0]];
    let part = bbox.clip_triangle(corners).unwrap();
    for ((vertex, corner), unit) in part.vertices.iter().zip(corners).zip(0..) {
        assert_eq!((*vertex.position).to_vec(), corner);
        assert_eq!(vertex.weights[unit], 1.0);
    }
    let part = bbox.clip_segment([corners[0], corners[1]]).unwrap();
    assert_eq!((part.t0, part.t1), (0.0, 1.0));
    assert_eq!(*part.end, [0.3, 0.1]);
}

#[test]
fn a_touch_in_a_point_leaves_a_point() {
    let bbox = Bbox::parse("0,0,1,1").unwrap();
    let part = bbox.clip_segment([&[0.0, 2.0], &[2.0, 0.0]]).unwrap();
    assert_eq!((part.t0, part.t1), (0.5, 0.5));
    assert_eq!(*part.start, [1.0, 1.0]);
    let part = bbox
        .clip_triangle([&[0.0, 2.0], &[2.0, 0.0], &[2.0, 2.0]])
        .unwrap();
    assert_eq!(part.vertices.len(), 1);
    assert_eq!(*part.vertices[0].position, [1.0, 1.0]);
    assert_eq!(part.vertices[0].weights, [0.5, 0.5, 0.0]);
}

#[test]
fn degenerate_faces_leave_points_and_segments() {
    let bbox = Bbox::parse("0,0,1,1").unwrap();
    let point = bbox.clip_polygon(&[&[1.0, 0.5]]);
    assert_eq!(point.len(), 1);
    assert_eq!(point[0].corners, [0, 0, 0]);
    let segment = bbox.clip_polygon(&[&[0.5, 0.5], &[2.5, 0.5]]);
    assert_eq!(segment[0].corners, [0, 1, 1]);
    let ends = segment[0].vertices.iter().map(|vertex| vertex.position[0]);
    assert_eq!(ends.fold(0.0, f64::max), 1.0);
    assert!(bbox.clip_polygon(&[]).is_empty());
}
