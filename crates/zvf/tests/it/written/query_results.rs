//! A query result can be written back as a store with equal content.

use futures_util::TryStreamExt as _;
use zvf::{
    BatchOptions, CreateOptions, Dataset, Editor, ErrorKind, IntoGeometry, OutOfBounds, Query,
    QueryResult, Store,
};
use zvf_build::{Column, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, Profile};

use super::{
    content::Content,
    random::{self, Case},
};
use crate::block_on;

async fn created(result: QueryResult, design: Design) -> Dataset {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let geometry = result.into_geometry().unwrap();
    let options = CreateOptions::default();
    zvf::create(&store, geometry, design, &options)
        .await
        .unwrap();
    Dataset::open(&store).await.unwrap()
}

fn check(seed: u64, kind: GeometryKind) {
    let Case {
        geometry, design, ..
    } = random::case(seed, kind, Profile::V09);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let options = CreateOptions::default();
        let written =
            zvf::create(&store, &geometry.build().unwrap(), design.clone(), &options).await;
        written.unwrap();
        let source = Dataset::open(&store).await.unwrap();
        let result = source.query(&Query::new()).await.unwrap();
        let copy = created(result, design).await;
        let (expected, found) = (Content::read(&source).await, Content::read(&copy).await);
        let about = format!("seed {seed}, {kind:?}");
        assert_eq!(expected.vertices, found.vertices, "{about}");
        assert_eq!(expected.owners, found.owners, "{about}");
        assert_eq!(expected.paths, found.paths, "{about}");
        assert_eq!(expected.links, found.links, "{about}");
        // Results do not contain objects without vertices.
        for (id, row) in &found.objects {
            assert_eq!(expected.objects.get(id), Some(row), "object {id}, {about}");
        }
    });
}

#[test]
fn results_of_every_kind_are_written_back_with_equal_content() {
    for kind in GeometryKind::ALL {
        for seed in 0..zvf_testkit::sample::cases(20) {
            check(seed, kind);
        }
    }
}

/// Returns the content of a new store, and its batches of four vertices or links.
async fn batches(
    geometry: &GeometryBuilder,
    kind: GeometryKind,
) -> (QueryResult, Vec<QueryResult>) {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let options = CreateOptions::default();
    zvf::create(
        &store,
        geometry.clone().build().unwrap(),
        Design::new(kind),
        &options,
    )
    .await
    .unwrap();
    let dataset = Dataset::open(&store).await.unwrap();
    let stream = dataset.stream(&Query::new(), BatchOptions::new().rows(4));
    let batches = stream.try_collect().await.unwrap();
    (dataset.query(&Query::new()).await.unwrap(), batches)
}

/// Row numbers of a batch count from the start of the whole result, those of geometry do not.
#[test]
fn batches_of_paths_are_written_back_one_after_the_other() {
    let rows = 0..12_i16;
    let values = rows.clone().flat_map(|row| [f32::from(row), 0.0, 1.0]);
    let mut paths =
        Geometry::builder(NumericColumn::float32(3, values)).paths(vec![0, 4, 6, 8, 12], None);
    let row = NumericColumn::from_values(1, rows);
    paths.vertex.push(Column::new("row", row));
    // Every fragment of an object has its row, so that the rows of the batch are looked up.
    let weight = NumericColumn::from_values(1, [5_i16, 6, 7, 8]);
    paths.fragment.push(Column::new("weight", weight));
    block_on(async {
        let (expected, batches) = batches(&paths, GeometryKind::Polylines).await;
        assert!(batches.len() > 2, "{}", batches.len());
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        for batch in batches {
            let is_first = batch.first_row == 0;
            let geometry = batch.into_geometry().unwrap();
            if is_first {
                let mut design = Design::new(GeometryKind::Polylines);
                design.bounds = Some((vec![0.0; 3], vec![20.0; 3]));
                let options = CreateOptions::default();
                let made = zvf::create(&store, geometry, design, &options).await;
                made.unwrap();
            } else {
                let editor = Editor::open(&store).await.unwrap();
                let added = editor.append(&geometry, OutOfBounds::Reject).await;
                added.unwrap();
            }
        }
        let dataset = Dataset::open(&store).await.unwrap();
        let found = dataset.query(&Query::new()).await.unwrap();
        assert_eq!(found.positions, expected.positions);
        assert_eq!(found.parts, expected.parts);
        assert_eq!(found.vertex, expected.vertex);
        assert_eq!(found.fragment, expected.fragment);
        let each = [5_i16, 5, 5, 5, 6, 6, 7, 7, 8, 8, 8, 8];
        let each = NumericColumn::from_values(1, each);
        assert_eq!(found.fragment[0].values, each.into());
    });
}

/// The links of a batch join vertices of earlier batches.
#[test]
fn batches_of_links_are_no_geometry() {
    let values = (0..12_i16).flat_map(|row| [f32::from(row), 0.0, 1.0]);
    let graph = Geometry::builder(NumericColumn::float32(3, values))
        .links(2, (0..11).flat_map(|row| [row, row + 1]).collect());
    block_on(async {
        let (_, batches) = batches(&graph, GeometryKind::Graphs).await;
        let is_linked = |batch: &QueryResult| batch.links.as_ref().is_some_and(|l| !l.is_empty());
        let links: Vec<QueryResult> = batches.into_iter().filter(is_linked).collect();
        assert!(!links.is_empty());
        for batch in links {
            let error = batch.into_geometry().unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidInput, "{error:?}");
            let text = error.to_string();
            assert!(text.contains("convert the whole result"), "{text}");
        }
    });
}
