//! The layers of a server hold what the store holds.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

use zvf::{
    AutoLevels, Column, ColumnValues, Dataset, Editor, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, OpenOptions, OutOfBounds, PyramidOptions, Query, VertexOwners, build_pyramid,
};
use zvf_model::level::LevelId;
use zvf_precomputed::{
    Annotation, AnnotationInfo, AnnotationKind, AnnotationList, LegacyMeshFragment, LegacyMeshInfo,
    MultilodManifest, MultilodMeshInfo, PropertyValue, QuantizedMesh, RecordLayout,
    SegmentProperties, SegmentPropertyValues, ShardFile, Skeleton, SkeletonInfo,
};
use zvf_query::LevelChoice;
use zvf_serve::{ExportOptions, Layer, MeshFormat, ServeOptions, export};
use zvf_store::SimulatedNetwork;

use crate::{
    client::TestServer,
    export::files,
    stores::{TestStores, block_on, graph, grouped_paths, paths, points, surface, trees},
};

/// Reads the annotations of every cell of every level, with the number of cells that list each.
pub(crate) fn annotations(
    server: &TestServer,
    layer: &str,
) -> (AnnotationInfo, BTreeMap<u64, Annotation>) {
    let info = AnnotationInfo::parse(&server.get(&format!("{layer}/info"))).unwrap();
    let layout = RecordLayout::of(&info);
    let mut found = BTreeMap::new();
    for (at, level) in info.spatial.iter().enumerate() {
        let mut here = BTreeMap::new();
        for cell in cells(&level.grid_shape) {
            let response = server.send("GET", &format!("{layer}/spatial{at}/{cell}"), &[]);
            if response.status == 404 {
                continue;
            }
            let list = AnnotationList::decode(&response.body, &layout).unwrap();
            for (id, annotation) in list.ids.into_iter().zip(list.annotations) {
                let before = here.insert(id, annotation.clone());
                assert!(before.is_none_or(|before| before == annotation), "{id}");
            }
        }
        for (id, annotation) in here {
            assert!(
                found.insert(id, annotation).is_none(),
                "{id} is on two levels"
            );
        }
    }
    (info, found)
}

fn cells(shape: &[u64]) -> Vec<String> {
    let mut names = vec![String::new()];
    for extent in shape {
        names = names
            .iter()
            .flat_map(|name| {
                let joint = if name.is_empty() { "" } else { "_" };
                (0..*extent).map(move |at| format!("{name}{joint}{at}"))
            })
            .collect();
    }
    names
}

#[test]
fn the_cells_of_all_levels_hold_each_point_once() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(12_000));
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let (info, found) = annotations(&server, "/a/annotations");
    assert!(info.spatial.len() > 1);
    let dataset = block_on(Dataset::open(address)).unwrap();
    let response = block_on(dataset.query(&Query::new().row_ids(true))).unwrap();
    let ids = response.row_ids.unwrap();
    assert_eq!(found.len(), ids.len());
    let positions: Vec<f32> = response.positions.to_vec().unwrap();
    for (id, position) in ids.iter().zip(positions.chunks(3)) {
        assert_eq!(found[id].coordinates, position);
    }
    let layout = RecordLayout::of(&info);
    for id in ids.iter().step_by(997) {
        let bytes = server.get(&format!("/a/annotations/by_id/{id}"));
        let (annotation, related) = layout.decode_single(&bytes, 1).unwrap();
        assert_eq!(annotation, found[id]);
        let object = related[0][0];
        let list = server.get(&format!("/a/annotations/related_object/{object}"));
        let list = AnnotationList::decode(&list, &layout).unwrap();
        assert_eq!(list.ids.len(), 50);
        assert!(list.ids.contains(id));
    }
    for path in [
        "/a/annotations/by_id/9999999999999",
        "/a/annotations/by_id/-1",
        "/a/annotations/related_object/240",
        "/a/annotations/spatial0/0_0_1",
        "/a/annotations/spatial0/0_0",
        "/a/annotations/spatial99/0_0_0",
        "/a/annotations/nothing",
        "/b/annotations/info",
    ] {
        assert_eq!(server.send("GET", path, &[]).status, 404, "{path}");
    }
}

