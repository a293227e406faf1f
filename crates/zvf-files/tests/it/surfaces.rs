//! GIFTI and `FreeSurfer` surfaces.

use std::fs;

use zvf::{Query, QueryResult};
use zvf_files::{FileFault, FileReadOptions};

use crate::{
    damage::{flips, prefixes, refused},
    round_trip::{export, import},
};

/// A cube whose corners are far apart, so that chunks change their order.
fn text_surface(extra: &str, count: usize) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE GIFTI SYSTEM \"http://absent.example/gifti.dtd\">\n\
         <GIFTI Version=\"1.0\" NumberOfDataArrays=\"{count}\"><MetaData><MD><Name><![CDATA[Who]]></Name>\
         <Value>A &amp; B</Value></MD></MetaData><LabelTable><Label Key=\"3\" Red=\"0.5\" Green=\"0\" \
         Blue=\"1\" Alpha=\"1\">cortex</Label></LabelTable>\n\
         <DataArray Intent=\"NIFTI_INTENT_POINTSET\" DataType=\"NIFTI_TYPE_FLOAT32\" \
         ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"2\" Dim0=\"5\" Dim1=\"3\" \
         Encoding=\"ASCII\" Endian=\"LittleEndian\"><MetaData/><CoordinateSystemTransformMatrix>\
         <DataSpace>NIFTI_XFORM_TALAIRACH</DataSpace><TransformedSpace>NIFTI_XFORM_TALAIRACH\
         </TransformedSpace><MatrixData>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</MatrixData>\
         </CoordinateSystemTransformMatrix><Data>90 0 0.1 0 0 0 50 50 0.25 0 90 0 9 9 9</Data></DataArray>\n\
         <DataArray Intent=\"NIFTI_INTENT_TRIANGLE\" DataType=\"NIFTI_TYPE_INT32\" \
         ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"2\" Dim0=\"3\" Dim1=\"3\" \
         Encoding=\"ASCII\" Endian=\"LittleEndian\"><Data>2 0 1 1 3 2 3 2 4</Data></DataArray>{extra}</GIFTI>"
    )
}

fn array(intent: &str, name: &str, kind: &str, values: &str) -> String {
    format!(
        "<DataArray Intent=\"NIFTI_INTENT_{intent}\" DataType=\"NIFTI_TYPE_{kind}\" \
         ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"1\" Dim0=\"5\" Encoding=\"ASCII\" \
         Endian=\"LittleEndian\"><MetaData><MD><Name>Name</Name><Value>{name}</Value></MD></MetaData>\
         <Data>{values}</Data></DataArray>"
    )
}

fn surface() -> String {
    let extra = [
        array("SHAPE", "mean curv", "FLOAT32", "0.5 1.5 -2 3 4"),
        array("LABEL", "parcels", "INT32", "3 3 0 3 0"),
        array("TIME_SERIES", "t", "FLOAT32", "1 2 3 4 5"),
        array("TIME_SERIES", "u", "FLOAT32", "6 7 8 9 10"),
    ];
    text_surface(&extra.concat(), 6)
}

/// The file that comes back has the same arrays in the same order, and so has its copy.
#[tokio::test]
async fn gifti_comes_back_array_for_array() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = FileReadOptions::default();
    fs::write(at("a.surf.gii"), surface()).unwrap();
    import(&at("a.surf.gii"), &at("a.zv"), &options, false).await;
    let left_out = export(&at("a.zv"), &at("b.gii"), &Query::new()).await;
    assert_eq!(left_out, [""; 0]);
    let read = |name: &str| {
        let mut reader = zvf_files::open(&at(name), &options).unwrap();
        let geometry = zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder();
        let description = reader.description().clone();
        (geometry, description.header, description.crs)
    };
    let (one, two) = (read("a.surf.gii"), read("b.gii"));
    assert_eq!(one.0, two.0);
    assert_eq!(one.1, two.1);
    assert_eq!(one.2, two.2);
    let names: Vec<&str> = one.0.vertex.iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["source_row", "mean curv", "parcels", "t"]);
    assert_eq!(one.0.links.ends, [2, 0, 1, 1, 3, 2, 3, 2, 4]);
    assert_eq!(one.1["meta"][0][1], "A & B");
    import(&at("b.gii"), &at("b.zv"), &options, false).await;
    export(&at("b.zv"), &at("c.gii"), &Query::new()).await;
    assert_eq!(
        fs::read(at("b.gii")).unwrap(),
        fs::read(at("c.gii")).unwrap()
    );
}

