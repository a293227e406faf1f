//! Every recorded cell is in the file computed by the layout.

use std::collections::BTreeSet;

use serde_json::json;
use zvf_format::path::{CellKey, Delta};
use zvf_model::{
    array::{LegacyShardIndex, LinkFamily, Presence, SHARD_PREFIX},
    detection::Evidence,
    generation::Generation,
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, CellGrid, Layout, LinkOffsets, RootArrayRole},
    level::LevelId,
    zarr::Array,
};

use crate::store::{ARCHIVES, Store, key, report, stores};

#[derive(Default)]
struct Tally {
    cells: u32,
    empty: u32,
    sharded: u32,
    items: u32,
    tables: u32,
}

#[test]
fn golden_cells_are_at_the_keys_of_the_layout() {
    for archive in ARCHIVES {
        let mut tally = Tally::default();
        for store in stores(archive) {
            for layout in layouts(&store) {
                let mut once = Tally::default();
                match store.generation {
                    Generation::V0_9 => check_new(&store, layout, &mut once),
                    _ => check_old(&store, layout, &mut once),
                }
                if layout == store.detect().layout {
                    tally.add(&once);
                }
            }
        }
        report(format_args!(
            "{archive}: {} cells in files of their own or elements, {} empty, {} in shards, \
             {} items of lists, {} files of tables found by the layout",
            tally.cells, tally.empty, tally.sharded, tally.items, tally.tables
        ));
        assert!(tally.cells > 100, "{archive}");
    }
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.cells += other.cells;
        self.empty += other.empty;
        self.sharded += other.sharded;
        self.items += other.items;
        self.tables += other.tables;
    }
}

/// Returns the layouts detected with the correct version, a wrong version and no version.
fn layouts(store: &Store) -> Vec<Layout> {
    let versions = ["0.6", "0.7", "0.8.0", "0.8.1", "0.9.2"]
        .map(|version| Some(json!(version)))
        .into_iter()
        .chain([None]);
    let lying = versions.map(|version| {
        let evidence = Evidence {
            version,
            ..store.evidence(LevelId::FULL)
        };
        evidence.detect().unwrap().layout
    });
    let mut layouts = vec![store.detect().layout];
    for layout in lying {
        if !layouts.contains(&layout) {
            layouts.push(layout);
        }
    }
    layouts
}

fn array(store: &Store, node: &Key) -> Array {
    let found = store
        .node(node.as_str())
        .unwrap_or_else(|| panic!("{}: no node {node}", store.name));
    found.as_array().unwrap().clone()
}

