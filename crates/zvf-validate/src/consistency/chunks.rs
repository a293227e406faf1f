//! Vertices, fragments and attributes, chunk by chunk.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};
use zvf_format::{
    fragment::FragmentIndex,
    numeric::{ByteOrder, Dtype, Kind},
};
use zvf_model::{
    array::{VertexEncoding, Vertices},
    draco::{DracoCell, VertexOrder},
    generation::Generation,
    geometry_kind::GeometryKind,
    grid::{Bins, ChunkCoord},
    key::Key,
    layout::ArrayRole,
    level::LevelId,
    word::Word,
};

use self::{
    attributes::Attribute,
    fragments::{filled, is_padded_with_zeros, unused},
    outcome::CheckedCells,
    vertices::MisplacedCounts,
};
use super::{ChunkCounts, LevelCounts};
use crate::{
    batch::CellPayload,
    chunk_pass::{ChunkCheck, ChunkPass},
    chunked_part::{CellStorage, ChunkedPart, open_part},
    context::Context,
    rules::consistency as rules,
    store::LevelScope,
};

mod attributes;
mod fragments;
mod outcome;
mod padding;
pub(super) mod presence;
mod region;
mod vertices;

pub(super) use attributes::wrong_code;
pub(super) use fragments::Bits;
pub(super) use outcome::optional;
pub(super) use vertices::VertexSpace;

pub(super) async fn check(context: &Context<'_>, scope: LevelScope<'_>) -> LevelCounts {
    let mut parts = Parts::open(context, scope);
    let mut chunks: BTreeSet<ChunkCoord> = BTreeSet::new();
    let level = scope.level.key.as_str();
    for part in &parts.all {
        presence::check(context, &scope.store.tree, part, level).await;
        chunks.extend(part.chunks());
        chunks.extend(presence::stored_chunks(&scope.store.tree, part));
    }
    let chunks: Vec<ChunkCoord> = chunks.into_iter().collect();
    let all = core::mem::take(&mut parts.all);
    let mut walk = ChunkChecks::new(context, scope, &all, parts);
    let requested: Vec<&ChunkedPart> = all.iter().collect();
    let pass = ChunkPass {
        name: format!("{level} cells"),
        seed: level,
        parts: &requested,
        chunks: &chunks,
    };
    pass.run(context, &mut walk).await;
    walk.finish()
}

/// Parts of a level with one cell per chunk, except links.
#[derive(Debug)]
struct Parts {
    all: Vec<ChunkedPart>,
    /// Positions of the parts in `all`.
    vertices: Option<usize>,
    index: Option<usize>,
    links: Option<usize>,
    of_vertices: Vec<(usize, Attribute)>,
    of_fragments: Vec<(usize, Attribute)>,
}

impl Parts {
    fn open(context: &Context<'_>, scope: LevelScope<'_>) -> Self {
        let mut all = Vec::new();
        let mut open = |part: ArrayRole<'_>| {
            let cells = open_part(context, scope, &part)?;
            all.push(cells);
            all.len().checked_sub(1)
        };
        let vertices = open(ArrayRole::Vertices);
        let index = open(ArrayRole::VertexFragments);
        let links = open(ArrayRole::LinkFragments);
        let (mut of_vertices, mut of_fragments) = (Vec::new(), Vec::new());
        let split_by = scope
            .metadata
            .attribute_chunking
            .as_ref()
            .and_then(|chunking| chunking.name.as_deref());
        for name in scope
            .store
            .names(scope.level, scope.store.layout().names.vertex_attributes)
        {
            let rule = &rules::VERTEX_ATTRIBUTE_ROWS;
            let Some(cells) = open_part(context, scope, &ArrayRole::VertexAttribute(name)) else {
                continue;
            };
            let splits = split_by == Some(name);
            if let Some(attribute) = Attribute::new(context, &cells, rule, splits) {
                of_vertices.push((all.len(), attribute));
                all.push(cells);
            }
        }
        for name in scope.store.names(scope.level, "fragment_attributes") {
            let rule = &rules::FRAGMENT_ATTRIBUTE_ROWS;
            let Some(cells) = open_part(context, scope, &ArrayRole::FragmentAttribute(name)) else {
                continue;
            };
            if let Some(attribute) = Attribute::new(context, &cells, rule, false) {
                of_fragments.push((all.len(), attribute));
                all.push(cells);
            }
        }
        Self {
            all,
            vertices,
            index,
            links,
            of_vertices,
            of_fragments,
        }
    }
}

