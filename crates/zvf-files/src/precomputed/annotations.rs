//! Annotations in batches: points, lines and polylines.

use std::{collections::BTreeSet, error::Error};

use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, GeometrySource, NumericColumn, VertexOwners,
};
use zvf_precomputed::{Annotation, AnnotationInfo, AnnotationKind, RecordLayout};

use super::{
    coordinates::AxisFactors, keyed::object_of, properties::PropertyColumns,
    records::AnnotationRecords, segments, source::PrecomputedSource,
};
use crate::{
    FileDescription, FileError, FileFault, FileReadOptions, GeometryReader, library,
    names::AttributeNames,
    reader::{PathBatch, built, ids_of},
};

/// Name of the attribute with the ids of annotations.
const ID: &str = "annotation_id";
/// The relationship of `zvf export precomputed`, whose segments are the objects of paths.
const OBJECT: &str = "object";
/// Stands for an annotation without a segment.
const NO_SEGMENT: i64 = -1;

/// Annotations that are read in batches by ascending id.
#[derive(Debug)]
pub struct AnnotationReader {
    records: AnnotationRecords,
    layout: RecordLayout,
    relationships: usize,
    is_path: bool,
    factors: AxisFactors,
    /// Columns without rows.
    properties: PropertyColumns,
    /// Name of the column of ids.
    id_name: String,
    segments: SegmentUse,
    description: FileDescription,
    tables: GeometryBuilder,
    next: usize,
}

/// The place of the first related segment of a point.
#[derive(Clone, Debug)]
enum SegmentUse {
    None,
    Object,
    Attribute(String),
}

/// An annotation with the segments of its first relationship.
struct RelatedAnnotation {
    id: u64,
    annotation: Annotation,
    first: Vec<u64>,
}

/// The result of a first pass over annotations.
#[derive(Debug, Default)]
struct RelationSurvey {
    /// The first segment of each annotation.
    first: Vec<i64>,
    /// Annotations without a segment.
    without: u64,
    /// Annotations with several segments.
    several: u64,
}

impl AnnotationReader {
    /// Opens a source. Paths, and points with relationships, are read once to collect what belongs
    /// to objects.
    pub(super) fn open(
        source: &PrecomputedSource,
        options: &FileReadOptions,
    ) -> Result<Self, FileError> {
        let in_info = |fault: FileFault| fault.of(&source.info_path());
        let info =
            AnnotationInfo::parse(&source.info).map_err(|error| in_info(library::info(error)))?;
        let kind = match info.kind {
            AnnotationKind::Point => GeometryKind::Points,
            AnnotationKind::Line => GeometryKind::Lines,
            AnnotationKind::Polyline => GeometryKind::Polylines,
            _ => {
                let expected = "points, lines and polylines are read; boxes and ellipsoids have no \
                                form in a store";
                let fault = FileFault::field("annotation_type", info.kind.name(), expected);
                return Err(in_info(fault));
            }
        };
        if info.dimensions.0.is_empty() {
            let expected = "annotations have one axis or more";
            return Err(in_info(FileFault::field("dimensions", "empty", expected)));
        }
        let mut description = source.description(kind);
        let (factors, axes) = AxisFactors::of(&info.dimensions.0);
        description.axes = axes;
        let records = AnnotationRecords::open(source, &info, options.unpacked, &mut description)?;
        if records.len() == 0 {
            return Err(FileFault::Empty.of(&source.folder));
        }
        let is_path = kind.is_paths();
        let scope = if is_path { "object" } else { "vertex" };
        let mut names = AttributeNames::default();
        let properties =
            PropertyColumns::new(&info.properties, scope, &mut names, &mut description);
        let id_name = names.add(ID);
        let relationships = if records.has_relationships() {
            info.relationships.len()
        } else {
            0
        };
        let layout = RecordLayout::of(&info);
        let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
        let size = u64::try_from(layout.record_size().unwrap_or(0)).unwrap_or(u64::MAX);
        description.bytes = count.saturating_mul(size.saturating_add(8));
        let mut reader = Self {
            records,
            layout,
            relationships,
            is_path,
            tables: Geometry::builder(factors.column()),
            factors,
            properties,
            id_name,
            segments: SegmentUse::None,
            description,
            next: 0,
        };
        let further = info.relationships.iter().take(relationships).skip(1);
        for relationship in further {
            let id = &relationship.id;
            let note = format!("relationship {id} is left out: one relationship is kept");
            reader.description.notes.push(note);
        }
        let relation = info.relationships.first().filter(|_| relationships > 0);
        let relation = relation.map(|relation| relation.id.as_str());
        if is_path {
            reader.collect_paths(relation, &mut names)?;
        } else if let Some(relation) = relation {
            reader.collect_points(source, relation, &mut names)?;
        }
        let key = if is_path { "object_names" } else { "names" };
        names.record(&mut reader.description.header, key);
        Ok(reader)
    }

    /// Decodes an annotation by number, with the segments of its relationships.
    fn annotation(&mut self, at: usize) -> Result<Option<RelatedAnnotation>, FileError> {
        let Some((id, value)) = self.records.get(at)? else {
            return Ok(None);
        };
        let decoded = self.layout.decode_single(&value, self.relationships);
        let (annotation, related) =
            decoded.map_err(|error| self.records.error(at, library::precomputed(error)))?;
        Ok(Some(RelatedAnnotation {
            id,
            annotation,
            first: related.into_iter().next().unwrap_or_default(),
        }))
    }

