//! Copies boxes of elements between arrays in memory.

use core::ops::Range;

use crate::grid::Part;

/// One axis of a copy: how many elements, and how far apart they are in bytes
/// where they come from and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    count: usize,
    from: usize,
    to: usize,
}

/// A box of elements to copy: axes that continue each other are one, so that
/// what lies side by side in both is copied at once.
#[derive(Clone, Debug)]
pub(crate) struct BoxCopy {
    /// Outermost first; the last is of bytes side by side.
    axes: Vec<Axis>,
    from: usize,
    to: usize,
}

/// Bytes from one element to the next along each axis of a row-major array of
/// elements of `size` bytes; `None` past memory.
pub(crate) fn strides(extents: &[u64], size: usize) -> Option<Vec<usize>> {
    let mut strides = vec![0; extents.len()];
    let mut stride = size;
    for (of_axis, &extent) in strides.iter_mut().zip(extents).rev() {
        *of_axis = stride;
        stride = stride.checked_mul(usize::try_from(extent).ok()?)?;
    }
    Some(strides)
}

impl BoxCopy {
    /// A copy of elements of `size` bytes. Each axis gives a count and the bytes
    /// between elements in source and target; `from` and `to` is where the first
    /// element is.
    pub(crate) fn new(
        size: usize,
        axes: impl DoubleEndedIterator<Item = (usize, usize, usize)>,
        from: usize,
        to: usize,
    ) -> Option<Self> {
        let mut merged = Vec::new();
        let mut inner = Axis {
            count: size,
            from: 1,
            to: 1,
        };
        for (count, from, to) in axes.rev() {
            if count == 1 {
                continue;
            }
            let continues = inner.count.checked_mul(inner.from) == Some(from)
                && inner.count.checked_mul(inner.to) == Some(to);
            if continues {
                inner.count = inner.count.checked_mul(count)?;
            } else {
                merged.push(inner);
                inner = Axis { count, from, to };
            }
        }
        merged.push(inner);
        merged.reverse();
        Some(Self {
            axes: merged,
            from,
            to,
        })
    }

    /// Where all of a source of `len` bytes goes, when the box is that and goes
    /// side by side.
    pub(crate) fn target_of_whole(&self, len: usize) -> Option<Range<usize>> {
        match self.axes.as_slice() {
            [run] if run.count == len && self.from == 0 => Some(self.to..self.to.checked_add(len)?),
            _ => None,
        }
    }

    /// The bytes of the source that are copied, and what is between them.
    pub(crate) fn source(&self) -> Range<usize> {
        let steps = self
            .axes
            .iter()
            .map(|axis| axis.count.saturating_sub(1).saturating_mul(axis.from));
        let last = steps.fold(self.from, usize::saturating_add);
        self.from..last.saturating_add(1)
    }

    /// Copies. `None` when the box reaches past either end.
    pub(crate) fn run(&self, from: &[u8], to: &mut [u8]) -> Option<()> {
        if self.axes.iter().any(|axis| axis.count == 0) {
            return Some(());
        }
        let from = from.get(self.from..)?;
        let to = to.get_mut(self.to..)?;
        match self.axes.as_slice() {
            [run] => {
                let to = to.get_mut(..run.count)?;
                to.copy_from_slice(from.get(..run.count)?);
                Some(())
            }
            [outer @ .., line, run] => walk(outer, *line, run.count, from, to),
            [] => None,
        }
    }
}

/// Walks the outer axes and copies a line at each step.
fn walk(outer: &[Axis], line: Axis, run: usize, from: &[u8], to: &mut [u8]) -> Option<()> {
    let Some((axis, inner)) = outer.split_first() else {
        return copy_line(line, run, from, to);
    };
    for at in 0..axis.count {
        let from = from.get(at.checked_mul(axis.from)?..)?;
        let to = to.get_mut(at.checked_mul(axis.to)?..)?;
        walk(inner, line, run, from, to)?;
    }
    Some(())
}

fn copy_line(line: Axis, run: usize, from: &[u8], to: &mut [u8]) -> Option<()> {
    match run {
        1 => copy_items::<1>(line, from, to),
        2 => copy_items::<2>(line, from, to),
        4 => copy_items::<4>(line, from, to),
        8 => copy_items::<8>(line, from, to),
        16 => copy_items::<16>(line, from, to),
        32 => copy_items::<32>(line, from, to),
        64 => copy_items::<64>(line, from, to),
        128 => copy_items::<128>(line, from, to),
        _ => {
            for at in 0..line.count {
                let from = from.get(at.checked_mul(line.from)?..)?.get(..run)?;
                let to = to.get_mut(at.checked_mul(line.to)?..)?.get_mut(..run)?;
                to.copy_from_slice(from);
            }
            Some(())
        }
    }
}

/// Items of a length known to the compiler: moves instead of calls.
fn copy_items<const N: usize>(line: Axis, from: &[u8], to: &mut [u8]) -> Option<()> {
    for at in 0..line.count {
        let from = from.get(at.checked_mul(line.from)?..)?;
        let to = to.get_mut(at.checked_mul(line.to)?..)?;
        *to.first_chunk_mut::<N>()? = *from.first_chunk::<N>()?;
    }
    Some(())
}

/// The elements of one cell of a row-major array, whose `parts` have all that
/// the cell has of the array.
pub(crate) fn cut(
    bytes: &[u8],
    shape: &[u64],
    cell: &[u64],
    parts: &[Part],
    size: u64,
) -> Option<Vec<u8>> {
    let size = usize::try_from(size).ok()?;
    let extents: Vec<u64> = parts.iter().map(|part| part.count).collect();
    let from = strides(shape, size)?;
    let to = strides(&extents, size)?;
    let mut start = 0_usize;
    let mut axes = Vec::with_capacity(parts.len());
    for (((part, cell), from), to) in parts.iter().zip(cell).zip(from).zip(to) {
        let at = part.cell.checked_mul(*cell)?.checked_add(part.offset)?;
        let at = usize::try_from(at).ok()?.checked_mul(from)?;
        start = start.checked_add(at)?;
        axes.push((usize::try_from(part.count).ok()?, from, to));
    }
    let counts = axes.iter().map(|axis| axis.0);
    let len = counts.chain([size]).try_fold(1, usize::checked_mul)?;
    // As many as the array has at most, which is in memory.
    let mut cut = vec![0; len.min(bytes.len())];
    BoxCopy::new(size, axes.into_iter(), start, 0)?.run(bytes, &mut cut)?;
    Some(cut)
}
