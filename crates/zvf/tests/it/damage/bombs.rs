//! Stores that declare or contain absurd sizes are rejected or read within the memory budget.
//! Each is queried in its own process, whose peak memory the kernel measures.

#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::{Value as Json, json};
use zvf::{Dataset, OpenOptions, Query};
use zvf_catalog::Selection;
use zvf_model::error_chain::error_chain;
use zvf_query::{
    Shape,
    geometry::{Bbox, Mode, Position},
};
use zvf_testkit::golden::Golden;

use super::{Files, files};
use crate::block_on;

/// Memory budget of queries.
const BUDGET: u64 = 16 << 20;
/// Memory limit of the process, including its code and the test harness.
const MAX_RESIDENT_BYTES: u64 = 200 << 20;
/// Environment variable that names the store for the child process.
const BOMB_VARIABLE: &str = "ZVF_TEST_BOMB";

const POINTS: &str = "points_objects_groups";
const GRAPH: &str = "graph_2d_objects";
const HUGE: u64 = 1 << 62;
const LONG: &str = "a long fragment 2^16 times in a path";

/// A damaged store and the expected error.
struct Bomb {
    name: &'static str,
    archive: &'static str,
    store: &'static str,
    arm: fn(&mut Files),
    /// Part of the expected message; empty if every query may succeed.
    says: &'static str,
}

fn edit(files: &mut Files, key: &str, change: impl FnOnce(&mut Json)) {
    let (_, bytes) = files.iter_mut().find(|(path, _)| path == key).unwrap();
    let mut json = serde_json::from_slice(bytes).unwrap();
    change(&mut json);
    *bytes = serde_json::to_vec(&json).unwrap();
}

fn put(files: &mut Files, key: &str, bytes: Vec<u8>) {
    files.retain(|(path, _)| path != key);
    files.push((key.to_owned(), bytes));
}

/// Removes the compression of an array, so that cells can be written by hand.
fn plain(files: &mut Files, node: &str) {
    edit(files, &format!("{node}/zarr.json"), |json| {
        json["codecs"].as_array_mut().unwrap().truncate(1);
    });
}

/// Encodes a frame of byte strings.
fn frame(items: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = u32::try_from(items.len()).unwrap().to_le_bytes().to_vec();
    for item in items {
        bytes.extend(u32::try_from(item.len()).unwrap().to_le_bytes());
        bytes.extend(item);
    }
    bytes
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Encodes a Zstandard frame of blocks that each decode to 128 KiB of zeros.
fn zeros(blocks: u32, declared: Option<u64>) -> Vec<u8> {
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd];
    match declared {
        None => bytes.extend([0x00, 0x38]),
        Some(size) => {
            bytes.extend([0xc0, 0x38]);
            bytes.extend(size.to_le_bytes());
        }
    }
    for block in 1..=blocks {
        let header = u32::from(block == blocks) | 1 << 1 | (128 << 10) << 3;
        bytes.extend(&header.to_le_bytes()[..3]);
        bytes.push(0);
    }
    bytes
}

/// Encodes a fragment index with these counts of fragments and ranges, followed by `rest`.
fn index(fragments: u32, ranges: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"GFVZ\x01\0\0\0".to_vec();
    bytes.extend(fragments.to_le_bytes());
    bytes.extend(ranges.to_le_bytes());
    bytes.extend(rest);
    bytes
}

/// Encodes a manifest of blocks of one fragment each.
fn manifest(blocks: u32, chunk: &[i64], fragment: u64, written: u32) -> Vec<u8> {
    let mut bytes = blocks.to_le_bytes().to_vec();
    for _ in 0..written {
        bytes.extend(chunk.iter().flat_map(|n| n.to_le_bytes()));
        bytes.push(0);
        bytes.extend(fragment.to_le_bytes());
    }
    bytes
}

/// Replaces the manifests by `first` and empty ones.
fn manifests(files: &mut Files, objects: usize, first: Vec<u8>) {
    plain(files, "0/object_index/manifests");
    let mut items = vec![vec![0; 4]; objects];
    items[0] = first;
    put(files, "0/object_index/manifests/c/0", frame(&items));
}

fn vertex_index(files: &mut Files, blob: &[u8]) {
    for key in ["0/vertex_fragments/c/1/0", "0/vertex_fragments/c/1/0/0"] {
        if files.iter().any(|(path, _)| path == key) {
            put(files, key, frame(&[blob.to_vec()]));
        }
    }
}

