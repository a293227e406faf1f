//! Points and paths as annotations.

use std::{
    collections::HashMap,
    ops::{ControlFlow, Range},
};

use zvf::QueryResult;
use zvf_precomputed::{
    AnnotationInfo, AnnotationKind, Dimensions, PropertySpec, PropertyType, PropertyValue,
    RecordLayout, Relationship, SpatialLevel, SpatialLevels, SpatialSampler,
};

use zvf_query::Selection;
#[cfg(feature = "server")]
use zvf_query::predicate::Scope;

use super::{
    LayerError, Reading,
    attributes::PropertyPlan,
    coarse_first::{CoarseFirst, key_of_path, key_of_point},
    shaders::{annotation_shader, path_shader},
    survey::{StoreSurvey, finite, paths},
};

/// Annotations in a cell that a viewer draws with ease.
const LIMIT: u64 = 5000;
/// Bytes of positions in a cell: fewer paths than [`LIMIT`] if they are long.
const CELL_BYTES: u64 = 2 << 20;
/// Paths that are looked at to divide paths among levels: a regular sample of larger stores.
const SAMPLE: u64 = 1 << 13;
/// Points of a polyline that a viewer can pick.
const MOST_POINTS: usize = 100_000;
const RELATED: &str = "related_object";

/// The ids of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdScheme {
    /// Running numbers in the result of a query for everything.
    Running,
    /// The address of a point, or the object of a path with the number of the path in the object:
    /// ids that any query gives.
    Stored,
}

/// Bits of an id for the object of a path. The bits above them number the paths of the object.
const OBJECT_BITS: u32 = 40;

/// Returns the id of a path by its object and its number in the object.
fn path_id(object: i64, part: u64) -> Option<u64> {
    let object = u64::try_from(object)
        .ok()
        .filter(|id| id >> OBJECT_BITS == 0)?;
    let part = (part >> (63 - OBJECT_BITS) == 0).then_some(part)?;
    Some(part << OBJECT_BITS | object)
}

/// Returns the object of the path with this id.
#[cfg(feature = "server")]
pub(crate) fn object_of_path(id: u64) -> Option<i64> {
    i64::try_from(id & ((1 << OBJECT_BITS) - 1)).ok()
}

/// The form of the annotations of a store.
#[derive(Debug)]
pub(crate) struct AnnotationPlan {
    pub(crate) kind: AnnotationKind,
    pub(crate) properties: Vec<PropertySpec>,
    pub(crate) layout: RecordLayout,
    pub(crate) levels: SpatialLevels,
    /// The number of points or paths.
    pub(crate) count: u64,
    pub(crate) shader: Option<String>,
    columns: PropertyPlan,
    coarse_first: CoarseFirst,
    ids: IdScheme,
    rank: usize,
    lower: Vec<f64>,
    upper: Vec<f64>,
    pub(crate) has_objects: bool,
}

impl AnnotationPlan {
    /// Plans the annotations of a store. Reads its positions once more to divide them among levels.
    pub(crate) async fn new(
        reading: &Reading<'_>,
        survey: &StoreSurvey,
        ids: IdScheme,
        notes: &mut Vec<String>,
    ) -> Result<Self, LayerError> {
        let attributes = if survey.is_path {
            &survey.object
        } else {
            &survey.vertex
        };
        let columns = PropertyPlan::new(attributes, notes);
        let kind = match (survey.is_path, survey.is_pairs) {
            (false, _) => AnnotationKind::Point,
            (true, true) => AnnotationKind::Line,
            (true, false) => AnnotationKind::Polyline,
        };
        let mut properties = columns.specs.clone();
        if survey.is_path {
            let taken = properties
                .iter()
                .any(|property| property.id == "orientation");
            properties.push(PropertySpec {
                id: if taken {
                    "orientation_rgb"
                } else {
                    "orientation"
                }
                .to_owned(),
                kind: PropertyType::Rgb,
                description: Some("Direction from the first to the last point".to_owned()),
                labels: Vec::new(),
            });
        }
        let shader = match properties.last().filter(|_| survey.is_path) {
            Some(orientation) => Some(path_shader(kind, &orientation.id)),
            None => annotation_shader(&columns),
        };
        let rank = reading.space.rank();
        let (lower, upper) = bounds(survey);
        let (levels, coarse_first) = levels(reading, survey).await?;
        Ok(Self {
            kind,
            layout: RecordLayout::new(kind, rank, &properties),
            properties,
            levels,
            coarse_first,
            count: if survey.is_path {
                survey.parts
            } else {
                survey.vertices
            },
            shader,
            columns,
            ids,
            rank,
            lower,
            upper,
            has_objects: survey.has_objects,
        })
    }

