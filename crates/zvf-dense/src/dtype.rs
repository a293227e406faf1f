//! Element types.

mod literal;

use core::fmt;

use zvf_format::numeric::{self, ByteOrder, Kind};

use literal::Literal;

/// Maximum nesting of records. NumPy has no limit; no known file needs more.
const MAX_DEPTH: usize = 16;
/// Maximum size of an element in bytes.
const MAX_SIZE: u64 = 1 << 31;

/// A NumPy element type: the size of an element and its interpretation.
///
/// Parses and displays NumPy's `dtype.str`, and `dtype.descr` for records.
///
/// ```
/// use zvf_dense::NumpyDtype;
///
/// assert_eq!(NumpyDtype::parse(">i2")?.size(), 2);
/// assert_eq!(NumpyDtype::parse("float64")?.to_string(), "<f8");
/// let record = NumpyDtype::parse("[('a', '<i4'), ('b', '<f8', (2,))]")?;
/// assert_eq!(record.size(), 20);
/// # Ok::<(), zvf_dense::NumpyDtypeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumpyDtype {
    /// A number or a boolean.
    Number(numeric::Dtype),
    /// Byte strings: `S5`.
    Bytes(u32),
    /// Unicode strings with four bytes per character: `<U5`.
    Unicode {
        /// Number of characters.
        width: u32,
        /// Byte order of a character.
        order: ByteOrder,
    },
    /// A date or a duration of eight bytes: `<M8[ns]`, `<m8[s]`.
    Time {
        /// `true` for durations.
        is_span: bool,
        /// The unit as written; empty if unspecified.
        unit: String,
        /// Byte order.
        order: ByteOrder,
    },
    /// Bytes without interpretation: `V12`.
    Opaque(u32),
    /// Consecutive fields.
    Record(Vec<DtypeField>),
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtypeField {
    /// Its name; empty for padding.
    pub name: String,
    /// Its type, or the type of its elements.
    pub dtype: NumpyDtype,
    /// Its shape if it is an array; empty otherwise.
    pub shape: Vec<u32>,
}

impl DtypeField {
    /// Returns the size of the field in bytes.
    pub fn size(&self) -> u64 {
        let extents = self.shape.iter().map(|extent| u64::from(*extent));
        extents.fold(self.dtype.size(), u64::saturating_mul)
    }
}

impl From<numeric::Dtype> for NumpyDtype {
    fn from(dtype: numeric::Dtype) -> Self {
        Self::Number(dtype)
    }
}

impl From<Kind> for NumpyDtype {
    /// Uses little-endian byte order.
    fn from(kind: Kind) -> Self {
        Self::Number(numeric::Dtype::new(kind, ByteOrder::Little))
    }
}

impl core::str::FromStr for NumpyDtype {
    type Err = NumpyDtypeError;

    fn from_str(text: &str) -> Result<Self, NumpyDtypeError> {
        Self::parse(text)
    }
}

impl NumpyDtype {
    /// Parses NumPy's `dtype.str`, or `dtype.descr` as Python prints it. Zarr's names of numbers are
    /// accepted as well.
    ///
    /// # Errors
    ///
    /// [`NumpyDtypeError`] if the text is not a supported type.
    pub fn parse(text: &str) -> Result<Self, NumpyDtypeError> {
        let mut literal = Literal::new(text);
        let dtype = if literal.peek() == Some('[') {
            let record = record(&mut literal, 0)?;
            literal.end()?;
            record
        } else {
            Self::of_code(text.trim())?
        };
        match dtype.size() {
            0 => Err(NumpyDtypeError::Empty),
            1..=MAX_SIZE => Ok(dtype),
            _ => Err(NumpyDtypeError::Long),
        }
    }

