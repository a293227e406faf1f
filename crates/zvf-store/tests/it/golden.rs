//! Golden stores: every recorded cell is read through a store and its codecs, and compared.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value as Json;
use zvf_format::vlen::VlenFrame;
use zvf_store::{CellArray, CellError, CellRead, CellReader, OpenOptions, Store};
use zvf_testkit::golden::{Golden, unhex};

use crate::support::{array, block_on, key};

/// A store in memory, unpacked from a golden archive.
struct Unpacked<'a> {
    golden: &'a Golden,
    prefix: String,
    reader: CellReader,
}

impl<'a> Unpacked<'a> {
    fn new(golden: &'a Golden, prefix: &str) -> Self {
        let prefix = format!("{prefix}/");
        let files = golden.files();
        let objects = files.filter_map(|(path, bytes)| {
            let key = path.strip_prefix(&prefix)?;
            Some((key, Bytes::copy_from_slice(bytes)))
        });
        let store = OpenOptions::default().from_memory(objects).unwrap();
        Self {
            golden,
            prefix,
            reader: CellReader::new(store),
        }
    }

    fn metadata(&self, node: &str) -> Json {
        self.golden
            .json(&format!("{}{node}/zarr.json", self.prefix))
    }

    fn array(&self, node: &str) -> CellArray {
        CellArray::new(key(node), array(self.metadata(node))).unwrap()
    }

    fn read(&self, cells: &[CellRead<'_>]) -> Vec<Option<Bytes>> {
        block_on(self.reader.read(cells)).unwrap()
    }

    fn store(&self) -> &Store {
        self.reader.store()
    }
}

/// Counters for the conformance report.
#[derive(Default)]
struct Tally {
    stores: usize,
    arrays: usize,
    cells: usize,
    by_codecs: BTreeMap<String, usize>,
}

impl Tally {
    fn array(&mut self, metadata: &Json, cells: usize) {
        let names = |codecs: &Json| {
            let names: Vec<&str> = codecs
                .as_array()
                .unwrap()
                .iter()
                .map(|codec| codec["name"].as_str().unwrap())
                .collect();
            names.join(" ")
        };
        let codecs = &metadata["codecs"];
        let mut name = names(codecs);
        if name == "sharding_indexed" {
            name = format!("{name} of {}", names(&codecs[0]["configuration"]["codecs"]));
        }
        self.arrays += 1;
        self.cells += cells;
        *self.by_codecs.entry(name).or_default() += cells;
    }

