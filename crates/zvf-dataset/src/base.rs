//! The dataset that a change, a coarser level or a migration is computed from.

use zvf_model::{
    fetch::BoxFuture,
    level::{LevelId, LevelMetadata},
};
use zvf_store::Store;

use crate::{
    dataset::{Dataset, LevelInfo, count_level},
    failure::Failure,
};

pub use crate::dataset::check_whole_level;

/// Opens the dataset in `store` for a writer: without a cell cache and without checks of the head,
/// because a transaction detects changes by others.
pub fn open(store: Store) -> BoxFuture<'static, Result<Dataset, Failure>> {
    Dataset::open_store(store)
}

/// Returns the dataset with all levels, found by a listing.
pub async fn surveyed(dataset: &Dataset) -> Result<Dataset, Failure> {
    dataset.surveyed().await
}

/// Reads the metadata of a level.
pub async fn level(dataset: &Dataset, id: LevelId) -> Result<LevelMetadata, Failure> {
    dataset.level_metadata(id).await
}

/// Reads the metadata of all levels.
pub async fn levels(dataset: &Dataset) -> Result<Vec<LevelMetadata>, Failure> {
    dataset.all_levels().await
}

/// Counts the contents of a level.
pub async fn count(dataset: &Dataset, level: &LevelMetadata) -> Result<LevelInfo, Failure> {
    count_level(dataset, level).await
}
