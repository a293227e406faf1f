//! `zvf sample`: samples a volume at the vertices of a store.

use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::json;
use zvf::{
    AttributeSpec, Dataset, ObjectReduction, OpenOptions, TaskPlan, TaskPlanOptions, VertexFn,
    plan_object_attribute, plan_vertex_attribute, write_object_attribute, write_vertex_attribute,
};
use zvf_dense::{
    DenseArray, ReadCost,
    npy::NpyArray,
    sample::{
        Affine, Interpolation, Outside, SampleOptions, SampleRecipe, Sampler, check_overlap,
        outside_note,
    },
};
use zvf_files::length_scales;

use crate::{
    dense::{self, MemoryArgs},
    display::{count_noun, group_digits},
    hint::{Operation, with_hint},
    outcome::{CommandOutcome, unfinished_warning},
};

/// Sample a volume at every vertex of level 0 and store the values as an attribute of vertices or
/// objects
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Axis i of the store, after --affine, is axis i of the volume; the centre of voxel n is at n. Further axes of the volume
become several values per vertex. Without --affine, positions in a NIfTI volume are mapped to voxels by the inverse of its
sform, or else its qform, in the unit of its header, which is mm unless it names another. The attribute is written in one transaction.

Examples:
  zvf sample tracts.zv md.nii --into md
  zvf sample tracts.zv volume.npy --into t1 --outside edge
  zvf sample tracts.zv volume.npy --into mean_t1 --reduce object:mean"
)]
pub(crate) struct SampleArgs {
    /// Store, of format 0.9 or 0.10.
    store: String,
    /// Volume: a .nii, .nii.gz, .tet, .b2nd or .npy file, or the folder of a Zarr array.
    volume: PathBuf,
    /// Name of the attribute.
    #[arg(long, value_name = "NAME")]
    into: String,
    /// Interpolation between voxels.
    #[arg(long, value_name = "METHOD", default_value = "linear")]
    interp: Interp,
    /// Matrix from positions to voxel indices, with one more row and column than there are axes: a
    /// JSON, text or .npy file. Replaces the map of a NIfTI volume.
    #[arg(long, value_name = "FILE")]
    affine: Option<PathBuf>,
    /// Value of vertices outside the volume: a number, or `edge` for that of the nearest voxel; by
    /// default NaN, or 0 for integers with `--interp nearest`.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    outside: Option<OutsideArg>,
    /// Dataset of a .tet file; optional if it has only one.
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Store an attribute of objects, aggregated from their vertices without NaN: object:mean,
    /// object:sum, object:min or object:max.
    #[arg(long, value_name = "object:RULE")]
    reduce: Option<ReductionArg>,
    /// Replace an existing attribute of this name.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Interp {
    /// Nearest voxel; integers stay integers.
    Nearest,
    Linear,
    /// Catmull-Rom.
    Cubic,
}

#[derive(Clone, Copy, Debug)]
struct OutsideArg(Outside);

impl core::str::FromStr for OutsideArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "edge" {
            return Ok(Self(Outside::Edge));
        }
        let number: f64 = text
            .parse()
            .map_err(|_| "give a number or edge".to_owned())?;
        // Decimal text of a whole number is exact.
        match text.parse::<i128>() {
            Ok(whole) if format!("{number:.0}").parse() != Ok(whole) => Err(format!(
                "the number becomes {number:.0} in float64; give one that float64 holds"
            )),
            _ => Ok(Self(Outside::Fill(number))),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct ReductionArg(ObjectReduction);

impl core::str::FromStr for ReductionArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_prefix("object:");
        let mut known = ObjectReduction::ALL.into_iter();
        let known = known.find(|known| name == Some(known.name()));
        known
            .map(Self)
            .ok_or("use object:mean, object:sum, object:min or object:max")
    }
}

