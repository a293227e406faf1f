//! Predicates evaluated on rows, compared with the reference interpreter.

use std::num::NonZeroU32;

use proptest::prelude::*;
use zvf_format::{
    dictionary::DictionaryCodes,
    numeric::{ByteOrder, Dtype, Element, NumericRows, encode},
};
use zvf_query::predicate::{
    BindError, CellTable, ColumnRef, Comparison, Datum, FindError, Literal, Number, Operand,
    Predicate, Scope, TableError, Truth, ValueType,
};

use crate::predicates::{Data, data, interpret, predicate};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(3000)))]

    #[test]
    fn rows_match_the_reference_interpreter(predicate in predicate(), data in data()) {
        let bound = predicate.bind(&data).unwrap();
        let folded = predicate.clone().folded();
        let bound_folded = folded.bind(&data).unwrap();
        let mut wanted = Vec::new();
        for row in 0..data.rows.len() {
            let truth = interpret(&predicate, &data, row);
            prop_assert_eq!(bound.evaluate(&data, row), truth, "{}", predicate);
            prop_assert_eq!(bound_folded.evaluate(&data, row), truth, "{}", folded);
            wanted.extend(truth.is_true().then_some(row));
        }
        let mut selected = Vec::new();
        bound.select(&data, 0..data.rows.len(), &mut selected);
        prop_assert_eq!(selected, wanted);
        if predicate.columns().is_empty() {
            prop_assert!(matches!(folded, Predicate::Constant(_)), "{}", folded);
        }
    }
}

#[test]
fn connectives_follow_three_valued_logic() {
    use Truth::{False as F, True as T, Unknown as U};
    let table = [
        (F, F, F, F),
        (F, U, F, U),
        (F, T, F, T),
        (U, F, F, U),
        (U, U, U, U),
        (U, T, U, T),
        (T, F, F, T),
        (T, U, U, T),
        (T, T, T, T),
    ];
    let none = Data { rows: Vec::new() };
    for (a, b, and, or) in table {
        assert_eq!((a & b, a | b), (and, or));
        let is = |text: String| {
            let predicate = Predicate::parse(&text).unwrap();
            let truth = predicate.bind(&none).unwrap().evaluate(&none, 0);
            assert_eq!(predicate.folded(), Predicate::Constant(truth));
            truth
        };
        assert_eq!(is(format!("{a} and {b}")), and);
        assert_eq!(is(format!("{a} or {b}")), or);
        assert_eq!(is(format!("not {a}")), !a);
    }
    assert_eq!([F, U, T].map(|a| !a), [T, U, F]);
}

/// Returns one row: int 2, uint max, float NaN, bool missing, text missing.
fn odd_row() -> Data {
    let int = Datum::Number(Number::Int(2));
    let uint = Datum::Number(Number::UInt(u64::MAX));
    let float = Datum::Number(Number::Float(f64::NAN));
    let (word, gone) = (Datum::Category(1), Datum::Missing);
    let row = [int, uint, float, gone, gone, word, int, gone];
    Data { rows: vec![row] }
}

#[track_caller]
fn check(text: &str, truth: Truth) {
    let data = odd_row();
    let bound = Predicate::parse(text).unwrap().bind(&data).unwrap();
    assert_eq!(bound.evaluate(&data, 0), truth, "{text}");
}

#[test]
fn nan_is_a_missing_value() {
    for comparison in ["=", "!=", "<", "<=", ">", ">="] {
        check(&format!("float {comparison} 1"), Truth::Unknown);
        check(&format!("not float {comparison} 1"), Truth::Unknown);
        check(&format!("float {comparison} float"), Truth::Unknown);
        check(&format!("float {comparison} null"), Truth::Unknown);
    }
    check("float between 0 and 1", Truth::Unknown);
    check("float not between 0 and 1", Truth::Unknown);
    check("float in (1, 2)", Truth::Unknown);
    check("float not in (1, 2)", Truth::Unknown);
    check("float in (1, null)", Truth::Unknown);
    check("float is null", Truth::True);
    check("float is not null", Truth::False);
    check("int between float and 1", Truth::False);
    check("int between float and 3", Truth::Unknown);
}

/// A program may build a predicate with NaN, which no text is parsed to.
#[test]
fn a_literal_nan_is_null() {
    let nan = Literal::Number(Number::Float(f64::NAN));
    let int = || {
        Operand::Column(ColumnRef {
            scope: None,
            name: "int".to_owned(),
            channel: None,
        })
    };
    let is = |predicate: Predicate, truth| {
        let data = odd_row();
        let bound = predicate.bind(&data).unwrap();
        assert_eq!(bound.evaluate(&data, 0), truth, "{predicate}");
        assert_eq!(bound.evaluate_all(&data, 1), [truth], "{predicate}");
        let folded = predicate.folded().bind(&data).unwrap();
        assert_eq!(folded.evaluate(&data, 0), truth);
    };
    for comparison in Comparison::ALL {
        let right = Operand::Literal(nan.clone());
        let left = int();
        let compare = Predicate::Compare {
            left,
            comparison,
            right,
        };
        is(compare.clone(), Truth::Unknown);
        is(Predicate::Not(Box::new(compare)), Truth::Unknown);
    }
    let two = Literal::Number(Number::Int(2));
    let is_in = |list: &[&Literal]| Predicate::In {
        operand: int(),
        list: list.iter().map(|literal| (*literal).clone()).collect(),
    };
    is(is_in(&[&nan, &two]), Truth::True);
    is(is_in(&[&nan]), Truth::Unknown);
    is(Predicate::IsNull(Operand::Literal(nan)), Truth::True);
}

