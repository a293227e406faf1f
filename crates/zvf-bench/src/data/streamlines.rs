//! Bundles of smooth curves with steps of about a millimetre, bundle by bundle.

use super::{Data, DataColumn, Workload, placed, plus};
use crate::random::NamedRandom;

const SIDE: f64 = 180.0;
const BUNDLES: usize = 300;
/// Mean number of vertices of a path.
const MEAN: f64 = 100.0;

pub(super) fn generate(vertices: usize) -> Data {
    let paths = (vertices as f64 / MEAN).round().max(1.0) as usize;
    let mut random = NamedRandom::new(1, "streamlines");
    let bundles: Vec<[[f64; 3]; 4]> = (0..BUNDLES).map(|_| bundle(&mut random)).collect();
    // Bundles differ in size: shares are exponentially distributed.
    let weights: Vec<f64> = (0..BUNDLES).map(|_| -(1.0 - random.unit()).ln()).collect();
    let total: f64 = weights.iter().sum();
    let mut data = Data {
        offsets: Some(vec![0]),
        ..Data::of(Workload::Streamlines, SIDE)
    };
    let (mut fa, mut lengths, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let (mut before, mut made) = (0.0, 0);
    for (number, (curve, weight)) in bundles.iter().zip(&weights).enumerate() {
        before += weight;
        let until = (before / total * paths as f64).round() as usize;
        while made < until {
            made += 1;
            lengths.push(path(&mut data, &mut fa, curve, &mut random));
            numbers.push(number as i32);
        }
    }
    data.vertex = vec![DataColumn::Float("fa", fa)];
    data.object = vec![
        DataColumn::Float("length", lengths),
        DataColumn::Whole("bundle", numbers),
    ];
    data
}

/// Returns control points: the ends near the surface of an ellipsoid, the others inside.
fn bundle(random: &mut NamedRandom) -> [[f64; 3]; 4] {
    let mut point = |near: bool| {
        let far = if near {
            random.between(0.8, 1.0)
        } else {
            random.unit().cbrt() * 1.15
        };
        let [x, y, z] = random.direction();
        [
            90.0 + x * 62.0 * far,
            90.0 + y * 75.0 * far,
            90.0 + z * 58.0 * far,
        ]
    };
    [point(true), point(false), point(false), point(true)]
}

/// Adds a path; returns its length.
fn path(
    data: &mut Data,
    fa: &mut Vec<f32>,
    curve: &[[f64; 3]; 4],
    random: &mut NamedRandom,
) -> f32 {
    let steps = (MEAN + MEAN * 0.25 * random.normal()).round().max(10.0) as usize;
    let control = curve.map(|at| plus(at, random.normals(), 5.0));
    let mut length = 0.0_f64;
    let mut last: Option<[f32; 3]> = None;
    for step in 0..steps {
        let t = step as f64 / (steps - 1) as f64;
        let s = 1.0 - t;
        let weights = [s * s * s, 3.0 * s * s * t, 3.0 * s * t * t, t * t * t];
        let on = control
            .iter()
            .zip(weights)
            .fold([0.0; 3], |sum, (at, weight)| plus(sum, *at, weight));
        let at = placed(plus(on, random.normals(), 0.03), SIDE);
        if let Some(last) = last {
            let far = [0, 1, 2].map(|axis| f64::from(at[axis] - last[axis]).powi(2));
            length += far.iter().sum::<f64>().sqrt();
        }
        last = Some(at);
        let wave = (f64::from(at[0]) / 9.0).sin() * (f64::from(at[1]) / 11.0).cos();
        fa.push((0.5 + 0.3 * wave + 0.02 * random.normal()).clamp(0.0, 1.0) as f32);
        data.positions.push(at);
    }
    let end = data.positions.len() as u64;
    data.offsets.get_or_insert_default().push(end);
    length as f32
}
