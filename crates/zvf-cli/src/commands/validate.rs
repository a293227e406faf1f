//! `zvf validate`: whether a store can be trusted.

mod output;
mod rules;
mod sarif;

use std::{error::Error, path};

use zvf::{
    OpenOptions, RepairReport,
    validation::{Depth, ValidateOptions, ValidationReport},
};

use crate::{outcome::CommandOutcome, progress::Progress};

pub use output::{object, table};
pub use rules::{rules_as_json, rules_as_text};
pub use sarif::sarif;

/// Findings of one rule that are shown to people, who see what is wrong by then.
const SHOWN: usize = 10;

/// Says whether a store can be trusted, and what is wrong with it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "L1 looks at nodes, L2 at what they say, L3 at every cell and at what cells say of each other, L4 at whether
it is the geometry that it says it is. Exits with 1 when something is an error.

Examples:
  zvf validate tracts.zv
  zvf validate tracts.zv --level 2 --json
  zvf validate tracts.zv --repair
  zvf validate --rules"
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct ValidateArgs {
    /// A folder, a .zip file, or an address of a kind this build knows.
    #[arg(required_unless_present = "rules")]
    store: Option<String>,
    /// How deep: 1 for nodes, 2 for metadata, 3 for cells, 4 for geometry. Each includes
    /// those before it; 1 and 2 read no cells.
    #[arg(long, value_name = "1..4", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=4))]
    level: u8,
    /// The most findings of one rule that are listed; all are counted. 10 in a table, 1000
    /// otherwise.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Sign no request: for public buckets.
    #[arg(long)]
    anonymous: bool,
    /// First put right what can be without guessing, in one transaction: lists of chunks,
    /// counts, capabilities, bounds, owners of fragments.
    #[arg(long, conflicts_with_all = ["rules", "anonymous"])]
    repair: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Print a SARIF 2.1.0 log, which code hosts and editors show.
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
    /// List the rules, and validate nothing.
    #[arg(long, conflicts_with_all = ["store", "sarif"])]
    rules: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// What was validated, for who shows it.
#[derive(Clone, Copy, Debug)]
pub struct Validated<'a> {
    /// The address, as it was given.
    pub store: &'a str,
    /// How deep.
    pub depth: Depth,
    /// What was found.
    pub report: &'a ValidationReport,
    /// What was put right before, when that was asked for.
    pub repaired: Option<&'a RepairReport>,
}

pub(crate) async fn run(arguments: &ValidateArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let Some(address) = &arguments.store else {
        return Ok(CommandOutcome::from(match arguments.json {
            true => serde_json::to_string_pretty(&rules_as_json())?,
            false => rules_as_text(),
        }));
    };
    let open = OpenOptions::default().anonymous(arguments.anonymous);
    let store = open.open(address)?;
    let progress = Progress::for_store(&store, arguments.quiet);
    let options = options(arguments);
    let (report, repaired) = if arguments.repair {
        let mut repaired = zvf::repair(store, &options).await?;
        (core::mem::take(&mut repaired.left), Some(repaired))
    } else {
        (zvf::validate(store, &options).await?, None)
    };
    drop(progress);
    let validated = Validated {
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
        is_negative: !report.is_ok(),
        ..CommandOutcome::default()
    })
}

fn options(arguments: &ValidateArgs) -> ValidateOptions {
    let mut options = ValidateOptions::default().depth(depth(arguments.level));
    let is_table = !arguments.json && !arguments.sarif;
    let limit = is_table.then_some(SHOWN);
    if let Some(limit) = arguments.limit.or(limit) {
        options.max_findings_per_rule = limit;
    }
    options
}

/// The depth of a number from 1 to 4.
fn depth(number: u8) -> Depth {
    let mut depths = Depth::ALL.into_iter();
    let depth = depths.find(|depth| depth.number() == number);
    depth.unwrap_or(Depth::Semantics)
}

/// The address of the store as a URI that others can be relative to.
fn base(address: &str) -> Result<String, Box<dyn Error>> {
    if address.contains("://") || address.starts_with("memory:") {
        return Ok(format!("{}/", address.trim_end_matches('/')));
    }
    let path = path::absolute(address)?;
    let path = path.to_string_lossy().replace('\\', "/");
    let path = sarif::encoded(path.trim_matches('/'));
    Ok(format!("file:///{path}/"))
}
