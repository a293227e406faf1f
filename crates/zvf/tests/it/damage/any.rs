//! Arbitrary bytes in any file. No query of any shape panics, and a query that succeeds strictly
//! also succeeds with `keep_going`.

use proptest::prelude::*;
use zvf::Query;
use zvf_catalog::Selection;
use zvf_query::{
    Shape,
    geometry::{Bbox, Mode, Position},
};
use zvf_testkit::{
    golden::Golden,
    stores::{Cells, Recipe, RecipeProfile, RecordPolicy, StoreKind, make},
};

use super::{Files, files, open, run};
use crate::{block_on, stores::recipes};

fn queries(axes: usize) -> Vec<Query> {
    let some = Bbox::new(&vec![-5.0; axes], &vec![12.5; axes]).unwrap();
    let place = Position::new(&vec![1.5; axes]).unwrap();
    let plain = Query::new().columns(Selection::none());
    let mut queries = Vec::new();
    for shape in [Shape::Points, Shape::Paths, Shape::Links] {
        queries.push(Query::new().shape(shape));
        let plain = plain.clone().shape(shape);
        queries.push(plain.clone().region(some).mode(Mode::Clip));
        queries.push(plain.clone().objects([1, 0]));
        queries.push(plain.clone().groups([0]));
        queries.push(plain.nearest(place, 3));
    }
    queries.push(Query::new().drill(1));
    queries
}

/// Runs every query on a store with one replaced file.
async fn ask_all(files: &Files) {
    let Ok(dataset) = open(files).await else {
        return;
    };
    for query in queries(dataset.root().axes.len()) {
        let strict = run(&dataset, &query).await;
        let lenient = run(&dataset, &query.keep_going(true)).await;
        if let Ok(strict) = strict {
            assert_eq!(lenient.as_ref(), Ok(&strict));
        }
    }
    let _ = dataset.explain(&Query::new()).await;
    let _ = dataset.count(&Query::new()).await;
}

/// A replacement for the content of a file.
#[derive(Clone, Debug)]
enum Change {
    Bytes(Vec<u8>),
    /// Overwrites bytes at relative positions.
    Set(Vec<(prop::sample::Index, u8)>),
    /// Overwrites eight bytes at a relative position with an integer.
    Number(prop::sample::Index, i64),
    /// Takes the content of another file.
    Other(prop::sample::Index),
}

fn changes() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    let numbers = prop_oneof![
        any::<i64>(),
        -3_i64..300,
        prop::sample::select(vec![i64::MAX, i64::MIN, 1 << 62, 1 << 32, (1 << 32) - 1]),
    ];
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Change::Bytes),
        4 => prop::collection::vec((at(), any::<u8>()), 1..4).prop_map(Change::Set),
        4 => (at(), numbers).prop_map(|(at, number)| Change::Number(at, number)),
        2 => at().prop_map(Change::Other),
    ]
}

fn change(files: &mut Files, file: prop::sample::Index, change: &Change) {
    let others: Vec<Vec<u8>> = match change {
        Change::Other(other) => vec![files[other.index(files.len())].1.clone()],
        _ => Vec::new(),
    };
    let number = file.index(files.len());
    let bytes = &mut files[number].1;
    let length = bytes.len();
    match change {
        Change::Bytes(new) => bytes.clone_from(new),
        Change::Set(places) => {
            for (at, byte) in places.iter().filter(|_| length > 0) {
                bytes[at.index(length)] = *byte;
            }
        }
        Change::Number(at, number) => {
            let at = at.index(length + 1) / 4 * 4;
            for (byte, new) in bytes.iter_mut().skip(at).zip(number.to_le_bytes()) {
                *byte = new;
            }
        }
        Change::Other(_) => bytes.clone_from(&others[0]),
    }
}

fn any_profile() -> impl Strategy<Value = Recipe> {
    prop::sample::select(RecipeProfile::ALL.to_vec()).prop_flat_map(recipes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(48)))]

    #[test]
    fn arbitrary_bytes_in_a_generated_store_never_panic(
        recipe in any_profile(),
        file in any::<prop::sample::Index>(),
        what in changes(),
    ) {
        let mut files = make(&Recipe { size: recipe.size % 30 + 2, ..recipe }).files;
        change(&mut files, file, &what);
        block_on(ask_all(&files));
    }
}

/// Overwrites counts, indexes and offsets in uncompressed cells with extreme integers, at every
/// third position of the first 300 bytes.
#[test]
fn extreme_integers_in_cells_never_panic() {
    let recipe = Recipe {
        seed: 3,
        kind: StoreKind::StreamedSkeleton,
        profile: RecipeProfile::V09,
        cells: Cells::ALL[0],
        policy: RecordPolicy::ALL[0],
        size: 12,
        ..Recipe::default()
    };
    let made = make(&recipe).files;
    let golden = Golden::open("zvf-09");
    let graph = files(&golden, "graph_2d_objects/store.zarrvectors");
    for intact in [made, graph] {
        for number in 0..intact.len() {
            let (key, bytes) = &intact[number];
            if key.ends_with("zarr.json") || key.contains("_attributes/") {
                continue;
            }
            for at in (8 * (number % 3)..bytes.len().min(300).saturating_sub(7)).step_by(24) {
                let absurd = [i64::MAX, 1 << 62, u32::MAX.into(), -1, i64::MIN, 1 << 20];
                let new = absurd[(at / 8 + number) % absurd.len()];
                let mut files = intact.clone();
                files[number].1[at..at + 8].copy_from_slice(&new.to_le_bytes());
                block_on(ask_all(&files));
            }
        }
    }
}
