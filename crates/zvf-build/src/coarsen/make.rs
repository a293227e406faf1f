//! Encoding of a chunk of the coarser level.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use rayon::prelude::*;
use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexBuilder},
    numeric::{ByteOrder, Dtype},
};

use super::{
    Aggregation, Coarsener, MergedPositions, NO_OBJECT, NO_VERTEX, Ownership, VertexMerge,
    aggregate::aggregate_members,
    coarsener::AggregatedAttribute,
    contract_links, contract_path,
    input::{CoarsenError, CoarsenInput, FragmentReference, SourceBlock, in_order},
    members::Members,
    order::Order,
};
use zvf_model::{column::NumericColumn, layout::ArrayRole, scope::Scope};

use crate::{
    coordinates::{self, BLOCK, ChunkSpan},
    link_placement,
};

/// Encoded chunk of the coarser level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoarseChunk {
    /// Number of vertices.
    pub rows: u32,
    /// Payload of the vertices.
    pub positions: Vec<u8>,
    /// Payload of the fragment index.
    pub fragments: Vec<u8>,
    /// `true` if the fragments tile the rows in order.
    pub tiles: bool,
    /// Payloads of vertex attributes, if present.
    pub vertex: Vec<Option<Vec<u8>>>,
    /// Payloads of fragment attributes, if present.
    pub fragment: Vec<Option<Vec<u8>>>,
    /// Payload of links inside the chunk.
    pub links: Vec<u8>,
    /// Number of links inside the chunk.
    pub link_count: u64,
    /// Payload of `link_fragments`.
    pub link_fragments: Vec<u8>,
    /// Payloads of link attributes, if present.
    pub link: Vec<Option<Vec<u8>>>,
    /// References of objects to fragments. `at` is the manifest position of the run in the finer
    /// level.
    pub named: Vec<FragmentReference>,
    /// Coarser row of each row of each input chunk, or [`NO_VERTEX`].
    pub parents: Vec<Vec<u32>>,
    /// Number of references from fragments to rows, repeats included.
    pub names: u64,
    /// Distance that the geometry moves, if the method gives one.
    pub error: Option<f64>,
    /// Number of connected pieces of meshes that the method drops.
    pub dropped_pieces: u64,
}

impl Coarsener {
    /// Returns the attributes of a scope of [chunks](Scope::OF_CHUNKS).
    pub fn attributes(&self, scope: Scope) -> &[AggregatedAttribute] {
        match scope {
            Scope::Vertex => &self.vertex,
            Scope::Fragment => &self.fragment,
            Scope::Link | Scope::Object | Scope::Group => &[],
        }
    }

    /// Takes the cells of attributes of the scopes of [chunks](Scope::OF_CHUNKS) from a chunk.
    pub fn take_cells(&self, made: &mut CoarseChunk) -> Vec<(ArrayRole<'_>, Vec<u8>)> {
        let mut all = Vec::new();
        for scope in Scope::OF_CHUNKS {
            let cells = match scope {
                Scope::Vertex => core::mem::take(&mut made.vertex),
                Scope::Fragment => core::mem::take(&mut made.fragment),
                Scope::Link | Scope::Object | Scope::Group => continue,
            };
            let named = self.attributes(scope).iter().zip(cells);
            all.extend(named.filter_map(|(own, cell)| Some((scope.array(&own.name), cell?))));
        }
        all
    }
}

