//! Checks of faces that share an edge: at most two, in opposite directions.

use zvf_format::{links::LinkWidth, path::Delta};

use super::{LevelView, numbers::VertexNumbers};
use crate::{links::each_link, rules::semantics as rules};

/// Passes the vertices of each face of a mesh with `width` corners to `each`, and returns whether all
/// faces can be read. L3 reports faces with missing vertices, and `edges` those with a corner twice:
/// both are left out.
pub(super) async fn each_face(
    view: &LevelView<'_, '_>,
    numbers: &VertexNumbers,
    width: usize,
    mut each: impl FnMut(&[u32]) + Send,
) -> bool {
    let mut corners: Vec<u32> = Vec::with_capacity(width);
    each_link(
        &view.aside,
        view.scope,
        Delta::INTRA,
        |coords, _| numbers.span_at(coords),
        |_, record| {
            corners.clear();
            let ends = record.ends.iter();
            corners.extend(ends.filter_map(|(span, row)| span.and_then(|span| span.vertex(*row))));
            let again =
                |(at, corner): (usize, &u32)| corners.iter().take(at).any(|one| one == corner);
            if corners.len() == width && !corners.iter().enumerate().any(again) {
                each(&corners);
            }
        },
    )
    .await
}

pub(super) async fn check(view: &LevelView<'_, '_>) {
    let sum = view.counts.links.get(&Delta::INTRA);
    let width = sum.and_then(|sum| sum.width).map_or(0, LinkWidth::get);
    if width < 3 || view.links() == 0 {
        return;
    }
    let Some(numbers) = view.numbers() else {
        return;
    };
    // An edge is encoded as its lesser vertex, its greater vertex, and the direction.
    if numbers.vertices >= 1 << 31 {
        return view.not_run("too many vertices to compare the edges of faces");
    }
    let edges = view
        .links()
        .saturating_mul(u64::try_from(width).unwrap_or(u64::MAX));
    if !view.fits("comparing the edges of faces", edges.saturating_mul(16)) {
        return;
    }
    let mut edges: Vec<u64> = Vec::new();
    let is_whole = each_face(view, &numbers, width, |corners| {
        let next = corners.iter().cycle().skip(1);
        edges.extend(corners.iter().zip(next).map(|(from, to)| edge(*from, *to)));
    })
    .await;
    if !is_whole {
        return view.not_run("some faces cannot be read, so edges were not compared");
    }
    edges.sort_unstable();
    let (mut against, mut crowded) = (0_u64, 0_u64);
    for same in edges.chunk_by(|one, other| one >> 1 == other >> 1) {
        match same {
            [_] => {}
            [one, other] => against = against.saturating_add(u64::from(one == other)),
            _ => crowded = crowded.saturating_add(1),
        }
    }
    let key = view.links_key();
    if against > 0 {
        let message = format!("two faces traverse an edge in one direction, at {against} edges");
        view.context.report(&rules::WINDING, &key, message);
    }
    if crowded > 0 {
        let message = format!("{crowded} edges belong to more than two faces");
        view.context.report(&rules::NOT_MANIFOLD, &key, message);
    }
}

fn edge(from: u32, to: u32) -> u64 {
    let (low, high) = (u64::from(from.min(to)), u64::from(from.max(to)));
    (low << 33) | (high << 1) | u64::from(from > to)
}
