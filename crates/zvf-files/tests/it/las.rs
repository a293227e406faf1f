//! Points of laser scanners, there and back.

use std::{fmt::Write, fs, path::Path};

use serde_json::{Value, json};
use zvf::{
    Column, Dataset, Geometry, GeometryBuilder, GeometryKind, NumericColumn, Predicate, Query,
};
use zvf_files::{FileDescription, FileReadOptions, GroupTables, StoreDescription};

use crate::{
    damage::{flips, prefixes, refused},
    round_trip::{export, import},
    samples::{self, Random},
};

const FORMATS: [u8; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

fn word(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())).unwrap()
}

/// Returns a LAS file with its points in order of their bytes.
fn sorted(bytes: &[u8]) -> Vec<u8> {
    let (start, record) = (word(bytes, 96), word(bytes, 105) & 0xffff);
    let points = start..start + record * 300;
    let mut records: Vec<&[u8]> = bytes[points.clone()].chunks_exact(record).collect();
    records.sort_unstable();
    [&bytes[..start], &records.concat(), &bytes[points.end..]].concat()
}

/// Puts a file into a store, and writes the store to another file.
async fn pass(from: &Path, store: &Path, to: &Path, is_streamed: bool) {
    import(from, store, &FileReadOptions::default(), is_streamed).await;
    assert_eq!(export(store, to, &Query::new()).await, [""; 0]);
}

/// Header, records and points are restored; the order of points is that of the chunks.
#[tokio::test]
async fn las_comes_back_point_for_point() {
    for format in FORMATS {
        for is_streamed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let bytes = samples::las(&mut Random::new(21), format);
            fs::write(at("a.las"), &bytes).unwrap();
            pass(&at("a.las"), &at("a.zv"), &at("b.las"), is_streamed).await;
            let back = fs::read(at("b.las")).unwrap();
            assert!(sorted(&back) == sorted(&bytes), "format {format}");
        }
    }
}

/// With the order of points, the file is the same, and so is LAS of LAZ.
#[tokio::test]
async fn las_comes_back_byte_for_byte_with_its_order() {
    let mut options = FileReadOptions::default();
    options.keep_order = true;
    for format in FORMATS {
        for is_streamed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let bytes = samples::las(&mut Random::new(28), format);
            fs::write(at("a.las"), &bytes).unwrap();
            import(&at("a.las"), &at("a.zv"), &options, is_streamed).await;
            for name in ["b.las", "b.laz"] {
                assert_eq!(export(&at("a.zv"), &at(name), &Query::new()).await, [""; 0]);
            }
            let back = fs::read(at("b.las")).unwrap();
            assert!(back == bytes, "format {format}");
            import(&at("b.laz"), &at("b.zv"), &options, is_streamed).await;
            export(&at("b.zv"), &at("c.las"), &Query::new()).await;
            assert!(fs::read(at("c.las")).unwrap() == bytes, "format {format}");
        }
    }
}

/// Points of a selection keep their order, and the attribute is not one of the file.
#[tokio::test]
async fn selected_points_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let bytes = samples::las(&mut Random::new(29), 7);
    fs::write(at("a.las"), &bytes).unwrap();
    let mut options = FileReadOptions::default();
    options.keep_order = true;
    import(&at("a.las"), &at("a.zv"), &options, true).await;
    let query = Query::new().filter(Predicate::parse("vertex.intensity > 20000").unwrap());
    assert_eq!(export(&at("a.zv"), &at("b.las"), &query).await, [""; 0]);
    let back = fs::read(at("b.las")).unwrap();
    let (start, record) = (word(&bytes, 96), word(&bytes, 105) & 0xffff);
    let is_selected = |record: &&[u8]| u16::from_le_bytes([record[12], record[13]]) > 20_000;
    let points = bytes[start..start + record * 300].chunks_exact(record);
    let expected: Vec<&[u8]> = points.filter(is_selected).collect();
    assert!(!expected.is_empty() && expected.len() < 300);
    assert!(back[start..start + record * expected.len()] == expected.concat());
}

#[tokio::test]
async fn laz_holds_the_points_of_las() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let bytes = samples::las(&mut Random::new(22), format);
        fs::write(at("a.las"), &bytes).unwrap();
        pass(&at("a.las"), &at("a.zv"), &at("b.laz"), false).await;
        pass(&at("b.laz"), &at("b.zv"), &at("c.las"), true).await;
        let back = fs::read(at("c.las")).unwrap();
        assert!(sorted(&back) == sorted(&bytes), "format {format}");
    }
}