/// Connectome Workbench opens surfaces without values only, and files of values whose arrays have one
/// column each.
#[tokio::test]
async fn values_are_beside_a_surface_of_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let wide = array("SHAPE", "wide", "INT32", "1 2 3 4 5 6 7 8 9 10")
        .replace("Dimensionality=\"1\"", "Dimensionality=\"2\" Dim1=\"2\"");
    let text = surface()
        .replace("</GIFTI>", &format!("{wide}</GIFTI>"))
        .replacen("DataArrays=\"6\"", "DataArrays=\"7\"", 1);
    fs::write(at("a.gii"), text).unwrap();
    let mut options = FileReadOptions::default();
    import(&at("a.gii"), &at("a.zv"), &options, false).await;
    let left_out = export(&at("a.zv"), &at("b.surf.gii"), &Query::new()).await;
    assert_eq!(left_out, [""; 0]);
    let intents = |name: &str| {
        let text = fs::read_to_string(at(name)).unwrap();
        let intents = text
            .split("NIFTI_INTENT_")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned());
        intents.collect::<Vec<String>>()
    };
    assert_eq!(intents("b.surf.gii"), ["POINTSET", "TRIANGLE"]);
    assert_eq!(intents("b.shape.gii"), ["SHAPE"; 3]);
    assert_eq!(intents("b.label.gii"), ["LABEL"]);
    assert_eq!(intents("b.func.gii"), ["TIME_SERIES"; 2]);
    let text = fs::read_to_string(at("b.shape.gii")).unwrap();
    assert!(text.contains("wide_0") && text.contains("wide_1"), "{text}");
    options.with = ["shape", "label", "func"]
        .map(|part| at(&format!("b.{part}.gii")))
        .to_vec();
    let mut reader = zvf_files::open(&at("b.surf.gii"), &options).unwrap();
    let back = zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder();
    let names: Vec<&str> = back.vertex.iter().map(|column| &*column.name).collect();
    let expected = [
        "source_row",
        "mean curv",
        "wide_0",
        "wide_1",
        "parcels",
        "t",
    ];
    assert_eq!(names, expected);
    let mut columns = back.vertex.iter();
    let series = columns.find_map(|column| match &column.values {
        zvf::ColumnValues::Numeric(values) if column.name == "t" => Some(values.width),
        _ => None,
    });
    assert_eq!(series, Some(2));
}

/// An array without rows is no array of GIFTI.
#[test]
fn surfaces_without_triangles_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for rows in [0, 3] {
        let mut geometry =
            zvf::Geometry::builder(zvf::NumericColumn::float32(3, vec![0.5; rows * 3]));
        geometry.links.width = 3;
        let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
        let result = zvf_files::whole_result(geometry, zvf::GeometryKind::Mesh, axes).unwrap();
        let description = zvf_files::StoreDescription::default();
        let path = folder.path().join("a.gii");
        let mut writer = zvf_files::create(&path, &description).unwrap();
        let written = writer
            .write(&result)
            .and_then(|()| writer.finish(&zvf_files::GroupTables::default()));
        let refused = written.unwrap_err().to_string();
        assert!(refused.contains("a.gii"), "{refused}");
        assert!(!path.exists());
    }
}

/// An attribute that a batch or some rows lack is refused instead of being left out.
#[test]
fn incomplete_attributes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gii");
    let batch = |values: &[f32]| {
        let corners = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        let mesh =
            zvf::Geometry::builder(zvf::NumericColumn::float32(3, corners)).links(3, vec![0, 1, 2]);
        let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
        let mut batch = zvf_files::whole_result(mesh, zvf::GeometryKind::Mesh, axes).unwrap();
        let values: zvf::NumericColumn = values.iter().copied().collect();
        batch.vertex.push(zvf::Column::new("curv", values));
        batch
    };
    let written = |batches: &[QueryResult]| {
        let description = zvf_files::StoreDescription::default();
        let mut writer = zvf_files::create(&path, &description).unwrap();
        for batch in batches {
            writer.write(batch)?;
        }
        writer.finish(&zvf_files::GroupTables::default())
    };
    let whole = batch(&[0.5, 1.5, 2.5]);
    let mut bare = whole.clone();
    bare.vertex.clear();
    for batches in [vec![whole.clone(), bare.clone()], vec![batch(&[0.5, 1.5])]] {
        let error = written(&batches).unwrap_err();
        assert!(matches!(error.fault, FileFault::Broken(_)), "{error:?}");
        assert!(!path.exists());
    }
    // Links may follow in a batch of their own.
    bare.positions = zvf::NumericColumn::float32(3, []);
    written(&[whole, bare]).unwrap();
}

