//! The arrays read for each chunk: positions, fragments and attributes.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use futures_util::future::{try_join, try_join_all};
use zvf_format::{
    numeric::{ByteOrder, Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::{CellAttribute, FragmentArray, VertexEncoding, Vertices},
    draco::DracoError,
    fetch::{AnyArray, FetchProblem},
    grid::ChunkCoord,
    layout::{ArrayRole, CrossChunkForm},
    word::Word,
};

use crate::{
    catalog::chunked_array::{ChunkedArray, child},
    catalog::level::{Level, Session},
    error::{Damage, Fault, QueryError},
    predicate::Scope,
    query::Selection,
};

/// The open arrays that are read for each chunk.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) vertices: Arc<ChunkedArray>,
    pub(crate) dtype: Dtype,
    pub(crate) axes: usize,
    /// Fragment indexes; `None` if each chunk is one fragment.
    pub(crate) fragments: Option<Arc<ChunkedArray>>,
    pub(crate) vertex: Vec<ChunkAttribute>,
    pub(crate) fragment: Vec<ChunkAttribute>,
    /// All chunks with vertices, ascending; set by the first request for them.
    pub(crate) chunks: OnceLock<Arc<[ChunkCoord]>>,
}

/// An attribute with values in cells of chunks.
#[derive(Clone, Debug)]
pub(crate) struct ChunkAttribute {
    pub(crate) name: String,
    pub(crate) array: Arc<ChunkedArray>,
    pub(crate) metadata: Arc<CellAttribute>,
}

impl Schema {
    /// Returns the arrays whose cells are read of each chunk.
    pub(crate) fn cell_arrays(&self) -> Vec<AnyArray> {
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
    pub(crate) fn all_chunks(&self) -> Arc<[ChunkCoord]> {
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
    pub(crate) fn has_rows_in_part(&self) -> bool {
        let mut attributes = self.vertex.iter();
        self.vertices.is_plain() || attributes.any(|attribute| attribute.array.is_plain())
    }

    /// Returns the size of a position in bytes.
    pub(crate) fn row(&self) -> u64 {
        let row = self.dtype.size().saturating_mul(self.axes);
        u64::try_from(row).unwrap_or(u64::MAX).max(1)
    }

    /// Returns the approximate size of a vertex with its attributes in bytes.
    pub(crate) fn row_with_attributes(&self) -> u64 {
        let attributes = self.vertex.iter();
        let sizes = attributes.map(|a| u64::try_from(a.metadata.dtype.size()).unwrap_or(8));
        sizes.fold(self.row(), u64::saturating_add)
    }
}

/// Names of attributes by scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) vertex: Vec<String>,
    pub(crate) fragment: Vec<String>,
    pub(crate) link: Vec<String>,
    pub(crate) object: Vec<String>,
    pub(crate) group: Vec<String>,
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

    pub(crate) fn of(&self, scope: Scope) -> &[String] {
        match scope {
            Scope::Vertex => &self.vertex,
            Scope::Fragment => &self.fragment,
            Scope::Link => &self.link,
            Scope::Object => &self.object,
            Scope::Group => &self.group,
        }
    }

    /// Removes the names in a scope that another selection lacks.
    pub(crate) fn keep_common(&mut self, scope: Scope, other: &Self) {
        let other = other.of(scope);
        self.of_mut(scope).retain(|name| other.contains(name));
    }

    pub(crate) fn add(&mut self, scope: Scope, name: &str) {
        let names = self.of_mut(scope);
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
}

fn folder(scope: Scope) -> &'static str {
    match scope {
        Scope::Vertex => "vertex_attributes",
        Scope::Fragment => "fragment_attributes",
        Scope::Link => "link_attributes",
        Scope::Object => "object_attributes",
        Scope::Group => "group_attributes",
    }
}

impl Session<'_> {
    /// Returns the names of a scope's attributes, ascending. Takes a listing, and another one if
    /// links between chunks have attributes of their own.
    pub(crate) async fn attribute_names(
        &self,
        level: &Level,
        scope: Scope,
    ) -> Result<Arc<Vec<String>>, QueryError> {
        let node = Self::node_of(level)?;
        let names = child(&node, folder(scope))?;
        if scope != Scope::Link || self.layout.cross_chunk == CrossChunkForm::Links {
            return self.children(level, &names).await;
        }
        let between = child(&node, "cross_chunk_link_attributes")?;
        let (inside, between) =
            try_join(self.children(level, &names), self.children(level, &between)).await?;
        let names: BTreeSet<&String> = inside.iter().chain(between.iter()).collect();
        Ok(Arc::new(names.into_iter().cloned().collect()))
    }

