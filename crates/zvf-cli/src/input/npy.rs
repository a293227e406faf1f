//! One array as numpy stores it: `.npy`, versions 1 to 3, of numbers, bools and text
//! of fixed length, in both byte orders and both orders of dimensions.
//!
//! | part | bytes | content |
//! |---|---|---|
//! | magic | 6 | `\x93NUMPY` |
//! | version | 2 | 1, 2 or 3, and 0 |
//! | length of the header | 2, from version 2 on 4 | little-endian |
//! | header | so many | a Python dictionary with `descr`, `fortran_order` and `shape` |
//! | data | | |

mod header;

pub(super) use header::Header;

use std::{
    cmp::Ordering,
    io::{self, Read},
};

use zvf::{
    build::{Numbers, Values},
    format::numeric::{ByteOrder, Kind},
};

use header::Sort;

/// An array.
#[derive(Debug)]
pub(super) struct Array {
    /// Its dimensions, at least one; rows first.
    pub(super) shape: Vec<usize>,
    /// Row by row.
    pub(super) values: Values,
}

/// Reads an array of `size` bytes with its header. `packed` is what of it there is in
/// the file: no memory is asked for in advance but that.
pub(super) fn read(source: &mut impl Read, size: u64, packed: u64) -> Result<Array, NpyError> {
    let (header, length) = Header::read(source)?;
    let data = size.checked_sub(length).ok_or(NpyError::Truncated)?;
    let needed = header.bytes()?;
    if crate::number::of_len(needed) != data {
        return Err(NpyError::Size {
            needed,
            found: data,
        });
    }
    let mut bytes = Vec::new();
    let at_once = usize::try_from(packed).unwrap_or(usize::MAX).min(needed);
    bytes
        .try_reserve_exact(at_once)
        .map_err(|_| NpyError::Memory(needed))?;
    // One more, so that the checksum is looked at.
    source
        .take(data.saturating_add(1))
        .read_to_end(&mut bytes)?;
    match bytes.len().cmp(&needed) {
        Ordering::Less => return Err(NpyError::Truncated),
        Ordering::Equal => {}
        Ordering::Greater => {
            let found = crate::number::of_len(bytes.len());
            return Err(NpyError::Size { needed, found });
        }
    }
    header.array(bytes)
}

impl Header {
    /// Bytes of a row; `None` where rows do not lie one after the other.
    pub(super) fn row(&self) -> Option<usize> {
        let mut tail = self.shape.get(1..)?.iter();
        let row = tail.try_fold(self.sort.size(), |size, extent| size.checked_mul(*extent));
        row.filter(|row| *row > 0 && !(self.is_fortran && self.shape.len() > 1))
    }

