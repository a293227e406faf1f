//! Exact results for integer coordinates by another method: rational numbers of `i128`, and
//! polygons clipped exactly.

use std::ops::{Add, Mul, Sub};

use proptest::prelude::*;

/// A rational number in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rational {
    num: i128,
    den: i128,
}

impl Rational {
    pub(crate) fn new(num: i128, den: i128) -> Self {
        let (mut a, mut b) = (num.abs(), den.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = a.max(1) * den.signum();
        Self {
            num: num / divisor,
            den: den / divisor,
        }
    }

    pub(crate) fn int(value: i64) -> Self {
        Self::new(value.into(), 1)
    }

    pub(crate) fn to_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    fn over(self, other: Self) -> Self {
        Self::new(self.num * other.den, self.den * other.num)
    }
}

impl Add for Rational {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let num = self.num * other.den + other.num * self.den;
        Self::new(num, self.den * other.den)
    }
}

impl Sub for Rational {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + Self::new(-other.num, other.den)
    }
}

impl Mul for Rational {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(self.num * other.num, self.den * other.den)
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self.num * other.den).partial_cmp(&(other.num * self.den))
    }
}

type Point = Vec<Rational>;

/// Clips a convex polygon to a box; empty if they do not touch.
pub(crate) fn cut(lo: &[i64], hi: &[i64], corners: &[Vec<i64>]) -> Vec<Point> {
    let corner = |corner: &Vec<i64>| corner.iter().copied().map(Rational::int).collect();
    let mut polygon: Vec<Point> = corners.iter().map(corner).collect();
    for axis in 0..lo.len() {
        polygon = half(&polygon, axis, Rational::int(lo[axis]), |a, b| a >= b);
        polygon = half(&polygon, axis, Rational::int(hi[axis]), |a, b| a <= b);
    }
    polygon
}

fn half(
    polygon: &[Point],
    axis: usize,
    bound: Rational,
    inside: impl Fn(Rational, Rational) -> bool,
) -> Vec<Point> {
    let mut left = Vec::new();
    for (at, p) in polygon.iter().enumerate() {
        let q = &polygon[(at + 1) % polygon.len()];
        let (in_p, in_q) = (inside(p[axis], bound), inside(q[axis], bound));
        if in_p {
            left.push(p.clone());
        }
        if in_p != in_q {
            let t = (bound - p[axis]).over(q[axis] - p[axis]);
            left.push((0..p.len()).map(|k| p[k] + t * (q[k] - p[k])).collect());
        }
    }
    left
}

/// A box and corners with small integer coordinates, which often touch.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) lo: Vec<i64>,
    pub(crate) hi: Vec<i64>,
    pub(crate) corners: Vec<Vec<i64>>,
}

pub(crate) fn case(corners: usize) -> impl Strategy<Value = Case> {
    (1..=5_usize, 1..=3_i64).prop_flat_map(move |(axes, size)| {
        let lo = prop::collection::vec(-3..=3_i64, axes);
        let sizes = prop::collection::vec(0..=size, axes);
        let corner = prop::collection::vec(-7..=7_i64, axes);
        (lo, sizes, prop::collection::vec(corner, corners)).prop_map(|(lo, sizes, corners)| {
            let hi = lo.iter().zip(sizes).map(|(lo, size)| lo + size).collect();
            Case { lo, hi, corners }
        })
    })
}

/// Returns a case whose triangle is moved so that its plane passes a corner of the box at zero or
/// nearly zero distance, the most difficult cases.
pub(crate) fn grazing() -> impl Strategy<Value = Case> {
    (case(3), 1..=6_i64, 1..=6_i64, 0..=2_i64).prop_map(|(mut case, u, v, off)| {
        // The corners are scaled so that a weighted mean of them is an integer point.
        let scale = u + v + 1;
        for k in 0..case.lo.len() {
            let [a, b, c] = [0, 1, 2].map(|at: usize| case.corners[at][k]);
            let target = if (u + v) % 2 == 0 {
                case.lo[k]
            } else {
                case.hi[k]
            };
            let shift = target - (a + u * b + v * c) + if k == 0 { off - 1 } else { 0 };
            for corner in &mut case.corners {
                corner[k] = corner[k] * scale + shift;
            }
        }
        case
    })
}

pub(crate) fn floats(values: &[i64]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}
