//! Vertices of objects in the order of their pieces: paths, and points that are
//! selected by object.

mod give;
mod load;
mod loaded;
mod objects;
mod overlap;
mod select;
mod whole;

use core::ops::Range;
use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::try_join;
use zvf_format::numeric::Kind;
use zvf_model::{grid::ChunkCoord, key::Key};

use crate::{
    batch::vertices::{Entry, Run},
    catalog::objects::{ObjectFragment, Objects},
    catalog::schema::Schema,
    diagnostics::Diagnostics,
    error::QueryError,
    exec::chunk::{ChunkRequest, Rows},
    query::Shape,
    resolve::query::{Allowed, Emit, LevelQuery, VertexFilter},
    result::{Parts, QueryResult},
};

pub(crate) use loaded::Loaded;
pub(crate) use select::{Between, Ends};

/// A path: pieces of an object that follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'o> {
    /// Which of the objects read.
    pub(crate) place: usize,
    pub(crate) pieces: &'o [ObjectFragment],
    /// Whether a segment of it was seen to come into the region.
    pub(crate) is_met: bool,
}

impl<'o> Path<'o> {
    /// Pieces of which nothing is known yet.
    pub(crate) fn new(place: usize, pieces: &'o [ObjectFragment]) -> Self {
        let is_met = false;
        Self {
            place,
            pieces,
            is_met,
        }
    }
}

/// A vertex of a path: its chunk's number and where it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathVertex {
    pub(crate) chunk: u32,
    pub(crate) entry: Entry,
}

/// Vertices of a path that follow each other, with nothing missing between.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    /// Runs with the numbers of their chunks.
    runs: Vec<(u32, Run)>,
    len: usize,
}

impl Stretch {
    fn push(&mut self, chunk: u32, run: Run) {
        self.len = self.len.saturating_add(run.len);
        self.runs.push((chunk, run));
    }

    /// Its vertices one by one.
    fn vertices(&self) -> Vec<PathVertex> {
        let mut vertices = Vec::with_capacity(self.len);
        for (chunk, run) in &self.runs {
            let chunk = *chunk;
            vertices.extend(run.entries().map(|entry| PathVertex { chunk, entry }));
        }
        vertices
    }

    /// The runs of these vertices of it.
    fn part(&self, range: Range<usize>) -> impl Iterator<Item = (u32, Run)> + '_ {
        let mut before = 0_usize;
        self.runs.iter().filter_map(move |(chunk, run)| {
            let start = range.start.max(before);
            let skip = start.saturating_sub(before);
            before = before.saturating_add(run.len);
            let len = range
                .end
                .min(before)
                .checked_sub(start)
                .filter(|n| *n > 0)?;
            let run = Run {
                row: run
                    .row
                    .saturating_add(u64::try_from(skip).unwrap_or(u64::MAX)),
                place: run.place.saturating_add(skip),
                len,
                fragment: run.fragment,
            };
            Some((*chunk, run))
        })
    }
}

