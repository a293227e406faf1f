//! Laws of manifests, links and path segments.

use zvf_format::{
    links::{
        CrossChunkCell, CrossChunkTable, CrossChunkTableBuilder, LinkRows, LinkRowsBuilder,
        Permutation, RaggedLinks, RowForm, duplicates,
    },
    manifest::{ObjectManifest, ObjectManifestBuilder},
    path::{CellKey, ChunkCoords, ChunkKey, Delta, OffsetCoords, Offsets},
    ragged::{self, RaggedBlob},
};

use crate::walk::shape;

/// Checks that decoded manifests encode to the same manifest, and to the same bytes if no list is a
/// run, and that reading in one pass finds the same blocks or the same fault.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn object_manifest(bytes: &[u8]) {
    let Some((&sid_ndim, blob)) = bytes.split_first() else {
        return;
    };
    let parsed = ObjectManifest::parse(blob, usize::from(sid_ndim));
    let checked = ObjectManifest::checked(blob, usize::from(sid_ndim)).and_then(|mut blocks| {
        let all = blocks.by_ref().collect::<Result<Vec<_>, _>>();
        assert!(blocks.next().is_none());
        all
    });
    let blocks = parsed.map(|manifest| manifest.iter().collect::<Vec<_>>());
    assert_eq!(checked, blocks);
    let Ok(manifest) = parsed else {
        return;
    };
    let mut builder = ObjectManifestBuilder::new(manifest.sid_ndim());
    for block in &manifest {
        builder
            .push(&block)
            .expect("what was decoded can be encoded");
    }
    assert_eq!(manifest.iter().count(), manifest.len() as usize);
    let again = builder.finish();
    let same = ObjectManifest::parse(&again, manifest.sid_ndim()).expect("own encoding");
    let fragments = |manifest: &ObjectManifest<'_>| -> Vec<_> {
        manifest
            .iter()
            .map(|block| {
                (
                    block.chunk.iter().collect::<Vec<_>>(),
                    block.fragments.len(),
                )
            })
            .collect()
    };
    assert_eq!(fragments(&manifest), fragments(&same));
    assert_eq!(manifest.is_canonical(), again == blob);
    assert!(same.is_canonical());
}

/// Checks that every blob equals the encoding of its groups.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn ragged_blob(bytes: &[u8]) {
    if let Ok(blob) = RaggedBlob::parse(bytes) {
        let groups: Vec<&[u8]> = blob.iter().collect();
        assert_eq!(groups.len(), blob.len());
        assert_eq!(ragged::encode(&groups), bytes);
        assert_eq!(groups.concat(), blob.data());
    }
}

/// Checks that rows encode to the original bytes; the input order inverts the code.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn link_rows(bytes: &[u8]) {
    let Some((width, form, blob)) = shape(bytes) else {
        return;
    };
    if let Ok(rows) = LinkRows::parse(blob, width, form) {
        check_rows(rows);
        let mut builder = LinkRowsBuilder::new(width, form);
        push_rows(&mut builder, rows);
        assert_eq!(builder.finish_rows(), blob);
    }
}

/// Checks that the groups contain the rows and encode to the original bytes.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn ragged_links(bytes: &[u8]) {
    let Some((width, form, blob)) = shape(bytes) else {
        return;
    };
    if let Ok(links) = RaggedLinks::parse(blob, width, form) {
        check_rows(links.rows());
        let mut builder = LinkRowsBuilder::new(width, form);
        for group in links.groups() {
            push_rows(&mut builder, group);
            builder.end_group();
        }
        assert_eq!(links.groups().count(), links.group_count());
        assert_eq!(builder.finish_ragged(), blob);
        if form == RowForm::Plain {
            let maybe = LinkRows::parse_maybe_grouped(blob, width);
            assert_eq!(maybe, Ok(links.rows()));
        }
        assert!(
            links
                .groups()
                .flat_map(|group| group.iter())
                .eq(links.rows().iter())
        );
    }
}

/// Checks that a cell encodes to the original bytes.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn cross_chunk_cell(bytes: &[u8]) {
    let Some((width, _, blob)) = shape(bytes) else {
        return;
    };
    if let Ok(cell) = CrossChunkCell::parse(blob, width) {
        check_rows(cell.records());
        let mut builder = LinkRowsBuilder::new(width, cell.records().form());
        push_rows(&mut builder, cell.records());
        assert_eq!(builder.finish_cell(), blob);
    }
}

