//! The order of elements inside chunks: block after block.

use crate::{
    AxisRange, ChunkGrid, GridCells, Hyperslab,
    strided::{BoxCopy, strides},
};

/// Copies the elements of a chunk inside the array from row-major order into blocks, and fills the
/// padding with zeros. Returns `None` if `bytes` is too short.
pub(super) fn blocks(
    grid: &ChunkGrid,
    size: usize,
    shape: &[u64],
    bytes: &[u8],
    into: &mut [u8],
) -> Option<()> {
    into.fill(0);
    let block = grid.block_shape()?;
    let blocksize = block.iter().try_fold(size, |len, extent| {
        len.checked_mul(usize::try_from(*extent).ok()?)
    })?;
    let from_strides = strides(shape, size)?;
    let to_strides = strides(block, size)?;
    let ranges: Vec<AxisRange> = shape.iter().copied().map(AxisRange::whole).collect();
    let counts = grid
        .chunk_shape()
        .iter()
        .zip(block)
        .map(|(chunk, &block)| chunk.div_ceil(block.max(1)));
    let mut cells = GridCells::new(&ranges, block);
    while let Some(parts) = cells.next() {
        let mut number = 0_usize;
        for (part, count) in parts.iter().zip(counts.clone()) {
            let cell = usize::try_from(part.cell).ok()?;
            number = number.checked_mul(usize::try_from(count).ok()?)?;
            number = number.checked_add(cell)?;
        }
        let mut from = 0_usize;
        let mut axes = Vec::with_capacity(parts.len());
        let strides = from_strides.iter().zip(&to_strides);
        for (part, (&from_stride, &to_stride)) in parts.iter().zip(strides) {
            let at = usize::try_from(part.at).ok()?;
            from = from.checked_add(at.checked_mul(from_stride)?)?;
            axes.push((usize::try_from(part.count).ok()?, from_stride, to_stride));
        }
        let to = number.checked_mul(blocksize)?;
        BoxCopy::new(size, axes.into_iter(), from, to)?.run(bytes, into)?;
    }
    Some(())
}

/// Copies the part of a selection inside `chunk` from `bytes`, the row-major elements of the
/// selection, to `into`, the row-major elements of the chunk.
pub(super) fn overlay(
    size: usize,
    selection: &Hyperslab,
    bytes: &[u8],
    chunk: &Hyperslab,
    parts: &[crate::CellPart],
    into: &mut [u8],
) -> Option<()> {
    let from_strides = strides(&selection.shape(), size)?;
    let to_strides = strides(&chunk.shape(), size)?;
    let (mut from, mut to) = (0_usize, 0_usize);
    let mut axes = Vec::with_capacity(parts.len());
    let ranges = selection.axes().iter().zip(parts);
    let strides = from_strides.iter().zip(&to_strides);
    for ((range, part), (&from_stride, &to_stride)) in ranges.zip(strides) {
        let at = usize::try_from(part.at).ok()?;
        let offset = usize::try_from(part.offset).ok()?;
        from = from.checked_add(at.checked_mul(from_stride)?)?;
        to = to.checked_add(offset.checked_mul(to_stride)?)?;
        let count = usize::try_from(part.count).ok()?;
        let step = match count {
            0 | 1 => 0,
            _ => usize::try_from(range.step()).ok()?,
        };
        axes.push((count, from_stride, to_stride.checked_mul(step)?));
    }
    BoxCopy::new(size, axes.into_iter(), from, to)?.run(bytes, into)
}

/// Copies the elements of `chunk` from `bytes`, the row-major elements of `whole`, which contains
/// the chunk.
pub(super) fn extract_chunk(
    size: usize,
    bytes: &[u8],
    whole: &Hyperslab,
    chunk: &Hyperslab,
    into: &mut [u8],
) -> Option<()> {
    let from_strides = strides(&whole.shape(), size)?;
    let to_strides = strides(&chunk.shape(), size)?;
    let mut from = 0_usize;
    let mut axes = Vec::with_capacity(to_strides.len());
    let strides = from_strides.iter().zip(&to_strides);
    for (range, (&from_stride, &to_stride)) in chunk.axes().iter().zip(strides) {
        let start = usize::try_from(range.start()).ok()?;
        from = from.checked_add(start.checked_mul(from_stride)?)?;
        axes.push((usize::try_from(range.count()).ok()?, from_stride, to_stride));
    }
    BoxCopy::new(size, axes.into_iter(), from, 0)?.run(bytes, into)
}