/// Checks of the chunks of a level, in order.
struct ChunkChecks<'a> {
    context: &'a Context<'a>,
    scope: LevelScope<'a>,
    all: &'a [ChunkedPart],
    parts: Parts,
    /// Rules for vertex positions, or `None` if there are no vertices or they cannot be decoded.
    space: Option<VertexSpace<'a>>,
    /// Cells of vertices are Draco streams.
    is_draco: bool,
    has_objects: bool,
    counts: LevelCounts,
    /// The first chunk whose fragments are not its rows in order, and the number of such chunks.
    not_tiled: Option<(ChunkCoord, u64)>,
    /// The vertices of every chunk were counted.
    all_counted: bool,
}

impl<'a> ChunkChecks<'a> {
    fn new(
        context: &'a Context<'a>,
        scope: LevelScope<'a>,
        all: &'a [ChunkedPart],
        parts: Parts,
    ) -> Self {
        let vertices = parts.vertices.and_then(|at| all.get(at));
        let space = vertices.and_then(|cells| space_of(context, scope, cells));
        let encoding = vertices.and_then(|cells| cells.attributes.get("encoding"));
        let is_draco = encoding.and_then(Value::as_str) == Some(VertexEncoding::Draco.as_str());
        let object_index = scope.store.at(scope.level, &ArrayRole::Manifests);
        let has_objects = object_index.is_some_and(|key| scope.store.tree.exists(&key));
        let counts = LevelCounts {
            unread: vertices.is_none(),
            ..LevelCounts::default()
        };
        Self {
            context,
            scope,
            all,
            space,
            is_draco,
            has_objects,
            counts,
            not_tiled: None,
            all_counted: vertices.is_some(),
            parts,
        }
    }

