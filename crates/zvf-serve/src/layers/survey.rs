//! A first pass over a store: bounds, numbers, and facts about the attributes.

use std::{collections::HashSet, ops::ControlFlow, sync::Arc};

use zvf::{ObjectIds, Owner, QueryResult};
use zvf_format::numeric::{Kind, Value};
use zvf_model::{geometry_kind::GeometryKind, level::LevelId};

use super::{
    LayerError, LayerInput,
    attributes::AttributeSurvey,
    float_positions::FloatPositions,
    path_ids::PathIds,
    segments::{GroupTable, ONLY_SEGMENT, SegmentTable},
};

/// Vertices of a graph whose edges are annotations: their positions are kept in memory.
const MAX_GRAPH_VERTICES: u64 = 4 << 20;
/// Points of a polyline that a viewer can pick.
const MAX_POINTS: usize = 100_000;

/// The findings of the first pass.
pub(crate) struct StoreSurvey {
    pub(crate) vertices: u64,
    /// Paths, if the store has paths.
    pub(crate) parts: u64,
    pub(crate) is_path: bool,
    /// True if every path has two points.
    pub(crate) is_pairs: bool,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
    /// Maximum distance along an axis by which rounding to float32 moves a position.
    rounding: f64,
    pub(crate) vertex: AttributeSurvey,
    pub(crate) object: AttributeSurvey,
    pub(crate) link: AttributeSurvey,
    /// Links of a graph.
    pub(crate) links: u64,
    kind: Option<GeometryKind>,
    pub(crate) segments: SegmentTable,
    /// Groups of level 0; none of coarser levels.
    pub(crate) groups: Arc<GroupTable>,
    pub(crate) has_objects: bool,
    pub(crate) path_ids: PathIds,
    left_out: LeftOut,
}

/// Numbers of things that layers leave out.
#[derive(Default)]
struct LeftOut {
    /// Points, paths or edges that are no annotations.
    annotations: u64,
    /// Paths with a coordinate that is not finite.
    paths: u64,
    /// Objects with a vertex with a coordinate that is not finite.
    objects: HashSet<i64>,
    /// Vertices of a graph with a coordinate that is not finite.
    vertices: HashSet<u64>,
    /// Vertices that belong to several objects.
    shared: u64,
}

/// Reads the store once.
pub(crate) async fn survey(
    reading: &LayerInput<'_>,
    notes: &mut Vec<String>,
) -> Result<StoreSurvey, LayerError> {
    let rank = reading.space.rank();
    let mut survey = StoreSurvey {
        vertices: 0,
        parts: 0,
        is_path: false,
        is_pairs: true,
        lower: vec![f64::INFINITY; rank],
        upper: vec![f64::NEG_INFINITY; rank],
        rounding: 0.0,
        vertex: AttributeSurvey::default(),
        object: AttributeSurvey::default(),
        link: AttributeSurvey::default(),
        links: 0,
        kind: reading.dataset.root().first_kind(),
        groups: Arc::default(),
        segments: SegmentTable::default(),
        has_objects: false,
        path_ids: PathIds::default(),
        left_out: LeftOut::default(),
    };
    let report = reading
        .dataset
        .batches(&reading.query(), |batch| {
            survey.add(&batch, reading.max_ids);
            (reading.report)(survey.vertices, 0);
            ControlFlow::Continue(())
        })
        .await?;
    notes.extend(report.notes);
    let is_empty = survey
        .lower
        .iter()
        .zip(&survey.upper)
        .any(|(lo, hi)| lo > hi);
    if survey.vertices == 0 || is_empty {
        return Err(LayerError::Empty);
    }
    survey.path_ids.finish();
    survey.segments.finish("objects", notes);
    if survey.has_objects && reading.level == LevelId::FULL {
        survey.groups = Arc::new(GroupTable::read(reading.dataset, notes).await?);
        survey.segments.tag(&survey.groups);
    }
    if survey.rounding > 0.0 {
        notes.push(format!(
            "positions are rounded to float32, which moves them by up to {:.2e} along an axis",
            survey.rounding
        ));
    }
    Ok(survey)
}

impl StoreSurvey {
    /// Returns the segments that a viewer shows first.
    pub(crate) fn shown(&self) -> Vec<u64> {
        if self.has_objects {
            self.segments.shown()
        } else {
            vec![ONLY_SEGMENT]
        }
    }

