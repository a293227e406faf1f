//! Links of 0.9, read from memory.

mod legacy;

use futures_util::FutureExt;
use serde_json::json;
use zvf_format::{
    fragment::FragmentIndexBuilder,
    links::{CrossChunkTableBuilder, LinkRowsBuilder, LinkWidth, Permutation, RowForm, duplicates},
    path::{ChunkCoords, Delta, OffsetCoords},
    ragged,
};
use zvf_model::{generation::Generation, layout::Layout, level::LevelId};

use super::{LinkRecords, LinkSet, LinkView};
use crate::{
    diagnostics::Diagnostics,
    error::CatalogError,
    memory::{OpenCatalog, TestStore, poll_ready},
    selection::Selection,
};

fn open(
    memory: &TestStore,
    delta: i32,
    attributes: &[&str],
    view: LinkView,
    diagnostics: &Diagnostics,
) -> Result<Option<LinkSet>, CatalogError> {
    let catalog = memory.catalog();
    let names: Vec<String> = attributes.iter().map(ToString::to_string).collect();
    let opened = async {
        let level = catalog.level(LevelId::new(0)).await?;
        let target = catalog.level(LevelId::new(u32::from(delta != 0))).await?;
        let delta = Delta::new(delta);
        catalog
            .links(&level, Some(&target), delta, &names, view, diagnostics)
            .await
    };
    poll_ready(opened)
}

fn read(
    memory: &TestStore,
    set: &LinkSet,
    diagnostics: &Diagnostics,
) -> Result<Vec<LinkRecords>, CatalogError> {
    let catalog = memory.catalog();
    let cells: Vec<usize> = (0..set.cells.len()).collect();
    let read = async {
        let level = catalog.level(LevelId::new(0)).await?;
        catalog.link_cells(&level, set, &cells, diagnostics).await
    };
    poll_ready(read)
}

/// Formats records as `0.0:1 1.0:0`.
fn text(read: &[LinkRecords]) -> Vec<String> {
    let mut records = Vec::new();
    for cell in read {
        for ends in cell.ends.chunks(cell.width) {
            let ends = ends.iter().map(|(chunk, row)| {
                let chunk = &cell.chunks[usize::try_from(*chunk).unwrap()];
                format!("{chunk}:{row}")
            });
            records.push(ends.collect::<Vec<_>>().join(" "));
        }
    }
    records
}

fn all(memory: &TestStore, view: LinkView) -> Vec<String> {
    let diagnostics = Diagnostics::new(false);
    let set = open(memory, 0, &[], view, &diagnostics).unwrap().unwrap();
    text(&read(memory, &set, &diagnostics).unwrap())
}

fn rows(form: RowForm, rows: &[(i64, &[u64])]) -> LinkRowsBuilder {
    let width = LinkWidth::new(u64::try_from(rows[0].1.len()).unwrap()).unwrap();
    let mut builder = LinkRowsBuilder::new(width, form);
    for (code, row) in rows {
        let order = Permutation::from_code(width, *code).unwrap();
        builder.push(order, row).unwrap();
    }
    builder
}

