//! The error of units that disagree.

use crate::FileFormat;

/// A file, a caller and a store that disagree on the unit of an axis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AxisUnitError {
    /// The file states another unit than the caller.
    #[error(
        "{axis} is in {stated} in the file, not in {given}; leave out {given}, or correct the file"
    )]
    Stated {
        /// The axis.
        axis: String,
        /// The unit that the file states.
        stated: String,
        /// The unit that the caller gives.
        given: String,
    },
    /// Numbers cannot be converted between two units.
    #[error(
        "{axis} is in {file} in the file and in {store} in the store, and only metric units of length \
         are converted; convert the coordinates first"
    )]
    NoLength {
        /// The axis.
        axis: String,
        /// The unit of the file.
        file: String,
        /// The unit of the store.
        store: String,
    },
    /// The axes of a file without a header are not named.
    #[error("the file names no axes; name the axes, each with its unit")]
    NoAxes,
    /// Coordinates are written in a unit that the format does not have.
    #[error("{format} files hold {holds}, not {given}; leave out {given}")]
    Format {
        /// The format.
        format: FileFormat,
        /// The unit of the format.
        holds: String,
        /// The unit that the caller gives.
        given: String,
    },
    /// Coordinates without a metric unit of length are written in one.
    #[error(
        "axis {axis} of the store has no metric unit of length, so its coordinates cannot be written in \
         {given}"
    )]
    NoUnit {
        /// The axis.
        axis: String,
        /// The unit that the caller gives.
        given: String,
    },
}
