//! `zvf tet info`: describes a file.

use std::{error::Error, fmt::Write, path::PathBuf};

use serde_json::{Value, json};
use zvf_dense::tet::{DatasetInfo, TetFile};
use zvf_format::tetration::ChunkRow;

use crate::{
    dense::{self, MemoryArgs},
    display::{extents, group_digits},
    outcome::CommandOutcome,
    text_table,
};

/// Default number of rows of the chunk table.
const MAX_SHOWN: u64 = 32;
/// Maximum number of characters of a dataset's name in a table.
const NAME: usize = 40;

/// Describe a file: its datasets and, on request, layout, chunks, memory limit, metadata and
/// history
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct TetInfoArgs {
    /// File.
    file: PathBuf,
    /// Show the superblock and the position of each section.
    #[arg(long)]
    layout: bool,
    /// Show the datasets; this is the default.
    #[arg(long)]
    datasets: bool,
    /// Show the position of each chunk.
    #[arg(long)]
    chunks: bool,
    /// Show the memory limit recorded in the file.
    #[arg(long)]
    execution: bool,
    /// Show the history of the file.
    #[arg(long)]
    history: bool,
    /// Show everything.
    #[arg(long)]
    all: bool,
    /// Maximum number of chunk rows, 0 for all; by default 32 in text and all in JSON.
    #[arg(short = 'n', value_name = "N")]
    rows: Option<u64>,
    /// Show only datasets whose name contains this text, and their chunks.
    #[arg(long, value_name = "TEXT")]
    dataset: Option<String>,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TetInfoArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let file = dense::tet(&args.file, args.memory)?;
    let text = if args.json {
        serde_json::to_string_pretty(&object(args, &file)?)?
    } else {
        table(args, &file)?
    };
    Ok(CommandOutcome::from(text))
}

impl TetInfoArgs {
    fn wants(&self, info: &DatasetInfo) -> bool {
        let part = self.dataset.as_ref().map(|part| part.to_lowercase());
        part.is_none_or(|part| info.name().to_lowercase().contains(&part))
    }

    fn wants_row(&self, file: &TetFile, row: ChunkRow<'_>) -> bool {
        let id = usize::try_from(row.dataset()).ok();
        let info = id.and_then(|id| file.datasets().get(id));
        info.is_some_and(|info| self.wants(info))
    }

    /// Returns the maximum number of chunk rows.
    fn max_rows(&self, default: u64) -> usize {
        let max = match self.rows.unwrap_or(default) {
            0 => u64::MAX,
            max => max,
        };
        usize::try_from(max).unwrap_or(usize::MAX)
    }
}

fn object(args: &TetInfoArgs, file: &TetFile) -> Result<Value, Box<dyn Error>> {
    let superblock = file.superblock();
    let index = superblock.index_span();
    let datasets: Vec<Value> = (0_u64..)
        .zip(file.datasets())
        .filter(|(_, info)| args.wants(info))
        .map(|(id, info)| {
            json!({
                "id": id,
                "name": info.name(),
                "dtype": info.dtype().tag(),
                "dtype_name": info.dtype().name(),
                "shape": info.grid().shape(),
                "chunk_shape": info.grid().chunk_shape(),
                "chunks": info.grid().chunk_count(),
                "attributes": info.attributes(),
                "dimension_names": info.dimension_names(),
            })
        })
        .collect();
    let chunks = file.with_index(|index| {
        let rows = index
            .iter()
            .filter(|row| args.wants_row(file, *row))
            .take(args.max_rows(0))
            .map(|row| {
                json!({
                    "dataset_id": row.dataset(),
                    "chunk_index": row.coordinate(),
                    "codec": row.codec().number(),
                    "payload_offset": row.payload_offset(),
                    "raw_byte_len": row.raw_len(),
                    "stored_byte_len": row.stored_len(),
                })
            });
        rows.collect::<Vec<Value>>()
    })?;
    let footer = file.footer();
    let spill = |spill: Option<zvf_dense::tet::SpillRef>| {
        spill.map(|spill| json!({"offset": spill.offset, "len": spill.len}))
    };
    Ok(json!({
        "path": args.file.display().to_string(),
        "file_len": file.source().len(),
        "summary": {
            "superblock": {
                "layout_version": 1,
                "dataset_count": superblock.datasets(),
                "flags": superblock.flags(),
                "chunk_index_offset": index.start,
                "chunk_index_length": index.end.saturating_sub(index.start),
            },
            "datasets": datasets,
            "chunk_count": superblock.rows(),
            "chunks": chunks,
            "payload_end": file.payload_end(),
            "file_execution": {
                "memory_budget_percent_bps": file.memory_budget_bps(),
                "memory_budget_bytes": file.memory_budget_bytes(),
            },
            "history": footer.map(|footer| &footer.history),
            "metadata": footer.and_then(|footer| footer.metadata.as_ref()),
            "footer": footer.map(|footer| json!({
                "version": footer.version,
                "json_len": footer.json_len,
                "metadata_ref": spill(footer.metadata_ref),
                "zone_maps_ref": spill(footer.zone_maps_ref),
                "secondary_index_ref": spill(footer.secondary_index_ref),
                "checksums": spill(footer.checksums),
            })),
        },
    }))
}

