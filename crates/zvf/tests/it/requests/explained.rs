//! The explanation of a query before it runs.

use std::collections::BTreeSet;

use zvf::OpenOptions;
use zvf_testkit::stores::Cells;

use super::{
    cases, cost,
    kinds::{self, CELLS, KINDS},
    opened,
};
use crate::block_on;

/// `explain` predicts the requests of the first round without reading data.
#[test]
fn explain_predicts_the_first_round() {
    for (name, kind, _) in KINDS {
        for (cells_name, cells) in CELLS {
            let made = kinds::fixed(kind, cells);
            let files = kinds::files(&made);
            for case in cases::of(&made.truth)
                .into_iter()
                .filter(|case| !case.counts)
            {
                let at = format!("{name}, {cells_name}: {}", case.name);
                let (dataset, _) = opened(&files, &OpenOptions::default());
                let explained = block_on(dataset.explain(&case.query)).unwrap();
                let log = dataset.store().take_request_log();
                let read = log
                    .iter()
                    .filter(|read| !read.key.as_str().ends_with("zarr.json"));
                assert_eq!(
                    read.collect::<Vec<_>>(),
                    Vec::<&zvf_store::Read>::new(),
                    "{at}"
                );
                let cost = case.cost(&files, &OpenOptions::default());
                let Some(first) = cost.data.values().next() else {
                    assert_eq!(explained.requests(), 0, "{at}");
                    continue;
                };
                let objects: BTreeSet<_> = first.iter().map(|read| read.key.as_str()).collect();
                let objects = u64::try_from(objects.len()).unwrap();
                assert_eq!(
                    explained.requests(),
                    objects,
                    "{at}: {first:?}\n{explained:?}"
                );
                let bytes = cost::sum(first, &files);
                let explained_bytes = explained.bytes().unwrap();
                match cells {
                    // Explained bytes of a shard are an upper bound, because only parts are read.
                    Cells::Sharded => {
                        assert!(explained_bytes >= bytes, "{at}: {explained_bytes} {bytes}");
                    }
                    _ => assert_eq!(explained_bytes, bytes, "{at}: {first:?}\n{explained:?}"),
                }
                // Selecting chunk by chunk reads no more than the explained maximum.
                if made.truth.objects.is_none() && case.query.nearest.is_none() {
                    let all = cost::sum(cost.data(), &files);
                    let max = explained.at_most.unwrap();
                    assert!(all <= max, "{at}: {all} of {max}");
                }
                // Each described step is one round trip.
                let is_whole =
                    case.query.nearest.is_some() || explained.then.len() + 1 >= cost.data.len();
                assert!(is_whole, "{at}: {} rounds, {explained:?}", cost.data.len());
            }
        }
    }
}
