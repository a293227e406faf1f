//! The command line: parses the arguments, runs the command, prints its outcome.

use std::{
    error::Error,
    ffi::OsString,
    io::{self, Write},
    path::Path,
    pin::Pin,
    process::ExitCode,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use clap::{CommandFactory, Parser, Subcommand};
use zvf_model::error_chain::error_chain;

#[cfg(feature = "render")]
use crate::commands::{
    demo::{self, DemoArgs},
    render::{self, RenderArgs},
};
#[cfg(feature = "serve")]
use crate::commands::{
    serve::{self, ServeArgs},
    view::{self, ViewArgs},
};
use crate::{
    allocator::return_freed_memory,
    commands::{
        append::{self, AppendArgs},
        b2nd::{self, B2ndArgs},
        compact::{self, CompactArgs},
        completions::{self, CompletionsArgs},
        convert::{self, FileConvertArgs},
        create::{self, CreateArgs},
        delete::{self, DeleteArgs},
        doctor::{self, DoctorArgs},
        edit::{self, EditArgs},
        export::{self, ExportArgs},
        info::{self, InfoArgs},
        links::{self, LinksArgs},
        man::{self, ManArgs},
        migrate::{self, MigrateArgs},
        pyramid::{self, PyramidArgs},
        query::{self, QueryArgs},
        sample::{self, SampleArgs},
        task::{self, TaskArgs},
        tet::{self, TetArgs},
        validate::{self, ValidateArgs},
    },
    display::for_terminal,
    hint::{file_hint, open_hint, seal_hint},
    interrupt::end_on_signals,
    outcome::CommandOutcome,
    stop::{self, StopFlag},
    worker_pool,
};

/// Time for the threads that read and write files, at the end of a command.
const END_TIME: Duration = Duration::from_secs(5);
/// clap's own colours. anstream drops them if the output is a file or `NO_COLOR` is set.
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

`zvf COMMAND --help` has examples of each command. The exit code is 0 on success, 1 if the
result is negative (for example, if validation finds an error), and 2 on failure."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "render")]
    Demo(DemoArgs),
    Info(InfoArgs),
    Links(LinksArgs),
    Query(Box<QueryArgs>),
    Validate(ValidateArgs),
    Create(Box<CreateArgs>),
    Convert(FileConvertArgs),
    Task(TaskArgs),
    Append(AppendArgs),
    Edit(EditArgs),
    Delete(Box<DeleteArgs>),
    Compact(CompactArgs),
    Migrate(MigrateArgs),
    Pyramid(Box<PyramidArgs>),
    Sample(Box<SampleArgs>),
    #[cfg(feature = "render")]
    Render(Box<RenderArgs>),
    Export(ExportArgs),
    #[cfg(feature = "serve")]
    View(ViewArgs),
    #[cfg(feature = "serve")]
    Serve(Box<ServeArgs>),
    Tet(Box<TetArgs>),
    B2nd(Box<B2ndArgs>),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Runs the command line of this process.
///
/// The exit code is 0 on success, 1 if the command ran and its check failed (errors found by `validate`,
/// damaged attributes in `info --stats`, an empty result with `--fail-empty`), 2 on failure or wrong
/// usage, and 130 or 143 after SIGINT or SIGTERM.
pub fn run() -> ExitCode {
    // clap exits with 2 on wrong usage.
    ExitCode::from(run_arguments(of_program(std::env::args_os().collect())))
}

/// Returns the arguments of the command `zvf tet` if the program is called as `tet`, through a link of
/// that name, as the examples of the Tetration format have it.
fn of_program(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().map(Path::new).and_then(Path::file_stem);
    if name.is_some_and(|name| name == "tet") {
        arguments.splice(..1, ["zvf".into(), "tet".into()]);
    }
    arguments
}

/// Runs a command line, and ends the process with SIGINT or SIGTERM unless the command handles them.
fn run_arguments(arguments: Vec<OsString>) -> u8 {
    let cli = parse_arguments(arguments);
    if !handles_signals(&cli.command) {
        end_on_signals();
    }
    finish(cli)
}

/// Returns whether a command handles signals itself, or leaves them to the process that started it.
fn handles_signals(command: &Command) -> bool {
    match command {
        Command::Task(args) => args.is_of_pool(),
        #[cfg(feature = "serve")]
        Command::Serve(_) | Command::View(_) => true,
        _ => false,
    }
}

/// Parses a command line. The process starts again for a command with a bound on memory, unless its
/// own arguments are others: then it is a program that calls the command.
fn parse_arguments(arguments: Vec<OsString>) -> Cli {
    let own = of_program(std::env::args_os().collect());
    let is_own = own.ends_with(arguments.get(1..).unwrap_or_default());
    let cli = parsed(arguments);
    if let Some(kept) = kept_blocks(&cli.command).filter(|_| is_own) {
        return_freed_memory(kept);
    }
    cli
}

/// Returns the size of the blocks that the allocator may keep for a command with a bound on its
/// memory: as large as the columns of a batch, if the bound has room for them.
fn kept_blocks(command: &Command) -> Option<u64> {
    let of_batches = |memory: u64| if memory < 128 << 20 { 0 } else { memory / 16 };
    match command {
        Command::Create(args) => args.memory().map(of_batches),
        Command::Query(args) => args.memory.map(of_batches),
        #[cfg(feature = "serve")]
        Command::Serve(_) | Command::View(_) => Some(0),
        _ => None,
    }
}

/// Runs a command line in another program, as the script of the Python package, and returns the
/// exit code. The first of `arguments` is the name of the program. `starts` is a program and its
/// first arguments, which start the command in another process, such as those of `--workers`.
///
/// Ends the process with 2 on wrong usage, and as [`run`] does with 130 or 143 after SIGINT or SIGTERM.
pub fn run_in_program(arguments: Vec<OsString>, starts: Vec<OsString>) -> u8 {
    worker_pool::set_program(starts);
    run_arguments(arguments)
}

/// Parses a command line. Wrong usage ends the process with 2.
fn parsed(arguments: Vec<OsString>) -> Cli {
    let parsed = Cli::try_parse_from(&arguments);
    parsed.unwrap_or_else(|error| {
        // The message repeats arguments, which may be names that control a terminal.
        let shown = arguments.into_iter().map(|argument| {
            let text = argument.to_string_lossy();
            for_terminal(&text).into_owned()
        });
        Cli::try_parse_from(shown).err().unwrap_or(error).exit()
    })
}

/// Runs a command line for another program, which has its report and prints nothing. The first
/// argument is the name of the program. The command ends soon after `stop` is set.
///
/// Blocks, and must not run on an async thread.
///
/// # Errors
///
/// [`CommandFailure`], with the text that the command would print.
pub fn report(arguments: Vec<OsString>, stop: &StopFlag) -> Result<CommandReport, CommandFailure> {
    let usage = |error: clap::Error| CommandFailure::Usage(error.to_string().trim().to_owned());
    let cli = Cli::try_parse_from(arguments).map_err(usage)?;
    match stop::run_with_flag(stop, || dispatch(cli.command)) {
        Ok(outcome) => Ok(CommandReport {
            text: outcome.text,
            warnings: outcome.warnings,
            is_negative: outcome.is_negative,
        }),
        Err(error) => Err(CommandFailure::Failed(describe(&*error))),
    }
}

/// The output of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandReport {
    /// Text for standard output: one JSON object with `--json`.
    pub text: String,
    /// Lines for standard error.
    pub warnings: Vec<String>,
    /// True for a negative result, such as findings of `zvf validate`: exit code 1.
    pub is_negative: bool,
}

