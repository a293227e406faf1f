//! Prints the content of a blob.
//!
//! ```text
//! inspect [--json] [--as KIND] [--all] [FILE]...
//! ```
//!
//! Without a file it shows the specification's worked example. Fragment indexes, `.tet` and b2nd
//! files are recognised by their first bytes, in a vlen frame or bare. For cells that are not
//! self-describing, `--as` names the kind:
//!
//! | `--as` | cell |
//! |---|---|
//! | `fragments` | fragment index |
//! | `manifest:K` | object manifest, chunk keys of K numbers |
//! | `links:L`, `links:L:perm` | link rows of L endpoints, without or with permutation codes |
//! | `ragged:L`, `ragged:L:perm` | the same in a ragged blob |
//! | `cell:L` | cross-chunk cell of generation 0.8 |
//! | `table:L:K` | cross-chunk table of generations 0.6 and 0.7 |
//! | `numbers:DTYPE:COLUMNS` | rows of numbers, as `numbers:float32:3` |
//! | `members` | a group's object ids |
//! | `frame` | vlen frame of any items |
#![expect(clippy::print_stderr, reason = "a command line tool")]

use std::{
    error::Error,
    fs,
    io::{self, Write},
    num::NonZeroU32,
    process::ExitCode,
};

use serde_json::{Value, json};
use zvf_format::{
    b2nd,
    fragment::{self, FragmentIndex, FragmentIndexBuilder, Rows},
    groups::GroupMembers,
    links::{CrossChunkCell, CrossChunkTable, LinkRows, LinkWidth, RaggedLinks, RowForm},
    manifest::ObjectManifest,
    numeric::{self, Dtype, NumericRows},
    tetration,
    vlen::VlenFrame,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Number of lines shown of a long list without `--all`.
const LINES: usize = 16;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // A closed pipe, for example to `head`, is not an error.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(arguments: &[String]) -> Result<()> {
    let mut options = Options::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => options.json = true,
            "--all" => options.all = true,
            "--as" => options.kind = Some(arguments.next().ok_or("--as needs a kind")?.clone()),
            "--help" | "-h" => {
                let usage = "inspect [--json] [--as KIND] [--all] [FILE]...";
                writeln!(io::stdout(), "{usage}\n\nKINDS: {KINDS}")?;
                return Ok(());
            }
            unknown if unknown.starts_with('-') => {
                return Err(format!("no option {unknown}; see --help").into());
            }
            file => options.files.push(file.to_owned()),
        }
    }
    if options.files.is_empty() {
        return worked_example(&options);
    }
    for file in &options.files {
        let bytes = fs::read(file).map_err(|error| format!("{file}: {error}"))?;
        let shown =
            show(&bytes, options.kind.as_deref()).map_err(|error| format!("{file}: {error}"))?;
        options.print(file, bytes.len(), &shown)?;
    }
    Ok(())
}

#[derive(Default)]
struct Options {
    json: bool,
    all: bool,
    kind: Option<String>,
    files: Vec<String>,
}

impl Options {
    fn print(&self, file: &str, bytes: usize, shown: &Value) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            let mut shown = shown.clone();
            shown["file"] = file.into();
            shown["bytes"] = bytes.into();
            return writeln!(out, "{shown}");
        }
        writeln!(out, "{file}: {bytes} bytes")?;
        let most = if self.all { usize::MAX } else { LINES };
        for (key, value) in shown.as_object().into_iter().flatten() {
            match value.as_array() {
                Some(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                    writeln!(out, "  {key}:")?;
                    for (at, item) in items.iter().enumerate().take(most) {
                        writeln!(out, "    {at}: {}", line(item))?;
                    }
                    if items.len() > most {
                        writeln!(out, "    … {} more; --all shows them", items.len() - most)?;
                    }
                }
                _ => writeln!(out, "  {key}: {}", line(value))?,
            }
        }
        Ok(())
    }
}

/// Formats a value on one line.
fn line(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{key} {}", line(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn worked_example(options: &Options) -> Result<()> {
    let mut builder = FragmentIndexBuilder::default();
    builder
        .push_range(0..4)?
        .push_list(&[12, 7, 19])?
        .push_range(20..28)?;
    let bytes = builder.finish();
    options.print("worked example", bytes.len(), &show(&bytes, None)?)?;
    if !options.json {
        let hint = "Now give it a cell of yours: inspect FILE, or inspect --help.";
        writeln!(io::stdout(), "\n{hint}")?;
    }
    Ok(())
}

