//! Match copies of LZ codecs. A copy may overlap its own output and then repeats a pattern.

/// Number of bytes moved at once.
pub(super) const WORD: usize = 16;

/// A block of [`WORD`] bytes.
pub(super) type WordBytes = [u8; WORD];

/// For each distance below [`WORD`]: the factor that repeats the first `distance` bytes over a
/// word, and the number of bytes in a word that whole repetitions cover.
#[expect(clippy::indexing_slicing, reason = "done by the compiler")]
const REPEATS: [(u128, usize); WORD] = {
    let mut repeats = [(0, 0); WORD];
    let mut distance = 1;
    while distance < WORD {
        let mut at = 0;
        while at < WORD {
            repeats[distance].0 |= 1 << (8 * at);
            at += distance;
        }
        repeats[distance].1 = WORD - WORD % distance;
        distance += 1;
    }
    repeats
};

/// Appends a copy of `len` bytes from `distance` bytes before `at`, and returns the end position.
///
/// Returns `None` if the copy starts before the buffer, or does not fit in it.
#[inline]
pub(super) fn repeat(out: &mut [u8], at: usize, len: usize, distance: usize) -> Option<usize> {
    let end = at.checked_add(len)?;
    let mut from = at.checked_sub(distance)?;
    if out.len().checked_sub(end)? < WORD {
        return repeat_at_end(out, at, len, distance);
    }
    let mut to = at;
    if distance >= WORD {
        while to < end {
            let word: WordBytes = *out.get(from..)?.first_chunk()?;
            *out.get_mut(to..)?.first_chunk_mut()? = word;
            to += WORD;
            from += WORD;
        }
    } else {
        let (word, step) = pattern(out, from, distance)?;
        while to < end {
            *out.get_mut(to..)?.first_chunk_mut()? = word;
            to += step;
        }
    }
    Some(end)
}

/// Performs [`repeat`] without writing past the end of the copy.
fn repeat_at_end(out: &mut [u8], at: usize, len: usize, distance: usize) -> Option<usize> {
    let from = at.checked_sub(distance).filter(|_| distance > 0)?;
    let end = at.checked_add(len).filter(|end| *end <= out.len())?;
    // The available bytes double in each round, so no single copy overlaps.
    let mut to = at;
    while to < end {
        let step = (to - from).min(end - to);
        out.copy_within(from..from + step, to);
        to += step;
    }
    Some(end)
}

/// Returns a word filled with repetitions of the `distance` bytes at `from`, and the offset of the
/// next such word.
#[inline]
pub(super) fn pattern(out: &[u8], from: usize, distance: usize) -> Option<(WordBytes, usize)> {
    let (repeats, step) = REPEATS.get(distance).filter(|(_, step)| *step > 0)?;
    let word: WordBytes = *out.get(from..)?.first_chunk()?;
    let mask = (1_u128 << (8 * distance)) - 1;
    let word = (u128::from_le_bytes(word) & mask).wrapping_mul(*repeats);
    Some((word.to_le_bytes(), *step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeat_matches_a_bytewise_copy() {
        for distance in 0..40 {
            for len in 0..50 {
                for capacity in [0, 1, 15, 16, 40] {
                    let mut out: Vec<u8> = (0..40).collect();
                    out.resize(40 + len + capacity, 0);
                    let mut want = out.clone();
                    for at in 40..40 + len {
                        want[at] = want[at - distance];
                    }
                    let end = repeat(&mut out, 40, len, distance);
                    if distance == 0 {
                        assert_eq!(end, None);
                        continue;
                    }
                    assert_eq!(end, Some(40 + len), "{distance} {len}");
                    assert_eq!(out[..40 + len], want[..40 + len], "{distance} {len}");
                }
            }
        }
        assert_eq!(repeat(&mut [0; 40], 3, 1, 4), None);
        assert_eq!(repeat(&mut [0; 40], 30, 11, 4), None);
        assert_eq!(repeat(&mut [0; 40], usize::MAX, 11, 4), None);
    }
}
