//! An answer as a file.
//!
//! The end of the file's name says which [`Format`]. All rows are written, in
//! the order of the answer. Every file appears when all of them are complete, so a
//! run that fails leaves what was there before.
//!
//! | format | files |
//! |---|---|
//! | `npz` | one, with the interchange arrays |
//! | `csv`, `arrow`, `parquet` | a row a vertex; beside `NAME.csv`, `NAME.links.csv`, `NAME.objects.csv` and `NAME.groups.csv` for what there is |
//! | `ply`, `obj` | one, for programs that draw |
//!
//! # Columns of tables
//!
//! Vertices have the axes by name, `object_id` or, of paths, `part` and `object`,
//! then `vertex.NAME` and `fragment.NAME`. Links have `links`, the rows of their
//! ends counted from 0, then `link.NAME`. Objects have `object_id` and
//! `object.NAME`; groups have `group` and `object_id`, a row a member. In csv a column of
//! several channels is `NAME[0]`, `NAME[1]`, …, in the others a list of fixed
//! size. -1 and -2 as object are [`NO_OBJECT`](zvf::query::NO_OBJECT) and
//! [`SEVERAL_OBJECTS`](zvf::query::SEVERAL_OBJECTS).
//!
//! # Missing values
//!
//! | | number | word |
//! |---|---|---|
//! | `csv` | an empty field | an empty field; an empty word is `""` |
//! | `npz` | NaN; of integers and bools, true in the further array `NAME.missing` | the empty word; where words are empty, true in `NAME.missing` |
//! | `arrow`, `parquet` | null | null |
//! | `ply` | NaN | words are left out |

#[cfg(feature = "arrow")]
mod arrow;
mod check;
#[cfg(feature = "arrow")]
mod columnar;
mod csv;
mod error;
mod npy;
mod npz;
mod obj;
#[cfg(feature = "parquet")]
mod parquet;
mod ply;
mod staged;
mod table;
mod target;

use std::path::PathBuf;

use zvf::query::QueryResult;

pub use error::WriteError;
pub use target::{Format, Target, TargetError};

pub(crate) use table::{Table, TableColumn};
#[cfg(feature = "render")]
pub(crate) use target::place;

use staged::Staged;

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The files, the one asked for first.
    pub files: Vec<PathBuf>,
    /// What the format cannot hold, a line each.
    pub left_out: Vec<String>,
}

/// Writes an answer. `geometry` is its kind, for formats that have a place for
/// it.
///
/// Beside the answer this holds two numbers a vertex of a path, one an end of a
/// link, and what the format gathers before it writes: 65 536 rows of arrow, a
/// million of parquet.
///
/// # Errors
///
/// [`WriteError`] when the answer does not fit the format, or the file cannot
/// be written; nothing has changed then, unless the last step, renaming several
/// finished files, stops half way.
pub fn write(answer: &QueryResult, geometry: &str, target: &Target) -> Result<Written, WriteError> {
    check::answer(answer)?;
    let mut staged = Staged::new(target.path());
    let left_out = match target.format() {
        Format::Csv => csv::write(answer, &mut staged)?,
        Format::Npz => npz::write(answer, &mut staged)?,
        Format::Ply => ply::write(answer, &mut staged)?,
        Format::Obj => obj::write(answer, &mut staged)?,
        #[cfg(feature = "arrow")]
        Format::Arrow => arrow::write(answer, geometry, &mut staged)?,
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::write(answer, geometry, &mut staged)?,
        #[cfg(not(all(feature = "arrow", feature = "parquet")))]
        format => {
            let _ = geometry;
            return Err(WriteError::NotBuilt(format));
        }
    };
    Ok(Written {
        files: staged.publish()?,
        left_out,
    })
}

/// Writes one file of these bytes, which appears when it is complete.
#[cfg(feature = "render")]
pub(crate) fn write_file(path: &std::path::Path, bytes: &[u8]) -> Result<(), WriteError> {
    use std::io::Write as _;

    let mut staged = Staged::new(path);
    staged.write(|sink| Ok(sink.write_all(bytes)?))?;
    staged.publish().map(|_| ())
}

/// The level of an answer, or all it has rows of, as they follow each other.
fn levels(answer: &QueryResult) -> String {
    let levels = answer.levels.iter().map(|used| used.level.to_string());
    let levels: Vec<String> = levels.collect();
    match levels.is_empty() {
        true => answer.level.to_string(),
        false => levels.join(","),
    }
}
