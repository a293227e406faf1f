//! Checks of single edges and faces: self-loops, duplicates, and the objects that they join.

use std::hash::{DefaultHasher, Hash, Hasher};

use zvf_format::path::Delta;
use zvf_model::geometry_kind::GeometryKind;

use super::{
    LevelView,
    numbers::{NONE, NumberRange, SEVERAL, VertexNumbers, at_of},
};
use crate::{links::each_link, rules::semantics as rules};

/// Counts of faulty links of a level.
#[derive(Debug, Default)]
struct EdgeFaults {
    loops: u64,
    doubles: u64,
    apart: u64,
    /// Hashes of the links of the current cell.
    cell: Vec<u64>,
}

impl EdgeFaults {
    /// Counts duplicates at the end of a cell. All copies of a link are in one cell.
    fn end_cell(&mut self) {
        self.cell.sort_unstable();
        let pairs = self.cell.windows(2);
        let doubles = pairs.filter(|pair| pair.first() == pair.last()).count();
        let doubles = u64::try_from(doubles).unwrap_or(u64::MAX);
        self.doubles = self.doubles.saturating_add(doubles);
        self.cell.clear();
    }
}

pub(super) async fn check(view: &LevelView<'_, '_>) {
    if view.links() == 0 {
        return;
    }
    let Some(numbers) = view.numbers() else {
        return;
    };
    let per_vertex = u64::from(numbers.vertices).saturating_mul(4);
    let per_fragment = u64::from(numbers.fragments).saturating_mul(4);
    let per_link = view.links().saturating_mul(8);
    let bytes = per_vertex
        .saturating_add(per_fragment)
        .saturating_add(per_link);
    if !view.fits("comparing links", bytes) {
        return;
    }
    let owners = owners(view, &numbers).await;
    let mut found = EdgeFaults::default();
    let is_whole = each_link(
        &view.aside,
        view.scope,
        Delta::INTRA,
        |coords, _| numbers.span_at(coords),
        |part, record| {
            if record.at == 0 {
                found.end_cell();
            }
            look(&mut found, &owners, record.ends, part.family.directed);
        },
    )
    .await;
    found.end_cell();
    if !is_whole {
        view.not_run("some links cannot be read, so links were not compared");
    }
    let key = view.links_key();
    let is_mesh = view.scope.root.holds(GeometryKind::Mesh);
    if found.loops > 0 {
        let (rule, what) = if is_mesh {
            (&rules::DEGENERATE, "faces have a corner twice")
        } else {
            (&rules::SELF_LOOPS, "edges start and end at one vertex")
        };
        let message = format!("{} {what}", found.loops);
        view.context.report(rule, &key, message);
    }
    if found.doubles > 0 {
        let message = format!("{} duplicate links", found.doubles);
        view.context.report(&rules::DUPLICATE_LINKS, &key, message);
    }
    if found.apart > 0 {
        let message = format!("{} links join vertices of different objects", found.apart);
        view.context
            .report(&rules::LINKS_BETWEEN_OBJECTS, &key, message);
    }
}

/// Returns the object of each vertex, or nothing if objects share fragments or there are fewer than
/// two, or after reporting that fragments overlap too much.
async fn owners(view: &LevelView<'_, '_>, numbers: &VertexNumbers) -> Vec<u32> {
    match view.counts.objects {
        Some(objects) if objects > 1 && !view.scope.metadata.shared_fragments => {
            view.vertex_owners(numbers).await.unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn look(
    found: &mut EdgeFaults,
    owners: &[u32],
    ends: &[(Option<NumberRange>, u64)],
    directed: bool,
) {
    let mut hash = 0_u64;
    let mut owner = NONE;
    let (mut is_loop, mut is_apart) = (false, false);
    for (at, (span, row)) in ends.iter().enumerate() {
        let Some(vertex) = span.and_then(|span| span.vertex(*row)) else {
            // L3 reports the missing vertex.
            return;
        };
        let mut hasher = DefaultHasher::new();
        vertex.hash(&mut hasher);
        if directed {
            at.hash(&mut hasher);
        }
        hash = hash.wrapping_add(hasher.finish());
        let before = ends.iter().take(at);
        let same = |(other, other_row): &(Option<NumberRange>, u64)| {
            other.and_then(|other| other.vertex(*other_row)) == Some(vertex)
        };
        is_loop |= before.clone().any(same);
        let own = at_of(owners, vertex).copied().unwrap_or(NONE);
        if own != NONE && own != SEVERAL {
            is_apart |= owner != NONE && owner != own;
            owner = own;
        }
    }
    found.loops = found.loops.saturating_add(u64::from(is_loop));
    found.apart = found.apart.saturating_add(u64::from(is_apart));
    found.cell.push(hash);
}