/// Writes the attribute.
pub(crate) async fn run(args: &SampleArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let (sampling, affine_of) = Sampling::of(args).await?;
    let spec = sampling.spec(args);
    let (store, values) = (&args.store, sampling.values());
    let written = match args.reduce {
        None => write_vertex_attribute(store, &spec, values).await,
        Some(ReductionArg(reduction)) => {
            write_object_attribute(store, &spec, reduction, values).await
        }
    };
    let written = written.map_err(|error| with_hint(Operation::Sample, error))?;
    let (outside, reads) = (sampling.outside(), sampling.reads());
    let notes: Vec<String> = outside_note(outside, written.vertices)
        .filter(|_| args.outside.is_none())
        .into_iter()
        .collect();
    let dtype = match args.reduce {
        None => spec.kind.name(),
        Some(_) => "float64",
    };
    let text = if args.json {
        serde_json::to_string_pretty(&json!({
            "store": args.store,
            "attribute": args.into,
            "dtype": dtype,
            "row_shape": spec.row_shape,
            "vertices": written.vertices,
            "outside": outside,
            "affine": affine_of,
            "chunks": written.chunks,
            "batches": written.batches,
            "blocks": reads.blocks,
            "bytes_read": reads.bytes_read,
            "bytes_written": written.bytes,
            "transaction": written.transaction,
            "notes": notes,
        }))?
    } else {
        format!(
            "{}: {} of {}, {} of them outside; {} bytes written",
            args.into,
            dtype,
            count_noun(written.vertices, "vertex", "vertices"),
            group_digits(outside),
            group_digits(written.bytes),
        )
    };
    let warning = unfinished_warning(written.unfinished.as_ref());
    Ok(CommandOutcome {
        text,
        warnings: warning.into_iter().chain(notes).collect(),
        ..CommandOutcome::default()
    })
}

