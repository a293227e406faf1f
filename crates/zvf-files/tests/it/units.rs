//! Coordinates in the units that formats imply.

use std::{fs, path::Path};

use serde_json::json;
use zvf::{
    AxisSpec, Column, Geometry, GeometryBuilder, GeometryKind, NumericColumn, numeric::Kind,
};
use zvf_files::{
    FileFault, FileReadOptions, GroupTables, LengthUnit, OutputFile, StoreDescription,
};

use crate::samples::{self, Random};

/// Formats that hold millimetres, and the kinds of the geometry.
const MILLIMETRES: [(&str, GeometryKind); 4] = [
    ("trk", GeometryKind::Streamlines),
    ("tck", GeometryKind::Streamlines),
    ("trx", GeometryKind::Streamlines),
    ("gii", GeometryKind::Mesh),
];

/// A path, a triangle or a tree of three vertices.
fn shape(positions: NumericColumn, kind: GeometryKind) -> GeometryBuilder {
    let geometry = Geometry::builder(positions);
    match kind {
        GeometryKind::Mesh => geometry.links(3, vec![0, 1, 2]),
        GeometryKind::Skeletons => geometry.links(2, vec![1, 0, 2, 1]).object_ids(vec![5; 3]),
        _ => geometry.paths(vec![0, 3], None),
    }
}

fn axes(units: [&str; 3]) -> Vec<AxisSpec> {
    let axes = ["x", "y", "z"]
        .into_iter()
        .zip(units)
        .map(|(name, unit)| match unit {
            "" => AxisSpec::new(name),
            unit => AxisSpec::new(name).unit(unit),
        });
    axes.collect()
}

/// Writes geometry with these axes, and returns what was left out.
fn write(
    geometry: &GeometryBuilder,
    kind: GeometryKind,
    axes: &[AxisSpec],
    path: &Path,
) -> Result<Vec<String>, FileFault> {
    let names = axes.iter().map(|axis| axis.name.clone()).collect();
    let result = zvf_files::whole_result(geometry.clone(), kind, names)?;
    let description = StoreDescription::from_parts(axes.to_vec(), None, [].into());
    let fault = |error: zvf_files::FileError| error.fault;
    let mut writer = zvf_files::create(path, &description).map_err(fault)?;
    writer.write(&result).map_err(fault)?;
    let written = writer.finish(&GroupTables::default());
    Ok(written.map_err(fault)?.left_out)
}

fn positions(path: &Path) -> NumericColumn {
    let mut reader = zvf_files::open(path, &FileReadOptions::default()).unwrap();
    zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder()
        .positions
}

fn floats(column: &NumericColumn) -> Vec<f64> {
    let narrow = column
        .to_vec::<f32>()
        .map(|numbers| numbers.into_iter().map(f64::from).collect());
    narrow.or_else(|| column.to_vec::<f64>()).unwrap()
}

#[test]
fn lengths_become_millimetres() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = [1.5, -0.25, 0.0, 2.0, 8.0, 1024.5, 3.0, 1.0, 0.125];
    for (unit, factor) in [
        ("nanometer", 1e6_f32),
        ("µm", 1e3),
        ("meter", 1e-3),
        ("centimetres", 0.1),
    ] {
        let stored = numbers.map(|number| number * factor);
        for (extension, kind) in MILLIMETRES {
            let path = folder.path().join(format!("a.{extension}"));
            let geometry = shape(NumericColumn::float32(3, stored), kind);
            let left_out = write(&geometry, kind, &axes([unit; 3]), &path);
            assert_eq!(left_out.unwrap(), [""; 0], "{extension} {unit}");
            let found = positions(&path);
            if extension != "trk" {
                assert_eq!(found.kind, Kind::Float32);
            }
            for (found, expected) in floats(&found).into_iter().zip(numbers) {
                let expected = f64::from(expected);
                // Stored thousandths and tenths are rounded.
                let tolerance = if factor < 1.0 { 1e-4 } else { 0.0 };
                assert!((found - expected).abs() <= tolerance, "{extension} {unit}");
            }
        }
    }
}

/// Each axis has its own unit. 64-bit floats are rounded once, and integers become 64-bit floats.
#[test]
fn axes_are_converted_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trx");
    let kind = GeometryKind::Streamlines;
    let axes = axes(["um", "", "m"]);
    let stored = NumericColumn::float64(3, [0.3, 0.1, 0.007, 700.0, 2.0, 1.0, 3.0, 4.0, 5.0]);
    let expected = [0.0003, 0.1, 7.0, 0.7, 2.0, 1000.0, 0.003, 4.0, 5000.0];
    assert_eq!(
        write(&shape(stored, kind), kind, &axes, &path).unwrap(),
        [""; 0]
    );
    assert_eq!(positions(&path).to_vec::<f64>().unwrap(), expected);
    let stored: Vec<[i32; 3]> = vec![[1500, 7, 2], [-500, 8, 3], [0, 9, -4]];
    let geometry = shape(NumericColumn::from(stored), kind);
    assert_eq!(write(&geometry, kind, &axes, &path).unwrap(), [""; 0]);
    let expected = [1.5, 7.0, 2000.0, -0.5, 8.0, 3000.0, 0.0, 9.0, -4000.0];
    assert_eq!(positions(&path).to_vec::<f64>().unwrap(), expected);
}

