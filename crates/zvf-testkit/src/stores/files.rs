//! The files of a store: Zarr groups, arrays and their chunks.

use std::{collections::BTreeMap, io::Write};

use serde_json::{Value, json};
use zvf_format::{numeric::Kind as Number, path::ChunkCoords, vlen};

use super::{Cells, RecipeProfile, convention::as_convention, random::Random};

/// Cells of chunks by chunk.
pub(super) type Payloads = BTreeMap<Vec<i64>, Vec<u8>>;

/// Files by key.
#[derive(Debug)]
pub(super) struct Files {
    by_key: BTreeMap<String, Vec<u8>>,
    cells: Cells,
    random: Random,
}

/// A numeric array with one or two dimensions.
pub(super) struct Numbers<'a> {
    pub(super) kind: Number,
    pub(super) columns: u32,
    /// Rows of one chunk of the array.
    pub(super) chunk: usize,
    /// The fill value, as JSON and in bytes.
    pub(super) fill: (Value, Vec<u8>),
    pub(super) bytes: &'a [u8],
}

impl Files {
    pub(super) fn new(cells: Cells, random: Random) -> Self {
        Self {
            by_key: BTreeMap::new(),
            cells,
            random,
        }
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub(super) fn finish(self) -> Vec<(String, Vec<u8>)> {
        self.by_key.into_iter().collect()
    }

    /// Returns the files with the metadata of a profile.
    pub(super) fn finish_as(self, profile: RecipeProfile) -> Vec<(String, Vec<u8>)> {
        match profile {
            RecipeProfile::V10 => as_convention(self.finish()),
            _ => self.finish(),
        }
    }

    pub(super) fn group(&mut self, path: &str, attributes: &Value) {
        let node = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        let key = if path.is_empty() {
            "zarr.json".to_owned()
        } else {
            format!("{path}/zarr.json")
        };
        self.by_key.insert(key, node.to_string().into_bytes());
    }

    pub(super) fn array(&mut self, path: &str, array: &Array) {
        let node = json!({
            "shape": array.shape,
            "data_type": array.data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": array.chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": array.fill,
            "codecs": array.codecs,
            "attributes": array.attributes,
            "zarr_format": 3,
            "node_type": "array",
            "storage_transformers": [],
        });
        self.by_key
            .insert(format!("{path}/zarr.json"), node.to_string().into_bytes());
    }

    /// Writes a group with an array of bytes for each chunk, or for several chunks, like the shards
    /// up to 0.8.0.
    pub(super) fn children(&mut self, path: &str, attributes: &Value, cells: &Payloads) {
        self.group(path, attributes);
        if self.cells != Cells::Sharded {
            for (chunk, cell) in cells {
                self.blob(&format!("{path}/{}", ChunkCoords(chunk)), json!({}), cell);
            }
            return;
        }
        let cells: Vec<_> = cells.iter().collect();
        for (number, cells) in cells.chunks(3).enumerate() {
            let (mut all, mut index) = (Vec::new(), serde_json::Map::new());
            for (chunk, cell) in cells {
                let name = ChunkCoords(chunk).to_string();
                index.insert(name, json!([all.len(), cell.len()]));
                all.extend_from_slice(cell);
            }
            let attributes = json!({"shard_index": index});
            self.blob(&format!("{path}/__shard_{number:06}"), attributes, &all);
        }
    }

    /// Writes an array of bytes.
    pub(super) fn blob(&mut self, path: &str, attributes: Value, bytes: &[u8]) {
        let mut codecs = vec![json!({"name": "bytes"})];
        codecs.extend(self.compressor());
        self.array(
            path,
            &Array {
                shape: json!([bytes.len()]),
                data_type: "uint8",
                chunk: json!([bytes.len().max(1)]),
                fill: json!(0),
                codecs: json!(codecs),
                attributes,
            },
        );
        if !bytes.is_empty() {
            let bytes = self.encoded(bytes.to_vec());
            self.by_key.insert(chunk_file(path, &[0]), bytes);
        }
    }

    /// Writes one numeric array for all chunks, padded to the longest.
    pub(super) fn padded(
        &mut self,
        path: &str,
        attributes: Value,
        cells: &Payloads,
        (grid, kind, columns): (&GridOf, Number, usize),
    ) {
        let (origin, grid) = grid.with_room(&mut self.random);
        let row = kind.size() * columns;
        let max = cells
            .values()
            .map(|cell| cell.len() / row)
            .max()
            .unwrap_or(0);
        let rows = max.max(1) + self.random.below(3);
        let mut attributes = attributes;
        if origin.iter().any(|number| *number != 0) {
            attributes["chunk_grid_origin"] = json!(origin);
        }
        // Attributes of one value may have no columns.
        let flat = columns == 1 && path.contains("attributes") && self.random.chance(50);
        let tail = (!flat).then_some(columns);
        let with = |chunks: Vec<i64>| -> Value {
            let mut extents = json!(chunks);
            let list = extents.as_array_mut().expect("a list");
            list.extend([rows].into_iter().chain(tail).map(|extent| json!(extent)));
            extents
        };
        let mut codecs = vec![json!({"name": "bytes", "configuration": {"endian": "little"}})];
        codecs.extend(self.compressor());
        self.array(
            path,
            &Array {
                shape: with(grid.clone()),
                data_type: kind.name(),
                chunk: with(vec![1; grid.len()]),
                fill: if kind == Number::Bool {
                    json!(false)
                } else {
                    json!(0)
                },
                codecs: json!(codecs),
                attributes,
            },
        );
        for (chunk, cell) in cells {
            let mut bytes = cell.clone();
            bytes.resize(rows * row, 0);
            let axes = chunk.iter().zip(&origin);
            let index: Vec<usize> = axes
                .map(|(at, origin)| usize::try_from(at - origin).expect("in the grid"))
                .chain([0])
                .chain(tail.map(|_| 0))
                .collect();
            let bytes = self.encoded(bytes);
            self.by_key.insert(chunk_file(path, &index), bytes);
        }
    }

    /// Writes an array with one element for each chunk. It has capacity for missing chunks; along a
    /// leading axis of an attribute, for `leading` chunks.
    pub(super) fn per_chunk(
        &mut self,
        path: &str,
        attributes: Value,
        cells: &Payloads,
        grid: &GridOf,
    ) {
        let (origin, shape) = grid.with_room(&mut self.random);
        let cells: Payloads = cells
            .iter()
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(key, cell)| (key.clone(), cell.clone()))
            .collect();
        let mut attributes = attributes;
        let mut names: Vec<String> = cells
            .keys()
            .map(|chunk| ChunkCoords(chunk).to_string())
            .collect();
        names.sort();
        attributes["nonempty_chunks"] = json!(names);
        if origin.iter().any(|number| *number != 0) {
            attributes["chunk_grid_origin"] = json!(origin);
        }
        let shard: Vec<usize> = shape.iter().map(|_| 1 + self.random.below(3)).collect();
        let sharded = self.cells == Cells::Sharded;
        let compressor = self.compressor();
        let mut codecs = vec![json!({"name": "vlen-bytes", "configuration": {}})];
        codecs.extend(compressor);
        let ones: Vec<u64> = vec![1; shape.len()];
        if sharded {
            codecs = vec![json!({
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": ones,
                    "codecs": codecs,
                    "index_codecs": [
                        {"name": "bytes", "configuration": {"endian": "little"}},
                        {"name": "crc32c"},
                    ],
                    "index_location": "end",
                },
            })];
        }
        self.array(
            path,
            &Array {
                shape: json!(shape),
                data_type: "variable_length_bytes",
                chunk: if sharded { json!(shard) } else { json!(ones) },
                fill: json!(""),
                codecs: json!(codecs),
                attributes,
            },
        );
        let at = |chunk: &[i64]| -> Vec<usize> {
            let axes = chunk.iter().zip(&origin);
            axes.map(|(number, origin)| {
                usize::try_from(number - origin).expect("a chunk in the grid")
            })
            .collect()
        };
        if !sharded {
            for (chunk, cell) in &cells {
                let bytes = self.encoded(frame(&[cell]));
                self.by_key.insert(chunk_file(path, &at(chunk)), bytes);
            }
            return;
        }
        let mut shards: BTreeMap<Vec<usize>, Vec<(usize, Vec<u8>)>> = BTreeMap::new();
        for (chunk, cell) in &cells {
            let (mut outer, mut inner) = (Vec::new(), 0);
            for (at, extent) in at(chunk).into_iter().zip(&shard) {
                outer.push(at / extent);
                inner = inner * extent + at % extent;
            }
            let bytes = self.encoded(frame(&[cell]));
            shards.entry(outer).or_default().push((inner, bytes));
        }
        for (outer, mut cells) in shards {
            // The order is arbitrary, because the index locates the cells.
            self.random.shuffle(&mut cells);
            let file = shard_file(&cells, shard.iter().product());
            self.by_key.insert(chunk_file(path, &outer), file);
        }
    }

    /// Writes an array of byte strings, with this many per chunk.
    pub(super) fn strings(
        &mut self,
        path: &str,
        attributes: Value,
        items: &[Vec<u8>],
        chunk: usize,
    ) {
        let mut codecs = vec![json!({"name": "vlen-bytes", "configuration": {}})];
        codecs.extend(self.compressor());
        let chunk = chunk.max(1);
        self.array(
            path,
            &Array {
                shape: json!([items.len()]),
                data_type: "variable_length_bytes",
                chunk: json!([chunk]),
                fill: json!(""),
                codecs: json!(codecs),
                attributes,
            },
        );
        for (at, items) in items.chunks(chunk).enumerate() {
            let mut items = items.to_vec();
            items.resize(chunk, Vec::new());
            let bytes = self.encoded(frame(&items));
            self.by_key.insert(chunk_file(path, &[at]), bytes);
        }
    }

    /// Writes a numeric array.
    pub(super) fn numbers(&mut self, path: &str, attributes: Value, numbers: &Numbers<'_>) {
        let mut codecs = vec![json!({"name": "bytes", "configuration": {"endian": "little"}})];
        codecs.extend(self.compressor());
        let columns = usize::try_from(numbers.columns).unwrap_or(1);
        let row = numbers.kind.size() * columns;
        let rows = numbers.bytes.len() / row;
        let chunk = numbers.chunk.max(1);
        let tail = (columns > 1).then_some(columns);
        let extents = |rows: usize| -> Vec<usize> { [rows].into_iter().chain(tail).collect() };
        self.array(
            path,
            &Array {
                shape: json!(extents(rows)),
                data_type: numbers.kind.name(),
                chunk: json!(extents(chunk)),
                fill: numbers.fill.0.clone(),
                codecs: json!(codecs),
                attributes,
            },
        );
        for (at, bytes) in numbers.bytes.chunks(chunk * row).enumerate() {
            let mut bytes = bytes.to_vec();
            while bytes.len() < chunk * row {
                bytes.extend_from_slice(&numbers.fill.1);
            }
            let bytes = self.encoded(bytes);
            let key: Vec<usize> = [at].into_iter().chain(tail.map(|_| 0)).collect();
            self.by_key.insert(chunk_file(path, &key), bytes);
        }
    }

    /// Returns the codec after the first.
    pub(super) fn compressor(&self) -> Option<Value> {
        match self.cells {
            Cells::Plain => None,
            Cells::Gzip => Some(json!({"name": "gzip", "configuration": {"level": 5}})),
            Cells::Zstd | Cells::Sharded => {
                Some(json!({"name": "zstd", "configuration": {"level": 0, "checksum": false}}))
            }
        }
    }

    /// Encodes bytes with that codec.
    pub(super) fn encoded(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.cells {
            Cells::Plain => bytes,
            Cells::Gzip => {
                let mut gzip =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gzip.write_all(&bytes).expect("memory takes all");
                gzip.finish().expect("memory takes all")
            }
            Cells::Zstd | Cells::Sharded => zstd(&bytes),
        }
    }
}

