//! Arrays in folders of Zarr 2 and 3, read as a whole.
//!
//! The metadata of Zarr 2 are translated to those of Zarr 3, which [`zvf_model`] checks. Chunks are
//! decoded by [`zvf_codecs`], within the size that their shape allows.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf::{ColumnValues, NumericColumn, numeric::Kind};
use zvf_codecs::{ChunkCodecs, DecodedForm, DecodedSize};
use zvf_format::vlen::VlenFrame;
use zvf_model::{
    key::Key,
    zarr::{Array, DataType, Node},
};

use crate::{FileError, FileFault, input::open_regular, library};

/// Upper bound on a metadata document.
const DOCUMENT: u64 = 16 << 20;
/// Upper bound on a decoded chunk.
const CHUNK: u64 = 2 << 30;
/// Upper bound on the numbers of a row.
const ROW: u64 = 1024;

/// Treatment of chunks that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbsentChunks {
    /// They have the fill value.
    Fill,
    /// They are an error, because no other file confirms the number of rows.
    Refuse,
}

/// An array in a folder.
#[derive(Debug)]
pub(crate) struct FolderArray {
    folder: PathBuf,
    array: Array,
    codecs: ChunkCodecs,
}

/// Reads the attributes of a group; `None` if the folder is not a group.
pub(crate) fn group_attributes(folder: &Path) -> Result<Option<Value>, FileError> {
    if let Some(mut node) = document(&folder.join("zarr.json"))? {
        return Ok(node.get_mut("attributes").map(Value::take));
    }
    document(&folder.join(".zattrs"))
}

/// Reads a JSON document; `None` if the file does not exist.
fn document(path: &Path) -> Result<Option<Value>, FileError> {
    let Some(bytes) = file(path, DOCUMENT)? else {
        return Ok(None);
    };
    let parsed = serde_json::from_slice(&bytes);
    parsed
        .map(Some)
        .map_err(|error| FileFault::Json(error).of(path))
}

/// Reads a file of at most `limit` bytes; `None` if it does not exist.
fn file(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
    let size = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(FileFault::Io(error).of(path)),
    };
    if size > limit {
        return Err(FileFault::Unpacked { limit }.of(path));
    }
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(bytes)),
        Err(error) => Err(FileFault::Io(error).of(path)),
    }
}

impl FolderArray {
    /// Opens the array in a folder; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`FileError`] for metadata that are damaged, and for codecs and types that are not read.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, FileError> {
        let in_folder = |fault: FileFault| fault.of(folder);
        let node = match document(&folder.join("zarr.json"))? {
            Some(node) => node,
            None => match document(&folder.join(".zarray"))? {
                Some(old) => translated(&old).map_err(in_folder)?,
                None => return Ok(None),
            },
        };
        let node = Node::from_json(&Key::root(), node);
        let Node::Array(array) = node.map_err(|error| in_folder(error.into()))? else {
            return Ok(None);
        };
        let codecs =
            ChunkCodecs::new(&array.codecs).map_err(|error| in_folder(library::codecs(error)))?;
        let row = array
            .shape
            .iter()
            .skip(1)
            .fold(1_u64, |row, extent| row.saturating_mul(*extent));
        if array.shape.is_empty() || !(1..=ROW).contains(&row) {
            let expected = "an array has 1 dimension or more, and 1 to 1024 numbers in a row";
            let found = format!("{:?}", array.shape);
            return Err(in_folder(FileFault::field("the shape", found, expected)));
        }
        Ok(Some(Self {
            folder: folder.to_path_buf(),
            array,
            codecs,
        }))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number of rows: the extent of the first dimension.
    pub(crate) fn rows(&self) -> u64 {
        self.array.shape.first().copied().unwrap_or(0)
    }

    /// Returns the numbers in a row.
    pub(crate) fn row_len(&self) -> u64 {
        self.array.shape.iter().skip(1).product()
    }

