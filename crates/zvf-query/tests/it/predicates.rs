//! Random predicates and tables, and a simple reference interpreter.

use std::cmp::Ordering;

use proptest::prelude::*;
use zvf_query::predicate::{
    ColumnRef, ColumnSource, ColumnType, Comparison, Datum, FindError, Literal, Number, Operand,
    Predicate, ResolvedColumn, Scope, Truth,
};

/// A value of any type; `None` is missing.
pub(crate) type Plain = Option<Literal>;

pub(crate) const WORDS: [&str; 4] = ["axon", "", "soma", "it's"];
pub(crate) const OTHER_WORDS: [&str; 3] = ["soma", "axon", "dendrite"];

/// Names whose first letter determines the type.
const NAMES: [&str; 8] = [
    "int", "uint", "float", "bool", "text", "trope", "many", "in",
];

/// Rows of the columns of `NAMES`.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) rows: Vec<[Datum; 8]>,
}

impl Data {
    /// Returns the value of a row as a literal; NaN is missing.
    fn plain(&self, column: &ColumnRef, row: usize) -> Plain {
        let id = NAMES.iter().position(|name| *name == column.name).unwrap();
        match self.cell(id, column.channel.unwrap_or(0), row) {
            Datum::Missing => None,
            Datum::Number(Number::Float(value)) if value.is_nan() => None,
            Datum::Bool(value) => Some(Literal::Bool(value)),
            Datum::Number(number) => Some(Literal::Number(number)),
            Datum::Category(code) => {
                let words: &[&str] = if id == 4 { &WORDS } else { &OTHER_WORDS };
                let code = usize::try_from(code).unwrap();
                Some(Literal::Text(words[code].to_owned()))
            }
        }
    }
}

impl ColumnSource for Data {
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError> {
        let id = NAMES
            .iter()
            .position(|name| *name == column.name)
            .ok_or(FindError::Absent)?;
        let values = match column.name.as_bytes()[0] {
            b'b' => ColumnType::Bool,
            b't' if id == 4 => ColumnType::Categories(WORDS.to_vec()),
            b't' => ColumnType::Categories(OTHER_WORDS.to_vec()),
            _ => ColumnType::Numbers,
        };
        let channels = if column.name == "many" { 3 } else { 1 };
        Ok(ResolvedColumn {
            id,
            channels,
            column_type: values,
        })
    }

    fn cell(&self, id: usize, channel: u32, row: usize) -> Datum {
        match (self.rows[row][id], channel) {
            (Datum::Number(Number::Int(value)), 1..) => {
                Datum::Number(Number::Int(value + i64::from(channel)))
            }
            (cell, _) => cell,
        }
    }
}

pub(crate) fn number() -> impl Strategy<Value = Number> {
    // Canonical form, as the parser returns it.
    prop_oneof![
        4 => (-3..4_i64).prop_map(Number::Int),
        1 => any::<i64>().prop_map(Number::Int),
        1 => (i64::MAX as u64 + 1..).prop_map(Number::UInt),
        2 => (-6..7_i8).prop_map(|v| Number::Float(f64::from(v) / 2.0)),
        1 => any::<f64>().prop_filter("a literal", |v| v.is_finite()).prop_map(Number::Float),
        1 => Just(Number::Int(i64::MAX)),
        1 => Just(Number::Float(9_223_372_036_854_775_808.0)),
    ]
}

fn cell(name: &str) -> BoxedStrategy<Datum> {
    let some = match name.as_bytes() {
        b"many" | b"int" | b"in" => (-3..4_i64)
            .prop_map(|v| Datum::Number(Number::Int(v)))
            .boxed(),
        b"uint" => prop_oneof![0..3_u64, u64::MAX - 1..]
            .prop_map(|v| Datum::Number(Number::UInt(v)))
            .boxed(),
        b"float" => prop_oneof![
            1 => Just(f64::NAN),
            1 => Just(f64::INFINITY),
            4 => (-6..7_i8).prop_map(|v| f64::from(v) / 2.0),
        ]
        .prop_map(|v| Datum::Number(Number::Float(v)))
        .boxed(),
        b"bool" => any::<bool>().prop_map(Datum::Bool).boxed(),
        b"text" => (0..4_u32).prop_map(Datum::Category).boxed(),
        _ => (0..3_u32).prop_map(Datum::Category).boxed(),
    };
    prop_oneof![1 => Just(Datum::Missing), 6 => some].boxed()
}

