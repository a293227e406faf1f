//! The same queries in other forms: counted, in batches, and with a region that covers everything,
//! which takes another code path.

use core::ops::ControlFlow;

use zvf::{Dataset, Query, QueryResult};
use zvf_query::{
    Shape,
    geometry::{Bbox, Mode},
};

use super::tally::Tally;
use crate::block_on;

fn length(n: usize) -> u64 {
    n.try_into().unwrap()
}

pub(super) fn check(
    dataset: &Dataset,
    query: &Query,
    result: &QueryResult,
    tally: &mut Tally,
    at: &str,
) {
    let query = query.clone().keep_going(true);
    let counts = block_on(dataset.count(&query)).unwrap();
    let found = (counts.vertices, counts.parts, counts.links);
    let parts = result
        .parts
        .as_ref()
        .map(|parts| length(parts.objects.len()));
    let links = result.links.as_ref().map(|links| length(links.len()));
    tally.same(found, (length(result.positions.len()), parts, links), at);

    let (mut positions, mut ends) = (Vec::new(), Vec::new());
    let pieces = dataset.batches(&query, |piece| {
        positions.extend(piece.positions.bytes);
        ends.extend(piece.links.into_iter().flat_map(|links| links.ends));
        ControlFlow::Continue(())
    });
    let outcome = block_on(pieces).unwrap();
    let expected = result.links.iter().flat_map(|links| links.ends.clone());
    tally.same(&positions, &result.positions.bytes, at);
    tally.same(ends, expected.collect(), at);
    tally.same(&outcome.skipped, &result.skipped, at);

    let axes = dataset.root().axes.len();
    let everywhere = Bbox::new(&vec![f64::NEG_INFINITY; axes], &vec![f64::INFINITY; axes]);
    let query = query.region(everywhere.unwrap());
    for mode in [Mode::Touch, Mode::Within, Mode::Clip] {
        if mode == Mode::Clip && query.shape == Some(Shape::Links) {
            // Batches of faces contain triangles.
            continue;
        }
        let at = format!("{at}, everywhere, {mode}");
        let found = block_on(dataset.query(&query.clone().mode(mode))).unwrap();
        tally.same(&found.positions, &result.positions, &at);
        tally.same(&found.object_ids, &result.object_ids, &at);
        tally.same(&found.parts, &result.parts, &at);
        tally.same(&found.links, &result.links, &at);
        tally.same(&found.vertex, &result.vertex, &at);
        tally.same(&found.fragment, &result.fragment, &at);
        tally.same(&found.link, &result.link, &at);
        tally.same(&found.objects, &result.objects, &at);
        tally.same(&found.object, &result.object, &at);
    }
}
