//! Lists of annotations.

use bytes::Bytes;
use zvf_precomputed::{AnnotationList, SpatialLevels};

use crate::layers::LayerError;

/// Maximum size of a response.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// Annotations of one list.
#[derive(Debug, Default)]
pub(super) struct ListEntries {
    bytes: Vec<u8>,
    /// Ids with the ends of their records.
    ends: Vec<(u64, usize)>,
}

impl ListEntries {
    /// Adds an annotation, whose record `write` appends.
    pub(super) fn push(
        &mut self,
        id: u64,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        write(&mut self.bytes)?;
        self.ends.push((id, self.bytes.len()));
        Ok(())
    }

    /// Fails if the list is too large for a response.
    pub(super) fn check_size(&self) -> Result<(), LayerError> {
        if self.size() > MAX_BYTES {
            Err(LayerError::TooLarge("a list of annotations", MAX_BYTES))
        } else {
            Ok(())
        }
    }

    /// Returns the number of annotations.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the memory that the entries take, about.
    pub(super) fn size(&self) -> usize {
        let ends = self.ends.len().saturating_mul(size_of::<(u64, usize)>());
        self.bytes.len().saturating_add(ends)
    }

    /// Returns the list, in random order; `None` if it is empty.
    pub(super) fn encode(self) -> Option<Bytes> {
        let mut start = 0;
        let mut entries: Vec<(u64, &[u8])> = Vec::with_capacity(self.ends.len());
        for (id, end) in &self.ends {
            entries.push((*id, self.bytes.get(start..*end).unwrap_or_default()));
            start = *end;
        }
        if entries.is_empty() {
            return None;
        }
        entries.sort_by(|(a, _), (b, _)| {
            let ranks = SpatialLevels::rank(*a).total_cmp(&SpatialLevels::rank(*b));
            ranks.then(a.cmp(b))
        });
        let ids: Vec<u64> = entries.iter().map(|(id, _)| *id).collect();
        Some(AnnotationList::join(entries.into_iter().map(|(_, record)| record), &ids).into())
    }
}
