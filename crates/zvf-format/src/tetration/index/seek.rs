//! Lookup of the datasets of successive rows.

use crate::tetration::{DatasetDirectory, DatasetRecord, Datasets};

/// Number of positions in the directory from which a search can start. Records differ in length, so
/// a row out of order would otherwise search from the first record, which takes rows × datasets
/// steps for hostile input.
const MARKS: usize = 64;

/// A directory with marks, and the dataset of the last row.
pub(super) struct Seek<'a> {
    len: u64,
    /// Every `step`-th dataset and those after it.
    marks: [Datasets<'a>; MARKS],
    step: u64,
    left: Datasets<'a>,
    /// Id of the next dataset of `left`.
    next: u64,
    held: Option<DatasetRecord<'a>>,
}

impl<'a> Seek<'a> {
    pub(super) fn new(directory: DatasetDirectory<'a>) -> Self {
        let len = directory.len();
        // Not 0, because the directory is not empty.
        let step = len.div_ceil(64).max(1);
        let mut left = directory.iter();
        let marks = core::array::from_fn(|_| {
            let mark = left.clone();
            for _ in 0..step {
                if left.next().is_none() {
                    break;
                }
            }
            mark
        });
        Self {
            len: len.into(),
            marks,
            step: step.into(),
            left: directory.iter(),
            next: 0,
            held: None,
        }
    }

    /// Returns dataset `id`, or `None` past the end.
    pub(super) fn to(&mut self, id: u64) -> Option<DatasetRecord<'a>> {
        let next = id.checked_add(1)?;
        if next == self.next {
            return self.held;
        }
        if id >= self.len {
            return None;
        }
        let mark = id.checked_div(self.step)?;
        let marked = mark.checked_mul(self.step)?;
        if id < self.next || marked > self.next {
            self.left = self.marks.get(usize::try_from(mark).ok()?)?.clone();
            self.next = marked;
        }
        let skipped = usize::try_from(id.checked_sub(self.next)?).ok()?;
        self.held = self.left.nth(skipped);
        self.next = next;
        self.held
    }
}
