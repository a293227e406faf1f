//! Comparison of a result with the expected one.

use std::ops::Range;

use zvf::Owner;
use zvf_catalog::{Scope, Selection};
use zvf_format::numeric::{Kind, Value};
use zvf_query::{
    Clip, Column, NumericColumn, Query, QueryResult, Region,
    geometry::{Bbox, Mode},
};
use zvf_testkit::stores::{ExpectedAttribute, ExpectedStore};

use super::{
    clip,
    columns::{self, Verdict, ensure},
    expect::{Expected, ExpectedRow},
    filter::attributes,
};

/// A query and its result.
pub(super) struct Comparison<'a> {
    pub(super) truth: &'a ExpectedStore,
    pub(super) query: &'a Query,
    pub(super) result: &'a QueryResult,
}

impl Comparison<'_> {
    /// Checks the result; the error describes the first difference.
    pub(super) fn with(&self, expected: &Expected) -> Verdict {
        self.frame()?;
        let kind = self.truth.recipe.kind;
        let (parts, links) = (&self.result.parts, &self.result.links);
        ensure!(parts.is_some() == kind.is_paths(), "parts: {parts:?}");
        ensure!(links.is_some() == kind.is_linked(), "links: {links:?}");
        if let Some(cut) = &expected.cut {
            return self.cut_links(expected, cut);
        }
        let rows = if expected.parts.is_some() {
            self.paths(expected)?
        } else {
            let found = self.result.positions.len();
            ensure!(
                found == expected.rows.len(),
                "{found} rows, expected {}",
                expected.rows.len()
            );
            expected.rows.iter().enumerate().collect()
        };
        for (row, expected_row) in &rows {
            self.position(*row, expected_row)?;
        }
        self.object_ids(&rows)?;
        self.objects(expected)?;
        self.links(expected)?;
        self.columns(&rows, expected)
    }

    /// Checks everything that does not depend on the selection.
    fn frame(&self) -> Verdict {
        let result = self.result;
        ensure!(result.axes == self.truth.axes, "axes {:?}", result.axes);
        ensure!(result.skipped.is_empty(), "missing {:?}", result.skipped);
        let kind = if self.truth.recipe.double {
            Kind::Float64
        } else {
            Kind::Float32
        };
        let columns = u32::try_from(self.truth.axes.len()).unwrap();
        let found = (result.positions.kind, result.positions.width);
        ensure!(found == (kind, columns), "positions are {found:?}");
        let whole = result.positions.bytes.len() % result.positions.row_size();
        ensure!(whole == 0, "{whole} bytes after the last position");
        let known = self.truth.groups.as_deref().unwrap_or_default();
        let requested = self.query.groups.as_deref().unwrap_or_default();
        let groups: Vec<_> = requested
            .iter()
            .map(|id| (*id, known[usize::try_from(*id).unwrap()].clone()))
            .collect();
        let found: Vec<_> = result
            .groups
            .iter()
            .map(|group| (group.id, group.members.clone()))
            .collect();
        ensure!(found == groups, "groups {found:?}, expected {groups:?}");
        Ok(())
    }

    /// Returns the box that clips geometry, if any.
    fn bbox(&self) -> Option<&Bbox> {
        let cuts = self.query.mode == Mode::Clip && self.query.clip == Clip::Split;
        let cuts = cuts && !self.truth.recipe.kind.is_points();
        match &self.query.region {
            Some(Region::Box(bbox)) if cuts => Some(bbox),
            _ => None,
        }
    }

    /// Returns the tolerance for clipped positions along an axis.
    fn slack(&self, axis: usize) -> f64 {
        let sizes = self
            .truth
            .vertices
            .iter()
            .map(|vertex| vertex.position[axis].abs());
        let size = sizes.fold(0.0, f64::max);
        size * if self.truth.recipe.double {
            1e-12
        } else {
            1e-6
        }
    }

    fn is_close(&self, a: &[f64], b: &[f64]) -> bool {
        let axes = a.iter().zip(b).enumerate();
        axes.into_iter()
            .all(|(axis, (a, b))| (a - b).abs() <= self.slack(axis))
    }

    fn found(&self, row: usize) -> Vec<f64> {
        numbers(&self.result.positions, row)
    }

    fn position(&self, row: usize, expected_row: &ExpectedRow) -> Verdict {
        let found = self.found(row);
        let expected = expected_row.position(self.truth);
        let same = found
            .iter()
            .zip(expected)
            .all(|(a, b)| a.to_bits() == b.to_bits());
        let may_be_new = self
            .bbox()
            .is_some_and(|bbox| self.is_on_border(bbox, expected));
        let close = may_be_new && self.is_close(&found, expected);
        ensure!(
            same || close,
            "row {row} is at {found:?}, expected {expected_row:?} at {expected:?}"
        );
        if !same {
            self.in_box(row, &found)?;
        }
        Ok(())
    }

    /// Checks that a new vertex lies in the box, as far as its numeric type can represent it.
    fn in_box(&self, row: usize, found: &[f64]) -> Verdict {
        let Some(bbox) = self.bbox() else {
            return Ok(());
        };
        for (value, (lo, hi)) in found.iter().zip(bbox.lo().iter().zip(bbox.hi())) {
            let inside = lo <= value && value <= hi;
            let next = if value > hi {
                self.next(*value, false)
            } else {
                self.next(*value, true)
            };
            // A thin box may contain no number of the type.
            let none_is = if value > hi { next < *lo } else { next > *hi };
            ensure!(
                inside || none_is,
                "row {row} at {found:?} is not in the box"
            );
        }
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "it is one of f32")]
    fn next(&self, value: f64, up: bool) -> f64 {
        match (self.truth.recipe.double, up) {
            (true, true) => value.next_up(),
            (true, false) => value.next_down(),
            (false, true) => (value as f32).next_up().into(),
            (false, false) => (value as f32).next_down().into(),
        }
    }

    fn is_on_border(&self, bbox: &Bbox, position: &[f64]) -> bool {
        let bounds = bbox.lo().iter().zip(bbox.hi()).enumerate();
        bounds.zip(position).any(|((axis, (lo, hi)), value)| {
            let slack = self.slack(axis);
            (lo - value).abs() <= slack || (hi - value).abs() <= slack
        })
    }

    /// Pairs rows of the result with the expected ones. On clipped paths, repeated positions count
    /// once: a path that touches the border may have one or two vertices there.
    fn paths<'e>(&self, expected: &'e Expected) -> Result<Vec<(usize, &'e ExpectedRow)>, String> {
        let found = self.result.parts.as_ref().unwrap();
        let offsets: Vec<usize> = found
            .offsets
            .iter()
            .map(|offset| usize::try_from(*offset).unwrap())
            .collect();
        let (first, last) = (offsets.first(), offsets.last());
        let rows = self.result.positions.len();
        let whole = first == Some(&0) && last == Some(&rows) && offsets.is_sorted();
        ensure!(whole, "offsets {offsets:?} of {rows} rows");
        let parts: Vec<Range<usize>> = offsets.windows(2).map(|pair| pair[0]..pair[1]).collect();
        let known = expected.parts.as_ref().unwrap();
        let ids: Vec<i64> = known.iter().map(|(id, _)| *id).collect();
        ensure!(
            found.objects == ids,
            "parts of {:?}, expected {ids:?}",
            found.objects
        );
        ensure!(
            parts.len() == ids.len(),
            "{} parts, {} objects",
            parts.len(),
            ids.len()
        );
        let mut pairs = Vec::new();
        for (part, (id, spots)) in parts.into_iter().zip(known) {
            let spots: Vec<&ExpectedRow> = expected.rows[spots.clone()].iter().collect();
            let mut rows: Vec<usize> = part.collect();
            let mut places: Vec<&ExpectedRow> = spots;
            if self.bbox().is_some() {
                rows.dedup_by(|b, a| self.is_close(&self.found(*a), &self.found(*b)));
                places
                    .dedup_by(|b, a| self.is_close(a.position(self.truth), b.position(self.truth)));
            }
            let (found, expected) = (rows.len(), places.len());
            ensure!(
                found == expected,
                "a part of {id} has {found} rows, expected {expected}"
            );
            pairs.extend(rows.into_iter().zip(places));
        }
        Ok(pairs)
    }

    fn object_ids(&self, rows: &[(usize, &ExpectedRow)]) -> Verdict {
        let has = self.truth.objects.is_some() && self.query.owners;
        let Some(found) = &self.result.object_ids else {
            let may_lack = !has || self.truth.recipe.kind.is_paths();
            ensure!(may_lack, "no object ids");
            return Ok(());
        };
        ensure!(has && !self.truth.recipe.kind.is_paths(), "object ids");
        ensure!(
            found.len() == self.result.positions.len(),
            "{} object ids",
            found.len()
        );
        for (row, expected_row) in rows {
            if let ExpectedRow::Vertex(vertex) = expected_row {
                let number = self.truth.vertices[*vertex].object;
                let expected = number.map_or(Owner::None, Owner::from_number);
                let found = found.get(*row);
                ensure!(
                    found == Some(expected),
                    "row {row} is of {found:?}, expected {expected:?}"
                );
            }
        }
        Ok(())
    }

    /// Returns whether the result contains object ids; always true for paths.
    fn tells_objects(&self) -> bool {
        self.query.owners || self.truth.recipe.kind.is_paths()
    }

    fn objects(&self, expected: &Expected) -> Verdict {
        let (found, expected) = (&self.result.objects, &expected.objects);
        ensure!(
            !self.tells_objects() || found == expected,
            "objects {found:?}, expected {expected:?}"
        );
        Ok(())
    }

    fn links(&self, expected: &Expected) -> Verdict {
        let (Some(found), Some(expected)) = (&self.result.links, &expected.links) else {
            return Ok(());
        };
        let width = self.truth.recipe.kind.width();
        ensure!(
            usize::try_from(found.width) == Ok(width),
            "width {}",
            found.width
        );
        let ends: Vec<usize> = found
            .ends
            .iter()
            .map(|end| usize::try_from(*end).unwrap())
            .collect();
        let known: Vec<usize> = expected.iter().flat_map(|(_, ends)| ends.clone()).collect();
        ensure!(ends == known, "links {ends:?}, expected {known:?}");
        Ok(())
    }

    /// Checks clipped links, and that the new vertices lie in the box.
    fn cut_links(&self, expected: &Expected, cut: &clip::Cut) -> Verdict {
        let rows = self.result.positions.len();
        let mut inside = expected.rows.iter().peekable();
        let mut pairs = Vec::new();
        for row in 0..rows {
            let found = self.found(row);
            self.in_box(row, &found)?;
            if let Some(expected_row) =
                inside.next_if(|expected_row| expected_row.position(self.truth) == found)
            {
                pairs.push((row, expected_row));
            } else {
                let bbox = self.bbox().unwrap();
                ensure!(
                    self.is_on_border(bbox, &found),
                    "row {row} at {found:?} is not on the border"
                );
            }
        }
        ensure!(inside.peek().is_none(), "{:?} is missing", inside.peek());
        let links = self.result.links.as_ref().unwrap();
        let width = usize::try_from(links.width).unwrap();
        let ends: Vec<usize> = links
            .ends
            .iter()
            .map(|end| usize::try_from(*end).unwrap())
            .collect();
        ensure!(
            ends.iter().all(|end| *end < rows),
            "ends {ends:?} of {rows} rows"
        );
        let faces: Vec<Vec<Vec<f64>>> = ends
            .chunks(width)
            .map(|ends| ends.iter().map(|end| self.found(*end)).collect())
            .collect();
        if self.truth.recipe.kind.width() > 2 {
            let areas = faces.iter().map(|face| {
                let corners: Vec<&[f64]> = face.iter().map(Vec::as_slice).collect();
                clip::area(&corners)
            });
            let found: f64 = areas.sum();
            let sizes = (0..self.truth.axes.len()).map(|axis| self.slack(axis));
            let slack = sizes.fold(0.0, f64::max).sqrt() * (1.0 + cut.area);
            ensure!(
                (found - cut.area).abs() <= slack,
                "area {found}, expected {}",
                cut.area
            );
            return Ok(());
        }
        let far = |a: &[f64], b: &[f64]| !self.is_close(a, b);
        let found: Vec<(usize, &Vec<Vec<f64>>)> = faces
            .iter()
            .enumerate()
            .filter(|(_, edge)| far(&edge[0], &edge[1]))
            .collect();
        let at = |expected_row: &ExpectedRow| expected_row.position(self.truth).to_vec();
        let known: Vec<_> = cut
            .edges
            .iter()
            .filter(|(_, [a, b])| far(&at(a), &at(b)))
            .collect();
        ensure!(
            found.len() == known.len(),
            "{} edges, expected {}",
            found.len(),
            known.len()
        );
        let same = |row: usize, edge: &[Vec<f64>], link: usize, [a, b]: &[ExpectedRow; 2]| {
            let same = self.is_close(&edge[0], &at(a)) && self.is_close(&edge[1], &at(b));
            ensure!(same, "edge {row} is {edge:?}, expected {a:?} to {b:?}");
            for (column, attribute) in self.pairs(&self.result.link, Scope::Link)? {
                columns::same(column, row, attribute, link)?;
            }
            Ok(())
        };
        if self.truth.recipe.kind.is_skeleton() {
            let children: Vec<usize> = ends.iter().step_by(2).copied().collect();
            ensure!(children.is_sorted(), "links of {children:?}");
            // New vertices come last, so the position of each child follows from the result.
            let mut left = known;
            for (row, edge) in found {
                let mut rest = left.iter();
                let at = rest
                    .position(|(link, spots)| same(row, edge, *link, spots).is_ok())
                    .ok_or_else(|| format!("edge {row} is {edge:?}, none of {left:?}"))?;
                left.remove(at);
            }
        } else {
            for ((row, edge), (link, spots)) in found.into_iter().zip(known) {
                same(row, edge, *link, spots)?;
            }
        }
        self.object_ids(&pairs)
    }

    fn columns(&self, rows: &[(usize, &ExpectedRow)], expected: &Expected) -> Verdict {
        let count = self.result.positions.len();
        let result = self.result;
        for (scope, columns) in [
            (Scope::Vertex, &result.vertex),
            (Scope::Fragment, &result.fragment),
        ] {
            for (column, attribute) in self.pairs(columns, scope)? {
                let found = column.values.len();
                ensure!(found == count, "{found} rows of {}", column.name);
                for (row, expected_row) in rows {
                    match expected_row {
                        ExpectedRow::Vertex(vertex) => {
                            let fragment = self.truth.vertices[*vertex].fragment;
                            let at = if scope == Scope::Vertex {
                                *vertex
                            } else {
                                fragment
                            };
                            let exact = columns::same(column, *row, attribute, at);
                            // If a new vertex coincides with another, either is correct.
                            if self.bbox().is_none() {
                                exact?;
                            }
                        }
                        ExpectedRow::Between { ends, t, .. } if scope == Scope::Vertex => {
                            columns::between(column, *row, attribute, (*ends, *t))?;
                        }
                        ExpectedRow::Between { .. } => {}
                    }
                }
            }
        }
        for (column, attribute) in self.pairs(&result.link, Scope::Link)? {
            let links = expected.links.as_deref().unwrap_or_default();
            ensure!(
                column.values.len() == links.len(),
                "rows of {}",
                column.name
            );
            for (row, (link, _)) in links.iter().enumerate() {
                columns::same(column, row, attribute, *link)?;
            }
        }
        if !self.tells_objects() {
            return Ok(());
        }
        let objects = self.truth.objects.as_deref().unwrap_or_default();
        for (column, attribute) in self.pairs(&result.object, Scope::Object)? {
            ensure!(
                column.values.len() == result.objects.len(),
                "rows of {}",
                column.name
            );
            for (row, id) in result.objects.iter().enumerate() {
                let object = objects.iter().position(|object| object.id == *id).unwrap();
                columns::same(column, row, attribute, object)?;
            }
        }
        Ok(())
    }

    /// Pairs the columns of a scope with the known attributes. All requested columns must be
    /// present, and no other.
    fn pairs<'c>(
        &'c self,
        columns: &'c [Column],
        scope: Scope,
    ) -> Result<Vec<(&'c Column, &'c ExpectedAttribute)>, String> {
        let requested = |attribute: &ExpectedAttribute| match &self.query.columns {
            Selection::All => true,
            Selection::Named(named) => named
                .iter()
                .any(|(of, name)| *name == attribute.name && of.is_none_or(|of| of == scope)),
        };
        let known = attributes(self.truth)
            .into_iter()
            .filter(|(of, attribute)| *of == scope && requested(attribute));
        let mut pairs = Vec::new();
        for (_, attribute) in known {
            let mut found = columns
                .iter()
                .filter(|column| column.name == attribute.name);
            let column = found
                .next()
                .ok_or_else(|| format!("{} {} is missing", scope.name(), attribute.name))?;
            ensure!(found.next().is_none(), "{} is there twice", attribute.name);
            pairs.push((column, attribute));
        }
        // The chunking attribute may be returned as well.
        let chunked_by = self.truth.chunked_by.as_ref().map(|(name, _)| name);
        let others = columns
            .iter()
            .filter(|column| Some(&column.name) != chunked_by);
        let names: Vec<&String> = others.map(|column| &column.name).collect();
        ensure!(
            names.len() == pairs.len(),
            "{} columns {names:?}",
            scope.name()
        );
        Ok(pairs)
    }
}

fn numbers(rows: &NumericColumn, row: usize) -> Vec<f64> {
    let view = rows.view().unwrap();
    let columns = 0..rows.width;
    columns
        .map(|column| match view.value(row, column).unwrap() {
            Value::Float(value) => value,
            other => panic!("{other:?}"),
        })
        .collect()
}