/// Regression test: the time was quadratic in the number of arrays.
#[test]
fn many_arrays_keep_their_order_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let count = 3000_u32;
    let steps = (0..count).map(|at| {
        let values = (0..5).map(|row| (at * 10 + row).to_string());
        array(
            "TIME_SERIES",
            "t",
            "INT32",
            &values.collect::<Vec<_>>().join(" "),
        )
    });
    let shapes = (0..count).map(|at| {
        array(
            "SHAPE",
            &format!("s {at}"),
            "INT32",
            &format!("{at} 0 0 0 1"),
        )
    });
    let extra: String = steps.chain(shapes).collect();
    let arrays = usize::try_from(2 * count + 2).unwrap();
    fs::write(folder.path().join("a.gii"), text_surface(&extra, arrays)).unwrap();
    let read = |name: &str| {
        let path = folder.path().join(name);
        let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
        let geometry = zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder();
        (geometry, reader.description().clone())
    };
    let (surface, description) = read("a.gii");
    let zvf::ColumnValues::Numeric(series) = &surface.vertex[1].values else {
        panic!("{:?}", surface.vertex[1].name);
    };
    assert_eq!(series.width, count);
    let rows: Vec<i32> = (0..5)
        .flat_map(|row| (0..count).map(move |at| at * 10 + row))
        .map(|value| i32::try_from(value).unwrap())
        .collect();
    assert_eq!(series.to_vec::<i32>(), Some(rows));
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    let result = zvf_files::whole_result(surface.clone(), zvf::GeometryKind::Mesh, axes).unwrap();
    let headers = [("gifti".to_owned(), description.header.clone())].into();
    let described = zvf_files::StoreDescription::from_parts(Vec::new(), None, headers);
    let mut writer = zvf_files::create(&folder.path().join("b.gii"), &described).unwrap();
    writer.write(&result).unwrap();
    let written = writer.finish(&zvf_files::GroupTables::default()).unwrap();
    assert_eq!(written.left_out, [""; 0]);
    let (again, described) = read("b.gii");
    assert_eq!(again.vertex, surface.vertex);
    assert_eq!(described.header, description.header);
}

#[test]
fn damaged_gifti_is_refused_or_read() {
    let text = surface();
    prefixes("a.gii", text.as_bytes(), false);
    flips("a.gii", text.as_bytes(), 31);
}

