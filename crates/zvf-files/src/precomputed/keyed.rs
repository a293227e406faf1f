//! Values by key: files of a folder, or entries of shards.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use zvf_precomputed::{ShardFileIndex, ShardingSpec};

use crate::{
    FileError, FileFault, FilePlace,
    input::{ByteReader, length_of, open_regular},
    library,
};

/// Compressed values that unpack to this size or less are always read.
const SMALL: u64 = 64 << 20;
/// Factor by which larger values may unpack.
const RATIO: u64 = 64;
/// Bytes of the index of a minishard for each byte of its shard: a key of 24 bytes has a value of at
/// least one byte.
const KEY: u64 = 24;

/// Reads a file of at most `limit` bytes. A file whose name ends in `.gz` is unpacked.
pub(super) fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let in_file = |fault: FileFault| fault.of(path);
    let metadata = fs::metadata(path).map_err(|source| in_file(source.into()))?;
    if !metadata.is_file() {
        return Err(in_file(FileFault::Unsupported("is not a file")));
    }
    let too_large = || in_file(FileFault::Unpacked { limit });
    if metadata.len() > limit {
        return Err(too_large());
    }
    let file = File::open(path).map_err(|source| in_file(source.into()))?;
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|end| end == "gz") {
        let most = unpacked_limit(metadata.len(), limit);
        let mut decoder = MultiGzDecoder::new(file).take(most.saturating_add(1));
        let read = decoder.read_to_end(&mut bytes);
        read.map_err(|source| in_file(source.into()))?;
        if length_of(&bytes) > most {
            return Err(in_file(FileFault::Unpacked { limit: most }));
        }
    } else {
        // The file may grow while it is read.
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|source| in_file(source.into()))?;
        if length_of(&bytes) > limit {
            return Err(too_large());
        }
    }
    Ok(bytes)
}

/// Returns the bytes to which compressed bytes may unpack.
fn unpacked_limit(stored: u64, limit: u64) -> u64 {
    stored.saturating_mul(RATIO).max(SMALL).min(limit)
}

/// Reads a file of a folder, or the file with `.gz` after its name.
pub(super) fn read_member(folder: &Path, name: &str, limit: u64) -> Result<Vec<u8>, FileError> {
    let packed = folder.join(format!("{name}.gz"));
    let plain = folder.join(name);
    let path = if !plain.exists() && packed.exists() {
        packed
    } else {
        plain
    };
    read_file(&path, limit)
}

/// Files that are open at once.
const MAX_OPEN: usize = 64;

/// The place of a value.
#[derive(Clone, Copy, Debug)]
struct KeyedPlace {
    key: u64,
    /// Number of the shard in the list of files.
    file: u32,
    /// First byte in the shard.
    start: u64,
    /// Stored size.
    size: u64,
}

/// Values by ascending key.
#[derive(Debug)]
pub(super) struct KeyedValues {
    folder: PathBuf,
    /// End of the names of files, without `.gz`.
    suffix: &'static str,
    sharding: Option<ShardingSpec>,
    /// Paths and sizes.
    shards: Vec<(PathBuf, u64)>,
    places: Vec<KeyedPlace>,
    open_shards: BTreeMap<u32, File>,
    /// The data of a value in files of their own.
    open_data: Option<(u64, ByteReader)>,
    limit: u64,
}

impl KeyedValues {
    /// Lists the values of a folder. The files of unsharded values are named by their keys with
    /// `suffix`. Values are unpacked to at most `limit` bytes.
    pub(super) fn open(
        folder: PathBuf,
        sharding: Option<ShardingSpec>,
        suffix: &'static str,
        limit: u64,
    ) -> Result<Self, FileError> {
        let mut values = Self {
            folder,
            suffix,
            sharding,
            shards: Vec::new(),
            places: Vec::new(),
            open_shards: BTreeMap::new(),
            open_data: None,
            limit,
        };
        let names = names(&values.folder)?;
        match sharding {
            None => values.add_files(&names),
            Some(spec) => values.add_shards(spec, &names)?,
        }
        values.places.sort_unstable_by_key(|place| place.key);
        match sharding {
            // One value may be in the files `N` and `N.gz`.
            None => values.places.dedup_by_key(|place| place.key),
            Some(_) => values.check_places()?,
        }
        Ok(values)
    }

