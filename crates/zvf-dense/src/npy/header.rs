//! The header of a `.npy` file.

use core::ops::Range;

use super::NpyError;
use crate::{ByteSource, DenseError, NumpyDtype};

/// Maximum length of a header in bytes; NumPy accepts 10,000.
const MAX_LEN: u32 = 1 << 16;
/// Maximum number of axes in NumPy.
const MAX_AXES: usize = 64;

/// The header of a `.npy` file: type, order and shape of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NpyHeader {
    /// Element type.
    pub dtype: NumpyDtype,
    /// Element type as written: the text in quotes, or the list of a record.
    pub descr: String,
    /// `true` if the first axis varies fastest.
    pub is_fortran: bool,
    /// Extent of each axis.
    pub shape: Vec<u64>,
}

impl NpyHeader {
    /// Number of bytes at the start of a file that locate the header.
    pub const PREFIX: u64 = 12;

    /// Returns the byte range of the header, from the first [`PREFIX`](Self::PREFIX) bytes of a
    /// file, or all bytes of a shorter one. The data starts at its end.
    ///
    /// # Errors
    ///
    /// [`NpyError`] if the file is not a `.npy` file, or has a header of more than 64 KiB.
    pub fn span(prefix: &[u8]) -> Result<Range<u64>, NpyError> {
        if prefix.get(..6) != Some(b"\x93NUMPY") {
            return Err(NpyError::Magic);
        }
        let (start, len) = match prefix.get(6..) {
            Some([1, 0, l0, l1, ..]) => (10, u32::from(u16::from_le_bytes([*l0, *l1]))),
            Some([2 | 3, 0, l0, l1, l2, l3, ..]) => (12, u32::from_le_bytes([*l0, *l1, *l2, *l3])),
            Some([1..=3, 0, ..] | [_] | []) | None => return Err(NpyError::Truncated),
            Some([major, minor, ..]) => return Err(NpyError::Version(*major, *minor)),
        };
        if len > MAX_LEN {
            return Err(NpyError::HeaderLength(len));
        }
        Ok(start..u64::from(len).saturating_add(start))
    }

    /// Parses the bytes of a header. They are UTF-8 in files that begin with version 3, and Latin-1
    /// in others.
    ///
    /// # Errors
    ///
    /// [`NpyError`] if they are not a dictionary with the three entries, or name an unsupported
    /// type.
    pub fn parse(prefix: &[u8], bytes: &[u8]) -> Result<Self, NpyError> {
        let is_utf8 = prefix.get(6) == Some(&3);
        if is_utf8 {
            Self::parse_text(core::str::from_utf8(bytes).map_err(|_| NpyError::Header)?)
        } else {
            Self::parse_text(&bytes.iter().copied().map(char::from).collect::<String>())
        }
    }

