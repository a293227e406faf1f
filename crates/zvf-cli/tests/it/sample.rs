//! `zvf sample`, as a user runs it.

use std::{fmt::Write as _, fs};

use serde_json::{Value, json};

use crate::{stores::Bench, text};

/// Encodes floats as `.npy`.
fn npy(shape: &str, values: impl Iterator<Item = f32>) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(values.flat_map(f32::to_le_bytes));
    bytes
}

/// Creates a volume whose voxel at i, j, k is 100i + 10j + k, and points in it.
fn bench() -> Bench {
    let bench = Bench::new();
    let mut values = Vec::new();
    for at in 0..12_u16 * 11 * 10 {
        let (i, j, k) = (at / 110, at / 10 % 11, at % 10);
        values.push(f32::from(i * 100 + j * 10 + k));
    }
    fs::write(bench.path("v.npy"), npy("(12, 11, 10)", values.into_iter())).unwrap();
    let mut table = "x,y,z\n".to_owned();
    for at in 0..500_u16 {
        let [x, y, z] = [37_u16, 23, 11].map(|step| f64::from(at * step % 79) / 79.0);
        writeln!(table, "{},{},{}", x * 11.0, y * 10.0, z * 9.0).unwrap();
    }
    bench.file("a.csv", &table);
    bench
}

fn create(bench: &Bench, more: &[&str]) {
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    let chunks = ["--chunk-shape", "3,3,3", "--dtype", "float64", "--quiet"];
    bench.says(&[&line[..], &chunks, more].concat());
}

/// Returns the columns of the vertices in the result of a query.
fn rows(bench: &Bench) -> Vec<Vec<f64>> {
    let result = bench.result("@a.zv", &[]);
    let lines = result.lines().skip(1);
    lines
        .map(|line| line.split(',').map(|word| word.parse().unwrap()).collect())
        .collect()
}

#[track_caller]
fn is_valid(bench: &Bench) {
    let found = bench.json(&["validate", "@a.zv"]);
    assert_eq!(found["findings"], json!([]), "{found}");
}

#[test]
fn sampled_values_are_returned_with_the_vertices() {
    for form in [
        &[][..],
        &["--shard=2,2,2", "--compression=zstd:3"],
        &["--compression=blosc"],
        &["--shard"],
    ] {
        let bench = bench();
        create(&bench, form);
        // With little memory, each shard or chunk is a batch of its own.
        let line = [
            "sample", "@a.zv", "@v.npy", "--into", "v", "--memory", "9000",
        ];
        let done = bench.json(&line);
        assert_eq!(
            (&done["vertices"], &done["outside"]),
            (&json!(500), &json!(0))
        );
        let is_one_object = form == ["--shard"];
        assert_eq!(done["batches"] == 1, is_one_object, "{done}");
        is_valid(&bench);
        let found = rows(&bench);
        assert_eq!(found.len(), 500);
        for row in found {
            let expected = row[0] * 100.0 + row[1] * 10.0 + row[2];
            assert!((row[3] - expected).abs() < 1e-3, "{row:?}, not {expected}");
        }
        // The store can still be edited.
        bench.says(&["compact", "@a.zv"]);
        is_valid(&bench);
    }
}

#[test]
fn positions_of_16_bits_are_sampled() {
    let bench = bench();
    let mut table = "x,y,z\n".to_owned();
    for at in 0..500_u16 {
        // Quarters are exact in 16 bits.
        let [x, y, z] = [37_u16, 23, 11].map(|step| f64::from(at * step % 36) / 4.0);
        writeln!(table, "{x},{y},{z}").unwrap();
    }
    bench.file("h.csv", &table);
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@h.csv"];
    let form = ["--dtype", "float16", "--chunk-shape", "4,4,4", "--quiet"];
    bench.says(&[&line[..], &form].concat());
    let done = bench.json(&["sample", "@a.zv", "@v.npy", "--into", "v"]);
    assert_eq!(done["vertices"], 500);
    is_valid(&bench);
    for row in rows(&bench) {
        let expected = row[0] * 100.0 + row[1] * 10.0 + row[2];
        assert!((row[3] - expected).abs() < 1e-3, "{row:?}, not {expected}");
    }
}

