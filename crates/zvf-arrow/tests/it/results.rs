//! Whole results: every kind of geometry, schemas, and writing back.

use arrow_array::{cast::AsArray, types::UInt64Type};
use arrow_schema::DataType;
use zvf::{
    Column, CreateOptions, Dataset, Design, Editor, Geometry, GeometryBuilder, GeometryKind,
    LevelId, NumericColumn, OutOfBounds, Query, QueryResult, Store, VertexOwners, numeric::Kind,
};
use zvf_arrow::{ConversionError, ResultBatches, ResultSchemas};

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Returns six vertices with attributes, of two objects.
fn geometry(kind: GeometryKind) -> GeometryBuilder {
    let positions = (0..6_u8).flat_map(|at| [f64::from(at), 1.0, 0.5]);
    let mut geometry = Geometry::builder(NumericColumn::float64(3, positions)).vertex(vec![
        Column::new(
            "fa",
            NumericColumn::float32(1, [0.5, 0.25, 1.0, 0.0, 2.0, 3.0]),
        ),
        Column::new("rgb", NumericColumn::from_values(3, 0..18_u8)),
        Column::text("label", ["a", "b", "a", "c", "a", "b"].map(Some)),
    ]);
    // A line has two vertices.
    let ids: &[i64] = if kind == GeometryKind::Lines {
        &[3, 5, 8]
    } else {
        &[3, 8]
    };
    if kind.is_paths() {
        let offsets: &[u64] = if ids.len() == 3 {
            &[0, 2, 4, 6]
        } else {
            &[0, 4, 6]
        };
        geometry = geometry.paths(offsets.to_vec(), ids.to_vec());
    } else if kind != GeometryKind::Points {
        geometry.owners = VertexOwners::Vertices(vec![3, 3, 3, 3, 8, 8]);
    }
    if kind.is_linked() {
        let width = if kind == GeometryKind::Mesh { 3 } else { 2 };
        geometry = geometry.links(
            width,
            if width == 3 {
                vec![0, 1, 2, 1, 2, 3]
            } else {
                vec![0, 1, 1, 2, 2, 3, 4, 5]
            },
        );
    }
    if kind != GeometryKind::Points {
        geometry.objects = Some(ids.to_vec());
        geometry.object = vec![
            Column::new("length", NumericColumn::float64(1, ids.iter().map(|_| 4.5))),
            Column::text("name", ids.iter().map(|_| Some("left"))),
        ];
        geometry.groups = [(1, ids.to_vec()), (5, vec![8])].into();
    }
    geometry
}

fn stored(kind: GeometryKind) -> Dataset {
    let store = Store::create("memory:").unwrap();
    let geometry = geometry(kind);
    let options = CreateOptions::new();
    block_on(zvf::create(
        store.clone(),
        &geometry.build().unwrap(),
        Design::new(kind),
        &options,
    ))
    .unwrap();
    block_on(Dataset::open(store)).unwrap()
}

fn result(kind: GeometryKind) -> QueryResult {
    let query = match kind {
        GeometryKind::Points => Query::new(),
        _ => Query::new().groups([1, 5]),
    };
    block_on(stored(kind).query(&query)).unwrap()
}

#[test]
fn results_of_every_kind_come_back() {
    for kind in GeometryKind::ALL {
        let mut before = result(kind);
        let batches = ResultBatches::new(before.clone()).unwrap();
        assert_eq!(batches.vertices.num_rows(), 6, "{kind:?}");
        assert_eq!(batches.parts.is_some(), kind.is_paths(), "{kind:?}");
        assert_eq!(batches.links.is_some(), kind.is_linked(), "{kind:?}");
        let after = batches.into_result().unwrap();
        // These have no place in the batches.
        before.levels.clear();
        before.notes.clear();
        assert_eq!(after, before, "{kind:?}");
    }
}

