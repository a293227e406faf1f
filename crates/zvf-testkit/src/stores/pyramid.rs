//! Stores with a coarser level, and links between the two.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use zvf_format::{
    links::{AxisScales, LinkRowsBuilder, LinkWidth, Permutation, RowForm},
    path::ChunkCoords,
};

use super::{
    ExpectedFragment, ExpectedStore, Made, Object, Recipe, RecipeProfile, StoreKind, Vertex,
    current,
    files::{Files, Payloads},
    numbers::{floor, whole},
    older, parts,
    random::Random,
    runs::split_into_runs,
};
use crate::filing::{FilingRules, Record};

/// Marks a vertex of several objects, like `zvf_catalog::SEVERAL_OBJECTS`.
const SEVERAL: i64 = -2;

/// Stored cross-level links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PyramidLinks {
    /// Links from the finer level to the coarser.
    Implicit,
    /// Links in both directions.
    Explicit,
}

/// A generated store of two levels.
#[derive(Debug)]
pub struct Pyramid {
    /// The store, and the content of level 0.
    pub fine: Made,
    /// Content of level 1. It has neither attributes nor links; a vertex of several objects has
    /// object -2.
    pub coarse: ExpectedStore,
    /// The parent in level 1 of each vertex of level 0.
    pub parents: Vec<Option<usize>>,
    /// Size of the bins of level 1 relative to level 0.
    pub factor: f64,
}

/// Generates a store of two levels. The recipe must be of 0.10, 0.9 or 0.8.0, with spatial chunks only.
///
/// # Panics
///
/// Panics if the recipe is of another generation.
pub fn pyramid(recipe: &Recipe, links: PyramidLinks) -> Pyramid {
    let known = [RecipeProfile::V09, RecipeProfile::V10, RecipeProfile::V080];
    assert!(known.contains(&recipe.profile), "{:?}", recipe.profile);
    let recipe = Recipe {
        chunked: false,
        ..recipe.clone()
    };
    let (fine, mut files) = super::finest(&recipe);
    let mut random = Random::new(recipe.seed ^ 0x5eed);
    let factor = *random.pick(&[1.5, 2.0, 3.0]);
    let scale = *random.pick(&[1, 1, 2, 3]);
    let (coarse, parents) = coarsened(&fine, (factor, scale), &mut random);
    files.group("", &root(&fine, factor, links));
    files.group("1", &level(&fine, &coarse));
    write_level(&coarse, &mut files, 1);
    let up: Vec<[Record; 2]> = parents
        .iter()
        .enumerate()
        .filter_map(|(child, parent)| {
            let parent = parts::record(&coarse, &[(*parent)?]);
            Some([parts::record(&fine, &[child]), parent])
        })
        .collect();
    let records: Vec<Record> = up
        .iter()
        .map(|[a, b]| [a.clone(), b.clone()].concat())
        .collect();
    let step = Step {
        delta: 1,
        scales: [1, scale],
    };
    step.write(&fine, &mut files, &records);
    if links == PyramidLinks::Explicit {
        let records: Vec<Record> = up.into_iter().map(|[a, b]| [b, a].concat()).collect();
        let step = Step {
            delta: -1,
            scales: [scale, 1],
        };
        step.write(&coarse, &mut files, &records);
    }
    Pyramid {
        fine: Made {
            files: files.finish_as(recipe.profile),
            truth: fine,
        },
        coarse,
        parents,
        factor,
    }
}

/// Numbers as bytes, which determine the order of bins.
type Bytes = Vec<[u8; 8]>;