/// Content of the `zarr.json` of an array.
pub(super) struct Array {
    pub(super) shape: Value,
    pub(super) data_type: &'static str,
    pub(super) chunk: Value,
    pub(super) fill: Value,
    pub(super) codecs: Value,
    pub(super) attributes: Value,
}

/// Capacity of the arrays of a level in chunks.
#[derive(Clone, Debug)]
pub(super) struct GridOf {
    pub(super) min: Vec<i64>,
    pub(super) max: Vec<i64>,
    /// Extent of a leading axis, which starts at 0.
    pub(super) leading: Option<i64>,
}

impl GridOf {
    /// Returns origin and shape, which may differ between arrays of a level.
    fn with_room(&self, random: &mut Random) -> (Vec<i64>, Vec<i64>) {
        let (mut origin, mut shape) = (Vec::new(), Vec::new());
        for (axis, (min, max)) in self.min.iter().zip(&self.max).enumerate() {
            if let (0, Some(leading)) = (axis, self.leading) {
                origin.push(0);
                shape.push(leading);
                continue;
            }
            let (before, after) = (random.between(0, 1), random.between(0, 1));
            let start = min - before;
            origin.push(start);
            shape.push(max + after - start + 1);
        }
        (origin, shape)
    }
}

/// Encodes a frame of byte strings.
pub(super) fn frame<T: AsRef<[u8]>>(items: &[T]) -> Vec<u8> {
    vlen::encode(items).expect("items below 4 GiB")
}

