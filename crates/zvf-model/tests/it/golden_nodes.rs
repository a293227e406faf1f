//! Every `zarr.json` of every recorded store, and the attributes it holds.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use zvf_format::path::Delta;
use zvf_model::{
    array::{
        CellAttribute, CompositeLinks, FragmentArray, GeometryIndex, Groups, LinkArray, LinkFamily,
        ObjectIndex, ObjectIndexLayout, ParametricObjects, ParametricTypes, Presence, Table,
        Vertices,
    },
    generation::Generation,
    key::Key,
    layout::ObjectIndexForm,
    level::LevelId,
    metadata::{Attributes, MetadataNote},
    zarr::{Array, Node, PlainCodec},
};

use crate::store::{ARCHIVES, Store, key, report, stores};

#[derive(Default)]
struct Tally {
    groups: u32,
    arrays: u32,
    sharded: u32,
    plain: u32,
    /// Number of nodes by the type of their attributes.
    read: BTreeMap<&'static str, u32>,
    notes: Vec<String>,
}

#[test]
fn golden_every_node_parses() {
    let mut nodes = 0;
    for archive in ARCHIVES {
        let mut tally = Tally::default();
        for store in stores(archive) {
            check_store(&store, &mut tally);
        }
        nodes += tally.groups + tally.arrays;
        report(format_args!(
            "{archive}: {} groups and {} arrays parsed ({} sharded, {} in plain codecs), \
             attributes read as {:?}",
            tally.groups, tally.arrays, tally.sharded, tally.plain, tally.read
        ));
        assert_eq!(tally.notes, [""; 0], "{archive}");
    }
    assert_eq!(nodes, 1268 + 1048);
}

fn check_store(store: &Store, tally: &mut Tally) {
    for (path, bytes) in &store.files {
        let Some(node) = path.strip_suffix("zarr.json") else {
            continue;
        };
        let node = node.trim_end_matches('/');
        let parsed = Node::parse(&key(path), bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", store.name));
        let raw: Json = serde_json::from_slice(bytes).unwrap();
        assert_eq!(raw["attributes"], Json::Object(parsed.attributes().clone()));
        match &parsed {
            Node::Group(_) => tally.groups += 1,
            Node::Array(array) => {
                check_array(array, &raw);
                tally.arrays += 1;
                tally.sharded += u32::from(array.sharding().is_some());
                tally.plain += u32::from(array.codecs.plain().is_some());
            }
        }
        let file = key(path);
        if let Some((what, notes)) = read_attributes(store, &file, node, &parsed) {
            *tally.read.entry(what).or_default() += 1;
            let name = &store.name;
            tally
                .notes
                .extend(notes.iter().map(|note| format!("{name}/{node}: {note}")));
        }
    }
}

fn check_array(array: &Array, raw: &Json) {
    let list = |value: &Json| -> Vec<u64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect()
    };
    assert_eq!(array.shape, list(&raw["shape"]));
    assert_eq!(
        array.chunk_shape,
        list(&raw["chunk_grid"]["configuration"]["chunk_shape"])
    );
    assert_eq!(array.fill_value, raw["fill_value"]);
    let names = array.codecs.iter().map(|codec| codec.name.as_str());
    let raw_codecs = raw["codecs"].as_array().unwrap();
    assert!(
        names.eq(raw_codecs
            .iter()
            .map(|codec| codec["name"].as_str().unwrap()))
    );
    if let Some(sharding) = array.sharding() {
        let raw = &raw["codecs"][0]["configuration"];
        assert_eq!(sharding.chunk_shape, list(&raw["chunk_shape"]));
        assert_eq!(sharding.index_codecs.iter().count(), 2);
        assert!(array.codecs.plain_sharding().is_some());
        assert_eq!(array.decoded_shape(), sharding.chunk_shape);
        assert_eq!(sharding.codecs.iter().next().unwrap().name, "vlen-bytes");
        let alone = sharding.codecs.iter().count() == 1;
        assert_eq!(
            sharding.codecs.plain() == Some(PlainCodec::VlenBytes),
            alone
        );
    }
}

