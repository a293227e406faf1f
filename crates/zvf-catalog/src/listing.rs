//! Lists objects, groups and attributes without reading geometry.

use std::sync::Arc;

use zvf_model::{fetch::BoxFuture, level::LevelId, scope::Scope};

use crate::{
    catalog::Catalog,
    diagnostics::Diagnostics,
    error::CatalogError,
    objects::{ObjectLookup, ObjectSet},
    tables::GroupList,
};
use zvf_model::column::Column;

impl Catalog<'_> {
    /// Reads all objects of a level with their ids and fragments; `None` if it has no object
    /// index. Takes two round trips, and one more per 262,144 objects; none once they are cached.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::OverBudget`] if the objects exceed the memory budget, and other
    /// errors if data cannot be read.
    pub fn object_list(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<Option<Arc<ObjectSet>>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.objects(&level, &Diagnostics::new(false)).await
        })
    }

    /// Reads the objects with these ids and their fragments. Takes two round trips if ids are
    /// rows, otherwise up to four; none once all objects are cached.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::NoObjects`] if the level has no object index. An id without an object
    /// is not an error.
    pub fn object_list_of<'f>(
        &'f self,
        level: LevelId,
        ids: &'f [i64],
    ) -> BoxFuture<'f, Result<ObjectLookup, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.lookup_objects(&level, ids, &Diagnostics::new(false))
                .await
        })
    }

    /// Returns the names of a scope's attributes, ascending; for links, those of links inside the level.
    /// Takes two round trips, for links three, and requires a store that can list.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the level cannot be read or listed.
    pub fn attribute_list(
        &self,
        level: LevelId,
        scope: Scope,
    ) -> BoxFuture<'_, Result<Arc<Vec<String>>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.own_attribute_names(&level, scope).await
        })
    }

    /// Reads an attribute of objects for these rows of the object index, in this order, or for all
    /// stored rows if `rows` is `None`. Rows past the stored ones are null. Takes at most three
    /// round trips.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::NoAttribute`] if the attribute does not exist.
    pub fn object_values<'f>(
        &'f self,
        level: LevelId,
        name: &'f str,
        rows: Option<&'f [u64]>,
    ) -> BoxFuture<'f, Result<Column, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let diagnostics = &Diagnostics::new(false);
            self.object_column(&level, name, rows, diagnostics).await
        })
    }

    /// Reads the groups of a level; `None` if it has none. Takes at most three round trips.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the groups are damaged or cannot be read.
    pub fn group_list(
        &self,
        level: LevelId,
    ) -> BoxFuture<'_, Result<Option<Arc<GroupList>>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            self.groups(&level, &Diagnostics::new(false)).await
        })
    }

    /// Reads an attribute of groups by group number; otherwise like
    /// [`object_values`](Self::object_values).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object_values`](Self::object_values).
    pub fn group_values<'f>(
        &'f self,
        level: LevelId,
        name: &'f str,
        groups: Option<&'f [u64]>,
    ) -> BoxFuture<'f, Result<Column, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let diagnostics = &Diagnostics::new(false);
            self.group_column(&level, name, groups, diagnostics).await
        })
    }
}
