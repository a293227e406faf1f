//! Budgets on pyramids recorded from the reference implementation.

use zvf::Query;
use zvf_model::geometry_kind::GeometryKind;
use zvf_query::{LevelChoice, QueryError, VertexBudget};
use zvf_testkit::golden::Golden;

use super::run;
use crate::{
    block_on,
    golden::{open, stores},
};

/// Every budget selects the finest level that fits, or a mix with the next level where points have
/// no links.
#[test]
fn budgets_choose_levels_of_recorded_pyramids() {
    let (mut stores_asked, mut mixed) = (0, 0);
    for archive in ["zvf-07", "zvf-08", "zvf-09", "zvf-examples"] {
        let golden = Golden::open(archive);
        for (store, _) in stores(&golden) {
            if !store.contains("pyramid") && archive != "zvf-examples" {
                continue;
            }
            let dataset = open(&golden, &store);
            let levels = dataset.levels().to_vec();
            if levels.len() < 2 {
                continue;
            }
            stores_asked += 1;
            let count = |level| {
                let query = Query::new().level(LevelChoice::Number(level));
                block_on(dataset.count(&query)).unwrap().vertices
            };
            let counts: Vec<u64> = levels.iter().map(|level| count(*level)).collect();
            let fewest = counts.iter().rev();
            // Finer levels are larger; a budget stops at the first level that exceeds it.
            let max = *counts.iter().max().unwrap();
            let step = usize::try_from(max / 24 + 1).unwrap();
            for budget in (0..=max).step_by(step).chain(counts.clone()) {
                let at = format!("{store}, {budget} of {counts:?}");
                let query = Query::new().level(VertexBudget::new(budget));
                let fits = fewest.clone().take_while(|count| **count <= budget).count();
                let found = block_on(dataset.query(&query));
                let Some(level) = fits.checked_sub(1) else {
                    let error = found.unwrap_err();
                    let Some(&QueryError::OverVertices { vertices, .. }) = error.cause() else {
                        panic!("{at}: {error:?}")
                    };
                    assert_eq!(vertices, *counts.last().unwrap(), "{at}");
                    continue;
                };
                let level = levels[levels.len() - 1 - level];
                let mut result = found.unwrap_or_else(|error| panic!("{at}: {error:?}"));
                assert!(result.positions.len() as u64 <= budget, "{at}");
                if result.levels.len() > 1 {
                    mixed += 1;
                    let first = dataset.root().first_kind();
                    let kind = first.unwrap_or_else(|| panic!("{at}"));
                    assert!(kind == GeometryKind::Points || kind.is_paths(), "{at}");
                    let used: Vec<_> = result.levels.iter().map(|used| used.level).collect();
                    assert!(used[0] == level || result.level < level, "{at}");
                    assert!(result.positions.len() as u64 >= count(level), "{at}");
                    continue;
                }
                result.levels.clear();
                let is_path = dataset.root().kinds().any(GeometryKind::is_paths);
                let mut plain = Query::new().level(LevelChoice::Number(result.level));
                if result.level < level && !is_path {
                    // The next finer level of the only region is sampled.
                    assert_eq!(result.positions.len() as u64, budget, "{at}");
                    continue;
                } else if result.level < level {
                    assert!(count(level) < budget - budget / 5, "{at}");
                    plain = plain.objects(result.objects.clone());
                } else {
                    assert_eq!(result.level, level, "{at}");
                }
                let plain = run(&dataset, &plain);
                assert_eq!(result, plain, "{at}");
            }
        }
    }
    assert!(stores_asked > 6 && mixed > 0, "{stores_asked}, {mixed}");
}
