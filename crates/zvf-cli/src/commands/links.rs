//! `zvf links`: lists links between levels and inside them, and prints them as stored.

use std::{
    error::Error,
    fmt::{self, Write},
};

use serde_json::{Value, json};
use zvf::{Column, ColumnValues, Dataset, LevelId, LinkInfo, OpenOptions, numeric};
use zvf_catalog::StoredLinkFamily;

use crate::{arguments::values, display::narrow_float, outcome::CommandOutcome, text_table};

/// List the links of a level, or print them as stored
///
/// Without --delta, lists the links by the level that they lead to, with the nodes that hold them and
/// their attributes. With --delta, prints the chunk and the row of each end of each link, as CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf links old.zv
  zvf links old.zv --delta 0 > links.csv")]
pub(crate) struct LinksArgs {
    /// Store: a folder, a .zip file, or an address that this build supports.
    store: String,
    /// Level of the first end of the links.
    #[arg(long, default_value_t = 0)]
    level: u32,
    /// Print the links to the level this many levels on: 0 for links inside the level, 1 for links to
    /// the next coarser level, -1 for links to the next finer one.
    #[arg(long, allow_negative_numbers = true)]
    delta: Option<i32>,
    /// Limit the memory for links, for example to 2GiB; fail if they need more.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    memory: Option<u64>,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: &LinksArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = OpenOptions::default().anonymous(arguments.anonymous);
    if let Some(memory) = arguments.memory {
        options = options.budget(memory);
    }
    let dataset = Dataset::open_with(&arguments.store, &options).await?;
    let level = LevelId::new(arguments.level);
    let Some(delta) = arguments.delta else {
        let links = dataset.link_info(level).await?;
        return Ok(CommandOutcome::from(if arguments.json {
            let links: Vec<Value> = links.iter().map(object).collect();
            serde_json::to_string_pretty(&json!({ "level": arguments.level, "links": links }))?
        } else if links.is_empty() {
            format!("level {level} has no links")
        } else {
            table(&links).join("\n")
        }));
    };
    let links = dataset.stored_links(level, delta).await?;
    let families = links.as_ref().map_or(&[][..], |links| &links.families);
    let mut outcome = CommandOutcome::from(if arguments.json {
        let families = families.iter().map(family_object).collect::<Vec<Value>>();
        let report = json!({ "level": arguments.level, "delta": delta, "families": families });
        serde_json::to_string_pretty(&report)?
    } else {
        csv(families)?
    });
    if let Some(links) = links {
        outcome.warnings = links.notes;
    }
    Ok(outcome)
}

/// Returns the links of one delta as JSON.
pub(super) fn object(links: &LinkInfo) -> Value {
    let families = links
        .families
        .iter()
        .map(|(key, ends)| json!({ "path": key.to_string(), "ends": ends }));
    let attributes = links.attributes.iter().map(|(name, nodes)| {
        let paths = nodes.iter().map(ToString::to_string);
        json!({ "name": name, "paths": paths.collect::<Vec<String>>() })
    });
    json!({
        "delta": links.delta,
        "families": families.collect::<Vec<Value>>(),
        "attributes": attributes.collect::<Vec<Value>>(),
    })
}

/// Returns a table of the links of a level.
pub(super) fn table(links: &[LinkInfo]) -> Vec<String> {
    let titles = ["links", "delta", "ends", "attributes"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for links in links {
        let names = links
            .attributes
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<&str>>()
            .join(", ");
        for (key, ends) in &links.families {
            let delta = zvf_format::path::Delta::new(links.delta);
            rows.push(vec![
                key.to_string(),
                delta.to_string(),
                ends.to_string(),
                names.clone(),
            ]);
        }
    }
    text_table::align_left(&rows)
}

fn family_object(family: &StoredLinkFamily) -> Value {
    let links = (0..family.len()).map(|link| {
        let ends = family
            .ends_of(link)
            .map(|(chunk, row)| json!({ "chunk": chunk.coords(), "row": row }));
        ends.collect::<Value>()
    });
    let attributes = family.attributes.iter().map(|column| {
        let values = (0..family.len()).map(|link| values_of(column, link));
        (column.name.clone(), json!(values.collect::<Vec<_>>()))
    });
    json!({
        "ends": family.width,
        "directed": family.directed,
        "links": links.collect::<Value>(),
        "attributes": attributes.collect::<serde_json::Map<String, Value>>(),
    })
}

/// Returns the values of a link as text; empty for a link without a value.
fn values_of(column: &Column, link: usize) -> Vec<String> {
    match &column.values {
        _ if column.is_null(link) => Vec::new(),
        ColumnValues::Numeric(numbers) => {
            let is_narrow = numbers.kind.size() < size_of::<f64>();
            let values = numbers.view().into_iter().flat_map(|view| {
                let channels = 0..numbers.width;
                channels.filter_map(move |channel| view.value(link, channel))
            });
            let shown = values.map(|value| match value {
                numeric::Value::Float(value) if is_narrow => narrow_float(value),
                numeric::Value::Float(value) => value.to_string(),
                numeric::Value::Int(value) => value.to_string(),
                numeric::Value::UInt(value) => value.to_string(),
                numeric::Value::Bool(value) => value.to_string(),
                numeric::Value::Complex { re, im } => format!("{re}+{im}i"),
            });
            shown.collect()
        }
        ColumnValues::Dictionary { .. } => column
            .text_at(link)
            .map(str::to_owned)
            .into_iter()
            .collect(),
    }
}

/// Returns links as CSV: chunk and row of each end, and the attributes, whose values are separated by
/// spaces.
fn csv(families: &[StoredLinkFamily]) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let mut titles = None;
    for family in families {
        let ends = (0..family.width).map(|end| format!("chunk_{end},row_{end}"));
        let names = family.attributes.iter().map(|column| quoted(&column.name));
        let line = ends.chain(names).collect::<Vec<String>>().join(",");
        // Links inside chunks and between them may have other attributes.
        if titles.as_ref() != Some(&line) {
            writeln!(text, "{line}")?;
            titles = Some(line);
        }
        for link in 0..family.len() {
            let ends = family
                .ends_of(link)
                .map(|(chunk, row)| format!("{chunk},{row}"));
            let columns = family.attributes.iter();
            let values = columns.map(|column| quoted(&values_of(column, link).join(" ")));
            let fields: Vec<String> = ends.chain(values).collect();
            writeln!(text, "{}", fields.join(","))?;
        }
    }
    Ok(text.trim_end().to_owned())
}

/// Returns a field of CSV, in quotes if it needs them.
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