#[test]
fn millimetres_and_numbers_without_a_unit_are_written_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for (extension, kind) in MILLIMETRES {
        let stored = [0.1, 0.2, 0.3, 4.4, 5.5, 6.6, 7.7, 8.8, 9.9];
        let geometry = shape(NumericColumn::float64(3, stored), kind);
        let file = |units| {
            let path = folder.path().join(format!("a.{extension}"));
            let left_out = write(&geometry, kind, &axes(units), &path).unwrap();
            (fs::read(path).unwrap(), left_out)
        };
        let expected = file(["", "", ""]);
        assert!(file(["millimeter"; 3]) == expected, "{extension}");
        assert!(file(["mm", "", "millimetres"]) == expected, "{extension}");
    }
    // The unit that readers of tractograms state.
    let path = folder.path().join("given.trk");
    let given = samples::trk(&mut Random::new(7), false);
    fs::write(&path, &given).unwrap();
    let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
    let mut results = zvf_files::FileResults::new(reader.as_mut()).unwrap();
    let batch = results.next(1 << 20).unwrap().unwrap();
    let header = ("trk".to_owned(), results.description().header.clone());
    let axes = results.description().axes.clone();
    let description = StoreDescription::from_parts(axes, None, [header].into());
    let back = folder.path().join("back.trk");
    let mut writer = zvf_files::create(&back, &description).unwrap();
    writer.write(&batch).unwrap();
    writer.finish(&GroupTables::default()).unwrap();
    assert!(fs::read(back).unwrap() == given);
}

#[test]
fn units_that_are_no_lengths_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let stored = [1.5, -0.25, 0.0, 2.0, 8.0, 1024.5, 3.0, 1.0, 0.125];
    for (extension, kind) in MILLIMETRES {
        let path = folder.path().join(format!("a.{extension}"));
        let geometry = shape(NumericColumn::float32(3, stored), kind);
        let mut axes = axes(["voxel", "mm", "m"]);
        axes[2] = axes[2].clone().kind("time");
        let expected = [
            format!("unit voxel of axis x: {extension} holds millimetres"),
            format!("unit m of axis z: {extension} holds millimetres"),
        ];
        assert_eq!(write(&geometry, kind, &axes, &path).unwrap(), expected);
        assert_eq!(
            floats(&positions(&path)),
            stored.map(f64::from),
            "{extension}"
        );
    }
}

#[test]
fn converted_coordinates_out_of_range_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let kind = GeometryKind::Streamlines;
    let stored = [0.0, 1.0, 2.0, 3.0, -3e33, 5.0, 6.0, 7.0, 8.0];
    let geometry = shape(NumericColumn::float32(3, stored), kind);
    for extension in ["trk", "tck", "trx"] {
        let path = folder.path().join(format!("a.{extension}"));
        let fault = write(&geometry, kind, &axes(["km"; 3]), &path).unwrap_err();
        let FileFault::CoordinateRange { format, .. } = fault else {
            panic!("{fault}");
        };
        assert_eq!(format, extension);
        assert!(!path.exists());
    }
}

/// Regression test: skeletons became micrometres, and their comments stated the unit of the store.
#[test]
fn skeletons_state_their_unit_and_are_converted_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.swc");
    let kind = GeometryKind::Skeletons;
    let stored = [1500.0, 0.0, -250.0, 100.0, 200.0, 300.0, 8.0, 4.0, 2.0];
    let mut geometry = shape(NumericColumn::float32(3, stored), kind);
    let radius = NumericColumn::float32(1, [700.0, 250.0, 1.0]);
    geometry.vertex.push(Column::new("radius", radius));
    let result = |axes: &[AxisSpec]| {
        let names = axes.iter().map(|axis| axis.name.clone()).collect();
        zvf_files::whole_result(geometry.clone(), kind, names).unwrap()
    };
    let text = |units, unit| {
        let axes = axes(units);
        let comments = json!({"comments": {"5": [[1, "# Meta: {\"units\": \"nm\"}"], [2, "# a"]]}});
        let headers = [("swc".to_owned(), comments.as_object().unwrap().clone())];
        let description = StoreDescription::from_parts(axes.clone(), None, headers.into());
        let output = OutputFile::new(&path).unwrap();
        let file = output.in_unit(LengthUnit::of(unit));
        let written = zvf_files::write(&result(&axes), &description, &file)
            .map_err(|error| error.to_string())?;
        Ok::<_, String>((fs::read_to_string(&path).unwrap(), written.left_out))
    };
    let kept = "# a\n1 0 1500 0 -250 700 -1\n2 0 100 200 300 250 1\n3 0 8 4 2 1 2\n";
    let with = |meta: &str, rows: &str| format!("# Meta: {meta}\n{rows}");
    let of_file = with("{\"units\": \"nm\"}", kept);
    let micrometers = "{\"units\":\"micrometer\"}";
    assert_eq!(text(["nm"; 3], ""), Ok((of_file.clone(), Vec::new())));
    assert_eq!(text([""; 3], ""), Ok((of_file, Vec::new())));
    let found = text(["micron"; 3], "").unwrap();
    assert_eq!(found, (with(micrometers, kept), Vec::new()));
    let converted =
        "# a\n1 0 1.5 0 -0.25 0.7 -1\n2 0 0.1 0.2 0.3 0.25 1\n3 0 0.008 0.004 0.002 0.001 2\n";
    let found = text(["nm"; 3], "um").unwrap();
    assert_eq!(found, (with(micrometers, converted), Vec::new()));
    let (mixed, left_out) = text(["nm", "nm", "um"], "um").unwrap();
    assert!(mixed.contains("\n1 0 1.5 0 -250 700 -1\n"), "{mixed}");
    let line = "vertex.radius: kept as it is, because the units of axes differ";
    assert_eq!(left_out, [line]);
    let fault = text(["um", "um", "pixel"], "um").unwrap_err();
    assert!(
        fault.contains("axis z of the store has no metric unit of length"),
        "{fault}"
    );
}
