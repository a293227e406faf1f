//! Selection of the objects that levels keep.

use std::collections::{BTreeMap, BTreeSet};

use zvf::{
    Dataset, LevelDesign, ObjectSelection, PyramidLevels, PyramidOptions, build_pyramid,
    coarsen::{Amount, CoarsenMethod, Placement, Sparsity, Strategy},
};
use zvf_build::{ColumnValues, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn};
use zvf_testkit::stores::Random;

use super::{bins::distance, model::Level, random::store_of};
use crate::{block_on, validated::own::is_sound, written::random::attribute};

const OBJECTS: usize = 30;

/// Returns random walks of different lengths, with a score; some are in groups.
fn walks(random: &mut Random) -> GeometryBuilder {
    let (mut values, mut offsets) = (Vec::new(), vec![0]);
    for _ in 0..OBJECTS {
        let mut at = [0; 3].map(|_: u32| random.between(-30, 30) as f32);
        for _ in 0..=random.below(40) {
            values.extend(at);
            at = at.map(|at| at + random.between(-16, 16) as f32 / 8.0);
        }
        offsets.push((values.len() / 3) as u64);
    }
    let ids: Vec<i64> = (0..OBJECTS as i64).map(|at| (at * 7) % 31 + 100).collect();
    let positions = NumericColumn::float32(3, values);
    let mut geometry = Geometry::builder(positions).paths(offsets, ids.clone());
    geometry.groups = BTreeMap::from([
        (0, ids[..9].to_vec()),
        (1, ids[5..12].to_vec()),
        (3, ids[20..22].to_vec()),
    ]);
    let score = (0..OBJECTS).map(|at| match at % 7 {
        3 => f32::NAN,
        _ => random.below(1000) as f32 / 8.0,
    });
    let score = ColumnValues::Numeric(NumericColumn::float32(1, score));
    geometry.object.push(attribute("score", score));
    geometry
}

/// Builds a level with some of the objects. Returns their ids and the previous level.
async fn kept(
    geometry: GeometryBuilder,
    amount: Amount,
    strategy: Strategy,
) -> (BTreeSet<i64>, Level) {
    let mut design = Design::new(GeometryKind::Polylines);
    design.chunk_shape = Some(vec![10.0; 3]);
    let is_attribute = matches!(strategy, Strategy::Attribute { .. });
    let about = format!("{amount:?} {strategy:?}");
    let level = LevelDesign {
        method: CoarsenMethod::Bins {
            cell: vec![5.0; 3],
            placement: Placement::Mean,
            share: false,
        },
        chunk_scale: vec![2; 3],
        sparsity: Some(ObjectSelection {
            sparsity: Sparsity { amount, strategy },
            attribute: is_attribute.then(|| "score".to_owned()),
        }),
        additive: false,
        sharding: None,
    };
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Explicit(vec![level]);
    let store = store_of(geometry, design.clone()).await;
    build_pyramid(&store, &options).await.unwrap();
    is_sound(&store, &about).await;
    let dataset = Dataset::open(store).await.unwrap();
    let coarse = Level::read(&dataset, 1, &design).await;
    // All objects are listed; those not kept are empty.
    assert_eq!(coarse.objects.as_ref().map(Vec::len), Some(OBJECTS));
    (coarse.present(), Level::read(&dataset, 0, &design).await)
}

/// Asserts that every kept object has at least the measure of every other.
fn are_greatest(level: &Level, kept: &BTreeSet<i64>, of: impl Fn(i64) -> f64) {
    let (own, others): (Vec<i64>, Vec<i64>) = level
        .present()
        .into_iter()
        .partition(|id| kept.contains(id));
    let min = own.into_iter().map(&of).fold(f64::INFINITY, f64::min);
    let greatest = others
        .into_iter()
        .map(&of)
        .fold(f64::NEG_INFINITY, f64::max);
    assert!(min >= greatest - 1e-9, "{min} was kept, {greatest} was not");
}

/// Returns the chunks of the coarser level that an object intersects.
fn chunks(level: &Level, id: i64) -> BTreeSet<Vec<i64>> {
    let own = level.of(id).iter();
    own.map(|vertex| level.cell(*vertex, &[20.0; 3])).collect()
}

#[test]
fn levels_keep_the_objects_that_the_strategy_selects() {
    for seed in 0..2 {
        let geometry = walks(&mut Random::new(seed));
        let make = |amount, strategy| block_on(kept(geometry.clone(), amount, strategy));
        for (amount, count) in [
            (Amount::Share(0.5), 15),
            (Amount::Share(0.01), 1),
            (Amount::Count(7), 7),
            (Amount::Count(1000), OBJECTS),
        ] {
            let (own, level) = make(amount, Strategy::Length);
            assert_eq!(own.len(), count);
            let length = |id: i64| {
                let pairs = level.of(id).windows(2);
                pairs
                    .map(|pair| distance(level.place(pair[0]), level.place(pair[1])))
                    .sum()
            };
            // The reference measures whole paths, including segments across chunk borders.
            are_greatest(&level, &own, length);
            let (own, _) = make(amount, Strategy::Random { seed });
            assert_eq!(own.len(), count);
            for descending in [true, false] {
                let (own, level) = make(amount, Strategy::Attribute { descending });
                assert_eq!(own.len(), count);
                let ColumnValues::Numeric(score) = &geometry.object[0].values else {
                    panic!()
                };
                let ids = geometry.owners.ids().unwrap();
                are_greatest(&level, &own, |id| {
                    let row = score
                        .row(ids.iter().position(|own| *own == id).unwrap())
                        .unwrap();
                    let score = f64::from(f32::from_le_bytes(row.try_into().unwrap()));
                    match (score.is_nan(), descending) {
                        (true, _) => f64::NEG_INFINITY,
                        (false, true) => score,
                        (false, false) => -score,
                    }
                });
            }
            let (own, level) = make(amount, Strategy::Coverage);
            assert_eq!(own.len(), count);
            // The greedy choice covers the most uncovered chunks at each step.
            let all: BTreeSet<_> = level
                .present()
                .iter()
                .flat_map(|id| chunks(&level, *id))
                .collect();
            let reached: BTreeSet<_> = own.iter().flat_map(|id| chunks(&level, *id)).collect();
            let mut by_hand = BTreeSet::new();
            for _ in 0..count {
                let max = level.present().into_iter().max_by_key(|id| {
                    let own = chunks(&level, *id);
                    own.difference(&by_hand).count()
                });
                by_hand.extend(chunks(&level, max.unwrap()));
            }
            let enough = by_hand.len().min(all.len());
            // Ties may be resolved differently and lead to another total.
            assert!(reached.len() + 2 >= enough, "{} of {enough}", reached.len());
        }
        let (own, _) = make(Amount::Count(2), Strategy::PerGroup { seed });
        for members in geometry.groups.values() {
            let count = members.iter().filter(|id| own.contains(id)).count();
            assert!(count >= 2, "{members:?} of {own:?}");
        }
        let loose = own
            .iter()
            .filter(|id| !geometry.groups.values().flatten().any(|own| own == *id));
        assert_eq!(loose.count(), 2, "{own:?}");
        let ids = BTreeSet::from([100, 107, 130]);
        let (own, _) = make(Amount::Count(1), Strategy::Ids(ids.clone()));
        assert_eq!(
            own,
            ids.into_iter()
                .filter(|id| geometry.owners.ids().unwrap().contains(id))
                .collect()
        );
    }
}
