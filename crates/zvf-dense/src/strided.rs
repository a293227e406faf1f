//! Copies boxes of elements between arrays in memory.

use core::ops::Range;

use zvf_codecs::blosc::Stripes;

use crate::grid::CellPart;

/// One axis of a copy: the number of elements, and their distance in bytes in source and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    count: usize,
    from: usize,
    to: usize,
}

impl Axis {
    /// An axis of one element.
    const ONE: Self = Self {
        count: 1,
        from: 0,
        to: 0,
    };
}

/// A copy of a box of elements. Axes that are contiguous in source and target are merged, so that
/// adjacent bytes are copied at once.
#[derive(Clone, Debug)]
pub(crate) struct BoxCopy {
    /// Axes from the outermost; the last one covers contiguous bytes.
    axes: Vec<Axis>,
    from: usize,
    to: usize,
}

/// Returns the stride in bytes along each axis of a row-major array of elements of `size` bytes;
/// `None` if the array exceeds the address space.
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
    /// Creates a copy of elements of `size` bytes. Each axis has a count and the strides in source and
    /// target; `from` and `to` are the offsets of the first element.
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

    /// Returns the target range if the box is a whole source of `len` bytes and contiguous in the
    /// target.
    pub(crate) fn target_of_whole(&self, len: usize) -> Option<Range<usize>> {
        match self.axes.as_slice() {
            [run] if run.count == len && self.from == 0 => Some(self.to..self.to.checked_add(len)?),
            _ => None,
        }
    }

    /// Returns the source bytes that are copied.
    pub(crate) fn source(&self) -> Stripes {
        let reach = |axis: &Axis| axis.count.saturating_sub(1).saturating_mul(axis.from);
        let (outer, inner) = match self.axes.as_slice() {
            [outer, inner @ ..] if !inner.is_empty() => (*outer, inner),
            all => (Axis::ONE, all),
        };
        let last = inner.iter().map(reach).fold(0, usize::saturating_add);
        Stripes::new(self.from, last.saturating_add(1), outer.count, outer.from)
    }

    /// Runs the copy. Returns `None` if the box reaches past the end of source or target.
    pub(crate) fn run(&self, from: &[u8], to: &mut [u8]) -> Option<()> {
        copy_row_by_row(&[(self, from)], to)
    }

    /// Returns whether the copy continues the target rows of `other`.
    pub(crate) fn continues_rows(&self, other: &Self) -> bool {
        let ([outer @ .., run], [others @ .., other_run]) = (&*self.axes, &*other.axes) else {
            return false;
        };
        let row = outer.last().map_or(0, |line| line.to);
        let mut axes = outer.iter().zip(others);
        outer.len() == others.len()
            && axes.all(|(axis, other)| axis.count == other.count && axis.to == other.to)
            && run.count == other_run.count
            && self.to.checked_sub(other.to).is_some_and(|gap| gap < row)
    }
}

/// Copies boxes that [continue](BoxCopy::continues_rows) each other's rows, row by row. Writes are then
/// sequential, and reads are sequential in each source, which is faster than one box after the other.
/// Returns `None` if a box reaches past the end of source or target.
pub(crate) fn copy_row_by_row(copies: &[(&BoxCopy, &[u8])], to: &mut [u8]) -> Option<()> {
    let Some((first, _)) = copies.first() else {
        return Some(());
    };
    if first.axes.iter().any(|axis| axis.count == 0) {
        return Some(());
    }
    let (outer, line, run) = match first.axes.as_slice() {
        [run] => (&[][..], Axis::ONE, run.count),
        [outer @ .., line, run] => (outer, *line, run.count),
        [] => return None,
    };
    let mut sources: Vec<CopySource<'_>> = copies
        .iter()
        .map(|(copy, from)| {
            let outer = copy.axes.iter().take(outer.len()).map(|axis| axis.from);
            let line = copy.axes.get(outer.len()).filter(|_| copy.axes.len() > 1);
            CopySource {
                from,
                outer: outer.collect(),
                line: line.map_or(0, |line| line.from),
                at: copy.from,
                to: copy.to,
            }
        })
        .collect();
    walk(outer, 0, line, run, &mut sources, to)
}

/// The position in one source of a copy.
struct CopySource<'a> {
    from: &'a [u8],
    /// Strides along the outer axes.
    outer: Vec<usize>,
    line: usize,
    at: usize,
    to: usize,
}

