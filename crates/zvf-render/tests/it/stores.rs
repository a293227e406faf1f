//! Small stores of every kind, generated from formulas.

use std::f32::consts::TAU;

use tempfile::TempDir;
use zvf::{
    AxisSpec, Column, ColumnValues, CreateOptions, Design, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, numeric::Kind,
};

pub(crate) struct Made(TempDir);

impl Made {
    pub(crate) fn address(&self) -> String {
        self.0.path().join("store.zv").display().to_string()
    }
}

pub(crate) async fn made(kind: GeometryKind, geometry: GeometryBuilder) -> Made {
    let made = Made(tempfile::tempdir().unwrap());
    let mut design = Design::new(kind);
    let axes = ["x", "y", "z"].map(|name| AxisSpec::new(name).unit("micrometer"));
    design.axes = Some(axes[..geometry.axes()].to_vec());
    // Tests add arrays to the store, which would not be in the inventory of a sealed store.
    let options = CreateOptions::default().seal(false);
    zvf::create(&made.address(), geometry.build().unwrap(), design, &options)
        .await
        .unwrap();
    made
}

fn numbers(name: &str, values: Vec<f32>) -> Column {
    let values = ColumnValues::Numeric(NumericColumn::float32(1, values));
    Column::new(name.to_owned(), values)
}

fn steps(count: u16) -> impl Iterator<Item = f32> {
    (0..count).map(move |step| f32::from(step) / f32::from(count))
}

/// A winding band of points, with words and numbers.
pub(crate) async fn points() -> Made {
    let (mut positions, mut words, mut heights) = (Vec::new(), Vec::new(), Vec::new());
    for turn in steps(60) {
        for lane in steps(12) {
            let (sine, cosine) = (turn * TAU * 2.0).sin_cos();
            let radius = 20.0 + 14.0 * lane;
            positions.extend([radius * cosine, radius * sine, 50.0 * turn]);
            words.push(Some(
                ["inner", "middle", "outer"][if lane < 0.3 {
                    0
                } else if lane < 0.7 {
                    1
                } else {
                    2
                }]
                .to_owned(),
            ));
            heights.push(turn * 5.0);
        }
    }
    let geometry = Geometry::builder(NumericColumn::float32(3, positions)).vertex(vec![
        Column::text("lane", words),
        numbers("height", heights),
    ]);
    made(GeometryKind::Points, geometry).await
}

/// Arches beside each other.
pub(crate) async fn paths() -> Made {
    let (mut positions, mut offsets, mut fa, mut lengths) =
        (Vec::new(), vec![0], Vec::new(), Vec::new());
    for arch in steps(24) {
        for at in steps(40) {
            let (sine, cosine) = (at * TAU * 0.5).sin_cos();
            positions.extend([
                40.0 * cosine,
                90.0 * arch - 45.0,
                (18.0 + 14.0 * arch) * sine,
            ]);
            fa.push(sine * 0.8);
        }
        offsets.push(u64::try_from(fa.len()).unwrap());
        lengths.push(100.0 + arch * 40.0);
    }
    let geometry = Geometry::builder(NumericColumn::float32(3, positions))
        .paths(offsets, None)
        .vertex(vec![numbers("fa", fa)])
        .object(vec![numbers("length", lengths)]);
    made(GeometryKind::Streamlines, geometry).await
}

