//! Benchmarks beside other programs.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::{options::Options, stage::Done};

mod dense;
mod files;
mod format;
pub(crate) mod kernels;
mod pyramids;
mod reads;
mod serve;
mod speed;
mod writes;

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    let further = options.further_words();
    if let Some(base) = options.text("compare") {
        return kernels::compare(Path::new(base));
    }
    match options.word() {
        None => speed::run(speed::Extent {
            quick: options.flag("quick"),
            huge: options.flag("huge"),
        }),
        Some("kernels") => kernels::run(options.flag("write")),
        Some("dense") => dense::run(further),
        Some("files") => files::run(further),
        Some("pyramids") => pyramids::run(further, options.flag("large")),
        Some("reads") => reads::run(further),
        Some("serve") => serve::run(further, options.flag("quick")),
        Some("writes") => writes::run(further),
        Some("format") => {
            ensure!(further.is_empty(), "`bench format` takes nothing more");
            format::run()
        }
        Some(unknown) => {
            bail!(
                "no bench {unknown}; there are `dense`, `files`, `format`, `kernels`, `pyramids`, `reads`, `serve` and `writes`"
            )
        }
    }
}