fn int32s(numbers: &[i32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

fn family(width: u64, directed: bool, store: &str, physical: u64) -> serde_json::Value {
    json!({
        "zv_array": "links_family", "level_delta": 0, "link_width": width, "directed": directed,
        "store": store, "sid_ndim": 2, "num_links": physical, "num_physical_records": physical,
    })
}

/// Returns a store of edges inside 1.1 and from there to 2.1 and 1.0.
fn edges() -> TestStore {
    let mut memory = TestStore::new(Generation::V0_9, "graph", "explicit");
    memory.group("0/links/0", family(2, false, "canonical", 4));
    let inside = rows(RowForm::Plain, &[(0, &[0, 1]), (0, &[3, 2])]).finish_rows();
    memory.cells("0/links/0/0.0", json!({}), &[([1, 1], inside)]);
    let right = rows(RowForm::Permuted, &[(0, &[1, 7])]).finish_ragged();
    memory.cells("0/links/0/+1.0", json!({}), &[([1, 1], right)]);
    let up = rows(RowForm::Permuted, &[(1, &[8, 2])]).finish_ragged();
    memory.cells("0/links/0/0.+1", json!({}), &[([1, 0], up)]);
    memory
}

const EDGES: [&str; 4] = ["1.1:1 2.1:7", "1.1:2 1.0:8", "1.1:0 1.1:1", "1.1:3 1.1:2"];

/// Asserts that all requests since the last call are for cells, in one round trip.
fn assert_reads_alone(memory: &TestStore) {
    let rounds = memory.rounds();
    assert_eq!(rounds.len(), 1, "{rounds:?}");
    assert!(rounds.iter().flatten().all(|path| path.contains("/c/")));
}

#[test]
fn arrays_are_ordered_as_text_and_ends_keep_input_order() {
    let memory = edges();
    assert_eq!(all(&memory, LinkView::Logical), EDGES);
    memory.rounds();
    // Open arrays are not opened again: one round trip to read.
    assert_eq!(all(&memory, LinkView::Logical), EDGES);
    assert_reads_alone(&memory);
}

#[test]
fn cells_are_described_before_they_are_read() {
    let memory = edges();
    let set = open(&memory, 0, &[], LinkView::Logical, &Diagnostics::new(false))
        .unwrap()
        .unwrap();
    let cells = set.cells.iter().map(|cell| {
        let chunks: Vec<String> = cell
            .chunks
            .as_ref()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        (chunks.join(" "), cell.is_inside)
    });
    let expected = [("1.1 2.1", false), ("1.0 1.1", false), ("1.1 1.1", true)]
        .map(|(chunks, is_inside)| (chunks.to_owned(), is_inside));
    assert!(cells.eq(expected));
    assert_eq!(set.width().unwrap(), Some(LinkWidth::EDGE));
    assert!(set.rows_are_known && !set.may_be_shuffled);
}

/// Returns a triangle over three chunks and one inside, with a copy in each chunk.
fn copies() -> TestStore {
    let mut memory = TestStore::new(Generation::V0_9, "mesh", "explicit");
    memory.group("0/links/0", family(3, false, "duplicate", 4));
    let record = [([1_i64, 0], 1_u64), ([0, 0], 2), ([0, 1], 3)];
    for order in duplicates(&record).unwrap() {
        let slots: Vec<_> = order
            .slots()
            .iter()
            .map(|slot| record[usize::from(*slot)])
            .collect();
        let source = slots[0].0;
        let offsets: Vec<[i64; 2]> = slots[1..]
            .iter()
            .map(|(chunk, _)| [chunk[0] - source[0], chunk[1] - source[1]])
            .collect();
        let stored: Vec<u64> = slots.iter().map(|(_, row)| *row).collect();
        let blob = rows(RowForm::Permuted, &[(order.code(), &stored)]).finish_ragged();
        let segment = OffsetCoords(&offsets).to_string();
        let cell = source.map(|number| u64::try_from(number).unwrap());
        memory.cells(&format!("0/links/0/{segment}"), json!({}), &[(cell, blob)]);
        let values = json!({"dtype": "float32"});
        let value = [(cell, 2.5_f32.to_le_bytes().to_vec())];
        memory.cells(&format!("0/link_attributes/w/0/{segment}"), values, &value);
    }
    let inside = rows(RowForm::Plain, &[(0, &[0, 1, 2])]).finish_rows();
    memory.cells("0/links/0/0.0_0.0", json!({}), &[([2, 2], inside)]);
    memory
}

#[test]
fn copies_count_once_except_in_the_stored_view() {
    let memory = copies();
    let crossing = "1.0:1 0.0:2 0.1:3";
    let inside = "2.2:0 2.2:1 2.2:2";
    assert_eq!(all(&memory, LinkView::Logical), [crossing, inside]);
    assert_eq!(
        all(&memory, LinkView::Stored),
        [crossing, crossing, crossing, inside]
    );
}

#[test]
fn links_without_a_value_are_noted() {
    let memory = copies();
    let diagnostics = Diagnostics::new(false);
    let set = open(&memory, 0, &["w", "none"], LinkView::Logical, &diagnostics)
        .unwrap()
        .unwrap();
    assert!(set.attributes[0].metadata.is_some());
    assert!(set.attributes[1].metadata.is_none());
    let read = read(&memory, &set, &diagnostics).unwrap();
    let values = read[0].attributes[0].as_ref().unwrap();
    assert_eq!(values.bytes.as_ref(), 2.5_f32.to_le_bytes());
    assert_eq!(values.columns, 1);
    assert!(read[1].attributes[0].is_none());
    assert_eq!(diagnostics.finish().1, ["some links have no value of w"]);
}

#[test]
fn streamed_skeletons_are_returned_child_first() {
    let convention = "implicit_sequential_with_branches";
    let mut memory = TestStore::new(Generation::V0_9, "skeleton", convention);
    memory.group("0/links/0", family(2, true, "canonical", 2));
    let branch = rows(RowForm::Plain, &[(0, &[4, 1])]).finish_rows();
    memory.cells("0/links/0/0.0", json!({}), &[([0, 0], branch)]);
    let crossing = rows(RowForm::Plain, &[(0, &[3, 0])]).finish_ragged();
    memory.cells("0/links/0/+1.0", json!({}), &[([0, 0], crossing)]);
    assert_eq!(
        all(&memory, LinkView::Stored),
        ["0.0:3 1.0:0", "0.0:4 0.0:1"]
    );
    let diagnostics = Diagnostics::new(false);
    let set = open(&memory, 0, &[], LinkView::Logical, &diagnostics).unwrap();
    let read = read(&memory, &set.unwrap(), &diagnostics).unwrap();
    assert_eq!(text(&read), ["1.0:0 0.0:3", "0.0:4 0.0:1"]);
    let notes = diagnostics.finish().1;
    assert!(
        notes.iter().any(|note| note.contains("turned round")),
        "{notes:?}"
    );
}

#[test]
fn rows_of_32_bits_are_read() {
    let mut memory = edges();
    let dtype = json!({"dtype": "int32"});
    let inside = int32s(&[0, 1, 3, 2]);
    memory.cells("0/links/0/0.0", dtype.clone(), &[([1, 1], inside)]);
    let right = ragged::encode(&[int32s(&[]), int32s(&[0, 1, 7])]);
    memory.cells("0/links/0/+1.0", dtype.clone(), &[([1, 1], right)]);
    let up = ragged::encode(&[int32s(&[1, 8, 2])]);
    memory.cells("0/links/0/0.+1", dtype, &[([1, 0], up)]);
    assert_eq!(all(&memory, LinkView::Logical), EDGES);
}

#[test]
fn damage_names_its_cell_and_the_rest_is_returned() {
    let odd = ragged::encode(&[int32s(&[0, 1]), int32s(&[7])]);
    let bad: [(&str, [u64; 2], Vec<u8>, &str); 6] = [
        ("0/links/0/0.0", [1, 1], vec![0; 17], "int64"),
        ("0/links/0/0.0", [1, 1], int32s(&[0, -1]), "int32"),
        ("0/links/0/0.0", [1, 1], vec![0; 16], "float64"),
        ("0/links/0/+1.0", [1, 1], vec![1, 0, 0], "int64"),
        ("0/links/0/+1.0", [1, 1], odd, "int32"),
        (
            "0/links/0/+1.0",
            [1, 1],
            ragged::encode(&[int32s(&[2, 1, 7])]),
            "int32",
        ),
    ];
    for (key, chunk, payload, dtype) in bad {
        let mut memory = edges();
        memory.cells(key, json!({"dtype": dtype}), &[(chunk, payload)]);
        check_damage(&memory, key);
    }
    let mut memory = edges();
    memory.without_cell("0/links/0/+1.0", &[1, 1]);
    check_damage(&memory, "0/links/0/+1.0");
}

fn check_damage(memory: &TestStore, key: &str) {
    let diagnostics = Diagnostics::new(false);
    let set = open(memory, 0, &[], LinkView::Logical, &diagnostics)
        .unwrap()
        .unwrap();
    let error = read(memory, &set, &diagnostics).unwrap_err();
    assert_eq!(error.to_string(), format!("{key}, chunk 1.1"));
    let diagnostics = Diagnostics::new(true);
    let rest = read(memory, &set, &diagnostics).unwrap();
    assert_eq!(rest.len(), 3);
    let rest = text(&rest);
    assert!(
        rest.contains(&EDGES[1].to_owned()) && rest.len() < 4,
        "{rest:?}"
    );
    let missing = diagnostics.finish().0;
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].key.as_str(), key);
}

