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

    /// Returns the map of cubes that ascend along the axes, whose first one has its centre at `origin`.
    pub(crate) fn scaled(size: f64, origin: [f64; 3]) -> Self {
        let [x, y, z] = origin;
        Self([
            [size, 0.0, 0.0, x],
            [0.0, size, 0.0, y],
            [0.0, 0.0, size, z],
        ])
    }

    /// Returns the image of a point. The order of operations is fixed, and no fused operation is
    /// used: a file is restored from the results.
    #[inline]
    pub(crate) fn apply(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        self.0.map(|[a, b, c, t]| a * x + b * y + c * z + t)
    }

    /// Returns the sums of the absolute terms of [`apply`](Self::apply), to which its errors are
    /// proportional.
    pub(crate) fn magnitudes(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        let sum = |[a, b, c, t]: [f64; 4]| (a * x).abs() + (b * y).abs() + (c * z).abs() + t.abs();
        self.0.map(sum)
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

    /// Returns the direction of each voxel axis: the world axis, which no other voxel axis has, and
    /// whether it ascends.
    ///
    /// Files name these axes by letters, so they are chosen as nibabel does: in the nearest rotation,
    /// the voxel axes, beginning with the one that is closest to a world axis, each take the closest
    /// world axis that is left.
    pub(crate) fn directions(&self) -> [Direction; 3] {
        let mut axes: Vec<(usize, [f64; 3])> =
            self.nearest_rotation().into_iter().enumerate().collect();
        let strength = |axis: &[f64; 3]| axis.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
        axes.sort_by(|(_, one), (_, other)| strength(other).total_cmp(&strength(one)));
        let mut directions = [Direction {
            axis: 0,
            ascends: true,
        }; 3];
        let mut left = [true; 3];
        for (voxel, axis) in axes {
            let mut length = -1.0;
            let mut found = directions[0];
            for ((axis, value), is_left) in axis.into_iter().enumerate().zip(left) {
                if is_left && value.abs() > length {
                    length = value.abs();
                    found = Direction {
                        axis,
                        ascends: value >= 0.0,
                    };
                }
            }
            if let Some(is_left) = left.get_mut(found.axis) {
                *is_left = false;
            }
            if let Some(direction) = directions.get_mut(voxel) {
                *direction = found;
            }
        }
        directions
    }

    /// Returns the columns of the nearest rotation or reflection, apart from the voxel sizes: the
    /// orthogonal factor of the polar decomposition. If the map has no inverse, the columns stay as
    /// they are.
    fn nearest_rotation(&self) -> [[f64; 3]; 3] {
        let [x, y, z] = self.0;
        let unit = |size: f64| if size > 0.0 { size } else { 1.0 };
        let [one, two, three] = self.voxel_sizes().map(unit);
        let mut map = Self([x, y, z].map(|row| [row[0] / one, row[1] / two, row[2] / three, 0.0]));
        // Newton's iteration takes the mean of a map and of its transposed inverse. It halves large
        // deviations and then doubles the number of correct digits.
        for _ in 0..100 {
            let Some(Self([x, y, z])) = map.inverse() else {
                break;
            };
            let columns =
                [0, 1, 2].map(|at: usize| [x, y, z].map(|row| row.get(at).copied().unwrap_or(0.0)));
            let mut change = 0.0_f64;
            for (row, other) in map.0.iter_mut().zip(columns) {
                for (value, other) in row.iter_mut().zip(other) {
                    let mean = f64::midpoint(*value, other);
                    change = change.max((mean - *value).abs());
                    *value = mean;
                }
            }
            if change < 1e-15 {
                break;
            }
        }
        let [x, y, z] = map.0;
        [[x[0], y[0], z[0]], [x[1], y[1], z[1]], [x[2], y[2], z[2]]]
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

    /// The letters are those of `nibabel.orientations.aff2axcodes`. The largest entries of the columns
    /// would give one world axis to two voxel axes of most of these matrices.
    #[test]
    fn directions_of_oblique_maps_differ() {
        for (rows, letters) in [
            (
                [[-0.52, -0.74, 0.41], [0.0, 0.68, 1.35], [0.36, -1.06, 0.57]],
                "LIA",
            ),
            (
                [[-0.39, -0.09, 1.8], [0.26, 1.01, 1.57], [0.24, -1.22, 1.17]],
                "LIA",
            ),
            (
                [
                    [-0.63, 0.02, 1.37],
                    [-0.47, -0.42, -1.12],
                    [0.35, -0.52, 0.95],
                ],
                "LIP",
            ),
            (
                [
                    [0.67, -0.43, -1.58],
                    [-0.04, 2.0, -0.55],
                    [0.96, 0.38, 1.08],
                ],
                "SAL",
            ),
            (
                [
                    [-0.54, 0.83, -0.82],
                    [-0.52, -0.34, 1.91],
                    [0.33, 0.81, 1.65],
                ],
                "SRA",
            ),
            (
                [[2.1, 1.12, -0.06], [1.3, -0.9, 1.45], [-1.22, 0.96, 1.44]],
                "RSA",
            ),
            (
                [
                    [0.82, -0.91, 0.32],
                    [-0.38, -1.02, -0.85],
                    [-2.43, 0.07, -0.32],
                ],
                "ILP",
            ),
            (
                [[-0.21, 0.89, 1.4], [1.64, -1.48, 2.79], [-0.87, -0.66, 1.2]],
                "IRA",
            ),
            (
                [
                    [0.83, 0.17, -0.92],
                    [-1.83, 0.94, -0.48],
                    [-0.56, -2.32, 1.13],
                ],
                "PIL",
            ),
        ] {
            let map = VoxelMap(rows.map(|[a, b, c]| [a, b, c, 5.0]));
            let found: String = map.directions().map(Direction::letter).iter().collect();
            assert_eq!(found, letters, "{rows:?}");
        }
        let flat = VoxelMap([[1.0, 1.0, 1.0, 0.0], [0.0; 4], [0.0; 4]]);
        let mut axes = flat.directions().map(|direction| direction.axis);
        axes.sort_unstable();
        assert_eq!(axes, [0, 1, 2]);
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
