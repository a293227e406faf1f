//! A query resolved against a level: names, region and predicate.

use core::{
    future::poll_fn,
    ops::{ControlFlow, RangeInclusive},
    task::Poll,
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use zvf_catalog::{
    Catalog, CatalogError, Chunk, EVERYWHERE, Level, LinkRecords, Names, Schema,
    advise_naming_attributes,
};
use zvf_model::{
    array::Vertices,
    fetch::MaybeSend,
    grid::ChunkCoord,
    layout::ArrayRole,
    root::{LinksConvention, RootMetadata},
    word::Word,
};

use crate::{
    batch::vertices::VertexBuilder,
    error::QueryError,
    geometry::Mode,
    predicate::{BindError, FindError, Predicate, Scope},
    query::{Query, Shape},
    resolve::{
        area::{Area, ChunkSpace},
        axes::{AxisColumns, axis_of_column, axis_spelling},
        filter::{ScopedPredicates, with_scopes},
    },
    result::QueryResult,
    session::Session,
};

/// A query resolved against a level.
#[derive(Clone)]
pub(crate) struct LevelQuery<'s> {
    pub(crate) catalog: Catalog<'s>,
    pub(crate) query: &'s Query,
    pub(crate) level: Arc<Level>,
    pub(crate) shape: Shape,
    pub(crate) convention: Word<LinksConvention>,
    pub(crate) space: ChunkSpace,
    pub(crate) area: Option<Area>,
    /// The mode of the region. The predicate has a mode of its own, in the query.
    pub(crate) area_mode: Mode,
    pub(crate) filter: ScopedPredicates,
    /// Attributes in the result.
    pub(crate) shown: Names,
    /// Attributes in the result or in the predicate.
    pub(crate) read: Names,
    /// Chunks and links that earlier runs of the same query have read.
    pub(crate) cache: Option<Arc<ChunkCache>>,
    /// Division of the result into batches.
    pub(crate) batching: Batching,
    /// Receives the ids of objects that the level lacks, if other levels may have them.
    pub(crate) absent: Option<Arc<Mutex<BTreeSet<i64>>>>,
}

/// Division of a result into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Batching {
    /// One batch.
    Whole,
    /// Batches of a share of the memory budget.
    #[default]
    Budget,
    /// Batches of at most about this size in bytes. After each batch the query yields once, so that
    /// its caller can leave it unpolled until the batch was taken.
    Stream(u64),
}

/// Returns the attributes that a result and its predicate read.
fn with_filter(shown: &Names, filter: &ScopedPredicates) -> Names {
    let mut read = shown.clone();
    for scope in Scope::ALL {
        for name in filter.names.of(scope) {
            read.add(scope, name);
        }
    }
    read
}

