//! Counts the vertices of each path that touches a box, in async and in blocking code, in bounded memory.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use zvf::{BatchOptions, Bbox, Dataset, Error, Query, QueryResult, blocking};

/// Number of vertices by object.
pub type Lengths = BTreeMap<i64, u64>;

/// Can be awaited among other futures.
pub async fn lengths(address: &str, bbox: &Bbox) -> Result<Lengths, Error> {
    let dataset = Dataset::open(address).await?;
    let query = Query::new().region(*bbox);
    let mut batches = dataset.stream(&query, BatchOptions::new().rows(10_000));
    let mut lengths = Lengths::new();
    while let Some(batch) = batches.try_next().await? {
        add(&mut lengths, &batch);
    }
    Ok(lengths)
}

/// Returns when the result is complete.
pub fn lengths_blocking(address: &str, bbox: &Bbox) -> Result<Lengths, Error> {
    let dataset = blocking::Dataset::open(address)?;
    let query = Query::new().region(*bbox);
    let mut lengths = Lengths::new();
    for batch in dataset.stream(&query, BatchOptions::new().rows(10_000)) {
        add(&mut lengths, &batch?);
    }
    Ok(lengths)
}

fn add(lengths: &mut Lengths, batch: &QueryResult) {
    let Some(parts) = &batch.parts else { return };
    for (object, ends) in parts.objects.iter().zip(parts.offsets.windows(2)) {
        *lengths.entry(*object).or_default() += ends[1] - ends[0];
    }
}
