//! Queries of a store before and after it is damaged.

use zvf::{Dataset, Query, QueryResult};
use zvf_format::numeric::Value;
use zvf_query::{
    LevelChoice, Selection, Shape,
    geometry::{Bbox, Mode},
};

use super::{Files, ask, open};

/// An undamaged store and the results of its queries.
pub(crate) struct Intact {
    pub(crate) files: Files,
    pub(crate) asked: Vec<Asked>,
}

/// A query and the result of the undamaged store.
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    pub(crate) query: Query,
    pub(crate) answer: QueryResult,
}

impl Intact {
    /// Runs every applicable query.
    pub(crate) async fn of(files: Files) -> Self {
        let dataset = open(&files).await.unwrap();
        let mut asked = Vec::new();
        for (name, query) in queries(&dataset).await {
            // A query that the undamaged store rejects does not apply to it.
            if let Ok(answer) = ask(&dataset, &query).await {
                asked.push(Asked {
                    name,
                    query,
                    answer,
                });
            }
        }
        assert!(asked.iter().any(|asked| asked.name == "whole"));
        Self { files, asked }
    }
}

async fn queries(dataset: &Dataset) -> Vec<(&'static str, Query)> {
    let whole = ask(dataset, &Query::new()).await.unwrap();
    let plain = Query::new().columns(Selection::none());
    let mut queries = vec![
        ("whole", Query::new()),
        ("count", plain.clone()),
        ("points", Query::new().shape(Shape::Points)),
        ("paths", plain.clone().shape(Shape::Paths)),
        ("links", Query::new().shape(Shape::Links)),
        ("vertices alone", plain.clone().owners(false)),
    ];
    if let Some(object) = whole.objects.iter().rfind(|object| **object >= 0) {
        queries.push(("object", Query::new().objects([*object])));
    }
    queries.push(("group", Query::new().groups([0])));
    if let Some(bbox) = middle(&whole) {
        queries.push(("box", Query::new().region(bbox)));
        queries.push(("clip", plain.region(bbox).mode(Mode::Clip)));
    }
    if let Some(level) = dataset.levels().get(1) {
        let level = LevelChoice::Number(*level);
        queries.push(("coarser", Query::new().level(level)));
    }
    queries.push(("drill", Query::new().drill(1)));
    queries
}

/// Returns a box around the middle of the result.
fn middle(answer: &QueryResult) -> Option<Bbox> {
    let positions = answer.positions.view()?;
    let columns = answer.positions.width;
    let axes = usize::try_from(columns).unwrap();
    let mut lo = vec![f64::INFINITY; axes];
    let mut hi = vec![f64::NEG_INFINITY; axes];
    for row in 0..positions.rows() {
        for (axis, column) in (0..columns).enumerate() {
            let Some(Value::Float(value)) = positions.value(row, column) else {
                panic!("{positions:?}")
            };
            lo[axis] = lo[axis].min(value);
            hi[axis] = hi[axis].max(value);
        }
    }
    let sides = lo.iter().zip(&hi);
    let inner = |from: f64, to: f64| from + (to - from) * 0.25;
    let inside = sides.map(|(lo, hi)| (inner(*lo, *hi), inner(*hi, *lo)));
    let (lo, hi): (Vec<f64>, Vec<f64>) = inside.unzip();
    Bbox::new(&lo, &hi).ok()
}
