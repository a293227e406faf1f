//! `zvf create`: its arguments, and the design they form.

use std::{fs, path::Path};

use clap::Parser;
use serde_json::json;
use zvf::{
    AxisSpec, CellChecksums, CellCompression, Design, GeometryKind, OutOfBounds, Profile, Purpose,
    ShardingPolicy, numeric::Kind,
};
use zvf_cli::commands::create::{CreateArgs, CreateOutput, CreateSummary, CreateUsageError};
use zvf_files::{GeometryReadOptions, MissingPolicy};

use crate::{round_trip::file, stores::Bench, text, zvf};

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    arguments: CreateArgs,
}

/// Parses arguments with an existing input file.
fn parse(line: &[&str]) -> Result<CreateArgs, clap::Error> {
    parse_into("out.zv", line)
}

fn parse_into(store: &str, line: &[&str]) -> Result<CreateArgs, clap::Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "x\n1\n").unwrap();
    let from = path.to_str().unwrap();
    let start = ["zvf", store, "--kind", "points", "--from", from];
    let line = start.iter().chain(line);
    Command::try_parse_from(line).map(|command| command.arguments)
}

#[track_caller]
fn design(line: &[&str]) -> Design {
    parse(line).unwrap().design(GeometryKind::Points).unwrap()
}

