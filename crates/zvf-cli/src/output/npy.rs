//! One array as numpy stores it: `.npy`, version 1.0.
//!
//! | part | bytes | content |
//! |---|---|---|
//! | magic | 6 | `\x93NUMPY` |
//! | version | 2 | 1, 0 |
//! | length of the header | 2 | little-endian |
//! | header | so many | a Python dictionary with `descr`, `fortran_order` and `shape`, blanks, `\n`; data start at a multiple of 64 |
//! | data | | row by row |

use std::io::{self, Write};

/// What starts the array; `code` is numpy's, as `<f4`.
pub(super) fn header(code: &str, shape: &[usize]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    // A tuple of one ends in a comma.
    let comma = if shape.len() == 1 { "," } else { "" };
    let sizes = sizes.join(", ") + comma;
    let mut text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let before = 10;
    while (before + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    // A shape of two numbers is far from the 65 535 bytes there may be.
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(length.to_le_bytes());
    header.extend(text.into_bytes());
    header
}

pub(super) fn write_i64s(
    values: impl IntoIterator<Item = i64>,
    sink: &mut impl Write,
) -> io::Result<()> {
    for value in values {
        sink.write_all(&value.to_le_bytes())?;
    }
    Ok(())
}

/// Text of a fixed number of characters, four bytes each, filled up with zeros.
pub(super) fn write_text(text: &str, width: usize, sink: &mut impl Write) -> io::Result<()> {
    let characters = text.chars().map(u32::from);
    for character in characters.chain(std::iter::repeat(0)).take(width) {
        sink.write_all(&character.to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shape: &[usize], expected: &str) {
        let header = header("<f4", shape);
        assert_eq!(header.len() % 64, 0);
        assert_eq!(usize::from(header[8]) + 10, header.len());
        let text = core::str::from_utf8(&header[10..]).unwrap();
        let start = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {expected}, }}");
        assert_eq!(text.trim_end(), start);
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn shapes_are_python_tuples() {
        check(&[], "()");
        check(&[5], "(5,)");
        check(&[0, 3], "(0, 3)");
    }
}