    /// Returns the document, without shards.
    pub(crate) fn info(&self, dimensions: &Dimensions) -> AnnotationInfo {
        let levels = self.levels.grids().iter().enumerate();
        let levels = levels.map(|(at, grid)| SpatialLevel {
            key: format!("spatial{at}"),
            grid_shape: grid.shape.clone(),
            chunk_size: grid.cell.clone(),
            limit: self.levels.expected(at),
            sharding: None,
        });
        let related = self.has_objects.then(|| Relationship {
            id: "object".to_owned(),
            key: RELATED.to_owned(),
            sharding: None,
        });
        AnnotationInfo {
            dimensions: dimensions.clone(),
            lower_bound: self.lower.clone(),
            upper_bound: self.upper.clone(),
            kind: self.kind,
            properties: self.properties.clone(),
            relationships: related.into_iter().collect(),
            by_id: "by_id".to_owned(),
            by_id_sharding: None,
            spatial: levels.collect(),
        }
    }

    /// Returns the level of the spatial index on which an annotation is.
    pub(crate) fn level_of(&self, annotation: StoreAnnotation<'_>) -> usize {
        if self.coarse_first.is_empty() {
            return self.levels.level_of(annotation.id);
        }
        let key = match (self.kind, annotation.object) {
            (AnnotationKind::Point, _) | (_, None) => key_of_point(annotation.coordinates),
            (_, Some(object)) => key_of_path(object),
        };
        let random = SpatialLevels::rank(annotation.id);
        let rank = self.coarse_first.rank(key, random);
        self.levels.level_of_rank(rank)
    }

    /// Returns the attributes that are properties.
    #[cfg(feature = "server")]
    pub(crate) fn selection(&self) -> Selection {
        let scope = match self.kind {
            AnnotationKind::Point => Scope::Vertex,
            _ => Scope::Object,
        };
        let names = self.columns.names();
        Selection::Named(names.map(|name| (Some(scope), name.to_owned())).collect())
    }

    /// Returns a conversion of the batches of one query.
    pub(crate) fn rows(&self) -> AnnotationRows<'_> {
        AnnotationRows {
            plan: self,
            next: 0,
            last_object: None,
            skipped: 0,
        }
    }

    /// Returns a note about annotations that were left out.
    pub(crate) fn note_skipped(&self, skipped: u64, notes: &mut Vec<String>) {
        if skipped > 0 {
            let what = self.kind.name();
            notes.push(format!(
                "{skipped} of kind {what} left out: coordinates that are not finite, fewer than 2 \
                 points, or more than {MOST_POINTS}"
            ));
        }
    }
}

/// An annotation of a store.
#[derive(Clone, Copy)]
pub(crate) struct StoreAnnotation<'a> {
    pub(crate) id: u64,
    /// Coordinates of the point, or of all points of the path.
    pub(crate) coordinates: &'a [f32],
    pub(crate) values: &'a [PropertyValue],
    pub(crate) object: Option<i64>,
}

/// A receiver of annotations.
pub(crate) trait AnnotationSink {
    type Error;

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), Self::Error>;
}

