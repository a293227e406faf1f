//! The claim that the groups of links follow the fragments.

use serde_json::{Value, json};
use zvf_format::{fragment::FragmentIndex, path::Delta};
use zvf_model::{grid::ChunkCoord, layout::ArrayRole};

use super::{LevelCounts, StoreCounts, chunks::optional};
use crate::{
    batch::CellPayload,
    chunk_pass::{ChunkCheck, ChunkPass},
    chunked_part::open_part,
    context::Context,
    links::{LinkPart, LinkRecord, LinkStorage, each_record, open},
    rules::consistency as rules,
    share::ChunkOutcome,
    store::LevelScope,
};

/// No fragment and no group.
const NONE: u32 = u32::MAX;
/// Maximum number of rows of a chunk that are compared before the vertices confirm them.
const MAX_UNCONFIRMED_ROWS: u64 = 1 << 24;

/// Checks the claim of a level, if it makes it. Unreadable cells are reported elsewhere.
pub(super) async fn check(context: &Context<'_>, scope: LevelScope<'_>, counted: &StoreCounts) {
    if !scope.metadata.fragment_link_groups {
        return;
    }
    let aside = context.silent();
    let found = open(&aside, scope, Delta::INTRA).await;
    let inside = found.parts.iter().find(|part| part.is_inside);
    let Some((inside, LinkStorage::Each(links))) = inside.map(|part| (part, &part.cells)) else {
        return;
    };
    let fragments = open_part(&aside, scope, &ArrayRole::VertexFragments);
    let groups = open_part(&aside, scope, &ArrayRole::LinkFragments);
    let (Some(fragments), Some(groups)) = (fragments, groups) else {
        return;
    };
    let mut checks = ClaimChecks {
        part: inside,
        counts: counted.levels.get(&scope.level.id),
        wrong: None,
        number: 0,
    };
    let chunks = links.chunks();
    let pass = ChunkPass {
        name: format!("{} groups", links.key),
        seed: links.key.as_str(),
        parts: &[&fragments, &groups, links],
        chunks: &chunks,
    };
    pass.run(&aside, &mut checks).await;
    let ClaimChecks { wrong, number, .. } = checks;
    if let Some((chunk, why)) = wrong {
        let why = why.message();
        let message = format!("in {number} chunks, first in {chunk}: {why}");
        let path = ["zarr_vectors_level", "fragment_link_groups"];
        let (rule, key) = (&rules::LINK_GROUPS_CLAIM, &scope.level.key);
        context.report_attribute(rule, key, &path, message, None);
    }
}

/// A difference of the groups of a chunk from its fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupDifference {
    NoGroups,
    Counts,
    SharedVertices,
    NotInOneGroup,
    EndOutside,
}

impl GroupDifference {
    const ALL: [Self; 5] = [
        Self::NoGroups,
        Self::Counts,
        Self::SharedVertices,
        Self::NotInOneGroup,
        Self::EndOutside,
    ];

    fn message(self) -> &'static str {
        match self {
            Self::NoGroups => "its links are in no group",
            Self::Counts => "the numbers of groups and fragments differ",
            Self::SharedVertices => "fragments share vertices",
            Self::NotInOneGroup => "a link is in no group or in several",
            Self::EndOutside => "a group has a link with an end outside its fragment",
        }
    }
}

/// The result of comparing the groups of a chunk with its fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimCheck {
    Same,
    Different(GroupDifference),
    /// A cell cannot be read.
    Unknown,
}

/// The result for a chunk with at least `extent` vertices.
struct CheckedClaim {
    result: ClaimCheck,
    extent: u64,
}

impl ChunkOutcome for CheckedClaim {
    fn to_json(&self) -> Value {
        let result = match self.result {
            ClaimCheck::Unknown => None,
            ClaimCheck::Same => Some(""),
            ClaimCheck::Different(difference) => Some(difference.message()),
        };
        json!([result, self.extent])
    }

    fn from_json(json: &Value) -> Option<Self> {
        let [result, extent] = json.as_array()?.as_slice() else {
            return None;
        };
        let mut differences = GroupDifference::ALL.into_iter();
        Some(Self {
            result: match optional(result, |result| Some(result.as_str()?.to_owned()))? {
                None => ClaimCheck::Unknown,
                Some(message) if message.is_empty() => ClaimCheck::Same,
                Some(message) => ClaimCheck::Different(
                    differences.find(|difference| difference.message() == message)?,
                ),
            },
            extent: extent.as_u64()?,
        })
    }
}

