//! Missing values of vertices, written at once and in batches.

use std::error::Error;

use zvf::{CreateOptions, Dataset, GeometrySource, Query};
use zvf_build::{
    BuildError, Column, ColumnValues, Design, Geometry, GeometryKind, NumericColumn, OutOfBounds,
};

use crate::block_on;

/// Batches, and the number of the next one.
struct Batches(Vec<Geometry>, usize);

impl GeometrySource for Batches {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        self.1 += 1;
        Ok(self.0.get(self.1 - 1).cloned())
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.1 = 0;
        Ok(())
    }

    fn tables(&self) -> Geometry {
        Geometry::new(NumericColumn::float32(2, []))
    }
}

fn points(places: &[f32], values: ColumnValues, nulls: &[bool]) -> Geometry {
    let positions = places.iter().flat_map(|place| [*place, 1.0]);
    let mut geometry = Geometry::new(NumericColumn::float32(2, positions));
    geometry.vertex.push(Column {
        nulls: Some(nulls.to_vec()),
        ..Column::new("a", values)
    });
    geometry
}

/// Creates a store, from batches of two points or at once. Returns the positions and the attribute.
fn created(
    all: &Geometry,
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
                let mut batch = Geometry::new(all.positions.take(rows()));
                batch.vertex = all
                    .vertex
                    .iter()
                    .map(|column| column.take(rows()))
                    .collect();
                batch
            });
            let mut source = Batches(batches.collect(), 0);
            zvf::create_from_source(&address, &mut source, design, &options).await?;
        } else {
            zvf::create(&address, all, design, &options).await?;
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
