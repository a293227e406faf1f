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

impl Axis {
    /// Nothing but what the axes within it have.
    const ONE: Self = Self {
        count: 1,
        from: 0,
        to: 0,
    };
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

/// Parts of some bytes, each as far from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stripes {
    start: usize,
    len: usize,
    count: usize,
    step: usize,
}

/// Of stripes that are as far from each other, what is between them is worth leaving out.
const FAR: usize = 512;

impl Stripes {
    /// The first bytes, so many.
    pub(crate) fn first(len: usize) -> Self {
        Self {
            start: 0,
            len,
            count: 1,
            step: 0,
        }
    }

    /// Where the last one ends.
    pub(crate) fn end(&self) -> usize {
        let last = self.count.saturating_sub(1).saturating_mul(self.step);
        self.start.saturating_add(last).saturating_add(self.len)
    }

    /// The stripes one by one, or all with what is between them where that is little.
    pub(crate) fn each(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (start, end, len, step) = (self.start, self.end(), self.len, self.step);
        let is_sparse = step >= FAR && len.saturating_mul(2) < step;
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

    /// The bytes of the source that are copied.
    pub(crate) fn source(&self) -> Stripes {
        let reach = |axis: &Axis| axis.count.saturating_sub(1).saturating_mul(axis.from);
        let (outer, inner) = match self.axes.as_slice() {
            [outer, inner @ ..] if !inner.is_empty() => (*outer, inner),
            all => (Axis::ONE, all),
        };
        let last = inner.iter().map(reach).fold(0, usize::saturating_add);
        Stripes {
            start: self.from,
            len: last.saturating_add(1),
            count: outer.count,
            step: outer.from,
        }
    }

    /// Copies. `None` when the box reaches past either end.
    pub(crate) fn run(&self, from: &[u8], to: &mut [u8]) -> Option<()> {
        weave(&[(self, from)], to)
    }

    /// Whether it goes to the same rows as `other`, behind it.
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

/// Copies boxes that each [continue](BoxCopy::continues_rows) the rows of the
/// first, row by row: what is written then follows each other, and what is read
/// does in each source, which memory likes better than the other way round.
/// `None` when one reaches past either end.
pub(crate) fn weave(copies: &[(&BoxCopy, &[u8])], to: &mut [u8]) -> Option<()> {
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
    let strands = copies.iter().map(|(copy, from)| {
        let outer = copy.axes.iter().take(outer.len()).map(|axis| axis.from);
        let line = copy.axes.get(outer.len()).filter(|_| copy.axes.len() > 1);
        Strand {
            from,
            outer: outer.collect(),
            line: line.map_or(0, |line| line.from),
            at: copy.from,
            to: copy.to,
        }
    });
    let mut strands: Vec<Strand<'_>> = strands.collect();
    walk(outer, 0, line, run, &mut strands, to)
}

/// A source of a copy, and where it has come to.
struct Strand<'a> {
    from: &'a [u8],
    /// Bytes to the next element along the outer axes, and along a line.
    outer: Vec<usize>,
    line: usize,
    at: usize,
    to: usize,
}

/// Walks the outer axes, this one and those below it, and copies a line of each
/// strand at each step.
fn walk(
    outer: &[Axis],
    depth: usize,
    line: Axis,
    run: usize,
    strands: &mut [Strand<'_>],
    to: &mut [u8],
) -> Option<()> {
    let Some((axis, inner)) = outer.split_first() else {
        return copy_lines(line, run, strands, to);
    };
    for _ in 0..axis.count {
        walk(inner, depth + 1, line, run, strands, to)?;
        for strand in &mut *strands {
            strand.at = strand.at.checked_add(*strand.outer.get(depth)?)?;
            strand.to = strand.to.checked_add(axis.to)?;
        }
    }
    // Back to where this axis began, for the next step of the one above.
    for strand in strands {
        let back = strand.outer.get(depth)?.checked_mul(axis.count)?;
        strand.at = strand.at.checked_sub(back)?;
        strand.to = strand.to.checked_sub(axis.to.checked_mul(axis.count)?)?;
    }
    Some(())
}

fn copy_lines(line: Axis, run: usize, strands: &[Strand<'_>], to: &mut [u8]) -> Option<()> {
    match run {
        1 => copy_items::<1>(line, strands, to),
        2 => copy_items::<2>(line, strands, to),
        4 => copy_items::<4>(line, strands, to),
        8 => copy_items::<8>(line, strands, to),
        16 => copy_items::<16>(line, strands, to),
        32 => copy_items::<32>(line, strands, to),
        64 => copy_items::<64>(line, strands, to),
        128 => copy_items::<128>(line, strands, to),
        256 => copy_items::<256>(line, strands, to),
        5..8 => copy_ends::<4>(line, run, strands, to),
        9..16 => copy_ends::<8>(line, run, strands, to),
        17..32 => copy_ends::<16>(line, run, strands, to),
        33..64 => copy_ends::<32>(line, run, strands, to),
        65..128 => copy_ends::<64>(line, run, strands, to),
        _ => each_item(line, strands, to, |from, to| {
            to.get_mut(..run)?.copy_from_slice(from.get(..run)?);
            Some(())
        }),
    }
}

/// Items of a length known to the compiler: moves instead of calls.
fn copy_items<const N: usize>(line: Axis, strands: &[Strand<'_>], to: &mut [u8]) -> Option<()> {
    each_item(line, strands, to, |from, to| {
        *to.first_chunk_mut::<N>()? = *from.first_chunk::<N>()?;
        Some(())
    })
}

/// Items of `N` to twice as many bytes: their first ones and their last ones, which are then
/// all of them, some twice.
fn copy_ends<const N: usize>(
    line: Axis,
    run: usize,
    strands: &[Strand<'_>],
    to: &mut [u8],
) -> Option<()> {
    each_item(line, strands, to, |from, to| {
        let (from, to) = (from.get(..run)?, to.get_mut(..run)?);
        *to.first_chunk_mut::<N>()? = *from.first_chunk::<N>()?;
        *to.last_chunk_mut::<N>()? = *from.last_chunk::<N>()?;
        Some(())
    })
}

#[inline]
fn each_item(
    line: Axis,
    strands: &[Strand<'_>],
    to: &mut [u8],
    copy: impl Fn(&[u8], &mut [u8]) -> Option<()>,
) -> Option<()> {
    if let [strand] = strands {
        let from = strand.from.get(strand.at..)?;
        let to = to.get_mut(strand.to..)?;
        for at in 0..line.count {
            let from = from.get(at.checked_mul(strand.line)?..)?;
            copy(from, to.get_mut(at.checked_mul(line.to)?..)?)?;
        }
        return Some(());
    }
    for at in 0..line.count {
        let to_row = at.checked_mul(line.to)?;
        for strand in strands {
            let from = strand.at.checked_add(at.checked_mul(strand.line)?)?;
            let place = strand.to.checked_add(to_row)?;
            copy(strand.from.get(from..)?, to.get_mut(place..)?)?;
        }
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
