//! A query of each kind.

use zvf::Query;
use zvf_model::{grid::ChunkCoord, level::LevelId};
use zvf_query::{
    LevelChoice, Selection,
    geometry::{Bbox, Mode, Position, Sphere},
    predicate::{Predicate, Scope},
};
use zvf_testkit::stores::ExpectedStore;

use super::cost::Ask;

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
pub(super) fn of(truth: &ExpectedStore) -> Vec<Ask> {
    let middle = &truth.vertices[truth.vertices.len() / 2];
    let place = &middle.position;
    let bbox = around(place, &truth.chunk_shape, 0.3);
    let sphere = Sphere::new(place, truth.chunk_shape[0] * 0.4).unwrap();
    let some = || Query::new().columns(radius());
    let boxed = || some().region(bbox);
    let chunk = ChunkCoord::new(middle.chunk.clone());
    let filter = Predicate::parse("vertex.radius > 0").unwrap();
    let mut asks = vec![
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
        asks.push(("box, without objects", boxed().owners(false)));
        asks.push(("one object", some().objects([id])));
        asks.push(("one object in box", boxed().objects([id])));
    }
    if truth.groups.is_some() {
        asks.push(("one group", some().groups([0])));
    }
    let mut asks: Vec<Ask> = asks
        .into_iter()
        .map(|(name, query)| ask(name, query))
        .collect();
    for (name, query) in [("count", Query::new()), ("count in box", boxed())] {
        asks.push(Ask {
            counts: true,
            ..ask(name, query)
        });
    }
    asks
}

/// Returns queries of a recorded store of several levels.
pub(super) fn of_levels(place: &[f64], chunk: &[f64]) -> Vec<Ask> {
    let at = |level| {
        let query = Query::new().columns(Selection::none());
        query.level(LevelChoice::Number(LevelId::new(level)))
    };
    let bbox = || around(place, chunk, 0.2);
    vec![
        ask("to the coarser", at(0).region(bbox()).drill(1)),
        ask("to the finer", at(1).region(bbox()).drill(-1)),
        ask("all to the coarser", at(0).drill(1)),
        ask(
            "the coarsest",
            Query::new()
                .columns(Selection::none())
                .level(LevelChoice::Scale(f64::INFINITY)),
        ),
        ask(
            "the finest with at most 5 vertices",
            Query::new()
                .columns(Selection::none())
                .level(LevelChoice::Vertices(5)),
        ),
    ]
}

pub(super) fn ask(name: &'static str, query: Query) -> Ask {
    Ask {
        name,
        query,
        counts: false,
    }
}
