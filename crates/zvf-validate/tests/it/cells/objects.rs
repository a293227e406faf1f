//! Damage to objects, groups and their attributes.

use serde_json::{Value, json};
use zvf_format::{manifest::ObjectManifestBuilder, vlen};
use zvf_testkit::{damage::apply, golden::Files};
use zvf_validate::ValidateOptions;

use super::{
    check, check_of,
    small::{cell, int64s, items, manifest, put, remove, set, small},
};
use crate::memory::report;

const INDEX: &str = "0/object_index/zarr.json";
const MANIFESTS: &str = "0/object_index/manifests/c/0";
const IDS: &str = "0/object_index/object_ids/c/0";

#[test]
fn manifests() {
    check(
        |files| set(files, INDEX, &["sid_ndim"], json!(3)),
        &["ZV-L3-004 0/object_index attributes.sid_ndim"],
    );
    check(
        |files| items(files, MANIFESTS, |items| items[1].truncate(9)),
        &["ZV-L3-041 0/object_index/manifests row 1"],
    );
    check(
        |files| put(files, MANIFESTS, vec![2, 0, 0, 0, 9]),
        &["ZV-L3-002 0/object_index/manifests rows 0 to 2"],
    );
    check(
        |files| items(files, MANIFESTS, |items| items[1].clear()),
        &[
            "ZV-L3-035 0/fragment_attributes/object_id chunk 0.0",
            "ZV-L3-042 0/object_index -",
            "ZV-L3-046 0/object_index attributes.num_present",
            "ZV-L3-051 0/vertex_fragments chunk 0.0",
        ],
    );
    check(
        |files| remove(files, MANIFESTS),
        &[
            "ZV-L3-035 0/fragment_attributes/object_id chunk 0.0",
            "ZV-L3-035 0/fragment_attributes/object_id chunk 1.0",
            "ZV-L3-042 0/object_index -",
            "ZV-L3-046 0/object_index attributes.num_present",
            "ZV-L3-001 0/object_index/manifests -",
            "ZV-L3-051 0/vertex_fragments chunk 0.0",
            "ZV-L3-051 0/vertex_fragments chunk 1.0",
        ],
    );
    check(
        |files| {
            let more = manifest(&[([0, 0], 1), ([0, 3], 0)]);
            items(files, MANIFESTS, |items| items[1] = more);
        },
        &["ZV-L3-043 0/object_index object 7"],
    );
    check(
        |files| {
            let more = manifest(&[([0, 0], 1), ([1, 0], 1)]);
            items(files, MANIFESTS, |items| items[1] = more);
        },
        &["ZV-L3-044 0/object_index object 7"],
    );
    check(
        |files| items(files, MANIFESTS, |items| items[1] = run(1, 0..u32::MAX)),
        &[
            "ZV-L3-035 0/fragment_attributes/object_id chunk 0.0",
            "ZV-L3-044 0/object_index object 7",
            "ZV-L3-051 0/vertex_fragments chunk 0.0",
        ],
    );
}

/// Fragments of chunk (x, 0).
fn run(x: i64, fragments: core::ops::Range<u32>) -> Vec<u8> {
    let mut builder = ObjectManifestBuilder::new(2);
    builder.push_range(&[x, 0], fragments).unwrap();
    builder.finish()
}

#[test]
fn ranges_that_name_fragments_time_and_again_are_not_followed() {
    check(
        |files| {
            let mut builder = ObjectManifestBuilder::new(2);
            for _ in 0..1000 {
                builder.push_range(&[0, 0], 0..2).unwrap();
            }
            let many = builder.finish();
            items(files, MANIFESTS, |items| items[1] = many);
        },
        &[
            "ZV-L3-050  attributes.zarr_vectors.format_capabilities",
            "ZV-L3-050 0 attributes.zarr_vectors_level.shared_fragments",
            "ZV-L3-035 0/fragment_attributes/object_id chunk 0.0",
        ],
    );
}