#[test]
fn paths_are_listed_by_the_cells_they_touch() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Streamlines, &paths(6000, 5));
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let (info, found) = annotations(&server, "/a/annotations");
    assert!(info.spatial.len() > 1);
    assert!(found.keys().copied().eq(0..6000));
    // An index of the coarse levels alone, and none: the other cells are read by their boxes.
    for bytes in [1 << 16, 0] {
        let options = ServeOptions::new().coarse_cells(bytes);
        let other = TestServer::start(&[("a", &address)], options);
        let (_, read) = annotations(&other, "/a/annotations");
        assert_eq!(read, found, "{bytes}");
    }
    let dataset = block_on(Dataset::open(address)).unwrap();
    let query = Query::new().objects([17]);
    let response = block_on(dataset.query(&query)).unwrap();
    let positions: Vec<f32> = response.positions.to_vec().unwrap();
    assert_eq!(found[&17].coordinates, positions);
    let layout = RecordLayout::of(&info);
    let bytes = server.get("/a/annotations/by_id/17");
    let decoded = layout.decode_single(&bytes, 1).unwrap();
    assert_eq!(decoded, (found[&17].clone(), vec![vec![17]]));
    // The second path of object 17, which has one only.
    let second = format!("/a/annotations/by_id/{}", (1_u64 << 40) + 17);
    assert_eq!(server.send("GET", &second, &[]).status, 404);
}

/// The name of the property of the orientation was that of an attribute.
#[test]
fn properties_of_paths_have_distinct_ids() {
    for (taken, free) in [
        (0, "orientation"),
        (1, "orientation_rgb"),
        (2, "orientation_rgb2"),
    ] {
        let stores = TestStores::new();
        let mut geometry = paths(10, 5);
        let numbers = || NumericColumn::float32(1, (0..10_u8).map(f32::from));
        let names = ["orientation", "orientation_rgb"].into_iter().take(taken);
        geometry.object = names.map(|name| Column::new(name, numbers())).collect();
        let address = stores.create("a.zv", GeometryKind::Streamlines, &geometry);
        let server = TestServer::start(&[("a", &address)], ServeOptions::new());
        let info = AnnotationInfo::parse(&server.get("/a/annotations/info")).unwrap();
        let ids: Vec<&str> = info.properties.iter().map(|of| of.id.as_str()).collect();
        assert_eq!(ids.last(), Some(&free));
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), taken + 1);
    }
}

/// Groups are segments of their own: a skeleton of the paths of all members, to which annotations are
/// related, and tags of the members.
#[test]
fn groups_are_segments_of_their_own() {
    let stores = TestStores::new();
    let geometry = grouped_paths(300, 5);
    let address = stores.create("a.zv", GeometryKind::Streamlines, &geometry);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let (info, found) = annotations(&server, "/a/annotations");
    let names: Vec<&str> = info.relationships.iter().map(|of| of.id.as_str()).collect();
    assert_eq!(names, ["object", "group"]);
    let layout = RecordLayout::of(&info);
    for (object, groups) in [(3_u64, vec![0, 2]), (9, vec![0]), (8, vec![2]), (1, vec![])] {
        let bytes = server.get(&format!("/a/annotations/by_id/{object}"));
        let (annotation, related) = layout.decode_single(&bytes, 2).unwrap();
        assert_eq!(related, [vec![object], groups], "{object}");
        assert_eq!(annotation, found[&object]);
    }
    let members = |group: u32| -> BTreeSet<u64> {
        let members = geometry.groups[&group].iter();
        members
            .map(|object| u64::try_from(*object).unwrap())
            .collect()
    };
    for group in [0, 2] {
        let list = server.get(&format!("/a/annotations/related_group/{group}"));
        let list = AnnotationList::decode(&list, &layout).unwrap();
        assert!(list.ids.iter().copied().collect::<BTreeSet<u64>>() == members(group));
    }
    for path in [
        "related_group/1",
        "related_group/3",
        "related_other/0",
        "related_/0",
    ] {
        let path = format!("/a/annotations/{path}");
        assert_eq!(server.send("GET", &path, &[]).status, 404, "{path}");
    }

    let skeletons = SkeletonInfo::parse(&server.get("/a/groups/info")).unwrap();
    let skeleton = server.get("/a/groups/2");
    let skeleton = Skeleton::decode(&skeleton, &skeletons.vertex_attributes).unwrap();
    let objects = u64::try_from(geometry.groups[&2].len()).unwrap();
    assert_eq!(u64::try_from(skeleton.edges.len()).unwrap(), objects * 4);
    let points = |positions: &[f32]| -> BTreeSet<[u32; 3]> {
        let points = positions.as_chunks::<3>().0.iter();
        points.map(|point| point.map(f32::to_bits)).collect()
    };
    let expected = members(2)
        .into_iter()
        .map(|id| points(&found[&id].coordinates));
    assert_eq!(
        points(skeleton.positions.as_flattened()),
        expected.flatten().collect()
    );
    assert_eq!(server.send("GET", "/a/groups/1", &[]).status, 404);

    let groups = SegmentProperties::parse(&server.get("/a/groups/properties/info")).unwrap();
    assert_eq!(groups.ids, [0, 2]);
    let names = ["left arc", "right arc"].map(str::to_owned).to_vec();
    assert_eq!(
        groups.properties[0].values,
        SegmentPropertyValues::Label(names)
    );
    let objects = server.get("/a/skeletons/properties/info");
    let objects = SegmentProperties::parse(&objects).unwrap();
    let Some(SegmentPropertyValues::Tags { tags, values, .. }) =
        objects.properties.last().map(|property| &property.values)
    else {
        panic!("{objects:?}");
    };
    assert_eq!(tags, &["left_arc", "right_arc"]);
    assert_eq!(values[..4], [vec![0], vec![], vec![], vec![0, 1]]);

    // An export has the same files.
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let out = stores.folder.path().join("out");
    let options = ExportOptions::new();
    let report = block_on(export(&dataset, out.as_path(), &options, &|_, _| {})).unwrap();
    let folders: Vec<String> = report.view.layers().iter().map(Layer::folder).collect();
    assert_eq!(folders, ["annotations", "skeletons", "groups"]);
    assert_eq!(report.view.layers()[2].items, 2);
    for file in ["groups/info", "groups/2", "groups/properties/info"] {
        assert!(
            fs::read(out.join(file)).unwrap() == server.get(&format!("/a/{file}")),
            "{file}"
        );
    }
    let ids = |bytes: &[u8]| AnnotationList::decode(bytes, &layout).unwrap().ids;
    let list = fs::read(out.join("annotations/related_group/2")).unwrap();
    let ids: BTreeSet<u64> = ids(&list).into_iter().collect();
    assert_eq!(ids, members(2));
}