    fn part(&self, at: Option<usize>) -> Option<&'a ChunkedPart> {
        at.and_then(|at| self.all.get(at))
    }

    /// Returns the attribute value of a chunk, in a level split by an attribute.
    fn value_of(&self, context: &Context<'_>, chunk: &ChunkCoord) -> Option<Value> {
        let chunking = self.scope.metadata.attribute_chunking.as_ref()?;
        let number = chunk.coords().first()?;
        let value = usize::try_from(*number)
            .ok()
            .and_then(|number| chunking.values.get(number));
        if let (None, Some(part)) = (value, self.part(self.parts.vertices)) {
            let values = chunking.values.len();
            let message = format!("value {number} of {values}");
            context.report_in_chunk(&rules::WRONG_CHUNK_VALUE, &part.key, chunk, message);
        }
        value.cloned()
    }

    /// Decodes the vertices of a chunk if they are a Draco stream, and reports a stream that cannot be
    /// decoded.
    fn decoded(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        vertices: &CellPayload,
    ) -> (Option<CellPayload>, VertexOrder) {
        let kept = (None, VertexOrder::Kept);
        let (true, Some(bytes), Some(part), Some(_)) = (
            self.is_draco,
            vertices.bytes(),
            self.part(self.parts.vertices),
            self.space.as_ref(),
        ) else {
            return kept;
        };
        match DracoCell::parse(bytes, context.fetch.budget()) {
            Ok(cell) => (Some(CellPayload::Bytes(cell.rows().into())), cell.order),
            Err(error) => {
                let rule = &rules::NOT_DECODED;
                context.report_in_chunk(rule, &part.key, chunk, error);
                (Some(CellPayload::Unreadable), VertexOrder::Kept)
            }
        }
    }

    /// Parses the fragment index in a cell, and reports its faults.
    fn index<'b>(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        part: Option<usize>,
        cell: &'b CellPayload,
    ) -> Option<FragmentIndex<'b>> {
        let (part, bytes) = (self.part(part)?, cell.bytes()?);
        match FragmentIndex::parse(bytes) {
            Ok(index) => {
                if !is_padded_with_zeros(bytes, &index) {
                    let message = format!("bits are set after fragment {}", index.len());
                    let rule = &rules::FRAGMENT_PADDING;
                    context.report_in_chunk(rule, &part.key, chunk, message);
                }
                Some(index)
            }
            Err(error) => {
                let rule = &rules::FRAGMENTS_UNREADABLE;
                context.report_in_chunk(rule, &part.key, chunk, error);
                None
            }
        }
    }

    /// Returns the number of vertices in a cell, or `None` if it is unknown.
    fn rows(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        bytes: &[u8],
        (index, extent): (&CellPayload, Option<u64>),
    ) -> Option<u64> {
        let part = self.part(self.parts.vertices)?;
        let Some(space) = &self.space else {
            // Compressed or of an unknown type: only fragments show the number of rows.
            return extent;
        };
        let row = u64::try_from(space.row()).ok()?;
        let size = u64::try_from(bytes.len()).ok()?;
        let capacity = size.checked_div(row)?;
        if let CellStorage::Padded { .. } = &part.form {
            // The array shows the capacity; only fragments show the number of used rows.
            return match index {
                CellPayload::Absent => Some(0),
                _ => Some(extent?.min(capacity)),
            };
        }
        if size.checked_rem(row)? == 0 {
            return Some(capacity);
        }
        let message = format!("{size} bytes, but a vertex takes {row}");
        context.report_in_chunk(&rules::VERTICES_PARTIAL_ROW, &part.key, chunk, message);
        None
    }

    /// Checks the positions of the vertices of a chunk.
    fn positions(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        bytes: &[u8],
        rows: u64,
        index: Option<&FragmentIndex<'_>>,
    ) -> Option<MisplacedCounts> {
        let (part, space) = (self.part(self.parts.vertices)?, self.space.as_ref()?);
        let used = usize::try_from(rows).ok()?.checked_mul(space.row())?;
        let (own, rest) = bytes.split_at_checked(used)?;
        if let CellStorage::Padded { .. } = &part.form {
            padding::check(context, part, chunk, rest);
        }
        let misplaced = space.misplaced(chunk, own, index);
        let fragments = self.part(self.parts.index).map(|part| &part.key);
        report_misplaced(context, (&part.key, fragments), chunk, rows, &misplaced);
        Some(misplaced)
    }

    /// Checks that fragments cover the rows of a chunk. Returns whether they are not the rows in
    /// order, in a level that declares it.
    fn fragments(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        rows: u64,
        index: &FragmentIndex<'_>,
        is_unbinned: bool,
    ) -> bool {
        let Some(part) = self.part(self.parts.index) else {
            return false;
        };
        if let Some((first, count)) = unused(index, rows) {
            let message = format!("{count} of {rows} vertices, first in row {first}");
            context.report_in_chunk(&rules::ROWS_UNUSED, &part.key, chunk, message);
        }
        if let Some(bins) = self.space.as_ref().and_then(|space| space.bins.as_ref())
            && (is_unbinned || u64::from(index.len()) > bins.count())
            && rows > 0
        {
            let (found, bins) = (index.len(), bins.count());
            let message = format!("{found} fragments, but chunks have {bins} bins");
            context.report_in_chunk(&rules::BIN_COUNT, &part.key, chunk, message);
        }
        self.scope.metadata.fragments_tile && !index.tiles(rows)
    }

    /// Reports faults that depend on all chunks, and returns the counts.
    fn finish(self) -> LevelCounts {
        let (context, level) = (self.context, &self.scope.level.key);
        let attributes = self
            .parts
            .of_vertices
            .iter()
            .chain(&self.parts.of_fragments);
        for (at, attribute) in attributes {
            if let Some(part) = self.all.get(*at) {
                attribute.finish(context, &part.key);
            }
        }
        if let Some((chunk, count)) = &self.not_tiled {
            let message = format!("in {count} chunks, first in {chunk}");
            let path = ["zarr_vectors_level", "fragments_tile"];
            context.report_attribute(&rules::NOT_TILED, level, &path, message, None);
        }
        let counts = self.counts.chunks.values().map(|counts| counts.rows);
        let found = counts.fold(0, u64::saturating_add);
        if let Some(declared) = self.scope.metadata.vertex_count
            && declared != found
            && self.all_counted
        {
            let message = format!("{declared} declared, but {found} stored");
            let path = ["zarr_vectors_level", "vertex_count"];
            let value = Some(json!(found));
            context.report_attribute(&rules::VERTEX_COUNT, level, &path, message, value);
        }
        self.counts
    }
}

