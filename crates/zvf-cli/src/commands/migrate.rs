//! `zvf migrate`: rewrites a store as one of another generation.

mod output;

use std::{error::Error, sync::Arc};

use zvf::{CellChecksums, CellCompression, MigrateOptions, Profile, TaskPlan, TaskPlanOptions};
use zvf_store::CreateError;

use crate::{
    arguments::named,
    arguments::values,
    hint::{Operation, with_hint},
    outcome::{CommandOutcome, unfinished_warning},
    progress::{ProgressLine, ProgressMeter},
};

pub use output::MigrateOutput;
pub(crate) use output::notes;

/// Profiles to which stores can be migrated.
const PROFILES: [Profile; 3] = [Profile::V09, Profile::V10, Profile::V08];

/// Rewrite a store of 0.6 to 0.10 as a store of 0.9, 0.10 (preview) or 0.8
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The old store stays unchanged. Cells keep their bytes if both generations encode them equally. Known defects of
old writers are repaired, and data that the new store cannot hold is listed.

Examples:
  zvf migrate old.zv new.zv
  zvf migrate new.zv older.zv --profile 0.8
  zvf migrate new.zv new.zv --profile 0.10 --overwrite"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct MigrateArgs {
    /// Store to read: a folder, a .zip file or an address.
    #[arg(value_name = "IN")]
    store: String,
    /// Store to write.
    #[arg(value_name = "OUT")]
    out: String,
    /// Format generation of the new store.
    ///
    /// 0.10 is a preview: no other program reads it yet, and details may change.
    #[arg(long, default_value = Profile::default().name(),
        value_parser = named(PROFILES, Profile::name))]
    profile: Profile,
    #[arg(long, value_name = "CODEC", default_value = "none", value_parser = values::compression,
        help = format!("Compression of cells: {}", CellCompression::WORDS))]
    compression: CellCompression,
    /// Write cells without checksums.
    #[arg(long)]
    no_checksum: bool,
    /// Omit the copy of all metadata nodes in the root.
    ///
    /// The copy saves requests when the store is read over the network.
    #[arg(long)]
    no_node_copy: bool,
    /// Omit the inventory of all files, against which every read of the new store is checked.
    #[arg(long)]
    no_seal: bool,
    /// Skip parts that cannot be read, and list them.
    #[arg(long)]
    skip_damaged: bool,
    /// Replace an existing store.
    ///
    /// If the two stores are the same, it is migrated in place in one transaction.
    #[arg(long)]
    overwrite: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

impl MigrateArgs {
    fn options(&self) -> MigrateOptions {
        let mut options = MigrateOptions::default();
        options.profile = self.profile;
        options.compression = self.compression;
        if self.no_checksum {
            options.checksums = CellChecksums::Off;
        }
        options.node_copy = !self.no_node_copy;
        options.seal = !self.no_seal;
        options.skip_damaged = self.skip_damaged;
        options.overwrite = self.overwrite;
        options
    }
}

/// Migrates the store.
pub(crate) async fn run(arguments: &MigrateArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = arguments.options();
    let meter = ProgressMeter::default();
    let shown = meter.clone();
    options.progress = Some(Arc::new(move |done, of| shown.set(done, of)));
    let what = format!("migrating {}", arguments.store);
    let progress = ProgressLine::with_meter(arguments.quiet, what, meter);
    let migrated = zvf::migrate(&arguments.store, &arguments.out, &options).await;
    drop(progress);
    let migrated = migrated.map_err(|error| with_hint(Operation::Migrate, error))?;
    let warning = unfinished_warning(migrated.unfinished.as_ref());
    let report = MigrateOutput::new(&arguments.out, migrated);
    let text = if arguments.json {
        format!("{:#}", report.object())
    } else {
        report.text()
    };
    Ok(CommandOutcome {
        text,
        warnings: warning.into_iter().collect(),
        ..CommandOutcome::default()
    })
}

/// Plans the migration.
pub(crate) async fn plan(
    arguments: &MigrateArgs,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Box<dyn Error>> {
    if arguments.overwrite {
        return Err(
            "tasks cannot overwrite a store: delete it first, or choose another address".into(),
        );
    }
    let options = arguments.options();
    let planned = zvf::plan_migrate(&arguments.store, &arguments.out, &options, tasks).await;
    planned.map_err(|error| {
        let is_target = error.cause::<CreateError>().is_some();
        let operation = if is_target {
            Operation::Plan
        } else {
            Operation::Migrate
        };
        with_hint(operation, error)
    })
}
