//! Where a read goes.

use crate::{AxisRange, CellPart, blosc::Special, strided::BoxCopy};

/// Row-major bytes that are read into.
pub(super) struct Output<'a> {
    pub(super) bytes: &'a mut [u8],
    /// Bytes from one element to the next along each axis.
    pub(super) strides: &'a [usize],
    /// Bytes of an element.
    pub(super) size: usize,
}

impl Output<'_> {
    /// The copy of `parts` of a block, whose elements are `strides` apart, to
    /// their place.
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
            // Of one element the step may be past memory. Whatever else is past
            // it is past the block.
            let step = match count {
                0 | 1 => 0,
                _ => usize::try_from(range.step()).unwrap_or(usize::MAX),
            };
            (count, from_stride.saturating_mul(step), to_stride)
        });
        BoxCopy::new(self.size, axes, from, to)
    }

    /// Puts a repeated value wherever `parts` go.
    pub(super) fn fill(&mut self, special: &Special<'_>, parts: &[CellPart]) -> Option<()> {
        let mut start = 0_usize;
        let mut axes = Vec::with_capacity(parts.len());
        for (part, &stride) in parts.iter().zip(self.strides) {
            let at = usize::try_from(part.at).ok()?;
            start = start.checked_add(at.checked_mul(stride)?)?;
            axes.push((usize::try_from(part.count).ok()?, stride));
        }
        // What follows each other without a gap is filled at once.
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
