//! Every recorded blob of generations 0.6, 0.7 and 0.8.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use zvf_format::{
    fragment::FragmentIndex,
    groups::{self, GroupMembers},
    links::{
        CrossChunkCell, CrossChunkTable, CrossChunkTableBuilder, LinkRows, RaggedLinks, RowForm,
    },
    manifest::ObjectManifest,
    numeric::{NumericRows, columns_of},
    open_rows::{self, OpenRows},
    path::{CellKey, ChunkCoords, ChunkKey, Delta},
};
use zvf_testkit::golden::{Golden, unhex};

use crate::golden::{
    Tally, check_numbers, columns, dtype, encode_fragments, flat, fragments_json, link_builder,
    links_json, width,
};

#[test]
fn golden_zvf_06() {
    check_archive("zvf-06", 18);
}

#[test]
fn golden_zvf_07() {
    check_archive("zvf-07", 22);
}

#[test]
fn golden_zvf_08() {
    check_archive("zvf-08", 28);
}

fn check_archive(name: &str, stores: usize) {
    let golden = Golden::open(name);
    let mut tally = Tally::default();
    for (path, _) in golden.files() {
        if let Some(store) = path.strip_suffix(".expected.json") {
            Store::open(&golden, store).check(&mut tally);
            tally.stores += 1;
        }
    }
    tally.print(name);
    assert_eq!(tally.stores, stores);
}

/// A store: its recorded blobs, their expected content, and its metadata.
struct Store<'a> {
    golden: &'a Golden,
    name: &'a str,
    expected: Json,
    blobs: BTreeMap<String, Vec<u8>>,
}

impl<'a> Store<'a> {
    fn open(golden: &'a Golden, name: &'a str) -> Self {
        let expected = golden.json(&format!("{name}.expected.json"));
        let mut store = Self {
            golden,
            name,
            blobs: BTreeMap::new(),
            expected,
        };
        let recorded = store.expected["blobs"].as_object().unwrap().clone();
        for (path, hex) in recorded {
            let blob = unhex(hex.as_str().unwrap());
            let (family, node) = path.rsplit_once('/').unwrap();
            if !node.starts_with("__shard_") {
                store.blobs.insert(path, blob);
                continue;
            }
            // A legacy shard is its concatenated cells; attributes locate them.
            let cells = store.attributes(&path)["shard_index"].clone();
            for (key, span) in cells.as_object().unwrap() {
                let [start, len] =
                    [0, 1].map(|at| usize::try_from(span[at].as_u64().unwrap()).unwrap());
                let cell = blob[start..start + len].to_vec();
                store.blobs.insert(format!("{family}/{key}"), cell);
            }
        }
        store
    }

    /// Returns the attributes of a node; null if it has none.
    fn attributes(&self, path: &str) -> Json {
        let path = format!("{}.zv/{path}/zarr.json", self.name);
        let found = self.golden.files().any(|(file, _)| file == path);
        if !found {
            return Json::Null;
        }
        self.golden.json(&path)["attributes"].clone()
    }

    fn level(&self, level: &str) -> &Json {
        &self.expected["levels"][level]
    }

    fn blob(&self, path: &str) -> Option<&[u8]> {
        self.blobs.get(path).map(Vec::as_slice)
    }

    fn axes(&self) -> u64 {
        let axes = &self.expected["root_attrs"]["multiscales"][0]["axes"];
        axes.as_array().unwrap().len() as u64
    }

