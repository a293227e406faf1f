//! Link joins and level jumps: vertices and links of a graph.

use core::ops::Range;

use serde_json::json;
use zvf_format::{
    fragment::FragmentIndexBuilder,
    links::{LinkRowsBuilder, LinkWidth, Permutation, RowForm},
};

use super::{TestStore, run, store, values, xs};
use crate::{
    geometry::{Bbox, Mode},
    predicate::Predicate,
    query::Query,
    result::QueryResult,
};

/// Links as pairs of the x of their ends.
fn ends(result: &QueryResult) -> Vec<[f64; 2]> {
    let xs = xs(result);
    let x = |row: &u64| xs[usize::try_from(*row).unwrap()];
    let ends = result.links.as_ref().unwrap().ends.chunks_exact(2);
    ends.map(|ends| [x(&ends[0]), x(&ends[1])]).collect()
}

fn graph() -> TestStore {
    store("graph", "explicit")
}

fn in_box(bbox: &str, mode: Mode) -> Query {
    Query::new().region(Bbox::parse(bbox).unwrap()).mode(mode)
}

#[test]
fn a_whole_level_is_streamed() {
    let memory = graph();
    let (result, rounds, operators) = run(&memory, &Query::new());
    assert_eq!(xs(&result), [1.0, 4.0, 8.0, 2.0, 12.0, 18.0, 15.0]);
    let expected = [[8.0, 12.0], [1.0, 4.0], [4.0, 8.0], [12.0, 18.0]];
    assert_eq!(ends(&result), expected);
    let expected = [
        "ObjectColumns",
        " StreamedLinkJoin",
        "  ChunkScan",
        "   ObjectScan",
        "  LinkScan",
    ];
    assert_eq!(operators, expected);
    let links = [
        "0/links/0/+1.0/c/0/0",
        "0/links/0/0.0/c/0/0",
        "0/links/0/0.0/c/1/0",
    ];
    assert_eq!(rounds.last().unwrap(), &links);
}

#[test]
fn a_join_selects_links_by_region_and_mode() {
    let selected = |bbox, mode| {
        let (result, ..) = run(&graph(), &in_box(bbox, mode));
        (xs(&result), ends(&result))
    };
    // The link between the chunks enters the box between its ends.
    let touching = selected("9,0,10,2", Mode::Touch);
    assert_eq!(touching, (vec![8.0, 12.0], vec![[8.0, 12.0]]));
    assert_eq!(selected("9,0,10,2", Mode::Within), (vec![], vec![]));
    let within = selected("3,0,12,2", Mode::Within);
    let expected = vec![[8.0, 12.0], [4.0, 8.0]];
    assert_eq!(within, (vec![4.0, 8.0, 12.0], expected));
}

#[test]
fn a_join_reads_ends_outside_the_region_in_a_second_round_trip() {
    let memory = graph();
    let query = in_box("6,0,9,2", Mode::Touch);
    let (result, rounds, operators) = run(&memory, &query);
    assert_eq!(ends(&result), [[8.0, 12.0], [4.0, 8.0]]);
    let expected = [
        "ObjectColumns",
        " Gather",
        "  LinkJoin",
        "   Filter",
        "    ChunkScan",
    ];
    assert_eq!(operators[..5], expected);
    let at = |path: &str| {
        let has = |round: &Vec<String>| round.iter().any(|requested| requested.starts_with(path));
        rounds.iter().position(has)
    };
    let (first, second) = (at("0/vertices/c/0/0"), at("0/vertices/c/1/0"));
    assert!(
        first < second && at("0/links/0/+1.0/c/0/0") < second,
        "{rounds:?}"
    );
    // Links inside the other chunk cannot enter the box.
    assert_eq!(at("0/links/0/0.0/c/1/0"), None);
}

#[test]
fn links_are_limited_before_they_are_split() {
    let query = in_box("6,0,15,2", Mode::Clip);
    let (result, _, operators) = run(&graph(), &query);
    assert_eq!(ends(&result), [[8.0, 12.0], [6.0, 8.0], [12.0, 15.0]]);
    assert_eq!(
        operators[..4],
        ["ObjectColumns", " Clip", "  Gather", "   LinkJoin"]
    );
    let (result, _, operators) = run(&graph(), &query.limit(2));
    assert_eq!(ends(&result), [[8.0, 12.0], [6.0, 8.0]]);
    assert_eq!(operators[1..4], [" Clip", "  Gather", "   Limit"]);
}