impl LevelQuery<'_> {
    /// Leaves out attributes of vertices, fragments and links that other levels lack.
    pub(crate) fn show_common(&mut self, common: &Names) {
        for scope in Scope::ALL.into_iter().filter(|scope| scope.is_in_cells()) {
            self.shown.keep_common(scope, common);
        }
        self.read = with_filter(&self.shown, &self.filter);
    }

    /// Yields once after a batch, if the result is streamed.
    pub(crate) async fn pause(&self) {
        if matches!(self.batching, Batching::Stream(_)) {
            self.yield_now().await;
        }
    }

    /// Lets the executor run something else, and drop the query, in the middle of a computation.
    pub(crate) async fn yield_now(&self) {
        let mut is_over = false;
        let pause = poll_fn(|context| {
            if core::mem::replace(&mut is_over, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        pause.await;
    }
}

/// Chunks and links that were read, for operators that select repeatedly.
#[derive(Debug, Default)]
pub(crate) struct ChunkCache {
    pub(crate) chunks: Mutex<HashMap<ChunkCoord, Chunk>>,
    pub(crate) links: Mutex<HashMap<usize, LinkRecords>>,
}

/// Returns the elements that a query reads by default, by the kind of geometry.
pub(crate) fn shape_of(root: &RootMetadata) -> Shape {
    match root.first_kind() {
        Some(kind) if kind.is_paths() => Shape::Paths,
        Some(kind) if kind.is_linked() => Shape::Links,
        Some(_) => Shape::Points,
        None => match root.links_convention.as_ref().and_then(Word::known) {
            Some(LinksConvention::Explicit | LinksConvention::ImplicitWithBranches) => Shape::Links,
            _ => Shape::Points,
        },
    }
}

/// Largest coordinate of a position for which the nearest can be found: squares of larger distances
/// overflow.
const FURTHEST: f64 = 1e150;

impl<'s> Session<'s> {
    /// Resolves a query. Reads the metadata of the level, and lists attributes that the query does not
    /// name with a scope.
    pub(crate) async fn resolve(&self, query: &'s Query) -> Result<LevelQuery<'s>, QueryError> {
        let id = self.chosen_level(query).await?;
        let level = self.catalog.level(id).await?;
        let shape = query.shape.unwrap_or_else(|| shape_of(self.catalog.root));
        let space = ChunkSpace::of(&level.metadata, self.catalog.root);
        let area = query
            .region
            .as_ref()
            .map(|region| Area::new(region, &space))
            .transpose()?;
        if let Some(nearest) = &query.nearest
            && nearest.position.len() != space.axes()
        {
            return Err(QueryError::Axes {
                expected: space.axes(),
                found: nearest.position.len(),
            });
        }
        if let Some(nearest) = &query.nearest
            && nearest.position.iter().any(|along| along.abs() > FURTHEST)
        {
            return Err(QueryError::Far);
        }
        let mut scopes = Scope::ALL.to_vec();
        scopes.retain(|scope| match scope {
            Scope::Group => false,
            Scope::Link => shape == Shape::Links,
            Scope::Vertex | Scope::Fragment | Scope::Object => true,
        });
        let shown = self.catalog.names(&level, &query.columns, &scopes).await?;
        let mut filter = match &query.filter {
            None => ScopedPredicates::default(),
            Some(predicate) => {
                let (predicate, axes) = self.scoped(&level, predicate).await?;
                ScopedPredicates::new(&predicate, axes)?
            }
        };
        // All vertices of paths and of selected objects have an object.
        if shape != Shape::Paths && query.objects.is_none() && query.groups.is_none() {
            filter.include_vertices_without_objects();
        }
        if filter.link.is_some() && shape != Shape::Links {
            return Err(QueryError::Unsupported(
                "the predicate has a condition on links, but the query selects points or paths; \
                 write conditions on vertices, fragments, objects or groups",
            ));
        }
        let read = with_filter(&shown, &filter);
        let fetch = if query.scans_whole_level() {
            self.catalog.fetch.bypass_cache()
        } else {
            self.catalog.fetch
        };
        Ok(LevelQuery {
            catalog: Catalog {
                fetch,
                ..self.catalog
            },
            query,
            level,
            shape,
            convention: self
                .catalog
                .root
                .links_convention
                .clone()
                .unwrap_or_default(),
            space,
            area,
            area_mode: query.mode,
            filter,
            shown,
            read,
            cache: None,
            batching: Batching::default(),
            absent: None,
        })
    }

    /// Returns the predicate with a scope for every column, and those columns of vertices that are
    /// axes. Names of attributes are listed if a column has no scope or may be an axis.
    async fn scoped(
        &self,
        level: &Level,
        predicate: &Predicate,
    ) -> Result<(Predicate, AxisColumns), QueryError> {
        let mut axes = AxisColumns::new();
        let mut with_scope = Names::default();
        let (mut has_bare, mut only_axes) = (false, true);
        for column in predicate.columns() {
            let is_bare = column.scope.is_none();
            if let Some(scope) = column.scope {
                with_scope.add(scope, &column.name);
            }
            has_bare |= is_bare;
            let axis = axis_of_column(&self.catalog.root.axes, &column.name);
            match axis.filter(|_| is_bare || column.scope == Some(Scope::Vertex)) {
                Some(axis) => {
                    axes.insert(column.name.clone(), axis);
                }
                None => only_axes &= !is_bare,
            }
        }
        self.catalog.list_foreign(level, &with_scope).await?;
        if !has_bare && axes.is_empty() {
            return Ok((predicate.clone(), axes));
        }
        let scopes = Scope::ALL
            .iter()
            .filter(|scope| has_bare || **scope == Scope::Vertex);
        let mut having = Vec::new();
        for scope in scopes {
            match self
                .catalog
                .attribute_names(level, *scope)
                .await
                .map_err(advise_naming_attributes)
            {
                Ok(names) => having.push((*scope, names)),
                // Axes are known without a listing.
                Err(CatalogError::Nameless(_)) if only_axes => {}
                Err(error) => return Err(error.into()),
            }
        }
        let of_vertices = having.iter().find(|(scope, _)| *scope == Scope::Vertex);
        let is_attribute =
            |name: &String| of_vertices.is_some_and(|(_, names)| names.contains(name));
        let shadowed: Vec<String> = axes
            .keys()
            .filter(|name| is_attribute(name))
            .cloned()
            .collect();
        for name in &shadowed {
            axes.remove(name);
        }
        let find = |column: &crate::predicate::ColumnRef| {
            let found: Vec<Scope> = having
                .iter()
                .filter(|(_, names)| names.contains(&column.name))
                .map(|(scope, _)| *scope)
                .collect();
            let is_axis = axes.contains_key(&column.name) || shadowed.contains(&column.name);
            // Another spelling of an axis is the name of an attribute that is called so.
            let mut own_axes = self.catalog.root.axes.iter();
            let is_axis =
                is_axis && (found.is_empty() || own_axes.any(|axis| axis.name == column.name));
            let source = match (found.as_slice(), is_axis) {
                ([], true) => return Ok(Scope::Vertex),
                ([scope], false) => return Ok(*scope),
                ([], false) => {
                    let present = having.iter().flat_map(|(_, names)| names.iter().cloned());
                    let axes = self.catalog.root.axes.iter().map(|axis| axis.name.clone());
                    let present = axes.chain(present);
                    return Err(QueryError::from(CatalogError::NoAttribute {
                        scope: None,
                        name: column.name.clone(),
                        present: present.collect(),
                    }));
                }
                (scopes, is_axis) => {
                    let is_attribute =
                        |name: &String| having.iter().any(|(_, names)| names.contains(name));
                    let axis = axis_spelling(&self.catalog.root.axes, &column.name, is_attribute)
                        .filter(|_| is_axis);
                    FindError::ambiguous(column, scopes.iter().copied(), axis)
                }
            };
            let column = column.clone();
            Err(QueryError::Bind(BindError::Find { column, source }))
        };
        let predicate = with_scopes(predicate.clone(), &find)?;
        Ok((predicate, axes))
    }
}

impl LevelQuery<'_> {
    /// Returns the mode of the predicate. Clipping drops the vertices for which it is not true, so
    /// links that need them cannot be kept.
    pub(crate) fn predicate_mode(&self) -> Mode {
        match self.query.mode {
            Mode::Clip => Mode::Clip,
            Mode::Touch | Mode::Within => self.query.predicate_mode,
        }
    }

    /// Returns the chunks with vertices that the query does not exclude, ascending.
    pub(crate) fn chunks(&self, schema: &Schema) -> Result<Vec<ChunkCoord>, QueryError> {
        self.chunks_where(schema, &EVERYWHERE, |_| true)
    }

    /// Returns the chunks with vertices in the reach of the region that the query does not exclude
    /// and for which `is_wanted` holds, ascending. Takes no time for most of the other chunks.
    pub(crate) fn near_chunks_where(
        &self,
        schema: &Schema,
        is_wanted: impl Fn(&ChunkCoord) -> bool,
    ) -> Result<Vec<ChunkCoord>, QueryError> {
        let Some(area) = &self.area else {
            return self.chunks_where(schema, &EVERYWHERE, is_wanted);
        };
        let is_spatial = self.catalog.arity(&self.level) == self.space.axes();
        let first = area.first_coordinates().filter(|_| is_spatial);
        self.chunks_where(schema, first.unwrap_or(&EVERYWHERE), |chunk| {
            area.may_contain(chunk) && is_wanted(chunk)
        })
    }

    fn chunks_where(
        &self,
        schema: &Schema,
        first: &RangeInclusive<i64>,
        is_wanted: impl Fn(&ChunkCoord) -> bool,
    ) -> Result<Vec<ChunkCoord>, QueryError> {
        let allowed = self.allowed()?;
        let is_wanted = |chunk: &ChunkCoord| is_wanted(chunk) && allowed.allows(chunk);
        let listed = schema.vertices.chunks_where(first, is_wanted).or_else(|| {
            let fragments = schema.fragments.as_ref()?;
            fragments.chunks_where(first, is_wanted)
        });
        Ok(listed.unwrap_or_default())
    }

    /// Returns the restriction of the query to chunks.
    pub(crate) fn allowed(&self) -> Result<ChunkRestriction, QueryError> {
        let (axes, arity) = (self.space.axes(), self.catalog.arity(&self.level));
        if let Some(chunks) = &self.query.chunks {
            for chunk in chunks {
                let found = chunk.coords().len();
                if found != axes && found != arity {
                    return Err(QueryError::Chunk {
                        chunk: chunk.clone(),
                        level: self.level.id(),
                        expected: arity,
                        found,
                    });
                }
            }
        }
        let mut list = self.query.chunks.clone();
        if let Some(list) = &mut list {
            list.sort_unstable();
        }
        let leading = match (
            &self.query.chunked_by,
            &self.level.metadata.attribute_chunking,
        ) {
            (None, _) => None,
            (Some(_), None) => return Err(QueryError::NotChunked(self.level.id())),
            (Some(value), Some(chunking)) => {
                let index = chunking.index_of(value.as_ref());
                // No chunk has a value that is not listed.
                Some(
                    index
                        .and_then(|index| i64::try_from(index).ok())
                        .unwrap_or(-1),
                )
            }
        };
        Ok(ChunkRestriction {
            list,
            leading,
            axes,
        })
    }

    /// Returns the limit of the query on vertices, paths or links.
    pub(crate) fn limit(&self) -> u64 {
        self.query.limit.unwrap_or(u64::MAX)
    }

    /// Returns whether the query selects objects.
    pub(crate) fn selects_objects(&self) -> bool {
        let query = self.query;
        query.objects.is_some() || query.groups.is_some() || self.filter.selects_by_object()
    }

    /// Returns whether vertices come with their objects.
    pub(crate) fn shows_objects(&self) -> bool {
        self.query.owners
    }

    /// Opens the arrays that the query reads of chunks.
    pub(crate) async fn schema(&self, with_fragments: bool) -> Result<Option<Schema>, QueryError> {
        let schema = self.catalog.schema(&self.level, &self.read, with_fragments);
        Ok(schema.await?)
    }

    /// Returns whether the fragments of each chunk are its rows in order.
    pub(crate) fn tiles(&self) -> bool {
        self.level.metadata.fragments_tile
    }

    /// Creates the builder of the vertices of a batch.
    pub(crate) fn vertices(&self, schema: &Schema, objects: bool) -> VertexBuilder {
        let builder = VertexBuilder::new(schema, &self.shown, objects);
        if self.query.row_ids || self.query.drill.is_some() {
            builder.with_row_ids(schema)
        } else {
            builder
        }
    }

    /// Creates an empty batch.
    pub(crate) fn empty_result(&self) -> QueryResult {
        let axes = self.catalog.root.axes.iter();
        QueryResult {
            level: self.level.id(),
            axes: axes.map(|axis| axis.name.clone()).collect(),
            ..QueryResult::default()
        }
    }

    /// Returns whether the result or the predicate needs the objects of vertices.
    pub(crate) fn needs_objects(&self) -> bool {
        self.shows_objects() || self.filter.vertex_needs_objects()
    }

    /// Returns an empty batch with the type of positions.
    pub(crate) async fn without_vertices(&self) -> Result<QueryResult, QueryError> {
        let mut result = self.empty_result();
        let axes = u32::try_from(self.space.axes()).unwrap_or(1);
        let vertices = self
            .catalog
            .chunked_array(&self.level, &ArrayRole::Vertices)
            .await?;
        let kind = match vertices {
            Some(family) => Vertices::parse(&family.node, &family.attributes)?
                .value
                .dtype
                .kind(),
            None => zvf_format::numeric::Kind::Float32,
        };
        result.positions = zvf_model::column::NumericColumn::new(kind, axes);
        Ok(result)
    }
}

/// The restriction of a query to chunks.
#[derive(Clone, Debug)]
pub(crate) struct ChunkRestriction {
    list: Option<Vec<ChunkCoord>>,
    leading: Option<i64>,
    axes: usize,
}

impl ChunkRestriction {
    pub(crate) fn is_everything(&self) -> bool {
        self.list.is_none() && self.leading.is_none()
    }

    pub(crate) fn allows(&self, chunk: &ChunkCoord) -> bool {
        let leads = self
            .leading
            .is_none_or(|leading| chunk.coords().first() == Some(&leading));
        let listed = self.list.as_ref().is_none_or(|list| {
            let spatial = || {
                chunk
                    .spatial(self.axes)
                    .map(|c| ChunkCoord::new(c.to_vec()))
            };
            list.binary_search(chunk).is_ok()
                || chunk.coords().len() != self.axes
                    && spatial().is_some_and(|chunk| list.binary_search(&chunk).is_ok())
        });
        leads && listed
    }
}

/// The receiver of the batches of a result. A break ends the query.
pub(crate) type Emit<'e> = dyn EmitBatch + 'e;

/// A callback for batches, which is [`Send`] except in browsers.
pub(crate) trait EmitBatch: FnMut(QueryResult) -> ControlFlow<()> + MaybeSend {}

impl<F: FnMut(QueryResult) -> ControlFlow<()> + MaybeSend> EmitBatch for F {}