impl Coarsener {
    /// Builds the chunk of the coarser level between the corners `lower` and `upper`.
    ///
    /// # Errors
    ///
    /// [`CoarsenError`] when the stored data is inconsistent.
    pub fn make(
        &self,
        input: &CoarsenInput<'_>,
        lower: Vec<f64>,
        upper: Vec<f64>,
    ) -> Result<CoarseChunk, CoarsenError> {
        let gathered = self.gather(input, lower, upper)?;
        let merge = self.method.merge(&gathered.block);
        let order = self.order(&gathered, &merge)?;
        let rows = order.rows.len();
        let mut made = CoarseChunk {
            rows: rows as u32,
            error: merge.error,
            dropped_pieces: merge.dropped_pieces,
            ..CoarseChunk::default()
        };
        made.positions = self.merged_positions(input, &gathered, &merge, &order);
        // Coarser row of each vertex of the block.
        let parents = merge.parent.par_iter().with_min_len(BLOCK);
        let row_of: Vec<u32> = parents
            .map(|parent| match *parent {
                NO_VERTEX => NO_VERTEX,
                parent => order.row_of[parent as usize],
            })
            .collect();
        let row_of_stored = |row: usize| match gathered.vertex_of[row] {
            NO_VERTEX => NO_VERTEX,
            vertex => row_of[vertex as usize],
        };
        for ends in gathered.starts.windows(2) {
            let rows = (ends[0]..ends[1]).into_par_iter().with_min_len(BLOCK);
            made.parents.push(rows.map(row_of_stored).collect());
        }
        let mut stored: Vec<u32> = made.parents.concat();
        if self.shape.is_shared() {
            // Unreferenced vertices do not contribute to values, as they do not to positions.
            for (parent, is_listed) in stored.iter_mut().zip(gathered.block.listed()) {
                if !is_listed {
                    *parent = NO_VERTEX;
                }
            }
        }
        let own = match &merge.positions {
            // Row over all chunks whose values are kept.
            MergedPositions::Source(kept) => {
                let of = |vertex: &u32| gathered.row_of[kept[*vertex as usize] as usize];
                Some(order.rows.iter().map(of).collect::<Vec<u32>>())
            }
            MergedPositions::Computed(_) => None,
        };
        let members = Members::new(&stored, rows);
        drop(stored);
        for (number, field) in self.vertex.iter().enumerate() {
            let cells: Vec<_> = input
                .chunks
                .iter()
                .map(|chunk| chunk.vertex.get(number).copied().flatten())
                .collect();
            let counts: Vec<usize> = gathered
                .starts
                .windows(2)
                .map(|ends| ends[1] - ends[0])
                .collect();
            let names: Vec<&str> = input
                .chunks
                .iter()
                .map(|chunk| chunk.name.as_str())
                .collect();
            let Some(values) = field.values(&cells, &counts, &names)? else {
                made.vertex.push(None);
                continue;
            };
            let values = field.aggregate(&values, &members, own.as_deref())?;
            made.vertex.push((rows > 0).then_some(values));
        }
        self.fragments(input, &gathered, &order, &row_of, &mut made)?;
        self.inside(input, &gathered, &order, &row_of, &mut made)?;
        Ok(made)
    }

    /// Encodes positions in row order. Vertices that are kept keep their stored position.
    fn merged_positions(
        &self,
        input: &CoarsenInput<'_>,
        gathered: &SourceBlock,
        merge: &VertexMerge,
        order: &Order,
    ) -> Vec<u8> {
        let (axes, block) = (self.axes, &gathered.block);
        let all = match &merge.positions {
            MergedPositions::Source(kept) => {
                let size = self.positions.size() * axes;
                let mut bytes = Vec::with_capacity(order.rows.len() * size);
                for vertex in &order.rows {
                    let row = gathered.row_of[kept[*vertex as usize] as usize] as usize;
                    let chunk = gathered.starts.partition_point(|start| *start <= row) - 1;
                    let at = (row - gathered.starts[chunk]) * size;
                    bytes.extend_from_slice(&input.chunks[chunk].positions[at..at + size]);
                }
                return bytes;
            }
            MergedPositions::Computed(all) => all,
        };
        let mut positions = Vec::with_capacity(order.rows.len() * axes);
        for vertex in &order.rows {
            let at = *vertex as usize * axes;
            positions.extend_from_slice(&all[at..at + axes]);
        }
        let corners = block.lower.iter().zip(&block.upper);
        let spans: Vec<ChunkSpan> = corners
            .enumerate()
            .map(|(axis, (lower, upper))| {
                let values = block.positions.iter().skip(axis).step_by(axes);
                ChunkSpan {
                    lower: *lower,
                    upper: *upper,
                    least: values.clone().copied().fold(f64::INFINITY, f64::min),
                    greatest: values.copied().fold(f64::NEG_INFINITY, f64::max),
                }
            })
            .collect();
        let mut bytes = coordinates::rounded(&positions, self.positions.kind(), &spans);
        to_order(&mut bytes, self.positions);
        bytes
    }

