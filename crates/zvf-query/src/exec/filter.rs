//! Selection of rows by region and predicate.

use core::{fmt, ops::Range};

use zvf_catalog::{Chunk, ObjectSet, RowRun, RowSelection, Schema};
use zvf_format::numeric::NumericRows;
use zvf_model::column::Column;

use super::{
    context::ExecContext,
    operator::{Details, Operator},
};
use crate::{
    batch::{
        columns::{AxisView, CellView, ColumnView, ColumnViews, FinishedView, RowIndices},
        loaded::LoadedChunks,
        vertices::Owners,
    },
    error::QueryError,
    geometry::{Mode, Primitive},
    predicate::{Predicate, Scope},
    query::{Region, Shape},
    resolve::{area::Area, axes::AxisColumns, query::LevelQuery},
};

/// Vertices that a predicate is evaluated on at once: its columns stay in the cache.
const ROWS_PER_EVALUATION: usize = 1 << 12;
/// Minimum mean length of runs for which a predicate is evaluated run by run.
const LONG_RUN: usize = 64;

/// The operator that selects rows by region and predicate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter;

impl Operator for Filter {
    const NAME: &'static str = "Filter";

    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        let is_point = query.shape == Shape::Points;
        if let Some(nearest) = query.query.nearest.filter(|_| !is_point) {
            let count = nearest.count;
            details.add("region", format_args!("sphere of the nearest {count}"));
        }
        if let Some(region) = &query.query.region {
            details.add("region", RegionText(region));
            if !is_point {
                details.add("mode", mode_name(query.area_mode));
            }
        }
        if let Some(predicate) = &query.filter.vertex {
            details.add("predicate", predicate);
            if !is_point && query.predicate_mode() != Mode::Clip {
                details.add("predicate_mode", mode_name(query.predicate_mode()));
            }
        }
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Touch => "touch",
        Mode::Within => "within",
        Mode::Clip => "clip",
    }
}

/// A region as text.
struct RegionText<'r>(&'r Region);

impl fmt::Display for RegionText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[f64]| {
            let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
            numbers.join(", ")
        };
        match self.0 {
            Region::Box(bbox) => write!(f, "box({} to {})", list(bbox.lo()), list(bbox.hi())),
            Region::Sphere(sphere) => {
                let (centre, radius) = (list(sphere.centre()), sphere.radius());
                write!(f, "sphere({centre}, radius {radius})")
            }
        }
    }
}

/// A [`Filter`] of one execution.
///
/// Its input is a chunk, or a segment of a path in loaded chunks; its output are the selected
/// rows. It reads nothing: [`open`](Self::open) reads the columns of objects that the predicate
/// needs.
pub(crate) struct RowFilter<'f> {
    schema: &'f Schema,
    area: Option<&'f Area>,
    /// The way in which the region selects paths and links.
    area_mode: Mode,
    predicate: Option<&'f Predicate>,
    /// The way in which the predicate selects paths and links.
    predicate_mode: Mode,
    /// Columns of objects that the predicate reads.
    object_columns: Vec<Column>,
    /// Columns of the predicate that are axes.
    axes: Option<&'f AxisColumns>,
}

/// Vertices of a chunk that a filter selected.
pub(crate) struct SelectedRows<'c> {
    pub(crate) chunk: &'c Chunk,
    /// The objects of the fragments of the chunk.
    pub(crate) owners: Owners,
    pub(crate) rows: RowSelection,
}

/// Flags of the rows of a chunk in memory, for joins that look up single rows.
#[derive(Default)]
pub(crate) struct RowMarks {
    /// True if a requested fragment has the row.
    pub(crate) is_member: Vec<bool>,
    /// True if the predicate is true for the row; `None` if it is true for all members.
    pub(crate) passes: Option<Vec<bool>>,
    /// True if the row is in the region; `None` without a region.
    pub(crate) inside: Option<Vec<bool>>,
}

