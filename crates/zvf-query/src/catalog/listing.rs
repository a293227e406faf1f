//! What a store says of objects without any geometry being read.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use zvf_model::level::LevelId;

use crate::{
    catalog::level::Session,
    catalog::objects::{ObjectLookup, Objects},
    catalog::tables::GroupList,
    diagnostics::Diagnostics,
    error::QueryError,
    predicate::Scope,
    result::Column,
};

impl Session<'_> {
    /// All objects of a level with their ids and pieces; `None` when it has no
    /// object index. Two round trips, one more for every quarter of a million
    /// objects; none once they were read.
    ///
    /// # Errors
    ///
    /// [`QueryError`], [`OverBudget`](QueryError::OverBudget) when they take more
    /// memory than may be held.
    pub fn object_list(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<Option<Arc<Objects>>, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.objects(&level, &Diagnostics::new(false)).await
        })
    }

    /// The objects of these ids with their pieces. Two round trips where objects
    /// are numbered, else up to four; none once all objects were read.
    ///
    /// # Errors
    ///
    /// [`QueryError`], [`NoObjects`](QueryError::NoObjects) when the level has no
    /// object index. An id that no object has is no error.
    pub fn object_list_of<'f>(
        &'f self,
        level: LevelId,
        ids: &'f [i64],
    ) -> BoxFuture<'f, Result<ObjectLookup, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.lookup_objects(&level, ids, &Diagnostics::new(false))
                .await
        })
    }

    /// Names of the attributes of a scope, ascending. Two round trips, and a
    /// store that can list.
    ///
    /// # Errors
    ///
    /// [`QueryError`]
    pub fn attribute_list(
        &self,
        level: LevelId,
        scope: Scope,
    ) -> BoxFuture<'_, Result<Arc<Vec<String>>, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.attribute_names(&level, scope).await
        })
    }

    /// An attribute of objects: values of these rows of the object index in this
    /// order, of all that are stored when `None`. Those may be fewer than there
    /// are objects; rows past them have no value. Three round trips at most.
    ///
    /// # Errors
    ///
    /// [`QueryError`], [`NoAttribute`](QueryError::NoAttribute) when it is not
    /// there.
    pub fn object_values<'f>(
        &'f self,
        level: LevelId,
        name: &'f str,
        rows: Option<&'f [u64]>,
    ) -> BoxFuture<'f, Result<Column, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let diagnostics = &Diagnostics::new(false);
            self.object_column(&level, name, rows, diagnostics).await
        })
    }

    /// The groups of a level; `None` when it has none. Three round trips at most.
    ///
    /// # Errors
    ///
    /// [`QueryError`]
    pub fn group_list(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<Option<Arc<GroupList>>, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.groups(&level, &Diagnostics::new(false)).await
        })
    }

    /// An attribute of groups, by their numbers; otherwise as
    /// [`object_values`](Self::object_values).
    ///
    /// # Errors
    ///
    /// As for [`object_values`](Self::object_values).
    pub fn group_values<'f>(
        &'f self,
        level: LevelId,
        name: &'f str,
        groups: Option<&'f [u64]>,
    ) -> BoxFuture<'f, Result<Column, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let diagnostics = &Diagnostics::new(false);
            self.group_column(&level, name, groups, diagnostics).await
        })
    }
}
