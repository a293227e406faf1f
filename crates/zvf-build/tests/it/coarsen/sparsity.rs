//! Selection of objects compared with brute force.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{
    collection::{btree_set, vec},
    option,
    prelude::*,
};
use zvf_build::coarsen::{Amount, ObjectFacts, Sparsity, SparsityError, Strategy as Keep};

fn facts() -> impl Strategy<Value = ObjectFacts> {
    let length = prop_oneof![
        8 => (0_u8..6).prop_map(f64::from),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
    ];
    let value = prop_oneof![4 => (0_u8..6).prop_map(f64::from), 1 => Just(f64::NAN)];
    (
        length,
        0_u64..4,
        btree_set(0_u32..12, 0..6),
        option::of(value),
        vec(0_u32..4, 0..3),
        prop::bool::weighted(0.8),
    )
        .prop_map(
            |(length, vertices, chunks, value, groups, is_present)| ObjectFacts {
                id: 0,
                is_present,
                length,
                vertices,
                chunks: chunks.into_iter().collect(),
                value,
                groups,
            },
        )
}

/// Generates objects with unordered ids.
fn objects() -> impl Strategy<Value = Vec<ObjectFacts>> {
    vec(facts(), 0..50).prop_map(|mut objects| {
        for (object, at) in objects.iter_mut().zip(0..) {
            object.id = at * 37 % 101 - 50;
        }
        objects
    })
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        (0.01..=1.0).prop_map(Amount::Share),
        Just(Amount::Share(0.5)),
        (1_u64..60).prop_map(Amount::Count),
    ]
}

fn count(amount: Amount, of: usize) -> usize {
    let count = match amount {
        // Rounds half to even.
        Amount::Share(share) => {
            let exact = of as f64 * share;
            let floor = exact.floor();
            let is_up = exact - floor > 0.5 || (exact - floor == 0.5 && floor % 2.0 == 1.0);
            floor as usize + usize::from(is_up)
        }
        Amount::Count(count) => count as usize,
    };
    count.max(1).min(of)
}

/// Returns the kept ids.
#[track_caller]
fn kept(objects: &[ObjectFacts], amount: Amount, strategy: Keep) -> BTreeSet<i64> {
    let kept = Sparsity { amount, strategy }.kept(objects).unwrap();
    assert_eq!(kept.len(), objects.len());
    let kept = objects.iter().zip(kept).filter(|(_, kept)| *kept);
    kept.map(|(object, _)| {
        assert!(object.is_present, "{} is not there", object.id);
        object.id
    })
    .collect()
}

fn present(objects: &[ObjectFacts]) -> Vec<&ObjectFacts> {
    objects.iter().filter(|object| object.is_present).collect()
}

/// Sorts by descending length, then number of vertices, then id.
fn by_length(objects: &[ObjectFacts]) -> Vec<&ObjectFacts> {
    let mut all = present(objects);
    all.sort_by(|a, b| {
        // NaN sorts last.
        let lengths = match (a.length.is_nan(), b.length.is_nan()) {
            (true, true) => std::cmp::Ordering::Equal,
            (true, false) => std::cmp::Ordering::Greater,
            (false, true) => std::cmp::Ordering::Less,
            (false, false) => b.length.partial_cmp(&a.length).unwrap(),
        };
        lengths
            .then(b.vertices.cmp(&a.vertices))
            .then(a.id.cmp(&b.id))
    });
    all
}

/// Greedy cover that recounts every gain for every choice.
fn cover(objects: &[ObjectFacts], count: usize) -> BTreeSet<i64> {
    let mut left = by_length(objects);
    let mut reached: BTreeMap<u32, u64> = BTreeMap::new();
    let mut chosen = BTreeSet::new();
    let mut wanted = 1;
    while chosen.len() < count {
        let gain = |object: &ObjectFacts| {
            let chunks = object.chunks.iter();
            chunks
                .filter(|chunk| reached.get(chunk).copied().unwrap_or(0) < wanted)
                .count()
        };
        let gains: Vec<usize> = left.iter().map(|object| gain(object)).collect();
        let best = gains.iter().copied().max().unwrap();
        let is_nowhere = left.iter().all(|object| object.chunks.is_empty());
        if best == 0 && !is_nowhere {
            wanted *= 2;
            continue;
        }
        let next = left.remove(gains.iter().position(|gain| *gain == best).unwrap());
        for chunk in &next.chunks {
            *reached.entry(*chunk).or_default() += 1;
        }
        chosen.insert(next.id);
    }
    chosen
}

