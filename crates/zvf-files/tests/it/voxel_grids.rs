//! Voxel grids of TRK and TRX files, in which programs look for streamlines.

use std::{fs, path::Path};

use serde_json::Value;
use zvf::{AxisSpec, Geometry, GeometryKind, NumericColumn, QueryResult};
use zvf_files::{FileReadOptions, GroupTables, StoreDescription};
use zvf_model::grid::Bounds;

use crate::round_trip::members;

/// A grid: the affine map of its voxels, row by row, and their numbers.
#[derive(Debug, PartialEq)]
struct Grid {
    affine: Vec<f64>,
    dimensions: Vec<f64>,
}

impl Grid {
    /// Reads the header of a file.
    fn of(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        if path.extension().unwrap() == "trx" {
            let header: Value = serde_json::from_slice(&members(bytes)["header.json"]).unwrap();
            let numbers = |value: &Value| {
                let all = value.as_array().unwrap().iter();
                all.map(|value| value.as_f64().unwrap()).collect()
            };
            let rows = header["VOXEL_TO_RASMM"].as_array().unwrap();
            return Self {
                affine: rows.iter().flat_map(numbers).collect::<Vec<f64>>(),
                dimensions: numbers(&header["DIMENSIONS"]),
            };
        }
        let float = |at: usize| f32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let short = |at: usize| i16::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        Self {
            affine: (0..16).map(|at| float(440 + 4 * at).into()).collect(),
            dimensions: (0..3).map(|at| short(6 + 2 * at).into()).collect(),
        }
    }

    /// Returns whether a point is in the voxels, which extend half of a voxel around their centres.
    fn holds(&self, point: &[f64]) -> bool {
        (0..3).all(|axis| {
            let row = &self.affine[4 * axis..4 * axis + 4];
            let voxel = (point[axis] - row[3]) / row[axis];
            (-0.5..=self.dimensions[axis] - 0.5).contains(&voxel)
        })
    }
}

/// Returns a path of each pair of points.
fn paths(points: &[[f64; 3]]) -> QueryResult {
    let values = points.iter().flatten().copied();
    let mut geometry = Geometry::builder(NumericColumn::float64(3, values));
    let ends = (0..=points.len()).step_by(2);
    geometry = geometry.paths(ends.map(|at| u64::try_from(at).unwrap()).collect(), None);
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    zvf_files::whole_result(geometry, GeometryKind::Streamlines, axes).unwrap()
}

/// Writes batches to a file, and returns the notes.
fn write(path: &Path, description: &StoreDescription, batches: &[QueryResult]) -> Vec<String> {
    let mut writer = zvf_files::create(path, description).unwrap();
    let mut first_row = 0;
    for batch in batches {
        let mut batch = batch.clone();
        batch.first_row = first_row;
        for offset in &mut batch.parts.as_mut().unwrap().offsets {
            *offset += first_row;
        }
        first_row += u64::try_from(batch.positions.len()).unwrap();
        writer.write(&batch).unwrap();
    }
    writer.finish(&GroupTables::default()).unwrap().notes
}

fn points(path: &Path) -> Vec<f64> {
    let mut reader = zvf_files::open(path, &FileReadOptions::default()).unwrap();
    let positions = zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder()
        .positions;
    positions.to_vec::<f64>().unwrap()
}

/// The grid was one voxel at the origin, and programs drop streamlines outside the grid.
#[test]
fn grids_enclose_all_points() {
    let folder = tempfile::tempdir().unwrap();
    for (at, batches) in [
        vec![paths(&[[1.0, 2.0, 3.0], [40.7, -5.2, 3.0]])],
        // The second batch is below the grid of the first, and the third has another size of voxels.
        vec![
            paths(&[[5.5, 5.5, 5.5], [9.0, 9.0, 9.0]]),
            paths(&[
                [-70.25, 2.0, 1e-3],
                [3.0, 3.0, 3.0],
                [1.0, 1.0, 1.0],
                [2.0; 3],
            ]),
            paths(&[[0.0; 3], [123_456.0, 0.0, -9.0]]),
        ],
        vec![paths(&[[1e6, 5.3e6, -4e8], [1e6 + 0.5, 5.3e6, -4e8]])],
        vec![paths(&[[-1e30, 0.0, 0.0], [1e30, 0.0, 0.0]])],
    ]
    .iter()
    .enumerate()
    {
        for format in ["trk", "trx"] {
            let path = folder.path().join(format!("{at}.{format}"));
            let notes = write(&path, &StoreDescription::default(), batches);
            assert_eq!(notes.len(), 1);
            assert!(notes[0].contains("made up"), "{notes:?}");
            let grid = Grid::of(&path);
            let given: Vec<f64> = batches
                .iter()
                .flat_map(|batch| batch.positions.to_vec::<f64>().unwrap())
                .collect();
            for point in given.chunks(3) {
                assert!(grid.holds(point), "{format}: {grid:?} lacks {point:?}");
            }
            let found = points(&path);
            assert_eq!(found.len(), given.len());
            let extent = given
                .chunks(3)
                .flatten()
                .fold(0.0_f64, |most, it| most.max(it.abs()));
            for (found, given) in found.iter().zip(&given) {
                let near = (found - given).abs() <= extent * 2e-7;
                assert!(near, "{format}: {found} is not {given}");
            }
        }
    }
}

/// All files from a store have one grid, in millimetres, whatever they hold of it.
#[test]
fn grids_enclose_the_bounds_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let axes = ["x", "y", "z"].map(|name| AxisSpec::new(name).unit("micrometer"));
    let mut description = StoreDescription::from_parts(axes.to_vec(), None, [].into());
    description.bounds = Bounds::new(&[-2500.0, 0.0, 1000.0], &[7500.0, 3000.0, 1000.0]).ok();
    let expected = Grid {
        affine: [
            [1.0, 0.0, 0.0, -3.0],
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
        .concat(),
        dimensions: vec![12.0, 5.0, 2.0],
    };
    for (at, some) in [[0.0, 10.0, 1000.0], [7500.0, 3000.0, 1000.0]]
        .iter()
        .enumerate()
    {
        for format in ["trk", "trx"] {
            let path = folder.path().join(format!("{at}.{format}"));
            write(&path, &description, &[paths(&[*some, *some])]);
            assert_eq!(Grid::of(&path), expected, "{format}");
        }
    }
    // Bounds that do not hold what the store has are extended.
    let path = folder.path().join("more.trk");
    write(&path, &description, &[paths(&[[9000.0; 3], [-9000.0; 3]])]);
    let grid = Grid::of(&path);
    assert!(grid.holds(&[9.0; 3]) && grid.holds(&[-9.0; 3]), "{grid:?}");
}

/// A grid that the store keeps stays, even if points are outside it.
#[test]
fn kept_grids_stay() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first.trk");
    let near = paths(&[[1.0; 3], [2.0; 3]]);
    write(&first, &StoreDescription::default(), &[near]);
    let mut reader = zvf_files::open(&first, &FileReadOptions::default()).unwrap();
    let description = StoreDescription::from(reader.description());
    drop(zvf_files::read_whole(reader.as_mut()));
    for format in ["trk", "trx"] {
        let path = folder.path().join(format!("again.{format}"));
        let far = paths(&[[100.0; 3], [2.0; 3]]);
        assert_eq!(write(&path, &description, &[far]), [""; 0]);
        assert_eq!(Grid::of(&path), Grid::of(&first));
    }
}
