//! Chunks of paths in memory.

use std::collections::BTreeSet;
use std::collections::HashMap;

use crate::{chunk::Chunk, coordinates::Coordinates, schema::Schema};

/// Chunks that were read, by their number among those of the objects.
pub(crate) struct Loaded {
    chunks: HashMap<u32, Option<(Chunk, Coordinates)>>,
    bytes: u64,
}

impl Loaded {
    pub(crate) fn new() -> Self {
        Self {
            chunks: HashMap::new(),
            bytes: 0,
        }
    }

    pub(crate) fn get(&self, chunk: u32) -> Option<&(Chunk, Coordinates)> {
        self.chunks.get(&chunk)?.as_ref()
    }

    pub(crate) fn knows(&self, chunk: u32) -> bool {
        self.chunks.contains_key(&chunk)
    }

    pub(crate) fn add<A>(&mut self, number: u32, chunk: Option<Chunk>, schema: &Schema<A>) {
        let chunk = chunk.map(|chunk| {
            let coordinates = schema.coordinates(&chunk);
            (chunk, coordinates)
        });
        let size = chunk.as_ref().map_or(0, |(chunk, _)| chunk.size());
        self.bytes = self.bytes.saturating_add(size);
        self.chunks.insert(number, chunk);
    }
}

impl Loaded {
    /// Forgets chunks that are not needed now, when there are too many.
    pub(super) fn keep(&mut self, needed: &BTreeSet<u32>, most: usize) {
        let new = needed.iter().filter(|chunk| !self.knows(**chunk)).count();
        if self.chunks.len().saturating_add(new) > most {
            self.chunks.retain(|chunk, _| needed.contains(chunk));
        }
    }
}
