//! Parents of vertices in the next coarser level.

use core::iter::Take;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use zvf_format::{
    fragment::{FragmentIndex, RowsIter},
    links::LinkWidth,
    path::Delta,
};
use zvf_model::{grid::ChunkCoord, layout::ArrayRole};

use super::{Step, is_linked};
use crate::{
    batch::CellPayload,
    chunk_pass::{ChunkCheck, ChunkPass},
    chunked_part::{ChunkedPart, open_part},
    context::Context,
    links::{LinkPart, LinkRecord, LinkStorage, each_link_except, each_record, open},
    rules::semantics as rules,
    semantics::{
        LevelView,
        faces::each_face,
        numbers::{Flags, NumberRange, VertexNumbers},
    },
    share::ChunkOutcome,
    store::{LevelNode, LevelScope},
};

/// The delta to the next coarser level.
const COARSER: Delta = Delta::new(1);
/// Maximum number of rows of a chunk whose parents a share looks for.
const MAX_SHARE_ROWS: u64 = 1 << 24;

/// Checks the links of `view`, which is `finer`, to `coarser`.
pub(super) async fn check(view: &LevelView<'_, '_>, finer: &Step<'_>, coarser: &Step<'_>) {
    let level = finer.scope.level;
    if level.id.offset(1) != Some(coarser.scope.level.id) {
        return;
    }
    let has_links = finer.counts.links.contains_key(&COARSER);
    if !has_links {
        if is_linked(finer.scope.root) && !coarser.counts.chunks.is_empty() {
            let message =
                "the root declares links between levels, but there are no links to the next level";
            view.context.report(&rules::NOT_LINKED, &level.key, message);
        }
        return;
    }
    if !view.is_read() {
        return;
    }
    let Some(numbers) = view.numbers() else {
        return;
    };
    let flags = u64::from(numbers.vertices) / 4;
    if !view.fits(
        "finding vertices without a parent",
        flags.saturating_add(u64::from(numbers.fragments)),
    ) {
        return;
    }
    let covered_chunks = covered_chunks(view, finer);
    let mut covered = Flags::new(numbers.vertices);
    let is_whole = each_link_except(
        &view.aside,
        view.scope,
        COARSER,
        &covered_chunks,
        |coords, is_target| {
            if is_target {
                None
            } else {
                numbers.span_at(coords)
            }
        },
        |_, record| {
            if let Some((Some(span), row)) = record.ends.first()
                && let Some(vertex) = span.vertex(*row)
            {
                covered.set(vertex);
            }
        },
    )
    .await;
    if !is_whole {
        return view
            .not_run("some links to the next level cannot be read, so parents were not checked");
    }
    let mut chunks = finer.counts.chunks.keys();
    if chunks.all(|chunk| covered_chunks.contains(chunk)) {
        return;
    }
    let has_objects = finer.counts.objects.is_some();
    let mut needed = Flags::new(numbers.fragments);
    if has_objects {
        let kept = coarser.present.as_ref();
        let visit = |row: u64, fragments: &mut dyn Iterator<Item = u32>| {
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            if kept.is_none_or(|kept| kept.is_set(row)) {
                for fragment in fragments {
                    needed.set(fragment);
                }
            }
        };
        if !view.each_object(&numbers, visit).await {
            return;
        }
    }
    let on_faces = on_faces(view, &numbers).await;
    let needs_parent = |vertex: u32| on_faces.as_ref().is_none_or(|all| all.is_set(vertex));
    let mut orphans = Flags::new(numbers.vertices);
    let visit = |span: NumberRange, fragment: u32, rows: Take<RowsIter<'_>>| {
        let number = span.fragment(fragment);
        if has_objects && !number.is_some_and(|number| needed.is_set(number)) {
            return;
        }
        for row in rows {
            let vertex = span.vertex(row);
            let vertex = vertex.filter(|vertex| !covered.is_set(*vertex));
            if let Some(vertex) = vertex.filter(|vertex| needs_parent(*vertex)) {
                orphans.set(vertex);
            }
        }
    };
    if !view.each_fragment(&numbers, &covered_chunks, visit).await {
        return;
    }
    report_orphans(view, orphans.count(), numbers.vertices);
}

/// Reports vertices of a level without a parent.
fn report_orphans(view: &LevelView<'_, '_>, count: u64, all: u32) {
    if count > 0 {
        let level = view.scope.level;
        let key = view.scope.store.at(level, &ArrayRole::LinkFamily(COARSER));
        let message = format!("{count} of {all} vertices have no parent in the next level");
        let key = key.unwrap_or_else(|| level.key.clone());
        view.context.report(&rules::ORPHANS, &key, message);
    }
}

