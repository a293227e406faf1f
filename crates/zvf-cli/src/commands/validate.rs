//! `zvf validate`: checks a store against the rules of the format, and repairs it.

mod output;
mod rules;
mod sarif;

use std::{error::Error, path};

use zvf::{
    Depth, OpenOptions, RepairReport, Severity, TaskPlanOptions, ValidateOptions, ValidationPlan,
    ValidationReport, ValidationWork,
};

use crate::{
    display::count_noun,
    outcome::{CommandOutcome, unfinished_warning},
    progress::ProgressLine,
};

pub use output::{object, table};
pub use rules::{rules_as_json, rules_as_text};
pub use sarif::sarif;

/// Maximum number of findings per rule in text output.
const MAX_SHOWN: usize = 10;

/// Check a store against the rules of the format
#[derive(Debug, clap::Args)]
#[command(
    after_help = "L1 checks nodes, L2 their metadata, L3 every cell and the relations between cells, L4 the geometry. Exits with 1
if there is an error.

Examples:
  zvf validate tracts.zv
  zvf validate tracts.zv --level 2 --json
  zvf validate tracts.zv --repair
  zvf validate --rules"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct ValidateArgs {
    /// Store: a folder, a .zip file, or an address that this build supports.
    #[arg(required_unless_present = "rules")]
    store: Option<String>,
    #[command(flatten)]
    checks: CheckArgs,
    /// Repair the store first, each round of repairs in one transaction.
    ///
    /// Repairs only values that follow from other data: chunk lists, counts, capabilities, bounds,
    /// owners of fragments. Values that follow from damaged data are left as they are. In a sealed
    /// store, every file that differs from the inventory counts as damaged.
    #[arg(long, conflicts_with_all = ["rules", "anonymous"])]
    repair: bool,
    /// Take files as right where they differ from the inventory of a sealed store or from the node copy.
    ///
    /// Another program that changes a store leaves such differences. Nothing distinguishes them from
    /// damage: use this only if no file was damaged. Add `--seal` for a sealed store.
    #[arg(long, requires = "repair")]
    trust_files: bool,
    /// Seal the store after the checks, if they find no error: add an inventory against which every
    /// read of the store is checked.
    ///
    /// A store that another program changed is sealed again. Its files differ from the former
    /// inventory, which causes a warning, because nothing distinguishes a change from damage. Needs
    /// depth 3 or 4, which compare files with the inventory.
    #[arg(long, conflicts_with_all = ["rules", "anonymous"])]
    seal: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Print a SARIF 2.1.0 log, for code hosts and editors.
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
    /// List the rules, and validate nothing.
    #[arg(long, conflicts_with_all = ["store", "sarif"])]
    rules: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// Arguments of a validation and of its plan.
#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// Depth of the checks: 1 nodes, 2 metadata, 3 cells, 4 geometry.
    ///
    /// Each includes the ones before it. Depths 1 and 2 read no cells.
    #[arg(long, value_name = "DEPTH", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=4))]
    level: u8,
    /// Maximum number of findings listed per rule; all are counted.
    ///
    /// The default is 10 for text and 1000 for JSON and SARIF.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
}

/// Plan the validation of a store, whose report the commit prints
#[derive(Debug, clap::Args)]
pub(crate) struct PlanValidateArgs {
    /// Store: a folder, a .zip file, or an address that this build supports.
    store: String,
    #[command(flatten)]
    checks: CheckArgs,
}

/// Why arguments of a validation cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum ValidateError {
    /// A damaged store would be sealed again without a warning.
    #[error(
        "--seal needs checks of depth 3 or 4, which compare files with the inventory: omit --level {0}"
    )]
    ShallowSeal(u8),
}

/// A validated store, to be formatted.
#[derive(Clone, Copy, Debug)]
pub struct StoreValidation<'a> {
    /// Address as given.
    pub store: &'a str,
    /// Depth of the checks.
    pub depth: Depth,
    /// Findings.
    pub report: &'a ValidationReport,
    /// Repairs made before, if requested.
    pub repaired: Option<&'a RepairReport>,
}