fn table(args: &TetInfoArgs, file: &TetFile) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let chunks = file.superblock().rows();
    writeln!(text, "{}", args.file.display())?;
    writeln!(
        text,
        "  size      {} bytes",
        group_digits(file.source().len())
    )?;
    writeln!(text, "  layout    1")?;
    writeln!(
        text,
        "  datasets  {}",
        group_digits(file.superblock().datasets().into())
    )?;
    writeln!(text, "  chunks    {}", group_digits(chunks))?;
    let is_default = !(args.layout || args.execution || args.chunks || args.history);
    if args.layout || args.all {
        layout(&mut text, file)?;
    }
    if args.execution || args.all {
        execution(&mut text, file)?;
    }
    if args.datasets || args.all || is_default {
        datasets(&mut text, args, file)?;
    }
    if args.chunks || args.all {
        chunk_table(&mut text, args, file)?;
    }
    if args.history || args.all {
        history(&mut text, file)?;
    }
    Ok(text.trim_end().to_owned())
}

fn layout(text: &mut String, file: &TetFile) -> std::fmt::Result {
    let superblock = file.superblock();
    let index = superblock.index_span();
    writeln!(text, "\nlayout:")?;
    let flags = superblock.flags();
    let footer = superblock.has_footer();
    writeln!(
        text,
        "  flags               {flags} (history_footer={footer})"
    )?;
    writeln!(text, "  chunk_index_offset  {}", index.start)?;
    writeln!(
        text,
        "  chunk_index_length  {}",
        index.end.saturating_sub(index.start)
    )?;
    writeln!(text, "  payload_end         {}", file.payload_end())?;
    if let Some(footer) = file.footer() {
        writeln!(
            text,
            "  footer              version {}, {} bytes",
            footer.version, footer.json_len
        )?;
        let spills = [
            ("metadata", footer.metadata_ref),
            ("zone maps", footer.zone_maps_ref),
            ("secondary index", footer.secondary_index_ref),
            ("checksums", footer.checksums),
        ];
        for (name, spill) in spills {
            if let Some(spill) = spill {
                writeln!(text, "  {name:18}  {} bytes at {}", spill.len, spill.offset)?;
            }
        }
    }
    Ok(())
}

fn execution(text: &mut String, file: &TetFile) -> std::fmt::Result {
    writeln!(text, "\nexecution:")?;
    let (bytes, bps) = (file.memory_budget_bytes(), file.memory_budget_bps());
    if bytes > 0 {
        writeln!(text, "  memory_budget_bytes    {bytes}")?;
    }
    if bps > 0 {
        let percent = f64::from(bps) / 100.0;
        writeln!(text, "  memory_budget_percent  {percent}")?;
    }
    if bytes == 0 && bps == 0 {
        writeln!(
            text,
            "  (none recorded: readers use 25 % of the memory of the host)"
        )?;
    }
    Ok(())
}

