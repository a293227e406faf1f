//! What the library answers: the one place that asks it.
#![expect(clippy::unused_async, reason = "the library answers async")]

use std::error::Error;

use zvf::{
    Dataset,
    query::{Answer, Query},
};

use super::Counts;

const TO_COME: &str =
    "this build of zvf opens stores but cannot query them yet; `zvf info` counts what is in them";

/// What a query finds.
pub(super) async fn answer(_: &Dataset, _: &Query) -> Result<Answer, Box<dyn Error>> {
    Err(TO_COME.into())
}

/// How much a query finds.
pub(super) async fn count(_: &Dataset, _: &Query) -> Result<Counts, Box<dyn Error>> {
    Err(TO_COME.into())
}

/// What a query would read, for people.
pub(super) async fn explain(_: &Dataset, _: &Query) -> Result<String, Box<dyn Error>> {
    Err(TO_COME.into())
}