fn chunk_file(path: &str, index: &[usize]) -> String {
    let index: Vec<String> = index.iter().map(ToString::to_string).collect();
    format!("{path}/c/{}", index.join("/"))
}

/// Encodes cells one after the other, then their positions.
fn shard_file(cells: &[(usize, Vec<u8>)], count: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut index = vec![[u64::MAX; 2]; count];
    for (at, bytes) in cells {
        let span = [file.len(), bytes.len()];
        index[*at] = span.map(|n| u64::try_from(n).unwrap_or(u64::MAX));
        file.extend_from_slice(bytes);
    }
    let index: Vec<u8> = index
        .into_iter()
        .flatten()
        .flat_map(u64::to_le_bytes)
        .collect();
    file.extend_from_slice(&index);
    file.extend_from_slice(&crc32c::crc32c(&index).to_le_bytes());
    file
}

/// Encodes a Zstandard frame of raw and run-length blocks.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    const MAX_BLOCK: usize = 1 << 17;
    let length = u32::try_from(bytes.len()).expect("less than 4 GiB");
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend_from_slice(&length.to_le_bytes());
    let mut blocks = bytes.chunks(MAX_BLOCK).peekable();
    if bytes.is_empty() {
        frame.extend_from_slice(&[1, 0, 0]);
    }
    while let Some(block) = blocks.next() {
        let last = u32::from(blocks.peek().is_none());
        let size = u32::try_from(block.len()).unwrap_or(0);
        let repeats = block.windows(2).all(|pair| pair[0] == pair[1]);
        let header = size << 3 | u32::from(repeats) << 1 | last;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(if repeats { &block[..1] } else { block });
    }
    frame
}
