//! `zvf man`: writes manual pages.

use std::{error::Error, fs, path::PathBuf};

use crate::{
    display::{count_noun, len_u64},
    outcome::CommandOutcome,
};

/// Write a manual page for each command into a folder, such as zvf-query.1
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf man man1")]
pub(crate) struct ManArgs {
    /// Folder; created if it does not exist.
    folder: PathBuf,
}

/// Writes the manual pages of `command`.
pub(crate) fn run(
    arguments: &ManArgs,
    command: clap::Command,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let folder = &arguments.folder;
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(told)?;
    // The help subcommand would repeat every page.
    let command = command.disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).map_err(told)?;
    let pages = len_u64(fs::read_dir(folder).map_err(told)?.count());
    let files = count_noun(pages, "file", "files");
    Ok(CommandOutcome::from(format!(
        "{}: {files}",
        folder.display()
    )))
}