/// Three trees.
pub(crate) async fn trees() -> Made {
    let (mut positions, mut objects, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for tree in 0..3_i64 {
        let mut tips = vec![(
            f32::from(u8::try_from(tree).unwrap()) * 60.0,
            0.0,
            0.0,
            1.57,
            26.0,
            None,
        )];
        while let Some((x, y, z, angle, length, parent)) = tips.pop() {
            let node = i64::try_from(objects.len()).unwrap();
            positions.extend([x, y, z]);
            objects.push(tree);
            if let Some(parent) = parent {
                links.extend([node, parent]);
            }
            if length > 6.0 {
                for turn in [-0.5_f32, 0.45] {
                    let angle: f32 = angle + turn;
                    let (x, z) = (x + length * angle.cos(), z + length * angle.sin());
                    tips.push((
                        x,
                        y + turn * length * 0.6,
                        z,
                        angle,
                        length * 0.74,
                        Some(node),
                    ));
                }
            }
        }
    }
    let geometry = Geometry::builder(NumericColumn::float32(3, positions))
        .object_ids(objects)
        .links(2, links);
    made(GeometryKind::Skeletons, geometry).await
}

/// Twenty tilted columns of points, with 16-bit colours and names in several scripts.
pub(crate) async fn columns() -> Made {
    const NAMES: [&str; 4] = ["Straße", "αβγ", "Ångström é", "神経"];
    let (mut positions, mut objects, mut colors) = (Vec::new(), Vec::new(), Vec::new());
    let mut names = Vec::new();
    for column in 0..20_u16 {
        for at in 0..80_u16 {
            let (x, y, z) = (column % 5 * 20, column / 5 * 30, at);
            positions.extend([f32::from(x + at / 8), f32::from(y), f32::from(z)]);
            // Ids agree modulo 24, as those of segmentations may.
            objects.push(i64::from(column) * 24 + 7);
            colors.extend([column * 3400, at * 800, 20_000]);
            names.push(Some(NAMES[usize::from(column % 4)].to_owned()));
        }
    }
    let mut geometry = Geometry::builder(NumericColumn::float32(3, positions)).object_ids(objects);
    let mut rgb = NumericColumn::new(Kind::UInt16, 3);
    rgb.bytes = colors.iter().flat_map(|part| part.to_le_bytes()).collect();
    geometry.vertex = vec![Column::new("rgb", rgb), Column::text("class", names)];
    made(GeometryKind::Points, geometry).await
}

/// A triangle with numbers in three channels and colours in four.
pub(crate) async fn tinted() -> Made {
    let positions = [0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 9.0, 0.0];
    let mut geometry =
        Geometry::builder(NumericColumn::float32(3, positions)).links(3, vec![0, 1, 2]);
    let mut tint = NumericColumn::new(Kind::UInt8, 4);
    tint.bytes = [[255, 0, 0, 255]; 3].concat();
    geometry.vertex = vec![
        Column::new(
            "normal",
            NumericColumn::float32(3, [0.0, 0.0, 1.0].repeat(3)),
        ),
        Column::new("tint", tint),
    ];
    made(GeometryKind::Mesh, geometry).await
}

/// A ring with waves on it.
pub(crate) async fn ring() -> Made {
    made(GeometryKind::Mesh, ring_geometry()).await
}

/// The same ring with every third face wound in the other direction.
pub(crate) async fn rewound_ring() -> Made {
    let mut geometry = ring_geometry();
    for face in geometry.links.ends.chunks_exact_mut(3).step_by(3) {
        face.reverse();
    }
    made(GeometryKind::Mesh, geometry).await
}

fn ring_geometry() -> GeometryBuilder {
    let (around, across) = (72_u16, 30_u16);
    let (mut positions, mut height, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (i, u) in (0_i64..).zip(steps(around)) {
        for (j, v) in (0_i64..).zip(steps(across)) {
            let wave = 1.0 + 0.12 * (u * TAU * 9.0).sin() * (v * TAU * 2.0).sin();
            let (sine, cosine) = (v * TAU).sin_cos();
            let radius = 40.0 + 15.0 * wave * cosine;
            positions.extend([
                radius * (u * TAU).cos(),
                radius * (u * TAU).sin(),
                15.0 * wave * sine,
            ]);
            height.push(15.0 * wave * sine);
            let row = |i: i64, j: i64| {
                i.rem_euclid(around.into()) * i64::from(across) + j.rem_euclid(across.into())
            };
            let corners = [row(i, j), row(i + 1, j), row(i + 1, j + 1), row(i, j + 1)];
            links.extend([
                corners[0], corners[1], corners[2], corners[0], corners[2], corners[3],
            ]);
        }
    }
    Geometry::builder(NumericColumn::float32(3, positions))
        .links(3, links)
        .vertex(vec![numbers("height", height)])
}

/// Points along an axis with a number of type float64.
pub(crate) async fn precise(values: Vec<f64>) -> Made {
    let at = (0_u16..).zip(&values);
    let at = at.flat_map(|(at, _)| [f64::from(at), 0.0, 0.0]);
    let mut geometry = Geometry::builder(NumericColumn::float64(3, at));
    let values = ColumnValues::Numeric(NumericColumn::float64(1, values));
    geometry.vertex = vec![Column::new("value", values)];
    made(GeometryKind::Points, geometry).await
}

/// Paths with these vertices.
pub(crate) async fn lines(paths: &[&[[f32; 3]]]) -> Made {
    let mut geometry =
        Geometry::builder(NumericColumn::float32(3, paths.concat().into_flattened()));
    let mut offsets = vec![0];
    for path in paths {
        offsets.push(offsets[offsets.len() - 1] + u64::try_from(path.len()).unwrap());
    }
    geometry = geometry.paths(offsets, None);
    made(GeometryKind::Streamlines, geometry).await
}
