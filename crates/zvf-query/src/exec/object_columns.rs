//! Attributes of the objects in a result.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    catalog::objects::ObjectSet, diagnostics::Diagnostics, error::QueryError,
    resolve::query::LevelQuery, result::QueryResult,
};

impl LevelQuery<'_> {
    /// Sets the objects of a batch, by their indices, and reads their attributes. One round trip.
    pub(crate) async fn show_objects(
        &self,
        result: &mut QueryResult,
        objects: &ObjectSet,
        indices: &[usize],
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        result.objects = indices
            .iter()
            .filter_map(|index| objects.id(*index))
            .collect();
        let rows = indices.iter().filter_map(|index| objects.row(*index));
        let rows: Vec<u64> = rows.collect();
        let names = &self.shown.object;
        let columns = self
            .session
            .object_columns(&self.level, names, Some(&rows), diagnostics);
        result.object = columns.await?;
        Ok(())
    }

    /// Sets the objects of a batch, by their ids, and reads their attributes. One round trip.
    pub(crate) async fn add_objects(
        &self,
        result: &mut QueryResult,
        objects: Option<&Arc<ObjectSet>>,
        ids: &BTreeSet<i64>,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let Some(objects) = objects else {
            return Ok(());
        };
        let indices = ids.iter().filter_map(|id| objects.find(*id));
        let indices: Vec<usize> = indices.collect();
        self.show_objects(result, objects, &indices, diagnostics)
            .await
    }
}