pub(crate) fn data() -> impl Strategy<Value = Data> {
    let row: Vec<_> = NAMES.into_iter().map(cell).collect();
    let row = row.prop_map(|cells| <[Datum; 8]>::try_from(cells).unwrap());
    prop::collection::vec(row, 1..8).prop_map(|rows| Data { rows })
}

fn column(names: &'static [&'static str]) -> impl Strategy<Value = ColumnRef> {
    let scope = prop::option::of(prop::sample::select(Scope::ALL.to_vec()));
    (scope, prop::sample::select(names), 0..3_u32, any::<bool>()).prop_map(
        |(scope, name, channel, written)| ColumnRef {
            scope,
            name: name.to_owned(),
            channel: match name {
                "many" => Some(channel),
                _ => written.then_some(0),
            },
        },
    )
}

fn operand(
    names: &'static [&'static str],
    literal: BoxedStrategy<Literal>,
) -> BoxedStrategy<Operand> {
    prop_oneof![
        3 => column(names).prop_map(Operand::Column),
        2 => literal.prop_map(Operand::Literal),
        1 => Just(Operand::Literal(Literal::Null)),
    ]
    .boxed()
}

/// Returns a comparison of values of one type, so that it binds.
fn test(
    names: &'static [&'static str],
    literal: &BoxedStrategy<Literal>,
    comparisons: &'static [Comparison],
) -> BoxedStrategy<Predicate> {
    let side = || operand(names, literal.clone());
    let listed = prop_oneof![6 => literal.clone(), 1 => Just(Literal::Null)];
    let compare = (side(), prop::sample::select(comparisons), side());
    let compare = compare.prop_map(|(left, comparison, right)| Predicate::Compare {
        left,
        comparison,
        right,
    });
    let between = if comparisons.len() > 2 {
        let between = (side(), side(), side());
        between
            .prop_map(|(operand, low, high)| Predicate::Between { operand, low, high })
            .boxed()
    } else {
        side().prop_map(Predicate::IsNull).boxed()
    };
    let is_in = (side(), prop::collection::vec(listed, 1..4));
    let is_in = is_in.prop_map(|(operand, list)| Predicate::In { operand, list });
    let is_null = side().prop_map(Predicate::IsNull);
    prop_oneof![4 => compare, 1 => between, 2 => is_in, 1 => is_null].boxed()
}

/// Returns any predicate that binds, in the form the parser returns.
pub(crate) fn predicate() -> impl Strategy<Value = Predicate> {
    let words = [&WORDS[..], &OTHER_WORDS[..], &["b"]].concat();
    let text = prop::sample::select(words).prop_map(|word| Literal::Text(word.to_owned()));
    let leaf = prop_oneof![
        1 => prop::sample::select(Truth::ALL.to_vec()).prop_map(Predicate::Constant),
        1 => column(&["bool"]).prop_map(Predicate::IsTrue),
        4 => test(
            &["int", "uint", "float", "many", "in"],
            &number().prop_map(Literal::Number).boxed(),
            &Comparison::ALL,
        ),
        1 => test(
            &["bool"],
            &any::<bool>().prop_map(Literal::Bool).boxed(),
            &[Comparison::Equal, Comparison::NotEqual],
        ),
        2 => test(&["text", "trope"], &text.boxed(), &Comparison::ALL),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|inner| Predicate::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Predicate::And),
            prop::collection::vec(inner, 2..4).prop_map(Predicate::Or),
        ]
    })
}

