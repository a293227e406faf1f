//! Tetration `.tet` files: datasets divided into tiles, all in one file. [`zvf_format::tetration`]
//! describes the byte layout.
//!
//! [`TetFile`] opens a file and checks its structure: each tile has exactly one row in the index,
//! and payloads do not overlap and lie in the payload area. [`TetArray`], a
//! [`DenseArray`](crate::DenseArray), reads a dataset. [`TetQuery`] reduces one as a query document
//! describes it. [`TetWriter`] writes files.
//!
//! ```
//! use zvf_dense::{
//!     DenseArray, MemorySource, Hyperslab,
//!     tet::{Compression, DatasetSpec, TetDtype, TetFile, TetOptions, TetWriter, WriteOptions},
//! };
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("a.tet");
//! let spec = DatasetSpec::new("a", TetDtype::I16, &[3, 4], &[2, 4]);
//! let mut writer = TetWriter::create(&path, vec![spec.compressed(Compression::Zstd(3))], WriteOptions::default())?;
//! let values: Vec<u8> = (0..12_i16).flat_map(i16::to_le_bytes).collect();
//! writer.put_array(0, &values)?;
//! writer.finish()?;
//!
//! let source = std::sync::Arc::new(MemorySource::new("a.tet", std::fs::read(&path)?));
//! let file = TetFile::open(source, TetOptions::default())?;
//! let array = file.dataset("a")?;
//! let row = array.slice(&Hyperslab::new(&[2, 0], &[3, 4], None)?)?;
//! assert_eq!(row, [8, 0, 9, 0, 10, 0, 11, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod budget;
mod file;
mod footer;
mod query;
mod tiles;
mod verify;
mod writer;

pub use crate::error::TetError;
pub use array::{Contiguous, TetArray};
pub use budget::{MemoryBudget, available_memory};
pub use file::{DatasetInfo, TetFile, TetOptions};
pub use footer::{FooterInfo, SpillRef};
pub use query::{TetQuery, TetQueryError};
pub use verify::{TetFinding, TetSeverity, Verification, verify};
pub use writer::{Compression, DatasetSpec, TetSink, TetWriter, WriteOptions};
pub use zvf_format::tetration::TetDtype;

use zvf_format::numeric::{self, ByteOrder, Kind};

use crate::{NumpyDtype, NumpyDtypeError};

/// Converts the element type of the format to a numeric kind.
pub(crate) fn kind_of(dtype: TetDtype) -> Kind {
    use TetDtype as T;
    match dtype {
        T::F32 => Kind::Float32,
        T::F64 => Kind::Float64,
        T::I32 => Kind::Int32,
        T::I64 => Kind::Int64,
        T::U8 => Kind::UInt8,
        T::U16 => Kind::UInt16,
        T::I16 => Kind::Int16,
        T::U32 => Kind::UInt32,
        T::F16 => Kind::Float16,
        T::U64 => Kind::UInt64,
    }
}

/// Converts a dtype to the element type of the format, which has ten, all little-endian.
///
/// # Errors
///
/// [`NumpyDtypeError::Unknown`] if the format has no such element type.
pub fn dtype_of(dtype: &NumpyDtype) -> Result<TetDtype, NumpyDtypeError> {
    let number = dtype.number();
    let kind = number.filter(|number| number.order() == ByteOrder::Little);
    let kind = kind.map(numeric::Dtype::kind);
    let found = TetDtype::ALL
        .into_iter()
        .find(|dtype| Some(kind_of(*dtype)) == kind);
    found.ok_or_else(|| NumpyDtypeError::Unknown(dtype.to_string()))
}
