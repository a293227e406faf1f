//! `zvf pyramid`: builds coarser levels of a store.

mod output;

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use zvf::{
    AutoLevels, CrossLevel, MethodKind, ObjectSelection, PyramidLevels, PyramidOptions,
    ShardingPolicy, TaskPlan, TaskPlanOptions,
    coarsen::{Aggregation, Placement},
};

use crate::{
    arguments::named,
    arguments::values::{ExtentsArgument, extents, sharding},
    hint::{Operation, with_hint},
    outcome::CommandOutcome,
    progress::{ProgressLine, ProgressMeter},
    worker_pool::WorkerPool,
};

pub use output::PyramidOutput;

/// Build coarser levels of a store, for views of large regions
#[derive(Debug, clap::Args)]
#[command(
    after_help = "By default, the method follows from the kind of geometry, and the coarsest level has fewer than 100,000 vertices
or one chunk. Objects keep their ids, attributes and groups. Each level appears when it is complete.

Examples:
  zvf pyramid tracts.zv
  zvf pyramid tracts.zv --levels 2 --method bins --attribute fa=max
  zvf pyramid tracts.zv --refresh"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct PyramidArgs {
    /// Store: a folder or an address.
    #[arg(value_name = "STORE")]
    store: String,
    /// Method of reduction; chosen by the kind of geometry by default.
    #[arg(long, value_name = "METHOD", long_help = methods(), value_parser = named(MethodKind::ALL, MethodKind::name))]
    method: Option<MethodKind>,
    /// Number of levels.
    #[arg(long, value_name = "N")]
    levels: Option<u32>,
    /// Growth of cells, tolerances or strides with each level, one number per level.
    ///
    /// The first cells are the store's bins times the first factor. For meshes, the factor by which
    /// the number of vertices shrinks.
    #[arg(long, value_name = "FACTOR,…", value_delimiter = ',')]
    factors: Vec<f64>,
    /// Extent of the grid cells of the first level along each axis.
    #[arg(long, value_name = "X,Y,Z", value_parser = extents)]
    cell: Option<ExtentsArgument>,
    /// Maximum displacement of lines in the first level, or of surfaces in every level.
    #[arg(long, value_name = "DISTANCE")]
    tolerance: Option<f64>,
    /// Represent a cell by the vertex nearest to the mean instead of the mean.
    #[arg(long)]
    medoid: bool,
    /// Let objects share vertices, as paths always do.
    #[arg(long)]
    share: bool,
    /// Number of points that a subset keeps per cell.
    #[arg(long, value_name = "N")]
    keep: Option<u32>,
    /// Seed of random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Drop connected components of meshes with fewer faces than this.
    #[arg(long, value_name = "FACES", default_value_t = 0)]
    cull: u32,
    /// Make subsets disjoint: a level omits the points of coarser levels.
    #[arg(long)]
    additive: bool,
    /// With --additive, declare the levels by `refinement: add`, a draft of the format after 0.9.2.
    ///
    /// Readers of this draft return whole levels; those without additive levels refuse the store.
    #[arg(long, requires = "additive")]
    refinement: bool,
    /// Number of chunks along each axis that form one chunk of the next level.
    #[arg(long, value_name = "N")]
    chunk_scale: Option<u32>,
    /// Combine chunks in shards: a number of chunks along each axis, such as --shard=4,4,4, auto or
    /// none; by default as the store declares, or as level 0.
    #[arg(long, value_name = "auto|none|I,J,K", value_parser = sharding)]
    shard: Option<ShardingPolicy>,
    /// Factor by which the number of objects shrinks, one number per level; 1 keeps all.
    ///
    /// Without --method, levels of paths keep a quarter of the paths by default, and at least 10,000.
    #[arg(long, value_name = "FACTOR,…", value_delimiter = ',')]
    sparsity: Vec<f64>,
    /// Choice of the objects to keep: random, length, coverage, group, attribute:NAME or
    /// attribute:NAME:least.
    #[arg(long, value_name = "CHOICE", default_value = "random")]
    sparsity_by: String,
    /// Aggregation of an attribute: NAME=RULE with the rule own, mean, sum, min, max, mode or
    /// count.
    #[arg(long, value_name = "NAME=RULE")]
    attribute: Vec<String>,
    /// Links between levels: none, implicit (from fine to coarse) or explicit (both ways).
    #[arg(long, value_name = "KIND", default_value = "implicit", value_parser = named(CrossLevel::ALL, CrossLevel::as_str))]
    cross_level: CrossLevel,
    /// Maximum number of levels that a link spans; -1 for all.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    depth: i64,
    /// Share the chunks of each level among this many processes, as a cluster would.
    #[arg(long, value_name = "N", conflicts_with = "refresh",
        value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Replace existing levels.
    #[arg(long)]
    overwrite: bool,
    /// Rebuild only the chunks of existing levels that are out of date, with the original method.
    #[arg(long, conflicts_with_all = ["overwrite", "method", "levels", "factors"])]
    refresh: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// Returns the help of `--method`.
fn methods() -> String {
    let mut texts = MethodKind::ALL.map(|kind| format!("`{}` {}", kind.name(), kind.description()));
    if let Some(last) = texts.last_mut() {
        last.insert_str(0, "and ");
    }
    let texts = texts.join(", ");
    format!("Method of reduction; chosen by the kind of geometry by default.\n\n{texts}.")
}

