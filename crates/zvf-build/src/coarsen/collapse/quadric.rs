//! Quadric error of a vertex: sum of squared distances from planes.

use super::vector::{Vector, add, dot, scale};

/// Weight that holds a vertex near its position. On a flat surface every position costs the same;
/// this weight makes the centre of the merged vertices the best and collapses short edges first. It
/// moves no vertex off a plane by more than one part in a million.
const POSITION_WEIGHT: f64 = 1e-6;

/// Weighted squared distances from planes, as a function of the offset from a position.
///
/// The origin is the vertex, which preserves precision far from the origin of space.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quadric {
    /// xx, xy, xz, yy, yz, zz.
    square: [f64; 6],
    linear: Vector,
    constant: f64,
}

impl Quadric {
    /// Adds the plane through the position with this unit normal.
    pub(super) fn add_plane(&mut self, normal: Vector, weight: f64) {
        let [x, y, z] = normal;
        let squares = [x * x, x * y, x * z, y * y, y * z, z * z];
        for (sum, square) in self.square.iter_mut().zip(squares) {
            *sum += weight * square;
        }
    }

    /// Adds the weight that holds a vertex near its position.
    pub(super) fn add_position_weight(&mut self, weight: f64) {
        for at in [0, 3, 5] {
            self.square[at] += weight * POSITION_WEIGHT;
        }
    }

    fn times(&self, way: Vector) -> Vector {
        let [xx, xy, xz, yy, yz, zz] = self.square;
        [
            dot([xx, xy, xz], way),
            dot([xy, yy, yz], way),
            dot([xz, yz, zz], way),
        ]
    }

    /// Returns the cost of an offset.
    pub(super) fn cost(&self, way: Vector) -> f64 {
        let linear = add(self.times(way), scale(self.linear, 2.0));
        (dot(linear, way) + self.constant).max(0.0)
    }

    /// Returns the quadric relative to a shifted position.
    pub(super) fn translated(&self, way: Vector) -> Self {
        Self {
            square: self.square,
            linear: add(self.linear, self.times(way)),
            constant: self.cost(way),
        }
    }

    /// Adds two quadrics with the same origin.
    pub(super) fn sum(&self, other: &Self) -> Self {
        let mut square = self.square;
        for (sum, more) in square.iter_mut().zip(other.square) {
            *sum += more;
        }
        Self {
            square,
            linear: add(self.linear, other.linear),
            constant: self.constant + other.constant,
        }
    }

    /// Returns the offset of least cost by Cholesky decomposition; `None` if the matrix is
    /// numerically singular.
    pub(super) fn least(&self) -> Option<Vector> {
        let [xx, xy, xz, yy, yz, zz] = self.square;
        let min = (xx + yy + zz) * 1e-13;
        let pivot = |square: f64| (square > min).then_some(square);
        let d0 = pivot(xx)?;
        let (l1, l2) = (xy / d0, xz / d0);
        let d1 = pivot(yy - l1 * xy)?;
        let l3 = (yz - l2 * xy) / d1;
        let d2 = pivot(zz - l2 * xz - l3 * l3 * d1)?;
        let [b0, b1, b2] = scale(self.linear, -1.0);
        let (y1, y2) = (b1 - l1 * b0, b2 - l2 * b0);
        let y2 = y2 - l3 * y1;
        let z = y2 / d2;
        let y = y1 / d1 - l3 * z;
        let x = b0 / d0 - l1 * y - l2 * z;
        Some([x, y, z]).filter(|way| way.iter().all(|step| step.is_finite()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_planes_meet_in_a_point() {
        // Planes through the corner (1, 2, 3) of a cube, from vertices on its edges.
        let mut sum = Quadric::default();
        for (at, normal) in [
            ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
            ([0.0, 2.0, 0.0], [0.0, 1.0, 0.0]),
            ([0.0, 0.0, 3.0], [0.0, 0.0, 1.0]),
        ] {
            let mut one = Quadric::default();
            one.add_plane(normal, 1.0);
            sum = sum.sum(&one.translated(scale(at, -1.0)));
        }
        let corner = sum.least().unwrap();
        for (is, should) in corner.iter().zip([1.0, 2.0, 3.0]) {
            assert!((is - should).abs() < 1e-12, "{corner:?}");
        }
        assert!(sum.cost(corner) < 1e-12);
        assert!((sum.cost([1.0, 2.0, 5.0]) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_single_plane_is_minimal_at_the_nearest_point() {
        let mut plane = Quadric::default();
        plane.add_plane([0.0, 0.0, 1.0], 1.0);
        assert_eq!(plane.translated([0.0, 0.0, 5.0]).least(), None);
        plane.add_position_weight(1.0);
        let way = plane.translated([1.0, 0.0, 5.0]).least().unwrap();
        assert!((way[2] + 5.0).abs() < 1e-9 && (way[0] + 1.0).abs() < 1e-9);
    }
}
