//! Cells of links that were written, as tasks report them to the commit.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zvf_build::migrate::LinkArrayKey;
use zvf_format::{links::LinkWidth, path::Delta};

/// The links of a level that tasks have written, by delta and number of ends.
pub(in crate::migrate) type CopiedLinks = BTreeMap<(Delta, LinkWidth), WrittenLinks>;

/// Chunks with a cell, and the number of links in it, by array.
type CountedCells = BTreeMap<LinkArrayKey, Vec<(Vec<i64>, u64)>>;

/// Chunks with a cell, by array or family.
type Cells = BTreeMap<LinkArrayKey, Vec<Vec<i64>>>;

/// Cells of links that were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::migrate) struct WrittenLinks {
    /// Chunks with a cell, by array or family.
    pub(super) cell_indexes: Cells,
    /// Chunks with a cell of each attribute, by array or family.
    pub(super) valued: Vec<Cells>,
    /// Cells of links without values of each attribute, in a target where all links have values if
    /// some have.
    pub(super) unvalued: Vec<CountedCells>,
    /// Bytes of a row of each attribute; 0 while unknown.
    pub(super) rows: Vec<usize>,
    pub(super) filled_rows: Vec<u64>,
    /// Numbers of migrated links, of links between chunks among them, and of stored rows.
    pub(super) logical: u64,
    pub(super) crossing: u64,
    pub(super) physical: u64,
    /// Number of missing copies.
    pub(super) copies: u64,
    /// True if links inside chunks have groups, and the chunks with groups.
    pub(super) is_grouped: bool,
    pub(super) grouped: Vec<Vec<i64>>,
    /// Number of chunks whose groups were missing.
    pub(super) ungrouped: u64,
    /// Numbers of units and chunks in the source, if a task has written these cells.
    pub(super) counts: (usize, usize),
}

impl WrittenLinks {
    pub(super) fn new(attributes: usize) -> Self {
        Self {
            valued: vec![BTreeMap::new(); attributes],
            unvalued: vec![BTreeMap::new(); attributes],
            rows: vec![0; attributes],
            filled_rows: vec![0; attributes],
            ..Self::default()
        }
    }

    /// Returns the cells as JSON.
    pub(in crate::migrate) fn to_json(&self) -> Value {
        let chunks = |cells: &Cells| cells_to_json(cells, |chunk| json!(chunk));
        let valued: Vec<Value> = self.valued.iter().map(chunks).collect();
        let counted = |cells: &CountedCells| cells_to_json(cells, |cell| json!(cell));
        let unvalued: Vec<Value> = self.unvalued.iter().map(counted).collect();
        json!({
            "cells": chunks(&self.cell_indexes),
            "valued": valued,
            "unvalued": unvalued,
            "rows": self.rows,
            "filled_rows": self.filled_rows,
            "logical": self.logical,
            "crossing": self.crossing,
            "physical": self.physical,
            "copies": self.copies,
            "is_grouped": self.is_grouped,
            "grouped": self.grouped,
            "ungrouped": self.ungrouped,
            "counts": [self.counts.0, self.counts.1],
        })
    }

    /// Parses the output of [`to_json`](Self::to_json); `None` if it is invalid.
    pub(in crate::migrate) fn from_json(json: &Value) -> Option<Self> {
        let count = |member: &str| json[member].as_u64();
        let numbers = |member: &str| {
            let list = json[member].as_array()?.iter();
            list.map(Value::as_u64).collect::<Option<Vec<u64>>>()
        };
        let size = |number: &u64| usize::try_from(*number).ok();
        let valued = json["valued"]
            .as_array()?
            .iter()
            .map(|own| cells(own, chunk));
        let unvalued = json["unvalued"]
            .as_array()?
            .iter()
            .map(|own| cells(own, counted_chunk));
        let rows = numbers("rows")?;
        let counts = numbers("counts")?;
        let parsed = Self {
            cell_indexes: cells(&json["cells"], chunk)?,
            valued: valued.collect::<Option<_>>()?,
            unvalued: unvalued.collect::<Option<_>>()?,
            rows: rows.iter().map(size).collect::<Option<_>>()?,
            filled_rows: numbers("filled_rows")?,
            logical: count("logical")?,
            crossing: count("crossing")?,
            physical: count("physical")?,
            copies: count("copies")?,
            is_grouped: json["is_grouped"].as_bool()?,
            grouped: coords(&json["grouped"])?,
            ungrouped: count("ungrouped")?,
            counts: (size(counts.first()?)?, size(counts.get(1)?)?),
        };
        let attributes = parsed.valued.len();
        let lengths = [
            parsed.unvalued.len(),
            parsed.rows.len(),
            parsed.filled_rows.len(),
        ];
        let is_even = lengths == [attributes; 3];
        is_even.then_some(parsed)
    }

