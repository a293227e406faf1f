//! Groups of objects by name.

use std::sync::Arc;

use zvf_catalog::GroupList;
use zvf_model::{closest::closest, column::Column, level::LevelId, scope::Scope};
use zvf_query::QueryError;

use super::Dataset;
use crate::{
    error::{Error, boxed},
    failure::Failure,
};

/// Attribute that holds the names of groups.
const NAME: &str = "name";

impl Dataset {
    /// Returns the numbers of the groups of a level with these names, which are values of the group
    /// attribute `name`. Several groups may have the same name.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoGroupName`] if there is no group of a name; [`Error`] if the table of groups is
    /// damaged.
    pub async fn groups_named(&self, level: LevelId, names: &[String]) -> Result<Vec<u64>, Error> {
        boxed(async move {
            let stored = self.group_names(level).await?;
            let mut numbers = Vec::with_capacity(names.len());
            for name in names {
                let before = numbers.len();
                let rows = (0_u64..).zip(stored.iter().flat_map(Column::texts));
                let own = rows.filter(|(_, text)| *text == Some(name.as_str()));
                numbers.extend(own.map(|(number, _)| number));
                if numbers.len() == before {
                    let known = stored.iter().flat_map(Column::texts).flatten();
                    return Err(Failure::Query(QueryError::NoGroupName {
                        name: name.clone(),
                        level,
                        closest: closest(name, known).map(str::to_owned),
                    }));
                }
            }
            Ok(numbers)
        })
        .await
    }

    /// Returns the members of the groups of a level, and the attributes of groups, with a row for each
    /// number; `None` if the level has no groups.
    ///
    /// # Errors
    ///
    /// [`Error`] if a table is damaged.
    pub async fn group_table(
        &self,
        level: LevelId,
    ) -> Result<Option<(Arc<GroupList>, Vec<Column>)>, Error> {
        boxed(async move {
            let catalog = self.catalog();
            let Some(groups) = catalog.group_list(level).await? else {
                return Ok(None);
            };
            let mut columns = Vec::new();
            for name in catalog.attribute_list(level, Scope::Group).await?.iter() {
                columns.push(catalog.group_values(level, name, None).await?);
            }
            Ok(Some((groups, columns)))
        })
        .await
    }

    /// Returns the names of the groups of a level; `None` if groups have none.
    async fn group_names(&self, level: LevelId) -> Result<Option<Column>, Failure> {
        let catalog = self.catalog();
        let names = catalog.attribute_list(level, Scope::Group).await?;
        if !names.iter().any(|name| name == NAME) {
            return Ok(None);
        }
        Ok(Some(catalog.group_values(level, NAME, None).await?))
    }
}
