//! Attributes and groups of a level.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use futures_util::future::try_join_all;
use zvf_model::{fetch::BoxFuture, key::Key, layout::ArrayRole, scope::Scope};

use super::{AttributeTable, GroupList};
use crate::{
    catalog::Catalog,
    diagnostics::Diagnostics,
    error::CatalogError,
    level::{CachedLookup, Level},
    sync::lock,
};
use zvf_model::column::Column;

/// Open attribute tables and groups of a level.
#[derive(Debug, Default)]
struct TableCache {
    /// Tables by their node; `None` for a node that does not exist.
    attributes: Mutex<HashMap<Key, Option<Arc<AttributeTable>>>>,
    /// The groups once they are read; `Some(None)` for a level without groups.
    groups: Mutex<CachedLookup<GroupList>>,
}

impl Catalog<'_> {
    /// Opens an attribute of objects or groups. Takes one round trip on first use.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::NoAttribute`] if it does not exist.
    pub(crate) async fn table(
        &self,
        level: &Level,
        scope: Scope,
        name: &str,
    ) -> Result<Arc<AttributeTable>, CatalogError> {
        let key = self.described_at(level, &scope.array(name))?;
        let absent = || {
            self.absent_attribute(level, scope, name)
                .unwrap_or_else(|error| error)
        };
        let key = key.ok_or_else(absent)?;
        let cache = level.extension::<TableCache>();
        let known = lock(&cache.attributes).get(&key).cloned();
        if let Some(table) = known {
            return table.ok_or_else(absent);
        }
        let table = self.table_at(&key, name).await?.map(Arc::new);
        let mut tables = lock(&cache.attributes);
        let table = tables.entry(key).or_insert(table).clone();
        table.ok_or_else(absent)
    }

    /// Reads an attribute of objects for these rows of the object index, in this order, or for all
    /// stored rows if `rows` is `None`. Rows past the stored ones are null. Takes one round trip,
    /// and another on first use of the attribute.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::NoAttribute`] if the attribute does not exist.
    pub(crate) async fn object_column(
        &self,
        level: &Level,
        name: &str,
        rows: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Column, CatalogError> {
        let table = self.table(level, Scope::Object, name).await?;
        self.table_column(&table, rows, diagnostics).await
    }

    /// Reads several attributes of objects concurrently.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if an attribute does not exist, or for damage that `diagnostics` does not
    /// skip.
    pub fn object_columns<'f>(
        &'f self,
        level: &'f Level,
        names: &'f [String],
        rows: Option<&'f [u64]>,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Vec<Column>, CatalogError>> {
        Box::pin(async move {
            let columns = names
                .iter()
                .map(|name| self.object_column(level, name, rows, diagnostics));
            try_join_all(columns).await
        })
    }

    /// Reads several attributes of groups concurrently.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object_columns`](Self::object_columns).
    pub fn group_columns<'f>(
        &'f self,
        level: &'f Level,
        names: &'f [String],
        groups: Option<&'f [u64]>,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Vec<Column>, CatalogError>> {
        Box::pin(async move {
            let columns = names
                .iter()
                .map(|name| self.group_column(level, name, groups, diagnostics));
            try_join_all(columns).await
        })
    }

    /// Reads an attribute of groups by group number; otherwise like
    /// [`object_column`](Self::object_column).
    pub(crate) async fn group_column(
        &self,
        level: &Level,
        name: &str,
        groups: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Column, CatalogError> {
        let table = self.table(level, Scope::Group, name).await?;
        self.table_column(&table, groups, diagnostics).await
    }

    /// Reads the groups of a level; `None` if it has none. Takes two round trips on first use.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] for damage that `diagnostics` does not skip.
    pub fn groups<'f>(
        &'f self,
        level: &'f Level,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Option<Arc<GroupList>>, CatalogError>> {
        Box::pin(async move {
            let cache = level.extension::<TableCache>();
            let known = lock(&cache.groups).clone();
            if let Some(groups) = known {
                let notes = groups.iter().flat_map(|groups| groups.notes());
                notes.for_each(|note| diagnostics.note(note.clone()));
                return Ok(groups);
            }
            let groups = match self.described_at(level, &ArrayRole::Groups)? {
                Some(key) => {
                    self.groups_at(&key, self.layout.groups, diagnostics)
                        .await?
                }
                None => None,
            };
            let groups = groups.map(Arc::new);
            if groups.as_ref().is_none_or(|groups| !groups.is_incomplete()) {
                *lock(&cache.groups) = Some(groups.clone());
            }
            Ok(groups)
        })
    }
}