const KINDS: &str = "fragments, manifest:K, links:L[:perm], ragged:L[:perm], cell:L, \
    table:L:K, numbers:DTYPE:COLUMNS, members, frame";

fn show(bytes: &[u8], kind: Option<&str>) -> Result<Value> {
    let Some(kind) = kind else {
        return recognise(bytes);
    };
    // A cell on disk is one item in a frame; a bare blob is accepted too.
    let framed = VlenFrame::parse(bytes).ok().filter(|_| kind != "frame");
    let blob = framed.and_then(|frame| frame.only()).unwrap_or(bytes);
    let parts: Vec<&str> = kind.split(':').collect();
    match parts[..] {
        ["fragments"] => fragments(blob),
        ["manifest", sid_ndim] => manifest(blob, sid_ndim.parse()?),
        ["links", width] => rows(blob, width, RowForm::Plain),
        ["links", width, "perm"] => rows(blob, width, RowForm::Permuted),
        ["ragged", width] => ragged(blob, width, RowForm::Plain),
        ["ragged", width, "perm"] => ragged(blob, width, RowForm::Permuted),
        ["cell", width] => {
            let cell = CrossChunkCell::parse(blob, link_width(width)?)?;
            Ok(links(cell.records()))
        }
        ["table", width, sid_ndim] => table(blob, link_width(width)?, sid_ndim.parse()?),
        ["numbers", dtype, columns] => numbers(blob, dtype, columns.parse()?),
        ["members"] => {
            let ids: Vec<i64> = GroupMembers::parse_list(blob)?.iter().collect();
            Ok(json!({"kind": "group members", "count": ids.len(), "ids": ids}))
        }
        ["frame"] => {
            let lengths: Vec<usize> = VlenFrame::parse(bytes)?.iter().map(<[u8]>::len).collect();
            Ok(json!({"kind": "vlen frame", "items": lengths.len(), "lengths": lengths}))
        }
        _ => Err(format!("{kind} is none of {KINDS}").into()),
    }
}

fn recognise(bytes: &[u8]) -> Result<Value> {
    if bytes.starts_with(&fragment::MAGIC) {
        return fragments(bytes);
    }
    if bytes.starts_with(&tetration::MAGIC) {
        return tet(bytes);
    }
    if bytes
        .get(2..)
        .is_some_and(|bytes| bytes.starts_with(&b2nd::MAGIC))
    {
        return array(bytes);
    }
    if let Ok(frame) = VlenFrame::parse(bytes) {
        return match frame.only() {
            Some(item) if item.starts_with(&fragment::MAGIC) => fragments(item),
            _ => show(bytes, Some("frame")),
        };
    }
    Err(format!("the bytes do not say what they are; try --as with one of {KINDS}").into())
}

fn fragments(blob: &[u8]) -> Result<Value> {
    let index = FragmentIndex::parse(blob)?;
    let fragment = |rows: Rows<'_>| match rows {
        Rows::Range(rows) => json!({"rows": format!("{}..{}", rows.start, rows.end)}),
        Rows::List(rows) => json!({"rows": rows.iter().collect::<Vec<_>>()}),
    };
    Ok(json!({
        "kind": "fragment index",
        "ranges": index.range_count(),
        "lists": index.len() - index.range_count(),
        "extent": index.extent(),
        "tiles": index.tiles(index.extent()),
        "canonical": index.is_canonical(),
        "fragments": index.iter().map(fragment).collect::<Vec<_>>(),
    }))
}

/// Describes a `.tet` file without its payloads and the JSON of its footer.
fn tet(file: &[u8]) -> Result<Value> {
    let layout = tetration::TetLayout::parse(file)?;
    let list = |extents: tetration::Extents<'_>| extents.iter().collect::<Vec<_>>();
    let datasets = layout.directory().iter().map(|dataset| {
        json!({
            "name": dataset.name(),
            "dtype": dataset.dtype().name(),
            "shape": list(dataset.shape()),
            "chunk_shape": list(dataset.chunk_shape()),
            "chunks": dataset.chunk_count(),
        })
    });
    let chunks = layout.index().iter().map(|row| {
        let span = row.payload_span();
        json!({
            "dataset": row.dataset(),
            "coordinate": row.coordinate(),
            "payload": format!("{}..{}", span.start, span.end),
            "raw": row.raw_len(),
            "codec": row.codec().number(),
        })
    });
    Ok(json!({
        "kind": "Tetration file",
        "footer": layout.footer().map(|footer| footer.tail().version().number()),
        "datasets": datasets.collect::<Vec<_>>(),
        "chunks": chunks.collect::<Vec<_>>(),
    }))
}