/// Returns the vertices of the faces of a mesh; `None` for other geometry, and if some faces cannot
/// be read. Vertices without a face are not part of the surface, and coarser levels lack them.
async fn on_faces(view: &LevelView<'_, '_>, numbers: &VertexNumbers) -> Option<Flags> {
    let sum = view.counts.links.get(&Delta::INTRA)?;
    let width = sum.width.map_or(0, LinkWidth::get);
    if width < 3 {
        return None;
    }
    let mut on_faces = Flags::new(numbers.vertices);
    let is_whole = each_face(view, numbers, width, |corners| {
        for corner in corners {
            on_faces.set(*corner);
        }
    })
    .await;
    is_whole.then_some(on_faces)
}

/// The name of the pass in which shares look for parents.
fn pass_name(level: &LevelNode) -> String {
    format!("{} parents", level.key)
}

/// Returns the chunks for which shares found that all vertices of fragments have parents.
fn covered_chunks(view: &LevelView<'_, '_>, finer: &Step<'_>) -> BTreeSet<ChunkCoord> {
    let pass = pass_name(finer.scope.level);
    let chunks = finer.counts.chunks.keys();
    let is_covered = |chunk: &&ChunkCoord| {
        let holds = |covered: &IsCovered| covered.0;
        view.aside.recorded(&pass, chunk, holds).is_some()
    };
    chunks.filter(is_covered).cloned().collect()
}

/// Looks for chunks of a share in which all vertices of fragments have parents in the next level, so
/// that the process that joins the shares does not read them again.
pub(super) async fn check_share(context: &Context<'_>, scope: LevelScope<'_>) {
    let found = open(context, scope, COARSER).await;
    let mut cells = Vec::new();
    for part in &found.parts {
        match &part.cells {
            LinkStorage::Each(links) if part.segment.is_some() => cells.push(links),
            // The cells of older forms are not those of the chunks of their first ends.
            _ => return,
        }
    }
    let Some(fragments) = open_part(context, scope, &ArrayRole::VertexFragments) else {
        return;
    };
    if cells.is_empty() || !found.is_whole {
        return;
    }
    let parts: Vec<&ChunkedPart> = [&fragments].into_iter().chain(cells).collect();
    let chunks = fragments.chunks();
    let pass = ChunkPass {
        name: pass_name(scope.level),
        seed: scope.level.key.as_str(),
        parts: &parts,
        chunks: &chunks,
    };
    pass.run(context, &mut ParentSearch(&found.parts)).await;
}

/// True if all vertices of the fragments of a chunk are known to have parents.
struct IsCovered(bool);

impl ChunkOutcome for IsCovered {
    fn to_json(&self) -> Value {
        json!(self.0)
    }

    fn from_json(json: &Value) -> Option<Self> {
        json.as_bool().map(Self)
    }
}

/// The search for parents of the vertices of a chunk, in the links of some parts.
struct ParentSearch<'a>(&'a [LinkPart]);

impl ChunkCheck for ParentSearch<'_> {
    type Outcome = IsCovered;

    fn check(&self, _: &Context<'_>, chunk: &ChunkCoord, cells: &[CellPayload]) -> IsCovered {
        IsCovered(self.is_covered(chunk, cells).unwrap_or(false))
    }

    // Only shares search.
    fn add(&mut self, _: &ChunkCoord, _: IsCovered) {}
}

impl ParentSearch<'_> {
    fn is_covered(&self, chunk: &ChunkCoord, cells: &[CellPayload]) -> Option<bool> {
        let (index, links) = cells.split_first()?;
        let index = FragmentIndex::parse(index.bytes()?).ok()?;
        let extent = index.extent();
        let named = index
            .iter()
            .map(|rows| rows.len())
            .fold(0, u64::saturating_add);
        if extent.max(named) > MAX_SHARE_ROWS {
            return None;
        }
        let mut covered = Flags::new(u32::try_from(extent).ok()?);
        // A link with its first end in another chunk covers a vertex there.
        let mut is_own = true;
        for (part, links) in self.0.iter().zip(links) {
            let links = match links {
                CellPayload::Absent => continue,
                CellPayload::Unreadable => return None,
                CellPayload::Bytes(links) => links,
            };
            let resolve = |coords: &[i64], is_target: bool| !is_target && coords == chunk.coords();
            let each = |record: LinkRecord<'_, bool>| match record.ends.first() {
                Some((true, row)) => {
                    if let Ok(row) = u32::try_from(*row) {
                        covered.set(row);
                    }
                }
                _ => is_own = false,
            };
            each_record(part, chunk, links, None, resolve, each).ok()?;
        }
        let mut rows = index.iter().flatten();
        let is_covered = |row: u64| u32::try_from(row).is_ok_and(|row| covered.is_set(row));
        Some(is_own && rows.all(is_covered))
    }
}