proptest! {
    #[test]
    fn longest_objects_are_kept(objects in objects(), amount in amount()) {
        let all = by_length(&objects);
        let expected = all[..count(amount, all.len())].iter().map(|object| object.id).collect();
        assert_eq!(kept(&objects, amount, Keep::Length), expected);
    }

    #[test]
    fn covers_equal_brute_force(objects in objects(), amount in amount()) {
        let expected = cover(&objects, count(amount, present(&objects).len()));
        assert_eq!(kept(&objects, amount, Keep::Coverage), expected);
    }

    #[test]
    fn objects_are_kept_in_order_of_value(objects in objects(), amount in amount(), descending: bool) {
        let mut all = present(&objects);
        let value = |object: &ObjectFacts| match (object.value, descending) {
            (Some(value), _) if value.is_nan() => f64::INFINITY,
            (Some(value), true) => -value,
            (Some(value), false) => value,
            (None, _) => f64::INFINITY,
        };
        all.sort_by(|a, b| value(a).partial_cmp(&value(b)).unwrap().then(a.id.cmp(&b.id)));
        let expected = all[..count(amount, all.len())].iter().map(|object| object.id).collect();
        assert_eq!(kept(&objects, amount, Keep::Attribute { descending }), expected);
    }

    #[test]
    fn random_levels_are_nested(objects in objects(), a in amount(), b in amount(), seed: u64) {
        let random = Keep::Random { seed };
        let (one, other) = (kept(&objects, a, random.clone()), kept(&objects, b, random.clone()));
        assert_eq!(one.len(), count(a, present(&objects).len()));
        assert!(one.is_subset(&other) || other.is_subset(&one));
        // Selects through a finer level and in another order.
        let mut left = objects.clone();
        left.reverse();
        for object in &mut left {
            object.is_present &= one.contains(&object.id);
        }
        let rest = Amount::Count(other.len().clamp(1, one.len().max(1)) as u64);
        let again = kept(&left, rest, random);
        assert!(again.is_subset(&one) && (again.is_subset(&other) || other.is_subset(&again)));
    }

    #[test]
    fn each_group_keeps_its_fraction(objects in objects(), amount in amount(), seed: u64) {
        let found = kept(&objects, amount, Keep::PerGroup { seed });
        let mut groups: BTreeMap<Option<u32>, BTreeSet<i64>> = BTreeMap::new();
        for object in present(&objects) {
            let of: Vec<Option<u32>> = if object.groups.is_empty() { vec![None] } else { object.groups.iter().copied().map(Some).collect() };
            for group in of {
                groups.entry(group).or_default().insert(object.id);
            }
        }
        let mut expected = BTreeSet::new();
        for members in groups.values() {
            // A single group keeps the same objects as the seed alone.
            let mut alone = objects.clone();
            for object in &mut alone {
                object.is_present &= members.contains(&object.id);
            }
            let stay = kept(&alone, amount, Keep::Random { seed });
            assert_eq!(stay.len(), count(amount, members.len()));
            expected.extend(stay);
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn listed_ids_are_kept(objects in objects(), ids in btree_set(-60_i64..60, 0..8)) {
        let sparsity = Sparsity { amount: Amount::Count(1), strategy: Keep::Ids(ids.clone()) };
        let known: BTreeSet<i64> = objects.iter().map(|object| object.id).collect();
        match ids.iter().find(|id| !known.contains(id)) {
            Some(id) => assert_eq!(sparsity.kept(&objects), Err(SparsityError::Unknown(*id))),
            None => {
                let there: BTreeSet<i64> = present(&objects).iter().map(|object| object.id).collect();
                let expected = ids.intersection(&there).copied().collect();
                assert_eq!(kept(&objects, Amount::Count(1), Keep::Ids(ids)), expected);
            }
        }
    }
}

#[test]
fn other_seeds_select_other_objects() {
    let objects: Vec<ObjectFacts> = (0..1000)
        .map(|id| ObjectFacts {
            id,
            is_present: true,
            ..ObjectFacts::default()
        })
        .collect();
    let of = |seed| kept(&objects, Amount::Share(0.3), Keep::Random { seed });
    let both = of(1).intersection(&of(2)).count();
    // By chance 9 % are in both: 90, within five standard deviations of 6.3.
    assert!((58..123).contains(&both), "{both}");
}

#[test]
fn invalid_selections_are_rejected() {
    let check = |amount, error| {
        let strategy = Keep::Length;
        assert_eq!(Sparsity { amount, strategy }.kept(&[]), error);
    };
    check(Amount::Share(0.0), Err(SparsityError::Share(0.0)));
    check(Amount::Share(1.5), Err(SparsityError::Share(1.5)));
    check(Amount::Count(0), Err(SparsityError::Count));
    check(Amount::Share(1.0), Ok(Vec::new()));
    let strategy = Keep::Length;
    let amount = Amount::Share(f64::NAN);
    assert!(Sparsity { amount, strategy }.kept(&[]).is_err());
}
