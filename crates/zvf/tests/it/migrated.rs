//! Migrated stores hold the content of their source.

mod answers;
mod content;
mod golden;
mod hostile;
mod random;
mod repaired;

use zvf::{Dataset, Error, MigrateOptions, MigrateReport, Profile, Store};

/// Migrates a store; returns the new store and the report.
pub(crate) async fn migrated(
    source: &Dataset,
    profile: Profile,
) -> Result<(Dataset, MigrateReport), Error> {
    let mut options = MigrateOptions::default();
    options.profile = profile;
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none)?;
    options.name = Some("migrated".to_owned());
    options.seal = false;
    let report = zvf::migrate_dataset(source, &store, &options).await?;
    let dataset = Dataset::open(store).await?;
    Ok((dataset, report))
}