#[test]
fn batches_are_written_to_stores() {
    for kind in GeometryKind::ALL {
        let before = result(kind);
        let geometry = ResultBatches::new(before.clone())
            .unwrap()
            .into_geometry()
            .unwrap();
        let store = Store::create("memory:").unwrap();
        let options = CreateOptions::new();
        block_on(zvf::create(
            store.clone(),
            &geometry,
            Design::new(kind),
            &options,
        ))
        .unwrap();
        let dataset = block_on(Dataset::open(store.clone())).unwrap();
        let after = block_on(dataset.query(&Query::new())).unwrap();
        assert_eq!(after.positions, before.positions, "{kind:?}");
        assert_eq!(after.vertex, before.vertex, "{kind:?}");
        assert_eq!(after.links, before.links, "{kind:?}");
        if kind == GeometryKind::Points {
            let editor = block_on(Editor::open(store)).unwrap();
            block_on(editor.append(&geometry, OutOfBounds::Reject)).unwrap();
            let dataset = block_on(Dataset::open(editor_store(&editor))).unwrap();
            assert_eq!(block_on(dataset.count(&Query::new())).unwrap().vertices, 12);
        }
    }
}

fn editor_store(editor: &Editor) -> Store {
    block_on(editor.dataset()).unwrap().store().clone()
}

#[test]
fn parts_and_links_keep_their_memory() {
    let streamlines = result(GeometryKind::Streamlines);
    let offsets = streamlines.parts.as_ref().unwrap().offsets.as_ptr();
    let batches = ResultBatches::new(streamlines).unwrap();
    let parts = batches.parts.unwrap();
    let start = parts["start"].as_primitive::<UInt64Type>();
    let end = parts["end"].as_primitive::<UInt64Type>();
    assert_eq!(start.values().as_ptr(), offsets);
    assert_eq!(end.values().as_ptr(), offsets.wrapping_add(1));
    assert_eq!(
        (start.values().as_ref(), end.values().as_ref()),
        (&[0, 4][..], &[4, 6][..])
    );

    let mesh = result(GeometryKind::Mesh);
    let ends = mesh.links.as_ref().unwrap().ends.as_ptr();
    let batches = ResultBatches::new(mesh).unwrap();
    let links = batches.links.unwrap();
    let list = links["link"].as_fixed_size_list();
    assert_eq!(list.value_length(), 3);
    let values = list.values().as_primitive::<UInt64Type>();
    assert_eq!(values.values().as_ptr(), ends);
}

#[test]
fn schemas_are_those_of_results() {
    for kind in GeometryKind::ALL {
        let dataset = stored(kind);
        let schemas = block_on(ResultSchemas::of(&dataset, LevelId::FULL)).unwrap();
        let result = block_on(dataset.query(&Query::new())).unwrap();
        let batches = ResultBatches::with_schemas(result, &schemas).unwrap();
        assert_eq!(
            batches.vertices.schema().fields(),
            schemas.vertices.fields(),
            "{kind:?}"
        );
        let fields = |batch: &Option<arrow_array::RecordBatch>| {
            batch.as_ref().map(|batch| batch.schema().fields().clone())
        };
        let of = |schema: &Option<arrow_schema::SchemaRef>| {
            schema.as_ref().map(|schema| schema.fields().clone())
        };
        assert_eq!(fields(&batches.parts), of(&schemas.parts), "{kind:?}");
        assert_eq!(fields(&batches.links), of(&schemas.links), "{kind:?}");
        assert_eq!(fields(&batches.objects), of(&schemas.objects), "{kind:?}");
        let schema = batches.vertices.schema();
        let position = schema.field_with_name("position").unwrap();
        assert_eq!(
            position.metadata()["ARROW:extension:name"],
            "geoarrow.point"
        );
    }
}