/// Returns the error of an invalid command line.
#[track_caller]
fn refused(line: &[&str]) -> String {
    let error = parse(line).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn the_default_design_is_that_of_the_library() {
    assert_eq!(design(&[]), Design::new(GeometryKind::Points));
    let arguments = parse(&[]).unwrap();
    let options = arguments.options();
    assert_eq!(
        (options.memory, options.threads, options.overwrite),
        (None, None, false)
    );
    assert_eq!(
        arguments.reading(GeometryKind::Points).missing,
        MissingPolicy::Reject
    );
}

#[test]
fn every_kind_and_profile_has_a_name() {
    for kind in GeometryKind::ALL {
        let from = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let line = ["zvf", "out.zv", "--kind", kind.name(), "--from", from];
        let error = Command::try_parse_from(line).unwrap_err().to_string();
        assert!(error.contains(".toml files cannot be read"), "{error}");
    }
    for profile in Profile::ALL {
        assert_eq!(design(&["--profile", profile.name()]).profile, profile);
    }
    assert!(refused(&["--profile", "0.7"]).contains("0.9, 0.10, 0.8, 0.8-padded"));
    let line = ["zvf", "out.zv"];
    let error = Command::try_parse_from(line).unwrap_err().to_string();
    assert!(error.contains("--from"), "{error}");
}

#[test]
fn options_set_the_design() {
    let found = design(&[
        "--chunk-shape",
        "10,20",
        "--bin-shape",
        "1,2",
        "--dtype",
        "float32",
        "--compression",
        "zstd:3",
        "--table-compression",
        "gzip:2",
        "--shard=4,4",
        "--bounds",
        "-1,-2,3,4",
        "--out-of-bounds",
        "expand",
        "--purpose",
        "scan",
        "--directed",
        "--duplicate",
        "--no-checksum",
        "--axes",
        "x:micrometer,t:second:time",
        "--crs",
        "{\"a\": 1}",
        "--name",
        "tracts",
    ]);
    let mut expected = Design::new(GeometryKind::Points);
    expected.chunk_shape = Some(vec![10.0, 20.0]);
    expected.bin_shape = Some(vec![1.0, 2.0]);
    expected.dtype = Some(Kind::Float32);
    expected.compression = CellCompression::Zstd(3);
    expected.table_compression = Some(CellCompression::Gzip(2));
    expected.sharding = ShardingPolicy::Shape(vec![4, 4]);
    expected.bounds = Some((vec![-1.0, -2.0], vec![3.0, 4.0]));
    expected.out_of_bounds = OutOfBounds::Expand;
    expected.purpose = Purpose::Scan;
    expected.directed = true;
    expected.duplicate = true;
    expected.checksums = CellChecksums::Off;
    let axis = |name: &str, unit: &str, kind: &str| AxisSpec::new(name).kind(kind).unit(unit);
    let axes = vec![
        axis("x", "micrometer", "space"),
        axis("t", "second", "time"),
    ];
    expected.axes = Some(axes);
    expected.crs = Some(json!({ "a": 1 }).into());
    expected.name = Some("tracts".to_owned());
    assert_eq!(found, expected);
    assert_eq!(design(&["--shard"]).sharding, ShardingPolicy::Auto);
    assert_eq!(design(&["--shard=auto"]).sharding, ShardingPolicy::Auto);
}

#[test]
fn stores_in_buckets_have_shards() {
    let sharding = |store: &str, line: &[&str]| {
        let arguments = parse_into(store, line).unwrap();
        arguments.design(GeometryKind::Points).unwrap().sharding
    };
    assert_eq!(sharding("s3://bucket/a.zv", &[]), ShardingPolicy::Auto);
    assert_eq!(
        sharding("gs://bucket/a.zv", &["--shard=none"]),
        ShardingPolicy::None
    );
    let shape = ShardingPolicy::Shape(vec![2]);
    assert_eq!(sharding("s3://bucket/a.zv", &["--shard=2"]), shape);
    assert_eq!(
        sharding("s3://bucket/a.zv", &["--profile", "0.8"]),
        ShardingPolicy::None
    );
    assert_eq!(sharding("folder/a.zv", &[]), ShardingPolicy::None);
}

#[test]
fn some_options_do_not_change_the_design() {
    let line = [
        "--memory",
        "2GiB",
        "--threads",
        "3",
        "--overwrite",
        "--missing",
        "nan",
    ];
    let arguments = parse(&[&line[..], &["--axes", "t,c"]].concat()).unwrap();
    let options = arguments.options();
    assert_eq!((options.memory, options.threads), (Some(2 << 30), Some(3)));
    assert!(options.overwrite);
    let reading = arguments.reading(GeometryKind::Points);
    assert_eq!(reading.missing, MissingPolicy::Nan);
    assert_eq!(reading.axes, Some(vec!["t".to_owned(), "c".to_owned()]));
}

#[test]
fn invalid_values_are_explained() {
    assert!(refused(&["--chunk-shape", "1,0"]).contains("must be above 0"));
    assert!(refused(&["--bounds", "0,0,1"]).contains("3 numbers do not pair up"));
    assert!(refused(&["--compression", "lz4"]).contains("gzip:LEVEL"));
    assert!(refused(&["--dtype", "complex64"]).contains("float32"));
    assert!(refused(&["--memory", "lots"]).contains("2GiB"));
    assert!(refused(&["--threads", "0"]).contains('0'));
    assert!(refused(&["--shard=0"]).contains("4,4,4"));
    assert!(refused(&["--axes", "x,x"]).contains("two axes"));
    assert!(refused(&["--crs", "{"]).contains("not valid JSON"));
    assert!(refused(&["--crs", "EPSG:utm"]).contains("not a code of EPSG"));
    assert!(refused(&["--out-of-bounds", "clip"]).contains("raise, ignore, expand"));
    assert!(refused(&["--links", "no.csv"]).contains("the file does not exist"));
}

/// The validator demands an object; text was stored as it came.
#[test]
fn a_coordinate_reference_system_validates_and_survives_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("a.csv"), "x,y\n500000,5700000\n500001,5700001\n").unwrap();
    let run = |words: &[&str]| {
        let output = zvf(words);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{words:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout).to_owned()
    };
    let create = |out: &str, from: &str, more: &[&str]| {
        let (out, from) = (at(out), at(from));
        let words = ["create", &out, "--kind=points", "--from", &from];
        run(&[&words[..], more].concat());
    };
    let crs = |store: &str| {
        let json = run(&["info", "--json", &at(store)]);
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["crs"].clone()
    };
    let expected = json!({"name": "EPSG:25832", "id": {"authority": "EPSG", "code": 25832}});
    for (profile, out) in [("0.9", "a.zv"), ("0.8", "b.zv")] {
        create(out, "a.csv", &["--crs=EPSG:25832", "--profile", profile]);
        let found = run(&["validate", &at(out)]);
        assert!(found.contains("nothing found"), "{found}");
        assert_eq!(crs(out), expected);
    }
    assert!(run(&["info", &at("a.zv")]).contains("  crs         EPSG:25832\n"));
    for file in ["c.parquet", "c.arrow"] {
        run(&["query", &at("a.zv"), "-o", &at(file)]);
        create("c.zv", file, &["--overwrite"]);
        assert_eq!(crs("c.zv"), expected, "{file}");
        create("c.zv", file, &["--overwrite", "--crs=EPSG:4326"]);
        assert_eq!(crs("c.zv")["name"], "EPSG:4326");
    }
}

