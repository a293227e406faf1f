//! Statistics of all batches.

use crate::{
    bounds, check, coordinates,
    design::{AxisSpec, Design},
    error::BuildError,
    geometry::{Geometry, GeometryKind},
    large::outline::{Field, Outline},
    metadata, sharding,
    sizing::FragmentKind,
    spatial_layout::SpatialLayout,
};
use zvf_model::column::{Column, ColumnValues, NumericColumn};

/// Upper bound on sampled rows.
const SAMPLE: usize = 100_000;

/// First pass over the batches: extent, sample, attributes and number of vertices.
#[derive(Debug)]
pub struct GeometrySurvey {
    design: Design,
    extent: Option<(Vec<f64>, Vec<f64>)>,
    sample: Option<NumericColumn>,
    /// Distance between sampled rows.
    step: usize,
    vertices: u64,
    has_objects: bool,
    fields: Option<Vec<Field>>,
}

impl GeometrySurvey {
    /// Creates an empty survey; `has_objects` if object or group tables exist.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for geometry with links, and for the padded profile.
    pub fn new(design: Design, has_objects: bool) -> Result<Self, BuildError> {
        if design.kind.is_linked() {
            return Err(BuildError::Unsupported {
                kind: design.kind.name(),
                what: "partitioned writing, because their links may connect any partitions",
            });
        }
        if design.profile == crate::Profile::Padded {
            // The array shape depends on the fullest chunk, which is known at the end only.
            return Err(BuildError::UnsupportedOption {
                profile: design.profile.name(),
                what: "partitioned writing",
            });
        }
        let has_objects = has_objects || design.kind != GeometryKind::Points;
        Ok(Self {
            design,
            extent: None,
            sample: None,
            step: 1,
            vertices: 0,
            has_objects,
            fields: None,
        })
    }

    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the batch is inconsistent, or differs from earlier ones.
    pub fn add(&mut self, batch: &Geometry) -> Result<(), BuildError> {
        check::check(batch, &self.design)?;
        self.has_objects |= batch.object_ids.is_some();
        let fields = batch.vertex.iter().map(Field::of).collect::<Vec<_>>();
        match &self.fields {
            None => self.fields = Some(fields),
            Some(before)
                if before.len() == fields.len()
                    && before.iter().zip(&fields).all(|(a, b)| a.like(b)) => {}
            Some(_) => {
                return Err(BuildError::MissingInput {
                    kind: "batches",
                    what: "equal attributes in every batch",
                });
            }
        }
        let stored = bounds::stored(batch.clone(), &self.design)?;
        let positions = &stored.positions;
        let (lower, upper) = coordinates::extent(positions)?;
        // Rejects vertices outside the bounds, or leaves dropping them to the second pass.
        bounds::bounded(stored.clone(), &self.design)
            .map(|_| ())
            .or_else(|error| match error {
                BuildError::AllOutside => Ok(()),
                error => Err(error),
            })?;
        self.extent = Some(match self.extent.take() {
            None => (lower, upper),
            Some((min, max)) => (
                min.iter().zip(&lower).map(|(a, b)| a.min(*b)).collect(),
                max.iter().zip(&upper).map(|(a, b)| a.max(*b)).collect(),
            ),
        });
        let first = self.vertices;
        self.vertices += positions.len() as u64;
        let sample = self
            .sample
            .get_or_insert_with(|| NumericColumn::new(positions.kind, positions.width));
        for row in 0..positions.len() {
            if (first + row as u64).is_multiple_of(self.step as u64) {
                sample.bytes.extend_from_slice(positions.row(row));
            }
        }
        while sample.len() > SAMPLE {
            let half: Vec<u8> = (0..sample.len())
                .step_by(2)
                .flat_map(|row| sample.row(row).to_vec())
                .collect();
            sample.bytes = half;
            self.step *= 2;
        }
        Ok(())
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> u64 {
        self.vertices
    }

    /// Returns the coordinates of some vertices, evenly spread over the batches.
    pub fn sample(&self) -> Option<&NumericColumn> {
        self.sample.as_ref()
    }

    /// Decides shapes, bounds and grid.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there are no vertices, or the shapes are invalid.
    pub fn outline(self) -> Result<Outline, BuildError> {
        let (Some(extent), Some(sample)) = (self.extent, self.sample) else {
            return Err(BuildError::Empty);
        };
        let mut design = self.design;
        let bounds = match &design.bounds {
            None => extent,
            Some((lower, upper)) => match design.out_of_bounds {
                crate::OutOfBounds::Expand => (
                    lower
                        .iter()
                        .zip(&extent.0)
                        .map(|(a, b)| a.min(*b))
                        .collect(),
                    upper
                        .iter()
                        .zip(&extent.1)
                        .map(|(a, b)| a.max(*b))
                        .collect(),
                ),
                _ => (lower.clone(), upper.clone()),
            },
        };
        design.bounds = Some(bounds.clone());
        let (lower, upper) = bounds;
        let axes: Vec<AxisSpec> = match &design.axes {
            Some(axes) => axes.clone(),
            None => metadata::default_axes(sample.row_len()),
        };
        let fragments = FragmentKind::of_geometry(self.has_objects);
        let space = SpatialLayout::of(&design, &sample, lower, upper, fragments, self.vertices)?;
        let grid = space.grid(fragments)?;
        let row = sample.row_size() as u64;
        let per_chunk = crate::sizing::LOOKUP_BYTES;
        let chunks = (self.vertices * row / per_chunk).max(1);
        let shard = sharding::shard(&design, &grid.1, chunks, self.vertices * row)?;
        Ok(Outline {
            design,
            space,
            axes,
            grid,
            shard,
            positions: (sample.kind, sample.row_len()),
            has_objects: self.has_objects,
            fields: self.fields.unwrap_or_default(),
        })
    }
}

impl Field {
    fn of(attribute: &Column) -> Self {
        match &attribute.values {
            ColumnValues::Numeric(numbers) => Self {
                name: attribute.name.clone(),
                numbers: Some((numbers.kind, numbers.row_len())),
                words: Vec::new(),
                missing: false,
            },
            ColumnValues::Dictionary { .. } => Self {
                name: attribute.name.clone(),
                numbers: None,
                words: Vec::new(),
                missing: attribute.texts().any(|text| text.is_none()),
            },
        }
    }

    fn like(&self, other: &Self) -> bool {
        self.name == other.name && self.numbers == other.numbers
    }
}
