//! One array in NumPy's format `.npy`, versions 1 to 3: numbers, bools and text of fixed length, in
//! both byte orders and both orders of dimensions.
//!
//! | part | bytes | content |
//! |---|---|---|
//! | magic | 6 | `\x93NUMPY` |
//! | version | 2 | major 1, 2 or 3, minor 0 |
//! | length of the header | 2; 4 since version 2 | little-endian |
//! | header | that length | a Python dictionary with `descr`, `fortran_order` and `shape` |
//! | data | rest | values |

mod header;

pub(crate) use header::ColumnHeader;

use std::{
    cmp::Ordering,
    io::{self, Read, Write},
};

use zvf::{ColumnValues, NumericColumn, numeric::Kind};
use zvf_format::numeric::ByteOrder;

use crate::display::len_u64;
use crate::table::NpyReadError;
use header::ElementType;

/// An array.
#[derive(Debug)]
pub(crate) struct NpyColumn {
    /// Dimensions, rows first; at least one.
    pub(crate) shape: Vec<usize>,
    /// Values in row order.
    pub(crate) values: ColumnValues,
}

/// Reads an array of `size` bytes, including the header. `packed` is its size in the file and
/// limits the memory that is reserved in advance.
pub(crate) fn read(
    source: &mut impl Read,
    size: u64,
    packed: u64,
) -> Result<NpyColumn, NpyReadError> {
    let (header, length) = ColumnHeader::read(source)?;
    let data = size.checked_sub(length).ok_or(NpyReadError::Truncated)?;
    let needed = header.bytes()?;
    if len_u64(needed) != data {
        return Err(NpyReadError::Size {
            needed,
            found: data,
        });
    }
    let mut bytes = Vec::new();
    let at_once = usize::try_from(packed).unwrap_or(usize::MAX).min(needed);
    bytes
        .try_reserve_exact(at_once)
        .map_err(|_| NpyReadError::Memory(needed))?;
    // Reading past the end makes the zip reader verify the checksum.
    source
        .take(data.saturating_add(1))
        .read_to_end(&mut bytes)?;
    match bytes.len().cmp(&needed) {
        Ordering::Less => return Err(NpyReadError::Truncated),
        Ordering::Equal => {}
        Ordering::Greater => {
            let found = len_u64(bytes.len());
            return Err(NpyReadError::Size { needed, found });
        }
    }
    header.array(bytes)
}

impl ColumnHeader {
    /// Returns the size of a row in bytes; `None` if rows are empty or not contiguous.
    pub(crate) fn row(&self) -> Option<usize> {
        let mut tail = self.shape.get(1..)?.iter();
        let row = tail.try_fold(self.sort.size(), |size, extent| size.checked_mul(*extent));
        row.filter(|row| *row > 0 && !(self.is_fortran && self.shape.len() > 1))
    }

    /// Decodes a number of rows from their bytes.
    pub(crate) fn rows(&self, rows: usize, bytes: Vec<u8>) -> Result<ColumnValues, NpyReadError> {
        let mut shape = self.shape.clone();
        if let Some(first) = shape.first_mut() {
            *first = rows;
        }
        let part = Self {
            sort: self.sort,
            is_fortran: false,
            shape,
        };
        Ok(part.array(bytes)?.values)
    }

