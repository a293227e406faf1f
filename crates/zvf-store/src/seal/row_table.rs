//! Row tables: the rows of the fragments in an object of fragment indexes.

use std::collections::BTreeMap;

use bytes::Bytes;
use zvf_model::key::Key;

use super::leaf::{as_u64, push_varint, take_varint};
use crate::io::SealError;

/// Folder of the keys under which row tables are put.
const FOLDER: &str = ".zvf/rows";

/// The rows of the fragments in an object of fragment indexes, for the inventory of a sealed store.
///
/// The inventory has the [lengths of fragments](zvf_format::fragment_lengths) of cells, so that a reader
/// knows the rows of a fragment of any chunk before it knows which chunks it needs. A table is
/// [put](Self::into_object) in one call with its object. An object that is put without one has none.
///
/// | for each cell | content |
/// |---|---|
/// | varint | number of the cell in its shard, 0 without shards |
/// | varint, bytes | its lengths |
#[derive(Debug)]
pub struct RowTable {
    object: Key,
    bytes: Vec<u8>,
}

impl RowTable {
    /// Creates a table without cells.
    pub fn new(object: Key) -> Self {
        Self {
            object,
            bytes: Vec::new(),
        }
    }

    /// Adds the lengths of the fragments of a cell, given its number in the shard.
    pub fn push(&mut self, cell: Option<u64>, lengths: &[u8]) {
        push_varint(&mut self.bytes, cell.unwrap_or_default());
        push_varint(&mut self.bytes, as_u64(lengths.len()));
        self.bytes.extend_from_slice(lengths);
    }

    /// Returns the table in the form in which it is put, under a key that no object has; `None` if the key
    /// would be too long.
    pub fn into_object(self) -> Option<(Key, Bytes)> {
        let key = Key::parse(&format!("{FOLDER}/{key}", key = self.object.as_str()));
        Some((key.ok()?, self.bytes.into()))
    }

    /// Bytes that are not the lengths of any fragments.
    pub(crate) const NO_LENGTHS: &[u8] = &[0x80];

    /// Adds the cells of another table of the object.
    pub(crate) fn append(&mut self, table: &[u8]) {
        self.bytes.extend_from_slice(table);
    }

    /// Returns the bytes of the table.
    pub(crate) fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.bytes)
    }

    /// Returns whether a key is that of a table, and not of an object.
    pub fn is_at(key: &Key) -> bool {
        Self::object_at(key).is_some()
    }

    /// Returns the key of the object whose table is put under a key.
    pub(crate) fn object_at(key: &Key) -> Option<Key> {
        let object = key.as_str().strip_prefix(FOLDER)?.strip_prefix('/')?;
        Key::parse(object).ok()
    }

    /// Returns the lengths of the fragments of each cell in a table, by the number of the cell.
    pub(crate) fn parse(table: &Bytes) -> Result<BTreeMap<u64, Bytes>, SealError> {
        let mut cells = BTreeMap::new();
        let mut rest: &[u8] = table;
        while !rest.is_empty() {
            let (number, lengths) = take_cell(&mut rest).ok_or(SealError::Inventory)?;
            cells.insert(number, table.slice_ref(lengths));
        }
        Ok(cells)
    }
}

/// Takes the number and the lengths of the first cell.
fn take_cell<'a>(rest: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let number = take_varint(rest)?;
    let length = usize::try_from(take_varint(rest)?).ok()?;
    let (lengths, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some((number, lengths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_found_by_cell_and_damaged_tables_are_refused() {
        let object = Key::parse("0/vertex_fragments/c/0").unwrap();
        let mut table = RowTable::new(object.clone());
        table.push(Some(3), &[1, 2]);
        table.push(Some(200), &[]);
        let (key, bytes) = table.into_object().unwrap();
        assert_eq!(RowTable::object_at(&key), Some(object.clone()));
        assert!(!RowTable::is_at(&object));
        let cells = [(3, Bytes::from_static(&[1, 2])), (200, Bytes::new())];
        assert_eq!(RowTable::parse(&bytes), Ok(cells.into()));
        for end in [1, 2, 3, 5, 6] {
            let cut = bytes.slice(..end);
            assert_eq!(RowTable::parse(&cut), Err(SealError::Inventory));
        }
        let hostile =
            Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert_eq!(RowTable::parse(&hostile), Err(SealError::Inventory));
    }
}
