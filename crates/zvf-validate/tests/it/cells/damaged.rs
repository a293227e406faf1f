//! Damage to vertices, fragments and their attributes.

use serde_json::json;
use zvf_format::{
    fragment::FragmentIndexBuilder,
    numeric::{ByteOrder, encode},
};

use zvf_testkit::stores::{Random, Recipe, RecipeProfile, StoreKind, make};

use super::{
    check, check_of, found,
    small::{binned, bytes, cell, get, int64s, put, ranges, remove, set, small, unset},
};

const V: &str = "0/vertices/zarr.json";
const W: &str = "0/vertex_attributes/w/zarr.json";

#[test]
fn the_small_store_is_healthy() {
    check(|_| {}, &[]);
    check_of(binned(), |_| {}, &[]);
}

#[test]
fn lists_of_chunks() {
    check(
        |files| set(files, W, &["nonempty_chunks"], json!(["0.0"])),
        &[
            "ZV-L3-006 0/vertex_attributes/w attributes.nonempty_chunks",
            "ZV-L3-030 0/vertex_attributes/w chunk 1.0",
        ],
    );
    check(
        |files| unset(files, W, &["nonempty_chunks"]),
        &[
            "ZV-L3-005 0/vertex_attributes/w attributes.nonempty_chunks",
            "ZV-L3-006 0/vertex_attributes/w attributes.nonempty_chunks",
            "ZV-L3-030 0/vertex_attributes/w chunk 0.0",
            "ZV-L3-030 0/vertex_attributes/w chunk 1.0",
        ],
    );
    let odd = json!(["0.0", 1, "1.0", "x", "0.0", "5.0"]);
    check(
        |files| set(files, W, &["nonempty_chunks"], odd),
        &[
            "ZV-L3-005 0/vertex_attributes/w attributes.nonempty_chunks[1]",
            "ZV-L3-005 0/vertex_attributes/w attributes.nonempty_chunks[3]",
            "ZV-L3-005 0/vertex_attributes/w attributes.nonempty_chunks[4]",
            "ZV-L3-005 0/vertex_attributes/w attributes.nonempty_chunks[5]",
        ],
    );
}

#[test]
fn cells_that_are_not_there_or_not_to_be() {
    check(
        |files| remove(files, "0/vertex_attributes/w/c/1/0"),
        &["ZV-L3-001 0/vertex_attributes/w chunk 1.0"],
    );
    check(
        |files| put(files, "0/vertices/c/2/0", get(files, "0/vertices/c/1/0")),
        &["ZV-L3-007 0/vertices 0/vertices/c/2/0"],
    );
    check(
        |files| cell(files, "0/vertex_attributes/w/c/1/0", Vec::clear),
        &[
            "ZV-L3-008 0/vertex_attributes/w chunk 1.0",
            "ZV-L3-030 0/vertex_attributes/w chunk 1.0",
        ],
    );
    check(
        |files| put(files, "0/vertices/c/1/0", vec![1, 0, 0]),
        &["ZV-L3-002 0/vertices chunk 1.0"],
    );
    // A chunk listed by no part does not exist.
    check(
        |files| {
            set(files, V, &["nonempty_chunks"], json!(["0.0"]));
            remove(files, "0/vertices/c/1/0");
        },
        &[
            "ZV-L3-017 0 attributes.zarr_vectors_level.vertex_count",
            "ZV-L3-030 0/vertex_attributes/part chunk 1.0",
            "ZV-L3-030 0/vertex_attributes/w chunk 1.0",
            "ZV-L3-022 0/vertex_fragments chunk 1.0",
        ],
    );
}

