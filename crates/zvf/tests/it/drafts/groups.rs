//! Levels whose groups of links follow the fragments: links of objects are read by ranges.

use std::collections::BTreeMap;

use serde_json::json;
use zvf::{
    Bbox, CellChecksums, CellCompression, Clip, Column, Dataset, Design, Geometry, GeometryBuilder,
    GeometryKind, Mode, NumericColumn, OpenOptions, Query, QueryResult,
};
use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexBuilder},
    int64s::Int64s,
    vlen::{VlenFrame, encode},
};
use zvf_store::{ByteRange, Read};
use zvf_testkit::{golden::Files, stores::Random};

use super::{change, created, findings, in_memory, set_level};
use crate::{
    block_on,
    written::random::{self, Case},
};

const VERTICES: &str = "0/vertex_fragments/c/";
const GROUPS: &str = "0/link_fragments/c/";

fn payload(files: &Files, key: &str) -> Vec<u8> {
    let (_, bytes) = files.iter().find(|(name, _)| name == key).unwrap();
    VlenFrame::parse(bytes).unwrap().only().unwrap().to_vec()
}

/// Returns the prefix of the cells of links inside chunks, and the number of ends of a link.
fn inside(files: &Files) -> Option<(String, usize)> {
    let is_zero = |segment: &str| segment.split(['.', '_']).all(|number| number == "0");
    let segments = files.iter().filter_map(|(key, _)| {
        let segment = key.strip_prefix("0/links/0/")?.strip_suffix("/zarr.json")?;
        (segment == "self" || is_zero(segment)).then(|| segment.to_owned())
    });
    let segment = segments.into_iter().next()?;
    let (_, node) = files.iter().find(|(key, _)| key == "0/links/0/zarr.json")?;
    let node: serde_json::Value = serde_json::from_slice(node).ok()?;
    let width = usize::try_from(node["attributes"]["link_width"].as_u64()?).ok()?;
    Some((format!("0/links/0/{segment}/c/"), width))
}

/// Makes the groups of links follow the fragments. Returns whether each link is within a fragment.
fn regroup(files: &mut Files) -> bool {
    let Some((prefix, width)) = inside(files) else {
        return false;
    };
    let keys = files.iter().map(|(key, _)| key.clone());
    let cells: Vec<String> = keys
        .filter_map(|key| Some(key.strip_prefix(&prefix)?.to_owned()))
        .collect();
    let mut groups = BTreeMap::new();
    for cell in cells {
        let index = payload(files, &format!("{VERTICES}{cell}"));
        let index = FragmentIndex::parse(&index).unwrap();
        let mut owners = BTreeMap::new();
        for (fragment, rows) in (0_usize..).zip(index.iter()) {
            for row in rows {
                if owners.insert(row, fragment).is_some() {
                    return false;
                }
            }
        }
        let links = payload(files, &format!("{prefix}{cell}"));
        let links: Vec<i64> = Int64s::parse(&links).unwrap().iter().collect();
        let mut rows: Vec<Vec<u64>> = index.iter().map(|_| Vec::new()).collect();
        for (number, ends) in (0_u64..).zip(links.chunks(width)) {
            let mut of = ends.iter().map(|row| owners[&u64::try_from(*row).unwrap()]);
            let first = of.next().unwrap();
            if of.any(|other| other != first) {
                return false;
            }
            rows[first].push(number);
        }
        let mut builder = FragmentIndexBuilder::default();
        for rows in rows {
            let first = rows.first().copied().unwrap_or(0);
            let is_range = (first..).zip(&rows).all(|(expected, row)| expected == *row);
            let end = first + u64::try_from(rows.len()).unwrap();
            if is_range {
                builder.push_range(first..end).unwrap()
            } else {
                builder.push_list(&rows).unwrap()
            };
        }
        groups.insert(format!("{GROUPS}{cell}"), builder.finish());
    }
    for (key, bytes) in groups {
        put(files, &key, &bytes);
    }
    claim(files);
    true
}

