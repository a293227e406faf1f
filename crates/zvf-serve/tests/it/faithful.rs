//! Layers hold all that the formats can hold, and notes name the rest.

use std::{fs, path::Path};

use zvf::{
    AxisSpec, Column, CreateOptions, Dataset, Design, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, OpenOptions, VertexOwners,
};
use zvf_precomputed::{
    AnnotationInfo, AnnotationList, Dimension, PropertyType, PropertyValue, RecordLayout,
    SegmentProperties, SegmentPropertyValues,
};
use zvf_serve::{
    ExportError, ExportOptions, ExportReport, ExportTarget, Layer, LayerKind, LayerSource,
    ServeOptions, Server, export, plan_export,
};
use zvf_testkit::golden::Golden;

use crate::{
    client::TestServer,
    layers::annotations,
    stores::{TestStores, block_on, graph, paths, points, surface, trees},
};

/// An id that 40 bits do not hold.
const LARGE: i64 = 720_575_940_621_234_567;

/// Creates a store of a design and returns its address.
fn create(stores: &TestStores, geometry: &GeometryBuilder, design: Design) -> String {
    let address = stores.address("a.zv");
    let options = CreateOptions::default();
    block_on(zvf::create(
        address.as_str(),
        geometry.clone().build().unwrap(),
        design,
        &options,
    ))
    .unwrap();
    address
}

fn exported(
    stores: &TestStores,
    address: &str,
    options: &ExportOptions,
) -> Result<ExportReport, ExportError> {
    let out = stores.folder.path().join("out");
    let dataset = block_on(Dataset::open(address)).unwrap();
    block_on(export(&dataset, out.as_path(), options, &|_, _| {}))
}

#[track_caller]
fn check_note(notes: &[String], expected: &str) {
    let is_found = notes.iter().any(|note| note.contains(expected));
    assert!(is_found, "{expected}: {notes:?}");
}

/// Paths of objects whose ids have more than 40 bits were missing.
#[test]
fn paths_of_every_object_are_served() {
    let stores = TestStores::new();
    let objects = [5, 17, (1 << 40) - 1, 1 << 40, LARGE, 1 << 62];
    let mut geometry = paths(6, 9);
    *geometry.owners.ids_mut().unwrap() = objects.to_vec();
    let address = stores.create("a.zv", GeometryKind::Polylines, &geometry);
    // An index of all cells, and none: cells are read by their boxes.
    for bytes in [1 << 20, 0] {
        let options = ServeOptions::new().coarse_cells(bytes);
        let server = TestServer::start(&[("a", &address)], options);
        let (info, found) = annotations(&server, "/a/annotations");
        assert_eq!(found.len(), objects.len());
        let layout = RecordLayout::of(&info);
        for (id, annotation) in &found {
            let bytes = server.get(&format!("/a/annotations/by_id/{id}"));
            let (single, related) = layout.decode_single(&bytes, 1).unwrap();
            assert_eq!(&single, annotation);
            let [object] = related[0][..] else {
                panic!("{related:?}");
            };
            let list = server.get(&format!("/a/annotations/related_object/{object}"));
            let list = AnnotationList::decode(&list, &layout).unwrap();
            assert_eq!((list.ids, object), (vec![*id], *id));
        }
        let absent = format!("/a/annotations/by_id/{}", u64::MAX);
        assert_eq!(server.send("GET", &absent, &[]).status, 404);
    }
}

/// Creates a store in which this vertex has a coordinate beyond 32-bit floats.
fn beyond(
    stores: &TestStores,
    kind: GeometryKind,
    mut geometry: GeometryBuilder,
    vertex: usize,
) -> String {
    let positions: Vec<f32> = geometry.positions.to_vec().unwrap();
    let mut positions: Vec<f64> = positions.into_iter().map(f64::from).collect();
    positions[vertex * 3] = 1e39;
    geometry.positions = NumericColumn::float64(3, positions);
    create(stores, &geometry, Design::new(kind).chunk_shape([1e40; 3]))
}

