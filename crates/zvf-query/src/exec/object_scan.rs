//! Scan of objects: selection of the objects of a query, and lookup of the owners of fragments.

use std::{collections::BTreeSet, sync::Arc};

use zvf_catalog::{
    Catalog, CatalogError, Chunk, Damage, Fault, FragmentsByChunk, ObjectGroup, ObjectSet, Schema,
    child,
};
use zvf_model::{column::Column, key::Key};

use super::{
    context::ExecContext,
    operator::{Details, LaterRead, Operator},
};
use crate::{
    batch::{columns::ColumnViews, vertices::Owners},
    error::QueryError,
    predicate::Scope,
    resolve::query::LevelQuery,
    sync::lock,
};

/// The operator that reads all objects of the level, to name the owners of vertices.
#[derive(Debug)]
pub(crate) struct OwnerScan;

impl Operator for OwnerScan {
    const NAME: &'static str = "ObjectScan";

    fn details(&self, _: &LevelQuery<'_>, details: &mut Details) {
        details.add("objects", "all");
    }
}

impl OwnerScan {
    /// Reads the objects, if the plan has a scan of them.
    pub(crate) async fn read(
        scan: Option<&Self>,
        context: ExecContext<'_>,
    ) -> Result<Option<Arc<ObjectSet>>, QueryError> {
        match scan {
            Some(scan) => context.of(scan).all_objects().await,
            None => Ok(None),
        }
    }
}

/// The operator that reads manifests of objects, and selects objects by id, group and predicate.
#[derive(Debug)]
pub(crate) struct ObjectScan;

impl Operator for ObjectScan {
    const NAME: &'static str = "ObjectScan";

    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        let ids = query.query.objects.as_ref();
        let groups = query.query.groups.as_ref();
        if let Some(ids) = ids {
            details.add("objects", ids.len());
        }
        if let Some(groups) = groups {
            details.add("groups", groups.len());
        }
        if ids.is_none() && groups.is_none() {
            details.add("objects", "all");
        }
        if let Some(predicate) = &query.filter.object {
            details.add("predicate", predicate);
        }
        for predicate in &query.filter.group {
            details.add("predicate", predicate);
        }
    }

    fn later_reads(&self, query: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        if query.query.groups.is_some() {
            later.push(LaterRead::always("manifests of the members of the groups"));
        }
        if query.filter.selects_by_object() {
            later.push(LaterRead::always("attributes of objects in the predicate"));
        }
    }
}

/// Objects that a query reads.
pub(crate) struct SelectedObjects {
    pub(crate) objects: Arc<ObjectSet>,
    /// Indices of the objects, in the order of the query.
    pub(crate) indices: Vec<usize>,
    /// Results of the predicate on objects, by index.
    passes: Option<Vec<bool>>,
}

impl SelectedObjects {
    /// Returns whether the predicate on objects is true for an object.
    pub(crate) fn is_selected(&self, index: usize) -> bool {
        self.passes
            .as_ref()
            .is_none_or(|passes| passes.get(index) == Some(&true))
    }
}

impl LevelQuery<'_> {
    /// Returns the node of the object index.
    pub(crate) fn manifests(&self) -> Result<Key, CatalogError> {
        child(&Catalog::node_of(&self.level)?, "object_index")
    }
}

