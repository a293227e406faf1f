//! `zvf tet`, as a user runs it.

use std::fs;

use serde_json::json;
use zvf_testkit::golden::{Golden, unhex};

use crate::{stores::Bench, text, zvf};

/// Creates a bench with recorded files.
fn bench(names: &[&str]) -> (Bench, Golden) {
    let (bench, golden) = (Bench::new(), Golden::open("tet"));
    for name in names {
        let (_, file) = name.split_once('/').unwrap();
        fs::write(bench.path(file), golden.file(name)).unwrap();
    }
    (bench, golden)
}

#[test]
fn info_shows_the_requested_parts() {
    let (bench, _) = bench(&["good/many_chunks_150.tet", "good/footer_v2_zone_index.tet"]);
    let said = bench.says(&["tet", "info", "@many_chunks_150.tet"]);
    assert!(
        said.contains("datasets:") && !said.contains("chunks:\n"),
        "{said}"
    );
    let lines = |words: &[&str]| {
        let said =
            bench.says(&[&["tet", "info", "@many_chunks_150.tet", "--chunks"], words].concat());
        let (_, table) = said.split_once("offset\n").unwrap();
        (table.lines().count(), said.contains("use -n 0 for all"))
    };
    assert_eq!(lines(&[]), (32, true));
    assert_eq!(lines(&["-n", "5"]), (5, true));
    assert_eq!(lines(&["-n", "0"]), (150, false));
    let said = bench.says(&["tet", "info", "@footer_v2_zone_index.tet", "--all"]);
    for part in [
        "layout:",
        "execution:",
        "datasets:",
        "chunks:",
        "history:",
        "1700000000  write",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let info = bench.json(&["tet", "info", "@many_chunks_150.tet"]);
    let summary = &info["summary"];
    assert_eq!(summary["chunks"].as_array().unwrap().len(), 150);
    assert_eq!(summary["superblock"]["dataset_count"], 1);
    let chunk = json!({
        "dataset_id": 0, "chunk_index": [0, 1, 0, 0, 0, 0, 0, 0], "codec": 0,
        "payload_offset": 15730, "raw_byte_len": 2, "stored_byte_len": 2,
    });
    assert_eq!(summary["chunks"][1], chunk);
}

#[test]
fn the_exit_code_of_verify_depends_on_its_findings() {
    let (bench, _) = bench(&[
        "good/mixed_codecs.tet",
        "bad/zstd_magic.tet",
        "bad/row_payload_overlap.tet",
    ]);
    let good = bench.json(&["tet", "verify", "@mixed_codecs.tet", "--deep"]);
    assert_eq!(good["ok"], true);
    for (name, check) in [
        ("zstd_magic.tet", "chunk_decode"),
        ("row_payload_overlap.tet", "payload_offsets"),
    ] {
        let path = bench.path(name).display().to_string();
        let output = zvf(&["tet", "verify", &path, "--json"]);
        assert_eq!(output.status.code(), Some(1));
        let found: serde_json::Value = serde_json::from_str(text(&output.stdout)).unwrap();
        assert_eq!(found["ok"], false);
        let findings = found["findings"].as_array().unwrap();
        let failed = findings.iter().find(|finding| finding["ok"] == false);
        assert_eq!(failed.unwrap()["check"], check);
    }
}

#[test]
fn a_slice_has_the_recorded_values_and_cost() {
    let (bench, golden) = bench(&["good/i64_3d_edges_zstd.tet"]);
    let expected = golden.json("expected.json");
    let files = expected["files"].as_array().unwrap();
    let file = files
        .iter()
        .find(|file| file["file"] == "i64_3d_edges_zstd.tet")
        .unwrap();
    let dataset = &file["datasets"][0];
    let name = dataset["name"].as_str().unwrap();
    for expected in dataset["selections"].as_array().unwrap() {
        let part = |key: &str, or: &serde_json::Value| {
            let axes = expected["selection"].as_array().unwrap().iter().enumerate();
            let parts = axes.map(|(axis, range)| match &range[key] {
                serde_json::Value::Null => or.get(axis).unwrap_or(or).to_string(),
                value => value.to_string(),
            });
            parts.collect::<Vec<_>>().join(",")
        };
        let (start, stop) = (part("start", &json!(0)), part("stop", &dataset["shape"]));
        let step = part("step", &json!(1));
        let words = [
            "tet",
            "slice",
            "@i64_3d_edges_zstd.tet",
            name,
            "-o",
            "@s.npy",
        ];
        let ranges = ["--start", &start, "--stop", &stop, "--step", &step];
        let report = bench.json(&[&words[..], &ranges].concat());
        assert_eq!(report["bytes_read"], expected["total_stored_bytes"]);
        let touched = expected["touched_chunks"].as_array().unwrap().len();
        assert_eq!(
            (&report["chunks"], &report["blocks"]),
            (&json!(touched), &json!(touched))
        );
        let written = fs::read(bench.path("s.npy")).unwrap();
        let values = unhex(expected["hex"].as_str().unwrap());
        assert!(written.ends_with(&values) && written.len() == 128 + values.len());
        let shown = bench.json(&[&words[..4], &ranges].concat());
        let first = i64::from_le_bytes(*values.first_chunk().unwrap());
        assert_eq!(shown["values"][0], first);
    }
}

#[cfg(feature = "zarr")]
#[test]
fn arrays_are_converted_between_formats_and_back() {
    let (bench, _) = bench(&["good/f32_3d_edges_zstd.tet"]);
    let words = [
        "tet",
        "convert",
        "@f32_3d_edges_zstd.tet",
        "@a.zarr",
        "--compression",
        "blosc",
    ];
    let report = bench.json(&words);
    assert_eq!(report["chunks"], 8);
    bench.says(&["tet", "convert", "@a.zarr", "@b.npy"]);
    bench.says(&["tet", "slice", "@f32_3d_edges_zstd.tet", "-o", "@c.npy"]);
    assert!(fs::read(bench.path("b.npy")).unwrap() == fs::read(bench.path("c.npy")).unwrap());
    let create = [
        "tet",
        "create",
        "@d.tet",
        "--from",
        "x=@b.npy",
        "--from",
        "@a.zarr",
        "--compression",
        "zstd",
        "--checksums",
        "--memory-budget-bytes",
        "4096",
    ];
    let from = format!("x={}", bench.path("b.npy").display());
    let create = create.map(|word| {
        if word == "x=@b.npy" {
            from.as_str()
        } else {
            word
        }
    });
    let report = bench.json(&create);
    assert_eq!(report["datasets"][0]["name"], "x");
    assert_eq!(report["datasets"][1]["name"], "a");
    let written = fs::metadata(bench.path("d.tet")).unwrap().len();
    assert_eq!(report["bytes_written"], written);
    bench.says(&["tet", "create", "@d.tet", "--append", "--from", "@c.npy"]);
    let info = bench.json(&["tet", "info", "@d.tet"]);
    let names = info["summary"]["datasets"].as_array().unwrap().iter();
    assert_eq!(
        names.map(|d| &d["name"]).collect::<Vec<_>>(),
        ["x", "a", "c"]
    );
    assert_eq!(
        info["summary"]["file_execution"]["memory_budget_bytes"],
        4096
    );
    assert_eq!(
        bench.json(&["tet", "verify", "@d.tet", "--deep"])["ok"],
        true
    );
    bench.says(&["tet", "slice", "@d.tet", "c", "-o", "@e.npy"]);
    assert!(fs::read(bench.path("e.npy")).unwrap() == fs::read(bench.path("c.npy")).unwrap());
}

/// The limit of the command, or else that of the file, holds for every read.
#[test]
fn budgets_limit_conversions() {
    let (bench, _) = bench(&["good/f32_3d_edges_zstd.tet"]);
    let source = "@f32_3d_edges_zstd.tet";
    let limited = [
        vec!["tet", "convert", source, "@a.npy", "--memory", "16"],
        vec!["tet", "slice", source, "-o", "@a.npy", "--memory", "16"],
    ];
    for words in limited {
        let said = bench.refused(&words);
        assert!(said.contains("16"), "{said}");
        assert!(!bench.path("a.npy").exists());
    }
    let from = format!("a={}", bench.path("f32_3d_edges_zstd.tet").display());
    let limit = ["--memory-budget-bytes", "16"];
    for (compression, file, target) in [
        ("zstd", "@small.tet", "@a.npy"),
        ("none", "@raw.tet", "@b.npy"),
    ] {
        let create = ["tet", "create", file, "--from", from.as_str()];
        let words = [&create[..], &["--compression", compression], &limit].concat();
        bench.says(&words);
        let convert = ["tet", "convert", file, target];
        bench.refused(&convert);
        bench.says(&[&convert[..], &["--memory", "100000"]].concat());
    }
}

#[test]
fn the_history_names_the_sources() {
    let (bench, _) = bench(&["good/f32_3d_edges_zstd.tet"]);
    let from = bench.path("f32_3d_edges_zstd.tet").display().to_string();
    let from = format!("a={from}");
    bench.says(&["tet", "create", "@a.tet", "--from", &from, "--history"]);
    let again = from.replacen("a=", "b=", 1);
    bench.says(&[
        "tet",
        "create",
        "@a.tet",
        "--from",
        &again,
        "--history",
        "--append",
    ]);
    let info = bench.json(&["tet", "info", "@a.tet"]);
    let history = info["summary"]["history"].as_array().unwrap();
    let operations: Vec<&str> = history
        .iter()
        .map(|row| row["op"].as_str().unwrap())
        .collect();
    assert_eq!(operations, ["create", "append"]);
    // The output is without the folder of the bench.
    assert_eq!(history[0]["source"], "a=/f32_3d_edges_zstd.tet");
    let at: u64 = history[0]["at"].as_str().unwrap().parse().unwrap();
    assert!(at > 1_700_000_000, "{at}");
    assert!(
        bench
            .says(&["tet", "info", "@a.tet", "--all"])
            .contains("append")
    );
    let source = "@f32_3d_edges_zstd.tet";
    let said = bench.refused(&["tet", "convert", source, "@a.npy", "--history"]);
    assert!(said.contains("--history does not apply"), "{said}");
}

/// The examples of the format call the program `tet`.
#[cfg(unix)]
#[test]
fn the_program_may_be_called_tet() {
    let (bench, _) = bench(&["good/f32_3d_edges_zstd.tet"]);
    let link = bench.path("tet");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_zvf"), &link).unwrap();
    let file = bench.path("f32_3d_edges_zstd.tet").display().to_string();
    for words in [&["info", &file, "--chunks", "-n", "0"][..], &["--help"]] {
        let output = std::process::Command::new(&link).args(words).output();
        let direct = zvf(&[&["tet"], words].concat());
        assert!(direct.status.success());
        assert_eq!(output.unwrap(), direct);
    }
}

#[test]
fn queries_are_run_from_text_and_files() {
    let bench = Bench::new();
    let pack = Golden::open("tet-pack");
    let folder = "conformance/accept/queries";
    for path in [
        "fixtures/small/tet/group_by_labels.tet",
        &format!("{folder}/group_by_labels_col_sum.json"),
    ] {
        let (_, file) = path.rsplit_once('/').unwrap();
        fs::write(bench.path(file), pack.file(path)).unwrap();
    }
    let file = "@group_by_labels.tet";
    let found = bench.json(&["tet", "query", file, "@group_by_labels_col_sum.json"]);
    let execution = &found["execution"];
    assert_eq!(execution["operation_reduced_sum"], json!([12.0, 9.0]));
    assert_eq!(
        execution["group_labels"],
        json!({ "col": ["east", "west"] })
    );
    let query = r#"{"dataset": "a", "sum": [], "filter": {"gt": 4}}"#;
    let said = bench.says(&["tet", "query", file, query]);
    assert!(said.contains("operation_sum: 11"), "{said}");
    let refused = bench.refused(&["tet", "query", file, r#"{"dataset": "a", "median": []}"#]);
    assert!(refused.contains("unknown field `median`"), "{refused}");
}

#[test]
fn errors_contain_a_hint() {
    let (bench, _) = bench(&["good/all_dtypes_raw.tet", "bad/magic.tet"]);
    let said = bench.refused(&["tet", "slice", "@all_dtypes_raw.tet"]);
    assert!(said.contains("several datasets; name one of"), "{said}");
    let said = bench.refused(&["tet", "slice", "@all_dtypes_raw.tet", "nope"]);
    assert!(
        said.contains("there is no dataset \"nope\"; the datasets are"),
        "{said}"
    );
    let said = bench.refused(&["tet", "info", "@magic.tet"]);
    assert!(said.contains("magic"), "{said}");
    let said = bench.refused(&["tet", "convert", "@magic.tet", "@a.csv"]);
    assert!(said.contains("magic"), "{said}");
    let said = bench.refused(&[
        "tet",
        "slice",
        "@all_dtypes_raw.tet",
        "f32",
        "--stop",
        "999",
    ]);
    assert!(
        said.contains("the selection has 1 axes, but the array has 2"),
        "{said}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let bench = Bench::new();
    let joined = bench.path("none.tet");
    let path = joined.to_str().unwrap();
    let output = zvf(&["tet", "info", path]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!(
        "error: {path} does not exist; give a .tet, .npy, .nii, .nii.gz, .b2nd or .cat file, or the folder of a Zarr array\n"
    );
    assert_eq!(text(&output.stderr), expected);
}
