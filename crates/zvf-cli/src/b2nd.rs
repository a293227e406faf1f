//! `zvf b2nd`: arrays of Blosc2 and Caterva.

mod info;
mod verify;

use std::{error::Error, path::PathBuf};

use crate::{
    command::Done,
    dense::{self, Conversion, Slice},
};

/// Blosc2 .b2nd and Caterva .cat files, and sparse directories: dense arrays in chunks of
/// blocks, beside vectors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf b2nd create volume.npy volume.b2nd --chunks 16,16,16
  zvf b2nd info volume.b2nd
  zvf b2nd slice volume.b2nd --start 0,0,0 --stop 2,2,2 -o box.npy
  zvf b2nd verify volume.b2nd")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Info(info::Arguments),
    Verify(verify::Arguments),
    Slice(SliceArguments),
    /// Writes an array of Blosc2 from a dense array of any kind.
    Create(Conversion),
    Convert(Conversion),
}

/// Reads a box of an array: shows its first values, or writes it.
#[derive(Debug, clap::Args)]
struct SliceArguments {
    /// The file or sparse directory.
    file: PathBuf,
    #[command(flatten)]
    slice: Slice,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Done, Box<dyn Error>> {
    match &arguments.verb {
        Verb::Info(asked) => info::run(asked),
        Verb::Verify(asked) => verify::run(asked),
        Verb::Create(asked) => dense::create_b2nd(asked),
        Verb::Convert(asked) => dense::convert(asked),
        Verb::Slice(asked) => {
            let array = dense::b2nd(&asked.file, asked.slice.memory)?;
            dense::slice(&array, &asked.slice)
        }
    }
}
