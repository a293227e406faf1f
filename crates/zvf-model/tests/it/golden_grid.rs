//! Every recorded vertex is in the chunk, and every binned one in the bin, that the arithmetic
//! gives; every cross-level endpoint is in an existing chunk.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use zvf_format::{
    fragment::FragmentIndex,
    numeric::{NumericRows, Value},
    path::{Delta, Offsets},
};
use zvf_model::{
    array::{LinkFamily, Vertices},
    geometry_kind::GeometryKind,
    grid::{Bounds, ChunkCoord, Grid},
    level::LevelId,
    root::RootMetadata,
};
use zvf_testkit::golden::unhex;

use crate::store::{Store, key, report, stores};

#[derive(Default)]
struct Tally {
    vertices: u32,
    binned: u32,
    endpoints: u32,
}

#[test]
fn golden_vertices_are_in_their_chunks_and_bins() {
    let mut tally = Tally::default();
    for store in stores("zvf-09") {
        for level in store.levels() {
            check_level(&store, level, &mut tally);
            check_links(&store, level, &mut tally);
        }
    }
    report(format_args!(
        "zvf-09: {} vertices in the chunk computed, {} of them in the bin computed, \
         {} link cells with endpoints in chunks that exist",
        tally.vertices, tally.binned, tally.endpoints
    ));
    assert!(tally.vertices > 1000 && tally.binned > 50 && tally.endpoints > 100);
}

fn cells<'a>(store: &'a Store, level: LevelId, path: &str) -> Vec<(&'a str, Vec<u8>)> {
    let cells = &store.expected["levels"][level.to_string()]["cells"][path];
    let cells = cells.as_object().into_iter().flatten();
    let cell = |(key, hex): (&'a String, &'a Json)| (key.as_str(), unhex(hex.as_str().unwrap()));
    cells.map(cell).collect()
}

/// Returns whether fragments are bins: points without objects, with a separate bin shape.
fn is_binned(store: &Store, root: &RootMetadata, level: LevelId) -> bool {
    level == LevelId::FULL
        && root.geometry_kinds == [GeometryKind::Points]
        && root.base_bin_shape.is_some()
        && !store.exists("0/object_index")
}

fn check_level(store: &Store, id: LevelId, tally: &mut Tally) {
    let root = store.root();
    let level = store.level(id);
    let shape = level.effective_chunk_shape(&root);
    let attributes = store.attributes(&format!("{id}/vertices"));
    let dtype = Vertices::parse(&key("k"), &attributes).unwrap().value.dtype;
    let columns = u32::try_from(root.axes.len()).unwrap().try_into().unwrap();
    let bins = is_binned(store, &root, id).then(|| level.bins(&root).unwrap());
    let indexes = cells(store, id, "vertex_fragments");
    for (name, blob) in cells(store, id, "vertices") {
        let what = format!("{}/{id}/{name}", store.name);
        let chunk = ChunkCoord::parse(name, level.arity(&root)).unwrap();
        let spatial = chunk.spatial(root.axes.len()).unwrap();
        let rows = NumericRows::parse(&blob, dtype, columns).unwrap();
        let position = |row: usize| -> Vec<f64> {
            let value = |column| match rows.value(row, column) {
                Some(Value::Float(value)) => value,
                other => panic!("{what}: {other:?}"),
            };
            (0u32..).take(root.axes.len()).map(value).collect()
        };
        for row in 0..rows.rows() {
            let position = position(row);
            let found = shape.chunk_of(&position).unwrap();
            assert_eq!(found.coords(), spatial, "{what}");
            let point = Bounds::new(&position, &position).unwrap();
            let touched = shape.chunks_touching(&point);
            assert!(
                touched.contains(&chunk) && touched.count() == Some(1),
                "{what}"
            );
            if let Some(bounds) = &root.bounds
                && bounds.contains(&position)
            {
                Grid::of_bounds(bounds, shape)
                    .unwrap()
                    .cell_of(spatial)
                    .unwrap();
            }
            tally.vertices += 1;
        }
        let Some(bins) = &bins else {
            continue;
        };
        let (_, index) = indexes.iter().find(|(key, _)| *key == name).unwrap();
        let index = FragmentIndex::parse(index).unwrap();
        assert_eq!(u64::from(index.len()), bins.count(), "{what}");
        for (bin, rows) in (0..).zip(index.iter()) {
            for row in &rows {
                let position = position(usize::try_from(row).unwrap());
                let place = bins.place_of(&position).unwrap();
                assert_eq!((&place.chunk, place.bin), (&chunk, bin), "{what}");
                let point = Bounds::new(&position, &position).unwrap();
                assert!(bins.touching(spatial, &point).eq([bin]), "{what}");
                tally.binned += 1;
            }
        }
    }
}

/// Checks that source chunk and offsets, scaled between levels, name chunks with vertices.
fn check_links(store: &Store, id: LevelId, tally: &mut Tally) {
    let root = store.root();
    let level = store.level(id);
    let links = format!("{id}/links");
    for delta in store.children(&links) {
        let family = format!("{links}/{delta}");
        let delta = Delta::parse(&delta).unwrap();
        let policy = LinkFamily::parse(&key(&family), delta, &store.attributes(&family))
            .unwrap()
            .value
            .unwrap();
        let Some(target) = id.offset(delta.levels()) else {
            panic!("{family}: no level");
        };
        if !store.levels().contains(&target) {
            continue;
        }
        let scales = level.link_scales(&store.level(target), &root).unwrap();
        let there: BTreeSet<&str> = cells(store, target, "vertices")
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        for segment in store.children(&family) {
            let arity = policy.sid_ndim.unwrap();
            let offsets = Offsets::parse(&segment, policy.width, arity).unwrap();
            let path = format!("links/{delta}/{segment}");
            for (source, _) in cells(store, id, &path) {
                let source = ChunkCoord::parse(source, arity).unwrap();
                for offset in offsets.iter() {
                    let axes = scales.iter().zip(source.coords()).zip(offset);
                    let chunk: Option<Vec<i64>> = axes
                        .map(|((scale, &source), offset)| scale.resolve(source, offset))
                        .collect();
                    let chunk = ChunkCoord::new(chunk.unwrap()).to_string();
                    assert!(
                        there.contains(chunk.as_str()),
                        "{}/{path}: {chunk}",
                        store.name
                    );
                    tally.endpoints += 1;
                }
            }
        }
    }
}
