//! The expected result of a query, derived from the documentation and the known content of the
//! store. Every vertex, path and link is examined, nothing is pruned.

use std::{cmp::Ordering, collections::BTreeSet, ops::Range};

use zvf::Owner;
use zvf_query::{
    Clip, NearestTo, Query, Region,
    geometry::{
        Mode, Primitive, squared_distance_to_point, squared_distance_to_segment,
        squared_distance_to_triangle,
    },
};
use zvf_testkit::stores::{ExpectedStore, Object};

use super::{clip, filter::Filter};

/// The expected content of a result, by items of the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Expected {
    /// Identity of each row.
    pub(super) rows: Vec<ExpectedRow>,
    /// Paths: the object and the rows of each.
    pub(super) parts: Option<Vec<(i64, Range<usize>)>>,
    /// Links: number, and the rows of the ends.
    pub(super) links: Option<Vec<(usize, Vec<usize>)>>,
    /// Ids of objects.
    pub(super) objects: Vec<i64>,
    /// Vertices and links on the border of the box, in any order.
    pub(super) cut: Option<clip::Cut>,
}

/// Identity of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ExpectedRow {
    /// A vertex of the store.
    Vertex(usize),
    /// A new vertex between two others.
    Between {
        position: Vec<f64>,
        ends: [usize; 2],
        /// From 0 at the first end to 1 at the second.
        t: f64,
    },
}

impl ExpectedRow {
    pub(super) fn position<'a>(&'a self, truth: &'a ExpectedStore) -> &'a [f64] {
        match self {
            Self::Vertex(vertex) => &truth.vertices[*vertex].position,
            Self::Between { position, .. } => position,
        }
    }
}

/// Known content and a query of it.
pub(super) struct Selected<'a> {
    pub(super) truth: &'a ExpectedStore,
    pub(super) query: &'a Query,
    filter: Filter<'a>,
}

/// Returns the expected result.
pub(super) fn expect(truth: &ExpectedStore, query: &Query) -> Expected {
    let requested = Selected {
        truth,
        query,
        filter: Filter::new(truth, query.filter.as_ref()),
    };
    let selected = requested.ids();
    let ids = selected.as_deref();
    let kind = truth.recipe.kind;
    if kind.is_points() {
        requested.points(ids)
    } else if kind.is_paths() {
        requested.paths(ids)
    } else {
        requested.linked(ids)
    }
}

