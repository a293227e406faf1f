//! A query of each kind.

use zvf::Query;
use zvf_catalog::{Scope, Selection};
use zvf_model::{grid::ChunkCoord, level::LevelId};
use zvf_query::{
    LevelChoice,
    geometry::{Bbox, Mode, Position, Sphere},
    predicate::Predicate,
};
use zvf_testkit::stores::ExpectedStore;

use super::cost::QueryCase;

fn radius() -> Selection {
    Selection::Named(vec![(Some(Scope::Vertex), "radius".to_owned())])
}

/// Returns a box that extends `reach` chunks to each side of a position.
pub(super) fn around(place: &[f64], chunk: &[f64], reach: f64) -> Bbox {
    let corner = |sign: f64| -> Vec<f64> {
        let axes = place.iter().zip(chunk);
        axes.map(|(at, extent)| at + sign * reach * extent)
            .collect()
    };
    Bbox::new(&corner(-1.0), &corner(1.0)).unwrap()
}

/// Returns queries of a generated store.
pub(super) fn of(truth: &ExpectedStore) -> Vec<QueryCase> {
    let middle = &truth.vertices[truth.vertices.len() / 2];
    let place = &middle.position;
    let bbox = around(place, &truth.chunk_shape, 0.3);
    let sphere = Sphere::new(place, truth.chunk_shape[0] * 0.4).unwrap();
    let some = || Query::new().columns(radius());
    let boxed = || some().region(bbox);
    let chunk = ChunkCoord::new(middle.chunk.clone());
    let filter = Predicate::parse("vertex.radius > 0").unwrap();
    let mut cases = vec![
        ("whole level", Query::new()),
        ("box, all columns", Query::new().region(bbox)),
        ("box", boxed()),
        ("box, within", boxed().mode(Mode::Within)),
        ("box, clipped", boxed().mode(Mode::Clip)),
        ("sphere", some().region(sphere)),
        (
            "nearest 3",
            some().nearest(Position::new(place).unwrap(), 3),
        ),
        ("where", some().filter(filter.clone())),
        ("where in box", boxed().filter(filter)),
        ("one chunk", some().chunks([chunk])),
        ("first 5", some().limit(5)),
        ("level by scale", some().level(LevelChoice::Scale(1.0))),
    ];
    if let Some(objects) = &truth.objects {
        let longest = objects.iter().max_by_key(|object| object.fragments.len());
        let id = longest.unwrap().id;
        cases.push(("box, without objects", boxed().owners(false)));
        cases.push(("one object", some().objects([id])));
        cases.push(("one object in box", boxed().objects([id])));
    }
    if truth.groups.is_some() {
        cases.push(("one group", some().groups([0])));
    }
    let mut cases: Vec<QueryCase> = cases
        .into_iter()
        .map(|(name, query)| case(name, query))
        .collect();
    for (name, query) in [("count", Query::new()), ("count in box", boxed())] {
        cases.push(QueryCase {
            counts: true,
            ..case(name, query)
        });
    }
    cases
}

/// Returns queries of a recorded store of several levels.
pub(super) fn of_levels(place: &[f64], chunk: &[f64]) -> Vec<QueryCase> {
    let at = |level| {
        let query = Query::new().columns(Selection::none());
        query.level(LevelChoice::Number(LevelId::new(level)))
    };
    let bbox = || around(place, chunk, 0.2);
    vec![
        case("to the coarser", at(0).region(bbox()).drill(1)),
        case("to the finer", at(1).region(bbox()).drill(-1)),
        case("all to the coarser", at(0).drill(1)),
        case(
            "the coarsest",
            Query::new()
                .columns(Selection::none())
                .level(LevelChoice::Scale(f64::INFINITY)),
        ),
        case(
            "the finest with at most 5 vertices",
            Query::new()
                .columns(Selection::none())
                .level(LevelChoice::Vertices(5)),
        ),
    ]
}

pub(super) fn case(name: &'static str, query: Query) -> QueryCase {
    QueryCase {
        name,
        query,
        counts: false,
    }
}
