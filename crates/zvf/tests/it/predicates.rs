//! Predicates on stores: missing values and NaN in the tables of vertices, links and objects,
//! and conditions on positions.

#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "numbers of rows are small, and values are chosen to be exact"
)]

use zvf::{CreateOptions, Dataset, Error, OpenOptions, Query, QueryResult, Store};
use zvf_build::{
    AxisSpec, Column, ColumnValues, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn,
    WritePlan,
};
use zvf_catalog::CatalogError;
use zvf_format::numeric::Kind;
use zvf_query::{QueryError, Shape, geometry::Position, predicate::Predicate};

use crate::block_on;

const COUNT: usize = 60;

fn attribute(name: &str, values: ColumnValues) -> Column {
    Column::new(name.to_owned(), values)
}

fn numbers(values: impl IntoIterator<Item = f64>) -> ColumnValues {
    ColumnValues::Numeric(NumericColumn::float64(1, values))
}

/// NaN in half of the rows, otherwise 0, 1 or 2.
fn half_nan(row: usize) -> f64 {
    match row % 6 {
        0 => 0.0,
        2 => 1.0,
        4 => 2.0,
        _ => f64::NAN,
    }
}

fn second(row: usize) -> f64 {
    match row % 5 {
        0 => f64::NAN,
        rest => f64::from(u8::try_from(rest).unwrap()),
    }
}

/// Vertices on a line through six chunks, ten in each.
fn positions() -> NumericColumn {
    NumericColumn::float32(3, (0..COUNT).flat_map(|row| [row as f32, 1.0, 2.0]))
}

/// The attributes `a` and `b`, and the number of the row.
fn table() -> Vec<Column> {
    vec![
        attribute("a", numbers((0..COUNT).map(half_nan))),
        attribute("b", numbers((0..COUNT).map(second))),
        attribute("row", numbers((0..COUNT).map(|row| row as f64))),
    ]
}

fn created(geometry: GeometryBuilder, kind: GeometryKind) -> Dataset {
    created_as(geometry, Design::new(kind))
}

/// Creates a store with chunks of ten along each axis, and an object for each.
fn created_as(geometry: GeometryBuilder, mut design: Design) -> Dataset {
    design.chunk_shape = Some(vec![10.0; 3]);
    design.bounds = Some((vec![0.0; 3], vec![100.0; 3]));
    block_on(async {
        let options = OpenOptions::default().record_requests(true);
        let none: [(&str, &[u8]); 0] = [];
        let store: Store = options.from_memory(none).unwrap();
        let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        Dataset::open(store).await.unwrap()
    })
}

fn run(dataset: &Dataset, text: &str) -> Result<QueryResult, Error> {
    let query = Query::new().filter(Predicate::parse(text).unwrap());
    block_on(dataset.query(&query))
}

/// The numbers of the rows of a column, ascending.
fn rows(columns: &[Column]) -> Vec<usize> {
    let column = columns.iter().find(|column| column.name == "row").unwrap();
    let ColumnValues::Numeric(values) = &column.values else {
        panic!("rows are numbers")
    };
    let values = values.view().unwrap();
    let row = |at| match values.value(at, 0).unwrap() {
        zvf_format::numeric::Value::Float(value) => {
            (0..COUNT).find(|row| *row as f64 == value).unwrap()
        }
        other => panic!("{other:?}"),
    };
    let mut rows: Vec<usize> = (0..values.rows()).map(row).collect();
    rows.sort_unstable();
    rows
}

/// Returns whether a joined test holds for two truths.
type Holds = fn((Option<bool>, Option<bool>)) -> bool;
type Test = (String, fn(f64) -> Option<bool>);

/// Tests of a column; `None` is unknown.
fn tests(name: &str) -> Vec<Test> {
    fn of(value: f64, holds: bool) -> Option<bool> {
        (!value.is_nan()).then_some(holds)
    }
    vec![
        (format!("{name} = 0"), |v| of(v, v == 0.0)),
        (format!("{name} != 0"), |v| of(v, v != 0.0)),
        (format!("{name} < 1"), |v| of(v, v < 1.0)),
        (format!("{name} >= 1"), |v| of(v, v >= 1.0)),
        (format!("{name} between 1 and 2"), |v| {
            of(v, (1.0..=2.0).contains(&v))
        }),
        (format!("{name} in (0, 2)"), |v| of(v, v == 0.0 || v == 2.0)),
        (format!("{name} not in (0, 2)"), |v| {
            of(v, v != 0.0 && v != 2.0)
        }),
        (format!("{name} is null"), |v| Some(v.is_nan())),
        (format!("{name} is not null"), |v| Some(!v.is_nan())),
    ]
}

