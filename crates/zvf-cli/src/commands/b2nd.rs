//! `zvf b2nd`: arrays of Blosc2 and Caterva.

mod info;
mod verify;

use std::{error::Error, path::PathBuf};

use crate::{
    dense::{self, ConvertArgs, SliceArgs},
    outcome::CommandOutcome,
};

/// Inspect, slice and write Blosc2 .b2nd and Caterva .cat arrays, dense arrays in chunks of blocks
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf b2nd create volume.npy volume.b2nd --chunks 16,16,16
  zvf b2nd info volume.b2nd
  zvf b2nd slice volume.b2nd --start 0,0,0 --stop 2,2,2 -o box.npy
  zvf b2nd verify volume.b2nd")]
pub(crate) struct B2ndArgs {
    #[command(subcommand)]
    verb: B2ndCommand,
}

#[derive(Debug, clap::Subcommand)]
enum B2ndCommand {
    Info(info::B2ndInfoArgs),
    Verify(verify::B2ndVerifyArgs),
    Slice(B2ndSliceArgs),
    /// Write a Blosc2 array from a dense array of any format
    Create(ConvertArgs),
    Convert(ConvertArgs),
}

/// Read a box of an array, and print its first values or write it
#[derive(Debug, clap::Args)]
struct B2ndSliceArgs {
    /// File or sparse directory.
    file: PathBuf,
    #[command(flatten)]
    slice: SliceArgs,
}

pub(crate) fn run(arguments: &B2ndArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    match &arguments.verb {
        B2ndCommand::Info(args) => info::run(args),
        B2ndCommand::Verify(args) => verify::run(args),
        B2ndCommand::Create(args) => dense::create_b2nd(args),
        B2ndCommand::Convert(args) => dense::convert(args),
        B2ndCommand::Slice(args) => {
            let array = dense::b2nd(&args.file, args.slice.memory)?;
            dense::slice(&array, &args.slice)
        }
    }
}
