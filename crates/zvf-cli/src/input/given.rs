//! What commands take that read a file of geometry.

use zvf::build::{GeometryKind, OutOfBounds};

use super::{Gaps, Reading, Source};
use crate::named::{name_of, named};

/// Which file is read, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Given {
    /// The file: it ends in .npz, .csv, .parquet or .arrow. Of the last three, links,
    /// objects and groups are in NAME.links.csv and so on beside NAME.csv.
    #[arg(long, value_name = "FILE", value_parser = Source::parse)]
    pub(crate) from: Source,
    /// The table of links, when it is elsewhere.
    #[arg(long, value_name = "FILE", value_parser = Source::parse)]
    links: Option<Source>,
    /// What becomes of numbers that are missing: the file is refused, or they are
    /// stored as NaN, and whole numbers as floats.
    #[arg(long, default_value = "refuse", value_parser = named(GAPS.map(|(gaps, _)| gaps), gaps_name))]
    missing: Gaps,
    /// What happens to vertices outside the bounds: nothing is written, they are left
    /// out, or the bounds grow.
    #[arg(long, help_heading = "Space", default_value = "raise",
        value_parser = named(OUT_OF_BOUNDS.map(|(what, _)| what), out_of_bounds_name))]
    pub(crate) out_of_bounds: OutOfBounds,
}

impl Given {
    /// How the file is to be read when it holds this kind, and its axes are called so.
    pub fn reading(&self, kind: GeometryKind, axes: Option<Vec<String>>) -> Reading {
        Reading {
            axes,
            links: self.links.clone(),
            gaps: self.missing,
            ..Reading::new(kind)
        }
    }
}

const GAPS: [(Gaps, &str); 2] = [(Gaps::Refuse, "refuse"), (Gaps::Nan, "nan")];
const OUT_OF_BOUNDS: [(OutOfBounds, &str); 3] = [
    (OutOfBounds::Reject, "raise"),
    (OutOfBounds::Drop, "ignore"),
    (OutOfBounds::Expand, "expand"),
];
fn gaps_name(gaps: Gaps) -> &'static str {
    name_of(&GAPS, gaps)
}

fn out_of_bounds_name(what: OutOfBounds) -> &'static str {
    name_of(&OUT_OF_BOUNDS, what)
}
