//! `zvf completions`.

use clap_complete::Shell;

/// Prints what makes a shell complete `zvf`: the script to source
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf completions bash > zvf.bash")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// The script for the shell that was named.
pub(crate) fn script(arguments: &CompletionsArgs, command: &mut clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, command, "zvf", &mut script);
    String::from_utf8_lossy(&script).trim_end().to_owned()
}