    /// Encodes fragments, their references and attributes.
    fn fragments(
        &self,
        input: &CoarsenInput<'_>,
        gathered: &SourceBlock,
        order: &Order,
        row_of: &[u32],
        made: &mut CoarseChunk,
    ) -> Result<(), CoarsenError> {
        let mut builder = FragmentIndexBuilder::default();
        // Coarser fragment of each path or object.
        let mut became: Vec<(u32, u32)> = Vec::new();
        let full = |_| CoarsenError::TooMany;
        if self.shape.is_shared() {
            let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
            let mut count = 0;
            for (number, (path, at)) in
                (0u32..).zip(gathered.block.paths.iter().zip(&gathered.path_at))
            {
                let mut rows = contract_path(&path.rows, row_of);
                if self.shape == Ownership::SharedPoints {
                    rows.sort_unstable();
                    rows.dedup();
                }
                made.names += rows.len() as u64;
                if rows.is_empty() {
                    continue;
                }
                let next = count;
                // Fragments that are shared would share their attributes too.
                let same = known.get(&rows).filter(|_| self.fragment.is_empty());
                let fragment = match same {
                    Some(fragment) => *fragment,
                    None => {
                        count += 1;
                        let list: Vec<u64> = rows.iter().map(|row| u64::from(*row)).collect();
                        // The builder stores consecutive rows as a range.
                        builder.push_list(&list).map_err(full)?;
                        known.insert(rows, next);
                        next
                    }
                };
                became.push((number, fragment));
                made.named.push(FragmentReference {
                    object: path.object,
                    at: *at,
                    fragment,
                });
            }
        } else {
            made.names = u64::from(made.rows);
            let mut start = 0;
            for (fragment, (end, owner)) in (0u32..).zip(&order.fragments) {
                builder.push_range(start..u64::from(*end)).map_err(full)?;
                start = u64::from(*end);
                if *owner != NO_OBJECT {
                    became.push((*owner, fragment));
                    made.named.push(FragmentReference {
                        object: *owner,
                        at: 0,
                        fragment,
                    });
                }
            }
        }
        made.fragments = builder.finish();
        let index = FragmentIndex::parse(&made.fragments).map_err(|source| {
            CoarsenError::FragmentIndex {
                chunk: String::new(),
                source,
            }
        })?;
        made.tiles = index.tiles(u64::from(made.rows));
        let count = index.len() as usize;
        self.of_fragments(input, gathered, &became, count, made)
    }

    /// Aggregates fragment attributes.
    fn of_fragments(
        &self,
        input: &CoarsenInput<'_>,
        gathered: &SourceBlock,
        became: &[(u32, u32)],
        count: usize,
        made: &mut CoarseChunk,
    ) -> Result<(), CoarsenError> {
        if self.fragment.is_empty() {
            return Ok(());
        }
        // Offsets of each chunk's fragments over all chunks.
        let mut starts = vec![0usize];
        for chunk in &input.chunks {
            let index = FragmentIndex::parse(chunk.fragments).map_err(|source| {
                CoarsenError::FragmentIndex {
                    chunk: chunk.name.clone(),
                    source,
                }
            })?;
            starts.push(starts[starts.len() - 1] + index.len() as usize);
        }
        let mut first: HashMap<u32, u32> = HashMap::new();
        for (whose, fragment) in became {
            first.entry(*whose).or_insert(*fragment);
        }
        let mut into = vec![NO_VERTEX; starts[starts.len() - 1]];
        let mut own = vec![NO_VERTEX; count];
        for (whose, chunk, fragment) in &gathered.of_fragments {
            let Some(to) = first.get(whose) else {
                continue;
            };
            let from = starts[*chunk as usize] + *fragment as usize;
            into[from] = *to;
            if own[*to as usize] == NO_VERTEX {
                own[*to as usize] = from as u32;
            }
        }
        // All fragments of an object take the values of its first.
        for (whose, fragment) in became {
            if own[*fragment as usize] == NO_VERTEX
                && let Some(to) = first.get(whose)
            {
                own[*fragment as usize] = own[*to as usize];
            }
        }
        let members = Members::new(&into, count);
        for (number, field) in self.fragment.iter().enumerate() {
            let cells: Vec<_> = input
                .chunks
                .iter()
                .map(|chunk| chunk.fragment.get(number).copied().flatten())
                .collect();
            let counts: Vec<usize> = starts.windows(2).map(|ends| ends[1] - ends[0]).collect();
            let names: Vec<&str> = input
                .chunks
                .iter()
                .map(|chunk| chunk.name.as_str())
                .collect();
            let values = field.values(&cells, &counts, &names)?;
            let is_whole = own.iter().all(|from| *from != NO_VERTEX) && count > 0;
            let values = values.filter(|_| is_whole);
            let values = values.map(|values| field.aggregate(&values, &members, Some(&own)));
            made.fragment.push(values.transpose()?);
        }
        Ok(())
    }

