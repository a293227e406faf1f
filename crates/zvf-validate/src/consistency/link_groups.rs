//! The claim that the groups of links follow the fragments.

use zvf_format::{fragment::FragmentIndex, path::Delta};
use zvf_model::{grid::ChunkCoord, layout::ArrayRole};

use super::StoreCounts;
use crate::{
    batch::{self, CellPayload},
    chunked_part::open_part,
    context::Context,
    links::{LinkPart, LinkRecord, LinkStorage, each_record, open},
    rules::consistency as rules,
    store::LevelScope,
};

/// No fragment and no group.
const NONE: u32 = u32::MAX;

/// Checks the claim of a level, if it makes it. Unreadable cells are reported elsewhere.
pub(super) async fn check(context: &Context<'_>, scope: LevelScope<'_>, counted: &StoreCounts) {
    if !scope.metadata.fragment_link_groups {
        return;
    }
    let aside = context.silent();
    let found = open(&aside, scope, Delta::INTRA);
    let inside = found.parts.iter().find(|part| part.is_inside);
    let Some((inside, LinkStorage::Each(links))) = inside.map(|part| (part, &part.cells)) else {
        return;
    };
    let fragments = open_part(&aside, scope, &ArrayRole::VertexFragments);
    let groups = open_part(&aside, scope, &ArrayRole::LinkFragments);
    let (Some(fragments), Some(groups)) = (fragments, groups) else {
        return;
    };
    let counts = counted.levels.get(&scope.level.id);
    let mut wrong: Option<(ChunkCoord, &str)> = None;
    let mut number = 0_u64;
    let parts = [&fragments, &groups, links];
    batch::each_chunk(&aside, &parts, &links.chunks(), |chunk, cells| {
        let rows = counts.and_then(|counts| counts.chunks.get(chunk));
        let (Some(rows), [fragments, groups, links]) = (rows, cells) else {
            return;
        };
        let ClaimCheck::Different(why) =
            compare(inside, chunk, (fragments, groups, links), rows.rows)
        else {
            return;
        };
        number = number.saturating_add(1);
        wrong.get_or_insert_with(|| (chunk.clone(), why));
    })
    .await;
    if let Some((chunk, why)) = wrong {
        let message = format!("in {number} chunks, first in {chunk}: {why}");
        let path = ["zarr_vectors_level", "fragment_link_groups"];
        let (rule, key) = (&rules::LINK_GROUPS_CLAIM, &scope.level.key);
        context.report_attribute(rule, key, &path, message, None);
    }
}

/// The result of comparing the groups of a chunk with its fragments.
enum ClaimCheck {
    Same,
    Different(&'static str),
    /// A cell cannot be read.
    Unknown,
}

/// Compares the groups of a chunk of `rows` vertices with its fragments.
fn compare(
    part: &LinkPart,
    chunk: &ChunkCoord,
    (fragments, groups, links): (&CellPayload, &CellPayload, &CellPayload),
    rows: u64,
) -> ClaimCheck {
    let (Some(fragments), Some(links)) = (fragments.bytes(), links.bytes()) else {
        return ClaimCheck::Unknown;
    };
    let Some(groups) = groups.bytes() else {
        return match groups {
            CellPayload::Absent => ClaimCheck::Different("its links are in no group"),
            _ => ClaimCheck::Unknown,
        };
    };
    let (Ok(fragments), Ok(groups)) = (
        FragmentIndex::parse(fragments),
        FragmentIndex::parse(groups),
    ) else {
        return ClaimCheck::Unknown;
    };
    let mut ends: Vec<u64> = Vec::new();
    let each = |record: LinkRecord<'_, ()>| ends.extend(record.ends.iter().map(|((), row)| *row));
    if each_record(part, chunk, links, None, |_, _| (), each).is_err() {
        return ClaimCheck::Unknown;
    }
    if fragments.len() != groups.len() {
        return ClaimCheck::Different("the numbers of groups and fragments differ");
    }
    let links = ends.chunks_exact(part.width().get());
    let count = u64::try_from(links.len()).unwrap_or(u64::MAX);
    let Some(fragment_of) = assigned(&fragments, rows) else {
        return ClaimCheck::Different("fragments share vertices");
    };
    let Some(group_of) = assigned(&groups, count).filter(|all| !all.contains(&NONE)) else {
        return ClaimCheck::Different("a link is in no group or in several");
    };
    let is_inside = |(ends, group): (&[u64], &u32)| {
        ends.iter().all(|row| {
            let row = usize::try_from(*row).ok();
            row.and_then(|row| fragment_of.get(row)) == Some(group)
        })
    };
    match links.zip(&group_of).all(is_inside) {
        true => ClaimCheck::Same,
        false => ClaimCheck::Different("a group has a link with an end outside its fragment"),
    }
}

/// Returns the fragment of each of `rows` rows; `None` if fragments overlap or reach further.
/// Takes at most `rows` steps, whatever the index declares.
fn assigned(index: &FragmentIndex<'_>, rows: u64) -> Option<Vec<u32>> {
    if index.extent() > rows {
        return None;
    }
    let mut owners = vec![NONE; usize::try_from(rows).ok()?];
    for (fragment, rows) in (0_u32..).zip(index.iter()) {
        for row in rows {
            let owner = owners.get_mut(usize::try_from(row).ok()?)?;
            if *owner != NONE {
                return None;
            }
            *owner = fragment;
        }
    }
    Some(owners)
}
