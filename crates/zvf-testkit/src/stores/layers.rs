//! Stores of points or paths in many levels.

use serde_json::json;

use super::{
    ExpectedStore, Made, Object, Recipe, RecipeProfile, Vertex, parts,
    pyramid::{cell_of, level_of, single, write_level},
    random::Random,
};

/// A generated store of several levels.
#[derive(Debug)]
pub struct Layers {
    /// The store, and the content of level 0.
    pub fine: Made,
    /// Content of level 1 and the coarser levels, which have neither attributes nor links.
    pub coarse: Vec<ExpectedStore>,
}

/// Generates a store of 0.9 with this many levels above level 0. Each has some of the vertices of
/// the next finer one; `additive` levels hold vertices that are on no coarser level. Chunks have
/// the size of those of level 0 or a small multiple.
///
/// # Panics
///
/// Never, because the root is generated here.
pub fn layers(recipe: &Recipe, count: u32, additive: bool) -> Layers {
    let recipe = Recipe {
        chunked: false,
        profile: RecipeProfile::V09,
        ..recipe.clone()
    };
    let (fine, mut files) = super::finest(&recipe);
    let mut random = Random::new(recipe.seed ^ 0x1a7e);
    let mut root = parts::root(&fine);
    let mut kept: Vec<usize> = (0..fine.vertices.len()).collect();
    let mut coarse = Vec::new();
    for level in 1..=count {
        let scale = f64::from(*random.pick(&[1_u32, 1, 2, 3, 4]));
        let shape: Vec<f64> = fine
            .chunk_shape
            .iter()
            .map(|extent| extent * scale)
            .collect();
        let own: Vec<usize> = if additive && level < count {
            let (above, own) = kept.into_iter().partition(|_| random.chance(45));
            kept = above;
            own
        } else {
            // The last additive level holds all remaining vertices.
            kept.retain(|_| additive || random.chance(45));
            kept.clone()
        };
        let truth = sample(&fine, &own, shape);
        let mut attributes = json!({"zarr_vectors_level": {
            "level": level, "vertex_count": truth.vertices.len(), "arrays_present": ["vertices"],
            "parent_level": level - 1, "chunk_shape": truth.chunk_shape,
            "preserves_object_ids": true,
            "inherited_num_objects": fine.objects.as_ref().map_or(0, Vec::len),
        }});
        if additive {
            attributes["zvf_additive"] = json!(true);
        }
        files.group(&level.to_string(), &attributes);
        write_level(&truth, &mut files, level);
        let datasets = root["multiscales"][0]["datasets"].as_array_mut();
        let factor = 2_f64.powi(i32::try_from(level).unwrap_or(0));
        datasets.expect("a list").push(json!({
            "path": level.to_string(), "coordinateTransformations": [
                {"type": "scale", "scale": vec![factor; fine.axes.len()]},
                {"type": "translation", "translation": vec![factor; fine.axes.len()]},
            ],
        }));
        coarse.push(truth);
    }
    files.group("", &root);
    Layers {
        fine: Made {
            files: files.finish(),
            truth: fine,
        },
        coarse,
    }
}

/// Creates a level of these vertices and the corresponding parts of objects.
fn sample(fine: &ExpectedStore, own: &[usize], chunk_shape: Vec<f64>) -> ExpectedStore {
    let place = |at: usize| {
        let position = fine.vertices[at].position.iter();
        position.map(|value| single(*value)).collect::<Vec<f64>>()
    };
    let mut order: Vec<(Vec<i64>, usize)> = own
        .iter()
        .map(|at| (cell_of(&place(*at), &chunk_shape), *at))
        .collect();
    order.sort();
    let mut vertices: Vec<Vertex> = Vec::with_capacity(order.len());
    let mut moved = vec![None; fine.vertices.len()];
    for (chunk, at) in order {
        let last = vertices.last().filter(|last| last.chunk == chunk);
        moved[at] = Some(vertices.len());
        vertices.push(Vertex {
            position: place(at),
            row: last.map_or(0, |last| last.row + 1),
            chunk,
            fragment: vertices.len(),
            object: fine.vertices[at].object,
        });
    }
    let mut level = level_of(fine, chunk_shape, vertices);
    let objects = fine.objects.as_ref().map(|objects| {
        let objects = objects.iter().map(|object| Object {
            id: object.id,
            fragments: fine
                .vertices_of(object)
                .filter_map(|at| moved[at])
                .collect(),
        });
        objects.collect()
    });
    level.objects = objects;
    level
}