/// A server said nothing about them.
#[test]
fn what_a_server_leaves_out_is_noted() {
    let mut short = paths(4, 5);
    short = short.paths(vec![0, 1, 10, 15, 20], None);
    let mut mesh = surface(3);
    mesh.owners = VertexOwners::Vertices(vec![4; 9]);
    let cases = [
        (
            GeometryKind::Polylines,
            short,
            &[
                "2 annotations of kind polyline left out",
                "1 paths left out of the skeletons",
            ][..],
        ),
        (
            GeometryKind::Points,
            points(60),
            &["1 annotations of kind point left out"],
        ),
        (
            GeometryKind::Graphs,
            graph(12),
            &[
                "3 annotations of kind line left out",
                "1 objects left out of the skeletons",
            ],
        ),
        (
            GeometryKind::Skeletons,
            trees(3, 5),
            &["1 objects left out of the skeletons"],
        ),
        (
            GeometryKind::Mesh,
            mesh,
            &["1 objects left out of the meshes"],
        ),
    ];
    for (kind, geometry, expected) in cases {
        let stores = TestStores::new();
        let address = beyond(&stores, kind, geometry, 4);
        let server = TestServer::start(&[("a", &address)], ServeOptions::new());
        for note in expected {
            check_note(&server.notes, note);
        }
        if kind != GeometryKind::Mesh {
            let report = exported(&stores, &address, &ExportOptions::new()).unwrap();
            check_note(&report.notes, "left out");
        }
    }
}

/// Missing values were those of other objects: the lowest in one layer, and 0 in another.
#[test]
fn missing_values_differ_from_all_others() {
    let stores = TestStores::new();
    let mut geometry = paths(3, 4);
    *geometry.owners.ids_mut().unwrap() = vec![1, 2, 3];
    geometry.objects = Some(vec![1, 3]);
    geometry.object = vec![
        Column::new("count", NumericColumn::from_values(1, [40_i32, 70])),
        Column::new(
            "wide",
            NumericColumn::from_values(1, [(1_i32 << 30) | 1, -7]),
        ),
        Column::new("vol", NumericColumn::float64(1, [2.5, 1e300])),
        Column::new("root", NumericColumn::int64(1, [LARGE, LARGE + 2])),
        Column::new("tint", NumericColumn::from_values(3, [9_u8; 6])),
    ];
    let address = stores.create("a.zv", GeometryKind::Polylines, &geometry);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let report = exported(&stores, &address, &ExportOptions::new()).unwrap();

    let (info, found) = annotations(&server, "/a/annotations");
    let value = |object: u64, name: &str| {
        let place = info.properties.iter().position(|of| of.id == name);
        found[&object].properties[place.unwrap()]
    };
    for name in ["count", "wide", "vol", "root"] {
        let missing = value(2, name);
        assert!(
            matches!(missing, PropertyValue::Float32(number) if number.is_nan()),
            "{name}: {missing:?}"
        );
    }
    assert_eq!(value(3, "count"), PropertyValue::Float32(70.0));
    assert_eq!(value(3, "vol"), PropertyValue::Float32(f32::INFINITY));
    assert_eq!(value(2, "tint"), PropertyValue::Rgb([0; 3]));

    let file = "skeletons/properties/info";
    let written = fs::read(stores.folder.path().join("out").join(file)).unwrap();
    assert_eq!(server.get(&format!("/a/{file}")), written);
    let segments = SegmentProperties::parse(&written).unwrap();
    let number = |data_type: &str, values: [f64; 3]| SegmentPropertyValues::Number {
        data_type: data_type.to_owned(),
        values: values.to_vec(),
    };
    let roots = [LARGE.to_string(), String::new(), (LARGE + 2).to_string()];
    for (name, expected) in [
        ("count", number("int32", [40.0, -1.0, 70.0])),
        ("wide", number("int32", [1_073_741_825.0, -14.0, -7.0])),
        ("vol", number("float32", [2.5, -1.0, -1.0])),
        ("root", SegmentPropertyValues::Text(roots.to_vec())),
        ("tint_0", number("int32", [9.0, -1.0, 9.0])),
    ] {
        let mut properties = segments.properties.iter();
        let property = properties.find(|of| of.description.as_deref() == Some(name));
        assert_eq!(property.unwrap().values, expected, "{name}");
    }

    for notes in [&server.notes, &report.notes] {
        for expected in [
            "1 values of attribute count are missing, and shown as NaN",
            "1 values of attribute tint are missing, and shown as zeros",
            "attribute wide has missing values and large integers, which are rounded to float32",
            "properties of objects: 1 values of count are missing, and shown as -1",
            "properties of objects: 2 values of vol are missing or not finite as float32, and shown as -1",
            "properties of objects: attribute vol is rounded to float32",
            "properties of objects: attribute root has integers above 32 bits, which are text",
            "properties of objects: 1 values of root are missing, and shown as empty text",
        ] {
            check_note(notes, expected);
        }
    }
}