    /// So many rows of it, from their bytes.
    pub(super) fn rows(&self, rows: usize, bytes: Vec<u8>) -> Result<Values, NpyError> {
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

    fn array(self, bytes: Vec<u8>) -> Result<Array, NpyError> {
        let rows = self.shape.first().copied();
        let rows = rows.ok_or(NpyError::NoDimension)?;
        let size = self.sort.size();
        let mut bytes = match self.is_fortran && self.shape.len() > 1 {
            true => by_rows(&bytes, &self.shape, size),
            false => bytes,
        };
        let columns = self.shape.iter().skip(1).product::<usize>();
        if columns == 0 && rows > 0 {
            return Err(NpyError::NoColumns);
        }
        let values = match self.sort {
            Sort::Numbers(dtype) => {
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
                Values::Numbers(Numbers {
                    bytes,
                    ..Numbers::new(kind, columns)
                })
            }
            Sort::Unicode { order, .. } if columns <= 1 => unicode(&bytes, size, order)?,
            Sort::Bytes(_) if columns <= 1 => latin(&bytes, size)?,
            Sort::Unicode { .. } | Sort::Bytes(_) => return Err(NpyError::TextColumns),
        };
        Ok(Array {
            shape: self.shape,
            values,
        })
    }
}

/// From the first dimension fastest to the last dimension fastest.
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

/// Four bytes a character, filled up with zeros.
fn unicode(bytes: &[u8], size: usize, order: ByteOrder) -> Result<Values, NpyError> {
    let texts = bytes.chunks_exact(size.max(1)).enumerate();
    let texts = texts.map(|(row, bytes)| {
        let (codes, _) = bytes.as_chunks::<4>();
        let mut text = String::new();
        let codes = codes.iter().map(|code| match order {
            ByteOrder::Little => u32::from_le_bytes(*code),
            ByteOrder::Big => u32::from_be_bytes(*code),
        });
        for code in codes {
            text.push(char::from_u32(code).ok_or(NpyError::Characters(row))?);
        }
        text.truncate(text.trim_end_matches('\0').len());
        Ok(Some(text))
    });
    let texts = texts.collect::<Result<_, NpyError>>()?;
    Ok(Values::Text(texts))
}

/// A byte a character, or UTF-8, filled up with zeros.
fn latin(bytes: &[u8], size: usize) -> Result<Values, NpyError> {
    let texts = bytes.chunks_exact(size.max(1)).enumerate();
    let texts = texts.map(|(row, bytes)| {
        let text = core::str::from_utf8(bytes).map_err(|_| NpyError::Characters(row))?;
        Ok(Some(text.trim_end_matches('\0').to_owned()))
    });
    let texts = texts.collect::<Result<_, NpyError>>()?;
    Ok(Values::Text(texts))
}

/// Why bytes are no array that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// They do not start as arrays do.
    #[error("is no .npy: it does not start with \\x93NUMPY")]
    Magic,
    /// Of a version there is none of.
    #[error("is of version {0}.{1}; save it again, as numpy.savez does")]
    Version(u8, u8),
    /// The header is longer than any is.
    #[error("has a header of {0} bytes, and more than 65536 are not read")]
    HeaderLength(u32),
    /// The header is no dictionary of the three entries.
    #[error("has a header that is no dictionary of descr, fortran_order and shape")]
    Header,
    /// Addresses of a process long gone, or pickles.
    #[error(
        "holds Python objects, which are not read; convert it, as with array.astype(str) or array.astype(float)"
    )]
    Object,
    /// Records of several values.
    #[error("holds records; save each of their fields as an array")]
    Records,
    /// A type of value that is not read.
    #[error("is of dtype {0:?}; convert it to numbers, bools or text")]
    Dtype(String),
    /// Text without characters.
    #[error("is of text of no characters; save it as '<U1'")]
    NoWidth,
    /// A single value.
    #[error("is a single value; save it as an array of one dimension or two")]
    NoDimension,
    /// Rows without values.
    #[error("has rows of no values")]
    NoColumns,
    /// Text in more than one column.
    #[error("holds several texts a row; save each column as an array")]
    TextColumns,
    /// More values than can be counted.
    #[error("has a shape of more values than can be counted")]
    Shape,
    /// Another number of bytes than the shape says.
    #[error("has {found} bytes of data, and its shape and dtype make {needed}")]
    Size {
        /// What the header makes.
        needed: usize,
        /// What there is.
        found: u64,
    },
    /// The bytes end early.
    #[error("ends early")]
    Truncated,
    /// Bytes that are no text.
    #[error("row {0} is no text")]
    Characters(usize),
    /// There is not that much memory.
    #[error("takes {0} bytes of memory, which there are not")]
    Memory(usize),
    /// More than its packed size can hold.
    #[error("says that {packed} bytes hold {size}, which they cannot")]
    Packed {
        /// Bytes in the file.
        packed: u64,
        /// Bytes there should be.
        size: u64,
    },
    /// The file cannot be read, or fails its checksum.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// The zip file packs it in a way that is not read.
    #[error("is packed in a way that is not read; save it with numpy.savez")]
    Packing,
    /// The zip file does not give it.
    #[error("cannot be unpacked")]
    Zip(#[from] zip::result::ZipError),
}
