//! Statistics of all batches.

use serde_json::{Value, json};

use crate::{
    GeometryKind, bounds, check, column_check, coordinates,
    design::{AxisSpec, Design},
    error::BuildError,
    geometry::{Geometry, GeometryBuilder, LinkEnds, LinkNumbering, VertexOwners},
    large::json::{described, field, floats},
    large::outline::{Field, Outline},
    large::piece::damaged,
    large::spill::{count, decode_batch, encode_batch, read_header},
    metadata, sharding,
    sizing::{self, FragmentKind},
    spatial_layout::SpatialLayout,
    stored_column::check_nulls,
};
use zvf_model::{
    column::{Column, ColumnValues, NumericColumn},
    scope::Scope,
};

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
    /// Number of vertices, with those outside the bounds.
    vertices: u64,
    /// Number of vertices that are stored.
    stored: u64,
    paths: u64,
    has_objects: bool,
    /// Attributes of vertices, and those of objects that come with paths.
    fields: Option<[Vec<Field>; 2]>,
    links: u64,
    /// Number of ends of a link, and attributes of links.
    link_form: Option<(usize, Vec<Field>)>,
}

impl GeometrySurvey {
    /// Creates an empty survey; `has_objects` if object or group tables exist.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for the padded profile.
    pub fn new(design: Design, has_objects: bool) -> Result<Self, BuildError> {
        if design.profile == crate::Profile::Padded {
            // The array shape depends on the fullest chunk, which is known at the end only.
            return Err(BuildError::UnsupportedOption {
                profile: design.profile.name(),
                what: "partitioned writing",
            });
        }
        if design.flat_link_attributes {
            // The order of the rows is that of all cells, which no partition has.
            return Err(BuildError::UnsupportedOption {
                profile: design.profile.name(),
                what: "partitioned writing with one array for the attributes of links between chunks",
            });
        }
        let has_objects = has_objects || design.kind != GeometryKind::Points;
        Ok(Self {
            design,
            extent: None,
            sample: None,
            step: 1,
            vertices: 0,
            stored: 0,
            paths: 0,
            has_objects,
            fields: None,
            links: 0,
            link_form: None,
        })
    }

    /// Adds the survey of a later share of the input.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the attributes differ from earlier ones.
    pub fn append(&mut self, share: Self) -> Result<(), BuildError> {
        self.has_objects |= share.has_objects;
        self.vertices += share.vertices;
        self.stored += share.stored;
        self.paths += share.paths;
        self.links += share.links;
        if let Some(form) = share.link_form {
            self.add_link_form(form)?;
        }
        if let Some(fields) = share.fields {
            self.add_fields(fields)?;
        }
        if let Some((lower, upper)) = share.extent {
            self.add_extent(&lower, &upper);
        }
        let Some(sample) = share.sample else {
            return Ok(());
        };
        let Some(own) = self.sample.take() else {
            (self.sample, self.step) = (Some(sample), share.step);
            return Ok(());
        };
        if (own.kind, own.width) != (sample.kind, sample.width) {
            return Err(BuildError::MissingInput {
                kind: "batches",
                what: "coordinates of one type and as many axes in every batch",
            });
        }
        // Steps are powers of two.
        let step = self.step.max(share.step);
        let every = |rows: &NumericColumn, step| rows.take((0..rows.len()).step_by(step));
        let both = every(&own, step / self.step).zip(every(&sample, step / share.step));
        let (mut joined, more) = both.ok_or_else(damaged)?;
        joined.bytes.extend(more.bytes);
        (self.sample, self.step) = (Some(joined), step);
        self.downsample();
        Ok(())
    }

    /// Serializes the survey, without its design.
    pub fn to_bytes(&self) -> Vec<u8> {
        let fields = self.fields.as_ref();
        let all = |fields: &[Field]| -> Value { fields.iter().map(described).collect() };
        let families = |families: &[Vec<Field>; 2]| -> Value {
            families.iter().map(|fields| all(fields)).collect()
        };
        let form = self.link_form.as_ref();
        let header = json!({
            "extent": self.extent,
            "step": self.step,
            "vertices": self.vertices,
            "stored": self.stored,
            "paths": self.paths,
            "has_objects": self.has_objects,
            "fields": fields.map(families),
            "links": self.links,
            "link_form": form.map(|(width, fields)| json!([width, all(fields)])),
            "is_sampled": self.sample.is_some(),
        })
        .to_string();
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend(header.bytes());
        if let Some(sample) = &self.sample {
            out.extend(encode_batch(&Geometry::new(sample.clone())));
        }
        out
    }

