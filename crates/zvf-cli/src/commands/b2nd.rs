//! `zvf b2nd`: arrays of Blosc2 and Caterva.

mod append;
mod changed;
mod info;
mod resize;
mod set;
mod update;
mod verify;

use std::{error::Error, path::PathBuf};

use crate::{
    dense::{self, ConvertArgs, ItemTypeArgs, SliceArgs},
    outcome::CommandOutcome,
};

/// Inspect, slice, write and change Blosc2 .b2nd and Caterva .cat arrays in chunks of blocks
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf b2nd create volume.npy volume.b2nd --chunks 16,16,16
  zvf b2nd info volume.b2nd
  zvf b2nd slice volume.b2nd --start 0,0,0 --stop 2,2,2 -o box.npy
  zvf b2nd append volume.b2nd volume.npy --axis 0
  zvf b2nd create volume.npy volume.cat --metalayer unit=mm
  zvf b2nd slice volume.cat --dtype f4 --stop 1,1,4
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
    /// Write a Blosc2 .b2nd or Caterva .cat array from a dense array of any format
    Create(ConvertArgs),
    Convert(ConvertArgs),
    Append(append::B2ndAppendArgs),
    Resize(resize::B2ndResizeArgs),
    Update(update::B2ndUpdateArgs),
    Set(set::B2ndSetArgs),
}

/// Read a box of an array, and print its first values or write it
#[derive(Debug, clap::Args)]
struct B2ndSliceArgs {
    /// File or sparse directory.
    file: PathBuf,
    #[command(flatten)]
    item: ItemTypeArgs,
    #[command(flatten)]
    slice: SliceArgs,
}

pub(crate) fn run(arguments: &B2ndArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    match &arguments.verb {
        B2ndCommand::Info(args) => info::run(args),
        B2ndCommand::Verify(args) => verify::run(args),
        B2ndCommand::Create(args) => dense::create_b2nd(args),
        B2ndCommand::Convert(args) => dense::convert(args),
        B2ndCommand::Append(args) => append::run(args),
        B2ndCommand::Resize(args) => resize::run(args),
        B2ndCommand::Update(args) => update::run(args),
        B2ndCommand::Set(args) => set::run(args),
        B2ndCommand::Slice(args) => {
            let array = dense::b2nd(&args.file, args.slice.memory)?;
            let array = args.item.apply(array)?;
            dense::slice(&array, &args.slice)
        }
    }
}