#[test]
fn missing_values_compare_unknown_to_everything() {
    for text in [
        "bool",
        "not bool",
        "bool = true",
        "text = 'axon'",
        "text != 'axon'",
        "text < 'b'",
    ] {
        check(text, Truth::Unknown);
    }
    check("text in ('axon')", Truth::Unknown);
    check("text not in ('axon')", Truth::Unknown);
    check("text = trope", Truth::Unknown);
    check("text is null and bool is null", Truth::True);
    check("\"in\" between 1 and 3", Truth::Unknown);
    check("null = null", Truth::Unknown);
    check("null is null", Truth::True);
    check("int in (1, null)", Truth::Unknown);
    check("int in (2, null)", Truth::True);
    check("int not in (1, null)", Truth::Unknown);
    check("bool and 1 > 2", Truth::False);
    check("bool or int = 2.0", Truth::True);
}

#[test]
fn values_of_different_types_compare_exactly() {
    check("uint = 18446744073709551615", Truth::True);
    check("uint = 18446744073709551616.0", Truth::False);
    check("uint > int and many[2] = 4", Truth::True);
    check(
        "trope = 'axon' and trope < 'b' and 'b' > trope",
        Truth::True,
    );
    check(
        "trope between 'a' and 'b' and trope not in ('soma')",
        Truth::True,
    );
}

#[test]
fn type_errors_are_reported_before_evaluation() {
    let data = odd_row();
    let bind = |text: &str| Predicate::parse(text).unwrap().bind(&data).unwrap_err();
    let types = |left, right| BindError::Types { left, right };
    assert_eq!(bind("int = 'a'"), types(ValueType::Number, ValueType::Text));
    assert_eq!(
        bind("'a' = text and bool = 1"),
        types(ValueType::Bool, ValueType::Number)
    );
    assert_eq!(
        bind("text in ('a', 1)"),
        types(ValueType::Text, ValueType::Number)
    );
    assert_eq!(bind("1 = true"), types(ValueType::Number, ValueType::Bool));
    assert_eq!(bind("bool < true"), BindError::Order);
    assert_eq!(bind("bool between false and true"), BindError::Order);
    let column = |name: &str, channel| ColumnRef {
        scope: None,
        name: name.to_owned(),
        channel,
    };
    assert_eq!(bind("int"), BindError::NotBool(column("int", None)));
    for (text, channel) in [("many = 1", None), ("many[3] is null", Some(3))] {
        let column = column("many", channel);
        assert_eq!(
            bind(text),
            BindError::Channel {
                column,
                channels: 3
            }
        );
    }
    let range = "many[3]: the attribute has 3 channels, counted from 0; write many[0] to many[2]";
    assert_eq!(bind("many[3] = 1").to_string(), range);
    let one = bind("int[1] = 1").to_string();
    assert_eq!(one, "int[1]: the attribute has one channel; write int");
    let absent = bind("not (int = 1 or nobody > 2)");
    let found = BindError::Find {
        column: column("nobody", None),
        source: FindError::Absent,
    };
    assert_eq!(absent, found);
    assert_eq!(absent.to_string(), "column nobody");
}

fn rows<T: Element>(cell: &[u8], columns: u32) -> NumericRows<'_> {
    let dtype = Dtype::new(T::KIND, ByteOrder::Little);
    NumericRows::parse(cell, dtype, NonZeroU32::new(columns).unwrap()).unwrap()
}

#[test]
fn cells_of_a_store_are_columns() {
    use Truth::{False, True, Unknown};

    let rgb = encode(&[1_u8, 2, 3, 4, 5, 6], ByteOrder::Little);
    let flags = encode(&[true, false], ByteOrder::Little);
    let ids = encode(&[u64::MAX, 7], ByteOrder::Little);
    let codes = DictionaryCodes::parse(&[1, 0xff], Dtype::parse("int8").unwrap(), 2, Some(-1));
    let mut table = CellTable::default();
    table
        .add_numbers(Scope::Vertex, "rgb", rows::<u8>(&rgb, 3))
        .unwrap();
    table
        .add_numbers(Scope::Vertex, "flag", rows::<bool>(&flags, 1))
        .unwrap();
    table
        .add_numbers(Scope::Object, "id", rows::<u64>(&ids, 1))
        .unwrap();
    table
        .add_numbers(Scope::Link, "id", rows::<u64>(&ids, 1))
        .unwrap();
    table
        .add_categories(Scope::Object, "kind", codes.unwrap(), &["a", "b"])
        .unwrap();
    let truths = |text: &str| {
        let bound = Predicate::parse(text).unwrap().bind(&table).unwrap();
        [0, 1, 2].map(|row| bound.evaluate(&table, row))
    };
    // There is no third row.
    assert_eq!(truths("rgb[1] = 5"), [False, True, Unknown]);
    assert_eq!(truths("flag"), [True, False, Unknown]);
    assert_eq!(truths("object.id > 7"), [True, False, Unknown]);
    assert_eq!(truths("kind = 'b'"), [True, Unknown, Unknown]);
    assert_eq!(truths("kind is null"), [False, True, True]);
    let ambiguous = Predicate::parse("id = 7")
        .unwrap()
        .bind(&table)
        .unwrap_err();
    let expected = "several columns have this name; write object.id or link.id";
    let source = core::error::Error::source(&ambiguous).unwrap();
    assert_eq!(source.to_string(), expected);
    let again = table.add_numbers(Scope::Link, "id", rows::<u64>(&ids, 1));
    assert_eq!(again, Err(TableError::Duplicate));
    let complex = table.add_numbers(Scope::Link, "z", rows::<[f32; 2]>(&ids, 1));
    assert!(matches!(complex, Err(TableError::Kind(_))));
}
