//! Zone maps never prune a row that matches.

use proptest::prelude::*;
use zvf_query::predicate::{Datum, Number, Predicate, Zone, ZoneMap};

use crate::predicates::{Data, data, predicate};

/// The zones of all rows, for the selected columns.
struct Known<'a>(&'a Data, [bool; 8]);

impl ZoneMap for Known<'_> {
    fn zone(&self, id: usize, channel: u32) -> Option<Zone> {
        use zvf_query::predicate::ColumnSource;
        let mut zone: Option<Zone> = None;
        let mut missing = false;
        for row in 0..self.0.rows.len() {
            let number = match self.0.cell(id, channel, row) {
                Datum::Number(number) => number,
                Datum::Category(code) => Number::UInt(code.into()),
                Datum::Bool(_) => return None,
                Datum::Missing => {
                    missing = true;
                    continue;
                }
            };
            if number.compare(number).is_none() {
                missing = true;
                continue;
            }
            let all = zone.get_or_insert(Zone {
                min: number,
                max: number,
                has_missing: missing,
            });
            if number.compare(all.min).unwrap().is_lt() {
                all.min = number;
            }
            if number.compare(all.max).unwrap().is_gt() {
                all.max = number;
            }
        }
        let zone = zone.map(|zone| Zone {
            has_missing: missing,
            ..zone
        });
        zone.filter(|_| self.1[id])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(3000)))]

    #[test]
    fn matching_rows_are_never_pruned(
        predicate in predicate(),
        data in data(),
        known in prop::array::uniform8(prop::bool::weighted(0.8)),
    ) {
        let bound = predicate.bind(&data).unwrap();
        let mut selected = Vec::new();
        bound.select(&data, 0..data.rows.len(), &mut selected);
        let may_match = bound.may_match(&Known(&data, known));
        prop_assert!(may_match || selected.is_empty(), "{}", predicate);
    }
}

#[track_caller]
fn check(text: &str, may_match: bool) {
    let int = |v| Datum::Number(Number::Int(v));
    let float = |v| Datum::Number(Number::Float(v));
    let row = |i, f, w| {
        [
            int(i),
            Datum::Missing,
            float(f),
            Datum::Bool(true),
            Datum::Category(w),
            Datum::Missing,
            int(i),
            int(i),
        ]
    };
    let data = Data {
        rows: vec![row(3, 0.5, 2), row(9, f64::NAN, 2)],
    };
    let bound = Predicate::parse(text).unwrap().bind(&data).unwrap();
    assert_eq!(
        bound.may_match(&Known(&data, [true; 8])),
        may_match,
        "{text}"
    );
}

#[test]
fn zones_that_cannot_match_are_pruned() {
    check("int > 9", false);
    check("int >= 9", true);
    check("int between 10 and 20", false);
    check("not int < 10", false);
    check("int = 5 and int > 9", false);
    check("int > 9 or float > 1", false);
    check("not float <= 0.5", false);
    check("float != 0.5", false);
    check("not float = 0.5", false);
    check("float is null", true);
    check("float is not null", true);
    check("int is null", false);
    check("int in (1, 2, 10)", false);
    check("int in (1, 4)", true);
    check("float > int", false);
    check("text = 'soma'", true);
    check("text = 'axon'", false);
    check("text < 'b'", false);
    // Without values, all rows are missing.
    check("uint > 5", true);
    check("bool", true);
    check("bool and false", false);
    check("int = null", false);
}
