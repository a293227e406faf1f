//! Decoder for LZ4 blocks that can stop early.
//!
//! A stream is a list of sequences: a token, the rest of the literal length, the literal bytes, a
//! distance of two bytes, and the rest of the match length. The last sequence ends after its
//! literals.
//!
//! | token | meaning |
//! |---|---|
//! | high 4 bits | literal length; if 15, the following bytes are added, up to the first that is not 255 |
//! | low 4 bits | match length less 4, copied from `distance` bytes back; 15 is extended likewise |
//!
//! Shuffled numbers compress to sequences of few bytes each. The decoder is fast on them because it
//! moves words of constant length, and because overlapping copies, which are frequent, do not
//! proceed byte by byte.

use super::repeat::{WORD, WordBytes, pattern, repeat};

/// Minimum length of a match.
const MIN_MATCH: usize = 4;
/// The 4-bit length that announces additional length bytes.
const LENGTH_CONTINUES: usize = 15;
/// Output space for a sequence without additional length bytes: 14 literals and a match of 18
/// bytes, each rounded up to words.
const SEQUENCE_BYTES: usize = 48;

/// Decodes at least `wanted` bytes of `stream` into `out` and returns the number of decoded bytes.
/// The content of `out` after them is unspecified.
///
/// Returns `None` if the stream ends early, copies from before its start, or does not fit in `out`.
pub(super) fn decode(stream: &[u8], wanted: usize, out: &mut [u8]) -> Option<usize> {
    let mut input = stream;
    let mut at = 0;
    while at < wanted {
        at = short_sequences(&mut input, at, wanted, out)?;
        let token = *input.split_off_first()?;
        let literals = length(token >> 4, &mut input)?;
        let literals = input.split_off(..literals)?;
        let end = at.checked_add(literals.len())?;
        out.get_mut(at..end)?.copy_from_slice(literals);
        at = end;
        if input.is_empty() {
            break;
        }
        let distance = distance(&mut input)?;
        let len = length(token & 0xf, &mut input)?.checked_add(MIN_MATCH)?;
        at = repeat(out, at, len, distance)?;
    }
    Some(at)
}

/// Decodes sequences while whole words fit at both ends of the buffers, up to the first sequence
/// with an extended literal length. Returns the new output position.
#[inline]
fn short_sequences(
    input: &mut &[u8],
    mut at: usize,
    wanted: usize,
    out: &mut [u8],
) -> Option<usize> {
    while at < wanted {
        let capacity = out.get_mut(at..)?.first_chunk_mut::<SEQUENCE_BYTES>();
        let (Some([token, literals @ ..]), Some(capacity)) = (input.first_chunk::<17>(), capacity)
        else {
            break;
        };
        let count = usize::from(token >> 4);
        if count == LENGTH_CONTINUES {
            break;
        }
        let word: &WordBytes = literals;
        *capacity.first_chunk_mut()? = *word;
        *input = input.get(1 + count..)?;
        at += count;
        let distance = distance(input)?;
        let len = usize::from(token & 0xf);
        if len == LENGTH_CONTINUES {
            let len = length(token & 0xf, input)?.checked_add(MIN_MATCH)?;
            at = repeat(out, at, len, distance)?;
            continue;
        }
        let from = at.checked_sub(distance)?;
        if distance >= WORD {
            let word: WordBytes = *out.get(from..)?.first_chunk()?;
            *out.get_mut(at..)?.first_chunk_mut()? = word;
            let rest: [u8; 2] = *out.get(from + WORD..)?.first_chunk()?;
            *out.get_mut(at + WORD..)?.first_chunk_mut()? = rest;
        } else {
            let (word, step) = pattern(out, from, distance)?;
            *out.get_mut(at..)?.first_chunk_mut()? = word;
            *out.get_mut(at + step..)?.first_chunk_mut()? = word;
        }
        at += len + MIN_MATCH;
    }
    Some(at)
}

