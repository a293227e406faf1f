//! `zvf info`: describes a store.

mod description;
mod output;
#[cfg(feature = "render")]
mod plot;

use std::error::Error;

use zvf::{Dataset, OpenOptions};

use crate::outcome::CommandOutcome;
use description::StoreDescription;

/// Describe a store: generation, kinds of geometry, space, attributes, and contents of each level
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf info tracts.zv
  zvf info tracts.zv --stats --json")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct InfoArgs {
    /// Store: a folder, a .zip file, or an address that this build supports.
    store: String,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
    /// Show how links are stored, and count all links that queries return.
    ///
    /// Lists conventions, capabilities, and the links of each level by the level that they lead to. In
    /// skeletons, the order of rows implies most links. Counting them reads fragments and links.
    #[arg(long)]
    physical: bool,
    /// Read all attribute values of the finest level, and print the range of each attribute. Exits with
    /// 1 if some are damaged.
    #[arg(long)]
    stats: bool,
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
    let mut description = StoreDescription::read(&dataset).await?;
    if arguments.physical {
        description.count_links(&dataset).await?;
        description.list_links(&dataset).await?;
    }
    let mut is_whole = true;
    if arguments.stats {
        is_whole = description.compute_ranges(&dataset).await?;
    }
    #[cfg(feature = "render")]
    if let Some(file) = &arguments.plot {
        plot::draw(&dataset, &description.info, file).await?;
    }
    let text = if arguments.json {
        serde_json::to_string_pretty(&output::object(&description))?
    } else {
        output::text(dataset.address(), &description)?
    };
    let mut outcome = CommandOutcome::from(text);
    outcome.is_negative = !is_whole;
    Ok(outcome)
}
