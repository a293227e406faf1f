//! `zvf pyramid`: coarser levels of a store.

mod output;

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use zvf::{
    AutoLevels, CrossLevel, MethodKind, ObjectSelection, PyramidLevels, PyramidOptions,
    build::{
        ShardingPolicy,
        coarsen::{Aggregation, Amount, Placement, Sparsity, Strategy},
    },
};

use crate::{
    arguments::named,
    arguments::values::{Extents, ValueError, extents, sharding},
    hint::{Operation, with_hint},
    outcome::CommandOutcome,
    progress::{Progress, ProgressMeter},
    worker_pool::WorkerPool,
};

pub use output::PyramidOutput;

/// Makes coarser levels of a store, which are what large stores are looked at with
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without options it chooses how, and makes levels until the coarsest has less than 100 000 vertices or one chunk.
Objects keep their ids, and all attributes and groups come along. Each level is there when all of it is.

Examples:
  zvf pyramid tracts.zv
  zvf pyramid tracts.zv --levels 2 --method bins --attribute fa=max
  zvf pyramid tracts.zv --refresh"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct PyramidArgs {
    /// The store: a folder or an address.
    #[arg(value_name = "STORE")]
    store: String,
    /// How vertices become fewer: bins are one vertex for all in a cell, subset some of
    /// the points in a cell, simplify what lines need, stride every so many of a line,
    /// collapse edges of a mesh that matter least.
    #[arg(long, value_name = "WAY", value_parser = named(MethodKind::ALL, MethodKind::name))]
    method: Option<MethodKind>,
    /// How many levels.
    #[arg(long, value_name = "N")]
    levels: Option<u32>,
    /// How much larger cells, tolerances or steps become with each level, one number a
    /// level: cells begin with the store's bins. For meshes how many times fewer
    /// vertices there are.
    #[arg(long, value_name = "F,F", value_delimiter = ',')]
    factors: Vec<f64>,
    /// Extent of the first level's cells along each axis.
    #[arg(long, value_name = "A,B,C", value_parser = extents)]
    cell: Option<Extents>,
    /// How far lines may move in the first level, and surfaces in all.
    #[arg(long, value_name = "DISTANCE")]
    tolerance: Option<f64>,
    /// Puts the vertex of a cell at the one that is nearest to the middle.
    #[arg(long)]
    medoid: bool,
    /// Lets objects share points, as paths always do.
    #[arg(long)]
    share: bool,
    /// Points of a cell that stay in a subset.
    #[arg(long, value_name = "N")]
    keep: Option<u32>,
    /// What is drawn by lot is drawn from this.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Drops components of meshes that have fewer faces.
    #[arg(long, value_name = "FACES", default_value_t = 0)]
    cull: u32,
    /// Subsets hold each point once: a level has those that coarser ones do not have.
    #[arg(long)]
    additive: bool,
    /// How many chunks make one of the next level, along each axis.
    #[arg(long, value_name = "N")]
    chunk_scale: Option<u32>,
    /// Puts many chunks in one object: so many along each axis, as --shard=4,4,4, or auto,
    /// or none; as the store's are where this is not said.
    #[arg(long, value_name = "auto|none|A,B,C", value_parser = shards)]
    shard: Option<ShardingPolicy>,
    /// How many times fewer objects each level keeps, one number a level.
    #[arg(long, value_name = "F,F", value_delimiter = ',')]
    sparsity: Vec<f64>,
    /// Which objects stay: random, length, coverage, group, or an attribute as
    /// attribute:NAME or attribute:NAME:least.
    #[arg(long, value_name = "HOW", default_value = "random")]
    sparsity_by: String,
    /// What becomes of the values of an attribute: NAME=RULE with own, mean, sum, min,
    /// max, mode or count.
    #[arg(long, value_name = "NAME=RULE")]
    attribute: Vec<String>,
    /// Which links between levels are stored: none, implicit from fine to coarse,
    /// explicit both ways.
    #[arg(long, value_name = "WHICH", default_value = "implicit", value_parser = named(STORAGES, storage))]
    cross_level: CrossLevel,
    /// How many levels links go over; -1 for all.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    depth: i64,
    /// Shares the chunks of each level among so many processes, as a cluster would.
    #[arg(long, value_name = "N", conflicts_with = "refresh",
        value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Replaces levels that are there.
    #[arg(long)]
    overwrite: bool,
    /// Makes levels anew that are behind since the store was changed, as they were made:
    /// only the chunks that something changed in.
    #[arg(long, conflicts_with_all = ["overwrite", "method", "levels", "factors"])]
    refresh: bool,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    /// Shows no progress.
    #[arg(long, short)]
    quiet: bool,
}

