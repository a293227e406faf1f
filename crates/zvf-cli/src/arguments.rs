//! Command-line arguments that several commands share, and parsers of their values.

pub(crate) mod crs;
mod geometry_file;
mod named;
mod selection;
pub(crate) mod values;

pub use crate::dense::reference_grid;
pub(crate) use geometry_file::{GAPS, gaps_name, rename};
pub use geometry_file::{GeometryFileArgs, GeometryReadingArgs};
pub(crate) use named::{name_of, named};
pub(crate) use selection::axis_names;
pub use selection::{QueryUsageError, SelectionArgs};