/// Describes a Blosc2 frame without the content of its chunks.
fn array(file: &[u8]) -> Result<Value> {
    let frame = b2nd::Blosc2Frame::parse(file)?;
    let header = frame.header();
    let mut shown = json!({
        "kind": "Blosc2 frame",
        "chunks": header.chunk_count(),
        "nbytes": header.nbytes(),
        "cbytes": header.cbytes(),
        "typesize": header.typesize(),
        "codec": header.codec(),
        "metalayers": frame.metalayers().iter().map(|layer| layer.name).collect::<Vec<_>>(),
    });
    if let Some(array) = frame.nd()? {
        shown["kind"] = format!("{} array", array.form().name()).into();
        shown["shape"] = array.shape().iter().collect();
        shown["chunk_shape"] = array.chunk_shape().iter().collect();
        shown["block_shape"] = array.block_shape().iter().collect();
        shown["dtype"] = array.dtype().into();
    }
    Ok(shown)
}

fn manifest(blob: &[u8], sid_ndim: usize) -> Result<Value> {
    let manifest = ObjectManifest::parse(blob, sid_ndim)?;
    let blocks = manifest.iter().map(|block| {
        let chunk: Vec<i64> = block.chunk.iter().collect();
        let fragments: Vec<u32> = block.fragments.iter().collect();
        json!({"chunk": chunk, "fragments": fragments})
    });
    Ok(json!({
        "kind": "object manifest",
        "empty": manifest.is_empty(),
        "blocks": blocks.collect::<Vec<_>>(),
    }))
}

fn link_width(text: &str) -> Result<LinkWidth> {
    Ok(LinkWidth::new(text.parse()?)?)
}

fn links(rows: LinkRows<'_>) -> Value {
    let links: Vec<Vec<u64>> = rows.iter().map(|row| row.input().collect()).collect();
    json!({"kind": "links", "width": rows.width().get(), "links": links})
}

fn rows(blob: &[u8], width: &str, form: RowForm) -> Result<Value> {
    Ok(links(LinkRows::parse(blob, link_width(width)?, form)?))
}

fn ragged(blob: &[u8], width: &str, form: RowForm) -> Result<Value> {
    let parsed = RaggedLinks::parse(blob, link_width(width)?, form)?;
    let mut shown = links(parsed.rows());
    shown["groups"] = parsed.groups().map(|group| group.len()).collect();
    Ok(shown)
}

fn table(blob: &[u8], width: LinkWidth, sid_ndim: usize) -> Result<Value> {
    let table = CrossChunkTable::parse(blob, width, sid_ndim)?;
    let records = table.iter().map(|record| -> Value {
        let ends = record.endpoints();
        ends.map(|end| json!([end.chunk.iter().collect::<Vec<_>>(), end.vertex]))
            .collect()
    });
    Ok(json!({"kind": "cross-chunk table", "records": records.collect::<Vec<_>>()}))
}

fn numbers(blob: &[u8], dtype: &str, columns: NonZeroU32) -> Result<Value> {
    let rows = NumericRows::parse(blob, Dtype::parse(dtype)?, columns)?;
    let value = |row, column| match rows.value(row, column) {
        Some(numeric::Value::Bool(value)) => json!(value),
        Some(numeric::Value::Int(value)) => json!(value),
        Some(numeric::Value::UInt(value)) => json!(value),
        // JSON has no NaN and no infinity.
        Some(numeric::Value::Float(value)) if !value.is_finite() => json!(value.to_string()),
        Some(numeric::Value::Float(value)) => json!(value),
        Some(numeric::Value::Complex { re, im }) => json!([re, im]),
        None => Value::Null,
    };
    let row = |row| {
        (0..columns.get())
            .map(|column| value(row, column))
            .collect()
    };
    let shown: Vec<Value> = (0..rows.rows()).map(row).collect();
    Ok(json!({"kind": "numbers", "dtype": rows.dtype().to_string(), "rows": shown}))
}
