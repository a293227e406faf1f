//! Parses a blob and touches everything its view offers.
//!
//! Each walk folds what it sees into one number, so that the optimiser must
//! keep the accessors, and returns `None` for bytes the codec refuses. No walk
//! can panic: the no-panic probe links exactly these.

mod b2nd;
mod tetration;

pub use b2nd::{b2nd_frame, b2nd_parts, nd_metalayer};
pub use tetration::{tet_directory, tet_footer, tet_index, tet_layout, tet_superblock};

use zvf_format::fragment::FragmentIndex;

/// Mixes `value` into `digest`; order matters.
fn mix(digest: u64, value: u64) -> u64 {
    (digest ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Mixes bytes into `digest`, the first 256 of them and their number.
fn mix_bytes(digest: u64, bytes: &[u8]) -> u64 {
    let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let bytes = bytes.iter().take(256).map(|&byte| u64::from(byte));
    bytes.fold(mix(digest, len), mix)
}

/// A fragment index: all rows, by iteration, by number and by directory.
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
