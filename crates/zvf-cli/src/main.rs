//! The command `zvf`.
//!
//! It exits with 0 when done, and with 2 when it could not do what was asked.
#![expect(clippy::print_stderr, reason = "a command line tool")]

mod info;

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

/// Zarr Vectors stores: points, lines, streamlines, skeletons, graphs, meshes.
#[derive(Debug, Parser)]
#[command(name = "zvf", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::Arguments),
}

fn main() -> ExitCode {
    // Wrong usage exits with 2 here.
    let Arguments { command } = Arguments::parse();
    let Command::Info(arguments) = command;
    let done = block_on(info::run(&arguments)).and_then(|text| print(&text));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", sentence(&*error));
            ExitCode::from(2)
        }
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, Box<dyn Error>>>) -> Result<T, Box<dyn Error>> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(work)
}

/// Who stops reading, as `head` does, has what they want.
fn print(text: &str) -> Result<(), Box<dyn Error>> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// An error and its causes in one line.
fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
