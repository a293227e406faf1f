//! Distances compared with brute force.

use zvf_build::coarsen::{Simplices, hausdorff_one_sided};

use zvf_testkit::stores::Random;

use super::meshes::{dot, sheet, sign, way};

fn shape<'a>(positions: &'a [f64], width: usize, links: &'a [u32]) -> Simplices<'a> {
    Simplices {
        axes: 3,
        positions,
        width,
        links,
    }
}

#[test]
fn corner_distances_equal_brute_force() {
    let mut random = Random::new(3);
    let mut numbers = |count: usize| (0..count).map(|_| sign(&mut random)).collect::<Vec<_>>();
    let [from, to] = [numbers(300), numbers(600)];
    let rows: Vec<u32> = (0..200).collect();
    for width in [1, 2, 3] {
        let found = hausdorff_one_sided(
            &shape(&from, 1, &rows[..100]),
            &shape(&to, width, &rows),
            1.0,
        );
        let point = |row: u32| -> [f64; 3] { std::array::from_fn(|at| to[row as usize * 3 + at]) };
        let elements: Vec<Vec<[f64; 3]>> = (rows.chunks_exact(width))
            .map(|element| element.iter().map(|row| point(*row)).collect())
            .collect();
        let min = |place: &[f64; 3]| {
            let ways = elements.iter().map(|element| match element[..] {
                [only] => {
                    let off: [f64; 3] = std::array::from_fn(|axis| only[axis] - place[axis]);
                    dot(off, off).sqrt()
                }
                _ => way(*place, element),
            });
            ways.fold(f64::INFINITY, f64::min)
        };
        let max = from.as_chunks().0.iter().map(min).fold(0.0, f64::max);
        assert!((found.corners - max).abs() < 1e-12, "{found:?} {max}");
        assert_eq!(
            (found.samples, found.bound, found.count),
            (found.corners, found.corners, 100)
        );
    }
}

#[test]
fn samples_find_distances_that_corners_miss() {
    // A segment over a dent, and a triangle over another.
    let bent = [0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 2.0, 0.0, 0.0];
    let found = |spacing| {
        let straight = shape(&bent, 2, &[0, 2]);
        hausdorff_one_sided(&straight, &shape(&bent, 2, &[0, 1, 1, 2]), spacing)
    };
    assert_eq!(found(f64::INFINITY).samples, 0.0);
    let fine = found(0.1);
    assert!((fine.samples - 0.5f64.sqrt()).abs() < 1e-12 && fine.count == 21);
    assert!((fine.bound - fine.samples - 0.1).abs() < 1e-12);

    let dent = sheet(10, |x, y| -(x * (1.0 - x) * y * (1.0 - y)));
    let flat = sheet(1, |_, _| 0.0);
    let [from, to] =
        [&flat, &dent].map(|mesh| shape(mesh.at.as_flattened(), 3, mesh.faces.as_flattened()));
    let mut before = f64::INFINITY;
    for spacing in [1.0, 0.2, 0.05] {
        let found = hausdorff_one_sided(&from, &to, spacing);
        assert_eq!(found.corners, 0.0);
        assert!(found.samples <= 0.0625 && 0.06 < found.bound && found.bound < before);
        before = found.bound;
    }
    assert!(before < 0.12);
}

#[test]
fn empty_target_is_infinitely_far() {
    let place = [0.0; 3];
    let [one, none] = [&[0][..], &[7][..]].map(|links| shape(&place, 1, links));
    assert_eq!(hausdorff_one_sided(&one, &none, 1.0).bound, f64::INFINITY);
    assert_eq!(hausdorff_one_sided(&none, &one, 1.0).bound, 0.0);
    let four = Simplices {
        axes: 4,
        positions: &[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
        width: 1,
        links: &[0],
    };
    let other = Simplices {
        links: &[1],
        ..four
    };
    assert_eq!(hausdorff_one_sided(&four, &other, 1.0).corners, 2.0);
}
