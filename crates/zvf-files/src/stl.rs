//! STL, triangles for printers.
//!
//! A binary file has 84 + 50 n bytes, little-endian, whatever its first bytes are:
//!
//! | at | type | field |
//! |--:|---|---|
//! | 0 | 80 bytes | any text |
//! | 80 | u32 | n |
//! | 84 + 50 i | 12 × f32 | normal, three corners of facet i |
//! | 132 + 50 i | u16 | a word, a colour in some dialects |
//!
//! Any other file is text: `solid NAME`, `facet normal x y z`, `outer loop`, three `vertex x y z`,
//! `endloop`, `endfacet`, `endsolid`.
//!
//! Corners with equal bits become one vertex, in the order of their first appearance. Normals are left
//! out: the order of the corners gives them. A word that is not 0 in some facet becomes the link
//! attribute `word`. Solids of a text file are objects, by number, with `object.name`.

mod writer;

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
    path::Path,
};

use zvf::{Column, Geometry, GeometryBuilder, GeometryKind, NumericColumn, numeric::Kind};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FilePlace, FileReadOptions,
    input::ByteReader,
    text::{LineReader, number},
    whole::WholeReader,
};

pub use writer::StlWriter;

/// Size of a facet.
const FACET: u64 = 50;
/// Size of the part before the facets.
const START: u64 = 84;

/// Number of facets that are read together.
const BLOCK: u64 = 1 << 12;

/// Vertices that are joined by their bits.
#[derive(Debug)]
struct WeldedCorners {
    numbers: HashMap<[u8; 12], u32, CornerHashes>,
    /// The corners that were read last, by their hash. Facets that share a corner follow each other
    /// in most files, so few corners have to be looked up among all corners.
    recent: Vec<([u8; 12], u32)>,
    positions: Vec<u8>,
    corners: Vec<i64>,
}

/// Number of recent corners, whose memory fits into the cache of a core.
const RECENT_CORNERS: usize = 1 << 14;

impl Default for WeldedCorners {
    fn default() -> Self {
        Self {
            numbers: HashMap::default(),
            // No corner has this number.
            recent: vec![([0; 12], u32::MAX); RECENT_CORNERS],
            positions: Vec::new(),
            corners: Vec::new(),
        }
    }
}

/// Hashes of corners that take a multiplication. The keys are random, so that no file can be made of
/// corners with one hash.
#[derive(Clone, Copy, Debug)]
struct CornerHashes([u64; 2]);

impl Default for CornerHashes {
    fn default() -> Self {
        let random = RandomState::new();
        Self([random.hash_one(0_u8), random.hash_one(1_u8)])
    }
}

impl BuildHasher for CornerHashes {
    type Hasher = CornerHasher;

    fn build_hasher(&self) -> CornerHasher {
        CornerHasher {
            keys: self.0,
            hash: 0,
        }
    }
}

/// The hash of one corner.
#[derive(Debug)]
struct CornerHasher {
    keys: [u64; 2],
    hash: u64,
}

impl CornerHashes {
    #[inline]
    fn hash_of(&self, corner: &[u8; 12]) -> u64 {
        let mut hasher = self.build_hasher();
        hasher.write(corner);
        hasher.finish()
    }
}

impl Hasher for CornerHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = [0; 16];
        if let Some(target) = words.get_mut(..bytes.len()) {
            target.copy_from_slice(bytes);
        }
        let (words, _) = words.as_chunks::<8>();
        let [first, second] = [words.first(), words.get(1)].map(|word| {
            let word = word.copied().unwrap_or_default();
            u64::from_le_bytes(word)
        });
        let [one, two] = self.keys;
        let both = u128::from(first ^ one).wrapping_mul(u128::from(second ^ two ^ self.hash));
        let [low, high] = [both, both >> 64].map(|half| half & u128::from(u64::MAX));
        self.hash = u64::try_from(low ^ high).unwrap_or_default();
    }

    fn write_usize(&mut self, _: usize) {
        // Arrays of one length hash it as well.
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

impl WeldedCorners {
    /// Reserves memory for the corners of as many facets, which the file has.
    fn reserve(&mut self, facets: u64) {
        let facets = usize::try_from(facets).unwrap_or(0);
        self.corners.reserve_exact(facets.saturating_mul(3));
        // A closed surface has half as many vertices as triangles.
        self.numbers.reserve(facets.div_ceil(2));
    }

    /// Returns the number of facets, with that of the last corner.
    fn facets(&self) -> usize {
        self.corners.len().div_ceil(3)
    }

    fn push(&mut self, corner: [u8; 12]) {
        let hash = usize::try_from(self.numbers.hasher().hash_of(&corner) >> 32).unwrap_or(0);
        let number = match self.recent.get_mut(hash % RECENT_CORNERS) {
            Some((recent, number)) if *recent == corner && *number != u32::MAX => *number,
            place => {
                let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
                let number = *self.numbers.entry(corner).or_insert(next);
                if number == next {
                    self.positions.extend_from_slice(&corner);
                }
                if let Some(place) = place {
                    *place = (corner, number);
                }
                number
            }
        };
        self.corners.push(i64::from(number));
    }

    fn geometry(self) -> GeometryBuilder {
        let mut positions = NumericColumn::new(Kind::Float32, 3);
        positions.bytes = self.positions;
        Geometry::builder(positions).links(3, self.corners)
    }
}

/// Opens a file.
///
/// # Errors
///
/// [`FileError`] if the file is damaged.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
    let (again, reading) = (path.to_path_buf(), options.clone());
    Ok(read(path, options)?.reread(move || read(&again, &reading)))
}