/// The reason why a command has no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandFailure {
    /// The arguments do not fit the command.
    #[error("{0}")]
    Usage(String),
    /// The command failed.
    #[error("{0}")]
    Failed(String),
}

fn finish(cli: Cli) -> u8 {
    let outcome = dispatch(cli.command);
    match outcome.and_then(|outcome| print(&outcome)) {
        Ok(code) => code,
        Err(error) => {
            let text = describe(&*error);
            anstream::eprintln!("{RED}error:{RED:#} {}", for_terminal(&text));
            2
        }
    }
}

/// Returns the command line as clap describes it, for manual pages and completion scripts.
pub fn command() -> clap::Command {
    Cli::command()
}

fn dispatch(command: Command) -> Result<CommandOutcome, Box<dyn Error>> {
    match command {
        #[cfg(feature = "render")]
        Command::Demo(args) => block_on(demo::run(&args)),
        Command::Info(args) => block_on(info::run(&args)),
        Command::Links(args) => block_on(links::run(&args)),
        Command::Query(args) => block_on(query::run(&args)),
        Command::Validate(args) => block_on(validate::run(&args)),
        Command::Create(args) => block_on(create::run(&args)),
        Command::Convert(args) => convert::run(&args),
        Command::Task(args) => block_on(task::run(&args)),
        Command::Append(args) => block_on(append::run(&args)),
        Command::Edit(args) => block_on(edit::run(&args)),
        Command::Delete(args) => block_on(delete::run(&args)),
        Command::Compact(args) => block_on(compact::run(&args)),
        Command::Migrate(args) => block_on(migrate::run(&args)),
        Command::Pyramid(args) => block_on(pyramid::run(&args)),
        Command::Sample(args) => block_on(sample::run(&args)),
        #[cfg(feature = "render")]
        Command::Render(args) => block_on(render::run(&args)),
        Command::Export(args) => block_on(export::run(&args)),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args),
        #[cfg(feature = "serve")]
        Command::View(args) => view::run(&args),
        Command::Tet(args) => tet::run(&args),
        Command::B2nd(args) => b2nd::run(&args),
        Command::Doctor(args) => block_on(doctor::run(&args)),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Completions(args) => {
            let script = completions::script(&args, &mut Cli::command());
            Ok(CommandOutcome::from(script))
        }
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, Box<dyn Error>>>) -> Result<T, Box<dyn Error>> {
    // Boxed, because the runtime would be compiled again for each command.
    let work: Pin<Box<dyn Future<Output = _>>> = Box::pin(work);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    // The store opens at most this many files at a time. More threads would only hold memory.
    runtime.max_blocking_threads(16);
    let runtime = runtime.enable_all().build()?;
    let outcome = match stop::flag() {
        None => runtime.block_on(work),
        Some(stop) => runtime.block_on(stop::run_until_stopped(&stop, work)),
    };
    // A disk that does not respond does not hold up the end.
    runtime.shutdown_timeout(END_TIME);
    outcome
}

/// Prints an outcome and returns its exit code.
fn print(outcome: &CommandOutcome) -> Result<u8, Box<dyn Error>> {
    for warning in &outcome.warnings {
        anstream::eprintln!("{YELLOW}warning:{YELLOW:#} {}", for_terminal(warning));
    }
    print_text(&for_terminal(&outcome.text))?;
    for hint in &outcome.hints {
        anstream::eprintln!("hint: {}", for_terminal(hint));
    }
    Ok(u8::from(outcome.is_negative))
}

/// Prints to standard output. A closed pipe, as after `| head`, is not an error.
fn print_text(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Returns an error with its sources and, if no command has added one, a hint.
fn describe(error: &(dyn Error + 'static)) -> String {
    let message = error_chain(error);
    let hint = error.downcast_ref().and_then(open_hint);
    match hint
        .or_else(|| file_hint(error))
        .or_else(|| seal_hint(error))
    {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    }
}
