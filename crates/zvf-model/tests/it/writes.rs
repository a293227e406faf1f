//! Nodes are written as they were read: every node of every recorded store, and random nodes.

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*};
use serde_json::Value as Json;
use zvf_format::{
    links::LinkWidth,
    numeric::{ByteOrder, Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::{
        CellAttribute, CellAttributeRole, CompositeLinks, Dictionary, FragmentArray, GeometryIndex,
        GroupRange, Groups, LegacyShardIndex, LinkArray, LinkAttributeFamily, LinkFamily,
        LinkFamilyForm, LinkStore, ObjectIndex, ObjectIndexLayout, Padded, ParametricNames,
        ParametricObjects, ParametricType, ParametricTypes, Presence, SHARD_PREFIX, Table,
        TableRole, TableType, Vertices,
    },
    generation::Generation,
    grid::{Bounds, ChunkShape},
    key::Key,
    level::{LevelId, LevelMetadata},
    metadata::Attributes,
    root::{Axis, CrossLevelDepth, MultiscaleDataset, RootMetadata},
    version::Version,
    zarr::{Array, Codec, Codecs, DataType, Node},
};
use zvf_testkit::golden::Golden;

use crate::store::key;

const ARCHIVES: [&str; 7] = [
    "zvf-06",
    "zvf-07",
    "zvf-08",
    "zvf-09",
    "zvf-drafts",
    "zvf-examples",
    "zvf-small",
];

/// The nodes of a recorded store, by path.
struct Recorded {
    name: String,
    nodes: BTreeMap<String, Node>,
}

#[test]
fn golden_every_node_is_written_as_it_was_read() {
    let (mut nodes, mut typed) = (0, 0);
    for archive in ARCHIVES {
        for store in recorded(archive) {
            let generation = store.generation();
            for (path, node) in &store.nodes {
                nodes += 1;
                let Some(written) = store.rewritten(generation, path, node) else {
                    continue;
                };
                typed += 1;
                let read = Json::Object(node.attributes().clone());
                let written = Json::Object(written);
                let name = &store.name;
                assert!(is_same(&read, &written), "{name}/{path}: {read} {written}");
            }
        }
    }
    // The others have no attributes, or those of a header in another format.
    assert_eq!((nodes, typed), (2906, 1610));
}

/// Reads the stores of an archive, and checks that their nodes are written with equal members.
fn recorded(archive: &str) -> Vec<Recorded> {
    let golden = Golden::open(archive);
    let mut stores: BTreeMap<String, BTreeMap<String, Node>> = BTreeMap::new();
    let files: Vec<_> = golden
        .files()
        .filter_map(|(path, bytes)| Some((path.strip_suffix("zarr.json")?, bytes)))
        .map(|(path, bytes)| (path.trim_end_matches('/'), bytes))
        .collect();
    let is_root = |json: &Json| json.pointer("/attributes/zarr_vectors").is_some();
    let json = |bytes: &[u8]| -> Json { serde_json::from_slice(bytes).unwrap() };
    let roots: Vec<&str> = files
        .iter()
        .filter(|(_, bytes)| is_root(&json(bytes)))
        .map(|(path, _)| *path)
        .collect();
    for (path, bytes) in &files {
        let inside = |root: &&str| {
            let rest = path.strip_prefix(*root);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let root = *roots.iter().find(|root| inside(root)).unwrap();
        let rest = path[root.len()..].trim_start_matches('/');
        let file = key(rest).metadata().unwrap();
        let node = Node::parse(&file, bytes).unwrap();
        assert_eq!(node.to_json(), json(bytes), "{archive}/{path}");
        assert_eq!(Node::parse(&file, &node.to_bytes()), Ok(node.clone()));
        let store = stores.entry(root.to_owned()).or_default();
        store.insert(rest.to_owned(), node);
    }
    let stores = stores.into_iter();
    stores
        .map(|(name, nodes)| Recorded { name, nodes })
        .collect()
}

/// Compares JSON; numbers of other writers may be whole where ours have a fraction.
fn is_same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Object(one), Json::Object(other)) => {
            let same = |(name, value): (&String, &Json)| {
                other.get(name).is_some_and(|other| is_same(value, other))
            };
            one.len() == other.len() && one.iter().all(same)
        }
        (Json::Array(one), Json::Array(other)) => {
            let pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.into_iter().all(|(one, other)| is_same(one, other))
        }
        (Json::Number(one), Json::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    }
}

impl Recorded {
    fn root(&self) -> RootMetadata {
        let attributes = self.nodes[""].attributes();
        RootMetadata::parse(&key("zarr.json"), attributes).unwrap()
    }

