//! Query documents: the conformance pack of Tetration 0.8.3, and windows against their definition.

use std::sync::Arc;

use serde_json::{Value, json};
use zvf_dense::{
    MemorySource,
    tet::{
        DatasetSpec, TetDtype, TetFile, TetOptions, TetQuery, TetQueryError, TetWriter,
        WriteOptions, verify,
    },
};
use zvf_testkit::{golden::Golden, stores::Random};

use super::open;

fn text<'a>(golden: &'a Golden, path: &Value) -> &'a str {
    str::from_utf8(golden.file(path.as_str().unwrap())).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        Value::Bool(value) => vec![f64::from(u8::from(*value))],
        Value::Null => vec![f64::NAN],
        value => vec![value.as_f64().unwrap()],
    }
}

fn check(name: &str, found: &Value, expected: &Value) {
    let (found, expected) = (numbers(found), numbers(expected));
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(&expected) {
        let is_same = found.is_nan() && expected.is_nan() || (found - expected).abs() <= 1e-5;
        assert!(is_same, "{name}: {found} {expected}");
    }
}

/// All 25 accepted files and their 20 queries, 11 refused files and 21 refused queries.
#[test]
fn the_conformance_pack_of_tetration_passes() {
    let golden = Golden::open("tet-pack");
    let manifest = golden.json("conformance/manifest.v1.json");
    let all = |part: &str| manifest[part].as_array().unwrap().clone();
    let options = TetOptions::default();
    let mut queries = 0;
    for case in all("accept") {
        let name = case["id"].as_str().unwrap();
        let bytes = golden.file(case["tet"].as_str().unwrap());
        let source = Arc::new(MemorySource::new(name, bytes.to_vec()));
        let verified = verify(source, options, true).unwrap();
        assert!(verified.is_ok(), "{name}: {:?}", verified.findings);
        if case["query"].is_null() {
            continue;
        }
        queries += 1;
        let query = TetQuery::parse(text(&golden, &case["query"])).unwrap();
        let response = query.run(&open(name, bytes).unwrap()).unwrap();
        for (path, expected) in case["expect"].as_object().unwrap() {
            let found = &response[path.as_str().split_once('.').unwrap().0];
            let rest = path.split('.').skip(1);
            let found = rest.fold(found, |value, key| &value[key]);
            check(&format!("{name} {path}"), found, expected);
        }
    }
    assert_eq!((all("accept").len(), queries), (25, 20));
    let refused = all("reject_verify");
    assert_eq!(refused.len(), 11);
    for case in refused {
        let name = case["id"].as_str().unwrap();
        let bytes = golden.file(case["tet"].as_str().unwrap());
        let source = Arc::new(MemorySource::new(name, bytes.to_vec()));
        let verified = verify(source, options, true).unwrap();
        assert!(!verified.is_ok(), "{name}");
    }
    let refused = all("reject_query");
    assert_eq!(refused.len(), 21);
    for case in refused {
        let name = case["id"].as_str().unwrap();
        let error = TetQuery::parse(text(&golden, &case["query"])).unwrap_err();
        let part = case["expect_error_substr"].as_str().unwrap();
        let message = error.to_string();
        assert!(
            message.to_lowercase().contains(&part.to_lowercase()),
            "{name}: {message}"
        );
    }
}

/// Writes a file with a dataset `a` of 16-bit integers in tiles that do not divide it.
fn file(shape: [u64; 2], values: &[i16]) -> TetFile {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tet");
    let spec = DatasetSpec::new("a", TetDtype::I16, &shape, &[3, 2]);
    let mut writer = TetWriter::create(&path, vec![spec], WriteOptions::default()).unwrap();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    writer.put_array(0, &bytes).unwrap();
    writer.finish().unwrap();
    open("a.tet", &std::fs::read(&path).unwrap()).unwrap()
}

fn execution(file: &TetFile, query: &Value) -> Value {
    let query = TetQuery::parse(&query.to_string()).unwrap();
    query.run(file).unwrap()["execution"].clone()
}

/// Returns the first position of each window, as the specification defines them.
fn starts(extent: i64, size: i64, step: i64, pads: bool, at_end: bool, rolls: bool) -> Vec<i64> {
    let all = -size..extent;
    match (rolls, pads, at_end) {
        (false, _, false) => all.filter(|at| *at >= 0 && at % size == 0).collect(),
        (false, _, true) => all
            .filter(|at| (extent - at) % size == 0 && at + size > 0)
            .collect(),
        (true, false, _) => all
            .filter(|at| *at >= 0 && at % step == 0 && at + size <= extent)
            .collect(),
        (true, true, false) => all
            .filter(|at| *at > -size && (at + size - 1) % step == 0 && at + size <= extent)
            .collect(),
        (true, true, true) => all.filter(|at| *at >= 0 && at % step == 0).collect(),
    }
}