    /// Encodes links inside the chunk.
    fn inside(
        &self,
        input: &CoarsenInput<'_>,
        gathered: &SourceBlock,
        order: &Order,
        row_of: &[u32],
        made: &mut CoarseChunk,
    ) -> Result<(), CoarsenError> {
        let Some(width) = self.width else {
            return Ok(());
        };
        let moved: Vec<u64> = gathered
            .block
            .links
            .iter()
            .map(|vertex| match row_of[*vertex as usize] {
                NO_VERTEX => u64::MAX,
                row => u64::from(row),
            })
            .collect();
        let is_tree = self.shape == Ownership::Trees;
        let (links, into) = contract_links(&moved, width, self.directed || is_tree);
        let mut number = vec![NO_VERTEX; links.len() / width];
        let mut rows = Vec::with_capacity(links.len() * 8);
        for (link, ends) in links.chunks_exact(width).enumerate() {
            let is_implied = is_tree && order.implies(ends[0], ends[1]);
            if !is_implied {
                number[link] = made.link_count as u32;
                made.link_count += 1;
                rows.extend(ends.iter().flat_map(|end| end.to_le_bytes()));
            }
        }
        made.links = rows;
        if made.link_count == 0 {
            made.link = vec![None; self.link.len()];
            return Ok(());
        }
        if u32::try_from(made.link_count).is_err() {
            return Err(CoarsenError::TooMany);
        }
        made.link_fragments = link_placement::ranges([made.link_count]);
        // Values are indexed by stored links, some of which leave the block.
        let counts: Vec<usize> = input
            .links
            .iter()
            .map(|cell| cell.ends.len() / width)
            .collect();
        let mut starts = vec![0usize];
        for count in &counts {
            starts.push(starts[starts.len() - 1] + count);
        }
        let mut stored = vec![NO_VERTEX; starts[starts.len() - 1]];
        for ((cell, link), into) in gathered.link_of.iter().zip(&into) {
            if *into != NO_VERTEX {
                stored[starts[*cell as usize] + *link as usize] = number[*into as usize];
            }
        }
        let names = vec!["of links"; counts.len()];
        let members = Members::new(&stored, made.link_count as usize);
        for (at, field) in self.link.iter().enumerate() {
            let cells: Vec<_> = input
                .links
                .iter()
                .map(|cell| cell.values.get(at).copied().flatten())
                .collect();
            let values = field.values(&cells, &counts, &names)?;
            let values = values.map(|values| field.aggregate(&values, &members, None));
            made.link.push(values.transpose()?);
        }
        Ok(())
    }
}

/// Values of all cells of an attribute.
pub(super) struct StoredValues {
    numbers: NumericColumn,
    /// Rows of cells that are not stored.
    absent: Vec<Range<usize>>,
}