    /// Returns the names of a scope's attributes as [`attribute_names`](Self::attribute_names) does, except
    /// for attributes of links to other levels. Takes one more round trip for links.
    pub(crate) async fn own_attribute_names(
        &self,
        level: &Level,
        scope: Scope,
    ) -> Result<Arc<Vec<String>>, QueryError> {
        match scope {
            Scope::Link => {
                let names = self.link_attribute_names(level, Delta::INTRA).await?;
                Ok(Arc::new(names))
            }
            _ => self.attribute_names(level, scope).await,
        }
    }

    /// Resolves a selection to names in `scopes`. Names with a scope are not looked up; opening
    /// the attribute tells whether it exists.
    pub(crate) async fn names(
        &self,
        level: &Level,
        selection: &Selection,
        scopes: &[Scope],
    ) -> Result<Names, QueryError> {
        let mut names = Names::default();
        let named = match selection {
            Selection::All => None,
            Selection::Named(named) => Some(named),
        };
        let bare = named.is_none_or(|named| named.iter().any(|(scope, _)| scope.is_none()));
        if bare {
            let found = scopes.iter().map(|scope| async move {
                let found = self.attribute_names(level, *scope).await;
                Ok::<_, QueryError>((*scope, found.map_err(advise_naming_attributes)?))
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
                            return Err(QueryError::NoAttribute {
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
        Ok(names)
    }

    /// Opens the arrays read for each chunk; `None` if the level has no vertices. Takes one round
    /// trip on first use.
    pub(crate) async fn schema(
        &self,
        level: &Level,
        names: &Names,
        with_fragments: bool,
    ) -> Result<Option<Schema>, QueryError> {
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
        let vertices = try_join(self.chunked_array(level, &ArrayRole::Vertices), fragments);
        let vertex = self.attributes(level, Scope::Vertex, &names.vertex);
        let fragment = self.attributes(level, Scope::Fragment, &names.fragment);
        let ((vertices, fragments), (vertex, fragment)) =
            try_join(vertices, try_join(vertex, fragment)).await?;
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
        let metadata = Vertices::parse(&vertices.node, &vertices.attributes)?.value;
        let axes = self.root.axes.len();
        let dtype = position_dtype(&vertices, &metadata, axes)?;
        Ok(Some(Schema {
            dtype,
            axes,
            vertices,
            fragments,
            vertex,
            fragment,
            chunks: OnceLock::new(),
        }))
    }

    /// Returns the error for an array that every level with vertices has.
    fn absent_part(&self, level: &Level, part: &ArrayRole<'_>) -> Result<QueryError, QueryError> {
        Ok(match self.described_at(level, part)? {
            Some(key) => Damage::new(&key, Fault::Missing).into(),
            None => self.no_level(level.id()),
        })
    }

    /// Returns the error for an attribute that does not exist. A listed attribute lacks its
    /// metadata.
    pub(crate) fn absent_attribute(
        level: &Level,
        scope: Scope,
        name: &str,
    ) -> Result<QueryError, QueryError> {
        let folder = child(&Self::node_of(level)?, folder(scope))?;
        Ok(if level.lists(&folder, name) {
            Damage::new(&child(&folder, name)?, Fault::Missing).into()
        } else {
            QueryError::NoAttribute {
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
    ) -> Result<Vec<ChunkAttribute>, QueryError> {
        let opened = names.iter().map(|name| async move {
            let part = match scope {
                Scope::Fragment => ArrayRole::FragmentAttribute(name),
                _ => ArrayRole::VertexAttribute(name),
            };
            let Some(family) = self.chunked_array(level, &part).await? else {
                return Err(Self::absent_attribute(level, scope, name)?);
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
pub(crate) fn position_dtype(
    array: &ChunkedArray,
    metadata: &Vertices,
    axes: usize,
) -> Result<Dtype, QueryError> {
    match &metadata.encoding {
        Word::Known(VertexEncoding::Raw) => Ok(metadata.dtype),
        // Whatever the writer declares, streams have three 32-bit floats.
        Word::Known(VertexEncoding::Draco) if axes == 3 => {
            Ok(Dtype::new(Kind::Float32, ByteOrder::Little))
        }
        Word::Known(VertexEncoding::Draco) => {
            Err(Damage::new(&array.node, DracoError::NoPositions).into())
        }
        Word::Unknown(encoding) => Err(QueryError::Encoding {
            node: array.node.clone(),
            encoding: encoding.clone(),
        }),
    }
}

/// Turns the error of a store that cannot list into advice to name attributes.
pub(crate) fn advise_naming_attributes(error: QueryError) -> QueryError {
    match error {
        QueryError::Fetch(error) if error.problem == FetchProblem::Unlistable => {
            QueryError::Nameless(error)
        }
        other => other,
    }
}
