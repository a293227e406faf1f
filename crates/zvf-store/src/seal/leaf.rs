//! A part of the inventory, as bytes.
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | magic |
//! | for each entry | |
//! | varint | bytes of the name that it shares with the previous one |
//! | varint, bytes | the rest of the name |
//! | varint | size of the object |
//! | 4 for each block | checksum |
//! | 4 if there are several blocks | the last four bytes of the object |
//! | 4 | CRC-32 of everything before |
//!
//! The entry of a [row table](super::RowTable) has the table in place of the checksums, and its size.
//!
//! Names sort nodes before other objects, so that a reader of a listing finds the nodes of a large
//! store in few leaves. Row tables come last, in leaves of their own.

use core::ops::Range;
use std::collections::BTreeMap;

use bytes::Bytes;
use zvf_model::key::Key;

use super::SealEntry;
use crate::io::{SealError, is_reserved};

const MAGIC: &[u8; 8] = b"zvfseal1";
/// Maximum number of bytes of all names of a leaf, which [`LEAF_BYTES`] keeps far below.
const MAX_NAMES: usize = 256 << 20;
/// Size at which a leaf is divided.
const LEAF_BYTES: usize = 64 << 10;
/// Class of the names of row tables.
pub(crate) const ROWS: &str = "r";

/// Entries by the name of their object.
pub(crate) type Entries = BTreeMap<String, SealEntry>;

/// Returns the name of an object in the inventory; `None` for the root and reserved objects.
pub(crate) fn entry_name(key: &Key) -> Option<String> {
    let text = key.as_str();
    if key.is_root() || is_reserved(text) || text == "zarr.json" {
        return None;
    }
    let class = match key.name() {
        Some("zarr.json") => 'n',
        _ => 'o',
    };
    Some(format!("{class}{text}"))
}

/// Returns the name of the row table of an object.
pub(crate) fn rows_name(object: &Key) -> String {
    format!("{ROWS}{key}", key = object.as_str())
}

/// Returns the key of the object whose row table has a name.
pub(crate) fn object_of_rows(name: &str) -> Option<Key> {
    Key::parse(name.strip_prefix(ROWS)?).ok()
}

/// Returns whether a name is that of a row table.
pub(crate) fn is_rows(name: &str) -> bool {
    name.starts_with(ROWS)
}

/// Returns the key of an object of this name in the inventory; `None` for an invalid name, and for row
/// tables.
pub(crate) fn key_of_entry(name: &str) -> Option<Key> {
    let text = name.strip_prefix(['n', 'o'])?;
    Key::parse(text).ok()
}

/// Encodes the entries of a leaf.
pub(crate) fn encode<'a>(entries: impl IntoIterator<Item = (&'a String, &'a SealEntry)>) -> Bytes {
    let mut bytes = MAGIC.to_vec();
    let mut previous = "";
    for (name, entry) in entries {
        let shared = shared_bytes(previous, name);
        let rest = name.as_bytes().get(shared..).unwrap_or_default();
        push_varint(&mut bytes, as_u64(shared));
        push_varint(&mut bytes, as_u64(rest.len()));
        bytes.extend_from_slice(rest);
        push_varint(&mut bytes, entry.size);
        bytes.extend_from_slice(&entry.rows);
        for block in &entry.blocks {
            bytes.extend_from_slice(&block.to_le_bytes());
        }
        if entry.blocks.len() > 1 {
            bytes.extend_from_slice(&entry.tail.to_le_bytes());
        }
        previous = name;
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.into()
}

/// Divides entries into leaves of about [`LEAF_BYTES`].
pub(crate) fn split(entries: &Entries) -> Vec<Vec<(&String, &SealEntry)>> {
    let mut leaves = Vec::new();
    let mut leaf = Vec::new();
    let mut bytes = 0_usize;
    let mut last_is_rows = false;
    for (name, entry) in entries {
        let blocks = entry.blocks.len().saturating_mul(4);
        let size = blocks.saturating_add(entry.rows.len()).saturating_add(12);
        let is_full = bytes.saturating_add(size) > LEAF_BYTES || last_is_rows != is_rows(name);
        if is_full && !leaf.is_empty() {
            leaves.push(core::mem::take(&mut leaf));
            bytes = 0;
        }
        last_is_rows = is_rows(name);
        bytes = bytes.saturating_add(size);
        leaf.push((name, entry));
    }
    if !leaf.is_empty() {
        leaves.push(leaf);
    }
    leaves
}

