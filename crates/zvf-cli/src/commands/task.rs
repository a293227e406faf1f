//! `zvf task`: work divided into tasks for the scheduler of a cluster.

use std::{error::Error, io, path::PathBuf, process, thread};

use serde_json::{Value, json};
use zvf::{
    OpenOptions, Plan, TaskKind, TaskPlan, TaskPlanError, TaskPlanOptions, TaskStatus,
    ValidationPlan, Work,
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
    /// Show which tasks of a plan are missing; exits with 1 if any is
    Status(KeptPlanArgs),
    /// Publish or print the result after all tasks, and delete the files that the tasks shared
    #[command(
        after_help = "Fails if a task is missing, or the store was changed since the plan was made. Repeating a commit has
no effect. The commit of a validation prints the report and exits as `zvf validate` does."
    )]
    Commit(KeptPlanArgs),
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

#[derive(Debug, clap::Args)]
struct KeptPlanArgs {
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
        match self {
            Self::Store(plan) => described(plan, address, "level", &plan.level().into()),
            Self::Validation(plan) => described(plan, address, "level", &Value::Null),
            Self::Export(plan) => described(plan, address, "output", &plan.work().target().into()),
        }
    }

    /// Returns what the tasks do and how many there are, as text.
    fn summary(&self, address: &str) -> String {
        let (tasks, work) = match self {
            Self::Store(plan) if plan.tasks() == 0 => {
                return format!("{}: all levels exist", plan.store());
            }
            Self::Store(plan) => {
                let work = match plan.level() {
                    Some(level) => format!("build level {level} of"),
                    None if plan.kind() == TaskKind::Migrate => "write".to_owned(),
                    None => plan.job().to_owned(),
                };
                (plan.tasks(), format!("{work} {}", plan.store()))
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

/// Describes a plan as JSON, with a member of its work.
fn described<W: Work>(plan: &Plan<W>, address: &str, name: &str, value: &Value) -> Value {
    json!({
        "plan": address,
        "job": plan.job(),
        "store": plan.store(),
        (name): value,
        "tasks": plan.tasks(),
        "committed": plan.is_committed(),
    })
}

async fn plan(arguments: &PlanArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = TaskPlanOptions::default().replaces_unfinished(arguments.restart);
    options.tasks = usize::try_from(arguments.tasks).ok();
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
    let done = if is_new {
        "is done"
    } else {
        "was done already"
    };
    let mut text = format!("{}: task {index} {done}", arguments.plan);
    let mut report = json!({"plan": arguments.plan, "task": index, "repeated": !is_new});
    if let Some(outside) = outside {
        let vertices = count_noun(outside, "vertex", "vertices");
        text = format!("{text}, {vertices} outside");
        report["outside"] = json!(outside);
    }
    Ok(outcome(arguments.json, &report, text))
}

async fn status(arguments: &KeptPlanArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let plan = AnyPlan::read(&arguments.plan).await?;
    let (status, mut report) = (plan.status().await?, plan.described(&arguments.plan));
    let missing = status.missing.len();
    let done = status.tasks.saturating_sub(missing);
    let (address, tasks) = (&arguments.plan, status.tasks);
    let mut text = format!("{address}: {done} of {tasks} tasks are done");
    if missing > 0 {
        let named = status.missing.iter().take(MAX_NAMED);
        let shown = named
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
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

async fn commit(arguments: &KeptPlanArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let (address, open) = (arguments.plan.as_str(), OpenOptions::default());
    match AnyPlan::read(address).await? {
        AnyPlan::Validation(_) => validate::commit(address, arguments.json).await,
        AnyPlan::Export(_) => {
            let plan = ExportPlan::commit(address, &open).await?;
            let (target, link) = (plan.work().target(), ExportWork::viewer_link(&plan));
            let mut object = described(&plan, address, "output", &target.into());
            let mut text = format!("{target}: committed");
            let report = plan.report();
            if let Some(report) = &report {
                object["report"] = export::object(target, link.as_deref(), report);
                text = format!("{text}\n{}", export::summary(target, link, report));
            }
            let mut done = outcome(arguments.json, &object, text);
            let notes = report.filter(|_| !arguments.json);
            done.warnings = notes.map(|report| report.notes).unwrap_or_default();
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
            let mut report = described(&plan, address, "level", &plan.level().into());
            report["report"] = counts;
            text = [&[text][..], &notes].concat().join("\n");
            Ok(outcome(arguments.json, &report, text))
        }
    }
}

fn outcome(json: bool, report: &Value, text: String) -> CommandOutcome {
    CommandOutcome::from(if json { format!("{report:#}") } else { text })
}