const STORAGES: [CrossLevel; 3] = [CrossLevel::None, CrossLevel::Implicit, CrossLevel::Explicit];

fn storage(storage: CrossLevel) -> &'static str {
    match storage {
        CrossLevel::None => "none",
        CrossLevel::Implicit => "implicit",
        CrossLevel::Explicit => "explicit",
    }
}

fn shards(text: &str) -> Result<ShardingPolicy, ValueError> {
    match text {
        "none" => Ok(ShardingPolicy::None),
        text => sharding(text),
    }
}

/// Why options make no sense.
#[derive(Debug, thiserror::Error)]
enum PyramidUsageError {
    #[error("--factors are numbers above 1, and {0} is not")]
    Factor(f64),
    #[error("--sparsity is how many times fewer objects stay, 1 or more, and {0} is not")]
    Sparsity(f64),
    #[error("--depth is a number of levels, or -1 for all, and {0} is neither")]
    Depth(i64),
    #[error("--tolerance is a distance above 0, and {0} is not")]
    Tolerance(f64),
    #[error("{0:?} is no choice of objects; use random, length, coverage, group or attribute:NAME")]
    Choice(String),
}

/// Makes levels.
pub(crate) async fn run(arguments: &PyramidArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = options(arguments)?;
    let meter = ProgressMeter::default();
    let shown = meter.clone();
    // Levels are counted one after the other: a bar that goes back is no bar.
    let before = Mutex::new((None, 0, 0));
    options.progress = Some(Arc::new(move |level, done, of| {
        let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
        if before.0 != Some(level) {
            *before = (Some(level), before.1 + before.2, of);
        }
        shown.set(before.1 + done, before.1 + of);
    }));
    let what = format!("making levels of {}", arguments.store);
    let progress = Progress::with_meter(arguments.quiet, what, meter);
    let made = match arguments.refresh {
        true => zvf::refresh_pyramid(&arguments.store, &options).await,
        false => zvf::build_pyramid(&arguments.store, &options).await,
    };
    drop(progress);
    let made = made.map_err(|error| with_hint(Operation::Pyramid, error))?;
    let report = PyramidOutput::new(&arguments.store, made, arguments.refresh);
    Ok(CommandOutcome::from(match arguments.json {
        true => format!("{:#}", report.object()),
        false => report.text(),
    }))
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
    automatic.way = arguments.method;
    automatic.levels = arguments.levels;
    automatic.factors.clone_from(&arguments.factors);
    automatic.cell = arguments.cell.as_ref().map(|cell| cell.0.clone());
    automatic.tolerance = arguments.tolerance;
    automatic.placing = if arguments.medoid {
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
        automatic
            .sparsity
            .push(kept(&arguments.sparsity_by, arguments.seed, *fewer)?);
    }
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Auto(automatic);
    for text in &arguments.attribute {
        let (name, rule) = Aggregation::of_attribute(text)?;
        options.rules.insert(name.to_owned(), rule);
    }
    options.cross_level = arguments.cross_level;
    options.depth = match arguments.depth {
        -1 => None,
        depth => Some(u32::try_from(depth).map_err(|_| PyramidUsageError::Depth(depth))?),
    };
    options.overwrite = arguments.overwrite;
    let workers = arguments.workers.map(usize::from);
    options.runner = workers.map(|workers| WorkerPool::new(workers).shared());
    Ok(options)
}

/// Which objects stay.
fn kept(text: &str, seed: u64, fewer: f64) -> Result<ObjectSelection, PyramidUsageError> {
    let mut attribute = None;
    let strategy = match text.split_once(':') {
        None => match text {
            "random" => Strategy::Random { seed },
            "length" => Strategy::Length,
            "coverage" => Strategy::Coverage,
            "group" => Strategy::PerGroup { seed },
            other => return Err(PyramidUsageError::Choice(other.to_owned())),
        },
        Some(("attribute", name)) => {
            let (name, descending) = match name.rsplit_once(':') {
                Some((name, "least")) => (name, false),
                Some((name, "greatest")) => (name, true),
                _ => (name, true),
            };
            attribute = Some(name.to_owned());
            Strategy::Attribute { descending }
        }
        Some(_) => return Err(PyramidUsageError::Choice(text.to_owned())),
    };
    let amount = Amount::Share(1.0 / fewer);
    Ok(ObjectSelection {
        sparsity: Sparsity { amount, strategy },
        attribute,
    })
}