/// Merges the vertices of a bin into one at their mean.
fn coarsened(
    fine: &ExpectedStore,
    (factor, scale): (f64, u32),
    random: &mut Random,
) -> (ExpectedStore, Vec<Option<usize>>) {
    let shape = fine.chunk_shape.iter();
    let chunk_shape: Vec<f64> = shape.map(|extent| extent * f64::from(scale)).collect();
    let bin: Vec<f64> = fine
        .chunk_shape
        .iter()
        .zip(&fine.bins_per_chunk)
        .map(|(extent, bins)| extent / f64::from(*bins) * factor)
        .collect();
    let bins: Vec<Bytes> = fine
        .vertices
        .iter()
        .map(|vertex| {
            let bin = cell_of(&vertex.position, &bin).into_iter();
            bin.map(i64::to_le_bytes).collect()
        })
        .collect();
    let some = random.chance(40);
    let mut kept = fine.objects.clone();
    for object in kept.iter_mut().flatten() {
        if some && random.chance(40) {
            object.fragments.clear();
        }
    }
    let members: Vec<usize> = match &kept {
        None => (0..fine.vertices.len()).collect(),
        Some(kept) => {
            let kept = kept.iter();
            kept.flat_map(|object| fine.vertices_of(object)).collect()
        }
    };
    let (vertices, by_bin) = middles(fine, &members, &bins, &chunk_shape);
    let parents: Vec<Option<usize>> = bins.iter().map(|bin| by_bin.get(bin).copied()).collect();
    let mut coarse = level_of(fine, chunk_shape, vertices);
    coarse.objects = kept.map(|kept| {
        let chains = kept.into_iter().map(|object| {
            let mut chain: Vec<usize> = fine
                .vertices_of(&object)
                .filter_map(|at| parents[at])
                .collect();
            chain.dedup();
            Object {
                id: object.id,
                fragments: chain,
            }
        });
        chains.collect()
    });
    for object in coarse.objects.iter().flatten() {
        for at in object.fragments.iter().collect::<BTreeSet<_>>() {
            let owner = &mut coarse.vertices[*at].object;
            *owner = Some(owner.map_or(object.id, |_| SEVERAL));
        }
    }
    (coarse, parents)
}

pub(super) fn cell_of(position: &[f64], shape: &[f64]) -> Vec<i64> {
    let axes = position.iter().zip(shape);
    axes.map(|(value, extent)| floor(value / extent)).collect()
}

/// Returns the merged vertices, and the bin of each.
fn middles(
    fine: &ExpectedStore,
    members: &[usize],
    bins: &[Bytes],
    chunk_shape: &[f64],
) -> (Vec<Vertex>, BTreeMap<Bytes, usize>) {
    let mut of_bins: BTreeMap<&Bytes, Vec<usize>> = BTreeMap::new();
    for vertex in members {
        of_bins.entry(&bins[*vertex]).or_default().push(*vertex);
    }
    let mut middles: Vec<(Vec<i64>, &Bytes, Vec<f64>)> = Vec::new();
    for (bin, members) in of_bins {
        let count = whole(i64::try_from(members.len()).unwrap_or(1));
        let mean = |axis: usize| {
            let values = members.iter().map(|at| fine.vertices[*at].position[axis]);
            values.sum::<f64>() / count
        };
        let mean: Vec<f64> = (0..fine.axes.len()).map(mean).collect();
        middles.push((cell_of(&mean, chunk_shape), bin, mean));
    }
    middles.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let (mut vertices, mut by_bin): (Vec<Vertex>, _) = (Vec::new(), BTreeMap::new());
    for (chunk, bin, mean) in middles {
        by_bin.insert(bin.clone(), vertices.len());
        let last = vertices.last().filter(|last| last.chunk == chunk);
        vertices.push(Vertex {
            position: mean.into_iter().map(single).collect(),
            row: last.map_or(0, |last| last.row + 1),
            chunk,
            fragment: vertices.len(),
            object: None,
        });
    }
    (vertices, by_bin)
}

/// Creates a level of these vertices, each of which is a fragment.
pub(super) fn level_of(
    fine: &ExpectedStore,
    chunk_shape: Vec<f64>,
    vertices: Vec<Vertex>,
) -> ExpectedStore {
    let kind = match fine.recipe.kind {
        // No face remains, and the number of its ends is not stored.
        StoreKind::Triangles | StoreKind::Quads => StoreKind::Graph,
        kind => kind,
    };
    let fragments = vertices
        .iter()
        .enumerate()
        .map(|(at, vertex)| ExpectedFragment {
            chunk: vertex.chunk.clone(),
            number: u32::try_from(vertex.row).unwrap_or(u32::MAX),
            vertices: at..at + 1,
        });
    ExpectedStore {
        recipe: Recipe {
            kind,
            double: false,
            shuffled: false,
            attributes: false,
            ..fine.recipe.clone()
        },
        axes: fine.axes.clone(),
        chunk_shape,
        bins_per_chunk: vec![1; fine.axes.len()],
        chunked_by: None,
        fragments: fragments.collect(),
        vertices,
        objects: None,
        links: Vec::new(),
        link_order: Vec::new(),
        groups: None,
        vertex_attributes: Vec::new(),
        fragment_attributes: Vec::new(),
        link_attributes: Vec::new(),
        object_attributes: Vec::new(),
        group_attributes: Vec::new(),
    }
}

