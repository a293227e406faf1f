//! Snapshots of the requests of every kind of query on every kind of store.

use core::fmt::Write;
use std::collections::BTreeMap;

use zvf::OpenOptions;
use zvf_store::{ByteRange, MergeLimits, Read};
use zvf_testkit::stores::{Cells, StoreKind};

use zvf_catalog::Selection;

use super::{
    Files, cases,
    cost::{self, Cost, QueryCase},
    kinds::{self, CELLS, KINDS},
    snapshot,
};

/// Maximum line width of a snapshot.
const WIDTH: usize = 118;

/// Formats the requests of a query in a canonical order.
pub(super) fn text(
    case: &QueryCase,
    cost: &Cost,
    files: &Files,
    (exact, before): (bool, &mut Vec<String>),
) -> String {
    let mut text = format!("{}\n", case.name);
    let (there, absent) = cost.nodes(files);
    let requests = cost.open.len() + cost.metadata.len();
    let (there, absent, lists) = (there.len(), absent.len(), cost.lists.len());
    let _ = write!(
        text,
        "  metadata: {requests} requests: root, level, {there} arrays and groups"
    );
    if absent > 0 {
        let _ = write!(text, ", {absent} that are not there");
    }
    if lists > 0 {
        let _ = write!(text, "; {lists} listings");
    }
    text.push('\n');
    let metadata: Vec<String> = cost.metadata.iter().map(part).collect();
    let lists = cost.lists.iter().map(|key| format!("{key}/")).collect();
    let requested = [metadata, lists].concat();
    if *before == requested {
        text.push_str("    as before\n");
    } else {
        wrap(&mut text, "   ", requested.clone());
        *before = requested;
    }
    let (rounds, requests) = (cost.data.len(), cost.data().count());
    let bytes = cost::sum(cost.data(), files);
    let _ = writeln!(
        text,
        "  data: {rounds} rounds, {requests} requests, {bytes} bytes"
    );
    for (number, (_, reads)) in (1..).zip(&cost.data) {
        let mut families: BTreeMap<(bool, String), Vec<&Read>> = BTreeMap::new();
        for read in reads {
            let is_index = matches!(read.range, ByteRange::Suffix(_));
            let family = family(read.key.as_str()).to_owned();
            families.entry((!is_index, family)).or_default().push(read);
        }
        for ((is_data, family), reads) in families {
            let what = if is_data { "" } else { "shard indexes of " };
            let heading = format!("    {number}. {what}{family}:");
            if exact {
                let below = |read| part(read)[family.len() + 1..].replace("c/", "");
                wrap(&mut text, &heading, reads.into_iter().map(below).collect());
            } else {
                let (requests, bytes) = (reads.len(), cost::sum(reads, files));
                let _ = writeln!(text, "{heading} {requests} requests, {bytes} bytes");
            }
        }
    }
    text
}

/// Returns the array of an object; link and attribute arrays of all chunk offsets count as one.
fn family(key: &str) -> &str {
    let array = key.split_once("/c/").unwrap().0;
    let depth = match array.split('/').nth(1) {
        Some("links") => 3,
        Some("link_attributes") => 4,
        _ => return array,
    };
    let end = array.match_indices('/').nth(depth - 1);
    &array[..end.unwrap().0]
}

/// Formats a request: the object and its range.
fn part(read: &Read) -> String {
    let key = &read.key;
    match &read.range {
        ByteRange::Full => key.to_string(),
        ByteRange::Bounded(range) => format!("{key}[{}..{}]", range.start, range.end),
        ByteRange::From(start) => format!("{key}[{start}..]"),
        ByteRange::Suffix(bytes) => format!("{key}[-{bytes}..]"),
    }
}

/// Wraps words into lines.
fn wrap(text: &mut String, heading: &str, words: Vec<String>) {
    let mut line = heading.to_owned();
    if words.is_empty() {
        return;
    }
    for word in words {
        if line.len() + word.len() >= WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(8);
        } else {
            line.push(' ');
        }
        line.push_str(&word);
    }
    text.push_str(&line);
    text.push('\n');
}

/// Returns the maximum number of rounds for cells. Attributes of objects take one more round
/// because the objects are known only after the others; those of paths are read beside the chunks.
fn most_rounds(kind: StoreKind, case: &QueryCase) -> usize {
    let query = &case.query;
    let is_of_paths = matches!(kind, StoreKind::Polylines);
    let is_beside = is_of_paths && query.limit.is_none() && query.nearest.is_none();
    let of_objects = usize::from(query.columns == Selection::All && !case.counts && !is_beside);
    let of_kind = match kind {
        // Groups, manifests, fragments, rows.
        _ if query.groups.is_some() => 4,
        // Manifests, fragments, rows; with a region also the other ends of links.
        _ if query.objects.is_some() && query.region.is_some() && kind.is_linked() => 4,
        _ if query.objects.is_some() => 3,
        _ if query.nearest.is_some() => 5,
        // Fragments and the rows of bins.
        StoreKind::BinnedPoints if query.region.is_some() => return 2,
        StoreKind::BinnedPoints => return 1,
        StoreKind::ObjectPoints => 1,
        // Manifests and chunks in the region, then fragments and then rows of other chunks.
        StoreKind::Polylines if query.region.is_some() => 3,
        // Manifests, then chunks; or the region, then other ends.
        _ => 2,
    };
    of_kind + of_objects
}

fn check((name, kind, _): (&str, StoreKind, u64)) {
    let mut faults = Vec::new();
    for (cells_name, cells) in CELLS {
        let made = kinds::fixed(kind, cells);
        let files = kinds::files(&made);
        let (chunks, vertices) = (made.truth.chunks().len(), made.truth.vertices.len());
        let mut all = format!("{name}, {cells_name}: {chunks} chunks, {vertices} vertices\n");
        let mut before = Vec::new();
        for case in cases::of(&made.truth) {
            let cost = case.cost(&files, &OpenOptions::default());
            all.push('\n');
            let exact = cells == Cells::Plain;
            all.push_str(&text(&case, &cost, &files, (exact, &mut before)));
            let at = format!("{name}, {cells_name}: {}", case.name);
            // Merged reads include gaps that a later read may request, so do not merge.
            let apart = OpenOptions::default().merge_limits(MergeLimits {
                gap: 0,
                size: 1 << 20,
            });
            let apart = case.cost(&files, &apart);
            let twice = cost::read_twice(apart.all(), &files);
            assert_eq!(apart.found, cost.found, "{at}");
            faults.extend(twice.iter().map(|what| format!("{at}: twice {what}")));
            let (rounds, max) = (cost.data.len(), most_rounds(kind, &case));
            if rounds > max {
                faults.push(format!("{at}: {rounds} rounds, not {max}"));
            }
            // Each node is requested once, in addition to root and level.
            let (there, absent) = cost.nodes(&files);
            let metadata = cost.open.len() + cost.metadata.len();
            if metadata != 2 + there.len() + absent.len() {
                faults.push(format!("{at}: {metadata} requests for metadata"));
            }
        }
        snapshot::check(&format!("{name}_{cells_name}"), &all);
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn requests_of_points_in_bins() {
    check(KINDS[0]);
}

#[test]
fn requests_of_points_of_objects() {
    check(KINDS[1]);
}

#[test]
fn requests_of_polylines() {
    check(KINDS[2]);
}

#[test]
fn requests_of_graphs() {
    check(KINDS[3]);
}

#[test]
fn requests_of_skeletons() {
    check(KINDS[4]);
}

#[test]
fn requests_of_meshes() {
    check(KINDS[5]);
}
