//! Links of a graph in temporary files, by cell and by id.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufWriter, Write},
};

use bytes::Bytes;
use zvf_dense::{ByteSource, FileSource};
use zvf_precomputed::{AnnotationList, RecordLayout};

use super::list::MAX_BYTES as MAX_LIST_BYTES;
use crate::{
    layers::{
        LayerError,
        annotations::{AnnotationPlan, AnnotationSink, StoreAnnotation, cell_number},
    },
    spill::{PartitionId, Spill, SpillEntry},
};

/// Parts of the lists of a level. One part is in memory while it is written.
const BUCKETS: u64 = 64;
/// Bytes of entries in memory.
const BUFFERED: usize = 32 << 20;
/// Bytes before the record of a link in the file by id: whether there is one, and its object.
const HEAD: usize = 9;

/// The annotations of the links of a graph. The files have no names, and end with the process.
#[derive(Debug)]
pub(super) struct LinkLists {
    /// Links in the fullest cell of each level.
    pub(super) limits: Vec<u64>,
    places: HashMap<ListKey, ListPlace>,
    lists: FileSource,
    /// A record for each id, with a head.
    records: FileSource,
    record_size: usize,
    count: u64,
}

/// A list: of a cell of a level, or of a segment of a relationship, whose numbers follow those of the
/// levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ListKey {
    pub(super) index: usize,
    /// The number of the cell, or the segment.
    pub(super) key: u64,
}

#[derive(Clone, Copy, Debug)]
struct ListPlace {
    start: u64,
    len: usize,
}

impl LinkLists {
    /// Reads a list; `None` if it is empty.
    pub(super) fn list(&self, key: ListKey) -> Result<Option<Bytes>, LayerError> {
        let Some(place) = self.places.get(&key) else {
            return Ok(None);
        };
        if place.len > MAX_LIST_BYTES {
            let what = "a list of annotations";
            return Err(LayerError::TooLarge(what, MAX_LIST_BYTES));
        }
        let mut bytes = vec![0; place.len];
        let read = self.lists.read_into(place.start, &mut bytes);
        read.map_err(LayerError::Temporary)?;
        Ok(Some(bytes.into()))
    }

    /// Reads the annotation with an id, and its segments.
    pub(super) fn by_id(
        &self,
        id: u64,
        plan: &AnnotationPlan,
    ) -> Result<Option<Bytes>, LayerError> {
        if id >= self.count {
            return Ok(None);
        }
        let mut bytes = vec![0; self.record_size.saturating_add(HEAD)];
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let read = self.records.read_into(id.saturating_mul(size), &mut bytes);
        read.map_err(LayerError::Temporary)?;
        let Some(([is_there, object @ ..], _)) = bytes.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        if *is_there == 0 {
            return Ok(None);
        }
        let object = i64::from_le_bytes(*object);
        let mut record = bytes.split_off(HEAD);
        for segments in plan.related_to(Some(object)) {
            RecordLayout::write_related(&segments, &mut record)?;
        }
        Ok(Some(record.into()))
    }
}

/// Writes the links of a graph to files.
pub(super) struct LinkListsSink<'a> {
    plan: &'a AnnotationPlan,
    spill: Spill,
    records: BufWriter<File>,
    record_size: usize,
    /// Records that were written.
    count: u64,
    record: Vec<u8>,
}

impl<'a> LinkListsSink<'a> {
    pub(super) fn new(plan: &'a AnnotationPlan) -> io::Result<Self> {
        Ok(Self {
            plan,
            spill: Spill::new(tempfile::tempdir()?, BUFFERED),
            records: BufWriter::with_capacity(1 << 20, tempfile::tempfile()?),
            record_size: plan.layout.record_size().unwrap_or(0),
            count: 0,
            record: Vec::new(),
        })
    }

    fn push_to(&mut self, index: usize, key: u64, id: u64) -> Result<(), LayerError> {
        let shard = key % BUCKETS;
        let record = self.record.as_slice();
        let entry = SpillEntry { key, id, record };
        let pushed = self.spill.push(PartitionId { index, shard }, entry);
        Ok(pushed?)
    }

    pub(super) fn finish(self) -> Result<LinkLists, LayerError> {
        let mut limits = vec![0; self.plan.levels.grids().len()];
        let mut places = HashMap::new();
        let mut file = BufWriter::with_capacity(
            1 << 20,
            tempfile::tempfile().map_err(LayerError::Temporary)?,
        );
        let mut end = 0_u64;
        for partition in self.spill.partitions() {
            let spilled = self.spill.read(partition)?;
            for group in spilled.entries().chunk_by(|a, b| a.key == b.key) {
                let Some(first) = group.first() else {
                    continue;
                };
                let ids: Vec<u64> = group.iter().map(|entry| entry.id).collect();
                let list = AnnotationList::join(group.iter().map(|entry| entry.record), &ids);
                file.write_all(&list).map_err(LayerError::Temporary)?;
                let key = ListKey {
                    index: partition.index,
                    key: first.key,
                };
                let len = list.len();
                places.insert(key, ListPlace { start: end, len });
                end = end.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
                if let Some(limit) = limits.get_mut(partition.index) {
                    *limit = u64::try_from(ids.len()).unwrap_or(u64::MAX).max(*limit);
                }
            }
        }
        let source = |file: BufWriter<File>, size| {
            let file = file
                .into_inner()
                .map_err(|error| LayerError::Temporary(error.into_error()))?;
            Ok::<_, LayerError>(FileSource::of_file("temporary file", file, size))
        };
        let size = self.record_size.saturating_add(HEAD);
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        Ok(LinkLists {
            limits,
            places,
            lists: source(file, end)?,
            records: source(self.records, self.count.saturating_mul(size))?,
            record_size: self.record_size,
            count: self.count,
        })
    }
}

impl AnnotationSink for LinkListsSink<'_> {
    type Error = LayerError;

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), LayerError> {
        let StoreAnnotation {
            id,
            coordinates,
            values,
            object,
        } = annotation;
        self.record.clear();
        self.plan
            .layout
            .write(coordinates, values, &mut self.record)?;
        // Links without an annotation leave gaps.
        let gap = vec![0; self.record_size.saturating_add(HEAD)];
        while self.count < id {
            self.records
                .write_all(&gap)
                .map_err(LayerError::Temporary)?;
            self.count = self.count.saturating_add(1);
        }
        let written = self.records.write_all(&[1]).and_then(|()| {
            self.records
                .write_all(&object.unwrap_or(-1).to_le_bytes())?;
            self.records.write_all(&self.record)
        });
        written.map_err(LayerError::Temporary)?;
        self.count = self.count.saturating_add(1);
        let level = self.plan.level_of(annotation);
        if let Some(grid) = self.plan.levels.grids().get(level) {
            for cell in grid.cells_of_path(coordinates) {
                self.push_to(level, cell_number(&cell, &grid.shape), id)?;
            }
        }
        let first = self.plan.levels.grids().len();
        for (segments, index) in self.plan.related_to(object).into_iter().zip(first..) {
            for segment in segments {
                self.push_to(index, segment, id)?;
            }
        }
        Ok(())
    }
}
