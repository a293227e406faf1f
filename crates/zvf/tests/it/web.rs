//! Stores on a web server without listings.

use std::error::Error as _;

use zvf::{Dataset, Error, ErrorKind, LevelId, OpenOptions, Query, Shape, StateError};
use zvf_catalog::CatalogError;
use zvf_catalog::{Scope, Selection};
use zvf_model::fetch::FetchProblem;
use zvf_query::geometry::Bbox;
use zvf_store::ListError;
use zvf_testkit::{
    stores::{Recipe, StoreKind, make},
    web::Web,
};

use crate::{
    block_on,
    opening::{places, recorded},
};

/// Serves the recorded stores of an archive, each in a folder of its name.
fn serve(archive: &str, refusal: u16) -> (Web, Vec<String>) {
    let stores = recorded(archive);
    let names = stores.iter().map(|(name, _)| name.clone()).collect();
    let files = stores.into_iter().flat_map(|(name, files)| {
        let files = files.into_iter();
        files.map(move |(key, bytes)| (format!("{name}/{key}"), bytes))
    });
    (Web::serve(files.collect(), refusal), names)
}

fn open(web: &Web, name: &str) -> Result<Dataset, Error> {
    let address = format!("{}/{name}", web.address());
    block_on(Dataset::open_with(
        &address,
        &OpenOptions::default().retries(0),
    ))
}

/// Returns the requests in the order of paths, because requests of a round arrive in any order.
fn take_requests(web: &Web) -> Vec<String> {
    let mut log = web.take_log();
    log.sort();
    log
}

/// Status codes with which servers reject listings.
const REFUSALS: [u16; 4] = [404, 405, 403, 501];

