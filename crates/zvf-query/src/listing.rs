//! What a store says of objects without any geometry being read.

use std::sync::Arc;

use zvf_model::{fetch::Fetch, level::LevelId};

use crate::{
    answer::Column,
    error::QueryError,
    level::Session,
    missing::Ledger,
    objects::{Objects, SomeObjects},
    predicate::Scope,
    tables::GroupList,
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
        self.objects(&level, &Ledger::new(false)).await
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
        self.some_objects(&level, ids, &Ledger::new(false)).await
    }

    /// Names of the attributes of a scope, ascending. Two round trips, and a
    /// store that can list.
    ///
    /// # Errors
    ///
    /// [`QueryError`]
    pub async fn attribute_list(
        &self,
        level: LevelId,
        scope: Scope,
    ) -> Result<Arc<Vec<String>>, QueryError> {
        let level = self.level(level).await?;
        self.attribute_names(&level, scope).await
    }

    /// An attribute of objects: values of these rows of the object index in this
    /// order, of all that are stored when `None`. Those may be fewer than there
    /// are objects; rows past them have no value. Three round trips at most.
    ///
    /// # Errors
    ///
    /// [`QueryError`], [`NoAttribute`](QueryError::NoAttribute) when it is not
    /// there.
    pub async fn object_values(
        &self,
        level: LevelId,
        name: &str,
        rows: Option<&[u64]>,
    ) -> Result<Column, QueryError> {
        let level = self.level(level).await?;
        let ledger = &Ledger::new(false);
        self.object_column(&level, name, rows, ledger).await
    }

    /// The groups of a level; `None` when it has none. Three round trips at most.
    ///
    /// # Errors
    ///
    /// [`QueryError`]
    pub async fn group_list(&self, level: LevelId) -> Result<Option<Arc<GroupList>>, QueryError> {
        let level = self.level(level).await?;
        self.groups(&level, &Ledger::new(false)).await
    }

    /// An attribute of groups, by their numbers; otherwise as
    /// [`object_values`](Self::object_values).
    ///
    /// # Errors
    ///
    /// As for [`object_values`](Self::object_values).
    pub async fn group_values(
        &self,
        level: LevelId,
        name: &str,
        groups: Option<&[u64]>,
    ) -> Result<Column, QueryError> {
        let level = self.level(level).await?;
        let ledger = &Ledger::new(false);
        self.group_column(&level, name, groups, ledger).await
    }
}