/// Plans the attribute.
pub(crate) async fn plan(
    args: &SampleArgs,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Box<dyn Error>> {
    let (mut sampling, _) = Sampling::of(args).await?;
    sampling.recipe.volume = absolute(&args.volume)?;
    let (spec, open) = (sampling.spec(args), OpenOptions::default());
    let recipe = sampling.recipe.to_json().into();
    let planned = match args.reduce {
        None => plan_vertex_attribute(&args.store, &spec, recipe, &open, tasks).await,
        Some(ReductionArg(reduction)) => {
            plan_object_attribute(&args.store, &spec, reduction, recipe, &open, tasks).await
        }
    };
    planned.map_err(|error| with_hint(Operation::Sample, error))
}

/// Runs a task of a planned attribute. Returns the number of vertices outside the volume; `None` if
/// the task was done already.
pub(crate) async fn run_task(
    plan: &TaskPlan,
    index: usize,
    open: &OpenOptions,
) -> Result<Option<u64>, Box<dyn Error>> {
    let recipe = SampleRecipe::from_json(plan.recipe().as_ref())
        .ok_or("its values are not sampled from a volume; run it in its program")?;
    let memory = MemoryArgs::of(recipe.options.budget);
    let array = dense::open(Path::new(&recipe.volume), recipe.dataset.as_deref(), memory)?;
    let axes = Dataset::open_with(plan.store(), open)
        .await?
        .root()
        .axes
        .len();
    let sampling = Sampling::new(Arc::from(array), axes, recipe)?;
    let is_new = plan.run_with(index, Some(sampling.values()), open).await?;
    Ok(is_new.then(|| sampling.outside()))
}

/// A volume that is sampled, and what was found so far.
struct Sampling {
    recipe: SampleRecipe,
    /// All batches share one sampler, so that it caches voxels across batches.
    sampler: Arc<Sampler<Arc<dyn DenseArray>>>,
    outside: Arc<AtomicU64>,
    reads: Arc<Mutex<ReadCost>>,
}

impl Sampling {
    /// Opens the volume. Also returns the origin of the map to its voxels.
    async fn of(args: &SampleArgs) -> Result<(Self, Option<&'static str>), Box<dyn Error>> {
        let dataset = Dataset::open(&args.store).await?;
        let Volume {
            array,
            affine,
            affine_of,
        } = Volume::open(args, &dataset)?;
        let options = SampleOptions {
            interpolation: match args.interp {
                Interp::Nearest => Interpolation::Nearest,
                Interp::Linear => Interpolation::Linear,
                Interp::Cubic => Interpolation::Cubic,
            },
            affine,
            outside: args.outside.map(|OutsideArg(outside)| outside),
            budget: args.memory.bytes(),
        };
        let mut recipe = SampleRecipe::new(args.volume.to_string_lossy(), options);
        recipe.dataset.clone_from(&args.dataset);
        let axes = dataset.root().axes.len();
        if let Some(affine) = recipe
            .options
            .affine
            .as_ref()
            .filter(|affine| affine.axes() != axes)
        {
            let side = axes.saturating_add(1);
            let file = args.affine.as_ref().unwrap_or(&args.volume).display();
            return Err(format!(
                "{file}: the matrix is for {} axes, and {} has {axes}; \
                 give --affine with {side} rows of {side} numbers",
                affine.axes(),
                args.store,
            )
            .into());
        }
        if let Some(bounds) = dataset.root().bounds.as_ref()
            && recipe.options.outside.is_none()
            && array.shape().len() >= axes
        {
            let affine = recipe.options.affine.as_ref();
            check_overlap(array.shape(), affine, bounds.lower(), bounds.upper())?;
        }
        Ok((Self::new(array, axes, recipe)?, affine_of))
    }

    fn new(
        array: Arc<dyn DenseArray>,
        axes: usize,
        recipe: SampleRecipe,
    ) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            sampler: Arc::new(Sampler::new(array, axes, &recipe.options)?),
            recipe,
            outside: Arc::default(),
            reads: Arc::default(),
        })
    }

    fn spec(&self, args: &SampleArgs) -> AttributeSpec {
        let mut spec = AttributeSpec::new(&args.into, self.sampler.kind());
        spec.row_shape = self.sampler.row_shape().to_vec();
        spec.overwrite = args.overwrite;
        if let Some(bytes) = args.memory.bytes() {
            spec.memory = bytes;
        }
        spec
    }

    /// Returns the function that samples.
    fn values(&self) -> Arc<VertexFn> {
        let sampler = Arc::clone(&self.sampler);
        let (outside, reads) = (Arc::clone(&self.outside), Arc::clone(&self.reads));
        Arc::new(move |positions: &[f64]| {
            let sampled = sampler.sample(positions)?;
            outside.fetch_add(sampled.outside, Ordering::Relaxed);
            let mut all = reads.lock().unwrap_or_else(PoisonError::into_inner);
            all.blocks += sampled.reads.blocks;
            all.bytes_read += sampled.reads.bytes_read;
            Ok(sampled.values)
        })
    }

    /// Returns the number of vertices outside the volume so far.
    fn outside(&self) -> u64 {
        self.outside.load(Ordering::Relaxed)
    }

    fn reads(&self) -> ReadCost {
        *self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a path as an absolute one, because tasks may run in other folders. Addresses with a scheme
/// are returned as they are.
fn absolute(volume: &Path) -> Result<String, Box<dyn Error>> {
    let text = volume
        .to_str()
        .ok_or("the path of the volume is not UTF-8")?;
    if text.contains("://") {
        return Ok(text.to_owned());
    }
    Ok(std::path::absolute(volume)?.display().to_string())
}

/// A volume, and the map from positions to its voxels.
struct Volume {
    array: Arc<dyn DenseArray>,
    affine: Option<Affine>,
    /// The file or the field of a header that the map is from.
    affine_of: Option<&'static str>,
}

impl Volume {
    fn open(args: &SampleArgs, dataset: &Dataset) -> Result<Self, Box<dyn Error>> {
        let given = args.affine.as_deref().map(affine).transpose()?;
        let own = match args.dataset {
            None => dense::nifti(&args.volume, args.memory)?,
            Some(_) => None,
        };
        let Some(volume) = own else {
            let array = dense::open(&args.volume, args.dataset.as_deref(), args.memory)?;
            return Ok(Self {
                array: Arc::from(array),
                affine_of: given.as_ref().map(|_| "file"),
                affine: given,
            });
        };
        let transform = volume.transform().name();
        let affine_of = given.as_ref().map_or(transform, |_| "file");
        let affine = match given {
            Some(given) => given,
            None => volume.map_from(&length_scales(dataset.root()))?,
        };
        Ok(Self {
            array: Arc::new(volume),
            affine: Some(affine),
            affine_of: Some(affine_of),
        })
    }
}

/// Reads a matrix from a file.
fn affine(path: &Path) -> Result<Affine, Box<dyn Error>> {
    let is_npy = path.extension().is_some_and(|end| end == "npy");
    if is_npy {
        let array = NpyArray::open(dense::source(path)?, None)?;
        return Ok(Affine::of_array(&array)?);
    }
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    Ok(Affine::parse(&text).map_err(|error| format!("{name}: {error}"))?)
}
