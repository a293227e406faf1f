//! Links of the generations before 0.9, and what all have in common.

use super::*;

fn inside_family(width: u64) -> serde_json::Value {
    json!({"zv_array": "links", "dtype": "int64", "link_width": width, "level_delta": 0})
}

fn table_family(records: u64) -> serde_json::Value {
    json!({
        "zv_array": "cross_chunk_links", "level_delta": 0, "link_width": 2,
        "num_links": records, "sid_ndim": 2,
    })
}

/// Two links inside chunks and one between.
fn table(generation: Generation, kind: &str, convention: &str) -> TestStore {
    let mut memory = TestStore::new(generation, kind, convention);
    memory.group("0/links/0", inside_family(2));
    for (chunk, row) in [("10.0", [0, 1]), ("2.0", [2, 0])] {
        let payload = rows(RowForm::Plain, &[(0, &row)]).finish_rows();
        memory.child(&format!("0/links/0/{chunk}"), payload);
    }
    let mut table = CrossChunkTableBuilder::new(LinkWidth::EDGE, 2);
    table.push(&[([2, 0], 4), ([1, 0], 3)]).unwrap();
    memory.group("0/cross_chunk_links/0", table_family(1));
    memory.child("0/cross_chunk_links/0/data", table.finish());
    memory
}

#[test]
fn tables_come_after_links_inside_chunks_by_number() {
    let memory = table(Generation::V0_7, "graph", "explicit");
    let expected = ["2.0:2 2.0:0", "10.0:0 10.0:1", "2.0:4 1.0:3"];
    assert_eq!(all(&memory, LinkView::Logical), expected);
    let set = open(&memory, 0, &[], LinkView::Logical, &Diagnostics::new(false))
        .unwrap()
        .unwrap();
    assert!(set.rows_are_known && set.may_be_shuffled);
    assert!(set.cells[2].chunks.is_none());
    let diagnostics = Diagnostics::new(false);
    let chunk = &set.cells[0].chunks.as_ref().unwrap()[0];
    set.note_fragments(chunk, 1, &diagnostics);
    set.note_fragments(chunk, 2, &diagnostics);
    assert_eq!(diagnostics.finish().1.len(), 1);
}

#[test]
fn rows_of_paths_are_not_known_where_writers_left_others() {
    let cases = [
        (Generation::V0_6, "line", false),
        (Generation::V0_7, "streamline", false),
        (Generation::V0_7, "polyline", false),
        (Generation::V0_9, "line", false),
        (Generation::V0_9, "polyline", true),
        (Generation::V0_7, "graph", true),
    ];
    for (generation, kind, known) in cases {
        let memory = if generation == Generation::V0_9 {
            edges().with_root_of(TestStore::new(generation, kind, "implicit_sequential"))
        } else {
            let convention = if known {
                "explicit"
            } else {
                "implicit_sequential"
            };
            table(generation, kind, convention)
        };
        let diagnostics = Diagnostics::new(false);
        let set = open(&memory, 0, &[], LinkView::Logical, &diagnostics)
            .unwrap()
            .unwrap();
        assert_eq!(set.rows_are_known, known, "{generation:?} {kind}");
        assert_eq!(
            diagnostics.finish().1.is_empty(),
            known,
            "{generation:?} {kind}"
        );
    }
}

#[test]
fn tables_with_other_counts_than_declared_are_damage() {
    let mut memory = table(Generation::V0_6, "graph", "explicit");
    memory.group("0/cross_chunk_links/0", table_family(2));
    let diagnostics = Diagnostics::new(false);
    let set = open(&memory, 0, &[], LinkView::Logical, &diagnostics)
        .unwrap()
        .unwrap();
    let error = read(&memory, &set, &diagnostics).unwrap_err();
    assert_eq!(error.to_string(), "0/cross_chunk_links/0/data");
}

#[test]
fn links_of_two_widths_have_none() {
    let mut memory = table(Generation::V0_7, "graph", "explicit");
    memory.group("0/links/0", inside_family(1));
    let set = open(&memory, 0, &[], LinkView::Logical, &Diagnostics::new(false));
    assert!(set.unwrap().unwrap().width().is_err());
}

#[test]
fn links_in_shards_of_old_are_found() {
    let mut memory = table(Generation::V0_7, "graph", "explicit");
    let packed = rows(RowForm::Plain, &[(0, &[8, 9]), (0, &[7, 6])]).finish_rows();
    memory.child("0/links/0/__shard_000000", packed);
    let index = json!({"3.0": [0, 16], "2.0": [16, 16]});
    memory.attributes("0/links/0/__shard_000000", json!({"shard_index": index}));
    // A chunk of its own hides what was packed of it.
    let expected = ["2.0:2 2.0:0", "3.0:8 3.0:9", "10.0:0 10.0:1", "2.0:4 1.0:3"];
    assert_eq!(all(&memory, LinkView::Logical), expected);
}