#[test]
fn a_wrong_number_of_link_values_is_damage() {
    let mut memory = copies();
    let values = json!({"dtype": "float32"});
    memory.cells(
        "0/link_attributes/w/0/0.0_0.0",
        values,
        &[([2, 2], vec![0; 6])],
    );
    let diagnostics = Diagnostics::new(true);
    let set = open(&memory, 0, &["w"], LinkView::Logical, &diagnostics)
        .unwrap()
        .unwrap();
    let read = read(&memory, &set, &diagnostics).unwrap();
    assert!(read[1].attributes[0].is_none());
    assert_eq!(read[1].len(), 1);
    let missing = diagnostics.finish().0;
    assert_eq!(missing[0].key.as_str(), "0/link_attributes/w/0/0.0_0.0");
}

#[test]
fn values_of_two_types_are_an_error() {
    let mut memory = copies();
    let values = json!({"dtype": "int16"});
    memory.cells(
        "0/link_attributes/w/0/0.0_0.0",
        values,
        &[([2, 2], vec![0; 2])],
    );
    let error = open(
        &memory,
        0,
        &["w"],
        LinkView::Logical,
        &Diagnostics::new(false),
    )
    .unwrap_err();
    assert!(matches!(error, CatalogError::Damaged(_)), "{error}");
}

