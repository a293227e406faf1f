//! What a query must answer, from what the documentation says and what is known
//! to be in the store: every vertex, path and link is looked at, nothing is skipped.
//!
//! Where the documentation leaves open which of two things is meant, both are
//! expected, the natural one first.

use std::{cmp::Ordering, ops::Range};

use zvf_query::{
    Cut, NearestTo, Query, Region,
    geometry::{Bbox, Mode, Primitive, squared_to_point, squared_to_segment, squared_to_triangle},
};
use zvf_testkit::stores::{Object, Truth};

use super::{clip, filter::Filter};

/// What an answer holds, by what is in the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Expected {
    /// What each row is.
    pub(super) rows: Vec<Spot>,
    /// Paths: the object and the rows of each.
    pub(super) parts: Option<Vec<(i64, Range<usize>)>>,
    /// Links: which, and the rows of its ends.
    pub(super) links: Option<Vec<(usize, Vec<usize>)>>,
    /// Ids of objects.
    pub(super) objects: Vec<i64>,
    /// Vertices and links on the border of the box, which may come in any order.
    pub(super) cut: Option<clip::Cut>,
}

/// What a row of an answer is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spot {
    /// A vertex of the store.
    Vertex(usize),
    /// A new one between two.
    Between {
        position: Vec<f64>,
        ends: [usize; 2],
        /// From 0 at the first end to 1 at the second.
        t: f64,
    },
}

impl Spot {
    pub(super) fn position<'a>(&'a self, truth: &'a Truth) -> &'a [f64] {
        match self {
            Self::Vertex(vertex) => &truth.vertices[*vertex].position,
            Self::Between { position, .. } => position,
        }
    }
}

/// A truth and what is asked of it.
pub(super) struct Asked<'a> {
    pub(super) truth: &'a Truth,
    pub(super) query: &'a Query,
    filter: Filter<'a>,
    reading: Reading,
}

/// One of two things that the documentation can mean.
#[derive(Clone, Copy, Default)]
struct Reading {
    /// Paths are in the order of rows of the object index, rather than of ids.
    by_row: bool,
    /// What is nearest comes first, rather than as it would without a place.
    nearest_first: bool,
}

/// All that may be answered; any one will do.
pub(super) fn expect(truth: &Truth, query: &Query) -> Vec<Expected> {
    let ids = truth.objects.iter().flatten().map(|object| object.id);
    let rows: &[bool] = if ids.is_sorted() {
        &[false]
    } else {
        &[false, true]
    };
    let places: &[bool] = if query.nearest.is_some() {
        &[false, true]
    } else {
        &[false]
    };
    let mut all = Vec::new();
    for by_row in rows {
        for nearest_first in places {
            let asked = Asked {
                truth,
                query,
                filter: Filter::new(truth, query.filter.as_ref()),
                reading: Reading {
                    by_row: *by_row,
                    nearest_first: *nearest_first,
                },
            };
            asked.expect(&mut all);
        }
    }
    all.dedup();
    all
}