/// Runs every pair of tests, joined in four ways; `found` gives the rows of a result.
#[track_caller]
fn check_pairs(dataset: &Dataset, scope: &str, found: impl Fn(&QueryResult) -> Vec<usize>) {
    let mut hits = 0;
    for (left_text, left) in tests(&format!("{scope}.a")) {
        for (right_text, right) in tests(&format!("{scope}.b")) {
            let truths = |row: usize| (left(half_nan(row)), right(second(row)));
            let joins: [(&str, Holds); 4] = [
                ("L and R", |t| t == (Some(true), Some(true))),
                ("L or R", |(l, r)| l == Some(true) || r == Some(true)),
                ("not (L and R)", |(l, r)| {
                    l == Some(false) || r == Some(false)
                }),
                ("not (L or R)", |t| t == (Some(false), Some(false))),
            ];
            for (join, holds) in joins {
                let text = join.replace('L', &left_text).replace('R', &right_text);
                let wanted: Vec<usize> = (0..COUNT).filter(|row| holds(truths(*row))).collect();
                hits += wanted.len();
                let result = run(dataset, &text).unwrap();
                assert_eq!(found(&result), wanted, "{text}");
            }
        }
    }
    assert!(hits > 1000, "{hits}");
}

#[test]
fn nan_is_null_in_attributes_of_vertices() {
    let geometry = Geometry::builder(positions()).vertex(table());
    let dataset = created(geometry, GeometryKind::Points);
    check_pairs(&dataset, "vertex", |result| rows(&result.vertex));
    let count = |text: &str| run(&dataset, text).unwrap().positions.len();
    assert_eq!((count("a != 0"), count("not a = 0")), (20, 20));
    assert_eq!((count("a = a"), count("a is null")), (30, 30));
}

#[test]
fn nan_is_null_in_attributes_of_objects() {
    let geometry = Geometry::builder(positions())
        .object_ids((0..COUNT as i64).collect())
        .object(table());
    let dataset = created(geometry, GeometryKind::Points);
    check_pairs(&dataset, "object", |result| rows(&result.object));
}

/// Conditions on objects that were joined to others by `and` lost the vertices without an object.
#[test]
fn vertices_without_an_object_have_missing_attributes_of_objects() {
    // Every third vertex has no object, and every other object no value.
    let ids = (0..COUNT as i64).map(|row| if row % 3 == 2 { -1 } else { row % 3 });
    let geometry = Geometry::builder(positions())
        .object_ids(ids.collect())
        .vertex(table())
        .object(vec![Column::text("kind", [Some("axon"), None])]);
    let dataset = created(geometry, GeometryKind::Points);
    let found = |query: Query, text: &str| {
        let query = query.filter(Predicate::parse(text).unwrap());
        rows(&block_on(dataset.query(&query)).unwrap().vertex)
    };
    let null: Vec<usize> = (0..COUNT).filter(|row| row % 3 != 0).collect();
    for text in [
        "object.kind is null",
        "not object.kind is not null",
        "x >= 0 and object.kind is null",
        "object.kind is null and (object.kind is null or object.kind = 'axon')",
        "x < 0 or object.kind is null",
    ] {
        assert_eq!(found(Query::new(), text), null, "{text}");
    }
    let near: Vec<usize> = null.into_iter().filter(|row| *row < 20).collect();
    assert_eq!(found(Query::new(), "x < 20 and object.kind is null"), near);
    let none = "object.kind is null and object.kind != 'axon'";
    assert_eq!(found(Query::new(), none), [0; 0]);
    let of_object = found(Query::new().objects([1]), "object.kind is null");
    let expected: Vec<usize> = (0..COUNT).filter(|row| row % 3 == 1).collect();
    assert_eq!(of_object, expected);
}

