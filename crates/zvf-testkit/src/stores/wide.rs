//! Stores of many chunks, for measuring the cost of small queries.

use super::{
    Made, Recipe, StoreKind, columns, current,
    files::Files,
    kinds::GeometryGenerator,
    numbers::whole,
    parts,
    random::Random,
    sketch::{Sketch, Space},
};

/// Extent of a chunk.
const CHUNK: f64 = 10.0;
/// Vertices of a path.
const STEPS: usize = 40;

/// Generates a store of 0.9 with a cube of `side` × `side` × `side` non-empty chunks and one vertex
/// attribute: random points, random walks, or sheets of triangles.
pub fn wide(recipe: &Recipe, side: u32) -> Made {
    let recipe = Recipe {
        axes: 3,
        ..recipe.clone()
    };
    let mut random = Random::new(recipe.seed);
    let bins = if recipe.kind == StoreKind::BinnedPoints {
        2
    } else {
        1
    };
    let space = Space {
        chunk_shape: vec![CHUNK; 3],
        bins_per_chunk: vec![bins; 3],
        chunked_by: None,
    };
    let mut generator = GeometryGenerator {
        recipe: &recipe,
        space: &space,
        random: &mut random,
        sketch: Sketch::default(),
    };
    let extent = f64::from(side) * CHUNK;
    if recipe.kind.is_paths() {
        generator.random_walks(extent);
    } else if recipe.kind.is_linked() {
        generator.sheets(side, extent);
    } else {
        generator.scatter(extent);
    }
    let sketch = generator.sketch;
    let bare = Recipe {
        attributes: false,
        ..recipe.clone()
    };
    let mut truth = sketch.finish(&bare, space, &mut random);
    let radius = columns::floats("radius", truth.vertices.len(), 1, &mut random);
    truth.vertex_attributes = vec![radius];
    let mut files = Files::new(recipe.cells, random);
    files.group("", &parts::root(&truth));
    files.group("0", &current::level(&truth));
    current::write(&mut truth, &mut files);
    Made {
        files: files.finish(),
        truth,
    }
}

impl GeometryGenerator<'_> {
    fn random_position(&mut self, extent: f64) -> Vec<f64> {
        let axes = 0..self.space.chunk_shape.len();
        axes.map(|_| single(self.random.unit() * extent)).collect()
    }

    fn scatter(&mut self, extent: f64) {
        let bins = self.space.bins();
        for _ in 0..self.recipe.size {
            let place = self.random_position(extent);
            let (key, bin) = (self.space.chunk(&place), self.space.bin_of(&place));
            let vertex = self.sketch.vertex(place);
            let fragments = self.sketch.chunks.entry(key);
            fragments.or_insert_with(|| vec![Vec::new(); bins])[bin].push(vertex);
        }
    }

    fn random_walks(&mut self, extent: f64) {
        let mut objects = Vec::new();
        for id in 0..i64::try_from(self.recipe.size / STEPS).unwrap_or(0) {
            let mut place = self.random_position(extent);
            let mut path = Vec::with_capacity(STEPS);
            for _ in 0..STEPS {
                path.push((place.clone(), None));
                for value in &mut place {
                    let step = (self.random.unit() - 0.5) * CHUNK / 2.0;
                    *value = single((*value + step).clamp(0.0, extent - 1.0));
                }
            }
            objects.push((id, self.path(&path)));
        }
        self.sketch.objects = Some(objects);
    }

    /// Adds a sheet in each layer of chunks, as an object of its own.
    fn sheets(&mut self, side: u32, extent: f64) {
        let count = self.recipe.size / usize::try_from(side).unwrap_or(1);
        let edge = (1..=count).find(|edge| edge * edge > count).unwrap_or(2) - 1;
        let step = extent / whole(i64::try_from(edge).unwrap_or(1));
        let mut own = Vec::new();
        for layer in 0..side {
            let start = self.sketch.positions.len();
            for at in 0..edge * edge {
                let [x, y] = [at / edge, at % edge]
                    .map(|n| single((whole(i64::try_from(n).unwrap_or(0)) + 0.5) * step));
                let z = (f64::from(layer) + 0.3 + 0.4 * self.random.unit()) * CHUNK;
                self.sketch.vertex(vec![x, y, single(z)]);
            }
            for at in 0..edge * edge {
                if at % edge + 1 == edge || at / edge + 1 == edge {
                    continue;
                }
                let corner = start + at;
                let (right, below) = (corner + 1, corner + edge);
                self.sketch.links.push((vec![corner, right, below], true));
                self.sketch
                    .links
                    .push((vec![right, below + 1, below], true));
            }
            let end = self.sketch.positions.len();
            own.push((start..end).map(|vertex| (vertex, None)).collect());
        }
        self.file(&own);
    }
}

/// Rounds to float32.
#[expect(clippy::cast_possible_truncation, reason = "this is how it is rounded")]
fn single(value: f64) -> f64 {
    f64::from(value as f32)
}