    fn of_code(text: &str) -> Result<Self, NumpyDtypeError> {
        if let Ok(number) = numeric::Dtype::parse(text) {
            return Ok(Self::Number(number));
        }
        let foreign = || NumpyDtypeError::Unknown(text.chars().take(80).collect());
        let (order, code) = match text.strip_prefix('>') {
            Some(code) => (ByteOrder::Big, code),
            None => {
                let code = text.strip_prefix(['<', '=', '|']);
                (ByteOrder::Little, code.unwrap_or(text))
            }
        };
        let is_span = code.starts_with("m8");
        if let Some(unit) = code.strip_prefix("m8").or(code.strip_prefix("M8")) {
            let inner = unit
                .strip_prefix('[')
                .and_then(|unit| unit.strip_suffix(']'));
            let unit = match unit {
                "" => "",
                _ => inner.ok_or_else(foreign)?,
            };
            if unit.len() > 16 || !unit.chars().all(|mark| mark.is_ascii_alphanumeric()) {
                return Err(foreign());
            }
            return Ok(Self::Time {
                is_span,
                unit: unit.to_owned(),
                order,
            });
        }
        let mut rest = code.chars();
        let sort = rest.next();
        let digits = rest.as_str();
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        let width = digits.parse::<u32>().ok().filter(|_| is_number);
        match (sort, width) {
            (Some('S' | 'a'), Some(width)) => Ok(Self::Bytes(width)),
            (Some('V'), Some(width)) => Ok(Self::Opaque(width)),
            (Some('U'), Some(width)) => Ok(Self::Unicode { width, order }),
            (Some('O'), _) => Err(NumpyDtypeError::Object),
            (Some('S' | 'a' | 'V' | 'U'), None) if is_number && !digits.is_empty() => {
                Err(NumpyDtypeError::Long)
            }
            _ => {
                // A code without byte order, as descr may contain.
                let number = numeric::Dtype::parse(&format!("<{text}"));
                number.map(Self::Number).map_err(|_| foreign())
            }
        }
    }

    /// Returns the size of an element in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Number(number) => u64::try_from(number.size()).unwrap_or(u64::MAX),
            Self::Bytes(width) | Self::Opaque(width) => (*width).into(),
            Self::Unicode { width, .. } => u64::from(*width).saturating_mul(4),
            Self::Time { .. } => 8,
            Self::Record(fields) => fields
                .iter()
                .map(DtypeField::size)
                .fold(0, u64::saturating_add),
        }
    }

    /// Returns the numeric type, if it is one.
    pub fn number(&self) -> Option<numeric::Dtype> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl fmt::Display for NumpyDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |order: &ByteOrder| match order {
            ByteOrder::Little => '<',
            ByteOrder::Big => '>',
        };
        match self {
            Self::Number(number) => {
                let order = match number.size() {
                    1 => '|',
                    _ => mark(&number.order()),
                };
                write!(f, "{order}{}", code(number.kind()))
            }
            Self::Bytes(width) => write!(f, "|S{width}"),
            Self::Opaque(width) => write!(f, "|V{width}"),
            Self::Unicode { width, order } => write!(f, "{}U{width}", mark(order)),
            Self::Time {
                is_span,
                unit,
                order,
            } => {
                let sort = if *is_span { 'm' } else { 'M' };
                write!(f, "{}{sort}8", mark(order))?;
                match unit.as_str() {
                    "" => Ok(()),
                    unit => write!(f, "[{unit}]"),
                }
            }
            Self::Record(fields) => {
                f.write_str("[")?;
                for (at, field) in fields.iter().enumerate() {
                    let between = if at == 0 { "" } else { ", " };
                    write!(f, "{between}({}, ", PythonLiteral(&field.name))?;
                    match &field.dtype {
                        record @ Self::Record(_) => write!(f, "{record}")?,
                        other => write!(f, "'{other}'")?,
                    }
                    if let Some((first, rest)) = field.shape.split_first() {
                        write!(f, ", ({first},")?;
                        for extent in rest {
                            write!(f, " {extent},")?;
                        }
                        f.write_str(")")?;
                    }
                    f.write_str(")")?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Returns the code of a number in the array protocol.
fn code(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "b1",
        Kind::Int8 => "i1",
        Kind::Int16 => "i2",
        Kind::Int32 => "i4",
        Kind::Int64 => "i8",
        Kind::UInt8 => "u1",
        Kind::UInt16 => "u2",
        Kind::UInt32 => "u4",
        Kind::UInt64 => "u8",
        Kind::Float16 => "f2",
        Kind::Float32 => "f4",
        Kind::Float64 => "f8",
        Kind::Complex64 => "c8",
        Kind::Complex128 => "c16",
    }
}

/// Text that displays as a Python literal.
struct PythonLiteral<'a>(&'a str);

impl fmt::Display for PythonLiteral<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.0.contains('\'') && !self.0.contains('"') {
            '"'
        } else {
            '\''
        };
        write!(f, "{quote}")?;
        for mark in self.0.chars() {
            match mark {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                mark if mark == quote => write!(f, "\\{mark}")?,
                mark => write!(f, "{mark}")?,
            }
        }
        write!(f, "{quote}")
    }
}

