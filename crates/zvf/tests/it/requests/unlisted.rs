//! Stores that cannot be listed.

use zvf::Query;
use zvf_catalog::{Catalog, LevelCache, Selection};
use zvf_model::fetch::Port;
use zvf_query::QueryError;
use zvf_query::Session;
use zvf_testkit::stores::{Cells, Recipe, StoreKind, wide};

use super::{
    cases,
    cost::QueryCase,
    kinds::{self, KINDS},
};
use crate::{block_on, fetch::FromStore, stores};

fn run(fetch: &FromStore, query: &Query) -> Result<zvf::QueryResult, QueryError> {
    let levels = LevelCache::default();
    let catalog = Catalog {
        fetch: Port::new(fetch),
        layout: fetch.dataset.layout(),
        root: fetch.dataset.root(),
        levels: &levels,
    };
    block_on(Session::new(catalog).query(query))
}

fn local(kind: StoreKind) -> Recipe {
    Recipe {
        seed: 2,
        kind,
        size: 500,
        ..Recipe::default()
    }
}

/// Links are found by trying the possible chunk offsets.
#[test]
fn named_columns_are_read_without_a_listing() {
    for (name, kind, _) in KINDS
        .into_iter()
        .filter(|(_, kind, _)| !kind.is_linked() || *kind == StoreKind::Triangles)
    {
        // Links to distant chunks are not tried.
        let made = if kind.is_linked() {
            wide(&local(kind), 3)
        } else {
            kinds::fixed(kind, Cells::Plain)
        };
        let dataset = block_on(stores::open(&made));
        let [listed, unlisted] = [true, false].map(|lists| FromStore {
            lists,
            ..FromStore::new(dataset.clone())
        });
        let named = |case: &QueryCase| !case.counts && case.query.columns != Selection::All;
        for case in cases::of(&made.truth).into_iter().filter(named) {
            let found = run(&unlisted, &case.query)
                .unwrap_or_else(|e| panic!("{name}: {}: {e:?}", case.name));
            assert_eq!(
                found,
                run(&listed, &case.query).unwrap(),
                "{name}: {}",
                case.name
            );
        }
    }
}

#[test]
fn a_query_of_all_columns_requires_a_listing() {
    let made = kinds::fixed(StoreKind::BinnedPoints, Cells::Plain);
    let dataset = block_on(stores::open(&made));
    let unlisted = FromStore {
        lists: false,
        ..FromStore::new(dataset)
    };
    let error = run(&unlisted, &Query::new()).unwrap_err();
    assert!(
        error.to_string().contains("name the attributes to read"),
        "{error}\n{error:?}"
    );
}