#[test]
fn coordinates() {
    let vertices = "0/vertices/c/0/0";
    check(
        |files| cell(files, vertices, |payload| payload.truncate(31)),
        &["ZV-L3-010 0/vertices chunk 0.0"],
    );
    for odd in [f32::NAN, f32::INFINITY] {
        check(
            |files| {
                cell(files, vertices, |p| {
                    p[8..12].copy_from_slice(&odd.to_le_bytes());
                });
            },
            &["ZV-L3-011 0/vertices chunk 0.0"],
        );
    }
    // A coordinate on the border belongs to the next chunk.
    for x in [10.0_f32, 11.0, -0.0001] {
        let outside = x < 0.5;
        let mut expected = vec!["ZV-L3-012 0/vertices chunk 0.0"];
        if outside {
            expected.insert(0, "ZV-L3-013  attributes.zarr_vectors.bounds");
        }
        check(
            |files| {
                cell(files, vertices, |p| {
                    p[8..12].copy_from_slice(&x.to_le_bytes());
                });
            },
            &expected,
        );
    }
    check(
        |files| {
            cell(files, vertices, |p| {
                p[8..12].copy_from_slice(&9.999_999_f32.to_le_bytes());
            });
        },
        &[],
    );
    check(
        |files| {
            let bounds = json!([[0.5, 0.6], [19.4, 9.5]]);
            set(files, "zarr.json", &["zarr_vectors", "bounds"], bounds);
        },
        &["ZV-L3-013  attributes.zarr_vectors.bounds"],
    );
    check(
        |files| set(files, V, &["encoding"], json!("draco")),
        // ZV-L3-018, of streams without order, is tested with whole stores (`draco` of zvf).
        &["ZV-L3-014 0/vertices -"],
    );
    check(
        |files| {
            let path = ["zarr_vectors_level", "vertex_count"];
            set(files, "0/zarr.json", &path, json!(0));
        },
        &["ZV-L3-017 0 attributes.zarr_vectors_level.vertex_count"],
    );
}

#[test]
fn the_right_bounds_are_those_of_all_vertices() {
    let mut files = small();
    let bounds = json!([[1.0, 2.0], [3.0, 12.0]]);
    set(&mut files, "zarr.json", &["zarr_vectors", "bounds"], bounds);
    let findings = found(&files);
    let zvf_validate::Fix::Attribute { value, .. } = findings[0].fix.clone().unwrap() else {
        panic!("expected a fix of an attribute");
    };
    assert_eq!(value, Some(json!([[0.5, 0.5], [19.5, 12.0]])));
    assert_eq!(findings[0].message, "4 vertices");
}

#[test]
fn coordinates_of_other_types() {
    let every = |dtype: &str, encoded: &dyn Fn(&[f64]) -> Vec<u8>| {
        for bad in [None, Some(10.0), Some(f64::NAN)] {
            let mut files = small();
            set(&mut files, V, &["dtype"], json!(dtype));
            let mut first = [0.5, 0.5, 9.0, 1.0, 1.0, 5.0, 2.0, 9.5];
            first[2] = bad.unwrap_or(9.0);
            cell(&mut files, "0/vertices/c/0/0", |payload| {
                *payload = encoded(&first);
            });
            let second = [10.0, 1.0, 19.5, 2.0];
            cell(&mut files, "0/vertices/c/1/0", |payload| {
                *payload = encoded(&second);
            });
            let expected: &[&str] = match bad {
                None => &[],
                Some(bad) if bad.is_nan() => &["ZV-L3-011 0/vertices chunk 0.0"],
                Some(_) => &["ZV-L3-012 0/vertices chunk 0.0"],
            };
            check_of(files, |_| {}, expected);
        }
    };
    every("float64", &|values| encode(values, ByteOrder::Little));
    every(">f8", &|values| encode(values, ByteOrder::Big));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the values are exact in f32"
    )]
    let single = |values: &[f64]| -> Vec<f32> { values.iter().map(|x| *x as f32).collect() };
    every(">f4", &|values| encode(&single(values), ByteOrder::Big));
    every("float32", &|values| {
        encode(&single(values), ByteOrder::Little)
    });
}

