//! `zvf sample`.

use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::json;
use zvf::{AttributeSpec, Dataset, Reduction, write_object_attribute, write_vertex_attribute};
use zvf_dense::{
    DenseArray, ReadPlan,
    npy::NpyArray,
    sample::{Affine, Interpolation, Outside, SampleOptions, Sampler},
};

use crate::{
    dense::{self, MemoryArgs},
    display::{count_noun, group_digits},
    hint::{Operation, with_hint},
    outcome::CommandOutcome,
};

/// Gives every vertex the value that a volume has where it is, as an attribute of level 0, or every object what those of its vertices come to
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Axis i of the store, after --affine, is axis i of the volume; the centre of voxel n is at n. Axes of the volume
beyond those are values of each vertex. All is written in one transaction, or nothing.

Examples:
  zvf sample tracts.zv volume.npy --into t1 --outside edge
  zvf sample tracts.zv volume.npy --into mean_t1 --reduce object:mean"
)]
pub(crate) struct SampleArgs {
    /// The store, of format 0.9.
    store: String,
    /// The volume: a .tet, .b2nd or .npy, or the folder of a Zarr array.
    volume: PathBuf,
    /// What the attribute is called.
    #[arg(long, value_name = "NAME")]
    into: String,
    /// How values between voxels are made.
    #[arg(long, value_name = "HOW", default_value = "linear")]
    interp: Interp,
    /// A matrix from positions to indices of voxels, of one more row and column than there
    /// are axes: JSON, text, or .npy.
    #[arg(long, value_name = "FILE")]
    affine: Option<PathBuf>,
    /// What a vertex has that is in no voxel: a number, or `edge` for the nearest voxel's.
    /// NaN without, and 0 of integers.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    outside: Option<Beyond>,
    /// Which dataset of a .tet; not needed when it has one.
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Give objects an attribute instead, of what the values of their vertices come to: object:
    /// and one of mean, sum, min and max. Values that are NaN are left out.
    #[arg(long, value_name = "OF:HOW")]
    reduce: Option<Reduced>,
    /// Replace an attribute of that name.
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
    /// The voxel that is nearest; integers stay integers.
    Nearest,
    Linear,
    /// Catmull-Rom.
    Cubic,
}

#[derive(Clone, Copy, Debug)]
struct Beyond(Outside);

impl core::str::FromStr for Beyond {
    type Err = core::num::ParseFloatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(match text {
            "edge" => Outside::Edge,
            number => Outside::Fill(number.parse()?),
        }))
    }
}

#[derive(Clone, Copy, Debug)]
struct Reduced(Reduction);

impl core::str::FromStr for Reduced {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(match text {
            "object:mean" => Reduction::Mean,
            "object:sum" => Reduction::Sum,
            "object:min" => Reduction::Min,
            "object:max" => Reduction::Max,
            _ => return Err("there are object:mean, object:sum, object:min and object:max"),
        }))
    }
}

/// Writes the attribute.
pub(crate) async fn run(asked: &SampleArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let array = dense::open(&asked.volume, asked.dataset.as_deref(), asked.memory)?;
    let options = SampleOptions {
        interpolation: match asked.interp {
            Interp::Nearest => Interpolation::Nearest,
            Interp::Linear => Interpolation::Linear,
            Interp::Cubic => Interpolation::Cubic,
        },
        affine: asked.affine.as_deref().map(affine).transpose()?,
        outside: asked.outside.map(|Beyond(outside)| outside),
        budget: asked.memory.bytes(),
    };
    let axes = Dataset::open(&asked.store).await?.root().axes.len();
    let array: Arc<dyn DenseArray> = Arc::from(array);
    // One for all batches: what it has read for one it has for the next.
    let sampler = Arc::new(Sampler::new(array, axes, &options)?);
    let mut spec = AttributeSpec::new(&asked.into, sampler.kind());
    spec.row_shape = sampler.row_shape().to_vec();
    spec.overwrite = asked.overwrite;
    if let Some(bytes) = asked.memory.bytes() {
        spec.memory = bytes;
    }
    let outside = Arc::new(AtomicU64::new(0));
    let reads = Arc::new(Mutex::new(ReadPlan::default()));
    let values = {
        let (outside, reads) = (Arc::clone(&outside), Arc::clone(&reads));
        move |positions: &[f64]| {
            let sampled = sampler.sample(positions)?;
            outside.fetch_add(sampled.outside, Ordering::Relaxed);
            let mut all = reads.lock().unwrap_or_else(PoisonError::into_inner);
            all.blocks += sampled.reads.blocks;
            all.bytes_read += sampled.reads.bytes_read;
            Ok(sampled.values)
        }
    };
    let (store, values) = (&asked.store, Arc::new(values));
    let written = match asked.reduce {
        None => write_vertex_attribute(store, &spec, values).await,
        Some(Reduced(reduction)) => write_object_attribute(store, &spec, reduction, values).await,
    };
    let written = written.map_err(|error| with_hint(Operation::Sample, error))?;
    let outside = outside.load(Ordering::Relaxed);
    let reads = *reads.lock().unwrap_or_else(PoisonError::into_inner);
    let dtype = match asked.reduce {
        None => spec.kind.name(),
        Some(_) => "float64",
    };
    let text = match asked.json {
        true => serde_json::to_string_pretty(&json!({
            "store": asked.store,
            "attribute": asked.into,
            "dtype": dtype,
            "row_shape": spec.row_shape,
            "vertices": written.vertices,
            "outside": outside,
            "chunks": written.chunks,
            "batches": written.batches,
            "blocks": reads.blocks,
            "bytes_read": reads.bytes_read,
            "bytes_written": written.bytes,
            "transaction": written.transaction,
        }))?,
        false => format!(
            "{}: {} of {}, {} of them outside; {} bytes written",
            asked.into,
            dtype,
            count_noun(written.vertices, "vertex", "vertices"),
            group_digits(outside),
            group_digits(written.bytes),
        ),
    };
    Ok(text.into())
}

/// The matrix in a file.
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
