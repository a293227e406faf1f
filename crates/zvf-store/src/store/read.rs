//! Reads of many ranges of many objects in one round trip.

use core::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use super::Store;
use crate::io::{ByteBudget, FetchResult, Read, ReadError, ReadPlan, Responses};

impl Store {
    /// Reads ranges of objects in one round trip.
    ///
    /// The results are in the order of `reads`; `None` is an absent object. Equal reads are fetched
    /// once, near ranges of an object in one request, and the size of an object is never requested.
    /// An empty range needs no request and is `Some`, even for an absent object.
    ///
    /// # Errors
    ///
    /// The first [`ReadError`]. A range past the end of its object is an error: results are never
    /// shorter than the range.
    pub async fn read(&self, reads: &[Read]) -> Result<Vec<Option<Bytes>>, ReadError> {
        let plan = ReadPlan::new(reads, self.merge_policy(), |key| self.is_read_whole(key));
        let budget = Arc::new(ByteBudget::new(self.budget()));
        let (requests, mut responses) = plan.admit(&budget);
        if let Some(error) = responses.first_error() {
            return Err(error.clone());
        }
        let mut fetched = pin!(self.fetch_all(requests, &budget));
        while let Some((request, result)) = fetched.next().await {
            responses.set(request, Ok(result?));
        }
        plan.results(reads, &responses).collect()
    }

    /// Reads ranges of objects as [`read`](Self::read) does, with a separate result for each read.
    ///
    /// A request that fails does so for all reads that it serves. Reads are admitted to the
    /// memory budget in order; a read that does not fit is not sent.
    pub async fn read_each(&self, reads: &[Read]) -> Vec<Result<Option<Bytes>, ReadError>> {
        let (plan, responses) = self.respond_each(reads).await;
        plan.results(reads, &responses).collect()
    }

    /// Reads ranges of objects as [`read_each`](Self::read_each) does. Returns the whole response that
    /// contains each range, which is at least as long as the range unless the object ends before.
    pub(crate) async fn read_around(&self, reads: &[Read]) -> Vec<FetchResult> {
        let (plan, responses) = self.respond_each(reads).await;
        plan.around(reads, &responses).collect()
    }

    /// Plans and sends the requests of reads.
    async fn respond_each<'r>(&self, reads: &'r [Read]) -> (ReadPlan<'r>, Responses) {
        let plan = ReadPlan::new(reads, self.merge_policy(), |key| self.is_read_whole(key));
        let budget = Arc::new(ByteBudget::new(self.budget()));
        let (requests, mut responses) = plan.admit(&budget);
        let mut fetched = pin!(self.fetch_all(requests, &budget));
        while let Some((request, result)) = fetched.next().await {
            responses.set(request, result);
        }
        (plan, responses)
    }

    /// Sends numbered requests concurrently and yields their results as they arrive.
    fn fetch_all<'a>(
        &'a self,
        requests: Vec<(usize, Read)>,
        budget: &'a Arc<ByteBudget>,
    ) -> impl Stream<Item = (usize, FetchResult)> + 'a {
        if let Some(folder) = self.folder() {
            let files = self.fetch_files(folder, requests, Arc::clone(budget));
            return stream::once(files).flat_map(stream::iter).left_stream();
        }
        let requests = stream::iter(requests);
        let results = requests
            .map(move |(number, read)| async move { (number, self.fetch(&read, budget).await) });
        results.buffer_unordered(self.concurrency()).right_stream()
    }

    /// Reads one range of one object.
    ///
    /// # Errors
    ///
    /// [`ReadError`], as [`read`](Self::read).
    pub async fn read_one(&self, read: Read) -> Result<Option<Bytes>, ReadError> {
        let mut results = self.read(core::slice::from_ref(&read)).await?;
        Ok(results.pop().flatten())
    }
}