    fn generation(&self) -> Generation {
        Generation::of_version(self.root().version.unwrap()).unwrap()
    }

    fn family(&self, path: &str, delta: Delta) -> LinkFamily {
        let family = LinkFamily::parse(&key(path), delta, self.nodes[path].attributes());
        family.unwrap().value.unwrap()
    }

    /// Reads the attributes of a node as a type, and writes the type.
    fn rewritten(&self, generation: Generation, path: &str, node: &Node) -> Option<Attributes> {
        let file = key(path).metadata().unwrap();
        let attributes = node.attributes();
        let parts: Vec<&str> = path.split('/').collect();
        if attributes.is_empty() {
            return None;
        }
        let root = self.root();
        let level = LevelId::parse(parts[0]);
        let written = match (level, &parts[..]) {
            (None, [""]) => root.to_attributes(),
            (None, ["headers", _]) => return None,
            (None, ["parametric"]) => ParametricTypes::parse(&file, attributes)
                .unwrap()
                .value
                .to_attributes(),
            (None, ["parametric", "objects"]) => ParametricObjects::parse(&file, attributes)
                .unwrap()
                .value
                .to_attributes(),
            (None, ["parametric", "names"]) => {
                let num_objects = attributes["num_objects"].as_u64().unwrap();
                ParametricNames { num_objects }.to_attributes()
            }
            (None, ["parametric", "groups"]) | (Some(_), [_, "groups"]) => {
                Groups::parse(&file, attributes)
                    .unwrap()
                    .value
                    .to_attributes()
            }
            (None, ["parametric", _, _])
            | (Some(_), [_, "object_attributes" | "group_attributes", _]) => match node {
                Node::Group(_) => Table::parse_group(&file, attributes)
                    .unwrap()
                    .value
                    .to_group_attributes(),
                Node::Array(_) => Table::parse_array(&file, attributes)
                    .value
                    .to_array_attributes(),
            },
            (Some(level), [_]) => {
                let read = LevelMetadata::parse(&file, level, attributes, &root);
                read.unwrap().to_attributes()
            }
            (Some(level), [_, parts @ ..]) => {
                let of_level = self.nodes[&level.to_string()].attributes();
                let read = LevelMetadata::parse(&file, level, of_level, &root).unwrap();
                let arity = read.arity(&root);
                let part = self.part(generation, &file, parts, node, arity);
                match node {
                    Node::Array(array) => with_chunks(&file, array, arity, part),
                    Node::Group(_) => part,
                }
            }
            _ => panic!("{path}: no type reads {attributes:?}"),
        };
        Some(written)
    }

    /// Reads and writes the attributes of a part of a level, without its list of chunks.
    fn part(
        &self,
        generation: Generation,
        file: &Key,
        parts: &[&str],
        node: &Node,
        arity: usize,
    ) -> Attributes {
        let attributes = node.attributes();
        match parts {
            [.., name] if name.starts_with(SHARD_PREFIX) => {
                let bytes = node.as_array().unwrap().elements();
                let index = LegacyShardIndex::parse(file, attributes, arity, bytes);
                index.unwrap().to_attributes()
            }
            ["vertex_fragments" | "link_fragments"] => {
                let read = FragmentArray::parse(file, attributes).unwrap();
                read.value.to_attributes()
            }
            ["geometry_index"] => {
                let read = GeometryIndex::parse(file, attributes).unwrap();
                read.value.to_attributes()
            }
            ["object_index"] => {
                let read = ObjectIndex::parse(file, attributes).unwrap();
                read.value.to_attributes()
            }
            [name] if name.starts_with("vertices") => {
                let read = Vertices::parse(file, attributes).unwrap();
                read.value.to_attributes(generation)
            }
            [name] if name.starts_with("links_") => {
                let read = CompositeLinks::parse(file, attributes).unwrap();
                read.value.to_attributes()
            }
            ["links", delta] if generation == Generation::V0_9 => {
                let delta = Delta::parse(delta).unwrap();
                let read = LinkFamily::parse(file, delta, attributes).unwrap();
                read.value.unwrap().to_attributes(LinkFamilyForm::Merged)
            }
            ["links", delta] => {
                let delta = Delta::parse(delta).unwrap();
                let read = LinkFamily::parse_intra(file, delta, attributes).unwrap();
                read.value.unwrap().to_attributes(LinkFamilyForm::InChunks)
            }
            ["cross_chunk_links", delta] => {
                let delta = Delta::parse(delta).unwrap();
                let read = LinkFamily::parse_cross_chunk(file, delta, attributes).unwrap();
                let form = LinkFamilyForm::BetweenChunks(generation);
                match read.value {
                    Some(family) => family.to_attributes(form),
                    // A family that was never filled.
                    None => attributes.clone(),
                }
            }
            ["links", delta, segment] => {
                let path = file.parent().and_then(|array| array.parent()).unwrap();
                let family = self.family(path.as_str(), Delta::parse(delta).unwrap());
                let read = LinkArray::parse(file, segment, attributes, &family).unwrap();
                assert_eq!(
                    LinkArray::new(&family, &family.offsets(segment)),
                    read.value
                );
                read.value.to_attributes(&family)
            }
            ["link_attributes", name, delta]
                if node.as_array().is_none() && !is_old(generation) =>
            {
                let read = CellAttribute::parse(file, attributes).unwrap().value;
                let family = LinkAttributeFamily {
                    name: (*name).to_owned(),
                    delta: Delta::parse(delta).unwrap(),
                    num_links: read.num_links.unwrap(),
                };
                family.to_attributes()
            }
            _ => {
                let read = CellAttribute::parse(file, attributes).unwrap();
                assert_eq!(read.notes, []);
                read.value.to_attributes()
            }
        }
    }
}