/// Twelve chunks along x: sorted by name, the eleventh would follow the first.
#[test]
fn each_block_is_read_once_over_all_batches() {
    let bench = bench();
    let line = ["create", "@a.zv", "--kind", "points", "--from", "@a.csv"];
    bench.says(&[&line[..], &["--chunk-shape", "1,30,30", "--quiet"]].concat());
    // One block of 440 bytes per layer of voxels.
    bench.says(&["tet", "convert", "@v.npy", "@v.tet", "--chunks", "1,11,10"]);
    // Memory for six blocks, and for a hundred vertices and their values.
    let line = [
        "sample", "@a.zv", "@v.tet", "--into", "v", "--memory", "3000",
    ];
    let done = bench.json(&line);
    assert!(done["batches"].as_u64().unwrap() > 3, "{done}");
    assert_eq!(done["blocks"], 12, "{done}");
    for row in rows(&bench) {
        let expected = row[0] * 100.0 + row[1] * 10.0 + row[2];
        assert!((row[3] - expected).abs() < 1e-3, "{row:?}, not {expected}");
    }
}

#[test]
fn an_attribute_is_replaced_only_on_request() {
    let bench = bench();
    create(&bench, &["--shard=2,2,2"]);
    let line = ["sample", "@a.zv", "@v.npy", "--into", "v"];
    bench.says(&line);
    let said = bench.refused(&line);
    assert_eq!(
        said,
        "error: attribute v of vertices already exists; replace it with --overwrite\n"
    );
    // World coordinates are scaled by two and shifted by one.
    bench.file("m.txt", "0.5 0 0 1\n0 0.5 0 0\n0 0 0.5 0\n0 0 0 1\n");
    let more = ["--overwrite", "--affine", "@m.txt", "--interp", "nearest"];
    bench.says(&[&line[..], &more].concat());
    is_valid(&bench);
    for row in rows(&bench) {
        let at = [row[0] / 2.0 + 1.0, row[1] / 2.0, row[2] / 2.0].map(|at| (at + 0.5).floor());
        assert_eq!(
            row[3].to_bits(),
            (at[0] * 100.0 + at[1] * 10.0 + at[2]).to_bits()
        );
    }
    for name in ["", "x"] {
        bench.refused(&["sample", "@a.zv", "@v.npy", "--into", name]);
    }
    bench.file("m.txt", "1 0 1 1");
    let said = bench.refused(&[&line[..], &more].concat());
    assert!(
        said.contains("/m.txt: the last row of an affine map"),
        "{said}"
    );
}

#[test]
fn coarser_levels_become_stale() {
    let bench = bench();
    create(&bench, &[]);
    bench.says(&["pyramid", "@a.zv", "--levels", "1", "--quiet"]);
    bench.says(&["sample", "@a.zv", "@v.npy", "--into", "v", "--outside=-1"]);
    let found = bench.json(&["validate", "@a.zv"]);
    let findings = found["findings"].as_array().unwrap();
    // The stale level is noted, and nothing else.
    assert_eq!(
        (findings.len(), &findings[0]["code"]),
        (1, &json!("ZV-L4-059"))
    );
    let root = fs::read(bench.path("a.zv/zarr.json")).unwrap();
    let root: Value = serde_json::from_slice(&root).unwrap();
    assert_eq!(root["attributes"]["zvf_stale_levels"], json!([1]));
    // Refreshed levels have the attribute too.
    bench.says(&["pyramid", "@a.zv", "--refresh", "--quiet"]);
    is_valid(&bench);
    assert!(bench.path("a.zv/1/vertex_attributes/v/zarr.json").exists());
}

#[test]
fn voxels_with_several_values_give_several_channels() {
    let bench = bench();
    create(&bench, &[]);
    let values = (0..12_u16 * 11 * 10).flat_map(|at| [at / 110, at % 10].map(f32::from));
    fs::write(bench.path("c.npy"), npy("(12, 11, 10, 2)", values)).unwrap();
    let done = bench.json(&[
        "sample", "@a.zv", "@c.npy", "--into", "c", "--interp", "cubic",
    ]);
    assert_eq!(done["row_shape"], json!([2]));
    is_valid(&bench);
    for row in rows(&bench).iter().filter(|row| {
        // Cubic weights need neighbours inside the volume.
        (1.0..9.0).contains(&row[0]) && (1.0..7.0).contains(&row[2])
    }) {
        assert!(
            (row[3] - row[0]).abs() < 1e-4 && (row[4] - row[2]).abs() < 1e-4,
            "{row:?}"
        );
    }
}