#[test]
fn nan_is_null_in_attributes_of_links() {
    let mut geometry = Geometry::builder(positions());
    // A ring, so that there are as many links as vertices.
    geometry.links.ends = (0..COUNT as i64)
        .flat_map(|row| [row, (row + 1) % COUNT as i64])
        .collect();
    geometry.link = table();
    let dataset = created(geometry, GeometryKind::Graphs);
    check_pairs(&dataset, "link", |result| rows(&result.link));
}

/// Conditions on links were ignored by queries of points and paths, which selected everything.
#[test]
fn conditions_on_links_need_a_query_of_links() {
    let refused = |dataset: &Dataset, query: Query, text: &str| {
        let query = query.filter(Predicate::parse(text).unwrap());
        let error = block_on(dataset.query(&query)).unwrap_err();
        let Some(QueryError::Unsupported(message)) = error.cause() else {
            panic!("{text}: {error:?}")
        };
        assert!(message.contains("condition on links"), "{message}");
    };
    for kind in [
        GeometryKind::Points,
        GeometryKind::Polylines,
        GeometryKind::Streamlines,
    ] {
        let mut geometry = Geometry::builder(positions()).vertex(table());
        if kind != GeometryKind::Points {
            geometry = geometry.paths(vec![0, COUNT as u64], None);
        }
        let dataset = created(geometry, kind);
        for text in [
            "link.a > 1",
            "link.a is null",
            "not link.a > 1",
            "vertex.row > 2 and link.nope > 1",
        ] {
            refused(&dataset, Query::new(), text);
        }
    }
    let geometry = Geometry::builder(positions())
        .links(2, vec![0, 1, 1, 2])
        .link(vec![attribute("weight", numbers([1.0, 2.0]))]);
    let dataset = created(geometry, GeometryKind::Graphs);
    let points = || Query::new().shape(Shape::Points);
    let nearest = Position::new(&[0.0; 3]).unwrap();
    for text in ["link.weight > 1", "weight > 1", "link.nope > 1"] {
        refused(&dataset, points(), text);
        refused(&dataset, points().nearest(nearest, 1), text);
        refused(&dataset, points().drill(1), text);
    }
    let links = run(&dataset, "weight > 1").unwrap();
    assert_eq!(links.positions.len(), 2);
}

/// Conditions on attributes that do not exist selected nothing in stores without links.
#[test]
fn conditions_on_missing_attributes_of_links_and_groups_are_errors() {
    let missing = |dataset: &Dataset, text: &str| {
        let error = run(dataset, text).unwrap_err();
        assert!(
            matches!(error.cause(), Some(CatalogError::NoAttribute { .. })),
            "{text}: {error:?}"
        );
    };
    let without_links = Geometry::builder(positions());
    let dataset = created(without_links, GeometryKind::Graphs);
    missing(&dataset, "link.nope > 1");
    // An attribute of a graph without links exists, but has no values.
    let no_values = Geometry::builder(positions()).link(vec![attribute("weight", numbers([]))]);
    let dataset = created(no_values, GeometryKind::Graphs);
    assert_eq!(run(&dataset, "link.weight > 1").unwrap().positions.len(), 0);
    missing(&dataset, "link.nope > 1");
    let with_links = Geometry::builder(positions()).links(2, vec![0, 1]);
    let dataset = created(with_links, GeometryKind::Graphs);
    missing(&dataset, "link.nope > 1");
    let ungrouped = Geometry::builder(positions()).object_ids(vec![0; COUNT]);
    let dataset = created(ungrouped, GeometryKind::Points);
    missing(&dataset, "group.nope > 1");
}

/// Bools of objects were stored as integers, which are no conditions.
#[test]
fn bools_of_objects_are_conditions() {
    let store = |nulls: Option<Vec<bool>>| {
        let mut geometry = Geometry::builder(positions()).object_ids((0..COUNT as i64).collect());
        let flags = NumericColumn {
            bytes: (0..COUNT).map(|row| u8::from(row % 3 == 0)).collect(),
            ..NumericColumn::new(Kind::Bool, 1)
        };
        let column = attribute("flag", ColumnValues::Numeric(flags));
        geometry.object.push(Column { nulls, ..column });
        created(geometry, GeometryKind::Points)
    };
    let count = |dataset: &Dataset, text: &str| run(dataset, text).unwrap().positions.len();
    let complete = store(None);
    assert_eq!(count(&complete, "object.flag"), 20);
    assert_eq!(count(&complete, "not object.flag"), 40);
    assert_eq!(count(&complete, "object.flag = false"), 40);
    // A bool has no value left for missing ones.
    let partial = store(Some((0..COUNT).map(|row| row < 6).collect()));
    assert_eq!(count(&partial, "object.flag = 1"), 18);
    assert_eq!(count(&partial, "object.flag is null"), 6);
}

