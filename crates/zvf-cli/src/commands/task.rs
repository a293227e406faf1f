//! `zvf task`: work divided into tasks for the scheduler of a cluster.

use std::{error::Error, io, path::PathBuf, process, thread};

use serde_json::{Value, json};
use zvf::{
    OpenOptions, TaskKind, TaskPlan, TaskPlanError, TaskPlanOptions, TaskStatus, ValidationPlan,
};
use zvf_serve::{ExportPlan, ExportWork};

use super::{
    create::{self, CreateArgs},
    export::{self, ExportArgs},
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

/// A plan of any work.
enum AnyPlan {
    Store(TaskPlan),
    Validation(ValidationPlan),
    Export(ExportPlan),
}

impl AnyPlan {
    async fn read(address: &str) -> Result<Self, Box<dyn Error>> {
        let open = OpenOptions::default();
        if let Some(plan) = ExportPlan::find(address, &open).await? {
            return Ok(Self::Export(plan));
        }
        Ok(match ValidationPlan::find(address, &open).await? {
            Some(plan) => Self::Validation(plan),
            None => Self::Store(TaskPlan::read(address, &open).await?),
        })
    }

    async fn status(&self) -> Result<TaskStatus, Box<dyn Error>> {
        let open = OpenOptions::default();
        Ok(match self {
            Self::Store(plan) => plan.status(&open).await?,
            Self::Validation(plan) => plan.status(&open).await?,
            Self::Export(plan) => plan.status(&open).await?,
        })
    }

    fn described(&self, address: &str) -> Value {
        let (job, store, level, tasks, committed) = match self {
            Self::Store(plan) => {
                let (job, level) = (plan.kind().name(), plan.level());
                (job, plan.store(), level, plan.tasks(), plan.is_committed())
            }
            Self::Validation(plan) => {
                let committed = plan.is_committed();
                ("validate", plan.store(), None, plan.tasks(), committed)
            }
            Self::Export(plan) => {
                return json!({
                    "plan": address,
                    "job": "export precomputed",
                    "store": plan.store(),
                    "output": plan.work().target(),
                    "tasks": plan.tasks(),
                    "committed": plan.is_committed(),
                });
            }
        };
        json!({
            "plan": address,
            "job": job,
            "store": store,
            "level": level,
            "tasks": tasks,
            "committed": committed,
        })
    }

    /// Returns what the tasks do and how many there are, as text.
    fn summary(&self, address: &str) -> String {
        let (tasks, work) = match self {
            Self::Store(plan) => {
                let store = plan.store();
                if plan.tasks() == 0 {
                    return format!("{store}: all levels exist");
                }
                let work = match (plan.kind(), plan.level()) {
                    (TaskKind::Pyramid, Some(level)) => format!("build level {level} of {store}"),
                    (TaskKind::Migrate, _) => format!("write {store}"),
                    (kind, _) => format!("{} {store}", kind.name()),
                };
                (plan.tasks(), work)
            }
            Self::Validation(plan) => (plan.tasks(), format!("validate {}", plan.store())),
            Self::Export(plan) => {
                let (store, target) = (plan.store(), plan.work().target());
                (plan.tasks(), format!("export {store} to {target}"))
            }
        };
        let tasks = count_noun(len_u64(tasks), "task", "tasks");
        format!("{address}: {tasks} to {work}")
    }
}

async fn plan(arguments: &PlanArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = TaskPlanOptions::default();
    options.tasks = usize::try_from(arguments.tasks).ok();
    options.replaces_unfinished = arguments.restart;
    let (address, open) = (arguments.plan.as_str(), OpenOptions::default());
    let mut warnings = Vec::new();
    let planned = match &arguments.job {
        PlannedCommand::Create(args) => {
            let planned = create::plan(args, &options).await?;
            warnings = planned.1;
            AnyPlan::Store(planned.0)
        }
        PlannedCommand::Pyramid(args) => AnyPlan::Store(pyramid::plan(args, &options).await?),
        PlannedCommand::Sample(args) => AnyPlan::Store(sample::plan(args, &options).await?),
        PlannedCommand::Migrate(args) => AnyPlan::Store(migrate::plan(args, &options).await?),
        PlannedCommand::Export(args) => AnyPlan::Export(export::plan(args, options).await?),
        PlannedCommand::Validate(args) => {
            AnyPlan::Validation(validate::plan(args, address, &options).await?)
        }
    };
    match &planned {
        AnyPlan::Store(plan) => plan.write(address, &open).await?,
        AnyPlan::Export(plan) => plan.write(address, &open).await?,
        // It is written with its survey.
        AnyPlan::Validation(_) => {}
    }
    let text = planned.summary(address);
    let mut outcome = outcome(arguments.json, &planned.described(address), text);
    outcome.warnings = warnings;
    Ok(outcome)
}

async fn run_one(arguments: &RunArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    if let Some(threads) = arguments.threads {
        create::use_threads(usize::from(threads))?;
    }
    let open = OpenOptions::default();
    let index = arguments.index;
    let (is_new, outside) = match AnyPlan::read(&arguments.plan).await? {
        AnyPlan::Export(plan) => (plan.run(index, &open).await?, None),
        AnyPlan::Validation(plan) => (plan.run(index, &open).await?, None),
        AnyPlan::Store(plan) => match plan.run(index, &open).await {
            Err(error) if error.cause() == Some(&TaskPlanError::NoValues) => {
                let outside = sample::run_task(&plan, index, &open).await?;
                (outside.is_some(), outside)
            }
            ran => (ran?, None),
        },
    };
    let mut text = if is_new {
        format!("{}: task {index} is done", arguments.plan)
    } else {
        format!("{}: task {index} was done already", arguments.plan)
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
    let plan = AnyPlan::read(&arguments.plan).await?;
    let (status, mut report) = (plan.status().await?, plan.described(&arguments.plan));
    let missing = status.missing.len();
    let done = status.tasks.saturating_sub(missing);
    let mut text = format!(
        "{}: {done} of {} tasks are done",
        arguments.plan, status.tasks
    );
    if missing > 0 {
        let named: Vec<String> = status.missing.iter().map(ToString::to_string).collect();
        let shown = named.get(..MAX_NAMED).unwrap_or(&named).join(", ");
        let more = if missing > MAX_NAMED { ", …" } else { "" };
        text = format!("{text}; missing: {shown}{more}");
    } else if status.is_committed {
        text.push_str(", and the result is committed");
    }
    report["missing"] = json!(status.missing);
    let mut outcome = outcome(arguments.json, &report, text);
    outcome.is_negative = missing > 0;
    Ok(outcome)
}

async fn commit(arguments: &CommitArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let (address, open) = (arguments.plan.as_str(), OpenOptions::default());
    match AnyPlan::read(address).await? {
        AnyPlan::Validation(_) => validate::commit(address, arguments.json).await,
        AnyPlan::Export(_) => {
            let plan = ExportPlan::commit(address, &open).await?;
            let target = plan.work().target();
            let mut text = format!("{target}: committed");
            let (report, link) = (plan.report(), ExportWork::viewer_link(&plan));
            let mut object = AnyPlan::Export(plan.clone()).described(address);
            let mut warnings = Vec::new();
            if let Some(report) = report {
                object["report"] = export::object(target, link.as_deref(), &report);
                text = format!("{text}\n{}", export::summary(target, link, &report));
                warnings = report.notes;
            }
            let mut done = outcome(arguments.json, &object, text);
            if !arguments.json {
                done.warnings = warnings;
            }
            Ok(done)
        }
        AnyPlan::Store(_) => {
            let plan = TaskPlan::commit(address, &open).await?;
            let mut text = format!("{}: committed", plan.store());
            let counts = plan.report().map_or_else(|| json!({}), Value::from);
            for (name, noun, nouns) in [
                ("vertices", "vertex", "vertices"),
                ("chunks", "chunk", "chunks"),
            ] {
                if let Some(count) = counts.get(name).and_then(Value::as_u64) {
                    text = format!("{text}, {}", count_noun(count, noun, nouns));
                }
            }
            let notes = migrate::notes(&counts);
            let mut report = AnyPlan::Store(plan).described(address);
            report["report"] = counts;
            text = [&[text][..], &notes].concat().join("\n");
            Ok(outcome(arguments.json, &report, text))
        }
    }
}

fn outcome(json: bool, report: &Value, text: String) -> CommandOutcome {
    CommandOutcome::from(if json { format!("{report:#}") } else { text })
}