    /// Reads the properties of paths and the segments of their first relationship.
    fn collect_paths(
        &mut self,
        relation: Option<&str>,
        names: &mut AttributeNames,
    ) -> Result<(), FileError> {
        let mut columns = self.properties.emptied();
        let mut survey = RelationSurvey::default();
        let mut points = 0_usize;
        for at in 0..self.records.len() {
            let Some(found) = self.annotation(at)? else {
                break;
            };
            points = points.saturating_add(found.annotation.coordinates.len());
            columns.push(&found.annotation.properties);
            let added = survey.add(&found.first);
            added.map_err(|fault| self.records.error(at, fault))?;
        }
        // Twice the size of a float32, as for positions in float64.
        let points = u64::try_from(points).unwrap_or(u64::MAX).saturating_mul(8);
        self.description.bytes = self.description.bytes.max(points);
        let ids: Vec<u64> = self.records.ids().collect();
        let own: Option<Vec<i64>> = ids.iter().map(|id| i64::try_from(*id).ok()).collect();
        let has_segments = relation == Some(OBJECT) && survey.first.is_sorted_by(|a, b| a < b);
        let has_segments = has_segments && survey.without == 0 && survey.several == 0;
        let objects = if has_segments {
            survey.first.clone()
        } else {
            own.clone().unwrap_or_else(|| ids_of(&ids))
        };
        let mut tables = columns.finish();
        if own.as_ref() != Some(&objects) {
            let ids: NumericColumn = ids.into_iter().collect();
            tables.push(Column::new(self.id_name.clone(), ids));
        }
        if let Some(relation) = relation.filter(|_| !has_segments) {
            let name = names.add(relation);
            self.note_segments(relation, &survey);
            let segments: NumericColumn = survey.first.into_iter().collect();
            tables.push(Column::new(name, segments));
        }
        self.tables.object = tables;
        self.tables.objects = Some(objects);
        Ok(())
    }

    /// Reads the segments of the first relationship of points.
    fn collect_points(
        &mut self,
        source: &PrecomputedSource,
        relation: &str,
        names: &mut AttributeNames,
    ) -> Result<(), FileError> {
        let mut survey = RelationSurvey::default();
        for at in 0..self.records.len() {
            let Some(found) = self.annotation(at)? else {
                break;
            };
            let added = survey.add(&found.first);
            added.map_err(|fault| self.records.error(at, fault))?;
        }
        self.note_segments(relation, &survey);
        if survey.without > 0 {
            self.segments = SegmentUse::Attribute(names.add(relation));
            return Ok(());
        }
        self.segments = SegmentUse::Object;
        if source.outer_properties.is_some() {
            let ids: BTreeSet<i64> = survey.first.into_iter().collect();
            let ids: Vec<i64> = ids.into_iter().collect();
            let mut names = AttributeNames::default();
            let description = &mut self.description;
            let columns = segments::columns(source, None, &ids, &mut names, description)?;
            if !columns.is_empty() {
                self.tables.object = columns;
                self.tables.objects = Some(ids);
            }
        }
        Ok(())
    }

    fn note_segments(&mut self, relation: &str, survey: &RelationSurvey) {
        if survey.several > 0 {
            self.description.notes.push(format!(
                "further segments of {} annotations in relationship {relation} are left out: the \
                 first is kept",
                survey.several
            ));
        }
    }

    fn batch(&mut self, vertices: usize) -> Result<Option<GeometryBuilder>, FileError> {
        let mut positions = self.factors.column();
        let mut paths = PathBatch::new();
        let mut columns = self.properties.emptied();
        let mut ids: Vec<u64> = Vec::new();
        let mut segments: Vec<i64> = Vec::new();
        while positions.len() < vertices.max(1) {
            let at = self.next;
            let Some(found) = self.annotation(at)? else {
                break;
            };
            let annotation = &found.annotation;
            self.next = at.saturating_add(1);
            let before = positions.len();
            let pushed = self.factors.push(&annotation.coordinates, &mut positions);
            pushed.map_err(|fault| self.records.error(at, fault))?;
            if self.is_path {
                let objects = self.tables.objects.as_deref().unwrap_or_default();
                let object = objects.get(at).copied().unwrap_or(NO_SEGMENT);
                let added = positions.len().saturating_sub(before);
                paths.push(object, u64::try_from(added).unwrap_or(u64::MAX));
                continue;
            }
            columns.push(&annotation.properties);
            ids.push(found.id);
            let segment = found.first.first();
            let segment = segment
                .map(|segment| object_of(*segment))
                .transpose()
                .map_err(|fault| self.records.error(at, fault))?;
            segments.push(segment.unwrap_or(NO_SEGMENT));
        }
        if self.is_path {
            return Ok(paths.geometry(positions, Vec::new()));
        }
        if positions.is_empty() {
            return Ok(None);
        }
        let mut geometry = Geometry::builder(positions).vertex(columns.finish());
        let ids: NumericColumn = ids.into_iter().collect();
        geometry.vertex.push(Column::new(self.id_name.clone(), ids));
        match &self.segments {
            SegmentUse::None => {}
            SegmentUse::Object => geometry.owners = VertexOwners::Vertices(segments),
            SegmentUse::Attribute(name) => {
                let segments: NumericColumn = segments.into_iter().collect();
                geometry.vertex.push(Column::new(name.clone(), segments));
            }
        }
        Ok(Some(geometry))
    }
}

impl RelationSurvey {
    /// Adds the segments of an annotation.
    fn add(&mut self, segments: &[u64]) -> Result<(), FileFault> {
        let first = segments.first().map(|segment| object_of(*segment));
        self.without = self.without.saturating_add(u64::from(first.is_none()));
        self.several = self.several.saturating_add(u64::from(segments.len() > 1));
        self.first.push(first.transpose()?.unwrap_or(NO_SEGMENT));
        Ok(())
    }
}

impl GeometrySource for AnnotationReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        built(self.batch(vertices)?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.next = 0;
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(self.tables.clone().build()?)
    }
}

impl GeometryReader for AnnotationReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}
