//! `zvf migrate`: a store of another generation, written anew.

mod output;

use std::{error::Error, sync::Arc};

use zvf::{
    MigrateOptions,
    build::{CellCompression, Profile},
};

use crate::{
    arguments::named,
    arguments::values,
    hint::{Operation, with_hint},
    outcome::CommandOutcome,
    progress::{Progress, ProgressMeter},
};

pub use output::MigrateOutput;

/// What stores are migrated to.
const PROFILES: [Profile; 2] = [Profile::V09, Profile::V08];

/// Writes a store of 0.6 to 0.9 anew, as one of 0.9 or 0.8
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is there stays as it is. Cells keep their bytes wherever both generations have the same; known mistakes
of old writers are put right, and what the new store cannot hold is listed.

Examples:
  zvf migrate old.zv new.zv
  zvf migrate new.zv older.zv --profile 0.8"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct MigrateArgs {
    /// The store: a folder, a .zip file or an address.
    #[arg(value_name = "IN")]
    store: String,
    /// Where to write it.
    #[arg(value_name = "OUT")]
    out: String,
    /// The generation of the new store.
    #[arg(long, default_value = Profile::default().name(),
        value_parser = named(PROFILES, Profile::name))]
    profile: Profile,
    /// How cells are compressed: none, zstd, zstd:LEVEL, blosc, gzip or gzip:LEVEL.
    #[arg(long, value_name = "CODEC", default_value = "none", value_parser = values::compression)]
    compression: CellCompression,
    /// Leaves out checksums of cells.
    #[arg(long)]
    no_checksum: bool,
    /// Leaves the copy of the nodes out of the root, which saves requests where the
    /// store is read over the network.
    #[arg(long)]
    no_node_copy: bool,
    /// Leaves out what cannot be read, and lists it.
    #[arg(long)]
    skip_damaged: bool,
    /// Replaces a store that is there. If that is the one that is read, it is migrated
    /// in its place, all of it or not at all.
    #[arg(long)]
    overwrite: bool,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    /// Shows no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// Migrates a store.
pub(crate) async fn run(arguments: &MigrateArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = MigrateOptions::default();
    options.profile = arguments.profile;
    options.compression = arguments.compression;
    options.checksum = arguments.no_checksum.then_some(false);
    options.node_copy = !arguments.no_node_copy;
    options.skip_damaged = arguments.skip_damaged;
    if arguments.overwrite {
        options.overwrite = true;
    }
    let meter = ProgressMeter::default();
    let shown = meter.clone();
    options.progress = Some(Arc::new(move |done, of| shown.set(done, of)));
    let what = format!("migrating {}", arguments.store);
    let progress = Progress::with_meter(arguments.quiet, what, meter);
    let migrated = zvf::migrate(&arguments.store, &arguments.out, &options).await;
    drop(progress);
    let migrated = migrated.map_err(|error| with_hint(Operation::Migrate, error))?;
    let report = MigrateOutput::new(&arguments.out, migrated);
    Ok(CommandOutcome::from(match arguments.json {
        true => format!("{:#}", report.object()),
        false => report.text(),
    }))
}