/// Checks of the claim in each chunk.
struct ClaimChecks<'a> {
    part: &'a LinkPart,
    counts: Option<&'a LevelCounts>,
    /// The first chunk whose groups differ, and why.
    wrong: Option<(ChunkCoord, GroupDifference)>,
    /// Number of such chunks.
    number: u64,
}

impl ClaimChecks<'_> {
    /// Returns the number of vertices of a chunk.
    fn rows(&self, chunk: &ChunkCoord) -> Option<u64> {
        Some(self.counts?.chunks.get(chunk)?.rows)
    }
}

impl ChunkCheck for ClaimChecks<'_> {
    type Outcome = CheckedClaim;

    fn check(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        cells: &[CellPayload],
    ) -> CheckedClaim {
        let unknown = CheckedClaim {
            result: ClaimCheck::Unknown,
            extent: 0,
        };
        let [fragments, groups, links] = cells else {
            return unknown;
        };
        let cells = (fragments, groups, links);
        if !context.is_share() {
            return match self.rows(chunk) {
                Some(rows) => CheckedClaim {
                    result: compare(self.part, chunk, cells, rows),
                    extent: rows,
                },
                None => unknown,
            };
        }
        let index = fragments.bytes().map(|bytes| FragmentIndex::parse(bytes));
        match index.and_then(Result::ok).map(|index| index.extent()) {
            // No memory is reserved for more rows than a chunk has, which a share does not know.
            Some(extent) if extent > MAX_UNCONFIRMED_ROWS => CheckedClaim {
                result: ClaimCheck::Same,
                extent: u64::MAX,
            },
            extent => {
                let extent = extent.unwrap_or(0);
                CheckedClaim {
                    result: compare(self.part, chunk, cells, extent),
                    extent,
                }
            }
        }
    }

    fn add(&mut self, chunk: &ChunkCoord, checked: CheckedClaim) {
        // Chunks without readable vertices are not compared.
        if let (ClaimCheck::Different(difference), Some(_)) = (checked.result, self.rows(chunk)) {
            self.number = self.number.saturating_add(1);
            self.wrong
                .get_or_insert_with(|| (chunk.clone(), difference));
        }
    }

    fn holds(&self, chunk: &ChunkCoord, checked: &CheckedClaim) -> bool {
        use GroupDifference::{Counts, NoGroups};
        match checked.result {
            ClaimCheck::Unknown | ClaimCheck::Different(NoGroups | Counts) => true,
            _ => self.rows(chunk).is_none_or(|rows| rows >= checked.extent),
        }
    }
}

/// Compares the groups of a chunk of `rows` vertices with its fragments.
fn compare(
    part: &LinkPart,
    chunk: &ChunkCoord,
    (fragments, groups, links): (&CellPayload, &CellPayload, &CellPayload),
    rows: u64,
) -> ClaimCheck {
    use GroupDifference::{Counts, EndOutside, NoGroups, NotInOneGroup, SharedVertices};
    let (Some(fragments), Some(links)) = (fragments.bytes(), links.bytes()) else {
        return ClaimCheck::Unknown;
    };
    let Some(groups) = groups.bytes() else {
        return match groups {
            CellPayload::Absent => ClaimCheck::Different(NoGroups),
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
        return ClaimCheck::Different(Counts);
    }
    let links = ends.chunks_exact(part.width().get());
    let count = u64::try_from(links.len()).unwrap_or(u64::MAX);
    let Some(fragment_of) = assigned(&fragments, rows) else {
        return ClaimCheck::Different(SharedVertices);
    };
    let Some(group_of) = assigned(&groups, count).filter(|all| !all.contains(&NONE)) else {
        return ClaimCheck::Different(NotInOneGroup);
    };
    let is_inside = |(ends, group): (&[u64], &u32)| {
        ends.iter().all(|row| {
            let row = usize::try_from(*row).ok();
            row.and_then(|row| fragment_of.get(row)) == Some(group)
        })
    };
    if links.zip(&group_of).all(is_inside) {
        ClaimCheck::Same
    } else {
        ClaimCheck::Different(EndOutside)
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
