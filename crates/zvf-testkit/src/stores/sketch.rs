//! Geometry before it has rows: vertices in fragments of chunks.

use std::collections::BTreeMap;

use super::{
    ExpectedFragment, ExpectedStore, Link, Object, Recipe, Vertex, columns,
    numbers::{floor, whole},
    parts,
    random::Random,
    truth::{ExpectedAttribute, ExpectedValues},
};

/// Location of a fragment: its chunk, and its number in it.
pub(super) type FragmentRef = (Vec<i64>, usize);

/// Geometry without row numbers. Vertices are numbered in order of creation.
#[derive(Debug, Default)]
pub(super) struct Sketch {
    pub(super) positions: Vec<Vec<f64>>,
    /// The vertices of each fragment of each chunk.
    pub(super) chunks: BTreeMap<Vec<i64>, Vec<Vec<usize>>>,
    pub(super) objects: Option<Vec<(i64, Vec<FragmentRef>)>>,
    pub(super) links: Vec<(Vec<usize>, bool)>,
}

/// Division of space by a store.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub(super) chunk_shape: Vec<f64>,
    pub(super) bins_per_chunk: Vec<u32>,
    pub(super) chunked_by: Option<(String, Vec<i64>)>,
}

impl Space {
    pub(super) fn new(recipe: &Recipe, random: &mut Random) -> Self {
        let extents = [0.1, 0.3, 1.0, 2.5, 7.0, 10.0];
        let binned = recipe.kind == super::StoreKind::BinnedPoints;
        let chunk_shape = (0..recipe.axes).map(|_| *random.pick(&extents)).collect();
        let mut bins_per_chunk = vec![1; recipe.axes];
        if binned {
            let max: &[u32] = if recipe.axes > 3 {
                &[1, 2]
            } else {
                &[1, 2, 3, 4]
            };
            bins_per_chunk.fill_with(|| *random.pick(max));
            bins_per_chunk[0] = bins_per_chunk[0].max(2);
        }
        let values = [vec![2, 5, 9], vec![-3, 4], vec![7]];
        let chunked_by = recipe
            .chunked
            .then(|| ("label".to_owned(), random.pick(&values).clone()));
        Self {
            chunk_shape,
            bins_per_chunk,
            chunked_by,
        }
    }

    /// Returns the extent of a bin along an axis.
    pub(super) fn bin(&self, axis: usize) -> f64 {
        self.chunk_shape[axis] / f64::from(self.bins_per_chunk[axis])
    }

    /// Returns a position, often on a border of chunks or bins.
    pub(super) fn place(&self, recipe: &Recipe, random: &mut Random) -> Vec<f64> {
        let axes = self.chunk_shape.iter().enumerate();
        let place = axes.map(|(axis, extent)| {
            let value = match random.below(10) {
                0..=3 => whole(random.between(-3, 3)) * extent,
                4..=5 => whole(random.between(-7, 7)) * self.bin(axis),
                6 => whole(random.between(-6, 6)) * extent / 2.0,
                _ => (random.unit() * 6.0 - 3.0) * extent,
            };
            rounded(value, recipe.double)
        });
        place.collect()
    }

    /// Returns a position near another one, or anywhere.
    pub(super) fn step(&self, from: &[f64], recipe: &Recipe, random: &mut Random) -> Vec<f64> {
        if random.chance(12) {
            return self.place(recipe, random);
        }
        let axes = from.iter().zip(&self.chunk_shape);
        let near = axes.map(|(from, extent)| match random.below(4) {
            0 => *from,
            1 => rounded((from / extent).round() * extent, recipe.double),
            _ => rounded(from + (random.unit() - 0.5) * extent * 1.2, recipe.double),
        });
        near.collect()
    }

    /// Returns the chunk of a position, without the leading axis.
    pub(super) fn chunk(&self, place: &[f64]) -> Vec<i64> {
        let axes = place.iter().enumerate();
        let chunk = axes.map(|(axis, value)| {
            let bins = i64::from(self.bins_per_chunk[axis]);
            if bins == 1 {
                floor(value / self.chunk_shape[axis])
            } else {
                floor(value / self.bin(axis)).div_euclid(bins)
            }
        });
        chunk.collect()
    }

    /// Returns the number of the bin of a position in its chunk.
    pub(super) fn bin_of(&self, place: &[f64]) -> usize {
        let axes = place.iter().enumerate();
        axes.fold(0, |number, (axis, value)| {
            let bins = i64::from(self.bins_per_chunk[axis]);
            let local = floor(value / self.bin(axis)).rem_euclid(bins);
            let local = usize::try_from(local).unwrap_or(0);
            number * usize::try_from(bins).unwrap_or(1) + local
        })
    }

