//! Lines, polylines and streamlines: links between chunks are exactly the steps at which paths
//! cross from one chunk to another, and links inside chunks, if there are any, all other steps.

use core::iter::Take;
use std::collections::BTreeSet;

use zvf_format::{
    fragment::{Rows, RowsIter},
    path::Delta,
};
use zvf_model::{
    generation::Generation, geometry_kind::GeometryKind, root::CrossChunkStrategy, word::Word,
};

use super::{
    LevelView,
    numbers::{NONE, NumberRange, VertexNumbers, at_of},
};
use crate::{links::each_link, rules::semantics as rules};

/// The ends of a fragment.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// First and last vertex, or none if the fragment is empty.
    first: u32,
    last: u32,
    rows: u32,
    chunk: u32,
    /// Number of the fragment in its chunk.
    fragment: u32,
}

const EMPTY: Piece = Piece {
    first: NONE,
    last: NONE,
    rows: 0,
    chunk: NONE,
    fragment: 0,
};

pub(super) async fn check(view: &LevelView<'_, '_>) {
    let has_links = view.counts.links.contains_key(&Delta::INTRA);
    // Coarser levels have objects but no links.
    if !view.is_full() && !has_links || !view.is_read() {
        return;
    }
    let Some(numbers) = view.numbers() else {
        return;
    };
    let piece = u64::try_from(size_of::<Piece>()).unwrap_or(u64::MAX);
    let pieces = u64::from(numbers.fragments).saturating_mul(piece);
    let links = view.links().saturating_mul(32);
    if !view.fits("following paths", pieces.saturating_add(links)) {
        return;
    }
    let pieces = pieces_of(view, &numbers).await;
    let mut steps = Steps::default();
    let is_line = view.scope.root.holds(GeometryKind::Lines);
    let (mut odd, mut first_odd) = (0_u64, None);
    let visit = |row: u64, fragments: &mut dyn Iterator<Item = u32>| {
        let own = fragments.filter_map(|fragment| at_of(&pieces, fragment));
        let mut before: Option<&Piece> = None;
        let mut rows = 0_u64;
        for piece in own.filter(|piece| piece.rows > 0) {
            rows = rows.saturating_add(u64::from(piece.rows));
            if let Some(before) = before {
                steps.add(before, piece);
            }
            before = Some(piece);
        }
        // An object without vertices was deleted.
        if rows != 2 && rows != 0 {
            odd = odd.saturating_add(1);
            first_odd.get_or_insert((row, rows));
        }
    };
    if !view.each_object(&numbers, visit).await {
        return;
    }
    if let Some((row, rows)) = first_odd.filter(|_| is_line && view.is_full()) {
        let key = &view.scope.level.key;
        let message = format!("the object in row {row} has {rows} vertices; {odd} such lines");
        view.context.report(&rules::LINE_ENDS, key, message);
    }
    if has_links || !implies_steps(view) {
        steps.compare(view, &numbers).await;
    }
}

/// Returns whether links between chunks may be omitted: in 0.9 manifests imply the steps.
fn implies_steps(view: &LevelView<'_, '_>) -> bool {
    let strategy = view.scope.root.cross_chunk_strategy.clone();
    let is_deduplicated = strategy == Some(Word::Known(CrossChunkStrategy::BoundaryDeduplication));
    is_deduplicated || view.scope.store.layout().generation.is_current()
}

async fn pieces_of(view: &LevelView<'_, '_>, numbers: &VertexNumbers) -> Vec<Piece> {
    let count = usize::try_from(numbers.fragments).unwrap_or_default();
    let mut pieces = vec![EMPTY; count];
    view.each_index(numbers, |span, index| {
        for (fragment, rows) in (0..).zip(index.iter()) {
            let at = span
                .fragment(fragment)
                .and_then(|at| usize::try_from(at).ok());
            let piece = at.and_then(|at| pieces.get_mut(at));
            let ends = match &rows {
                Rows::Range(rows) => Some((rows.start, rows.end.saturating_sub(1))),
                Rows::List(rows) => rows.get(0).zip(rows.get(rows.len().saturating_sub(1))),
            };
            let ends = ends
                .filter(|_| !rows.is_empty())
                .and_then(|(first, last)| Some((span.vertex(first)?, span.vertex(last)?)));
            if let (Some(piece), Some((first, last))) = (piece, ends) {
                *piece = Piece {
                    first,
                    last,
                    rows: u32::try_from(rows.len()).unwrap_or(u32::MAX),
                    chunk: span.first_fragment,
                    fragment,
                };
            }
        }
    })
    .await;
    pieces
}

/// Links inside chunks, each as two vertex numbers, the lesser first.
#[derive(Debug, Default)]
struct InsideLinks {
    pairs: Vec<(u32, u32)>,
    /// True for links that are steps.
    are_steps: Vec<bool>,
    /// Number of steps without a link.
    missing: u64,
}

impl InsideLinks {
    fn new(mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        Self {
            are_steps: vec![false; pairs.len()],
            pairs,
            missing: 0,
        }
    }

    /// Finds the link of a step.
    fn take(&mut self, step: (u32, u32)) {
        let at = self.pairs.binary_search(&step).ok();
        match at.and_then(|at| self.are_steps.get_mut(at)) {
            Some(is_step) => *is_step = true,
            None => self.missing = self.missing.saturating_add(1),
        }
    }