fn record(literal: &mut Literal<'_>, depth: usize) -> Result<NumpyDtype, NumpyDtypeError> {
    if depth >= MAX_DEPTH {
        return Err(NumpyDtypeError::Deep);
    }
    literal.expect('[')?;
    let mut fields = Vec::new();
    while !literal.eat(']') {
        literal.expect('(')?;
        // A title may precede the name: (('title', 'name'), …).
        let name = if literal.eat('(') {
            literal.string()?;
            literal.expect(',')?;
            let name = literal.string()?;
            literal.eat(',');
            literal.expect(')')?;
            name
        } else {
            literal.string()?
        };
        literal.expect(',')?;
        let dtype = match literal.peek() {
            Some('[') => record(literal, depth.saturating_add(1))?,
            _ => NumpyDtype::of_code(&literal.string()?)?,
        };
        let mut shape = Vec::new();
        if literal.eat(',') && literal.peek() != Some(')') {
            if literal.eat('(') {
                while !literal.eat(')') {
                    shape.push(literal.number()?);
                    literal.eat(',');
                }
            } else {
                shape.push(literal.number()?);
            }
            literal.eat(',');
        }
        literal.expect(')')?;
        fields.push(DtypeField { name, dtype, shape });
        literal.eat(',');
    }
    Ok(NumpyDtype::Record(fields))
}

/// An error in the text of a dtype.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumpyDtypeError {
    /// The type is not known.
    #[error("dtype {0:?} is unknown")]
    Unknown(String),
    /// Elements are Python objects, which have no portable form.
    #[error("elements are Python objects, which are not supported")]
    Object,
    /// A record that NumPy would not write.
    #[error("the dtype is not a list of fields")]
    Record,
    /// Records are nested too deeply.
    #[error("records are nested too deeply")]
    Deep,
    /// Elements have size zero.
    #[error("elements have size zero")]
    Empty,
    /// Elements exceed the supported size.
    #[error("elements have more than 2147483648 bytes, which is not supported")]
    Long,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, size: u64, shown: &str) {
        let dtype = NumpyDtype::parse(text).unwrap();
        assert_eq!((dtype.size(), dtype.to_string().as_str()), (size, shown));
        assert_eq!(NumpyDtype::parse(shown), Ok(dtype));
    }

    #[test]
    fn what_numpy_writes_is_read_and_written_again() {
        check("<f8", 8, "<f8");
        check("|u1", 1, "|u1");
        check(">c16", 16, ">c16");
        check("int16", 2, "<i2");
        check("S3", 3, "|S3");
        check(">U3", 12, ">U3");
        check("<M8[ns]", 8, "<M8[ns]");
        check("|V7", 7, "|V7");
        check(
            "[('a', '<i4'), ('it\\'s', 'S3'), ('c', [('d', '>f8')], (2, 3))]",
            55,
            "[('a', '<i4'), (\"it's\", '|S3'), ('c', [('d', '>f8')], (2, 3,))]",
        );
        check("[(('t', 'a'), 'f4', 3)]", 12, "[('a', '<f4', (3,))]");
    }

    #[test]
    fn what_is_none_is_refused() {
        let deep = "[('a', ".repeat(1000);
        for text in [
            "",
            "O",
            "[",
            "[('a'",
            "x4",
            "V0",
            "S99999999999",
            "<M8[",
            &deep,
        ] {
            assert!(NumpyDtype::parse(text).is_err(), "{text}");
        }
        assert_eq!(NumpyDtype::parse("[]"), Err(NumpyDtypeError::Empty));
        assert_eq!(NumpyDtype::parse("V4294967295"), Err(NumpyDtypeError::Long));
    }
}