/// Shortens a name to fit in a table, without control characters.
fn short(name: &str) -> String {
    let mut marks = name
        .chars()
        .map(|mark| if mark.is_control() { '\u{fffd}' } else { mark });
    let start: String = marks.by_ref().take(NAME).collect();
    match marks.next() {
        Some(_) => format!("{start}…"),
        None => start,
    }
}

fn datasets(text: &mut String, args: &TetInfoArgs, file: &TetFile) -> std::fmt::Result {
    writeln!(text, "\ndatasets:")?;
    let titles = ["id", "name", "dtype", "shape", "chunk_shape", "chunks"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for (id, info) in file.datasets().iter().enumerate() {
        if args.wants(info) {
            rows.push(vec![
                id.to_string(),
                short(info.name()),
                info.dtype().name().to_owned(),
                extents(info.grid().shape()),
                extents(info.grid().chunk_shape()),
                group_digits(info.grid().chunk_count().unwrap_or(u64::MAX)),
            ]);
        }
    }
    if rows.len() == 1 {
        return writeln!(text, "  (none)");
    }
    for line in text_table::align(&rows) {
        writeln!(text, "{line}")?;
    }
    Ok(())
}

fn chunk_table(
    text: &mut String,
    args: &TetInfoArgs,
    file: &TetFile,
) -> Result<(), Box<dyn Error>> {
    writeln!(text, "\nchunks:")?;
    let titles = ["#", "dataset", "coords", "raw", "stored", "codec", "offset"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let all = file.with_index(|index| {
        let wanted = (0_u64..)
            .zip(index)
            .filter(|(_, row)| args.wants_row(file, *row));
        let max = args.max_rows(MAX_SHOWN);
        let mut all = 0_usize;
        for (number, row) in wanted {
            all = all.saturating_add(1);
            if all > max {
                continue;
            }
            let id = usize::try_from(row.dataset()).unwrap_or(usize::MAX);
            let info = file.datasets().get(id);
            let rank = info.map_or(0, |info| info.grid().shape().len());
            let coordinate: Vec<String> = row
                .coordinate()
                .into_iter()
                .take(rank)
                .map(|at| at.to_string())
                .collect();
            rows.push(vec![
                number.to_string(),
                info.map(|info| short(info.name())).unwrap_or_default(),
                coordinate.join(","),
                row.raw_len().to_string(),
                row.stored_len().to_string(),
                match row.codec() {
                    zvf_format::tetration::TetCodec::Raw => "raw".to_owned(),
                    zvf_format::tetration::TetCodec::Zstd => "zstd".to_owned(),
                },
                row.payload_offset().to_string(),
            ]);
        }
        all
    })?;
    let shown = rows.len().saturating_sub(1);
    if shown < all {
        writeln!(text, "  (showing {shown} of {all}; use -n 0 for all)")?;
    }
    if all == 0 {
        writeln!(text, "  (none)")?;
        return Ok(());
    }
    for line in text_table::align(&rows) {
        writeln!(text, "{line}")?;
    }
    Ok(())
}

fn history(text: &mut String, file: &TetFile) -> std::fmt::Result {
    writeln!(text, "\nhistory:")?;
    let rows = file
        .footer()
        .map(|footer| footer.history.as_slice())
        .unwrap_or_default();
    if rows.is_empty() {
        return writeln!(text, "  (none)");
    }
    for row in rows {
        // History rows are objects, or three strings in old files.
        let part = |key: &str, at: usize| {
            let value = row.get(key).or_else(|| row.get(at));
            value.and_then(Value::as_str).unwrap_or("-").to_owned()
        };
        let (op, source, at) = (part("op", 0), part("source", 1), part("at", 2));
        writeln!(text, "  {at}  {}  {}", short(&op), short(&source))?;
    }
    Ok(())
}
