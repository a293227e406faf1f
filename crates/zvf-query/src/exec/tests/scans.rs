//! Scans of chunks, objects, paths and links: the requests that they make.

use zvf_catalog::{Diagnostics, Selection};

use super::{poll_ready, resolved, run, store, xs};
use crate::{
    exec::{context::ExecContext, link_scan::LinkScan},
    geometry::{Bbox, Mode},
    predicate::Predicate,
    query::Query,
};

fn bare() -> Query {
    Query::new().columns(Selection::none())
}

#[test]
fn a_chunk_scan_reads_chunks_of_the_region_at_once() {
    let memory = store("point_cloud", "implicit_sequential");
    let query = bare().owners(false);
    let (result, rounds, operators) = run(&memory, &query);
    assert_eq!(xs(&result), [1.0, 4.0, 8.0, 2.0, 12.0, 18.0, 15.0]);
    assert_eq!(operators, ["ObjectColumns", " Gather", "  ChunkScan"]);
    let (west, east) = ("0/vertices/c/0/0", "0/vertices/c/1/0");
    let indexes = ["0/vertex_fragments/c/0/0", "0/vertex_fragments/c/1/0"];
    let requests = [indexes[0], west, indexes[1], east];
    assert_eq!(rounds, [requests.to_vec()]);
    let box_ = Bbox::parse("11,0,20,2").unwrap();
    let (result, rounds, operators) = run(&memory, &query.region(box_));
    assert_eq!(xs(&result), [12.0, 18.0]);
    assert_eq!(operators[1..], [" Gather", "  Filter", "   ChunkScan"]);
    // The fragment index is cached with the level.
    assert_eq!(rounds, [vec![east]]);
}

#[test]
fn an_object_scan_is_made_beside_the_scan_of_chunks() {
    let memory = store("point_cloud", "implicit_sequential");
    let (result, rounds, operators) = run(&memory, &bare());
    assert_eq!(result.object_ids.unwrap().numbers(), [7, 7, 7, 9, 7, 7, 9]);
    assert_eq!(operators.last().unwrap(), "   ObjectScan");
    let mut requests: Vec<String> = rounds.into_iter().flatten().collect();
    requests.sort();
    let expected = [
        "0/object_index/manifests/c/0",
        "0/object_index/object_ids/c/0",
        "0/vertex_fragments/c/0/0",
        "0/vertex_fragments/c/1/0",
        "0/vertices/c/0/0",
        "0/vertices/c/1/0",
    ];
    assert_eq!(requests, expected);
}

#[test]
fn an_object_scan_selects_by_predicate() {
    let memory = store("polyline", "implicit_sequential");
    let query = Query::new().filter(Predicate::parse("object.lanes = 1").unwrap());
    let query = resolved(&memory, &query);
    let diagnostics = Diagnostics::new(false);
    let context = ExecContext::new(&query, &diagnostics);
    let selected = poll_ready(context.selected_objects()).unwrap().unwrap();
    assert_eq!(selected.indices, [0, 1]);
    assert!(!selected.is_selected(0) && selected.is_selected(1));
    let (members, objects) = poll_ready(context.members()).unwrap();
    assert_eq!(objects.len(), 2);
    let fragments = |x| members.get(&zvf_model::grid::ChunkCoord::new(vec![x, 0]));
    assert_eq!([0, 1, 2].map(fragments), [Some(&[1][..]), Some(&[1]), None]);
}

#[test]
fn a_path_scan_reads_fragments_of_named_objects_only() {
    let memory = store("polyline", "implicit_sequential");
    let (result, rounds, operators) = run(&memory, &bare().objects([9]));
    assert_eq!(xs(&result), [2.0, 15.0]);
    assert_eq!(
        operators,
        ["ObjectColumns", " Gather", "  PathScan", "   ObjectScan"]
    );
    let last = rounds.last().unwrap();
    // Row 3 of chunk 0.0 and row 2 of chunk 1.0, of eight bytes each.
    let rows = ["0/vertices/c/0/0 24..32", "0/vertices/c/1/0 16..24"];
    assert_eq!(last, &rows, "{rounds:?}");
}

#[test]
fn a_path_scan_reads_all_chunks_beside_the_manifests() {
    let memory = store("polyline", "implicit_sequential");
    let (result, rounds, _) = run(&memory, &bare());
    assert_eq!(xs(&result), [1.0, 4.0, 8.0, 12.0, 18.0, 2.0, 15.0]);
    let parts = result.parts.unwrap();
    assert_eq!((parts.offsets, parts.objects), (vec![0, 5, 7], vec![7, 9]));
    let chunks = rounds.iter().filter(|round| round[0].contains("/vertex"));
    assert_eq!(chunks.count(), 1, "{rounds:?}");
}

#[test]
fn a_link_scan_reads_cells_that_reach_the_region() {
    let memory = store("graph", "explicit");
    let cells_of = |query: &Query, members, implied| {
        let query = resolved(&memory, query);
        let set = poll_ready(query.link_set(&Diagnostics::new(false))).unwrap();
        let scan = LinkScan { set, implied };
        let cells = scan.cells(&query, members).unwrap();
        let set = scan.set.unwrap();
        let chunks = cells.iter().map(|at| {
            let chunks = set.cells[*at].chunks.as_ref().unwrap().iter();
            chunks
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        });
        chunks.collect::<Vec<_>>()
    };
    let cells = |query: &Query, members| cells_of(query, members, false);
    let all = ["0.0 1.0", "0.0 0.0", "1.0 1.0"];
    assert_eq!(cells(&bare(), None), all);
    let west = bare().region(Bbox::parse("0,0,5,5").unwrap());
    assert_eq!(cells(&west, None), ["0.0 1.0", "0.0 0.0"]);
    // Links within the region have no end in another chunk, but may replace an implied link there.
    let within = west.mode(Mode::Within);
    assert_eq!(cells(&within, None), ["0.0 0.0"]);
    assert_eq!(cells_of(&within, None, true), ["0.0 1.0", "0.0 0.0"]);
    // Links of objects are between the chunks of their fragments.
    let members = [(zvf_model::grid::ChunkCoord::new(vec![1, 0]), vec![0])]
        .into_iter()
        .collect();
    assert_eq!(cells(&bare(), Some(&members)), ["1.0 1.0"]);
    let implied = cells_of(&bare(), Some(&members), true);
    assert_eq!(implied, ["0.0 1.0", "1.0 1.0"]);
}
