//! Measurements beside the Python reference.

use anyhow::{Result, bail, ensure};

use crate::{options::Options, stage::Done};

mod dense;
mod format;
mod pyramids;
mod reads;
mod writes;

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    let further = options.further_words();
    match options.word() {
        Some("dense") => dense::run(further),
        Some("pyramids") => pyramids::run(further, options.flag("large")),
        Some("reads") => reads::run(further),
        Some("writes") => writes::run(further),
        None | Some("format") => {
            ensure!(further.is_empty(), "`bench format` takes nothing more");
            format::run()
        }
        Some(unknown) => {
            bail!(
                "no bench {unknown}; there are `dense`, `format`, `pyramids`, `reads` and `writes`"
            )
        }
    }
}