    /// Returns the type of the numbers; `None` for text and other types.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.array.data_type {
            DataType::Number(kind) => Some(kind),
            _ => None,
        }
    }

    /// Reads all rows.
    ///
    /// # Errors
    ///
    /// [`FileError`] for chunks that are damaged or, with [`AbsentChunks::Refuse`], absent; for more
    /// than `limit` bytes; and for values that are neither numbers nor text.
    pub(crate) fn read(&self, absent: AbsentChunks, limit: u64) -> Result<ColumnValues, FileError> {
        let fault = |fault: FileFault| fault.of(&self.folder);
        match self.array.data_type {
            DataType::Number(kind) => {
                let width = u32::try_from(self.row_len()).unwrap_or(u32::MAX);
                let bytes = self.bytes(kind.size(), kind.size(), absent, limit)?;
                Ok(NumericColumn { kind, width, bytes }.into())
            }
            DataType::FixedText { bytes } if self.row_len() == 1 => {
                let size = usize::try_from(bytes).unwrap_or(usize::MAX);
                let bytes = self.bytes(size, 4, absent, limit)?;
                let texts = bytes
                    .chunks_exact(size.max(1))
                    .map(|text| Some(text_of(text)));
                Ok(ColumnValues::text(texts))
            }
            DataType::VariableText if self.row_len() == 1 => self.texts(absent, limit),
            _ => {
                let why = "the array has neither numbers nor one text in a row";
                Err(fault(FileFault::Unsupported(why)))
            }
        }
    }

    /// Reads elements of `size` bytes, in row-major order, as little-endian words of `word` bytes.
    fn bytes(
        &self,
        size: usize,
        word: usize,
        absent: AbsentChunks,
        limit: u64,
    ) -> Result<Vec<u8>, FileError> {
        let shape = &self.array.shape;
        let element = u64::try_from(size).unwrap_or(u64::MAX);
        let chunk_bytes = product(&self.array.chunk_shape).saturating_mul(element);
        if chunk_bytes > CHUNK {
            let limit = CHUNK;
            return Err(FileFault::Unpacked { limit }.of(&self.folder));
        }
        let row_bytes = self.row_len().saturating_mul(element);
        if self.rows().saturating_mul(row_bytes) > limit {
            return Err(FileFault::Unpacked { limit }.of(&self.folder));
        }
        let grid = self.array.grid_shape();
        let across: Vec<u64> = grid.iter().skip(1).copied().collect();
        let along = grid.first().copied().unwrap_or(0);
        let fill = self.fill(size);
        let mut all = Vec::new();
        for slab in 0..along {
            let high = self.array.chunk_shape.first().copied().unwrap_or(1);
            let rows = high.min(self.rows().saturating_sub(slab.saturating_mul(high)));
            let start = all.len();
            for number in 0..product(&across) {
                let mut index = vec![slab];
                index.extend(places(number, &across));
                let chunk = self.chunk(&index, absent, DecodedSize::Exactly(chunk_bytes))?;
                // The rows of a slab are reserved after its first chunk is read.
                if all.len() == start {
                    let end = usize::try_from(rows.saturating_mul(row_bytes)).unwrap_or(usize::MAX);
                    match fill
                        .as_ref()
                        .filter(|fill| fill.iter().any(|byte| *byte != 0))
                    {
                        Some(fill) => all.extend(fill.iter().cycle().take(end)),
                        None => all.resize(start.saturating_add(end), 0),
                    }
                }
                let Some(chunk) = chunk else {
                    if fill.is_none() {
                        let value = &self.array.fill_value;
                        let expected =
                            "absent chunks have this value, which is not supported for this type";
                        let fault = FileFault::field("the fill value", value, expected);
                        return Err(fault.of(&self.folder));
                    }
                    continue;
                };
                let mut chunk = chunk.to_vec();
                if self.codecs.form() == DecodedForm::BigEndian {
                    chunk
                        .chunks_exact_mut(word.max(1))
                        .for_each(<[u8]>::reverse);
                }
                let target = all.get_mut(start..).unwrap_or_default();
                self.scatter(&index, &chunk, size, rows, target);
            }
        }
        debug_assert_eq!(
            u64::try_from(all.len()).ok(),
            Some(product(shape).saturating_mul(element))
        );
        Ok(all)
    }

    /// Copies the elements of a chunk inside the array to the rows of its slab.
    fn scatter(&self, index: &[u64], chunk: &[u8], size: usize, rows: u64, slab: &mut [u8]) {
        let extents = &self.array.chunk_shape;
        if extents.get(1..) == self.array.shape.get(1..) {
            // Rows are whole, and those past the end come last.
            let length = slab.len().min(chunk.len());
            if let (Some(to), Some(from)) = (slab.get_mut(..length), chunk.get(..length)) {
                to.copy_from_slice(from);
            }
            return;
        }
        // The slab is an array of its own: its first dimension begins with the chunk.
        let mut shape = self.array.shape.clone();
        let mut origin: Vec<u64> = index
            .iter()
            .zip(extents)
            .map(|(at, extent)| at.saturating_mul(*extent))
            .collect();
        if let (Some(first), Some(start)) = (shape.first_mut(), origin.first_mut()) {
            *first = rows;
            *start = 0;
        }
        for (number, element) in (0_u64..).zip(chunk.chunks_exact(size.max(1))) {
            let mut target = 0_u64;
            let mut is_inside = true;
            let places = places(number, extents);
            for ((place, origin), extent) in places.into_iter().zip(&origin).zip(&shape) {
                let at = place.saturating_add(*origin);
                is_inside &= at < *extent;
                target = target.saturating_mul(*extent).saturating_add(at);
            }
            if !is_inside {
                continue;
            }
            let start = usize::try_from(target)
                .unwrap_or(usize::MAX)
                .saturating_mul(size);
            if let Some(room) = slab.get_mut(start..start.saturating_add(size)) {
                room.copy_from_slice(element);
            }
        }
    }

    /// Reads and decodes a chunk; `None` for an absent one that has the fill value.
    fn chunk(
        &self,
        index: &[u64],
        absent: AbsentChunks,
        size: DecodedSize,
    ) -> Result<Option<Bytes>, FileError> {
        let key = self
            .array
            .chunk_key(&Key::root(), index)
            .map_err(|_| FileFault::Broken("a chunk is outside its array").of(&self.folder))?;
        let path = self.folder.join(key.as_str());
        let Some(bytes) = file(&path, CHUNK)? else {
            return match absent {
                AbsentChunks::Fill => Ok(None),
                AbsentChunks::Refuse => {
                    let source = io::Error::from(io::ErrorKind::NotFound);
                    Err(FileFault::Io(source).of(&path))
                }
            };
        };
        let decoded = self.codecs.decode(bytes.into(), size);
        decoded
            .map(Some)
            .map_err(|error| library::chunk(error).of(&path))
    }

    /// Reads texts of any length.
    fn texts(&self, absent: AbsentChunks, limit: u64) -> Result<ColumnValues, FileError> {
        let mut left = limit;
        let mut texts: Vec<Option<String>> = Vec::new();
        let mut rows = self.rows();
        for number in 0..self.array.grid_shape().first().copied().unwrap_or(0) {
            let mut index = vec![number];
            index.resize(self.array.shape.len(), 0);
            let of_chunk = product(&self.array.chunk_shape);
            let here = of_chunk.min(rows);
            rows = rows.saturating_sub(here);
            let count = usize::try_from(here).unwrap_or(usize::MAX);
            let bytes = self.chunk(&index, absent, DecodedSize::AtMost(left.min(CHUNK)))?;
            let Some(bytes) = bytes else {
                let fill = self.array.fill_value.as_str().unwrap_or_default();
                let size = u64::try_from(fill.len()).unwrap_or(u64::MAX);
                left = left
                    .checked_sub(size.saturating_mul(here))
                    .ok_or_else(|| FileFault::Unpacked { limit }.of(&self.folder))?;
                texts.extend((0..here).map(|_| Some(fill.to_owned())));
                continue;
            };
            left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            let damaged = || FileFault::Unsupported("a chunk of text is damaged").of(&self.folder);
            let frame = VlenFrame::parse(&bytes).map_err(|_| damaged())?;
            if u64::from(frame.len()) != of_chunk {
                return Err(damaged());
            }
            let items = frame.iter().take(count);
            texts.extend(items.map(|item| Some(String::from_utf8_lossy(item).into_owned())));
        }
        Ok(ColumnValues::text(texts))
    }

    /// Returns the fill value as one element of `size` bytes; `None` if it is of another type.
    fn fill(&self, size: usize) -> Option<Vec<u8>> {
        let value = &self.array.fill_value;
        // Zarr v2 has 0 also for types that are no numbers.
        let is_zero = value.as_f64() == Some(0.0) || value == &Value::Bool(false) || value == "";
        if is_zero {
            Some(vec![0; size])
        } else {
            self.array.fill_element()
        }
    }
}