    /// Returns the number of bins of a chunk.
    pub(super) fn bins(&self) -> usize {
        let bins = self.bins_per_chunk.iter();
        bins.map(|bins| usize::try_from(*bins).unwrap_or(1))
            .product()
    }

    /// Returns the number of a random value of the chunking attribute.
    pub(super) fn any_value(&self, random: &mut Random) -> Option<i64> {
        let (_, values) = self.chunked_by.as_ref()?;
        i64::try_from(random.below(values.len())).ok()
    }

    /// Returns the key of a chunk.
    pub(super) fn key(&self, value: Option<i64>, place: &[f64]) -> Vec<i64> {
        let mut key: Vec<i64> = value.into_iter().collect();
        key.extend(self.chunk(place));
        key
    }
}

impl Sketch {
    /// Adds a vertex.
    pub(super) fn vertex(&mut self, place: Vec<f64>) -> usize {
        self.positions.push(place);
        self.positions.len() - 1
    }

    /// Starts a fragment of a chunk.
    pub(super) fn fragment(&mut self, chunk: &[i64], vertices: Vec<usize>) -> FragmentRef {
        let fragments = self.chunks.entry(chunk.to_vec()).or_default();
        fragments.push(vertices);
        (chunk.to_vec(), fragments.len() - 1)
    }

    /// Assigns rows to vertices, and attributes to rows.
    pub(super) fn finish(
        self,
        recipe: &Recipe,
        space: Space,
        random: &mut Random,
    ) -> ExpectedStore {
        let (mut vertices, mut fragments) = (Vec::new(), Vec::new());
        let mut places = vec![0; self.positions.len()];
        let mut numbers = BTreeMap::new();
        for (chunk, lists) in &self.chunks {
            let count = lists.iter().map(Vec::len).sum();
            let mut rows: Vec<u64> = (0..parts::length(count)).collect();
            if recipe.shuffled {
                random.shuffle(&mut rows);
            }
            let mut rows = rows.into_iter();
            for (number, list) in lists.iter().enumerate() {
                let start = vertices.len();
                for (vertex, row) in list.iter().zip(&mut rows) {
                    places[*vertex] = vertices.len();
                    vertices.push(Vertex {
                        position: self.positions[*vertex].clone(),
                        chunk: chunk.clone(),
                        fragment: fragments.len(),
                        row,
                        object: None,
                    });
                }
                numbers.insert((chunk.clone(), number), fragments.len());
                fragments.push(ExpectedFragment {
                    chunk: chunk.clone(),
                    number: u32::try_from(number).unwrap_or(u32::MAX),
                    vertices: start..vertices.len(),
                });
            }
        }
        let object = |(id, manifest): (i64, Vec<FragmentRef>)| Object {
            id,
            fragments: manifest.iter().map(|at| numbers[at]).collect(),
        };
        let objects: Option<Vec<Object>> = self
            .objects
            .map(|all| all.into_iter().map(object).collect());
        for object in objects.iter().flatten() {
            let Object { id, fragments: own } = object;
            for vertex in own.iter().flat_map(|at| fragments[*at].vertices.clone()) {
                vertices[vertex].object = Some(*id);
            }
        }
        let links = self.links.into_iter().map(|(ends, stored)| Link {
            ends: ends.into_iter().map(|end| places[end]).collect(),
            stored,
        });
        let names = ["x", "y", "z", "w", "v"];
        let mut truth = ExpectedStore {
            recipe: recipe.clone(),
            axes: names
                .iter()
                .take(recipe.axes)
                .map(ToString::to_string)
                .collect(),
            chunk_shape: space.chunk_shape,
            bins_per_chunk: space.bins_per_chunk,
            chunked_by: space.chunked_by,
            vertices,
            fragments,
            objects,
            links: links.collect(),
            link_order: Vec::new(),
            groups: None,
            vertex_attributes: Vec::new(),
            fragment_attributes: Vec::new(),
            link_attributes: Vec::new(),
            object_attributes: Vec::new(),
            group_attributes: Vec::new(),
        };
        if recipe.attributes {
            columns::add(&mut truth, random);
        }
        truth
    }
}

#[expect(clippy::cast_possible_truncation, reason = "this is how it is rounded")]
fn rounded(value: f64, double: bool) -> f64 {
    // No negative zero, because it is the same position.
    let value = value + 0.0;
    if double {
        value
    } else {
        f64::from(value as f32) + 0.0
    }
}

impl ExpectedAttribute {
    /// Returns numbers for all rows.
    pub(super) fn numbers(
        name: &str,
        kind: zvf_format::numeric::Kind,
        columns: u32,
        bytes: Vec<u8>,
    ) -> Self {
        let row = kind.size() * usize::try_from(columns).unwrap_or(1);
        Self {
            name: name.to_owned(),
            missing: vec![false; bytes.len() / row],
            values: ExpectedValues::Numbers {
                kind,
                columns,
                bytes,
            },
        }
    }
}