impl ChunkCheck for ChunkChecks<'_> {
    type Outcome = CheckedCells;

    fn check(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        cells: &[CellPayload],
    ) -> CheckedCells {
        let at = |at: Option<usize>| {
            at.and_then(|at| cells.get(at))
                .unwrap_or(&CellPayload::Absent)
        };
        for (part, cell) in self.all.iter().zip(cells) {
            let is_element = matches!(part.form, CellStorage::Elements { .. });
            if is_element && cell.bytes().is_some_and(Bytes::is_empty) {
                let message = "the payload is empty";
                context.report_in_chunk(&rules::CELL_EMPTY, &part.key, chunk, message);
            }
        }
        let value = self.value_of(context, chunk);
        let (vertices, index) = (at(self.parts.vertices), at(self.parts.index));
        let (decoded, order) = self.decoded(context, chunk, vertices);
        let vertices = decoded.as_ref().unwrap_or(vertices);
        let parsed = self.index(context, chunk, self.parts.index, index);
        self.index(context, chunk, self.parts.links, at(self.parts.links));
        let extent = parsed.as_ref().map(FragmentIndex::extent);
        let rows = match vertices {
            CellPayload::Unreadable => None,
            CellPayload::Absent => Some(0),
            CellPayload::Bytes(bytes) => self.rows(context, chunk, bytes, (index, extent)),
        };
        let Some(rows) = rows else {
            return CheckedCells::default();
        };
        let mut checked = CheckedCells {
            rows: Some(rows),
            fragments: parsed.as_ref().map(|index| u64::from(index.len())),
            order,
            ..CheckedCells::default()
        };
        // Encoders that do not keep the order drop vertices without a triangle, and duplicate those at
        // which triangles only touch.
        let is_whole =
            order == VertexOrder::Lost && parsed.as_ref().is_some_and(|index| index.len() == 1);
        let fits = is_whole || extent.is_none_or(|extent| extent <= rows);
        if let (false, Some(extent), Some(part)) = (fits, extent, self.part(self.parts.index)) {
            let message = format!("fragments reach row {extent}, but there are {rows} rows");
            context.report_in_chunk(&rules::FRAGMENT_ROWS, &part.key, chunk, message);
        }
        let mut is_unbinned = false;
        if let (CellPayload::Bytes(bytes), Some(_)) = (vertices, self.space.as_ref()) {
            let index = parsed.as_ref().filter(|_| fits && !is_whole);
            if let Some(misplaced) = self.positions(context, chunk, bytes, rows, index) {
                is_unbinned = misplaced.is_unbinned;
                checked.out_of_bounds = misplaced.out_of_bounds.count;
                checked.corners = misplaced.corners;
            }
        }
        if let (CellPayload::Absent, Some(part), 1..) = (index, self.part(self.parts.index), rows) {
            let message = format!("{rows} vertices");
            context.report_in_chunk(&rules::NO_FRAGMENTS, &part.key, chunk, message);
        }
        if let Some(index) = parsed.as_ref().filter(|_| fits && !is_whole) {
            checked.is_untiled = self.fragments(context, chunk, rows, index, is_unbinned);
        }
        for (at, attribute) in &self.parts.of_vertices {
            let width = match (self.all.get(*at), cells.get(*at)) {
                (Some(part), Some(cell)) if order == VertexOrder::Lost => {
                    if cell.bytes().is_some() {
                        let message = "the order of the values is not that of the vertices";
                        context.report_in_chunk(&rules::ORDER_LOST, &part.key, chunk, message);
                    }
                    None
                }
                (Some(part), Some(cell)) => {
                    attribute.check(context, part, (chunk, cell), rows, value.as_ref())
                }
                _ => None,
            };
            checked.widths.push(width);
        }
        // A chunk without an index has no fragments; an unreadable index leaves their number
        // unknown.
        let is_absent = matches!(index, CellPayload::Absent);
        let expected = checked.fragments.or(is_absent.then_some(0));
        for (at, attribute) in &self.parts.of_fragments {
            let width = match (self.all.get(*at), cells.get(*at), expected) {
                (Some(part), Some(cell), Some(rows)) => {
                    attribute.check(context, part, (chunk, cell), rows, None)
                }
                _ => None,
            };
            checked.widths.push(width);
        }
        checked.is_counted = !is_absent || !matches!(vertices, CellPayload::Absent);
        if self.has_objects && checked.is_counted {
            checked.filled = parsed.as_ref().map(filled);
        }
        checked
    }

    fn add(&mut self, chunk: &ChunkCoord, checked: CheckedCells) {
        let Some(rows) = checked.rows else {
            self.counts.lost.insert(chunk.clone());
            self.all_counted = false;
            return;
        };
        self.counts
            .add_out_of_bounds(checked.out_of_bounds, checked.corners);
        if checked.is_untiled {
            let (_, count) = self.not_tiled.get_or_insert_with(|| (chunk.clone(), 0));
            *count = count.saturating_add(1);
        }
        let parts = &mut self.parts;
        let attributes = parts.of_vertices.iter_mut().chain(&mut parts.of_fragments);
        for ((at, attribute), width) in attributes.zip(checked.widths) {
            if let (Some(part), Some(width)) = (self.all.get(*at), width) {
                attribute.add(self.context, &part.key, chunk, width);
            }
        }
        if !checked.is_counted {
            return;
        }
        if let Some(filled) = checked.filled {
            self.counts.filled.insert(chunk.clone(), filled);
        }
        let counts = ChunkCounts {
            rows,
            fragments: checked.fragments,
            order: checked.order,
        };
        self.counts.chunks.insert(chunk.clone(), counts);
    }
}

