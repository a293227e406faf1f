//! Evidence about the generation, combined.

use super::GenerationError;
use crate::{
    generation::Generation,
    layout::{ChunkForm, CrossChunkForm, Layout, LinkForm, ObjectIndexForm, PartNames, TableForm},
    version::Version,
};

/// The generations that match all evidence so far.
pub(super) struct CandidateGenerations {
    pub(super) low: Generation,
    pub(super) high: Generation,
    /// The generation of the version.
    claimed: Option<Generation>,
    /// The first node that set limits.
    pub(super) first: Option<&'static str>,
    pub(super) mixed: Vec<&'static str>,
}

impl CandidateGenerations {
    /// Returns the generations of a store of this version, whose root declares the convention of 0.10 or
    /// not. The structure does not distinguish 0.10 from 0.9.
    pub(super) fn of_root(version: Option<Version>, convention: bool) -> Self {
        let claimed = version.and_then(Generation::of_version);
        let (low, high) = match (convention, claimed) {
            (true, _) => (Generation::V0_10, Generation::V0_10),
            (false, Some(Generation::V0_10)) => (Generation::V0_6, Generation::V0_10),
            (false, _) => (Generation::V0_6, Generation::V0_9),
        };
        Self {
            low,
            high,
            claimed,
            first: convention.then_some("zarr_conventions"),
            mixed: Vec::new(),
        }
    }

    /// Adds a node whose form is certain evidence for these generations.
    pub(super) fn require(
        &mut self,
        node: &'static str,
        low: Generation,
        high: Generation,
    ) -> Result<(), GenerationError> {
        let (new_low, new_high) = (self.low.max(low), self.high.min(high));
        if new_low > new_high {
            let later = low > self.high;
            return Err(GenerationError::Contradiction {
                first: self.first.unwrap_or(node),
                first_generation: if later { self.high } else { self.low },
                second: node,
                second_generation: if later { low } else { high },
            });
        }
        self.first.get_or_insert(node);
        (self.low, self.high) = (new_low, new_high);
        Ok(())
    }

    /// Adds a node that other software may have written: it narrows the range, or is read in its
    /// own form if it contradicts the range.
    pub(super) fn prefer(&mut self, node: &'static str, low: Generation, high: Generation) {
        if self.require(node, low, high).is_err() {
            self.mixed.push(node);
        }
    }

    /// Adds a node like [`prefer`](Self::prefer), unless the store is one of 0.8.0, for which documents
    /// describe the form as well.
    pub(super) fn prefer_unless_documented(
        &mut self,
        node: &'static str,
        low: Generation,
        high: Generation,
    ) {
        let documented = Generation::V0_8_0;
        let is_possible = (self.low..=self.high).contains(&documented);
        if self.claimed != Some(documented) || !is_possible {
            self.prefer(node, low, high);
        }
    }

    /// Returns the generation of the version if the structure allows it, otherwise the nearest.
    pub(super) fn choose(&self) -> Result<Generation, GenerationError> {
        match (self.claimed, self.first) {
            (Some(proposed), _) => Ok(proposed.clamp(self.low, self.high)),
            (None, Some(_)) => Ok(self.high),
            (None, None) => Err(GenerationError::Undetermined),
        }
    }
}

/// The detected forms; others default to those of the generation.
#[derive(Default)]
pub(super) struct Forms {
    pub(super) chunks: Option<ChunkForm>,
    pub(super) links: Option<LinkForm>,
    pub(super) cross_chunk: Option<CrossChunkForm>,
    pub(super) object_index: Option<ObjectIndexForm>,
    pub(super) tables: Option<TableForm>,
    pub(super) groups: Option<TableForm>,
    pub(super) names: Option<PartNames>,
}

impl Forms {
    pub(super) fn apply(self, layout: Layout) -> Layout {
        Layout {
            generation: layout.generation,
            chunks: self.chunks.unwrap_or(layout.chunks),
            links: self.links.unwrap_or(layout.links),
            cross_chunk: self.cross_chunk.unwrap_or(layout.cross_chunk),
            object_index: self.object_index.unwrap_or(layout.object_index),
            tables: self.tables.unwrap_or(layout.tables),
            groups: self.groups.unwrap_or(layout.groups),
            names: self.names.unwrap_or(layout.names),
        }
    }
}
