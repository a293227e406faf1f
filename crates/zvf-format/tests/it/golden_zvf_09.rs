//! Every recorded cell of generation 0.9, and their frames.

use std::{collections::BTreeMap, num::NonZeroU32};

use serde_json::Value as Json;
use zvf_format::{
    fragment::{FragmentIndex, Rows},
    groups::{self, GroupMembers},
    int64s::Int64s,
    links::{AxisScales, LinkRow, LinkRows, LinkWidth, RaggedLinks, RowForm},
    manifest::ObjectManifest,
    numeric::{NumericRows, columns_of},
    path::{ChunkCoords, Delta, OffsetCoords, Offsets},
    vlen::{self, VlenFrame},
};
use zvf_testkit::golden::{Golden, unhex};

use crate::golden::{Tally, check_numbers, columns, coords, dtype, encode_fragments, link_builder};

#[test]
fn golden_zvf_09() {
    let golden = Golden::open("zvf-09");
    let mut tally = Tally::default();
    for (path, _) in golden.files() {
        if let Some(name) = path.strip_suffix("/expected.json") {
            let store = Store {
                golden: &golden,
                name,
                expected: golden.json(path),
            };
            store.check(&mut tally);
            tally.stores += 1;
        }
    }
    tally.print("zvf-09");
    assert_eq!(tally.stores, 65);
}

/// Every uncompressed chunk file of a vlen array is one frame of its cells.
#[test]
fn golden_zvf_09_frames() {
    let golden = Golden::open("zvf-09");
    let mut tally = Tally::default();
    for (path, metadata) in golden.files() {
        let Some(node) = path.strip_suffix("/zarr.json") else {
            continue;
        };
        let metadata: Json = serde_json::from_slice(metadata).unwrap();
        let codecs = metadata["codecs"].as_array();
        let plain = codecs.is_some_and(|codecs| codecs.len() == 1);
        if !plain || metadata["codecs"][0]["name"] != "vlen-bytes" {
            continue;
        }
        tally.stores += 1;
        let shape = metadata["chunk_grid"]["configuration"]["chunk_shape"].as_array();
        let items: u64 = shape.unwrap().iter().map(|n| n.as_u64().unwrap()).product();
        let prefix = format!("{node}/c/");
        for (file, bytes) in golden.files().filter(|(file, _)| file.starts_with(&prefix)) {
            let frame = VlenFrame::parse(bytes).unwrap();
            tally.blobs += 1;
            tally.same(&u64::from(frame.len()), &items, file);
            let again = vlen::encode(&frame.iter().collect::<Vec<_>>()).unwrap();
            tally.reencoded(&again, bytes, file);
        }
    }
    tally.print("zvf-09 vlen frames, by array");
    assert!(tally.blobs > 500);
}

struct Store<'a> {
    golden: &'a Golden,
    name: &'a str,
    expected: Json,
}

type Cells = BTreeMap<String, Vec<u8>>;

impl Store<'_> {
    fn check(&self, tally: &mut Tally) {
        for (name, level) in self.expected["levels"].as_object().unwrap() {
            let level = Level {
                store: self,
                name,
                expected: level,
            };
            level.check(tally);
        }
    }

    fn axes(&self) -> u64 {
        let axes = &self.expected["root"]["multiscales"][0]["axes"];
        axes.as_array().unwrap().len() as u64
    }

    /// Returns the ratio of a level's chunk shape to the root's, axis by axis.
    fn scales(&self, level: i64) -> Vec<NonZeroU32> {
        let root = &self.expected["root"]["zarr_vectors"]["chunk_shape"];
        let own = &self.expected["levels"][level.to_string()]["attributes"];
        let own = &own["zarr_vectors_level"]["chunk_shape"];
        let own = if own.is_null() { root } else { own };
        let numbers = |shape: &Json| -> Vec<f64> {
            let axes = shape.as_array().unwrap().iter();
            axes.map(|axis| axis.as_f64().unwrap()).collect()
        };
        let ratios = numbers(own).into_iter().zip(numbers(root));
        ratios
            .map(|(own, root)| {
                // A small integer, within the tolerance of the format.
                let ratio = (1..1_000).find(|&n| (own - root * f64::from(n)).abs() < 1e-9);
                NonZeroU32::new(ratio.unwrap()).unwrap()
            })
            .collect()
    }
}

