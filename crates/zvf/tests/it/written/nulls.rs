//! Missing values of vertices, written at once and in batches.

use std::error::Error;

use zvf::{CreateOptions, Dataset, Editor, GeometrySource, Predicate, Query};
use zvf_build::{
    BuildError, Column, ColumnValues, Design, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, OutOfBounds,
};
use zvf_format::numeric::Kind;

use crate::block_on;

/// Batches, and the number of the next one.
struct Batches(Vec<GeometryBuilder>, usize);

impl GeometrySource for Batches {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        self.1 += 1;
        Ok(self
            .0
            .get(self.1 - 1)
            .cloned()
            .map(|batch| batch.build().unwrap()))
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.1 = 0;
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(Geometry::new(NumericColumn::float32(2, [])))
    }
}

fn points(places: &[f32], values: ColumnValues, nulls: &[bool]) -> GeometryBuilder {
    let positions = places.iter().flat_map(|place| [*place, 1.0]);
    let mut geometry = Geometry::builder(NumericColumn::float32(2, positions));
    geometry.vertex.push(Column {
        nulls: Some(nulls.to_vec()),
        ..Column::new("a", values)
    });
    geometry
}

/// Creates a store, from batches of two points or at once. Returns the positions and the attribute.
fn created(
    all: &GeometryBuilder,
    in_batches: bool,
    drop: bool,
) -> Result<(NumericColumn, Column), zvf::Error> {
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![10.0; 2]);
    if drop {
        design.bounds = Some((vec![0.0; 2], vec![20.0; 2]));
        design.out_of_bounds = OutOfBounds::Drop;
    }
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("a.zv").display().to_string();
    let options = CreateOptions::default();
    block_on(async {
        if in_batches {
            let rows: Vec<usize> = (0..all.vertices()).collect();
            let batches = rows.chunks(2).map(|rows| {
                let rows = || rows.iter().copied();
                Geometry::builder(all.positions.take(rows()).unwrap()).vertex(
                    all.vertex
                        .iter()
                        .map(|column| column.take(rows()))
                        .collect(),
                )
            });
            let mut source = Batches(batches.collect(), 0);
            zvf::create_from_source(&address, &mut source, design, &options).await?;
        } else {
            zvf::create(&address, all.clone().build().unwrap(), design, &options).await?;
        }
        let dataset = Dataset::open(&*address).await?;
        let mut result = dataset.query(&Query::new()).await?;
        Ok((result.positions, result.vertex.remove(0)))
    })
}

#[test]
fn batches_store_missing_floats_as_nan() {
    let values = NumericColumn::float32(1, [5.0, 6.0, 7.0, 8.0, 9.0]);
    let nulls = [false, true, false, true, false];
    let all = points(
        &[1.0, 2.0, 11.0, 12.0, 13.0],
        ColumnValues::Numeric(values),
        &nulls,
    );
    let whole = created(&all, false, false).unwrap();
    let ColumnValues::Numeric(numbers) = &whole.1.values else {
        panic!("{whole:?}")
    };
    let found = numbers.to_vec::<f32>().unwrap();
    assert_eq!(
        found.iter().map(|value| value.is_nan()).collect::<Vec<_>>(),
        nulls
    );
    let batched = created(&all, true, false).unwrap();
    assert_eq!(format!("{batched:?}"), format!("{whole:?}"));
    let ColumnValues::Numeric(other) = &batched.1.values else {
        panic!("{batched:?}")
    };
    assert_eq!(other.bytes, numbers.bytes);
}

#[test]
fn batches_refuse_missing_integers() {
    let values = NumericColumn::int64(1, [5, 6, 7]);
    let all = points(
        &[1.0, 2.0, 50.0],
        ColumnValues::Numeric(values),
        &[false, false, true],
    );
    for in_batches in [false, true] {
        let error = created(&all, in_batches, false).unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("NullInteger(\"a\")"), "{in_batches}: {text}");
        assert!(
            error
                .to_string()
                .contains(&BuildError::NullInteger("a".to_owned()).to_string())
        );
        // The vertex without a value is not stored.
        let (positions, column) = created(&all, in_batches, true).unwrap();
        assert_eq!((positions.len(), column.nulls), (2, None), "{in_batches}");
    }
}

#[test]
fn stores_need_a_vertex_within_their_bounds() {
    let values = ColumnValues::Numeric(NumericColumn::float32(1, [5.0, 6.0, 7.0]));
    let all = points(&[50.0, 51.0, 52.0], values, &[false; 3]);
    for in_batches in [false, true] {
        let error = created(&all, in_batches, true).unwrap_err();
        let expected = BuildError::AllOutside.to_string();
        assert!(
            error.to_string().contains(&expected),
            "{in_batches}: {error}"
        );
    }
}