/// Groups of points have properties alone.
#[test]
fn groups_of_points_have_no_shape() {
    let stores = TestStores::new();
    let mut geometry = points(1000);
    geometry.groups = [(0, vec![2, 5]), (1, vec![5])].into();
    let address = stores.create("a.zv", GeometryKind::Points, &geometry);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let groups = SegmentProperties::parse(&server.get("/a/groups/info")).unwrap();
    assert_eq!(groups.ids, [0, 1]);
    let info = AnnotationInfo::parse(&server.get("/a/annotations/info")).unwrap();
    let layout = RecordLayout::of(&info);
    let list = server.get("/a/annotations/related_group/1");
    let list = AnnotationList::decode(&list, &layout).unwrap();
    assert_eq!(list.ids.len(), 50);
    let bytes = server.get(&format!("/a/annotations/by_id/{}", list.ids[0]));
    let (_, related) = layout.decode_single(&bytes, 2).unwrap();
    assert_eq!(related, [vec![5], vec![0, 1]]);
}

/// The edges of a graph are lines with the attributes of links.
#[test]
fn edges_of_graphs_are_annotations() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Graphs, &graph(5000));
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let result = block_on(dataset.query(&Query::new())).unwrap();
    let links = result.links.unwrap();
    let positions: Vec<f32> = result.positions.to_vec().unwrap();
    let owners = result.object_ids.unwrap();
    let weights = &result.link[0];
    assert_eq!(weights.name, "weight");

    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let (info, found) = annotations(&server, "/a/annotations");
    assert!(info.spatial.len() > 1 && info.kind == AnnotationKind::Line);
    assert_eq!(found.len(), links.len());
    let weight = info.properties.iter().position(|of| of.id == "weight");
    let layout = RecordLayout::of(&info);
    for (id, ends) in (0..).zip(links.ends.chunks(2)) {
        let rows: Vec<usize> = ends
            .iter()
            .map(|end| usize::try_from(*end).unwrap())
            .collect();
        let point = |row: usize| &positions[row * 3..row * 3 + 3];
        let annotation = &found[&id];
        assert_eq!(
            annotation.coordinates,
            [point(rows[0]), point(rows[1])].concat()
        );
        let row = usize::try_from(id).unwrap();
        let ColumnValues::Numeric(numbers) = &weights.values else {
            panic!("{weights:?}");
        };
        let value = numbers
            .as_slice::<f32>()
            .map(|values| values[row])
            .or_else(|| Some(numbers.to_vec::<f32>()?[row]))
            .unwrap();
        assert_eq!(
            annotation.properties[weight.unwrap()],
            PropertyValue::Float32(value)
        );
        if id % 1009 == 0 {
            let bytes = server.get(&format!("/a/annotations/by_id/{id}"));
            let (single, related) = layout.decode_single(&bytes, 1).unwrap();
            assert_eq!(&single, annotation);
            let object = u64::try_from(owners.numbers()[rows[0]]).unwrap();
            assert_eq!(related, [vec![object]]);
            let list = server.get(&format!("/a/annotations/related_object/{object}"));
            let list = AnnotationList::decode(&list, &layout).unwrap();
            assert!(list.ids.contains(&id) && list.ids.len() == 99 + 93);
        }
    }
    let beyond = format!("/a/annotations/by_id/{}", links.len());
    assert_eq!(server.send("GET", &beyond, &[]).status, 404);

    // An export has the same ids.
    let out = stores.folder.path().join("out");
    block_on(export(
        &dataset,
        out.as_path(),
        &ExportOptions::new(),
        &|_, _| {},
    ))
    .unwrap();
    for file in [
        "annotations/by_id/77",
        "annotations/spatial0/0_0_0",
        "skeletons/7",
    ] {
        assert!(
            fs::read(out.join(file)).unwrap() == server.get(&format!("/a/{file}")),
            "{file}"
        );
    }
}

