//! Parametric objects, headers and further geometries of every recorded store.

use serde_json::{Value as Json, json};
use zvf_catalog::{LevelCache, ParametricGeometry};
use zvf_query::{Column, ColumnValues};
use zvf_testkit::golden::Golden;

use crate::{
    block_on,
    golden::{open, report, stores},
    objects::catalog,
};

pub(crate) fn objects(parametric: &ParametricGeometry) -> Json {
    let objects = parametric.objects.iter().map(|object| {
        let coefficients = object.coefficients.iter();
        let names: Vec<_> = coefficients.clone().map(|c| c.name.clone()).collect();
        let values: Vec<f64> = coefficients.map(|c| c.value).collect();
        json!({
            "type": object.type_name, "type_id": object.type_id, "name": object.name,
            "coefficients": values, "coefficient_names": names,
        })
    });
    objects.collect()
}

/// Returns what the reference read with this call, in either format of the archives.
fn read<'a>(expected: &'a Json, call: &str, name: &str) -> Option<&'a Json> {
    match expected["reads"].as_array() {
        Some(calls) => {
            let mut calls = calls.iter();
            Some(&calls.find(|read| read["call"] == call)?["result"])
        }
        None => expected["reads"].get(name),
    }
}

fn floats(column: &Column) -> Vec<f64> {
    let ColumnValues::Numeric(rows) = &column.values else {
        panic!("{column:?}")
    };
    assert!(column.nulls.is_none());
    let rows = rows.view().unwrap();
    let value = |row| match rows.value(row, 0).unwrap() {
        zvf_format::numeric::Value::Float(value) => value,
        zvf_format::numeric::Value::Int(value) => f64::from(i32::try_from(value).unwrap()),
        other => panic!("{other:?}"),
    };
    (0..rows.rows()).map(value).collect()
}

/// Checks attributes and groups against the values that were written.
fn check_tables(parametric: &ParametricGeometry, archive: &str, store: &str) {
    let members = |group| -> Vec<i64> {
        let groups = parametric.groups.as_ref().unwrap();
        groups.members(group).unwrap().iter().collect()
    };
    let column = |columns: &Option<Vec<Column>>| {
        let [column] = columns.as_ref().unwrap().as_slice() else {
            panic!("{store}: {columns:?}")
        };
        (column.name.clone(), floats(column))
    };
    let of_objects = column(&parametric.attributes);
    let of_groups = column(&parametric.group_attributes);
    let groups: Vec<Vec<i64>> = (0..parametric.groups.as_ref().unwrap().len())
        .map(members)
        .collect();
    match archive {
        "zvf-06" | "zvf-07" => {
            assert_eq!(of_objects, ("conf".to_owned(), vec![0.5, 1.0, 0.25, 0.75]));
            assert_eq!(of_groups, ("g".to_owned(), vec![1.0, 2.0]));
            assert_eq!(groups, [vec![0, 2], vec![1]]);
        }
        "zvf-08" => {
            assert_eq!(of_objects, ("conf".to_owned(), vec![0.5, 1.0, 0.25]));
            assert_eq!(of_groups, ("g".to_owned(), vec![1.0, 2.0]));
            assert_eq!(groups, [vec![0, 2], vec![1]]);
        }
        _ => {
            assert_eq!(of_objects, ("w".to_owned(), vec![1.0, 2.0, 3.0, 4.0]));
            assert_eq!(of_groups, ("c".to_owned(), vec![1.0, 2.0, 3.0]));
            assert_eq!(groups, [vec![0, 2], vec![], vec![1]]);
        }
    }
}

fn check(archive: &str) {
    let golden = Golden::open(archive);
    let (mut seen, mut counts) = (0, 0);
    for (store, expected) in stores(&golden) {
        let dataset = open(&golden, &store);
        let levels = LevelCache::default();
        let catalog = catalog(&dataset, &levels);
        let parametric = block_on(catalog.parametric()).unwrap();
        let wanted = read(&expected, "read_parametric_objects", "parametric");
        match (&parametric, wanted) {
            (Some(parametric), Some(wanted)) => {
                assert_eq!(&objects(parametric), wanted, "{store}");
                check_tables(parametric, archive, &store);
                counts += parametric.objects.len();
            }
            (None, None) => {}
            other => panic!("{store}: {other:?}"),
        }
        let headers = block_on(catalog.headers()).unwrap();
        if let Some(header) = read(&expected, "", "header_trk") {
            let [found] = headers.as_slice() else {
                panic!("{store}: {headers:?}")
            };
            assert_eq!(found.format, "trk");
            assert_eq!(&Json::from(found.attributes.clone()), header, "{store}");
            counts += 1;
        }
        let Some(first) = dataset.levels().first() else {
            panic!("{store}")
        };
        let further = block_on(catalog.composite(*first)).unwrap();
        let Some(wanted) = read(&expected, "read_composite", "composite") else {
            assert!(further.is_empty(), "{store}");
            seen += 1;
            continue;
        };
        // The first geometry of a store is not a further one.
        assert_eq!(
            further.len() + 1,
            wanted.as_object().unwrap().len(),
            "{store}"
        );
        for geometry in &further {
            let wanted = &wanted[&geometry.kind];
            assert_eq!(
                geometry.vertices,
                wanted["vertex_count"].as_u64(),
                "{store}"
            );
            let parts = ["edge_count", "face_count"].map(|name| wanted[name].as_u64());
            assert_eq!(
                geometry.parts,
                parts.into_iter().flatten().next(),
                "{store}"
            );
            let links = geometry.links.unwrap();
            let rows = match wanted["links"].get("data") {
                Some(rows) => rows,
                None => &wanted["links"],
            };
            let rows = rows.as_array().unwrap();
            assert_eq!(links.count, u64::try_from(rows.len()).unwrap(), "{store}");
            let width = rows[0].as_array().unwrap().len();
            assert_eq!(links.width.get(), width, "{store}");
            counts += 1;
        }
        seen += 1;
    }
    let what = "parametric objects, headers and further geometries";
    report(archive, seen, counts, "stores", what);
}

#[test]
fn golden_extras_06() {
    check("zvf-06");
}

#[test]
fn golden_extras_07() {
    check("zvf-07");
}

#[test]
fn golden_extras_08() {
    check("zvf-08");
}

#[test]
fn golden_extras_09() {
    check("zvf-09");
}

/// Further geometries have positions only; queries for anything else are rejected.
#[test]
fn further_geometries_are_queried_by_position_alone() {
    use zvf_catalog::{Scope, Selection};
    use zvf_query::{Query, QueryError, predicate::Predicate};

    let golden = Golden::open("zvf-09");
    let (name, _) = stores(&golden)
        .into_iter()
        .find(|(name, _)| name.contains("composite"))
        .unwrap();
    let dataset = open(&golden, &name);
    let of = |query: Query| {
        let mut query = query;
        query.geometry = Some("mesh".to_owned());
        block_on(dataset.query(&query))
    };
    assert!(!of(Query::new()).unwrap().positions.is_empty());
    let radius = Predicate::parse("vertex.radius > 1").unwrap();
    let column = vec![(Some(Scope::Vertex), "radius".to_owned())];
    for query in [
        Query::new().filter(radius),
        Query::new().objects([1]),
        Query::new().drill(1),
        Query::new().columns(Selection::Named(column)),
    ] {
        let refused = matches!(&of(query.clone()), Err(error) if matches!(error.cause(), Some(QueryError::Unsupported(_))));
        assert!(refused, "{query:?}");
    }
}
