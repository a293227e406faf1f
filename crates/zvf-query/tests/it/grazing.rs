//! Touches that rounded arithmetic cannot decide, with coordinates so large that products of their
//! differences exceed the precision of `f64`.

use std::cmp::{max, min};

use proptest::prelude::*;
use zvf_query::geometry::{Bbox, Primitive};

const LARGE: i64 = 1 << 44;

/// Scales integers by a power of two: exactly, and usually not to integers.
fn scaled(values: [i64; 3], power: i32) -> [f64; 3] {
    values.map(|value| value as f64 * 2_f64.powi(power))
}

fn large() -> impl Strategy<Value = [i64; 3]> {
    let axis = prop_oneof![3 => -LARGE..LARGE, 1 => -3..4_i64];
    prop::array::uniform3(axis)
}

fn touches(lo: [i64; 3], hi: [i64; 3], corners: &[[i64; 3]], power: i32) -> bool {
    let bbox = Bbox::new(&scaled(lo, power), &scaled(hi, power)).unwrap();
    let corners: Vec<_> = corners
        .iter()
        .map(|corner| scaled(*corner, power))
        .collect();
    match corners.iter().map(<[f64; 3]>::as_slice).collect::<Vec<_>>()[..] {
        [a, b] => {
            let touches = bbox.touches(Primitive::Segment([a, b]));
            assert_eq!(bbox.touches(Primitive::Segment([b, a])), touches);
            assert_eq!(bbox.clip_segment([a, b]).is_some(), touches);
            touches
        }
        [a, b, c] => {
            let touches = bbox.touches(Primitive::Triangle([a, b, c]));
            assert_eq!(bbox.touches(Primitive::Triangle([c, b, a])), touches);
            let part = bbox.clip_triangle([b, c, a]);
            assert_eq!(part.is_some(), touches);
            for vertex in part.iter().flat_map(|part| &part.vertices) {
                assert!(bbox.contains(Primitive::Point(&vertex.position)));
            }
            touches
        }
        _ => unreachable!("neither segment nor triangle"),
    }
}

/// Compares parameters as fractions of `i128`: the greatest start with the least end.
fn segment_touches(lo: [i64; 3], hi: [i64; 3], [a, b]: [[i64; 3]; 2]) -> bool {
    let (mut start, mut end) = ((0_i128, 1_i128), (1_i128, 1_i128));
    for k in 0..3 {
        let [a, b, lo, hi] = [a[k], b[k], lo[k], hi[k]].map(i128::from);
        if a == b {
            if a < lo || a > hi {
                return false;
            }
            continue;
        }
        let length = (b - a).abs();
        let (enter, leave) = if a < b {
            (lo - a, hi - a)
        } else {
            (a - hi, a - lo)
        };
        if enter * start.1 > start.0 * length {
            start = (enter, length);
        }
        if leave * end.1 < end.0 * length {
            end = (leave, length);
        }
    }
    start.0 * end.1 <= end.0 * start.1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(3000)))]

    /// Segments through a point at most a few units from an edge of the box.
    #[test]
    fn segments_past_an_edge(
        place in large(),
        way in large(),
        before in 1..64_i64,
        after in 1..64_i64,
        off in prop::array::uniform3(-2..3_i64),
        size in prop::array::uniform3(0..9_i64),
        side in prop::array::uniform3(any::<bool>()),
        power in -60..60_i32,
    ) {
        let lo = [0, 1, 2].map(|k: usize| place[k] - if side[k] { size[k] } else { 0 });
        let hi = [0, 1, 2].map(|k: usize| lo[k] + size[k]);
        let a = [0, 1, 2].map(|k: usize| place[k] + off[k] - way[k] * before);
        let b = [0, 1, 2].map(|k: usize| place[k] + way[k] * after);
        let wanted = segment_touches(lo, hi, [a, b]);
        prop_assert_eq!(touches(lo, hi, &[a, b], power), wanted);
    }

    /// A plane through one corner of a box, with the box on one side: a touch, but not if the box
    /// moves one unit away.
    #[test]
    fn planes_past_a_corner(
        corner in large(),
        first in large(),
        second in large(),
        ahead in prop::array::uniform2(1..16_i64),
        behind in prop::array::uniform2(1..16_i64),
        size in prop::array::uniform3(1..LARGE),
        axis in 0..3_usize,
        power in -60..60_i32,
    ) {
        let wide = |values: [i64; 3]| values.map(i128::from);
        let ([ax, ay, az], [bx, by, bz]) = (wide(first), wide(second));
        let normal = [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx];
        let at = |u: i64, v: i64| [0, 1, 2].map(|k: usize| corner[k] + u * first[k] + v * second[k]);
        let corners = [at(ahead[0], 0), at(0, ahead[1]), at(-behind[0], -behind[1])];
        let shifted = |by: i64| {
            let mut corner = corner;
            corner[axis] += by * if normal[axis] < 0 { -1 } else { 1 };
            let far = |k: usize| corner[k] + if normal[k] < 0 { -size[k] } else { size[k] };
            let far = [far(0), far(1), far(2)];
            let lo = [0, 1, 2].map(|k: usize| min(corner[k], far[k]));
            let hi = [0, 1, 2].map(|k: usize| max(corner[k], far[k]));
            touches(lo, hi, &corners, power)
        };
        prop_assert!(shifted(0));
        prop_assert!(shifted(-1));
        if normal[axis] != 0 {
            prop_assert!(!shifted(1));
        }
    }
}
