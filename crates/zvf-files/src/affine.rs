//! Affine maps from voxels to the world, in 64-bit floats.

use serde_json::{Value, json};

/// Rows of a 3 × 4 matrix; the fourth row is 0, 0, 0, 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VoxelMap(pub(crate) [[f64; 4]; 3]);

impl VoxelMap {
    pub(crate) const IDENTITY: Self = Self([
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
    ]);

    /// Returns the image of a point. The order of operations is fixed, and no fused operation is
    /// used: a file is restored from the results.
    #[inline]
    pub(crate) fn apply(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        self.0.map(|[a, b, c, t]| a * x + b * y + c * z + t)
    }

    /// Returns the map that applies `first`, then this one.
    pub(crate) fn after(&self, first: &Self) -> Self {
        let [x, y, z] = first.0;
        let column = |row: [f64; 4], at: fn([f64; 4]) -> f64| {
            row[0] * at(x) + row[1] * at(y) + row[2] * at(z)
        };
        Self(self.0.map(|row| {
            [
                column(row, |r| r[0]),
                column(row, |r| r[1]),
                column(row, |r| r[2]),
                column(row, |r| r[3]) + row[3],
            ]
        }))
    }

    /// Returns the inverse; `None` if the map has none.
    pub(crate) fn inverse(&self) -> Option<Self> {
        let [one, two, three] = self.0;
        // Columns of the adjugate are cross products of the rows.
        let columns = [cross(two, three), cross(three, one), cross(one, two)];
        let [first, ..] = columns;
        let determinant = one[0] * first[0] + one[1] * first[1] + one[2] * first[2];
        if !determinant.is_normal() {
            return None;
        }
        let inverse = [0, 1, 2].map(|row: usize| {
            let of = |column: [f64; 3]| column.get(row).copied().unwrap_or(0.0) / determinant;
            let [x, y, z] = columns.map(of);
            [x, y, z, -(x * one[3] + y * two[3] + z * three[3])]
        });
        let is_finite = inverse.iter().flatten().all(|value| value.is_finite());
        is_finite.then_some(Self(inverse))
    }

    /// Returns the matrix with its fourth row, as JSON.
    pub(crate) fn to_json(self) -> Value {
        let [x, y, z] = self.0;
        json!([x, y, z, [0.0, 0.0, 0.0, 1.0]])
    }

    /// Reads a matrix of 4 × 4 numbers.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let rows = value.as_array().filter(|rows| rows.len() == 4)?;
        let mut matrix = [[0.0; 4]; 3];
        for (row, target) in rows.iter().zip(&mut matrix) {
            let row = row.as_array().filter(|row| row.len() == 4)?;
            for (value, target) in row.iter().zip(target) {
                *target = value.as_f64().filter(|value| value.is_finite())?;
            }
        }
        Some(Self(matrix))
    }

    /// Returns the length of a voxel along each axis.
    pub(crate) fn voxel_sizes(&self) -> [f64; 3] {
        let [x, y, z] = self.0;
        let length = |at: fn([f64; 4]) -> f64| at(x).hypot(at(y)).hypot(at(z));
        [length(|r| r[0]), length(|r| r[1]), length(|r| r[2])]
    }

    /// Returns the factor of all lengths; `None` if lengths have different factors along different
    /// directions.
    pub(crate) fn uniform_scale(&self) -> Option<f64> {
        let [x, y, z] = self.0;
        let columns =
            [0, 1, 2].map(|at: usize| [x, y, z].map(|row| row.get(at).copied().unwrap_or(0.0)));
        let [first, second, third] = columns;
        let [scale, ..] = self.voxel_sizes();
        let is_small = |value: f64, whole: f64| value.abs() <= 1e-9 * whole;
        let dot = |[a, b, c]: [f64; 3], [d, e, f]: [f64; 3]| a * d + b * e + c * f;
        let are_equal = self
            .voxel_sizes()
            .iter()
            .all(|size| is_small(size - scale, scale));
        let are_orthogonal = [(first, second), (second, third), (third, first)]
            .into_iter()
            .all(|(one, other)| is_small(dot(one, other), scale * scale));
        (scale > 0.0 && are_equal && are_orthogonal).then_some(scale)
    }

    /// Returns the direction of each voxel axis: the world axis and whether it ascends.
    pub(crate) fn directions(&self) -> [Direction; 3] {
        let [x, y, z] = self.0;
        let of = |at: fn([f64; 4]) -> f64| {
            let column = [at(x), at(y), at(z)];
            let mut largest = Direction {
                axis: 0,
                ascends: true,
            };
            let mut length = -1.0;
            for (axis, value) in column.into_iter().enumerate() {
                if value.abs() > length {
                    length = value.abs();
                    largest = Direction {
                        axis,
                        ascends: value >= 0.0,
                    };
                }
            }
            largest
        };
        [of(|r| r[0]), of(|r| r[1]), of(|r| r[2])]
    }
}