/// Counts annotations in cells and divides them among levels.
async fn levels(
    reading: &Reading<'_>,
    survey: &StoreSurvey,
) -> Result<(SpatialLevels, CoarseFirst), LayerError> {
    let (lower, upper) = bounds(survey);
    let count = if survey.is_path {
        survey.parts
    } else {
        survey.vertices
    };
    let rank = u64::try_from(lower.len()).unwrap_or(1);
    let position = rank.saturating_mul(4);
    let bytes = survey.vertices.saturating_mul(position) / count.max(1);
    let limit = (CELL_BYTES / bytes.max(1)).clamp(1, LIMIT);
    let mut sampler = SpatialSampler::new(&lower, &upper, count, limit);
    if count <= limit {
        return Ok((sampler.finish(limit), CoarseFirst::default()));
    }
    let mut coarse_first = CoarseFirst::new(reading, survey).await?;
    let query = reading.query().columns(Selection::none()).owners(false);
    let (step, mut seen) = (count.div_ceil(SAMPLE), 0_u64);
    reading
        .dataset
        .batches(&query, |batch| {
            let Some(view) = batch.positions.view() else {
                return ControlFlow::Continue(());
            };
            let points =
                |rows: Range<usize>| rows.filter_map(|row| finite(&view, row, lower.len()));
            if survey.is_path {
                for path in paths(&batch) {
                    coarse_first.count(key_of_path(path.object));
                    if seen.is_multiple_of(step) {
                        let coordinates: Vec<Vec<f32>> = points(path.start..path.end).collect();
                        sampler.count_path(&coordinates.concat(), step);
                    }
                    seen = seen.saturating_add(1);
                }
            } else {
                for point in points(0..view.rows()) {
                    sampler.count(&point);
                    if !coarse_first.is_empty() {
                        coarse_first.count(key_of_point(&point));
                    }
                }
            }
            ControlFlow::Continue(())
        })
        .await?;
    coarse_first.finish(count);
    Ok((sampler.finish(limit), coarse_first))
}

/// Returns bounds with a positive extent along every axis.
fn bounds(survey: &StoreSurvey) -> (Vec<f64>, Vec<f64>) {
    let extents = survey
        .lower
        .iter()
        .zip(&survey.upper)
        .map(|(lo, hi)| hi - lo);
    let widest = extents.fold(0.0, f64::max);
    let min = if widest > 0.0 { widest * 1e-3 } else { 1.0 };
    let upper = survey.lower.iter().zip(&survey.upper);
    let upper = upper.map(|(lo, hi)| lo + (hi - lo).max(min) * (1.0 + 1e-6));
    (survey.lower.clone(), upper.collect())
}

/// Conversion of batches into annotations.
pub(crate) struct AnnotationRows<'a> {
    plan: &'a AnnotationPlan,
    /// The running number of the next annotation.
    pub(crate) next: u64,
    /// The object of the last path: its paths may continue in the next batch, which does not repeat
    /// the attributes.
    last_object: Option<LastObject>,
    pub(crate) skipped: u64,
}

struct LastObject {
    id: i64,
    values: Vec<PropertyValue>,
    /// Paths of the object so far.
    paths: u64,
}

