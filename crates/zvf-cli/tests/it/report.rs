//! Reports of a result, as JSON and as text.

use serde_json::json;
use zvf::{QueryResult, Skipped};
use zvf_cli::commands::query::{QueryOutput, ResultCounts, preview};
use zvf_model::key::Key;

use crate::results::{graph, in_axes, nothing, paths, points, rows, words, written};

fn report(result: &QueryResult) -> QueryOutput {
    let mut report = QueryOutput::new("a.zv");
    report.result(result);
    report.cost(12, 4500);
    report
}

#[test]
fn all_keys_are_always_present() {
    let expected = json!({
        "level": 2, "vertices": 3, "objects": 2, "links": 0, "requests": 12,
        "bytes_read": 4500, "missing": [], "notes": [],
    });
    assert_eq!(report(&points()).object(), expected);
    let expected = json!({
        "level": 0, "vertices": 6, "objects": 2, "links": 0, "parts": 3, "requests": 12,
        "bytes_read": 4500, "missing": [], "notes": [],
    });
    assert_eq!(report(&paths()).object(), expected);
    assert_eq!(report(&graph()).object()["links"], 3);
}

#[test]
fn counts_have_the_same_keys() {
    let mut report = QueryOutput::new("a.zv");
    assert!(report.is_empty());
    let counts = ResultCounts {
        level: Some(1),
        vertices: 5_000_000,
        objects: 3,
        links: 7,
        parts: None,
    };
    report.count(counts, Vec::new(), Vec::new());
    report.cost(1, 2);
    assert!(!report.is_empty());
    let expected = json!({
        "level": 1, "vertices": 5_000_000, "objects": 3, "links": 7, "requests": 1,
        "bytes_read": 2, "missing": [], "notes": [],
    });
    assert_eq!(report.object(), expected);
    let expected =
        "a.zv, level 1\n  5 000 000 vertices, 3 objects, 7 links\n  1 request, 2 bytes read";
    assert_eq!(report.text(), expected);
}

#[test]
fn skipped_written_and_omitted_data_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = graph();
    result.skipped = vec![Skipped {
        key: Key::parse("0/vertices/c/0/0/0").unwrap(),
        reason: "cut short".to_owned(),
        is_absent: false,
    }];
    result.notes = vec!["an old defect".to_owned()];
    let mut report = report(&result);
    report.written(written(&result, folder.path(), "a.obj").unwrap());
    let path = folder.path().join("a.obj");
    let file = path.to_str().unwrap();
    let found = report.object();
    let missing = json!([{"key": "0/vertices/c/0/0/0", "reason": "cut short"}]);
    assert_eq!(found["missing"], missing);
    assert_eq!(found["notes"], json!(["an old defect"]));
    assert_eq!(found["output"], file);
    assert_eq!(found["files"], json!([file]));
    let left_out = ["link.weight: not supported by obj"];
    assert_eq!(found["left_out"], json!(left_out));
    let expected = format!(
        "\
a.zv, level 0
  4 vertices, 1 object, 3 links
  12 requests, 4 500 bytes read

written: {file}
missing: 0/vertices/c/0/0/0: cut short
left out: link.weight: not supported by obj
note: an old defect"
    );
    assert_eq!(report.text(), expected);
}

#[test]
fn an_empty_result_is_reported_as_empty() {
    assert!(report(&nothing()).is_empty());
    assert!(!report(&graph()).is_empty());
    assert_eq!(preview(&nothing()).unwrap(), "");
    let mut report = report(&nothing());
    report.rows(preview(&nothing()).unwrap());
    let expected =
        "a.zv, level 0\n  0 vertices, 0 objects, 0 links\n  12 requests, 4 500 bytes read";
    assert_eq!(report.text(), expected);
}

#[test]
fn the_first_rows_are_a_table() {
    let mut report = report(&graph());
    report.rows(preview(&graph()).unwrap());
    let expected = "\
a.zv, level 0
  4 vertices, 1 object, 3 links
  12 requests, 4 500 bytes read

   z   y   x  object_id
   0   1   2          1
  10  11  12          1
  20  21  22          1
  30  31  32          1

  links  link.weight
    1 0            1
    2 1            -
    3 0            3";
    assert_eq!(report.text(), expected);
}

#[test]
fn objects_are_shown_with_their_attributes() {
    let shown = preview(&points()).unwrap();
    let (_, objects) = shown.split_once("\n\n").unwrap();
    let expected = "  object_id  object.length          object.count
          7            0.1  18446744073709551615
         12              -                     -";
    assert_eq!(objects, expected);
}

#[test]
fn further_rows_are_counted() {
    let mut result = in_axes(1);
    let all: Vec<u32> = (0..1011).collect();
    result.positions = rows(1, &all);
    let shown = preview(&result).unwrap();
    assert_eq!(shown.lines().count(), 12);
    let last = "  … and 1 001 vertices more: -o FILE.csv writes all";
    assert_eq!(shown.lines().last(), Some(last));
}

/// Text from a store may contain control characters that move the cursor or set colours.
#[test]
fn control_characters_in_text_are_escaped() {
    let mut result = in_axes(1);
    let long = "x".repeat(100);
    result.vertex = vec![words("a\x1b[2J", &[0, 1], &["red\x1b[31m\n", &long])];
    let shown = preview(&result).unwrap();
    assert!(!shown.contains('\x1b'), "{shown:?}");
    assert_eq!(shown.lines().count(), 3);
    assert!(shown.contains("red\\u{1b}[31m\\n"), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() < 50),
        "{shown}"
    );
}
