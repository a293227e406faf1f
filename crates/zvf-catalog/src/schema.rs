//! The arrays read for each chunk: positions, fragments and attributes.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use futures_util::future::{try_join, try_join_all, try_join3};
use zvf_format::{
    numeric::{ByteOrder, Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::{CellAttribute, FragmentArray, VertexEncoding, Vertices},
    attribute_name::{label, stored_name},
    draco::DracoError,
    fetch::{AnyArray, BoxFuture, FetchProblem},
    generation::Generation,
    grid::ChunkCoord,
    layout::{ArrayRole, CrossChunkForm, Layout, OBJECT_INDEX},
    scope::Scope,
    word::Word,
};

use crate::{
    catalog::Catalog,
    chunked_array::{ChunkedArray, child},
    error::{CatalogError, Damage, Fault},
    level::Level,
    selection::Selection,
};

/// The open arrays that are read for each chunk.
#[derive(Debug)]
pub struct Schema {
    /// Positions of vertices.
    pub vertices: Arc<ChunkedArray>,
    /// Type of a coordinate in memory.
    pub dtype: Dtype,
    /// Number of axes.
    pub axes: usize,
    /// Fragment indexes; `None` if each chunk is one fragment.
    pub fragments: Option<Arc<ChunkedArray>>,
    /// Attributes of vertices.
    pub vertex: Vec<ChunkAttribute>,
    /// Attributes of fragments.
    pub fragment: Vec<ChunkAttribute>,
    /// All chunks with vertices, ascending; set by the first request for them.
    pub(crate) chunks: OnceLock<Arc<[ChunkCoord]>>,
}

/// An attribute with values in cells of chunks.
#[derive(Clone, Debug)]
pub struct ChunkAttribute {
    /// Name of the attribute.
    pub name: String,
    /// Array of the values.
    pub array: Arc<ChunkedArray>,
    /// Metadata of the values.
    pub metadata: Arc<CellAttribute>,
}

impl Schema {
    /// Creates the schema of chunks that have vertices only.
    pub(crate) fn of_vertices(
        vertices: Arc<ChunkedArray>,
        axes: usize,
    ) -> Result<Self, CatalogError> {
        let metadata = Vertices::parse(&vertices.node, &vertices.attributes)?.value;
        Ok(Self {
            dtype: position_dtype(&vertices, &metadata, axes)?,
            axes,
            vertices,
            fragments: None,
            vertex: Vec::new(),
            fragment: Vec::new(),
            chunks: OnceLock::new(),
        })
    }

    /// Returns the arrays whose cells are read of each chunk.
    pub fn cell_arrays(&self) -> Vec<AnyArray> {
        let attributes = self
            .vertex
            .iter()
            .chain(&self.fragment)
            .map(|attribute| &attribute.array);
        let arrays = [Some(&self.vertices), self.fragments.as_ref()]
            .into_iter()
            .flatten()
            .chain(attributes);
        arrays.filter_map(|array| array.array()).cloned().collect()
    }

    /// Returns all chunks with vertices, ascending.
    pub fn all_chunks(&self) -> Arc<[ChunkCoord]> {
        let all = self.chunks.get_or_init(|| {
            let listed = self
                .vertices
                .chunks()
                .or_else(|| self.fragments.as_ref()?.chunks());
            listed.unwrap_or_default().into()
        });
        Arc::clone(all)
    }

    /// Returns whether rows of some array are read by themselves, after the fragment index, and not
    /// in whole cells beside it.
    pub fn has_rows_in_part(&self) -> bool {
        let mut attributes = self.vertex.iter();
        self.vertices.has_parts() || attributes.any(|attribute| attribute.array.has_parts())
    }

    /// Returns the size of a position in bytes.
    pub fn row(&self) -> u64 {
        let row = self.dtype.size().saturating_mul(self.axes);
        u64::try_from(row).unwrap_or(u64::MAX).max(1)
    }

    /// Returns the approximate size of a vertex with its attributes in bytes.
    pub fn row_with_attributes(&self) -> u64 {
        let attributes = self.vertex.iter();
        let sizes = attributes.map(|a| u64::try_from(a.metadata.dtype.size()).unwrap_or(8));
        sizes.fold(self.row(), u64::saturating_add)
    }
}

/// Names of attributes by scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Attributes of vertices.
    pub vertex: Vec<String>,
    /// Attributes of fragments.
    pub fragment: Vec<String>,
    /// Attributes of links.
    pub link: Vec<String>,
    /// Attributes of objects.
    pub object: Vec<String>,
    /// Attributes of groups.
    pub group: Vec<String>,
}

