//! A point cloud: 70 % in 2000 clusters, the rest uniformly distributed, in random order.

use super::{Data, DataColumn, Workload, placed, plus};
use crate::random::NamedRandom;

const SIDE: f64 = 4000.0;
const CLUSTERS: usize = 2000;

pub(super) fn generate(vertices: usize) -> Data {
    let mut random = NamedRandom::new(2, "points");
    let mut clusters = Vec::with_capacity(CLUSTERS);
    for _ in 0..CLUSTERS {
        let centre = [0; 3].map(|_| random.between(100.0, SIDE - 100.0));
        let spread = random.between(8.0, 60.0);
        let label = random.below(16) as i32;
        clusters.push((centre, spread, label));
    }
    let mut positions = Vec::with_capacity(vertices);
    let mut intensity = Vec::with_capacity(vertices);
    let mut labels = Vec::with_capacity(vertices);
    for _ in 0..vertices {
        let (at, label) = if random.unit() < 0.3 {
            ([0; 3].map(|_| random.between(0.0, SIDE)), 0)
        } else {
            let (centre, spread, label) = clusters[random.below(CLUSTERS)];
            (plus(centre, random.normals(), spread), label)
        };
        let at = placed(at, SIDE);
        let bright = 2000.0 + 800.0 * (f64::from(at[2]) / 300.0).sin() + 400.0 * random.normal();
        positions.push(at);
        intensity.push(bright.round().clamp(0.0, 65535.0) as f32);
        labels.push(label);
    }
    Data {
        positions,
        vertex: vec![
            DataColumn::Float("intensity", intensity),
            DataColumn::Whole("label", labels),
        ],
        ..Data::of(Workload::Points, SIDE)
    }
}