/// Skeletons and meshes that exceed the memory are encoded in temporary files, with the same bytes.
#[test]
fn objects_that_exceed_the_memory_are_the_same() {
    let check = |address: &str, paths: &[&str]| {
        let within = TestServer::start(&[("a", address)], ServeOptions::new());
        let beyond = ServeOptions::new().encoding(1000).objects(2000);
        let beyond = TestServer::start(&[("a", address)], beyond);
        for path in paths {
            let path = format!("/a/{path}");
            let whole = within.get(&path);
            for _ in 0..2 {
                let stored = beyond.send("GET", &path, &[]);
                assert_eq!(stored.status, 200, "{path}");
                assert!(stored.body == whole, "{path}: {} bytes", whole.len());
            }
            let half = whole.len() / 2;
            let range = format!("bytes={half}-{}", half + 9);
            let part = beyond.send("GET", &path, &[("Range", &range)]);
            assert_eq!(part.status, 206, "{path}");
            assert_eq!(part.body, whole[half..half + 10], "{path}");
            let head = beyond.send("HEAD", &path, &[]);
            let tag = head.header("etag").unwrap();
            let same = beyond.send("GET", &path, &[("If-None-Match", tag)]);
            assert_eq!((same.status, same.body.len()), (304, 0), "{path}");
        }
        for path in ["skeletons/99999", "meshes/99999.index", "groups/99999"] {
            let missing = beyond.send("GET", &format!("/a/{path}"), &[]);
            assert_eq!(missing.status, 404, "{path}");
        }
    };
    // Two objects with coarser levels.
    let meshes = TestStores::new();
    let files = ["meshes/7.index", "meshes/7", "meshes/8.index", "meshes/8"];
    check(&surface_with_levels(&meshes), &files);
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Mesh, &surface(300));
    check(&address, &["meshes/0.index", "meshes/0"]);
    let address = stores.create("b.zv", GeometryKind::Skeletons, &trees(3, 3000));
    check(&address, &["skeletons/1", "skeletons/2"]);
    let address = stores.create("c.zv", GeometryKind::Skeletons, &trees(1, 3000));
    check(&address, &["skeletons/0"]);
    let address = stores.create("d.zv", GeometryKind::Streamlines, &grouped_paths(300, 90));
    check(&address, &["skeletons/1", "groups/0", "groups/2"]);
}

/// A mesh whose triangles lie at one place cannot be divided. It is refused instead of being
/// encoded with too much memory.
#[test]
fn objects_beyond_the_memory_that_cannot_be_divided_are_refused() {
    let stores = TestStores::new();
    let mut geometry = surface(4);
    // The distant triangle makes the nodes large.
    let mut positions: Vec<f32> = geometry.positions.to_vec().unwrap();
    positions.extend([1e7, 0.0, 0.0, 1e7, 1e7, 0.0, 0.0, 1e7, 1e7]);
    geometry.positions = NumericColumn::float32(3, positions);
    geometry.links.ends = geometry.links.ends.repeat(60_000);
    geometry.links.ends.extend([16, 17, 18]);
    let address = stores.create("a.zv", GeometryKind::Mesh, &geometry);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new().encoding(1000));
    let refused = server.send("GET", "/a/meshes/0.index", &[]);
    assert_eq!(refused.status, 413, "{}", refused.text());
    let why = refused.text();
    assert!(why.contains("all close to each other"), "{why}");
}