#[test]
fn errors_of_gifti_name_place_and_reason() {
    let with = |from: &str, to: &str| refused("a.gii", surface().replacen(from, to, 1).as_bytes());
    let deep = format!("{}<Data>", "<MD>".repeat(40));
    let cases = [
        (
            with(
                "SYSTEM \"http://absent.example/gifti.dtd\"",
                "[<!ENTITY a \"b\">]",
            ),
            "entities",
        ),
        (with("A &amp; B", "&other;"), "XML"),
        (
            with("NumberOfDataArrays=\"6\"", "NumberOfDataArrays=\"7\""),
            "6 found, 7 declared",
        ),
        (
            with("Dim0=\"5\"", "Dim0=\"4000000000000\""),
            "unpacks to more than",
        ),
        (with("Dim0=\"5\"", "Dim0=\"6\""), "60 found, 72 declared"),
        (with("90 0 0.1", "90 0 x"), "\"x\" is not a number"),
        (with("90 0 0.1", "90 0 nan"), "a coordinate is NaN"),
        (with("2 0 1 1", "2 0 5 1"), "a corner is 5"),
        (with("INTENT_TRIANGLE", "INTENT_SHAPE"), "--with"),
        (
            with("NIFTI_TYPE_INT32", "NIFTI_TYPE_COMPLEX64"),
            "DataType is NIFTI_TYPE_COMPLEX64",
        ),
        (
            with("NIFTI_TYPE_INT32", "NIFTI_TYPE_FLOAT64"),
            "points are floats and triangles integers",
        ),
        (
            refused(
                "a.gii",
                surface()
                    .replacen("NIFTI_TYPE_INT32", "NIFTI_TYPE_INT64", 1)
                    .replacen("2 0 1 1", "2 0 5000000000 1", 1)
                    .as_bytes(),
            ),
            "a corner is 2147483647",
        ),
        (
            with(
                "Encoding=\"ASCII\"",
                "Encoding=\"ExternalFileBinary\" ExternalFileName=\"../a\"",
            ),
            "same folder",
        ),
        (with("<MetaData>", &deep), "nested"),
        (with("3 3 0 3 0", "3 3 0 3"), "bytes of a data array"),
    ];
    for (error, reason) in cases {
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
}

/// GIFTI 1.0 has three types, but programs write others. All are read, and written as one of the
/// three.
#[tokio::test]
async fn gifti_arrays_of_other_types_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let kinds = [
        ("INT8", "int8"),
        ("INT16", "int16"),
        ("UINT16", "uint16"),
        ("UINT32", "uint32"),
        ("INT64", "int64"),
        ("UINT64", "uint64"),
        ("FLOAT64", "float64"),
    ];
    let extra = kinds.map(|(kind, name)| array("SHAPE", name, kind, "1 2 3 4 100"));
    let text = text_surface(&extra.concat(), 9)
        .replacen("TYPE_FLOAT32", "TYPE_FLOAT64", 1)
        .replacen("TYPE_INT32", "TYPE_UINT16", 1);
    fs::write(at("a.surf.gii"), text).unwrap();
    let options = FileReadOptions::default();
    let read = |name: &str| {
        let mut reader = zvf_files::open(&at(name), &options).unwrap();
        zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder()
    };
    let geometry = read("a.surf.gii");
    assert_eq!(geometry.positions.kind.name(), "float64");
    assert_eq!(geometry.links.ends, [2, 0, 1, 1, 3, 2, 3, 2, 4]);
    for (_, name) in kinds {
        let mut columns = geometry.vertex.iter();
        let column = columns.find(|column| column.name == name).unwrap();
        let zvf::ColumnValues::Numeric(numbers) = &column.values else {
            panic!("{name} is no column of numbers");
        };
        assert_eq!(numbers.kind.name(), name);
        let view = numbers.view().unwrap();
        let values = (0..5).map(|row| view.value(row, 0).unwrap().to_f64());
        assert_eq!(values.collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0, 100.0]);
    }
    import(&at("a.surf.gii"), &at("a.zv"), &options, false).await;
    let left_out = export(&at("a.zv"), &at("b.gii"), &Query::new()).await;
    // 0.1 is another number in float32.
    assert_eq!(left_out, ["1 coordinates are rounded to float32"]);
    let back = read("b.gii");
    assert_eq!(back.links, geometry.links);
    assert_eq!(back.positions.kind.name(), "float32");
    // Whole numbers that int32 holds stay whole numbers.
    for (_, name) in kinds {
        let mut columns = back.vertex.iter();
        let column = columns.find(|column| column.name == name).unwrap();
        let zvf::ColumnValues::Numeric(numbers) = &column.values else {
            panic!("{name} is no column of numbers");
        };
        let expected = if name == "float64" {
            "float32"
        } else {
            "int32"
        };
        assert_eq!(numbers.kind.name(), expected, "{name}");
    }
}

