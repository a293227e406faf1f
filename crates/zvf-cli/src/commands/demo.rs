//! `zvf demo`: writes sample stores and runs queries on them.

#[expect(
    clippy::cast_possible_truncation,
    reason = "the numbers of the demo are small"
)]
mod cells;
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the numbers of the demo are small"
)]
mod neurons;
mod output;
mod queries;
mod random;
mod stores;
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the numbers of the demo are small"
)]
mod surface;
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the numbers of the demo are small"
)]
mod tracts;

use std::{
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use crate::{outcome::CommandOutcome, progress::ProgressLine};

use output::DemoOutput;
use stores::{DemoOptions, STORES};

/// Write sample stores into a folder and show what can be done with them.
///
/// Writes streamlines of a brain, neurons, cells in layers and a folded surface, builds their
/// levels, validates them, runs five queries with their costs, draws pictures, and suggests further
/// commands.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct DemoArgs {
    /// Folder; created if it does not exist, otherwise it must be empty.
    #[arg(default_value = "zvf-demo")]
    folder: PathBuf,
    /// Seed of the random geometry.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Write into a folder that is not empty, replacing only stores and pictures of the demo.
    #[arg(long)]
    overwrite: bool,
    /// Write a twelfth of the geometry and small pictures, for slow machines and tests.
    #[arg(long)]
    small: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("{0} is not empty; name another folder, or add --overwrite")]
    NotEmpty(String),
    #[error("the folder {folder} cannot be used")]
    Folder { folder: String, source: io::Error },
}

/// The current step, for the progress line.
#[derive(Clone, Default)]
struct CurrentStep(Arc<Mutex<String>>);

impl CurrentStep {
    fn set_step(&self, what: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    fn get(&self) -> String {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Runs the demo.
pub(crate) async fn run(arguments: &DemoArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let begun = Instant::now();
    let folder = &arguments.folder;
    prepare(folder, arguments.overwrite)?;
    let ways = DemoOptions {
        seed: arguments.seed,
        fewer: if arguments.small { 12 } else { 1 },
        overwrite: arguments.overwrite,
    };
    if !arguments.quiet {
        anstream::eprintln!(
            "{}",
            announcement(&folder.display().to_string(), ways.fewer)
        );
    }
    let now = CurrentStep::default();
    let progress = {
        let now = now.clone();
        ProgressLine::with_message(arguments.quiet, move || now.get())
    };
    let mut report = DemoOutput::new(folder);
    for sample in STORES {
        now.set_step(format!("writing {}", sample.file));
        let made = Box::pin(sample.make(folder, ways)).await?;
        report.stores.push(made);
    }
    for (at, step) in queries::steps().into_iter().enumerate() {
        now.set_step(format!("query {}", at + 1));
        report.queries.push(step.take(folder).await?);
    }
    for sample in STORES {
        now.set_step(format!("drawing {}", sample.picture));
        report.pictures.push(sample.draw(folder, ways.fewer).await?);
    }
    drop(progress);
    report.seconds = begun.elapsed().as_secs_f64();
    let is_negative = report.stores.iter().any(|store| store.errors > 0);
    let text = if arguments.json {
        serde_json::to_string_pretty(&report.object())?
    } else {
        report.text()
    };
    Ok(CommandOutcome {
        text,
        is_negative,
        ..CommandOutcome::default()
    })
}

/// Says what the demo will do and about how long it takes.
fn announcement(folder: &str, fewer: u32) -> String {
    let extent = match fewer {
        1 => "20 MB; takes about 5 seconds on two cores",
        _ => "2 MB; takes about a second",
    };
    format!("Writing four stores to {folder}, querying and drawing them ({extent})")
}

/// Creates the folder; fails if it is not empty, unless `overwrite` is set.
fn prepare(folder: &Path, overwrite: bool) -> Result<(), DemoError> {
    let failed = |source| DemoError::Folder {
        folder: folder.display().to_string(),
        source,
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut entries = fs::read_dir(folder).map_err(failed)?;
    match entries.next() {
        Some(_) if !overwrite => Err(DemoError::NotEmpty(folder.display().to_string())),
        _ => Ok(()),
    }
}