#[tokio::test]
async fn stores_of_las_have_reference_system_and_extra_values() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.las"), samples::las(&mut Random::new(23), 7)).unwrap();
    let options = FileReadOptions::default();
    let reader = zvf_files::open(&at("a.las"), &options).unwrap();
    let crs = json!({ "type": "EPSG", "code": 25832, "wkt": samples::WKT });
    assert_eq!(reader.description().crs, Some(crs));
    import(&at("a.las"), &at("a.zv"), &options, false).await;
    let dataset = Dataset::open(at("a.zv").display().to_string())
        .await
        .unwrap();
    let result = dataset.query(&Query::new()).await.unwrap();
    let mut names: Vec<&str> = result.vertex.iter().map(|column| &*column.name).collect();
    names.sort_unstable();
    let expected = [
        "Intensity_2",
        "classification",
        "flags",
        "gps_time",
        "height",
        "intensity",
        "number_of_returns",
        "point_source_id",
        "raw",
        "return_number",
        "rgb",
        "scan_angle",
        "user_data",
    ];
    assert_eq!(names, expected);
    // Numbers of extra bytes were compared without their scale.
    let scaled = result.vertex.iter().find(|it| it.name == "Intensity_2");
    let Some(zvf::ColumnValues::Numeric(scaled)) = scaled.map(|it| &it.values) else {
        panic!("{scaled:?}");
    };
    let scaled = scaled.to_vec::<f64>().unwrap();
    let bytes = fs::read(at("a.las")).unwrap();
    let (start, record) = (word(&bytes, 96), word(&bytes, 105) & 0xffff);
    let points = bytes[start..start + record * 300].chunks_exact(record);
    let number = |point: &[u8]| f64::from(u16::from_le_bytes([point[36], point[37]])) * 0.01;
    let mut stored: Vec<f64> = points.map(number).collect();
    let filter = Predicate::parse("Intensity_2 > 5").unwrap();
    let count = dataset.count(&Query::new().filter(filter)).await.unwrap();
    let above = stored.iter().filter(|value| **value > 5.0).count() as u64;
    assert_eq!(count.vertices, above);
    let mut values = scaled;
    values.sort_by(f64::total_cmp);
    stored.sort_by(f64::total_cmp);
    assert_eq!(values, stored);
}

/// Without a header of LAS, the writer chooses scale and point format.
#[tokio::test]
async fn points_of_other_formats_become_las() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut ply =
        "ply\nformat ascii 1.0\nelement vertex 50\nproperty double x\nproperty double y\n\
                   property double z\nproperty float weight\nend_header\n"
            .to_owned();
    for row in 0..50 {
        let x = 400_000.125 + f64::from(row);
        writeln!(ply, "{x} {} {} {row}", row * 2, -row).unwrap();
    }
    fs::write(at("a.ply"), ply).unwrap();
    let options = FileReadOptions::default();
    import(&at("a.ply"), &at("a.zv"), &options, false).await;
    for name in ["b.las", "b.laz"] {
        assert_eq!(export(&at("a.zv"), &at(name), &Query::new()).await, [""; 0]);
        let mut reader = zvf_files::open(&at(name), &options).unwrap();
        let whole = zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder();
        let (rows, _) = whole.positions.bytes.as_chunks::<24>();
        let mut found: Vec<[f64; 3]> = rows
            .iter()
            .map(|row| [0, 8, 16].map(|at| f64::from_le_bytes(row[at..at + 8].try_into().unwrap())))
            .collect();
        found.sort_by(|one, two| one[0].total_cmp(&two[0]));
        let expected = (0..50).map(|row| {
            let row = f64::from(row);
            [400_000.125 + row, row * 2.0, -row]
        });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{name}");
        assert!(whole.vertex.iter().any(|column| column.name == "weight"));
    }
}

fn read(path: &Path) -> (GeometryBuilder, FileDescription) {
    let mut reader = zvf_files::open(path, &FileReadOptions::default()).unwrap();
    let whole = zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder();
    (whole, reader.description().clone())
}

/// Writes points to a file, and returns what was left out.
fn write(points: &GeometryBuilder, description: &StoreDescription, path: &Path) -> Vec<String> {
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    let result = zvf_files::whole_result(points.clone(), GeometryKind::Points, axes).unwrap();
    let mut writer = zvf_files::create(path, description).unwrap();
    writer.write(&result).unwrap();
    writer.finish(&GroupTables::default()).unwrap().left_out
}

/// A reference system that the store has instead of that of its file replaces the records.
#[test]
fn files_have_the_reference_system_of_the_store() {
    let other = r#"PROJCS["b",UNIT["m",1],AUTHORITY["EPSG","2056"]]"#;
    let id = |code: u32| json!({ "name": "a", "id": { "authority": "EPSG", "code": code } });
    let code_of = |crs: Option<Value>| crs.map(|crs| crs["code"].as_u64().unwrap());
    for format in [3, 7] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let given = samples::las(&mut Random::new(30), format);
        let projection = given.windows(15).position(|it| it == b"LASF_Projection");
        let mut without = given.clone();
        without[projection.unwrap()] = b'N';
        for (bytes, crs, code, left_out, is_kept) in [
            (&given, id(25832), Some(25832), 0, true),
            (
                &given,
                json!({ "name": "b", "wkt": other }),
                Some(2056),
                0,
                false,
            ),
            (&without, json!({ "wkt": other }), Some(2056), 0, false),
            (&given, id(2056), None, 1, false),
        ] {
            fs::write(at("a.las"), bytes).unwrap();
            let (points, description) = read(&at("a.las"));
            let header = ("las".to_owned(), description.header);
            let description = StoreDescription::from_parts(Vec::new(), Some(crs), [header].into());
            let lost = write(&points, &description, &at("b.las"));
            assert_eq!(lost.len(), left_out, "{lost:?}");
            let (back, description) = read(&at("b.las"));
            assert_eq!(code_of(description.crs), code);
            assert!(back == points);
            let written = fs::read(at("b.las")).unwrap();
            assert_eq!(written == given, is_kept);
            if !is_kept {
                // The bit for WKT, which exists since version 1.4 and is required from format 6 on.
                assert_eq!(written[6] & 16 > 0, code.is_some() || format == 7);
                assert_eq!(written[25], code.map_or(given[25], |_| 4));
            }
        }
    }
}

