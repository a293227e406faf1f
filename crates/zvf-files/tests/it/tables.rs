//! `GeoParquet` files.

use std::{fs, path::Path};

use zvf::{Column, Geometry, GeometryBuilder, GeometryKind, NumericColumn, VertexOwners};
use zvf_files::{FileDescription, FileReadOptions, GroupTables, StoreDescription};

use crate::damage::{chain, flips, prefixes};

/// Writes geometry with two axes or three, and reads it again.
fn there_and_back(
    geometry: &GeometryBuilder,
    kind: GeometryKind,
) -> (GeometryBuilder, FileDescription) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.geoparquet");
    write(geometry, kind, &path);
    read(&path).unwrap()
}

fn write(geometry: &GeometryBuilder, kind: GeometryKind, path: &Path) -> Vec<String> {
    let axes = ["x", "y", "z"]
        .into_iter()
        .take(geometry.axes())
        .map(str::to_owned)
        .collect();
    let result = zvf_files::whole_result(geometry.clone(), kind, axes).unwrap();
    let mut writer = zvf_files::create(path, &StoreDescription::default()).unwrap();
    writer.write(&result).unwrap();
    writer.finish(&GroupTables::default()).unwrap().left_out
}

fn read(path: &Path) -> Result<(GeometryBuilder, FileDescription), String> {
    let opened = zvf_files::open(path, &FileReadOptions::default());
    let mut reader = opened.map_err(|error| chain(&error))?;
    let geometry = zvf_files::read_whole(reader.as_mut()).map_err(|error| chain(error.as_ref()))?;
    Ok((geometry.into_builder(), reader.description().clone()))
}

fn square() -> GeometryBuilder {
    let positions = [0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 2.0];
    Geometry::new(NumericColumn::float64(3, positions)).into_builder()
}

#[test]
fn points_keep_attributes_and_objects() {
    let mut points = square();
    points.owners = VertexOwners::Vertices(vec![3, 3, 9, 9]);
    points.vertex.push(Column::text(
        "label",
        [Some("a"), None, Some("b"), Some("a")],
    ));
    points
        .vertex
        .push(Column::new("rgb", NumericColumn::from_values(3, 0_u8..12)));
    let (back, description) = there_and_back(&points, GeometryKind::Points);
    assert_eq!(back.positions, points.positions);
    assert_eq!(back.owners.ids(), points.owners.ids());
    assert_eq!(back.vertex, points.vertex);
    assert_eq!(
        (description.kind, description.crs),
        (GeometryKind::Points, None)
    );
    let mut flat = Geometry::builder(NumericColumn::float64(2, [0.5, 1.0, 2.0, 3.0]));
    flat.vertex.push(Column::new(
        "v",
        [1.5_f32, 2.5].into_iter().collect::<NumericColumn>(),
    ));
    let (back, description) = there_and_back(&flat, GeometryKind::Points);
    assert_eq!((back.positions, back.vertex), (flat.positions, flat.vertex));
    assert_eq!(description.axes.len(), 2);
}

#[test]
fn paths_keep_attributes_of_vertices_and_objects() {
    let mut paths = square();
    paths = paths.paths(vec![0, 2, 4], vec![5, 8]);
    paths.objects = Some(vec![5, 8]);
    paths.vertex.push(Column::new(
        "fa",
        NumericColumn::float32(1, [0.5, 1.0, 1.5, 2.0]),
    ));
    paths
        .object
        .push(Column::text("name", [Some("one"), Some("two")]));
    let (back, description) = there_and_back(&paths, GeometryKind::Streamlines);
    assert_eq!(description.kind, GeometryKind::Polylines);
    assert_eq!(back.owners.offsets(), paths.owners.offsets());
    assert_eq!(back.owners.ids(), paths.owners.ids());
    assert_eq!((back.vertex, back.object), (paths.vertex, paths.object));
}