impl Names {
    pub(crate) fn of_mut(&mut self, scope: Scope) -> &mut Vec<String> {
        match scope {
            Scope::Vertex => &mut self.vertex,
            Scope::Fragment => &mut self.fragment,
            Scope::Link => &mut self.link,
            Scope::Object => &mut self.object,
            Scope::Group => &mut self.group,
        }
    }

    /// Returns the names in a scope.
    pub fn of(&self, scope: Scope) -> &[String] {
        match scope {
            Scope::Vertex => &self.vertex,
            Scope::Fragment => &self.fragment,
            Scope::Link => &self.link,
            Scope::Object => &self.object,
            Scope::Group => &self.group,
        }
    }

    /// Removes the names in a scope that another selection lacks.
    pub fn keep_common(&mut self, scope: Scope, other: &Self) {
        let other = other.of(scope);
        self.of_mut(scope).retain(|name| other.contains(name));
    }

    /// Adds a name to a scope, if it is not there.
    pub fn add(&mut self, scope: Scope, name: &str) {
        let names = self.of_mut(scope);
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
}

/// Returns the labels of stored names, ascending.
pub(crate) fn labels<'n>(stored: impl IntoIterator<Item = &'n String>) -> Arc<Vec<String>> {
    let labels: BTreeSet<_> = stored.into_iter().map(|name| label(name)).collect();
    Arc::new(labels.into_iter().map(Cow::into_owned).collect())
}

/// Returns the child of a level that contains the attributes of a scope.
fn folder(layout: &Layout, scope: Scope) -> &'static str {
    layout.names.stored(scope.group())
}