/// The entries of a leaf as they are read: few allocations, because a leaf is parsed whenever a store
/// is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeafEntries {
    /// The names, one after another.
    names: String,
    /// The checksums of all blocks.
    blocks: Vec<u32>,
    /// The row tables, one after another.
    rows: Vec<u8>,
    /// The entries in the order of their names.
    entries: Vec<LeafEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LeafEntry {
    name: Range<usize>,
    blocks: Range<usize>,
    rows: Range<usize>,
    size: u64,
    tail: u32,
}

impl LeafEntries {
    /// Returns the entry of a name.
    pub(crate) fn get(&self, name: &str) -> Option<SealEntry> {
        let found = self.entries.get(self.position(name))?;
        (self.name(found) == name).then(|| self.entry(found))?
    }

    /// Returns the size of the object of a name.
    pub(crate) fn size(&self, name: &str) -> Option<u64> {
        let found = self.entries.get(self.position(name))?;
        (self.name(found) == name).then_some(found.size)
    }

    /// Returns a copy of all entries.
    pub(crate) fn to_map(&self) -> Entries {
        let entries = self.entries.iter();
        entries
            .filter_map(|entry| Some((self.name(entry).to_owned(), self.entry(entry)?)))
            .collect()
    }

    /// Returns the names from `first` on.
    pub(crate) fn names_from(&self, first: &str) -> impl Iterator<Item = &str> {
        let rest = self.entries.get(self.position(first)..);
        rest.unwrap_or(&[]).iter().map(|entry| self.name(entry))
    }

    /// Returns the number of names before `name`.
    fn position(&self, name: &str) -> usize {
        self.entries
            .partition_point(|entry| self.name(entry) < name)
    }

    fn name(&self, entry: &LeafEntry) -> &str {
        self.names.get(entry.name.clone()).unwrap_or_default()
    }

    fn entry(&self, entry: &LeafEntry) -> Option<SealEntry> {
        Some(SealEntry {
            size: entry.size,
            blocks: self.blocks.get(entry.blocks.clone())?.to_vec(),
            tail: entry.tail,
            rows: Bytes::copy_from_slice(self.rows.get(entry.rows.clone())?),
        })
    }
}

/// Parses a leaf.
pub(crate) fn parse(bytes: &[u8]) -> Result<LeafEntries, SealError> {
    let (body, checksum) = bytes.split_last_chunk::<4>().ok_or(SealError::Inventory)?;
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(SealError::Inventory);
    }
    let rest = body.strip_prefix(MAGIC).ok_or(SealError::Inventory)?;
    parse_entries(rest).ok_or(SealError::Inventory)
}

fn parse_entries(mut rest: &[u8]) -> Option<LeafEntries> {
    let mut entries = LeafEntries::default();
    let mut previous = 0..0_usize;
    while !rest.is_empty() {
        let shared = usize::try_from(take_varint(&mut rest)?).ok()?;
        let length = usize::try_from(take_varint(&mut rest)?).ok()?;
        let (tail, after) = rest.split_at_checked(length)?;
        rest = after;
        let start = entries.names.len();
        // Shared bytes multiply: names of a damaged leaf could fill the memory.
        if shared > previous.len() || start > MAX_NAMES {
            return None;
        }
        let kept = previous.start..previous.start.checked_add(shared)?;
        if !entries.names.is_char_boundary(kept.end) {
            return None;
        }
        entries.names.extend_from_within(kept);
        entries.names.push_str(core::str::from_utf8(tail).ok()?);
        let size = take_varint(&mut rest)?;
        let name = start..entries.names.len();
        let first_of_rows = entries.rows.len();
        let mut count = usize::try_from(SealEntry::block_count(size)).ok()?;
        if is_rows(entries.names.get(name.clone())?) {
            let (rows, after) = rest.split_at_checked(usize::try_from(size).ok()?)?;
            rest = after;
            entries.rows.extend_from_slice(rows);
            count = 0;
        }
        let (blocks, after) = rest.split_at_checked(count.checked_mul(4)?)?;
        rest = after;
        let first_block = entries.blocks.len();
        let blocks = blocks
            .as_chunks::<4>()
            .0
            .iter()
            .map(|block| u32::from_le_bytes(*block));
        entries.blocks.extend(blocks);
        let mut last = 0;
        if count > 1 {
            let (bytes, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            last = u32::from_le_bytes(*bytes);
        }
        if !entries.entries.is_empty()
            && entries.names.get(previous)? >= entries.names.get(name.clone())?
        {
            return None;
        }
        entries.entries.push(LeafEntry {
            name: name.clone(),
            blocks: first_block..entries.blocks.len(),
            rows: first_of_rows..entries.rows.len(),
            size,
            tail: last,
        });
        previous = name;
    }
    Some(entries)
}

/// Returns the number of bytes that both names begin with, up to a character.
fn shared_bytes(a: &str, b: &str) -> usize {
    let equal = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b);
    let mut shared = equal.count();
    while !(a.is_char_boundary(shared) && b.is_char_boundary(shared)) {
        shared = shared.saturating_sub(1);
    }
    shared
}