    /// Returns whether the links of the store are the edges of a graph.
    pub(crate) fn is_graph(&self) -> bool {
        self.kind == Some(GeometryKind::Graphs)
    }

    /// Returns whether there is something to annotate. Notes a graph that is too large.
    pub(crate) fn has_annotations(&self, notes: &mut Vec<String>) -> bool {
        if !self.is_graph() {
            return true;
        }
        let is_large = self.vertices > MAX_GRAPH_VERTICES;
        if is_large {
            notes.push(format!(
                "edges are left out of the annotations: the graph has more than \
                 {MAX_GRAPH_VERTICES} vertices"
            ));
        }
        self.links > 0 && !is_large
    }

    /// Notes points, paths or edges that are no annotations, and those without their objects.
    pub(crate) fn note_annotations(&self, kind: &str, notes: &mut Vec<String>) {
        let LeftOut {
            annotations,
            shared,
            ..
        } = self.left_out;
        if annotations > 0 {
            notes.push(format!(
                "{annotations} annotations of kind {kind} left out: coordinates that are not finite, fewer \
                 than 2 points, or more than {MAX_POINTS}"
            ));
        }
        if shared > 0 {
            notes.push(format!(
                "{shared} vertices belong to several objects, to which their annotations are not related"
            ));
        }
    }

    /// Notes paths or objects that a server leaves out of the layer `layer`.
    #[cfg(feature = "server")]
    pub(crate) fn note_objects(&self, layer: &str, notes: &mut Vec<String>) {
        let (count, what) = if self.is_path {
            (self.left_out.paths, "paths")
        } else {
            let objects = u64::try_from(self.left_out.objects.len());
            (objects.unwrap_or(u64::MAX), "objects")
        };
        if count > 0 {
            notes.push(format!(
                "{count} {what} left out of the {layer}: coordinates that are not finite"
            ));
        }
    }

    /// Counts what the layers leave out of a batch. The rows `broken` have a coordinate that is not
    /// finite.
    fn count_left_out(&mut self, batch: &QueryResult, broken: &[usize]) {
        let left_out = &mut self.left_out;
        if batch.parts.is_some() {
            for path in paths(batch) {
                self.path_ids.add(path.object);
                let next = broken.partition_point(|row| *row < path.start);
                let is_finite = broken.get(next).is_none_or(|row| *row >= path.end);
                left_out.paths = left_out.paths.saturating_add(u64::from(!is_finite));
                let is_drawn = is_finite && path.is_drawn();
                left_out.annotations = left_out.annotations.saturating_add(u64::from(!is_drawn));
            }
            return;
        }
        let objects = batch.object_ids.as_ref();
        let owners = objects.into_iter().flat_map(ObjectIds::iter);
        let shared = owners.filter(|owner| *owner == Owner::Several).count();
        left_out.shared = left_out.shared.saturating_add(as_u64(shared));
        let owners = broken.iter().map(|row| match objects {
            Some(ids) => ids.get(*row).map(Owner::number),
            None => Some(0),
        });
        left_out.objects.extend(owners.flatten());
        if self.kind != Some(GeometryKind::Graphs) {
            left_out.annotations = left_out.annotations.saturating_add(as_u64(broken.len()));
            return;
        }
        if self.vertices > MAX_GRAPH_VERTICES {
            // Edges of larger graphs are no annotations.
            left_out.vertices = HashSet::new();
            return;
        }
        let rows = broken
            .iter()
            .map(|row| batch.first_row.saturating_add(as_u64(*row)));
        left_out.vertices.extend(rows);
        if left_out.vertices.is_empty() {
            return;
        }
        // All vertices come before the links.
        let ends = batch
            .links
            .as_ref()
            .map(|links| links.ends.as_chunks::<2>().0);
        let links = ends
            .unwrap_or_default()
            .iter()
            .filter(|ends| ends.iter().any(|end| left_out.vertices.contains(end)));
        left_out.annotations = left_out.annotations.saturating_add(as_u64(links.count()));
    }