struct Level<'a> {
    store: &'a Store<'a>,
    name: &'a str,
    expected: &'a Json,
}

impl Level<'_> {
    fn check(&self, tally: &mut Tally) {
        for (array, cells) in self.expected["cells"].as_object().unwrap() {
            let cells: Cells = cells
                .as_object()
                .unwrap()
                .iter()
                .map(|(key, hex)| (key.clone(), unhex(hex.as_str().unwrap())))
                .collect();
            tally.blobs += cells.len();
            let parts: Vec<&str> = array.split('/').collect();
            match parts[..] {
                ["vertices"] => self.check_vertices(tally, &cells),
                ["vertex_fragments"] => self.check_fragments(tally, &cells),
                ["link_fragments"] => self.check_link_fragments(tally, &cells),
                ["vertex_attributes", name] => self.check_attribute(tally, name, &cells),
                ["fragment_attributes", name] => {
                    self.check_fragment_attribute(tally, name, &cells);
                }
                // All arrays of a family are checked together below.
                ["links", _, _] | ["link_attributes", _, _, _] => {}
                ["object_index", "manifests"] => self.check_manifests(tally, &cells),
                ["groups"] => self.check_groups(tally, &cells),
                [family] => self.check_composite(tally, family, &cells),
                _ => panic!("{}: nothing reads this array", self.what(array)),
            }
        }
        for (delta, family) in self.expected["links"].as_object().unwrap() {
            self.check_family(tally, delta, family);
        }
        self.check_object_ids(tally);
    }

    fn what(&self, path: &str) -> String {
        format!("{}/{}/{path}", self.store.name, self.name)
    }

    fn attributes(&self, array: &str) -> &Json {
        &self.expected["arrays"][array]["attributes"]
    }

    fn cells(&self, array: &str) -> Option<Cells> {
        let cells = self.expected["cells"].get(array)?.as_object().unwrap();
        let cell = |(key, hex): (&String, &Json)| (key.clone(), unhex(hex.as_str().unwrap()));
        Some(cells.iter().map(cell).collect())
    }

    fn fragment_cell(&self, key: &str) -> Vec<u8> {
        unhex(
            self.expected["cells"]["vertex_fragments"][key]
                .as_str()
                .unwrap(),
        )
    }

    fn check_vertices(&self, tally: &mut Tally, cells: &Cells) {
        let dtype = dtype(self.attributes("vertices"));
        for (key, blob) in cells {
            let what = self.what(key);
            let rows = NumericRows::parse(blob, dtype, columns(self.store.axes())).unwrap();
            tally.numbers(&rows, &what);
            let index = self.fragment_cell(key);
            let index = FragmentIndex::parse(&index).unwrap();
            let want = self.expected["vertices"][key]["fragments"]
                .as_array()
                .unwrap();
            assert_eq!(want.len(), index.iter().len(), "{what}");
            for (fragment, want) in index.iter().zip(want) {
                check_numbers(&rows, fragment.iter(), want, &what);
                tally.compared += 1;
            }
            let level = &self.expected["attributes"]["zarr_vectors_level"];
            if level["fragments_tile"] == true {
                assert!(index.tiles(rows.rows() as u64), "{what}");
            }
            assert_eq!(*key, ChunkCoords(&coords(key)).to_string());
        }
    }

    fn check_fragments(&self, tally: &mut Tally, cells: &Cells) {
        for (key, blob) in cells {
            let index = FragmentIndex::parse(blob).unwrap();
            let fragment = |rows: Rows<'_>| match rows {
                Rows::Range(rows) => {
                    serde_json::json!(["range", rows.start, rows.end - rows.start])
                }
                Rows::List(rows) => {
                    serde_json::json!(["explicit", rows.iter().collect::<Vec<_>>()])
                }
            };
            let got: Json = index.iter().map(fragment).collect();
            tally.same(
                &got,
                &self.expected["vertices"][key]["index"],
                &self.what(key),
            );
            tally.reencoded(&encode_fragments(&index), blob, &self.what(key));
        }
    }

    /// Checks that link fragments, which are not recorded, partition the rows of the matching cell.
    fn check_link_fragments(&self, tally: &mut Tally, cells: &Cells) {
        let policy = &self.expected["links"]["0"]["policy"];
        let width = LinkWidth::new(policy["link_width"].as_u64().unwrap()).unwrap();
        let sid_ndim = usize::try_from(policy["sid_ndim"].as_u64().unwrap()).unwrap();
        let zero = vec![vec![0; sid_ndim]; width.get() - 1];
        let links = self.cells(&format!("links/0/{}", OffsetCoords(&zero)));
        for (key, blob) in cells {
            let index = FragmentIndex::parse(blob).unwrap();
            let rows = links
                .as_ref()
                .and_then(|links| links.get(key))
                .map_or(&[][..], Vec::as_slice);
            let rows = LinkRows::parse(rows, width, RowForm::Plain).unwrap();
            let named: u64 = index.iter().map(|rows| rows.len()).sum();
            tally.same(&named, &(rows.len() as u64), &self.what(key));
            tally.same(&index.extent(), &(rows.len() as u64), &self.what(key));
            tally.reencoded(&encode_fragments(&index), blob, &self.what(key));
        }
    }

    fn check_attribute(&self, tally: &mut Tally, name: &str, cells: &Cells) {
        let attributes = self.attributes(&format!("vertex_attributes/{name}"));
        let dtype = dtype(attributes);
        for (key, blob) in cells {
            let what = self.what(&format!("vertex_attributes/{name}/{key}"));
            let index = self.fragment_cell(key);
            let index = FragmentIndex::parse(&index).unwrap();
            let want = &self.expected["vertices"][key]["attributes"][name];
            let columns = columns_of(blob.len(), dtype, index.extent());
            let Some(want) = want.as_array() else {
                // An edit made the cell inconsistent with its rows.
                tally.same(
                    &(columns, want.as_str()),
                    &(None, Some("raises ArrayError")),
                    &what,
                );
                continue;
            };
            let rows = NumericRows::parse(blob, dtype, columns.unwrap()).unwrap();
            tally.numbers(&rows, &what);
            if attributes["encoding"] == "dictionary" {
                tally.codes(blob, attributes, &what);
            }
            assert_eq!(want.len(), index.iter().len(), "{what}");
            for (fragment, want) in index.iter().zip(want) {
                check_numbers(&rows, fragment.iter(), want, &what);
                tally.compared += 1;
            }
        }
    }

    fn check_fragment_attribute(&self, tally: &mut Tally, name: &str, cells: &Cells) {
        let dtype = dtype(self.attributes(&format!("fragment_attributes/{name}")));
        for (key, blob) in cells {
            let what = self.what(&format!("fragment_attributes/{name}/{key}"));
            let index = self.fragment_cell(key);
            let fragments = FragmentIndex::parse(&index).unwrap().len();
            let columns = columns_of(blob.len(), dtype, fragments.into()).unwrap();
            let rows = NumericRows::parse(blob, dtype, columns).unwrap();
            tally.numbers(&rows, &what);
            let want = &self.expected["vertices"][key]["fragment_attributes"][name];
            check_numbers(&rows, 0..u64::from(fragments), &want["data"], &what);
            tally.compared += 1;
        }
    }

    /// Compares all records of a family in reading order, with their attributes.
    fn check_family(&self, tally: &mut Tally, delta: &str, family: &Json) {
        // Recorded as a number; paths contain its sign.
        let delta = Delta::new(delta.parse().unwrap());
        let what = self.what(&format!("links/{delta}"));
        let policy = &family["policy"];
        let width = LinkWidth::new(policy["link_width"].as_u64().unwrap()).unwrap();
        let sid_ndim = usize::try_from(policy["sid_ndim"].as_u64().unwrap()).unwrap();
        let levels = delta.levels();
        assert_eq!(Delta::parse(&delta.to_string()), Ok(delta));
        let scales = self.axis_scales(sid_ndim, levels);

        let mut records = Vec::new();
        let mut values: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let names: Vec<&str> = family["attributes"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        let mut segments: Vec<&str> = family["segments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|segment| segment.as_str().unwrap())
            .collect();
        segments.sort_unstable();
        for segment in segments {
            let offsets = Offsets::parse(segment, width, sid_ndim).unwrap();
            let flat = levels == 0 && offsets.is_zero();
            let numbers: Vec<Vec<i64>> = offsets.iter().map(Iterator::collect).collect();
            assert_eq!(OffsetCoords(&numbers).to_string(), segment);
            let undirected = policy["directed"] == false;
            if levels == 0 && undirected && policy["store"] == "canonical" {
                assert!(offsets.is_canonical(), "{what}/{segment}");
            }
            let permuted =
                levels == 0 && !offsets.is_zero() && (policy["store"] == "duplicate" || undirected);
            let form = if permuted {
                RowForm::Permuted
            } else {
                RowForm::Plain
            };
            let array = format!("links/{delta}/{segment}");
            let has_perm = &self.attributes(&array)["has_perm"];
            tally.same(&has_perm.as_bool(), &Some(permuted), &what);
            for (key, blob) in self.cells(&array).unwrap() {
                let what = self.what(&format!("{array}/{key}"));
                let rows;
                let again;
                if flat {
                    rows = LinkRows::parse(&blob, width, form).unwrap();
                    again = link_builder(core::iter::once(rows), rows).finish_rows();
                } else {
                    let ragged = RaggedLinks::parse(&blob, width, form).unwrap();
                    rows = ragged.rows();
                    again = link_builder(ragged.groups(), rows).finish_ragged();
                }
                tally.reencoded(&again, &blob, &what);
                let chunks = placed_chunks(&coords(&key), offsets, &scales);
                records.extend(rows.iter().map(|row| record(row, &chunks)));
                for name in &names {
                    let array = format!("link_attributes/{name}/{delta}/{segment}");
                    if let Some(cell) = self.cells(&array).and_then(|mut cells| cells.remove(&key))
                    {
                        values.entry(name).or_default().extend(cell);
                    }
                }
            }
        }
        tally.same(&Json::from(records), &family["records"], &what);
        for (name, bytes) in values {
            let want = &family["attributes"][name];
            let shape = want["shape"].as_array().unwrap();
            let wide = shape.get(1).and_then(Json::as_u64).unwrap_or(1);
            let rows = NumericRows::parse(&bytes, dtype(want), columns(wide)).unwrap();
            tally.numbers(&rows, &what);
            check_numbers(&rows, 0..rows.rows() as u64, &want["data"], &what);
            tally.compared += 1;
        }
    }

    /// Returns the scales of all axes. The leading axis of an attribute-chunked level is not
    /// scaled.
    fn axis_scales(&self, sid_ndim: usize, levels: i32) -> Vec<AxisScales> {
        let own: i64 = self.name.parse().unwrap();
        let source = self.store.scales(own);
        let target = self.store.scales(own + i64::from(levels));
        let mut scales = vec![AxisScales::EQUAL; sid_ndim - source.len()];
        let pairs = source.into_iter().zip(target);
        scales.extend(pairs.map(|(source, target)| AxisScales { source, target }));
        scales
    }

    fn check_manifests(&self, tally: &mut Tally, cells: &Cells) {
        let path = format!(
            "{}/store.zarrvectors/{}/object_index/zarr.json",
            self.store.name, self.name
        );
        let attributes = &self.store.golden.json(&path)["attributes"];
        let sid_ndim = usize::try_from(attributes["sid_ndim"].as_u64().unwrap()).unwrap();
        let objects = &self.expected["objects"];
        for (row, blob) in cells {
            let row: usize = row.parse().unwrap();
            let what = self.what(&format!("manifest {row}"));
            let manifest = ObjectManifest::parse(blob, sid_ndim).unwrap();
            let pieces = manifest.iter().flat_map(|block| {
                let chunk = ChunkCoords(&block.chunk.iter().collect::<Vec<_>>()).to_string();
                let fragments: Vec<u32> = block.fragments.iter().collect();
                let fragments = fragments.into_iter();
                fragments.map(move |fragment| serde_json::json!([chunk, fragment]))
            });
            let id = objects["ids"][row].to_string();
            tally.same(&pieces.collect::<Json>(), &objects["manifests"][&id], &what);
            tally.manifest(&manifest, blob, &what);
        }
    }

    fn check_groups(&self, tally: &mut Tally, cells: &Cells) {
        let ranges = &self.attributes("groups")["group_ranges"];
        for (group, blob) in cells {
            let range = ranges[group].as_array();
            let members = match range {
                None => GroupMembers::parse_list(blob).unwrap(),
                Some(range) => {
                    let [start, stop] = [0, 1].map(|at| range[at].as_i64().unwrap());
                    GroupMembers::from_range(start, stop).unwrap()
                }
            };
            let ids: Vec<i64> = members.iter().collect();
            let want = &self.expected["groups"][group];
            tally.same(&Json::from(ids.clone()), want, &self.what(group));
            if range.is_none() {
                tally.reencoded(&groups::encode_list(&ids), blob, &self.what(group));
            }
        }
    }

    /// Compares the cells of `vertices_<kind>` in reading order with the recorded positions.
    fn check_composite(&self, tally: &mut Tally, family: &str, cells: &Cells) {
        let kind = family.strip_prefix("vertices_").unwrap();
        let reads = self.store.expected["reads"].as_array().unwrap();
        let read = reads.iter().find(|read| read["call"] == "read_composite");
        let want = &read.unwrap()["result"][kind]["positions"]["data"];
        let all: Vec<u8> = cells.values().flatten().copied().collect();
        let dtype = dtype(self.attributes(family));
        let rows = NumericRows::parse(&all, dtype, columns(self.store.axes())).unwrap();
        tally.numbers(&rows, &self.what(family));
        check_numbers(&rows, 0..rows.rows() as u64, want, &self.what(family));
        tally.compared += 1;
    }

    /// Compares ids stored without a compressor, which are plain numbers in one file.
    fn check_object_ids(&self, tally: &mut Tally) {
        let codecs = self.expected["arrays"]["object_index/object_ids"]["codecs"].as_array();
        if codecs.is_none_or(|codecs| codecs.len() != 1) {
            return;
        }
        let node = format!("{}/store.zarrvectors/{}", self.store.name, self.name);
        let path = format!("{node}/object_index/object_ids/c/0");
        if let Some((_, bytes)) = self.store.golden.files().find(|(file, _)| *file == path) {
            let ids = Int64s::parse(bytes).unwrap();
            let want = &self.expected["objects"]["ids"];
            tally.blobs += 1;
            tally.same(&ids.iter().collect::<Json>(), want, &path);
        }
    }
}

/// Returns the chunk in each slot: the source, then the others by their offsets.
fn placed_chunks(source: &[i64], offsets: Offsets<'_>, scales: &[AxisScales]) -> Vec<String> {
    let mut chunks = vec![ChunkCoords(source).to_string()];
    for offset in offsets.iter() {
        let axes = scales.iter().zip(source).zip(offset);
        let chunk: Vec<i64> = axes
            .map(|((scales, &source), offset)| scales.resolve(source, offset).unwrap())
            .collect();
        chunks.push(ChunkCoords(&chunk).to_string());
    }
    chunks
}

/// Returns a record in the recorded form: chunk key and vertex row of each endpoint in input order.
fn record(row: LinkRow<'_>, chunks: &[String]) -> Json {
    let order = row.order();
    let endpoint = |input: usize| {
        let slot = order.slot_of(input).unwrap();
        serde_json::json!([chunks[slot], row.stored_at(slot).unwrap()])
    };
    (0..chunks.len()).map(endpoint).collect()
}
