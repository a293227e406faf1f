//! Cells of a folded piece of cortex, as detected in microscope images: points in layers, in
//! micrometres.

use zvf::{Column, Geometry, GeometryBuilder, NumericColumn};

use super::random::{Random, noise};

const CELLS: u32 = 120_000;

/// Layers from the surface down: name, relative depth of the lower border, relative density, and
/// mean expression of the measured gene.
const LAYERS: [(&str, f64, f64, f64); 6] = [
    ("L1", 0.09, 0.25, 0.5),
    ("L2/3", 0.36, 1.0, 2.2),
    ("L4", 0.50, 1.5, 4.5),
    ("L5", 0.72, 0.8, 3.0),
    ("L6", 1.0, 0.9, 1.4),
    ("white matter", 1.30, 0.35, 0.3),
];
/// Distance from the surface to the white matter.
const THICKNESS: f64 = 1100.0;

/// Generates the cells, with layer and gene expression as attributes.
pub(super) fn geometry(seed: u64, fewer: u32) -> GeometryBuilder {
    let mut random = Random::new(seed);
    let (mut positions, mut layers, mut expression) = (Vec::new(), Vec::new(), Vec::new());
    let mut made = 0;
    while made < CELLS / fewer {
        let depth = random.between(0.0, 1.30);
        let (x, y) = (random.between(-1500.0, 1500.0), random.between(0.0, 900.0));
        // Borders of layers are blurred and undulate.
        let waver = 0.035 * noise([x / 260.0, y / 260.0, 3.0], seed) + 0.012 * random.normal();
        let layer = LAYERS.iter().find(|(_, end, ..)| depth + waver < *end);
        let Some((name, _, density, mean)) = layer.or(LAYERS.last()) else {
            break;
        };
        if random.share() > density / 1.5 {
            continue;
        }
        // The sheet is bent over a gyrus and down into the sulci beside it.
        let angle = x / 1500.0 * 1.9;
        let (bend, away) = (
            820.0 + 60.0 * noise([x / 500.0, y / 400.0, 0.0], seed),
            0.5 * THICKNESS,
        );
        let radius = bend + away - depth * THICKNESS * 0.8;
        let sag = 90.0 * (y / 900.0 * 2.2).sin();
        positions
            .extend([radius * angle.sin(), y, radius * angle.cos() + sag].map(|part| part as f32));
        layers.push(Some((*name).to_owned()));
        let wave = 1.0 + 0.6 * noise([x / 330.0, y / 330.0, depth * 4.0], seed + 1);
        expression.push((mean * wave * (0.35 * random.normal()).exp()) as f32);
        made += 1;
    }
    Geometry::builder(NumericColumn::float32(3, positions)).vertex(vec![
        Column::text("layer", layers),
        Column::new("expression", NumericColumn::float32(1, expression)),
    ])
}