/// Integers without missing values keep their type.
#[test]
fn integers_without_missing_values_are_integers() {
    let stores = TestStores::new();
    let mut geometry = paths(2, 4);
    let counts = NumericColumn::from_values(1, [40_i32, 70]);
    geometry.object = vec![Column::new("count", counts)];
    let address = stores.create("a.zv", GeometryKind::Polylines, &geometry);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let info = AnnotationInfo::parse(&server.get("/a/annotations/info")).unwrap();
    assert_eq!(info.properties[0].kind, PropertyType::Int32);
    let is_expected = |note: &String| note.contains("has no unit");
    assert!(server.notes.iter().all(is_expected), "{:?}", server.notes);
}

/// More than 1000 texts had no labels.
#[test]
fn all_texts_have_labels() {
    let stores = TestStores::new();
    let mut geometry = paths(1200, 2);
    let names = (0..1200).map(|at| Some(format!("cell_{at}")));
    geometry.object = vec![Column::text("name", names)];
    let address = stores.create("a.zv", GeometryKind::Polylines, &geometry);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let (info, found) = annotations(&server, "/a/annotations");
    assert_eq!(info.properties[0].labels.len(), 1201);
    let PropertyValue::Uint16(code) = found[&1100].properties[0] else {
        panic!("{:?}", found[&1100]);
    };
    let mut labels = info.properties[0].labels.iter();
    let label = labels.find(|of| (of.value - f64::from(code)).abs() < 0.5);
    assert_eq!(label.unwrap().label, "cell_1100");
}

#[test]
fn texts_of_skeletons_are_noted() {
    let stores = TestStores::new();
    let mut geometry = trees(2, 3);
    let kinds = ["soma", "axon", "axon", "soma", "dendrite", "axon"];
    geometry.vertex = vec![Column::text("kind", kinds.map(Some))];
    let address = stores.create("a.zv", GeometryKind::Skeletons, &geometry);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let expected = "attribute kind is text, for which skeletons have numbers without labels";
    check_note(&server.notes, expected);
}

/// Writes a recorded store to a folder and returns its address.
fn recorded(stores: &TestStores, archive: &str, path: &str) -> String {
    let address = stores.address("recorded.zv");
    for (name, bytes) in Golden::open(archive).store(path) {
        let file = Path::new(&address).join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
    address
}

#[test]
fn points_of_several_objects_are_noted() {
    let stores = TestStores::new();
    let path = "explicit_fragments/store.zarrvectors";
    let address = recorded(&stores, "zvf-09", path);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let report = exported(&stores, &address, &ExportOptions::new()).unwrap();
    for notes in [&server.notes, &report.notes] {
        check_note(notes, "vertices belong to several objects");
    }
}

/// The server started, and all annotations failed.
#[test]
fn points_that_coarser_levels_complete_are_refused() {
    let stores = TestStores::new();
    let address = recorded(&stores, "zvf-drafts", "points_additive");
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let sources = vec![LayerSource::store("a", dataset)];
    let refused = block_on(Server::bind(sources, &ServeOptions::new(), &|_, _| {}));
    let error = refused.unwrap_err();
    let source = core::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("`zvf export precomputed`"), "{source}");
    let report = exported(&stores, &address, &ExportOptions::new()).unwrap();
    assert!(report.view.layers()[0].items > 0);
}

/// Channels were drawn as nanometres, and days as seconds.
#[test]
fn axes_that_are_no_lengths_are_not_drawn_as_lengths() {
    let length = |name: &str| AxisSpec::new(name).unit("micrometer");
    let served = |third: AxisSpec| {
        let stores = TestStores::new();
        let mut design = Design::new(GeometryKind::Polylines).chunk_shape([25.0; 3]);
        design.axes = Some(vec![length("x"), length("y"), third]);
        let address = create(&stores, &paths(3, 4), design);
        let server = TestServer::start(&[("a", &address)], ServeOptions::new());
        let info = AnnotationInfo::parse(&server.get("/a/annotations/info")).unwrap();
        let skeletons = server.send("GET", "/a/skeletons/info", &[]).status;
        let third = info.dimensions.0[2].clone();
        (third, skeletons, server.notes.clone())
    };
    let dimension = |name: &str, scale: f64, unit: &str| Dimension {
        name: name.to_owned(),
        scale,
        unit: unit.to_owned(),
    };
    let (channel, skeletons, notes) = served(AxisSpec::new("c").kind("channel"));
    assert_eq!((channel, skeletons), (dimension("c", 1.0, ""), 404));
    assert_eq!(notes, Vec::<String>::new());
    let (day, skeletons, notes) = served(AxisSpec::new("t").kind("time").unit("day"));
    assert_eq!((day, skeletons), (dimension("t", 86_400.0, "s"), 404));
    assert_eq!(notes, Vec::<String>::new());
    let (frame, _, notes) = served(AxisSpec::new("t").kind("time").unit("frame"));
    assert_eq!(frame, dimension("t", 1.0, "s"));
    check_note(&notes, "the unit \"frame\" of axis t");
    check_note(&notes, "1 unit is shown as 1 s");
    let (z, skeletons, _) = served(length("z"));
    assert_eq!((z, skeletons), (dimension("z", 1e-6, "m"), 200));
}