    /// Checks that the shards have each key once, and each byte in one value at most.
    fn check_places(&self) -> Result<(), FileError> {
        let twice = self.places.windows(2).position(|pair| match pair {
            [one, next] => one.key == next.key,
            _ => false,
        });
        if let Some(place) = twice.and_then(|at| self.places.get(at)) {
            return Err(self.place_error(place, FileFault::Twice(place.key.to_string())));
        }
        let mut places: Vec<&KeyedPlace> = self.places.iter().filter(|one| one.size > 0).collect();
        places.sort_unstable_by_key(|place| (place.file, place.start));
        for pair in places.windows(2) {
            let [one, next] = pair else { continue };
            if one.file == next.file && next.start < one.start.saturating_add(one.size) {
                let fault = FileFault::Unsupported("values of the shard overlap; it is damaged");
                return Err(self.place_error(next, fault));
            }
        }
        Ok(())
    }

    fn add_files(&mut self, names: &[String]) {
        let keys = names.iter().filter_map(|name| {
            let name = name.strip_suffix(".gz").unwrap_or(name);
            let digits = name.strip_suffix(self.suffix)?;
            let key: u64 = digits.parse().ok()?;
            (key.to_string() == digits).then_some(key)
        });
        let places = keys.map(|key| KeyedPlace {
            key,
            file: 0,
            start: 0,
            size: 0,
        });
        self.places.extend(places);
    }

    fn add_shards(&mut self, spec: ShardingSpec, names: &[String]) -> Result<(), FileError> {
        for name in names {
            let Some(shard) = spec.shard_of(name) else {
                continue;
            };
            let path = self.folder.join(name);
            let in_file = |fault: FileFault| fault.of(&path);
            let mut file = ByteReader::open(&path, self.limit)?;
            let mut bytes = Vec::new();
            file.take(&mut bytes, spec.index_size(), "the index of the shard")?;
            let index = ShardFileIndex::parse(spec, shard, &bytes)
                .map_err(|error| in_file(library::shard(error)))?;
            let length = file.length();
            let number = u32::try_from(self.shards.len()).unwrap_or(u32::MAX);
            let minishards = index.minishards();
            let mut left = length;
            for (minishard, place) in minishards.map_err(|error| in_file(library::shard(error)))? {
                file.seek(place.start.min(length))?;
                let size = place.end.saturating_sub(place.start);
                let overlap = || {
                    in_file(FileFault::Unsupported(
                        "indexes of minishards overlap; it is damaged",
                    ))
                };
                left = left.checked_sub(size).ok_or_else(overlap)?;
                file.take(&mut bytes, size, "the index of a minishard")?;
                let limit = length.saturating_mul(KEY).max(1 << 20);
                let entries = index
                    .entries(minishard, &bytes, limit)
                    .map_err(|error| in_file(library::shard(error)))?;
                self.places
                    .extend(entries.into_iter().map(|entry| KeyedPlace {
                        key: entry.key,
                        file: number,
                        start: entry.start,
                        size: entry.size,
                    }));
            }
            self.shards.push((path, length));
        }
        Ok(())
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the keys, ascending.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.iter().map(|place| place.key)
    }

    /// Returns the key of a value by number, and the value.
    pub(super) fn get(&mut self, at: usize) -> Result<Option<(u64, Vec<u8>)>, FileError> {
        let Some(place) = self.places.get(at).copied() else {
            return Ok(None);
        };
        let Some(spec) = self.sharding else {
            let name = format!("{}{}", place.key, self.suffix);
            let value = read_member(&self.folder, &name, self.limit)?;
            return Ok(Some((place.key, value)));
        };
        let stored = self.range(&place, place.start, place.size)?;
        let limit = unpacked_limit(place.size, self.limit);
        let value = ShardFileIndex::decode_value(&spec, place.key, stored, limit)
            .map_err(|error| self.error(at, library::shard(error)))?;
        Ok(Some((place.key, value)))
    }