/// Points of a coarser level are on the first level of the index, whether level 0 repeats them or not.
#[test]
fn points_of_coarser_levels_come_first() {
    for is_additive in [false, true] {
        let stores = TestStores::new();
        let address = stores.create("a.zv", GeometryKind::Points, &points(12_000));
        let mut levels = AutoLevels::default();
        (levels.levels, levels.additive) = (Some(1), is_additive);
        let options = PyramidOptions::new().levels(levels);
        block_on(build_pyramid(address.as_str(), &options)).unwrap();
        let dataset = block_on(Dataset::open(address.as_str())).unwrap();
        let query = Query::new().level(LevelChoice::Number(LevelId::new(1)));
        let coarse: Vec<f32> = block_on(dataset.query(&query))
            .unwrap()
            .positions
            .to_vec()
            .unwrap();
        let server = TestServer::start(&[("a", &address)], ServeOptions::new());
        let (info, found) = annotations(&server, "/a/annotations");
        assert_eq!(found.len(), 12_000);
        let layout = RecordLayout::of(&info);
        let list = server.get("/a/annotations/spatial0/0_0_0");
        let first = AnnotationList::decode(&list, &layout).unwrap();
        let bits = |point: &[f32]| point.iter().map(|at| at.to_bits()).collect();
        let coarse: BTreeSet<Vec<u32>> = coarse.chunks(3).map(bits).collect();
        let first: BTreeSet<Vec<u32>> = first
            .annotations
            .iter()
            .map(|point| bits(&point.coordinates))
            .collect();
        assert!(first.len() > 1000 && coarse.len() > 1000);
        assert!(
            first.is_subset(&coarse) || coarse.is_subset(&first),
            "{is_additive}"
        );
    }
}

/// Coarser levels of skeletons are layers of their own, in exports too.
#[test]
fn levels_of_skeletons_are_layers() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Skeletons, &trees(20, 60));
    let mut levels = AutoLevels::default();
    levels.levels = Some(1);
    let options = PyramidOptions::new().levels(levels);
    block_on(build_pyramid(address.as_str(), &options)).unwrap();
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let out = stores.folder.path().join("out");
    let options = ExportOptions::new();
    let report = block_on(export(&dataset, out.as_path(), &options, &|_, _| {})).unwrap();
    let folders: Vec<String> = report.view.layers().iter().map(Layer::folder).collect();
    assert_eq!(folders, ["skeletons", "skeletons_level1"]);
    for (folder, level) in folders.iter().zip(0..) {
        let info = server.get(&format!("/a/{folder}/info"));
        assert_eq!(info, fs::read(out.join(folder).join("info")).unwrap());
        let info = SkeletonInfo::parse(&info).unwrap();
        let bytes = server.get(&format!("/a/{folder}/7"));
        assert_eq!(bytes, fs::read(out.join(folder).join("7")).unwrap());
        let skeleton = Skeleton::decode(&bytes, &info.vertex_attributes).unwrap();
        let query = Query::new()
            .objects([7])
            .level(LevelChoice::Number(LevelId::new(level)));
        let expected = block_on(dataset.query(&query)).unwrap();
        let positions: Vec<f32> = expected.positions.to_vec().unwrap();
        assert_eq!(skeleton.positions.as_flattened(), positions);
    }
    assert_eq!(server.send("GET", "/a/skeletons_level2/7", &[]).status, 404);
}

/// Creates a store of paths whose group 0 has the objects 0 and 1, and one that the store lacks.
fn paths_with_absent_member(stores: &TestStores) -> String {
    let mut geometry = paths(30, 9);
    geometry.groups = [(0, vec![0, 1, 29]), (1, vec![2, 3])].into();
    let address = stores.create("a.zv", GeometryKind::Streamlines, &geometry);
    let objects = geometry.owners.ids_mut().unwrap();
    objects[29] = 999;
    geometry.groups.insert(0, vec![0, 1, 999]);
    let other = stores.create("other.zv", GeometryKind::Streamlines, &geometry);
    // A store with such a group cannot be created. Its seal names the sizes of the files.
    for (name, bytes) in files(&Path::new(&other).join("0/groups")) {
        if !name.ends_with("zarr.json") {
            fs::write(Path::new(&address).join("0/groups").join(name), bytes).unwrap();
        }
    }
    address
}