fn check_new(store: &Store, layout: Layout, tally: &mut Tally) {
    for level in store.levels() {
        let mut seen = BTreeSet::new();
        let expected = &store.expected["levels"][level.to_string()];
        for (path, cells) in expected["cells"].as_object().unwrap() {
            let cells: Vec<&str> = cells
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            let parts: Vec<&str> = path.split('/').collect();
            let part = part_of(&parts);
            if layout.chunk_form(&part).is_some() {
                check_chunks(store, layout, level, &part, path, &cells, &mut seen, tally);
            } else {
                check_items(store, layout, level, &part, &cells, tally);
            }
        }
        // The layout finds everything that is stored.
        let prefix = format!("{level}/");
        for file in store.files.keys().filter(|file| file.starts_with(&prefix)) {
            let Some((node, _)) = file.split_once("/c/") else {
                continue;
            };
            let path = node.strip_prefix(&prefix).unwrap();
            let part = part_of(&path.split('/').collect::<Vec<_>>());
            if layout.chunk_form(&part).is_some() {
                assert!(seen.contains(file), "{}: {file} is not found", store.name);
            } else {
                let values = layout.values_at(level, &part).unwrap().unwrap();
                assert_eq!(values.as_str(), node, "{}", store.name);
                tally.tables += 1;
            }
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "a table row, as it comes")]
fn check_chunks(
    store: &Store,
    layout: Layout,
    level: LevelId,
    part: &ArrayRole<'_>,
    path: &str,
    cells: &[&str],
    seen: &mut BTreeSet<String>,
    tally: &mut Tally,
) {
    let what = format!("{}/{level}/{path}", store.name);
    let arity = store.level(level).arity(&store.root());
    let node = layout.described_at(level, part).unwrap().unwrap();
    assert_eq!(node.as_str(), format!("{level}/{path}"));
    let array = array(store, &node);
    let presence = Presence::parse(&node, &array, arity).unwrap();
    assert_eq!(presence.notes, [], "{what}");
    let presence = presence.value;
    let listed: BTreeSet<String> = presence.chunks().map(|chunk| chunk.to_string()).collect();
    assert_eq!(
        listed,
        cells.iter().map(|&cell| cell.to_owned()).collect(),
        "{what}"
    );
    let grid = CellGrid {
        grid: presence.grid(),
        rank: array.rank(),
    };
    for present in presence.cells() {
        let address = layout
            .cell(level, part, &present.chunk, Some(grid))
            .unwrap();
        assert_eq!(address.element, present.cell, "{what}");
        assert_eq!(
            presence.grid().chunk_of(&present.cell).as_ref(),
            Some(&present.chunk)
        );
        let chunk = array.chunk_of(&address.element).unwrap();
        let file = array.chunk_key(&address.array, &chunk).unwrap();
        assert!(store.files.contains_key(file.as_str()), "{what}: no {file}");
        seen.insert(file.as_str().to_owned());
        match array.sharding() {
            None => tally.cells += 1,
            Some(sharding) => {
                let inner = sharding.inner_of(&address.element, &array.chunk_shape);
                assert_eq!(inner.unwrap().len(), arity);
                tally.cells += 1;
                tally.sharded += 1;
            }
        }
    }
}

fn check_items(
    store: &Store,
    layout: Layout,
    level: LevelId,
    part: &ArrayRole<'_>,
    items: &[&str],
    tally: &mut Tally,
) {
    let node = layout.values_at(level, part).unwrap().unwrap();
    let array = array(store, &node);
    for item in items {
        let chunk = array.chunk_of(&[item.parse().unwrap()]).unwrap();
        let file = array.chunk_key(&node, &chunk).unwrap();
        assert!(
            store.files.contains_key(file.as_str()),
            "{}: no {file}",
            store.name
        );
        tally.items += 1;
    }
}

/// Returns the part that a path below a level names in 0.9.
fn part_of<'a>(parts: &[&'a str]) -> ArrayRole<'a> {
    let delta = |text: &str| Delta::parse(text).unwrap();
    match parts {
        ["vertices"] => ArrayRole::Vertices,
        ["vertex_fragments"] => ArrayRole::VertexFragments,
        ["link_fragments"] => ArrayRole::LinkFragments,
        ["vertex_attributes", name] => ArrayRole::VertexAttribute(name),
        ["fragment_attributes", name] => ArrayRole::FragmentAttribute(name),
        ["links", d, offsets] => ArrayRole::Links(delta(d), LinkOffsets::Segment(offsets)),
        ["link_attributes", name, d, offsets] => {
            ArrayRole::LinkAttribute(name, delta(d), LinkOffsets::Segment(offsets))
        }
        ["object_index", "manifests"] => ArrayRole::Manifests,
        ["object_index", "object_ids"] => ArrayRole::ObjectIds,
        ["object_attributes", name] => ArrayRole::ObjectAttribute(name),
        ["groups"] => ArrayRole::Groups,
        ["group_attributes", name] => ArrayRole::GroupAttribute(name),
        [one] if one.starts_with("vertices_") => {
            ArrayRole::CompositeVertices(one.strip_prefix("vertices_").unwrap())
        }
        [one] if one.starts_with("links_") => {
            ArrayRole::CompositeLinks(one.strip_prefix("links_").unwrap())
        }
        _ => panic!("{parts:?}: no part"),
    }
}

const ZERO: LinkOffsets<'_> = LinkOffsets::Zero { width: 2, arity: 3 };