fn listed(files: &mut Files, node: &str, shape: Json, chunks: Json) {
    edit(files, &format!("{node}/zarr.json"), |json| {
        json["shape"] = shape;
        json["attributes"]["nonempty_chunks"] = chunks;
    });
}

const BOMBS: &[Bomb] = &[
    Bomb {
        name: "a cell that decodes to 1 GiB",
        archive: "zvf-09",
        store: "points_zstd",
        arm: |files| put(files, "0/vertices/c/1/0/0", zeros(8192, None)),
        says: "0/vertices",
    },
    Bomb {
        name: "a cell that claims to decode to 2^62 bytes",
        archive: "zvf-09",
        store: "points_zstd",
        arm: |files| put(files, "0/vertices/c/1/0/0", zeros(1, Some(HUGE))),
        says: "0/vertices",
    },
    Bomb {
        name: "an attribute that decodes to 1 GiB",
        archive: "zvf-09",
        store: "points_zstd",
        arm: |files| {
            let key = |path: &str| path.contains("vertex_attributes") && path.contains("/c/");
            let keys: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
            let keys = keys.into_iter().filter(|path| key(path));
            keys.for_each(|path| put(files, &path, zeros(8192, None)));
        },
        says: "0/vertex_attributes",
    },
    Bomb {
        name: "manifests that decode to 1 GiB",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| put(files, "0/object_index/manifests/c/0", zeros(8192, None)),
        says: "0/object_index/manifests",
    },
    Bomb {
        name: "a blosc chunk that claims 2 GiB",
        archive: "zvf-09",
        store: "points_blosc",
        arm: |files| {
            let keys: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
            for key in keys.iter().filter(|key| key.contains("/c/")) {
                let mut bytes = vec![2, 1, 0x21, 4];
                bytes.extend(0x7fff_ffef_u32.to_le_bytes());
                bytes.extend(0x7fff_ffef_u32.to_le_bytes());
                bytes.extend(40_u32.to_le_bytes());
                bytes.extend([0; 24]);
                put(files, key, bytes);
            }
        },
        says: "0/vert",
    },
    Bomb {
        name: "a frame of 2^32 byte strings",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| put(files, "0/vertices/c/1/0/0", vec![0xff; 40]),
        says: "0/vertices",
    },
    Bomb {
        name: "2^32 fragments",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| vertex_index(files, &index(u32::MAX, u32::MAX, &[0xff; 64])),
        says: "0/vertex_fragments",
    },
    Bomb {
        name: "a fragment of 2^62 rows",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            let rest = [words(&[1, 0, HUGE]), vec![0; 4]].concat();
            vertex_index(files, &index(1, 1, &rest));
        },
        says: "0/vertex_fragments",
    },
    Bomb {
        name: "a million fragments of a few rows each",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            const MANY: u32 = 1 << 19;
            let bits = vec![0xff; 1 << 16];
            let ranges = words(&[0, 12]).repeat(1 << 19);
            let rest = [bits, ranges, vec![0; 4]].concat();
            vertex_index(files, &index(MANY, MANY, &rest));
        },
        says: "vertices that fragments share",
    },
    Bomb {
        name: "a manifest of 2^32 blocks",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| manifests(files, 6, manifest(u32::MAX, &[0, 0, 0], 0, 3)),
        says: "0/object_index/manifests",
    },
    Bomb {
        name: "fragment 2^32 - 1",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| manifests(files, 6, manifest(1, &[0, 0, 0], (1 << 32) - 2, 1)),
        says: "0/object_index",
    },
    Bomb {
        name: "a range of 2^32 fragments",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            let mut bytes = 1_u32.to_le_bytes().to_vec();
            bytes.extend([0; 24]);
            bytes.push(1);
            bytes.extend(words(&[0, (1 << 32) - 2]));
            manifests(files, 6, bytes);
        },
        says: "the objects of the level",
    },
    Bomb {
        name: "one chunk a million times",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| manifests(files, 6, manifest(1 << 20, &[0, 0, 0], 0, 1 << 20)),
        says: "0/object_index/manifests",
    },
    Bomb {
        name: "one chunk 2^16 times",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| manifests(files, 6, manifest(1 << 16, &[0, 0, 0], 0, 1 << 16)),
        says: "",
    },
    Bomb {
        name: "one chunk 2^16 times in a path",
        archive: "zvf-09",
        store: "polylines_2d",
        arm: |files| {
            let first = manifest(1 << 16, &[0, 0], 0, 1 << 16);
            let objects = files
                .iter()
                .find(|(key, _)| key == "0/object_index/manifests/zarr.json");
            let json: Json = serde_json::from_slice(&objects.unwrap().1).unwrap();
            let objects = json["shape"][0].as_u64().unwrap();
            manifests(files, usize::try_from(objects).unwrap(), first);
        },
        says: "",
    },
    Bomb {
        name: LONG,
        archive: "zvf-09",
        store: "polylines_2d",
        arm: |files| {
            let json = |key: &str| -> Json {
                let (_, bytes) = files.iter().find(|(path, _)| path == key).unwrap();
                serde_json::from_slice(bytes).unwrap()
            };
            let objects = &json("0/object_index/manifests/zarr.json")["shape"][0];
            let objects = usize::try_from(objects.as_u64().unwrap()).unwrap();
            let origin = &json("0/vertices/zarr.json")["attributes"]["chunk_grid_origin"];
            let cell = [0, 1].map(|axis| -origin[axis].as_i64().unwrap_or(0));
            let [x, y] = cell;
            manifests(files, objects, manifest(1 << 16, &[0, 0], 0, 1 << 16));
            let rest = [words(&[1, 0, 1 << 16]), vec![0; 4]].concat();
            let index = frame(&[index(1, 1, &rest)]);
            put(files, &format!("0/vertex_fragments/c/{x}/{y}"), index);
            let vertices = frame(&[vec![0; 8 << 16]]);
            put(files, &format!("0/vertices/c/{x}/{y}"), vertices);
        },
        says: "budget",
    },
    Bomb {
        name: "2^15 chunks",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            let mut bytes = (1_u32 << 15).to_le_bytes().to_vec();
            for chunk in 0..1_i64 << 15 {
                bytes.extend([chunk, 0, 0].iter().flat_map(|n| n.to_le_bytes()));
                bytes.push(0);
                bytes.extend([0; 8]);
            }
            manifests(files, 6, bytes);
        },
        says: "0/object_index",
    },
    Bomb {
        name: "chunks at the end of the world",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            let chunks = json!(["-1.0.0", "0.0.0", "1.0.0", "9223372036854775806.0.0"]);
            listed(files, "0/vertices", json!([i64::MAX, 1, 1]), chunks);
        },
        says: "0/vertices",
    },
    Bomb {
        name: "a chunk out of the grid",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            let chunks = json!(["-9223372036854775808.0.0", "9223372036854775807.0.0"]);
            listed(files, "0/vertices", json!([3, 1, 1]), chunks);
        },
        says: "0/vertices",
    },
    Bomb {
        name: "a grid of 2^120 cells",
        archive: "zvf-09",
        store: GRAPH,
        arm: |files| {
            edit(files, "0/links/0/+1.0/zarr.json", |json| {
                json["shape"] = json!([1_u64 << 60, 1_u64 << 60]);
                let attributes = json["attributes"].as_object_mut().unwrap();
                attributes.remove("nonempty_chunks");
            });
        },
        says: "",
    },
    Bomb {
        name: "2^60 object ids",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            edit(files, "0/object_index/object_ids/zarr.json", |json| {
                json["shape"] = json!([1_u64 << 60]);
            });
        },
        says: "0/object_index",
    },
    Bomb {
        name: "2^60 objects",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            for node in ["object_ids", "manifests"] {
                let key = format!("0/object_index/{node}/zarr.json");
                edit(files, &key, |json| json["shape"] = json!([1_u64 << 60]));
            }
            edit(files, "0/object_index/zarr.json", |json| {
                json["attributes"]["num_objects"] = json!(1_u64 << 60);
            });
        },
        says: "0/object_index",
    },
    Bomb {
        name: "2^40 objects in one chunk",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            for node in ["object_ids", "manifests"] {
                let key = format!("0/object_index/{node}/zarr.json");
                edit(files, &key, |json| {
                    json["shape"] = json!([1_u64 << 40]);
                    json["chunk_grid"]["configuration"]["chunk_shape"] = json!([1_u64 << 40]);
                });
            }
            edit(files, "0/object_index/zarr.json", |json| {
                json["attributes"]["num_objects"] = json!(1_u64 << 40);
            });
        },
        says: "0/object_index",
    },
    Bomb {
        name: "2^40 objects of which none is stored",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            for node in ["object_ids", "manifests"] {
                let key = format!("0/object_index/{node}/zarr.json");
                edit(files, &key, |json| json["shape"] = json!([1_u64 << 40]));
                let below = format!("0/object_index/{node}/c/");
                files.retain(|(path, _)| !path.starts_with(&below));
            }
            edit(files, "0/object_index/zarr.json", |json| {
                json["attributes"]["num_objects"] = json!(1_u64 << 40);
            });
        },
        says: "0/object_index",
    },
    Bomb {
        name: "attributes of 2^40 objects",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            let keys: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
            for key in keys {
                let node = key.strip_suffix("/zarr.json").unwrap_or_default();
                if node.starts_with("0/object_attributes/") {
                    edit(files, &key, |json| {
                        if !json["shape"].is_null() {
                            json["shape"][0] = json!(1_u64 << 40);
                            json["chunk_grid"]["configuration"]["chunk_shape"][0] =
                                json!(1_u64 << 40);
                        }
                    });
                }
            }
        },
        says: "0/object_attributes",
    },
    Bomb {
        name: "2^40 groups",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            edit(files, "0/groups/zarr.json", |json| {
                json["shape"] = json!([1_u64 << 40]);
                json["chunk_grid"]["configuration"]["chunk_shape"] = json!([1_u64 << 40]);
                json["attributes"]["num_groups"] = json!(1_u64 << 40);
            });
        },
        says: "the members of groups",
    },
    Bomb {
        name: "groups of 2^62 members",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            edit(files, "0/groups/zarr.json", |json| {
                let ranges = json!({"0": [0, HUGE], "1": [-4_611_686_018_427_387_904_i64, HUGE]});
                json["attributes"]["group_ranges"] = ranges;
            });
        },
        says: "members",
    },
    Bomb {
        name: "groups of 2^62 members where nothing else is",
        archive: "zvf-08",
        store: "0.8.1/group_ranges",
        arm: |files| {
            edit(files, "0/groups/zarr.json", |json| {
                json["attributes"]["group_ranges"] = json!({"0": [0, HUGE], "1": [5, HUGE]});
            });
        },
        says: "members",
    },
    Bomb {
        name: "2^62 groups of links",
        archive: "zvf-09",
        store: GRAPH,
        arm: |files| {
            let cell = words(&[HUGE, 0, 8]);
            put(files, "0/links/0/+1.0/c/0/0", frame(&[cell]));
        },
        says: "0/links/0/+1.0",
    },
    Bomb {
        name: "links of 2^62 ends",
        archive: "zvf-09",
        store: GRAPH,
        arm: |files| {
            edit(files, "0/links/0/zarr.json", |json| {
                json["attributes"]["link_width"] = json!(HUGE);
            });
        },
        says: "0/links",
    },
    Bomb {
        name: "links of vertex 2^62",
        archive: "zvf-09",
        store: GRAPH,
        arm: |files| {
            put(
                files,
                "0/links/0/0.0/c/2/0",
                frame(&[words(&[0, HUGE, HUGE, 1])]),
            );
        },
        says: "0/link",
    },
    Bomb {
        name: "a table of 2^60 links",
        archive: "zvf-06",
        store: "graph",
        arm: |files| {
            edit(files, "0/cross_chunk_links/0/data/zarr.json", |json| {
                json["shape"] = json!([1_u64 << 60]);
                json["chunk_grid"]["configuration"]["chunk_shape"] = json!([1_u64 << 60]);
            });
        },
        says: "0/cross_chunk_links",
    },
    Bomb {
        name: "2^60 offsets of manifests",
        archive: "zvf-06",
        store: "graph",
        arm: |files| {
            for node in ["data", "offsets"] {
                let key = format!("0/object_index/{node}/zarr.json");
                edit(files, &key, |json| {
                    json["shape"] = json!([1_u64 << 60]);
                    json["chunk_grid"]["configuration"]["chunk_shape"] = json!([1_u64 << 60]);
                });
            }
        },
        says: "0/object_index",
    },
    Bomb {
        name: "a chunk of its own array that has 2^60 bytes",
        archive: "zvf-06",
        store: "graph",
        arm: |files| {
            edit(files, "0/vertices/1.0.0/zarr.json", |json| {
                json["shape"] = json!([1_u64 << 60]);
                json["chunk_grid"]["configuration"]["chunk_shape"] = json!([1_u64 << 60]);
            });
        },
        says: "0/vertices",
    },
    Bomb {
        name: "chunks and bins that are almost points",
        archive: "zvf-09",
        store: POINTS,
        arm: |files| {
            edit(files, "zarr.json", |json| {
                json["attributes"]["zarr_vectors"]["chunk_shape"] = json!([1e-300, 1e-300, 1e300]);
                json["attributes"]["zarr_vectors"]["base_bin_shape"] = json!([1e-308, 1e-300, 1.0]);
            });
        },
        says: "",
    },
];

