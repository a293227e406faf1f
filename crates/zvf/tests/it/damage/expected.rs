//! Queries of a store before and after it is damaged.

use zvf::{Column, ColumnValues, Dataset, Predicate, Query, QueryResult, VertexBudget};
use zvf_catalog::Selection;
use zvf_format::numeric::Value;
use zvf_query::{
    LevelChoice, Shape,
    geometry::{Bbox, Mode, Position},
};

use super::{Files, open, run};

/// An undamaged store and the results of its queries.
pub(crate) struct Intact {
    pub(crate) files: Files,
    pub(crate) results: Vec<ExpectedResult>,
}

/// A query and the result of the undamaged store.
pub(crate) struct ExpectedResult {
    pub(crate) name: &'static str,
    pub(crate) query: Query,
    pub(crate) result: QueryResult,
}

impl Intact {
    /// Runs every applicable query.
    pub(crate) async fn of(files: Files) -> Self {
        let dataset = open(&files).await.unwrap();
        let queries = queries(&dataset).await;
        Self::of_queries(files, &dataset, queries).await
    }

    /// Runs every applicable query, with further kinds of queries.
    pub(crate) async fn of_all_kinds(files: Files) -> Self {
        let dataset = open(&files).await.unwrap();
        let mut queries = queries(&dataset).await;
        queries.extend(further_queries(&dataset).await);
        Self::of_queries(files, &dataset, queries).await
    }

    async fn of_queries(
        files: Files,
        dataset: &Dataset,
        queries: Vec<(&'static str, Query)>,
    ) -> Self {
        let mut results = Vec::new();
        for (name, query) in queries {
            // A query that the undamaged store rejects does not apply to it.
            if let Ok(result) = run(dataset, &query).await {
                results.push(ExpectedResult {
                    name,
                    query,
                    result,
                });
            }
        }
        assert!(results.iter().any(|result| result.name == "whole"));
        Self { files, results }
    }
}

async fn queries(dataset: &Dataset) -> Vec<(&'static str, Query)> {
    let whole = run(dataset, &Query::new()).await.unwrap();
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

/// Returns queries for the nearest, within a budget, by chunk and by predicate.
async fn further_queries(dataset: &Dataset) -> Vec<(&'static str, Query)> {
    let whole = run(dataset, &Query::new()).await.unwrap();
    let plain = Query::new().columns(Selection::none());
    let mut queries = Vec::new();
    if let Some(first) = first_position(&whole) {
        let place = Position::new(&first).unwrap();
        queries.push(("nearest", Query::new().nearest(place, 3)));
        if let Some(chunk) = dataset.root().chunk_shape.chunk_of(&first) {
            queries.push(("chunk", Query::new().chunks([chunk])));
        }
    }
    let few = whole.positions.len() / 2;
    for (name, few) in [("half budget", few), ("whole budget", few * 4)] {
        let few = u64::try_from(few).unwrap();
        queries.push((name, plain.clone().level(VertexBudget::new(few))));
    }
    let vertex = predicate("vertex", &whole.vertex);
    queries.extend(vertex.map(|query| ("vertex predicate", query)));
    let object = predicate("object", &whole.object);
    queries.extend(object.map(|query| ("object predicate", query)));
    let links = Query::new().shape(Shape::Links);
    if let Ok(links) = run(dataset, &links).await {
        let link = predicate("link", &links.link);
        queries.extend(link.map(|query| ("link predicate", query.shape(Shape::Links))));
    }
    queries
}

/// Returns a query for the rows whose first numeric attribute is not that of the first row.
fn predicate(scope: &str, columns: &[Column]) -> Option<Query> {
    let mut numeric = columns.iter().filter_map(|column| match &column.values {
        ColumnValues::Numeric(rows) => Some((&column.name, rows)),
        ColumnValues::Dictionary { .. } => None,
    });
    let (name, rows) = numeric.next()?;
    let channel = if rows.width > 1 { "[0]" } else { "" };
    let first = rows.view()?.value(0, 0)?;
    let first = match first {
        Value::Float(first) if first.is_finite() => first.to_string(),
        Value::Int(first) => first.to_string(),
        Value::UInt(first) => first.to_string(),
        Value::Bool(first) => first.to_string(),
        Value::Float(_) | Value::Complex { .. } => return None,
    };
    let text = format!("{scope}.\"{name}\"{channel} != {first}");
    let predicate = Predicate::parse(&text);
    Some(Query::new().filter(predicate.unwrap_or_else(|error| panic!("{text}: {error}"))))
}

/// Returns the position of the first vertex.
fn first_position(result: &QueryResult) -> Option<Vec<f64>> {
    let positions = result.positions.view()?;
    let columns = 0..result.positions.width;
    columns
        .map(|column| match positions.value(0, column)? {
            Value::Float(value) => Some(value),
            value => panic!("{value:?}"),
        })
        .collect()
}

/// Returns a box around the middle of the result.
fn middle(result: &QueryResult) -> Option<Bbox> {
    let positions = result.positions.view()?;
    let columns = result.positions.width;
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