#[test]
fn a_store_without_listing_returns_all_or_nothing() {
    let makers: [fn() -> TestStore; 2] = [edges, copies];
    for make in makers {
        let listed = all(&make(), LinkView::Stored);
        let mut memory = make();
        memory.lists = false;
        assert_eq!(all(&memory, LinkView::Stored), listed);
        // Probes are cached.
        memory.rounds();
        assert_eq!(all(&memory, LinkView::Stored), listed);
        assert_reads_alone(&memory);
    }
    let mut memory = edges();
    memory.lists = false;
    let far = rows(RowForm::Permuted, &[(0, &[0, 0])]).finish_ragged();
    memory.cells("0/links/0/+2.0", json!({}), &[([1, 1], far)]);
    memory.group("0/links/0", family(2, false, "canonical", 5));
    refused(&memory);
    let mut memory = edges();
    memory.lists = false;
    let mut silent = family(2, false, "canonical", 4);
    silent["num_links"] = json!(null);
    silent["num_physical_records"] = json!(null);
    memory.group("0/links/0", silent);
    refused(&memory);
}

fn refused(memory: &TestStore) {
    let error = open(memory, 0, &[], LinkView::Logical, &Diagnostics::new(false)).unwrap_err();
    assert!(super::unlisted::is_unlistable(&error), "{error}");
}

#[test]
fn deltas_are_probed_without_a_listing() {
    let mut memory = edges();
    memory.group("0/links/+1", json!({}));
    for lists in [true, false] {
        memory.lists = lists;
        let catalog = memory.catalog();
        let deltas = catalog.stored_link_deltas(LevelId::new(0)).now_or_never();
        let expected = [Delta::INTRA, Delta::new(1)];
        assert_eq!(deltas.unwrap().unwrap(), expected);
    }
}

/// Fine chunks are half as wide as coarse ones.
#[test]
fn links_between_levels_count_from_the_anchor() {
    let mut memory = TestStore::new(Generation::V0_9, "point_cloud", "implicit_sequential");
    memory.group("0/links/+1", {
        let mut family = family(2, true, "canonical", 1);
        family["level_delta"] = json!(1);
        family
    });
    let blob = rows(RowForm::Plain, &[(0, &[5, 6])]).finish_ragged();
    memory.cells("0/links/+1/0.-1", json!({}), &[([3, 2], blob)]);
    let diagnostics = Diagnostics::new(false);
    let set = open(&memory, 1, &[], LinkView::Logical, &diagnostics)
        .unwrap()
        .unwrap();
    assert!(!set.cells[0].is_inside);
    let read = read(&memory, &set, &diagnostics).unwrap();
    assert_eq!(text(&read), ["3.2:5 1.0:6"]);
}