#[test]
fn fragment_indexes() {
    let index = "0/vertex_fragments/c/0/0";
    let damage = |at: usize, byte: u8| {
        check(
            |files| cell(files, index, |payload| payload[at] = byte),
            &["ZV-L3-020 0/vertex_fragments chunk 0.0"],
        );
    };
    // Magic, version, flags, number of ranges, and a negative start.
    for (at, byte) in [(0, 0), (4, 2), (6, 1), (12, 1), (31, 0x80)] {
        damage(at, byte);
    }
    check(
        |files| cell(files, index, |payload| payload.push(0)),
        &["ZV-L3-020 0/vertex_fragments chunk 0.0"],
    );
    check(
        |files| cell(files, index, |payload| payload[16] |= 4),
        &["ZV-L3-021 0/vertex_fragments chunk 0.0"],
    );
    let lists = |offsets: [u8; 2]| {
        let mut builder = FragmentIndexBuilder::default();
        builder
            .push_list(&[1, 0])
            .unwrap()
            .push_list(&[3, 2])
            .unwrap();
        let mut payload = builder.finish();
        // The offsets follow the header and the bitmap.
        payload[28] = offsets[0];
        payload[32] = offsets[1];
        payload
    };
    let tile = "ZV-L3-025 0 attributes.zarr_vectors_level.fragments_tile";
    check(|files| cell(files, index, |p| *p = lists([2, 4])), &[tile]);
    check(
        |files| cell(files, index, |p| *p = lists([5, 4])),
        &["ZV-L3-020 0/vertex_fragments chunk 0.0"],
    );
    check(
        |files| cell(files, index, |p| *p = ranges(&[(0, 2), (2, 5)])),
        &["ZV-L3-022 0/vertex_fragments chunk 0.0"],
    );
    check(
        |files| {
            let fragments = "0/vertex_fragments/zarr.json";
            set(files, fragments, &["nonempty_chunks"], json!(["0.0"]));
            remove(files, "0/vertex_fragments/c/1/0");
        },
        &[
            "ZV-L3-031 0/fragment_attributes/object_id chunk 1.0",
            "ZV-L3-023 0/vertex_fragments chunk 1.0",
        ],
    );
    check(
        |files| cell(files, index, |p| *p = ranges(&[(0, 2), (3, 4)])),
        &[tile, "ZV-L3-024 0/vertex_fragments chunk 0.0"],
    );
    check(
        |files| cell(files, index, |p| *p = ranges(&[(2, 4), (0, 2)])),
        &[tile],
    );
}

#[test]
fn bins() {
    let index = "0/vertex_fragments/c/0/0";
    check_of(
        binned(),
        |files| cell(files, index, |p| *p = ranges(&[(0, 3), (3, 4)])),
        &["ZV-L3-026 0/vertex_fragments chunk 0.0"],
    );
    check_of(
        binned(),
        |files| cell(files, index, |p| *p = ranges(&[(0, 2), (2, 4), (4, 4)])),
        &["ZV-L3-027 0/vertex_fragments chunk 0.0"],
    );
    check_of(
        binned(),
        |files| cell(files, index, |p| *p = ranges(&[(0, 4)])),
        &["ZV-L3-027 0/vertex_fragments chunk 0.0"],
    );
    // An empty bin needs no fragment.
    check_of(
        binned(),
        |files| {
            let other = "0/vertex_fragments/c/1/0";
            cell(files, other, |p| *p = ranges(&[(0, 2)]));
        },
        &[],
    );
    // Ranges that each span the whole chunk are not walked one by one.
    check_of(
        binned(),
        |files| {
            unset(
                files,
                "0/zarr.json",
                &["zarr_vectors_level", "fragments_tile"],
            );
            cell(files, index, |p| *p = ranges(&[(0, 4), (0, 4)]));
        },
        &["ZV-L3-026 0/vertex_fragments chunk 0.0"],
    );
    // A chunk with one bin filled differs from a chunk with another.
    check_of(
        binned(),
        |files| {
            cell(files, "0/vertex_fragments/c/1/0", |p| {
                *p = ranges(&[(0, 0), (0, 2)]);
            });
        },
        &["ZV-L3-026 0/vertex_fragments chunk 1.0"],
    );
}

#[test]
fn attributes_of_vertices_and_fragments() {
    let w = "0/vertex_attributes/w/c/0/0";
    for rows in [3, 5] {
        check(
            |files| cell(files, w, |p| p.resize(rows * 4, 0)),
            &["ZV-L3-030 0/vertex_attributes/w chunk 0.0"],
        );
    }
    check(
        |files| cell(files, w, |p| p.resize(32, 0)),
        &[
            "ZV-L3-032 0/vertex_attributes/w chunk 1.0",
            "ZV-L3-033 0/vertex_attributes/w attributes.row_shape",
        ],
    );
    check(
        |files| {
            cell(files, w, |p| p.resize(32, 0));
            cell(files, "0/vertex_attributes/w/c/1/0", |p| p.resize(16, 0));
        },
        &["ZV-L3-033 0/vertex_attributes/w attributes.row_shape"],
    );
    check(
        |files| set(files, W, &["channel_names"], json!(["a", "b"])),
        &["ZV-L3-033 0/vertex_attributes/w attributes.channel_names"],
    );
    check(
        |files| cell(files, "0/vertex_attributes/part/c/1/0", |p| p[1] = 2),
        &["ZV-L3-034 0/vertex_attributes/part chunk 1.0"],
    );
    let owners = "0/fragment_attributes/object_id/c/0/0";
    check(
        |files| cell(files, owners, |p| p.truncate(8)),
        &["ZV-L3-031 0/fragment_attributes/object_id chunk 0.0"],
    );
    check(
        |files| cell(files, owners, |p| *p = int64s(&[3, -1])),
        &["ZV-L3-035 0/fragment_attributes/object_id chunk 0.0"],
    );
    check(
        |files| set(files, W, &["dtype"], json!("no such type")),
        &["ZV-L3-004 0/vertex_attributes/w attributes.dtype"],
    );
    check(
        |files| {
            cell(files, w, |p| {
                *p = bytes(&[f32::INFINITY, f32::NAN, 0.0, 0.0]);
            });
        },
        &[],
    );
}