fn is_old(generation: Generation) -> bool {
    generation < Generation::V0_9
}

/// Adds the chunks of an array, or the origin of a padded one, as the array declares them.
fn with_chunks(file: &Key, array: &Array, arity: usize, mut part: Attributes) -> Attributes {
    if !Presence::is_listed(&array.attributes) {
        return match Padded::parse(file, array, arity) {
            Ok(padded) => padded.to_attributes(part),
            Err(_) => part,
        };
    }
    let presence = Presence::parse(file, array, arity).unwrap().value;
    let mut chunks = presence.to_attributes();
    chunks.append(&mut part);
    chunks
}

fn dtype() -> impl Strategy<Value = Dtype> {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().collect();
    let order = prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)];
    (prop::sample::select(kinds), order).prop_map(|(kind, order)| match kind.size() {
        // The order of single bytes is not written.
        1 => Dtype::new(kind, ByteOrder::Little),
        _ => Dtype::new(kind, order),
    })
}

fn name() -> impl Strategy<Value = String> {
    "[a-z_]{1,9}"
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.1), Just(1e300), -1e9..1e9]
}

prop_compose! {
    fn dictionary()(
        categories in vec(prop_oneof![name().prop_map(Json::from), any::<i64>().prop_map(Json::from)], 0..4),
        ordered: bool,
        fill: Option<i64>,
    ) -> Dictionary {
        Dictionary { categories, ordered, fill }
    }
}

prop_compose! {
    fn cell_attribute()(
        role in prop::sample::select(vec![
            CellAttributeRole::Vertex,
            CellAttributeRole::Fragment,
            CellAttributeRole::Link,
            CellAttributeRole::CrossChunkLink,
        ]),
        name in name(),
        dtype in dtype(),
        row_shape in option::of(vec(any::<u64>(), 0..3)),
        channel_names in option::of(vec(name(), 0..3)),
        dictionary in option::of(dictionary()),
        offsets in option::of(vec(vec(any::<i64>(), 0..4), 0..3)),
        level_delta: Option<i64>,
        shape in option::of(vec(any::<u64>(), 0..3)),
        num_links: Option<u64>,
    ) -> CellAttribute {
        CellAttribute {
            row_shape, channel_names, dictionary, offsets, level_delta, shape, num_links,
            ..CellAttribute::new(role, name, dtype)
        }
    }
}

prop_compose! {
    fn family()(
        delta in -3..4,
        width in 1u64..9,
        directed: bool,
        duplicate: bool,
        sid_ndim in 1usize..5,
        num_links: Option<u64>,
        num_physical_records: Option<u64>,
    ) -> LinkFamily {
        LinkFamily {
            delta: Delta::new(delta),
            width: LinkWidth::new(width).unwrap(),
            directed,
            store: if duplicate { LinkStore::Duplicate } else { LinkStore::Canonical },
            sid_ndim: Some(sid_ndim),
            num_links,
            num_physical_records,
        }
    }
}

