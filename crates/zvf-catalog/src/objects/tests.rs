//! Requests for finding objects, and what remains of damaged ones.

use serde_json::json;
use zvf_format::{manifest::ObjectManifestBuilder, vlen};
use zvf_model::level::LevelId;

use super::ObjectSet;
use crate::{
    diagnostics::Diagnostics,
    error::{CatalogError, Fault},
    memory::{OpenCatalog, TestStore, poll_ready},
};

const LEVEL: LevelId = LevelId::new(0);

/// Encodes the manifest of a single fragment; `number` is that of the fragment and of its chunk.
fn manifest(number: i64) -> Vec<u8> {
    let mut builder = ObjectManifestBuilder::new(1);
    builder.push_range(&[number], 7..8).unwrap();
    builder.finish()
}

/// Creates a store of twelve objects in six cells of two, whose manifests name their rows.
fn store(ids: &[i64], sorted: bool) -> TestStore {
    let mut memory = TestStore::of_objects();
    memory.group(
        "0/object_index",
        json!({"num_objects": 12, "num_present": 12, "sid_ndim": 1,
            "layout": "vlen_manifests_v2", "object_ids_sorted": sorted}),
    );
    let strings = json!({"data_type": "variable_length_bytes", "fill_value": "",
        "codecs": ["vlen-bytes"]});
    memory.array("0/object_index/manifests", &[12], &[2], &strings);
    for cell in 0..6 {
        let items = [manifest(2 * cell), manifest(2 * cell + 1)];
        let frame = vlen::encode(&items).unwrap();
        memory.put(&format!("0/object_index/manifests/c/{cell}"), &frame);
    }
    memory.array("0/object_index/object_ids", &[12], &[12], &json!({}));
    let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    memory.put("0/object_index/object_ids/c/0", &ids);
    memory
}

fn numbered() -> Vec<i64> {
    (0..12).collect()
}

fn row(objects: &ObjectSet, index: usize) -> Vec<i64> {
    let chunks = objects
        .fragments(index)
        .iter()
        .map(|piece| objects.chunk(piece.chunk).unwrap().coords()[0]);
    chunks.collect()
}

#[test]
fn a_numbered_object_reads_eight_bytes_and_a_cell() {
    let memory = store(&numbered(), true);
    let catalog = memory.catalog();
    let some = poll_ready(catalog.object_list_of(LEVEL, &[7])).unwrap();
    assert_eq!(row(&some.objects, some.indices[0].unwrap()), [7]);
    let rounds = memory.rounds();
    assert_eq!(rounds.len(), 3, "{rounds:?}");
    let ids = "0/object_index/object_ids/c/0 56..64";
    assert_eq!(rounds[2], [ids, "0/object_index/manifests/c/3"]);
    // All of them; after that, nothing more is requested.
    let all = poll_ready(catalog.object_list(LEVEL)).unwrap().unwrap();
    assert_eq!((all.len(), row(&all, 11)), (12, vec![11]));
    assert_eq!(memory.rounds().len(), 1);
    poll_ready(catalog.object_list_of(LEVEL, &[3])).unwrap();
    assert!(memory.rounds().is_empty());
}

#[test]
fn other_ids_are_looked_up() {
    // Row 7 has id 14, and there is no object 7.
    let ids: Vec<i64> = (0..12).map(|id| 2 * id).collect();
    let memory = store(&ids, true);
    let catalog = memory.catalog();
    let some = poll_ready(catalog.object_list_of(LEVEL, &[6])).unwrap();
    let index = some.indices[0].unwrap();
    assert_eq!(
        (row(&some.objects, index), some.objects.row(index)),
        (vec![3], Some(3))
    );
    let rounds = memory.rounds();
    let ids = "0/object_index/object_ids/c/0";
    assert_eq!(
        rounds[3..],
        [vec![ids], vec!["0/object_index/manifests/c/1"]]
    );
    // The ids are cached.
    let some = poll_ready(catalog.object_list_of(LEVEL, &[7])).unwrap();
    assert_eq!(some.indices, [None]);
    assert!(memory.rounds().is_empty());
}

