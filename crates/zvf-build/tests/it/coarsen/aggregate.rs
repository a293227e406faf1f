//! Aggregation compared with a value-by-value implementation.

use std::cmp::Ordering;

use proptest::{collection::vec, prelude::*, sample::select};
use zvf_build::{
    NumericColumn,
    coarsen::{
        AggregateError, AggregatedAttribute, Aggregation, CoarsenError, NO_VERTEX, aggregate,
    },
};
use zvf_format::numeric::{ByteOrder, Dtype, Kind, NumericRows, Value};

/// Values and their parents.
#[derive(Clone, Debug)]
struct Case {
    numbers: NumericColumn,
    parent: Vec<u32>,
    count: usize,
    missing: Option<i64>,
}

/// Generates rows of few distinct values: any bytes, and the limits of the type.
fn case() -> impl Strategy<Value = Case> {
    (select(&Kind::ALL[..]), 1_usize..5, 0_usize..40, 1_usize..8).prop_flat_map(
        |(kind, columns, rows, count)| {
            let size = kind.size();
            let nan = match kind {
                Kind::Float16 => half::f16::NAN.to_le_bytes().to_vec(),
                Kind::Float64 | Kind::Complex128 => f64::NAN.to_le_bytes().repeat(size / 8),
                _ => f32::NAN.to_le_bytes().repeat(size.div_ceil(4)),
            };
            let one = prop_oneof![
                3 => vec(any::<u8>(), size),
                2 => vec(0_u8..2, 1).prop_map(move |low| [low, vec![0; size - 1]].concat()),
                1 => Just(vec![0xff; size]),
                1 => Just([vec![0xff; size - 1], vec![0x7f]].concat()),
                1 => Just([vec![0; size - 1], vec![0x80]].concat()),
                1 => Just(nan[..size].to_vec()),
            ];
            // A boolean is stored as 0 or 1.
            let one = one.prop_map(move |mut bytes| {
                if kind == Kind::Bool {
                    bytes[0] &= 1;
                }
                bytes
            });
            let parent = prop_oneof![4 => 0..count as u32, 1 => Just(NO_VERTEX)];
            let picks = vec((any::<prop::sample::Index>(), parent), rows);
            let missing = prop_oneof![Just(None), Just(Some(-1)), Just(Some(1)), Just(Some(0))];
            (vec(vec(one, columns), 1..5), picks, missing).prop_map(
                move |(pool, picks, missing)| {
                    let rows = picks.iter().flat_map(|(pick, _)| pick.get(&pool).concat());
                    Case {
                        numbers: NumericColumn {
                            kind,
                            width: columns as u32,
                            bytes: rows.collect(),
                        },
                        parent: picks.iter().map(|(_, parent)| *parent).collect(),
                        count,
                        missing,
                    }
                },
            )
        },
    )
}

fn values(numbers: &NumericColumn) -> Vec<Vec<Value>> {
    let dtype = Dtype::new(numbers.kind, ByteOrder::Little);
    let columns = (numbers.width).try_into().unwrap();
    let rows = NumericRows::parse(&numbers.bytes, dtype, columns).unwrap();
    let row = |row| (0..numbers.width).map(move |column| rows.value(row, column).unwrap());
    (0..numbers.len()).map(|at| row(at).collect()).collect()
}

fn parts(value: Value) -> Vec<f64> {
    match value {
        Value::Float(x) => vec![x],
        Value::Complex { re, im } => vec![re, im],
        _ => vec![],
    }
}

fn whole(value: Value) -> i128 {
    match value {
        Value::Int(x) => x.into(),
        Value::UInt(x) => x.into(),
        Value::Bool(x) => x.into(),
        _ => panic!("{value:?} is not an integer"),
    }
}

fn is_float(kind: Kind) -> bool {
    parts_of(kind) > 0
}

fn parts_of(kind: Kind) -> usize {
    match kind {
        Kind::Float16 | Kind::Float32 | Kind::Float64 => 1,
        Kind::Complex64 | Kind::Complex128 => 2,
        _ => 0,
    }
}

fn limits(kind: Kind) -> (i128, i128) {
    let bits = kind.size() * 8;
    match kind {
        Kind::Bool => (0, 1),
        Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64 => {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        }
        _ => (0, (1 << bits) - 1),
    }
}

fn order(a: Value, b: Value) -> Ordering {
    if parts(a).is_empty() {
        whole(a).cmp(&whole(b))
    } else {
        let pairs = parts(a).into_iter().zip(parts(b));
        pairs.fold(Ordering::Equal, |order, (a, b)| order.then(a.total_cmp(&b)))
    }
}

fn row_order(a: &[Value], b: &[Value]) -> Ordering {
    let pairs = a.iter().zip(b);
    pairs.fold(Ordering::Equal, |so_far, (a, b)| so_far.then(order(*a, *b)))
}

/// Rounds a number to the type.
fn narrowed(kind: Kind, value: f64) -> f64 {
    match kind {
        Kind::Float16 => half::f16::from_f64(value).to_f64(),
        Kind::Float32 | Kind::Complex64 => f64::from(value as f32),
        _ => value,
    }
}

