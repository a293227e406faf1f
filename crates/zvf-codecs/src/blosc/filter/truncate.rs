//! The truncation filter: low mantissa bits set to zero.

/// Returns the number of bits dropped from a float of `width` bytes; `None` if there is no such
/// float, or no mantissa bits would remain.
pub(super) fn dropped(width: usize, bits: i8) -> Option<u32> {
    let mantissa = match width {
        4 => 23,
        8 => 52,
        _ => return None,
    };
    let bits_there = u32::from(bits.unsigned_abs());
    let dropped = if bits < 0 {
        Some(bits_there)
    } else {
        u32::checked_sub(mantissa, bits_there)
    };
    dropped.filter(|dropped| *dropped < mantissa)
}

pub(super) fn apply(width: usize, bits: i8, block: &mut [u8]) {
    let Some(dropped) = dropped(width, bits) else {
        return;
    };
    // The mask covers floats of both widths. For floats of 4 bytes, `zip` uses its low half.
    let mask = (u64::MAX << dropped).to_le_bytes();
    for float in block.chunks_exact_mut(width) {
        for (byte, mask) in float.iter_mut().zip(mask) {
            *byte &= mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_or_drops_mantissa_bits() {
        let mut floats = 1.234_567_9_f32.to_le_bytes();
        apply(4, 10, &mut floats);
        assert_eq!(floats, 1.234_375_f32.to_le_bytes());
        let mut floats = 1.234_567_9_f64.to_le_bytes();
        apply(8, -42, &mut floats);
        assert_eq!(floats, 1.234_375_f64.to_le_bytes());
        assert_eq!(dropped(4, 23), Some(0));
        for (width, bits) in [(4, 24), (4, 0), (4, -23), (2, 3), (8, 53)] {
            assert_eq!(dropped(width, bits), None, "{width} {bits}");
        }
    }
}