#[test]
fn attributes_of_links_have_codes_with_a_category() {
    let families = [
        "0/link_attributes/flow",
        "0/cross_chunk_link_attributes/flow",
    ];
    let is_flow = |name: &str| families.iter().any(|family| name.starts_with(family));
    let mut seen = 0;
    for profile in RecipeProfile::ALL {
        let recipe = |seed: u64| Recipe {
            kind: StoreKind::Graph,
            profile,
            seed,
            ..Recipe::default()
        };
        let mut stores = (0..20)
            .map(|seed| make(&recipe(seed).possible()).files)
            .filter(|files| files.iter().any(|(name, _)| is_flow(name)));
        let Some(files) = stores.next() else {
            continue;
        };
        let coded = |categories: usize| {
            let mut files = files.clone();
            for (name, _) in &*files.clone() {
                let is_node = is_flow(name) && name.ends_with("zarr.json");
                let node: serde_json::Value = if is_node {
                    serde_json::from_slice(&get(&files, name)).unwrap()
                } else {
                    continue;
                };
                let block = match node["attributes"]["zarr_vectors"].get("kind") {
                    Some(_) => vec!["zarr_vectors"],
                    None => Vec::new(),
                };
                let members = block
                    .iter()
                    .fold(&node["attributes"], |at, name| &at[*name]);
                if members.get("dtype").is_none() {
                    continue;
                }
                let at = |name| [&block[..], &[name]].concat();
                let words: Vec<String> = (0..categories).map(|word| word.to_string()).collect();
                set(&mut files, name, &at("dtype"), json!("uint8"));
                set(&mut files, name, &at("encoding"), json!("dictionary"));
                set(&mut files, name, &at("categories"), json!(words));
            }
            let mut lines = super::lines(&found(&files));
            lines.retain(|line| line.starts_with("ZV-L3-034"));
            lines
        };
        assert_eq!(coded(256), [""; 0], "{profile:?}");
        let wrong = coded(1);
        let all_flow = wrong
            .iter()
            .all(|line| line.contains("link_attributes/flow"));
        assert!(!wrong.is_empty() && all_flow, "{profile:?}: {wrong:?}");
        seen += 1;
    }
    assert!(seen >= 3, "{seen}");
}

#[test]
fn any_damage_is_survived() {
    let recipes = RecipeProfile::ALL.into_iter().flat_map(|profile| {
        [
            StoreKind::Polylines,
            StoreKind::BinnedPoints,
            StoreKind::Graph,
        ]
        .map(|kind| Recipe {
            kind,
            profile,
            size: 12,
            axes: 2,
            ..Recipe::default()
        })
    });
    let mut stores = vec![small(), binned()];
    stores.extend(recipes.map(|recipe| make(&recipe.possible()).files));
    let mut random = Random::new(11);
    for files in stores {
        for _ in 0..40 {
            let mut damaged = files.clone();
            let at = random.below(damaged.len());
            let bytes = &mut damaged[at].1;
            match random.below(4) {
                0 => bytes.truncate(random.below(bytes.len() + 1)),
                1 => bytes.extend([0xff; 9]),
                _ if bytes.is_empty() => {}
                _ => {
                    let byte = random.below(bytes.len());
                    bytes[byte] = *random.pick(&[0, 1, 0x30, 0x39, 0x7f, 0x80, 0xff]);
                }
            }
            let _ = found(&damaged);
        }
    }
}