pub(super) fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

pub(super) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

pub(super) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..63).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(*first & 0x7f) << shift;
        if *first < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Entries {
        let name = |key: &str| entry_name(&Key::parse(key).unwrap()).unwrap();
        let big: Vec<u8> = (0..=250).cycle().take(50_000).collect();
        Entries::from([
            (name("0/vertices/c/0/0/1"), SealEntry::of(b"abc")),
            (name("0/vertices/c/0/0/2"), SealEntry::of(&big)),
            (name("0/vertices/zarr.json"), SealEntry::of(b"{}")),
            (name("0/é/c/0"), SealEntry::of(b"")),
            (
                rows_name(&Key::parse("0/vertex_fragments/c/0/0/1").unwrap()),
                SealEntry::of_rows(Bytes::from(vec![3; 40_000])),
            ),
        ])
    }

    #[test]
    fn a_leaf_is_read_as_it_was_written() {
        let bytes = encode(&entries());
        assert_eq!(parse(&bytes).unwrap().to_map(), entries());
        let none = parse(&encode(&Entries::new())).unwrap();
        assert_eq!(none.to_map(), Entries::new());
        assert_eq!(none.get("n"), None);
    }

    #[test]
    fn entries_are_found_by_name() {
        let all = entries();
        let leaf = parse(&encode(&all)).unwrap();
        for (name, entry) in &all {
            assert_eq!(leaf.get(name).as_ref(), Some(entry));
            let next = format!("{name}!");
            assert_eq!(leaf.get(&next), None);
            let after: Vec<&str> = all
                .range(next.clone()..)
                .map(|(name, _)| name.as_str())
                .collect();
            assert!(leaf.names_from(&next).eq(after));
        }
        assert!(leaf.names_from("").eq(all.keys()));
    }

    #[test]
    fn names_that_do_not_ascend_are_refused() {
        for second in ["b", "a"] {
            let mut bytes = MAGIC.to_vec();
            for name in ["b", second] {
                bytes.extend([0, 1, *name.as_bytes().first().unwrap(), 0]);
            }
            let checksum = crc32fast::hash(&bytes);
            bytes.extend(checksum.to_le_bytes());
            assert_eq!(parse(&bytes), Err(SealError::Inventory));
        }
    }

    #[test]
    fn every_damaged_leaf_is_refused() {
        let bytes = encode(&entries());
        for end in 0..bytes.len() {
            assert_eq!(parse(bytes.get(..end).unwrap()), Err(SealError::Inventory));
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            *damaged.get_mut(at).unwrap() ^= 1;
            assert_eq!(parse(&damaged), Err(SealError::Inventory));
        }
    }

    #[test]
    fn hostile_entries_with_a_valid_checksum_are_refused() {
        let bodies: [&[u8]; 6] = [
            &[0, 1, b'r', 9, 1],
            &[5, 1, b'n', 0],
            &[0, 200, b'n', 0],
            &[
                0, 1, b'n', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
            ],
            &[0, 1, 0xc3, 0],
            &[0xff; 12],
        ];
        for body in bodies {
            let mut bytes = MAGIC.to_vec();
            bytes.extend(body);
            let checksum = crc32fast::hash(&bytes);
            bytes.extend(checksum.to_le_bytes());
            assert_eq!(parse(&bytes), Err(SealError::Inventory), "{body:?}");
        }
    }

    #[test]
    fn leaves_are_divided_by_size_and_keep_their_order() {
        let all: Entries = (0..20_000)
            .map(|at| (format!("o0/vertices/c/{at:05}"), SealEntry::of(b"cell")))
            .collect();
        let leaves = split(&all);
        assert!(leaves.len() > 3);
        let mut read = Entries::new();
        for leaf in leaves {
            let bytes = encode(leaf);
            assert!(bytes.len() < LEAF_BYTES);
            read.extend(parse(&bytes).unwrap().to_map());
        }
        assert_eq!(read, all);
    }
}