    fn array(self, bytes: Vec<u8>) -> Result<NpyColumn, NpyReadError> {
        let rows = self
            .shape
            .first()
            .copied()
            .ok_or(NpyReadError::NoDimension)?;
        let size = self.sort.size();
        let mut bytes = if self.is_fortran && self.shape.len() > 1 {
            by_rows(&bytes, &self.shape, size)
        } else {
            bytes
        };
        let columns = self.shape.iter().skip(1).product::<usize>();
        if columns == 0 && rows > 0 {
            return Err(NpyReadError::NoColumns);
        }
        let values = match self.sort {
            ElementType::Numbers(dtype) => {
                let kind = dtype.kind();
                if dtype.order() == ByteOrder::Big {
                    let part = match kind {
                        Kind::Complex64 | Kind::Complex128 => size / 2,
                        _ => size,
                    };
                    bytes
                        .chunks_exact_mut(part.max(1))
                        .for_each(<[u8]>::reverse);
                }
                if kind == Kind::Bool {
                    for byte in &mut bytes {
                        *byte = u8::from(*byte != 0);
                    }
                }
                let width = u32::try_from(columns).map_err(|_| NpyReadError::Shape)?;
                ColumnValues::Numeric(NumericColumn {
                    bytes,
                    ..NumericColumn::new(kind, width)
                })
            }
            ElementType::Unicode { order, .. } if columns <= 1 => unicode(&bytes, size, order)?,
            ElementType::Bytes(_) if columns <= 1 => latin(&bytes, size)?,
            ElementType::Unicode { .. } | ElementType::Bytes(_) => {
                return Err(NpyReadError::TextColumns);
            }
        };
        Ok(NpyColumn {
            shape: self.shape,
            values,
        })
    }
}

/// Converts values from Fortran order to C order.
fn by_rows(bytes: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for extent in shape {
        strides.push(stride);
        stride = stride.saturating_mul(*extent);
    }
    let mut at = vec![0_usize; shape.len()];
    let mut ordered = Vec::with_capacity(bytes.len());
    while ordered.len() < bytes.len() {
        let offsets = at.iter().zip(&strides);
        let offset = offsets.map(|(index, stride)| index * stride).sum::<usize>();
        let item = bytes.get(offset..offset.saturating_add(size));
        let Some(item) = item.filter(|item| !item.is_empty()) else {
            break;
        };
        ordered.extend_from_slice(item);
        for (index, extent) in at.iter_mut().zip(shape).rev() {
            *index += 1;
            if *index < *extent {
                break;
            }
            *index = 0;
        }
    }
    ordered
}

/// Decodes UTF-32 text of fixed length, padded with zeros.
fn unicode(bytes: &[u8], size: usize, order: ByteOrder) -> Result<ColumnValues, NpyReadError> {
    let texts = bytes
        .chunks_exact(size.max(1))
        .enumerate()
        .map(|(row, bytes)| {
            let (codes, _) = bytes.as_chunks::<4>();
            let mut text = String::new();
            let codes = codes.iter().map(|code| match order {
                ByteOrder::Little => u32::from_le_bytes(*code),
                ByteOrder::Big => u32::from_be_bytes(*code),
            });
            for code in codes {
                text.push(char::from_u32(code).ok_or(NpyReadError::Characters(row))?);
            }
            text.truncate(text.trim_end_matches('\0').len());
            Ok(Some(text))
        })
        .collect::<Result<Vec<_>, NpyReadError>>()?;
    Ok(ColumnValues::text(texts))
}

/// Decodes UTF-8 text of fixed length, padded with zeros.
fn latin(bytes: &[u8], size: usize) -> Result<ColumnValues, NpyReadError> {
    let texts = bytes
        .chunks_exact(size.max(1))
        .enumerate()
        .map(|(row, bytes)| {
            let text = core::str::from_utf8(bytes).map_err(|_| NpyReadError::Characters(row))?;
            Ok(Some(text.trim_end_matches('\0').to_owned()))
        })
        .collect::<Result<Vec<_>, NpyReadError>>()?;
    Ok(ColumnValues::text(texts))
}

pub(crate) fn write_i64s(
    values: impl IntoIterator<Item = i64>,
    sink: &mut impl Write,
) -> io::Result<()> {
    for value in values {
        sink.write_all(&value.to_le_bytes())?;
    }
    Ok(())
}

/// Writes text as UTF-32 with a fixed number of characters, padded with zeros.
pub(crate) fn write_text(text: &str, width: usize, sink: &mut impl Write) -> io::Result<()> {
    let characters = text.chars().map(u32::from);
    for character in characters.chain(std::iter::repeat(0)).take(width) {
        sink.write_all(&character.to_le_bytes())?;
    }
    Ok(())
}
