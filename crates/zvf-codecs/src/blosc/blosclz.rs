//! Decoder for BloscLZ, the built-in codec of Blosc.
//!
//! A stream is a list of tokens. Only the low 5 bits of the first token count.
//!
//! | token | following bytes | meaning |
//! |---|---|---|
//! | `000nnnnn` | n + 1 bytes | literal bytes |
//! | `lllhhhhh` | if l is 7, length bytes up to the first that is not 255; then a byte b | copy l + 2 bytes, plus the length bytes, from h · 256 + b + 1 bytes back |
//! | `lllhhhhh` with all bits of h and b set | two more bytes, big-endian, d | copy from d + 8192 bytes back |

use super::repeat::repeat;

const FAR_DISTANCE: usize = 8192;
const LITERALS: u8 = 32;

/// Decodes at least `wanted` bytes of `stream` into `out` and returns the number of decoded bytes.
/// The content of `out` after them is unspecified.
///
/// Returns `None` if the stream ends early, copies from before its start, or does not fit in `out`.
pub(super) fn decode(stream: &[u8], wanted: usize, out: &mut [u8]) -> Option<usize> {
    let mut input = stream;
    let mut at = 0;
    let mut token = next(&mut input)? & 0x1f;
    loop {
        if token < LITERALS {
            let len = usize::from(token) + 1;
            let literals = input.split_off(..len)?;
            out.get_mut(at..at + len)?.copy_from_slice(literals);
            at += len;
        } else {
            let (len, distance) = copy(token, &mut input)?;
            at = repeat(out, at, len, distance)?;
        }
        token = match next(&mut input) {
            Some(token) if at < wanted => token,
            _ => return Some(at),
        };
    }
}

/// Reads the length and distance of the copy that starts with `token`.
fn copy(token: u8, input: &mut &[u8]) -> Option<(usize, usize)> {
    let mut len = usize::from(token >> 5) + 2;
    let high = token & 0x1f;
    if token >> 5 == 7 {
        loop {
            let more = next(input)?;
            // Cannot overflow: each input byte adds at most 255.
            len += usize::from(more);
            if more != u8::MAX {
                break;
            }
        }
    }
    let low = next(input)?;
    if low == u8::MAX && high == 0x1f {
        let far = u16::from_be_bytes([next(input)?, next(input)?]);
        return Some((len, FAR_DISTANCE + usize::from(far)));
    }
    Some((len, usize::from(u16::from_be_bytes([high, low])) + 1))
}

fn next(input: &mut &[u8]) -> Option<u8> {
    input.split_off_first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stream: &[u8], want: Option<&[u8]>, capacity: usize) {
        let mut out = vec![0; capacity];
        let decoded = decode(stream, usize::MAX, &mut out);
        assert_eq!(decoded.map(|len| &out[..len]), want);
    }

    #[test]
    fn decodes_literals_and_copies() {
        // The high bits of the first token are ignored.
        check(&[0xe2, 1, 2, 3], Some(&[1, 2, 3]), 8);
        // A copy of three bytes from two back overlaps itself.
        check(&[1, 7, 8, 0x20, 1], Some(&[7, 8, 7, 8, 7]), 5);
        // A run whose length takes two additional bytes.
        let mut run = vec![9];
        run.extend([9; 9 + 255 + 4]);
        check(&[0, 9, 0xe0, 255, 4, 0], Some(&run), run.len());
    }

    #[test]
    fn far_distances_start_at_8192() {
        let mut stream = Vec::new();
        for start in (0..8224_u16).step_by(32) {
            stream.push(31);
            stream.extend((start..start + 32).map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1]));
        }
        stream.extend([0x3f, 255, 0, 3]);
        let mut out = vec![0; 8227];
        assert_eq!(decode(&stream, usize::MAX, &mut out), Some(8227));
        let back = 8224 - 8192 - 3;
        assert_eq!(out[8224..], out[back..back + 3].to_vec());
    }

    #[test]
    fn damaged_streams_are_rejected() {
        check(&[], None, 8);
        check(&[2, 1, 2], None, 8);
        check(&[2, 1, 2, 3], None, 2);
        check(&[0, 1, 0x20, 1], None, 8);
        check(&[0, 1, 0x20], None, 8);
        check(&[0, 1, 0xe0, 255], None, 8);
        check(&[0, 1, 0xe0, 9, 0], None, 8);
        check(&[0, 1, 0x3f, 255, 0], None, 8);
    }
}