    fn print(&self, what: &str) {
        report(format_args!(
            "{what}: {} stores, {} arrays, {} cells equal; {:?}",
            self.stores, self.arrays, self.cells, self.by_codecs
        ));
    }
}

#[expect(clippy::print_stdout, reason = "`xtask conformance` shows these lines")]
fn report(line: core::fmt::Arguments<'_>) {
    println!("conformance: {line}");
}

/// Returns the grid index of a chunk key: its coordinates minus the origin of the grid.
fn index(key: &str, metadata: &Json) -> Vec<u64> {
    let origin = metadata["attributes"]["chunk_grid_origin"].as_array();
    let coords = key.split('.').map(|n| n.parse::<i64>().unwrap());
    let less = |(axis, coord): (usize, i64)| {
        let origin = origin.map_or(0, |origin| origin[axis].as_i64().unwrap());
        u64::try_from(coord - origin).unwrap()
    };
    coords.enumerate().map(less).collect()
}

/// A recorded cell: its grid index and its payload.
struct Recorded {
    index: Vec<u64>,
    payload: Vec<u8>,
}

fn recorded_09(unpacked: &Unpacked<'_>, node: &str, cells: &Json) -> Vec<Recorded> {
    let metadata = unpacked.metadata(node);
    let cells = cells.as_object().unwrap().iter();
    cells
        .map(|(key, hex)| Recorded {
            index: index(key, &metadata),
            payload: unhex(hex.as_str().unwrap()),
        })
        .collect()
}

fn stores_09(golden: &Golden) -> Vec<(Unpacked<'_>, Json)> {
    let names = golden
        .files()
        .filter_map(|(path, _)| path.strip_suffix("/expected.json"));
    let open = |name: &str| {
        let expected = golden.json(&format!("{name}/expected.json"));
        (
            Unpacked::new(golden, &format!("{name}/store.zarrvectors")),
            expected,
        )
    };
    names.map(open).collect()
}

fn arrays_09(expected: &Json) -> impl Iterator<Item = (String, &Json)> {
    let levels = expected["levels"].as_object().unwrap().iter();
    levels.flat_map(|(level, json)| {
        let arrays = json["cells"].as_object().unwrap().iter();
        arrays.map(move |(array, cells)| (format!("{level}/{array}"), cells))
    })
}

#[test]
fn golden_store_09() {
    let golden = Golden::open("zvf-09");
    let mut tally = Tally::default();
    for (unpacked, expected) in stores_09(&golden) {
        tally.stores += 1;
        for (node, cells) in arrays_09(&expected) {
            let array = unpacked.array(&node);
            let recorded = recorded_09(&unpacked, &node, cells);
            if let Some(length) = items_of_chunk(&unpacked, &node) {
                for cell in &recorded {
                    check_item(&unpacked, &array, length, cell);
                }
                tally.array(&unpacked.metadata(&node), recorded.len());
                continue;
            }
            let cells: Vec<CellRead<'_>> = recorded
                .iter()
                .map(|cell| CellRead {
                    array: &array,
                    index: &cell.index,
                    part: None,
                })
                .collect();
            let got = unpacked.read(&cells);
            for (got, cell) in got.iter().zip(&recorded) {
                let got = got.as_deref().unwrap_or_default();
                assert_eq!(
                    got, cell.payload,
                    "{}{node} {:?}",
                    unpacked.prefix, cell.index
                );
            }
            tally.array(&unpacked.metadata(&node), cells.len());
        }
    }
    tally.print("zvf-09 through a store");
    assert_eq!(tally.stores, 65);
    assert!(tally.by_codecs.len() >= 6, "{:?}", tally.by_codecs);
}

/// Returns the number of items per chunk of a one-dimensional array of byte strings, or `None` for
/// arrays with one item per chunk.
fn items_of_chunk(unpacked: &Unpacked<'_>, node: &str) -> Option<u64> {
    let metadata = unpacked.metadata(node);
    let shape = &metadata["chunk_grid"]["configuration"]["chunk_shape"];
    let in_rows = ["manifests", "groups"]
        .iter()
        .any(|name| node.ends_with(name));
    in_rows.then(|| shape[0].as_u64().unwrap())
}

#[track_caller]
fn check_item(unpacked: &Unpacked<'_>, array: &CellArray, length: u64, item: &Recorded) {
    let cell = CellRead {
        array,
        index: &[item.index[0] / length],
        part: None,
    };
    let chunk = unpacked.read(&[cell]).remove(0).unwrap();
    if length == 1 {
        assert_eq!(chunk, item.payload, "{} {:?}", array.node(), item.index);
        return;
    }
    let frame = VlenFrame::parse(&chunk).unwrap();
    let at = u32::try_from(item.index[0] % length).unwrap();
    assert_eq!(
        frame.get(at).unwrap(),
        item.payload,
        "{} {at}",
        array.node()
    );
}

#[test]
fn golden_store_09_every_object_decodes() {
    let golden = Golden::open("zvf-09");
    let mut tally = Tally::default();
    for (unpacked, _) in stores_09(&golden) {
        tally.stores += 1;
        let files = golden.files();
        let metadata = files.filter_map(|(path, _)| {
            let below = path.strip_prefix(&unpacked.prefix)?;
            below.strip_suffix("/zarr.json")
        });
        for node in metadata {
            let json = unpacked.metadata(node);
            if json["node_type"] != "array" {
                continue;
            }
            let array = unpacked.array(node);
            if array.is_sharded() {
                continue;
            }
            let below = format!("{}{node}/c/", unpacked.prefix);
            let chunks = golden
                .files()
                .filter_map(|(path, _)| path.strip_prefix(&below));
            let indexes: Vec<Vec<u64>> = chunks
                .map(|chunk| chunk.split('/').map(|n| n.parse().unwrap()).collect())
                .collect();
            let cells: Vec<CellRead<'_>> = indexes
                .iter()
                .map(|index| CellRead {
                    array: &array,
                    index,
                    part: None,
                })
                .collect();
            assert!(unpacked.read(&cells).iter().all(Option::is_some));
            tally.array(&json, cells.len());
        }
    }
    tally.print("zvf-09 chunks decoded to their declared size");
}

/// Returns the indexes of all cells of an object, given by its index in the grid of objects.
fn cells_of_object(array: &CellArray, object: &[u64]) -> Vec<Vec<u64>> {
    let metadata = array.metadata();
    let per: Vec<u64> = metadata
        .chunk_shape
        .iter()
        .zip(metadata.decoded_shape())
        .map(|(chunk, cell)| chunk / cell)
        .collect();
    let mut cells = vec![Vec::new()];
    for (at, per) in object.iter().zip(&per) {
        let along = at * per..(at + 1) * per;
        cells = cells
            .iter()
            .flat_map(|cell: &Vec<u64>| along.clone().map(|at| [&cell[..], &[at]].concat()))
            .collect();
    }
    cells
}

/// Encodes each object again. The bytes equal those of the reference, unless its library compresses
/// differently; the decoded cells are always equal.
#[test]
fn golden_store_09_every_object_encodes() {
    let golden = Golden::open("zvf-09");
    let (mut equal, mut other) = (BTreeMap::new(), BTreeMap::new());
    for (unpacked, _) in stores_09(&golden) {
        let nodes = golden.files().filter_map(|(path, _)| {
            let below = path.strip_prefix(&unpacked.prefix)?;
            below.strip_suffix("/zarr.json")
        });
        for node in nodes.filter(|node| unpacked.metadata(node)["node_type"] == "array") {
            let array = unpacked.array(node);
            let json = unpacked.metadata(node).to_string();
            let kind = ["sharding", "zstd", "blosc", "gzip"]
                .into_iter()
                .filter(|name| json.contains(name))
                .collect::<Vec<_>>()
                .join(" ");
            let below = format!("{}{node}/c/", unpacked.prefix);
            for (path, stored) in golden.files() {
                let Some(object) = path.strip_prefix(&below) else {
                    continue;
                };
                let object: Vec<u64> = object.split('/').map(|n| n.parse().unwrap()).collect();
                let indexes = cells_of_object(&array, &object);
                let cells: Vec<CellRead<'_>> = indexes
                    .iter()
                    .map(|index| CellRead {
                        array: &array,
                        index,
                        part: None,
                    })
                    .collect();
                let payloads = unpacked.read(&cells);
                let mut numbered = Vec::new();
                for (index, payload) in indexes.iter().zip(payloads.clone()) {
                    let (key, number) = array.locate(index).unwrap();
                    assert_eq!(format!("{}{key}", unpacked.prefix), path);
                    numbered.extend(payload.map(|payload| (number.unwrap_or(0), payload)));
                }
                let encoded = if array.is_sharded() {
                    array.encode_shard(&numbered).unwrap()
                } else {
                    array.encode(&numbered[0].1).unwrap()
                };
                let count = if encoded == stored {
                    &mut equal
                } else {
                    &mut other
                };
                *count.entry(kind.clone()).or_insert(0) += 1;
                let key = path.strip_prefix(&unpacked.prefix).unwrap();
                let again = OpenOptions::default()
                    .from_memory([(key, encoded)])
                    .unwrap();
                let again = block_on(CellReader::new(again).read(&cells)).unwrap();
                assert!(again == payloads, "{path}");
            }
        }
    }
    report(format_args!(
        "zvf-09 objects encoded: byte for byte {equal:?}, otherwise the same cells {other:?}"
    ));
    assert!(equal[""] > 500 && equal["sharding"] > 10, "{equal:?}");
    let compressed = ["gzip", "blosc", "zstd"];
    assert!(
        other
            .keys()
            .all(|kind| compressed.iter().any(|name| kind.contains(name))),
        "{other:?}"
    );
}

/// A pseudo-random generator with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

#[test]
fn golden_store_09_parts() {
    let golden = Golden::open("zvf-09");
    let mut numbers = Numbers(9);
    let (mut plain, mut encoded, mut saved) = (0, 0, 0);
    for (unpacked, expected) in stores_09(&golden) {
        for (node, cells) in arrays_09(&expected) {
            let array = unpacked.array(&node);
            if items_of_chunk(&unpacked, &node).is_some() {
                continue;
            }
            for cell in recorded_09(&unpacked, &node, cells) {
                let size = u64::try_from(cell.payload.len()).unwrap();
                // Samples about 100 cells of each kind.
                if size < 2 || numbers.below(if array.is_plain() { 5 } else { 2 }) > 0 {
                    continue;
                }
                let start = numbers.below(size);
                let end = start + 1 + numbers.below(size - start - 1);
                let read = |part| CellRead {
                    array: &array,
                    index: &cell.index,
                    part,
                };
                // The first read of a shard also reads its index, so it is not measured.
                let whole = unpacked.read(&[read(None)]);
                let before = unpacked.store().activity();
                unpacked.read(&[read(None)]);
                let after_whole = unpacked.store().activity();
                let part = unpacked.read(&[read(Some(start..end))]);
                let after_part = unpacked.store().activity();
                let range = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
                let want = whole[0].as_ref().map(|whole| whole.slice(range));
                assert_eq!(part[0], want, "{node} {:?} {start}..{end}", cell.index);
                assert_eq!(after_part.requests - after_whole.requests, 1);
                let whole = after_whole.bytes_read - before.bytes_read;
                let part = after_part.bytes_read - after_whole.bytes_read;
                if array.is_plain() {
                    plain += 1;
                    assert_eq!(whole - part, size - end, "{node}");
                    saved += whole - part;
                } else {
                    encoded += 1;
                    assert_eq!(part, whole);
                }
            }
        }
    }
    report(format_args!(
        "zvf-09 parts of cells: {plain} plain ({saved} bytes not read), {encoded} compressed, all equal"
    ));
    assert!(plain >= 100 && encoded >= 20, "{plain} {encoded}");
}

#[test]
fn golden_store_06() {
    check_old("zvf-06", 18);
}

#[test]
fn golden_store_07() {
    check_old("zvf-07", 22);
}

#[test]
fn golden_store_08() {
    check_old("zvf-08", 28);
}

/// Checks a golden archive of an older generation. Each blob is an array of one chunk; some arrays of
/// frames are recorded item by item.
#[track_caller]
fn check_old(name: &str, stores: usize) {
    let golden = Golden::open(name);
    let mut tally = Tally::default();
    for (path, _) in golden.files() {
        let Some(store) = path.strip_suffix(".expected.json") else {
            continue;
        };
        tally.stores += 1;
        let expected = golden.json(path);
        let unpacked = Unpacked::new(&golden, &format!("{store}.zv"));
        for (node, hex) in expected["blobs"].as_object().unwrap() {
            let array = unpacked.array(node);
            let zeros = vec![0; array.metadata().rank()];
            let cell = CellRead {
                array: &array,
                index: &zeros,
                part: None,
            };
            let got = unpacked.read(&[cell]);
            let want = unhex(hex.as_str().unwrap());
            match &got[0] {
                Some(got) => assert_eq!(got, &want, "{store} {node}"),
                // A chunk that contains only the fill value, 0, is not stored.
                None => assert!(want.iter().all(|&byte| byte == 0), "{store} {node}"),
            }
            tally.array(&unpacked.metadata(node), 1);
        }
        for (node, items) in expected["vlen"].as_object().unwrap() {
            check_items(&unpacked, node, items, &mut tally);
        }
    }
    tally.print(&format!("{name} through a store"));
    assert_eq!(tally.stores, stores);
}

/// Checks an array of byte strings, recorded in C order of its elements.
fn check_items(unpacked: &Unpacked<'_>, node: &str, items: &Json, tally: &mut Tally) {
    let metadata = unpacked.metadata(node);
    let array = unpacked.array(node);
    let numbers = |json: &Json| -> Vec<u64> {
        let numbers = json.as_array().unwrap().iter();
        numbers.map(|n| n.as_u64().unwrap()).collect()
    };
    let shape = numbers(&metadata["shape"]);
    let sharding = &metadata["codecs"][0]["configuration"]["chunk_shape"];
    let chunk = if sharding.is_array() {
        numbers(sharding)
    } else {
        numbers(&metadata["chunk_grid"]["configuration"]["chunk_shape"])
    };
    let items: Vec<Vec<u8>> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|hex| unhex(hex.as_str().unwrap()))
        .collect();
    if chunk.iter().all(|&extent| extent == 1) {
        for (at, item) in items.iter().enumerate() {
            let mut rest = u64::try_from(at).unwrap();
            let mut index = vec![0; shape.len()];
            for (axis, extent) in shape.iter().enumerate().rev() {
                index[axis] = rest % extent;
                rest /= extent;
            }
            let cell = CellRead {
                array: &array,
                index: &index,
                part: None,
            };
            let got = unpacked.read(&[cell]);
            assert_eq!(
                got[0].as_deref().unwrap_or_default(),
                item,
                "{node} {index:?}"
            );
        }
    } else {
        // One axis, several items per chunk.
        let length = usize::try_from(chunk[0]).unwrap();
        for (at, items) in items.chunks(length).enumerate() {
            let cell = CellRead {
                array: &array,
                index: &[u64::try_from(at).unwrap()],
                part: None,
            };
            let got = unpacked.read(&[cell]);
            let frame = got[0].clone().unwrap_or_default();
            let frame = VlenFrame::parse(&frame).unwrap();
            assert_eq!(u64::from(frame.len()), chunk[0]);
            assert!(
                frame.iter().zip(items).all(|(got, item)| got == item),
                "{node}"
            );
        }
    }
    tally.array(&metadata, items.len());
}