/// Runs `zvf create` on a table; returns standard output and error.
fn create_of(table: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("a.csv"), table).unwrap();
    let (out, from) = (at("out.zv"), at("a.csv"));
    let words = ["create", &out, "--kind=points", "--from", &from];
    let output = zvf(&[&words[..], more].concat());
    let [printed, said] = [&output.stdout, &output.stderr].map(|bytes| text(bytes).to_owned());
    (output.status.code(), printed, said)
}

#[test]
fn text_among_numbers_is_named_with_its_line() {
    let (code, _, said) = create_of("x,y\n1,2\n3,abc\n4,5\n", &[]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("a.csv: y: line 3 has \"abc\" instead of a number"),
        "{said}"
    );
    let (code, printed, _) = create_of("x,y,r\n1,2,1\n3,4,\n4,5,n/a\n", &["--missing=nan"]);
    assert_eq!(code, Some(0));
    let note = "note: vertex.r is stored as text, because line 4 of ";
    assert!(
        printed.contains(note) && printed.contains("has \"n/a\" below numbers"),
        "{printed}"
    );
    let (_, printed, _) = create_of("x,y,r\n1,2,a\n3,4,5\n", &[]);
    assert!(!printed.contains("note:"), "{printed}");
}

/// Formats without a treatment of missing numbers refuse one.
#[test]
fn formats_without_missing_numbers_refuse_their_treatment() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("a.obj"), "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n").unwrap();
    let output = zvf(&[
        "create",
        &at("a.zv"),
        "--from",
        &at("a.obj"),
        "--missing=nan",
    ]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("leave it out for this format"), "{said}");
}