fn put(files: &mut Files, key: &str, payload: &[u8]) {
    let (_, bytes) = files.iter_mut().find(|(name, _)| name == key).unwrap();
    *bytes = encode(&[payload]).unwrap();
}

fn claim(files: &mut Files) {
    change(files, "zarr.json", |root| {
        let attributes = root["attributes"].as_object_mut().unwrap();
        attributes.remove("zvf_nodes");
    });
    set_level(files, 0, "fragment_link_groups", json!(true));
}

/// A design whose cells can be read in part.
fn plain(kind: GeometryKind) -> Design {
    let mut design = Design::new(kind);
    design.compression = CellCompression::None;
    design.checksums = CellChecksums::Off;
    design
}

/// Fans of triangles, one for each object. Links have attributes of one number and of three.
fn fans(objects: u16, triangles: u16) -> GeometryBuilder {
    let mut positions = Vec::new();
    let (mut links, mut ids) = (Vec::new(), Vec::new());
    for object in 0..objects {
        let first = i64::try_from(ids.len()).unwrap();
        for vertex in 0..triangles + 2 {
            positions.extend([
                f32::from(object % 10) + f32::from(vertex) / 4096.0,
                f32::from(object / 10) + f32::from(vertex % 7) / 4096.0,
                0.5,
            ]);
            ids.push(i64::from(object) * 3);
        }
        for triangle in 1..=i64::from(triangles) {
            links.extend([first, first + triangle, first + triangle + 1]);
        }
    }
    let count = u16::try_from(links.len() / 3).unwrap();
    let mut geometry = Geometry::builder(NumericColumn::float32(3, positions))
        .object_ids(ids)
        .links(3, links);
    let area = NumericColumn::float32(1, (0..count).map(f32::from));
    let normal = NumericColumn::float32(3, (0..count).flat_map(|n| [f32::from(n), 0.5, 1.0]));
    geometry.link = vec![Column::new("area", area), Column::new("normal", normal)];
    geometry
}

async fn result(files: &Files, query: &Query) -> QueryResult {
    let dataset = Dataset::open(in_memory(files)).await.unwrap();
    dataset.query(query).await.unwrap()
}

/// Returns requests and bytes of a second query, when nodes and indexes are in the cache.
async fn cost(files: &Files, query: &Query) -> (QueryResult, BTreeMap<&'static str, (usize, u64)>) {
    let options = OpenOptions::default().record_requests(true).cache(0);
    let store = options.from_memory(files.clone()).unwrap();
    let dataset = Dataset::open_with(store.clone(), &options).await.unwrap();
    dataset.query(&Query::new().objects([0])).await.unwrap();
    store.take_request_log();
    let found = dataset.query(query).await.unwrap();
    let mut costs = BTreeMap::new();
    for Read { key, range, .. } in store.take_request_log() {
        let key = key.as_str();
        let what = match key {
            key if !key.contains("/c/") => "other",
            key if key.starts_with("0/links/") => "links",
            key if key.starts_with("0/link_attributes/") => "values",
            key if key.starts_with(GROUPS) => "groups",
            _ => "other",
        };
        let (_, bytes) = files.iter().find(|(name, _)| name == key).unwrap();
        let size = u64::try_from(bytes.len()).unwrap();
        let read = match range {
            ByteRange::Bounded(range) => range.end - range.start,
            ByteRange::Suffix(bytes) => bytes,
            _ => size,
        };
        let cost: &mut (usize, u64) = costs.entry(what).or_default();
        *cost = (cost.0 + 1, cost.1 + read);
    }
    (found, costs)
}

