//! What commands take that read a file of geometry.

use zvf::build::{GeometryKind, OutOfBounds};

use super::{name_of, named};
use crate::formats::{GeometryReadOptions, InputFile, MissingPolicy};

/// Which file is read, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct GeometryFileArgs {
    /// The file: it ends in .npz, .csv, .parquet or .arrow. Of the last three, links,
    /// objects and groups are in NAME.links.csv and so on beside NAME.csv.
    #[arg(long, value_name = "FILE", value_parser = InputFile::parse)]
    pub(crate) from: InputFile,
    /// The table of links, when it is elsewhere.
    #[arg(long, value_name = "FILE", value_parser = InputFile::parse)]
    links: Option<InputFile>,
    /// What becomes of numbers that are missing: the file is refused, or they are
    /// stored as NaN, and whole numbers as floats.
    #[arg(long, default_value = "refuse", value_parser = named(GAPS.map(|(gaps, _)| gaps), gaps_name))]
    missing: MissingPolicy,
    /// What happens to vertices outside the bounds: nothing is written, they are left
    /// out, or the bounds grow.
    #[arg(long, help_heading = "Space", default_value = "raise",
        value_parser = named(OUT_OF_BOUNDS.map(|(what, _)| what), out_of_bounds_name))]
    pub(crate) out_of_bounds: OutOfBounds,
}

impl GeometryFileArgs {
    /// How the file is to be read when it holds this kind, and its axes are called so.
    pub fn reading(&self, kind: GeometryKind, axes: Option<Vec<String>>) -> GeometryReadOptions {
        GeometryReadOptions {
            axes,
            links: self.links.clone(),
            missing: self.missing,
            ..GeometryReadOptions::new(kind)
        }
    }
}

const GAPS: [(MissingPolicy, &str); 2] = [
    (MissingPolicy::Reject, "refuse"),
    (MissingPolicy::Nan, "nan"),
];
const OUT_OF_BOUNDS: [(OutOfBounds, &str); 3] = [
    (OutOfBounds::Reject, "raise"),
    (OutOfBounds::Drop, "ignore"),
    (OutOfBounds::Expand, "expand"),
];
fn gaps_name(gaps: MissingPolicy) -> &'static str {
    name_of(&GAPS, gaps)
}

fn out_of_bounds_name(what: OutOfBounds) -> &'static str {
    name_of(&OUT_OF_BOUNDS, what)
}
