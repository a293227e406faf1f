//! What stands before the data of an array.

use std::io::Read;

use zvf_format::numeric::{ByteOrder, Dtype, DtypeError};

use crate::formats::NpyReadError;

/// The most bytes of a header; numpy itself reads 10 000.
const MAX_HEADER_BYTES: u32 = 1 << 16;

/// What an array is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementType {
    /// Numbers and bools.
    Numbers(Dtype),
    /// Characters of four bytes, at least one.
    Unicode { width: usize, order: ByteOrder },
    /// Characters of one byte, at least one.
    Bytes(usize),
}

/// The header of an array.
#[derive(Debug)]
pub(crate) struct NpyHeader {
    pub(crate) sort: ElementType,
    pub(crate) is_fortran: bool,
    pub(crate) shape: Vec<usize>,
}

impl NpyHeader {
    /// Reads it, and says how many bytes it takes with what is before it.
    pub(crate) fn read(source: &mut impl Read) -> Result<(Self, u64), NpyReadError> {
        let [m0, m1, m2, m3, m4, m5, major, minor] = exact::<8>(source)?;
        if [m0, m1, m2, m3, m4, m5] != *b"\x93NUMPY" {
            return Err(NpyReadError::Magic);
        }
        let (length, before) = match (major, minor) {
            (1, 0) => (u32::from(u16::from_le_bytes(exact(source)?)), 10),
            (2 | 3, 0) => (u32::from_le_bytes(exact(source)?), 12),
            _ => return Err(NpyReadError::Version(major, minor)),
        };
        if length > MAX_HEADER_BYTES {
            return Err(NpyReadError::HeaderLength(length));
        }
        let mut bytes = Vec::new();
        source.take(length.into()).read_to_end(&mut bytes)?;
        if u32::try_from(bytes.len()) != Ok(length) {
            return Err(NpyReadError::Truncated);
        }
        // Names of fields may be others, and records are not read.
        let text = String::from_utf8_lossy(&bytes);
        let header = Self::parse(&text)?;
        Ok((header, u64::from(length).saturating_add(before)))
    }

    fn parse(text: &str) -> Result<Self, NpyReadError> {
        let mut rest = Literal(text);
        rest.expect('{')?;
        let (mut descr, mut order, mut shape) = (None, None, None);
        while !rest.eat('}') {
            let key = rest.string()?;
            rest.expect(':')?;
            let is_new = match key {
                "descr" => {
                    if rest.peek() == Some('[') {
                        return Err(NpyReadError::Records);
                    }
                    descr.replace(rest.string()?).is_none()
                }
                "fortran_order" => order.replace(rest.bool()?).is_none(),
                "shape" => shape.replace(rest.tuple()?).is_none(),
                _ => false,
            };
            if !is_new {
                return Err(NpyReadError::Header);
            }
            if !rest.eat(',') && rest.peek() != Some('}') {
                return Err(NpyReadError::Header);
            }
        }
        if rest.peek().is_some() {
            return Err(NpyReadError::Header);
        }
        let (Some(descr), Some(is_fortran), Some(shape)) = (descr, order, shape) else {
            return Err(NpyReadError::Header);
        };
        Ok(Self {
            sort: ElementType::parse(descr)?,
            is_fortran,
            shape,
        })
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> Result<usize, NpyReadError> {
        // Without zeros, so that the others cannot be beyond all measure.
        let extents = self.shape.iter().filter(|extent| **extent > 0);
        let most = extents
            .copied()
            .try_fold(self.sort.size(), usize::checked_mul);
        let most = most.filter(|most| isize::try_from(*most).is_ok());
        let most = most.ok_or(NpyReadError::Shape)?;
        Ok(if self.shape.contains(&0) { 0 } else { most })
    }
}

impl ElementType {
    fn parse(descr: &str) -> Result<Self, NpyReadError> {
        let foreign = || NpyReadError::Dtype(descr.to_owned());
        match Dtype::parse(descr) {
            // Names of numbers are of Zarr, not of numpy's files.
            Ok(dtype) if descr.starts_with(['<', '>', '=', '|']) => {
                return Ok(Self::Numbers(dtype));
            }
            Err(DtypeError::Object) => return Err(NpyReadError::Object),
            _ => {}
        }
        let (order, code) = match descr.strip_prefix('>') {
            Some(code) => (ByteOrder::Big, code),
            None => {
                let code = descr.strip_prefix(['<', '=', '|']);
                (ByteOrder::Little, code.unwrap_or(descr))
            }
        };
        if code.starts_with('O') {
            return Err(NpyReadError::Object);
        }
        let width = code.strip_prefix(['U', 'S', 'a']);
        let width = width.and_then(|width| width.parse::<usize>().ok());
        let width = width.ok_or_else(foreign)?;
        if width == 0 {
            return Err(NpyReadError::NoWidth);
        }
        if !code.starts_with('U') {
            return Ok(Self::Bytes(width));
        }
        match width.checked_mul(4) {
            Some(_) => Ok(Self::Unicode { width, order }),
            None => Err(NpyReadError::Shape),
        }
    }

    /// Bytes of a value, at least 1.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Numbers(dtype) => dtype.size(),
            Self::Unicode { width, .. } => width.saturating_mul(4),
            Self::Bytes(width) => width,
        }
    }
}

fn exact<const N: usize>(source: &mut impl Read) -> Result<[u8; N], NpyReadError> {
    let mut bytes = [0; N];
    source.read_exact(&mut bytes).map_err(|error| {
        let is_end = error.kind() == std::io::ErrorKind::UnexpectedEof;
        if is_end {
            NpyReadError::Truncated
        } else {
            error.into()
        }
    })?;
    Ok(bytes)
}

/// What is left of a Python literal.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn peek(&mut self) -> Option<char> {
        self.0 = self.0.trim_start();
        self.0.chars().next()
    }

    fn eat(&mut self, mark: char) -> bool {
        let is_there = self.peek() == Some(mark);
        if is_there {
            self.0 = self.0.strip_prefix(mark).unwrap_or(self.0);
        }
        is_there
    }

    fn expect(&mut self, mark: char) -> Result<(), NpyReadError> {
        match self.eat(mark) {
            true => Ok(()),
            false => Err(NpyReadError::Header),
        }
    }

    /// None that is read has an escape.
    fn string(&mut self) -> Result<&'a str, NpyReadError> {
        let quote = self.peek().filter(|mark| matches!(mark, '\'' | '"'));
        let quote = quote.ok_or(NpyReadError::Header)?;
        self.eat(quote);
        let (text, rest) = self.0.split_once(quote).ok_or(NpyReadError::Header)?;
        self.0 = rest;
        Ok(text)
    }

    fn bool(&mut self) -> Result<bool, NpyReadError> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(NpyReadError::Header)
    }

    fn tuple(&mut self) -> Result<Vec<usize>, NpyReadError> {
        self.expect('(')?;
        let mut numbers = Vec::new();
        while !self.eat(')') {
            self.peek();
            let end = self.0.find(|mark: char| !mark.is_ascii_digit());
            let (digits, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
            if digits.is_empty() {
                return Err(NpyReadError::Header);
            }
            numbers.push(digits.parse().map_err(|_| NpyReadError::Shape)?);
            // Python 2 put an L behind long numbers.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            if !self.eat(',') && self.peek() != Some(')') {
                return Err(NpyReadError::Header);
            }
        }
        Ok(numbers)
    }
}
