//! What a store says of objects without any geometry being read.

use std::sync::Arc;

use zvf_model::{fetch::Fetch, level::LevelId};

use crate::{
    error::QueryError,
    level::Session,
    missing::Ledger,
    objects::{Objects, SomeObjects},
};

impl<F: Fetch> Session<'_, F> {
    /// All objects of a level with their ids and pieces; `None` when it has no
    /// object index. Two round trips, one more for every quarter of a million
    /// objects; none once they were read.
    ///
    /// # Errors
    ///
    /// [`QueryError`], [`OverBudget`](QueryError::OverBudget) when they take more
    /// memory than may be held.
    pub async fn object_list(&self, level: LevelId) -> Result<Option<Arc<Objects>>, QueryError> {
        let level = self.level(level).await?;
        self.objects(&level, &mut Ledger::new(false)).await
    }

    /// The objects of these ids with their pieces. Two round trips where objects
    /// are numbered, else up to four; none once all objects were read.
    ///
    /// # Errors
    ///
    /// [`QueryError`], [`NoObjects`](QueryError::NoObjects) when the level has no
    /// object index. An id that no object has is no error.
    pub async fn object_list_of(
        &self,
        level: LevelId,
        ids: &[i64],
    ) -> Result<SomeObjects, QueryError> {
        let level = self.level(level).await?;
        self.some_objects(&level, ids, &mut Ledger::new(false))
            .await
    }
}
