//! All pairs of operators against a brute-force evaluator of three-valued logic.

use zvf_query::predicate::{
    ColumnRef, ColumnSource, ColumnType, Datum, FindError, Number, Predicate, ResolvedColumn,
    Truth, Zone, ZoneMap,
};

/// `None` is a missing value, and a truth that is unknown.
#[derive(Clone, Copy, Debug)]
struct Row {
    a: Option<f64>,
    b: Option<i64>,
    flag: Option<bool>,
    kind: Option<&'static str>,
}

const KINDS: [&str; 2] = ["axon", "soma"];

/// All combinations of values; `a` is NaN, infinite, negative, zero, positive and missing.
fn rows() -> Vec<Row> {
    let a = [f64::NAN, f64::INFINITY, -1.0, 0.0, 2.5];
    let mut rows = Vec::new();
    for a in a.into_iter().map(Some).chain([None]) {
        for b in [None, Some(0), Some(3)] {
            for flag in [None, Some(true), Some(false)] {
                for kind in [None, Some(KINDS[0]), Some(KINDS[1])] {
                    rows.push(Row { a, b, flag, kind });
                }
            }
        }
    }
    rows
}

impl Row {
    fn a(&self) -> Option<f64> {
        self.a.filter(|a| !a.is_nan())
    }

    fn b(&self) -> Option<f64> {
        self.b.map(|b| b as f64)
    }
}

type Test = (&'static str, fn(&Row) -> Option<bool>);

/// Every operator, on every type that it takes.
const TESTS: [Test; 37] = [
    ("a = 0", |row| Some(row.a()? == 0.0)),
    ("a == 0", |row| Some(row.a()? == 0.0)),
    ("a != 0", |row| Some(row.a()? != 0.0)),
    ("a <> 0", |row| Some(row.a()? != 0.0)),
    ("a < 0", |row| Some(row.a()? < 0.0)),
    ("a <= 0", |row| Some(row.a()? <= 0.0)),
    ("a > 0", |row| Some(row.a()? > 0.0)),
    ("a >= 0", |row| Some(row.a()? >= 0.0)),
    ("0 < a", |row| Some(0.0 < row.a()?)),
    ("a = null", |_| None),
    ("a != null", |_| None),
    ("a = a", |row| Some(row.a()? == row.a()?)),
    ("a != a", |row| Some(row.a()? != row.a()?)),
    ("a = b", |row| Some(row.a()? == row.b()?)),
    ("a != b", |row| Some(row.a()? != row.b()?)),
    ("a < b", |row| Some(row.a()? < row.b()?)),
    ("b >= a", |row| Some(row.b()? >= row.a()?)),
    ("b != 3", |row| Some(row.b()? != 3.0)),
    ("a between -1 and 1", |row| {
        Some((-1.0..=1.0).contains(&row.a()?))
    }),
    ("a not between -1 and 1", |row| {
        Some(!(-1.0..=1.0).contains(&row.a()?))
    }),
    ("b between a and 3", |row| {
        and(
            row.b().zip(row.a()).map(|(b, a)| b >= a),
            row.b().map(|b| b <= 3.0),
        )
    }),
    ("a in (0, 2.5)", |row| Some([0.0, 2.5].contains(&row.a()?))),
    ("a not in (0, 2.5)", |row| {
        Some(![0.0, 2.5].contains(&row.a()?))
    }),
    ("a in (0, null)", |row| (row.a()? == 0.0).then_some(true)),
    ("a not in (0, null)", |row| {
        (row.a()? == 0.0).then_some(false)
    }),
    ("b in (3)", |row| Some(row.b()? == 3.0)),
    ("a is null", |row| Some(row.a().is_none())),
    ("a is not null", |row| Some(row.a().is_some())),
    ("b is null", |row| Some(row.b.is_none())),
    ("flag", |row| row.flag),
    ("!flag", |row| Some(!row.flag?)),
    ("flag != true", |row| Some(!row.flag?)),
    ("kind = 'axon'", |row| Some(row.kind? == "axon")),
    ("kind != 'axon'", |row| Some(row.kind? != "axon")),
    ("kind not in ('axon', 'glia')", |row| {
        Some(row.kind? != "axon")
    }),
    ("kind is null", |row| Some(row.kind.is_none())),
    ("null", |_| None),
];

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|holds| !holds)
}

fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    not(and(not(left), not(right)))
}

struct Table<'a> {
    rows: &'a [Row],
    /// Reads columns of numbers without missing values in bulk.
    in_bulk: bool,
}