pub(crate) async fn run(arguments: &ValidateArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let Some(address) = &arguments.store else {
        return Ok(CommandOutcome::from(if arguments.json {
            serde_json::to_string_pretty(&rules_as_json())?
        } else {
            rules_as_text()
        }));
    };
    if arguments.seal && depth(arguments.checks.level) < Depth::Consistency {
        return Err(ValidateError::ShallowSeal(arguments.checks.level).into());
    }
    let open = OpenOptions::default().anonymous(arguments.checks.anonymous);
    let store = open.open(address)?;
    let progress = ProgressLine::for_store(&store, arguments.quiet);
    let options = options(arguments);
    let (mut report, repaired) = if arguments.repair {
        let mut repaired = if arguments.trust_files {
            zvf::repair_trusting_files(store.clone(), &options).await?
        } else {
            zvf::repair(store.clone(), &options).await?
        };
        (core::mem::take(&mut repaired.left), Some(repaired))
    } else {
        (zvf::validate(store.clone(), &options).await?, None)
    };
    let unfinished = repaired
        .as_ref()
        .and_then(|repaired| repaired.unfinished.as_ref());
    let mut warnings: Vec<String> = unfinished_warning(unfinished).into_iter().collect();
    // Repaired files no longer differ.
    let trusted = repaired.as_ref().map_or(0, |repaired| repaired.trusted);
    if arguments.seal {
        let errors = report.count(Severity::Error);
        if zvf::seal_validated(store, &mut report).await?.is_some() {
            warnings.extend(sealed_again(errors.max(trusted)));
        }
    }
    drop(progress);
    let validated = StoreValidation {
        store: address,
        depth: options.depth,
        report: &report,
        repaired: repaired.as_ref(),
    };
    let text = if arguments.json {
        serde_json::to_string_pretty(&object(validated))?
    } else if arguments.sarif {
        serde_json::to_string_pretty(&sarif(validated, &base(address)?))?
    } else {
        table(validated)
    };
    Ok(CommandOutcome {
        text,
        warnings,
        is_negative: !report.is_ok(),
        ..CommandOutcome::default()
    })
}

/// Plans the validation of a store, and writes the plan.
pub(crate) async fn plan(
    arguments: &PlanValidateArgs,
    address: &str,
    tasks: &TaskPlanOptions,
) -> Result<ValidationPlan, Box<dyn Error>> {
    let checks = &arguments.checks;
    let mut work = ValidationWork::default()
        .depth(depth(checks.level))
        .anonymous(checks.anonymous);
    work.limit = checks.limit;
    let open = OpenOptions::default();
    Ok(zvf::plan_validation(&arguments.store, address, work, tasks, &open).await?)
}

/// Joins the outcomes of the tasks of a plan.
pub(crate) async fn commit(address: &str, is_json: bool) -> Result<CommandOutcome, Box<dyn Error>> {
    let limit = (!is_json).then_some(MAX_SHOWN);
    let plan = ValidationPlan::commit_with(address, limit, &OpenOptions::default()).await?;
    let report = plan.report().unwrap_or_default();
    let validated = StoreValidation {
        store: plan.store(),
        depth: plan.work().depth,
        report: &report,
        repaired: None,
    };
    let text = if is_json {
        serde_json::to_string_pretty(&object(validated))?
    } else {
        table(validated)
    };
    Ok(CommandOutcome {
        text,
        is_negative: !report.is_ok(),
        ..CommandOutcome::default()
    })
}

/// Returns the warning about files that differed from the former inventory.
fn sealed_again(differing: u64) -> Option<String> {
    let files = count_noun(differing, "file", "files");
    (differing > 0).then(|| {
        format!("{files} differed from the inventory; the new one describes the present state of the store")
    })
}

fn options(arguments: &ValidateArgs) -> ValidateOptions {
    let mut options = ValidateOptions::default().depth(depth(arguments.checks.level));
    let is_table = !arguments.json && !arguments.sarif;
    let limit = is_table.then_some(MAX_SHOWN);
    if let Some(limit) = arguments.checks.limit.or(limit) {
        options.max_findings_per_rule = limit;
    }
    options
}

/// Returns the depth of a number from 1 to 4.
fn depth(number: u8) -> Depth {
    let mut depths = Depth::ALL.into_iter();
    let depth = depths.find(|depth| depth.number() == number);
    depth.unwrap_or(Depth::Semantics)
}

/// Returns the address of the store as a base URI.
fn base(address: &str) -> Result<String, Box<dyn Error>> {
    if address.contains("://") || address.starts_with("memory:") {
        return Ok(format!("{}/", address.trim_end_matches('/')));
    }
    let path = path::absolute(address)?
        .to_string_lossy()
        .replace('\\', "/");
    let path = sarif::encoded(path.trim_matches('/'));
    Ok(format!("file:///{path}/"))
}