#[test]
fn links_of_objects_are_read_by_ranges() {
    block_on(async {
        let mut design = plain(GeometryKind::Mesh);
        design.chunk_shape = Some(vec![10.0; 3]);
        let whole = created(fans(80, 60), design).await;
        let mut grouped = whole.clone();
        assert!(regroup(&mut grouped));
        assert_eq!(findings(&grouped).await, Vec::<String>::new());
        let query = Query::new().objects([120, 201]);
        let (expected, before) = cost(&whole, &query).await;
        let (found, after) = cost(&grouped, &query).await;
        assert_eq!(found, expected);
        assert_eq!(found.links.unwrap().ends.len(), 2 * 60 * 3);
        // Cells of links and of both attributes, and the groups of the only chunk.
        assert_eq!(before["links"], (1, 80 * 60 * 24 + 8));
        assert_eq!(before["values"], (2, 80 * 60 * 16 + 16));
        assert_eq!(before.get("groups"), None);
        // The frame and the rows of two objects; between the numbers of one attribute is a small
        // gap, which is read as well.
        let (links, values) = (after["links"], after["values"]);
        assert!(links.0 <= 3 && links.1 <= 8 + 2 * 60 * 24, "{after:?}");
        let values_of_both = (8 + 28 * 60 * 4) + (8 + 2 * 60 * 12);
        assert!(values.0 <= 5 && values.1 <= values_of_both, "{after:?}");
        assert_eq!(after.get("groups"), None);
        // The first query reads the groups as well.
        let store = in_memory(&grouped);
        let dataset = Dataset::open(store.clone()).await.unwrap();
        assert_eq!(dataset.query(&query).await.unwrap(), expected);
        let log = store.take_request_log();
        let of_groups = log
            .iter()
            .filter(|read| read.key.as_str().starts_with(GROUPS));
        assert_eq!(of_groups.count(), 1);
        // All objects, and cells that are compressed or have checksums, are read whole.
        let all: Vec<i64> = (0..80).map(|object| object * 3).collect();
        let (_, of_all) = cost(&grouped, &Query::new().objects(all)).await;
        assert_eq!(
            (of_all["links"], of_all["values"]),
            (before["links"], before["values"])
        );
        let mut designs = [plain(GeometryKind::Mesh), plain(GeometryKind::Mesh)];
        designs[0].checksums = CellChecksums::On;
        designs[1].compression = CellCompression::Zstd(1);
        for mut design in designs {
            design.chunk_shape = Some(vec![10.0; 3]);
            let files = created(fans(80, 60), design).await;
            let store = in_memory(&files);
            let is_whole = |read: &Read| read.range == ByteRange::Full;
            let dataset = Dataset::open(store.clone()).await.unwrap();
            store.take_request_log();
            assert_eq!(dataset.query(&query).await.unwrap(), expected);
            let log = store.take_request_log();
            let mut links = log.iter().filter(|read| {
                let key = read.key.as_str();
                key.starts_with("0/links/") && key.contains("/c/")
            });
            assert!(links.all(is_whole));
        }
    });
}

/// Groups that contradict the declaration are found when they are read, and the cell is read whole.
#[test]
fn groups_that_do_not_follow_the_fragments_change_no_result() {
    block_on(async {
        let mut design = plain(GeometryKind::Mesh);
        design.chunk_shape = Some(vec![10.0; 3]);
        let whole = created(fans(20, 30), design).await;
        let mut grouped = whole.clone();
        assert!(regroup(&mut grouped));
        let cell = format!("{GROUPS}0/0/0");
        let rows = |object: u64| object * 30..(object + 1) * 30;
        let groups = |ranges: Vec<core::ops::Range<u64>>| {
            let mut builder = FragmentIndexBuilder::default();
            for range in ranges {
                builder.push_range(range).unwrap();
            }
            builder.finish()
        };
        // Too few groups; groups of other fragments; rows in two groups; rows past the end, and
        // rows in no group.
        let shifted = (0..20).map(|object| rows((object + 1) % 20)).collect();
        let doubled = (0..20).map(|object| rows(object / 2 * 2)).collect();
        let mut past: Vec<_> = (0..20).map(rows).collect();
        past[1] = 600..630;
        let mut short: Vec<_> = (0..20).map(rows).collect();
        short[19] = 570..599;
        let few = std::iter::once(0..600).collect();
        for wrong in [few, shifted, doubled, past, short] {
            let mut files = grouped.clone();
            put(&mut files, &cell, &groups(wrong.clone()));
            for ids in [vec![3], vec![9, 57], vec![0, 6]] {
                let query = Query::new().objects(ids);
                let expected = result(&whole, &query).await;
                assert!(!expected.links.as_ref().unwrap().ends.is_empty());
                assert_eq!(result(&files, &query).await, expected, "{wrong:?}");
            }
        }
        // Without groups, too.
        let mut files = grouped.clone();
        files.retain(|(key, _)| !key.starts_with("0/link_fragments/"));
        let query = Query::new().objects([3]);
        assert_eq!(result(&files, &query).await, result(&whole, &query).await);
    });
}

