//! Boxes and spheres as values, and the documented rules.

use zvf_query::geometry::{
    AxesError, Bbox, BboxError, MAX_AXES, Mode, Position, Primitive, Sphere,
};

fn bbox(text: &str) -> Bbox {
    Bbox::parse(text).unwrap()
}

#[test]
fn text_is_bounds_or_an_error() {
    assert_eq!(
        bbox("0,1,2,3"),
        Bbox::new(&[0.0, 1.0], &[2.0, 3.0]).unwrap()
    );
    assert_eq!(bbox(" -1e3 , inf ").hi(), [f64::INFINITY]);
    let nan = f64::NAN;
    assert_eq!(Bbox::new(&[nan], &[1.0]), Err(BboxError::NotANumber(0)));
    assert_eq!(
        Bbox::new(&[0.0, 0.0], &[1.0, nan]),
        Err(BboxError::NotANumber(3))
    );
    assert_eq!(Bbox::parse("nan,1"), Err(BboxError::NotANumber(0)));
    assert_eq!(Bbox::parse("0,0,1,NaN"), Err(BboxError::NotANumber(3)));
    assert!(bbox("2,1").is_empty());
    assert!(!bbox("1,1").is_empty());
    assert_eq!(Bbox::parse(""), Err(BboxError::NotANumber(0)));
    assert_eq!(Bbox::parse("1,,2,3"), Err(BboxError::NotANumber(1)));
    assert_eq!(Bbox::parse("1"), Err(BboxError::OddCount(1)));
    let long = vec!["0"; 18].join(",");
    assert_eq!(Bbox::parse(&long), Err(BboxError::Axes(AxesError(9))));
    let corners = Bbox::new(&[0.0], &[0.0, 1.0]);
    assert_eq!(corners, Err(BboxError::AxesDiffer { lo: 1, hi: 2 }));
    assert_eq!(Bbox::new(&[], &[]), Err(BboxError::Axes(AxesError(0))));
}

#[test]
fn positions_have_one_to_eight_axes() {
    for axes in 1..=MAX_AXES {
        let values = vec![1.5; axes];
        assert_eq!(*Position::new(&values).unwrap(), *values);
    }
    assert_eq!(Position::new(&[0.0; 9]), Err(AxesError(9)));
}

#[test]
fn modes_have_names() {
    for mode in Mode::ALL {
        assert_eq!(Mode::parse(&mode.to_string()), Some(mode));
    }
    assert_eq!(Mode::parse("Touch"), None);
}

#[test]
fn empty_boxes_select_nothing() {
    let far: [&[f64]; 2] = [&[-9.0, -9.0], &[9.0, 9.0]];
    for (lo, hi) in [([1.0, 0.0], [0.0, 1.0]), ([0.0, 0.0], [1.0, -1e-300])] {
        let empty = Bbox::new(&lo, &hi).unwrap();
        assert!(!empty.touches(Primitive::Point(&[0.5, 0.5])));
        assert!(!empty.touches(Primitive::Segment(far)));
        assert!(!empty.contains(Primitive::Segment([&[0.5, 0.5]; 2])));
        assert_eq!(empty.clip_segment(far), None);
        assert!(!empty.overlaps(&bbox("-9,-9,9,9")));
        let mut selected = Vec::new();
        empty.select_values(&[0.5_f32, 0.5], &mut selected).unwrap();
        assert!(selected.is_empty());
    }
}

#[test]
fn infinite_boxes_contain_all_points_but_no_unbounded_segments() {
    let all = bbox("-inf,-inf,inf,inf");
    let inf = f64::INFINITY;
    assert!(all.contains(Primitive::Point(&[inf, -inf])));
    assert!(!all.contains(Primitive::Point(&[f64::NAN, 0.0])));
    let ends: [&[f64]; 2] = [&[-1e300, 4.0], &[1e300, 5.0]];
    assert!(all.contains(Primitive::Segment(ends)));
    let part = all.clip_segment(ends).unwrap();
    assert_eq!((*part.start).to_vec(), ends[0]);
    assert_eq!((*part.end).to_vec(), ends[1]);
    for mode in Mode::ALL {
        assert!(!all.selects(mode, Primitive::Segment([&[0.0, 0.0], &[inf, 0.0]])));
    }
    // A half-plane: only the finite bound clips.
    let half = bbox("-inf,0,inf,inf");
    let part = half.clip_segment([&[0.0, -1.0], &[2.0, 1.0]]).unwrap();
    assert_eq!((part.t0, part.t1), (0.5, 1.0));
    assert_eq!(*part.start, [1.0, 0.0]);
}

#[test]
fn other_numbers_of_axes_never_match() {
    let plane = bbox("0,0,1,1");
    assert!(!plane.touches(Primitive::Point(&[0.5])));
    assert!(!plane.touches(Primitive::Segment([&[0.5, 0.5], &[0.5, 0.5, 0.5]])));
    assert!(!plane.overlaps(&bbox("0,1")));
    assert!(!plane.contains(Primitive::Polygon(&[])));
    assert!(!plane.touches(Primitive::Polygon(&[])));
    let sphere = Sphere::new(&[0.0, 0.0], 9.0).unwrap();
    assert!(!sphere.touches(Primitive::Point(&[0.0])));
}

#[test]
fn boxes_that_share_a_corner_meet() {
    assert!(bbox("0,0,1,1").overlaps(&bbox("1,1,2,2")));
    assert!(!bbox("0,0,1,1").overlaps(&bbox("1,1.5,2,2")));
}

#[test]
fn spheres_without_a_radius_select_nothing() {
    for radius in [-1.0, f64::NAN] {
        let sphere = Sphere::new(&[0.0], radius).unwrap();
        assert!(!sphere.contains(Primitive::Point(&[0.0])));
        assert!(!sphere.touches(Primitive::Segment([&[-1.0], &[1.0]])));
    }
    let point = Sphere::new(&[1.0, 1.0], 0.0).unwrap();
    assert!(point.touches(Primitive::Segment([&[0.0, 0.0], &[3.0, 3.0]])));
    assert!(point.contains(Primitive::Point(&[1.0, 1.0])));
    let all = Sphere::new(&[0.0], f64::INFINITY).unwrap();
    assert!(all.contains(Primitive::Segment([&[-1e9], &[1.0]])));
}