/// Reads the rest of a length that starts in a token.
#[inline]
fn length(of_token: u8, input: &mut &[u8]) -> Option<usize> {
    let mut len = usize::from(of_token);
    if len == LENGTH_CONTINUES {
        loop {
            let more = *input.split_off_first()?;
            // Cannot overflow: each input byte adds at most 255.
            len += usize::from(more);
            if more != u8::MAX {
                break;
            }
        }
    }
    Some(len)
}

#[inline]
fn distance(input: &mut &[u8]) -> Option<usize> {
    let (distance, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(usize::from(u16::from_le_bytes(*distance)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(stream: &[u8], want: Option<&[u8]>, capacity: usize) {
        let mut out = vec![0; capacity];
        let decoded = decode(stream, usize::MAX, &mut out);
        assert_eq!(decoded.map(|len| &out[..len]), want);
    }

    #[test]
    fn decodes_sequences() {
        check(&[0x30, 1, 2, 3], Some(&[1, 2, 3]), 3);
        // A copy of five bytes from two back overlaps itself.
        check(
            &[0x21, 7, 8, 2, 0, 0x10, 9],
            Some(&[7, 8, 7, 8, 7, 8, 7, 9]),
            8,
        );
        let mut long = vec![5; 300];
        long.push(6);
        check(&[0x1f, 5, 1, 0, 255, 25, 0x10, 6], Some(&long), 301);
        let mut taken = vec![0xf0, 255, 0];
        taken.extend([3; 270]);
        check(&taken, Some(&[3; 270]), 270);
    }

    #[test]
    fn damaged_streams_are_rejected() {
        check(&[], None, 8);
        check(&[0x30, 1, 2], None, 8);
        check(&[0x30, 1, 2, 3], None, 2);
        check(&[0x10, 1, 0, 0, 0], None, 8);
        check(&[0x10, 1, 2, 0, 0], None, 8);
        check(&[0x10, 1, 1], None, 8);
        check(&[0x1f, 1, 1, 0, 255], None, 800);
        check(&[0x1f, 1, 1, 0, 90, 0], None, 100);
        let far = [&[0xe0; 15][..], &[99, 0], &[0; 40]].concat();
        check(&far, None, 100);
        let none = [&[0xe0; 15][..], &[0, 0], &[0; 40]].concat();
        check(&none, None, 100);
    }

    proptest! {
        /// Input with near and far repetitions: few distinct values, or runs.
        #[test]
        fn compressed_data_round_trips(
            parts in prop::collection::vec((any::<u8>(), 1_usize..40, 1_usize..9), 0..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes: Vec<u8> = Vec::new();
            for (value, len, width) in parts {
                for at in 0..len {
                    let before = bytes.len().checked_sub(width).map(|from| bytes[from]);
                    bytes.push(match before {
                        Some(before) if at >= width => before,
                        _ => value & 7,
                    });
                }
            }
            let stream = lz4_flex::block::compress(&bytes);
            let mut out = vec![0; bytes.len()];
            prop_assert_eq!(decode(&stream, usize::MAX, &mut out), Some(bytes.len()));
            prop_assert!(out == bytes);
            let wanted = cut.index(bytes.len() + 1);
            out.fill(0);
            let found = decode(&stream, wanted, &mut out);
            prop_assert!(found.is_some_and(|found| found >= wanted));
            prop_assert!(out[..wanted] == bytes[..wanted]);
        }

        /// Both decoders agree on arbitrary input.
        #[test]
        fn damaged_streams_decode_as_in_lz4_flex(
            bytes in prop::collection::vec(prop_oneof![0_u8..3, any::<u8>()], 0..300),
            capacity in 0_usize..400,
        ) {
            let (mut ours, mut theirs) = (vec![0; capacity], vec![0; capacity]);
            let found = decode(&bytes, usize::MAX, &mut ours);
            let known = lz4_flex::block::decompress_into(&bytes, &mut theirs).ok();
            prop_assert_eq!(found, known);
            if let Some(len) = found {
                prop_assert!(ours[..len] == theirs[..len]);
            }
        }
    }
}