/// Evaluates a predicate on a row by its definition.
pub(crate) fn interpret(predicate: &Predicate, data: &Data, row: usize) -> Truth {
    let value = |operand: &Operand| match operand {
        Operand::Column(column) => data.plain(column, row),
        Operand::Literal(Literal::Null) => None,
        Operand::Literal(literal) => Some(literal.clone()),
    };
    let compare = |left: &Operand, comparison, right: &Operand| {
        compare(value(left), comparison, value(right))
    };
    match predicate {
        Predicate::Constant(truth) => *truth,
        Predicate::IsTrue(column) => match data.plain(column, row) {
            None => Truth::Unknown,
            some => (some == Some(Literal::Bool(true))).into(),
        },
        Predicate::Compare {
            left,
            comparison,
            right,
        } => compare(left, *comparison, right),
        Predicate::Between { operand, low, high } => and(
            compare(operand, Comparison::GreaterEqual, low),
            compare(operand, Comparison::LessEqual, high),
        ),
        Predicate::In { operand, list } => {
            let equal = |literal: &Literal| {
                let literal = Operand::Literal(literal.clone());
                compare(operand, Comparison::Equal, &literal)
            };
            not(list.iter().map(equal).map(not).fold(Truth::True, and))
        }
        Predicate::IsNull(operand) => value(operand).is_none().into(),
        Predicate::Not(inner) => not(interpret(inner, data, row)),
        Predicate::And(parts) => {
            let parts = parts.iter().map(|part| interpret(part, data, row));
            parts.fold(Truth::True, and)
        }
        Predicate::Or(parts) => {
            let parts = parts.iter().map(|part| not(interpret(part, data, row)));
            not(parts.fold(Truth::True, and))
        }
    }
}

fn not(truth: Truth) -> Truth {
    match truth {
        Truth::True => Truth::False,
        Truth::False => Truth::True,
        Truth::Unknown => Truth::Unknown,
    }
}

fn and(a: Truth, b: Truth) -> Truth {
    match (a, b) {
        (Truth::True, Truth::True) => Truth::True,
        (Truth::False, _) | (_, Truth::False) => Truth::False,
        _ => Truth::Unknown,
    }
}

fn compare(left: Plain, comparison: Comparison, right: Plain) -> Truth {
    let order = match (left, right) {
        (None, _) | (_, None) => return Truth::Unknown,
        (Some(Literal::Number(a)), Some(Literal::Number(b))) => exact(a, b),
        (Some(Literal::Text(a)), Some(Literal::Text(b))) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Some(Literal::Bool(a)), Some(Literal::Bool(b))) => Some(a.cmp(&b)),
        other => unreachable!("{other:?}"),
    };
    let order = order.unwrap();
    let wanted: &[Ordering] = match comparison {
        Comparison::Equal => &[Ordering::Equal],
        Comparison::NotEqual => &[Ordering::Less, Ordering::Greater],
        Comparison::Less => &[Ordering::Less],
        Comparison::LessEqual => &[Ordering::Less, Ordering::Equal],
        Comparison::Greater => &[Ordering::Greater],
        Comparison::GreaterEqual => &[Ordering::Greater, Ordering::Equal],
    };
    wanted.contains(&order).into()
}

/// Compares the bits of a float with a shifted integer, because fixed-point numbers in units of
/// 2^-1074 would be too long.
pub(crate) fn exact(a: Number, b: Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
        (Number::Float(a), b) => exact(b, Number::Float(a)).map(Ordering::reverse),
        (a, Number::Float(b)) => with_float(integer(a), b),
        (a, b) => Some(integer(a).cmp(&integer(b))),
    }
}

fn integer(number: Number) -> i128 {
    match number {
        Number::Int(value) => value.into(),
        Number::UInt(value) => value.into(),
        Number::Float(_) => unreachable!("a float is not an integer"),
    }
}

fn with_float(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let bits = float.to_bits();
    let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap();
    let fraction = i128::from(bits & ((1 << 52) - 1));
    let (mantissa, shift) = match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    };
    let mantissa = if float < 0.0 { -mantissa } else { mantissa };
    Some(match shift {
        // Far beyond 2^64, or infinite.
        70.. => 0.cmp(&mantissa),
        0..70 => integer.cmp(&(mantissa << shift)),
        -62..0 => (integer << -shift).cmp(&mantissa),
        // Far below 1.
        _ if integer == 0 => 0.cmp(&mantissa),
        _ => integer.cmp(&0),
    })
}
