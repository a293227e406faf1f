//! `zvf completions`: prints shell completion scripts.

use clap_complete::Shell;

/// Print a completion script for a shell, to be sourced
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf completions bash > zvf.bash")]
pub(crate) struct CompletionsArgs {
    /// Shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Returns the completion script of the shell.
pub(crate) fn script(arguments: &CompletionsArgs, command: &mut clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, command, "zvf", &mut script);
    String::from_utf8_lossy(&script).trim_end().to_owned()
}