impl ExecContext<'_> {
    /// Reads the objects that the query names, or all, and tests the predicate on them.
    pub(crate) async fn selected_objects(self) -> Result<Option<SelectedObjects>, QueryError> {
        let (catalog, level, diagnostics) = (self.catalog, &self.query.level, self.diagnostics);
        let Some(wanted) = self.wanted_ids().await? else {
            let Some(objects) = self.all_objects().await? else {
                return Ok(None);
            };
            let passes = self.filtered_objects(&objects).await?;
            let indices = (0..objects.len()).collect();
            return Ok(Some(SelectedObjects {
                objects,
                indices,
                passes,
            }));
        };
        if catalog.object_index(level).await?.is_none() {
            return if wanted.is_empty() {
                Ok(None)
            } else {
                Err(CatalogError::NoObjects(level.id()).into())
            };
        }
        let found = catalog.lookup_objects(level, &wanted, diagnostics).await?;
        let objects = found.objects;
        let mut indices = Vec::with_capacity(wanted.len());
        for (id, index) in wanted.into_iter().zip(found.indices) {
            match index {
                Some(index) => indices.push(index),
                None if objects.is_incomplete() => {}
                None => match &self.query.absent {
                    Some(absent) => {
                        lock(absent).insert(id);
                    }
                    None => {
                        let level = level.id();
                        let error = QueryError::NoObject { id, level };
                        diagnostics.absent(&self.query.manifests()?, error)?;
                    }
                },
            }
        }
        let passes = self.filtered_objects(&objects).await?;
        Ok(Some(SelectedObjects {
            objects,
            indices,
            passes,
        }))
    }

    /// Returns the ids that the query names: of objects in their order, then of members of
    /// groups, ascending.
    async fn wanted_ids(self) -> Result<Option<Vec<i64>>, QueryError> {
        let query = self.query.query;
        if query.objects.is_none() && query.groups.is_none() {
            return Ok(None);
        }
        let mut wanted = query.objects.clone().unwrap_or_default();
        if let Some(ids) = &query.groups {
            let mut members = BTreeSet::new();
            for group in self.requested_groups(ids).await? {
                members.extend(group.members);
            }
            for id in &wanted {
                members.remove(id);
            }
            wanted.extend(members);
        }
        Ok(Some(wanted))
    }

    /// Reports chunks that manifests name and that have no vertices.
    pub(crate) fn check_chunks(
        self,
        schema: &Schema,
        objects: Option<&Arc<ObjectSet>>,
    ) -> Result<(), QueryError> {
        let query = self.query;
        let allowed = query.allowed()?;
        let named = objects.into_iter().flat_map(|objects| objects.chunks());
        let absent = named.filter(|chunk| !schema.vertices.has(chunk));
        for chunk in absent {
            let area = query.area.as_ref();
            let is_scanned = area.is_none_or(|area| area.may_contain(chunk));
            if is_scanned && allowed.allows(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                self.diagnostics
                    .skip(Damage::new(&query.manifests()?, fault))?;
            }
        }
        Ok(())
    }

    /// Returns the fragments of the selected objects, by chunk.
    pub(crate) async fn members(self) -> Result<(FragmentsByChunk, Arc<ObjectSet>), QueryError> {
        let selected = self
            .selected_objects()
            .await?
            .ok_or(CatalogError::NoObjects(self.query.level.id()))?;
        let indices = selected
            .indices
            .iter()
            .copied()
            .filter(|index| selected.is_selected(*index));
        let members = FragmentsByChunk::of(&selected.objects, indices);
        Ok((members, selected.objects))
    }

    /// Reads all objects; `None` for a level without an object index.
    pub(crate) async fn all_objects(self) -> Result<Option<Arc<ObjectSet>>, QueryError> {
        let (level, diagnostics) = (&self.query.level, self.diagnostics);
        Ok(self.catalog.objects(level, diagnostics).await?)
    }

    /// Returns the objects of the fragments of a chunk.
    pub(crate) fn owners_of(
        self,
        objects: Option<&Arc<ObjectSet>>,
        chunk: &Chunk,
    ) -> Result<Owners, QueryError> {
        let Some(objects) = objects else {
            return Ok(Owners::default());
        };
        let fragments = chunk.fragments.len();
        let pairs = objects.owners_of(&chunk.chunk);
        let beyond = pairs.iter().map(|(fragment, _)| fragment);
        if let Some(fragment) = beyond.max().filter(|last| *last >= fragments) {
            let fault = Fault::NoFragment {
                fragment,
                fragments,
            };
            let manifests = self.query.manifests()?;
            self.diagnostics
                .skip(Damage::in_chunk(&manifests, &chunk.chunk, fault))?;
        }
        let present = pairs.iter().filter(|(fragment, _)| *fragment < fragments);
        Ok(Owners::new(present))
    }

    /// Reads the groups with these numbers.
    pub(crate) async fn requested_groups(
        self,
        ids: &[u64],
    ) -> Result<Vec<ObjectGroup>, QueryError> {
        let (level, diagnostics) = (&self.query.level, self.diagnostics);
        let groups = self.catalog.groups(level, diagnostics).await?;
        let mut requested = Vec::with_capacity(ids.len());
        for id in ids {
            let budget = self.catalog.fetch.budget();
            let group = groups.as_ref().map(|groups| groups.group(*id, budget));
            match group.transpose()?.flatten() {
                Some(group) => requested.push(group),
                None => {
                    let node = Catalog::node_of(level)?;
                    let (id, level) = (*id, level.id());
                    diagnostics.absent(&node, QueryError::NoGroup { id, level })?;
                }
            }
        }
        Ok(requested)
    }

    /// Reads the columns of objects that the predicate uses, for `objects` or for all.
    pub(crate) async fn object_columns_of_filter(
        self,
        objects: Option<&ObjectSet>,
    ) -> Result<Vec<Column>, QueryError> {
        let rows = objects.and_then(ObjectSet::rows);
        let (level, names) = (&self.query.level, &self.query.filter.names.object);
        let columns = self
            .catalog
            .object_columns(level, names, rows, self.diagnostics);
        Ok(columns.await?)
    }

    /// Evaluates the parts of the predicate about objects and groups, for each row of the object
    /// index; `None` if there are no such parts.
    async fn filtered_objects(self, objects: &ObjectSet) -> Result<Option<Vec<bool>>, QueryError> {
        let (level, filter) = (&self.query.level, &self.query.filter);
        if !filter.selects_by_object() {
            return Ok(None);
        }
        let mut selected = vec![true; objects.len()];
        if let Some(predicate) = &filter.object {
            let columns = self.object_columns_of_filter(Some(objects)).await?;
            let views = ColumnViews::of(Scope::Object, &columns);
            let bound = predicate.bind(&views)?;
            for (row, selected) in selected.iter_mut().enumerate() {
                *selected &= bound.evaluate(&views, row).is_true();
            }
        }
        for predicate in &filter.group {
            let groups = self.catalog.groups(level, self.diagnostics).await?;
            let names = &filter.names.group;
            let columns = self
                .catalog
                .group_columns(level, names, None, self.diagnostics)
                .await?;
            let views = ColumnViews::of(Scope::Group, &columns);
            let bound = predicate.bind(&views)?;
            let Some(groups) = groups else {
                selected.fill(false);
                break;
            };
            let mut of_groups = vec![false; objects.len()];
            for group in 0..groups.len() {
                let row = usize::try_from(group).unwrap_or(usize::MAX);
                if !bound.evaluate(&views, row).is_true() {
                    continue;
                }
                let Some(members) = groups.members(group) else {
                    continue;
                };
                // A range may be longer than the list of objects.
                if let Some(range) = members.as_range() {
                    for (index, flag) in of_groups.iter_mut().enumerate() {
                        *flag |= objects.id(index).is_some_and(|id| range.contains(&id));
                    }
                    continue;
                }
                for index in members.iter().filter_map(|id| objects.find(id)) {
                    if let Some(flag) = of_groups.get_mut(index) {
                        *flag = true;
                    }
                }
            }
            for (selected, of_groups) in selected.iter_mut().zip(of_groups) {
                *selected &= of_groups;
            }
        }
        Ok(Some(selected))
    }
}
