//! The command `zvf`.

use std::process::ExitCode;

fn main() -> ExitCode {
    zvf_cli::run()
}
