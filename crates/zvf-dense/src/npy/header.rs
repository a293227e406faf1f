//! The header of a `.npy` file.

use super::NpyError;
use crate::{ByteSource, DenseError, NumpyDtype};

/// Maximum length of a header in bytes; NumPy accepts 10,000.
const MAX_LEN: u64 = 1 << 16;
/// Maximum number of axes in NumPy.
const MAX_AXES: usize = 64;

/// The contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: NumpyDtype,
    pub(super) is_fortran: bool,
    pub(super) shape: Vec<u64>,
}

impl Header {
    /// Reads the header and returns it with the offset of the data.
    pub(super) fn read(source: &dyn ByteSource) -> Result<(Self, u64), DenseError> {
        let in_file = |error| DenseError::npy(source.name(), error);
        let head = source.read(0..source.len().min(12))?;
        if head.get(..6) != Some(b"\x93NUMPY") {
            return Err(in_file(NpyError::Magic));
        }
        let (start, len) = match head.get(6..) {
            Some([1, 0, l0, l1, ..]) => (10, u64::from(u16::from_le_bytes([*l0, *l1]))),
            Some([2 | 3, 0, l0, l1, l2, l3, ..]) => {
                (12, u64::from(u32::from_le_bytes([*l0, *l1, *l2, *l3])))
            }
            Some([major, minor, ..]) => return Err(in_file(NpyError::Version(*major, *minor))),
            _ => return Err(in_file(NpyError::Header)),
        };
        // Longer headers are rejected without reading them.
        let end = Some(len)
            .filter(|len| *len <= MAX_LEN)
            .and_then(|len| len.checked_add(start));
        let end = end.filter(|end| *end <= source.len());
        let end = end.ok_or_else(|| in_file(NpyError::Header))?;
        let bytes = source.read(start..end)?;
        let header = Self::parse(&String::from_utf8_lossy(&bytes));
        Ok((header.map_err(in_file)?, end))
    }

    /// Parses the Python dictionary with its three entries.
    fn parse(text: &str) -> Result<Self, NpyError> {
        let mut rest = text.trim();
        rest = rest.strip_prefix('{').ok_or(NpyError::Header)?;
        let (mut descr, mut order, mut shape) = (None, None, None);
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('}') {
                if !after.trim().is_empty() {
                    return Err(NpyError::Header);
                }
                break;
            }
            let (key, after) = quoted(rest).ok_or(NpyError::Header)?;
            let after = after
                .trim_start()
                .strip_prefix(':')
                .ok_or(NpyError::Header)?;
            let (value, after) = value(after.trim_start()).ok_or(NpyError::Header)?;
            let is_new = match key {
                "descr" => descr.replace(value).is_none(),
                "fortran_order" => order.replace(value).is_none(),
                "shape" => shape.replace(value).is_none(),
                _ => false,
            };
            if !is_new {
                return Err(NpyError::Header);
            }
            let after = after.trim_start();
            rest = after.strip_prefix(',').unwrap_or(after);
            if rest == after && !rest.starts_with('}') {
                return Err(NpyError::Header);
            }
        }
        let (Some(descr), Some(order), Some(shape)) = (descr, order, shape) else {
            return Err(NpyError::Header);
        };
        // A record is a list; any other type is in quotes.
        let dtype = match quoted(descr) {
            Some((descr, "")) => NumpyDtype::parse(descr)?,
            _ => NumpyDtype::parse(descr)?,
        };
        let is_fortran = match order {
            "True" => true,
            "False" => false,
            _ => return Err(NpyError::Header),
        };
        Ok(Self {
            dtype,
            is_fortran,
            shape: tuple(shape).ok_or(NpyError::Header)?,
        })
    }
}

/// Splits off text in quotes.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '\'' | '"'))?;
    text.strip_prefix(quote)?.split_once(quote)
}

/// Splits off a value up to the comma or brace that ends it.
fn value(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut marks = text.char_indices();
    while let Some((at, mark)) = marks.next() {
        match (quote, mark) {
            (Some(_), '\\') => {
                marks.next();
            }
            (Some(open), mark) if open == mark => quote = None,
            (None, '\'' | '"') => quote = Some(mark),
            (None, '(' | '[') => depth = depth.saturating_add(1),
            (None, ')' | ']') => depth = depth.checked_sub(1)?,
            (None, ',' | '}') if depth == 0 => {
                let (value, rest) = text.split_at_checked(at)?;
                return Some((value.trim_end(), rest));
            }
            _ => {}
        }
    }
    None
}

fn tuple(text: &str) -> Option<Vec<u64>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?.trim();
    let inner = inner.strip_suffix(',').unwrap_or(inner);
    if inner.is_empty() {
        return Some(Vec::new());
    }
    let extents = inner.split(',').map(|extent| {
        // Python 2 appends an L to long integers.
        let digits = extent.trim();
        digits.strip_suffix('L').unwrap_or(digits).parse().ok()
    });
    let extents: Option<Vec<u64>> = extents.collect();
    extents.filter(|extents| extents.len() <= MAX_AXES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, dtype: &str, is_fortran: bool, shape: &[u64]) {
        let expected = Header {
            dtype: NumpyDtype::parse(dtype).unwrap(),
            is_fortran,
            shape: shape.to_vec(),
        };
        assert_eq!(Header::parse(text), Ok(expected));
    }

    #[test]
    fn dictionaries_of_numpy_are_read() {
        check(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n",
            "<f4",
            false,
            &[2, 3],
        );
        check(
            "{'descr': '>i2', 'fortran_order': True, 'shape': (5L,)}",
            ">i2",
            true,
            &[5],
        );
        check(
            "{\"shape\": (), 'descr': '|u1', 'fortran_order': False}",
            "|u1",
            false,
            &[],
        );
        let record = "[('a, }', '<i4'), ('b', '<f8', (2,))]";
        check(
            &format!("{{'descr': {record}, 'fortran_order': False, 'shape': (0, 1), }}"),
            record,
            false,
            &[0, 1],
        );
    }

    #[test]
    fn others_are_refused() {
        for text in [
            "",
            "{}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
        ] {
            assert!(Header::parse(text).is_err(), "{text}");
        }
    }
}