    /// Parses the output of [`to_bytes`](Self::to_bytes) of a survey with this design.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the bytes are not an output of `to_bytes`.
    pub fn from_bytes(design: Design, mut bytes: &[u8]) -> Result<Self, BuildError> {
        let header = read_header(&mut bytes)?;
        let mut survey = Self::new(design, header["has_objects"].as_bool().ok_or_else(damaged)?)?;
        let number = |name: &str| header[name].as_u64().ok_or_else(damaged);
        (survey.vertices, survey.paths) = (number("vertices")?, number("paths")?);
        (survey.stored, survey.links) = (number("stored")?, number("links")?);
        if let Value::Array(form) = &header["link_form"] {
            let width = count(form.first().ok_or_else(damaged)?)?;
            let fields = form
                .get(1)
                .and_then(Value::as_array)
                .ok_or_else(damaged)?
                .iter()
                .map(field)
                .collect::<Option<_>>();
            survey.link_form = Some((width, fields.ok_or_else(damaged)?));
        }
        survey.step = count(&header["step"])?;
        if !survey.step.is_power_of_two() {
            return Err(damaged());
        }
        if let Value::Array(extent) = &header["extent"] {
            let corner = |at: usize| extent.get(at).and_then(floats).ok_or_else(damaged);
            survey.extent = Some((corner(0)?, corner(1)?));
        }
        if header["fields"].is_array() {
            let fields = |family: usize| {
                let fields = header["fields"][family].as_array()?.iter();
                fields.map(field).collect::<Option<Vec<_>>>()
            };
            let families = fields(0).zip(fields(1)).ok_or_else(damaged)?;
            survey.fields = Some(families.into());
        }
        if header["is_sampled"].as_bool().ok_or_else(damaged)? {
            survey.sample = Some(decode_batch(bytes)?.into_builder().positions);
        }
        Ok(survey)
    }

    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the batch is inconsistent, or differs from earlier ones.
    pub fn add(&mut self, batch: &Geometry) -> Result<(), BuildError> {
        self.add_numbered(batch, LinkNumbering::Batch)
    }

    /// Adds a batch whose links may number the vertices of the whole input.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as in [`add`](Self::add).
    pub fn add_numbered(
        &mut self,
        batch: &Geometry,
        numbering: LinkNumbering,
    ) -> Result<(), BuildError> {
        check::check_batch(batch, &self.design, numbering)?;
        let links = batch.links();
        if !links.is_empty() {
            self.links += links.len() as u64;
            let attributes = batch.columns(Scope::Link);
            if !attributes.iter().all(is_plain) {
                return Err(BuildError::MissingInput {
                    kind: "batches",
                    what: "link attributes of numbers, without missing values",
                });
            }
            let fields = attributes.iter().map(Field::of).collect();
            self.add_link_form((links.width, fields))?;
        }
        let paths = batch.owners().paths();
        if batch.vertices() == 0 && paths == 0 {
            return Ok(());
        }
        self.has_objects |= matches!(batch.owners(), VertexOwners::Vertices(_));
        check_objects(batch, paths)?;
        let fields = |scope| batch.columns(scope).iter().map(Field::of).collect();
        self.add_fields([fields(Scope::Vertex), fields(Scope::Object)])?;
        self.paths += paths as u64;
        self.vertices += batch.vertices() as u64;
        if batch.vertices() == 0 {
            return Ok(());
        }
        // Links may number the vertices of the whole input.
        let unlinked = GeometryBuilder {
            links: LinkEnds::default(),
            link: Vec::new(),
            ..batch.clone().into_builder()
        };
        let stored = bounds::stored(unlinked, &self.design)?;
        let (lower, upper) = coordinates::extent(&stored.positions)?;
        self.add_extent(&lower, &upper);
        let stored = match bounds::bounded(stored, &self.design) {
            Ok((stored, _)) => stored,
            Err(BuildError::AllOutside) => return Ok(()),
            Err(error) => return Err(error),
        };
        // Values of dropped vertices are not stored, so nulls among them are accepted.
        stored.vertex.iter().try_for_each(check_nulls)?;
        let positions = &stored.positions;
        let first = self.stored;
        self.stored += positions.len() as u64;
        let sample = self
            .sample
            .get_or_insert_with(|| NumericColumn::new(positions.kind, positions.width));
        let is_sampled = |row: &usize| (first + *row as u64).is_multiple_of(self.step as u64);
        let sampled = positions.take_existing((0..positions.len()).filter(is_sampled));
        sample.bytes.extend(sampled.bytes);
        self.downsample();
        Ok(())
    }

    fn add_fields(&mut self, fields: [Vec<Field>; 2]) -> Result<(), BuildError> {
        let equal = |before: &Vec<Field>, fields: &Vec<Field>| {
            before.len() == fields.len() && before.iter().zip(fields).all(|(a, b)| a.like(b))
        };
        match &self.fields {
            None => self.fields = Some(fields),
            Some(before) if before.iter().zip(&fields).all(|(a, b)| equal(a, b)) => {}
            Some(_) => {
                return Err(BuildError::MissingInput {
                    kind: "batches",
                    what: "equal attributes in every batch",
                });
            }
        }
        Ok(())
    }

