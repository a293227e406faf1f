//! Scan of objects: selection of the objects of a query, and lookup of the owners of fragments.

use std::{collections::BTreeSet, sync::Arc};

use zvf_model::key::Key;

use crate::{
    batch::vertices::Owners,
    catalog::{
        chunk::Chunk,
        chunked_array::child,
        level::Session,
        objects::{FragmentsByChunk, ObjectSet},
        schema::Schema,
    },
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    resolve::query::LevelQuery,
    result::ObjectGroup,
    sync::lock,
};

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
    /// Reads the objects that the query names, or all, and tests the predicate on them.
    pub(crate) async fn selected_objects(
        &self,
        diagnostics: &Diagnostics,
    ) -> Result<Option<SelectedObjects>, QueryError> {
        let Some(wanted) = self.wanted_ids(diagnostics).await? else {
            let Some(objects) = self.session.objects(&self.level, diagnostics).await? else {
                return Ok(None);
            };
            let passes = self.filtered_objects(&objects, diagnostics).await?;
            let indices = (0..objects.len()).collect();
            return Ok(Some(SelectedObjects {
                objects,
                indices,
                passes,
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
        let mut indices = Vec::with_capacity(wanted.len());
        for (id, index) in wanted.into_iter().zip(found.indices) {
            match index {
                Some(index) => indices.push(index),
                None if objects.is_incomplete() => {}
                None => match &self.absent {
                    Some(absent) => {
                        lock(absent).insert(id);
                    }
                    None => {
                        let level = self.level.id();
                        let error = QueryError::NoObject { id, level };
                        diagnostics.absent(&self.manifests()?, error)?;
                    }
                },
            }
        }
        let passes = self.filtered_objects(&objects, diagnostics).await?;
        Ok(Some(SelectedObjects {
            objects,
            indices,
            passes,
        }))
    }

    /// Returns the ids that the query names: of objects in their order, then of members of
    /// groups, ascending.
    async fn wanted_ids(&self, diagnostics: &Diagnostics) -> Result<Option<Vec<i64>>, QueryError> {
        let query = self.query;
        if query.objects.is_none() && query.groups.is_none() {
            return Ok(None);
        }
        let mut wanted = query.objects.clone().unwrap_or_default();
        if let Some(ids) = &query.groups {
            let mut members = BTreeSet::new();
            for group in self.requested_groups(ids, diagnostics).await? {
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

impl LevelQuery<'_> {
    /// Reports chunks that manifests name and that have no vertices.
    pub(crate) fn check_chunks(
        &self,
        schema: &Schema,
        objects: Option<&Arc<ObjectSet>>,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let allowed = self.allowed()?;
        let named = objects.into_iter().flat_map(|objects| objects.chunks());
        let absent = named.filter(|chunk| !schema.vertices.has(chunk));
        for chunk in absent {
            let is_scanned = self
                .area
                .as_ref()
                .is_none_or(|area| area.may_contain(chunk));
            if is_scanned && allowed.allows(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                diagnostics.skip(Damage::new(&self.manifests()?, fault))?;
            }
        }
        Ok(())
    }

    /// Returns the fragments of the selected objects, by chunk.
    pub(crate) async fn members(
        &self,
        diagnostics: &Diagnostics,
    ) -> Result<(FragmentsByChunk, Arc<ObjectSet>), QueryError> {
        let selected = self.selected_objects(diagnostics).await?;
        let selected = selected.ok_or(QueryError::NoObjects(self.level.id()))?;
        let indices = selected.indices.iter().copied();
        let indices = indices.filter(|index| selected.is_selected(*index));
        let members = FragmentsByChunk::of(&selected.objects, indices);
        Ok((members, selected.objects))
    }

    /// Reads all objects, if they are needed.
    pub(crate) async fn objects_if(
        &self,
        needed: bool,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Arc<ObjectSet>>, QueryError> {
        if !needed {
            return Ok(None);
        }
        self.session.objects(&self.level, diagnostics).await
    }

    /// Returns the objects of the fragments of a chunk.
    pub(crate) fn owners_of(
        &self,
        objects: Option<&Arc<ObjectSet>>,
        chunk: &Chunk,
        diagnostics: &Diagnostics,
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
            diagnostics.skip(Damage::in_chunk(&self.manifests()?, &chunk.chunk, fault))?;
        }
        let present = pairs.iter().filter(|(fragment, _)| *fragment < fragments);
        let owners = Owners::new(present);
        Ok(owners)
    }

    /// Returns the node of the object index.
    pub(crate) fn manifests(&self) -> Result<Key, QueryError> {
        child(&Session::node_of(&self.level)?, "object_index")
    }

    /// Reads the groups with these numbers.
    pub(crate) async fn requested_groups(
        &self,
        ids: &[u64],
        diagnostics: &Diagnostics,
    ) -> Result<Vec<ObjectGroup>, QueryError> {
        let groups = self.session.groups(&self.level, diagnostics).await?;
        let mut requested = Vec::with_capacity(ids.len());
        for id in ids {
            let budget = self.session.fetch.budget();
            let group = groups.as_ref().map(|groups| groups.group(*id, budget));
            match group.transpose()?.flatten() {
                Some(group) => requested.push(group),
                None => {
                    let (id, level) = (*id, self.level.id());
                    let node = Session::node_of(&self.level)?;
                    diagnostics.absent(&node, QueryError::NoGroup { id, level })?;
                }
            }
        }
        Ok(requested)
    }
}
