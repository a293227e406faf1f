//! Stores that were migrated hold what was in them.

mod content;
mod golden;
mod hostile;
mod random;
mod repaired;

use zvf::{Dataset, Error, MigrateOptions, Migrated, Store, build::Profile, migrate_in};

/// The store that another becomes, and what was said about it.
async fn migrated(source: &Dataset, profile: Profile) -> Result<(Dataset, Migrated), Error> {
    let mut options = MigrateOptions::default();
    options.profile = profile;
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none)?;
    let report = migrate_in(source, &store, "migrated", &options).await?;
    let dataset = Dataset::from_store("memory:", store).await?;
    Ok((dataset, report))
}
