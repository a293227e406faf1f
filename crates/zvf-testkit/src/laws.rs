//! What must hold for any bytes whatever.
//!
//! Each law parses the bytes and, when the codec takes them, checks that all
//! ways to the same answer agree and that encoding gives the same bytes again
//! wherever the codec promises it. Fuzz targets and property tests call these.

mod b2nd;
mod tetration;

pub use b2nd::{b2nd_frame, nd_metalayer};
pub use tetration::{tet_directory, tet_footer, tet_index, tet_layout, tet_superblock};

use zvf_format::fragment::{FragmentIndex, FragmentIndexBuilder};

/// Iteration, lookup and ranked lookup agree; canonical bytes round-trip.
///
/// # Panics
///
/// When they do not.
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
        // A range may claim 2^63 rows: only its ends are looked at.
        let last = match &rows {
            zvf_format::fragment::Rows::Range(range) => range.clone().next_back(),
            zvf_format::fragment::Rows::List(list) => list.iter().max(),
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