    /// Adds the cells of another task; `None` if they belong to other links.
    pub(in crate::migrate) fn append(&mut self, other: Self) -> Option<()> {
        let is_same = self.counts == other.counts && self.valued.len() == other.valued.len();
        is_same.then_some(())?;
        extend(&mut self.cell_indexes, other.cell_indexes);
        for (own, other) in self.valued.iter_mut().zip(other.valued) {
            extend(own, other);
        }
        for (own, other) in self.unvalued.iter_mut().zip(other.unvalued) {
            extend(own, other);
        }
        for (own, other) in self.rows.iter_mut().zip(other.rows) {
            *own = other.max(*own);
        }
        for (own, other) in self.filled_rows.iter_mut().zip(other.filled_rows) {
            *own += other;
        }
        self.logical += other.logical;
        self.crossing += other.crossing;
        self.physical += other.physical;
        self.copies += other.copies;
        self.is_grouped |= other.is_grouped;
        self.grouped.extend(other.grouped);
        self.ungrouped += other.ungrouped;
        Some(())
    }
}

fn extend<T>(cells: &mut BTreeMap<LinkArrayKey, Vec<T>>, others: BTreeMap<LinkArrayKey, Vec<T>>) {
    for (key, chunks) in others {
        cells.entry(key).or_default().extend(chunks);
    }
}

fn cells_to_json<T>(
    cells: &BTreeMap<LinkArrayKey, Vec<T>>,
    to_json: impl Fn(&T) -> Value,
) -> Value {
    let cells = cells.iter().map(|(key, chunks)| {
        let key = match key {
            LinkArrayKey::Offsets(segment) => json!({"offsets": segment}),
            LinkArrayKey::Aligned => json!("aligned"),
            LinkArrayKey::CrossChunk => json!("cross_chunk"),
        };
        let chunks: Vec<Value> = chunks.iter().map(&to_json).collect();
        json!([key, chunks])
    });
    Value::Array(cells.collect())
}

fn cells<T>(
    json: &Value,
    parse: impl Fn(&Value) -> Option<T>,
) -> Option<BTreeMap<LinkArrayKey, Vec<T>>> {
    let cells = json.as_array()?.iter().map(|cell| {
        let key = match (&cell[0], cell[0].as_str()) {
            (_, Some("aligned")) => LinkArrayKey::Aligned,
            (_, Some("cross_chunk")) => LinkArrayKey::CrossChunk,
            (key, _) => LinkArrayKey::Offsets(key["offsets"].as_str()?.to_owned()),
        };
        let chunks = cell[1].as_array()?.iter().map(&parse);
        Some((key, chunks.collect::<Option<_>>()?))
    });
    cells.collect()
}

fn counted_chunk(json: &Value) -> Option<(Vec<i64>, u64)> {
    Some((chunk(&json[0])?, json[1].as_u64()?))
}

fn chunk(json: &Value) -> Option<Vec<i64>> {
    json.as_array()?.iter().map(Value::as_i64).collect()
}

/// Parses coordinates of chunks.
pub(in crate::migrate) fn coords(json: &Value) -> Option<Vec<Vec<i64>>> {
    json.as_array()?.iter().map(chunk).collect()
}
