//! Skeletons: their attributes, and paths as skeletons.

use serde_json::Value;
use zvf::QueryResult;
use zvf_model::level::LevelId;
use zvf_precomputed::{
    AttributeType, IDENTITY, PrecomputedError, Skeleton, SkeletonInfo, VertexAttribute,
};

use super::{
    Layer, LayerError, LayerInput, LayerKind,
    attributes::{SkeletonPlan, narrow},
    float_positions::FloatPositions,
    levels::usable_levels,
    segments::PROPERTIES,
    shaders::skeleton_shader,
    shapes::{self, ObjectShape},
    survey::{StoreSurvey, survey},
};

/// The form of the skeletons of a store.
#[derive(Debug)]
pub(crate) struct SkeletonLayer {
    pub(crate) info: SkeletonInfo,
    pub(crate) shader: Option<String>,
    columns: SkeletonPlan,
    pub(crate) is_path: bool,
}

impl SkeletonLayer {
    /// Plans the skeletons of a store.
    pub(crate) fn new(
        reading: &LayerInput<'_>,
        survey: &StoreSurvey,
        notes: &mut Vec<String>,
    ) -> Result<Self, LayerError> {
        let scale = reading
            .space
            .nanometres()
            .ok_or_else(|| LayerError::Axes(reading.space.rank()))?;
        let mut transform = IDENTITY;
        for (at, along) in [0, 5, 10].into_iter().zip(scale) {
            if let Some(place) = transform.get_mut(at) {
                *place = along;
            }
        }
        let direction = survey.is_path.then(|| VertexAttribute {
            id: "dir".to_owned(),
            data_type: AttributeType::Float32,
            components: 3,
        });
        let columns = SkeletonPlan::new(&survey.vertex, direction.as_slice(), notes);
        let orientation = columns
            .attributes
            .last()
            .filter(|_| survey.is_path)
            .map(|attribute| attribute.id.as_str());
        let shader = skeleton_shader(&columns.attributes, &columns.ranges, orientation);
        let properties = survey
            .segments
            .has_document()
            .then(|| PROPERTIES.to_owned());
        Ok(Self {
            info: SkeletonInfo {
                transform,
                vertex_attributes: columns.attributes.clone(),
                segment_properties: properties,
                sharding: None,
            },
            shader,
            columns,
            is_path: survey.is_path,
        })
    }

    /// Plans the skeletons of groups of paths.
    pub(crate) fn of_groups(
        reading: &LayerInput<'_>,
        survey: &StoreSurvey,
    ) -> Result<Self, LayerError> {
        // The skeletons of objects have the same attributes, and notes.
        let mut layer = Self::new(reading, survey, &mut Vec::new())?;
        let has_document = survey.groups.segments.has_document();
        layer.info.segment_properties = has_document.then(|| PROPERTIES.to_owned());
        Ok(layer)
    }

    /// Returns the sources of the attributes as JSON, for [`restore`](Self::restore).
    pub(crate) fn sources(&self) -> Value {
        self.columns.to_json()
    }

    /// Restores the form of skeletons of this document, without a shader, from the
    /// [sources](Self::sources) of the attributes.
    pub(crate) fn restore(info: SkeletonInfo, sources: &Value, is_path: bool) -> Option<Self> {
        Some(Self {
            columns: SkeletonPlan::restore(&info.vertex_attributes, sources)?,
            info,
            shader: None,
            is_path,
        })
    }

    /// Returns a skeleton without vertices.
    pub(crate) fn empty(&self) -> Skeleton {
        Skeleton {
            attributes: vec![Vec::new(); self.columns.attributes.len()],
            ..Skeleton::default()
        }
    }

    /// Returns the skeleton of a shape; `None` if a coordinate is not finite.
    pub(crate) fn of_shape(&self, batch: &QueryResult, shape: &ObjectShape) -> Option<Skeleton> {
        let mut skeleton = self.empty();
        skeleton.positions = shapes::positions(batch, &shape.rows)?;
        self.columns
            .push(&batch.vertex, &shape.rows, &mut skeleton.attributes);
        let edges = shape.links().filter_map(|link| link.first_chunk());
        skeleton.edges = edges.copied().collect();
        Some(skeleton)
    }

    /// Adds rows of a batch to a skeleton, without edges. Returns whether their coordinates are finite.
    #[cfg(feature = "server")]
    pub(crate) fn push_rows(
        &self,
        batch: &QueryResult,
        rows: &[usize],
        skeleton: &mut Skeleton,
    ) -> bool {
        let Some(positions) = shapes::positions(batch, rows) else {
            return false;
        };
        skeleton.positions.extend_from_slice(&positions);
        self.columns
            .push(&batch.vertex, rows, &mut skeleton.attributes);
        true
    }

