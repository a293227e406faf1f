//! Errors of the operating system and of libraries: their kinds.

use std::{error::Error, io, iter::successors};

use zip::result::ZipError;
use zvf::ErrorKind;

/// Returns the kind of an error of the operating system. Decoders report damaged bytes as
/// `InvalidData` and `UnexpectedEof`.
pub(crate) fn kind_of_io(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => ErrorKind::Damaged,
        _ => ErrorKind::Unavailable,
    }
}

/// Returns the kind of an error of the zip library.
pub(crate) fn kind_of_zip(error: &ZipError) -> ErrorKind {
    match error {
        ZipError::Io(error) => kind_of_io(error),
        ZipError::UnsupportedArchive(_)
        | ZipError::CompressionMethodNotSupported(_)
        | ZipError::InvalidPassword => ErrorKind::Unsupported,
        _ => ErrorKind::Damaged,
    }
}

/// Returns the kind of an error of a library that reads a file. Errors without an error of the
/// operating system are damage.
pub(crate) fn kind_of_reading(error: &(dyn Error + 'static)) -> ErrorKind {
    let mut sources = successors(Some(error), |&error| error.source());
    let io = sources.find_map(|error| error.downcast_ref::<io::Error>());
    io.map_or(ErrorKind::Damaged, kind_of_io)
}

/// Returns the kind of an error of a source of geometry.
pub(crate) fn kind_of_batch(error: &(dyn Error + 'static)) -> ErrorKind {
    if let Some(error) = error.downcast_ref() {
        return kind_of_io(error);
    }
    let of_store = error.downcast_ref();
    of_store.map_or(ErrorKind::Interrupted, zvf::Error::kind)
}

/// Returns the error of the operating system that the library wraps, or else its own error.
#[cfg(feature = "parquet")]
pub(crate) fn io_of_parquet(
    error: parquet::errors::ParquetError,
) -> Result<io::Error, parquet::errors::ParquetError> {
    use parquet::errors::ParquetError;

    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => Ok(*error),
            Err(error) => Err(ParquetError::External(error)),
        },
        error => Err(error),
    }
}