fn read(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
    let mut file = ByteReader::open(path, options.unpacked)?;
    let mut description = FileDescription::new(FileFormat::Stl, GeometryKind::Mesh).axes_xyz(None);
    let length = file.length();
    if length >= START {
        file.seek(80)?;
        let facets = u64::from(u32::from_le_bytes(file.array("the number of facets")?));
        if length == START.saturating_add(facets.saturating_mul(FACET)) {
            let geometry = binary(&mut file, facets)?;
            return Ok(WholeReader::new(geometry, description));
        }
    }
    file.seek(0)?;
    let start: Vec<u8> = {
        let mut bytes = Vec::new();
        file.take(&mut bytes, length.min(512), "the start")?;
        bytes
    };
    // A binary file may start with solid too, but text has no zeros.
    if !start.starts_with(b"solid") || start.contains(&0) {
        let expected = "a binary STL file has 84 bytes and 50 for each facet, a text file starts with solid; the file is cut off or another format";
        return Err(FileFault::field("the size of the file", length, expected).of(path));
    }
    file.seek(0)?;
    let (geometry, is_ended) = text(LineReader::new(file))?;
    if !is_ended {
        let note = "the last solid has no line endsolid; the file may be cut off";
        description.notes.push(note.to_owned());
    }
    Ok(WholeReader::new(geometry, description))
}

fn binary(file: &mut ByteReader, facets: u64) -> Result<GeometryBuilder, FileError> {
    let mut corners = WeldedCorners::default();
    corners.reserve(facets);
    let mut words: Vec<u16> = Vec::new();
    let (mut block, mut left) = (Vec::new(), facets);
    while left > 0 {
        let (start, count) = (file.at(), left.min(BLOCK));
        file.take(&mut block, count.saturating_mul(FACET), "facets")?;
        let (records, _) = block.as_chunks::<50>();
        for (at, facet) in (0_u64..).zip(records) {
            let (groups, rest) = facet.as_chunks::<12>();
            for corner in groups.iter().skip(1) {
                check(corner).map_err(|fault| {
                    let place = start.saturating_add(at.saturating_mul(FACET));
                    fault.at(file.path(), FilePlace::Byte(place))
                })?;
                corners.push(*corner);
            }
            let word = u16::from_le_bytes(rest.first_chunk().copied().unwrap_or_default());
            if word != 0 || !words.is_empty() {
                let before = corners.facets().saturating_sub(1);
                words.resize(before, 0);
                words.push(word);
            }
        }
        left = left.saturating_sub(count);
    }
    let mut geometry = corners.geometry();
    if !words.is_empty() {
        let words: NumericColumn = words.into_iter().collect();
        geometry.link.push(Column::new("word", words));
    }
    Ok(geometry)
}

/// Checks that the coordinates of a corner are finite.
fn check(corner: &[u8; 12]) -> Result<(), FileFault> {
    let (numbers, _) = corner.as_chunks::<4>();
    let mut numbers = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes));
    match numbers.find(|number| !number.is_finite()) {
        None => Ok(()),
        Some(number) => Err(FileFault::NotFinite(number.into())),
    }
}