/// Options with invalid values.
#[derive(Debug, thiserror::Error)]
enum PyramidUsageError {
    #[error("--factors must be above 1, and {0} is not")]
    Factor(f64),
    #[error("--sparsity must be 1 or more, and {0} is not")]
    Sparsity(f64),
    #[error(
        "--depth must be a number of levels below 2147483648, or -1 for all, and {0} is neither"
    )]
    Depth(i64),
    #[error("--tolerance must be a distance above 0, and {0} is not")]
    Tolerance(f64),
    #[error(
        "{0:?} is not a choice of objects; use random, length, coverage, group or attribute:NAME"
    )]
    Choice(String),
    #[error("a plan of tasks supports neither --refresh nor --workers; leave them out")]
    Planned,
}

/// Builds the levels.
pub(crate) async fn run(arguments: &PyramidArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = options(arguments)?;
    let meter = ProgressMeter::default();
    let shown = meter.clone();
    // The total is reported per level. Sum the levels, so that the bar never moves backwards.
    let before = Mutex::new((None, 0, 0));
    options.progress = Some(Arc::new(move |level, done, of| {
        let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
        if before.0 != Some(level) {
            *before = (Some(level), before.1 + before.2, of);
        }
        shown.set(before.1 + done, before.1 + of);
    }));
    let what = format!("building levels of {}", arguments.store);
    let progress = ProgressLine::with_meter(arguments.quiet, what, meter);
    let made = if arguments.refresh {
        zvf::refresh_pyramid(&arguments.store, &options).await
    } else {
        zvf::build_pyramid(&arguments.store, &options).await
    };
    drop(progress);
    let made = made.map_err(|error| with_hint(Operation::Pyramid, error))?;
    let report = PyramidOutput::new(&arguments.store, made, arguments.refresh);
    let text = if arguments.json {
        format!("{:#}", report.object())
    } else {
        report.text()
    };
    Ok(CommandOutcome {
        text,
        warnings: report.warning().into_iter().collect(),
        ..CommandOutcome::default()
    })
}

/// Plans the first level that does not exist.
pub(crate) async fn plan(
    arguments: &PyramidArgs,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Box<dyn Error>> {
    if arguments.refresh || arguments.workers.is_some() {
        return Err(PyramidUsageError::Planned.into());
    }
    let planned = zvf::plan_pyramid(&arguments.store, &options(arguments)?, tasks).await;
    planned.map_err(|error| with_hint(Operation::Pyramid, error))
}

fn options(arguments: &PyramidArgs) -> Result<PyramidOptions, Box<dyn Error>> {
    if let Some(factor) = arguments
        .factors
        .iter()
        .find(|factor| !(**factor > 1.0 && factor.is_finite()))
    {
        return Err(PyramidUsageError::Factor(*factor).into());
    }
    if let Some(tolerance) = arguments
        .tolerance
        .filter(|tolerance| tolerance.is_nan() || *tolerance <= 0.0)
    {
        return Err(PyramidUsageError::Tolerance(tolerance).into());
    }
    let mut automatic = AutoLevels::default();
    automatic.method = arguments.method;
    automatic.levels = arguments.levels;
    automatic.factors.clone_from(&arguments.factors);
    automatic.cell = arguments.cell.as_ref().map(|cell| cell.0.clone());
    automatic.tolerance = arguments.tolerance;
    automatic.placement = if arguments.medoid {
        Placement::Medoid
    } else {
        Placement::Mean
    };
    automatic.share = arguments.share;
    automatic.keep = arguments.keep;
    automatic.seed = arguments.seed;
    automatic.cull = arguments.cull;
    automatic.additive = arguments.additive;
    automatic.chunk_scale = arguments.chunk_scale;
    automatic.sharding.clone_from(&arguments.shard);
    for fewer in &arguments.sparsity {
        if !(*fewer >= 1.0 && fewer.is_finite()) {
            return Err(PyramidUsageError::Sparsity(*fewer).into());
        }
        let kept = ObjectSelection::parse(&arguments.sparsity_by, arguments.seed, 1.0 / fewer);
        let wrong = || PyramidUsageError::Choice(arguments.sparsity_by.clone());
        automatic.sparsity.push(kept.ok_or_else(wrong)?);
    }
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Auto(automatic);
    for text in &arguments.attribute {
        let (name, rule) = Aggregation::of_attribute(text)?;
        options.rules.insert(name.to_owned(), rule);
    }
    options.cross_level = arguments.cross_level;
    options.depth = depth(arguments.depth)?;
    options.refinement = arguments.refinement;
    options.overwrite = arguments.overwrite;
    let workers = arguments.workers.map(usize::from);
    options.runner = workers.map(|workers| WorkerPool::new(workers).shared());
    Ok(options)
}

/// Returns the number of levels that `--depth` means; `None` for all.
fn depth(number: i64) -> Result<Option<u32>, PyramidUsageError> {
    if number == -1 {
        return Ok(None);
    }
    // The format has no larger number than that of an i32.
    let levels = i32::try_from(number).ok().map(u32::try_from);
    match levels {
        Some(Ok(levels)) => Ok(Some(levels)),
        _ => Err(PyramidUsageError::Depth(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::depth;

    #[test]
    fn depths_that_the_format_cannot_express_are_refused() {
        assert_eq!(depth(-1).unwrap(), None);
        assert_eq!(depth(0).unwrap(), Some(0));
        assert_eq!(depth(i32::MAX.into()).unwrap(), Some(2_147_483_647));
        for number in [-2, 2_147_483_648, 3_000_000_000, i64::MAX] {
            assert!(depth(number).is_err(), "{number}");
        }
    }
}
