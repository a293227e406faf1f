//! Links that are invalid, misplaced, superfluous or missing.

use serde_json::json;
use zvf_build::{GeometryKind, Profile};
use zvf_testkit::stores::{Recipe, RecipeProfile as Form, RecordPolicy, StoreKind, make};

use super::made::{Made, created, design, graph, made, recorded, set};

const INSIDE: &str = "0/links/0/0.0/c/0/0";
const BETWEEN: &str = "0/links/0/+1.0/c/0/0";
const GROUPS: &str = "0/link_fragments/c/0/0";
const WEIGHT: &str = "0/link_attributes/weight/0/+1.0/c/0/0";

fn edges() -> Made {
    made(GeometryKind::Graphs)
}

/// L4 does not compare unreadable links.
const UNREAD: &str = "L4-000";

#[test]
fn undecodable_links_are_found() {
    edges()
        .cell(INSIDE, |payload| payload.truncate(31))
        .breaks(&["L3-103", UNREAD]);
    // Two rows in a group that declares an odd offset.
    edges().number(BETWEEN, 1, 8).breaks(&["L3-103", UNREAD]);
    edges().number(BETWEEN, 2, 2).breaks(&["L3-104", UNREAD]);
    edges().number(BETWEEN, 3, -1).breaks(&["L3-105", UNREAD]);
}

#[test]
fn links_to_missing_vertices_are_found() {
    edges().number(INSIDE, 1, 3).breaks(&["L3-105"]);
    edges().number(BETWEEN, 4, 2).breaks(&["L3-105"]);
    let moved = edges()
        .rename("0/links/0/+1.0", "0/links/0/+2.0")
        .rename(
            "0/link_attributes/weight/0/+1.0",
            "0/link_attributes/weight/0/+2.0",
        )
        .set("0/links/0/+2.0", "offsets", &json!([[2, 0]]))
        .set(
            "0/link_attributes/weight/0/+2.0",
            "offsets",
            &json!([[2, 0]]),
        );
    moved.breaks(&["L3-106"]);
}

#[test]
fn link_arrays_that_cannot_be_opened_are_found() {
    let codes = edges()
        .set("0/links/0/+1.0", "has_perm", &json!(false))
        .codes();
    assert!(
        codes.contains("ZV-L3-100") && codes.contains("ZV-L4-000"),
        "{codes:?}"
    );
    let codes = edges().rename("0/links/0/+1.0", "0/links/0/east").codes();
    assert!(
        codes.contains("ZV-L3-100") && codes.contains("ZV-L4-000"),
        "{codes:?}"
    );
    let family = br#"{"zarr_format":3,"node_type":"group","attributes":
        {"zv_array":"links_family","level_delta":1,"link_width":2,"sid_ndim":2}}"#;
    let codes = edges().add("0/links/+1/zarr.json", family).codes();
    assert!(codes.contains("ZV-L3-100"), "{codes:?}");
}

#[test]
fn wrong_link_counts_are_found() {
    let family = "0/links/0";
    let weight = "0/link_attributes/weight/0";
    edges()
        .set(family, "num_links", &json!(6))
        .set(weight, "num_links", &json!(6))
        .breaks(&["L3-111"]);
    edges()
        .set(family, "num_physical_records", &json!(4))
        .breaks(&["L3-111"]);
    edges()
        .del(family, "num_links")
        .del(family, "num_physical_records")
        .breaks(&["L3-112"]);
}

#[test]
fn wrong_link_groups_are_found() {
    // One range of two links: its start and its length are the fourth and fifth 64-bit integers.
    edges().number(GROUPS, 4, 3).breaks(&["L3-113"]);
    edges().number(GROUPS, 4, 1).breaks(&["L3-113"]);
    edges()
        .remove(GROUPS)
        .set("0/link_fragments", "nonempty_chunks", &json!(["1.0"]))
        .breaks(&["L3-114"]);
}