#[test]
fn other_separators_are_recognised() {
    for (table, mark) in [("x;y\n1;2\n", "';'"), ("x\ty\n1\t2\n", "'\\t'")] {
        let (code, _, said) = create_of(table, &[]);
        assert_eq!(code, Some(2));
        let expected = format!("line 1: fields are separated by {mark}; save the file with commas");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn axes_without_a_value_list_the_columns() {
    let table = "lon,lat,a b,r\n1,2,3,4\n";
    for more in [&["--axes"][..], &["--axes", "--chunk-shape=1,1,1"], &[]] {
        let (code, _, said) = create_of(table, more);
        assert_eq!(code, Some(2));
        let expected =
            "name them, for example --axes 'lon,lat,a b'; the columns are lon, lat, a b, r\n";
        assert!(said.ends_with(expected), "{said}");
    }
}

#[test]
fn attributes_are_renamed() {
    let table = "x,y,mean FA (%),it's\n1,2,3,4\n";
    let rename = ["--rename", "mean FA (%)=x", "--rename", "vertex.it's=its"];
    let (code, _, said) = create_of(table, &rename);
    assert_eq!(code, Some(2));
    assert!(
        said.ends_with("; rename it with --rename x=NEW, or name the axes with --axes\n"),
        "{said}"
    );
    let (code, _, said) = create_of(table, &["--rename", "mean=m"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("has no attribute mean; it has vertex.mean FA (%), vertex.it's"),
        "{said}"
    );
    assert!(refused(&["--rename", "a"]).contains("OLD=NEW"));
}

#[test]
fn options_must_agree_on_the_number_of_axes() {
    let arguments = parse(&["--chunk-shape", "1,2,3", "--bounds", "0,0,1,1"]).unwrap();
    let expected = CreateUsageError::Axes {
        one: "--chunk-shape",
        of_one: 3,
        other: "--bounds",
        of_other: 2,
    };
    assert_eq!(
        arguments.design(GeometryKind::Points).unwrap_err(),
        expected
    );
}

#[test]
fn the_report_describes_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "x\n1\n").unwrap();
    let mut report = CreateOutput::new("out.zv", GeometryKind::Points);
    report.read(&file(&path, &GeometryReadOptions::new(GeometryKind::Points)).unwrap());
    report.created(CreateSummary {
        vertices: 1_000,
        objects: 1,
        chunks: 2,
        files: 7,
        bytes_written: 12_345,
        transaction: 1,
        chunk_shape: vec![10.0, 2.5],
        bin_shape: Some(vec![5.0, 2.5]),
        why: vec!["some 1 MB a chunk".to_owned()],
        unfinished: None,
    });
    let object = report.object();
    assert_eq!(object["vertices"], 1_000);
    assert_eq!(object["transaction"], 1);
    let chosen = json!({
        "chunk_shape": [10.0, 2.5],
        "bin_shape": [5.0, 2.5],
        "why": ["some 1 MB a chunk"],
    });
    assert_eq!(object["chosen"], chosen);
    let expected = "\
out.zv, points
  1 000 vertices, 1 object, 2 chunks
  12 345 bytes written, transaction 1
  chunk shape 10 × 2.5
  bin shape 5 × 2.5
    some 1 MB a chunk";
    assert_eq!(report.text(), expected);
}

#[test]
fn unreadable_input_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "x,a\n1,2\n1,\n").unwrap();
    let out = folder.path().join("out.zv");
    let line = [
        "create",
        out.to_str().unwrap(),
        "--kind",
        "points",
        "--from",
    ];
    let output = zvf(&[&line[..], &[path.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("a.csv, line 3: a has no value"), "{said}");
    assert!(text(&output.stdout).is_empty());
    assert!(!out.exists());
}

/// A store with a file per chunk is slow to copy, which users should learn when they create it.
#[test]
fn many_small_files_print_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let mut lines = vec!["x,y,z".to_owned()];
    lines.extend((0..1_100).map(|row| format!("{row},0,0")));
    fs::write(&path, lines.join("\n")).unwrap();
    let said = |name: &str, chunk: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let mut words = vec!["create", out.to_str().unwrap(), "--kind", "points"];
        words.extend(["--from", path.to_str().unwrap(), "--chunk-shape", chunk]);
        words.extend(more);
        let output = zvf(&words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr).to_owned()
    };
    let hint = said("many.zv", "1,1,1", &[]);
    assert!(
        hint.starts_with("hint: 2 2") && hint.contains("--shard puts many chunks into one"),
        "{hint}"
    );
    assert_eq!(said("few.zv", "100,1,1", &[]), "");
    assert_eq!(said("shards.zv", "1,1,1", &["--shard"]), "");
    assert_eq!(said("json.zv", "1,1,1", &["--json"]), "");
    assert_eq!(said("quiet.zv", "1,1,1", &["--quiet"]), "");
}

/// Returns a table of 20 000 evenly spread points, with at most one in a chunk of 0.5 × 0.5 × 0.5.
fn spread_points() -> String {
    let at = |row: u32| format!("{},{},{},1\n", row % 40, row / 40 % 40, row / 1600);
    let rows = (0..20_000).map(at);
    ["x,y,z,a\n".to_owned()].into_iter().chain(rows).collect()
}