    fn add_link_form(&mut self, form: (usize, Vec<Field>)) -> Result<(), BuildError> {
        let like = |before: &(usize, Vec<Field>)| {
            let fields = before.1.iter().zip(&form.1);
            before.0 == form.0
                && before.1.len() == form.1.len()
                && fields.into_iter().all(|(a, b)| a.like(b))
        };
        match &self.link_form {
            None => self.link_form = Some(form),
            Some(before) if like(before) => {}
            Some(_) => {
                return Err(BuildError::MissingInput {
                    kind: "batches",
                    what: "links of equal width with equal attributes in every batch",
                });
            }
        }
        Ok(())
    }

    fn add_extent(&mut self, lower: &[f64], upper: &[f64]) {
        self.extent = Some(match self.extent.take() {
            None => (lower.to_vec(), upper.to_vec()),
            Some((min, max)) => (
                min.iter().zip(lower).map(|(a, b)| a.min(*b)).collect(),
                max.iter().zip(upper).map(|(a, b)| a.max(*b)).collect(),
            ),
        });
    }

    /// Drops every other row of the sample until it is small.
    fn downsample(&mut self) {
        let Some(sample) = &mut self.sample else {
            return;
        };
        while sample.len() > SAMPLE {
            *sample = sample.take_existing((0..sample.len()).step_by(2));
            self.step *= 2;
        }
    }

    /// Returns the number of paths.
    pub fn paths(&self) -> u64 {
        self.paths
    }

    /// Returns the number of links.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// Returns the number of vertices, with those outside the bounds.
    pub fn vertices(&self) -> u64 {
        self.vertices
    }

    /// Returns the number of vertices that are stored.
    pub fn stored_vertices(&self) -> u64 {
        self.stored
    }

    /// Returns the coordinates of some stored vertices, evenly spread over the batches.
    pub fn sample(&self) -> Option<&NumericColumn> {
        self.sample.as_ref()
    }

    /// Decides shapes, bounds and grid.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when no vertex is stored, or the shapes are invalid.
    pub fn outline(self) -> Result<Outline, BuildError> {
        let Some(extent) = self.extent else {
            return Err(BuildError::Empty);
        };
        let sample = self.sample.ok_or(BuildError::AllOutside)?;
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
        if design.fragment_owners && !self.has_objects {
            return Err(BuildError::NoOwners(design.kind.plural()));
        }
        let fragments = FragmentKind::of_geometry(self.has_objects);
        let space = SpatialLayout::of(&design, &sample, lower, upper, fragments, self.stored)?;
        let grid = space.grid(fragments)?;
        let bytes = self.stored * sample.row_size() as u64;
        let (per_chunk, _) = sizing::target(&design, fragments, bytes);
        let chunks = (bytes / per_chunk).max(1);
        let shard = sharding::shard(&design, &grid.shape, chunks, bytes)?;
        let [fields, object_fields] = self.fields.unwrap_or_default();
        let (link_width, link_fields) = match self.link_form {
            Some(form) => form,
            None if design.kind == GeometryKind::Mesh => {
                return Err(BuildError::MissingInput {
                    kind: design.kind.plural(),
                    what: "links",
                });
            }
            None => (2, Vec::new()),
        };
        Ok(Outline {
            design,
            space,
            axes,
            grid,
            shard,
            positions: (sample.kind, sample.row_len()),
            has_objects: self.has_objects,
            fields,
            object_fields,
            link_width,
            link_fields,
        })
    }
}

/// Checks the attributes of objects that come with a batch: a row of numbers for each path.
fn check_objects(batch: &Geometry, paths: usize) -> Result<(), BuildError> {
    let attributes = batch.columns(Scope::Object);
    column_check::rows(Scope::Object, attributes, paths)?;
    let follow_paths = attributes.is_empty() || batch.objects().is_none();
    if follow_paths && attributes.iter().all(is_plain) {
        Ok(())
    } else {
        Err(BuildError::MissingInput {
            kind: "batches",
            what: "object attributes of numbers, one row for each path; put others into the tables",
        })
    }
}

/// Returns whether an attribute is of numbers, without missing values.
fn is_plain(column: &Column) -> bool {
    column.nulls.is_none() && matches!(column.values, ColumnValues::Numeric(_))
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
                missing: false,
            },
        }
    }

    /// Returns whether a column has the name and the type of the field.
    pub(super) fn holds(&self, column: &Column) -> bool {
        self.like(&Self::of(column))
    }

    fn like(&self, other: &Self) -> bool {
        self.name == other.name && self.numbers == other.numbers
    }
}
