//! Three-dimensional vectors.

pub(super) type Vector = [f64; 3];

pub(super) fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn sub(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn scale(a: Vector, by: f64) -> Vector {
    [a[0] * by, a[1] * by, a[2] * by]
}

pub(super) fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: Vector, b: Vector) -> Vector {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

pub(super) fn length(a: Vector) -> f64 {
    dot(a, a).sqrt()
}

pub(super) fn distance(a: Vector, b: Vector) -> f64 {
    length(sub(a, b))
}

/// Returns the unit vector; `None` for zero.
pub(super) fn unit(a: Vector) -> Option<Vector> {
    let length = length(a);
    (length > 0.0 && length.is_finite()).then(|| scale(a, 1.0 / length))
}

/// Returns the normal of a triangle with a length of twice its area.
pub(super) fn normal(corners: [Vector; 3]) -> Vector {
    cross(sub(corners[1], corners[0]), sub(corners[2], corners[0]))
}
