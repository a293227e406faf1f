//! Headers of arrays that are read as columns.

use std::io::Read;

use zvf_dense::{
    NumpyDtype, NumpyDtypeError,
    npy::{NpyError, NpyHeader},
};
use zvf_format::numeric::{ByteOrder, Dtype};

use crate::{display::len_u64, table::NpyReadError};

/// The element type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementType {
    /// Numbers and bools.
    Numbers(Dtype),
    /// UTF-32 text of `width` characters, at least one.
    Unicode { width: usize, order: ByteOrder },
    /// Text of this many bytes, at least one.
    Bytes(usize),
}

/// Header of an array that is read as a column.
#[derive(Debug)]
pub(crate) struct ColumnHeader {
    pub(crate) sort: ElementType,
    pub(crate) is_fortran: bool,
    pub(crate) shape: Vec<usize>,
}

impl ColumnHeader {
    /// Reads the header and returns it with the offset of the data.
    pub(crate) fn read(source: &mut impl Read) -> Result<(Self, u64), NpyReadError> {
        let mut start = Vec::new();
        let mut prefix = source.by_ref().take(NpyHeader::PREFIX);
        prefix.read_to_end(&mut start)?;
        if start.len() < 6 {
            return Err(NpyReadError::Truncated);
        }
        let span = NpyHeader::span(&start)?;
        let end = usize::try_from(span.end).map_err(|_| NpyReadError::Shape)?;
        let begin = usize::try_from(span.start).map_err(|_| NpyReadError::Shape)?;
        let missing = end.saturating_sub(start.len());
        source
            .by_ref()
            .take(len_u64(missing))
            .read_to_end(&mut start)?;
        let bytes = start.get(begin..end).ok_or(NpyReadError::Truncated)?;
        let header = NpyHeader::parse(&start, bytes)?;
        let extent = |extent: &u64| usize::try_from(*extent).map_err(|_| NpyReadError::Shape);
        let column = Self {
            sort: ElementType::new(&header)?,
            is_fortran: header.is_fortran,
            shape: header.shape.iter().map(extent).collect::<Result<_, _>>()?,
        };
        Ok((column, span.end))
    }

    /// Returns the size of all values in bytes.
    pub(super) fn bytes(&self) -> Result<usize, NpyReadError> {
        // Zeros are left out, so that the product of the other extents is checked as well.
        let extents = self.shape.iter().filter(|extent| **extent > 0);
        let max = extents
            .copied()
            .try_fold(self.sort.size(), usize::checked_mul);
        let max = max
            .filter(|max| isize::try_from(*max).is_ok())
            .ok_or(NpyReadError::Shape)?;
        Ok(if self.shape.contains(&0) { 0 } else { max })
    }
}

impl ElementType {
    fn new(header: &NpyHeader) -> Result<Self, NpyReadError> {
        let foreign = || NpyReadError::Dtype(header.descr.clone());
        let width = |width: u32| usize::try_from(width).map_err(|_| NpyReadError::Shape);
        match &header.dtype {
            // Names such as `float32` are Zarr's; files of NumPy have codes.
            NumpyDtype::Number(dtype) if header.descr.starts_with(['<', '>', '=', '|']) => {
                Ok(Self::Numbers(*dtype))
            }
            NumpyDtype::Unicode { width: all, order } => Ok(Self::Unicode {
                width: width(*all)?,
                order: *order,
            }),
            NumpyDtype::Bytes(all) => Ok(Self::Bytes(width(*all)?)),
            NumpyDtype::Record(_) => Err(NpyReadError::Records),
            _ => Err(foreign()),
        }
    }

    /// Returns the size of a value in bytes, at least 1.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Numbers(dtype) => dtype.size(),
            Self::Unicode { width, .. } => width.saturating_mul(4),
            Self::Bytes(width) => width,
        }
    }
}

impl From<NpyError> for NpyReadError {
    fn from(error: NpyError) -> Self {
        match error {
            NpyError::Magic => Self::Magic,
            NpyError::Version(major, minor) => Self::Version(major, minor),
            NpyError::Truncated => Self::Truncated,
            NpyError::HeaderLength(length) => Self::HeaderLength(length),
            NpyError::Shape | NpyError::Dtype(NumpyDtypeError::Long) => Self::Shape,
            NpyError::Dtype(NumpyDtypeError::Object) => Self::Object,
            NpyError::Dtype(NumpyDtypeError::Empty) => Self::NoWidth,
            NpyError::Dtype(NumpyDtypeError::Unknown(descr)) => Self::Dtype(descr),
            NpyError::Dtype(_) => Self::Records,
            _ => Self::Header,
        }
    }
}
