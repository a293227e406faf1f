//! Stores that cannot be listed.

use zvf::Query;
use zvf_model::fetch::Port;
use zvf_query::QueryError;
use zvf_query::{LevelCache, Selection, Session};
use zvf_testkit::stores::{Cells, Recipe, StoreKind, wide};

use super::{
    asked,
    cost::Ask,
    kinds::{self, KINDS},
};
use crate::{block_on, fetch::FromStore, stores};

fn ask(fetch: &FromStore, query: &Query) -> Result<zvf::QueryResult, QueryError> {
    let levels = LevelCache::default();
    let session = Session {
        fetch: Port::new(fetch),
        layout: fetch.dataset.layout(),
        root: fetch.dataset.root(),
        levels: &levels,
    };
    block_on(session.query(query))
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
        let made = match kind.is_linked() {
            true => wide(&local(kind), 3),
            false => kinds::fixed(kind, Cells::Plain),
        };
        let dataset = block_on(stores::open(&made));
        let [listed, unlisted] = [true, false].map(|lists| FromStore {
            lists,
            ..FromStore::new(dataset.clone())
        });
        let named = |ask: &Ask| !ask.counts && ask.query.columns != Selection::All;
        for ask in asked::of(&made.truth).into_iter().filter(named) {
            let found = self::ask(&unlisted, &ask.query);
            let found = found.unwrap_or_else(|e| panic!("{name}: {}: {e:?}", ask.name));
            assert_eq!(
                found,
                self::ask(&listed, &ask.query).unwrap(),
                "{name}: {}",
                ask.name
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
    let error = ask(&unlisted, &Query::new()).unwrap_err();
    assert!(
        error.to_string().contains("name the attributes to read"),
        "{error}\n{error:?}"
    );
}