#[test]
fn windows_have_the_values_of_their_positions() {
    let mut random = Random::new(5);
    for case in 0..300 {
        let (rows, columns) = (1 + random.below(5), 1 + random.below(9));
        let values: Vec<i16> = (0..rows * columns)
            .map(|_| i16::try_from(random.between(-9, 9)).unwrap())
            .collect();
        let file = file([rows as u64, columns as u64], &values);
        let (rolls, pads) = (random.chance(50), random.chance(50));
        let at_end = random.chance(50) && (pads || !rolls);
        let size = 1 + random.below(columns);
        let step = if rolls { 1 + random.below(4) } else { size };
        let min_count = 1 + u32::try_from(random.below(size)).unwrap();
        let over_all = random.chance(30);
        let least = random.between(-9, 9);
        let is_filtered = random.chance(50);
        let mut window = json!({
            "axis": 1, "size": size, "mode": if rolls { "rolling" } else { "bins" },
            "pad": if pads { "0" } else { "none" }, "align": if at_end { "end" } else { "start" },
            "min_count": min_count,
        });
        if rolls {
            window["step"] = json!(step);
        }
        let axes = if over_all { json!([0, 1]) } else { json!([]) };
        let mut query = json!({ "dataset": "a", "window": window, "mean": axes });
        if is_filtered {
            query["filter"] = json!({ "ge": least });
        }
        let found = execution(&file, &query);
        let lines: Vec<Vec<usize>> = if over_all {
            vec![(0..rows).collect()]
        } else {
            (0..rows).map(|row| vec![row]).collect()
        };
        let [extent, size, step] = [columns, size, step].map(|n| i64::try_from(n).unwrap());
        let starts = starts(extent, size, step, pads, at_end, rolls);
        let mut expected = Vec::new();
        for lines in &lines {
            for start in &starts {
                let (mut sum, mut real, mut padded) = (0_i32, 0_u32, 0_u32);
                for row in lines {
                    for at in *start..start + size {
                        let Some(at) = usize::try_from(at).ok().filter(|at| *at < columns) else {
                            padded += 1;
                            continue;
                        };
                        let value = i32::from(values[row * columns + at]);
                        if !is_filtered || i64::from(value) >= least {
                            sum += value;
                            real += 1;
                        }
                    }
                }
                let count = if pads { real + padded } else { real };
                let mean = f64::from(sum) / f64::from(count);
                expected.push(if real < min_count { f64::NAN } else { mean });
            }
        }
        assert_eq!(found["window_count"], json!(starts.len()), "{case} {query}");
        let expected = expected.iter().map(|mean| json!(mean)).collect();
        check(
            &format!("{case} {query} of {values:?}"),
            &found["operation_reduced_mean"],
            &Value::Array(expected),
        );
    }
}

#[test]
fn groups_and_selections_are_reduced_alone() {
    let values: Vec<i16> = (0..12).collect();
    let file = file([3, 4], &values);
    let found = execution(
        &file,
        &json!({ "dataset": "a", "group_by": ["1"], "max": [] }),
    );
    assert_eq!(found["group_count"], 4);
    assert_eq!(found["operation_reduced_max"], json!([8, 9, 10, 11]));
    let columns = json!([{ "start": 1 }, { "step": 2 }]);
    let query = json!({ "dataset": "a", "selection": columns, "sum": 0, "filter": { "ne": 8 } });
    let found = execution(&file, &query);
    assert_eq!(found["operation_reduced_sum"], json!([4, 16]));
    assert_eq!(found["operation_element_count"], 3);
    let found = execution(
        &file,
        &json!({ "dataset": "a", "min": [], "filter": { "gt": 99 } }),
    );
    assert_eq!(
        (&found["operation_min"], &found["operation_element_count"]),
        (&Value::Null, &json!(0))
    );
}

#[test]
fn queries_of_absent_parts_say_what_there_is() {
    let file = file([3, 4], &[0; 12]);
    let refused = |query: Value| -> TetQueryError {
        TetQuery::parse(&query.to_string())
            .unwrap()
            .run(&file)
            .unwrap_err()
    };
    for (query, part) in [
        (
            json!({ "dataset": "b", "sum": [] }),
            "no dataset `b`; it has a",
        ),
        (
            json!({ "dataset": "a", "sum": "time" }),
            "invalid axis label `time`",
        ),
        (
            json!({ "dataset": "a", "sum": 2 }),
            "invalid axis label `2`",
        ),
        (
            json!({ "dataset": "a", "sum": [], "group_by": { "by": "labels", "axes": [0] } }),
            "axis `0` of dataset `a` has no labels",
        ),
        (
            json!({ "dataset": "a", "sum": [], "selection": [{}] }),
            "`selection` must have an object for each axis",
        ),
        (
            json!({ "dataset": "a", "sum": [], "selection": [{ "stop": 9 }, {}] }),
            "reaches element 8 of axis 0",
        ),
        (
            json!({ "dataset": "a", "sum": [], "window": { "axis": 0, "size": 4, "mode": "bins" } }),
            "`window.size` exceeds the axis",
        ),
        (
            json!({ "dataset": "a", "sum": [1], "group_by": [1] }),
            "must contain each axis once",
        ),
    ] {
        let message = refused(query).to_string();
        assert!(message.contains(part), "{message}");
    }
    for text in ["", "[]", "{\"dataset\": 1}", "{\"dataset\": \"a\"}"] {
        assert!(TetQuery::parse(text).is_err(), "{text}");
    }
}
