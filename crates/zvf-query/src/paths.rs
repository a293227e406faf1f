//! Vertices of objects in the order of their pieces: paths, and points that are
//! selected by object.

mod fate;
mod give;
mod load;
mod loaded;
mod objects;
mod select;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::future::try_join;
use zvf_format::numeric::Kind;
use zvf_model::{fetch::Fetch, key::Key};

use crate::{
    answer::{Answer, Parts},
    chunk::{Rows, Wish},
    error::QueryError,
    missing::Ledger,
    objects::{Objects, Piece},
    plan::{Allowed, Emit, Plan, VertexFilter},
    query::Shape,
    schema::Schema,
    vertices::Entry,
};

pub(crate) use loaded::Loaded;
pub(crate) use select::{Between, Ends};

/// A path: pieces of an object that follow each other.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Which of the objects read.
    pub(crate) place: usize,
    pub(crate) pieces: Vec<Piece>,
}

/// A vertex of a path: its chunk's number and where it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathVertex {
    pub(crate) chunk: u32,
    pub(crate) entry: Entry,
}

impl<F: Fetch> Plan<'_, F> {
    /// Paths that the region and filter select, or points of selected objects.
    ///
    /// Three round trips: manifests; fragment indexes; rows. With a region its
    /// chunks come with the manifests, and what lies outside of them after.
    pub(crate) async fn paths(
        &self,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let Some(schema) = self.schema(true).await? else {
            return self.no_paths(emit).await;
        };
        let allowed = self.allowed()?;
        let named = self.query.objects.is_some() || self.query.groups.is_some();
        let regional = self.area.as_ref().filter(|_| !named);
        let nearby = async {
            let Some(area) = regional else {
                return Ok(Vec::new());
            };
            let mut chunks = self.chunks(&schema)?;
            chunks.retain(|chunk| area.reaches(chunk));
            let wishes = chunks.into_iter().map(|chunk| Wish {
                chunk,
                fragments: true,
                rows: Rows::All,
            });
            let wishes = wishes.collect();
            self.read_chunks(&schema, wishes, ledger).await
        };
        let (selection, nearby) = try_join(self.selected_objects(ledger), nearby).await?;
        let Some(Selected {
            objects,
            places,
            holds,
        }) = selection
        else {
            return match nearby.is_empty() && schema.vertices.chunks().is_none_or(|c| c.is_empty())
            {
                true => self.no_paths(emit).await,
                false => Err(QueryError::NoObjects(self.level.id())),
            };
        };
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
        let filter = self.vertex_filter(Some(&objects), ledger).await?;
        let mut loaded = Loaded::new();
        for chunk in nearby.into_iter().flatten() {
            if let Some(number) = objects.number_of(&chunk.chunk) {
                loaded.add(number, Some(chunk), &schema);
            }
        }
        let work = Work {
            manifests: self.manifests()?,
            schema: &schema,
            objects: &objects,
            filter: &filter,
        };
        if let Some(area) = regional
            && self.shape == Shape::Paths
        {
            self.load_region(&work, area, &mut paths, &mut loaded, ledger)
                .await?;
            let (mut left, mut given) = (self.limit(), BTreeSet::new());
            let done = self.emit_paths(
                &work,
                &paths,
                &loaded,
                (&mut left, &mut given),
                ledger,
                emit,
            );
            return done.await.map(|_| ());
        }
        self.stream_paths(&work, &paths, loaded, named, ledger, emit)
            .await
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
        ledger: &Ledger,
    ) -> Result<VertexFilter<'_>, QueryError> {
        let predicate = self.filter.vertex.as_ref();
        let object_columns = match self.filter.vertex_needs_objects() {
            true => self.object_columns_of_filter(objects, ledger).await?,
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
        work: &Work<'_, F>,
        paths: &[Path],
        mut loaded: Loaded,
        in_part: bool,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let listed = work
            .schema
            .vertices
            .chunks()
            .map_or(1, |chunks| chunks.len());
        let most = self.group_size(work.schema, listed);
        let (mut left, mut given) = (self.limit(), BTreeSet::new());
        let mut first = 0;
        loop {
            let rest = paths.get(first..).unwrap_or_default();
            let (count, chunks) = batch(rest, most, left, self.shape == Shape::Paths);
            loaded.keep(&chunks, most);
            let now = rest.get(..count).unwrap_or_default();
            let mut wanted: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            for piece in now.iter().flat_map(|path| &path.pieces) {
                if !loaded.knows(piece.chunk) {
                    wanted
                        .entry(piece.chunk)
                        .or_default()
                        .insert(piece.fragment);
                }
            }
            let wanted = wanted.into_iter().map(|wanted| match in_part {
                true => load::of_fragments(wanted),
                false => (wanted.0, Rows::All),
            });
            self.load(work, wanted, &mut loaded, ledger).await?;
            first = first.saturating_add(count);
            let flow = self
                .emit_paths(work, now, &loaded, (&mut left, &mut given), ledger, emit)
                .await?;
            if in_part {
                // What was read in part may be needed in another part next.
                loaded = Loaded::new();
            }
            if flow.is_break() || left == 0 || first >= paths.len() {
                return Ok(());
            }
        }
    }

    /// New vertices need room between the numbers.
    pub(crate) fn check_cuttable(schema: &Schema<F::Array>) -> Result<(), QueryError> {
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
        answer: &mut Answer,
        objects: &Objects,
        places: &[usize],
        ledger: &Ledger,
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
            .object_columns(&self.level, names, Some(&rows), ledger);
        answer.object = columns.await?;
        Ok(())
    }

    /// The same for vertices by place, with the ids that they have.
    pub(crate) async fn add_objects(
        &self,
        answer: &mut Answer,
        objects: Option<&Arc<Objects>>,
        ids: &BTreeSet<i64>,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let Some(objects) = objects else {
            return Ok(());
        };
        let places = ids.iter().filter_map(|id| objects.find(*id));
        let places: Vec<usize> = places.collect();
        self.show_objects(answer, objects, &places, ledger).await
    }
}

