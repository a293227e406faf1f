//! Budgets combined with every other query option.

use zvf::{Error, Query};
use zvf_catalog::{CatalogError, Fault, Scope, Selection};
use zvf_query::{
    QueryResult, VertexBudget,
    geometry::{Bbox, Sphere},
    predicate::Predicate,
};
use zvf_testkit::stores::{Layers, Recipe, StoreKind, layers};

use super::{check_rows, check_ways, rule, run, total};
use crate::{block_on, stores::open};

/// Returns a store and a budget between the sizes of its levels, which mixes levels.
fn made(kind: StoreKind) -> (Layers, u64) {
    let recipe = Recipe {
        seed: 9,
        kind,
        size: 300,
        axes: 2,
        ..Recipe::default()
    };
    let made = layers(&recipe, 2, false);
    let max = u64::midpoint(total(&made, 0, false), total(&made, 1, false));
    assert_eq!(rule::drawn(&made, false, max, None).len(), 2);
    (made, max)
}

fn levels(result: &QueryResult) -> Vec<u32> {
    let levels = result.levels.iter();
    levels.map(|used| used.level.number()).collect()
}

/// A query of objects counts only their own fragments, so a few objects may fit whole where the
/// store does not.
#[test]
fn object_queries_count_only_fragments_of_these_objects() {
    let (made, _) = made(StoreKind::ObjectPoints);
    let truth = &made.fine.truth;
    let objects = truth.objects.as_ref().unwrap();
    let dataset = block_on(open(&made.fine));
    for object in objects.iter().filter(|object| !object.fragments.is_empty()) {
        let own = truth.vertices_of(object).count() as u64;
        let of_object = Query::new().objects([object.id]);
        let result = run(&dataset, &of_object.clone().level(VertexBudget::new(own)));
        assert_eq!(
            (result.level.number(), result.positions.len() as u64),
            (0, own)
        );
        let explained = block_on(dataset.explain(&of_object.clone().level(VertexBudget::new(own))));
        let explained_vertices: u64 = explained
            .unwrap()
            .levels
            .iter()
            .map(|level| level.vertices)
            .sum();
        assert_eq!(explained_vertices, own);
        // Naming an object twice does not return more than the budget.
        let twice = Query::new().objects([object.id, object.id]);
        let result = block_on(dataset.query(&twice.level(VertexBudget::new(2 * own - 1))));
        match result {
            Ok(result) => assert!((result.positions.len() as u64) < 2 * own, "{result:?}"),
            Err(error) => assert!(format!("{error:?}").contains("OverVertices")),
        }
    }
}

/// A coarser level that lacks an attribute is neither skipped nor filled with nulls.
#[test]
fn attributes_that_a_level_lacks_are_errors() {
    let (made, max) = made(StoreKind::Points);
    let dataset = block_on(open(&made.fine));
    let whole = run(&dataset, &Query::new().level(VertexBudget::new(max)));
    let is_there = |query: &Query| run(&dataset, query);
    // Level 1 lacks the attribute. A query that uses it fails instead of skipping the level.
    let attribute = &made.fine.truth.vertex_attributes[0].name;
    let text = format!("vertex.\"{attribute}\" is not null");
    let predicate = Predicate::parse(&text).unwrap();
    let query = Query::new().level(VertexBudget::new(max)).filter(predicate);
    let found = block_on(dataset.query(&query));
    assert!(
        matches!(&found, Err(error) if matches!(error.cause(), Some(CatalogError::NoAttribute { .. }))),
        "{found:?}"
    );
    let named = Selection::Named(vec![(Some(Scope::Vertex), attribute.clone())]);
    let query = Query::new().level(VertexBudget::new(max)).columns(named);
    let found = block_on(dataset.query(&query));
    assert!(
        matches!(&found, Err(error) if matches!(error.cause(), Some(CatalogError::NoAttribute { .. }))),
        "{found:?}"
    );
    let query = Query::new()
        .level(VertexBudget::new(max))
        .columns(Selection::none());
    let bare = is_there(&query);
    assert_eq!(bare.positions, whole.positions);
    assert_eq!(levels(&bare), [1, 0]);
}

