//! Parents of vertices in the next coarser level.

use zvf_format::{links::LinkWidth, path::Delta};

use super::{Step, is_linked};
use crate::{
    links::each_link,
    rules::semantics as rules,
    semantics::{
        LevelView,
        faces::each_face,
        numbers::{Flags, VertexNumbers},
    },
};

/// The delta to the next coarser level.
const COARSER: Delta = Delta::new(1);

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
    let mut covered = Flags::new(numbers.vertices);
    let is_whole = each_link(
        &view.aside,
        view.scope,
        COARSER,
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
    let has_objects = finer.counts.objects.is_some();
    let mut needed = Flags::new(numbers.fragments);
    if has_objects {
        let kept = coarser.present.as_ref();
        view.each_object(&numbers, |row, fragments| {
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            if kept.is_none_or(|kept| kept.is_set(row)) {
                for fragment in fragments {
                    needed.set(fragment);
                }
            }
        })
        .await;
    }
    let on_faces = on_faces(view, &numbers).await;
    let needs_parent = |vertex: u32| on_faces.as_ref().is_none_or(|all| all.is_set(vertex));
    let mut orphans = Flags::new(numbers.vertices);
    view.each_index(&numbers, |span, index| {
        for (fragment, rows) in (0..).zip(index.iter()) {
            let number = span.fragment(fragment);
            if has_objects && !number.is_some_and(|number| needed.is_set(number)) {
                continue;
            }
            for row in rows
                .iter()
                .take(usize::try_from(span.rows).unwrap_or_default())
            {
                let vertex = span.vertex(row);
                let vertex = vertex.filter(|vertex| !covered.is_set(*vertex));
                if let Some(vertex) = vertex.filter(|vertex| needs_parent(*vertex)) {
                    orphans.set(vertex);
                }
            }
        }
    })
    .await;
    let count = orphans.count();
    if count > 0 {
        let part = zvf_model::layout::ArrayRole::LinkFamily(COARSER);
        let key = finer.scope.store.at(level, &part);
        let all = numbers.vertices;
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
