//! Equally spaced parts of a block.

use core::ops::Range;

/// Equally spaced parts of a byte sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripes {
    start: usize,
    len: usize,
    count: usize,
    step: usize,
}

/// Gap in bytes from which stripes are read separately instead of together with the gap.
const MIN_GAP: usize = 512;

impl Stripes {
    /// Creates `count` stripes of `len` bytes: the first starts at `start`, and each other `step`
    /// bytes after the one before it.
    pub fn new(start: usize, len: usize, count: usize, step: usize) -> Self {
        Self {
            start,
            len,
            count,
            step,
        }
    }

    /// Creates one stripe of the first `len` bytes.
    pub fn first(len: usize) -> Self {
        Self {
            start: 0,
            len,
            count: 1,
            step: 0,
        }
    }

    /// Returns the end of the last stripe.
    pub fn end(&self) -> usize {
        let last = self.count.saturating_sub(1).saturating_mul(self.step);
        self.start.saturating_add(last).saturating_add(self.len)
    }

    /// Iterates over the stripes; small gaps are included, which merges the stripes into one range.
    pub fn each(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (start, end, len, step) = (self.start, self.end(), self.len, self.step);
        let is_sparse = step >= MIN_GAP && len.saturating_mul(2) < step;
        let count = if is_sparse { self.count } else { 1 };
        (0..count).map(move |at| {
            let start = start.saturating_add(at.saturating_mul(step));
            start..if is_sparse {
                start.saturating_add(len)
            } else {
                end
            }
        })
    }
}
