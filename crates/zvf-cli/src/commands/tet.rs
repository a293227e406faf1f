//! `zvf tet`: Tetration files.

mod create;
mod info;
mod verify;

use std::{error::Error, path::PathBuf};

use crate::{
    dense::{self, ConvertArgs, SliceArgs},
    outcome::CommandOutcome,
};

/// Tetration .tet files: dense arrays in tiles, beside vectors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf tet create volume.tet --from t1=volume.npy --checksums
  zvf tet info volume.tet
  zvf tet slice volume.tet --start 0,0,0 --stop 2,2,2
  zvf tet verify volume.tet --deep
  zvf tet convert volume.tet volume.zarr")]
pub(crate) struct TetArgs {
    #[command(subcommand)]
    verb: TetCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TetCommand {
    Info(info::TetInfoArgs),
    Verify(verify::TetVerifyArgs),
    Slice(TetSliceArgs),
    Create(create::TetCreateArgs),
    Convert(ConvertArgs),
}

/// Reads a box of a dataset: shows its first values, or writes it.
#[derive(Debug, clap::Args)]
struct TetSliceArgs {
    /// The file.
    file: PathBuf,
    /// The dataset; not needed when there is one.
    dataset: Option<String>,
    #[command(flatten)]
    slice: SliceArgs,
}

pub(crate) fn run(arguments: &TetArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    match &arguments.verb {
        TetCommand::Info(asked) => info::run(asked),
        TetCommand::Verify(asked) => verify::run(asked),
        TetCommand::Create(asked) => create::run(asked),
        TetCommand::Convert(asked) => dense::convert(asked),
        TetCommand::Slice(asked) => {
            let array = dense::open(&asked.file, asked.dataset.as_deref(), asked.slice.memory)?;
            dense::slice(&*array, &asked.slice)
        }
    }
}
