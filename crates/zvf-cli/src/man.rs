//! `zvf man`.

use std::{error::Error, fs, path::PathBuf};

use crate::{
    command::Done,
    number::{counted, of_len},
};

/// Writes a manual page of each command into a folder, as zvf-query.1
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf man man1")]
pub(crate) struct Arguments {
    /// The folder; made where it is not there.
    folder: PathBuf,
}

/// Writes the pages of the command line.
pub(crate) fn run(arguments: &Arguments, command: clap::Command) -> Result<Done, Box<dyn Error>> {
    let folder = &arguments.folder;
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(told)?;
    // Not the one that `help` makes of every command.
    let command = command.disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).map_err(told)?;
    let pages = of_len(fs::read_dir(folder).map_err(told)?.count());
    let files = counted(pages, ["file", "files"]);
    Ok(Done::from(format!("{}: {files}", folder.display())))
}