impl AnnotationRows<'_> {
    /// Passes the annotations of a batch to `sink`.
    pub(crate) fn add<S: AnnotationSink>(
        &mut self,
        batch: &QueryResult,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        match self.plan.kind {
            AnnotationKind::Point => self.add_points(batch, sink),
            _ => self.add_paths(batch, sink),
        }
    }

    fn add_points<S: AnnotationSink>(
        &mut self,
        batch: &QueryResult,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let Some(view) = batch.positions.view() else {
            return Ok(());
        };
        let properties = self.plan.columns.bind(&batch.vertex);
        let stored = batch.row_ids.as_ref();
        let stored = stored.filter(|_| self.plan.ids == IdScheme::Stored);
        let mut values = Vec::new();
        for row in 0..view.rows() {
            let id = match stored {
                Some(ids) => ids.get(row).copied().unwrap_or(self.next),
                None => self.next,
            };
            self.next = self.next.saturating_add(1);
            let Some(point) = finite(&view, row, self.plan.rank) else {
                self.skipped = self.skipped.saturating_add(1);
                continue;
            };
            values.clear();
            properties.push(Some(row), &mut values);
            let object = batch.object_ids.as_ref().and_then(|ids| ids.get(row));
            sink.push(StoreAnnotation {
                id,
                coordinates: &point,
                values: &values,
                object: object.copied(),
            })?;
        }
        Ok(())
    }

    fn add_paths<S: AnnotationSink>(
        &mut self,
        batch: &QueryResult,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let Some(view) = batch.positions.view() else {
            return Ok(());
        };
        let rows: HashMap<i64, usize> = batch.objects.iter().copied().zip(0..).collect();
        let properties = self.plan.columns.bind(&batch.object);
        for path in paths(batch) {
            let running = self.next;
            self.next = self.next.saturating_add(1);
            let known = self.last_object.take();
            let known = known.filter(|known| known.id == path.object);
            let mut last = known.unwrap_or_else(|| {
                let mut values = Vec::new();
                properties.push(rows.get(&path.object).copied(), &mut values);
                LastObject {
                    id: path.object,
                    values,
                    paths: 0,
                }
            });
            let id = match self.plan.ids {
                IdScheme::Running => Some(running),
                IdScheme::Stored => path_id(path.object, last.paths),
            };
            last.paths = last.paths.saturating_add(1);
            let points = path.end.saturating_sub(path.start);
            let point = |row| finite(&view, row, self.plan.rank);
            let is_drawn = (2..=MOST_POINTS).contains(&points);
            let coordinates: Option<Vec<Vec<f32>>> = match is_drawn {
                true => (path.start..path.end).map(point).collect(),
                false => None,
            };
            let Some((id, coordinates)) = id.zip(coordinates) else {
                self.skipped = self.skipped.saturating_add(1);
                self.last_object = Some(last);
                continue;
            };
            last.values
                .push(PropertyValue::Rgb(orientation(&coordinates)));
            let pushed = sink.push(StoreAnnotation {
                id,
                coordinates: &coordinates.concat(),
                values: &last.values,
                object: Some(path.object),
            });
            last.values.pop();
            self.last_object = Some(last);
            pushed?;
        }
        Ok(())
    }
}

/// Returns the direction from the first to the last point as a colour.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares of a length are between 0 and 1"
)]
fn orientation(points: &[Vec<f32>]) -> [u8; 3] {
    let ends = points.first().zip(points.last());
    let along = |axis: usize| {
        let ends = ends.and_then(|(first, last)| Some((first.get(axis)?, last.get(axis)?)));
        ends.map_or(0.0, |(first, last)| f64::from(*last) - f64::from(*first))
    };
    let direction = [along(0), along(1), along(2)];
    let length = direction
        .iter()
        .map(|along| along * along)
        .sum::<f64>()
        .sqrt();
    direction.map(|along| (along.abs() / length.max(f64::MIN_POSITIVE) * 255.0).round() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_paths_hold_the_object() {
        assert_eq!(path_id(7, 0), Some(7));
        assert_eq!(path_id(7, 2), Some(2 << 40 | 7));
        assert_eq!(path_id(-1, 0), None);
        assert_eq!(path_id(1 << 40, 0), None);
        assert_eq!(path_id(7, 1 << 23), None);
    }

    #[test]
    fn orientations_are_colours() {
        let points = |to: [f32; 3]| [vec![0.0, 0.0, 0.0], to.to_vec()];
        assert_eq!(orientation(&points([0.0, -5.0, 0.0])), [0, 255, 0]);
        assert_eq!(orientation(&points([0.0; 3])), [0, 0, 0]);
        assert_eq!(
            orientation(&[vec![0.0, 0.0], vec![3.0, 4.0]]),
            [153, 204, 0]
        );
    }
}
