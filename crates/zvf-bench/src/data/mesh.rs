//! One closed uneven surface: a sphere of rings between two poles.

use std::f64::consts::{PI, TAU};

use super::{Data, DataColumn, Workload, placed};
use crate::random::NamedRandom;

const SIDE: f64 = 1000.0;

pub(super) fn generate(vertices: usize) -> Data {
    let mut random = NamedRandom::new(4, "mesh");
    let rings = ((vertices as f64 / 2.0).sqrt().round() as usize).max(2);
    let around = 2 * rings;
    let waves: Vec<([f64; 3], f64)> = (0..6)
        .map(|_| {
            (
                [0; 3].map(|_| random.between(2.0, 9.0)),
                random.between(0.0, TAU),
            )
        })
        .collect();
    let mut place = |unit: [f64; 3]| {
        let wave = |(wave, phase): &([f64; 3], f64)| {
            let dot: f64 = wave.iter().zip(unit).map(|(a, b)| a * b).sum();
            (dot + phase).sin()
        };
        let bumps: f64 = waves.iter().map(wave).sum();
        let far = SIDE * 0.36 * (1.0 + 0.06 * bumps + 0.0005 * random.normal());
        placed(unit.map(|c| SIDE / 2.0 + c * far), SIDE)
    };
    let mut positions = vec![place([0.0, 0.0, 1.0])];
    for ring in 1..rings {
        let (out, height) = (PI * ring as f64 / rings as f64).sin_cos();
        for at in 0..around {
            let (y, x) = (TAU * at as f64 / around as f64).sin_cos();
            positions.push(place([out * x, out * y, height]));
        }
    }
    positions.push(place([0.0, 0.0, -1.0]));
    let last = positions.len() as i64 - 1;
    let row = |ring: usize, at: usize| match ring {
        0 => 0,
        _ if ring == rings => last,
        _ => (1 + (ring - 1) * around + at % around) as i64,
    };
    let mut links = Vec::with_capacity(around * rings * 6);
    for ring in 0..rings {
        for at in 0..around {
            let [a, b] = [row(ring, at), row(ring, at + 1)];
            let [c, d] = [row(ring + 1, at), row(ring + 1, at + 1)];
            if ring + 1 < rings {
                links.extend([a, c, d]);
            }
            if ring > 0 {
                links.extend([a, d, b]);
            }
        }
    }
    let thickness = positions.iter().map(|at| 2.0 + (at[0] / 40.0).sin());
    Data {
        vertex: vec![DataColumn::Float("thickness", thickness.collect())],
        offsets: Some(vec![0, positions.len() as u64]),
        positions,
        link_width: 3,
        links,
        ..Data::of(Workload::Mesh, SIDE)
    }
}