/// Returns a path for each id. Only the objects `listed` have rows of attributes.
fn paths(ids: [i64; 2], listed: &[i64], attribute: Column) -> GeometryBuilder {
    let positions = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0];
    let mut geometry = Geometry::builder(NumericColumn::float32(2, positions))
        .paths(vec![0, 2, 4], ids.to_vec())
        .objects(listed.to_vec());
    geometry.fragment.push(attribute);
    geometry
}

/// Regression test: fragments of objects without a row had zeros or the first word.
#[test]
fn fragments_of_objects_without_a_row_have_no_value() {
    let floats = Column::new("a", NumericColumn::float32(1, [0.5]));
    let words = Column::text("a", [Some("b")]);
    let design = || {
        let mut design = Design::new(GeometryKind::Streamlines);
        design.bounds = Some((vec![0.0; 2], vec![9.0; 2]));
        design
    };
    block_on(async {
        for column in [floats, words] {
            let folder = tempfile::tempdir().unwrap();
            let address = folder.path().join("a.zv").display().to_string();
            let first = paths([1, 2], &[2], column.clone());
            let options = CreateOptions::default();
            zvf::create(&address, &first.build().unwrap(), design(), &options)
                .await
                .unwrap();
            let editor = Editor::open(&*address).await.unwrap();
            let second = paths([4, 5], &[4], column.clone());
            editor
                .append(&second.build().unwrap(), OutOfBounds::Reject)
                .await
                .unwrap();
            let dataset = Dataset::open(&*address).await.unwrap();
            for (id, is_missing) in [(1, true), (2, false), (4, false), (5, true)] {
                let found = dataset.query(&Query::new().objects([id])).await.unwrap();
                let values = &found.fragment[0];
                let found = match &values.values {
                    ColumnValues::Numeric(numbers) => numbers.to_vec::<f32>().unwrap()[0].is_nan(),
                    ColumnValues::Dictionary { .. } => values.text_at(0).is_none(),
                };
                assert_eq!(found, is_missing, "object {id}: {values:?}");
            }
        }
        let whole = Column::new("a", NumericColumn::int64(1, [7]));
        let folder = tempfile::tempdir().unwrap();
        let address = folder.path().join("a.zv").display().to_string();
        let options = CreateOptions::default();
        let partial = paths([1, 2], &[2], whole.clone());
        let error = zvf::create(&address, &partial.build().unwrap(), design(), &options).await;
        let text = error.unwrap_err().to_string();
        assert!(text.contains("give it a value for each row"), "{text}");
        let both = Column::new("a", NumericColumn::int64(1, [7, 8]));
        let all = paths([1, 2], &[1, 2], both);
        zvf::create(&address, &all.build().unwrap(), design(), &options)
            .await
            .unwrap();
        let editor = Editor::open(&*address).await.unwrap();
        let partial = paths([4, 5], &[4], whole);
        let error = editor
            .append(&partial.build().unwrap(), OutOfBounds::Reject)
            .await;
        let text = format!("{:?}", error.unwrap_err());
        assert!(text.contains("NullInteger(\"a\")"), "{text}");
    });
}

/// Regression test: see [`fragments_of_objects_without_a_row_have_no_value`]. A dictionary without a
/// code for missing text cannot get one.
#[test]
fn missing_text_needs_a_code() {
    let both = Column::text("a", [Some("b"), Some("c")]);
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let address = folder.path().join("a.zv").display().to_string();
        let all = paths([1, 2], &[1, 2], both);
        let design = Design::new(GeometryKind::Streamlines);
        let options = CreateOptions::default();
        zvf::create(&address, &all.build().unwrap(), design, &options)
            .await
            .unwrap();
        let editor = Editor::open(&*address).await.unwrap();
        let partial = paths([4, 5], &[4], Column::text("a", [Some("b")]));
        let error = editor
            .append(&partial.build().unwrap(), OutOfBounds::Reject)
            .await;
        let text = format!("{:?}", error.unwrap_err());
        assert!(text.contains("give each row a text"), "{text}");
    });
}