#[test]
fn ids_may_be_in_any_order_but_only_once() {
    let mut ids = numbered();
    ids.swap(2, 9);
    let memory = store(&ids, false);
    let some = poll_ready(memory.catalog().object_list_of(LEVEL, &[9])).unwrap();
    assert_eq!(row(&some.objects, some.indices[0].unwrap()), [2]);
    let fault = |ids: &[i64], sorted| {
        let memory = store(ids, sorted);
        match poll_ready(memory.catalog().object_list(LEVEL)) {
            Err(CatalogError::Damaged(damage)) => {
                assert_eq!(damage.key.as_str(), "0/object_index/object_ids");
                damage.fault
            }
            other => unreachable!("{other:?}"),
        }
    };
    assert!(matches!(fault(&ids, true), Fault::Order));
    ids[9] = 5;
    assert!(matches!(fault(&ids, false), Fault::Twice(5)));
    // Missing cells are twelve times id 0.
    assert!(matches!(fault(&[0; 12], true), Fault::Twice(0)));
}

#[test]
fn damage_is_skipped_with_keep_going() {
    let mut memory = store(&numbered(), true);
    let frame = vlen::encode(&[b"no manifest".to_vec(), manifest(3)]).unwrap();
    memory.put("0/object_index/manifests/c/1", &frame);
    memory.put("0/object_index/manifests/c/4", b"broken");
    let catalog = memory.catalog();
    let level = poll_ready(catalog.level(LEVEL)).unwrap();
    let strict = poll_ready(catalog.objects(&level, &Diagnostics::new(false)));
    assert!(matches!(strict, Err(CatalogError::Damaged(damage))
        if damage.key.as_str() == "0/object_index/manifests/c/1"));
    let diagnostics = Diagnostics::new(true);
    let objects = poll_ready(catalog.objects(&level, &diagnostics))
        .unwrap()
        .unwrap();
    assert!(objects.is_incomplete());
    let rows: Vec<Vec<i64>> = (0..12).map(|index| row(&objects, index)).collect();
    let lost = [2, 8, 9];
    for (index, found) in (0..).zip(&rows) {
        let expected = if lost.contains(&index) {
            vec![]
        } else {
            vec![index]
        };
        assert_eq!(found, &expected);
    }
    let keys = diagnostics
        .finish()
        .0
        .into_iter()
        .map(|missing| missing.key.to_string());
    let expected = [1, 4].map(|cell| format!("0/object_index/manifests/c/{cell}"));
    assert_eq!(keys.collect::<Vec<_>>(), expected);
    // Skipped damage still fails a strict query, without affecting others.
    assert!(poll_ready(catalog.objects(&level, &Diagnostics::new(false))).is_err());
    assert!(poll_ready(catalog.object_list_of(LEVEL, &[3])).is_ok());
    assert!(poll_ready(catalog.object_list_of(LEVEL, &[2])).is_err());
    assert!(poll_ready(catalog.object_list_of(LEVEL, &[8])).is_err());
}

#[test]
fn a_missing_cell_is_damage_unless_its_objects_may_be_empty() {
    let mut memory = store(&numbered(), true);
    memory.without_cell("0/object_index/manifests", &[3]);
    let catalog = memory.catalog();
    let is_missing = |error: CatalogError| match error {
        CatalogError::Damaged(damage) => {
            assert_eq!(damage.key.as_str(), "0/object_index/manifests/c/3");
            matches!(damage.fault, Fault::MissingCell)
        }
        other => unreachable!("{other:?}"),
    };
    let level = poll_ready(catalog.level(LEVEL)).unwrap();
    for _ in 0..2 {
        assert!(is_missing(
            poll_ready(catalog.object_list(LEVEL)).unwrap_err()
        ));
        let lookup = poll_ready(catalog.object_list_of(LEVEL, &[6]));
        assert!(is_missing(lookup.unwrap_err()));
        let diagnostics = Diagnostics::new(true);
        let objects = poll_ready(catalog.objects(&level, &diagnostics))
            .unwrap()
            .unwrap();
        assert!(objects.is_incomplete() && row(&objects, 6).is_empty());
        assert_eq!(row(&objects, 8), [8]);
    }
    // Two of twelve objects are empty.
    let index = json!({"num_objects": 12, "num_present": 10, "sid_ndim": 1,
        "layout": "vlen_manifests_v2", "object_ids_sorted": true});
    memory.group("0/object_index", index);
    let objects = poll_ready(memory.catalog().object_list(LEVEL))
        .unwrap()
        .unwrap();
    assert!(row(&objects, 6).is_empty() && !objects.is_incomplete());
}