    fn check(&self, tally: &mut Tally) {
        for (path, blob) in &self.blobs {
            let what = format!("{}/{path}", self.name);
            tally.blobs += 1;
            let parts: Vec<&str> = path.split('/').collect();
            match parts[..] {
                ["parametric", ..] => self.check_parametric(tally, &parts, blob, &what),
                [level, "vertices", key] => self.check_vertices(tally, level, key, blob, &what),
                [level, family @ ("vertex_fragments" | "link_fragments"), key] => {
                    self.check_fragments(tally, level, family, key, blob, &what);
                }
                [level, "vertex_attributes", name, key] => {
                    self.check_vertex_attribute(tally, level, name, key, blob, &what);
                }
                [level, "fragment_attributes", name, key] => {
                    let family = format!("{level}/fragment_attributes/{name}");
                    let index = self.index(level, key);
                    let dtype = dtype(&self.attributes(&family));
                    assert!(columns_of(blob.len(), dtype, index.len().into()).is_some());
                    tally.unlisted += 1;
                }
                [level, "links", delta, key] => {
                    self.check_links(tally, level, delta, key, blob, &what);
                }
                [level, "link_attributes", name, delta, key] => {
                    let family = format!("{level}/link_attributes/{name}/{delta}");
                    let dtype = dtype(&self.attributes(&family));
                    let links = self.blob(&format!("{level}/links/{delta}/{key}")).unwrap();
                    let width = width(&self.attributes(&format!("{level}/links/{delta}")));
                    assert_eq!(delta, "0", "only intra-level attributes are recorded");
                    let rows = LinkRows::parse(links, width, RowForm::Plain).unwrap().len();
                    assert!(
                        columns_of(blob.len(), dtype, rows as u64).is_some(),
                        "{what}"
                    );
                    tally.unlisted += 1;
                }
                [level, "cross_chunk_links", delta, cell] => {
                    self.check_cross_chunk(tally, level, delta, cell, blob, &what);
                }
                [level, "cross_chunk_link_attributes", name, delta, _] => {
                    self.check_cross_attribute(tally, level, name, delta, path, &what);
                }
                [level, "object_index", "data"] => self.check_open_index(tally, level, &what),
                [level, "groups", "data"] => self.check_open_groups(tally, level, &what),
                // Read together with their data.
                [_, "object_index" | "groups", "offsets"] => {}
                [
                    level,
                    family @ ("object_attributes" | "group_attributes"),
                    name,
                    "data",
                ] => {
                    let want = &self.level(level)[family][name];
                    check_table(tally, want, blob, &what);
                }
                [level, "object_attributes", name, "present_mask"] => {
                    let want = &self.level(level)["object_attributes"][name]["present_mask"];
                    let mask: Vec<u64> = blob.iter().copied().map(u64::from).collect();
                    if want.is_null() {
                        tally.unlisted += 1;
                    } else {
                        tally.same(&Json::from(mask), want, &what);
                    }
                }
                [level, family, ref rest @ ..] if rest.len() == 1 => {
                    self.check_composite(tally, level, family, blob, &what);
                }
                _ => panic!("{what}: nothing reads this blob"),
            }
        }
        for (path, items) in self.expected["vlen"].as_object().unwrap() {
            self.check_items(tally, path, items);
        }
    }