const OF_GROUP: [&str; 2] = ["groups/0", "annotations/related_group/0"];

/// The server had no skeleton and no annotations of such a group.
#[test]
fn groups_with_absent_members_are_those_of_an_export() {
    let stores = TestStores::new();
    let address = paths_with_absent_member(&stores);
    let open = OpenOptions::default().seal(false);
    let dataset = block_on(Dataset::open_with(address.as_str(), &open)).unwrap();
    let absent = block_on(dataset.query(&Query::new().groups([0])));
    assert!(absent.unwrap_err().is_not_found());
    let out = stores.folder.path().join("out");
    let options = ExportOptions::new();
    block_on(export(&dataset, out.as_path(), &options, &|_, _| {})).unwrap();
    let within = ServeOptions::new();
    let beyond = ServeOptions::new().encoding(100).objects(200);
    for options in [within, beyond] {
        let server = TestServer::start_with(&[("a", &address)], options, &open);
        for file in OF_GROUP {
            let written = fs::read(out.join(file)).unwrap();
            assert!(server.get(&format!("/a/{file}")) == written, "{file}");
        }
    }
}

/// Only absent members are left out of groups.
#[test]
fn groups_with_damaged_members_are_refused() {
    let stores = TestStores::new();
    let address = paths_with_absent_member(&stores);
    let open = OpenOptions::default().cache(0).seal(false);
    let server = TestServer::start_with(&[("a", &address)], ServeOptions::new(), &open);
    server.get("/a/annotations/info");
    let folder = Path::new(&address).join("0/vertices");
    for (name, bytes) in files(&folder) {
        if !name.ends_with("zarr.json") {
            fs::write(folder.join(name), vec![0xff; bytes.len()]).unwrap();
        }
    }
    for file in OF_GROUP {
        let refused = server.send("GET", &format!("/a/{file}"), &[]);
        assert_eq!(refused.status, 500, "{file}");
        assert!(refused.text().contains("is damaged"), "{}", refused.text());
    }
}

/// Exports a store and compares the files of layers with the responses of a server.
fn check_files(kind: GeometryKind, geometry: &GeometryBuilder, files: &[&str]) {
    let stores = TestStores::new();
    let address = stores.create("a.zv", kind, geometry);
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let out = stores.folder.path().join("out");
    block_on(export(
        &dataset,
        out.as_path(),
        &ExportOptions::new(),
        &|_, _| {},
    ))
    .unwrap();
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    for file in files {
        let written = fs::read(out.join(file)).unwrap();
        assert!(server.get(&format!("/a/{file}")) == written, "{file}");
    }
    let missing = files
        .last()
        .unwrap()
        .replace("/0.", "/9.")
        .replace("/7", "/70000");
    assert_eq!(
        server.send("GET", &format!("/a/{missing}"), &[]).status,
        404
    );
}

#[test]
fn skeletons_are_those_of_an_export() {
    let files = [
        "skeletons/info",
        "skeletons/0",
        "skeletons/39",
        "skeletons/7",
    ];
    check_files(GeometryKind::Skeletons, &trees(40, 30), &files);
    check_files(GeometryKind::Streamlines, &paths(80, 9), &files);
}

#[test]
fn meshes_are_those_of_an_export() {
    let mut geometry = surface(20);
    check_files(
        GeometryKind::Mesh,
        &geometry,
        &["meshes/info", "meshes/0", "meshes/0.index"],
    );
    geometry.owners = VertexOwners::Vertices(vec![7; 400]);
    check_files(
        GeometryKind::Mesh,
        &geometry,
        &["meshes/info", "meshes/7", "meshes/7.index"],
    );
}

/// Creates a store of a surface with coarser levels, in two objects.
fn surface_with_levels(stores: &TestStores) -> String {
    let mut geometry = surface(200);
    geometry.owners = VertexOwners::Vertices(vec![7; 40_000]);
    let small = surface(4);
    let offset = i64::try_from(geometry.positions.len()).unwrap();
    let positions: Vec<f32> = [&geometry, &small]
        .iter()
        .flat_map(|geometry| geometry.positions.to_vec::<f32>().unwrap())
        .collect();
    geometry.positions = NumericColumn::float32(3, positions);
    geometry
        .links
        .ends
        .extend(small.links.ends.iter().map(|row| row + offset));
    geometry.owners.ids_mut().unwrap().extend([8; 16]);
    let address = stores.create("a.zv", GeometryKind::Mesh, &geometry);
    let mut levels = AutoLevels::default();
    levels.levels = Some(2);
    let options = PyramidOptions::new().levels(levels);
    block_on(build_pyramid(address.as_str(), &options)).unwrap();
    address
}