fn cross(one: [f64; 4], two: [f64; 4]) -> [f64; 3] {
    [
        one[1] * two[2] - one[2] * two[1],
        one[2] * two[0] - one[0] * two[2],
        one[0] * two[1] - one[1] * two[0],
    ]
}

/// Direction of a voxel axis: right, anterior and superior ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Direction {
    pub(crate) axis: usize,
    pub(crate) ascends: bool,
}

impl Direction {
    /// Returns the direction of a letter; `None` for other letters.
    pub(crate) fn of_letter(letter: u8) -> Option<Self> {
        let (axis, ascends) = match letter.to_ascii_uppercase() {
            b'R' => (0, true),
            b'L' => (0, false),
            b'A' => (1, true),
            b'P' => (1, false),
            b'S' => (2, true),
            b'I' => (2, false),
            _ => return None,
        };
        Some(Self { axis, ascends })
    }

    pub(crate) fn letter(self) -> char {
        match (self.axis, self.ascends) {
            (0, true) => 'R',
            (0, false) => 'L',
            (1, true) => 'A',
            (1, false) => 'P',
            (_, true) => 'S',
            (_, false) => 'I',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_a_map() {
        let map = VoxelMap([
            [0.0, -2.0, 0.1, 5.0],
            [1.5, 0.0, 0.0, -7.0],
            [0.2, 0.0, 3.0, 1.0],
        ]);
        let back = map.inverse().unwrap().after(&map);
        for (row, expected) in back.0.iter().zip(VoxelMap::IDENTITY.0) {
            for (value, expected) in row.iter().zip(expected) {
                assert!((value - expected).abs() < 1e-12, "{back:?}");
            }
        }
        assert_eq!(VoxelMap::from_json(&map.to_json()), Some(map));
        assert_eq!(map.directions().map(Direction::letter), ['A', 'L', 'S']);
        assert_eq!(VoxelMap([[0.0; 4]; 3]).inverse(), None);
    }

    #[test]
    fn turned_and_mirrored_maps_have_one_scale() {
        let map = |x: [f64; 3], y: [f64; 3], z: [f64; 3]| {
            VoxelMap([x, y, z].map(|[a, b, c]| [a, b, c, 5.0]))
        };
        let scaled = |x: f64, y: f64, z: f64| map([x, 0.0, 0.0], [0.0, y, 0.0], [0.0, 0.0, z]);
        assert_eq!(VoxelMap::IDENTITY.uniform_scale(), Some(1.0));
        assert_eq!(scaled(0.1, -0.1, 0.1).uniform_scale(), Some(0.1));
        let turned = map([0.0, 3.0, -4.0], [0.0, 4.0, 3.0], [5.0, 0.0, 0.0]);
        assert_eq!(turned.uniform_scale(), Some(5.0));
        assert_eq!(scaled(2.0, 2.0, 2.0 + 1e-6).uniform_scale(), None);
        assert_eq!(scaled(0.0, 0.0, 0.0).uniform_scale(), None);
        let sheared = map([1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 1.0]);
        assert_eq!(sheared.uniform_scale(), None);
    }
}