#[test]
fn object_attributes_aggregate_their_vertices() {
    let bench = bench();
    // Three lines along x, and a fourth outside the volume.
    let mut table = "x,y,z,object_id\n".to_owned();
    for (object, y) in [(7, 1.0), (9, 2.5), (4, 3.0), (11, 900.0)] {
        for x in 0..8_u8 {
            writeln!(table, "{x},{y},2,{object}").unwrap();
        }
    }
    bench.file("l.csv", &table);
    bench.says(&[
        "create",
        "@l.zv",
        "--kind",
        "polylines",
        "--from",
        "@l.csv",
        "--chunk-shape",
        "3,3,3",
        "--quiet",
    ]);
    for (how, expected) in [
        ("mean", [352.0 + 10.0, 352.0 + 25.0, 352.0 + 30.0]),
        ("sum", [8.0 * 362.0, 8.0 * 377.0, 8.0 * 382.0]),
        ("min", [12.0, 27.0, 32.0]),
        ("max", [712.0, 727.0, 732.0]),
    ] {
        let reduce = format!("object:{how}");
        let line = [
            "sample", "@l.zv", "@v.npy", "--into", how, "--reduce", &reduce,
        ];
        let done = bench.json(&line);
        assert_eq!(
            (&done["dtype"], &done["outside"]),
            (&json!("float64"), &json!(8))
        );
        let found = bench.json(&["validate", "@l.zv"]);
        assert_eq!(found["findings"], json!([]), "{found}");
        for (object, value) in [7, 9, 4].into_iter().zip(expected) {
            let near = [
                format!("object.{how} > {}", value - 0.01),
                format!("object.{how} < {}", value + 0.01),
            ];
            let object = object.to_string();
            let (line, near) = (
                ["query", "@l.zv", "--count", "--object"],
                near.join(" and "),
            );
            let count = bench.json(&[&line[..], &[&object, "--where", &near]].concat());
            assert_eq!(
                count["vertices"], 8,
                "{how} of {object} is not {value}: {count}"
            );
        }
        let said = bench.refused(&line);
        assert!(said.contains("of objects already exists"), "{said}");
    }
    // The object outside has no value.
    let any = "object.mean > -1e300";
    let count = bench.json(&[
        "query", "@l.zv", "--count", "--object", "11", "--where", any,
    ]);
    assert_eq!(count["vertices"], 0, "{count}");
    let said = bench.refused(&[
        "sample", "@a.zv", "@v.npy", "--into", "a", "--reduce", "object:x",
    ]);
    assert!(said.contains("use object:mean"), "{said}");
}

/// A NIfTI-1 volume of float32 with an sform, whose voxel at i, j, k is 100i + 10j + k.
pub(crate) fn nifti(step: [f32; 3], first: [f32; 3]) -> Vec<u8> {
    let mut bytes = vec![0; 352];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &348_i32.to_le_bytes());
    for (at, value) in [
        (40, 3_i16),
        (42, 12),
        (44, 11),
        (46, 10),
        (70, 16),
        (254, 1),
    ] {
        put(at, &value.to_le_bytes());
    }
    put(108, &352_f32.to_le_bytes());
    let rows = [
        [step[0], 0.0, 0.0, first[0]],
        [0.0, step[1], 0.0, first[1]],
        [0.0, 0.0, step[2], first[2]],
    ];
    for (at, value) in rows.concat().into_iter().enumerate() {
        put(280 + 4 * at, &value.to_le_bytes());
    }
    put(344, b"n+1\0");
    for k in 0..10_u16 {
        for j in 0..11_u16 {
            for i in 0..12_u16 {
                bytes.extend(f32::from(100 * i + 10 * j + k).to_le_bytes());
            }
        }
    }
    bytes
}