#[test]
fn rows_and_ids() {
    check(
        |files| put(files, IDS, int64s(&[3, 3])),
        &[
            "ZV-L3-035 0/fragment_attributes/object_id chunk 0.0",
            "ZV-L3-065 0/groups group 0",
            "ZV-L3-065 0/groups group 1",
            "ZV-L3-047 0/object_index -",
        ],
    );
    check(
        |files| {
            put(files, IDS, int64s(&[7, 3]));
            items(files, MANIFESTS, |items| items.swap(0, 1));
        },
        &["ZV-L3-048 0/object_index attributes.object_ids_sorted"],
    );
    check(
        |files| {
            put(files, IDS, int64s(&[7, 3]));
            items(files, MANIFESTS, |items| items.swap(0, 1));
            set(files, INDEX, &["object_ids_sorted"], json!(false));
        },
        &[],
    );
    check(
        |files| remove(files, "0/object_index/object_ids"),
        &[
            "ZV-L3-035 0/fragment_attributes/object_id chunk 0.0",
            "ZV-L3-035 0/fragment_attributes/object_id chunk 1.0",
            "ZV-L3-065 0/groups group 0",
            "ZV-L3-065 0/groups group 1",
        ],
    );
    check(
        |files| remove(files, "0/object_index/manifests"),
        &["ZV-L3-004 0/object_index/manifests -"],
    );
    check(
        |files| set(files, INDEX, &["num_present"], json!(1)),
        &["ZV-L3-046 0/object_index attributes.num_present"],
    );
}

#[test]
fn fragments_of_several_objects_and_of_none() {
    let shared = |files: &mut Files| {
        items(files, MANIFESTS, |items| {
            items[1] = manifest(&[([0, 0], 1), ([1, 0], 0)]);
        });
        cell(files, "0/fragment_attributes/object_id/c/1/0", |p| {
            *p = int64s(&[-2]);
        });
    };
    check(
        shared,
        &[
            "ZV-L3-050  attributes.zarr_vectors.format_capabilities",
            "ZV-L3-050 0 attributes.zarr_vectors_level.shared_fragments",
        ],
    );
    // One object may contain a fragment twice.
    check(
        |files| {
            let twice = manifest(&[([0, 0], 1), ([0, 0], 1)]);
            items(files, MANIFESTS, |items| items[1] = twice);
        },
        &[],
    );
    let unowned = |files: &mut Files| {
        items(files, MANIFESTS, |items| items[1] = manifest(&[]));
        cell(files, "0/fragment_attributes/object_id/c/0/0", |p| {
            *p = int64s(&[3, -1]);
        });
        set(files, INDEX, &["num_present"], json!(1));
    };
    check(unowned, &["ZV-L3-051 0/vertex_fragments chunk 0.0"]);
    check(
        |files| {
            unowned(files);
            set(
                files,
                "zarr.json",
                &["zarr_vectors", "geometry_types"],
                json!(["point_cloud"]),
            );
        },
        &["ZV-L3-052 0/vertex_fragments chunk 0.0"],
    );
}

#[test]
fn tables() {
    check(
        |files| put(files, "0/object_attributes/score/c/0", vec![0; 7]),
        &["ZV-L3-002 0/object_attributes/score rows 0 to 2"],
    );
    check(
        |files| put(files, "0/group_attributes/share/c/0", vec![0; 12]),
        &["ZV-L3-002 0/group_attributes/share rows 0 to 2"],
    );
}

/// Makes an attribute of two rows one of text.
fn text(files: &mut Files, array: &str, data_type: Value, codec: &Value, cell: Vec<u8>) {
    let file = format!("{array}/zarr.json");
    let fields = [
        ("data_type", data_type),
        ("fill_value", json!("")),
        ("codecs", json!([codec])),
    ];
    for (field, value) in fields {
        let edit = json!({"op": "set", "file": file, "path": [field], "value": value});
        apply(files, &edit);
    }
    put(files, &format!("{array}/c/0"), cell);
}

#[test]
fn text_of_attributes() {
    let attributes = ["0/object_attributes/score", "0/group_attributes/share"];
    for array in attributes {
        let row = |row: u32| format!("ZV-L3-002 {array} row {row}");
        let fixed = |endian: &str, letters: [u32; 4], expected: &[&str]| {
            let data_type =
                json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}});
            let codec = json!({"name": "bytes", "configuration": {"endian": endian}});
            let letters = letters.iter().flat_map(|letter| match endian {
                "big" => letter.to_be_bytes(),
                _ => letter.to_le_bytes(),
            });
            let cell = letters.collect();
            check(
                |files| text(files, array, data_type, &codec, cell),
                expected,
            );
        };
        for endian in ["little", "big"] {
            fixed(endian, [0x61, 0, 0x1_f600, 0x62], &[]);
            fixed(endian, [0x61, 0, 0, 0x0011_0000], &[&row(1)]);
            fixed(endian, [0xd800, 0, 0, 0x0011_0000], &[&row(0)]);
        }
        let items = |data_type: &str, codec: &str, items: [&[u8]; 2], expected: &[&str]| {
            let codec = json!({"name": codec, "configuration": {}});
            let cell = vlen::encode(&items).unwrap();
            let data_type = json!(data_type);
            check(
                |files| text(files, array, data_type, &codec, cell),
                expected,
            );
        };
        items("string", "vlen-utf8", [b"soma", b""], &[]);
        items("string", "vlen-utf8", [b"soma", b"\xff\xfe"], &[&row(1)]);
        items("bytes", "vlen-bytes", [b"soma", b"\xff\xfe"], &[]);
    }
}

