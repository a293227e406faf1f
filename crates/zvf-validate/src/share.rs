//! Shares of a validation: outcomes of the checks of single chunks, which tasks do independently of
//! each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use serde_json::{Value, json};
use zvf_model::grid::ChunkCoord;

use crate::finding::ValidationReport;

/// The number of a task, from 0, and the number of tasks that divide a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationShare {
    index: usize,
    count: usize,
}

impl ValidationShare {
    /// Creates a share; `None` unless `index` is less than `count`.
    pub fn new(index: usize, count: usize) -> Option<Self> {
        (index < count).then_some(Self { index, count })
    }

    /// Returns whether an item belongs to this share, by its position in a list that all tasks know.
    pub fn has(self, position: usize) -> bool {
        position.checked_rem(self.count) == Some(self.index)
    }

    /// Returns the groups of this share. `seed` decides which task has the first group, so that one
    /// task does not have the first group of every array.
    pub(crate) fn picked(self, seed: &str, groups: BTreeSet<Vec<i64>>) -> BTreeSet<Vec<i64>> {
        let first = seed
            .bytes()
            .fold(0_usize, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(usize::from(byte))
            })
            .checked_rem(self.count)
            .unwrap_or(0);
        let groups = groups.into_iter().enumerate();
        let own = groups.filter(|(position, _)| self.has(position.saturating_add(first)));
        own.map(|(_, group)| group).collect()
    }
}

/// Outcomes of the checks of single chunks, of one share or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareReport {
    /// Outcomes by the name of a pass over chunks.
    passes: BTreeMap<String, BTreeMap<ChunkCoord, CheckedChunk>>,
}

/// The outcome of the check of a chunk, as JSON, and what was found and read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CheckedChunk {
    outcome: Box<str>,
    pub(crate) found: ValidationReport,
}

impl ShareReport {
    /// Adds the outcomes of another share.
    pub fn extend(&mut self, other: Self) {
        for (pass, chunks) in other.passes {
            self.passes.entry(pass).or_default().extend(chunks);
        }
    }

    /// Adds the outcome of a chunk in a pass, and what was found.
    pub(crate) fn insert(
        &mut self,
        pass: &str,
        chunk: &ChunkCoord,
        outcome: &impl ChunkOutcome,
        found: ValidationReport,
    ) {
        let outcome = outcome.to_json().to_string().into();
        let chunks = self.passes.entry(pass.to_owned()).or_default();
        chunks.insert(chunk.clone(), CheckedChunk { outcome, found });
    }

    /// Returns the number of outcomes.
    pub fn len(&self) -> usize {
        self.passes.values().map(BTreeMap::len).sum()
    }

    /// Returns whether there are no outcomes.
    pub fn is_empty(&self) -> bool {
        self.passes.is_empty()
    }

    /// Returns the outcomes as JSON.
    pub fn to_json(&self) -> Value {
        let passes = self.passes.iter().map(|(pass, chunks)| {
            let chunks = chunks.iter().map(|(chunk, checked)| {
                let found = &checked.found;
                let is_plain = found.findings.is_empty() && found.unlisted.is_empty();
                let found = if is_plain {
                    json!([found.cells, found.bytes])
                } else {
                    found.to_json().into()
                };
                json!([chunk.coords(), checked.outcome, found])
            });
            (pass.clone(), chunks.collect())
        });
        Value::Object(passes.collect())
    }

    /// Parses the output of [`to_json`](Self::to_json); `None` for anything else.
    pub fn from_json(json: &Value) -> Option<Self> {
        let mut report = Self::default();
        for (pass, chunks) in json.as_object()? {
            let mut outcomes = BTreeMap::new();
            for checked in chunks.as_array()? {
                let [chunk, outcome, found] = checked.as_array()?.as_slice() else {
                    return None;
                };
                let coords: Vec<i64> = chunk
                    .as_array()?
                    .iter()
                    .map(Value::as_i64)
                    .collect::<Option<_>>()?;
                let found = match found.as_array().map(Vec::as_slice) {
                    None => ValidationReport::from_json(&found.clone().into())?,
                    Some([cells, bytes]) => ValidationReport {
                        cells: cells.as_u64()?,
                        bytes: bytes.as_u64()?,
                        ..ValidationReport::default()
                    },
                    Some(_) => return None,
                };
                let outcome = outcome.as_str()?.into();
                outcomes.insert(ChunkCoord::new(coords), CheckedChunk { outcome, found });
            }
            report.passes.insert(pass.clone(), outcomes);
        }
        Some(report)
    }

    /// Returns the outcome of a chunk in a pass.
    pub(crate) fn get(&self, pass: &str, chunk: &ChunkCoord) -> Option<&CheckedChunk> {
        self.passes.get(pass)?.get(chunk)
    }
}

/// The part of a validation that a process does.
#[derive(Debug)]
pub(crate) enum ShareMode<'a> {
    /// Everything.
    All,
    /// The checks of single chunks of a share, whose outcomes are recorded.
    One(ValidationShare, Mutex<ShareReport>),
    /// Everything, with the outcomes of shares.
    Joined(&'a ShareReport),
}

/// The outcome of the check of a chunk, which a task may record.
pub(crate) trait ChunkOutcome: Sized {
    fn to_json(&self) -> Value;

    /// Parses the output of [`to_json`](Self::to_json).
    fn from_json(json: &Value) -> Option<Self>;
}

impl CheckedChunk {
    pub(crate) fn parse<T: ChunkOutcome>(&self) -> Option<T> {
        T::from_json(&serde_json::from_str(&self.outcome).ok()?)
    }
}