fn queries(axes: usize) -> Vec<Query> {
    let everywhere = Bbox::new(&vec![-1e30; axes], &vec![1e30; axes]).unwrap();
    let place = Position::new(&vec![0.0; axes]).unwrap();
    let plain = Query::new().columns(Selection::none());
    let mut queries = vec![
        Query::new(),
        plain.clone().objects([0]),
        plain.clone().groups([0, 1]),
        plain.clone().region(everywhere).mode(Mode::Clip),
        plain.clone().nearest(place, 2),
    ];
    for shape in [Shape::Points, Shape::Paths, Shape::Links] {
        queries.push(plain.clone().shape(shape));
    }
    let lenient: Vec<Query> = queries
        .iter()
        .cloned()
        .map(|query| query.keep_going(true))
        .collect();
    queries.extend(lenient);
    queries
}

/// Runs as the child process of [`bombs_stay_within_the_budget`].
#[test]
#[ignore = "run by another test, in a process of its own"]
#[expect(clippy::print_stdout, reason = "this is how it reports")]
fn queries_a_bomb() {
    let which = std::env::var(BOMB_VARIABLE).unwrap();
    let bomb = BOMBS.iter().find(|bomb| bomb.name == which).unwrap();
    let golden = Golden::open(bomb.archive);
    let folder = match bomb.archive {
        "zvf-09" => "/store.zarrvectors",
        _ => ".zv",
    };
    let mut files = files(&golden, &format!("{}{folder}", bomb.store));
    (bomb.arm)(&mut files);
    let store = OpenOptions::default().budget(BUDGET).from_memory(files);
    match block_on(Dataset::open(store.unwrap())) {
        Err(error) => println!("error: {}", error_chain(&error)),
        Ok(dataset) => {
            let mut queries = queries(dataset.root().axes.len());
            // A nearest query searches batch by batch, which stays within memory but takes too
            // long.
            queries.retain(|query| query.nearest.is_none() || bomb.name != LONG);
            for query in queries {
                match block_on(dataset.query(&query)) {
                    Err(error) => println!("error: {}", error_chain(&error)),
                    Ok(result) => println!("read: {} vertices", result.positions.len()),
                }
            }
        }
    }
    println!("peak: {}", peak());
}