/// What all steps of a query on paths work with.
pub(crate) struct Work<'w, F: Fetch> {
    /// The node of the object index.
    pub(crate) manifests: Key,
    pub(crate) schema: &'w Schema<F::Array>,
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
fn batch(paths: &[Path], most: usize, left: u64, is_path: bool) -> (usize, BTreeSet<u32>) {
    let mut chunks = BTreeSet::new();
    let mut count = 0_usize;
    for path in paths {
        if is_path && u64::try_from(count).unwrap_or(u64::MAX) >= left {
            break;
        }
        let new: BTreeSet<u32> = path.pieces.iter().map(|piece| piece.chunk).collect();
        let more = new.difference(&chunks).count();
        if count > 0 && chunks.len().saturating_add(more) > most {
            break;
        }
        chunks.extend(new);
        count = count.saturating_add(1);
    }
    (count, chunks)
}

/// The pieces of an object as runs inside the allowed chunks.
fn runs(objects: &Objects, place: usize, allowed: &Allowed, paths: &mut Vec<Path>) {
    let pieces = objects.pieces(place);
    if allowed.is_everything() {
        let pieces = pieces.to_vec();
        paths.push(Path { place, pieces });
        return;
    }
    let is_in = |piece: &Piece| {
        objects
            .chunk(piece.chunk)
            .is_some_and(|c| allowed.allows(c))
    };
    for run in pieces.chunk_by(|a, b| is_in(a) == is_in(b)) {
        if run.first().is_some_and(is_in) {
            let pieces = run.to_vec();
            paths.push(Path { place, pieces });
        }
    }
}

fn position<'l>(loaded: &'l Loaded, vertex: &PathVertex) -> &'l [f64] {
    let chunk = loaded.get(vertex.chunk);
    chunk.map_or(&[][..], |(_, coordinates)| {
        coordinates.at(vertex.entry.place)
    })
}
