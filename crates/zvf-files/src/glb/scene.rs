//! Nodes of a scene, and the places of their meshes.

use serde_json::Value;

use crate::FileFault;

/// Extensions that change the geometry.
const EXTENSIONS: [(&str, &str); 3] = [
    (
        "KHR_draco_mesh_compression",
        "the meshes are compressed with Draco; write the file without compression",
    ),
    (
        "EXT_meshopt_compression",
        "the data is compressed with meshopt; write the file without compression",
    ),
    (
        "EXT_mesh_gpu_instancing",
        "meshes have instances; write each of them as a mesh of its own",
    ),
];

/// The matrix of a node, row by row; the last row of four is 0, 0, 0, 1.
pub(super) type Matrix = [[f64; 4]; 3];

const IDENTITY: Matrix = [
    [1.0, 0.0, 0.0, 0.0],
    [0.0, 1.0, 0.0, 0.0],
    [0.0, 0.0, 1.0, 0.0],
];

/// A mesh at its place in the scene.
#[derive(Clone, Debug)]
pub(super) struct PlacedMesh<'a> {
    pub(super) mesh: &'a Value,
    /// Name of the node, or of the mesh.
    pub(super) name: &'a str,
    pub(super) matrix: Matrix,
}

/// Returns the meshes of a scene, in the order of its nodes.
///
/// # Errors
///
/// [`FileFault`] if the nodes form no tree, or share a mesh.
pub(super) fn placed_meshes(scene: &Value) -> Result<Vec<PlacedMesh<'_>>, FileFault> {
    for key in ["extensionsUsed", "extensionsRequired"] {
        for name in list(scene, key).iter().filter_map(Value::as_str) {
            if let Some((_, why)) = EXTENSIONS.into_iter().find(|(known, _)| *known == name) {
                return Err(FileFault::Unsupported(why));
            }
        }
    }
    let (nodes, meshes) = (list(scene, "nodes"), list(scene, "meshes"));
    let shown = number(scene, "scene")?.unwrap_or(0);
    let shown = usize::try_from(shown).unwrap_or(usize::MAX);
    let roots = match list(scene, "scenes").get(shown) {
        Some(scene) => places(scene, "nodes")?,
        None => (0..nodes.len()).collect(),
    };
    let (mut is_seen, mut is_used) = (vec![false; nodes.len()], vec![false; meshes.len()]);
    let mut placed = Vec::new();
    // The next node is the last one.
    let mut waiting: Vec<(usize, Matrix)> = roots.iter().map(|node| (*node, IDENTITY)).collect();
    waiting.reverse();
    while let Some((place, parent)) = waiting.pop() {
        let expected = "the nodes of a scene form a tree; the file is damaged";
        let damaged = || FileFault::field("a node", place, expected);
        let node = nodes.get(place).ok_or_else(damaged)?;
        let seen = is_seen.get_mut(place).ok_or_else(damaged)?;
        if std::mem::replace(seen, true) {
            return Err(damaged());
        }
        let matrix = product(&parent, &matrix(node)?);
        if let Some(mesh) = number(node, "mesh")? {
            let at = usize::try_from(mesh).unwrap_or(usize::MAX);
            let (Some(mesh), Some(used)) = (meshes.get(at), is_used.get_mut(at)) else {
                let expected = "the scene has no such mesh; the file is damaged";
                return Err(FileFault::field("the mesh of a node", mesh, expected));
            };
            if std::mem::replace(used, true) {
                let why = "several nodes have one mesh; write each of them as a mesh of its own";
                return Err(FileFault::Unsupported(why));
            }
            let names = [node, mesh].map(|item| item.get("name").and_then(Value::as_str));
            let name = names.into_iter().flatten().find(|name| !name.is_empty());
            placed.push(PlacedMesh {
                mesh,
                name: name.unwrap_or(""),
                matrix,
            });
        }
        let children = places(node, "children")?;
        waiting.extend(children.into_iter().rev().map(|child| (child, matrix)));
    }
    Ok(placed)
}

/// Returns a list of a scene; empty if there is none.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns a whole number of a scene, if it is there.
pub(super) fn number(value: &Value, key: &'static str) -> Result<Option<u64>, FileFault> {
    let expected = "use a whole number, 0 or more";
    let Some(found) = value.get(key) else {
        return Ok(None);
    };
    let number = found.as_u64();
    let wrong = || {
        FileFault::field(
            key,
            found.to_string().chars().take(24).collect::<String>(),
            expected,
        )
    };
    number.ok_or_else(wrong).map(Some)
}