/// Iterates over the outer axes from this one inwards and copies one line of each source per step.
fn walk(
    outer: &[Axis],
    depth: usize,
    line: Axis,
    run: usize,
    sources: &mut [CopySource<'_>],
    to: &mut [u8],
) -> Option<()> {
    let Some((axis, inner)) = outer.split_first() else {
        return copy_lines(line, run, sources, to);
    };
    for _ in 0..axis.count {
        walk(inner, depth + 1, line, run, sources, to)?;
        for source in &mut *sources {
            source.at = source.at.checked_add(*source.outer.get(depth)?)?;
            source.to = source.to.checked_add(axis.to)?;
        }
    }
    // Return to the start of this axis for the next step of the outer axis.
    for source in sources {
        let back = source.outer.get(depth)?.checked_mul(axis.count)?;
        source.at = source.at.checked_sub(back)?;
        source.to = source.to.checked_sub(axis.to.checked_mul(axis.count)?)?;
    }
    Some(())
}

fn copy_lines(line: Axis, run: usize, sources: &[CopySource<'_>], to: &mut [u8]) -> Option<()> {
    match run {
        1 => copy_items::<1>(line, sources, to),
        2 => copy_items::<2>(line, sources, to),
        4 => copy_items::<4>(line, sources, to),
        8 => copy_items::<8>(line, sources, to),
        16 => copy_items::<16>(line, sources, to),
        32 => copy_items::<32>(line, sources, to),
        64 => copy_items::<64>(line, sources, to),
        128 => copy_items::<128>(line, sources, to),
        256 => copy_items::<256>(line, sources, to),
        5..8 => copy_ends::<4>(line, run, sources, to),
        9..16 => copy_ends::<8>(line, run, sources, to),
        17..32 => copy_ends::<16>(line, run, sources, to),
        33..64 => copy_ends::<32>(line, run, sources, to),
        65..128 => copy_ends::<64>(line, run, sources, to),
        _ => each_item(line, sources, to, |from, to| {
            to.get_mut(..run)?.copy_from_slice(from.get(..run)?);
            Some(())
        }),
    }
}

/// Copies items of a constant length with moves instead of calls.
fn copy_items<const N: usize>(line: Axis, sources: &[CopySource<'_>], to: &mut [u8]) -> Option<()> {
    each_item(line, sources, to, |from, to| {
        *to.first_chunk_mut::<N>()? = *from.first_chunk::<N>()?;
        Some(())
    })
}

/// Copies items of `N` to `2 * N` bytes as two overlapping moves of `N` bytes.
fn copy_ends<const N: usize>(
    line: Axis,
    run: usize,
    sources: &[CopySource<'_>],
    to: &mut [u8],
) -> Option<()> {
    each_item(line, sources, to, |from, to| {
        let (from, to) = (from.get(..run)?, to.get_mut(..run)?);
        *to.first_chunk_mut::<N>()? = *from.first_chunk::<N>()?;
        *to.last_chunk_mut::<N>()? = *from.last_chunk::<N>()?;
        Some(())
    })
}

#[inline]
fn each_item(
    line: Axis,
    sources: &[CopySource<'_>],
    to: &mut [u8],
    copy: impl Fn(&[u8], &mut [u8]) -> Option<()>,
) -> Option<()> {
    if let [source] = sources {
        let from = source.from.get(source.at..)?;
        let to = to.get_mut(source.to..)?;
        for at in 0..line.count {
            let from = from.get(at.checked_mul(source.line)?..)?;
            copy(from, to.get_mut(at.checked_mul(line.to)?..)?)?;
        }
        return Some(());
    }
    for at in 0..line.count {
        let to_row = at.checked_mul(line.to)?;
        for source in sources {
            let from = source.at.checked_add(at.checked_mul(source.line)?)?;
            let place = source.to.checked_add(to_row)?;
            copy(source.from.get(from..)?, to.get_mut(place..)?)?;
        }
    }
    Some(())
}

/// Extracts the elements of one cell from a row-major array; `parts` covers the whole cell.
pub(crate) fn extract_cell(
    bytes: &[u8],
    shape: &[u64],
    cell: &[u64],
    parts: &[CellPart],
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
    // At most the size of the array, which is in memory.
    let mut cell = vec![0; len.min(bytes.len())];
    BoxCopy::new(size, axes.into_iter(), start, 0)?.run(bytes, &mut cell)?;
    Some(cell)
}