/// Checks that a table encodes to the original bytes.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn cross_chunk_table(bytes: &[u8]) {
    let Some((width, _, rest)) = shape(bytes) else {
        return;
    };
    let Some((&sid_ndim, blob)) = rest.split_first() else {
        return;
    };
    let sid_ndim = usize::from(sid_ndim);
    if let Ok(table) = CrossChunkTable::parse(blob, width, sid_ndim) {
        let mut builder = CrossChunkTableBuilder::new(width, sid_ndim);
        for (at, record) in table.iter().enumerate() {
            assert_eq!(table.get(at), Some(record));
            let endpoints: Vec<(Vec<i64>, u64)> = record
                .endpoints()
                .map(|endpoint| (endpoint.chunk.iter().collect(), endpoint.vertex))
                .collect();
            builder.push(&endpoints).expect("what was decoded");
        }
        assert_eq!(table.get(table.len()), None);
        assert_eq!(builder.finish(), blob);
    }
}

/// Checks that codes and slots represent the same permutation; the copies of a record start with
/// each chunk once.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn placement(bytes: &[u8]) {
    let Some((width, _, rest)) = shape(bytes) else {
        return;
    };
    let Some((code, rest)) = rest.split_first_chunk() else {
        return;
    };
    let code = i64::from_le_bytes(*code);
    let order = Permutation::from_code(width, code);
    assert_eq!(order.is_ok(), (0..width.permutations()).contains(&code));
    if let Ok(order) = order {
        assert_eq!(order.code(), code);
        assert_eq!(Permutation::from_slots(order.slots()), Ok(order));
        for input in 0..width.get() {
            let slot = order.slot_of(input).expect("a position");
            assert_eq!(usize::from(order.slots()[slot]), input);
        }
    }
    let endpoints: Vec<(u8, u64)> = rest
        .iter()
        .map(|&byte| (byte >> 4, u64::from(byte & 15)))
        .take(width.get())
        .collect();
    if let Ok(copies) = duplicates(&endpoints) {
        let order = Permutation::sorting(&endpoints).expect("the same width");
        let sorted = order.slots().iter().map(|&at| endpoints[usize::from(at)]);
        assert!(sorted.is_sorted());
        let mut leaders: Vec<u8> = copies
            .map(|copy| endpoints[usize::from(copy.slots()[0])].0)
            .collect();
        let mut chunks: Vec<u8> = endpoints.iter().map(|endpoint| endpoint.0).collect();
        chunks.sort_unstable();
        chunks.dedup();
        assert_eq!(leaders, chunks);
        leaders.dedup();
        assert_eq!(leaders.len(), chunks.len());
    }
}

/// Checks that a parsed segment equals the text of its numbers.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn path_segment(bytes: &[u8]) {
    let Some((width, _, rest)) = shape(bytes) else {
        return;
    };
    let Some((&sid_ndim, text)) = rest.split_first() else {
        return;
    };
    let Ok(text) = core::str::from_utf8(text) else {
        return;
    };
    let sid_ndim = usize::from(sid_ndim);
    if let Ok(delta) = Delta::parse(text) {
        assert_eq!(delta.to_string(), text);
    }
    if let Ok(key) = ChunkKey::parse(text, sid_ndim) {
        let coords: Vec<i64> = key.coords().collect();
        assert_eq!(ChunkCoords(&coords).to_string(), text);
        assert_eq!(coords.len(), sid_ndim);
    }
    if let Ok(key) = CellKey::parse(text, width, sid_ndim) {
        let chunks: Vec<Vec<i64>> = (0..width.get())
            .map(|slot| key.chunk(slot).expect("a slot"))
            .map(Iterator::collect)
            .collect();
        assert_eq!(ChunkCoords(&chunks.concat()).to_string(), text);
        assert_eq!(key.is_canonical(), chunks.is_sorted());
    }
    if let Ok(offsets) = Offsets::parse(text, width, sid_ndim) {
        let numbers: Vec<Vec<i64>> = offsets.iter().map(Iterator::collect).collect();
        assert_eq!(OffsetCoords(&numbers).to_string(), text);
        let zero = vec![0; sid_ndim];
        let forward = numbers.first().is_none_or(|first| *first >= zero);
        assert_eq!(offsets.is_canonical(), forward && numbers.is_sorted());
        assert_eq!(
            offsets.is_zero(),
            numbers.iter().all(|offset| *offset == zero)
        );
    }
}

fn push_rows(builder: &mut LinkRowsBuilder, rows: LinkRows<'_>) {
    for row in rows.iter() {
        let stored: Vec<u64> = row.stored().collect();
        builder
            .push(row.order(), &stored)
            .expect("what was decoded");
    }
}

fn check_rows(rows: LinkRows<'_>) {
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(rows.get(at), Some(row));
        let (stored, input): (Vec<_>, Vec<_>) = (row.stored().collect(), row.input().collect());
        assert_eq!(input.len(), rows.width().get());
        for (slot, &at) in row.order().slots().iter().enumerate() {
            assert_eq!(input[usize::from(at)], stored[slot]);
        }
    }
    assert_eq!(rows.get(rows.len()), None);
}
