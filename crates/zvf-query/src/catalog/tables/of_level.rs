//! Attributes and groups of a level.

use std::sync::Arc;

use futures_util::future::try_join_all;
use zvf_model::layout::Part;

use super::{GroupList, TableArray};
use crate::{
    catalog::level::{Level, Session, lock},
    diagnostics::Diagnostics,
    error::QueryError,
    predicate::Scope,
    result::Column,
};

impl Session<'_> {
    /// An attribute of objects or groups, opened. One round trip when it is asked
    /// for first.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoAttribute`] when it is not there.
    pub(crate) async fn table(
        &self,
        level: &Level,
        scope: Scope,
        name: &str,
    ) -> Result<Arc<TableArray>, QueryError> {
        let part = match scope {
            Scope::Group => Part::GroupAttribute(name),
            _ => Part::ObjectAttribute(name),
        };
        let key = self.layout.described_at(level.id(), &part);
        let key = key.map_err(|source| QueryError::Name {
            name: name.to_owned(),
            source,
        })?;
        let absent = || Self::absent_attribute(level, scope, name).unwrap_or_else(|error| error);
        let key = key.ok_or_else(absent)?;
        let known = lock(&level.tables).get(&key).cloned();
        if let Some(table) = known {
            return table.ok_or_else(absent);
        }
        let table = self.table_at(&key, name).await?.map(Arc::new);
        let mut tables = lock(&level.tables);
        let table = tables.entry(key).or_insert(table).clone();
        table.ok_or_else(absent)
    }

    /// Values of an attribute of objects for these rows of the object index, in
    /// this order; for all that are stored when `None`, which may be fewer than
    /// there are objects. Rows past them have no value. One round trip, one more
    /// when the attribute is asked for first.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoAttribute`] when there is no such attribute.
    pub(crate) async fn object_column(
        &self,
        level: &Level,
        name: &str,
        rows: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Column, QueryError> {
        let table = self.table(level, Scope::Object, name).await?;
        self.table_column(&table, rows, diagnostics).await
    }

    /// Several attributes of objects at once: as many round trips as one takes.
    pub(crate) async fn object_columns(
        &self,
        level: &Level,
        names: &[String],
        rows: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<Column>, QueryError> {
        let columns = names
            .iter()
            .map(|name| self.object_column(level, name, rows, diagnostics));
        try_join_all(columns).await
    }

    /// Several attributes of groups at once.
    pub(crate) async fn group_columns(
        &self,
        level: &Level,
        names: &[String],
        groups: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<Column>, QueryError> {
        let columns = names
            .iter()
            .map(|name| self.group_column(level, name, groups, diagnostics));
        try_join_all(columns).await
    }

    /// Values of an attribute of groups, as [`object_column`](Self::object_column)
    /// by the numbers of groups.
    pub(crate) async fn group_column(
        &self,
        level: &Level,
        name: &str,
        groups: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Column, QueryError> {
        let table = self.table(level, Scope::Group, name).await?;
        self.table_column(&table, groups, diagnostics).await
    }

    /// The groups of a level; `None` when it has none. Two round trips when they
    /// are asked for first.
    pub(crate) async fn groups(
        &self,
        level: &Level,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Arc<GroupList>>, QueryError> {
        let known = lock(&level.groups).clone();
        if let Some(groups) = known {
            let notes = groups.iter().flat_map(|groups| groups.notes());
            notes.for_each(|note| diagnostics.note(note.clone()));
            return Ok(groups);
        }
        let key = self.layout.described_at(level.id(), &Part::Groups);
        let key = key.map_err(|source| QueryError::Name {
            name: level.id().to_string(),
            source,
        })?;
        let groups = match key {
            Some(key) => {
                self.groups_at(&key, self.layout.groups, diagnostics)
                    .await?
            }
            None => None,
        };
        let groups = groups.map(Arc::new);
        if groups.as_ref().is_none_or(|groups| !groups.is_incomplete()) {
            *lock(&level.groups) = Some(groups.clone());
        }
        Ok(groups)
    }
}
