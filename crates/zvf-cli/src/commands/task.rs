//! `zvf task`: work divided into tasks for the scheduler of a cluster.

mod exports;

use std::{error::Error, io, path::PathBuf, process, thread};

use serde_json::{Value, json};
use zvf::{OpenOptions, TaskKind, TaskPlan, TaskPlanError, TaskPlanOptions, ValidationPlan};

use super::{
    create::{self, CreateArgs},
    export::ExportArgs,
    migrate::{self, MigrateArgs},
    pyramid::{self, PyramidArgs},
    sample::{self, SampleArgs},
    validate::{self, PlanValidateArgs},
};
use crate::{
    display::{count_noun, len_u64},
    outcome::CommandOutcome,
};

/// Number of missing tasks that the text names.
const MAX_NAMED: usize = 20;

/// Divide the creation, migration, change or validation of a store, or an export, into tasks
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A plan is one file, on disk or in a bucket. Its tasks run in any order, on any machine that reaches
the store, may be killed and may run twice. The store or export appears, or changes, with the commit;
a validation is reported by it.

Examples:
  zvf task plan plan.json --tasks 2 create large.zv --from tracts.trk
  zvf task run plan.json --index 0
  zvf task run plan.json --index 1
  zvf task status plan.json
  zvf task commit plan.json"
)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    verb: TaskCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TaskCommand {
    Plan(PlanArgs),
    Run(RunArgs),
    Status(StatusArgs),
    Commit(CommitArgs),
    /// Run a task of a process of this machine.
    #[command(hide = true)]
    File {
        /// Task file.
        file: PathBuf,
        /// Exit when standard input ends, as it does with the process that started this one.
        #[arg(long)]
        until_stdin_ends: bool,
    },
}

impl TaskArgs {
    /// Returns whether another process of `zvf` runs this one and reports its end.
    pub(crate) fn is_of_pool(&self) -> bool {
        matches!(self.verb, TaskCommand::File { .. })
    }
}

/// Write a plan: read the input and reserve the address of a new store or export, or list a store
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The commands take the arguments of `zvf create`, `zvf pyramid`, `zvf sample`, `zvf migrate` and `zvf
export`. A plan of `pyramid` is for the first level that does not exist; plan again after its
commit. A plan with 0 tasks means that all levels exist. `validate` checks a store, which may be
read-only, and keeps what its tasks find beside the plan."
)]
struct PlanArgs {
    /// Plan to write: a file or an address.
    plan: String,
    /// Number of tasks.
    #[arg(long, value_name = "N", default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..))]
    tasks: u32,
    /// Discard an unfinished creation of the same store, such as that of an earlier plan, or an
    /// unfinished plan of the same export.
    #[arg(long)]
    restart: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    job: PlannedCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PlannedCommand {
    Create(Box<CreateArgs>),
    Pyramid(Box<PyramidArgs>),
    Sample(Box<SampleArgs>),
    Migrate(Box<MigrateArgs>),
    Export(Box<ExportArgs>),
    Validate(PlanValidateArgs),
}

/// Run one task of a plan
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A task that is done is not repeated, and one that another process runs at the same time leaves the
same result."
)]
struct RunArgs {
    /// Plan: a file or an address.
    plan: String,
    /// Number of the task, from 0.
    #[arg(long, value_name = "N")]
    index: usize,
    /// Number of threads; by default one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Show which tasks of a plan are missing; exits with 1 if any is
#[derive(Debug, clap::Args)]
struct StatusArgs {
    /// Plan: a file or an address.
    plan: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Publish or print the result after all tasks, and delete the files that the tasks shared
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Fails if a task is missing, or the store was changed since the plan was made. Repeating a commit has
no effect. The commit of a validation prints the report and exits as `zvf validate` does."
)]
struct CommitArgs {
    /// Plan: a file or an address.
    plan: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: &TaskArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    match &arguments.verb {
        TaskCommand::Plan(args) => plan(args).await,
        TaskCommand::Run(args) => run_one(args).await,
        TaskCommand::Status(args) => status(args).await,
        TaskCommand::Commit(args) => commit(args).await,
        TaskCommand::File {
            file,
            until_stdin_ends,
        } => {
            if *until_stdin_ends {
                thread::spawn(exit_at_the_end_of_stdin);
            }
            zvf::run_task(file, &OpenOptions::default()).await?;
            Ok(CommandOutcome::default())
        }
    }
}

/// Reads standard input, and exits at its end.
fn exit_at_the_end_of_stdin() {
    // Whatever is read is of no interest, and an error is an end.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    process::exit(1);
}

async fn plan(arguments: &PlanArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = TaskPlanOptions::default();
    options.tasks = usize::try_from(arguments.tasks).ok();
    options.replaces_unfinished = arguments.restart;
    let (plan, warnings) = match &arguments.job {
        PlannedCommand::Create(args) => create::plan(args, &options).await?,
        PlannedCommand::Pyramid(args) => (pyramid::plan(args, &options).await?, Vec::new()),
        PlannedCommand::Sample(args) => (sample::plan(args, &options).await?, Vec::new()),
        PlannedCommand::Migrate(args) => (migrate::plan(args, &options).await?, Vec::new()),
        PlannedCommand::Export(args) => return exports::plan(arguments, args).await,
        PlannedCommand::Validate(args) => {
            let plan = validate::plan(args, &arguments.plan, arguments.tasks).await?;
            let tasks = count_noun(len_u64(plan.tasks()), "task", "tasks");
            let text = format!("{}: {tasks} to validate {}", arguments.plan, plan.store());
            let described = described_validation(&arguments.plan, &plan);
            return Ok(outcome(arguments.json, &described, text));
        }
    };
    plan.write(&arguments.plan, &OpenOptions::default()).await?;
    let text = match plan.tasks() {
        0 => format!("{}: all levels exist", plan.store()),
        tasks => {
            let tasks = count_noun(len_u64(tasks), "task", "tasks");
            format!("{}: {tasks} to {}", arguments.plan, work(&plan))
        }
    };
    let mut outcome = outcome(arguments.json, &described(&arguments.plan, &plan), text);
    outcome.warnings = warnings;
    Ok(outcome)
}

