//! Neurons as randomly grown trees, in micrometres: a dendritic trunk with a tuft, basal dendrites
//! around the body, and an axon.

use zvf::{Column, ColumnValues, Geometry, GeometryBuilder, NumericColumn};

use super::random::Random;

type Position = [f64; 3];

const NEURONS: u32 = 9;
/// Distance between vertices.
const STEP: f64 = 3.0;

/// A growing tip.
struct Tip {
    node: i64,
    at: Position,
    toward: Position,
    radius: f64,
    left: f64,
    /// Bias added to the direction in each step.
    attraction: Position,
    depth: u32,
}

#[derive(Default)]
struct Neurons {
    positions: Vec<f32>,
    radii: Vec<f32>,
    objects: Vec<i64>,
    links: Vec<i64>,
    kinds: Vec<Option<String>>,
}

/// Generates the neurons, one object each.
pub(super) fn geometry(seed: u64, fewer: u32) -> GeometryBuilder {
    let mut random = Random::new(seed);
    let mut made = Neurons::default();
    for neuron in 0..NEURONS.div_ceil(fewer) {
        // Cell bodies stand in three staggered rows, so that none hides another.
        let row = f64::from(neuron % 3);
        let column = f64::from(neuron / 3);
        let body = [
            column * 330.0 + row * 110.0 + random.between(-25.0, 25.0),
            row * 120.0 + random.between(-30.0, 30.0),
            -row * 70.0 + random.between(-40.0, 40.0),
        ];
        let is_pyramidal = neuron % 4 != 3;
        made.kinds.push(Some(
            if is_pyramidal { "pyramidal" } else { "basket" }.to_owned(),
        ));
        made.grow(i64::from(neuron), body, is_pyramidal, &mut random);
    }
    let attribute = |name: &str, values| Column::new(name.to_owned(), values);
    let radii = ColumnValues::Numeric(NumericColumn::float32(1, made.radii));
    Geometry::builder(NumericColumn::float32(3, made.positions))
        .object_ids(made.objects)
        .links(2, made.links)
        .vertex(vec![attribute("radius", radii)])
        .object(vec![attribute("kind", ColumnValues::text(made.kinds))])
}

impl Neurons {
    fn node(&mut self, object: i64, at: Position, radius: f64, parent: Option<i64>) -> i64 {
        let node = self.objects.len() as i64;
        self.positions.extend(at.map(|part| part as f32));
        self.radii.push(radius as f32);
        self.objects.push(object);
        if let Some(parent) = parent {
            self.links.extend([node, parent]);
        }
        node
    }

    fn grow(&mut self, object: i64, body: Position, is_pyramidal: bool, random: &mut Random) {
        let root = self.node(object, body, 7.0, None);
        let mut tips = Vec::new();
        let tip =
            |toward: Position, radius: f64, left: f64, attraction: Position, depth: u32| Tip {
                node: root,
                at: body,
                toward,
                radius,
                left,
                attraction,
                depth,
            };
        if is_pyramidal {
            let height = random.between(300.0, 400.0);
            tips.push(tip([0.0, 0.0, 1.0], 3.2, height, [0.0, 0.0, 0.5], 0));
            tips.push(tip([0.0, 0.0, -1.0], 1.0, 420.0, [0.0, 0.0, -0.16], 3));
        } else {
            tips.push(tip([0.3, 0.2, -1.0], 1.0, 300.0, [0.0, 0.0, 0.0], 2));
        }
        for _ in 0..(if is_pyramidal { 6 } else { 9 }) {
            let mut toward = random.direction();
            if is_pyramidal {
                toward[2] = -toward[2].abs() * 0.6;
            }
            let left = random.between(110.0, 190.0);
            tips.push(tip(
                toward,
                1.7,
                left,
                [toward[0] * 0.08, toward[1] * 0.08, toward[2] * 0.05],
                2,
            ));
        }
        while let Some(mut tip) = tips.pop() {
            while tip.left > 0.0 {
                let jitter = random.direction();
                for (axis, part) in tip.toward.iter_mut().enumerate() {
                    *part += 0.24 * jitter[axis] + tip.attraction[axis];
                }
                let length = tip
                    .toward
                    .iter()
                    .map(|part| part * part)
                    .sum::<f64>()
                    .sqrt()
                    .max(1e-9);
                tip.toward = tip.toward.map(|part| part / length);
                for (at, toward) in tip.at.iter_mut().zip(tip.toward) {
                    *at += STEP * toward;
                }
                tip.radius = (tip.radius * 0.995).max(0.35);
                tip.node = self.node(object, tip.at, tip.radius, Some(tip.node));
                tip.left -= STEP;
                branch(&mut tips, &tip, random);
            }
            // The trunk of a pyramidal cell ends in a tuft.
            if tip.depth == 0 {
                for _ in 0..7 {
                    let side = random.direction();
                    tips.push(Tip {
                        toward: [side[0], side[1], 0.7 + 0.3 * side[2]],
                        radius: tip.radius * 0.7,
                        left: random.between(90.0, 170.0),
                        attraction: [side[0] * 0.07, side[1] * 0.07, 0.03],
                        depth: 2,
                        ..tip
                    });
                }
            }
        }
    }
}

/// Adds a branch at a tip, with a probability that depends on its depth.
fn branch(tips: &mut Vec<Tip>, tip: &Tip, random: &mut Random) {
    let chance = match tip.depth {
        0 => 0.07,
        1 | 2 => 0.035,
        3 => 0.022,
        _ => 0.012,
    };
    if tip.left < 30.0 || random.share() > chance || tip.depth > 5 {
        return;
    }
    let side = random.direction();
    let mut toward = tip.toward;
    for (part, side) in toward.iter_mut().zip(side) {
        *part = *part * 0.5 + side;
    }
    let left = match tip.depth {
        0 => random.between(50.0, 130.0),
        _ => tip.left * random.between(0.5, 1.0),
    };
    tips.push(Tip {
        toward,
        radius: tip.radius * 0.65,
        left,
        attraction: [toward[0] * 0.04, toward[1] * 0.04, toward[2] * 0.03],
        depth: tip.depth.max(1) + 1,
        ..*tip
    });
}