/// Returns the lattice points of the fragments of a level, read by ranges.
fn lattice(
    manifest: &MultilodManifest,
    level: usize,
    read: impl Fn(u64, u64) -> Vec<u8>,
) -> BTreeSet<[u32; 3]> {
    let mut points = BTreeSet::new();
    for place in manifest.fragments().filter(|place| place.level == level) {
        let mesh = QuantizedMesh::decode(&read(place.start, place.end), 100_000).unwrap();
        assert!(!mesh.triangles.is_empty());
        points.extend(mesh.positions.iter().map(|q| {
            let [x, y, z] = place.node.map(|along| along * 65_535);
            [q[0] + x, q[1] + y, q[2] + z]
        }));
    }
    points
}

/// Checks that the vertices of a level of an object are points of the lattice.
#[track_caller]
fn check_vertices(
    dataset: &Dataset,
    manifest: &MultilodManifest,
    level: u32,
    read: impl Fn(u64, u64) -> Vec<u8>,
) {
    let query = Query::new()
        .objects([7])
        .level(LevelChoice::Number(LevelId::new(level)));
    let positions: Vec<f32> = block_on(dataset.query(&query))
        .unwrap()
        .positions
        .to_vec()
        .unwrap();
    let points = lattice(manifest, usize::try_from(level).unwrap(), read);
    assert!(points.len() * 3 >= positions.len());
    let extent = f64::from(manifest.chunk_shape[0]) * f64::from(level).exp2();
    for position in positions.chunks(3) {
        let along = |axis: usize| {
            let along = f64::from(position[axis]) - f64::from(manifest.grid_origin[axis]);
            let steps = (along / extent * 65_535.0).round();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a test"
            )]
            let steps = steps as u32;
            steps
        };
        let point = [along(0), along(1), along(2)];
        assert!(points.contains(&point), "{position:?} {point:?}");
    }
}

#[test]
fn levels_of_meshes_are_those_of_the_store() {
    let stores = TestStores::new();
    let address = surface_with_levels(&stores);
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let manifest = MultilodManifest::decode(&server.get("/a/meshes/7.index")).unwrap();
    assert_eq!(manifest.levels.len(), 3);
    assert!(manifest.levels[0].nodes.len() > 4);
    let ranged = |start: u64, end: u64| {
        let range = format!("bytes={start}-{}", end - 1);
        let response = server.send("GET", "/a/meshes/7", &[("Range", &range)]);
        assert_eq!(response.status, 206);
        let whole = format!("bytes {start}-{}/{}", end - 1, manifest.data_size());
        assert_eq!(response.header("content-range"), Some(whole.as_str()));
        response.body
    };
    for level in 0..3 {
        check_vertices(&dataset, &manifest, level, ranged);
    }
    let small = MultilodManifest::decode(&server.get("/a/meshes/8.index")).unwrap();
    assert_eq!(small.levels[0].nodes.len(), 1);
    for path in ["9", "9.index", "7.x", "7.index.index", "07", "7:0", "-7"] {
        let response = server.send("GET", &format!("/a/meshes/{path}"), &[]);
        assert_eq!(response.status, 404, "{path}");
    }
}

#[test]
fn shards_have_fragments_before_their_manifest() {
    let stores = TestStores::new();
    let address = surface_with_levels(&stores);
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let exported = |name: &str, options: &ExportOptions| {
        let out = stores.folder.path().join(name);
        block_on(export(&dataset, out.as_path(), options, &|_, _| {})).unwrap();
        out.join("meshes")
    };
    let files = exported("files", &ExportOptions::new());
    let shards = exported("shards", &ExportOptions::new().sharded(true));
    let info = MultilodMeshInfo::parse(&fs::read(shards.join("info")).unwrap()).unwrap();
    let spec = info.sharding.unwrap();
    for object in [7_u64, 8] {
        let name = spec.file_name(spec.locate(object).shard);
        let bytes = fs::read(shards.join(name)).unwrap();
        let shard = ShardFile::parse(spec, &bytes).unwrap();
        let manifest = shard.get(object, 1 << 20).unwrap().unwrap();
        let data = fs::read(files.join(object.to_string())).unwrap();
        let index = fs::read(files.join(format!("{object}.index"))).unwrap();
        assert_eq!(manifest, index);
        let both = [data, index].concat();
        assert!(bytes.windows(both.len()).any(|part| part == both));
    }
    let legacy = ExportOptions::new().mesh_format(MeshFormat::Legacy);
    let legacy = exported("legacy", &legacy);
    LegacyMeshInfo::parse(&fs::read(legacy.join("info")).unwrap()).unwrap();
    let fragment = fs::read(legacy.join("8:0:0")).unwrap();
    let fragment = LegacyMeshFragment::decode(&fragment).unwrap();
    assert_eq!(
        (fragment.positions.len(), fragment.triangles.len()),
        (16, 18)
    );
}