type Read = Option<(&'static str, Vec<MetadataNote>)>;

#[expect(clippy::too_many_lines, reason = "one arm for each kind of node")]
fn read_attributes(store: &Store, file: &Key, node: &str, parsed: &Node) -> Read {
    let attributes = parsed.attributes();
    let parts: Vec<&str> = node.split('/').collect();
    let (level, parts) = match parts.split_first() {
        Some((first, rest)) if LevelId::parse(first).is_some() => (LevelId::parse(first), rest),
        _ => (None, &parts[..]),
    };
    let Some(level) = level else {
        return read_root_part(file, parts, parsed);
    };
    let arity = store.level(level).arity(&store.root());
    let mut notes = Vec::new();
    if let Some(array) = parsed.as_array()
        && attributes.contains_key("nonempty_chunks")
    {
        notes.extend(Presence::parse(file, array, arity).unwrap().notes);
    }
    let what = match parts {
        // The array of a single chunk has no attributes.
        _ if attributes.is_empty() || attributes.contains_key("shard_index") => return None,
        [] => return None,
        ["vertices"] => {
            let read = Vertices::parse(file, attributes).unwrap();
            let dtype = read.value.dtype.to_string();
            assert_eq!(attributes["dtype"], dtype);
            notes.extend(read.notes);
            "vertices"
        }
        [one] if one.starts_with("vertices_") => {
            let read = Vertices::parse(file, attributes).unwrap();
            assert_eq!(read.value.vertex_count, attributes["vertex_count"].as_u64());
            notes.extend(read.notes);
            "vertices"
        }
        [one] if one.starts_with("links_") => {
            let read = CompositeLinks::parse(file, attributes).unwrap();
            assert_eq!(
                Some(read.value.link_count),
                attributes["link_count"].as_u64()
            );
            notes.extend(read.notes);
            "composite links"
        }
        ["vertex_fragments" | "link_fragments"] => {
            notes.extend(FragmentArray::parse(file, attributes).unwrap().notes);
            "fragments"
        }
        [
            "vertex_attributes"
            | "fragment_attributes"
            | "cross_chunk_link_attributes"
            | "link_attributes",
            ..,
        ] => {
            let read = CellAttribute::parse(file, attributes).unwrap();
            if let Some(dtype) = attributes.get("dtype") {
                assert_eq!(dtype, &read.value.dtype.to_string());
            }
            let dictionary = read.value.dictionary.is_some();
            assert_eq!(dictionary, attributes.contains_key("categories"));
            notes.extend(read.notes);
            "cell attributes"
        }
        ["links" | "cross_chunk_links", delta, ..] => {
            notes.extend(read_links(store, file, level, parts, attributes));
            assert!(Delta::parse(delta).is_ok());
            "links"
        }
        ["object_index"] => {
            let read = ObjectIndex::parse(file, attributes).unwrap();
            let form = match read.value.layout {
                ObjectIndexLayout::Open => ObjectIndexForm::Open,
                ObjectIndexLayout::Manifests => ObjectIndexForm::Manifests,
                ObjectIndexLayout::ManifestsWithIds => ObjectIndexForm::ManifestsWithIds,
                ObjectIndexLayout::Dense => panic!("{}: no recorded index is dense", store.name),
            };
            assert_eq!(store.detect().layout.object_index, form, "{}", store.name);
            assert_eq!(
                Some(read.value.num_objects),
                attributes["num_objects"].as_u64()
            );
            assert_eq!(read.value.sid_ndim, arity);
            notes.extend(read.notes);
            "object index"
        }
        ["object_attributes" | "group_attributes", _] => {
            let read = match parsed {
                Node::Group(_) => Table::parse_group(file, attributes).unwrap(),
                Node::Array(array) => {
                    let read = Table::parse_array(file, attributes);
                    assert_eq!(read.value.shape.as_ref(), Some(&array.shape));
                    read
                }
            };
            notes.extend(read.notes);
            "tables"
        }
        ["groups"] => {
            let read = Groups::parse(file, attributes).unwrap();
            assert_eq!(read.value.num_groups, attributes["num_groups"].as_u64());
            notes.extend(read.notes);
            "groups"
        }
        ["geometry_index"] => {
            let read = GeometryIndex::parse(file, attributes).unwrap();
            for geometry in read.value.geometries.values() {
                assert!(store.exists(&format!("{level}/{}", geometry.vertices)));
            }
            notes.extend(read.notes);
            "geometry index"
        }
        _ => panic!("{}/{node}: no module reads {attributes:?}", store.name),
    };
    Some((what, notes))
}

fn read_links(
    store: &Store,
    file: &Key,
    level: LevelId,
    parts: &[&str],
    attributes: &Attributes,
) -> Vec<MetadataNote> {
    let delta = Delta::parse(parts[1]).unwrap();
    let new = store.generation == Generation::V0_9;
    match parts {
        ["links", _] if new => LinkFamily::parse(file, delta, attributes).unwrap().notes,
        ["links", _] => {
            let read = LinkFamily::parse_intra(file, delta, attributes).unwrap();
            assert!(read.value.is_some());
            read.notes
        }
        ["cross_chunk_links", _] => {
            let read = LinkFamily::parse_cross_chunk(file, delta, attributes).unwrap();
            // Groups that were never filled have no arity.
            match read.value {
                None => Vec::new(),
                Some(family) => {
                    assert_eq!(family.num_links, attributes["num_links"].as_u64());
                    read.notes
                }
            }
        }
        ["links", d, segment] => {
            let path = format!("{level}/links/{d}");
            let family = LinkFamily::parse(&key(&path), delta, &store.attributes(&path)).unwrap();
            let read = LinkArray::parse(file, segment, attributes, &family.value.unwrap());
            read.unwrap().notes
        }
        _ => panic!("{parts:?}"),
    }
}

fn read_root_part(file: &Key, parts: &[&str], parsed: &Node) -> Read {
    let attributes = parsed.attributes();
    match parts {
        _ if attributes.is_empty() => None,
        // Read elsewhere, or opaque.
        [""] | ["headers", ..] | ["parametric", "names"] => None,
        ["parametric"] => {
            let read = ParametricTypes::parse(file, attributes).unwrap();
            assert_eq!(read.value.types[&0].name, "plane");
            Some(("parametric", read.notes))
        }
        ["parametric", "objects"] => {
            let read = ParametricObjects::parse(file, attributes).unwrap();
            assert_eq!(read.value.max_row_length, 7);
            Some(("parametric", read.notes))
        }
        ["parametric", "groups"] => {
            Some(("parametric", Groups::parse(file, attributes).unwrap().notes))
        }
        ["parametric", "object_attributes" | "group_attributes", _] => {
            let notes = match parsed {
                Node::Group(_) => Table::parse_group(file, attributes).unwrap().notes,
                Node::Array(_) => Table::parse_array(file, attributes).notes,
            };
            Some(("parametric", notes))
        }
        _ => panic!("{parts:?}: no module reads {attributes:?}"),
    }
}