fn check_old(store: &Store, layout: Layout, tally: &mut Tally) {
    let listed = ["blobs", "vlen", "arrays"];
    // Older records have no such lists.
    let listed = listed
        .iter()
        .filter_map(|list| store.expected[list].as_object());
    for path in listed.flat_map(|list| list.keys()) {
        let parts: Vec<&str> = path.split('/').collect();
        let what = format!("{}/{path}", store.name);
        if parts[0] == "parametric" {
            let part = root_part(&parts);
            let node = layout.root_part(&part).unwrap().unwrap();
            assert_eq!(node.as_str(), path, "{what}");
            tally.tables += 1;
            continue;
        }
        let level = LevelId::parse(parts[0]).unwrap();
        if parts.last().unwrap().starts_with(SHARD_PREFIX) {
            check_shard(store, level, path, tally);
            continue;
        }
        let arity = store.level(level).arity(&store.root());
        let (part, cell) = old_part(&parts[1..]);
        let address = match (&part, cell) {
            (
                ArrayRole::CrossChunkLinks(_) | ArrayRole::CrossChunkLinkAttribute(..),
                Some(cell),
            ) => {
                let family = format!("{level}/cross_chunk_links/{}", parts[parts.len() - 2]);
                let attributes = store.attributes(&family);
                let family =
                    LinkFamily::parse_cross_chunk(&key(&family), Delta::INTRA, &attributes)
                        .unwrap()
                        .value
                        .unwrap();
                let cell = CellKey::parse(cell, family.width, family.sid_ndim.unwrap()).unwrap();
                let chunks: Vec<i64> = (0..family.width.get())
                    .flat_map(|slot| cell.chunk(slot).unwrap())
                    .collect();
                layout
                    .cross_chunk_cell(level, &part, &chunks)
                    .unwrap()
                    .unwrap()
            }
            (_, Some(chunk)) => {
                let chunk = ChunkCoord::parse(chunk, arity).unwrap();
                layout.cell(level, &part, &chunk, None).unwrap()
            }
            (_, None) if layout.chunk_form(&part).is_some() => {
                check_native(store, layout, level, &part, tally);
                continue;
            }
            (_, None) => {
                let node = layout.values_at(level, &part).unwrap().unwrap();
                assert_eq!(node.as_str(), path, "{what}");
                tally.tables += 1;
                continue;
            }
        };
        assert_eq!(address.array.as_str(), path, "{what}");
        let array = array(store, &address.array);
        if array.elements() == 0 {
            tally.empty += 1;
            continue;
        }
        let chunk = array.chunk_of(&address.element).unwrap();
        let file = array.chunk_key(&address.array, &chunk).unwrap();
        assert!(store.files.contains_key(file.as_str()), "{what}: no {file}");
        tally.cells += 1;
    }
}

/// Checks native shards of 0.8.1: elements of one array.
fn check_native(
    store: &Store,
    layout: Layout,
    level: LevelId,
    part: &ArrayRole<'_>,
    tally: &mut Tally,
) {
    let node = layout.described_at(level, part).unwrap().unwrap();
    let array = array(store, &node);
    let presence = Presence::parse(&node, &array, array.rank()).unwrap().value;
    let items = store.expected["vlen"][node.as_str()].as_array().unwrap();
    let grid = CellGrid {
        grid: presence.grid(),
        rank: array.rank(),
    };
    let mut elements = BTreeSet::new();
    for chunk in presence.chunks() {
        let address = layout.cell(level, part, &chunk, Some(grid)).unwrap();
        let file = array.chunk_of(&address.element).unwrap();
        let file = array.chunk_key(&address.array, &file).unwrap();
        assert!(store.files.contains_key(file.as_str()), "no {file}");
        let linear = address
            .element
            .iter()
            .zip(&array.shape)
            .fold(0, |at, (index, extent)| at * extent + index);
        elements.insert(usize::try_from(linear).unwrap());
        tally.cells += 1;
        tally.sharded += 1;
    }
    let filled = items.iter().enumerate().filter(|(_, item)| *item != "");
    assert!(filled.map(|(at, _)| at).eq(elements), "{node}");
}

