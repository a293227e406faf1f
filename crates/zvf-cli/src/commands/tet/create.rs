//! `zvf tet create`: writes datasets to a file.

use std::{
    collections::BTreeSet,
    error::Error,
    path::{Path, PathBuf},
};

use serde_json::json;
use zvf_dense::{
    ArrayView, DenseArray, Hyperslab,
    tet::{TetWriter, WriteOptions},
};

use crate::{
    dense::{self, DenseTargetArgs, MemoryArgs},
    display::{count_noun, len_u64},
    outcome::CommandOutcome,
};

/// Write one or several datasets to a file, or append them to one; equal input gives equal files
#[derive(Debug, clap::Args)]
pub(crate) struct TetCreateArgs {
    /// File to write.
    file: PathBuf,
    /// Source of a dataset: a .npy, a .zarr, or a .tet with one dataset.
    ///
    /// The dataset is named like the file, or NAME if given.
    #[arg(long, value_name = "[NAME=]FILE", required = true)]
    from: Vec<String>,
    /// Append the datasets to an existing file.
    #[arg(long)]
    append: bool,
    #[command(flatten)]
    target: DenseTargetArgs,
    /// Memory limit for readers in bytes, recorded in the file.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    memory_budget_bytes: u32,
    /// Memory limit for readers in hundredths of a percent of their memory, recorded in the file.
    #[arg(long, value_name = "BPS", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    memory_budget_bps: u16,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &TetCreateArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    args.target.check_tet(&args.file)?;
    let mut arrays: Vec<(String, Box<dyn DenseArray>, bool)> = Vec::new();
    let mut names = BTreeSet::new();
    for from in &args.from {
        let (name, path) = match from.split_once('=') {
            // A path may contain the sign, too.
            Some((name, path)) if !Path::new(from).exists() => {
                (Some(name.to_owned()), Path::new(path))
            }
            _ => (None, Path::new(from)),
        };
        let array = dense::open(path, None, args.memory)?;
        let name = name.unwrap_or_else(|| dense::name(&*array, path));
        if !names.insert(name.clone()) {
            return Err(format!(
                "two datasets would be named {name:?}; name them with --from NAME=FILE"
            )
            .into());
        }
        arrays.push((name, array, dense::has_chunks(path)?));
    }
    let (mut specs, mut warnings, mut views, mut shown) = (vec![], vec![], vec![], vec![]);
    for (name, array, has_chunks) in &arrays {
        let view = ArrayView::new(&**array, Hyperslab::whole(array.shape()))?;
        let chunk = args.target.chunk(&view, *has_chunks)?;
        let (spec, lost) = dense::spec(&view, name, &chunk, &args.target)?;
        shown.push(json!({
            "name": name,
            "dtype": view.dtype().to_string(),
            "shape": view.shape(),
            "chunk_shape": chunk,
        }));
        specs.push(spec);
        warnings.extend(lost);
        views.push(view);
    }
    let operation = if args.append { "append" } else { "create" };
    let records = args
        .from
        .iter()
        .filter_map(|source| args.target.history(operation, source));
    let history = records.collect();
    let options = WriteOptions {
        memory_budget_bytes: args.memory_budget_bytes,
        memory_budget_bps: args.memory_budget_bps,
        checksums: args.target.checksums(),
        history,
    };
    let first = if args.append {
        dense::tet(&args.file, args.memory)?.datasets().len()
    } else {
        0
    };
    let mut writer = if args.append {
        TetWriter::append(&args.file, specs, options)?
    } else {
        TetWriter::create(&args.file, specs, options)?
    };
    let mut chunks = 0_u64;
    for (at, view) in views.iter().enumerate() {
        let sink = writer.sink(first.saturating_add(at))?;
        let count = zvf_dense::DenseSink::grid(&sink).chunk_count();
        chunks = chunks.saturating_add(count.unwrap_or(u64::MAX));
        dense::write_array(view, Box::new(sink), &args.file, args.quiet)?;
    }
    writer.finish()?;
    let bytes = std::fs::metadata(&args.file)?.len();
    let path = args.file.display().to_string();
    let text = if args.json {
        serde_json::to_string_pretty(&json!({
            "path": path,
            "datasets": shown,
            "chunks": chunks,
            "bytes_written": bytes,
        }))?
    } else {
        format!(
            "{path}: {}, {}, {}",
            count_noun(len_u64(shown.len()), "dataset", "datasets"),
            count_noun(chunks, "chunk", "chunks"),
            count_noun(bytes, "byte", "bytes")
        )
    };
    Ok(CommandOutcome {
        text,
        warnings,
        ..CommandOutcome::default()
    })
}