impl Catalog<'_> {
    /// Returns the names of a scope's attributes, ascending. Takes a listing, and another one if
    /// links between chunks have attributes of their own.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the store cannot list or the listing fails.
    pub fn attribute_names<'f>(
        &'f self,
        level: &'f Level,
        scope: Scope,
    ) -> BoxFuture<'f, Result<Arc<Vec<String>>, CatalogError>> {
        Box::pin(async move {
            let node = Self::node_of(level)?;
            let names = child(&node, folder(self.layout, scope))?;
            if scope != Scope::Link || self.layout.cross_chunk == CrossChunkForm::Links {
                let stored = self.children(level, &names).await?;
                return Ok(labels(stored.iter()));
            }
            let between = child(&node, "cross_chunk_link_attributes")?;
            let (inside, between) =
                try_join(self.children(level, &names), self.children(level, &between)).await?;
            Ok(labels(inside.iter().chain(between.iter())))
        })
    }

    /// Returns the names of a scope's attributes as [`attribute_names`](Self::attribute_names) does, except
    /// for attributes of links to other levels. Takes one more round trip for links.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the store cannot list or the listing fails.
    pub fn own_attribute_names<'f>(
        &'f self,
        level: &'f Level,
        scope: Scope,
    ) -> BoxFuture<'f, Result<Arc<Vec<String>>, CatalogError>> {
        Box::pin(async move {
            match scope {
                Scope::Link => {
                    let names = self.link_attribute_names(level, Delta::INTRA).await?;
                    Ok(Arc::new(names))
                }
                Scope::Vertex | Scope::Fragment | Scope::Object | Scope::Group => {
                    self.attribute_names(level, scope).await
                }
            }
        })
    }

    /// Resolves a selection to names in `scopes`. Looks a name with a scope up only if it is not an
    /// identifier; otherwise, opening the attribute tells whether it exists.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::NoAttribute`] for a name that is in no scope, and
    /// [`CatalogError::Nameless`] if a listing is needed that the store cannot give.
    pub fn names<'f>(
        &'f self,
        level: &'f Level,
        selection: &'f Selection,
        scopes: &'f [Scope],
    ) -> BoxFuture<'f, Result<Names, CatalogError>> {
        Box::pin(async move {
            let mut names = Names::default();
            let named = match selection {
                Selection::All => None,
                Selection::Named(named) => Some(named),
            };
            let bare = named.is_none_or(|named| named.iter().any(|(scope, _)| scope.is_none()));
            if bare {
                let found = scopes.iter().map(|scope| async move {
                    let found = self.attribute_names(level, *scope).await;
                    Ok::<_, CatalogError>((*scope, found.map_err(advise_naming_attributes)?))
                });
                let found = try_join_all(found).await?;
                match named {
                    None => {
                        for (scope, found) in found {
                            names.of_mut(scope).extend(found.iter().cloned());
                        }
                        return Ok(names);
                    }
                    Some(named) => {
                        for (_, name) in named.iter().filter(|(scope, _)| scope.is_none()) {
                            let mut having = found.iter().filter(|(_, found)| found.contains(name));
                            let mut any = false;
                            for (scope, _) in having.by_ref() {
                                names.add(*scope, name);
                                any = true;
                            }
                            if !any {
                                let present = found.iter().flat_map(|(_, names)| names.iter());
                                return Err(CatalogError::NoAttribute {
                                    scope: None,
                                    name: name.clone(),
                                    present: present.cloned().collect(),
                                });
                            }
                        }
                    }
                }
            }
            for (scope, name) in named.into_iter().flatten() {
                if let Some(scope) = scope {
                    names.add(*scope, name);
                }
            }
            self.list_foreign(level, &names).await?;
            Ok(names)
        })
    }

    /// Lists the attributes of scopes with names that are no identifiers, which other writers use for
    /// nodes. Takes no round trip for identifiers.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if a listing fails, other than by a store that cannot list.
    pub fn list_foreign<'f>(
        &'f self,
        level: &'f Level,
        names: &'f Names,
    ) -> BoxFuture<'f, Result<(), CatalogError>> {
        Box::pin(async move {
            for scope in Scope::ALL {
                let mut of_scope = names.of(scope).iter();
                if of_scope.all(|name| stored_name(name) == **name) {
                    continue;
                }
                match self.attribute_names(level, scope).await {
                    Err(CatalogError::Fetch(error))
                        if error.problem == FetchProblem::Unlistable => {}
                    listed => drop(listed?),
                }
            }
            Ok(())
        })
    }

    /// Opens the arrays read for each chunk; `None` if the level has no vertices. Takes one round
    /// trip on first use.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if an array or attribute is missing or damaged.
    pub fn schema<'f>(
        &'f self,
        level: &'f Level,
        names: &'f Names,
        with_fragments: bool,
    ) -> BoxFuture<'f, Result<Option<Schema>, CatalogError>> {
        Box::pin(async move {
            let fragments = async {
                if !with_fragments {
                    return Ok(None);
                }
                let family = self
                    .chunked_array(level, &ArrayRole::VertexFragments)
                    .await?;
                if let Some(family) = &family {
                    FragmentArray::parse(&family.node, &family.attributes)?;
                }
                Ok(family)
            };
            // 0.10 has readers check the layout of the object index before they read a cell.
            let index = async {
                if self.layout.generation >= Generation::V0_10 && level.declares(OBJECT_INDEX) {
                    self.object_index(level).await?;
                }
                Ok(())
            };
            let vertices = try_join(self.chunked_array(level, &ArrayRole::Vertices), fragments);
            let vertex = self.attributes(level, Scope::Vertex, &names.vertex);
            let fragment = self.attributes(level, Scope::Fragment, &names.fragment);
            let ((vertices, fragments), (vertex, fragment), ()) =
                try_join3(vertices, try_join(vertex, fragment), index).await?;
            let Some(vertices) = vertices else {
                let count = level.metadata.vertex_count.unwrap_or(0);
                return if count > 0 || level.declares("vertices") {
                    Err(self.absent_part(level, &ArrayRole::Vertices)?)
                } else {
                    Ok(None)
                };
            };
            let has_chunks = || vertices.chunks().is_none_or(|chunks| !chunks.is_empty());
            if with_fragments && fragments.is_none() && has_chunks() {
                return Err(self.absent_part(level, &ArrayRole::VertexFragments)?);
            }
            Ok(Some(Schema {
                fragments,
                vertex,
                fragment,
                ..Schema::of_vertices(vertices, self.root.axes.len())?
            }))
        })
    }

    /// Returns the error for an array that every level with vertices has.
    fn absent_part(
        &self,
        level: &Level,
        part: &ArrayRole<'_>,
    ) -> Result<CatalogError, CatalogError> {
        Ok(match self.described_at(level, part)? {
            Some(key) => Damage::new(&key, Fault::Missing).into(),
            None => self.no_level(level.id()),
        })
    }

    /// Returns the error for an attribute that does not exist. A listed attribute lacks its
    /// metadata.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError::Name`] if the name cannot be part of a key.
    pub fn absent_attribute(
        &self,
        level: &Level,
        scope: Scope,
        name: &str,
    ) -> Result<CatalogError, CatalogError> {
        let folder = child(&Self::node_of(level)?, folder(self.layout, scope))?;
        let stored = [name.into(), stored_name(name)];
        let listed = stored.iter().find(|stored| level.lists(&folder, stored));
        Ok(if let Some(stored) = listed {
            Damage::new(&child(&folder, stored)?, Fault::Missing).into()
        } else {
            CatalogError::NoAttribute {
                scope: Some(scope),
                name: name.to_owned(),
                present: Vec::new(),
            }
        })
    }

    /// Opens attributes of vertices or fragments.
    async fn attributes(
        &self,
        level: &Level,
        scope: Scope,
        names: &[String],
    ) -> Result<Vec<ChunkAttribute>, CatalogError> {
        let opened = names.iter().map(|name| async move {
            let part = scope.array(name);
            let Some(family) = self.chunked_array(level, &part).await? else {
                return Err(self.absent_attribute(level, scope, name)?);
            };
            let metadata = CellAttribute::parse(&family.node, &family.attributes)?.value;
            Ok(ChunkAttribute {
                name: name.clone(),
                array: family,
                metadata: Arc::new(metadata),
            })
        });
        try_join_all(opened).await
    }
}

/// Returns the type of positions in memory.
fn position_dtype(
    array: &ChunkedArray,
    metadata: &Vertices,
    axes: usize,
) -> Result<Dtype, CatalogError> {
    match &metadata.encoding {
        Word::Known(VertexEncoding::Raw) => Ok(metadata.dtype),
        // Whatever the writer declares, streams have three 32-bit floats.
        Word::Known(VertexEncoding::Draco) if axes == 3 => {
            Ok(Dtype::new(Kind::Float32, ByteOrder::Little))
        }
        Word::Known(VertexEncoding::Draco) => {
            Err(Damage::new(&array.node, DracoError::NoPositions).into())
        }
        Word::Unknown(encoding) => Err(CatalogError::Encoding {
            node: array.node.clone(),
            encoding: encoding.clone(),
        }),
    }
}

/// Turns the error of a store that cannot list into advice to name attributes.
pub fn advise_naming_attributes(error: CatalogError) -> CatalogError {
    match error {
        CatalogError::Fetch(error) if error.problem == FetchProblem::Unlistable => {
            CatalogError::Nameless(error)
        }
        other => other,
    }
}
