//! PNG encoder (RFC 2083): eight bits each of red, green and blue.

use std::io::Write;

use flate2::{Compression, Crc, write::ZlibEncoder};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Bytes per pixel.
const DOT: usize = 3;

/// Encodes rows of `width` pixels as a file.
pub(crate) fn encode(width: usize, dots: &[[u8; DOT]]) -> Vec<u8> {
    let height = dots.len() / width.max(1);
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes();
    let mut header = [side(width), side(height)].concat();
    // Bit depth 8, RGB, the only defined compression and filter methods, no interlacing.
    header.extend([8, 2, 0, 0, 0]);
    let mut file = SIGNATURE.to_vec();
    push(&mut file, *b"IHDR", &header);
    push(&mut file, *b"IDAT", &packed(width, dots));
    push(&mut file, *b"IEND", &[]);
    file
}

fn push(file: &mut Vec<u8>, kind: [u8; 4], body: &[u8]) {
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(body);
    file.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    file.extend(kind);
    file.extend(body);
    file.extend(crc.sum().to_be_bytes());
}

/// Compresses the rows, each with the filter that gives the smallest sum of absolute differences.
fn packed(width: usize, dots: &[[u8; DOT]]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::new(8));
    let blank = vec![0; width * DOT];
    let mut above: &[u8] = &blank;
    for row in dots.chunks_exact(width.max(1)) {
        let row = row.as_flattened();
        let filtered = (0..=4_u8).map(|filter| filtered(filter, row, above));
        let rest = |row: &Vec<u8>| -> u64 {
            row.iter()
                .skip(1)
                .map(|byte| u64::from(byte.cast_signed().unsigned_abs()))
                .sum()
        };
        if let Some(best) = filtered.min_by_key(rest) {
            // Writing to a vector cannot fail.
            let _ = zlib.write_all(&best);
        }
        above = row;
    }
    zlib.finish().unwrap_or_default()
}

/// Applies a filter to a row: the filter's number, then differences from neighbouring bytes.
fn filtered(filter: u8, row: &[u8], above: &[u8]) -> Vec<u8> {
    let before = |row: &[u8], at: usize| {
        at.checked_sub(DOT)
            .and_then(|at| row.get(at).copied())
            .unwrap_or(0)
    };
    let mut out = Vec::with_capacity(row.len() + 1);
    out.push(filter);
    out.extend(row.iter().zip(above).enumerate().map(|(at, (byte, up))| {
        let guess = match filter {
            0 => 0,
            1 => before(row, at),
            2 => *up,
            3 => before(row, at).midpoint(*up),
            _ => nearest(before(row, at), *up, before(above, at)),
        };
        byte.wrapping_sub(guess)
    }));
    out
}

/// Returns the Paeth predictor: of the bytes to the left, above and diagonal, the one nearest to
/// left + up - diagonal. `between` is the diagonal byte.
fn nearest(left: u8, up: u8, between: u8) -> u8 {
    let guess = i16::from(left) + i16::from(up) - i16::from(between);
    let far = |byte: u8| (guess - i16::from(byte)).abs();
    match (far(left), far(up), far(between)) {
        (a, b, c) if a <= b && a <= c => left,
        (_, b, c) if b <= c => up,
        _ => between,
    }
}