impl Selected<'_> {
    /// Returns the requested ids, `None` without such a selection: objects as named, then members
    /// of groups by ascending id.
    fn ids(&self) -> Option<Vec<i64>> {
        if self.query.objects.is_none() && self.query.groups.is_none() {
            return None;
        }
        let mut ids = self.query.objects.clone().unwrap_or_default();
        let groups = self.query.groups.iter().flatten();
        let members: BTreeSet<i64> = groups
            .flat_map(|group| {
                let groups = self.truth.groups.as_deref().unwrap_or_default();
                groups[usize::try_from(*group).unwrap()].clone()
            })
            .filter(|member| !ids.contains(member))
            .collect();
        ids.extend(members);
        Some(ids)
    }

    fn object(&self, id: i64) -> Option<&Object> {
        let mut objects = self.truth.objects.iter().flatten();
        objects.find(|object| object.id == id)
    }

    /// Returns objects in index order, or as requested.
    fn objects(&self, ids: Option<&[i64]>) -> Vec<&Object> {
        match ids {
            Some(ids) => ids.iter().filter_map(|id| self.object(*id)).collect(),
            None => self.truth.objects.iter().flatten().collect(),
        }
    }

    fn position(&self, vertex: usize) -> &[f64] {
        &self.truth.vertices[vertex].position
    }

    pub(super) fn in_region(&self, primitive: Primitive<'_>, within: bool) -> bool {
        match (&self.query.region, within) {
            (None, _) => true,
            (Some(Region::Box(bbox)), false) => bbox.touches(primitive),
            (Some(Region::Box(bbox)), true) => bbox.contains(primitive),
            (Some(Region::Sphere(sphere)), false) => sphere.touches(primitive),
            (Some(Region::Sphere(sphere)), true) => sphere.contains(primitive),
        }
    }

    fn has(&self, vertex: usize) -> bool {
        self.in_region(Primitive::Point(self.position(vertex)), false)
    }

    /// Returns whether the query may select from the chunk.
    fn chunk(&self, chunk: &[i64]) -> bool {
        let listed = self.query.chunks.as_ref().is_none_or(|chunks| {
            let mut chunks = chunks.iter();
            chunks.any(|listed| listed.coords() == chunk)
        });
        let value = self.query.chunked_by.as_ref().is_none_or(|value| {
            let (_, values) = self.truth.chunked_by.as_ref().unwrap();
            let at = values.iter().position(|known| *value == (*known).into());
            at.and_then(|at| i64::try_from(at).ok()) == chunk.first().copied()
        });
        listed && value
    }

    /// Returns whether the objects and chunks of the query allow a vertex.
    fn eligible(&self, vertex: usize) -> bool {
        self.chunk(&self.truth.vertices[vertex].chunk) && self.filter.objects_of(vertex)
    }

    /// Returns the nearest of `items`, nearest first; all if the query has no position.
    fn nearest<T>(&self, items: Vec<T>, squared: impl Fn(&T, &NearestTo) -> f64) -> Vec<T> {
        let Some(nearest) = &self.query.nearest else {
            return items;
        };
        let distances = items.iter().map(|item| squared(item, nearest)).enumerate();
        let mut order: Vec<(usize, f64)> = distances.collect();
        order.sort_by(|(_, a), (_, b)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        order.truncate(nearest.count);
        let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
        let kept = order.into_iter();
        kept.filter_map(|(at, _)| items[at].take()).collect()
    }

    fn limited<T>(&self, mut items: Vec<T>) -> Vec<T> {
        if let Some(limit) = self.query.limit {
            items.truncate(usize::try_from(limit).unwrap());
        }
        items
    }

    fn points(&self, ids: Option<&[i64]>) -> Expected {
        let by_object = ids.is_some() || self.filter.is_on_objects();
        let all: Vec<usize> = if by_object {
            let objects = self.objects(ids).into_iter();
            let vertices = objects.flat_map(|object| self.truth.vertices_of(object));
            vertices.collect()
        } else {
            (0..self.truth.vertices.len()).collect()
        };
        let is_in = |vertex: &usize| {
            self.eligible(*vertex) && self.has(*vertex) && self.filter.vertex(*vertex)
        };
        let selected = all.into_iter().filter(is_in).collect();
        let selected = self.nearest(selected, |vertex, nearest| {
            squared_distance_to_point(self.position(*vertex), &nearest.position)
        });
        let rows = self.limited(selected);
        let mut objects = self.objects_of(&rows);
        if !by_object {
            objects.sort_unstable();
        }
        let rows = rows.into_iter().map(ExpectedRow::Vertex).collect();
        Expected {
            rows,
            objects,
            ..Expected::default()
        }
    }

    /// Returns the objects of vertices, in order of appearance.
    fn objects_of(&self, vertices: &[usize]) -> Vec<i64> {
        let found = vertices
            .iter()
            .filter_map(|at| self.truth.vertices[*at].object);
        let mut objects = Vec::new();
        for id in found {
            if id != Owner::SEVERAL && !objects.contains(&id) {
                objects.push(id);
            }
        }
        objects
    }

    fn paths(&self, ids: Option<&[i64]>) -> Expected {
        let mut runs: Vec<(i64, Vec<ExpectedRow>)> = Vec::new();
        for object in self.objects(ids) {
            let mut all = self.truth.objects.iter().flatten();
            if !self
                .filter
                .object(all.position(|other| other.id == object.id))
            {
                continue;
            }
            for path in self.runs(object) {
                for path in self.parts_by_filter(&path) {
                    if self.query.mode == Mode::Clip {
                        let parts = self.clipped(path);
                        runs.extend(parts.into_iter().map(|part| (object.id, part)));
                    } else if self.selects_path(path) {
                        let path = path.iter().copied().map(ExpectedRow::Vertex).collect();
                        runs.push((object.id, path));
                    }
                }
            }
        }
        let runs = self.nearest(runs, |(_, path), nearest| {
            let positions: Vec<&[f64]> = path
                .iter()
                .map(|expected_row| expected_row.position(self.truth))
                .collect();
            let alone = squared_distance_to_point(positions[0], &nearest.position);
            let pairs = positions.windows(2);
            pairs.fold(alone, |min, pair| {
                min.min(squared_distance_to_segment(
                    &nearest.position,
                    [pair[0], pair[1]],
                ))
            })
        });
        let mut expected = Expected {
            parts: Some(Vec::new()),
            ..Expected::default()
        };
        for (id, path) in self.limited(runs) {
            let start = expected.rows.len();
            expected.rows.extend(path);
            let range = start..expected.rows.len();
            expected.parts.as_mut().unwrap().push((id, range));
            if !expected.objects.contains(&id) {
                expected.objects.push(id);
            }
        }
        expected
    }

    /// Splits the path of an object into runs in allowed chunks.
    fn runs(&self, object: &Object) -> Vec<Vec<usize>> {
        let mut runs: Vec<Vec<usize>> = vec![Vec::new()];
        for fragment in &object.fragments {
            let fragment = &self.truth.fragments[*fragment];
            if self.chunk(&fragment.chunk) {
                runs.last_mut().unwrap().extend(fragment.vertices.clone());
            } else {
                runs.push(Vec::new());
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    fn selects_path(&self, path: &[usize]) -> bool {
        let within = self.query.mode == Mode::Within;
        let segments = path.windows(2);
        let at = |vertex: usize| self.position(vertex);
        if within || path.len() == 1 {
            path.iter().all(|vertex| self.has(*vertex))
        } else {
            let mut segments = segments.map(|pair| [at(pair[0]), at(pair[1])]);
            segments.any(|ends| self.in_region(Primitive::Segment(ends), false))
        }
    }

    /// Returns the parts of a path that the predicate selects.
    fn parts_by_filter<'p>(&self, path: &'p [usize]) -> Vec<&'p [usize]> {
        let is_true = |at: usize| self.filter.vertex(path[at]);
        let mut all = 0..path.len();
        let is_whole = match self.query.predicate_mode {
            Mode::Touch => all.any(is_true),
            Mode::Within => all.all(is_true),
            Mode::Clip => {
                let runs = clip::runs(path.len(), is_true);
                return runs.into_iter().map(|run| &path[run]).collect();
            }
        };
        is_whole.then_some(path).into_iter().collect()
    }

    /// Returns the parts of a path inside the region.
    fn clipped(&self, path: &[usize]) -> Vec<Vec<ExpectedRow>> {
        let mut parts = Vec::new();
        let bbox = match &self.query.region {
            Some(Region::Box(bbox)) if self.query.clip == Clip::Split => Some(bbox),
            _ => None,
        };
        let keep = |at: usize| bbox.is_some() || self.has(path[at]);
        for range in clip::runs(path.len(), keep) {
            let run = &path[range];
            match bbox {
                Some(bbox) => parts.extend(clip::path(self.truth, run, bbox)),
                None => parts.push(run.iter().copied().map(ExpectedRow::Vertex).collect()),
            }
        }
        parts
    }

    /// Handles graphs, skeletons and meshes.
    fn linked(&self, ids: Option<&[i64]>) -> Expected {
        let chosen = |vertex: &usize| {
            let object = self.truth.vertices[*vertex].object;
            ids.is_none_or(|ids| object.is_some_and(|id| ids.contains(&id)))
        };
        let eligible: Vec<usize> = (0..self.truth.vertices.len())
            .filter(|vertex| chosen(vertex) && self.eligible(*vertex))
            .collect();
        let is_in = |vertex: &usize| self.has(*vertex) && self.filter.vertex(*vertex);
        let inside: Vec<usize> = eligible.iter().copied().filter(is_in).collect();
        let is_selected = |link: &usize| {
            let mut ends = self.truth.links[*link].ends.iter();
            let there = ends.all(|end| eligible.contains(end)) && self.filter.link(*link);
            there && self.selects_link(*link)
        };
        let links: Vec<usize> = self.link_order().into_iter().filter(is_selected).collect();
        // If links are selected, vertices are included only as their ends.
        let picks = self.query.limit.is_some() && !links.is_empty();
        let by_links = picks || self.query.nearest.is_some() || self.filter.is_on_links();
        let links = self.nearest(links, |link, nearest| self.squared_to_link(*link, nearest));
        let links = self.limited(links);
        let ends: BTreeSet<usize> = links
            .iter()
            .flat_map(|link| self.truth.links[*link].ends.clone())
            .collect();
        let cuts = self.query.mode == Mode::Clip && self.query.clip == Clip::Split;
        if let (true, Some(Region::Box(bbox))) = (cuts, &self.query.region) {
            let rows = inside
                .into_iter()
                .filter(|vertex| !by_links || ends.contains(vertex));
            let rows = if links.is_empty() {
                self.limited(rows.collect())
            } else {
                rows.collect()
            };
            let cut = clip::links(self.truth, &links, bbox);
            return Expected {
                rows: rows.into_iter().map(ExpectedRow::Vertex).collect(),
                links: Some(Vec::new()),
                cut: Some(cut),
                ..Expected::default()
            };
        }
        let rows = if by_links {
            ends.into_iter().collect()
        } else {
            let rows = ends.into_iter().chain(inside).collect::<BTreeSet<usize>>();
            self.limited(rows.into_iter().collect())
        };
        self.with_links(&links, rows)
    }

    fn with_links(&self, links: &[usize], rows: Vec<usize>) -> Expected {
        let row_of = |end: &usize| rows.iter().position(|row| row == end).unwrap();
        let ends = |link: &usize| {
            let ends = self.truth.links[*link].ends.iter();
            (*link, ends.map(row_of).collect())
        };
        let mut objects = self.objects_of(&rows);
        objects.sort_unstable();
        Expected {
            links: Some(links.iter().map(ends).collect()),
            objects,
            rows: rows.into_iter().map(ExpectedRow::Vertex).collect(),
            ..Expected::default()
        }
    }

    /// Returns links in stored order; those of skeletons by child.
    fn link_order(&self) -> Vec<usize> {
        let mut order = self.truth.link_order.clone();
        let implied = self
            .truth
            .links
            .iter()
            .enumerate()
            .filter(|(_, link)| !link.stored);
        order.extend(implied.map(|(number, _)| number));
        if self.truth.recipe.kind.is_skeleton() {
            order.sort_by_key(|link| self.truth.links[*link].ends[0]);
        }
        order
    }

    fn selects_link(&self, link: usize) -> bool {
        let corners = self.corners(link);
        // A clipped link is selected if part of it lies in the box.
        let cuts = self.query.mode == Mode::Clip && self.query.clip == Clip::Split;
        let all = self.query.mode != Mode::Touch && !cuts;
        let primitive = match corners.as_slice() {
            [a, b] => Primitive::Segment([a, b]),
            corners => Primitive::Polygon(corners),
        };
        self.in_region(primitive, all) && self.selects_link_by_filter(link)
    }

    /// All ends of a link must satisfy the predicate, unless links are requested for that touch such a
    /// vertex.
    fn selects_link_by_filter(&self, link: usize) -> bool {
        let mut ends = self.truth.links[link].ends.iter();
        if self.query.predicate_mode == Mode::Touch {
            ends.any(|end| self.filter.vertex(*end))
        } else {
            ends.all(|end| self.filter.vertex(*end))
        }
    }

    fn corners(&self, link: usize) -> Vec<&[f64]> {
        let ends = self.truth.links[link].ends.iter();
        ends.map(|end| self.position(*end)).collect()
    }

    fn squared_to_link(&self, link: usize, nearest: &NearestTo) -> f64 {
        match self.corners(link).as_slice() {
            [a, b] => squared_distance_to_segment(&nearest.position, [a, b]),
            corners => {
                let fan = corners.windows(2).skip(1);
                let triangles = fan.map(|pair| [corners[0], pair[0], pair[1]]);
                let distances = triangles
                    .map(|corners| squared_distance_to_triangle(&nearest.position, corners));
                distances.fold(f64::INFINITY, f64::min)
            }
        }
    }
}