/// Replaces two of three objects: the first gets nulls, and the table does not name the second.
#[test]
fn nulls_of_replaced_objects_remove_their_values() {
    let geometry = |ids: Vec<i64>, rows: Vec<i64>, is_null: bool| {
        let places = ids.iter().flat_map(|id| [*id as f32, 1.0]);
        let mut geometry = Geometry::builder(NumericColumn::float32(2, places)).object_ids(ids);
        let words = rows
            .iter()
            .map(|id| (!is_null).then(|| format!("object {id}")));
        geometry.object.push(Column::text("label", words));
        let numbers = NumericColumn::int64(1, rows.iter().map(|id| id * 10));
        geometry.object.push(Column {
            nulls: Some(vec![is_null; rows.len()]),
            ..Column::new("number", numbers)
        });
        geometry.objects = Some(rows);
        geometry
    };
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("a.zv").display().to_string();
    let found = block_on(async {
        let created = geometry(vec![1, 2, 3], vec![1, 2, 3], false);
        let design = Design::new(GeometryKind::Points);
        zvf::create(
            &address,
            &created.build().unwrap(),
            design,
            &CreateOptions::default(),
        )
        .await?;
        let editor = Editor::open(&address).await?;
        let replaced = geometry(vec![1, 2], vec![1], true);
        editor
            .replace(&replaced.build().unwrap(), OutOfBounds::Reject)
            .await?;
        let dataset = Dataset::open(&address).await?;
        dataset.query(&Query::new()).await
    });
    let object = found.unwrap().object;
    assert_eq!(object.len(), 2);
    for column in &object {
        let nulls: Vec<bool> = (0..3).map(|row| column.is_null(row)).collect();
        assert_eq!(nulls, [true, false, false], "{}", column.name);
    }
    let label = object.iter().find(|column| column.name == "label");
    assert_eq!(label.unwrap().text_at(1), Some("object 2"));
}

/// The fill value of complex numbers is NaN in both parts, so that a number with NaN in one part is
/// a value.
#[test]
fn complex_numbers_with_one_nan_are_values() {
    let nan = f32::NAN;
    let parts = [1.0, 2.0, nan, 3.0, 4.0, nan, 5.0, 6.0_f32];
    let mut numbers = NumericColumn::new(Kind::Complex64, 1);
    numbers.bytes = parts.into_iter().flat_map(f32::to_le_bytes).collect();
    let nulls = vec![false, false, false, true];
    let mut geometry = Geometry::builder(NumericColumn::float32(2, (0..8_u8).map(f32::from)))
        .object_ids((0..4).collect());
    geometry.object.push(Column {
        nulls: Some(nulls.clone()),
        ..Column::new("c", numbers.clone())
    });
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("a.zv").display().to_string();
    let result = block_on(async {
        let design = Design::new(GeometryKind::Points);
        let options = CreateOptions::default();
        let written = zvf::create(&address, &geometry.build().unwrap(), design, &options).await;
        written.unwrap();
        let dataset = Dataset::open(&address).await.unwrap();
        dataset.query(&Query::new()).await.unwrap()
    });
    let [column] = &result.object[..] else {
        panic!("{:?}", result.object)
    };
    let found: Vec<bool> = (0..4).map(|row| column.is_null(row)).collect();
    assert_eq!((&result.objects[..], found), (&[0, 1, 2, 3][..], nulls));
    let ColumnValues::Numeric(found) = &column.values else {
        panic!("{column:?}")
    };
    assert_eq!(found.bytes[..24], numbers.bytes[..24]);
}

/// Missing text of groups became the fill value, as text: it was not declared.
#[test]
fn groups_have_missing_values() {
    let mut geometry = paths([1, 2], &[1, 2], Column::text("a", [Some("b"), Some("c")]));
    // The second object is only in a group without name and number.
    geometry.groups = [(0, vec![1]), (1, vec![2]), (2, vec![1])].into();
    let names = [Some("A"), None, Some("")];
    geometry.group.push(Column::text("name", names));
    geometry.group.push(Column {
        nulls: Some(vec![false, true, false]),
        ..Column::new("number", NumericColumn::int64(1, [7, 0, 0]))
    });
    let missing = async |address: &str| {
        let dataset = Dataset::open(address).await.unwrap();
        let mut found = Vec::new();
        let predicates = [
            "group.name is null",
            "group.number is null",
            "group.name = ''",
        ];
        for predicate in predicates {
            let query = Query::new().filter(Predicate::parse(predicate).unwrap());
            found.push(dataset.query(&query).await.unwrap().objects);
        }
        found
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (address, copy) = (path("a.zv"), path("b.zv"));
    let expected = [vec![2], vec![2], vec![1]];
    block_on(async {
        let design = Design::new(GeometryKind::Streamlines);
        let options = CreateOptions::default();
        zvf::create(&address, &geometry.build().unwrap(), design, &options)
            .await
            .unwrap();
        assert_eq!(missing(&address).await, expected, "created");
        let options = zvf::MigrateOptions::default();
        zvf::migrate(&address, &copy, &options).await.unwrap();
        assert_eq!(missing(&copy).await, expected, "migrated");
        let editor = Editor::open(&*address).await.unwrap();
        let mut added = paths([4, 5], &[4, 5], Column::text("a", [Some("b"), Some("c")]));
        added.groups = [(3, vec![4]), (4, vec![5])].into();
        added.group.push(Column::text("name", [None::<&str>; 5]));
        editor
            .append(&added.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        let found = missing(&address).await;
        assert_eq!(found, [vec![2, 4, 5], vec![2, 4, 5], vec![1]], "appended");
    });
}