impl AggregatedAttribute {
    /// Concatenates the values of all cells; `None` if no cell has any.
    pub(super) fn values(
        &self,
        cells: &[Option<&[u8]>],
        counts: &[usize],
        names: &[&str],
    ) -> Result<Option<StoredValues>, CoarsenError> {
        let size = self.dtype.size();
        let mut row = self.columns.map(|columns| columns * size);
        for ((cell, rows), name) in cells.iter().zip(counts).zip(names) {
            let Some(cell) = cell else { continue };
            let bytes = cell.len();
            let fault = || CoarsenError::PartialRow {
                chunk: (*name).to_owned(),
                what: self.name.clone(),
                bytes,
                rows: *rows,
            };
            if *rows == 0 {
                continue;
            }
            let own = bytes / rows;
            if own * rows != bytes
                || own == 0
                || !own.is_multiple_of(size)
                || row.is_some_and(|row| row != own)
            {
                return Err(fault());
            }
            row = Some(own);
        }
        let Some(row) = row.filter(|_| cells.iter().any(Option::is_some)) else {
            return Ok(None);
        };
        let mut numbers = NumericColumn::new(self.dtype.kind(), (row / size) as u32);
        let mut absent = Vec::new();
        let mut start = 0;
        for (cell, rows) in cells.iter().zip(counts) {
            let end = start + rows;
            match cell {
                Some(cell) if *rows > 0 => numbers.bytes.extend(in_order(cell, self.dtype)),
                Some(_) => (),
                None => {
                    numbers.bytes.resize(numbers.bytes.len() + rows * row, 0);
                    absent.extend((*rows > 0).then_some(start..end));
                }
            }
            start = end;
        }
        Ok(Some(StoredValues { numbers, absent }))
    }

    /// Aggregates the values of all cells into `count` rows; `None` if no cell has any.
    ///
    /// # Errors
    ///
    /// [`CoarsenError::PartialRow`] when a cell ends inside a row, and [`CoarsenError::NoNull`] when
    /// a result would be null and its type has no null.
    pub fn merged(
        &self,
        cells: &[Option<&[u8]>],
        counts: &[usize],
        names: &[&str],
        into: &[u32],
        count: usize,
    ) -> Result<Option<Vec<u8>>, CoarsenError> {
        let values = self.values(cells, counts, names)?;
        let members = Members::new(into, count);
        let values = values.map(|values| self.aggregate(&values, &members, None));
        values.transpose()
    }

    /// Aggregates the members of each result. Rows of absent cells are not values.
    pub(super) fn aggregate(
        &self,
        values: &StoredValues,
        members: &Members,
        own: Option<&[u32]>,
    ) -> Result<Vec<u8>, CoarsenError> {
        let mut members = Cow::Borrowed(members);
        let mut own = own.map(Cow::Borrowed);
        if !values.absent.is_empty() {
            let is_absent = |row: u32| {
                let mut absent = values.absent.iter();
                absent.any(|rows| rows.contains(&(row as usize)))
            };
            members = Cow::Owned(members.without(is_absent));
            if let Some(own) = &mut own {
                let rows = own.to_mut().iter_mut().filter(|row| is_absent(**row));
                rows.for_each(|row| *row = NO_VERTEX);
            }
            let has_null = self.missing.is_some() || self.dtype.kind().nan().is_some();
            let is_null = match (self.rule, own.as_deref()) {
                (Aggregation::Count, _) => false,
                (Aggregation::Own, Some(own)) => own.contains(&NO_VERTEX),
                _ => (0..members.count()).any(|result| members.of(result).is_empty()),
            };
            if is_null && !has_null {
                let what = self.name.clone();
                return Err(CoarsenError::NoNull { what });
            }
        }
        let (numbers, own) = (&values.numbers, own.as_deref());
        let made = aggregate_members(numbers, self.rule, &members, own, self.missing);
        let mut bytes = made
            .map_err(|source| CoarsenError::Aggregate {
                what: self.name.clone(),
                source,
            })?
            .bytes;
        to_order(&mut bytes, self.made());
        Ok(bytes)
    }
}

/// Converts little-endian numbers to the stored byte order.
pub(super) fn to_order(bytes: &mut [u8], dtype: Dtype) {
    if dtype.order() == ByteOrder::Big {
        bytes
            .chunks_exact_mut(dtype.size().max(1))
            .for_each(<[u8]>::reverse);
    }
}
