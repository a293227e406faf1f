//! Squared distances between points and from line segments.

/// Returns the squared distance of two points.
pub(super) fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Returns the point between `start` and `end` that is farthest from their segment, and its squared
/// distance.
pub(super) fn farthest(places: &[f64], axes: usize, start: usize, end: usize) -> (usize, f64) {
    match axes {
        2 => farthest_of::<2>(places, start, end),
        3 => farthest_of::<3>(places, start, end),
        _ => {
            let place = |at: usize| &places[at * axes..(at + 1) * axes];
            let (from, to) = (place(start), place(end));
            let between = (start + 1..end).map(|at| (at, off(place(at), from, to)));
            greatest(between, start)
        }
    }
}

fn farthest_of<const AXES: usize>(places: &[f64], start: usize, end: usize) -> (usize, f64) {
    let (places, _) = places.as_chunks::<AXES>();
    let (from, to) = (&places[start], &places[end]);
    let between = places[start..end].iter().enumerate().skip(1);
    greatest(
        between.map(|(at, place)| (start + at, off(place, from, to))),
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
pub(super) fn off(place: &[f64], from: &[f64], to: &[f64]) -> f64 {
    let (mut length, mut share) = (0.0, 0.0);
    for axis in 0..place.len() {
        let way = to[axis] - from[axis];
        length += way * way;
        share += way * (place[axis] - from[axis]);
    }
    let share = if length > 0.0 {
        (share / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let mut off = 0.0;
    for axis in 0..place.len() {
        let rest = place[axis] - from[axis] - share * (to[axis] - from[axis]);
        off += rest * rest;
    }
    off
}
