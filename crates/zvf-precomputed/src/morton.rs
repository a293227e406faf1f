//! Compressed Morton codes: the keys of cells in shards.

/// The reason why a cell has no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MortonError {
    /// The cell has another number of axes than the grid, or lies outside of it.
    #[error("the cell is not in the grid")]
    Outside,
    /// The code has more than 64 bits.
    #[error("a grid of this shape needs codes of more than 64 bits")]
    TooLarge,
}

/// Returns the compressed Morton code of a cell: the bits of the coordinates in turn, the lowest
/// first, where an axis takes part only while its largest coordinate has such a bit.
///
/// ```
/// use zvf_precomputed::compressed_morton_code;
///
/// assert_eq!(compressed_morton_code(&[1, 0, 1], &[2, 1, 2]), Ok(0b11));
/// ```
///
/// # Errors
///
/// [`MortonError`] if the cell is outside the grid or the code has more than 64 bits.
pub fn compressed_morton_code(cell: &[u64], shape: &[u64]) -> Result<u64, MortonError> {
    let is_inside = cell.len() == shape.len() && cell.iter().zip(shape).all(|(c, n)| c < n);
    if !is_inside {
        return Err(MortonError::Outside);
    }
    let bits = shape.iter().map(|extent| bits_of(*extent));
    if bits
        .clone()
        .try_fold(0_u32, u32::checked_add)
        .is_none_or(|all| all > 64)
    {
        return Err(MortonError::TooLarge);
    }
    let rounds = bits.clone().max().unwrap_or(0);
    let (mut code, mut at) = (0_u64, 0_u32);
    for bit in 0..rounds {
        for (coordinate, bits) in cell.iter().zip(bits.clone()) {
            if bit < bits {
                code |= (coordinate >> bit & 1) << at;
                at = at.saturating_add(1);
            }
        }
    }
    Ok(code)
}

/// Returns the number of bits of the largest coordinate of an axis.
fn bits_of(extent: u64) -> u32 {
    u64::BITS.saturating_sub(extent.saturating_sub(1).leading_zeros())
}
