//! `zvf b2nd info`: describes an array.

use std::{error::Error, fmt::Write, path::PathBuf};

use serde_json::{Map, Value, json};
use zvf_dense::{
    DenseArray,
    b2nd::{B2nd, unpack},
};
use zvf_format::b2nd::{FrameType, NdForm};

use crate::{
    dense::{self, MemoryArgs},
    display::{count_noun, extents, len_u64, printable},
    outcome::CommandOutcome,
};

/// Maximum number of printed characters of a metalayer.
const MAX_VALUE: usize = 100;

/// Describe an array, its chunks and blocks, and their compression
#[derive(Debug, clap::Args)]
pub(crate) struct B2ndInfoArgs {
    /// File or sparse directory.
    file: PathBuf,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &B2ndInfoArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let array = dense::b2nd(&args.file, args.memory)?;
    let text = if args.json {
        serde_json::to_string_pretty(&object(args, &array))?
    } else {
        table(args, &array)?
    };
    Ok(CommandOutcome::from(text))
}

fn object(args: &B2ndInfoArgs, array: &B2nd) -> Value {
    let facts = array.facts();
    let sizes = |layers: &mut dyn Iterator<Item = (&str, &[u8])>| {
        let layers = layers.map(|(name, body)| (name.to_owned(), json!(body.len())));
        Value::Object(layers.collect())
    };
    json!({
        "path": args.file.display().to_string(),
        "form": array.form().name(),
        "kind": kind(array),
        "shape": array.shape(),
        "chunk_shape": array.grid().chunk_shape(),
        "block_shape": array.grid().block_shape(),
        "dtype": dtype(array),
        "item_bytes": facts.typesize,
        "chunks": array.grid().chunk_count(),
        "chunk_bytes": facts.chunksize,
        "block_bytes": facts.blocksize,
        "stored_bytes": facts.cbytes,
        "codec": codec(facts.codec),
        "level": facts.level,
        "filters": facts.filters.iter().map(|(filter, meta)| json!({
            "name": filter_name(*filter),
            "number": filter,
            "meta": meta,
        })).collect::<Vec<_>>(),
        "frame_version": facts.version,
        "metalayers": sizes(&mut array.metalayers()),
        "metalayer_values": array
            .metalayers()
            .map(|(name, body)| (name.to_owned(), unpack(body).unwrap_or(Value::Null)))
            .collect::<Map<String, Value>>(),
        "vlmetalayers": sizes(&mut array.vlmetalayers()),
        "attributes": array.attributes(),
    })
}

fn table(args: &B2ndInfoArgs, array: &B2nd) -> Result<String, Box<dyn Error>> {
    let facts = array.facts();
    let mut text = args.file.display().to_string();
    let mut line = |name: &str, value: String| write!(text, "\n  {name:9} {value}");
    let form = array.form().name();
    line("kind", format!("{form}, {}", kind(array)))?;
    line("shape", extents(array.shape()))?;
    line("chunks", extents(array.grid().chunk_shape()))?;
    line(
        "blocks",
        extents(array.grid().block_shape().unwrap_or_default()),
    )?;
    let unknown = format!("{} bytes of unknown type", facts.typesize);
    line("items", dtype(array).unwrap_or(unknown))?;
    let chunks = array.grid().chunk_count().unwrap_or(u64::MAX);
    let stored = format!(
        "{} in {}",
        count_noun(chunks, "chunk", "chunks"),
        count_noun(facts.cbytes, "byte", "bytes")
    );
    line("stored", stored)?;
    line(
        "codec",
        format!("{}, level {}", codec(facts.codec), facts.level),
    )?;
    let filters: Vec<&str> = facts
        .filters
        .iter()
        .map(|(filter, _)| filter_name(*filter))
        .collect();
    line(
        "filters",
        if filters.is_empty() {
            "none".to_owned()
        } else {
            filters.join(", ")
        },
    )?;
    for (name, body) in array.metalayers() {
        line("metalayer", content(name, body))?;
    }
    for (name, body) in array.vlmetalayers() {
        line("vlmeta", content(name, body))?;
    }
    Ok(text)
}

/// Describes a metalayer: its length, and the start of its value.
fn content(name: &str, body: &[u8]) -> String {
    let bytes = count_noun(len_u64(body.len()), "byte", "bytes");
    let Some(value) = unpack(body) else {
        return format!("{name:?}, {bytes}");
    };
    let value = value.to_string();
    let start: String = value.chars().take(MAX_VALUE).collect();
    let more = if start.len() < value.len() { "…" } else { "" };
    format!("{name:?}, {bytes}: {}{more}", printable(&start))
}

fn kind(array: &B2nd) -> &'static str {
    match array.facts().frame_type {
        FrameType::Contiguous => "one file",
        FrameType::Sparse => "sparse directory",
    }
}

/// Returns the data type; Caterva does not record it.
fn dtype(array: &B2nd) -> Option<String> {
    (array.form() == NdForm::B2nd).then(|| array.dtype().to_string())
}

fn codec(number: u8) -> &'static str {
    match number {
        0 => "blosclz",
        1 => "lz4",
        2 => "lz4hc",
        4 => "zlib",
        5 => "zstd",
        _ => "plugin",
    }
}

fn filter_name(number: u8) -> &'static str {
    match number {
        1 => "shuffle",
        2 => "bitshuffle",
        3 => "delta",
        4 => "trunc_prec",
        32 => "ndcell",
        33 => "ndmean",
        34 | 35 => "bytedelta",
        36 => "int_trunc",
        _ => "plugin",
    }
}