#[test]
fn a_limit_counts_vertices_where_no_link_is_selected() {
    let query = in_box("0,0,20,20", Mode::Touch).objects([9]);
    let (result, ..) = run(&graph(), &query);
    assert_eq!((xs(&result), ends(&result)), (vec![2.0, 15.0], vec![]));
    let (result, ..) = run(&graph(), &query.limit(1));
    assert_eq!(xs(&result), [2.0]);
}

#[test]
fn a_join_selects_links_by_the_predicate_on_vertices() {
    let filter = |mode| {
        let predicate = Predicate::parse("radius > 2.5").unwrap();
        let query = Query::new().filter(predicate).mode(mode);
        ends(&run(&graph(), &query).0)
    };
    assert_eq!(filter(Mode::Within), [[8.0, 12.0], [12.0, 18.0]]);
    let touching = [[8.0, 12.0], [4.0, 8.0], [12.0, 18.0]];
    assert_eq!(filter(Mode::Touch), touching);
    // By default, no vertex is returned for which the predicate is not true.
    let predicate = Predicate::parse("radius > 2.5").unwrap();
    let (result, ..) = run(&graph(), &Query::new().filter(predicate));
    assert_eq!(ends(&result), [[8.0, 12.0], [12.0, 18.0]]);
    let mut found = xs(&result);
    found.sort_by(f64::total_cmp);
    assert_eq!(found, [2.0, 8.0, 12.0, 15.0, 18.0]);
}

#[test]
fn implied_links_are_replaced_by_stored_ones() {
    let mut memory = store("skeleton", "implicit_sequential_with_branches");
    memory.remove("0/links");
    let (result, ..) = run(&memory, &Query::new());
    // Child and parent, inside each fragment.
    assert_eq!(ends(&result), [[4.0, 1.0], [8.0, 4.0], [18.0, 12.0]]);
}

/// Regression test: implied links of two ends came between the ends of stored links of three.
#[test]
fn no_links_are_implied_beside_stored_ones_of_another_width() {
    let mut memory = store("mesh", "implicit_sequential_with_branches");
    memory.remove("0/links");
    let family = json!({
        "zv_array": "links_family", "level_delta": 0, "link_width": 3, "directed": false,
        "store": "canonical", "sid_ndim": 2, "num_links": 1, "num_physical_records": 1,
    });
    memory.group("0/links/0", family);
    let width = LinkWidth::new(3).unwrap();
    let mut builder = LinkRowsBuilder::new(width, RowForm::Plain);
    let order = Permutation::from_code(width, 0).unwrap();
    builder.push(order, &[0, 1, 2]).unwrap();
    let cell = ([0, 0], builder.finish_rows());
    memory.cells("0/links/0/0.0_0.0", json!({}), &[cell]);
    let query = in_box("0,0,30,30", Mode::Touch);
    for query in [Query::new(), query] {
        let (result, ..) = run(&memory, &query);
        let links = result.links.as_ref().unwrap();
        assert_eq!((links.width, links.ends.len()), (3, 3), "{links:?}");
    }
}

#[test]
fn a_level_jump_follows_links_to_the_other_level() {
    let mut memory = graph();
    let floats = [5.0_f32, 1.0, 15.0, 1.0];
    let bytes = floats
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    memory.cells(
        "1/vertices",
        json!({"dtype": "float32"}),
        &[([0, 0], bytes)],
    );
    let family = json!({
        "zv_array": "links_family", "level_delta": 1, "link_width": 2, "directed": true,
        "store": "canonical", "sid_ndim": 2, "num_links": 2, "num_physical_records": 2,
    });
    memory.group("0/links/+1", family);
    let mut rows = LinkRowsBuilder::new(LinkWidth::EDGE, RowForm::Plain);
    for row in [[0, 0], [2, 1]] {
        let order = Permutation::from_code(LinkWidth::EDGE, 0).unwrap();
        rows.push(order, &row).unwrap();
    }
    memory.cells(
        "0/links/+1/0.0",
        json!({}),
        &[([0, 0], rows.finish_ragged())],
    );
    let query = in_box("7,0,9,2", Mode::Within).drill(1);
    let (result, _, operators) = run(&memory, &query);
    assert_eq!(xs(&result), [15.0]);
    assert_eq!(operators[0], "LevelJump");
}