/// Returns the number of elements of a shape.
fn product(shape: &[u64]) -> u64 {
    shape
        .iter()
        .fold(1, |count, extent| count.saturating_mul(*extent))
}

/// Returns the index of element `number` of an array, in row-major order.
fn places(mut number: u64, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (place, extent) in index.iter_mut().zip(shape).rev() {
        *place = number.checked_rem(*extent).unwrap_or(0);
        number = number.checked_div(*extent).unwrap_or(0);
    }
    index
}

/// Decodes little-endian UTF-32 up to the zeros that pad it.
fn text_of(bytes: &[u8]) -> String {
    let (words, _) = bytes.as_chunks::<4>();
    let words = words.iter().map(|word| u32::from_le_bytes(*word));
    let letters = words.map(|word| char::from_u32(word).unwrap_or(char::REPLACEMENT_CHARACTER));
    let text: String = letters.collect();
    text.trim_end_matches('\0').to_owned()
}

/// Translates the metadata of an array of Zarr 2 to Zarr 3.
fn translated(old: &Value) -> Result<Value, FileFault> {
    let filters = old["filters"].as_array().map_or(&[][..], Vec::as_slice);
    let is_text = matches!(filters, [filter] if filter["id"] == "vlen-utf8");
    if !filters.is_empty() && !is_text {
        let found: Vec<String> = filters
            .iter()
            .map(|filter| filter["id"].to_string())
            .collect();
        let expected = "filters of Zarr 2 are not supported; write the array with Zarr 3";
        return Err(FileFault::field("filters", found.join(", "), expected));
    }
    let rank = old["shape"].as_array().map_or(0, Vec::len);
    if old["order"] == "F" && rank > 1 {
        let expected = "only chunks in the order C are supported; write the array with Zarr 3";
        return Err(FileFault::field("order", "F", expected));
    }
    let name = old["dtype"].as_str().unwrap_or_default();
    let unknown = || {
        let expected = "types are numbers, booleans and text";
        FileFault::field("dtype", &old["dtype"], expected)
    };
    let endian = if name.starts_with('>') {
        "big"
    } else {
        "little"
    };
    let letters = name.trim_start_matches(['<', '>', '|', '=']);
    let (family, digits) = letters.split_at_checked(1).ok_or_else(unknown)?;
    let size: Option<u64> = digits.parse().ok();
    let (data_type, zero) = match (family, size) {
        ("O", _) if is_text => (json!("string"), json!("")),
        ("b", Some(1)) => (json!("bool"), json!(false)),
        ("i", Some(size @ (1 | 2 | 4 | 8))) => (json!(format!("int{}", size * 8)), json!(0)),
        ("u", Some(size @ (1 | 2 | 4 | 8))) => (json!(format!("uint{}", size * 8)), json!(0)),
        ("f", Some(size @ (2 | 4 | 8))) => (json!(format!("float{}", size * 8)), json!(0)),
        ("U", Some(letters @ 1..=0x1000_0000)) => {
            let configuration = json!({ "length_bytes": letters * 4 });
            let text = json!({ "name": "fixed_length_utf32", "configuration": configuration });
            (text, json!(""))
        }
        _ => return Err(unknown()),
    };
    let serialiser = if is_text {
        json!({ "name": "vlen-utf8" })
    } else {
        json!({ "name": "bytes", "configuration": { "endian": endian } })
    };
    let mut codecs = vec![serialiser];
    let compressor = &old["compressor"];
    match compressor["id"].as_str() {
        None if compressor.is_null() => {}
        // A chunk of Blosc names its compressor and its filter itself.
        Some("blosc") => codecs.push(json!({
            "name": "blosc",
            "configuration": { "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 1, "blocksize": 0 },
        })),
        Some("zstd") => codecs.push(json!({
            "name": "zstd", "configuration": { "level": 0, "checksum": false },
        })),
        Some("gzip") => codecs.push(json!({ "name": "gzip", "configuration": { "level": 5 } })),
        _ => {
            let expected = "compressors are blosc, zstd and gzip; write the array with one of them";
            return Err(FileFault::field("compressor", &compressor["id"], expected));
        }
    }
    let separator = old["dimension_separator"].as_str().unwrap_or(".");
    let fill = Some(&old["fill_value"]).filter(|fill| !fill.is_null());
    Ok(json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": old["shape"],
        "data_type": data_type,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": old["chunks"] } },
        "chunk_key_encoding": { "name": "v2", "configuration": { "separator": separator } },
        "fill_value": fill.unwrap_or(&zero),
        "codecs": codecs,
    }))
}