impl LevelQuery<'_> {
    /// Paths that the region and filter select, or points of selected objects.
    ///
    /// Three round trips: manifests; fragment indexes; rows. With a region its
    /// chunks come with the manifests, and what lies outside of them after; of a whole
    /// level all chunks do, where they can be held.
    pub(crate) async fn paths(
        &self,
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let Some(schema) = self.schema(true).await? else {
            return self.no_paths(emit).await;
        };
        let allowed = self.allowed()?;
        let named = self.query.objects.is_some() || self.query.groups.is_some();
        let regional = self.area.as_ref().filter(|_| !named);
        let nearby = async {
            let chunks = match regional {
                Some(area) => self.chunks_where(&schema, |chunk| area.reaches(chunk))?,
                None => self.all_at_once(&schema)?,
            };
            let requests = chunks.into_iter().map(|chunk| ChunkRequest {
                chunk,
                fragments: true,
                rows: Rows::All,
            });
            let requests = requests.collect();
            self.read_chunks(&schema, requests, diagnostics).await
        };
        // Chunks are asked for first: they come while manifests are looked at.
        let (nearby, selection) = try_join(nearby, self.selected_objects(diagnostics)).await?;
        let Some(Selected {
            objects,
            mut places,
            holds,
        }) = selection
        else {
            return match nearby.is_empty() && schema.vertices.count().is_none_or(|count| count == 0)
            {
                true => self.no_paths(emit).await,
                false => Err(QueryError::NoObjects(self.level.id())),
            };
        };
        let mut loaded = Loaded::default();
        let mut near = Vec::with_capacity(nearby.len());
        for chunk in nearby.into_iter().flatten() {
            if let Some(number) = objects.number_of(&chunk.chunk) {
                loaded.add(number, Some(chunk));
                near.push(number);
            }
        }
        if let Some(area) = regional
            && self.shape == Shape::Paths
        {
            let most = self.session.fetch.budget() / 4;
            places = objects.near(&near, most, |from, to| area.may_meet(&[], &[from, to]));
        }
        let mut paths = Vec::new();
        for place in places {
            if holds
                .as_ref()
                .is_none_or(|holds| holds.get(place) == Some(&true))
            {
                runs(&objects, place, &allowed, &mut paths);
            }
        }
        if self.filter.is_never {
            paths.clear();
        }
        let filter = self.vertex_filter(Some(&objects), diagnostics).await?;
        let work = Work {
            manifests: self.manifests()?,
            schema: &schema,
            objects: &objects,
            filter: &filter,
        };
        if let Some(area) = regional
            && self.shape == Shape::Paths
        {
            self.load_region(&work, area, &mut paths, &mut loaded, diagnostics)
                .await?;
            let (mut left, mut given) = (self.limit(), BTreeSet::new());
            let done = self.emit_paths(
                &work,
                &paths,
                &loaded,
                (&mut left, &mut given),
                diagnostics,
                emit,
            );
            return done.await.map(|_| ());
        }
        self.stream_paths(&work, &paths, loaded, named, diagnostics, emit)
            .await
    }

    /// All chunks, where the whole level is asked for and can be held; none otherwise. Which
    /// they are needs no manifest.
    pub(crate) fn all_at_once(&self, schema: &Schema) -> Result<Vec<ChunkCoord>, QueryError> {
        if self.shape != Shape::Paths || !self.is_everything() {
            return Ok(Vec::new());
        }
        let mut chunks = self.chunks(schema)?;
        if chunks.len() > self.group_size(schema, chunks.len(), self.session.fetch.budget() / 4) {
            chunks.clear();
        }
        Ok(chunks)
    }

    pub(crate) fn limit(&self) -> u64 {
        self.query.limit.unwrap_or(u64::MAX)
    }

    async fn no_paths(&self, emit: &mut Emit<'_>) -> Result<(), QueryError> {
        let mut answer = self.without_vertices().await?;
        if self.shape == Shape::Paths {
            answer.parts = Some(Parts {
                offsets: vec![0],
                objects: Vec::new(),
            });
        }
        let _ = emit(answer);
        Ok(())
    }

    /// What tests vertices, with the columns of objects it looks at.
    pub(crate) async fn vertex_filter(
        &self,
        objects: Option<&Objects>,
        diagnostics: &Diagnostics,
    ) -> Result<VertexFilter<'_>, QueryError> {
        let predicate = self.filter.vertex.as_ref();
        let object_columns = match self.filter.vertex_needs_objects() {
            true => self.object_columns_of_filter(objects, diagnostics).await?,
            false => Vec::new(),
        };
        Ok(VertexFilter {
            predicate,
            object_columns,
        })
    }

    /// Reads and gives all paths, so many chunks at a time.
    async fn stream_paths(
        &self,
        work: &Work<'_>,
        paths: &[Path<'_>],
        mut loaded: Loaded,
        in_part: bool,
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let listed = work.schema.vertices.count().unwrap_or(1);
        // Paths go to and fro: what is left now would be read again.
        let most = self.group_size(work.schema, listed, self.session.fetch.budget() / 4);
        let (mut left, mut given) = (self.limit(), BTreeSet::new());
        let mut first = 0;
        loop {
            let rest = paths.get(first..).unwrap_or_default();
            let (count, chunks) = batch(rest, most, left, self.shape == Shape::Paths);
            loaded.keep(&chunks, most);
            let now = rest.get(..count).unwrap_or_default();
            let wanted = match in_part {
                true => load::of_fragments(now.iter().flat_map(|path| path.pieces)),
                false => {
                    let new = chunks.iter().filter(|chunk| !loaded.knows(**chunk));
                    new.map(|chunk| (*chunk, Rows::All)).collect()
                }
            };
            self.load(work, wanted, &mut loaded, diagnostics).await?;
            first = first.saturating_add(count);
            let flow = self
                .emit_paths(
                    work,
                    now,
                    &loaded,
                    (&mut left, &mut given),
                    diagnostics,
                    emit,
                )
                .await?;
            if in_part {
                // What was read in part may be needed in another part next.
                loaded = Loaded::default();
            }
            if flow.is_break() || left == 0 || first >= paths.len() {
                return Ok(());
            }
        }
    }

    /// New vertices need room between the numbers.
    pub(crate) fn check_cuttable(schema: &Schema) -> Result<(), QueryError> {
        match schema.dtype.kind() {
            Kind::Float32 | Kind::Float64 => Ok(()),
            _ => Err(QueryError::Unsupported(
                "positions that are no float32 or float64 are not cut: drop what crosses the border",
            )),
        }
    }

    /// Puts the objects of an answer and their attributes in.
    pub(crate) async fn show_objects(
        &self,
        answer: &mut QueryResult,
        objects: &Objects,
        places: &[usize],
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        answer.objects = places
            .iter()
            .filter_map(|place| objects.id(*place))
            .collect();
        let rows = places.iter().filter_map(|place| objects.row(*place));
        let rows: Vec<u64> = rows.collect();
        let names = &self.shown.object;
        let columns = self
            .session
            .object_columns(&self.level, names, Some(&rows), diagnostics);
        answer.object = columns.await?;
        Ok(())
    }

    /// The same for vertices by place, with the ids that they have.
    pub(crate) async fn add_objects(
        &self,
        answer: &mut QueryResult,
        objects: Option<&Arc<Objects>>,
        ids: &BTreeSet<i64>,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let Some(objects) = objects else {
            return Ok(());
        };
        let places = ids.iter().filter_map(|id| objects.find(*id));
        let places: Vec<usize> = places.collect();
        self.show_objects(answer, objects, &places, diagnostics)
            .await
    }
}

