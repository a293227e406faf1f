//! Branching trees of 2000 nodes: persistent random walks.

use super::{Data, DataColumn, Workload, placed, plus};
use crate::random::{NamedRandom, unit};

const SIDE: f64 = 1000.0;
const NODES: usize = 2000;

pub(super) fn generate(vertices: usize) -> Data {
    let trees = vertices.div_ceil(NODES);
    let mut random = NamedRandom::new(3, "skeletons");
    let mut data = Data {
        offsets: Some(vec![0]),
        ..Data::of(Workload::Skeletons, SIDE)
    };
    let (mut radius, mut types) = (Vec::new(), Vec::new());
    for _ in 0..trees {
        tree(&mut data, &mut random);
        types.push(random.below(12) as i32);
        for _ in 0..NODES {
            let gamma = -((1.0 - random.unit()) * (1.0 - random.unit())).ln() * 0.25;
            radius.push((gamma * 64.0).round() as f32 / 64.0 + 0.05);
        }
    }
    data.vertex = vec![DataColumn::Float("radius", radius)];
    data.object = vec![DataColumn::Whole("type", types)];
    data
}

fn tree(data: &mut Data, random: &mut NamedRandom) {
    let first = data.positions.len();
    let mut places = vec![[0; 3].map(|_| random.between(100.0, SIDE - 100.0))];
    let mut ways = vec![random.direction()];
    for node in 1..NODES {
        let branches = random.unit() < 0.015;
        let parent = if branches {
            random.below(node)
        } else {
            node - 1
        };
        let turn = if branches { 1.0 } else { 0.18 };
        let mut way = unit(plus(ways[parent], random.normals(), turn));
        let mut at = plus(places[parent], way, 0.6);
        if at.iter().any(|c| !(1.0..=SIDE - 1.0).contains(c)) {
            way = way.map(|c| -c);
            at = at.map(|c| c.clamp(1.0, SIDE - 1.0));
        }
        places.push(at);
        ways.push(way);
        data.links
            .extend([node, parent].map(|row| (first + row) as i64));
    }
    data.positions
        .extend(places.iter().map(|at| placed(*at, SIDE)));
    let end = data.positions.len() as u64;
    data.offsets.get_or_insert_default().push(end);
}
