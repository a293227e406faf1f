//! Chunks that do not fit into memory together.

use std::ops::ControlFlow;

use zvf::{
    Column, CreateOptions, Dataset, Design, ErrorKind, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, OpenOptions, Position, Predicate, Query, QueryResult, VertexOwners,
};

use crate::block_on;

/// Paths in no spatial order: random walks through a box of 64 chunks.
fn walks() -> GeometryBuilder {
    const PATHS: u64 = 600;
    const POINTS: u64 = 40;
    let mut state = 7_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        f64::from(u32::try_from(state >> 40).unwrap()) / f64::from(1 << 24)
    };
    let mut positions = Vec::new();
    for _ in 0..PATHS {
        let mut at = [random() * 80.0, random() * 80.0, random() * 80.0];
        for _ in 0..POINTS {
            positions.extend(at);
            at = at.map(|value| (value + random() * 8.0 - 4.0).clamp(0.0, 79.9));
        }
    }
    let values = (0..PATHS * POINTS).map(|row| u32::try_from(row).unwrap());
    Geometry::builder(NumericColumn::float64(3, positions))
        .paths((0..=PATHS).map(|path| path * POINTS).collect(), None)
        .vertex(vec![Column::new("row", values.collect::<NumericColumn>())])
}

/// Creates a store of 64 chunks and opens it with the default budget.
async fn created(address: &str, geometry: &GeometryBuilder, kind: GeometryKind) -> Dataset {
    let mut design = Design::new(kind);
    design.chunk_shape = Some(vec![20.0; 3]);
    let options = CreateOptions::default();
    let created = zvf::create(address, geometry.clone().build().unwrap(), design, &options);
    created.await.unwrap();
    Dataset::open(address).await.unwrap()
}

/// Returns all paths, read in batches, and the number of vertices of each batch.
async fn in_batches(dataset: &Dataset) -> (QueryResult, Vec<usize>) {
    let mut found: Option<QueryResult> = None;
    let mut batches = Vec::new();
    let query = Query::new();
    let report = dataset.batches(&query, |batch| {
        batches.push(batch.positions.len());
        let Some(all) = &mut found else {
            found = Some(batch);
            return ControlFlow::Continue(());
        };
        let (parts, more) = (all.parts.as_mut().unwrap(), batch.parts.unwrap());
        parts.offsets.extend(more.offsets.into_iter().skip(1));
        parts.objects.extend(more.objects);
        all.positions.append(batch.positions).unwrap();
        for (column, more) in all.vertex.iter_mut().zip(batch.vertex) {
            column.append(more).unwrap();
        }
        ControlFlow::Continue(())
    });
    report.await.unwrap();
    (found.unwrap(), batches)
}

/// A query of all paths reads the store a few times, even with little memory. It does not read all
/// chunks for each path.
#[test]
fn paths_that_go_everywhere_are_read_within_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("walks.zv").display().to_string();
    let query = Query::new();
    block_on(async {
        let whole = created(&address, &walks(), GeometryKind::Streamlines).await;
        let expected = whole.query(&query).await.unwrap();
        let once = whole.store().activity().bytes_read;
        let options = OpenOptions::default().budget(400 << 10).cache(0);
        let small = Dataset::open_with(address.as_str(), &options)
            .await
            .unwrap();
        let (found, batches) = in_batches(&small).await;
        let batches = batches.len();
        assert!(batches > 4, "{batches} batches");
        assert_eq!(found.positions, expected.positions);
        assert_eq!(found.parts, expected.parts);
        assert_eq!(found.vertex, expected.vertex);
        let bytes = small.store().activity().bytes_read;
        assert!(bytes < once * 12, "{bytes} bytes, {once} for the whole");
    });
}

/// A level that fits into memory is read at once, but its batches are as small as those of others.
#[test]
fn loaded_paths_are_passed_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("walks.zv").display().to_string();
    block_on(async {
        let whole = created(&address, &walks(), GeometryKind::Streamlines).await;
        let expected = whole.query(&Query::new()).await.unwrap();
        let options = OpenOptions::default().budget(4 << 20);
        let small = Dataset::open_with(address.as_str(), &options);
        let (found, batches) = in_batches(&small.await.unwrap()).await;
        assert_eq!(found.positions, expected.positions);
        assert_eq!(found.parts, expected.parts);
        // An eighth of the budget, for vertices of 28 bytes.
        let max = (4 << 20) / 8 / 28;
        assert_eq!(batches.len(), 2, "{batches:?}");
        assert!(batches.iter().all(|rows| *rows <= max), "{batches:?}");
    });
}

/// A search keeps the chunks of the rows that it found, not all that it read.
#[test]
fn rare_points_are_found_within_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("points.zv").display().to_string();
    block_on(async {
        let mut geometry = walks();
        geometry.owners = VertexOwners::Unnamed;
        let whole = created(&address, &geometry, GeometryKind::Points).await;
        let here = Position::new(&[0.0; 3]).unwrap();
        let predicate = Predicate::parse("vertex.row between 12000 and 12004").unwrap();
        let query = Query::new().filter(predicate).nearest(here, 5);
        let expected = whole.query(&query).await.unwrap();
        assert_eq!(expected.positions.len(), 5);
        let options = OpenOptions::default().budget(400 << 10).cache(0);
        let small = Dataset::open_with(address.as_str(), &options);
        let found = small.await.unwrap().query(&query).await.unwrap();
        assert_eq!(found, expected);
    });
}

/// The offsets of a second batch of paths were taken for those of the first one, so that the nearest paths
/// came without vertices.
#[test]
fn the_nearest_paths_of_several_batches_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("walks.zv").display().to_string();
    block_on(async {
        let whole = created(&address, &walks(), GeometryKind::Polylines).await;
        let here = Position::new(&[40.0; 3]).unwrap();
        let query = Query::new().nearest(here, 500);
        let expected = whole.query(&query).await.unwrap();
        assert_eq!(expected.parts.as_ref().unwrap().objects.len(), 500);
        let options = OpenOptions::default().budget(4 << 20);
        let small = Dataset::open_with(address.as_str(), &options);
        let mut batches = Vec::new();
        let small = small.await.unwrap();
        let report = small.batches(&query, |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        });
        report.await.unwrap();
        assert_eq!(batches.first().unwrap().parts, expected.parts);
        assert_eq!(batches.first().unwrap().distances, expected.distances);
    });
}

/// Squares of such distances are infinite, so that the first vertices were the nearest.
#[test]
fn positions_too_far_for_distances_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("paths.zv").display().to_string();
    block_on(async {
        let dataset = created(&address, &walks(), GeometryKind::Polylines).await;
        for (at, is_near) in [(1e300, false), (-1e151, false), (1e149, true)] {
            let here = Position::new(&[0.0, 0.0, at]).unwrap();
            let found = dataset.query(&Query::new().nearest(here, 1)).await;
            match found {
                Ok(found) => assert!(found.distances.unwrap()[0].is_finite() && is_near),
                Err(error) => {
                    assert!(!is_near && error.to_string().contains("1e150"), "{error}");
                    assert_eq!(error.kind(), ErrorKind::InvalidInput);
                }
            }
        }
    });
}