impl RowMarks {
    /// Returns whether the predicate selects a row by itself.
    pub(crate) fn passes(&self, index: usize) -> bool {
        let passes = self.passes.as_ref().unwrap_or(&self.is_member);
        passes.get(index) == Some(&true)
    }

    /// Returns whether region and predicate select a row by itself.
    pub(crate) fn is_selected(&self, index: usize) -> bool {
        self.passes(index)
            && self
                .inside
                .as_ref()
                .is_none_or(|inside| inside.get(index) == Some(&true))
    }

    /// Returns whether region and predicate select all members by themselves.
    pub(crate) fn selects_all(&self) -> bool {
        self.passes.is_none() && self.inside.is_none()
    }

    /// Adds the rows that are selected by themselves to flags of rows.
    pub(crate) fn add_selected(&self, flags: &mut [bool]) {
        let passes = self.passes.as_ref().unwrap_or(&self.is_member);
        let flags = flags.iter_mut().zip(passes);
        match &self.inside {
            Some(inside) => {
                for ((flag, passes), inside) in flags.zip(inside) {
                    *flag |= *passes && *inside;
                }
            }
            None => {
                for (flag, passes) in flags {
                    *flag |= *passes;
                }
            }
        }
    }
}

impl<'f> RowFilter<'f> {
    /// Creates a filter that passes all rows.
    pub(crate) fn all(schema: &'f Schema) -> Self {
        Self {
            schema,
            area: None,
            area_mode: Mode::default(),
            predicate: None,
            predicate_mode: Mode::default(),
            object_columns: Vec::new(),
            axes: None,
        }
    }

    /// Creates a filter by region.
    pub(crate) fn by_area(schema: &'f Schema, area: Option<&'f Area>) -> Self {
        Self {
            area,
            ..Self::all(schema)
        }
    }

    /// Opens the filter of a plan; without one, all rows pass. Takes one round trip if the
    /// predicate on vertices reads attributes of `objects`, and none otherwise.
    pub(crate) async fn open(
        filter: Option<Filter>,
        schema: &'f Schema,
        objects: Option<&ObjectSet>,
        context: ExecContext<'f>,
    ) -> Result<Self, QueryError> {
        let Some(filter) = filter else {
            return Ok(Self::all(schema));
        };
        let query = context.query;
        let object_columns = if query.filter.vertex_needs_objects() {
            let context = context.of(&filter);
            context.object_columns_of_filter(objects).await?
        } else {
            Vec::new()
        };
        Ok(Self {
            schema,
            area: query.area.as_ref(),
            area_mode: query.area_mode,
            predicate: query.filter.vertex.as_ref(),
            predicate_mode: query.predicate_mode(),
            object_columns,
            axes: Some(&query.filter.axes),
        })
    }

    /// Returns whether the filter passes every row.
    pub(crate) fn passes_all(&self) -> bool {
        self.area.is_none() && self.predicate.is_none()
    }

    /// Returns whether the filter selects paths as a whole, without a test of each vertex.
    pub(crate) fn selects_whole_paths(&self) -> bool {
        self.predicate.is_none() && (self.area.is_none() || self.area_mode != Mode::Clip)
    }

    /// Returns whether a path with a segment that enters the region is selected as a whole.
    pub(crate) fn selects_entering_paths(&self) -> bool {
        self.predicate.is_none() && self.area_mode == Mode::Touch
    }

    /// Returns whether the predicate splits paths into the parts for which it is true.
    pub(crate) fn splits_paths(&self) -> bool {
        self.predicate.is_some() && self.predicate_mode == Mode::Clip
    }

