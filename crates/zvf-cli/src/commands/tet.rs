//! `zvf tet`: Tetration files.

mod create;
mod info;
mod query;
mod verify;

use std::{error::Error, path::PathBuf};

use crate::{
    dense::{self, ConvertArgs, SliceArgs},
    outcome::CommandOutcome,
};

/// Inspect, slice and write Tetration .tet files, dense arrays in tiles
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf tet create volume.tet --from t1=volume.npy --checksums
  zvf tet info volume.tet
  zvf tet slice volume.tet --start 0,0,0 --stop 2,2,2
  zvf tet query volume.tet '{\"dataset\": \"t1\", \"filter\": {\"gt\": 0}, \"mean\": []}'
  zvf tet verify volume.tet --deep
  zvf tet convert volume.tet copy.b2nd")]
pub(crate) struct TetArgs {
    #[command(subcommand)]
    verb: TetCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TetCommand {
    Info(info::TetInfoArgs),
    Verify(verify::TetVerifyArgs),
    Slice(TetSliceArgs),
    Query(query::TetQueryArgs),
    Create(create::TetCreateArgs),
    Convert(ConvertArgs),
}

/// Read a box of a dataset, and print its first values or write it
#[derive(Debug, clap::Args)]
struct TetSliceArgs {
    /// File.
    file: PathBuf,
    /// Dataset; optional if there is only one.
    dataset: Option<String>,
    #[command(flatten)]
    slice: SliceArgs,
}

pub(crate) fn run(arguments: &TetArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    match &arguments.verb {
        TetCommand::Info(args) => info::run(args),
        TetCommand::Verify(args) => verify::run(args),
        TetCommand::Query(args) => query::run(args),
        TetCommand::Create(args) => create::run(args),
        TetCommand::Convert(args) => dense::convert(args),
        TetCommand::Slice(args) => {
            let array = dense::open(&args.file, args.dataset.as_deref(), args.slice.memory)?;
            dense::slice(&*array, &args.slice)
        }
    }
}