#[test]
fn every_recorded_store_of_0_9_opens_where_nothing_can_be_listed() {
    let (web, names) = serve("zvf-09", 405);
    assert!(names.len() > 50);
    for name in names {
        let dataset = open(&web, &name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = ["0/vertices/zarr.json", "0/zarr.json", "zarr.json"]
            .map(|key| format!("GET /{name}/{key}"));
        assert_eq!(take_requests(&web), expected);
        for id in dataset.levels() {
            assert_eq!(block_on(dataset.level(*id)).unwrap().level, *id);
        }
        web.take_log();
    }
}

#[test]
fn the_error_of_an_old_store_contains_a_hint() {
    for refusal in REFUSALS {
        for archive in ["zvf-06", "zvf-07"] {
            let (web, names) = serve(archive, refusal);
            let name = names.iter().find(|name| name.starts_with("graph")).unwrap();
            let error = open(&web, name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{refusal}: {error:?}");
            let address = web.address();
            let expected = format!(
                "{address}/{name} cannot list its contents, and only stores of format 0.9 open \
                 without a listing; allow listing, open a copy in a folder or zip file, or migrate it to 0.9"
            );
            assert!(error.to_string().starts_with(&expected), "{error}");
            assert!(error.source().is_some());
        }
    }
}

/// Opens a recorded store over the web without the files below `gone`.
fn without(name: &str, gone: &str) -> Result<Dataset, Error> {
    let stores = recorded("zvf-09").into_iter();
    let mut found = stores.filter(|(store, _)| store.starts_with(name));
    let files = found
        .next()
        .unwrap()
        .1
        .into_iter()
        .filter(|(key, _)| !key.starts_with(gone))
        .map(|(key, bytes)| (format!("store/{key}"), bytes));
    open(&Web::serve(files.collect(), 405), "store")
}

#[test]
fn missing_files_are_reported_without_a_listing() {
    // Only the vertices are missing.
    let dataset = without("graph_3d/", "0/vertices/").unwrap();
    assert_eq!(dataset.layout().profile(), "0.9");
    // The metadata of the level is missing.
    let error = without("graph_3d/", "0/zarr.json").unwrap_err();
    assert!(error.kind() == ErrorKind::Damaged, "{error:?}");
    assert!(error.to_string().starts_with("0/zarr.json is missing"));
    // A level named by the root is missing.
    let error = without("pyramid_points/", "0/").unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    let error = without("graph_3d/", "zarr.json").unwrap_err();
    assert!(
        matches!(error.cause(), Some(StateError::NoStore { .. })),
        "{error:?}"
    );
}

/// One array holds all chunks, so no listing is required.
#[test]
fn native_shards_of_0_8_1_open_without_listing() {
    for refusal in REFUSALS {
        let (web, _) = serve("zvf-08", refusal);
        let dataset = open(&web, "0.8.1/native_sharded.zv").unwrap();
        assert_eq!(dataset.layout().profile(), "0.8.1");
        assert_eq!(dataset.levels(), [LevelId::FULL]);
        let error = open(&web, "0.8.1/graph.zv").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.cause::<ListError>().is_some());
    }
}

#[test]
fn counting_without_a_listing_is_an_error() {
    for refusal in REFUSALS {
        let (web, names) = serve("zvf-09", refusal);
        let dataset = open(&web, &names[0]).unwrap();
        let error = block_on(dataset.info()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{refusal}: {error:?}");
        assert!(error.cause::<ListError>().is_some());
        assert!(
            error
                .to_string()
                .contains("allow listing, or count a copy in a folder or zip file: ")
        );
    }
}

#[test]
fn legacy_links_are_probed_by_name() {
    for refusal in REFUSALS {
        let (web, _) = serve("zvf-09", refusal);
        let dataset = open(&web, "graph_3d/store.zarrvectors").unwrap();
        web.take_log();
        let delta = zvf_format::path::Delta::INTRA;
        let catalog = dataset.catalog();
        for _ in 0..2 {
            assert!(!block_on(catalog.has_legacy_links(LevelId::FULL, delta)).unwrap());
        }
        let name = "graph_3d/store.zarrvectors/0/cross_chunk_links/0/zarr.json";
        let gets: Vec<String> = take_requests(&web)
            .into_iter()
            .filter(|line| line.starts_with("GET"))
            .collect();
        assert_eq!(gets, [format!("GET /{name}")]);
    }
}

/// Compares results with those of a store in memory. Queries that require a listing are counted as
/// refused.
fn results(archive: &str, shape: Option<Shape>) -> (usize, Vec<String>) {
    let mut query = places();
    query.shape = shape;
    let (web, _) = serve(archive, 405);
    let (mut same, mut refused) = (0, Vec::new());
    for (name, files) in recorded(archive) {
        let store = OpenOptions::default().from_memory(files).unwrap();
        let expected = block_on(async {
            let dataset = Dataset::open(store).await?;
            dataset.query(&query).await
        });
        let found = open(&web, &name).unwrap();
        match (expected, block_on(found.query(&query))) {
            (Ok(expected), Ok(found)) => {
                assert_eq!(found, expected, "{name}");
                same += usize::from(!found.positions.is_empty());
            }
            (Err(expected), Err(found)) => {
                assert_eq!(found.to_string(), expected.to_string(), "{name}");
            }
            (Ok(_), Err(ref error)) if let Some(CatalogError::Fetch(error)) = error.cause() => {
                assert_eq!(error.problem, FetchProblem::Unlistable, "{name}");
                refused.push(name);
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    (same, refused)
}

#[test]
fn points_need_no_listing() {
    let (same, refused) = results("zvf-09", Some(Shape::Points));
    assert!(same > 50, "{same}");
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn few_queries_need_a_listing() {
    let (same, refused) = results("zvf-09", None);
    assert!(same > 50, "{same}");
    // Links to chunks beyond the probed offsets, or without a count.
    let expected = [
        "graph_2d_objects",
        "graph_3d",
        "graph_no_edges",
        "graph_sharded",
        "links_policies",
        "mesh_quad",
        "skeleton_2d",
    ];
    let refused = refused.iter().filter_map(|name| name.split('/').next());
    assert_eq!(refused.collect::<Vec<_>>(), expected);
}

/// Named attributes are found without a listing.
#[test]
fn a_box_of_points_takes_named_attributes_and_three_requests() {
    let made = make(&Recipe {
        seed: 40,
        kind: StoreKind::BinnedPoints,
        axes: 2,
        size: 100,
        ..Recipe::default()
    });
    let place = &made.truth.vertices[0].position;
    let bbox = Bbox::new(place, place).unwrap();
    let files = made.files.iter().cloned();
    let web = Web::serve(
        files
            .map(|(key, file)| (format!("made/{key}"), file))
            .collect(),
        405,
    );
    let dataset = open(&web, "made").unwrap();
    let radius = Selection::Named(vec![(Some(Scope::Vertex), "radius".to_owned())]);
    let query = Query::new().region(bbox);
    let result = block_on(dataset.query(&query.clone().columns(radius))).unwrap();
    assert!(!result.positions.is_empty());
    assert_eq!(result.vertex.len(), 1);
    let cells: Vec<String> = take_requests(&web)
        .into_iter()
        .filter(|line| line.contains("/c/"))
        .collect();
    let folders = ["vertex_attributes/radius", "vertex_fragments", "vertices"];
    assert_eq!(cells.len(), folders.len(), "{cells:?}");
    for (line, folder) in cells.iter().zip(folders) {
        assert!(
            line.starts_with(&format!("GET /made/0/{folder}/c/")),
            "{line}"
        );
    }
    let error = block_on(dataset.query(&query)).unwrap_err();
    let text = format!("{error}: {:?}", error.source());
    assert!(text.contains("name the attributes to read"), "{text}");
}
