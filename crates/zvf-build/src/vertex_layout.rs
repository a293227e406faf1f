//! Order of vertices in chunks, and fragments over them.

use std::{borrow::Cow, ops::Range};

use rayon::prelude::*;

use crate::{
    GeometryKind, error::BuildError, geometry::GeometryBuilder, spatial_layout::Assignment,
};

/// Stored order of vertices, and fragments over them.
#[derive(Debug, Default)]
pub(crate) struct VertexLayout {
    /// Chunks with vertices, ascending.
    pub(crate) chunks: Vec<Vec<i64>>,
    /// Offsets of chunks in `order`, and the end of the last.
    pub(crate) starts: Vec<usize>,
    /// Vertices by chunk and row.
    pub(crate) order: Vec<u32>,
    /// Chunk of each vertex.
    pub(crate) chunk_of: Vec<u32>,
    /// Offsets of the chunks' fragments in `fragments`, and the end of the last.
    pub(crate) fragment_starts: Vec<usize>,
    /// Fragments by chunk.
    pub(crate) fragments: Vec<Fragment>,
    /// Fragments of each object in manifest order, as indices of `fragments`; empty without
    /// objects.
    pub(crate) manifests: Manifests,
}

/// Run of consecutive rows of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Index of the chunk.
    pub(crate) chunk: u32,
    /// Number of rows.
    pub(crate) rows: u32,
    /// Row of the object; [`NO_OBJECT`] without objects.
    pub(crate) object: u32,
}

impl Fragment {
    const NONE: Self = Self {
        chunk: 0,
        rows: 0,
        object: NO_OBJECT,
    };
}

/// Object row of a vertex or fragment without an object.
pub(crate) const NO_OBJECT: u32 = u32::MAX;

/// Fragment lists of all objects.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    starts: Vec<usize>,
    entries: Vec<u32>,
}