async fn run_one(arguments: &RunArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    if let Some(threads) = arguments.threads {
        create::use_threads(usize::from(threads))?;
    }
    let open = OpenOptions::default();
    let index = arguments.index;
    let ran = if let Some(plan) = exports::read(&arguments.plan).await? {
        (plan.run(index, &open, &|_, _| {}).await?, None)
    } else if let Some(plan) = ValidationPlan::find(&arguments.plan, &open).await? {
        (plan.run(index, &open).await?, None)
    } else {
        let plan = TaskPlan::read(&arguments.plan, &open).await?;
        match plan.run(index, &open).await {
            Err(error) if error.cause() == Some(&TaskPlanError::NoValues) => {
                let outside = sample::run_task(&plan, index, &open).await?;
                (outside.is_some(), outside)
            }
            ran => (ran?, None),
        }
    };
    let (is_new, outside) = ran;
    let mut text = match is_new {
        true => format!("{}: task {index} is done", arguments.plan),
        false => format!("{}: task {index} was done already", arguments.plan),
    };
    let mut report = json!({"plan": arguments.plan, "task": index, "repeated": !is_new});
    if let Some(outside) = outside {
        let vertices = count_noun(outside, "vertex", "vertices");
        text = format!("{text}, {vertices} outside");
        report["outside"] = json!(outside);
    }
    Ok(outcome(arguments.json, &report, text))
}

async fn status(arguments: &StatusArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    if let Some(plan) = exports::read(&arguments.plan).await? {
        return exports::status(arguments, &plan).await;
    }
    let open = OpenOptions::default();
    let (status, described) = match ValidationPlan::find(&arguments.plan, &open).await? {
        Some(plan) => {
            let described = described_validation(&arguments.plan, &plan);
            (plan.status(&open).await?, described)
        }
        None => {
            let plan = TaskPlan::read(&arguments.plan, &open).await?;
            (plan.status(&open).await?, described(&arguments.plan, &plan))
        }
    };
    let progress = TaskProgress {
        tasks: status.tasks,
        missing: status.missing,
        is_committed: status.is_committed,
    };
    Ok(progress.outcome(arguments, described))
}

/// The progress of a plan.
struct TaskProgress {
    tasks: usize,
    missing: Vec<usize>,
    is_committed: bool,
}

impl TaskProgress {
    fn outcome(&self, arguments: &StatusArgs, mut report: Value) -> CommandOutcome {
        let missing = self.missing.len();
        let done = self.tasks.saturating_sub(missing);
        let mut text = format!(
            "{}: {done} of {} tasks are done",
            arguments.plan, self.tasks
        );
        if missing > 0 {
            let named: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
            let shown = named.get(..MAX_NAMED).unwrap_or(&named).join(", ");
            let more = if missing > MAX_NAMED { ", …" } else { "" };
            text = format!("{text}; missing: {shown}{more}");
        } else if self.is_committed {
            text.push_str(", and the result is committed");
        }
        report["missing"] = json!(self.missing);
        let mut outcome = outcome(arguments.json, &report, text);
        outcome.is_negative = missing > 0;
        outcome
    }
}

async fn commit(arguments: &CommitArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    if exports::read(&arguments.plan).await?.is_some() {
        return exports::commit(arguments).await;
    }
    let open = OpenOptions::default();
    if ValidationPlan::find(&arguments.plan, &open)
        .await?
        .is_some()
    {
        return validate::commit(&arguments.plan, arguments.json).await;
    }
    let plan = TaskPlan::commit(&arguments.plan, &open).await?;
    let mut report = described(&arguments.plan, &plan);
    let mut text = format!("{}: committed", plan.store());
    let counts = plan.report().cloned().unwrap_or_default();
    for (name, noun, nouns) in [
        ("vertices", "vertex", "vertices"),
        ("chunks", "chunk", "chunks"),
    ] {
        if let Some(count) = counts.get(name).and_then(Value::as_u64) {
            text = format!("{text}, {}", count_noun(count, noun, nouns));
        }
    }
    let counts = Value::Object(counts);
    let notes = migrate::notes(&counts);
    text = [&[text][..], &notes].concat().join("\n");
    report["report"] = counts;
    Ok(outcome(arguments.json, &report, text))
}

fn outcome(json: bool, report: &Value, text: String) -> CommandOutcome {
    CommandOutcome::from(match json {
        true => format!("{report:#}"),
        false => text,
    })
}

fn described(address: &str, plan: &TaskPlan) -> Value {
    json!({
        "plan": address,
        "job": plan.kind().name(),
        "store": plan.store(),
        "level": plan.level(),
        "tasks": plan.tasks(),
        "committed": plan.is_committed(),
    })
}

fn described_validation(address: &str, plan: &ValidationPlan) -> Value {
    json!({
        "plan": address,
        "job": "validate",
        "store": plan.store(),
        "level": null,
        "tasks": plan.tasks(),
        "committed": plan.report().is_some(),
    })
}

fn work(plan: &TaskPlan) -> String {
    match (plan.kind(), plan.level()) {
        (TaskKind::Pyramid, Some(level)) => format!("build level {level} of {}", plan.store()),
        (TaskKind::Migrate, _) => format!("write {}", plan.store()),
        (kind, _) => format!("{} {}", kind.name(), plan.store()),
    }
}