impl Case {
    /// Returns whether a value is not null.
    fn is_value(&self, value: Value) -> bool {
        match is_float(self.numbers.kind) {
            true => parts(value).iter().all(|part| !part.is_nan()),
            false if self.numbers.kind == Kind::Bool => true,
            false => self
                .missing
                .is_none_or(|missing| whole(value) != missing.into()),
        }
    }

    /// Returns the null value.
    fn is_nothing(&self, value: Value) -> bool {
        let kind = self.numbers.kind;
        if is_float(kind) {
            parts(value).iter().all(|part| part.is_nan())
        } else {
            let (min, greatest) = limits(kind);
            let missing = self
                .missing
                .map(i128::from)
                .filter(|missing| kind != Kind::Bool && (min..=greatest).contains(missing));
            whole(value) == missing.unwrap_or(0)
        }
    }

    fn check(&self, rule: Aggregation) {
        let Self {
            numbers,
            parent,
            count,
            missing,
        } = self;
        let kind = numbers.kind;
        let found = aggregate(numbers, rule, parent, *count, None, *missing).unwrap();
        assert_eq!(found.len(), *count, "{rule}");
        let expected = match rule {
            Aggregation::Count => (Kind::UInt32, 1),
            _ => (kind, numbers.width),
        };
        assert_eq!((found.kind, found.width), expected);
        let (rows, found) = (values(numbers), values(&found));
        for (number, found) in found.iter().enumerate() {
            let members: Vec<&Vec<Value>> = rows
                .iter()
                .zip(parent)
                .filter(|(_, parent)| **parent as usize == number)
                .map(|(row, _)| row)
                .collect();
            let full: Vec<&Vec<Value>> = members
                .iter()
                .copied()
                .filter(|row| row.iter().all(|value| self.is_value(*value)))
                .collect();
            match rule {
                Aggregation::Count => assert_eq!(whole(found[0]), full.len() as i128),
                Aggregation::Own => match members.first() {
                    // NaN is not equal to itself.
                    Some(first) => assert_eq!(format!("{first:?}"), format!("{found:?}")),
                    None => assert!(found.iter().all(|value| self.is_nothing(*value))),
                },
                Aggregation::Mode => {
                    let times = |row: &Vec<Value>| {
                        full.iter()
                            .filter(|other| row_order(row, other).is_eq())
                            .count()
                    };
                    let best = full
                        .iter()
                        .max_by(|a, b| times(a).cmp(&times(b)).then(row_order(b, a)));
                    match best {
                        Some(best) => assert_eq!(row_order(best, found), Ordering::Equal),
                        None => assert!(found.iter().all(|value| self.is_nothing(*value))),
                    }
                }
                _ => {
                    for (column, found) in found.iter().enumerate() {
                        let all: Vec<Value> = members
                            .iter()
                            .map(|row| row[column])
                            .filter(|value| self.is_value(*value))
                            .collect();
                        self.check_one(rule, &all, *found);
                    }
                }
            }
        }
    }

