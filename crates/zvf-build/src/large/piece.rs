//! Rows of a partition as bytes, for the file between the two passes.

use serde_json::{Value, json};

use crate::error::BuildError;

/// Rows of vertices; those of paths are in runs within one chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Piece {
    pub(super) positions: Vec<u8>,
    /// Values of each attribute, words as numbers.
    pub(super) fields: Vec<Vec<u8>>,
    /// Object of each vertex, or of each run.
    pub(super) objects: Vec<i64>,
    /// Number of vertices of each run; empty for points.
    pub(super) run_rows: Vec<u32>,
    /// 1 for the root of a tree, 0 for other vertices; empty unless the geometry is skeletons.
    pub(super) roots: Vec<u8>,
    /// Steps between chunks: chunk number and row of both ends.
    pub(super) steps: Vec<[u32; 4]>,
}

impl Piece {
    /// Returns the size of the encoded piece in bytes.
    pub(super) fn size(&self) -> usize {
        let columns = self.fields.iter().map(Vec::len).sum::<usize>() + self.positions.len();
        let rows = self.objects.len() * 8 + self.run_rows.len() * 4 + self.roots.len();
        columns + rows + self.steps.len() * 16 + (self.fields.len() + 5) * 8
    }

    /// Appends the encoded piece.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut lengths = vec![self.positions.len()];
        lengths.extend(self.fields.iter().map(Vec::len));
        lengths.extend([
            self.objects.len(),
            self.run_rows.len(),
            self.roots.len(),
            self.steps.len(),
        ]);
        for length in lengths {
            out.extend((length as u64).to_le_bytes());
        }
        out.extend(&self.positions);
        self.fields.iter().for_each(|field| out.extend(field));
        self.objects
            .iter()
            .for_each(|id| out.extend(id.to_le_bytes()));
        self.run_rows
            .iter()
            .for_each(|rows| out.extend(rows.to_le_bytes()));
        out.extend(&self.roots);
        let steps = self.steps.iter().flatten();
        steps.for_each(|number| out.extend(number.to_le_bytes()));
    }

    /// Decodes a piece and appends it to this one.
    pub(super) fn read(&mut self, bytes: &mut &[u8], fields: usize) -> Result<(), BuildError> {
        self.fields.resize(fields, Vec::new());
        let lengths = take(bytes, (fields + 5) * 8)?;
        let lengths: Vec<usize> = numbers(lengths)
            .map(|length| u64::from_le_bytes(length) as usize)
            .collect();
        let [positions, own @ .., objects, run_rows, roots, steps] = lengths.as_slice() else {
            return Err(damaged());
        };
        self.positions.extend(take(bytes, *positions)?);
        for (field, length) in self.fields.iter_mut().zip(own) {
            field.extend(take(bytes, *length)?);
        }
        let ids = take(bytes, objects.saturating_mul(8))?;
        self.objects.extend(numbers(ids).map(i64::from_le_bytes));
        let rows = take(bytes, run_rows.saturating_mul(4))?;
        self.run_rows.extend(numbers(rows).map(u32::from_le_bytes));
        self.roots.extend(take(bytes, *roots)?);
        for step in take(bytes, steps.saturating_mul(16))?.chunks_exact(16) {
            let mut four = numbers(step).map(u32::from_le_bytes);
            let mut next = || four.next().unwrap_or_default();
            self.steps.push([next(), next(), next(), next()]);
        }
        Ok(())
    }
}

/// The change of the pieces of a share of the input that makes them continue those of the shares
/// before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PieceShift {
    /// Number of each word, by attribute; empty for numbers.
    pub(super) words: Vec<Vec<u32>>,
    /// Number of each chunk, and its rows in earlier shares; empty without links of steps.
    pub(super) chunks: Vec<(u32, u64)>,
}

impl PieceShift {
    /// Serializes the change.
    pub fn to_json(&self) -> Value {
        json!({"words": self.words, "chunks": self.chunks})
    }

    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the JSON is not an output of `to_json`.
    pub fn from_json(json: &Value) -> Result<Self, BuildError> {
        let parsed = |name: &str| json[name].clone();
        Ok(Self {
            words: serde_json::from_value(parsed("words")).map_err(|_| damaged())?,
            chunks: serde_json::from_value(parsed("chunks")).map_err(|_| damaged())?,
        })
    }

    /// Changes pieces.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the bytes are not pieces of the share.
    pub fn apply(&self, bytes: Vec<u8>) -> Result<Vec<u8>, BuildError> {
        if self.chunks.is_empty() && self.words.iter().all(Vec::is_empty) {
            return Ok(bytes);
        }
        let (mut left, mut piece) = (bytes.as_slice(), Piece::default());
        while !left.is_empty() {
            piece.read(&mut left, self.words.len())?;
        }
        for (field, words) in piece.fields.iter_mut().zip(&self.words) {
            if words.is_empty() {
                continue;
            }
            for code in field.chunks_exact_mut(4) {
                let mut number = [0; 4];
                number.copy_from_slice(code);
                // A row without a word has a number above all words.
                if let Some(word) = words.get(u32::from_le_bytes(number) as usize) {
                    code.copy_from_slice(&word.to_le_bytes());
                }
            }
        }
        for step in &mut piece.steps {
            let [from, before, to, row] = step;
            for (chunk, row) in [(from, before), (to, row)] {
                let (number, rows) = self.chunks.get(*chunk as usize).ok_or_else(damaged)?;
                *chunk = *number;
                let moved = u64::from(*row) + rows;
                *row = u32::try_from(moved).map_err(|_| BuildError::TooManyVertices(usize::MAX))?;
            }
        }
        let mut out = Vec::with_capacity(bytes.len());
        piece.write(&mut out);
        Ok(out)
    }
}

pub(super) fn numbers<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|bytes| {
        let mut number = [0; N];
        number.copy_from_slice(bytes);
        number
    })
}

pub(super) fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], BuildError> {
    let (first, rest) = bytes.split_at_checked(count).ok_or_else(damaged)?;
    *bytes = rest;
    Ok(first)
}

/// Returns the error for damaged bytes.
pub(super) fn damaged() -> BuildError {
    BuildError::MissingInput {
        kind: "partitions",
        what: "unchanged files between the passes; a partition file is damaged",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_decoded_in_sequence() {
        let one = Piece {
            positions: vec![1; 24],
            fields: vec![vec![2; 2], Vec::new()],
            objects: vec![-5, 7],
            run_rows: vec![1, 1],
            roots: vec![1, 0],
            steps: vec![[1, 2, 3, 4]],
        };
        let mut bytes = Vec::new();
        one.write(&mut bytes);
        assert_eq!(bytes.len(), one.size());
        one.write(&mut bytes);
        let (mut both, mut left) = (Piece::default(), bytes.as_slice());
        both.read(&mut left, 2).unwrap();
        assert_eq!(both, one);
        both.read(&mut left, 2).unwrap();
        assert!(left.is_empty());
        assert_eq!((both.steps.len(), both.positions.len()), (2, 48));
        for end in 0..bytes.len() / 2 {
            let result = Piece::default().read(&mut &bytes[..end], 2);
            assert!(result.is_err(), "{end}");
        }
    }
}