impl ColumnSource for Table<'_> {
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError> {
        let names = ["a", "b", "flag", "kind"];
        let id = names
            .iter()
            .position(|name| *name == column.name)
            .ok_or(FindError::Absent)?;
        Ok(ResolvedColumn {
            id,
            channels: 1,
            column_type: match id {
                2 => ColumnType::Bool,
                3 => ColumnType::Categories(KINDS.to_vec()),
                _ => ColumnType::Numbers,
            },
        })
    }

    fn cell(&self, id: usize, _: u32, row: usize) -> Datum {
        let row = self.rows[row];
        let datum = match id {
            0 => row.a.map(|a| Datum::Number(Number::Float(a))),
            1 => row.b.map(|b| Datum::Number(Number::Int(b))),
            2 => row.flag.map(Datum::Bool),
            _ => row
                .kind
                .map(|kind| Datum::Category(u32::from(kind == KINDS[1]))),
        };
        datum.unwrap_or(Datum::Missing)
    }

    fn exact_floats(&self, id: usize, _: u32, rows: usize) -> Option<Vec<f64>> {
        let rows = self.rows.get(..rows).filter(|_| self.in_bulk)?;
        match id {
            0 => rows.iter().map(|row| row.a).collect(),
            1 => rows.iter().map(Row::b).collect(),
            _ => None,
        }
    }
}

/// Bounds of the rows, as a writer of statistics would have them.
impl ZoneMap for Table<'_> {
    fn zone(&self, id: usize, channel: u32) -> Option<Zone> {
        let values: Vec<Option<Number>> = (0..self.rows.len())
            .map(|row| match self.cell(id, channel, row) {
                Datum::Number(Number::Float(value)) if value.is_nan() => Some(None),
                Datum::Number(number) => Some(Some(number)),
                Datum::Category(code) => Some(Some(Number::UInt(code.into()))),
                Datum::Missing => Some(None),
                Datum::Bool(_) => None,
            })
            .collect::<Option<_>>()?;
        let least = |a: Number, b: Number| if a.compare(b).unwrap().is_le() { a } else { b };
        let greatest = |a: Number, b: Number| if a.compare(b).unwrap().is_ge() { a } else { b };
        Some(Zone {
            min: values.iter().copied().flatten().reduce(least)?,
            max: values.iter().copied().flatten().reduce(greatest)?,
            has_missing: values.contains(&None),
        })
    }
}

/// Evaluates each combination of two tests in every way there is.
#[test]
fn all_pairs_of_operators_follow_three_valued_logic() {
    let rows = rows();
    // Rows without missing values come first, so that they can be read in bulk.
    let complete: Vec<Row> = rows
        .iter()
        .copied()
        .filter(|row| row.a.is_some() && row.b.is_some())
        .collect();
    let (mut satisfied, mut pruned) = (0_usize, 0_usize);
    for (left_text, left) in TESTS {
        for (right_text, right) in TESTS {
            type Join = fn(Option<bool>, Option<bool>) -> Option<bool>;
            let joins: [(String, Join); 6] = [
                (format!("{left_text} and {right_text}"), and),
                (format!("{left_text} or {right_text}"), or),
                (format!("not ({left_text} and {right_text})"), |a, b| {
                    not(and(a, b))
                }),
                (format!("!({left_text} || {right_text})"), |a, b| {
                    not(or(a, b))
                }),
                (format!("not ({left_text}) and {right_text}"), |a, b| {
                    and(not(a), b)
                }),
                (format!("not ({left_text}) or {right_text}"), |a, b| {
                    or(not(a), b)
                }),
            ];
            for (text, join) in joins {
                let predicate = Predicate::parse(&text).unwrap();
                let folded = predicate.clone().folded();
                let wanted = |row: &Row| match join(left(row), right(row)) {
                    Some(holds) => Truth::from(holds),
                    None => Truth::Unknown,
                };
                for (rows, in_bulk) in [(&rows, false), (&complete, true)] {
                    let table = Table { rows, in_bulk };
                    let wanted: Vec<Truth> = rows.iter().map(wanted).collect();
                    let bound = predicate.bind(&table).unwrap();
                    let each = (0..rows.len()).map(|row| bound.evaluate(&table, row));
                    assert_eq!(each.collect::<Vec<_>>(), wanted, "{text}");
                    assert_eq!(bound.evaluate_all(&table, rows.len()), wanted, "{text}");
                    let bound = folded.bind(&table).unwrap();
                    assert_eq!(bound.evaluate_all(&table, rows.len()), wanted, "{folded}");
                    satisfied += wanted.iter().filter(|truth| truth.is_true()).count();
                }
                let bound = predicate
                    .bind(&Table {
                        rows: &rows,
                        in_bulk: false,
                    })
                    .unwrap();
                for zone in rows.chunks(7).chain(rows.chunks(1)) {
                    let matches = zone.iter().any(|row| wanted(row).is_true());
                    let may_match = bound.may_match(&Table {
                        rows: zone,
                        in_bulk: false,
                    });
                    assert!(may_match || !matches, "{text}: {zone:?} is pruned");
                    pruned += usize::from(!may_match);
                }
            }
        }
    }
    assert!(satisfied > 100_000, "{satisfied}");
    assert!(pruned > 100_000, "{pruned}");
}