/// The content of a text file.
#[derive(Debug, Default)]
struct StlText {
    corners: WeldedCorners,
    names: Vec<Option<String>>,
    /// The solid of each facet.
    solids: Vec<i64>,
    /// Number of corners of the current facet.
    in_facet: Option<u32>,
    /// True after the end of a solid.
    is_ended: bool,
}

impl StlText {
    fn add(&mut self, line: &str) -> Result<(), FileFault> {
        let mut words = line.split_whitespace();
        match words.next().unwrap_or_default() {
            "solid" => {
                let name = line.trim().strip_prefix("solid").unwrap_or_default().trim();
                self.names.push((!name.is_empty()).then(|| name.to_owned()));
            }
            "facet" => {
                self.in_facet = Some(0);
                self.is_ended = false;
            }
            "endsolid" => self.is_ended = true,
            "vertex" => {
                let mut corner = [0; 12];
                let (numbers, _) = corner.as_chunks_mut::<4>();
                for target in numbers {
                    let value = number(words.next(), "a coordinate")?;
                    *target = crate::values::narrow(value).to_le_bytes();
                }
                check(&corner)?;
                self.corners.push(corner);
                self.in_facet = self.in_facet.map(|count| count.saturating_add(1));
            }
            "endfacet" => {
                if self.in_facet.take() != Some(3) {
                    let expected = "a facet has 3 vertices; the file is damaged";
                    return Err(FileFault::field("a facet", "incomplete", expected));
                }
                let solid = self.names.len().saturating_sub(1);
                self.solids.push(i64::try_from(solid).unwrap_or(i64::MAX));
            }
            "outer" | "endloop" | "" => {}
            other => {
                let other: String = other.chars().take(24).collect();
                let expected = "it is not a keyword of STL; the file is damaged";
                return Err(FileFault::field("a word", format!("{other:?}"), expected));
            }
        }
        Ok(())
    }
}

/// Reads a text file. Also returns whether the last solid has a line `endsolid`.
fn text(mut lines: LineReader) -> Result<(GeometryBuilder, bool), FileError> {
    let mut content = StlText::default();
    while let Some(line) = lines.next()? {
        let added = content.add(line);
        added.map_err(|fault| lines.error(fault))?;
    }
    let StlText {
        corners,
        names,
        solids,
        in_facet,
        is_ended,
    } = content;
    if in_facet.is_some() || corners.corners.len() != solids.len().saturating_mul(3) {
        let expected = "the file ends inside a facet; it is cut off";
        return Err(lines.error(FileFault::field("the last facet", "incomplete", expected)));
    }
    if solids.is_empty() {
        return Err(lines.error(FileFault::Empty));
    }
    if names.len() < 2 && names.first().is_none_or(Option::is_none) {
        return Ok((corners.geometry(), is_ended));
    }
    let geometry = with_solids(corners, &solids, &names).map_err(|fault| lines.error(fault))?;
    Ok((geometry, is_ended))
}

/// Makes each solid an object. Vertices that solids share are copied.
fn with_solids(
    corners: WeldedCorners,
    solids: &[i64],
    names: &[Option<String>],
) -> Result<GeometryBuilder, FileFault> {
    let mut numbers: HashMap<(i64, i64), u32> = HashMap::new();
    let mut rows = Vec::new();
    let mut owners = Vec::new();
    let mut links = Vec::with_capacity(corners.corners.len());
    let facets = corners.corners.chunks_exact(3).zip(solids);
    for (corner, solid) in facets.flat_map(|(facet, solid)| facet.iter().map(move |it| (it, solid)))
    {
        let next = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let number = *numbers.entry((*corner, *solid)).or_insert(next);
        if number == next {
            rows.push(usize::try_from(*corner).unwrap_or(usize::MAX));
            owners.push(*solid);
        }
        links.push(i64::from(number));
    }
    let whole = corners.geometry();
    let positions = whole.positions.take(rows).ok_or(FileFault::Broken(
        "a facet has a vertex that does not exist",
    ))?;
    let mut geometry = Geometry::builder(positions)
        .links(3, links)
        .object_ids(owners);
    let used: std::collections::BTreeSet<i64> = solids.iter().copied().collect();
    let name = |id: &i64| {
        usize::try_from(*id)
            .ok()
            .and_then(|id| names.get(id).cloned().flatten())
    };
    if used.iter().any(|id| name(id).is_some()) {
        geometry
            .object
            .push(Column::text("name", used.iter().map(name)));
        geometry.objects = Some(used.into_iter().collect());
    }
    Ok(geometry)
}
