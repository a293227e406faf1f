//! Random geometry of each kind.

use std::collections::BTreeMap;

use super::{
    Recipe, StoreKind,
    random::Random,
    sketch::{FragmentRef, Sketch, Space},
};

/// Generates geometry for the recipe.
pub(super) fn sketch(recipe: &Recipe, space: &Space, random: &mut Random) -> Sketch {
    let mut generator = GeometryGenerator {
        recipe,
        space,
        random,
        sketch: Sketch::default(),
    };
    match recipe.kind {
        StoreKind::Points | StoreKind::BinnedPoints => generator.points(),
        StoreKind::ObjectPoints => generator.object_points(),
        StoreKind::Lines => generator.lines(),
        StoreKind::Polylines => generator.polylines(),
        StoreKind::Graph | StoreKind::Triangles | StoreKind::Quads => generator.linked(),
        StoreKind::Skeleton | StoreKind::StreamedSkeleton => generator.skeleton(),
    }
    generator.sketch
}

pub(super) struct GeometryGenerator<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) space: &'a Space,
    pub(super) random: &'a mut Random,
    pub(super) sketch: Sketch,
}

impl GeometryGenerator<'_> {
    /// Returns a position, sometimes that of another vertex.
    fn place(&mut self) -> Vec<f64> {
        if !self.sketch.positions.is_empty() && self.random.chance(8) {
            return self.random.pick(&self.sketch.positions).clone();
        }
        self.space.place(self.recipe, self.random)
    }

    fn count(&mut self, per: usize) -> usize {
        1 + self.random.below(self.recipe.size.max(1)) / per.max(1)
    }

    /// Returns ids of this many objects: row numbers, or arbitrary ids if there is an id table.
    fn ids(&mut self, count: usize) -> Vec<i64> {
        let rows = i64::try_from(count).unwrap_or(i64::MAX);
        if !self.recipe.profile.is_current() || self.random.chance(30) {
            return (0..rows).collect();
        }
        let mut ids = Vec::new();
        while ids.len() < count {
            let id = match self.random.below(3) {
                0 => self.random.between(0, 99),
                1 => self.random.any().cast_signed() >> 1,
                _ => self.random.between(-(1 << 40), 1 << 40),
            };
            // -1 and -2 stand for no object and for several.
            if !ids.contains(&id) && !(-2..0).contains(&id) {
                ids.push(id);
            }
        }
        if self.random.chance(50) {
            ids.sort_unstable();
        }
        ids
    }

    fn points(&mut self) {
        let bins = self.space.bins();
        for _ in 0..self.count(1) {
            let place = self.place();
            let value = self.space.any_value(self.random);
            let key = self.space.key(value, &place);
            let bin = if bins == 1 {
                0
            } else {
                self.space.bin_of(&place)
            };
            let vertex = self.sketch.vertex(place);
            let fragments = self.sketch.chunks.entry(key);
            fragments.or_insert_with(|| vec![Vec::new(); bins])[bin].push(vertex);
        }
    }

    fn object_points(&mut self) {
        let objects = self.count(6);
        let mut own = vec![Vec::new(); objects];
        for _ in 0..self.count(1) {
            let place = self.place();
            let value = self.space.any_value(self.random);
            let vertex = self.sketch.vertex(place);
            let object = self.random.below(objects);
            own[object].push((vertex, value));
        }
        self.file(&own);
    }

    /// Creates one fragment for each object in each chunk, by object; vertices of some objects may
    /// have no fragment.
    pub(super) fn file(&mut self, own: &[Vec<(usize, Option<i64>)>]) {
        let mut ids = self.ids(own.len());
        if self.recipe.kind != StoreKind::ObjectPoints {
            ids.sort_unstable();
        }
        let mut by_id: Vec<usize> = (0..own.len()).collect();
        by_id.sort_by_key(|object| ids[*object]);
        let mut manifests: Vec<Vec<FragmentRef>> = vec![Vec::new(); own.len()];
        for object in by_id {
            let mut chunks: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
            for (vertex, value) in &own[object] {
                let key = self.space.key(*value, &self.sketch.positions[*vertex]);
                chunks.entry(key).or_default().push(*vertex);
            }
            for (chunk, vertices) in chunks {
                let fragment = self.sketch.fragment(&chunk, vertices);
                manifests[object].push(fragment);
            }
        }
        let current = self.recipe.profile.is_current();
        if self.recipe.kind == StoreKind::ObjectPoints && current && self.random.chance(20) {
            let empty = self.random.below(manifests.len());
            manifests[empty].clear();
        }
        self.sketch.objects = Some(ids.into_iter().zip(manifests).collect());
    }

    fn lines(&mut self) {
        let count = self.count(2);
        let ids = self.ids(count);
        let mut objects = Vec::new();
        for id in ids {
            let start = self.place();
            let end = match self.random.below(4) {
                0 => self.place(),
                _ => self.space.step(&start, self.recipe, self.random),
            };
            let value = self.space.any_value(self.random);
            objects.push((id, self.path(&[(start, value), (end, value)])));
        }
        self.sketch.objects = Some(objects);
    }

    fn polylines(&mut self) {
        let count = self.count(6);
        let ids = self.ids(count);
        let mut objects = Vec::new();
        for id in ids {
            let length = match self.random.below(8) {
                0 => 0,
                1 => 1,
                _ => 2 + self.random.below(12),
            };
            let mut path: Vec<(Vec<f64>, Option<i64>)> = Vec::new();
            for _ in 0..length {
                let (place, value) = match path.last().cloned() {
                    Some((last, value)) => {
                        let place = self.space.step(&last, self.recipe, self.random);
                        let stays = self.random.chance(80);
                        let other = self.space.any_value(self.random);
                        (place, if stays { value } else { other })
                    }
                    None => (self.place(), self.space.any_value(self.random)),
                };
                path.push((place, value));
            }
            objects.push((id, self.path(&path)));
        }
        self.sketch.objects = Some(objects);
    }

    /// Adds a path, split where the chunk changes; consecutive pieces are linked.
    pub(super) fn path(&mut self, path: &[(Vec<f64>, Option<i64>)]) -> Vec<FragmentRef> {
        let mut manifest = Vec::new();
        let mut last: Option<(Vec<i64>, usize)> = None;
        for (place, value) in path {
            let key = self.space.key(*value, place);
            let vertex = self.sketch.vertex(place.clone());
            match &last {
                Some((chunk, _)) if *chunk == key => {
                    let fragments = self.sketch.chunks.get_mut(&key);
                    let fragment = fragments.and_then(|fragments| fragments.last_mut());
                    fragment.expect("the fragment before").push(vertex);
                }
                _ => {
                    manifest.push(self.sketch.fragment(&key, vec![vertex]));
                    if let Some((_, before)) = last {
                        self.sketch.links.push((vec![before, vertex], true));
                    }
                }
            }
            last = Some((key, vertex));
        }
        manifest
    }

    /// Generates graphs and meshes.
    fn linked(&mut self) {
        let objects = if self.random.chance(40) {
            1
        } else {
            self.count(15)
        };
        let mut own: Vec<Vec<(usize, Option<i64>)>> = vec![Vec::new(); objects];
        let values: Vec<_> = own
            .iter()
            .map(|_| self.space.any_value(self.random))
            .collect();
        for _ in 0..self.count(1) {
            let object = self.random.below(objects);
            let near = own[object].last().map(|(vertex, _)| *vertex);
            let place = match near {
                Some(vertex) if self.random.chance(60) => {
                    let from = self.sketch.positions[vertex].clone();
                    self.space.step(&from, self.recipe, self.random)
                }
                _ => self.place(),
            };
            let vertex = self.sketch.vertex(place);
            own[object].push((vertex, values[object]));
        }
        let width = self.recipe.kind.width();
        let mixed = self.random.chance(25);
        let all: Vec<usize> = (0..self.sketch.positions.len()).collect();
        for _ in 0..self.random.below(self.recipe.size + 1) {
            let object: Vec<usize> = self.random.pick(&own).iter().map(|(v, _)| *v).collect();
            let from = if mixed || object.is_empty() {
                &all
            } else {
                &object
            };
            let first = self.random.below(from.len());
            let near = self.random.chance(60);
            let mut ends = vec![from[first]];
            for step in 1..width {
                let at = if near {
                    (first + step) % from.len()
                } else {
                    self.random.below(from.len())
                };
                ends.push(from[at]);
            }
            // Edges may be loops; corners of a face are distinct vertices.
            let distinct = ends
                .iter()
                .enumerate()
                .all(|(at, end)| !ends[..at].contains(end));
            if width > 2 && !distinct {
                continue;
            }
            self.random.shuffle(&mut ends);
            self.sketch.links.push((ends.clone(), true));
            if self.random.chance(5) {
                self.sketch.links.push((ends, true));
            }
        }
        self.file(&own);
    }

    fn skeleton(&mut self) {
        let trees = self.count(12);
        let mut own: Vec<Vec<(usize, Option<i64>)>> = Vec::new();
        let mut parents: Vec<Option<usize>> = Vec::new();
        for _ in 0..trees {
            let mut tree: Vec<(usize, Option<i64>)> = Vec::new();
            for _ in 0..=self.random.below(14) {
                // Depth first: the parent is on the branch of the last vertex.
                let mut parent = tree.last().map(|(vertex, _)| *vertex);
                while let Some(before) = parent.and_then(|vertex| parents[vertex]) {
                    if self.random.chance(80) {
                        break;
                    }
                    parent = Some(before);
                }
                let place = match parent {
                    Some(parent) => {
                        let from = self.sketch.positions[parent].clone();
                        self.space.step(&from, self.recipe, self.random)
                    }
                    None => self.place(),
                };
                tree.push((self.sketch.vertex(place), None));
                parents.push(parent);
            }
            own.push(tree);
        }
        if self.recipe.kind == StoreKind::StreamedSkeleton {
            self.stream(&own, &parents);
        } else {
            self.file(&own);
        }
        let mut before = vec![None; parents.len()];
        for fragments in self.sketch.chunks.values() {
            for fragment in fragments {
                for pair in fragment.windows(2) {
                    before[pair[1]] = Some(pair[0]);
                }
            }
        }
        for (child, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                let implied = before[child] == Some(*parent);
                self.sketch.links.push((vec![child, *parent], !implied));
            }
        }
        // A vertex that follows another in a fragment is its child; the format cannot express a
        // missing parent.
        let mut pairs = before.iter().zip(&parents);
        assert!(
            pairs.all(|(before, parent)| before.is_none() || parent.is_some()),
            "a root is the first of its object in its chunk"
        );
    }

    /// Generates a skeleton whose fragments are paths without branches.
    fn stream(&mut self, own: &[Vec<(usize, Option<i64>)>], parents: &[Option<usize>]) {
        let mut ids = self.ids(own.len());
        ids.sort_unstable();
        let mut objects = Vec::new();
        for (id, tree) in ids.into_iter().zip(own) {
            let mut manifest: Vec<FragmentRef> = Vec::new();
            for (vertex, _) in tree {
                let key = self.space.key(None, &self.sketch.positions[*vertex]);
                let open = manifest.iter().find(|(chunk, number)| {
                    let fragments = self.sketch.chunks.get(chunk);
                    let last = fragments.and_then(|all| all[*number].last());
                    *chunk == key && last.is_some() && last == parents[*vertex].as_ref()
                });
                if let Some((chunk, number)) = open.cloned() {
                    let fragments = self.sketch.chunks.get_mut(&chunk);
                    fragments.expect("a fragment of it")[number].push(*vertex);
                } else {
                    manifest.push(self.sketch.fragment(&key, vec![*vertex]));
                }
            }
            objects.push((id, manifest));
        }
        self.sketch.objects = Some(objects);
    }
}
