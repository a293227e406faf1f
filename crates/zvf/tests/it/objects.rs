//! Objects of every recorded store, compared with what the reference decoded.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use zvf::Dataset;
use zvf_catalog::{Catalog, LevelCache, ObjectSet};
use zvf_model::{fetch::Port, level::LevelId};
use zvf_testkit::golden::Golden;

use crate::{
    block_on,
    golden::{open, report, stores},
};

pub(crate) fn catalog<'a>(dataset: &'a Dataset, levels: &'a LevelCache) -> Catalog<'a> {
    Catalog {
        fetch: Port::new(dataset.cells()),
        layout: dataset.layout(),
        root: dataset.root(),
        levels,
    }
}

/// Formats the pieces of an object as in the expectations of 0.6 to 0.8.
fn manifest(objects: &ObjectSet, place: usize) -> Json {
    let pieces = objects.fragments(place).iter().map(|piece| {
        let chunk = objects.chunk(piece.chunk).unwrap();
        json!([chunk.coords(), piece.fragment])
    });
    pieces.collect()
}

/// Checks that both ways of reading objects give the expected pieces of each id.
fn check(dataset: &Dataset, at: &str, level: LevelId, expected: &BTreeMap<i64, Json>) -> usize {
    let levels = LevelCache::default();
    let catalog = catalog(dataset, &levels);
    let objects = block_on(catalog.object_list(level)).unwrap().unwrap();
    assert_eq!(objects.len(), expected.len(), "{at}");
    for (id, expected) in expected {
        let place = objects.find(*id).unwrap();
        assert_eq!(objects.id(place), Some(*id), "{at}");
        assert_eq!(&manifest(&objects, place), expected, "{at} object {id}");
        // Reads one object in a catalog without cached data.
        let levels = LevelCache::default();
        let catalog = self::catalog(dataset, &levels);
        let ids = [*id, i64::MIN, *id];
        let some = block_on(catalog.object_list_of(level, &ids)).unwrap();
        let [Some(place), None, again] = some.indices[..] else {
            panic!("{at}: {:?}", some.indices)
        };
        assert_eq!(again, Some(place), "{at}");
        assert_eq!(some.objects.id(place), Some(*id), "{at}");
        assert_eq!(
            some.objects.row(place),
            objects.row(objects.find(*id).unwrap())
        );
        assert_eq!(
            &manifest(&some.objects, place),
            expected,
            "{at} object {id}"
        );
    }
    owners(&objects, at);
    expected.len()
}

/// Checks that the owner index is the inverse of the pieces.
fn owners(objects: &ObjectSet, at: &str) {
    let mut expected: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    for place in 0..objects.len() {
        for piece in objects.fragments(place) {
            let chunk = objects.chunk(piece.chunk).unwrap().clone();
            let ids = expected.entry((chunk, piece.fragment)).or_default();
            ids.push(objects.id(place).unwrap());
            ids.dedup();
        }
    }
    let chunks: Vec<_> = objects.chunks().collect();
    assert!(chunks.is_sorted(), "{at}");
    for ((chunk, fragment), ids) in &expected {
        let owners = objects.owners_of(chunk);
        let places = owners.positions(*fragment);
        let found: Vec<i64> = places.map(|place| objects.id(place).unwrap()).collect();
        assert_eq!(&found, ids, "{at} {chunk} {fragment}");
        assert_eq!(owners.positions(u32::MAX).next(), None);
    }
}

#[test]
fn golden_objects_09() {
    let golden = Golden::open("zvf-09");
    let (mut seen, mut counts) = (0, 0);
    for (store, expected) in stores(&golden) {
        let dataset = open(&golden, &store);
        for (name, expected) in expected["levels"].as_object().unwrap() {
            let at = format!("{store}/{name}");
            let level = LevelId::parse(name).unwrap();
            let Some(expected) = expected.get("objects") else {
                let levels = LevelCache::default();
                let catalog = catalog(&dataset, &levels);
                assert!(
                    block_on(catalog.object_list(level)).unwrap().is_none(),
                    "{at}"
                );
                continue;
            };
            let manifests =
                expected["manifests"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(id, pieces)| {
                        let pieces = pieces.as_array().unwrap().iter().map(|piece| {
                            let chunk: Vec<i64> = piece[0]
                                .as_str()
                                .unwrap()
                                .split('.')
                                .map(|part| part.parse().unwrap())
                                .collect();
                            json!([chunk, piece[1]])
                        });
                        (id.parse().unwrap(), pieces.collect())
                    });
            counts += check(&dataset, &at, level, &manifests.collect());
            seen += 1;
        }
    }
    report("zvf-09", seen, counts, "levels with objects", "objects");
}

fn older(archive: &str) {
    let golden = Golden::open(archive);
    let (mut seen, mut counts) = (0, 0);
    for (store, expected) in stores(&golden) {
        let Some(levels) = expected["levels"].as_object() else {
            continue;
        };
        let dataset = open(&golden, &store);
        for (name, expected) in levels {
            let Some(manifests) = expected.get("manifests").and_then(Json::as_array) else {
                continue;
            };
            let at = format!("{store}/{name}");
            let manifests = (0..).zip(manifests.iter().cloned()).collect();
            counts += check(&dataset, &at, LevelId::parse(name).unwrap(), &manifests);
            seen += 1;
        }
    }
    report(archive, seen, counts, "levels with objects", "objects");
}

#[test]
fn golden_objects_06() {
    older("zvf-06");
}

#[test]
fn golden_objects_07() {
    older("zvf-07");
}

#[test]
fn golden_objects_08() {
    older("zvf-08");
}
