//! Properties of a level relative to its source level that hold for every method.

use std::collections::{BTreeMap, BTreeSet};

use zvf::{
    GeometryKind, LevelDesign,
    coarsen::{Aggregation, CoarsenMethod},
};

use super::{
    bins, lines,
    model::{Level, Link},
    subset, values,
};

/// Two levels and the mapping of vertices between them.
pub(super) struct Step<'a> {
    pub(super) fine: &'a Level,
    pub(super) coarse: &'a Level,
    /// Indexed by vertex of the finer level.
    pub(super) into: Vec<Option<usize>>,
    /// Indexed by vertex of the coarser level.
    pub(super) members: Vec<Vec<usize>>,
    pub(super) design: &'a LevelDesign,
    pub(super) rules: &'a BTreeMap<String, Aggregation>,
    pub(super) error: Option<f64>,
    pub(super) about: String,
}

impl<'a> Step<'a> {
    /// Builds the mapping from the stored links between the levels.
    pub(super) fn new(
        (fine, coarse): (&'a Level, &'a Level),
        links: &BTreeSet<(usize, usize)>,
        design: &'a LevelDesign,
        rules: &'a BTreeMap<String, Aggregation>,
        error: Option<f64>,
        about: String,
    ) -> Self {
        let mut into = vec![None; fine.vertices.len()];
        let mut members = vec![Vec::new(); coarse.vertices.len()];
        for (vertex, parent) in links {
            let before = into[*vertex].replace(*parent);
            assert_eq!(before, None, "vertex {vertex} has two parents, {about}");
            members[*parent].push(*vertex);
        }
        Self {
            fine,
            coarse,
            into,
            members,
            design,
            rules,
            error,
            about,
        }
    }

    pub(super) fn check(&self) {
        self.chunks();
        self.objects();
        self.links();
        values::check(self);
        match &self.design.method {
            CoarsenMethod::Bins { cell, .. } => bins::check(self, cell),
            CoarsenMethod::Subset { cell, keep, .. } => subset::check(self, cell, *keep as usize),
            CoarsenMethod::Simplify { tolerance } => lines::check(self, Some(*tolerance)),
            CoarsenMethod::Stride { .. } => lines::check(self, None),
            CoarsenMethod::Collapse { .. } => {}
        }
    }

    /// Vertices lie in the chunk of the vertices that they replace.
    fn chunks(&self) {
        let about = &self.about;
        let axes = self.fine.axes;
        for (parent, members) in self.coarse.vertices.iter().zip(&self.members) {
            assert!(!members.is_empty(), "one stands for nothing, {about}");
            let own = parent.at.0.coords();
            let leading = own.len() - axes;
            for member in members {
                let fine = self.fine.vertices[*member].at.0.coords();
                let scaled =
                    fine.iter()
                        .enumerate()
                        .map(|(axis, at)| match axis.checked_sub(leading) {
                            None => *at,
                            Some(axis) => at.div_euclid(self.design.chunk_scale[axis].into()),
                        });
                assert!(scaled.eq(own.iter().copied()), "{about}");
            }
            for (axis, place) in parent.place.iter().enumerate() {
                let at = (place / self.coarse.chunk[axis]).floor() as i64;
                assert_eq!(at, own[leading + axis], "outside its chunk, {about}");
            }
        }
    }

    /// Objects are those of the finer level. Each kept object has the vertices that replace its
    /// own, in their order if it has one.
    fn objects(&self) {
        let about = &self.about;
        let (Some(fine), Some(coarse)) = (&self.fine.objects, &self.coarse.objects) else {
            assert_eq!(self.fine.objects.is_some(), self.coarse.objects.is_some());
            let lost = self.into.iter().filter(|parent| parent.is_none()).count();
            assert_eq!(lost, 0, "are lost, {about}");
            return;
        };
        // The points of an object have no order, even if objects share them.
        let are_points = self.fine.kind == Some(GeometryKind::Points);
        let mut kept: BTreeSet<usize> = BTreeSet::new();
        assert_eq!(fine.len(), coarse.len(), "{about}");
        for ((id, own), (same, found)) in fine.iter().zip(coarse) {
            assert_eq!(id, same, "{about}");
            if found.is_empty() {
                continue;
            }
            kept.extend(own);
            let images: Option<Vec<usize>> = own.iter().map(|at| self.into[*at]).collect();
            let mut images = images.unwrap_or_else(|| panic!("some of {id} are lost, {about}"));
            let mut found = found.clone();
            if self.coarse.is_named && self.fine.is_named && !are_points {
                images.dedup();
            } else {
                images.sort_unstable();
                images.dedup();
                found.sort_unstable();
            }
            assert_eq!(images, found, "object {id}, {about}");
        }
        for (vertex, parent) in self.into.iter().enumerate() {
            let is_kept = kept.contains(&vertex) || parent.is_none();
            assert!(is_kept, "{vertex} is of no object that is kept, {about}");
        }
        if self.design.sparsity.is_none() {
            assert_eq!(self.fine.present(), self.coarse.present(), "{about}");
        }
    }

    /// Links are those of the finer level, mapped to the new vertices.
    fn links(&self) {
        let about = &self.about;
        let mut expected: BTreeMap<Vec<usize>, Vec<&Link>> = BTreeMap::new();
        for link in &self.fine.links {
            let ends: Option<Vec<usize>> = link.ends.iter().map(|end| self.into[*end]).collect();
            let Some(ends) = ends else { continue };
            let distinct: BTreeSet<&usize> = ends.iter().collect();
            if distinct.len() == ends.len() {
                expected.entry(self.same(ends)).or_default().push(link);
            }
        }
        let mut found: BTreeMap<Vec<usize>, &Link> = BTreeMap::new();
        for link in &self.coarse.links {
            let before = found.insert(self.same(link.ends.clone()), link);
            assert!(before.is_none(), "{link:?} is there twice, {about}");
        }
        assert_eq!(keys_of(&expected), keys_of(&found), "{about}");
        for (ends, of) in expected {
            values::check_link(self, &of, found[&ends]);
        }
    }

    /// Normalizes ends, so that equal links compare equal.
    fn same(&self, mut ends: Vec<usize>) -> Vec<usize> {
        use zvf_build::GeometryKind::{Graphs, Mesh};
        match self.fine.kind {
            Some(Mesh) => {
                let min = (0..ends.len()).min_by_key(|at| ends[*at]).unwrap();
                ends.rotate_left(min);
            }
            Some(Graphs) if !self.fine.is_directed => ends.sort_unstable(),
            _ => {}
        }
        ends
    }
}

fn keys_of<V>(map: &BTreeMap<Vec<usize>, V>) -> Vec<Vec<usize>> {
    map.keys().cloned().collect()
}
