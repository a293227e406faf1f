//! Additive levels, which hold each point once.

use std::collections::BTreeSet;

use zvf::{
    AutoLevels, Column, CreateOptions, Dataset, Design, Geometry, GeometryKind, LevelChoice,
    NumericColumn, PyramidLevels, PyramidOptions, Query, Store, build_pyramid,
};
use zvf_build::WritePlan;
use zvf_model::{key::Key, level::LevelId};
use zvf_testkit::stores::Random;

use crate::{block_on, validated::own::is_sound};

/// Returns the numbers of the points, which are stored as an attribute.
async fn numbers(dataset: &Dataset, level: u32) -> BTreeSet<u32> {
    let mut query = Query::new();
    query.level = LevelChoice::Number(LevelId::new(level));
    let result = dataset.query(&query).await.unwrap();
    let zvf::ColumnValues::Numeric(rows) = &result.vertex[0].values else {
        panic!("numbers are numbers")
    };
    let numbers: Vec<u32> = rows
        .bytes
        .chunks_exact(4)
        .map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let each: BTreeSet<u32> = numbers.iter().copied().collect();
    assert_eq!(each.len(), numbers.len(), "each point once");
    each
}

async fn stored(store: &Store, dataset: &Dataset, level: u32) -> u64 {
    assert!(
        !store
            .list_all(&Key::root(), 1 << 20)
            .await
            .unwrap()
            .is_empty()
    );
    let info = dataset.info().await.unwrap();
    info.levels[level as usize].vertices.unwrap()
}

#[test]
fn each_point_is_on_one_level_and_every_query_sees_all() {
    let mut random = Random::new(5);
    let count = 6000;
    let positions =
        (0..count * 3).map(|_| f32::from(u16::try_from(random.below(16_000)).unwrap()) / 100.0);
    let mut geometry =
        Geometry::builder(NumericColumn::float32(3, positions.collect::<Vec<f32>>()));
    let bytes = (0..u32::try_from(count).unwrap()).flat_map(u32::to_le_bytes);
    let mut own = NumericColumn::new(zvf::numeric::Kind::UInt32, 1);
    own.bytes = bytes.collect();
    geometry.vertex.push(Column::new("number", own));
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![40.0; 3]);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
        zvf::create_from_plan(&store, plan, &CreateOptions::default())
            .await
            .unwrap();
        let mut automatic = AutoLevels::default();
        automatic.additive = true;
        automatic.levels = Some(3);
        automatic.cell = Some(vec![10.0; 3]);
        let mut options = PyramidOptions::default();
        options.levels = PyramidLevels::Auto(automatic.clone());
        build_pyramid(&store, &options).await.unwrap();
        is_sound(&store, "additive").await;
        let dataset = Dataset::open(store.clone()).await.unwrap();
        let mut union = Vec::new();
        for level in 1..4 {
            union.push(numbers(&dataset, level).await);
        }
        let mut left = 0;
        for level in (1..4).rev() {
            left += stored(&store, &dataset, level).await;
            assert_eq!(
                union[level as usize - 1].len() as u64,
                left,
                "level {level} and coarser"
            );
        }
        // The same options with levels that replace each other.
        automatic.additive = false;
        options.levels = PyramidLevels::Auto(automatic);
        options.overwrite = true;
        build_pyramid(&store, &options).await.unwrap();
        let dataset = Dataset::open(store.clone()).await.unwrap();
        for level in 1..4 {
            let own = numbers(&dataset, level).await;
            assert_eq!(own, union[level as usize - 1], "level {level}");
        }
    });
}

/// Regression test: validation compared the points of an additive level alone with all points of the
/// next level.
#[test]
fn a_level_may_hold_fewer_points_than_the_next() {
    let at = |point: u16, divisor: u16| f32::from(point / divisor % 6) * 5.0;
    let positions = (0..128).flat_map(|point| [at(point, 1), at(point, 6), at(point, 36)]);
    let geometry = Geometry::new(NumericColumn::float32(3, positions));
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![8.0; 3]);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(geometry, design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let mut automatic = AutoLevels::default();
        automatic.additive = true;
        automatic.levels = Some(2);
        automatic.cell = Some(vec![2.0; 3]);
        let mut options = PyramidOptions::default();
        options.levels = PyramidLevels::Auto(automatic);
        build_pyramid(&store, &options).await.unwrap();
        let dataset = Dataset::open(store.clone()).await.unwrap();
        let (first, second) = (
            stored(&store, &dataset, 1).await,
            stored(&store, &dataset, 2).await,
        );
        assert!(first < second, "{first}, {second}");
        is_sound(&store, "additive").await;
    });
}

/// Regression test: validation reported such levels as wrong, because a level of this draft holds
/// whole objects.
#[test]
fn points_of_objects_are_not_declared_by_refinement() {
    let at = |point: u16| f32::from(point % 40);
    let positions = (0..80).flat_map(|point| [at(point), at(point * 7), at(point * 3)]);
    let geometry = Geometry::builder(NumericColumn::float32(3, positions))
        .object_ids((0..80).map(|point| point % 3).collect());
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![10.0; 3]);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let mut automatic = AutoLevels::default();
        automatic.additive = true;
        automatic.levels = Some(2);
        automatic.cell = Some(vec![4.0; 3]);
        let mut options = PyramidOptions::default().refinement(true);
        options.levels = PyramidLevels::Auto(automatic);
        let error = build_pyramid(&store, &options).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("build them without refinement"), "{text}");
        options.refinement = false;
        build_pyramid(&store, &options).await.unwrap();
        is_sound(&store, "additive").await;
    });
}