/// Random objects whose links are between their own vertices.
fn objects(random: &mut Random, kind: GeometryKind) -> Case {
    let mut case = random::case(random.any(), kind, zvf::Profile::V09);
    if kind == GeometryKind::Skeletons {
        return case;
    }
    let width = if kind == GeometryKind::Mesh { 3 } else { 2 };
    let mut positions = Vec::new();
    let (mut links, mut ids): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    for object in 0..=random.below(12) {
        let first = ids.len();
        let count = 1 + random.below(9);
        let at: Vec<f64> = (0..3).map(|_| random.unit() * 18.0).collect();
        for _ in 0..count {
            positions.extend(at.iter().map(|at| at + random.unit() * 4.0));
            ids.push(i64::try_from(object).unwrap());
        }
        for _ in 0..random.below(3 * count) {
            for _ in 0..width {
                links.push(i64::try_from(first + random.below(count)).unwrap());
            }
        }
    }
    let mut geometry = Geometry::builder(NumericColumn::float64(3, positions)).object_ids(ids);
    let count = links.len() / width;
    geometry = geometry.links(width, links);
    let values = NumericColumn::float64(2, (0..2 * count).map(|_| random.unit()));
    geometry.link = vec![Column::new("weight", values)];
    case.geometry = geometry;
    case.design = Design::new(kind);
    case.design.chunk_shape = Some(vec![10.0; 3]);
    case
}

#[test]
fn groups_of_links_change_no_result() {
    let kinds = [
        GeometryKind::Graphs,
        GeometryKind::Mesh,
        GeometryKind::Skeletons,
    ];
    let mut used = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let kind = *random.pick(&kinds);
        let mut case = objects(&mut random, kind);
        case.design.compression = CellCompression::None;
        case.design.checksums = CellChecksums::Off;
        case.design.sharding = zvf::ShardingPolicy::None;
        block_on(async {
            let whole = created(case.geometry.clone(), case.design.clone()).await;
            let mut grouped = whole.clone();
            if !regroup(&mut grouped) {
                return;
            }
            used += 1;
            // Random faces are no surface.
            let mut found = findings(&grouped).await;
            found.retain(|found| !found.starts_with("ZV-L4-"));
            assert_eq!(found, Vec::<String>::new(), "{seed}");
            let all = Dataset::open(in_memory(&whole)).await.unwrap();
            let listed = all.catalog().object_list(zvf::LevelId::FULL).await.unwrap();
            let Some(listed) = listed else { return };
            let ids: Vec<i64> = (0..listed.len()).filter_map(|at| listed.id(at)).collect();
            let axes = all.root().axes.len();
            let dataset = Dataset::open(in_memory(&grouped)).await.unwrap();
            for _ in 0..8 {
                let some = ids.iter().copied().filter(|_| random.chance(30));
                let mut query = Query::new().objects(some.collect::<Vec<i64>>());
                if random.chance(50) {
                    let corner: Vec<f64> = (0..axes).map(|_| random.unit() * 12.0).collect();
                    let other: Vec<f64> = corner.iter().map(|at| at + 8.0).collect();
                    query = query.region(Bbox::new(&corner, &other).unwrap());
                    query = query.mode(*random.pick(&Mode::ALL));
                    query = query.clip(*random.pick(&[Clip::Split, Clip::Drop]));
                }
                let expected = all.query(&query).await.unwrap();
                assert_eq!(
                    dataset.query(&query).await.unwrap(),
                    expected,
                    "{seed}: {query:?}"
                );
            }
        });
    }
    assert!(used > 20, "{used} stores");
}
