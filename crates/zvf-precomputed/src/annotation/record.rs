//! Annotations as records.
//!
//! | part | content, D axes |
//! |---|---|
//! | number of points | u32; polylines only |
//! | coordinates | D × f32 per point |
//! | properties | sorted by alignment: 32 bits, 16 bits, then 8 bits and colours; packed |
//! | padding | zeros up to a multiple of 4 |

use super::property::{PropertySpec, PropertyValue};
use crate::{
    AnnotationInfo, AnnotationKind, PrecomputedError, PropertyType, cursor::FieldReader,
    skeleton::count,
};

/// An annotation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotation {
    /// Coordinates, point by point.
    pub coordinates: Vec<f32>,
    /// Values of the properties, in the order of the document.
    pub properties: Vec<PropertyValue>,
}

/// The form of the records of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    kind: AnnotationKind,
    rank: usize,
    types: Vec<PropertyType>,
    /// Positions of the properties in the order of the record.
    order: Vec<usize>,
    size: usize,
}

impl RecordLayout {
    /// Returns the layout of annotations with `rank` axes.
    pub fn new(kind: AnnotationKind, rank: usize, properties: &[PropertySpec]) -> Self {
        let types: Vec<PropertyType> = properties.iter().map(|property| property.kind).collect();
        let mut order: Vec<(usize, usize)> = types
            .iter()
            .enumerate()
            .map(|(at, kind)| (at, kind.alignment()))
            .collect();
        order.sort_by_key(|(_, alignment)| core::cmp::Reverse(*alignment));
        let size = types.iter().map(|kind| kind.size()).sum();
        Self {
            kind,
            rank,
            types,
            order: order.into_iter().map(|(at, _)| at).collect(),
            size,
        }
    }

    /// Returns the layout of a document.
    pub fn of(info: &AnnotationInfo) -> Self {
        Self::new(info.kind, info.dimensions.0.len(), &info.properties)
    }

    /// Returns the kind of the annotations.
    pub fn kind(&self) -> AnnotationKind {
        self.kind
    }

    /// Returns the size of a record; `None` for polylines.
    pub fn record_size(&self) -> Option<usize> {
        let points = self.kind.points()?;
        let coordinates = points.checked_mul(self.rank)?.checked_mul(4)?;
        let size = coordinates.checked_add(self.size)?;
        size.checked_next_multiple_of(4)
    }

    /// Appends a record.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if the number of coordinates is not that of the kind, or the properties are
    /// of other types.
    pub fn write(
        &self,
        coordinates: &[f32],
        properties: &[PropertyValue],
        to: &mut Vec<u8>,
    ) -> Result<(), PrecomputedError> {
        let is_right = properties.len() == self.types.len()
            && properties
                .iter()
                .zip(&self.types)
                .all(|(value, kind)| value.kind() == *kind);
        if !is_right {
            return Err(PrecomputedError::Schema("properties"));
        }
        match self.kind.points() {
            Some(points) => {
                let wanted = points.saturating_mul(self.rank);
                let found = coordinates.len();
                if found != wanted {
                    return Err(PrecomputedError::Coordinates { found, wanted });
                }
            }
            None => {
                let points = coordinates.len().checked_div(self.rank).unwrap_or(0);
                if points < 2 || !coordinates.len().is_multiple_of(self.rank) {
                    return Err(PrecomputedError::Polyline(coordinates.len()));
                }
                to.extend_from_slice(&count(points, "points of a polyline")?.to_le_bytes());
            }
        }
        to.extend(coordinates.iter().flat_map(|number| number.to_le_bytes()));
        for at in &self.order {
            if let Some(value) = properties.get(*at) {
                value.write(to);
            }
        }
        // Every part before the properties is a multiple of 4 bytes.
        let padding = self.size.next_multiple_of(4).saturating_sub(self.size);
        to.resize(to.len().saturating_add(padding), 0);
        Ok(())
    }

    /// Returns the value of the index by id: a record, and the segments of each relationship.
    ///
    /// # Errors
    ///
    /// The errors of [`write`](Self::write).
    pub fn encode_single(
        &self,
        annotation: &Annotation,
        relationships: &[Vec<u64>],
    ) -> Result<Vec<u8>, PrecomputedError> {
        let mut bytes = Vec::new();
        self.write(&annotation.coordinates, &annotation.properties, &mut bytes)?;
        for segments in relationships {
            Self::write_related(segments, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Appends the segments of a relationship, which follow the record in the index by id.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError::Count`] if there are more than 2^32 segments.
    pub fn write_related(segments: &[u64], to: &mut Vec<u8>) -> Result<(), PrecomputedError> {
        to.extend_from_slice(&count(segments.len(), "segments")?.to_le_bytes());
        to.extend(segments.iter().flat_map(|id| id.to_le_bytes()));
        Ok(())
    }

    /// Decodes a value of the index by id with this number of relationships.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if the bytes are shorter or longer than their counts say.
    pub fn decode_single(
        &self,
        bytes: &[u8],
        relationships: usize,
    ) -> Result<(Annotation, Vec<Vec<u64>>), PrecomputedError> {
        let mut cursor = FieldReader::new(bytes);
        let annotation = self.read(&mut cursor)?;
        let related = (0..relationships)
            .map(|_| {
                let count = cursor.count("number of segments")?;
                cursor.ids(count, "segments")
            })
            .collect::<Result<_, _>>()?;
        cursor.finish()?;
        Ok((annotation, related))
    }

    /// Takes the bytes of a record.
    pub(crate) fn take<'a>(
        &self,
        cursor: &mut FieldReader<'a>,
    ) -> Result<&'a [u8], PrecomputedError> {
        let whole = *cursor;
        let points = self.point_count(cursor)?;
        let numbers = points
            .checked_mul(self.rank)
            .ok_or(PrecomputedError::Truncated("coordinates"))?;
        cursor.elements(numbers, 4, "coordinates")?;
        cursor.take(self.size.next_multiple_of(4), "properties")?;
        let size = whole.len().saturating_sub(cursor.len());
        let mut record = whole;
        record.take(size, "record")
    }

    /// Takes the number of points of a polyline; other kinds have a fixed number.
    fn point_count(&self, cursor: &mut FieldReader<'_>) -> Result<usize, PrecomputedError> {
        match self.kind.points() {
            Some(points) => Ok(points),
            None => match cursor.count("number of points")? {
                points @ (0 | 1) => {
                    let coordinates = points.saturating_mul(self.rank);
                    Err(PrecomputedError::Polyline(coordinates))
                }
                points => Ok(points),
            },
        }
    }

    pub(crate) fn read(
        &self,
        cursor: &mut FieldReader<'_>,
    ) -> Result<Annotation, PrecomputedError> {
        let points = self.point_count(cursor)?;
        let numbers = points
            .checked_mul(self.rank)
            .ok_or(PrecomputedError::Truncated("coordinates"))?;
        let coordinates = cursor.floats(numbers, "coordinates")?;
        let packed = cursor.take(self.size.next_multiple_of(4), "properties")?;
        let mut properties = vec![PropertyValue::Uint8(0); self.types.len()];
        let mut rest = packed;
        for at in &self.order {
            let (Some(kind), Some(place)) = (self.types.get(*at), properties.get_mut(*at)) else {
                continue;
            };
            let (bytes, after) = rest
                .split_at_checked(kind.size())
                .ok_or(PrecomputedError::Truncated("properties"))?;
            let value = PropertyValue::read(*kind, bytes);
            *place = value.ok_or(PrecomputedError::Truncated("properties"))?;
            rest = after;
        }
        Ok(Annotation {
            coordinates,
            properties,
        })
    }
}