    /// Compares the links with all steps; `joints` are the steps between fragments.
    async fn compare(
        mut self,
        view: &LevelView<'_, '_>,
        numbers: &VertexNumbers,
        joints: &[(u32, u32)],
    ) {
        for step in joints {
            self.take(*step);
        }
        let visit = |span: NumberRange, _: u32, rows: Take<RowsIter<'_>>| {
            let mut before = None;
            for vertex in rows.filter_map(|row| span.vertex(row)) {
                if let Some(before) = before.filter(|before| *before != vertex) {
                    self.take(sorted(before, vertex));
                }
                before = Some(vertex);
            }
        };
        if !view.each_fragment(numbers, &BTreeSet::new(), visit).await {
            return;
        }
        let missing = self.missing;
        let extra = self.are_steps.iter().filter(|is_step| !**is_step).count();
        if missing > 0 || extra > 0 {
            let message = format!(
                "{missing} steps inside chunks have no link, and {extra} links inside chunks are not \
                 steps"
            );
            let key = view.links_key();
            view.context.report(&rules::PATH_LINKS, &key, message);
        }
    }
}

/// Steps of paths between chunks, each as two vertex numbers, the lesser first.
#[derive(Debug, Default)]
struct Steps {
    vertices: Vec<(u32, u32)>,
    /// Steps between fragments of one chunk.
    inside: Vec<(u32, u32)>,
    /// The steps as writers of lines store them: fragment numbers, counted from the first vertex of
    /// the chunk.
    fragments: Vec<(u32, u32)>,
}

impl Steps {
    fn add(&mut self, from: &Piece, to: &Piece) {
        if from.chunk == to.chunk {
            return self.inside.push(sorted(from.last, to.first));
        }
        self.vertices.push(sorted(from.last, to.first));
        self.fragments.push(sorted(from.fragment, to.fragment));
    }

    /// Compares the steps with the links.
    async fn compare(mut self, view: &LevelView<'_, '_>, numbers: &VertexNumbers) {
        let mut stored: Vec<(u32, u32)> = Vec::new();
        let mut rows: Vec<(u32, u32)> = Vec::new();
        let mut inside: Vec<(u32, u32)> = Vec::new();
        let (mut zeros, mut others) = (0_u64, 0_u64);
        let is_whole = each_link(
            &view.aside,
            view.scope,
            Delta::INTRA,
            |coords, _| numbers.span_at(coords),
            |_, record| match record.ends {
                [(Some(one), first), (Some(other), second)] if one == other => {
                    match (one.vertex(*first), other.vertex(*second)) {
                        (Some(from), Some(to)) => inside.push(sorted(from, to)),
                        _ => others = others.saturating_add(1),
                    }
                }
                [(Some(one), first), (Some(other), second)] => {
                    if (*first, *second) == (0, 0) {
                        zeros = zeros.saturating_add(1);
                    }
                    match (one.vertex(*first), other.vertex(*second)) {
                        (Some(from), Some(to)) => {
                            stored.push(sorted(from, to));
                            let row = |row: u64| u32::try_from(row).unwrap_or(NONE);
                            rows.push(sorted(row(*first), row(*second)));
                        }
                        _ => others = others.saturating_add(1),
                    }
                }
                _ => others = others.saturating_add(1),
            },
        )
        .await;
        if !is_whole {
            return view.not_run("some links cannot be read, so paths were not followed");
        }
        if !inside.is_empty() {
            let joints = core::mem::take(&mut self.inside);
            InsideLinks::new(inside)
                .compare(view, numbers, &joints)
                .await;
            if stored.is_empty() && others == 0 && implies_steps(view) {
                return;
            }
        }
        let steps = self.vertices.len();
        let links = u64::try_from(stored.len()).unwrap_or(u64::MAX);
        let same_count = others == 0 && stored.len() == steps;
        // Objects that share fragments share the steps between them.
        for pairs in [&mut self.vertices, &mut stored] {
            pairs.sort_unstable();
            pairs.dedup();
        }
        let (missing, extra) = differences(&mut self.vertices, &mut stored);
        let extra = extra.saturating_add(others);
        if missing == 0 && extra == 0 {
            return;
        }
        let key = view.between_key();
        let is_old = matches!(
            view.scope.store.layout().generation,
            Generation::V0_6 | Generation::V0_7
        );
        if same_count && is_old && zeros == links {
            let message = format!("all {links} links between chunks name row 0");
            return view
                .context
                .report(&rules::PATH_LINKS_WITHOUT_VERTICES, &key, message);
        }
        if same_count && differences(&mut self.fragments, &mut rows) == (0, 0) {
            let message = format!("{links} links name fragments instead of vertices");
            return view
                .context
                .report(&rules::PATH_LINKS_WITHOUT_VERTICES, &key, message);
        }
        let message = format!(
            "of {steps} steps between chunks {missing} have no link, and {extra} links are not steps"
        );
        view.context.report(&rules::PATH_LINKS, &key, message);
    }
}

fn sorted(one: u32, other: u32) -> (u32, u32) {
    (one.min(other), one.max(other))
}

/// Returns how many items of `wanted` are missing from `found`, and the reverse, counting
/// duplicates.
fn differences(wanted: &mut [(u32, u32)], found: &mut [(u32, u32)]) -> (u64, u64) {
    wanted.sort_unstable();
    found.sort_unstable();
    let (mut left, mut right) = (wanted.iter().peekable(), found.iter().peekable());
    let (mut missing, mut extra) = (0_u64, 0_u64);
    loop {
        match (left.peek(), right.peek()) {
            (None, None) => return (missing, extra),
            (Some(one), Some(other)) if one == other => {
                left.next();
                right.next();
            }
            (Some(one), other) if other.is_none_or(|other| one < other) => {
                missing = missing.saturating_add(1);
                left.next();
            }
            _ => {
                extra = extra.saturating_add(1);
                right.next();
            }
        }
    }
}