impl Manifests {
    /// Returns the fragments of an object.
    pub(crate) fn of(&self, object: usize) -> &[u32] {
        match (self.starts.get(object), self.starts.get(object + 1)) {
            (Some(&start), Some(&end)) => self.entries.get(start..end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Returns the number of fragments of all objects.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Groups (object, fragment) entries by object, in stable order. Leaves out fragments without an
    /// object.
    pub(crate) fn by_object(objects: usize, entries: &[(u32, u32)]) -> Self {
        let mut starts = vec![0usize; objects + 1];
        let entries = || entries.iter().filter(|(object, _)| *object != NO_OBJECT);
        for (object, _) in entries() {
            starts[*object as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut sorted = vec![0; entries().count()];
        for (object, fragment) in entries() {
            let slot = &mut next[*object as usize];
            sorted[*slot] = *fragment;
            *slot += 1;
        }
        Self {
            starts,
            entries: sorted,
        }
    }
}

/// Rule that forms fragments.
pub(crate) enum Grouping<'a> {
    /// One fragment for each bin; `empty` keeps bins without vertices.
    Bins { count: u32, empty: bool },
    /// One fragment for each object in a chunk; `rows` gives the object of each vertex.
    Owners { objects: usize, rows: &'a [u32] },
    /// Like `Owners`, in tree order; each root starts a fragment.
    Trees {
        objects: usize,
        rows: &'a [u32],
        trees: &'a Trees,
    },
}

/// Vertices of trees in depth-first order, each child right after its parent where possible.
pub(crate) struct Trees {
    /// All vertices in that order.
    pub(crate) sequence: Vec<u32>,
    /// Presence of a parent, by vertex.
    pub(crate) has_parent: Vec<bool>,
}

impl VertexLayout {
    /// Sorts vertices into chunks, and each chunk into fragments.
    pub(crate) fn new(assigned: Assignment, grouping: &Grouping<'_>) -> Self {
        let Assignment {
            chunks,
            chunk_of,
            bin_of,
        } = assigned;
        // A single stable sort by chunk keeps the order within chunks.
        let (starts, order) = match grouping {
            Grouping::Bins { count, .. } => {
                let (starts, mut order) = by_chunk(chunks.len(), &chunk_of, None);
                if *count > 1 {
                    slices(&mut order, &starts).into_par_iter().for_each_init(
                        Vec::new,
                        |spare, vertices| {
                            by_bin(vertices, &bin_of, *count, spare);
                        },
                    );
                }
                (starts, order)
            }
            Grouping::Owners { objects, rows } => {
                let sequence = by_owner(*objects, rows);
                by_chunk(chunks.len(), &chunk_of, sequence.as_deref())
            }
            Grouping::Trees { trees, .. } => {
                by_chunk(chunks.len(), &chunk_of, Some(&trees.sequence))
            }
        };
        let cut = |chunk: usize| {
            let vertices = &order[starts[chunk]..starts[chunk + 1]];
            let number = chunk as u32;
            match grouping {
                Grouping::Bins { count, empty } => {
                    let bin = |vertex: &u32| bin_of.get(*vertex as usize).copied().unwrap_or(0);
                    bins(number, vertices.iter().map(bin), *count, *empty)
                }
                Grouping::Owners { rows, .. } => {
                    let breaks = |a: u32, b: u32| rows[a as usize] != rows[b as usize];
                    runs(number, vertices, breaks, |vertex| rows[vertex as usize])
                }
                Grouping::Trees { rows, trees, .. } => {
                    let breaks = |a: u32, b: u32| {
                        rows[a as usize] != rows[b as usize] || !trees.has_parent[b as usize]
                    };
                    runs(number, vertices, breaks, |vertex| rows[vertex as usize])
                }
            }
        };
        let cut: Vec<Vec<Fragment>> = (0..chunks.len()).into_par_iter().map(cut).collect();
        let mut fragment_starts = Vec::with_capacity(chunks.len() + 1);
        let mut total = 0;
        for fragments in &cut {
            fragment_starts.push(total);
            total += fragments.len();
        }
        fragment_starts.push(total);
        let fragments = cut.concat();
        let mut layout = Self {
            chunks,
            starts,
            order,
            chunk_of,
            fragment_starts,
            fragments,
            manifests: Manifests::default(),
        };
        layout.manifests = match grouping {
            Grouping::Bins { .. } => Manifests::default(),
            Grouping::Owners { objects, .. } | Grouping::Trees { objects, .. } => {
                let entries: Vec<_> = layout
                    .fragments
                    .iter()
                    .zip(0..)
                    .map(|(at, number)| (at.object, number))
                    .collect();
                Manifests::by_object(*objects, &entries)
            }
        };
        layout
    }

    /// Sorts the vertices of paths into chunks. Each run of a path in a chunk is a fragment.
    /// `offsets` are the starts of the paths and the end of the last; `rows` gives the object of
    /// each path.
    pub(crate) fn of_paths(
        assigned: Assignment,
        offsets: &[u64],
        objects: usize,
        rows: &[u32],
    ) -> Self {
        let Assignment {
            chunks, chunk_of, ..
        } = assigned;
        let runs = path_runs(offsets, &chunk_of, rows);
        let mut starts = vec![0usize; chunks.len() + 1];
        let mut fragment_starts = vec![0usize; chunks.len() + 1];
        for run in runs.iter().flatten() {
            starts[run.chunk as usize + 1] += run.rows as usize;
            fragment_starts[run.chunk as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
            fragment_starts[at] += fragment_starts[at - 1];
        }
        let count = fragment_starts.last().copied().unwrap_or(0);
        let mut next = fragment_starts.clone();
        let entries: Vec<(u32, u32)> = runs
            .iter()
            .flatten()
            .map(|run| {
                let fragment = &mut next[run.chunk as usize];
                *fragment += 1;
                (run.object, (*fragment - 1) as u32)
            })
            .collect();
        let manifests = Manifests::by_object(objects, &entries);
        drop(entries);
        let mut order = vec![0; chunk_of.len()];
        let mut fragments = vec![Fragment::NONE; count];
        let shares = chunk_shares(&starts, &fragment_starts, &mut order, &mut fragments);
        shares.into_par_iter().for_each(|share| share.fill(&runs));
        Self {
            chunks,
            starts,
            order,
            chunk_of,
            fragment_starts,
            fragments,
            manifests,
        }
    }

    /// Returns the row of each vertex in its chunk.
    pub(crate) fn rows(&self) -> Vec<u32> {
        let mut rows = vec![0; self.order.len()];
        for ends in self.starts.windows(2) {
            for (vertex, row) in self.order[ends[0]..ends[1]].iter().zip(0..) {
                rows[*vertex as usize] = row;
            }
        }
        rows
    }

    /// Returns the vertices of a chunk by row.
    pub(crate) fn vertices(&self, chunk: usize) -> &[u32] {
        &self.order[self.starts[chunk]..self.starts[chunk + 1]]
    }

    /// Returns the fragments of a chunk.
    pub(crate) fn fragments(&self, chunk: usize) -> &[Fragment] {
        &self.fragments[self.fragment_starts[chunk]..self.fragment_starts[chunk + 1]]
    }

    /// Returns the number of a fragment in its chunk.
    pub(crate) fn number(&self, fragment: u32) -> u32 {
        let chunk = self.fragments[fragment as usize].chunk;
        fragment - self.fragment_starts[chunk as usize] as u32
    }
}

/// Counting sort by chunk. Returns offsets of chunks and vertices in `sequence` order, or input
/// order.
fn by_chunk(chunks: usize, chunk_of: &[u32], sequence: Option<&[u32]>) -> (Vec<usize>, Vec<u32>) {
    // Consecutive vertices are often in one chunk, and a run costs less than its vertices.
    let runs = || chunk_of.chunk_by(|a, b| a == b);
    let mut starts = vec![0usize; chunks + 1];
    for run in runs() {
        starts[run[0] as usize + 1] += run.len();
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let mut order = vec![0; chunk_of.len()];
    match sequence {
        None => {
            let mut vertex = 0;
            for run in runs() {
                let slot = &mut next[run[0] as usize];
                for place in &mut order[*slot..*slot + run.len()] {
                    *place = vertex;
                    vertex += 1;
                }
                *slot += run.len();
            }
        }
        Some(sequence) => {
            for vertex in sequence {
                let slot = &mut next[chunk_of[*vertex as usize] as usize];
                order[*slot] = *vertex;
                *slot += 1;
            }
        }
    }
    (starts, order)
}

/// Returns vertices sorted by object, those without an object last; `None` if the input is in that order.
pub(crate) fn by_owner(objects: usize, rows: &[u32]) -> Option<Vec<u32>> {
    if rows.is_sorted() {
        return None;
    }
    let none = objects as u32;
    let all = if rows.contains(&NO_OBJECT) {
        Cow::Owned(rows.iter().map(|row| none.min(*row)).collect())
    } else {
        Cow::Borrowed(rows)
    };
    Some(by_chunk(objects + 1, &all, None).1)
}

/// Sorts vertices of a chunk by bin, stably.
fn by_bin(vertices: &mut [u32], bin_of: &[u32], bins: u32, spare: &mut Vec<(u32, u32)>) {
    spare.clear();
    spare.extend(
        vertices
            .iter()
            .map(|vertex| (bin_of[*vertex as usize], *vertex)),
    );
    let mut next = vec![0u32; bins as usize + 1];
    for (bin, _) in &*spare {
        next[*bin as usize + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    for (bin, vertex) in &*spare {
        let slot = &mut next[*bin as usize];
        vertices[*slot as usize] = *vertex;
        *slot += 1;
    }
}

/// Splits `order` by chunk.
fn slices<'a>(mut order: &'a mut [u32], starts: &[usize]) -> Vec<&'a mut [u32]> {
    let mut slices = Vec::with_capacity(starts.len());
    for ends in starts.windows(2) {
        let (first, rest) = order.split_at_mut(ends[1] - ends[0]);
        slices.push(first);
        order = rest;
    }
    slices
}

/// Returns a fragment for each bin, or for each non-empty bin.
fn bins(chunk: u32, sorted: impl Iterator<Item = u32>, count: u32, empty: bool) -> Vec<Fragment> {
    let mut rows = vec![0u32; count as usize];
    for bin in sorted {
        rows[bin as usize] += 1;
    }
    let rows = rows.into_iter().filter(|rows| empty || *rows != 0);
    rows.map(|rows| Fragment {
        chunk,
        rows,
        object: NO_OBJECT,
    })
    .collect()
}

/// Returns a fragment for each run of vertices without a break.
fn runs(
    chunk: u32,
    vertices: &[u32],
    breaks: impl Fn(u32, u32) -> bool,
    owner: impl Fn(u32) -> u32,
) -> Vec<Fragment> {
    let runs = vertices.chunk_by(|a, b| !breaks(*a, *b));
    runs.map(|run| Fragment {
        chunk,
        rows: run.len() as u32,
        object: owner(run[0]),
    })
    .collect()
}

/// Consecutive chunks that one core fills.
struct ChunkShare<'a> {
    chunks: Range<usize>,
    /// The vertices of the chunks, and the next of each chunk among them.
    order: &'a mut [u32],
    next_row: Vec<usize>,
    /// The fragments of the chunks, and the next of each chunk among them.
    fragments: &'a mut [Fragment],
    next_fragment: Vec<usize>,
}

/// Divides chunks into shares for the cores. Shares of several chunks have at most the fragments of
/// one core, so there are fewer than two shares for each.
fn chunk_shares<'a>(
    starts: &[usize],
    fragment_starts: &[usize],
    mut order: &'a mut [u32],
    mut fragments: &'a mut [Fragment],
) -> Vec<ChunkShare<'a>> {
    let chunks = starts.len() - 1;
    let most = fragments
        .len()
        .div_ceil(rayon::current_num_threads().max(1));
    let mut shares = Vec::new();
    let mut first = 0;
    while first < chunks {
        let from = fragment_starts[first];
        let fitting = fragment_starts.partition_point(|at| *at <= from + most) - 1;
        let end = fitting.clamp(first + 1, chunks);
        let (own_order, rest) = order.split_at_mut(starts[end] - starts[first]);
        order = rest;
        let (own_fragments, rest) = fragments.split_at_mut(fragment_starts[end] - from);
        fragments = rest;
        let within = |starts: &[usize]| -> Vec<usize> {
            let own = starts[first..end].iter();
            own.map(|at| at - starts[first]).collect()
        };
        shares.push(ChunkShare {
            chunks: first..end,
            order: own_order,
            next_row: within(starts),
            fragments: own_fragments,
            next_fragment: within(fragment_starts),
        });
        first = end;
    }
    shares
}

impl ChunkShare<'_> {
    /// Stores the vertices and fragments of the runs that are in these chunks.
    fn fill(mut self, runs: &[Vec<Fragment>]) {
        let mut vertex = 0;
        for run in runs.iter().flatten() {
            let chunk = run.chunk as usize;
            if self.chunks.contains(&chunk) {
                let chunk = chunk - self.chunks.start;
                let row = &mut self.next_row[chunk];
                let slots = &mut self.order[*row..*row + run.rows as usize];
                for (slot, vertex) in slots.iter_mut().zip(vertex..) {
                    *slot = vertex;
                }
                *row += run.rows as usize;
                let fragment = &mut self.next_fragment[chunk];
                self.fragments[*fragment] = *run;
                *fragment += 1;
            }
            vertex += run.rows;
        }
    }
}

/// Paths of a parallel block.
const PATHS: usize = 1 << 10;

/// Returns the runs of paths in chunks, in the order of the paths, divided into blocks.
fn path_runs(offsets: &[u64], chunk_of: &[u32], rows: &[u32]) -> Vec<Vec<Fragment>> {
    let runs_of = |(paths, rows): (usize, &[u32])| {
        let offsets = offsets[paths * PATHS..].windows(2);
        let runs = offsets.zip(rows).flat_map(|(ends, object)| {
            let chunks = &chunk_of[ends[0] as usize..ends[1] as usize];
            chunks.chunk_by(|a, b| a == b).map(|run| Fragment {
                chunk: run[0],
                rows: run.len() as u32,
                object: *object,
            })
        });
        runs.collect()
    };
    rows.par_chunks(PATHS).enumerate().map(runs_of).collect()
}

impl Trees {
    /// Orders vertices along links (child, parent); `rows` gives the object of each vertex.
    pub(crate) fn new(
        geometry: &GeometryBuilder,
        rows: &[u32],
        ids: &[i64],
    ) -> Result<Self, BuildError> {
        let vertices = geometry.vertices();
        let mut has_parent = vec![false; vertices];
        let mut children: Vec<u32> = vec![0; vertices + 1];
        for link in geometry.links.ends.chunks_exact(2) {
            // Link ends were validated as vertices.
            let (child, of) = (link[0] as usize, link[1] as usize);
            if child == of {
                return Err(BuildError::Cycle(child));
            }
            if has_parent[child] {
                let mut links = geometry.links.ends.chunks_exact(2);
                let first = links.find(|link| link[0] as usize == child);
                return Err(BuildError::MultipleParents {
                    vertex: child,
                    first: first.map_or(of, |link| link[1] as usize),
                    second: of,
                });
            }
            if rows[child] != rows[of] {
                return Err(BuildError::ParentInOtherObject {
                    child,
                    object: ids[rows[child] as usize],
                    other: ids[rows[of] as usize],
                });
            }
            has_parent[child] = true;
            children[of] += 1;
        }
        for at in 1..children.len() {
            children[at] += children[at - 1];
        }
        // Filled from the end, so that offsets end up at the first child of each vertex.
        let mut list = vec![0u32; geometry.links.ends.len() / 2];
        for link in geometry.links.ends.chunks_exact(2).rev() {
            let slot = &mut children[link[1] as usize];
            *slot -= 1;
            list[*slot as usize] = link[0] as u32;
        }
        let mut sequence = Vec::with_capacity(vertices);
        let mut roots: Vec<u32> = (0..vertices as u32)
            .filter(|vertex| !has_parent[*vertex as usize])
            .collect();
        roots.sort_by_key(|root| rows[*root as usize]);
        let mut open = Vec::new();
        for root in roots {
            open.push(root);
            while let Some(vertex) = open.pop() {
                sequence.push(vertex);
                let at = vertex as usize;
                let own = &list[children[at] as usize..children[at + 1] as usize];
                open.extend(own.iter().rev());
            }
        }
        if sequence.len() < vertices {
            let mut seen = vec![false; vertices];
            for vertex in &sequence {
                seen[*vertex as usize] = true;
            }
            let vertex = seen.iter().position(|seen| !seen).unwrap_or_default();
            return Err(BuildError::Cycle(vertex));
        }
        Ok(Self {
            sequence,
            has_parent,
        })
    }
}

/// Returns whether the kind stores trees.
pub(crate) fn is_tree(kind: GeometryKind) -> bool {
    kind == GeometryKind::Skeletons
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5,000 paths of 0 to 6 vertices in 40 chunks, of 100 objects.
    struct Paths {
        offsets: Vec<u64>,
        chunk_of: Vec<u32>,
        /// The object of each path.
        rows: Vec<u32>,
    }

    /// Every fourth chunk has no vertices.
    fn paths() -> Paths {
        let mut offsets = vec![0u64];
        let mut chunk_of = Vec::new();
        for path in 0..5_000u32 {
            let vertices = (0..path % 7).map(|vertex| (path * 13 + vertex / 2 * 5) % 40);
            chunk_of.extend(vertices.map(|chunk| if chunk % 4 == 3 { 0 } else { chunk }));
            offsets.push(chunk_of.len() as u64);
        }
        Paths {
            offsets,
            chunk_of,
            rows: (0..5_000).map(|path| path * 7 % 100).collect(),
        }
    }

    fn layout(paths: &Paths, threads: usize) -> VertexLayout {
        let assigned = Assignment {
            chunks: (0..40).map(|chunk| vec![chunk]).collect(),
            chunk_of: paths.chunk_of.clone(),
            bin_of: Vec::new(),
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| VertexLayout::of_paths(assigned, &paths.offsets, 100, &paths.rows))
    }

    #[test]
    fn each_run_of_a_path_in_a_chunk_is_a_fragment() {
        let paths = paths();
        // Appends each vertex to its chunk, one by one.
        let mut vertices = vec![Vec::new(); 40];
        let mut fragments: Vec<Vec<Fragment>> = vec![Vec::new(); 40];
        let mut manifests = vec![Vec::new(); 100];
        for (ends, object) in paths.offsets.windows(2).zip(&paths.rows) {
            let mut last = None;
            for vertex in ends[0]..ends[1] {
                let chunk = paths.chunk_of[vertex as usize];
                let own = &mut fragments[chunk as usize];
                if last == Some(chunk) {
                    own.last_mut().unwrap().rows += 1;
                } else {
                    manifests[*object as usize].push((chunk, own.len() as u32));
                    own.push(Fragment {
                        chunk,
                        rows: 1,
                        object: *object,
                    });
                }
                vertices[chunk as usize].push(vertex as u32);
                last = Some(chunk);
            }
        }
        for threads in [1, 2, 7, 64] {
            let layout = layout(&paths, threads);
            for chunk in 0..40 {
                assert_eq!(layout.vertices(chunk), vertices[chunk]);
                assert_eq!(layout.fragments(chunk), fragments[chunk]);
            }
            for (object, expected) in manifests.iter().enumerate() {
                let own: Vec<_> = layout
                    .manifests
                    .of(object)
                    .iter()
                    .map(|at| (layout.fragments[*at as usize].chunk, layout.number(*at)))
                    .collect();
                assert_eq!(own, *expected, "object {object}");
            }
        }
    }
}
