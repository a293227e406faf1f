//! Points and paths as annotations.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use zvf::{ObjectIds, Owner, QueryResult};
use zvf_precomputed::{
    AnnotationInfo, AnnotationKind, Dimensions, PropertySpec, PropertyType, PropertyValue,
    RecordLayout, Relationship, SpatialLevel, SpatialLevels, SpatialSampler,
};

#[cfg(feature = "server")]
use zvf_catalog::Scope;
use zvf_catalog::Selection;

use super::{
    LayerError, LayerInput,
    attributes::PropertyPlan,
    coarse_first::{CoarseFirst, key_of_path, key_of_point},
    float_positions::FloatPositions,
    path_ids::PathIds,
    segments::GroupTable,
    shaders::{annotation_shader, path_shader},
    survey::{StoreSurvey, paths},
};

/// Annotations in a cell that a viewer draws with ease.
const LIMIT: u64 = 5000;
/// Bytes of positions in a cell: fewer paths than [`LIMIT`] if they are long.
const CELL_BYTES: u64 = 2 << 20;
/// Paths that are looked at to divide paths among levels: a regular sample of larger stores.
const SAMPLE: u64 = 1 << 13;

/// The ids of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdScheme {
    /// Running numbers in the result of a query for everything.
    Running,
    /// Addresses of points, or [`PathIds`]: ids that any query gives.
    Stored,
}

/// The elements of a store that are annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnotatedElements {
    Points,
    Paths,
    /// Edges of a graph.
    Links,
}

impl AnnotatedElements {
    pub(crate) fn of(survey: &StoreSurvey) -> Self {
        match (survey.is_path, survey.is_graph()) {
            (true, _) => Self::Paths,
            (false, true) => Self::Links,
            (false, false) => Self::Points,
        }
    }

    fn count(self, survey: &StoreSurvey) -> u64 {
        match self {
            Self::Points => survey.vertices,
            Self::Paths => survey.parts,
            Self::Links => survey.links,
        }
    }
}

/// The segments that annotations are related to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelatedSegments {
    Object,
    Group,
}

impl RelatedSegments {
    /// Returns the name of the relationship.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Group => "group",
        }
    }

    /// Returns the folder of the index of the relationship.
    pub(crate) fn folder(self) -> String {
        format!("related_{}", self.name())
    }
}

/// The form of the annotations of a store.
#[derive(Debug)]
pub(crate) struct AnnotationPlan {
    pub(crate) kind: AnnotationKind,
    pub(crate) annotated: AnnotatedElements,
    pub(crate) properties: Vec<PropertySpec>,
    pub(crate) layout: RecordLayout,
    pub(crate) levels: SpatialLevels,
    /// The number of points or paths.
    pub(crate) count: u64,
    pub(crate) shader: Option<String>,
    columns: PropertyPlan,
    coarse_first: CoarseFirst,
    ids: IdScheme,
    path_ids: PathIds,
    rank: usize,
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// The relationships, in the order of the document.
    pub(crate) related: Vec<RelatedSegments>,
    groups: Arc<GroupTable>,
}

