//! The output buffer of a read.

use crate::{AxisRange, CellPart, blosc::Special, strided::BoxCopy};

/// A row-major output buffer.
pub(super) struct Output<'a> {
    pub(super) bytes: &'a mut [u8],
    /// Distance in bytes between neighbouring elements along each axis.
    pub(super) strides: &'a [usize],
    /// Length of an element in bytes.
    pub(super) size: usize,
}

impl Output<'_> {
    /// Creates the copy of `parts` of a block to the output. `strides` are the distances between
    /// elements of the block.
    pub(super) fn copy(
        &self,
        parts: &[CellPart],
        ranges: &[AxisRange],
        strides: &[usize],
    ) -> Option<BoxCopy> {
        let (mut from, mut to) = (0_usize, 0_usize);
        let axes = parts
            .iter()
            .zip(ranges)
            .zip(strides.iter().zip(self.strides));
        for ((part, _), (&from_stride, &to_stride)) in axes.clone() {
            let offset = usize::try_from(part.offset).ok()?;
            let at = usize::try_from(part.at).ok()?;
            from = from.checked_add(offset.checked_mul(from_stride)?)?;
            to = to.checked_add(at.checked_mul(to_stride)?)?;
        }
        let axes = axes.map(|((part, range), (&from_stride, &to_stride))| {
            let count = usize::try_from(part.count).unwrap_or(usize::MAX);
            // The step of a single element may exceed memory, so it is ignored. Any other step
            // that large is outside the block and fails below.
            let step = match count {
                0 | 1 => 0,
                _ => usize::try_from(range.step()).unwrap_or(usize::MAX),
            };
            (count, from_stride.saturating_mul(step), to_stride)
        });
        BoxCopy::new(self.size, axes, from, to)
    }

    /// Fills the output of `parts` with a repeated value.
    pub(super) fn fill(&mut self, special: &Special<'_>, parts: &[CellPart]) -> Option<()> {
        let mut start = 0_usize;
        let mut axes = Vec::with_capacity(parts.len());
        for (part, &stride) in parts.iter().zip(self.strides) {
            let at = usize::try_from(part.at).ok()?;
            start = start.checked_add(at.checked_mul(stride)?)?;
            axes.push((usize::try_from(part.count).ok()?, stride));
        }
        // Fill contiguous rows at once.
        let mut run = self.size;
        while let Some(&(count, stride)) = axes.last() {
            if count != 1 && stride != run {
                break;
            }
            run = run.checked_mul(count)?;
            axes.pop();
        }
        fill_rows(special, &axes, run, self.bytes.get_mut(start..)?)
    }
}

fn fill_rows(
    special: &Special<'_>,
    axes: &[(usize, usize)],
    run: usize,
    bytes: &mut [u8],
) -> Option<()> {
    let Some((&(count, stride), inner)) = axes.split_first() else {
        special.fill(0, bytes.get_mut(..run)?);
        return Some(());
    };
    (0..count).try_for_each(|at| {
        let row = bytes.get_mut(at.checked_mul(stride)?..)?;
        fill_rows(special, inner, run, row)
    })
}
