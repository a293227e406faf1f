//! Whether segments and triangles come into a box; exact in any dimension.
//!
//! Callers have checked that the box holds something, that all positions have
//! its axes, and that they are finite.

use std::cmp::Ordering;

use super::{
    Bbox,
    exact::{Diff, sign_of_2, sign_of_3},
};

/// Each axis keeps the segment's parameter t in an interval. Intervals have a
/// point in common when every two of them have; two are compared by cross
/// multiplication, so nothing is divided.
pub(super) fn segment(bbox: &Bbox, [a, b]: [&[f64]; 2]) -> bool {
    if !bounds_meet(bbox, [a, b, b]) {
        return false;
    }
    if bbox.has(a) || bbox.has(b) {
        return true;
    }
    let starts = moving(bbox, a, b).filter(|axis| axis.enter.rounded() > 0.0);
    let no_conflict = |start: Moving| {
        moving(bbox, a, b).all(|end| {
            let unlimited = end.leave.rounded() == f64::INFINITY;
            unlimited || sign_of_2(start.enter, end.length, end.leave, start.length).is_le()
        })
    };
    starts.into_iter().all(no_conflict)
}

/// A triangle comes into a box when one of its sides does or, with no side in
/// it, when the box cuts its plane inside the triangle. That cut is a convex
/// polygon; each of its corners has two coordinates on bounds of the box.
pub(super) fn triangle(bbox: &Bbox, corners: [&[f64]; 3]) -> bool {
    if !bounds_meet(bbox, corners) {
        return false;
    }
    if corners.into_iter().any(|corner| bbox.has(corner)) {
        return true;
    }
    let [a, b, c] = corners;
    let sides = [[a, b], [b, c], [c, a]];
    sides.into_iter().any(|side| segment(bbox, side)) || face(bbox, corners)
}

/// Whether the bounds of the corners meet the box: a test on each axis alone.
fn bounds_meet(bbox: &Bbox, corners: [&[f64]; 3]) -> bool {
    columns(bbox, corners).all(|axis| axis.low() <= axis.hi && axis.lo <= axis.high())
}

/// An axis along which a segment moves, turned so that it moves up.
#[derive(Clone, Copy)]
struct Moving {
    /// How far from the start to the box.
    enter: Diff,
    /// How far from the start to the end of the box.
    leave: Diff,
    /// How far from the start to the end of the segment.
    length: Diff,
}

fn moving<'a>(bbox: &'a Bbox, a: &'a [f64], b: &'a [f64]) -> impl Iterator<Item = Moving> {
    columns(bbox, [a, b, b]).filter_map(|axis| {
        let [a, b, _] = axis.corners;
        let up = |lo, hi, a, b| Moving {
            enter: Diff::new(lo, a),
            leave: Diff::new(hi, a),
            length: Diff::new(b, a),
        };
        match a.partial_cmp(&b)? {
            Ordering::Less => Some(up(axis.lo, axis.hi, a, b)),
            Ordering::Greater => Some(up(-axis.hi, -axis.lo, -a, -b)),
            Ordering::Equal => None,
        }
    })
}

/// One axis of a box and of three corners.
#[derive(Clone, Copy)]
struct Column {
    lo: f64,
    hi: f64,
    corners: [f64; 3],
}

impl Column {
    fn low(&self) -> f64 {
        let [a, b, c] = self.corners;
        a.min(b).min(c)
    }

    fn high(&self) -> f64 {
        let [a, b, c] = self.corners;
        a.max(b).max(c)
    }

    /// The bounds of the box that the triangle reaches.
    fn reached(&self) -> impl Iterator<Item = f64> {
        let reach = self.low()..=self.high();
        [self.lo, self.hi]
            .into_iter()
            .filter(move |bound| reach.contains(bound))
    }

    /// The corners seen from `origin`.
    fn from(&self, origin: f64) -> [Diff; 3] {
        self.corners.map(|corner| Diff::new(corner, origin))
    }
}

fn columns<'a>(
    bbox: &'a Bbox,
    [a, b, c]: [&'a [f64]; 3],
) -> impl Iterator<Item = Column> + use<'a> {
    let corners = a.iter().zip(b).zip(c);
    let bounds = bbox.lo().iter().zip(bbox.hi());
    corners.zip(bounds).map(|(((a, b), c), (lo, hi))| Column {
        lo: *lo,
        hi: *hi,
        corners: [*a, *b, *c],
    })
}

fn face(bbox: &Bbox, corners: [&[f64]; 3]) -> bool {
    let axes = || columns(bbox, corners).enumerate();
    axes().any(|(i, x)| {
        axes().skip(i + 1).any(|(j, y)| {
            let turn = turn(x, y);
            let others = || axes().filter(move |(k, _)| ![i, j].contains(k));
            turn.is_ne()
                && x.reached().any(|on_x| {
                    y.reached().any(|on_y| {
                        let (from_x, from_y) = (x.from(on_x), y.from(on_y));
                        around(turn, from_x, from_y)
                            && others().all(|(_, z)| between(turn, from_x, from_y, z))
                    })
                })
        })
    })
}

/// Which way round the corners go, seen along all axes but two.
fn turn(x: Column, y: Column) -> Ordering {
    let [[origin_x, ..], [origin_y, ..]] = [x.corners, y.corners];
    let [[_, bx, cx], [_, by, cy]] = [x.from(origin_x), y.from(origin_y)];
    sign_of_2(bx, cy, by, cx)
}

/// Whether the triangle, seen along all axes but two, has the origin in it.
fn around(turn: Ordering, [ax, bx, cx]: [Diff; 3], [ay, by, cy]: [Diff; 3]) -> bool {
    let sides = [(ax, ay, bx, by), (bx, by, cx, cy), (cx, cy, ax, ay)];
    sides
        .into_iter()
        .all(|(px, py, qx, qy)| sign_of_2(px, qy, py, qx) != turn.reverse())
}

/// Whether the triangle's plane, where it crosses the origin of two axes, is
/// within the bounds of a third.
fn between(turn: Ordering, x: [Diff; 3], y: [Diff; 3], z: Column) -> bool {
    let side = |bound: f64| {
        let [[ax, bx, cx], [ay, by, cy], [az, bz, cz]] = [x, y, z.from(bound)];
        sign_of_3([[ax, ay, az], [bx, by, bz], [cx, cy, cz]])
    };
    let above = !z.lo.is_finite() || side(z.lo) != turn.reverse();
    above && (!z.hi.is_finite() || side(z.hi) != turn)
}
