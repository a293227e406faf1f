//! Rows of vertices to which the links of any share refer.
//!
//! A run consists of the vertices of one object in one chunk. They have consecutive rows, in the
//! order of the input. The row of a vertex is therefore the sum of three numbers: the rows of the
//! runs of objects with smaller ids in its chunk, the rows of its run in earlier shares, and its
//! position in the run of its share. The last number is known when the share has been divided, the
//! others when all shares have been divided.
//!
//! ```text
//! table of a batch   u32 run, u32 position for each vertex; both MAX for a dropped vertex
//! table of a share   u32 chunk, u32 row of the first vertex for each run
//! state of a share   u32 chunk, i64 object, u32 rows for each run
//! ```

use std::collections::HashMap;

use crate::{
    error::BuildError,
    large::piece::{damaged, take},
};

/// Run and position of a dropped vertex in a table of a batch.
pub(super) const DROPPED: u32 = u32::MAX;

/// Rows and links of a batch of geometry with links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkedRows {
    /// Run and position of each vertex.
    pub vertices: Vec<u8>,
    /// Links as numbers of vertices of the whole input, with their attributes.
    pub links: Vec<u8>,
}

impl LinkedRows {
    /// Appends a row for each vertex of a batch. `table` has the rows of the kept vertices.
    pub(super) fn set_rows(&mut self, table: &[u8], kept: &[bool]) {
        let mut rows = table.as_chunks::<8>().0.iter();
        for kept in kept {
            let row = if *kept { rows.next() } else { None };
            self.vertices.extend(row.unwrap_or(&[0xff; 8]));
        }
    }
}

/// Runs in order of appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    numbers: HashMap<(u32, i64), u32>,
    all: Vec<ObjectRun>,
}

#[derive(Clone, Copy, Debug)]
struct ObjectRun {
    chunk: u32,
    object: i64,
    rows: u32,
}

/// Size of a run in the state of a share.
const RUN: usize = 16;

impl Runs {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds rows to a run. Returns the number of the run, and the number of its earlier rows.
    pub(super) fn add(
        &mut self,
        chunk: u32,
        object: i64,
        rows: u32,
    ) -> Result<(u32, u32), BuildError> {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry((chunk, object)).or_insert(next);
        if number == next {
            self.all.push(ObjectRun {
                chunk,
                object,
                rows: 0,
            });
        }
        let run = &mut self.all[number as usize];
        let before = run.rows;
        run.rows = before.checked_add(rows).ok_or_else(too_many)?;
        Ok((number, before))
    }

    /// Adds the runs of a later share. `chunks` has the number of each of its chunks here. Returns
    /// the number of each run, and the number of its earlier rows.
    pub(super) fn append(
        &mut self,
        share: &Self,
        chunks: &[u32],
    ) -> Result<Vec<(u32, u32)>, BuildError> {
        let own = share.all.iter().map(|run| {
            let chunk = chunks.get(run.chunk as usize).ok_or_else(damaged)?;
            self.add(*chunk, run.object, run.rows)
        });
        own.collect()
    }

    /// Returns the table of each share, given the results of [`append`](Self::append).
    pub(super) fn tables(&self, shares: &[Vec<(u32, u32)>]) -> Result<Vec<Vec<u8>>, BuildError> {
        let mut order: Vec<u32> = (0..self.all.len() as u32).collect();
        order.sort_unstable_by_key(|run| {
            let run = self.all[*run as usize];
            (run.chunk, run.object)
        });
        let mut first = vec![0u32; self.all.len()];
        let (mut chunk, mut rows) = (None, 0u32);
        for at in order {
            let run = self.all[at as usize];
            if chunk != Some(run.chunk) {
                (chunk, rows) = (Some(run.chunk), 0);
            }
            first[at as usize] = rows;
            rows = rows.checked_add(run.rows).ok_or_else(too_many)?;
        }
        let table = |runs: &Vec<(u32, u32)>| {
            let mut bytes = Vec::with_capacity(runs.len() * 8);
            for (run, before) in runs {
                let run = *run as usize;
                bytes.extend(self.all[run].chunk.to_le_bytes());
                bytes.extend((first[run] + before).to_le_bytes());
            }
            bytes
        };
        Ok(shares.iter().map(table).collect())
    }

    /// Appends the state to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for run in &self.all {
            out.extend(run.chunk.to_le_bytes());
            out.extend(run.object.to_le_bytes());
            out.extend(run.rows.to_le_bytes());
        }
    }

    /// Parses the state of `count` runs in `chunks` chunks.
    pub(super) fn read(bytes: &mut &[u8], count: usize, chunks: usize) -> Result<Self, BuildError> {
        let mut runs = Self::default();
        for run in take(bytes, count.saturating_mul(RUN))?.as_chunks::<RUN>().0 {
            let mut run = run.as_slice();
            let chunk = u32::from_le_bytes(number(&mut run)?);
            let object = i64::from_le_bytes(number(&mut run)?);
            let rows = u32::from_le_bytes(number(&mut run)?);
            let (number, _) = runs.add(chunk, object, rows)?;
            // A run occurs once.
            if chunk as usize >= chunks || number as usize + 1 != runs.len() {
                return Err(damaged());
            }
        }
        if runs.len() == count {
            Ok(runs)
        } else {
            Err(damaged())
        }
    }
}

/// Reads an entry of a table: two numbers.
pub(super) fn entry(table: &[u8], at: usize) -> Option<(u32, u32)> {
    let start = at.checked_mul(8)?;
    let mut entry = table.get(start..)?;
    let first = number(&mut entry).ok()?;
    let second = number(&mut entry).ok()?;
    Some((u32::from_le_bytes(first), u32::from_le_bytes(second)))
}

/// Removes and returns the bytes of a number at the front of `bytes`.
fn number<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], BuildError> {
    let (number, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    *bytes = rest;
    Ok(*number)
}

fn too_many() -> BuildError {
    BuildError::TooManyVertices(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_chunk_ascend_with_objects_and_shares() {
        let (mut all, mut one, mut two) = (Runs::default(), Runs::default(), Runs::default());
        // The first share has the greater object first.
        one.add(0, 9, 3).unwrap();
        one.add(0, 4, 2).unwrap();
        assert_eq!(two.add(0, 9, 1).unwrap(), (0, 0));
        assert_eq!(two.add(0, 9, 1).unwrap(), (0, 1));
        two.add(1, 4, 5).unwrap();
        let mut bytes = Vec::new();
        two.write(&mut bytes);
        for end in 0..bytes.len() {
            assert!(Runs::read(&mut &bytes[..end], 2, 2).is_err(), "{end}");
        }
        assert!(Runs::read(&mut bytes.as_slice(), 2, 1).is_err());
        let again = Runs::read(&mut bytes.as_slice(), 2, 2).unwrap();
        // The chunks of the second share have other numbers.
        let shares = [
            all.append(&one, &[0]).unwrap(),
            all.append(&again, &[0, 7]).unwrap(),
        ];
        let tables = all.tables(&shares).unwrap();
        let of = |share: usize| -> Vec<_> {
            (0..2)
                .map(|run| entry(&tables[share], run).unwrap())
                .collect()
        };
        assert_eq!(of(0), [(0, 2), (0, 0)]);
        assert_eq!(of(1), [(0, 5), (7, 0)]);
        assert!(entry(&tables[0], 2).is_none());
    }
}
