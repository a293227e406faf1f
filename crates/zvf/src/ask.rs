//! Asking a dataset.

use core::ops::ControlFlow;

use zvf_query::{Answer, Counts, Explanation, Outcome, Query};

use crate::{dataset::Dataset, error::Error};

impl Dataset {
    /// All that a query selects, in memory at once.
    ///
    /// # Errors
    ///
    /// [`Error::Query`], also when the answer takes more memory than the
    /// budget the store was opened with: then ask for
    /// [`batches`](Self::batches).
    pub async fn query(&self, query: &Query) -> Result<Answer, Error> {
        Ok(self.session().query(query).await?)
    }

    /// Gives what a query selects piece by piece, so that little of it is in
    /// memory at a time; a break ends the query. Pieces in order are the answer.
    ///
    /// # Errors
    ///
    /// [`Error::Query`]; pieces given before it are right, but not all.
    pub async fn batches(
        &self,
        query: &Query,
        each: impl FnMut(Answer) -> ControlFlow<()> + Send,
    ) -> Result<Outcome, Error> {
        Ok(self.session().batches(query, each).await?)
    }

    /// How much a query selects. Reads what selecting takes, and no attribute
    /// that only an answer would show.
    ///
    /// # Errors
    ///
    /// [`Error::Query`].
    pub async fn count(&self, query: &Query) -> Result<Counts, Error> {
        Ok(self.session().count(query).await?)
    }

    /// What a query would read, found out from metadata and listings.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the query cannot be asked of the store.
    pub async fn explain(&self, query: &Query) -> Result<Explanation, Error> {
        Ok(self.session().explain(query).await?)
    }
}