/// Truncates compressed cells of the reference and changes single bytes. Each read fails with the key,
/// or, if the codec cannot detect the change, returns other bytes.
#[test]
fn golden_store_09_damage() {
    let golden = Golden::open("zvf-09");
    let (mut refused, mut changed) = (0, 0);
    for (unpacked, expected) in stores_09(&golden) {
        for (node, cells) in arrays_09(&expected).take(4) {
            let array = unpacked.array(&node);
            let recorded = recorded_09(&unpacked, &node, cells);
            let in_rows = items_of_chunk(&unpacked, &node).is_some();
            let Some(cell) = recorded.first() else {
                continue;
            };
            if array.is_plain() || array.is_sharded() || in_rows {
                continue;
            }
            let at: Vec<String> = cell.index.iter().map(u64::to_string).collect();
            let path = format!("{node}/c/{}", at.join("/"));
            let good = golden.file(&format!("{}{path}", unpacked.prefix));
            let step = good.len() / 16 + 1;
            let flips = (0..good.len()).step_by(step).map(|at| {
                let mut bytes = good.to_vec();
                bytes[at] ^= 0x55;
                bytes
            });
            let cuts = (0..good.len())
                .step_by(step)
                .map(|end| good[..end].to_vec());
            for (cut, bytes) in flips
                .map(|bytes| (false, bytes))
                .chain(cuts.map(|bytes| (true, bytes)))
            {
                let store = Store::from_memory([(&path, bytes)]).unwrap();
                let reader = CellReader::new(store);
                let cell = CellRead {
                    array: &array,
                    index: &cell.index,
                    part: None,
                };
                match block_on(reader.read_one(cell)) {
                    Err(CellError::Decode { key, .. } | CellError::Frame { key, .. }) => {
                        assert_eq!(key.as_str(), path);
                        refused += 1;
                    }
                    // Blosc cannot distinguish a damaged size from a large one.
                    Err(CellError::ItemCount { .. } | CellError::OverBudget { .. }) => refused += 1,
                    // Zstd without a checksum cannot detect a changed literal.
                    Ok(Some(_)) if !cut => changed += 1,
                    other => panic!("{path}: {other:?}"),
                }
            }
        }
    }
    report(format_args!(
        "zvf-09 damaged cells: {refused} refused, {changed} with other bytes the codec cannot tell"
    ));
    assert!(refused > 200, "{refused}");
}