/// Lines of one point are refused by GEOS, and so by geopandas.
#[test]
fn paths_of_one_vertex_have_it_twice() {
    let mut paths = square();
    paths = paths.paths(vec![0, 1, 4], None);
    let fa = NumericColumn::float32(1, [0.5, 1.0, 1.5, 2.0]);
    paths.vertex.push(Column::new("fa", fa.clone()));
    let (back, _) = there_and_back(&paths, GeometryKind::Streamlines);
    assert_eq!(back.owners.offsets(), Some([0, 2, 5].as_slice()));
    assert_eq!(
        back.vertex[0].values,
        fa.take([0, 0, 1, 2, 3]).unwrap().into()
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.geoparquet");
    let left_out = write(&paths, GeometryKind::Streamlines, &path);
    assert!(
        left_out[0].starts_with("1 paths of one vertex"),
        "{left_out:?}"
    );
}

#[test]
fn meshes_keep_faces_and_their_attributes() {
    let mut mesh = square();
    mesh = mesh.links(3, vec![0, 1, 2, 0, 2, 3]);
    mesh.link
        .push(Column::new("area", NumericColumn::float64(1, [0.5, 0.25])));
    let (back, _) = there_and_back(&mesh, GeometryKind::Mesh);
    assert_eq!(back, mesh);
}

#[test]
fn edges_are_rows_of_links_or_of_objects() {
    let mut graph = square();
    graph.links.ends = vec![0, 1, 2, 3];
    graph
        .link
        .push(Column::new("length", NumericColumn::float64(1, [1.0, 2.0])));
    let (back, _) = there_and_back(&graph, GeometryKind::Graphs);
    assert_eq!(back.owners.offsets(), Some([0, 2, 4].as_slice()));
    assert_eq!(back.object, graph.link);
    let mut trees = square();
    trees.links.ends = vec![1, 0, 3, 2];
    trees.owners = VertexOwners::Vertices(vec![4, 4, 7, 7]);
    trees.objects = Some(vec![4, 7]);
    trees
        .object
        .push(Column::text("name", [Some("one"), Some("two")]));
    let (back, _) = there_and_back(&trees, GeometryKind::Skeletons);
    assert_eq!(back.owners.ids(), Some([4, 7].as_slice()));
    assert_eq!(back.object, trees.object);
}

#[test]
fn losses_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let mut graph = square();
    graph.links.ends = vec![0, 1];
    graph
        .vertex
        .push(Column::new("v", (0_u8..4).collect::<NumericColumn>()));
    let path = folder.path().join("a.geoparquet");
    let left_out = write(&graph, GeometryKind::Graphs, &path);
    assert_eq!(
        left_out,
        [
            "vertex.v: not supported by geoparquet beside links",
            "2 vertices without links: not supported by geoparquet"
        ]
    );
}

/// Integers and booleans without a value become NaN on request.
#[test]
fn rows_without_a_value_become_nan() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.geoparquet");
    let read = |first: i64, nan: bool| {
        let mut points = square();
        let numbers: NumericColumn = [first, 2, i64::MAX, 4].into_iter().collect();
        let mut column = Column::new("a", numbers);
        column.nulls = Some(vec![false, false, true, false]);
        points.vertex.push(column);
        write(&points, GeometryKind::Points, &path);
        let mut options = FileReadOptions::default();
        options.nan_for_missing = nan;
        let reader = zvf_files::open(&path, &options);
        reader.map(|mut reader| {
            zvf_files::read_whole(reader.as_mut())
                .unwrap()
                .into_builder()
                .vertex
        })
    };
    let kept = read(1, false).unwrap();
    assert_eq!(kept[0].nulls, Some(vec![false, false, true, false]));
    let made = read(1, true).unwrap();
    let zvf::ColumnValues::Numeric(numbers) = &made[0].values else {
        panic!("{made:?}");
    };
    assert_eq!(numbers.to_vec::<f64>().unwrap()[..2], [1.0, 2.0]);
    assert_eq!(made[0].nulls, kept[0].nulls);
    let error = read(1 << 60, true).unwrap_err();
    assert!(error.fault.to_string().contains("beyond 2^53"), "{error:?}");
    // Other formats turn such integers into floats in any case, or have none.
    let path = folder.path().join("a.obj");
    fs::write(&path, "v 0 0 0\n").unwrap();
    let mut options = FileReadOptions::default();
    options.nan_for_missing = true;
    let error = zvf_files::open(&path, &options).map(|_| ()).unwrap_err();
    assert!(
        error.fault.to_string().contains("leave it out"),
        "{error:?}"
    );
}

#[test]
fn damaged_tables_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.geoparquet");
    let mut points = square();
    points
        .vertex
        .push(Column::new("v", (0_u8..4).collect::<NumericColumn>()));
    write(&points, GeometryKind::Points, &path);
    let bytes = fs::read(&path).unwrap();
    prefixes("a.geoparquet", &bytes, false);
    flips("a.geoparquet", &bytes, 41);
    assert!(zvf_files::geoparquet::is_geoparquet(&path));
    fs::write(&path, b"PAR1PAR1").unwrap();
    assert!(!zvf_files::geoparquet::is_geoparquet(&path));
    assert!(read(&path).is_err());
}

/// The specification gives `covering` four members, and lets the column have bounds of z, too.
#[test]
fn coverings_name_x_and_y() {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.geoparquet");
    let flat = Geometry::builder(NumericColumn::float64(2, [0.5, 1.0, 2.0, 3.0]));
    for (geometry, fields) in [(flat, 4), (square(), 6)] {
        write(&geometry, GeometryKind::Points, &path);
        let file = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
        let metadata = file.metadata().file_metadata();
        let pairs = metadata.key_value_metadata().unwrap();
        let geo = pairs.iter().find(|pair| pair.key == "geo").unwrap();
        let geo: serde_json::Value = serde_json::from_str(geo.value.as_ref().unwrap()).unwrap();
        let covering = &geo["columns"]["geometry"]["covering"]["bbox"];
        let names: Vec<&String> = covering.as_object().unwrap().keys().collect();
        assert_eq!(names, ["xmin", "ymin", "xmax", "ymax"]);
        let columns = metadata
            .schema_descr()
            .columns()
            .iter()
            .filter(|column| column.path().parts()[0] == "bbox");
        assert_eq!(columns.count(), fields);
    }
}
