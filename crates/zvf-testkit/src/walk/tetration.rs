//! The parts of a `.tet` file.

use zvf_format::tetration::{
    ChunkIndex, ChunkRow, DatasetDirectory, DatasetRecord, Footer, FooterTail, Superblock,
    TetLayout,
};

use super::{mix, mix_bytes};

/// Walks a superblock: every field and span, and its encoding.
pub fn tet_superblock(bytes: &[u8]) -> Option<u64> {
    let superblock = Superblock::parse(bytes).ok()?;
    let mut digest = mix(u64::from(superblock.datasets()), superblock.rows());
    digest = mix(digest, u64::from(superblock.flags()));
    digest = mix(digest, u64::from(superblock.has_footer()));
    for span in [superblock.directory_span(), superblock.index_span()] {
        digest = mix(mix(digest, span.start), span.end);
    }
    Some(mix_bytes(digest, &superblock.encode()))
}

/// Walks a dataset directory: four bytes with the number of datasets, which the superblock has in a
/// file, then the region. Every record, by iteration, by id and by name.
pub fn tet_directory(bytes: &[u8]) -> Option<u64> {
    let (datasets, region) = bytes.split_first_chunk()?;
    let directory = DatasetDirectory::parse(region, u32::from_le_bytes(*datasets)).ok()?;
    let mut digest = mix(u64::from(directory.len()), directory.region_len());
    for dataset in &directory {
        digest = mix_dataset(digest, &dataset);
    }
    for id in [0, 1, u64::from(directory.len()), u64::MAX] {
        digest = mix(
            digest,
            directory
                .get(id)
                .map_or(0, |dataset| mix_dataset(0, &dataset)),
        );
    }
    let found = directory.find("a").map(|(id, _)| u64::from(id));
    Some(mix(digest, found.unwrap_or(u64::MAX)))
}

fn mix_dataset(digest: u64, dataset: &DatasetRecord<'_>) -> u64 {
    let mut digest = mix_bytes(digest, dataset.name().as_bytes());
    digest = mix_bytes(digest, dataset.dtype().name().as_bytes());
    digest = mix(digest, u64::from(dataset.dtype().tag()));
    digest = mix(digest, dataset.dtype().size());
    digest = mix(digest, u64::from(dataset.reserved()));
    digest = dataset.shape().iter().fold(digest, mix);
    digest = dataset.chunk_shape().iter().fold(digest, mix);
    digest = dataset.grid().fold(digest, mix);
    digest = mix(digest, dataset.chunk_count().unwrap_or(0));
    digest = mix(digest, dataset.byte_len().unwrap_or(0));
    for axis in 0..=dataset.rank() {
        digest = mix(digest, dataset.shape().get(axis).unwrap_or(0));
        digest = mix(digest, dataset.chunk_shape().get(axis).unwrap_or(0));
        digest = mix(digest, dataset.tile_extent(axis, 0).unwrap_or(0));
        digest = mix(digest, dataset.tile_extent(axis, u64::MAX).unwrap_or(0));
    }
    let origin = [0; 8];
    let origin = origin.get(..dataset.rank()).unwrap_or_default();
    mix(digest, dataset.tile_byte_len(origin).unwrap_or(0))
}

/// Walks a chunk index: budgets and every row, by iteration and by number.
pub fn tet_index(bytes: &[u8]) -> Option<u64> {
    let index = ChunkIndex::parse(bytes).ok()?;
    let mut digest = mix(index.len(), index.region_len());
    digest = mix(digest, u64::from(index.memory_budget_bps()));
    digest = mix(digest, u64::from(index.memory_budget_bytes()));
    for row in &index {
        digest = mix_row(digest, row);
    }
    for number in [0, 1, index.len().wrapping_sub(1), index.len()] {
        digest = mix(digest, index.get(number).map_or(0, |row| mix_row(0, row)));
    }
    let checked = index.check(&DatasetDirectory::EMPTY, u64::MAX);
    Some(mix(digest, u64::from(checked.is_ok())))
}

fn mix_row(digest: u64, row: ChunkRow<'_>) -> u64 {
    let mut digest = mix(digest, row.dataset());
    digest = row.coordinate().into_iter().fold(digest, mix);
    digest = mix(mix(digest, row.payload_offset()), row.payload_span().end);
    digest = mix(mix(digest, row.raw_len()), row.stored_len());
    mix(
        mix(digest, u64::from(row.codec().number())),
        u64::from(row.reserved()),
    )
}

/// Walks the footer at the end of the bytes, and its tail's encoding.
pub fn tet_footer(bytes: &[u8]) -> Option<u64> {
    let footer = Footer::parse(bytes).ok()?;
    let tail = FooterTail::parse(bytes).ok()?;
    let mut digest = mix_bytes(tail.json_len(), footer.json());
    digest = mix(digest, u64::from(footer.tail().version().number()));
    digest = mix(digest, tail.footer_len());
    Some(mix_bytes(digest, &tail.encode()))
}

/// Walks a whole file: all parts, and that they fit each other.
pub fn tet_layout(bytes: &[u8]) -> Option<u64> {
    let layout = TetLayout::parse(bytes).ok()?;
    let mut digest = mix_bytes(layout.payload_end(), &layout.superblock().encode());
    for dataset in &layout.directory() {
        digest = mix_dataset(digest, &dataset);
    }
    for row in &layout.index() {
        digest = mix_row(digest, row);
    }
    let json = layout.footer().map(|footer| footer.json());
    Some(mix_bytes(digest, json.unwrap_or_default()))
}
