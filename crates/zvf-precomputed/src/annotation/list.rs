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

/// An annotation of a list, not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnotationRecord<'a> {
    /// Id of the annotation.
    pub id: u64,
    /// Its record, which [`RecordLayout::decode_single`] decodes without relationships.
    pub bytes: &'a [u8],
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
    /// Divides a file or value into its records. The records are not decoded, so that a long list
    /// needs little memory besides its bytes.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if the bytes are shorter or longer than their counts say.
    pub fn split<'a>(
        bytes: &'a [u8],
        layout: &RecordLayout,
    ) -> Result<Vec<AnnotationRecord<'a>>, PrecomputedError> {
        let mut cursor = FieldReader::new(bytes);
        let count = cursor.u64("number of annotations")?;
        // Every annotation has an id of 8 bytes, which bounds the memory.
        let count = usize::try_from(count).map_err(|_| PrecomputedError::Count("annotations"))?;
        if count.checked_mul(8).is_none_or(|size| size > cursor.len()) {
            return Err(PrecomputedError::Truncated("ids"));
        }
        let mut records = Vec::with_capacity(count);
        for _ in 0..count {
            let bytes = layout.take(&mut cursor)?;
            records.push(AnnotationRecord { id: 0, bytes });
        }
        let ids = cursor.elements(count, 8, "ids")?;
        for (record, id) in records.iter_mut().zip(ids.as_chunks::<8>().0) {
            record.id = u64::from_le_bytes(*id);
        }
        cursor.finish()?;
        Ok(records)
    }
}

/// A list that is written record by record into one buffer.
///
/// ```
/// use zvf_precomputed::{AnnotationList, ListWriter};
///
/// let mut list = ListWriter::with_capacity(2, 6);
/// for (id, record) in [(7, b"one"), (9, b"two")] {
///     list.push(id).extend_from_slice(record);
/// }
/// let joined = AnnotationList::join([&b"one"[..], b"two"], &[7, 9]);
/// assert_eq!(list.finish(), joined);
/// ```
#[derive(Clone, Debug)]
pub struct ListWriter {
    bytes: Vec<u8>,
    ids: Vec<u64>,
}

impl ListWriter {
    /// Creates an empty list with room for annotations whose records have this many bytes.
    pub fn with_capacity(annotations: usize, records: usize) -> Self {
        let ids = annotations.saturating_mul(size_of::<u64>());
        let room = records.saturating_add(ids).saturating_add(size_of::<u64>());
        let mut bytes = Vec::with_capacity(room);
        bytes.extend_from_slice(&0_u64.to_le_bytes());
        Self {
            bytes,
            ids: Vec::with_capacity(annotations),
        }
    }

    /// Adds an annotation. The caller appends its record to the returned buffer.
    pub fn push(&mut self, id: u64) -> &mut Vec<u8> {
        self.ids.push(id);
        &mut self.bytes
    }

    /// Returns the bytes of the file or value.
    pub fn finish(self) -> Vec<u8> {
        let Self { mut bytes, ids } = self;
        let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        if let Some(first) = bytes.first_chunk_mut() {
            *first = count.to_le_bytes();
        }
        bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        bytes
    }
}