    /// Encodes the start of a row-major file, up to its data.
    pub fn encode(dtype: &NumpyDtype, shape: &[u64]) -> Vec<u8> {
        let descr = match dtype {
            record @ NumpyDtype::Record(_) => record.to_string(),
            other => format!("'{other}'"),
        };
        let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
        // A Python tuple of one element ends with a comma.
        let comma = if shape.len() == 1 { "," } else { "" };
        let sizes = sizes.join(", ") + comma;
        let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({sizes}), }}");
        // Non-ASCII field names need version 3, long headers version 2.
        let is_long = text.len() > 65_000;
        let (version, before) = match (text.is_ascii(), is_long) {
            (true, false) => (1, 10),
            (true, true) => (2, 12),
            (false, _) => (3, 12),
        };
        let used = text.len().saturating_add(before).saturating_add(1);
        let padding = used.next_multiple_of(64).saturating_sub(used);
        let text = format!("{text}{}\n", " ".repeat(padding));
        let mut header = b"\x93NUMPY".to_vec();
        header.extend([version, 0]);
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
        header.extend(len.iter().take(if version == 1 { 2 } else { 4 }));
        header.extend(text.into_bytes());
        header
    }

    /// Reads the header and returns it with the offset of the data.
    pub(super) fn read(source: &dyn ByteSource) -> Result<(Self, u64), DenseError> {
        let in_file = |error| DenseError::npy(source.name(), error);
        let prefix = source.read(0..source.len().min(Self::PREFIX))?;
        let span = Self::span(&prefix).map_err(in_file)?;
        if span.end > source.len() {
            return Err(in_file(NpyError::Truncated));
        }
        let end = span.end;
        let bytes = source.read(span)?;
        Ok((Self::parse(&prefix, &bytes).map_err(in_file)?, end))
    }

    /// Parses the Python dictionary with its three entries.
    fn parse_text(text: &str) -> Result<Self, NpyError> {
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
        let descr = match quoted(descr) {
            Some((descr, "")) => descr,
            _ => descr,
        };
        let dtype = NumpyDtype::parse(descr)?;
        let is_fortran = match order {
            "True" => true,
            "False" => false,
            _ => return Err(NpyError::Header),
        };
        Ok(Self {
            dtype,
            descr: descr.to_owned(),
            is_fortran,
            shape: tuple(shape)?,
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

fn tuple(text: &str) -> Result<Vec<u64>, NpyError> {
    let inner = text
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'))
        .ok_or(NpyError::Header)?
        .trim();
    let inner = inner.strip_suffix(',').unwrap_or(inner);
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    let extents: Vec<u64> = inner
        .split(',')
        .map(|extent| {
            // Python 2 appends an L to long integers.
            let digits = extent.trim();
            let digits = digits.strip_suffix('L').unwrap_or(digits);
            if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err(NpyError::Header);
            }
            digits.parse().map_err(|_| NpyError::Shape)
        })
        .collect::<Result<_, _>>()?;
    if extents.len() > MAX_AXES {
        return Err(NpyError::Header);
    }
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, dtype: &str, is_fortran: bool, shape: &[u64]) {
        let expected = NpyHeader {
            dtype: NumpyDtype::parse(dtype).unwrap(),
            descr: dtype.to_owned(),
            is_fortran,
            shape: shape.to_vec(),
        };
        assert_eq!(NpyHeader::parse(b"", text.as_bytes()), Ok(expected));
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
            assert!(NpyHeader::parse(b"", text.as_bytes()).is_err(), "{text}");
        }
    }

    /// Regression test: names of fields were taken for UTF-8 in every version.
    #[test]
    fn the_version_selects_the_encoding_of_text() {
        let text = "{'descr': [('\u{e9}', '<i4')], 'fortran_order': False, 'shape': (2,)}";
        let latin: Vec<u8> = text
            .chars()
            .map(|letter| u8::try_from(letter).unwrap())
            .collect();
        let descr = |version: u8, bytes: &[u8]| {
            let prefix = [b"\x93NUMPY".as_slice(), &[version, 0]].concat();
            NpyHeader::parse(&prefix, bytes).map(|header| header.descr)
        };
        let expected = "[('\u{e9}', '<i4')]".to_owned();
        assert_eq!(descr(1, &latin), Ok(expected.clone()));
        assert_eq!(descr(2, &latin), Ok(expected.clone()));
        assert_eq!(descr(3, text.as_bytes()), Ok(expected));
        assert_eq!(descr(3, &latin), Err(NpyError::Header));
    }

    #[track_caller]
    fn check_encoded(shape: &[u64], expected: &str) {
        let dtype = NumpyDtype::parse("<f4").unwrap();
        let header = NpyHeader::encode(&dtype, shape);
        assert_eq!(header.len() % 64, 0);
        assert_eq!(usize::from(header[8]) + 10, header.len());
        let text = core::str::from_utf8(&header[10..]).unwrap();
        let start = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {expected}, }}");
        assert_eq!(text.trim_end(), start);
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn shapes_are_encoded_as_python_tuples() {
        check_encoded(&[], "()");
        check_encoded(&[5], "(5,)");
        check_encoded(&[0, 3], "(0, 3)");
    }
}