/// Checks shards up to 0.8.0: the index covers the shard.
fn check_shard(store: &Store, level: LevelId, path: &str, tally: &mut Tally) {
    let arity = store.level(level).arity(&store.root());
    let node = key(path);
    let array = array(store, &node);
    let index = LegacyShardIndex::parse(&node, &array.attributes, arity, array.elements()).unwrap();
    let covered: u64 = index.spans().iter().map(|span| span.len).sum();
    assert_eq!(covered, array.elements(), "{path}");
    for span in index.spans() {
        assert_eq!(index.get(&span.chunk), Some(span));
        tally.sharded += 1;
    }
}

fn old_part<'a>(parts: &[&'a str]) -> (ArrayRole<'a>, Option<&'a str>) {
    let delta = |text: &str| Delta::parse(text).unwrap();
    match parts {
        ["vertices"] => (ArrayRole::Vertices, None),
        ["vertices", chunk] => (ArrayRole::Vertices, Some(chunk)),
        ["vertex_fragments"] => (ArrayRole::VertexFragments, None),
        ["vertex_fragments", chunk] => (ArrayRole::VertexFragments, Some(chunk)),
        ["link_fragments", chunk] => (ArrayRole::LinkFragments, Some(chunk)),
        ["vertex_attributes", name] => (ArrayRole::VertexAttribute(name), None),
        ["vertex_attributes", name, chunk] => (ArrayRole::VertexAttribute(name), Some(chunk)),
        ["fragment_attributes", name, chunk] => (ArrayRole::FragmentAttribute(name), Some(chunk)),
        ["links", d, chunk] => (ArrayRole::Links(delta(d), ZERO), Some(chunk)),
        ["link_attributes", name, d, chunk] => {
            (ArrayRole::LinkAttribute(name, delta(d), ZERO), Some(chunk))
        }
        ["cross_chunk_links", d, "data"] => (ArrayRole::CrossChunkLinks(delta(d)), None),
        ["cross_chunk_links", d, cell] => (ArrayRole::CrossChunkLinks(delta(d)), Some(cell)),
        ["cross_chunk_link_attributes", name, d, "data"] => {
            (ArrayRole::CrossChunkLinkAttribute(name, delta(d)), None)
        }
        ["cross_chunk_link_attributes", name, d, cell] => (
            ArrayRole::CrossChunkLinkAttribute(name, delta(d)),
            Some(cell),
        ),
        ["object_index", "data" | "manifests"] => (ArrayRole::Manifests, None),
        ["object_index", "offsets"] => (ArrayRole::ManifestOffsets, None),
        ["object_attributes", name, "present_mask"] => (ArrayRole::PresentMask(name), None),
        ["object_attributes", name] | ["object_attributes", name, "data"] => {
            (ArrayRole::ObjectAttribute(name), None)
        }
        ["groups"] | ["groups", "data"] => (ArrayRole::Groups, None),
        ["groups", "offsets"] => (ArrayRole::GroupOffsets, None),
        ["group_attributes", name] | ["group_attributes", name, "data"] => {
            (ArrayRole::GroupAttribute(name), None)
        }
        [one, chunk] if one.starts_with("vertices_") => {
            let kind = one.strip_prefix("vertices_").unwrap();
            (ArrayRole::CompositeVertices(kind), Some(chunk))
        }
        [one] | [one, "data"] if one.starts_with("links_") => (
            ArrayRole::CompositeLinks(one.strip_prefix("links_").unwrap()),
            None,
        ),
        _ => panic!("{parts:?}: no part"),
    }
}

fn root_part<'a>(parts: &[&'a str]) -> RootArrayRole<'a> {
    match &parts[1..] {
        ["objects", ..] => RootArrayRole::ParametricObjects,
        ["names", ..] => RootArrayRole::ParametricNames,
        ["object_attributes", name, ..] => RootArrayRole::ParametricAttribute(name),
        ["groups", "offsets"] => RootArrayRole::ParametricGroupOffsets,
        ["groups", ..] => RootArrayRole::ParametricGroups,
        ["group_attributes", name, ..] => RootArrayRole::ParametricGroupAttribute(name),
        _ => panic!("{parts:?}: no part"),
    }
}