/// Reports misplaced vertices of a chunk.
pub(super) fn report_misplaced(
    context: &Context<'_>,
    (key, fragments): (&Key, Option<&Key>),
    chunk: &ChunkCoord,
    rows: u64,
    misplaced: &MisplacedCounts,
) {
    let kinds = [
        (&rules::NOT_FINITE, Some(key), misplaced.not_finite),
        (&rules::OUTSIDE_CHUNK, Some(key), misplaced.elsewhere),
        (&rules::WRONG_BIN, fragments, misplaced.misbinned),
    ];
    for (rule, key, found) in kinds {
        if let (Some(key), 1..) = (key, found.count) {
            let (count, first) = (found.count, found.first);
            let message = format!("{count} of {rows} vertices, first in row {first}");
            context.report_in_chunk(rule, key, chunk, message);
        }
    }
}

/// Returns the rules for vertex positions. Returns `None` after reporting vertices that cannot be
/// decoded.
fn space_of<'a>(
    context: &Context<'_>,
    scope: LevelScope<'a>,
    cells: &ChunkedPart,
) -> Option<VertexSpace<'a>> {
    let vertices = match Vertices::parse(&cells.key, &cells.attributes) {
        Ok(vertices) => vertices.value,
        Err(error) => {
            let rule = &rules::PART_NOT_CHECKED;
            context.report_at(rule, &cells.key, &error.path, &error.fault);
            return None;
        }
    };
    let dtype = match &cells.form {
        CellStorage::Padded { padded, .. } => Dtype::new(padded.kind, vertices.dtype.order()),
        _ => position_dtype(context, &cells.key, &vertices, scope.root.axes.len())?,
    };
    Some(VertexSpace {
        dtype,
        chunk_shape: scope.metadata.effective_chunk_shape(scope.root),
        bounds: scope.root.bounds.as_ref(),
        bins: bins_of(scope),
        are_bins: scope.store.layout().generation < Generation::V0_9,
    })
}

/// Returns the type of decoded positions. Returns `None` after reporting positions that Draco cannot
/// encode.
pub(in crate::consistency) fn position_dtype(
    context: &Context<'_>,
    key: &Key,
    vertices: &Vertices,
    axes: usize,
) -> Option<Dtype> {
    match vertices.encoding {
        Word::Known(VertexEncoding::Draco) if axes == 3 => {
            Some(Dtype::new(Kind::Float32, ByteOrder::Little))
        }
        Word::Known(VertexEncoding::Draco) => {
            let message = format!("Draco streams have 3 coordinates, but there are {axes} axes");
            context.report(&rules::NOT_DECODED, key, message);
            None
        }
        _ => Some(vertices.dtype),
    }
}

/// Returns the bins that fragments represent: those of points without objects at level 0.
fn bins_of(scope: LevelScope<'_>) -> Option<Bins> {
    let points = scope.root.geometry_kinds == [GeometryKind::Points];
    let manifests = scope.store.at(scope.level, &ArrayRole::Manifests);
    let has_objects = manifests.is_some_and(|key| scope.store.tree.exists(&key));
    let binned = scope.root.base_bin_shape.is_some() && scope.level.id == LevelId::FULL;
    let in_space = scope.metadata.attribute_chunking.is_none();
    (points && binned && in_space && !has_objects)
        .then(|| scope.metadata.bins(scope.root).ok())
        .flatten()
}