#[test]
fn positions_in_a_nifti_volume_are_mapped_by_its_header() {
    let bench = Bench::new();
    // Voxels of half a unit, with the first axis mirrored.
    let volume = nifti([-0.5, 0.5, 0.5], [20.0, 0.0, -3.0]);
    fs::write(bench.path("v.nii"), volume).unwrap();
    bench.file("a.csv", "x,y,z\n20,0,-3\n19.5,0.25,-1\n15,5,1\n0,0,0\n");
    create(&bench, &[]);
    let line = ["sample", "@a.zv", "@v.nii", "--into", "v"];
    let done = bench.json(&line);
    assert_eq!(
        (&done["affine"], &done["outside"]),
        (&json!("sform"), &json!(1))
    );
    let mut values: Vec<String> = rows(&bench).iter().map(|row| row[3].to_string()).collect();
    values.sort();
    assert_eq!(values, ["0", "109", "1108", "NaN"]);
    is_valid(&bench);
    // A matrix replaces that of the header.
    bench.file("m.txt", "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n");
    let more = ["--overwrite", "--affine", "@m.txt", "--json"];
    let output = bench.run(&[&line[..], &more].concat());
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&done["affine"], &done["outside"]),
        (&json!("file"), &json!(3))
    );
    let said = text(&output.stderr);
    assert!(said.contains("3 of 4 vertices are outside"), "{said}");
}

/// Positions in micrometres were looked up as millimetres.
#[test]
fn positions_are_converted_to_the_unit_of_a_nifti_volume() {
    let bench = Bench::new();
    fs::write(
        bench.path("v.nii"),
        nifti([-0.5, 0.5, 0.5], [20.0, 0.0, -3.0]),
    )
    .unwrap();
    bench.file(
        "a.csv",
        "x,y,z\n20000,0,-3000\n19500,250,-1000\n15000,5000,1000\n",
    );
    create(
        &bench,
        &["--axes", "x:micrometer,y:micrometer,z:micrometer"],
    );
    let done = bench.json(&["sample", "@a.zv", "@v.nii", "--into", "v"]);
    assert_eq!((&done["outside"], &done["notes"]), (&json!(0), &json!([])));
    let mut values: Vec<String> = rows(&bench).iter().map(|row| row[3].to_string()).collect();
    values.sort();
    assert_eq!(values, ["0", "109", "1108"]);
}

#[test]
fn most_vertices_outside_are_a_warning() {
    let bench = bench();
    create(&bench, &[]);
    // A corner of the store is inside.
    bench.file("m.txt", "-2 0 0 3\n0 -2 0 3\n0 0 -2 3\n0 0 0 1\n");
    let line = [
        "sample", "@a.zv", "@v.npy", "--into", "v", "--affine", "@m.txt",
    ];
    let output = bench.run(&line);
    let said = text(&output.stderr);
    assert!(said.contains("vertices are outside the volume"), "{said}");
}

/// The matrix is at fault, and not the volume.
#[test]
fn a_matrix_of_other_axes_is_named() {
    let bench = bench();
    create(&bench, &[]);
    bench.file("bad.txt", "1 0 0\n0 1 0\n0 0 1\n");
    let line = [
        "sample", "@a.zv", "@v.npy", "--into", "v", "--affine", "@bad.txt",
    ];
    assert_eq!(
        bench.refused(&line),
        "error: /bad.txt: the matrix is for 2 axes, and /a.zv has 3; \
         give --affine with 4 rows of 4 numbers\n"
    );
    bench.file("bad.txt", "one two");
    let said = bench.refused(&line);
    assert!(said.starts_with("error: /bad.txt: "), "{said}");
}

/// A store in a folder without permission to write is named, with the remedy.
#[cfg(unix)]
#[test]
fn a_store_that_cannot_be_written_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let bench = bench();
    create(&bench, &[]);
    let lock = |mode| {
        for folder in ["a.zv", "a.zv/0"] {
            fs::set_permissions(bench.path(folder), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    lock(0o555);
    // The super-user may write all the same.
    let is_locked = fs::write(bench.path("a.zv/probe"), "").is_err();
    let line = ["sample", "@a.zv", "@v.npy", "--into", "v"];
    if is_locked {
        let said = bench.refused(&line);
        let expected = "writing to /a.zv is not permitted; change its permissions, or write to";
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("LocalFileSystem"), "{said}");
    }
    lock(0o755);
}

#[test]
fn a_volume_elsewhere_is_refused() {
    let bench = bench();
    create(&bench, &[]);
    bench.file("m.txt", "1 0 0 900\n0 1 0 0\n0 0 1 0\n0 0 0 1\n");
    let line = [
        "sample", "@a.zv", "@v.npy", "--into", "v", "--affine", "@m.txt",
    ];
    let said = bench.refused(&line);
    assert!(said.contains("no vertex is inside the volume"), "{said}");
    assert!(
        said.contains("check that the affine maps positions to voxels"),
        "{said}"
    );
    bench.says(&[&line[..], &["--outside=-1"]].concat());
}
