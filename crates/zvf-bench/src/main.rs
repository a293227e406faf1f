//! The command `zvf-bench`.
#![expect(
    clippy::print_stderr,
    reason = "a command-line tool reports on its standard streams"
)]

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match zvf_bench::run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