impl Asked<'_> {
    fn expect(&self, all: &mut Vec<Expected>) {
        let kind = self.truth.recipe.kind;
        for ids in self.ids() {
            let ids = ids.as_deref();
            if kind.is_points() {
                all.push(self.points(ids));
            } else if kind.is_paths() {
                all.push(self.paths(ids, true));
                if self.query.mode == Mode::Clip {
                    all.push(self.paths(ids, false));
                }
            } else {
                all.extend(self.linked(ids));
            }
        }
    }

    /// The ids that are asked for; `None` when none are.
    fn ids(&self) -> Vec<Option<Vec<i64>>> {
        if self.query.objects.is_none() && self.query.groups.is_none() {
            return vec![None];
        }
        let named = self.query.objects.clone().unwrap_or_default();
        let groups = self.query.groups.iter().flatten();
        let members = groups.flat_map(|group| {
            let groups = self.truth.groups.as_deref().unwrap_or_default();
            groups[usize::try_from(*group).unwrap()].clone()
        });
        let members: Vec<i64> = members.collect();
        let mut once: Vec<i64> = Vec::new();
        for member in &members {
            if !once.contains(member) && !named.contains(member) {
                once.push(*member);
            }
        }
        let mut ascending = once.clone();
        ascending.sort_unstable();
        let orders = [once, ascending, members];
        let mut all: Vec<_> = orders
            .into_iter()
            .map(|members| Some([named.clone(), members].concat()))
            .collect();
        all.dedup();
        all
    }

    fn object(&self, id: i64) -> Option<&Object> {
        let mut objects = self.truth.objects.iter().flatten();
        objects.find(|object| object.id == id)
    }

    /// Objects by ascending id, or as asked for.
    fn objects(&self, ids: Option<&[i64]>) -> Vec<&Object> {
        if let Some(ids) = ids {
            return ids.iter().filter_map(|id| self.object(*id)).collect();
        }
        let mut all: Vec<&Object> = self.truth.objects.iter().flatten().collect();
        if !self.reading.by_row {
            all.sort_by_key(|object| object.id);
        }
        all
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

    /// Whether the chunk may be looked at.
    fn chunk(&self, chunk: &[i64]) -> bool {
        let listed = self.query.chunks.as_ref().is_none_or(|chunks| {
            let mut chunks = chunks.iter();
            chunks.any(|listed| listed.coords() == chunk)
        });
        let value = self.query.chunked_by.as_ref().is_none_or(|value| {
            let (_, values) = self.truth.chunked_by.as_ref().unwrap();
            let at = values.iter().position(|known| *value == *known);
            at.and_then(|at| i64::try_from(at).ok()) == chunk.first().copied()
        });
        listed && value
    }

    /// Whether objects and chunks let a vertex be selected.
    fn eligible(&self, vertex: usize) -> bool {
        let vertex = &self.truth.vertices[vertex];
        self.chunk(&vertex.chunk) && self.filter.object(vertex.object)
    }

    /// Those of `items` that are nearest, as they were; all without a place.
    fn nearest<T>(&self, items: Vec<T>, squared: impl Fn(&T, &NearestTo) -> f64) -> Vec<T> {
        let Some(nearest) = &self.query.nearest else {
            return items;
        };
        let distances = items.iter().map(|item| squared(item, nearest)).enumerate();
        let mut order: Vec<(usize, f64)> = distances.collect();
        order.sort_by(|(_, a), (_, b)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        order.truncate(nearest.count);
        let mut kept: Vec<usize> = order.into_iter().map(|(at, _)| at).collect();
        if !self.reading.nearest_first {
            kept.sort_unstable();
        }
        let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
        let kept = kept.into_iter();
        kept.filter_map(|at| items[at].take()).collect()
    }

    fn limited<T>(&self, mut items: Vec<T>) -> Vec<T> {
        if let Some(limit) = self.query.limit {
            items.truncate(usize::try_from(limit).unwrap());
        }
        items
    }

    fn points(&self, ids: Option<&[i64]>) -> Expected {
        let all: Vec<usize> = if ids.is_some() {
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
            squared_to_point(self.position(*vertex), &nearest.place)
        });
        let rows = self.limited(selected);
        let objects = self.objects_of(&rows, ids);
        let rows = rows.into_iter().map(Spot::Vertex).collect();
        Expected {
            rows,
            objects,
            ..Expected::default()
        }
    }

    /// Objects that vertices are of.
    fn objects_of(&self, vertices: &[usize], ids: Option<&[i64]>) -> Vec<i64> {
        let found = vertices
            .iter()
            .filter_map(|at| self.truth.vertices[*at].object);
        let mut found: Vec<i64> = found.collect();
        found.sort_unstable();
        found.dedup();
        match ids {
            Some(ids) => {
                let ids = ids.iter().copied();
                ids.filter(|id| found.contains(id)).collect()
            }
            None => found,
        }
    }

    /// Paths; a cut one may keep vertices that stand alone.
    fn paths(&self, ids: Option<&[i64]>, lone: bool) -> Expected {
        let mut runs: Vec<(i64, Vec<Spot>)> = Vec::new();
        for object in self.objects(ids) {
            if !self.filter.object(Some(object.id)) {
                continue;
            }
            for path in self.runs(object) {
                if self.query.mode == Mode::Clip {
                    let parts = self.clipped(&path, lone);
                    runs.extend(parts.into_iter().map(|part| (object.id, part)));
                } else if self.selects_path(&path) {
                    let path = path.into_iter().map(Spot::Vertex).collect();
                    runs.push((object.id, path));
                }
            }
        }
        let runs = self.nearest(runs, |(_, path), nearest| {
            let positions: Vec<&[f64]> =
                path.iter().map(|spot| spot.position(self.truth)).collect();
            let alone = squared_to_point(positions[0], &nearest.place);
            let pairs = positions.windows(2);
            pairs.fold(alone, |least, pair| {
                least.min(squared_to_segment(&nearest.place, [pair[0], pair[1]]))
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
            // Runs of one path are of one object, a path that is asked for twice is of two.
            if expected.objects.last() != Some(&id) {
                expected.objects.push(id);
            }
        }
        if ids.is_none() {
            expected.objects.sort_unstable();
        }
        expected
    }

    /// An object's path, cut to where chunks are.
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
        let in_region = if within || path.len() == 1 {
            path.iter().all(|vertex| self.has(*vertex))
        } else {
            let mut segments = segments.map(|pair| [at(pair[0]), at(pair[1])]);
            segments.any(|ends| self.in_region(Primitive::Segment(ends), false))
        };
        let mut truths = path.iter().map(|vertex| self.filter.vertex(*vertex));
        in_region
            && if within {
                truths.all(|is| is)
            } else {
                truths.any(|is| is)
            }
    }

    /// What of a path is selected.
    fn clipped(&self, path: &[usize], lone: bool) -> Vec<Vec<Spot>> {
        let is_true: Vec<bool> = path
            .iter()
            .map(|vertex| self.filter.vertex(*vertex))
            .collect();
        let mut parts = Vec::new();
        let bbox = match &self.query.region {
            Some(Region::Box(bbox)) if self.query.cut == Cut::Cut => Some(bbox),
            _ => None,
        };
        let keep = |at: usize| is_true[at] && (bbox.is_some() || self.has(path[at]));
        for range in clip::runs(path.len(), keep) {
            let run = &path[range];
            match bbox {
                Some(bbox) => parts.extend(clip::path(self.truth, run, bbox)),
                None if run.len() > 1 || path.len() == 1 || lone => {
                    parts.push(run.iter().copied().map(Spot::Vertex).collect());
                }
                None => {}
            }
        }
        parts
    }

    /// Graphs, skeletons and meshes.
    fn linked(&self, ids: Option<&[i64]>) -> Vec<Expected> {
        let order: Vec<usize> = (0..self.truth.vertices.len()).collect();
        let chosen = |vertex: &usize| {
            let object = self.truth.vertices[*vertex].object;
            ids.is_none_or(|ids| object.is_some_and(|id| ids.contains(&id)))
        };
        let eligible: Vec<usize> = order
            .iter()
            .copied()
            .filter(|vertex| chosen(vertex) && self.eligible(*vertex))
            .collect();
        let is_in = |vertex: &usize| self.has(*vertex) && self.filter.vertex(*vertex);
        let inside: Vec<usize> = eligible.iter().copied().filter(is_in).collect();
        let of_eligible = |link: &usize| {
            let mut ends = self.truth.links[*link].ends.iter();
            ends.all(|end| eligible.contains(end)) && self.filter.link(*link)
        };
        let links: Vec<usize> = self.link_order().into_iter().filter(of_eligible).collect();
        let cuts = self.query.mode == Mode::Clip && self.query.cut == Cut::Cut;
        if let (true, Some(Region::Box(bbox))) = (cuts, &self.query.region) {
            return self.cut_links(links, inside, bbox);
        }
        let links = links
            .into_iter()
            .filter(|link| self.selects_link(*link))
            .collect();
        let links = self.nearest(links, |link, nearest| self.squared_to_link(*link, nearest));
        let links = self.limited(links);
        let ends = links
            .iter()
            .flat_map(|link| self.truth.links[*link].ends.clone());
        let ends: Vec<usize> = ends.collect();
        // When links are selected, vertices are there for their sake.
        let picks = self.query.nearest.is_some() || self.query.limit.is_some();
        let alone = if picks || self.filter.is_on_links() {
            vec![Vec::new(), self.limited(inside.clone()), inside]
        } else {
            vec![inside]
        };
        // By chunk, or by object as asked for.
        let mut orders = vec![(order, None)];
        if ids.is_some() {
            let objects = self.objects(ids).into_iter();
            let vertices = objects.flat_map(|object| self.truth.vertices_of(object));
            orders.push((vertices.collect(), ids));
        }
        let mut all = Vec::new();
        for inside in &alone {
            for (order, ids) in &orders {
                let order = order.iter().copied();
                let rows = order.filter(|vertex| inside.contains(vertex) || ends.contains(vertex));
                all.push(self.with_links(&links, rows.collect(), *ids));
            }
        }
        all
    }

    fn cut_links(&self, links: Vec<usize>, inside: Vec<usize>, bbox: &Bbox) -> Vec<Expected> {
        let by_filter = |link: &usize| self.selects_link_by_filter(*link);
        let links: Vec<usize> = links.into_iter().filter(by_filter).collect();
        let cut = clip::links(self.truth, &links, bbox);
        let ends = links.iter().flat_map(|link| &self.truth.links[*link].ends);
        let ends: Vec<&usize> = ends.collect();
        let linked = inside
            .iter()
            .copied()
            .filter(|vertex| ends.contains(&vertex));
        let linked: Vec<usize> = linked.collect();
        let all = if self.filter.is_on_links() {
            vec![linked, inside]
        } else {
            vec![inside]
        };
        let expected = |inside: Vec<usize>| Expected {
            objects: self.objects_of(&inside, None),
            rows: inside.into_iter().map(Spot::Vertex).collect(),
            links: Some(Vec::new()),
            cut: Some(cut.clone()),
            ..Expected::default()
        };
        all.into_iter().map(expected).collect()
    }

    fn with_links(&self, links: &[usize], rows: Vec<usize>, ids: Option<&[i64]>) -> Expected {
        let row_of = |end: &usize| rows.iter().position(|row| row == end).unwrap();
        let ends = |link: &usize| {
            let ends = self.truth.links[*link].ends.iter();
            (*link, ends.map(row_of).collect())
        };
        Expected {
            links: Some(links.iter().map(ends).collect()),
            objects: self.objects_of(&rows, ids),
            rows: rows.into_iter().map(Spot::Vertex).collect(),
            ..Expected::default()
        }
    }

    /// Links that fragments imply by child, then the stored ones.
    fn link_order(&self) -> Vec<usize> {
        let implied = self.truth.links.iter().enumerate();
        let implied = implied.filter(|(_, link)| !link.stored);
        let mut order: Vec<usize> = implied.map(|(number, _)| number).collect();
        order.sort_by_key(|link| self.truth.links[*link].ends[0]);
        order.extend(&self.truth.link_order);
        order
    }

    fn selects_link(&self, link: usize) -> bool {
        let corners = self.corners(link);
        let all = self.query.mode != Mode::Touch;
        let primitive = match corners.as_slice() {
            [a, b] => Primitive::Segment([a, b]),
            corners => Primitive::Polygon(corners),
        };
        self.in_region(primitive, all) && self.selects_link_by_filter(link)
    }

    /// Of a link that is cut, all ends must be true: there is nothing between.
    fn selects_link_by_filter(&self, link: usize) -> bool {
        let mut ends = self.truth.links[link].ends.iter();
        if self.query.mode == Mode::Touch {
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
            [a, b] => squared_to_segment(&nearest.place, [a, b]),
            corners => {
                let fan = corners.windows(2).skip(1);
                let triangles = fan.map(|pair| [corners[0], pair[0], pair[1]]);
                let distances =
                    triangles.map(|corners| squared_to_triangle(&nearest.place, corners));
                distances.fold(f64::INFINITY, f64::min)
            }
        }
    }
}