impl AnnotationPlan {
    /// Plans the annotations of a store. Reads its positions once more to divide them among levels.
    pub(crate) async fn new(
        reading: &LayerInput<'_>,
        survey: &StoreSurvey,
        ids: IdScheme,
        notes: &mut Vec<String>,
    ) -> Result<Self, LayerError> {
        let annotated = AnnotatedElements::of(survey);
        let attributes = match annotated {
            AnnotatedElements::Points => &survey.vertex,
            AnnotatedElements::Paths => &survey.object,
            AnnotatedElements::Links => &survey.link,
        };
        let columns = PropertyPlan::new(attributes, notes);
        let kind = match annotated {
            AnnotatedElements::Points => AnnotationKind::Point,
            AnnotatedElements::Paths if !survey.is_pairs => AnnotationKind::Polyline,
            AnnotatedElements::Paths | AnnotatedElements::Links => AnnotationKind::Line,
        };
        survey.note_annotations(kind.name(), notes);
        let mut properties = columns.specs.clone();
        let is_line = annotated != AnnotatedElements::Points;
        if is_line {
            properties.push(PropertySpec {
                id: orientation_id(&properties),
                kind: PropertyType::Rgb,
                description: Some("Direction from the first to the last point".to_owned()),
                labels: Vec::new(),
            });
        }
        let shader = match properties.last().filter(|_| is_line) {
            Some(orientation) => Some(path_shader(kind, &orientation.id, &columns)),
            None => annotation_shader(&columns),
        };
        let rank = reading.space.rank();
        let (lower, upper) = bounds(survey);
        let (levels, coarse_first) = levels(reading, survey).await?;
        let mut related = Vec::new();
        if survey.has_objects {
            related.push(RelatedSegments::Object);
        }
        if !survey.groups.is_empty() {
            related.push(RelatedSegments::Group);
        }
        Ok(Self {
            kind,
            annotated,
            layout: RecordLayout::new(kind, rank, &properties),
            properties,
            levels,
            coarse_first,
            count: annotated.count(survey),
            shader,
            columns,
            ids,
            path_ids: survey.path_ids.clone(),
            rank,
            lower,
            upper,
            related,
            groups: Arc::clone(&survey.groups),
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
        let related = self.related.iter().map(|related| Relationship {
            id: related.name().to_owned(),
            key: related.folder(),
            sharding: None,
        });
        AnnotationInfo {
            dimensions: dimensions.clone(),
            lower_bound: self.lower.clone(),
            upper_bound: self.upper.clone(),
            kind: self.kind,
            properties: self.properties.clone(),
            relationships: related.collect(),
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
        let key = match (self.annotated, annotation.object) {
            (AnnotatedElements::Paths, Some(object)) => key_of_path(object),
            _ => key_of_point(annotation.coordinates),
        };
        let random = SpatialLevels::rank(annotation.id);
        let rank = self.coarse_first.rank(key, random);
        self.levels.level_of_rank(rank)
    }

    /// Returns the object of the path with a [stored](IdScheme::Stored) id.
    #[cfg(feature = "server")]
    pub(crate) fn object_of_path(&self, id: u64) -> Option<i64> {
        self.path_ids.object(id)
    }

    /// Returns the attributes that are properties.
    #[cfg(feature = "server")]
    pub(crate) fn selection(&self) -> Selection {
        let scope = match self.annotated {
            AnnotatedElements::Points => Scope::Vertex,
            AnnotatedElements::Paths => Scope::Object,
            AnnotatedElements::Links => Scope::Link,
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
            vertices: GraphVertices::new(self.rank),
        }
    }

    /// Returns the segments of each relationship of an annotation.
    pub(crate) fn related_to(&self, object: Option<i64>) -> Vec<Vec<u64>> {
        let segments = |related: &RelatedSegments| match (related, object) {
            (_, None) => Vec::new(),
            (RelatedSegments::Object, Some(object)) => u64::try_from(object).into_iter().collect(),
            (RelatedSegments::Group, Some(object)) => self.groups.numbers_of(object),
        };
        self.related.iter().map(segments).collect()
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
    reading: &LayerInput<'_>,
    survey: &StoreSurvey,
) -> Result<(SpatialLevels, CoarseFirst), LayerError> {
    let (lower, upper) = bounds(survey);
    let annotated = AnnotatedElements::of(survey);
    let count = annotated.count(survey);
    let rank = u64::try_from(lower.len()).unwrap_or(1);
    let position = rank.saturating_mul(4);
    let bytes = match annotated {
        AnnotatedElements::Links => position.saturating_mul(2),
        _ => survey.vertices.saturating_mul(position) / count.max(1),
    };
    let limit = (CELL_BYTES / bytes.max(1)).clamp(1, LIMIT);
    let mut sampler = SpatialSampler::new(&lower, &upper, count, limit);
    if count <= limit {
        return Ok((sampler.finish(limit), CoarseFirst::default()));
    }
    let mut coarse_first = match annotated {
        // Coarser graphs have other edges.
        AnnotatedElements::Links => CoarseFirst::default(),
        _ => CoarseFirst::new(reading, survey).await?,
    };
    let query = reading.query().columns(Selection::none()).owners(false);
    let (step, mut seen) = (count.div_ceil(SAMPLE), 0_u64);
    let mut vertices = GraphVertices::new(lower.len());
    reading
        .dataset
        .batches(&query, |batch| {
            let Some(positions) = FloatPositions::of(&batch, lower.len()) else {
                return ControlFlow::Continue(());
            };
            if annotated == AnnotatedElements::Links {
                vertices.add(&batch);
                for link in vertices.links(&batch) {
                    if let Some(link) = link.filter(|_| seen.is_multiple_of(step)) {
                        sampler.count_path(&link.coordinates, step);
                    }
                    seen = seen.saturating_add(1);
                }
            } else if annotated == AnnotatedElements::Paths {
                for path in paths(&batch) {
                    coarse_first.count(key_of_path(path.object));
                    if seen.is_multiple_of(step)
                        && let Some(coordinates) = positions.rows(path.start..path.end)
                    {
                        sampler.count_path(&coordinates, step);
                    }
                    seen = seen.saturating_add(1);
                }
            } else {
                for point in positions.finite() {
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

/// Numbers the cells of a grid.
pub(crate) fn cell_number(cell: &[u64], shape: &[u64]) -> u64 {
    let axes = cell.iter().zip(shape);
    axes.fold(0, |at, (along, extent)| {
        at.saturating_mul(*extent).saturating_add(*along)
    })
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
    let upper = survey
        .lower
        .iter()
        .zip(&survey.upper)
        .map(|(lo, hi)| lo + (hi - lo).max(min) * (1.0 + 1e-6));
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
    vertices: GraphVertices,
}

/// The vertices of a graph, to which links refer by row.
struct GraphVertices {
    rank: usize,
    /// Coordinates; those of a vertex are NaN if one is not finite.
    positions: Vec<f32>,
    /// Objects of the vertices, if the query requests them.
    objects: Vec<i64>,
}

/// A link of a graph.
struct GraphLink {
    /// Coordinates of both ends.
    coordinates: Vec<f32>,
    /// The object of both ends.
    object: Option<i64>,
}

impl GraphVertices {
    fn new(rank: usize) -> Self {
        Self {
            rank,
            positions: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// Adds the vertices of a batch, which come before all links.
    fn add(&mut self, batch: &QueryResult) {
        let Some(positions) = FloatPositions::of(batch, self.rank) else {
            return;
        };
        for row in 0..positions.len() {
            match positions.row(row) {
                Some(point) => self.positions.extend_from_slice(&point),
                None => self.positions.extend((0..self.rank).map(|_| f32::NAN)),
            }
        }
        let objects = batch.object_ids.as_ref().map(ObjectIds::numbers);
        self.objects.extend_from_slice(objects.unwrap_or_default());
    }

    /// Iterates over the links of a batch; `None` stands for one with a coordinate that is not finite.
    fn links(&self, batch: &QueryResult) -> impl Iterator<Item = Option<GraphLink>> {
        let links = batch.links.as_ref().filter(|links| links.width == 2);
        let ends = links.map(|links| links.ends.as_chunks::<2>().0);
        ends.unwrap_or_default().iter().map(|ends| self.link(*ends))
    }

    fn link(&self, ends: [u64; 2]) -> Option<GraphLink> {
        let mut coordinates = Vec::with_capacity(self.rank.saturating_mul(2));
        let mut objects = [None; 2];
        for (end, object) in ends.into_iter().zip(&mut objects) {
            let row = usize::try_from(end).ok()?;
            let start = row.checked_mul(self.rank)?;
            let point = self.positions.get(start..start.checked_add(self.rank)?)?;
            coordinates.extend_from_slice(point);
            *object = self.objects.get(row).copied();
        }
        let [first, second] = objects;
        let is_finite = coordinates.iter().all(|along| along.is_finite());
        is_finite.then_some(GraphLink {
            coordinates,
            object: first.filter(|_| first == second),
        })
    }
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
        match self.plan.annotated {
            AnnotatedElements::Points => self.add_points(batch, sink),
            AnnotatedElements::Paths => self.add_paths(batch, sink),
            AnnotatedElements::Links => self.add_links(batch, sink),
        }
    }

    fn add_links<S: AnnotationSink>(
        &mut self,
        batch: &QueryResult,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        self.vertices.add(batch);
        let properties = self.plan.columns.bind(&batch.link);
        let mut values = Vec::new();
        for (row, link) in self.vertices.links(batch).enumerate() {
            let id = self.next;
            self.next = self.next.saturating_add(1);
            let Some(link) = link else { continue };
            values.clear();
            properties.push(Some(row), &mut values);
            let colour = orientation(&link.coordinates, self.plan.rank);
            values.push(PropertyValue::Rgb(colour));
            sink.push(StoreAnnotation {
                id,
                coordinates: &link.coordinates,
                values: &values,
                object: link.object,
            })?;
        }
        Ok(())
    }

    fn add_points<S: AnnotationSink>(
        &mut self,
        batch: &QueryResult,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let Some(positions) = FloatPositions::of(batch, self.plan.rank) else {
            return Ok(());
        };
        let properties = self.plan.columns.bind(&batch.vertex);
        let stored = batch
            .row_ids
            .as_ref()
            .filter(|_| self.plan.ids == IdScheme::Stored);
        let mut values = Vec::new();
        for row in 0..positions.len() {
            let id = match stored {
                Some(ids) => ids.get(row).copied().unwrap_or(self.next),
                None => self.next,
            };
            self.next = self.next.saturating_add(1);
            let Some(point) = positions.row(row) else {
                continue;
            };
            values.clear();
            properties.push(Some(row), &mut values);
            let object = batch.object_ids.as_ref().and_then(|ids| ids.get(row));
            sink.push(StoreAnnotation {
                id,
                coordinates: &point,
                values: &values,
                object: object.map(Owner::number),
            })?;
        }
        Ok(())
    }

    fn add_paths<S: AnnotationSink>(
        &mut self,
        batch: &QueryResult,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let Some(positions) = FloatPositions::of(batch, self.plan.rank) else {
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
                IdScheme::Stored => self.plan.path_ids.id(path.object, last.paths),
            };
            last.paths = last.paths.saturating_add(1);
            let coordinates = if path.is_drawn() {
                positions.rows(path.start..path.end)
            } else {
                None
            };
            let Some((id, coordinates)) = id.zip(coordinates) else {
                self.last_object = Some(last);
                continue;
            };
            let colour = orientation(&coordinates, self.plan.rank);
            last.values.push(PropertyValue::Rgb(colour));
            let pushed = sink.push(StoreAnnotation {
                id,
                coordinates: &coordinates,
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

/// Returns the identifier of the property of the orientation, which no attribute has.
fn orientation_id(attributes: &[PropertySpec]) -> String {
    let numbered = (2_u64..).map(|number| format!("orientation_rgb{number}"));
    let mut candidates = ["orientation", "orientation_rgb"]
        .map(str::to_owned)
        .into_iter()
        .chain(numbered);
    let is_free = |id: &String| attributes.iter().all(|attribute| attribute.id != *id);
    // The candidates do not end, so that one is free.
    candidates.find(is_free).unwrap_or_default()
}

/// Returns the direction from the first to the last point as a colour.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares of a length are between 0 and 1"
)]
fn orientation(coordinates: &[f32], rank: usize) -> [u8; 3] {
    let first = coordinates.get(..rank).unwrap_or_default();
    let last = coordinates.len().saturating_sub(rank);
    let last = coordinates.get(last..).unwrap_or_default();
    let along = |axis: usize| {
        let ends = first.get(axis).zip(last.get(axis));
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
    fn orientations_are_colours() {
        let points = |to: [f32; 3]| [[0.0, 0.0, 0.0], [9.0, 9.0, 9.0], to].concat();
        assert_eq!(orientation(&points([0.0, -5.0, 0.0]), 3), [0, 255, 0]);
        assert_eq!(orientation(&points([0.0; 3]), 3), [0, 0, 0]);
        assert_eq!(orientation(&[0.0, 0.0, 3.0, 4.0], 2), [153, 204, 0]);
    }
}
