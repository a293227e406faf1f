//! Squared distances between points and from line segments.

/// Returns the squared distance of two points.
pub(super) fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Returns the point between `start` and `end` that is farthest from their segment, and its squared
/// distance.
pub(super) fn farthest(positions: &[f64], axes: usize, start: usize, end: usize) -> (usize, f64) {
    match axes {
        2 => farthest_of::<2>(positions, start, end),
        3 => farthest_of::<3>(positions, start, end),
        _ => {
            let position = |at: usize| &positions[at * axes..(at + 1) * axes];
            let (from, to) = (position(start), position(end));
            let between = (start + 1..end).map(|at| (at, off(position(at), from, to)));
            greatest(between, start)
        }
    }
}

fn farthest_of<const AXES: usize>(positions: &[f64], start: usize, end: usize) -> (usize, f64) {
    let (positions, _) = positions.as_chunks::<AXES>();
    let (from, to) = (&positions[start], &positions[end]);
    let between = positions[start..end].iter().enumerate().skip(1);
    greatest(
        between.map(|(at, position)| (start + at, off(position, from, to))),
        start,
    )
}

fn greatest(between: impl Iterator<Item = (usize, f64)>, start: usize) -> (usize, f64) {
    between.fold(
        (start, 0.0),
        |found, next| {
            if next.1 > found.1 { next } else { found }
        },
    )
}

/// Returns the squared distance of a point from a segment.
pub(super) fn off(position: &[f64], from: &[f64], to: &[f64]) -> f64 {
    let (mut length, mut share) = (0.0, 0.0);
    for axis in 0..position.len() {
        let way = to[axis] - from[axis];
        length += way * way;
        share += way * (position[axis] - from[axis]);
    }
    let share = if length > 0.0 {
        (share / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let mut off = 0.0;
    for axis in 0..position.len() {
        let rest = position[axis] - from[axis] - share * (to[axis] - from[axis]);
        off += rest * rest;
    }
    off
}
