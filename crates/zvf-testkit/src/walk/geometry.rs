//! Walks of manifests, links and path segments.

use core::fmt::Write;

use zvf_format::{
    links::{
        AxisScales, CrossChunkCell, CrossChunkTable, LinkRows, LinkWidth, Permutation, RaggedLinks,
        RowForm, duplicates,
    },
    manifest::ObjectManifest,
    path::{CellKey, ChunkCoords, ChunkKey, Delta, OffsetCoords, Offsets},
    ragged::RaggedBlob,
};

use super::{mix, signed};

/// Walks an object manifest; the first byte is `sid_ndim`.
pub fn object_manifest(bytes: &[u8]) -> Option<u64> {
    let (&sid_ndim, blob) = bytes.split_first()?;
    let manifest = ObjectManifest::parse(blob, usize::from(sid_ndim)).ok()?;
    let mut digest = mix(u64::from(manifest.len()), u64::from(manifest.is_empty()));
    digest = mix(digest, u64::from(manifest.is_canonical()));
    for block in &manifest {
        digest = block.chunk.iter().map(signed).fold(digest, mix);
        let fragments = block.fragments.iter().take(64);
        digest = fragments.map(u64::from).fold(digest, mix);
    }
    Some(digest)
}

/// Walks a ragged blob.
pub fn ragged_blob(bytes: &[u8]) -> Option<u64> {
    let blob = RaggedBlob::parse(bytes).ok()?;
    let lengths = blob.iter().map(|group| group.len() as u64);
    Some(lengths.fold(blob.data().len() as u64, mix))
}

/// Walks link rows; the first byte is the width and, in its high bit, the form.
pub fn link_rows(bytes: &[u8]) -> Option<u64> {
    let (width, form, blob) = shape(bytes)?;
    Some(rows(LinkRows::parse(blob, width, form).ok()?))
}

/// Walks a ragged blob of link rows; the first byte as for [`link_rows`].
pub fn ragged_links(bytes: &[u8]) -> Option<u64> {
    let (width, form, blob) = shape(bytes)?;
    let links = RaggedLinks::parse(blob, width, form).ok()?;
    let groups = links.groups().map(rows);
    Some(groups.fold(rows(links.rows()), mix))
}

/// Walks a cross-chunk cell; the first byte as for [`link_rows`].
pub fn cross_chunk_cell(bytes: &[u8]) -> Option<u64> {
    let (width, _, blob) = shape(bytes)?;
    Some(rows(CrossChunkCell::parse(blob, width).ok()?.records()))
}

/// Walks a cross-chunk table; the first byte is the width, the second `sid_ndim`.
pub fn cross_chunk_table(bytes: &[u8]) -> Option<u64> {
    let (width, _, rest) = shape(bytes)?;
    let (&sid_ndim, blob) = rest.split_first()?;
    let table = CrossChunkTable::parse(blob, width, usize::from(sid_ndim)).ok()?;
    let mut digest = mix(table.len() as u64, table.get(1).is_some().into());
    for endpoint in table.iter().flat_map(|record| record.endpoints()) {
        digest = endpoint.chunk.iter().map(signed).fold(digest, mix);
        digest = mix(digest, endpoint.vertex);
    }
    Some(digest)
}

/// Walks permutations, placements and anchors; the bytes are codes and endpoints.
pub fn placement(bytes: &[u8]) -> Option<u64> {
    let (width, _, rest) = shape(bytes)?;
    let (code, rest) = rest.split_first_chunk()?;
    let order = Permutation::from_code(width, i64::from_le_bytes(*code)).ok()?;
    let mut digest = mix(signed(order.code()), u64::from(order.is_identity()));
    digest = mix(digest, order.slot_of(1).map_or(9, |slot| slot as u64));
    let mut endpoints = [(0u8, 0u64); 8];
    for (endpoint, &byte) in endpoints.iter_mut().zip(rest) {
        *endpoint = (byte >> 4, u64::from(byte & 15));
    }
    let endpoints = endpoints.get(..width.get())?;
    for copy in duplicates(endpoints).ok()? {
        digest = copy
            .slots()
            .iter()
            .map(|&at| u64::from(at))
            .fold(digest, mix);
        digest = mix(digest, Permutation::from_slots(copy.slots()).is_ok().into());
    }
    let source = i64::from_le_bytes(*code);
    let anchor = AxisScales::EQUAL.resolve(source, AxisScales::EQUAL.offset(source, 3)?);
    Some(mix(digest, anchor.map_or(0, signed)))
}

/// Walks path segments; the first byte is width and form, the second `sid_ndim`, the rest is tried
/// as each kind of segment.
pub fn path_segment(bytes: &[u8]) -> Option<u64> {
    let (width, _, rest) = shape(bytes)?;
    let (&sid_ndim, text) = rest.split_first()?;
    let (sid_ndim, text) = (usize::from(sid_ndim), core::str::from_utf8(text).ok()?);
    let mut digest = Digest(0);
    let mut seen = false;
    if let Ok(delta) = Delta::parse(text) {
        write!(digest, "{delta}").ok()?;
        seen = true;
    }
    if let Ok(key) = ChunkKey::parse(text, sid_ndim) {
        let mut coords = [0; 4];
        for (coord, value) in coords.iter_mut().zip(key.coords()) {
            *coord = value;
        }
        write!(digest, "{}", ChunkCoords(&coords)).ok()?;
        seen = true;
    }
    if let Ok(key) = CellKey::parse(text, width, sid_ndim) {
        let last = key.chunk(width.get().wrapping_sub(1)).into_iter().flatten();
        digest.0 = last.map(signed).fold(digest.0, mix);
        digest.0 = mix(digest.0, key.is_canonical().into());
        seen = true;
    }
    if let Ok(offsets) = Offsets::parse(text, width, sid_ndim) {
        let numbers = offsets.iter().flatten();
        digest.0 = numbers.map(signed).fold(digest.0, mix);
        digest.0 = mix(digest.0, offsets.is_canonical().into());
        digest.0 = mix(digest.0, offsets.is_zero().into());
        write!(digest, "{}", OffsetCoords(&[[1, 0, -2], [0, 0, 1]])).ok()?;
        seen = true;
    }
    seen.then_some(digest.0)
}

/// Splits off a byte of width and form.
pub(crate) fn shape(bytes: &[u8]) -> Option<(LinkWidth, RowForm, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let width = LinkWidth::new(u64::from(first & 0x7f)).ok()?;
    let form = match first >> 7 {
        0 => RowForm::Plain,
        _ => RowForm::Permuted,
    };
    Some((width, form, rest))
}

fn rows(rows: LinkRows<'_>) -> u64 {
    let mut digest = mix(rows.len() as u64, rows.get(1).is_some().into());
    for row in rows.iter() {
        digest = mix(digest, signed(row.code()));
        digest = row.stored().fold(digest, mix);
        digest = row.input().fold(digest, mix);
    }
    digest
}

/// A text sink that keeps a digest.
struct Digest(u64);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0 = text.bytes().map(u64::from).fold(self.0, mix);
        Ok(())
    }
}