fn with_named_axes(names: [&str; 3], vertex: Vec<Column>) -> Dataset {
    let geometry = Geometry::builder(positions()).vertex(vertex);
    let mut design = Design::new(GeometryKind::Points);
    design.axes = Some(names.map(AxisSpec::new).to_vec());
    created_as(geometry, design)
}

#[test]
fn axes_are_columns() {
    let geometry = Geometry::builder(positions()).vertex(table());
    let dataset = created(geometry, GeometryKind::Points);
    let found = |text: &str| rows(&run(&dataset, text).unwrap().vertex);
    let between = |from: usize, to: usize| (from..to).collect::<Vec<_>>();
    assert_eq!(found("x > 56"), between(57, 60));
    assert_eq!(found("vertex.x < 3 or x = 59"), [0, 1, 2, 59]);
    assert_eq!(found("not x > 5 and y = 1"), between(0, 6));
    assert_eq!(found("x != 7 and x between 6 and 8"), [6, 8]);
    assert_eq!(found("z > 2"), between(0, 0));
    assert_eq!(found("x is null"), between(0, 0));
    assert_eq!(found("x is not null"), between(0, 60));
    assert_eq!(found("a < x and x <= 4"), [2, 4]);
    let error = run(&dataset, "x = 'a'").unwrap_err();
    assert!(
        matches!(error.cause(), Some(QueryError::Bind(_))),
        "{error:?}"
    );
    let error = run(&dataset, "xx > 1").unwrap_err().to_string();
    assert!(
        error.contains("there is no attribute xx; there is x, y, z, a, b, row"),
        "{error}"
    );
}

#[test]
fn axes_of_other_names_are_columns() {
    let dataset = with_named_axes(["lon", "lat", "Höhe"], table());
    let found = |text: &str| rows(&run(&dataset, text).unwrap().vertex);
    assert_eq!(found("lon > 57"), [58, 59]);
    assert_eq!(found("Höhe = 2 and \"lat\" = 1 and LON = 3"), [3]);
    assert_eq!(found("x = 4"), [4]);
    let dataset = with_named_axes(["z", "y", "x"], table());
    let found = |text: &str| rows(&run(&dataset, text).unwrap().vertex);
    assert_eq!(found("z = 4"), [4]);
    assert_eq!(found("x = 4"), [0; 0]);
}

/// A name that differs from that of an axis in case is that of an attribute that is called so.
#[test]
fn an_attribute_is_told_from_an_axis_by_the_case_of_its_name() {
    let mut vertex = table();
    vertex.push(attribute("X", numbers((0..COUNT).map(|_| 7.0))));
    let dataset = with_named_axes(["x", "y", "z"], vertex);
    let found = |text: &str| run(&dataset, text).unwrap().positions.len();
    assert_eq!(
        [found("X = 7"), found("vertex.X = 7"), found("x = 7")],
        [60, 60, 1]
    );
}

/// Ten vertices are in each chunk of 10.
#[test]
fn conditions_on_axes_prune_chunks() {
    let dataset = created(Geometry::builder(positions()), GeometryKind::Points);
    let cells = |text: &str, wanted: usize| {
        dataset.store().take_request_log();
        let result = run(&dataset, text).unwrap();
        assert_eq!(result.positions.len(), wanted, "{text}");
        let log = dataset.store().take_request_log();
        let reads = log.iter().map(|read| read.key.to_string());
        reads.filter(|key| key.contains("/vertices/c/")).count()
    };
    assert_eq!(cells("x > 41", 18), 2);
    assert_eq!(cells("not x > 41", 42), 5);
    assert_eq!(cells("x != 70 and x > 100", 0), 0);
    assert_eq!(cells("x = 5 or x = 55", 2), 2);
    assert_eq!(cells("x in (15, 16)", 2), 1);
    assert_eq!(cells("x is null", 0), 6);
}