/// What all steps of a query on paths work with.
pub(crate) struct Work<'w> {
    /// The node of the object index.
    pub(crate) manifests: Key,
    pub(crate) schema: &'w Schema,
    pub(crate) objects: &'w Objects,
    pub(crate) filter: &'w VertexFilter<'w>,
}

/// Objects that are looked at.
pub(crate) struct Selected {
    pub(crate) objects: Arc<Objects>,
    /// Which of them, in the order asked for.
    pub(crate) places: Vec<usize>,
    /// Whether the filter holds, by place.
    pub(crate) holds: Option<Vec<bool>>,
}

/// The first paths that together need no more than `most` chunks: how many, and
/// which chunks.
fn batch(paths: &[Path<'_>], most: usize, left: u64, is_path: bool) -> (usize, BTreeSet<u32>) {
    let mut chunks: Vec<u32> = Vec::new();
    let mut is_in: Vec<bool> = Vec::new();
    let mut count = 0_usize;
    for path in paths {
        if is_path && u64::try_from(count).unwrap_or(u64::MAX) >= left {
            break;
        }
        let before = chunks.len();
        for piece in path.pieces {
            let at = usize::try_from(piece.chunk).unwrap_or(usize::MAX);
            if is_in.len() <= at {
                is_in.resize(at.saturating_add(1), false);
            }
            if let Some(is_in) = is_in.get_mut(at).filter(|is_in| !**is_in) {
                *is_in = true;
                chunks.push(piece.chunk);
            }
        }
        if count > 0 && chunks.len() > most {
            chunks.truncate(before);
            break;
        }
        count = count.saturating_add(1);
    }
    (count, chunks.into_iter().collect())
}

/// The pieces of an object as runs inside the allowed chunks.
fn runs<'o>(objects: &'o Objects, place: usize, allowed: &Allowed, paths: &mut Vec<Path<'o>>) {
    let pieces = objects.fragments(place);
    if allowed.is_everything() {
        paths.push(Path::new(place, pieces));
        return;
    }
    let is_in = |piece: &ObjectFragment| {
        objects
            .chunk(piece.chunk)
            .is_some_and(|c| allowed.allows(c))
    };
    for pieces in pieces.chunk_by(|a, b| is_in(a) == is_in(b)) {
        if pieces.first().is_some_and(is_in) {
            paths.push(Path::new(place, pieces));
        }
    }
}
