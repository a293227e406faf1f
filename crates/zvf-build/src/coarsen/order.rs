//! Stored order of a coarser chunk's vertices, and its fragments.

use super::{
    Coarsener, MergedPositions, NO_OBJECT, NO_VERTEX, Ownership, VertexMerge,
    input::{CoarsenError, MAX_BINS, SourceBlock},
};

/// Stored rows of a chunk.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Vertex of each row.
    pub(super) rows: Vec<u32>,
    /// Row of each vertex.
    pub(super) row_of: Vec<u32>,
    /// End and owner of each fragment; empty where objects list vertices.
    pub(super) fragments: Vec<(u32, u32)>,
    /// Rows that start a fragment of a tree, as a flag for each row.
    heads: Vec<bool>,
}

impl Order {
    /// Returns whether the row order implies a link from `parent` to `child`.
    pub(super) fn implies(&self, child: u64, parent: u64) -> bool {
        let is_head = self.heads.get(child as usize).copied().unwrap_or(true);
        child == parent.wrapping_add(1) && !is_head
    }
}

impl Coarsener {
    /// Orders merged vertices and cuts them into fragments.
    pub(super) fn order(
        &self,
        gathered: &SourceBlock,
        merge: &VertexMerge,
    ) -> Result<Order, CoarsenError> {
        let count = merge.len(self.axes);
        let mut rows: Vec<u32> = (0..count as u32).collect();
        let owner_of = owners(gathered, merge, count);
        let mut heads = Vec::new();
        match self.shape {
            Ownership::Shared | Ownership::SharedPoints => {
                rows = first_visits(gathered, merge, count);
            }
            Ownership::Trees => (rows, heads) = trees(gathered, merge, &owner_of),
            Ownership::Exclusive if self.has_objects => {
                rows.sort_by_key(|vertex| owner_of[*vertex as usize]);
            }
            Ownership::Exclusive => {}
        }
        let mut fragments = Vec::new();
        match (self.shape, self.has_objects, &self.bins) {
            (Ownership::Shared | Ownership::SharedPoints, ..) => {}
            (Ownership::Exclusive, false, Some(bins)) if self.width.is_none() => {
                let bin_of = |vertex: u32| -> u32 {
                    let position = match &merge.positions {
                        MergedPositions::Source(kept) => {
                            gathered.block.position(kept[vertex as usize] as usize)
                        }
                        MergedPositions::Computed(all) => {
                            &all[vertex as usize * self.axes..][..self.axes]
                        }
                    };
                    // Every position in the chunk has a bin, and the number of bins was checked.
                    bins.place_of(position).map_or(0, |place| place.bin as u32)
                };
                let bin_of: Vec<u32> = (0..count as u32).map(bin_of).collect();
                rows.sort_by_key(|vertex| bin_of[*vertex as usize]);
                let bins = bins.count();
                let count = u32::try_from(bins).ok().filter(|_| bins <= MAX_BINS);
                let mut at = 0;
                for bin in 0..count.ok_or(CoarsenError::TooManyBins { bins })? {
                    while rows
                        .get(at)
                        .is_some_and(|vertex| bin_of[*vertex as usize] == bin)
                    {
                        at += 1;
                    }
                    // Readers use the fragment number as the bin number.
                    fragments.push((at as u32, NO_OBJECT));
                }
            }
            _ => {
                for (row, vertex) in rows.iter().enumerate() {
                    let owner = owner_of[*vertex as usize];
                    let is_head = heads.get(row).copied().unwrap_or(row == 0);
                    match fragments.last_mut() {
                        Some((end, last)) if *last == owner && !is_head => *end = row as u32 + 1,
                        _ => fragments.push((row as u32 + 1, owner)),
                    }
                }
            }
        }
        let mut row_of = vec![NO_VERTEX; count];
        for (row, vertex) in rows.iter().enumerate() {
            row_of[*vertex as usize] = row as u32;
        }
        Ok(Order {
            rows,
            row_of,
            fragments,
            heads,
        })
    }
}

/// Returns the object of each coarser vertex: that of the first vertex that it replaces.
fn owners(gathered: &SourceBlock, merge: &VertexMerge, count: usize) -> Vec<u32> {
    if let MergedPositions::Source(kept) = &merge.positions {
        let own = kept
            .iter()
            .map(|vertex| gathered.block.owner(*vertex as usize));
        return own.collect();
    }
    let mut owner_of = vec![NO_OBJECT; count];
    for (vertex, parent) in merge.parent.iter().enumerate().rev() {
        if *parent != NO_VERTEX {
            owner_of[*parent as usize] = gathered.block.owner(vertex);
        }
    }
    owner_of
}

/// Orders vertices by first visit of a path, so that many paths become ranges.
fn first_visits(gathered: &SourceBlock, merge: &VertexMerge, count: usize) -> Vec<u32> {
    let mut rows = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    for path in &gathered.block.paths {
        for vertex in &path.rows {
            let parent = merge.parent[*vertex as usize];
            if parent != NO_VERTEX && !std::mem::replace(&mut seen[parent as usize], true) {
                rows.push(parent);
            }
        }
    }
    rows.extend((0..count as u32).filter(|vertex| !seen[*vertex as usize]));
    rows
}

/// Orders trees depth-first, and returns which rows start a fragment because their parent is
/// elsewhere.
fn trees(gathered: &SourceBlock, merge: &VertexMerge, owner_of: &[u32]) -> (Vec<u32>, Vec<bool>) {
    let count = owner_of.len();
    let mut parent_of = vec![NO_VERTEX; count];
    let mut children = vec![0u32; count + 1];
    for link in gathered.block.links.chunks_exact(2) {
        let (child, parent) = (
            merge.parent[link[0] as usize],
            merge.parent[link[1] as usize],
        );
        if child == NO_VERTEX
            || parent == NO_VERTEX
            || child == parent
            || parent_of[child as usize] != NO_VERTEX
        {
            continue;
        }
        parent_of[child as usize] = parent;
        children[parent as usize + 1] += 1;
    }
    for at in 1..children.len() {
        children[at] += children[at - 1];
    }
    let mut next = children.clone();
    let mut list = vec![0u32; children[count] as usize];
    for (child, parent) in (0u32..).zip(&parent_of) {
        if *parent != NO_VERTEX {
            let slot = &mut next[*parent as usize];
            list[*slot as usize] = child;
            *slot += 1;
        }
    }
    let mut roots: Vec<u32> = (0..count as u32)
        .filter(|vertex| parent_of[*vertex as usize] == NO_VERTEX)
        .collect();
    roots.sort_by_key(|root| owner_of[*root as usize]);
    let (mut rows, mut heads) = (Vec::with_capacity(count), vec![false; count]);
    let mut seen = vec![false; count];
    // Cycles of a damaged tree have no root and come last.
    let rest = (0..count as u32).collect::<Vec<u32>>();
    for start in roots.into_iter().chain(rest) {
        let mut open = vec![start];
        while let Some(vertex) = open.pop() {
            if std::mem::replace(&mut seen[vertex as usize], true) {
                continue;
            }
            if vertex == start {
                heads[rows.len()] = true;
            }
            rows.push(vertex);
            let own = children[vertex as usize] as usize..children[vertex as usize + 1] as usize;
            open.extend(list[own].iter().rev());
        }
    }
    (rows, heads)
}