    /// Reads a part of the `size` bytes that belong to a value: those before it in a shard, or the
    /// file that the key names.
    #[cfg_attr(
        not(feature = "draco"),
        expect(
            dead_code,
            reason = "only multi-resolution meshes have data beside their values"
        )
    )]
    pub(super) fn data(
        &mut self,
        at: usize,
        size: u64,
        part: Range<u64>,
    ) -> Result<Vec<u8>, FileError> {
        let Some(place) = self.places.get(at).copied() else {
            return Ok(Vec::new());
        };
        let length = part.end.saturating_sub(part.start);
        if self.sharding.is_some() {
            let start = place.start.checked_sub(size);
            let start = start.and_then(|start| start.checked_add(part.start));
            let start = start.ok_or_else(|| {
                let fault = FileFault::Truncated {
                    what: "the fragments of a mesh",
                    needed: size,
                    left: place.start,
                };
                self.error(at, fault)
            })?;
            return self.range(&place, start, length);
        }
        let open = self.open_data.as_ref();
        if open.is_none_or(|(key, _)| *key != place.key) {
            let name = place.key.to_string();
            let plain = self.folder.join(&name);
            let path = if plain.exists() {
                plain
            } else {
                self.folder.join(format!("{name}.gz"))
            };
            self.open_data = Some((place.key, ByteReader::open(&path, self.limit)?));
        }
        let mut bytes = Vec::new();
        if let Some((_, file)) = &mut self.open_data {
            file.seek(part.start.min(file.length()))?;
            file.take(&mut bytes, length, "a fragment of a mesh")?;
        }
        Ok(bytes)
    }

    /// Reads bytes of the shard of a value.
    fn range(&mut self, place: &KeyedPlace, start: u64, size: u64) -> Result<Vec<u8>, FileError> {
        let number = usize::try_from(place.file).unwrap_or(usize::MAX);
        let Some((path, length)) = self.shards.get(number) else {
            return Ok(Vec::new());
        };
        let in_file = |fault| FileFault::at(fault, path, FilePlace::Member(place.key.to_string()));
        let left = length.saturating_sub(start);
        if size > left {
            return Err(in_file(FileFault::Truncated {
                what: "a value of the shard",
                needed: size,
                left,
            }));
        }
        if self.open_shards.len() >= MAX_OPEN && !self.open_shards.contains_key(&place.file) {
            self.open_shards.clear();
        }
        let io = |source| in_file(FileFault::Io(source));
        let file = match self.open_shards.entry(place.file) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => place.insert(open_regular(path).map_err(io)?),
        };
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        file.seek(SeekFrom::Start(start)).map_err(io)?;
        file.read_exact(&mut bytes).map_err(io)?;
        Ok(bytes)
    }

    /// Adds the file and the key of a value to a fault.
    pub(super) fn error(&self, at: usize, fault: FileFault) -> FileError {
        let Some(place) = self.places.get(at) else {
            return fault.of(&self.folder);
        };
        match self.sharding {
            None => fault.of(&self.folder.join(format!("{}{}", place.key, self.suffix))),
            Some(_) => self.place_error(place, fault),
        }
    }

    /// Adds the shard and the key of a value to a fault.
    fn place_error(&self, place: &KeyedPlace, fault: FileFault) -> FileError {
        let number = usize::try_from(place.file).unwrap_or(usize::MAX);
        let shard = self.shards.get(number);
        let path = shard.map_or(&self.folder, |(path, _)| path);
        fault.at(path, FilePlace::Member(place.key.to_string()))
    }

    /// Returns the folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Lists the names in a folder; a folder that does not exist has none.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, FileError> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let in_folder = |source| FileFault::Io(source).of(folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(in_folder)? {
        if let Ok(name) = entry.map_err(in_folder)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns an object id for the id of a segment.
pub(super) fn object_of(segment: u64) -> Result<i64, FileFault> {
    i64::try_from(segment).map_err(|_| {
        let expected = "ids of objects are below 2^63; renumber the segments";
        FileFault::field("the id of a segment", segment, expected)
    })
}