    /// Selects vertices of a chunk.
    pub(crate) fn select<'c>(
        &self,
        chunk: &'c Chunk,
        owners: Owners,
    ) -> Result<SelectedRows<'c>, QueryError> {
        let mut rows = chunk.runs();
        if let Some(inside) = self.inside(chunk) {
            rows.keep_indices(&inside);
        }
        if self.predicate.is_some() {
            let passes = self.evaluate(chunk, &rows, &owners)?;
            rows.keep_flagged(&passes);
        }
        Ok(SelectedRows {
            chunk,
            owners,
            rows,
        })
    }

    /// Marks the rows of a chunk in memory. `rows` are the vertices of the requested fragments.
    pub(crate) fn mark(
        &self,
        chunk: &Chunk,
        rows: &RowSelection,
        owners: &Owners,
    ) -> Result<RowMarks, QueryError> {
        let rows_in_memory = chunk.loaded.len();
        let mut marks = RowMarks {
            is_member: vec![false; rows_in_memory],
            passes: None,
            inside: self.inside(chunk),
        };
        for run in rows.runs() {
            if let Some(members) = marks.is_member.get_mut(run.indices()) {
                members.fill(true);
            }
        }
        if self.predicate.is_some() {
            let mut flags = vec![false; rows_in_memory];
            let passes = self.evaluate(chunk, rows, owners)?;
            for (run, passes) in rows.iter().zip(passes) {
                // A row of several fragments is selected if it is selected in one of them.
                if let Some(flag) = flags.get_mut(run.index) {
                    *flag |= passes;
                }
            }
            marks.passes = Some(flags);
        }
        Ok(marks)
    }

    /// Selects vertices of a segment of points of an object, as ranges of the segment.
    pub(crate) fn points(
        &self,
        object: usize,
        segment: &RowSelection,
        loaded: &LoadedChunks,
    ) -> Result<Vec<Range<usize>>, QueryError> {
        if self.passes_all() {
            return Ok(core::iter::once(0..segment.len()).collect());
        }
        let passes = self.evaluate_segment(object, segment, loaded)?;
        let positions = loaded.positions(segment.runs().iter().copied(), self.schema);
        let is_in = |at: usize| {
            let position = positions.at(at);
            self.area
                .is_none_or(|area| area.touches(Primitive::Point(position)))
                && is_flagged(passes.as_deref(), at)
        };
        Ok(ranges(0..segment.len(), is_in))
    }

    /// Selects parts of a segment of a path, as ranges of the segment.
    ///
    /// In [`Mode::Clip`] the predicate splits the segment, and the region is left to
    /// [`BorderClip`](super::clip::BorderClip).
    pub(crate) fn path(
        &self,
        object: usize,
        segment: &RowSelection,
        loaded: &LoadedChunks,
    ) -> Result<Vec<Range<usize>>, QueryError> {
        let all = 0..segment.len();
        let passes = self.evaluate_segment(object, segment, loaded)?;
        let passes = |at: usize| is_flagged(passes.as_deref(), at);
        let mut selected: Vec<Range<usize>> = match self.predicate_mode {
            Mode::Touch if !all.clone().any(passes) => Vec::new(),
            Mode::Within if !all.clone().all(passes) => Vec::new(),
            Mode::Clip if self.predicate.is_some() => ranges(all, passes),
            Mode::Touch | Mode::Within | Mode::Clip => core::iter::once(all).collect(),
        };
        let Some(area) = self.area.filter(|_| self.area_mode != Mode::Clip) else {
            return Ok(selected);
        };
        let positions = loaded.positions(segment.runs().iter().copied(), self.schema);
        let at = |at: usize| positions.at(at);
        selected.retain(|range| match (self.area_mode, range.len()) {
            (Mode::Within, _) => range
                .clone()
                .all(|row| area.contains(Primitive::Point(at(row)))),
            (_, 1) => area.touches(Primitive::Point(at(range.start))),
            _ => {
                let mut ends = range.clone().zip(range.clone().skip(1));
                ends.any(|(a, b)| area.touches(Primitive::Segment([at(a), at(b)])))
            }
        });
        Ok(selected)
    }

    /// Returns, for each row of a chunk in memory, whether it is in the region; `None` without a
    /// region.
    fn inside(&self, chunk: &Chunk) -> Option<Vec<bool>> {
        let (area, schema) = (self.area?, self.schema);
        let mut inside = vec![false; chunk.loaded.len()];
        let axes = u32::try_from(schema.axes).ok()?.try_into().ok()?;
        let positions = NumericRows::parse(&chunk.positions, schema.dtype, axes).ok()?;
        if let Some(bbox) = area.bbox() {
            let mut selected = Vec::new();
            if bbox.select_rows(positions, &mut selected).is_ok() {
                for index in selected {
                    if let Some(inside) = inside.get_mut(index) {
                        *inside = true;
                    }
                }
                return Some(inside);
            }
        }
        let coordinates = chunk.coordinates(schema);
        for (index, inside) in inside.iter_mut().enumerate() {
            *inside = area.touches(Primitive::Point(coordinates.at(index)));
        }
        Some(inside)
    }

    /// Evaluates the predicate on the vertices of a segment; `None` without a predicate.
    fn evaluate_segment(
        &self,
        object: usize,
        segment: &RowSelection,
        loaded: &LoadedChunks,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        if self.predicate.is_none() {
            return Ok(None);
        }
        let mut passes = Vec::with_capacity(segment.len());
        for same in segment.runs().chunk_by(|a, b| a.chunk == b.chunk) {
            let Some(chunk) = same.first().and_then(|run| loaded.get(run.chunk)) else {
                continue;
            };
            let rows: RowSelection = same.iter().copied().collect();
            let owners = Owners::new(same.iter().map(|run| (run.fragment, object)));
            passes.extend(self.evaluate(chunk, &rows, &owners)?);
        }
        Ok(Some(passes))
    }

    /// Evaluates the predicate on rows of a chunk. For rows of several objects, it is true if it is
    /// true with one of them.
    fn evaluate(
        &self,
        chunk: &Chunk,
        rows: &RowSelection,
        owners: &Owners,
    ) -> Result<Vec<bool>, QueryError> {
        let mut passes = self.evaluate_with(chunk, rows, owners, 0)?;
        if self.object_columns.is_empty() {
            return Ok(passes);
        }
        for nth in 1..owners.most() {
            let is_in = |run: &RowRun| owners.nth(run.fragment, nth).is_some();
            let again: RowSelection = rows.runs().iter().copied().filter(is_in).collect();
            let mut others = self.evaluate_with(chunk, &again, owners, nth)?.into_iter();
            let mut rest = passes.as_mut_slice();
            for run in rows.runs() {
                let (of_run, after) = rest.split_at_mut(run.len.min(rest.len()));
                if is_in(run) {
                    for (pass, other) in of_run.iter_mut().zip(&mut others) {
                        *pass |= other;
                    }
                }
                rest = after;
            }
        }
        Ok(passes)
    }

    /// Evaluates the predicate on rows of a chunk with the `nth` object of each.
    fn evaluate_with(
        &self,
        chunk: &Chunk,
        rows: &RowSelection,
        owners: &Owners,
        nth: usize,
    ) -> Result<Vec<bool>, QueryError> {
        let Some(predicate) = self.predicate else {
            return Ok(vec![true; rows.len()]);
        };
        let mut passes = Vec::with_capacity(rows.len());
        let evaluation = Evaluation {
            filter: self,
            predicate,
            chunk,
        };
        let is_long = rows.spans().count().saturating_mul(LONG_RUN) <= rows.len();
        if is_long && self.schema.fragment.is_empty() && self.object_columns.is_empty() {
            for span in rows.spans() {
                for first in span.clone().step_by(ROWS_PER_EVALUATION) {
                    let len = ROWS_PER_EVALUATION.min(span.end.saturating_sub(first));
                    evaluation.run(RowIndices::Run { first, len }, len, (&[], &[]), &mut passes)?;
                }
            }
            return Ok(passes);
        }
        let (mut indices, mut fragments, mut objects) = (Vec::new(), Vec::new(), Vec::new());
        for block in rows.blocks(ROWS_PER_EVALUATION) {
            let rows = || block.runs().iter();
            fragments.clear();
            if !self.schema.fragment.is_empty() {
                let fragment = |run: &RowRun| usize::try_from(run.fragment).ok();
                let each = rows().map(|run| core::iter::repeat_n(fragment(run), run.len));
                fragments.extend(each.flatten());
            }
            objects.clear();
            if !self.object_columns.is_empty() {
                let owner = |run: &RowRun| owners.nth(run.fragment, nth);
                let each = rows().map(|run| core::iter::repeat_n(owner(run), run.len));
                objects.extend(each.flatten());
            }
            let mut spans = block.spans();
            let indices = match (spans.next(), spans.next()) {
                (Some(span), None) => RowIndices::Run {
                    first: span.start,
                    len: span.len(),
                },
                _ => {
                    indices.clear();
                    indices.extend(rows().flat_map(|run| run.indices()).map(Some));
                    RowIndices::Each(&indices)
                }
            };
            evaluation.run(indices, block.len(), (&fragments, &objects), &mut passes)?;
        }
        Ok(passes)
    }
}