fn words(numbers: &[i32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect()
}

fn pial() -> Vec<u8> {
    let points = [
        90.0_f32, 0.0, 0.1, 0.0, 0.0, 0.0, 50.0, 50.0, 0.25, 0.0, 90.0, 0.0,
    ];
    let mut bytes = b"\xff\xff\xfecreated by a test\n\n".to_vec();
    bytes.extend(words(&[4, 2]));
    bytes.extend(points.iter().flat_map(|number| number.to_be_bytes()));
    bytes.extend(words(&[2, 0, 1, 1, 3, 2]));
    bytes
}

fn annotation() -> Vec<u8> {
    // Vertices are in any order.
    let mut bytes = words(&[4, 3, 70_000, 0, 5, 1, 5, 2, 70_000]);
    bytes.extend(words(&[1, -2, 2, 4]));
    bytes.extend(b"tab\0");
    bytes.extend(words(&[1, 1, 5]));
    bytes.extend(b"area\0");
    bytes.extend(words(&[5, 0, 0, 0]));
    bytes
}

#[test]
fn values_of_vertices_are_added_to_a_surface() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("lh.pial"), pial()).unwrap();
    let mut curv = vec![0xff; 3];
    curv.extend(words(&[4, 2, 1]));
    curv.extend(
        [0.5_f32, -1.0, 2.0, 4.0]
            .iter()
            .flat_map(|number| number.to_be_bytes()),
    );
    fs::write(at("lh.curv"), &curv).unwrap();
    let old: [u8; 14] = [0, 0, 4, 0, 0, 2, 0, 50, 0, 100, 255, 156, 0, 0];
    fs::write(at("lh.sulc"), old).unwrap();
    fs::write(at("lh.aparc.annot"), annotation()).unwrap();
    let mut options = FileReadOptions::default();
    options.with = ["lh.curv", "lh.sulc", "lh.aparc.annot"].map(at).to_vec();
    let mut reader = zvf_files::open(&at("lh.pial"), &options).unwrap();
    let geometry = zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder();
    let column = |name: &str| {
        let found = geometry.vertex.iter().find(|column| column.name == name);
        match &found.unwrap().values {
            zvf::ColumnValues::Numeric(numbers) => numbers.clone(),
            other @ zvf::ColumnValues::Dictionary { .. } => panic!("{other:?}"),
        }
    };
    assert_eq!(
        column("curv").to_vec::<f32>().unwrap(),
        [0.5, -1.0, 2.0, 4.0]
    );
    assert_eq!(
        column("sulc").to_vec::<f32>().unwrap(),
        [0.5, 1.0, -1.0, 0.0]
    );
    assert_eq!(
        column("aparc").to_vec::<i32>().unwrap(),
        [5, 5, 70_000, 70_000]
    );
    assert_eq!(geometry.links.ends, [2, 0, 1, 1, 3, 2]);
    let labels = &reader.description().header["labels"];
    assert_eq!(labels, &serde_json::json!([[5, "area", 5, 0, 0, 255]]));
    fs::write(at("lh.curv"), &curv[..curv.len() - 4]).unwrap();
    let error = zvf_files::open(&at("lh.pial"), &options).err().unwrap();
    assert!(error.path.ends_with("lh.curv"), "{error:?}");
}

/// A surface of two quadrangles, with coordinates in hundredths or as float32.
fn quadrangles(is_short: bool) -> Vec<u8> {
    let points: [i16; 18] = [
        0, 0, 0, 150, 0, 0, 150, -225, 0, 0, -225, 0, 300, 0, 50, 300, -225, 50,
    ];
    let mut bytes = vec![0xff, 0xff, if is_short { 0xff } else { 0xfd }];
    bytes.extend([0, 0, 6, 0, 0, 2]);
    for point in points {
        if is_short {
            bytes.extend(point.to_be_bytes());
        } else {
            bytes.extend((f32::from(point) / 100.0).to_be_bytes());
        }
    }
    for corner in [0_u8, 1, 2, 3, 1, 4, 5, 2] {
        bytes.extend([0, 0, corner]);
    }
    bytes
}

#[test]
fn surfaces_of_quadrangles_keep_their_corners() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lh.orig");
    for is_short in [false, true] {
        fs::write(&path, quadrangles(is_short)).unwrap();
        let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
        let geometry = zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder();
        assert_eq!(geometry.links.width, 4);
        assert_eq!(geometry.links.ends, [0, 1, 2, 3, 1, 4, 5, 2]);
        let positions = geometry.positions.to_vec::<f32>().unwrap();
        assert_eq!(positions[3..9], [1.5, 0.0, 0.0, 1.5, -2.25, 0.0]);
        assert_eq!(positions[15..], [3.0, -2.25, 0.5]);
    }
}

#[test]
fn damaged_surfaces_are_refused_or_read() {
    prefixes("lh.pial", &pial(), false);
    flips("lh.pial", &pial(), 32);
    for is_short in [false, true] {
        let bytes = quadrangles(is_short);
        prefixes("lh.orig", &bytes, false);
        flips("lh.orig", &bytes, 33);
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("lh.pial"), pial()).unwrap();
    let mut options = FileReadOptions::default();
    options.with = vec![at("lh.aparc.annot")];
    let bytes = annotation();
    for length in 0..bytes.len() {
        fs::write(at("lh.aparc.annot"), &bytes[..length]).unwrap();
        let result = zvf_files::open(&at("lh.pial"), &options);
        // A file may end behind the values.
        assert!(result.is_err() || length == 36, "{length} bytes");
    }
    for at_byte in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at_byte] = 0x7f;
        fs::write(at("lh.aparc.annot"), damaged).unwrap();
        drop(zvf_files::open(&at("lh.pial"), &options));
    }
}
