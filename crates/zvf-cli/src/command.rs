//! The command line: what is asked for, done, and exited with.

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use clap::{CommandFactory, Parser, Subcommand};

use crate::{
    advice::way_in, append, b2nd, compact, completions, create, delete, doctor, edit, info, man,
    migrate, pyramid, query, sample, tet, validate,
};
#[cfg(feature = "render")]
use crate::{demo, render};

/// What clap paints its own errors with; nothing is painted into a file, or where `NO_COLOR` is set.
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Zarr Vectors stores: points, lines, streamlines, skeletons, graphs, meshes.
#[derive(Debug, Parser)]
#[command(
    name = "zvf",
    version,
    after_help = "Examples:
  zvf info tracts.zv
  zvf query tracts.zv --bbox 0,0,0,10,10,10 -o near.csv

`zvf COMMAND --help` has examples of each command. Commands exit with 0 when it is done, 1 when the
answer is no, and 2 when it could not be done."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "render")]
    Demo(demo::Arguments),
    Info(info::Arguments),
    Query(Box<query::Arguments>),
    Validate(validate::Arguments),
    Create(Box<create::Arguments>),
    /// Does a part of what another process creates.
    #[command(hide = true)]
    Task {
        /// What to do.
        file: std::path::PathBuf,
    },
    Append(append::Arguments),
    Edit(edit::Arguments),
    Delete(Box<delete::Arguments>),
    Compact(compact::Arguments),
    Migrate(migrate::Arguments),
    Pyramid(Box<pyramid::Arguments>),
    Sample(Box<sample::Arguments>),
    #[cfg(feature = "render")]
    Render(Box<render::Arguments>),
    Tet(Box<tet::Arguments>),
    B2nd(Box<b2nd::Arguments>),
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// What a command has to say when it is done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// For stdout; nothing is printed when empty.
    pub(crate) text: String,
    /// For stderr, a line each.
    pub(crate) warnings: Vec<String>,
    /// What could be better the next time, for stderr as well.
    pub(crate) hints: Vec<String>,
    /// Whether the answer is no.
    pub(crate) is_no: bool,
}

impl From<String> for Done {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// Does what the command line says.
///
/// The exit code is 0 when it is done, 1 when the answer is no, and 2 when it
/// could not be done, as after wrong usage.
pub fn run() -> ExitCode {
    // Wrong usage exits with 2 here.
    let Arguments { command } = Arguments::parse();
    let done = match command {
        #[cfg(feature = "render")]
        Command::Demo(arguments) => block_on(demo::run(&arguments)),
        Command::Info(arguments) => block_on(info::run(&arguments)).map(Done::from),
        Command::Query(arguments) => block_on(query::run(&arguments)),
        Command::Validate(arguments) => block_on(validate::run(&arguments)),
        Command::Create(arguments) => block_on(create::run(&arguments)),
        Command::Task { file } => block_on(create::task(&file)),
        Command::Append(arguments) => block_on(append::run(&arguments)),
        Command::Edit(arguments) => block_on(edit::run(&arguments)),
        Command::Delete(arguments) => block_on(delete::run(&arguments)),
        Command::Compact(arguments) => block_on(compact::run(&arguments)),
        Command::Migrate(arguments) => block_on(migrate::run(&arguments)),
        Command::Pyramid(arguments) => block_on(pyramid::run(&arguments)),
        Command::Sample(arguments) => block_on(sample::run(&arguments)),
        #[cfg(feature = "render")]
        Command::Render(arguments) => block_on(render::run(&arguments)),
        Command::Tet(arguments) => tet::run(&arguments),
        Command::B2nd(arguments) => b2nd::run(&arguments),
        Command::Doctor(arguments) => block_on(doctor::run(&arguments)),
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
        Command::Completions(arguments) => {
            let script = completions::script(&arguments, &mut Arguments::command());
            Ok(Done::from(script))
        }
    };
    let printed = done.and_then(|done| {
        for warning in &done.warnings {
            anstream::eprintln!("{YELLOW}warning:{YELLOW:#} {warning}");
        }
        print(&done.text)?;
        for hint in &done.hints {
            anstream::eprintln!("hint: {hint}");
        }
        Ok(done.is_no)
    });
    match printed {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(1),
        Err(error) => {
            anstream::eprintln!("{RED}error:{RED:#} {}", hinted(&*error));
            ExitCode::from(2)
        }
    }
}

/// The command line, for what is made of it: pages, scripts.
pub fn command() -> clap::Command {
    Arguments::command()
}

fn block_on<T>(work: impl Future<Output = Result<T, Box<dyn Error>>>) -> Result<T, Box<dyn Error>> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    // More threads than files are open at once wait for the disk, not for each other,
    // and each keeps memory.
    runtime.max_blocking_threads(16);
    runtime.enable_all().build()?.block_on(work)
}

/// Who stops reading, as `head` does, has what they want.
fn print(text: &str) -> Result<(), Box<dyn Error>> {
    if text.is_empty() {
        return Ok(());
    }
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// An error with what to do about it, where nothing else says so.
fn hinted(error: &(dyn Error + 'static)) -> String {
    let said = sentence(error);
    match error.downcast_ref().and_then(way_in) {
        Some(way_out) => format!("{said}; {way_out}"),
        None => said,
    }
}

/// An error and its causes in one line.
pub(crate) fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
