//! The parts of a `.tet` file.

use zvf_format::tetration::{
    ChunkIndex, ChunkIndexBuilder, DatasetDirectory, DatasetDirectoryBuilder, DatasetLimit,
    DatasetRecord, Footer, FooterTail, Superblock, TetLayout,
};

/// Checks that encoding gives the same 32 bytes, and so does building from the counts.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn tet_superblock(bytes: &[u8]) {
    let Ok(superblock) = Superblock::parse(bytes) else {
        return;
    };
    assert_eq!(superblock.encode(), bytes[..32]);
    let (directory, index) = (superblock.directory_span(), superblock.index_span());
    assert_eq!(directory.start, 32);
    assert_eq!(directory.end, index.start);
    let blob_len = (directory.end - directory.start).saturating_sub(8);
    let same = Superblock::new(
        superblock.datasets(),
        blob_len,
        superblock.rows(),
        superblock.flags(),
    );
    assert_eq!(same, Ok(superblock));
}

/// Checks that iteration and lookup agree, the geometry adds up, and records round-trip except for
/// padding and reserved fields. The input has the form of
/// [`walk::tet_directory`](crate::walk::tet_directory).
///
/// # Panics
///
/// Panics if the law is violated.
pub fn tet_directory(bytes: &[u8]) {
    let Some((datasets, region)) = bytes.split_first_chunk() else {
        return;
    };
    let Ok(directory) = DatasetDirectory::parse(region, u32::from_le_bytes(*datasets)) else {
        return;
    };
    assert_eq!(directory.region_len(), region.len() as u64);
    let count = usize::try_from(directory.len()).expect("fits");
    assert_eq!(directory.iter().len(), count);
    assert_eq!(directory.iter().count(), count);
    assert_eq!(directory.get(u64::from(directory.len())), None);
    let mut builder = DatasetDirectoryBuilder::default();
    for (id, dataset) in (0..).zip(&directory) {
        assert_eq!(directory.get(u64::from(id)), Some(dataset), "dataset {id}");
        let (first, found) = directory.find(dataset.name()).expect("its name is there");
        assert!(first <= id && found.name() == dataset.name());
        geometry(&dataset);
        let shape: Vec<_> = dataset.shape().iter().collect();
        let chunk_shape: Vec<_> = dataset.chunk_shape().iter().collect();
        let pushed = builder.push(dataset.name(), dataset.dtype(), &shape, &chunk_shape);
        match pushed.map(drop) {
            Ok(()) => (),
            Err(DatasetLimit::EmptyName) => {
                assert!(dataset.name().is_empty());
                return;
            }
            Err(DatasetLimit::DuplicateName) => {
                assert!(first < id);
                return;
            }
            Err(other) => panic!("what was decoded cannot be encoded: {other}"),
        }
    }
    let again = builder.finish();
    assert_eq!(again.len(), region.len());
    assert_eq!(
        DatasetDirectory::parse(&again, builder.len()),
        Ok(directory)
    );
}

fn geometry(dataset: &DatasetRecord<'_>) {
    let mut chunks = Some(1_u64);
    for (axis, tiles) in dataset.grid().enumerate() {
        let extent = dataset.shape().get(axis).expect("an axis");
        let chunk = dataset.chunk_shape().get(axis).expect("an axis");
        chunks = chunks.and_then(|chunks| chunks.checked_mul(tiles));
        let last = dataset.tile_extent(axis, tiles - 1).expect("in the grid");
        assert_eq!(
            (tiles - 1).checked_mul(chunk).map(|whole| whole + last),
            Some(extent)
        );
        assert_eq!(dataset.tile_extent(axis, tiles), None);
        if tiles > 1 {
            assert_eq!(dataset.tile_extent(axis, 0), Some(chunk));
        }
    }
    assert_eq!(dataset.chunk_count(), chunks);
    let last: Vec<_> = dataset.grid().map(|tiles| tiles - 1).collect();
    if let Some(whole) = dataset.byte_len() {
        assert!(dataset.tile_byte_len(&last).is_some_and(|len| len <= whole));
        if dataset.chunk_count() == Some(1) {
            assert_eq!(dataset.tile_byte_len(&last), Some(whole));
        }
    }
    assert_eq!(dataset.tile_byte_len(&[]), None);
}

/// Checks that iteration and lookup agree; rows round-trip except for reserved fields.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn tet_index(bytes: &[u8]) {
    let Ok(index) = ChunkIndex::parse(bytes) else {
        return;
    };
    assert_eq!(index.region_len(), bytes.len() as u64);
    assert_eq!(index.iter().len() as u64, index.len());
    assert_eq!(index.get(index.len()), None);
    let mut builder = ChunkIndexBuilder::default();
    builder
        .memory_budget_bps(index.memory_budget_bps())
        .memory_budget_bytes(index.memory_budget_bytes());
    for (number, row) in (0..).zip(&index) {
        assert_eq!(index.get(number), Some(row), "row {number}");
        let span = row.payload_span();
        assert_eq!(span.end - span.start, row.stored_len());
        let pushed = builder.push_row(row);
        pushed.expect("what was decoded can be encoded");
    }
    let again = builder.finish();
    assert_eq!(again.len(), bytes.len());
    assert_eq!(ChunkIndex::parse(&again), Ok(index));
}

/// Checks that tail and footer agree and end the bytes.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn tet_footer(bytes: &[u8]) {
    let Ok(footer) = Footer::parse(bytes) else {
        return;
    };
    let tail = footer.tail();
    assert_eq!(FooterTail::parse(bytes), Ok(tail));
    assert_eq!(FooterTail::new(tail.version(), tail.json_len()), Ok(tail));
    let again = [footer.json(), &tail.encode()].concat();
    assert_eq!(again.len() as u64, tail.footer_len());
    assert!(bytes.ends_with(&again));
}

/// Checks that the parts of a file satisfy their laws, and each row is consistent with its dataset.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn tet_layout(bytes: &[u8]) {
    tet_superblock(bytes);
    let Ok(layout) = TetLayout::parse(bytes) else {
        return;
    };
    let superblock = layout.superblock();
    let part = |span: core::ops::Range<u64>| {
        let start = usize::try_from(span.start).expect("fits");
        &bytes[start..usize::try_from(span.end).expect("fits")]
    };
    let count = superblock.datasets().to_le_bytes();
    tet_directory(&[&count, part(superblock.directory_span())].concat());
    tet_index(part(superblock.index_span()));
    assert_eq!(layout.footer().is_some(), superblock.has_footer());
    if layout.footer().is_some() {
        tet_footer(bytes);
    }
    let datasets: Vec<_> = layout.directory().iter().collect();
    let payloads = superblock.index_span().end..layout.payload_end();
    for row in &layout.index() {
        let id = usize::try_from(row.dataset()).expect("fits");
        assert_eq!(row.check(&datasets[id], payloads.clone()), Ok(()));
    }
    let map = layout
        .index()
        .check(&layout.directory(), layout.payload_end());
    assert_eq!(map, Ok(()));
}