fn root(fine: &ExpectedStore, factor: f64, links: PyramidLinks) -> Value {
    let mut root = parts::root(fine);
    let half: Vec<f64> = fine
        .chunk_shape
        .iter()
        .zip(&fine.bins_per_chunk)
        .map(|(extent, bins)| extent / f64::from(*bins) * factor / 2.0)
        .collect();
    let datasets = root["multiscales"][0]["datasets"].as_array_mut();
    datasets.expect("a list").push(json!({
        "path": "1", "coordinateTransformations": [
            {"type": "scale", "scale": vec![factor; fine.axes.len()]},
            {"type": "translation", "translation": half},
        ],
    }));
    let block = &mut root["zarr_vectors"];
    block["cross_level_depth"] = json!(1);
    block["cross_level_storage"] = match links {
        PyramidLinks::Implicit => json!("implicit"),
        PyramidLinks::Explicit => json!("explicit"),
    };
    block["format_capabilities"] = json!(["shared_fragments", "multiscale_links"]);
    root
}

fn level(fine: &ExpectedStore, coarse: &ExpectedStore) -> Value {
    let mut block = json!({
        "level": 1, "object_sparsity": 1.0, "vertex_count": coarse.vertices.len(),
        "coarsening_method": "per_object", "parent_level": 0,
        "arrays_present": ["vertices"], "preserves_object_ids": true,
        "inherited_num_objects": fine.objects.as_ref().map_or(0, Vec::len),
        "shared_fragments": true,
    });
    if coarse.chunk_shape != fine.chunk_shape {
        block["chunk_shape"] = json!(coarse.chunk_shape);
    }
    json!({"zarr_vectors_level": block})
}

/// Writes vertices, fragments and objects of a coarser level. Paths consist of stretches that share
/// vertices, or each vertex is a fragment of several paths.
pub(super) fn write_level(coarse: &ExpectedStore, files: &mut Files, level: u32) {
    let is_current = coarse.recipe.profile.is_current();
    let grid = current::grid(coarse);
    let in_runs = coarse.recipe.kind.is_paths() && !coarse.recipe.seed.is_multiple_of(3);
    let runs = in_runs.then(|| split_into_runs(coarse));
    let filed = runs.as_ref().unwrap_or(coarse);
    let mut of_level = parts::per_chunk(coarse);
    of_level.retain(|(part, ..)| part != "vertex_fragments");
    let fragments = parts::per_chunk(filed).into_iter();
    of_level.extend(fragments.filter(|(part, ..)| part == "vertex_fragments"));
    for (part, attributes, cells) in of_level {
        let path = format!("{level}/{part}");
        if is_current {
            files.per_chunk(&path, attributes, &cells, &grid);
        } else {
            files.children(&path, &attributes, &cells);
        }
    }
    if is_current {
        current::objects(filed, files, &level.to_string());
    } else {
        older::objects(filed, files, &level.to_string());
    }
}

/// Links from one level to another.
struct Step {
    delta: i64,
    /// Size of a chunk of each level, in chunks of the root.
    scales: [u32; 2],
}

impl Step {
    fn write(&self, from: &ExpectedStore, files: &mut Files, records: &[Record]) {
        match from.recipe.profile {
            RecipeProfile::V09 | RecipeProfile::V10 => self.write_current(from, files, records),
            _ => self.write_older(from, files, records),
        }
    }

    fn path(&self, part: &str) -> String {
        let level = i64::from(self.delta < 0);
        format!("{level}/{part}/{:+}", self.delta)
    }

