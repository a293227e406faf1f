//! Touch and within, compared with exact results and dense sampling.

use proptest::prelude::*;
use zvf_query::geometry::{
    Bbox, Mode, Primitive, Sphere, squared_distance_to_segment, squared_distance_to_triangle,
};

use crate::oracle::{Case, case, cut, floats, grazing};

impl Case {
    pub(crate) fn bbox(&self) -> Bbox {
        Bbox::new(&floats(&self.lo), &floats(&self.hi)).unwrap()
    }

    pub(crate) fn positions(&self) -> Vec<Vec<f64>> {
        self.corners.iter().map(|corner| floats(corner)).collect()
    }

    /// Rotates the axes by `by` and mirrors those in the bits of `mirror`.
    fn turned(&self, by: usize, mirror: usize) -> Self {
        let turn = |values: &Vec<i64>| {
            let mut values = values.clone();
            for (at, value) in values.iter_mut().enumerate() {
                if mirror >> at & 1 == 1 {
                    *value = -*value;
                }
            }
            let axes = values.len();
            values.rotate_left(by % axes);
            values
        };
        let (a, b) = (turn(&self.lo), turn(&self.hi));
        let pairs = a.iter().zip(&b);
        Self {
            lo: pairs.clone().map(|(a, b)| *a.min(b)).collect(),
            hi: pairs.map(|(a, b)| *a.max(b)).collect(),
            corners: self.corners.iter().map(turn).collect(),
        }
    }
}

fn selects(bbox: Bbox, mode: Mode, corners: &[Vec<f64>]) -> bool {
    let corners: Vec<&[f64]> = corners.iter().map(Vec::as_slice).collect();
    let as_face = bbox.selects(mode, Primitive::Polygon(&corners));
    let as_itself = match *corners {
        [a] => bbox.selects(mode, Primitive::Point(a)),
        [a, b] => bbox.selects(mode, Primitive::Segment([a, b])),
        [a, b, c] => bbox.selects(mode, Primitive::Triangle([a, b, c])),
        _ => as_face,
    };
    assert_eq!(as_face, as_itself);
    as_itself
}

#[track_caller]
fn check(case: &Case) {
    let (bbox, positions) = (case.bbox(), case.positions());
    let touches = !cut(&case.lo, &case.hi, &case.corners).is_empty();
    assert_eq!(selects(bbox, Mode::Touch, &positions), touches, "{case:?}");
    let within = case.corners.iter().all(|corner| {
        let bounds = case.lo.iter().zip(&case.hi);
        bounds
            .zip(corner)
            .all(|((lo, hi), value)| (lo..=hi).contains(&value))
    });
    assert_eq!(selects(bbox, Mode::Within, &positions), within, "{case:?}");
    assert!(touches || !within);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(2000)))]

    #[test]
    fn points_are_exact(case in case(1)) {
        check(&case);
    }

    #[test]
    fn segments_are_exact(case in case(2)) {
        check(&case);
    }

    #[test]
    fn triangles_are_exact(case in case(3)) {
        check(&case);
    }

    #[test]
    fn triangles_that_graze_are_exact(case in grazing()) {
        check(&case);
    }

    #[test]
    fn order_of_axes_and_corners_does_not_count(
        case in prop_oneof![case(2), case(3), grazing()],
        by in 0..5_usize,
        mirror in 0..32_usize,
        turn in 0..3_usize,
    ) {
        let touches = selects(case.bbox(), Mode::Touch, &case.positions());
        let mut other = case.turned(by, mirror);
        let corners = other.corners.len();
        other.corners.rotate_left(turn % corners);
        prop_assert_eq!(selects(other.bbox(), Mode::Touch, &other.positions()), touches);
        other.corners.reverse();
        prop_assert_eq!(selects(other.bbox(), Mode::Touch, &other.positions()), touches);
    }

    /// With arbitrary `f64`, the result must not depend on the order, and a sample well inside
    /// implies a touch.
    #[test]
    fn samples_inside_are_touches(
        lo in prop::array::uniform3(-1.0..0.5_f64),
        size in prop::array::uniform3(0.0..1.0_f64),
        corners in prop::array::uniform3(prop::array::uniform3(-2.0..2.0_f64)),
    ) {
        let hi = [0, 1, 2].map(|k: usize| lo[k] + size[k]);
        let bbox = Bbox::new(&lo, &hi).unwrap();
        let [a, b, c] = corners.each_ref().map(<[f64; 3]>::as_slice);
        let touches = bbox.touches(Primitive::Triangle([a, b, c]));
        let turned = bbox.touches(Primitive::Triangle([c, b, a]));
        prop_assert_eq!(touches, turned);
        let inner = Bbox::new(&lo.map(|v| v + 1e-9), &hi.map(|v| v - 1e-9)).unwrap();
        let mut sampled = false;
        for i in 0..=30_i32 {
            for j in 0..=30 - i {
                let (u, v) = (f64::from(i) / 30.0, f64::from(j) / 30.0);
                let p = [0, 1, 2].map(|k: usize| a[k] + u * (b[k] - a[k]) + v * (c[k] - a[k]));
                sampled |= inner.contains(Primitive::Point(&p));
            }
        }
        prop_assert!(touches || !sampled);
        let segment = Primitive::Segment([a, b]);
        prop_assert_eq!(bbox.touches(segment), bbox.touches(Primitive::Segment([b, a])));
        prop_assert!(touches || !bbox.touches(segment));
    }

    /// Sphere tests and distances agree.
    #[test]
    fn spheres_agree_with_distances(
        centre in prop::array::uniform3(-4..=4_i32),
        corners in prop::array::uniform3(prop::array::uniform3(-6..=6_i32)),
        radius in 0..=6_i32,
        turn in 0..3_usize,
    ) {
        let radius = f64::from(radius);
        let centre = centre.map(f64::from);
        let mut corners = corners.map(|corner| corner.map(f64::from));
        let sphere = Sphere::new(&centre, radius).unwrap();
        let [a, b, c] = corners.each_ref().map(<[f64; 3]>::as_slice);
        let limit = radius * radius;
        for (squared, primitive) in [
            (squared_distance_to_segment(&centre, [a, b]), Primitive::Segment([a, b])),
            (squared_distance_to_triangle(&centre, [a, b, c]), Primitive::Triangle([a, b, c])),
        ] {
            // Division rounds a rational distance exactly at the surface.
            if (squared - limit).abs() > 1e-9 {
                prop_assert_eq!(sphere.touches(primitive), squared < limit);
            }
            prop_assert!(sphere.touches(primitive) || !sphere.contains(primitive));
        }
        let touches = sphere.touches(Primitive::Triangle([a, b, c]));
        corners.rotate_left(turn);
        let [a, b, c] = corners.each_ref().map(<[f64; 3]>::as_slice);
        prop_assert_eq!(sphere.touches(Primitive::Triangle([c, b, a])), touches);
    }
}