prop_compose! {
    fn root()(rank in 1usize..4)(
        version in (0u32..2, any::<u32>(), any::<u32>()),
        capabilities in vec(name(), 0..3),
        kinds in vec(prop::sample::select(vec!["mesh", "graph", "streamline"]), 0..3),
        chunk in vec(1e-3..1e6, rank),
        bin in option::of(vec(1e-3..1e6, rank)),
        corners in (vec(finite(), rank), vec(finite(), rank)),
        axes in vec((name(), option::of(name()), option::of(name())), rank),
        storage in option::of(prop::sample::select(vec!["none", "implicit", "explicit"])),
        depth in option::of(-1..9),
        offset in option::of(vec(finite(), rank)),
        shards in option::of(vec(1u64..9, rank)),
        levels in prop::collection::btree_map(any::<u32>(), option::of(vec(1e-3..1e6, rank)), 0..4),
        unknown in option::of(any::<i64>()),
    ) -> RootMetadata {
        let axes = axes.into_iter().map(|(name, kind, unit)| Axis { name, kind, unit });
        let bounds = Bounds::new(&corners.0, &corners.1).unwrap();
        let version = Version::new(version.0, version.1, version.2);
        let chunk = ChunkShape::new(&chunk).unwrap();
        let mut root = RootMetadata::new(version, axes.collect(), chunk, Some(bounds));
        root.capabilities = capabilities;
        root.geometry_kinds = kinds.into_iter().map(Into::into).collect();
        root.base_bin_shape = bin.map(|bin| ChunkShape::new(&bin).unwrap());
        root.cross_level_storage = storage.map(Into::into);
        root.cross_level_depth = depth.map(|levels| match u32::try_from(levels) {
            Ok(levels) => CrossLevelDepth::Levels(levels),
            Err(_) => CrossLevelDepth::All,
        });
        root.coordinate_offset = offset;
        root.shard_shape = shards;
        root.datasets = levels.into_iter().map(|(level, scale)| MultiscaleDataset {
            level: LevelId::new(level),
            translation: scale.clone(),
            scale,
        }).collect();
        root.unknown.extend(unknown.map(|number| ("of_another_program".to_owned(), number.into())));
        root.other.insert("ome".to_owned(), unknown.into());
        root
    }
}

prop_compose! {
    fn array()(rank in 0usize..4)(
        shape in vec(0u64..1000, rank),
        inner in vec(1u64..9, rank),
        shard in option::of(vec(1u64..9, rank)),
        data_type in prop_oneof![
            dtype().prop_map(|dtype| DataType::Number(dtype.kind())),
            Just(DataType::VariableBytes),
            Just(DataType::VariableText),
            (1u64..99).prop_map(|letters| DataType::FixedText { bytes: letters * 4 }),
        ],
        size in 1usize..9,
        level in 0..20,
        number in any::<Option<i64>>(),
    ) -> Array {
        let compression = match level {
            0 => vec![],
            1 => vec![Codec::gzip(9), Codec::crc32c()],
            2 => vec![Codec::blosc("lz4", size)],
            level => vec![Codec::zstd(level)],
        };
        let serializer = match data_type {
            DataType::Number(_) => Codec::bytes(size),
            _ => Codec::vlen_bytes(),
        };
        let codecs = Codecs::new(serializer, compression);
        let (chunk, codecs) = match shard {
            None => (inner, codecs),
            Some(shard) => {
                let chunk = inner.iter().zip(shard).map(|(inner, count)| inner * count);
                (chunk.collect(), Codecs::sharded(inner.clone(), codecs))
            }
        };
        let attributes = Attributes::from_iter([("a".to_owned(), number.into())]);
        Array::new(shape, data_type, chunk, number.unwrap_or(0), codecs).with_attributes(attributes)
    }
}