    fn write_current(&self, from: &ExpectedStore, files: &mut Files, records: &[Record]) {
        let width = LinkWidth::new(2).expect("a width");
        let arity = parts::arity(from);
        let mut filing = FilingRules::of_level(width, arity, true, false);
        let [source, target] = self.scales.map(|n| n.try_into().expect("not none"));
        filing.delta = self.delta;
        filing.scales = vec![AxisScales { source, target }; arity];
        let mut arrays: BTreeMap<String, (Value, BTreeMap<Vec<i64>, LinkRowsBuilder>)> =
            BTreeMap::new();
        for record in records {
            let filed = filing.file(record).expect("small offsets").remove(0);
            let axes = filing.scales.iter().zip(&record[0].0).zip(&record[1].0);
            let offset: Vec<i64> = axes
                .map(|((scales, a), b)| scales.offset(*a, *b).expect("small"))
                .collect();
            let array = arrays.entry(filed.segment);
            let (_, cells) = array.or_insert_with(|| (json!([offset]), BTreeMap::new()));
            let cell = cells
                .entry(filed.source)
                .or_insert_with(|| LinkRowsBuilder::new(width, RowForm::Plain));
            cell.push(filed.order, &filed.vertices).expect("a row");
        }
        let level = i64::from(self.delta < 0);
        files.group(&format!("{level}/links"), &json!({}));
        let path = self.path("links");
        files.group(
            &path,
            &json!({
                "zv_array": "links_family", "level_delta": self.delta, "link_width": 2,
                "directed": true, "store": "canonical", "sid_ndim": arity,
                "num_links": records.len(), "num_physical_records": records.len(),
            }),
        );
        for (segment, (offsets, cells)) in arrays {
            let cells: Payloads = cells
                .into_iter()
                .map(|(chunk, rows)| (chunk, rows.finish_ragged()))
                .collect();
            let attributes = json!({
                "zv_array": "links", "dtype": "int64", "offsets": offsets, "has_perm": false,
                "link_width": 2, "level_delta": self.delta,
            });
            let path = format!("{path}/{segment}");
            files.per_chunk(&path, attributes, &cells, &current::grid(from));
        }
    }

    /// Links between chunks of equal coordinates are omitted.
    fn write_older(&self, from: &ExpectedStore, files: &mut Files, records: &[Record]) {
        let width = LinkWidth::new(2).expect("a width");
        let mut inside: BTreeMap<Vec<i64>, LinkRowsBuilder> = BTreeMap::new();
        let mut between: BTreeMap<String, LinkRowsBuilder> = BTreeMap::new();
        let mut count = 0;
        for record in records {
            let rows = |order: &Permutation| -> Vec<u64> {
                let slots = order.slots().iter();
                slots.map(|slot| record[usize::from(*slot)].1).collect()
            };
            if record[0].0 == record[1].0 {
                let order = Permutation::identity(width);
                let cell = inside
                    .entry(record[0].0.clone())
                    .or_insert_with(|| LinkRowsBuilder::new(width, RowForm::Plain));
                let rows = rows(&order);
                cell.push(order, &rows).expect("a row");
                continue;
            }
            count += 1;
            let order = Permutation::sorting(record).expect("two ends");
            let slots = order.slots().iter();
            let chunks = slots.flat_map(|slot| record[usize::from(*slot)].0.iter().copied());
            let key = ChunkCoords(&chunks.collect::<Vec<i64>>()).to_string();
            let cell = between
                .entry(key)
                .or_insert_with(|| LinkRowsBuilder::new(width, RowForm::Permuted));
            let rows = rows(&order);
            cell.push(order, &rows).expect("a row");
        }
        let cells: Payloads = inside
            .into_iter()
            .map(|(chunk, rows)| (chunk, rows.finish_ragged()))
            .collect();
        let attributes = json!({
            "zv_array": "links", "dtype": "int64", "link_width": 2, "level_delta": self.delta,
        });
        files.children(&self.path("links"), &attributes, &cells);
        let path = self.path("cross_chunk_links");
        let attributes = json!({
            "zv_array": "cross_chunk_links", "level_delta": self.delta, "link_width": 2,
            "num_links": count, "sid_ndim": parts::arity(from),
        });
        files.group(&path, &attributes);
        for (key, rows) in between {
            files.blob(&format!("{path}/{key}"), json!({}), &rows.finish_cell());
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "this is how it is stored")]
pub(super) fn single(value: f64) -> f64 {
    f64::from(value as f32) + 0.0
}