    fn add(&mut self, batch: &QueryResult, max_ids: usize) {
        let rank = self.lower.len();
        let positions = FloatPositions::of(batch, rank);
        let (Some(view), Some(positions)) = (batch.positions.view(), positions) else {
            return;
        };
        let is_exact = matches!(batch.positions.kind, Kind::Float16 | Kind::Float32);
        let mut broken = Vec::new();
        for row in 0..view.rows() {
            let Some(point) = positions.row(row) else {
                broken.push(row);
                continue;
            };
            for (at, (lower, upper)) in self.lower.iter_mut().zip(&mut self.upper).enumerate() {
                // Bounds are those of the float32 that are written.
                let along = point.get(at).map_or(0.0, |along| f64::from(*along));
                *lower = lower.min(along);
                *upper = upper.max(along);
                if !is_exact && let Ok(axis) = u32::try_from(at) {
                    let exact = view.value(row, axis);
                    let moved = exact.map_or(0.0, |exact| distance(exact, along));
                    self.rounding = self.rounding.max(moved);
                }
            }
        }
        self.count_left_out(batch, &broken);
        self.vertices = self.vertices.saturating_add(as_u64(view.rows()));
        self.vertex.add(&batch.vertex, view.rows());
        self.object.add(&batch.object, batch.objects.len());
        self.segments.add(&batch.objects, &batch.object, max_ids);
        if let Some(links) = &batch.links {
            self.links = self.links.saturating_add(as_u64(links.len()));
            self.link.add(&batch.link, links.len());
        }
        self.has_objects |= !batch.objects.is_empty();
        if let Some(parts) = &batch.parts {
            self.is_path = true;
            self.parts = self.parts.saturating_add(as_u64(parts.objects.len()));
            let mut ends = parts.offsets.windows(2);
            self.is_pairs &= ends.all(|ends| matches!(ends, [a, b] if b.saturating_sub(*a) == 2));
        }
    }
}

/// Returns the distance from a number to a float, also of an integer that no f64 equals.
fn distance(exact: Value, along: f64) -> f64 {
    const LOW: u16 = u16::MAX;
    // Both parts of an integer equal floats.
    let (high, low) = match exact {
        Value::Int(number) => {
            let low = number & i64::from(LOW);
            (Value::Int(number ^ low), Value::Int(low))
        }
        Value::UInt(number) => {
            let low = number & u64::from(LOW);
            (Value::UInt(number ^ low), Value::UInt(low))
        }
        other => (other, Value::Float(0.0)),
    };
    (high.to_f64() - along + low.to_f64()).abs()
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Returns the rows of each path of a batch, with its object.
pub(crate) fn paths(batch: &QueryResult) -> impl Iterator<Item = PathRange> + '_ {
    let parts = batch.parts.as_ref();
    let offsets = parts.map(|parts| parts.offsets.as_slice());
    let objects = parts.map(|parts| parts.objects.as_slice());
    let local = |offset: u64| usize::try_from(offset.saturating_sub(batch.first_row)).ok();
    let ends = offsets.unwrap_or_default().windows(2);
    ends.zip(objects.unwrap_or_default())
        .filter_map(move |(ends, object)| match ends {
            [start, end] => Some(PathRange {
                start: local(*start)?,
                end: local(*end)?,
                object: *object,
            }),
            _ => None,
        })
}

/// A path of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) object: i64,
}

impl PathRange {
    /// Returns whether a viewer can draw the path and pick its points.
    pub(crate) fn is_drawn(self) -> bool {
        let points = self.end.saturating_sub(self.start);
        (2..=MAX_POINTS).contains(&points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_to_floats_are_exact() {
        let odd = (1_i64 << 53) + 1;
        let even = 2_f64.powi(53);
        for (exact, along, expected) in [
            (Value::Int(odd), even, 1.0_f64),
            (Value::Int(-odd), -even, 1.0),
            (Value::Int(odd - 1), even, 0.0),
            (Value::Int(i64::MIN), -2_f64.powi(63), 0.0),
            (Value::Int(i64::MAX), 2_f64.powi(63), 1.0),
            (Value::UInt(u64::MAX), 2_f64.powi(64), 1.0),
            (Value::UInt((1 << 63) + 3), 2_f64.powi(63), 3.0),
            (Value::Float(0.1), 0.5, 0.4),
        ] {
            let found = distance(exact, along);
            assert_eq!(found.to_bits(), expected.to_bits(), "{exact:?}: {found}");
        }
    }
}