#[test]
fn very_many_files_of_few_vertices_are_refused() {
    let table = spread_points();
    let shape = "--chunk-shape=0.5,0.5,0.5";
    for more in [&[shape][..], &[shape, "--json"], &[shape, "--quiet"]] {
        let (code, printed, said) = create_of(&table, more);
        assert_eq!((code, printed.as_str()), (Some(2), ""), "{said}");
        let expected = "0.5,0.5,0.5 as --chunk-shape makes 60 000 files of 20 000 chunks for \
            20 000 vertices, 245 760 000 bytes on disk; use --chunk-shape 8,8,8, combine chunks \
            with --shard, or confirm with --yes\n";
        assert!(said.ends_with(expected), "{said}");
    }
    let (code, _, said) = create_of(&table, &["--chunk-shape=8,8,8"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    // Shards store the same chunks in few files.
    let (code, _, said) = create_of(&table, &[shape, "--shard"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn large_plans_are_printed_before_they_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let rows = (0..6_000).map(|row| format!("{row},0"));
    let lines: Vec<String> = ["x,y".to_owned()].into_iter().chain(rows).collect();
    fs::write(at("a.csv"), lines.join("\n")).unwrap();
    let (out, from) = (at("out.zv"), at("a.csv"));
    let words = [
        "create",
        &out,
        "--kind=points",
        "--from",
        &from,
        "--chunk-shape=1,1",
    ];
    let said = zvf(&words).stderr;
    let expected = "plan: 6 000 chunks in 12 000 files, about ";
    assert!(text(&said).starts_with(expected), "{}", text(&said));
    let output = zvf(&[&words[..], &["--overwrite", "--quiet"]].concat());
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn lost_digits_of_coordinates_are_a_warning() {
    let utm = "x,y\n500000.5,5700000.3\n500100.5,5700050.1\n";
    let (code, printed, said) = create_of(utm, &["--dtype=float32"]);
    assert_eq!(code, Some(0));
    assert!(
        said.contains("warning: --dtype float32 moves y by up to 0.2"),
        "{said}"
    );
    assert!(!printed.contains("warning"), "{printed}");
    let (_, printed, _) = create_of(utm, &["--dtype=float32", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["warnings"].as_array().unwrap().len(), 1);
    for (table, dtype) in [
        (utm, "--dtype=float64"),
        ("x,y\n-0.1,0.3\n7.7,9.1\n", "--dtype=float32"),
        (
            "x,y\n500000.5,5700000.5\n500001,5700001\n",
            "--dtype=float32",
        ),
    ] {
        assert_eq!(create_of(table, &[dtype]).2, "", "{table}");
    }
}

/// A decoder without decompression reads this image, which is part of the program
/// `examples/outside/decoder`.
#[test]
fn tables_without_compression_form_the_flash_image() {
    let outside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/outside/decoder");
    let image = fs::read(outside.join("tests/fibres.tar")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("fibres.zv");
    let from = outside.join("tests/fibres.csv");
    let mut words = vec!["create", out.to_str().unwrap(), "--kind", "polylines"];
    words.extend(["--from", from.to_str().unwrap(), "--dtype", "float32"]);
    words.extend(["--chunk-shape", "10,10,10", "--bounds", "0,0,0,20,20,20"]);
    words.extend(["--table-compression", "none", "--no-checksum"]);
    let output = zvf(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut rest = &image[..];
    let mut files = 0;
    while let Some((header, after)) = rest.split_at_checked(512).filter(|(it, _)| it[0] != 0) {
        let path = text(&header[..100]).trim_end_matches('\0');
        let size = usize::from_str_radix(text(&header[124..135]), 8).unwrap();
        let wanted = &after[..size];
        rest = &after[size.next_multiple_of(512)..];
        // The root names the version of the writer.
        if !path.ends_with('/') && path != "./zarr.json" {
            let found = fs::read(out.join(path)).unwrap();
            // The order of members depends on the features of serde_json in the build.
            if path.ends_with("zarr.json") {
                let json =
                    |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
                assert_eq!(json(&found), json(wanted), "{path}");
            } else {
                assert_eq!(found, wanted, "{path}");
            }
            files += 1;
        }
        let codecs = ["zstd", "gzip", "blosc", "crc32c"];
        let node = std::str::from_utf8(wanted).unwrap_or_default();
        assert!(!codecs.iter().any(|codec| node.contains(codec)), "{path}");
    }
    assert_eq!(files, 14);
}

/// With a bound on memory, the process runs with settings of glibc that return freed memory.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_bound_on_memory_counts_freed_memory() {
    use std::{fmt::Write, thread, time::Duration};

    let bench = Bench::new();
    let mut rows = "x,y,z\n".to_owned();
    for row in 0..200_000 {
        writeln!(rows, "{row},{row}.5,{}", row % 100).unwrap();
    }
    bench.file("a.csv", &rows);
    for (name, memory, is_expected) in [
        ("a.zv", &["--memory", "64MiB"][..], true),
        ("b.zv", &[], false),
    ] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_zvf"))
            .args(["create", name, "--kind", "points", "--from", "a.csv"])
            .args(["--quiet"])
            .args(memory)
            .env_remove("MALLOC_ARENA_MAX")
            .env_remove("MALLOC_MMAP_THRESHOLD_")
            .env_remove("MALLOC_TRIM_THRESHOLD_")
            .current_dir(bench.path("."))
            .spawn()
            .unwrap();
        let environment = format!("/proc/{}/environ", child.id());
        let mut is_set = false;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            // It is gone when the process has just ended.
            let bytes = fs::read(&environment).unwrap_or_default();
            is_set |= String::from_utf8_lossy(&bytes).contains("MALLOC_TRIM_THRESHOLD_=");
            thread::sleep(Duration::from_millis(1));
        };
        assert!(status.success());
        assert_eq!(is_set, is_expected, "{memory:?}");
    }
}

/// Regression test: the axes of the file got the names of one another, and other units.
#[test]
fn axes_of_the_file_keep_their_names() {
    let bench = Bench::new();
    bench.file("a.csv", "z,y,x,object_id,part\n3,2,1,0,0\n6,5,4,0,0\n");
    let from = |file| ["create", "@a.zv", "--kind", "streamlines", "--from", file];
    let axes = |axes| ["--overwrite", "--axes", axes];
    // `--axes` selects the columns of a table.
    bench.says(&[&from("@a.csv")[..], &axes("z:millimeter,y,x")].concat());
    for file in ["@a.npz", "@a.tck"] {
        bench.says(&["query", "@a.zv", "-o", file]);
        let order = if file == "@a.tck" { "z,y,x" } else { "x,y,z" };
        let message = bench.refused(&[&from(file)[..], &axes(order)].concat());
        assert!(message.contains("in the order of the file"), "{message}");
    }
    let said = bench.refused(&[&from("@a.tck")[..], &axes("x:micrometer,y,z")].concat());
    let expected = "x is in millimeter in the file, not in micrometer";
    assert!(said.contains(expected), "{said}");
    // The format has a unit, but the file does not state it.
    let unit = ["--unit", "micrometer"];
    bench.says(&[&from("@a.tck")[..], &axes("x:micrometer,y,z"), &unit].concat());
    let info = bench.json(&["info", "@a.zv"]);
    for axis in 0..3 {
        assert_eq!(info["axis_details"][axis]["unit"], "micrometer");
    }
}

/// Regression test: the empty text was stored as missing.
#[test]
fn empty_texts_of_objects_are_not_missing() {
    let bench = Bench::new();
    bench.file(
        "a.csv",
        "x,y,z,object_id,part\n0,0,0,0,0\n1,1,1,1,1\n2,2,2,2,2\n",
    );
    let objects = "object_id,object.name\n0,\"\"\n1,\n2,left\n";
    bench.file("a.objects.csv", objects);
    let line = ["create", "@a.zv", "--kind", "streamlines"];
    bench.says(&[&line[..], &["--from", "@a.csv"]].concat());
    let found = bench.result("@a.zv", &[]);
    assert!(found.ends_with(objects), "{found}");
    bench.says(&["delete", "@a.zv", "--object", "2"]);
    let found = bench.result("@a.zv", &[]);
    assert!(found.ends_with("0,\"\"\n1,\n"), "{found}");
}
