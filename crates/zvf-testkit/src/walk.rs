//! Walks: functions that parse a blob and call every accessor of its view.
//!
//! Each walk folds all values into one number, so that the optimiser keeps the accessors, and
//! returns `None` for bytes that the codec rejects. No walk can panic: the no-panic probe links
//! exactly these.

use zvf_format::{fragment::FragmentIndex, fragment_lengths::FragmentLengths};

mod b2nd;
mod geometry;
mod tetration;
pub(crate) mod values;

pub use b2nd::{b2nd_frame, b2nd_parts, nd_metalayer};
#[cfg(feature = "std")]
pub(crate) use geometry::shape;
pub use geometry::{
    cross_chunk_cell, cross_chunk_table, link_rows, object_manifest, path_segment, placement,
    ragged_blob, ragged_links,
};
pub use tetration::{tet_directory, tet_footer, tet_index, tet_layout, tet_superblock};
pub use values::{dictionary_codes, group_members, numeric_rows, open_rows, vlen_frame};

/// Mixes `value` into `digest`; order matters.
fn mix(digest: u64, value: u64) -> u64 {
    (digest ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the bits of a signed number.
fn signed(value: i64) -> u64 {
    value.cast_unsigned()
}

/// Mixes the first 256 bytes and the length into `digest`.
fn mix_bytes(digest: u64, bytes: &[u8]) -> u64 {
    let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let bytes = bytes.iter().take(256).map(|&byte| u64::from(byte));
    bytes.fold(mix(digest, len), mix)
}

/// Walks a fragment index: all rows, by iteration, by number and by directory.
pub fn fragment_index(bytes: &[u8]) -> Option<u64> {
    let index = FragmentIndex::parse(bytes).ok()?;
    let mut digest = mix(u64::from(index.len()), index.extent());
    digest = mix(digest, u64::from(index.range_count()));
    digest = mix(digest, u64::from(index.tiles(index.extent())));
    digest = mix(digest, u64::from(index.is_canonical()));
    for rows in &index {
        digest = rows.iter().take(64).fold(digest, mix);
    }
    let mut slots = [0; 16];
    let ranked = index.ranked(&mut slots[..]).ok();
    for id in [0, 1, 63, 64, index.len().wrapping_sub(1), index.len()] {
        digest = mix(digest, index.rows(id).map_or(0, |rows| rows.len()));
        let ranked = ranked.as_ref().and_then(|ranked| ranked.rows(id));
        digest = mix(digest, ranked.map_or(0, |rows| rows.len()));
    }
    Some(digest)
}

/// Walks lengths of fragments: all ranges.
pub fn fragment_lengths(bytes: &[u8]) -> Option<u64> {
    let lengths = FragmentLengths::parse(bytes).ok()?;
    let ranges = lengths.ranges().take(64);
    let ends = ranges.map(|range| range.end);
    Some(ends.fold(lengths.extent(), mix))
}

/// A function that parses bytes, calls every accessor and returns a digest; `None` if the bytes are
/// rejected.
pub type Walk = fn(&[u8]) -> Option<u64>;

/// All walks by name. The probes link these; a test compares the list with the functions above and
/// with the laws.
pub const ALL: &[(&str, Walk)] = &[
    ("fragment_index", fragment_index),
    ("fragment_lengths", fragment_lengths),
    ("object_manifest", object_manifest),
    ("ragged_blob", ragged_blob),
    ("link_rows", link_rows),
    ("ragged_links", ragged_links),
    ("cross_chunk_cell", cross_chunk_cell),
    ("cross_chunk_table", cross_chunk_table),
    ("placement", placement),
    ("path_segment", path_segment),
    ("vlen_frame", vlen_frame),
    ("open_rows", open_rows),
    ("group_members", group_members),
    ("numeric_rows", numeric_rows),
    ("dictionary_codes", dictionary_codes),
    ("b2nd_frame", b2nd_frame),
    ("b2nd_parts", b2nd_parts),
    ("nd_metalayer", nd_metalayer),
    ("tet_superblock", tet_superblock),
    ("tet_directory", tet_directory),
    ("tet_index", tet_index),
    ("tet_footer", tet_footer),
    ("tet_layout", tet_layout),
];