#[test]
fn budgets_apply_to_spheres() {
    let (made, _) = made(StoreKind::BinnedPoints);
    let dataset = block_on(open(&made.fine));
    let truth = &made.fine.truth;
    let mut sizes = Vec::new();
    for radius in [0.5, 2.0, 8.0, 64.0] {
        let sphere = Sphere::new(&truth.vertices[40].position, radius).unwrap();
        let plain = Query::new().region(sphere);
        let all = run(&dataset, &plain).positions.len() as u64;
        for max in [all / 2, all, all * 2] {
            let query = plain.clone().level(VertexBudget::new(max));
            match block_on(dataset.query(&query)) {
                Ok(result) => {
                    assert!(result.positions.len() as u64 <= max);
                    check_ways(&dataset, &query, &result);
                    sizes.push(levels(&result).len());
                }
                Err(error) => assert!(format!("{error:?}").contains("OverVertices")),
            }
        }
    }
    assert!(sizes.contains(&1) && sizes.contains(&2), "{sizes:?}");
}

/// A small box is read from the finest level even if its chunk alone exceeds the budget.
#[test]
fn a_small_box_uses_the_finest_level_that_fits() {
    let (made, _) = made(StoreKind::Points);
    let dataset = block_on(open(&made.fine));
    for vertex in made.fine.truth.vertices.iter().step_by(7) {
        let at = &vertex.position;
        let region = Bbox::new(at, at).unwrap();
        let all = run(&dataset, &Query::new().region(region)).positions.len() as u64;
        let query = Query::new().region(region).level(VertexBudget::new(all));
        // The query fails where the vertices of the box on every level exceed the budget.
        if let Ok(result) = block_on(dataset.query(&query)) {
            check_rows(&made, &result, Some(&region));
        }
        let query = Query::new()
            .region(region)
            .level(VertexBudget::new(all + 16));
        assert_eq!(run(&dataset, &query).level.number(), 0);
    }
}

/// A damaged fragment index fails a strict query and is otherwise reported as skipped.
#[test]
fn a_damaged_fragment_index_is_reported() {
    let (mut made, max) = made(StoreKind::Points);
    for (key, bytes) in &mut made.fine.files {
        if key.starts_with("0/vertex_fragments/c/") {
            let last = bytes.len() - 1;
            bytes[last] ^= 0xff;
            bytes[last - 12] ^= 0xff;
        }
    }
    let dataset = block_on(open(&made.fine));
    let query = Query::new().level(VertexBudget::new(max));
    let found = block_on(dataset.query(&query));
    let Some(CatalogError::Damaged(damage)) = found.as_ref().err().and_then(Error::cause) else {
        panic!("{found:?}")
    };
    assert_eq!(damage.key.as_str(), "0/vertex_fragments");
    assert!(damage.chunk.is_some() && !matches!(damage.fault, Fault::Missing));
    // A chunk that cannot be counted is not chosen.
    let result = run(&dataset, &query.keep_going(true));
    assert!(result.skipped.len() >= made.fine.truth.chunks().len());
    assert_eq!(levels(&result), [1]);
    assert_eq!(result.positions.len() as u64, total(&made, 1, false));
}

/// Undamaged chunks of the coarsest level are still returned.
#[test]
fn damaged_chunks_of_the_coarsest_level_are_skipped() {
    let (mut made, _) = made(StoreKind::Points);
    let fragments = |(key, _): &(String, Vec<u8>)| key.starts_with("2/vertex_fragments/c/");
    let at = made.fine.files.iter().position(fragments).unwrap();
    made.fine.files.remove(at);
    let dataset = block_on(open(&made.fine));
    let query = Query::new().level(VertexBudget::new(total(&made, 2, false)));
    assert!(block_on(dataset.query(&query)).is_err());
    let result = run(&dataset, &query.keep_going(true));
    assert_eq!((levels(&result), result.skipped.len()), (vec![2], 1));
    assert!((result.positions.len() as u64) < total(&made, 2, false));
    assert!(!result.positions.is_empty());
}
