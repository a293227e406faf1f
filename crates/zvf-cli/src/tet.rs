//! `zvf tet`: Tetration files.

mod create;
mod info;
mod verify;

use std::{error::Error, path::PathBuf};

use crate::{
    command::Done,
    dense::{self, Conversion, Slice},
};

/// Tetration .tet files: dense arrays in tiles, beside vectors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf tet create volume.tet --from t1=volume.npy --checksums
  zvf tet info volume.tet
  zvf tet slice volume.tet --start 0,0,0 --stop 2,2,2
  zvf tet verify volume.tet --deep
  zvf tet convert volume.tet volume.zarr")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Info(info::Arguments),
    Verify(verify::Arguments),
    Slice(SliceArguments),
    Create(create::Arguments),
    Convert(Conversion),
}

/// Reads a box of a dataset: shows its first values, or writes it.
#[derive(Debug, clap::Args)]
struct SliceArguments {
    /// The file.
    file: PathBuf,
    /// The dataset; not needed when there is one.
    dataset: Option<String>,
    #[command(flatten)]
    slice: Slice,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Done, Box<dyn Error>> {
    match &arguments.verb {
        Verb::Info(asked) => info::run(asked),
        Verb::Verify(asked) => verify::run(asked),
        Verb::Create(asked) => create::run(asked),
        Verb::Convert(asked) => dense::convert(asked),
        Verb::Slice(asked) => {
            let array = dense::open(&asked.file, asked.dataset.as_deref(), asked.slice.memory)?;
            dense::slice(&*array, &asked.slice)
        }
    }
}