/// Colours of 8 bits use the range of those of LAS, which have 16.
#[test]
fn colours_of_other_formats_have_16_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.las");
    let mut points = Geometry::builder(NumericColumn::float64(3, (0..6_u8).map(f64::from)));
    for (colours, expected) in [
        (
            NumericColumn::from_values(3, [255_u8, 128, 0, 1, 2, 3]),
            [65_535, 32_896, 0, 257, 514, 771],
        ),
        (
            NumericColumn::from_values(3, [255_u16, 128, 0, 1, 2, 3]),
            [255, 128, 0, 1, 2, 3],
        ),
    ] {
        points.vertex = vec![Column::new("rgb", colours)];
        let lost = write(&points, &StoreDescription::default(), &path);
        assert_eq!(lost, [""; 0]);
        let (back, _) = read(&path);
        let rgb = NumericColumn::from_values(3, expected.map(u16::try_from).map(Result::unwrap));
        let found = back.vertex.iter().find(|column| column.name == "rgb");
        assert_eq!(found, Some(&Column::new("rgb", rgb)));
        // The bit for WKT.
        assert_eq!(fs::read(&path).unwrap()[6], 16);
    }
}

#[tokio::test]
async fn damaged_las_and_laz_are_refused_or_read() {
    for format in [3, 7] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let bytes = samples::las(&mut Random::new(24), format);
        fs::write(at("a.las"), &bytes).unwrap();
        pass(&at("a.las"), &at("a.zv"), &at("a.laz"), false).await;
        if format == 7 {
            prefixes("a.las", &bytes, false);
            flips("a.las", &bytes, 25);
        }
        let packed = fs::read(at("a.laz")).unwrap();
        prefixes("a.laz", &packed, false);
        flips("a.laz", &packed, 26);
    }
}

#[test]
fn errors_of_las_name_place_and_reason() {
    let bytes = samples::las(&mut Random::new(27), 3);
    let with = |at: usize, field: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + field.len()].copy_from_slice(field);
        refused("a.las", &bytes)
    };
    let cases = [
        (with(0, b"LASX"), "starts with LASF"),
        (with(24, &[2, 0]), "version"),
        (
            with(94, &200_u16.to_le_bytes()),
            "the size of the header is 200",
        ),
        (
            with(96, &100_u32.to_le_bytes()),
            "the offset of the points is 100",
        ),
        (with(100, &u32::MAX.to_le_bytes()), "variable length record"),
        (with(104, &[11]), "the point format is 11"),
        (
            with(105, &33_u16.to_le_bytes()),
            "the size of a point record is 33",
        ),
        (with(107, &u32::MAX.to_le_bytes()), "the points"),
        (with(131, &0.0_f64.to_le_bytes()), "a scale is 0"),
        (with(139, &f64::NAN.to_le_bytes()), "a scale is NaN"),
        (with(155, &f64::INFINITY.to_le_bytes()), "an offset is inf"),
    ];
    for (error, reason) in cases {
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
}

/// Extra bytes that the first record does not describe are noted.
#[test]
fn undescribed_extra_bytes_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.las");
    let bytes = samples::las(&mut Random::new(3), 1);
    let place = |name: &[u8]| {
        bytes
            .windows(name.len())
            .position(|part| part == name)
            .unwrap()
    };
    let notes = |changed: &[(usize, &[u8])]| {
        let mut bytes = bytes.clone();
        for (at, part) in changed {
            bytes[*at..at + part.len()].copy_from_slice(part);
        }
        fs::write(&path, bytes).unwrap();
        let reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
        reader.description().notes.join("; ")
    };
    assert_eq!(notes(&[]), "");
    let second = place(b"somebody");
    let two = notes(&[(second, b"LASF_Spec"), (second + 16, &[4, 0])]);
    assert!(two.contains("2 records that describe extra bytes"), "{two}");
    let none = notes(&[(place(b"LASF_Spec"), b"LASF_None")]);
    let expected =
        "15 extra bytes of each point have no description; they are the attribute extra_bytes";
    assert_eq!(none, expected);
}