proptest! {
    #[test]
    fn arrays_are_read_as_they_were_written(array in array()) {
        let file = key("0/a/zarr.json");
        let node = Node::Array(array);
        prop_assert_eq!(Node::parse(&file, &node.to_bytes()), Ok(node));
    }

    #[test]
    fn roots_are_read_as_they_were_written(root in root()) {
        let file = key("zarr.json");
        let read = RootMetadata::parse(&file, &root.to_attributes()).unwrap();
        // Bins that do not fill a chunk, and inverted bounds, are noted.
        let read = RootMetadata { notes: Vec::new(), ..read };
        prop_assert_eq!(read, root);
    }

    #[test]
    fn levels_are_read_as_they_were_written(
        root in root(),
        number in 0u32..9,
        count: u64,
        parent in option::of(0u32..9),
        flags: [bool; 4],
        present in vec(name(), 0..4),
    ) {
        let file = key("0/zarr.json");
        let level = LevelId::new(number);
        let mut written = LevelMetadata::new(level);
        written.vertex_count = Some(count);
        written.parent_level = parent.map(LevelId::new);
        written.arrays_present = present;
        [
            written.preserves_object_ids,
            written.shared_fragments,
            written.fragments_tile,
            written.is_unfinished,
        ] = flags;
        // The root declares the bins.
        let of_root = LevelMetadata::parse(&file, level, &Attributes::new(), &root).unwrap();
        written.bin_shape = of_root.bin_shape;
        written.bin_ratio = of_root.bin_ratio;
        let read = LevelMetadata::parse(&file, level, &written.to_attributes(), &root);
        prop_assert_eq!(read, Ok(written));
    }

    #[test]
    fn attributes_are_read_as_they_were_written(attribute in cell_attribute()) {
        let read = CellAttribute::parse(&key("a"), &attribute.to_attributes()).unwrap();
        prop_assert_eq!(read.value, attribute);
        prop_assert_eq!(read.notes, vec![]);
    }

    #[test]
    fn links_are_read_as_they_were_written(
        family in family(),
        numbers in vec(-9i64..10, 32),
    ) {
        let file = key("a");
        let (delta, arity) = (family.delta, family.sid_ndim.unwrap());
        let read = LinkFamily::parse(&file, delta, &family.to_attributes(LinkFamilyForm::Merged));
        prop_assert_eq!(read.unwrap().value, Some(family.clone()));
        let between = LinkFamilyForm::BetweenChunks(Generation::V0_8_1);
        let read = LinkFamily::parse_cross_chunk(&file, delta, &family.to_attributes(between));
        prop_assert_eq!(read.unwrap().value, Some(family.clone()));
        let offsets: Vec<Vec<i64>> = numbers
            .chunks(arity)
            .take(family.width.get() - 1)
            .map(<[i64]>::to_vec)
            .collect();
        let array = LinkArray::new(&family, &offsets);
        let segment = array.segment.clone();
        let read = LinkArray::parse(&file, &segment, &array.to_attributes(&family), &family);
        prop_assert_eq!(read.unwrap().value, array);
        prop_assert_eq!(family.offsets(&segment), offsets);
    }

    #[test]
    fn tables_are_read_as_they_were_written(
        object: bool,
        name in name(),
        number in dtype(),
        letters in option::of(1u64..99),
        rows: u64,
        columns in option::of(2u64..9),
        is_marked: bool,
    ) {
        let file = key("a");
        let shape = [rows].into_iter().chain(columns).collect();
        let table = Table {
            role: Some(if object { TableRole::Object } else { TableRole::Group }),
            name: Some(name),
            values: Some(letters.map_or(TableType::Number(number), TableType::Text)),
            shape: Some(shape),
            num_channels: None,
            has_present_mask: false,
            fill_is_absent: is_marked,
        };
        let read = Table::parse_array(&file, &table.to_array_attributes());
        prop_assert_eq!(&read.value, &table);
        let group = Table {
            values: Some(number.into()),
            num_channels: Some(rows),
            has_present_mask: is_marked && object,
            fill_is_absent: false,
            ..table
        };
        let read = Table::parse_group(&file, &group.to_group_attributes()).unwrap();
        prop_assert_eq!(read.value, group);
    }

    #[test]
    fn indexes_are_read_as_they_were_written(
        layout in prop::sample::select(vec![
            ObjectIndexLayout::Open,
            ObjectIndexLayout::Manifests,
            ObjectIndexLayout::ManifestsWithIds,
            ObjectIndexLayout::Dense,
        ]),
        num_objects in 0u64..1 << 26,
        num_present in option::of(Just(0)),
        sid_ndim in 1usize..5,
        is_sorted: bool,
        ranges in prop::collection::btree_map(any::<u64>(), (0i64..9, 9i64..99), 0..3),
        types in prop::collection::btree_map(any::<u64>(), (name(), vec(name(), 0..3)), 0..3),
    ) {
        let file = key("a");
        let has_ids = matches!(layout, ObjectIndexLayout::ManifestsWithIds | ObjectIndexLayout::Dense);
        let index = ObjectIndex {
            layout, num_objects, num_present, sid_ndim, ids_sorted: is_sorted || !has_ids,
        };
        let read = ObjectIndex::parse(&file, &index.to_attributes()).unwrap();
        prop_assert_eq!(read.value, index);
        let ranges = ranges.into_iter().map(|(group, (start, stop))| (group, GroupRange { start, stop }));
        let groups = Groups {
            is_tagged: is_sorted,
            num_groups: num_present,
            ranges: ranges.collect(),
        };
        prop_assert_eq!(Groups::parse(&file, &groups.to_attributes()).unwrap().value, groups);
        let types = types
            .into_iter()
            .map(|(id, (name, coefficients))| (id, ParametricType { name, coefficients }))
            .collect();
        let types = ParametricTypes { types };
        prop_assert_eq!(ParametricTypes::parse(&file, &types.to_attributes()).unwrap().value, types);
    }
}