/// Returns the peak memory of this process in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kilobytes.parse::<u64>().unwrap() << 10
}

#[test]
#[expect(clippy::print_stdout, reason = "what was seen is shown")]
fn bombs_stay_within_the_budget() {
    let (mut max, mut faults) = ((0, ""), Vec::new());
    for bomb in BOMBS {
        let arguments = [
            "damage::bombs::queries_a_bomb",
            "--exact",
            "--ignored",
            "--nocapture",
        ];
        let output = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .env(BOMB_VARIABLE, bomb.name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}{errors}", bomb.name);
        let peak: u64 = text
            .lines()
            .find_map(|line| line.strip_prefix("peak: "))
            .unwrap()
            .parse()
            .unwrap();
        if peak > MAX_RESIDENT_BYTES {
            faults.push(format!("{}: {peak} bytes", bomb.name));
        }
        max = max.max((peak, bomb.name));
        let mut errors = text.lines().filter_map(|line| line.strip_prefix("error: "));
        let is_said = bomb.says.is_empty() || errors.any(|error| error.contains(bomb.says));
        if !is_said {
            faults.push(format!("{}: {text}", bomb.name));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    let (bytes, name) = max;
    println!(
        "damage: {} bombs within {MAX_RESIDENT_BYTES} bytes, at most {bytes} for {name}",
        BOMBS.len()
    );
}