#[test]
fn wrong_link_values_are_found() {
    edges()
        .cell(WEIGHT, |payload| payload.truncate(6))
        .breaks(&["L3-115"]);
    edges()
        .cell(WEIGHT, |payload| payload.truncate(4))
        .breaks(&["L3-115"]);
    edges()
        .cell(WEIGHT, |payload| payload.extend([0; 8]))
        .breaks(&["L3-115", "L3-116"]);
    edges()
        .remove(WEIGHT)
        .set(
            "0/link_attributes/weight/0/+1.0",
            "nonempty_chunks",
            &json!([]),
        )
        .breaks(&["L3-115"]);
    edges()
        .remove("0/link_attributes/weight/0/+1.0")
        .breaks(&["L3-115"]);
    edges()
        .set("0/link_attributes/weight/0/+1.0", "row_shape", &json!([3]))
        .breaks(&["L3-116"]);
    let codes = recorded("zvf-07", "graph.zv").codes();
    assert!(codes.contains("ZV-L3-117"), "{codes:?}");
}

#[test]
fn differing_copies_of_links_are_found() {
    let mut two = design(GeometryKind::Graphs, Profile::V09);
    two.duplicate = true;
    let copies = || created(graph(), two.clone());
    copies().breaks(&[]);
    copies().number(BETWEEN, 3, 0).breaks(&["L3-110"]);
    let codes = copies()
        .remove("0/links/0/-1.0")
        .set("0/links/0", "num_physical_records", &json!(5))
        .codes();
    assert!(codes.contains("ZV-L3-110"), "{codes:?}");
}

#[test]
fn wrong_order_of_ends_is_found() {
    // The first face between chunks has vertices 1 and 2 of the first chunk.
    let path = "0/links/0/0.0_+1.0/c/0/0";
    let turned = made(GeometryKind::Mesh).cell(path, |payload| {
        set(payload, 3, 2);
        set(payload, 4, 1);
    });
    let codes = turned.codes();
    assert!(codes.contains("ZV-L3-108"), "{codes:?}");
}

/// Returns a store of 0.8 and the payloads of its cross-chunk link cells.
fn cells(policy: RecordPolicy) -> (Made, Vec<String>) {
    let recipe = Recipe {
        seed: 5,
        kind: StoreKind::Graph,
        profile: Form::V081,
        policy,
        size: 40,
        ..Recipe::default()
    };
    let made = Made(make(&recipe).files);
    let cells = made
        .0
        .iter()
        .filter_map(|(path, _)| {
            let cell = path.strip_prefix("0/cross_chunk_links/0/")?;
            cell.strip_suffix("/zarr.json").map(str::to_owned)
        })
        .collect();
    (made, cells)
}

#[test]
fn links_in_cells_of_another_order_are_found() {
    let (made, names) = cells(RecordPolicy::Directed);
    let name = names.first().unwrap();
    // The count and the offset of each record are followed by the order and the rows.
    let file = format!("0/cross_chunk_links/0/{name}/c/0");
    let turned = made.bytes(&file, |payload| {
        let records = payload[0] as usize;
        set(payload, 1 + records, 1);
    });
    assert!(turned.codes().contains("ZV-L3-109"), "{:?}", turned.codes());

    let (made, names) = cells(RecordPolicy::Canonical);
    let name = names
        .iter()
        .find(|name| {
            let numbers: Vec<&str> = name.split('.').collect();
            numbers[..numbers.len() / 2] != numbers[numbers.len() / 2..]
        })
        .unwrap();
    let numbers: Vec<&str> = name.split('.').collect();
    let (one, other) = numbers.split_at(numbers.len() / 2);
    let other = format!("{}.{}", other.join("."), one.join("."));
    let folder = "0/cross_chunk_links/0";
    let moved = made.rename(&format!("{folder}/{name}"), &format!("{folder}/{other}"));
    assert!(moved.codes().contains("ZV-L3-107"), "{:?}", moved.codes());
}

#[test]
fn links_of_two_widths_or_generations_are_found() {
    let codes = recorded("zvf-07", "lowlevel_fragments.zv").codes();
    assert!(codes.contains("ZV-L3-101"), "{codes:?}");
    let group = br#"{"zarr_format":3,"node_type":"group","attributes":{}}"#;
    let pyramid = recorded("zvf-09", "pyramid_polylines_depth2/store.zarrvectors");
    let codes = pyramid
        .add("1/cross_chunk_links/0/0.0.0.1.0.0/zarr.json", group)
        .codes();
    assert!(codes.contains("ZV-L3-120"), "{codes:?}");
}