/// Unused numbers of groups counted.
#[test]
fn groups_with_large_numbers_are_shown() {
    let stores = TestStores::new();
    let mut geometry = paths(9, 4);
    geometry.groups = [(0, vec![1, 2]), (70_000, vec![3])].into();
    let address = stores.create("a.zv", GeometryKind::Polylines, &geometry);
    let server = TestServer::start(&[("a", &address)], ServeOptions::new());
    let groups = SegmentProperties::parse(&server.get("/a/groups/properties/info")).unwrap();
    assert_eq!(groups.ids, [0, 70_000]);
}

/// An export without a layer was complete, and missing layers were not named.
#[test]
fn layers_without_content_are_noted() {
    let stores = TestStores::new();
    let mesh = stores.create("mesh.zv", GeometryKind::Mesh, &surface(4));
    let options = ExportOptions::new().layers([LayerKind::Skeletons, LayerKind::Meshes]);
    let report = exported(&stores, &mesh, &options).unwrap();
    let folders: Vec<String> = report.view.layers().iter().map(Layer::folder).collect();
    assert_eq!(folders, ["meshes"]);
    check_note(&report.notes, "the store has no layer skeletons");

    let stores = TestStores::new();
    let streamlines = stores.create("s.zv", GeometryKind::Streamlines, &paths(9, 4));
    let options = ExportOptions::new().layers([LayerKind::Groups]);
    let error = exported(&stores, &streamlines, &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the store has no layer of the kinds groups; it can be exported as annotations, skeletons"
    );

    let stores = TestStores::new();
    let graph = Geometry::builder(NumericColumn::float32(2, [0.0, 0.0, 1.0, 1.0]));
    let graph = create(&stores, &graph, Design::new(GeometryKind::Graphs));
    let options = ExportOptions::new();
    let target = ExportTarget::from(stores.folder.path().join("planned"));
    let (tasks, open) = (zvf::TaskPlanOptions::new(), OpenOptions::default());
    let planned = plan_export(&graph, target, &options, &tasks, &open, &|_, _| {});
    for error in [
        exported(&stores, &graph, &options).unwrap_err(),
        block_on(planned).unwrap_err(),
    ] {
        assert!(matches!(error, ExportError::Nothing(_)), "{error:?}");
    }
    assert!(!stores.folder.path().join("out").exists());
}

/// Validation then reported errors.
#[test]
fn a_target_in_the_store_is_refused() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(60));
    let link = stores.folder.path().join("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&address, &link).unwrap();
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let inside = Path::new(&address).join("out/deep");
    let (options, tasks) = (ExportOptions::new(), zvf::TaskPlanOptions::new());
    let open = OpenOptions::default();
    let mut targets = vec![
        ExportTarget::from(inside.as_path()),
        ExportTarget::from(Path::new(&address)),
        ExportTarget::parse(&format!("file://{}", inside.display())),
    ];
    if link.exists() {
        targets.push(ExportTarget::from(link.join("out")));
    }
    for target in targets {
        let planned = plan_export(
            &address,
            target.clone(),
            &options,
            &tasks,
            &open,
            &|_, _| {},
        );
        let planned = block_on(planned).unwrap_err();
        let refused = block_on(export(&dataset, target, &options, &|_, _| {})).unwrap_err();
        for error in [planned, refused] {
            assert!(matches!(error, ExportError::InStore(_)), "{error:?}");
        }
    }
    assert!(!inside.exists());
    // A name that begins with that of the store is another folder.
    let beside = stores.folder.path().join("a.zv.precomputed");
    block_on(export(&dataset, beside.as_path(), &options, &|_, _| {})).unwrap();
}