    /// Returns the bytes of the attributes of a vertex.
    #[cfg(feature = "server")]
    pub(crate) fn attribute_bytes(&self) -> u64 {
        let attributes = self.columns.attributes.iter();
        let components = attributes.map(|attribute| u64::from(attribute.components));
        components.sum::<u64>().saturating_mul(4)
    }

    /// Adds a path of a batch to a skeleton, and returns whether its coordinates are finite.
    pub(crate) fn push_path(
        &self,
        batch: &QueryResult,
        rows: std::ops::Range<usize>,
        skeleton: &mut Skeleton,
    ) -> Result<bool, LayerError> {
        let positions = FloatPositions::of(batch, 3);
        let points = positions.and_then(|all| all.rows(rows.clone()));
        let Some(points) = points else {
            return Ok(false);
        };
        let points = points.as_chunks::<3>().0;
        let first = u32::try_from(skeleton.positions.len())
            .map_err(|_| PrecomputedError::Count("vertices"))?;
        let count = u32::try_from(points.len()).unwrap_or(u32::MAX);
        let last = first.saturating_add(count).saturating_sub(1);
        skeleton
            .edges
            .extend((first..last).map(|row| [row, row.saturating_add(1)]));
        let rows: Vec<usize> = rows.collect();
        self.columns
            .push(&batch.vertex, &rows, &mut skeleton.attributes);
        if let Some(directions) = skeleton.attributes.last_mut() {
            let numbers = tangents(points).into_iter().flatten();
            directions.extend(numbers.flat_map(f32::to_le_bytes));
        }
        skeleton.positions.extend_from_slice(points);
        Ok(true)
    }

    /// Returns the skeleton that the paths of a result form.
    pub(crate) fn of_paths(&self, batch: &QueryResult) -> Result<Skeleton, LayerError> {
        let mut skeleton = self.empty();
        for path in super::survey::paths(batch) {
            self.push_path(batch, path.start..path.end, &mut skeleton)?;
        }
        Ok(skeleton)
    }
}

/// Returns whether groups are drawn as skeletons: those of paths.
pub(crate) fn draws_groups(reading: &LayerInput<'_>, survey: &StoreSurvey) -> bool {
    survey.is_path && reading.space.nanometres().is_some()
}

/// Returns the layer of groups.
pub(crate) fn group_layer(survey: &StoreSurvey, shader: Option<String>) -> Layer {
    let table = &survey.groups.segments;
    Layer {
        kind: LayerKind::Groups,
        level: LevelId::FULL,
        items: u64::try_from(table.ids.len()).unwrap_or(u64::MAX),
        shader,
        shown: table.shown(),
        is_related: false,
        transform: None,
    }
}

/// Returns the coarser levels of skeletons and graphs, the finest first. Paths have none: their
/// annotations show them at any distance.
pub(crate) async fn coarser<'a>(
    reading: &LayerInput<'a>,
    full: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Vec<(LayerInput<'a>, StoreSurvey)>, LayerError> {
    let mut found = Vec::new();
    if full.is_path {
        return Ok(found);
    }
    let levels = usable_levels(reading.dataset, full.has_objects).await?;
    for (id, reason) in levels.left_out {
        notes.push(format!("level {id} is left out of the skeletons: {reason}"));
    }
    for level in levels.chosen {
        let reading = LayerInput { level, ..*reading };
        match survey(&reading, notes).await {
            Ok(survey) => found.push((reading, survey)),
            Err(LayerError::Empty) => {
                notes.push(format!(
                    "level {level} is left out of the skeletons: it is empty"
                ));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Returns the unit direction at each point, from its neighbours.
fn tangents(points: &[[f32; 3]]) -> Vec<[f32; 3]> {
    let directions = (0..points.len()).map(|at| {
        let before = points.get(at.saturating_sub(1));
        let after = points.get(at.saturating_add(1)).or(points.get(at));
        let ends = before.zip(after);
        let along = ends.map_or([0.0; 3], |(from, to)| {
            let [ax, ay, az] = from.map(f64::from);
            let [bx, by, bz] = to.map(f64::from);
            [bx - ax, by - ay, bz - az]
        });
        let length = along.iter().map(|part| part * part).sum::<f64>().sqrt();
        along.map(|part| narrow(part / length.max(f64::MIN_POSITIVE)))
    });
    directions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tangents_are_unit_vectors() {
        let points = [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 2.0, 0.0]];
        let half = 0.5_f32.sqrt();
        assert_eq!(
            tangents(&points),
            [[1.0, 0.0, 0.0], [half, half, 0.0], [0.0, 1.0, 0.0]]
        );
        assert_eq!(tangents(&[[1.0; 3]]), [[0.0; 3]]);
    }
}