    fn index(&self, level: &str, key: &str) -> FragmentIndex<'_> {
        let blob = self.blob(&format!("{level}/vertex_fragments/{key}"));
        FragmentIndex::parse(blob.unwrap()).unwrap()
    }

    fn check_vertices(&self, tally: &mut Tally, level: &str, key: &str, blob: &[u8], what: &str) {
        let attributes = &self.level(level)["vertices_meta"];
        let rows = NumericRows::parse(blob, dtype(attributes), columns(self.axes())).unwrap();
        tally.numbers(&rows, what);
        let index = self.index(level, key);
        assert!(index.extent() <= rows.rows() as u64, "{what}");
        let recorded = &self.level(level)["chunks"][key]["vertices"];
        let Some(want) = recorded.as_array() else {
            // The reference reader rejects explicit fragments, which are valid.
            assert_eq!(recorded["error"], "ArrayError");
            tally.unlisted += 1;
            return;
        };
        assert_eq!(want.len(), index.iter().len(), "{what}");
        for (fragment, want) in index.iter().zip(want) {
            check_numbers(&rows, fragment.iter(), want, what);
            tally.compared += 1;
        }
        assert_eq!(key, ChunkCoords(&crate::golden::coords(key)).to_string());
    }

    fn check_fragments(
        &self,
        tally: &mut Tally,
        level: &str,
        family: &str,
        key: &str,
        blob: &[u8],
        what: &str,
    ) {
        let index = FragmentIndex::parse(blob).unwrap();
        let recorded = match family {
            "vertex_fragments" => &self.level(level)["chunks"][key]["fragments"],
            _ => &self.level(level)["link_fragments"]["chunks"][key],
        };
        tally.same(&Json::from(fragments_json(&index)), recorded, what);
        tally.reencoded(&encode_fragments(&index), blob, what);
    }

    fn check_vertex_attribute(
        &self,
        tally: &mut Tally,
        level: &str,
        name: &str,
        key: &str,
        blob: &[u8],
        what: &str,
    ) {
        let attributes = self.attributes(&format!("{level}/vertex_attributes/{name}"));
        let dtype = dtype(&attributes);
        let index = self.index(level, key);
        let columns = columns_of(blob.len(), dtype, index.extent()).unwrap();
        let rows = NumericRows::parse(blob, dtype, columns).unwrap();
        tally.numbers(&rows, what);
        if attributes["encoding"] == "dictionary" {
            tally.codes(blob, &attributes, what);
        }
        let want = &self.level(level)["vertex_attributes"][name]["chunks"][key];
        let Some(want) = want.as_array() else {
            tally.unlisted += 1;
            return;
        };
        assert_eq!(want.len(), index.iter().len(), "{what}");
        for (fragment, want) in index.iter().zip(want) {
            check_numbers(&rows, fragment.iter(), want, what);
            tally.compared += 1;
        }
    }

    fn check_links(
        &self,
        tally: &mut Tally,
        level: &str,
        delta: &str,
        key: &str,
        blob: &[u8],
        what: &str,
    ) {
        let family = format!("{level}/links/{delta}");
        let width = width(&self.attributes(&family));
        let want = &self.level(level)["links"][delta]["chunks"][key];
        assert_eq!(Delta::parse(delta).unwrap().to_string(), delta);
        if delta != "0" {
            let links = RaggedLinks::parse(blob, width, RowForm::Plain).unwrap();
            tally.same(&links.groups().map(links_json).collect(), want, what);
            let builder = link_builder(links.groups(), links.rows());
            tally.reencoded(&builder.finish_ragged(), blob, what);
            return;
        }
        let rows = LinkRows::parse(blob, width, RowForm::Plain).unwrap();
        let sidecar = self.blob(&format!("{level}/link_fragments/{key}")).unwrap();
        let groups = FragmentIndex::parse(sidecar).unwrap();
        let group = |fragment: zvf_format::fragment::Rows<'_>| -> Json {
            let row = |at: u64| rows.get(usize::try_from(at).unwrap()).unwrap();
            fragment
                .iter()
                .map(|at| row(at).input().collect::<Json>())
                .collect()
        };
        tally.same(&groups.iter().map(group).collect(), want, what);
        let builder = link_builder(core::iter::once(rows), rows);
        tally.reencoded(&builder.finish_rows(), blob, what);
    }

    /// Compares the records in reading order: cells are ordered by key as text.
    fn check_cross_chunk(
        &self,
        tally: &mut Tally,
        level: &str,
        delta: &str,
        cell: &str,
        blob: &[u8],
        what: &str,
    ) {
        let family = format!("{level}/cross_chunk_links/{delta}");
        let attributes = self.attributes(&family);
        let width = width(&attributes);
        let sid_ndim = usize::try_from(attributes["sid_ndim"].as_u64().unwrap()).unwrap();
        let want = &self.level(level)["cross_chunk_links"][delta]["records"];
        if cell == "data" {
            let table = CrossChunkTable::parse(blob, width, sid_ndim).unwrap();
            let records: Json = table
                .iter()
                .map(|record| -> Json {
                    let ends = record.endpoints();
                    ends.map(|end| {
                        serde_json::json!([end.chunk.iter().collect::<Json>(), end.vertex])
                    })
                    .collect()
                })
                .collect();
            tally.same(
                &Some(table.len() as u64),
                &attributes["num_links"].as_u64(),
                what,
            );
            tally.same(&records, want, what);
            let mut builder = CrossChunkTableBuilder::new(width, sid_ndim);
            for record in table.iter() {
                let ends: Vec<_> = record
                    .endpoints()
                    .map(|end| (end.chunk.iter().collect::<Vec<_>>(), end.vertex))
                    .collect();
                builder.push(&ends).unwrap();
            }
            tally.reencoded(&builder.finish(), blob, what);
            return;
        }
        let parsed = CrossChunkCell::parse(blob, width).unwrap();
        let builder = link_builder(core::iter::once(parsed.records()), parsed.records());
        tally.reencoded(&builder.finish_cell(), blob, what);
        let prefix = format!("{family}/");
        let cells: Vec<_> = self
            .blobs
            .range(prefix.clone()..)
            .take_while(|(path, _)| path.starts_with(&prefix))
            .collect();
        // Once per family, at its first cell.
        if cells[0].0 != &format!("{prefix}{cell}") {
            return;
        }
        let mut records = Vec::new();
        for (path, blob) in cells {
            let key = CellKey::parse(&path[prefix.len()..], width, sid_ndim).unwrap();
            let canonical = attributes["directed"] != true && attributes["store"] != "duplicate";
            assert!(!canonical || key.is_canonical(), "{path}");
            for row in CrossChunkCell::parse(blob, width).unwrap().records().iter() {
                let order = row.order();
                let endpoint = |input: usize| -> Json {
                    let slot = order.slot_of(input).unwrap();
                    let chunk: Json = key.chunk(slot).unwrap().collect();
                    Json::from_iter([chunk, row.stored_at(slot).unwrap().into()])
                };
                records.push((0..width.get()).map(endpoint).collect::<Json>());
            }
        }
        tally.same(&Json::from(records), want, what);
    }

    fn check_cross_attribute(
        &self,
        tally: &mut Tally,
        level: &str,
        name: &str,
        delta: &str,
        path: &str,
        what: &str,
    ) {
        let family = format!("{level}/cross_chunk_link_attributes/{name}/{delta}/");
        let attributes = self.attributes(family.trim_end_matches('/'));
        let want = &self.level(level)["cross_chunk_link_attributes"][name][delta]["values"];
        let cells = self
            .blobs
            .range(family.clone()..)
            .take_while(|(path, _)| path.starts_with(&family));
        let all: Vec<u8> = cells.clone().flat_map(|(_, blob)| blob.clone()).collect();
        if cells.clone().next().is_some_and(|(first, _)| first == path) {
            assert_eq!(dtype(want), dtype(&attributes));
            check_values(tally, want, &all, what);
        }
    }

    fn check_open_index(&self, tally: &mut Tally, level: &str, what: &str) {
        let blob = |part: &str| self.blob(&format!("{level}/object_index/{part}")).unwrap();
        let (data, offsets) = (blob("data"), blob("offsets"));
        let rows = OpenRows::parse(data, offsets).unwrap();
        let attributes = self.attributes(&format!("{level}/object_index"));
        assert_eq!(
            attributes["num_objects"].as_u64(),
            Some(rows.len() as u64),
            "{what}"
        );
        for (at, row) in rows.iter().enumerate() {
            self.check_manifest(tally, level, at, row, &format!("{what} {at}"));
        }
        let again = open_rows::encode(&rows.iter().collect::<Vec<_>>());
        tally.reencoded(&again.data, data, what);
        tally.reencoded(&again.offsets, offsets, what);
    }

    fn check_manifest(&self, tally: &mut Tally, level: &str, at: usize, blob: &[u8], what: &str) {
        let attributes = self.attributes(&format!("{level}/object_index"));
        let sid_ndim = usize::try_from(attributes["sid_ndim"].as_u64().unwrap()).unwrap();
        let manifest = ObjectManifest::parse(blob, sid_ndim).unwrap();
        let pieces = manifest.iter().flat_map(|block| {
            let chunk: Json = block.chunk.iter().collect();
            let fragments: Vec<u32> = block.fragments.iter().collect();
            let fragments = fragments.into_iter();
            fragments.map(move |fragment| Json::from_iter([chunk.clone(), fragment.into()]))
        });
        tally.same(&pieces.collect(), &self.level(level)["manifests"][at], what);
        tally.manifest(&manifest, blob, what);
    }

    fn check_open_groups(&self, tally: &mut Tally, level: &str, what: &str) {
        let blob = |part: &str| self.blob(&format!("{level}/groups/{part}")).unwrap();
        let (data, offsets) = (blob("data"), blob("offsets"));
        let rows = OpenRows::parse(data, offsets).unwrap();
        let members = |row| -> Json { GroupMembers::parse_list(row).unwrap().iter().collect() };
        let want = &self.level(level)["groups"]["members"];
        tally.same(&rows.iter().map(members).collect::<Json>(), want, what);
        let again = open_rows::encode(&rows.iter().collect::<Vec<_>>());
        tally.reencoded(&again.data, data, what);
        tally.reencoded(&again.offsets, offsets, what);
    }

    /// Compares `vertices_<kind>` and `links_<kind>` of composite stores.
    fn check_composite(
        &self,
        tally: &mut Tally,
        level: &str,
        family: &str,
        blob: &[u8],
        what: &str,
    ) {
        let (array, kind) = family.split_once('_').unwrap();
        let read = &self.expected["reads"]["composite"][kind];
        if array == "links" {
            let width = width(&self.attributes(&format!("{level}/{family}")));
            let rows = LinkRows::parse(blob, width, RowForm::Plain).unwrap();
            tally.same(&links_json(rows), &read["links"], what);
            return;
        }
        assert_eq!(array, "vertices", "{what}: nothing reads this blob");
        let prefix = format!("{level}/{family}/");
        // All cells in reading order, at each cell.
        let cells = self
            .blobs
            .range(prefix.clone()..)
            .take_while(|(path, _)| path.starts_with(&prefix));
        let all: Vec<u8> = cells.flat_map(|(_, blob)| blob.clone()).collect();
        let dtype = dtype(&self.attributes(&format!("{level}/{family}")));
        let rows = NumericRows::parse(&all, dtype, columns(self.axes())).unwrap();
        tally.numbers(&rows, what);
        check_numbers(&rows, 0..rows.rows() as u64, &read["positions"], what);
        tally.compared += 1;
    }

    fn check_parametric(&self, tally: &mut Tally, parts: &[&str], blob: &[u8], what: &str) {
        let objects = &self.expected["reads"]["parametric"];
        let objects = objects.as_array().unwrap();
        match parts[1..] {
            ["objects", "data"] => {
                let attributes = self.attributes("parametric/objects");
                let wide = attributes["max_row_length"].as_u64().unwrap();
                let rows = NumericRows::parse(blob, dtype(&attributes), columns(wide)).unwrap();
                tally.numbers(&rows, what);
                assert_eq!(rows.rows(), objects.len());
                for (row, object) in objects.iter().enumerate() {
                    let mut want = vec![Json::from(object["type_id"].as_f64().unwrap())];
                    want.extend(flat(&object["coefficients"]));
                    want.resize(usize::try_from(wide).unwrap(), "NaN".into());
                    check_numbers(&rows, [row as u64].into_iter(), &want.into(), what);
                    tally.compared += 1;
                }
            }
            ["names", "data"] => {
                let names = std::str::from_utf8(blob).unwrap();
                let want = objects
                    .iter()
                    .map(|object| object["name"].as_str().unwrap());
                assert!(names.split('\n').eq(want), "{what}");
                tally.compared += 1;
            }
            ["groups", "data"] => {
                let offsets = self.blob("parametric/groups/offsets").unwrap();
                let rows = OpenRows::parse(blob, offsets).unwrap();
                let lists = rows
                    .iter()
                    .map(|row| GroupMembers::parse_list(row).unwrap());
                assert!(
                    lists
                        .flat_map(|list| list.iter())
                        .all(|id| id < i64::try_from(objects.len()).unwrap())
                );
                tally.unlisted += 1;
            }
            ["groups", "offsets"] => {}
            ["object_attributes" | "group_attributes", _, "data"] => {
                let node = parts[..3].join("/");
                let attributes = self.attributes(&node);
                let rows = attributes["shape"][0].as_u64().unwrap();
                assert!(
                    columns_of(blob.len(), dtype(&attributes), rows).is_some(),
                    "{what}"
                );
                tally.unlisted += 1;
            }
            _ => panic!("{what}: nothing reads this blob"),
        }
    }

    /// Compares the items of a vlen array, which are recorded one by one.
    fn check_items(&self, tally: &mut Tally, path: &str, items: &Json) {
        let what = format!("{}/{path}", self.name);
        let items: Vec<Vec<u8>> = items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| unhex(item.as_str().unwrap()))
            .collect();
        tally.blobs += items.len();
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            [level, "object_index", "manifests"] => {
                for (at, item) in items.iter().enumerate() {
                    self.check_manifest(tally, level, at, item, &format!("{what} {at}"));
                }
            }
            ["parametric", "groups"] => {
                for item in &items {
                    GroupMembers::parse_list(item).unwrap();
                    tally.unlisted += 1;
                }
            }
            [level, "groups"] => {
                let recorded = &self.level(level)["groups"];
                let ranges = &recorded["meta"]["group_ranges"];
                for (at, item) in items.iter().enumerate() {
                    let range = &ranges[at.to_string()];
                    let members = match range.as_array() {
                        None => GroupMembers::parse_list(item).unwrap(),
                        Some(range) => {
                            let [start, stop] = [0, 1].map(|at| range[at].as_i64().unwrap());
                            GroupMembers::from_range(start, stop).unwrap()
                        }
                    };
                    let ids: Vec<i64> = members.iter().collect();
                    tally.same(&Json::from(ids.clone()), &recorded["members"][at], &what);
                    if range.is_null() {
                        tally.reencoded(&groups::encode_list(&ids), item, &what);
                    }
                }
            }
            ["parametric", "names"] => {
                let objects = self.expected["reads"]["parametric"].as_array().unwrap();
                for (item, object) in items.iter().zip(objects) {
                    let name = std::str::from_utf8(item).unwrap();
                    tally.same(&Some(name), &object["name"].as_str(), &what);
                }
            }
            // Native sharding: only the cells of a grid are recorded, absent ones as empty.
            [_, "vertex_fragments"] => {
                for item in items.iter().filter(|item| !item.is_empty()) {
                    let index = FragmentIndex::parse(item).unwrap();
                    tally.reencoded(&encode_fragments(&index), item, &what);
                }
            }
            [_, "vertices"] | [_, "vertex_attributes", _] => {
                let attributes = self.attributes(path);
                let wide = if parts[1] == "vertices" { 3 } else { 1 };
                for item in &items {
                    NumericRows::parse(item, dtype(&attributes), columns(wide)).unwrap();
                    tally.unlisted += 1;
                }
                let keys = attributes["nonempty_chunks"].as_array().unwrap();
                let present = items.iter().filter(|item| !item.is_empty()).count();
                tally.same(&present, &keys.len(), &what);
                for key in keys {
                    ChunkKey::parse(key.as_str().unwrap(), 3).unwrap();
                }
            }
            _ => panic!("{what}: nothing reads these items"),
        }
    }
}

fn check_values(tally: &mut Tally, want: &Json, blob: &[u8], what: &str) {
    let shape = want["shape"].as_array().unwrap();
    let wide = shape.get(1).and_then(Json::as_u64).unwrap_or(1);
    let rows = NumericRows::parse(blob, dtype(want), columns(wide)).unwrap();
    tally.numbers(&rows, what);
    check_numbers(&rows, 0..rows.rows() as u64, &want["data"], what);
    tally.compared += 1;
}

/// Compares a numeric table, with its shape in `meta` and its numbers in `values`.
fn check_table(tally: &mut Tally, want: &Json, blob: &[u8], what: &str) {
    if want.is_null() {
        tally.unlisted += 1;
        return;
    }
    assert_eq!(dtype(&want["meta"]), dtype(&want["values"]), "{what}");
    check_values(tally, &want["values"], blob, what);
}