/// Returns numbers of nodes. There are at most as many as in the scene, because each occurs once.
fn places(value: &Value, key: &'static str) -> Result<Vec<usize>, FileFault> {
    let numbers = list(value, key).iter().map(|number| {
        let place = number
            .as_u64()
            .and_then(|number| usize::try_from(number).ok());
        place.ok_or_else(|| FileFault::field(key, number, "use the numbers of nodes"))
    });
    numbers.collect()
}

/// Returns the matrix of a node.
fn matrix(node: &Value) -> Result<Matrix, FileFault> {
    if let Some(columns) = numbers::<16>(node, "matrix")? {
        let at = |row: usize, column: usize| {
            let place = column.saturating_mul(4).saturating_add(row);
            columns.get(place).copied().unwrap_or(0.0)
        };
        return Ok(std::array::from_fn(|row| {
            std::array::from_fn(|column| at(row, column))
        }));
    }
    let translation = numbers::<3>(node, "translation")?.unwrap_or([0.0; 3]);
    let rotation = numbers::<4>(node, "rotation")?.unwrap_or([0.0, 0.0, 0.0, 1.0]);
    let scale = numbers::<3>(node, "scale")?.unwrap_or([1.0; 3]);
    let mut matrix = IDENTITY;
    for ((target, turned), moved) in matrix.iter_mut().zip(turn(rotation)).zip(translation) {
        let [a, b, c] = turned;
        let [along_x, along_y, along_z] = scale;
        *target = [a * along_x, b * along_y, c * along_z, moved];
    }
    Ok(matrix)
}

/// Returns the rotation of a quaternion.
fn turn([x, y, z, w]: [f64; 4]) -> [[f64; 3]; 3] {
    [
        [
            1.0 - 2.0 * (y * y + z * z),
            2.0 * (x * y - z * w),
            2.0 * (x * z + y * w),
        ],
        [
            2.0 * (x * y + z * w),
            1.0 - 2.0 * (x * x + z * z),
            2.0 * (y * z - x * w),
        ],
        [
            2.0 * (x * z - y * w),
            2.0 * (y * z + x * w),
            1.0 - 2.0 * (x * x + y * y),
        ],
    ]
}

/// Returns a list of `N` numbers, if it is there.
fn numbers<const N: usize>(node: &Value, key: &'static str) -> Result<Option<[f64; N]>, FileFault> {
    let Some(found) = node.get(key) else {
        return Ok(None);
    };
    let found = found.as_array().map_or(&[][..], Vec::as_slice);
    let numbers: Vec<f64> = found.iter().filter_map(Value::as_f64).collect();
    let wrong = || {
        FileFault::field(
            key,
            "another list",
            "use 3 numbers, 4 for rotation, 16 for matrix",
        )
    };
    numbers.try_into().map(Some).map_err(|_| wrong())
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    a.map(|[x, y, z, moved]| {
        let [first, second, third] = b;
        let mut row: [f64; 4] = std::array::from_fn(|column| {
            let at = |row: &[f64; 4]| row.get(column).copied().unwrap_or(0.0);
            x * at(first) + y * at(second) + z * at(third)
        });
        if let Some(last) = row.last_mut() {
            *last += moved;
        }
        row
    })
}

/// Returns a position in the space of the scene.
pub(super) fn transformed(matrix: &Matrix, [x, y, z]: [f64; 3]) -> [f64; 3] {
    // A product with 1 and a sum with 0 leave the bits of a number, except for -0.
    if *matrix == IDENTITY {
        return [x, y, z];
    }
    matrix.map(|[a, b, c, moved]| a * x + b * y + c * z + moved)
}

/// Returns whether a matrix mirrors, so that faces turn around.
pub(super) fn is_mirror(matrix: &Matrix) -> bool {
    let [x, y, z] = matrix.map(|[x, y, z, _]| [x, y, z]);
    let [x1, x2, x3] = x;
    let [y1, y2, y3] = y;
    let across = [x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1];
    let products = across.iter().zip(z).map(|(a, b)| a * b);
    products.sum::<f64>() < 0.0
}
