//! `zvf info`: describes a store.

#[cfg(feature = "render")]
mod plot;

use std::{error::Error, fmt::Write};

use serde_json::{Value, json};
use zvf::{Dataset, GeometryType, LevelInfo, OpenOptions, StoreInfo};

use crate::{display::group_digits, outcome::CommandOutcome, text_table};

/// Describe a store: generation, kinds of geometry, bounds, and the contents of each level
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf info tracts.zv
  zvf info tracts.zv --json")]
pub(crate) struct InfoArgs {
    /// Store: a folder, a .zip file, or an address that this build supports.
    store: String,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
    /// Draw the sizes of levels, chunks and fragments to a .png or .svg file.
    #[cfg(feature = "render")]
    #[arg(long, value_name = "FILE", value_parser = plot::file)]
    plot: Option<std::path::PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: &InfoArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let options = OpenOptions::default().anonymous(arguments.anonymous);
    let dataset = Dataset::open_with(&arguments.store, &options).await?;
    let info = dataset.info().await?;
    #[cfg(feature = "render")]
    if let Some(file) = &arguments.plot {
        plot::draw(&dataset, &info, file).await?;
    }
    let text = if arguments.json {
        serde_json::to_string_pretty(&object(&info))?
    } else {
        table(dataset.address(), &info)?
    };
    Ok(CommandOutcome::from(text))
}

fn object(info: &StoreInfo) -> Value {
    let bounds = info.bounds.as_ref();
    let levels = info.levels.iter().map(|level| {
        json!({
            "level": level.level.number(),
            "vertices": level.vertices,
            "chunks": level.chunks,
            "objects": level.objects,
            "links": level.links,
            "bytes": level.bytes,
            "behind": level.is_behind,
            "additive": level.is_additive,
        })
    });
    json!({
        "generation": info.generation.to_string(),
        "profile": info.profile,
        "geometry": kinds(info),
        "axes": info.axes,
        "bounds": bounds.map(|bounds| json!([bounds.lower(), bounds.upper()])),
        "levels": levels.collect::<Vec<Value>>(),
        "notes": info.notes,
    })
}

fn table(address: &str, info: &StoreInfo) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(text, "{address}")?;
    write!(text, "  generation  {}", info.generation)?;
    if info.generation.to_string() != info.profile {
        write!(text, ", profile {}", info.profile)?;
    }
    writeln!(text, "\n  geometry    {}", kinds(info).join(", "))?;
    match &info.bounds {
        None => writeln!(text, "  axes        {}", info.axes.join(", "))?,
        Some(bounds) => {
            let sides = bounds.lower().iter().zip(bounds.upper());
            for ((name, (lower, upper)), at) in info.axes.iter().zip(sides).zip(0_usize..) {
                let title = if at == 0 { "bounds" } else { "" };
                writeln!(text, "  {title:10}  {name} {lower} to {upper}")?;
            }
        }
    }
    writeln!(text)?;
    let titles = ["level", "vertices", "chunks", "objects", "links", "bytes"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(info.levels.iter().map(row));
    for line in text_table::align(&rows) {
        writeln!(text, "{line}")?;
    }
    let of = |is: fn(&&LevelInfo) -> bool| {
        let levels = info.levels.iter().filter(is);
        let levels: Vec<String> = levels.map(|level| level.level.to_string()).collect();
        levels.join(", ")
    };
    let behind = of(|level| level.is_behind);
    if !behind.is_empty() {
        write!(
            text,
            "\nout of date since the store changed (zvf pyramid --refresh): {behind}"
        )?;
    }
    let additive = of(|level| level.is_additive);
    if !additive.is_empty() {
        write!(
            text,
            "\nadditive, drawn together with all coarser levels: {additive}"
        )?;
    }
    for note in &info.notes {
        write!(text, "\nnote: {note}")?;
    }
    Ok(text.trim_end().to_owned())
}

fn kinds(info: &StoreInfo) -> Vec<&str> {
    let kinds = info.geometry.iter();
    kinds.map(GeometryType::as_str).collect()
}

fn row(level: &LevelInfo) -> Vec<String> {
    let or_dash = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), group_digits);
    vec![
        level.level.to_string(),
        or_dash(level.vertices),
        group_digits(level.chunks),
        or_dash(level.objects),
        or_dash(level.links),
        group_digits(level.bytes),
    ]
}
