//! Lists of annotations: the cells of the spatial index, and the annotations of a segment.
//!
//! | part | type |
//! |---|---|
//! | annotations n | u64 |
//! | records | n records |
//! | ids | u64 × n |

use crate::{Annotation, PrecomputedError, RecordLayout, cursor::FieldReader};

/// Annotations with their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotationList {
    /// The annotations. A viewer draws the first of them when it zooms out, so that a writer should
    /// put them into random order.
    pub annotations: Vec<Annotation>,
    /// The id of each annotation.
    pub ids: Vec<u64>,
}

impl AnnotationList {
    /// Returns the bytes of the file or value.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if an annotation is not of the layout, or the numbers of annotations and ids
    /// differ.
    pub fn encode(&self, layout: &RecordLayout) -> Result<Vec<u8>, PrecomputedError> {
        if self.annotations.len() != self.ids.len() {
            return Err(PrecomputedError::Schema("ids"));
        }
        let mut records = Vec::new();
        for annotation in &self.annotations {
            layout.write(
                &annotation.coordinates,
                &annotation.properties,
                &mut records,
            )?;
        }
        Ok(Self::join([records.as_slice()], &self.ids))
    }

    /// Returns the bytes of a list of encoded records.
    pub fn join<'a>(records: impl IntoIterator<Item = &'a [u8]>, ids: &[u64]) -> Vec<u8> {
        let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        let mut bytes = count.to_le_bytes().to_vec();
        for record in records {
            bytes.extend_from_slice(record);
        }
        bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        bytes
    }

    /// Decodes a file or value.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if the bytes are shorter or longer than their counts say.
    pub fn decode(bytes: &[u8], layout: &RecordLayout) -> Result<Self, PrecomputedError> {
        let mut cursor = FieldReader::new(bytes);
        let count = cursor.u64("number of annotations")?;
        // Every annotation has an id of 8 bytes, which bounds the memory.
        let count = usize::try_from(count).map_err(|_| PrecomputedError::Count("annotations"))?;
        if count.checked_mul(8).is_none_or(|size| size > cursor.len()) {
            return Err(PrecomputedError::Truncated("ids"));
        }
        let mut annotations = Vec::with_capacity(count);
        for _ in 0..count {
            annotations.push(layout.read(&mut cursor)?);
        }
        let ids = cursor.ids(count, "ids")?;
        cursor.finish()?;
        Ok(Self { annotations, ids })
    }
}