#[test]
fn cells_of_other_layouts_are_refused() {
    let mut memory = TestStore::new(Generation::V0_8_0, "graph", "explicit");
    memory.group("0/cross_chunk_links/0", table_family(1));
    let blob = rows(RowForm::Permuted, &[(1, &[3, 4])]).finish_cell();
    memory.child("0/cross_chunk_links/0/1.0.2.0", blob);
    assert_eq!(all(&memory, LinkView::Logical), ["2.0:4 1.0:3"]);
    memory.child("0/cross_chunk_links/0/k2", Vec::new());
    let error = open(&memory, 0, &[], LinkView::Logical, &Diagnostics::new(false)).unwrap_err();
    assert_eq!(error.to_string(), "0/cross_chunk_links/0/k2");
}

/// Edges of 0.8 as numbers, with room for three in a chunk.
fn padded(kind: &str, rows: &[u8], used: Option<u64>) -> TestStore {
    let mut memory = TestStore::new(Generation::V0_8_0, "graph", "explicit");
    memory.layout = Layout::PADDED;
    memory.array(
        "0/links/0",
        &[4, 4, 3, 2],
        &[1, 1, 3, 2],
        &json!({"data_type": kind}),
    );
    memory.attributes("0/links/0", inside_family(2));
    memory.cell("0/links/0", &[1, 0, 0, 0], rows);
    let mut index = FragmentIndexBuilder::default();
    index.push_range(0..9).unwrap();
    for chunk in ["1.0", "2.0"] {
        memory.group("0/vertex_fragments", json!({}));
        memory.child(&format!("0/vertex_fragments/{chunk}"), index.finish());
    }
    if let Some(used) = used {
        let mut index = FragmentIndexBuilder::default();
        index.push_range(0..used).unwrap();
        memory.group("0/link_fragments", json!({}));
        memory.child("0/link_fragments/1.0", index.finish());
    }
    memory
}

#[test]
fn padded_links_end_where_their_fill_begins() {
    let narrow = int32s(&[0, 1, 2, 0, -1, -1]);
    let wide: Vec<u8> = [0_i64, 1, 2, 0, -1, -1]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let expected = ["1.0:0 1.0:1", "1.0:2 1.0:0"];
    for used in [None, Some(2)] {
        assert_eq!(
            all(&padded("int32", &narrow, used), LinkView::Logical),
            expected
        );
        assert_eq!(
            all(&padded("int64", &wide, used), LinkView::Logical),
            expected
        );
    }
    // Fill of another kind, which only the fragments tell from links.
    let zeros = int32s(&[0, 1, 0, 0, 0, 0]);
    let memory = padded("int32", &zeros, Some(1));
    assert_eq!(all(&memory, LinkView::Logical), ["1.0:0 1.0:1"]);
    let broken = [
        (int32s(&[0, 1, -1, 4, -1, -1]), None),
        (int32s(&[0, 1, -1, -1, 2, 0]), None),
        (narrow.clone(), Some(1)),
        (narrow, Some(3)),
    ];
    for (rows, used) in broken {
        let memory = padded("int32", &rows, used);
        let diagnostics = Diagnostics::new(false);
        let set = open(&memory, 0, &[], LinkView::Logical, &diagnostics)
            .unwrap()
            .unwrap();
        let error = read(&memory, &set, &diagnostics).unwrap_err();
        assert_eq!(error.to_string(), "0/links/0, chunk 1.0");
    }
}

#[test]
fn links_in_native_shards_of_0_8_1_are_elements() {
    let mut memory = table(Generation::V0_7, "graph", "explicit");
    memory.layout = Layout::of(Generation::V0_8_1);
    memory.remove("0/links/0");
    memory.remove("0/cross_chunk_links/0");
    let near = rows(RowForm::Plain, &[(0, &[0, 1])]).finish_rows();
    let far = rows(RowForm::Plain, &[(0, &[3, 2]), (0, &[1, 2])]).finish_rows();
    let mut attributes = inside_family(2);
    attributes["chunk_grid_origin"] = json!([-2, 0]);
    attributes["nonempty_chunks"] = json!(["-1.1", "-2.0"]);
    memory.cells("0/links/0", json!({}), &[([0, 0], near), ([1, 1], far)]);
    memory.attributes("0/links/0", attributes);
    let expected = ["-2.0:0 -2.0:1", "-1.1:3 -1.1:2", "-1.1:1 -1.1:2"];
    assert_eq!(all(&memory, LinkView::Logical), expected);
}