#[test]
fn objects_without_triangles_are_left_out_of_meshes() {
    let stores = TestStores::new();
    let mut geometry = surface(4);
    geometry.owners = VertexOwners::Vertices([vec![1; 8], vec![2; 8]].concat());
    geometry.links.ends.truncate(3);
    let address = stores.create("a.zv", GeometryKind::Mesh, &geometry);
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let out = stores.folder.path().join("out");
    let report = block_on(export(
        &dataset,
        out.as_path(),
        &ExportOptions::new(),
        &|_, _| {},
    ))
    .unwrap();
    assert_eq!(report.view.layers()[0].items, 1);
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("1 objects without triangles"))
    );
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    server.get("/a/meshes/1.index");
    assert_eq!(server.send("GET", "/a/meshes/2.index", &[]).status, 404);
}

/// A request began to plan the new layers, and the next one began again if its client left.
#[test]
fn a_change_is_shown_although_clients_disconnect() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(3000));
    let network = SimulatedNetwork {
        latency: Duration::from_millis(100),
        bandwidth: 0,
    };
    // Otherwise, no look shows a change.
    let settled_after = Duration::from_millis(1);
    let open = OpenOptions::default()
        .cache(0)
        .settled_after(settled_after)
        .simulate_network(network);
    let server = TestServer::start_with(&[("a", &address)], ServeOptions::new(), &open);
    let info = "/a/annotations/info";
    let before = server.get(info);
    let editor = block_on(Editor::open(address.as_str())).unwrap();
    let mut more = points(3000);
    more.owners = VertexOwners::Vertices((0..3000).map(|at| 100 + at / 50).collect());
    block_on(editor.append(&more.build().unwrap(), OutOfBounds::Expand)).unwrap();
    // A look at the head takes 100 ms, and planning at least 400 ms.
    let shown = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(200));
        let found = server.get_within(info, Duration::from_millis(250));
        found.filter(|found| *found != before)
    });
    let info = AnnotationInfo::parse(&shown.unwrap()).unwrap();
    assert_eq!(info.kind, AnnotationKind::Point);
}

#[test]
fn a_change_of_the_store_changes_the_responses() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(300));
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let cell = "/a/annotations/spatial0/0_0_0";
    let before = server.send("GET", cell, &[]);
    let tag = before.header("etag").unwrap().to_owned();
    let same = server.send("GET", cell, &[("If-None-Match", &tag)]);
    assert_eq!((same.status, same.body.len()), (304, 0));

    let editor = block_on(Editor::open(address.as_str())).unwrap();
    let mut more = points(300);
    more.owners = VertexOwners::Vertices((0..300).map(|at| 100 + at / 50).collect());
    block_on(editor.append(&more.build().unwrap(), OutOfBounds::Expand)).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    let after = server.send("GET", cell, &[("If-None-Match", &tag)]);
    assert_eq!(after.status, 200);
    assert_ne!(after.header("etag"), Some(tag.as_str()));
    let (_, found) = annotations(&server, "/a/annotations");
    assert_eq!(found.len(), 600);
}

/// A client that requests no layer sees the change too.
#[test]
fn a_change_of_the_store_changes_the_state_of_the_viewer() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(300));
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let state = "/state.json";
    let before = server.get(state);
    let editor = block_on(Editor::open(address.as_str())).unwrap();
    let more = Geometry::builder(NumericColumn::float32(3, [4000.0; 30]))
        .object_ids(vec![100; 10])
        .vertex(vec![Column::new(
            "depth",
            NumericColumn::float32(1, [1.0; 10]),
        )]);
    block_on(editor.append(&more.build().unwrap(), OutOfBounds::Expand)).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_ne!(server.get(state), before);
}
