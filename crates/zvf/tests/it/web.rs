//! Stores behind a web server that gives files and cannot list.

use std::error::Error as _;

use zvf::{Dataset, Error, OpenOptions, model::level::LevelId};
use zvf_testkit::web::Web;

use crate::{block_on, opening::recorded};

/// The recorded stores of an archive, each in a folder of its name.
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

/// What it was asked, in the order of paths: those of a round come in any.
fn asked(web: &Web) -> Vec<String> {
    let mut log = web.take_log();
    log.sort();
    log
}

/// Servers say in different ways that they cannot list.
const REFUSALS: [u16; 4] = [404, 405, 403, 501];

#[test]
fn every_recorded_store_of_0_9_opens_where_nothing_can_be_listed() {
    let (web, names) = serve("zvf-09", 405);
    assert!(names.len() > 50);
    for name in names {
        let dataset = open(&web, &name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = ["0/vertices/zarr.json", "0/zarr.json", "zarr.json"];
        let expected = expected.map(|key| format!("GET /{name}/{key}"));
        assert_eq!(asked(&web), expected);
        for id in dataset.levels() {
            assert_eq!(block_on(dataset.level(*id)).unwrap().level, *id);
        }
        web.take_log();
    }
}

#[test]
fn old_stores_say_what_to_do() {
    for refusal in REFUSALS {
        for archive in ["zvf-06", "zvf-07"] {
            let (web, names) = serve(archive, refusal);
            let name = names.iter().find(|name| name.starts_with("graph")).unwrap();
            let error = open(&web, name).unwrap_err();
            assert!(
                matches!(error, Error::Unlistable { .. }),
                "{refusal}: {error:?}"
            );
            let address = web.address();
            let expected = format!(
                "{address}/{name} cannot list what is in it, and only stores of format 0.9 are \
                 opened without; open a copy in a folder, a zip file or a bucket, or rewrite it as 0.9"
            );
            assert_eq!(error.to_string(), expected);
            assert!(error.source().is_some());
        }
    }
}

/// One array holds all chunks, so that none has to be found.
#[test]
fn native_shards_of_0_8_1_open_without_listing() {
    for refusal in REFUSALS {
        let (web, _) = serve("zvf-08", refusal);
        let dataset = open(&web, "0.8.1/native_sharded.zv").unwrap();
        assert_eq!(dataset.layout().profile(), "0.8.1");
        assert_eq!(dataset.levels(), [LevelId::FULL]);
        assert!(matches!(
            open(&web, "0.8.1/graph.zv").unwrap_err(),
            Error::Unlistable { .. }
        ));
    }
}

#[test]
fn what_cannot_be_listed_cannot_be_counted() {
    for refusal in REFUSALS {
        let (web, names) = serve("zvf-09", refusal);
        let dataset = open(&web, &names[0]).unwrap();
        let error = block_on(dataset.info()).unwrap_err();
        assert!(
            matches!(error, Error::Uncountable { .. }),
            "{refusal}: {error:?}"
        );
        assert!(
            error
                .to_string()
                .ends_with("count a copy in a folder, a zip file or a bucket")
        );
    }
}

#[test]
fn old_links_are_looked_for_by_name() {
    for refusal in REFUSALS {
        let (web, _) = serve("zvf-09", refusal);
        let dataset = open(&web, "graph_3d/store.zarrvectors").unwrap();
        web.take_log();
        let delta = zvf_format::path::Delta::INTRA;
        let session = dataset.session();
        for _ in 0..2 {
            assert!(!block_on(session.has_old_links(LevelId::FULL, delta)).unwrap());
        }
        let name = "graph_3d/store.zarrvectors/0/cross_chunk_links/0/zarr.json";
        let gets: Vec<String> = asked(&web)
            .into_iter()
            .filter(|line| line.starts_with("GET"))
            .collect();
        assert_eq!(gets, [format!("GET /{name}")]);
    }
}
