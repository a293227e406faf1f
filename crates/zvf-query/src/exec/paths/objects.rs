//! Which objects a query is about.

use std::collections::BTreeSet;

use super::Selected;
use crate::{diagnostics::Diagnostics, error::QueryError, resolve::query::LevelQuery};

impl LevelQuery<'_> {
    /// The objects a query names, or all, and which of them its filter selects.
    pub(crate) async fn selected_objects(
        &self,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Selected>, QueryError> {
        let Some(wanted) = self.wanted_ids(diagnostics).await? else {
            let Some(objects) = self.session.objects(&self.level, diagnostics).await? else {
                return Ok(None);
            };
            let holds = self.filtered_objects(&objects, diagnostics).await?;
            let places = (0..objects.len()).collect();
            return Ok(Some(Selected {
                objects,
                places,
                holds,
            }));
        };
        if self.session.object_index(&self.level).await?.is_none() {
            return match wanted.is_empty() {
                true => Ok(None),
                false => Err(QueryError::NoObjects(self.level.id())),
            };
        }
        let found = self
            .session
            .lookup_objects(&self.level, &wanted, diagnostics)
            .await?;
        let objects = found.objects;
        let mut places = Vec::with_capacity(wanted.len());
        for (id, place) in wanted.into_iter().zip(found.places) {
            match place {
                Some(place) => places.push(place),
                None if objects.is_incomplete() => {}
                None => {
                    let level = self.level.id();
                    diagnostics.absent(&self.manifests()?, QueryError::NoObject { id, level })?;
                }
            }
        }
        let holds = self.filtered_objects(&objects, diagnostics).await?;
        Ok(Some(Selected {
            objects,
            places,
            holds,
        }))
    }

    /// Ids the query names: of objects as given, then of groups, ascending.
    async fn wanted_ids(&self, diagnostics: &Diagnostics) -> Result<Option<Vec<i64>>, QueryError> {
        let query = self.query;
        if query.objects.is_none() && query.groups.is_none() {
            return Ok(None);
        }
        let mut wanted = query.objects.clone().unwrap_or_default();
        if let Some(ids) = &query.groups {
            let mut members = BTreeSet::new();
            for group in self.asked_groups(ids, diagnostics).await? {
                members.extend(group.members);
            }
            for id in &wanted {
                members.remove(id);
            }
            wanted.extend(members);
        }
        Ok(Some(wanted))
    }
}
