//! A network similar to blood vessels: displaced nodes of a lattice, with half of its edges.

use super::{Data, DataColumn, Workload, placed};
use crate::random::NamedRandom;

const SIDE: f64 = 2000.0;

pub(super) fn generate(vertices: usize) -> Data {
    let mut random = NamedRandom::new(5, "graph");
    let long = ((vertices as f64).cbrt().round() as usize).max(2);
    let cell = SIDE / long as f64;
    let count = long * long * long;
    let (mut positions, mut diameter) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let corner = |row: usize| [row / long / long, row / long % long, row % long];
    for row in 0..count {
        let at = corner(row).map(|c| (c as f64 + random.between(0.05, 0.95)) * cell);
        positions.push(placed(at, SIDE));
        diameter.push((-((1.0 - random.unit()) * (1.0 - random.unit())).ln() * 3.0) as f32);
    }
    let (mut links, mut flow) = (Vec::new(), Vec::new());
    for (axis, step) in [long * long, long, 1].into_iter().enumerate() {
        for row in 0..count {
            if corner(row)[axis] + 1 < long && random.unit() < 0.5 {
                links.extend([row, row + step].map(|row| row as i64));
                flow.push(random.unit() as f32);
            }
        }
    }
    Data {
        positions,
        links,
        vertex: vec![DataColumn::Float("diameter", diameter)],
        link: vec![DataColumn::Float("flow", flow)],
        ..Data::of(Workload::Graph, SIDE)
    }
}
