//! The layers of a server hold what the store holds.

use std::{collections::BTreeMap, fs, time::Duration};

use zvf::{Dataset, Editor, Geometry, GeometryKind, OutOfBounds, Query};
use zvf_precomputed::{Annotation, AnnotationInfo, AnnotationList, RecordLayout};
use zvf_serve::{ExportOptions, ServeOptions, export};

use crate::{
    client::TestServer,
    stores::{TestStores, block_on, paths, points, surface, trees},
};

/// Reads the annotations of every cell of every level, with the number of cells that list each.
fn annotations(server: &TestServer, layer: &str) -> (AnnotationInfo, BTreeMap<u64, Annotation>) {
    let info = AnnotationInfo::parse(&server.get(&format!("{layer}/info"))).unwrap();
    let layout = RecordLayout::of(&info);
    let mut found = BTreeMap::new();
    for (at, level) in info.spatial.iter().enumerate() {
        let mut here = BTreeMap::new();
        for cell in cells(&level.grid_shape) {
            let answer = server.ask("GET", &format!("{layer}/spatial{at}/{cell}"), &[]);
            if answer.status == 404 {
                continue;
            }
            let list = AnnotationList::decode(&answer.body, &layout).unwrap();
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
    let answer = block_on(dataset.query(&Query::new().row_ids())).unwrap();
    let ids = answer.row_ids.unwrap();
    assert_eq!(found.len(), ids.len());
    let positions: Vec<f32> = answer.positions.to_vec().unwrap();
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
        assert_eq!(server.ask("GET", path, &[]).status, 404, "{path}");
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
    let dataset = block_on(Dataset::open(address)).unwrap();
    let query = Query::new().objects([17]);
    let answer = block_on(dataset.query(&query)).unwrap();
    let positions: Vec<f32> = answer.positions.to_vec().unwrap();
    assert_eq!(found[&17].coordinates, positions);
    let layout = RecordLayout::of(&info);
    let bytes = server.get("/a/annotations/by_id/17");
    let decoded = layout.decode_single(&bytes, 1).unwrap();
    assert_eq!(decoded, (found[&17].clone(), vec![vec![17]]));
    // The second path of object 17, which has one only.
    let second = format!("/a/annotations/by_id/{}", (1_u64 << 40) + 17);
    assert_eq!(server.ask("GET", &second, &[]).status, 404);
}

/// Exports a store and compares the files of layers with the answers of a server.
fn check_files(kind: GeometryKind, geometry: &Geometry, files: &[&str]) {
    let stores = TestStores::new();
    let address = stores.create("a.zv", kind, geometry);
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let out = stores.folder.path().join("out");
    block_on(export(&dataset, &out, &ExportOptions::new(), &|_, _| {})).unwrap();
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    for file in files {
        let written = fs::read(out.join(file)).unwrap();
        assert!(server.get(&format!("/a/{file}")) == written, "{file}");
    }
    let missing = files
        .last()
        .unwrap()
        .replace("/0:", "/9:")
        .replace("/7", "/70000");
    assert_eq!(server.ask("GET", &format!("/a/{missing}"), &[]).status, 404);
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
        &["meshes/info", "meshes/0:0:0", "meshes/0:0"],
    );
    geometry.object_ids = Some(vec![7; 400]);
    check_files(
        GeometryKind::Mesh,
        &geometry,
        &["meshes/info", "meshes/7:0:0", "meshes/7:0"],
    );
}

#[test]
fn a_change_of_the_store_changes_the_answers() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(300));
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let cell = "/a/annotations/spatial0/0_0_0";
    let before = server.ask("GET", cell, &[]);
    let tag = before.header("etag").unwrap().to_owned();
    let same = server.ask("GET", cell, &[("If-None-Match", &tag)]);
    assert_eq!((same.status, same.body.len()), (304, 0));

    let editor = block_on(Editor::open(address.as_str())).unwrap();
    let mut more = points(300);
    more.object_ids = Some((0..300).map(|at| 100 + at / 50).collect());
    block_on(editor.append(&more, OutOfBounds::Expand)).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    let after = server.ask("GET", cell, &[("If-None-Match", &tag)]);
    assert_eq!(after.status, 200);
    assert_ne!(after.header("etag"), Some(tag.as_str()));
    let (_, found) = annotations(&server, "/a/annotations");
    assert_eq!(found.len(), 600);
}