/// The evaluation of a predicate on vertices of a chunk.
struct Evaluation<'e> {
    filter: &'e RowFilter<'e>,
    predicate: &'e Predicate,
    chunk: &'e Chunk,
}

impl Evaluation<'_> {
    /// Evaluates the predicate on `len` vertices with these fragments and objects.
    fn run(
        &self,
        indices: RowIndices<'_>,
        len: usize,
        (fragments, objects): (&[Option<usize>], &[Option<usize>]),
        passes: &mut Vec<bool>,
    ) -> Result<(), QueryError> {
        let (schema, chunk) = (self.filter.schema, self.chunk);
        let mut views: Vec<Box<dyn ColumnView + '_>> = Vec::new();
        let of_fragments = RowIndices::Each(fragments);
        for (scope, attributes, cells, indices) in [
            (Scope::Vertex, &schema.vertex, &chunk.vertex, indices),
            (
                Scope::Fragment,
                &schema.fragment,
                &chunk.fragment,
                of_fragments,
            ),
        ] {
            for (attribute, cell) in attributes.iter().zip(cells) {
                let (name, metadata) = (&attribute.name, &attribute.metadata);
                let view = CellView::new(scope, name, metadata, cell.as_ref(), indices);
                views.push(Box::new(view));
            }
        }
        let axes = u32::try_from(schema.axes).unwrap_or(u32::MAX);
        for (name, axis) in self.filter.axes.into_iter().flatten() {
            views.push(Box::new(AxisView {
                name,
                axis: u32::try_from(*axis).unwrap_or(u32::MAX),
                positions: &chunk.positions,
                dtype: schema.dtype,
                axes,
                indices,
            }));
        }
        for column in &self.filter.object_columns {
            views.push(Box::new(FinishedView {
                scope: Scope::Object,
                column,
                rows: Some(objects),
            }));
        }
        let views = ColumnViews(views);
        let truths = self.predicate.bind(&views)?.evaluate_all(&views, len);
        // From a slice, so that the compiler vectorizes the loop.
        passes.extend(truths.iter().map(|truth| truth.is_true()));
        Ok(())
    }
}

fn is_flagged(flags: Option<&[bool]>, at: usize) -> bool {
    flags.is_none_or(|flags| flags.get(at) == Some(&true))
}

/// Returns the maximal ranges of consecutive rows for which `is_in` returns true.
pub(super) fn ranges(rows: Range<usize>, is_in: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in rows.filter(|at| is_in(*at)) {
        match ranges.last_mut() {
            Some(range) if range.end == at => range.end = at.saturating_add(1),
            _ => ranges.push(at..at.saturating_add(1)),
        }
    }
    ranges
}
