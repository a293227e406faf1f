//! Properties that hold for arbitrary bytes.
//!
//! Each law parses the bytes. If the codec accepts them, it checks that all accessors agree and
//! that encoding reproduces the bytes where the codec guarantees it. Fuzz targets and property
//! tests call the laws.

use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexBuilder, Rows},
    fragment_lengths::{self, FragmentLengths},
};

mod b2nd;
mod geometry;
mod tetration;
mod values;

pub use b2nd::{b2nd_frame, b2nd_parts, nd_metalayer};
pub use geometry::{
    cross_chunk_cell, cross_chunk_table, link_rows, object_manifest, path_segment, placement,
    ragged_blob, ragged_links,
};
pub use tetration::{tet_directory, tet_footer, tet_index, tet_layout, tet_superblock};
pub use values::{dictionary_codes, group_members, numeric_rows, open_rows, vlen_frame};

/// Checks that iteration, lookup and ranked lookup agree; canonical bytes round-trip.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn fragment_index(bytes: &[u8]) {
    let Ok(index) = FragmentIndex::parse(bytes) else {
        return;
    };
    let ranked = index.ranked(vec![0; index.rank_slots()]).expect("enough");
    let mut builder = FragmentIndexBuilder::default();
    let mut extent = 0;
    for (id, rows) in (0..index.len()).zip(&index) {
        assert_eq!(index.rows(id).as_ref(), Some(&rows), "fragment {id}");
        assert_eq!(ranked.rows(id).as_ref(), Some(&rows), "fragment {id}");
        // A range may claim 2^63 rows: only its ends are tested.
        let last = match &rows {
            Rows::Range(range) => range.clone().next_back(),
            Rows::List(list) => list.iter().max(),
        };
        extent = extent.max(last.map_or(0, |last| last + 1));
        builder
            .push(&rows)
            .expect("what was decoded can be encoded");
    }
    assert_eq!(
        index.iter().len(),
        usize::try_from(index.len()).expect("fits")
    );
    assert_eq!(index.rows(index.len()), None);
    assert_eq!(index.extent(), extent);
    let again = builder.finish();
    let same = FragmentIndex::parse(&again).expect("own encoding");
    assert!(same.is_canonical());
    if index.is_canonical() {
        assert_eq!(index, same);
        assert_eq!(again.len(), bytes.len(), "canonical but of another length");
    }
}

/// Checks that the index with the same fragments has these lengths, and no other bytes do.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn fragment_lengths(bytes: &[u8]) {
    let Ok(lengths) = FragmentLengths::parse(bytes) else {
        return;
    };
    let mut builder = FragmentIndexBuilder::default();
    for range in lengths.ranges() {
        builder.push_range(range).expect("below 2^63");
    }
    let index = builder.finish();
    let index = FragmentIndex::parse(&index).expect("own encoding");
    assert_eq!(index.extent(), lengths.extent());
    let again = fragment_lengths::encode(&index);
    assert_eq!(again.as_deref(), Some(bytes));
}

/// A law, which panics on a violation.
pub type Law = fn(&[u8]);

/// Every law with its name. Each has a fuzz target of that name.
pub const ALL: &[(&str, Law)] = &[
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