#[test]
fn fill_values_of_text() {
    let array = "0/object_attributes/score";
    let fill = |data_type: &Value, codec: &str, fill: Value, is_valid: bool| {
        let codec = json!({"name": codec, "configuration": {}});
        let cell = if codec["name"] == "bytes" {
            vec![0; 16]
        } else {
            vlen::encode(&[b"".as_slice(), b"a"]).unwrap()
        };
        let mut files = small();
        text(&mut files, array, data_type.clone(), &codec, cell);
        let file = format!("{array}/zarr.json");
        let edit = json!({"op": "set", "file": file, "path": ["fill_value"], "value": fill});
        apply(&mut files, &edit);
        let findings = report(&files, &ValidateOptions::default()).findings;
        let found = findings.iter().filter(|f| f.rule.code == "ZV-L2-048");
        assert_eq!(found.count(), usize::from(!is_valid), "{data_type} {fill}");
    };
    let fixed = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}});
    for (value, is_valid) in [("", true), ("-", true), ("é-", true), ("---", false)] {
        fill(&fixed, "bytes", json!(value), is_valid);
        fill(&json!("string"), "vlen-utf8", json!(value), true);
    }
    fill(&fixed, "bytes", json!(0), false);
    fill(&json!("string"), "vlen-utf8", json!(0), false);
    fill(&json!("bytes"), "vlen-bytes", json!("-"), false);
}

#[test]
fn groups() {
    let node = "0/groups/zarr.json";
    check(
        |files| items(files, "0/groups/c/0", |items| items[0].truncate(9)),
        &["ZV-L3-064 0/groups group 0"],
    );
    check(
        |files| {
            items(files, "0/groups/c/0", |items| {
                items[0] = int64s(&[3, 4, 7, 5]);
            });
        },
        &["ZV-L3-065 0/groups group 0"],
    );
    check(
        |files| set(files, node, &["group_ranges"], json!({"1": [6, 8]})),
        &["ZV-L3-065 0/groups group 1"],
    );
    check(
        |files| items(files, "0/groups/c/0", |items| items[1] = int64s(&[3])),
        &["ZV-L3-066 0/groups group 1"],
    );
}

#[test]
fn ids_that_the_level_above_has_not() {
    let mut files = small();
    let copies: Vec<(String, Vec<u8>)> = files
        .iter()
        .filter_map(|(name, bytes)| {
            Some((format!("1/{}", name.strip_prefix("0/")?), bytes.clone()))
        })
        .collect();
    files.extend(copies);
    set(
        &mut files,
        "1/zarr.json",
        &["zarr_vectors_level"],
        json!({
            "level": 1, "object_sparsity": 1.0, "vertex_count": 6, "parent_level": 0,
            "coarsening_method": "per_object", "arrays_present": ["vertices"],
            "preserves_object_ids": true, "inherited_num_objects": 2,
        }),
    );
    check_of(files.clone(), |_| {}, &[]);
    let other = |files: &mut Files| {
        put(files, "0/object_index/object_ids/c/0", int64s(&[3, 8]));
        cell(files, "0/fragment_attributes/object_id/c/0/0", |p| {
            *p = int64s(&[3, 8]);
        });
        items(files, "0/groups/c/0", |items| items[0] = int64s(&[3]));
        set(
            files,
            "0/groups/zarr.json",
            &["group_ranges"],
            json!({"1": [8, 9]}),
        );
    };
    check_of(files.clone(), other, &["ZV-L3-053 1 -"]);
    // A stale level is not compared with its parent.
    check_of(
        files,
        |files| {
            other(files);
            set(files, "zarr.json", &["zvf_stale_levels"], json!([1]));
        },
        &[],
    );
}