/// Number of vertices in each chunk of a large skeleton.
const ROWS: u16 = 65_000;

/// Creates the skeleton of the other tests with [`ROWS`] vertices in each chunk, half of them of
/// each object.
fn large_skeleton() -> TestStore {
    let mut memory = store("skeleton", "implicit_sequential_with_branches");
    let bytes = |values: &mut dyn Iterator<Item = f32>| -> Vec<u8> {
        values.flat_map(f32::to_le_bytes).collect()
    };
    let at = |first: f32| {
        let xs = (0..ROWS).map(|row| first + f32::from(row) / 8192.0);
        bytes(&mut xs.flat_map(|x| [x, 1.0]))
    };
    let radius = || bytes(&mut (0..ROWS).map(f32::from));
    let index = || {
        let (half, rows) = (u64::from(ROWS / 2), u64::from(ROWS));
        let mut index = FragmentIndexBuilder::default();
        index.push_range(0..half).unwrap();
        index.push_range(half..rows).unwrap();
        index.finish()
    };
    let each = |west: Vec<u8>, east: Vec<u8>| [([0, 0], west), ([1, 0], east)];
    let float32 = json!({"dtype": "float32"});
    memory.cells("0/vertices", float32.clone(), &each(at(0.0), at(10.0)));
    memory.cells(
        "0/vertex_attributes/radius",
        float32,
        &each(radius(), radius()),
    );
    memory.cells("0/vertex_fragments", json!({}), &each(index(), index()));
    memory
}

/// Returns the links of fragments of the large skeleton, as child and parent. `east` is the first
/// vertex of the other chunk, to which the third vertex is linked.
fn large_links(fragments: &[Range<u64>], east: u64, has_stored: bool) -> Vec<u64> {
    let stored = |row: u64| match row {
        0 => Some(1),
        1 => Some(2),
        2 => Some(east),
        row if row == east => Some(row + 1),
        _ => None,
    };
    let mut links = Vec::new();
    for fragment in fragments {
        for row in fragment.clone() {
            match stored(row).filter(|_| has_stored) {
                Some(parent) => links.extend([row, parent]),
                None if row > fragment.start => links.extend([row, row - 1]),
                None => {}
            }
        }
    }
    links
}

#[test]
fn large_joins_are_gathered_on_all_cores() {
    let memory = large_skeleton();
    let (half, rows) = (u64::from(ROWS / 2), u64::from(ROWS));
    for (object, radii, has_stored) in [(7, 0..ROWS / 2, true), (9, ROWS / 2..ROWS, false)] {
        let (result, ..) = run(&memory, &Query::new().objects([object]));
        let radii: Vec<f64> = radii.clone().chain(radii).map(f64::from).collect();
        assert!(values(&result.vertex[0]) == radii, "{object}");
        let ids = result.object_ids.as_ref().unwrap();
        assert!(ids.len() == radii.len() && ids.numbers().iter().all(|id| *id == object));
        let expected = large_links(&[0..half, half..rows], half, has_stored);
        assert!(result.links.unwrap().ends == expected, "{object}");
    }
    let (result, ..) = run(&memory, &Query::new());
    let fragments = [
        0..half,
        half..rows,
        rows..rows + half,
        rows + half..2 * rows,
    ];
    assert!(result.links.unwrap().ends == large_links(&fragments, rows, true));
    // Rows up to 6 * 8192; the link from the third to the other chunk leaves the box.
    let (result, ..) = run(&memory, &in_box("0,0,6,2", Mode::Within));
    let ids = result.object_ids.as_ref().unwrap();
    let inside = 6 * 8192 + 1;
    assert_eq!(u64::try_from(ids.len()), Ok(inside));
    let of_seven = ids.numbers().iter().take_while(|id| **id == 7).count();
    assert_eq!(u64::try_from(of_seven), Ok(half));
    let mut expected = large_links(&[0..half, half..inside], rows, true);
    expected.drain(4..6);
    assert!(result.links.unwrap().ends == expected);
}