/// Regression test: positions with the axes z, y, x were marked as points. Readers take the first
/// axis as x.
#[test]
fn positions_are_points_of_geoarrow_if_the_axes_are() {
    let block = |axes: &[&str], kind: Kind| {
        let width = u8::try_from(axes.len()).unwrap();
        let positions = match kind {
            Kind::Float32 => NumericColumn::float32(width.into(), (0..width).map(f32::from)),
            _ => NumericColumn::float64(width.into(), (0..width).map(f64::from)),
        };
        let geometry = Geometry::builder(positions).object_ids(vec![3]);
        let mut design = Design::new(GeometryKind::Points);
        design.axes = Some(axes.iter().map(|name| zvf::AxisSpec::new(*name)).collect());
        design.chunk_shape = Some(vec![10.0; axes.len()]);
        block_on(async {
            let none: [(&str, &[u8]); 0] = [];
            let store = Store::from_memory(none).unwrap();
            let options = CreateOptions::default();
            zvf::create(&store, &geometry.build().unwrap(), design, &options)
                .await
                .unwrap();
            let dataset = Dataset::open(store).await.unwrap();
            let schemas = ResultSchemas::of(&dataset, LevelId::FULL).await.unwrap();
            let result = dataset.query(&Query::new()).await.unwrap();
            let batches = ResultBatches::with_schemas(result.clone(), &schemas).unwrap();
            assert_eq!(
                batches.vertices.schema().fields(),
                schemas.vertices.fields()
            );
            assert_eq!(
                batches.clone().into_result().unwrap().positions,
                result.positions
            );
            let schema = batches.vertices.schema();
            let field = schema.field_with_name("position").unwrap();
            let DataType::FixedSizeList(item, _) = field.data_type() else {
                panic!("{field:?}");
            };
            let name = field.metadata().get("ARROW:extension:name").cloned();
            (item.name().clone(), name)
        })
    };
    let point = |item: &str| (item.to_owned(), Some("geoarrow.point".to_owned()));
    let list = ("item".to_owned(), None);
    assert_eq!(block(&["x", "y"], Kind::Float64), point("xy"));
    assert_eq!(block(&["x", "y", "z"], Kind::Float64), point("xyz"));
    assert_eq!(block(&["x", "y", "m"], Kind::Float64), point("xym"));
    assert_eq!(block(&["x", "y", "z", "m"], Kind::Float64), point("xyzm"));
    for axes in [
        &["z", "y", "x"][..],
        &["t", "x", "y", "z"],
        &["x", "y", "t"],
        &["x", "y", "z", "t"],
        &["xy", "z"],
        &["x"],
    ] {
        assert_eq!(block(axes, Kind::Float64), list, "{axes:?}");
    }
    assert_eq!(block(&["x", "y", "z"], Kind::Float32), list);
}

#[test]
fn the_nearest_have_distances() {
    let dataset = stored(GeometryKind::Points);
    let place = zvf::Position::new(&[0.0, 1.0, 0.5]).unwrap();
    let near = block_on(dataset.query(&Query::new().nearest(place, 2))).unwrap();
    let batches = ResultBatches::new(near.clone()).unwrap();
    assert!(batches.vertices.column_by_name("distance").is_some());
    let back = batches.into_result().unwrap();
    assert_eq!(back.distances, near.distances);
}

#[test]
fn wrong_batches_are_rejected() {
    let whole = ResultBatches::new(result(GeometryKind::Streamlines)).unwrap();
    let without = |names: &[&str]| {
        let schema = whole.vertices.schema();
        let kept = (0..schema.fields().len())
            .filter(|at| !names.contains(&schema.field(*at).name().as_str()));
        let mut batches = whole.clone();
        batches.vertices = whole.vertices.project(&kept.collect::<Vec<_>>()).unwrap();
        batches
    };
    let error = without(&["position"]).into_result().unwrap_err();
    assert!(
        matches!(error, ConversionError::Missing("position")),
        "{error}"
    );
    assert!(without(&["vertex.fa"]).into_result().is_ok());

    let mut swapped = whole.clone();
    let parts = whole.parts.unwrap();
    let columns = ["object_id", "end", "start"].map(|name| parts[name].clone());
    let schema = parts.schema();
    swapped.parts = Some(arrow_array::RecordBatch::try_new(schema, columns.to_vec()).unwrap());
    let error = swapped.into_result().unwrap_err();
    assert!(matches!(error, ConversionError::Parts(0)), "{error}");
}