#[test]
fn a_face_around_a_box_touches_without_a_corner_or_side_in_it() {
    let face = Case {
        lo: vec![0, 0, 0],
        hi: vec![1, 1, 1],
        corners: vec![vec![-90, 1, -90], vec![90, 1, -90], vec![0, 1, 90]],
    };
    check(&face);
    assert!(selects(face.bbox(), Mode::Touch, &face.positions()));
    let above = Case {
        corners: vec![vec![-90, 2, -90], vec![90, 2, -90], vec![0, 2, 90]],
        ..face
    };
    check(&above);
    assert!(!selects(above.bbox(), Mode::Touch, &above.positions()));
}

#[test]
fn degenerate_triangles_are_the_segments_they_look_like() {
    let bbox = Bbox::parse("0,0,1,1").unwrap();
    let touches = |corners| bbox.touches(Primitive::Triangle(corners));
    assert!(touches([&[-1.0, 2.0], &[2.0, -1.0], &[5.0, -4.0]]));
    assert!(touches([&[-1.0, 3.0], &[3.0, -1.0], &[-1.0, 3.0]]));
    assert!(!touches([&[-1.0, 3.5], &[3.0, -0.5], &[-1.0, 3.5]]));
    assert!(touches([&[1.0, 1.0]; 3]));
    assert!(!touches([&[1.0, 1.1]; 3]));
}

/// The line passes the corner at a distance far below the last bit of its coordinates; slab tests
/// with a division are wrong on one side.
#[test]
fn a_distance_below_rounding_is_detected() {
    let corner = 1.0 + f64::EPSILON;
    let bbox = Bbox::new(&[corner, 0.0], &[2.0, 1.0]).unwrap();
    let ulp = f64::EPSILON;
    // Through (1, 1) with the slope of (3, 1): above the corner (1 + ulp, 1) for x > 1.
    let ends: [&[f64]; 2] = [&[-2.0, 0.0], &[4.0, 2.0]];
    assert!(!bbox.touches(Primitive::Segment(ends)));
    // Lowered so that it touches the corner in a point.
    let ends: [&[f64]; 2] = [&[-2.0 + ulp * 2.0, 0.0], &[4.0, 2.0 - ulp]];
    let [ax, ay, bx, by] = [ends[0][0], ends[0][1], ends[1][0], ends[1][1]];
    // In units of ulp / 2 all numbers are integers.
    let int = |value: f64| (value / (ulp / 2.0)) as i128;
    let side =
        (int(bx) - int(ax)) * (int(1.0) - int(ay)) - (int(by) - int(ay)) * (int(corner) - int(ax));
    assert_eq!(bbox.touches(Primitive::Segment(ends)), side >= 0);
}

#[test]
fn faces_are_fans() {
    let bbox = Bbox::parse("0,0,0,1,1,1").unwrap();
    let square: [&[f64]; 4] = [
        &[-9.0, -9.0, 0.5],
        &[9.0, -9.0, 0.5],
        &[9.0, 9.0, 0.5],
        &[-9.0, 9.0, 0.5],
    ];
    assert!(bbox.touches(Primitive::Polygon(&square)));
    assert!(!bbox.contains(Primitive::Polygon(&square)));
    assert_eq!(bbox.clip_polygon(&square).len(), 2);
    // Beyond the last triangle of the fan.
    let corner = Bbox::parse("8,8,0,9,9,1").unwrap();
    assert!(!corner.touches(Primitive::Polygon(&square[..2])));
    assert!(corner.touches(Primitive::Polygon(&square)));
}

#[test]
fn eight_axes_are_no_different() {
    let (mut lo, mut hi) = ([0.0; 8], [1.0; 8]);
    let corners = |z: f64| {
        let mut corners = [[0.5; 8]; 3];
        corners[0][0] = -9.0;
        corners[1][0] = 9.0;
        corners[2][7] = 9.0;
        for corner in &mut corners {
            corner[3] = z;
        }
        corners
    };
    let touches = |bbox: Bbox, z| {
        let corners = corners(z);
        let [a, b, c] = corners.each_ref().map(<[f64; 8]>::as_slice);
        bbox.touches(Primitive::Triangle([a, b, c]))
    };
    let bbox = Bbox::new(&lo, &hi).unwrap();
    assert!(touches(bbox, 1.0));
    assert!(!touches(bbox, 1.5));
    // Off the plane in an axis that all corners share.
    (lo[5], hi[5]) = (2.0, 3.0);
    assert!(!touches(Bbox::new(&lo, &hi).unwrap(), 1.0));
}