    fn check_one(&self, rule: Aggregation, all: &[Value], found: Value) {
        let kind = self.numbers.kind;
        if all.is_empty() {
            assert!(self.is_nothing(found), "{rule}: {found:?}");
            return;
        }
        let members = all.len();
        match rule {
            Aggregation::Min => assert!(all.iter().min_by(|a, b| order(**a, **b)) == Some(&found)),
            Aggregation::Max => assert!(all.iter().max_by(|a, b| order(**a, **b)) == Some(&found)),
            _ if is_float(kind) => {
                for (part, found) in parts(found).into_iter().enumerate() {
                    let sum = all.iter().fold(0.0, |sum, value| sum + parts(*value)[part]);
                    let sum = match rule {
                        Aggregation::Sum => sum,
                        _ => sum / members as f64,
                    };
                    let sum = narrowed(kind, sum);
                    assert!(
                        found == sum || (found.is_nan() && sum.is_nan()),
                        "{rule} {found} {sum}"
                    );
                }
            }
            _ => {
                let sum: i128 = all.iter().map(|value| whole(*value)).sum();
                let (min, greatest) = limits(kind);
                let (found, members) = (whole(found), members as i128);
                match rule {
                    Aggregation::Sum => assert_eq!(found, sum.clamp(min, greatest)),
                    _ => {
                        // No integer is nearer, and halves round away from zero.
                        let off = (found * members - sum) * 2;
                        assert!(off.abs() <= members, "{found} of {sum}/{members}");
                        assert!(off.abs() < members || found.abs() * members > sum.abs());
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(512)))]

    #[test]
    fn values_equal_brute_force(case in case()) {
        for rule in Aggregation::ALL {
            case.check(rule);
        }
    }
}

#[test]
fn own_copies_the_kept_row() {
    let numbers = NumericColumn::float32(2, (0..8_u8).map(f32::from));
    let found = aggregate(
        &numbers,
        Aggregation::Own,
        &[1, 0, 1, 0],
        2,
        Some(&[3, 2]),
        None,
    )
    .unwrap();
    assert_eq!(found, NumericColumn::float32(2, [6.0, 7.0, 4.0, 5.0]));
    let short = aggregate(&numbers, Aggregation::Own, &[], 2, Some(&[9]), None).unwrap();
    assert!(
        short
            .bytes
            .chunks_exact(4)
            .all(|one| f32::from_le_bytes(one.try_into().unwrap()).is_nan())
    );
}

/// 64-bit integers never pass through floats.
#[test]
fn large_integers_are_exact() {
    let numbers = |values: &[i64]| NumericColumn {
        bytes: values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        ..NumericColumn::new(Kind::Int64, 1)
    };
    let large = (1_i64 << 53) + 1;
    let check = |rule, values: &[i64], expected: i64| {
        let found = aggregate(
            &numbers(values),
            rule,
            &vec![0; values.len()],
            1,
            None,
            None,
        )
        .unwrap();
        assert_eq!(found, numbers(&[expected]), "{rule} of {values:?}");
    };
    check(Aggregation::Sum, &[large, 2], large + 2);
    check(Aggregation::Mean, &[large, large, large], large);
    check(Aggregation::Max, &[large, large - 1], large);
    check(Aggregation::Min, &[-large, 1 - large], -large);
    check(Aggregation::Sum, &[i64::MAX, i64::MAX, -5], i64::MAX);
    check(Aggregation::Mean, &[i64::MIN, i64::MIN + 1], i64::MIN);
    check(Aggregation::Mode, &[large, large - 1, large], large);
}

/// Regression test: rows without a name were treated as null.
#[test]
fn truncated_rows_are_rejected() {
    for kind in Kind::ALL {
        for rule in Aggregation::ALL {
            let numbers = |bytes: usize| NumericColumn {
                bytes: vec![0; bytes],
                ..NumericColumn::new(kind, 3)
            };
            let row = 3 * kind.size();
            let found = |bytes| aggregate(&numbers(bytes), rule, &[0, 0], 1, None, None);
            assert!(found(2 * row).is_ok(), "{kind:?} {rule}");
            for bytes in [2 * row - 1, row + kind.size(), 1] {
                let whole = bytes % row == 0;
                assert_eq!(found(bytes).is_ok(), whole, "{kind:?} {rule} {bytes}");
            }
        }
    }
    let none = NumericColumn {
        width: 0,
        ..NumericColumn::new(Kind::Float32, 1)
    };
    let found = aggregate(&none, Aggregation::Mean, &[], 0, None, None);
    assert_eq!(found, Err(AggregateError::Columns(0)));
}

#[test]
fn counts_are_summed_on_the_next_level() {
    assert_eq!(Aggregation::Count.again(), Aggregation::Sum);
    assert_eq!(Aggregation::Mean.again(), Aggregation::Mean);
}

/// Regression test: values of absent cells were 0 or the first word, and counted.
#[test]
fn absent_cells_have_no_values() {
    let merged = |kind, rule, missing, into: &[u32]| {
        let field = AggregatedAttribute {
            name: "weight".to_owned(),
            dtype: Dtype::new(kind, ByteOrder::Little),
            columns: Some(1),
            rule,
            missing,
        };
        let payload = [vec![7; kind.size()], vec![7; kind.size()]].concat();
        let cells = [Some(payload.as_slice()), None];
        field.merged(&cells, &[2, 3], &["0.0", "1.0"], into, 2)
    };
    let rules = Aggregation::ALL;
    for rule in rules.into_iter().filter(|rule| *rule != Aggregation::Count) {
        for kind in Kind::ALL {
            // Both results have a stored member.
            let found = merged(kind, rule, None, &[0, 1, 1, 0, 0]);
            let expected = Ok(Some(vec![7; 2 * kind.size()]));
            if kind != Kind::Bool {
                assert_eq!(found, expected, "{kind:?} {rule}");
            }
            // The second has none.
            let found = merged(kind, rule, None, &[0, NO_VERTEX, 1, 1, 1]);
            match kind.nan() {
                Some(nan) => assert_eq!(
                    found.map(|bytes| bytes.map(|bytes| bytes[kind.size()..].to_vec())),
                    Ok(Some(nan.to_vec())),
                    "{kind:?} {rule}"
                ),
                None => {
                    let what = "weight".to_owned();
                    assert_eq!(found, Err(CoarsenError::NoNull { what }), "{kind:?} {rule}");
                }
            }
        }
        let found = merged(Kind::Int8, rule, Some(-1), &[0, 0, 1, 1, 1]);
        assert_eq!(
            found,
            Ok(Some(vec![
                if rule == Aggregation::Sum { 14 } else { 7 },
                0xff
            ]))
        );
    }
    let found = merged(Kind::Int32, Aggregation::Count, None, &[0, 0, 1, 0, 1]);
    assert_eq!(found, Ok(Some(vec![2, 0, 0, 0, 0, 0, 0, 0])));
}
