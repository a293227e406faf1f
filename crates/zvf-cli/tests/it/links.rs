//! `zvf links`, and what `zvf info --physical` shows of links.

use serde_json::{Value, json};

use crate::{stores::Bench, unpack};

/// Returns a bench with a recorded store as `a.zv`.
fn bench(archive: &str, store: &str) -> Bench {
    let bench = Bench::new();
    unpack(archive, store, &bench.path("a.zv"));
    bench
}

fn deltas(listed: &Value) -> Vec<i64> {
    let links = listed["links"].as_array().unwrap().iter();
    links
        .map(|links| links["delta"].as_i64().unwrap())
        .collect()
}

#[test]
fn links_are_listed_by_delta() {
    let bench = bench("zvf-08", "0.8.1/graph.zv");
    let listed = bench.json(&["links", "@a.zv"]);
    assert_eq!(deltas(&listed), [0]);
    let families = &listed["links"][0]["families"];
    let expected = json!([
        {"path": "0/links/0", "ends": 2},
        {"path": "0/cross_chunk_links/0", "ends": 2},
    ]);
    assert_eq!(*families, expected);
    let attributes = listed["links"][0]["attributes"].as_array().unwrap();
    let paths: Vec<&str> = attributes
        .iter()
        .flat_map(|column| column["paths"].as_array().unwrap())
        .map(|path| path.as_str().unwrap())
        .collect();
    assert!(
        paths
            .iter()
            .any(|path| path.starts_with("0/link_attributes/"))
    );
    let between = "0/cross_chunk_link_attributes/";
    assert!(
        paths.iter().any(|path| path.starts_with(between)),
        "{paths:?}"
    );
    let said = bench.says(&["links", "@a.zv"]);
    assert!(said.trim_start().starts_with("links "), "{said}");
    assert!(said.contains("0/cross_chunk_links/0"), "{said}");
}

#[test]
fn links_to_parents_are_printed_as_stored() {
    let bench = bench("zvf-09", "pyramid_polylines_depth2/store.zarrvectors");
    let listed = bench.json(&["links", "@a.zv"]);
    assert!(
        deltas(&listed).contains(&1) && deltas(&listed).contains(&2),
        "{listed}"
    );
    let vertices = bench.json(&["info", "@a.zv"])["levels"][0]["vertices"].clone();
    let report = bench.json(&["links", "@a.zv", "--delta", "1"]);
    let links = report["families"][0]["links"].as_array().unwrap();
    // Each vertex has one parent.
    assert_eq!(json!(links.len()), vertices);
    let end = &links[0][1];
    assert_eq!(end["chunk"].as_array().unwrap().len(), 3, "{end}");
    assert!(end["row"].is_u64());
    let table = bench.says(&["links", "@a.zv", "--delta", "1"]);
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("chunk_0,row_0,chunk_1,row_1"));
    let first = &links[0][0];
    let chunk: Vec<String> = first["chunk"]
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    let start = format!("{},{},", chunk.join("."), first["row"]);
    assert!(lines.next().unwrap().starts_with(&start));
    assert_eq!(lines.count() + 1, links.len());
    // There is no level above the coarsest.
    assert_eq!(bench.code(&["links", "@a.zv", "--level", "9"]), Some(2));
}

#[test]
fn info_lists_links_on_request() {
    let bench = bench("zvf-09", "pyramid_polylines_depth2/store.zarrvectors");
    let plain = bench.json(&["info", "@a.zv"]);
    assert_eq!(
        plain["conventions"]["links_convention"],
        "implicit_sequential"
    );
    assert!(
        plain["capabilities"]
            .as_array()
            .unwrap()
            .contains(&json!("multiscale_links"))
    );
    assert!(plain["levels"][0].get("stored_links").is_none());
    let physical = bench.json(&["info", "@a.zv", "--physical"]);
    let listed = bench.json(&["links", "@a.zv"]);
    assert_eq!(physical["levels"][0]["stored_links"], listed["links"]);
    let said = bench.says(&["info", "@a.zv", "--physical"]);
    for part in [
        "links_convention",
        "implicit_sequential",
        "multiscale_links",
        "0/links/+1",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