#[test]
fn damage_after_a_long_range_costs_no_more_than_the_manifest() {
    let mut memory = store(&numbered(), true);
    let mut builder = ObjectManifestBuilder::new(1);
    builder.push_range(&[0], 0..u32::MAX).unwrap();
    let mut damaged = builder.finish();
    // A second block, of a mode that does not exist.
    damaged[0] = 2;
    damaged.extend_from_slice(&[9; 16]);
    let frame = vlen::encode(&[damaged, manifest(1)]).unwrap();
    memory.put("0/object_index/manifests/c/0", &frame);
    let catalog = memory.catalog();
    let level = poll_ready(catalog.level(LEVEL)).unwrap();
    let diagnostics = Diagnostics::new(true);
    let objects = poll_ready(catalog.objects(&level, &diagnostics))
        .unwrap()
        .unwrap();
    assert!(row(&objects, 0).is_empty() && row(&objects, 1) == [1]);
    assert_eq!(diagnostics.finish().0.len(), 1);
}

#[test]
fn a_manifest_cannot_take_more_than_the_budget() {
    let mut memory = store(&numbered(), true);
    let mut builder = ObjectManifestBuilder::new(1);
    builder.push_range(&[0], 0..u32::MAX).unwrap();
    let frame = vlen::encode(&[builder.finish(), manifest(1)]).unwrap();
    memory.put("0/object_index/manifests/c/0", &frame);
    let catalog = memory.catalog();
    let level = poll_ready(catalog.level(LEVEL)).unwrap();
    for keep_going in [false, true] {
        let objects = poll_ready(catalog.objects(&level, &Diagnostics::new(keep_going)));
        assert!(matches!(objects, Err(CatalogError::OverBudget { .. })));
    }
}

#[test]
fn chunks_are_numbered_across_cells_in_order_of_appearance() {
    let mut memory = store(&numbered(), true);
    let chunk_of = |row: i64| (row * 5 + 1).rem_euclid(7);
    for cell in 0..6 {
        let items = [2 * cell, 2 * cell + 1].map(|row| manifest(chunk_of(row)));
        let frame = vlen::encode(&items).unwrap();
        memory.put(&format!("0/object_index/manifests/c/{cell}"), &frame);
    }
    let objects = poll_ready(memory.catalog().object_list(LEVEL))
        .unwrap()
        .unwrap();
    let chunks = (0..8).map_while(|number| Some(objects.chunk(number)?.coords()[0]));
    assert_eq!(chunks.collect::<Vec<_>>(), [1, 6, 4, 2, 0, 5, 3]);
    for index in 0..12 {
        assert_eq!(
            row(&objects, usize::try_from(index).unwrap()),
            [chunk_of(index)]
        );
        assert_eq!(
            objects.fragments(usize::try_from(index).unwrap())[0].fragment,
            7
        );
    }
}

#[test]
fn inconsistent_indexes_are_rejected() {
    let check = |change: &dyn Fn(&mut TestStore), key: &str| {
        let mut memory = store(&numbered(), true);
        change(&mut memory);
        match poll_ready(memory.catalog().object_list(LEVEL)) {
            Err(CatalogError::Damaged(damage)) => assert_eq!(damage.key.as_str(), key),
            other => unreachable!("{key}: {other:?}"),
        }
    };
    let manifests = "0/object_index/manifests";
    let strings = json!({"data_type": "variable_length_bytes", "fill_value": "",
        "codecs": ["vlen-bytes"]});
    check(
        &|memory| memory.array(manifests, &[11], &[2], &strings),
        manifests,
    );
    check(
        &|memory| memory.array(manifests, &[12], &[2], &json!({})),
        manifests,
    );
    check(
        &|memory| memory.array(manifests, &[12], &[4], &strings),
        "0/object_index/manifests/c/0",
    );
    check(&|memory| memory.group(manifests, json!({})), manifests);
    let ids = "0/object_index/object_ids";
    check(&|memory| memory.array(ids, &[13], &[13], &json!({})), ids);
    let cut = "0/object_index/object_ids/c/0";
    check(&|memory| memory.put(cut, &[0; 88]), cut);
    let unsigned = json!({"data_type": "uint64"});
    check(&|memory| memory.array(ids, &[12], &[12], &unsigned), ids);
    let index = json!({"num_objects": 12, "sid_ndim": 3, "layout": "vlen_manifests_v2"});
    check(
        &|memory| memory.group("0/object_index", index.clone()),
        "0/object_index",
    );
}