#[test]
fn cells_cut_between_records_are_noted() {
    let notes = |memory: &TestStore| {
        let catalog = memory.catalog();
        let none = Selection::none();
        let links = catalog.stored_links(LevelId::new(0), Delta::INTRA, &none, false);
        links.now_or_never().unwrap().unwrap().unwrap().notes
    };
    assert!(notes(&edges()).is_empty() && notes(&copies()).is_empty());
    let mut memory = edges();
    let cut = rows(RowForm::Plain, &[(0, &[0, 1])]).finish_rows();
    memory.cell("0/links/0/0.0", &[1, 1], &cut);
    assert_eq!(notes(&memory), ["0/links/0: 3 links, where 4 are declared"]);
}

#[test]
fn links_take_no_more_memory_than_allowed() {
    let mut memory = edges();
    memory.budget = 40;
    let diagnostics = Diagnostics::new(true);
    let set = open(&memory, 0, &[], LinkView::Logical, &diagnostics)
        .unwrap()
        .unwrap();
    let error = read(&memory, &set, &diagnostics).unwrap_err();
    assert!(
        matches!(
            error,
            CatalogError::OverBudget {
                bytes: 128,
                budget: 40,
                ..
            }
        ),
        "{error}"
    );
}

/// The record of two levels has a copy led by each of its chunks, as chunks of
/// different levels were compared by their numbers.
#[test]
fn copies_by_cell_key_count_once_at_every_delta() {
    let mut memory = TestStore::new(Generation::V0_8_1, "mesh", "explicit");
    let record = [([1_i64, 0], 7_u64), ([0, 0], 4)];
    for delta in ["0", "+1"] {
        let mut family = table_family(1);
        family["level_delta"] = json!(delta.parse::<i32>().unwrap());
        family["store"] = json!("duplicate");
        family["num_physical_records"] = json!(2);
        let key = format!("0/cross_chunk_links/{delta}");
        memory.group(&key, family);
        for order in duplicates(&record).unwrap() {
            let slots: Vec<_> = order
                .slots()
                .iter()
                .map(|slot| record[usize::from(*slot)])
                .collect();
            let stored: Vec<u64> = slots.iter().map(|(_, row)| *row).collect();
            let coords: Vec<i64> = slots.iter().flat_map(|(chunk, _)| *chunk).collect();
            let blob = rows(RowForm::Permuted, &[(order.code(), &stored)]).finish_cell();
            memory.child(&format!("{key}/{}", ChunkCoords(&coords)), blob);
        }
    }
    for delta in [0, 1] {
        for (view, count) in [(LinkView::Logical, 1), (LinkView::Stored, 2)] {
            let diagnostics = Diagnostics::new(false);
            let set = open(&memory, delta, &[], view, &diagnostics)
                .unwrap()
                .unwrap();
            let read = read(&memory, &set, &diagnostics).unwrap();
            assert_eq!(text(&read), vec!["1.0:7 0.0:4"; count]);
            set.note_counts(&read, &diagnostics);
            assert!(diagnostics.finish().1.is_empty());
        }
    }
}

/// Values of links inside chunks and between are kept apart up to 0.8.1.
#[test]
fn values_of_both_kinds_of_links_are_one_attribute() {
    let mut memory = table(Generation::V0_7, "graph", "explicit");
    let values = json!({"zv_array": "link_attribute", "dtype": "int16"});
    memory.group("0/link_attributes/w/0", values.clone());
    memory.child("0/link_attributes/w/0/2.0", vec![1, 0, 2, 0]);
    let diagnostics = Diagnostics::new(false);
    let set = open(&memory, 0, &["w"], LinkView::Logical, &diagnostics)
        .unwrap()
        .unwrap();
    let some = read(&memory, &set, &diagnostics).unwrap();
    let columns = |read: &[LinkRecords]| -> Vec<Option<u32>> {
        let cells = read.iter().map(|cell| cell.attributes[0].as_ref());
        cells.map(|cell| cell.map(|cell| cell.columns)).collect()
    };
    // Writers of that time dropped those of links between chunks.
    assert_eq!(columns(&some), [Some(2), None, None]);
    assert_eq!(diagnostics.finish().1.len(), 1);
    memory.group("0/cross_chunk_link_attributes/w/0", values);
    memory.child("0/cross_chunk_link_attributes/w/0/data", vec![3, 0, 4, 0]);
    let diagnostics = Diagnostics::new(false);
    let set = open(&memory, 0, &["w"], LinkView::Logical, &diagnostics)
        .unwrap()
        .unwrap();
    let all = read(&memory, &set, &diagnostics).unwrap();
    assert_eq!(columns(&all), [Some(2), None, Some(2)]);
    assert!(diagnostics.finish().1.is_empty());
}
