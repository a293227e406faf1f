//! Predicates from text to tree and back, and syntax errors.

use proptest::prelude::*;
use zvf_query::predicate::{
    Expected as E, MAX_DEPTH, MAX_LENGTH, ParseError, ParseErrorKind as P, Predicate, Scope,
};

use crate::predicates::predicate;

#[track_caller]
fn check(text: &str, shown: &str) {
    let predicate = Predicate::parse(text).unwrap();
    assert_eq!(predicate.to_string(), shown);
    assert_eq!(Predicate::parse(shown), Ok(predicate));
}

#[track_caller]
fn refuse(text: &str, at: usize, kind: P) {
    assert_eq!(
        Predicate::parse(text),
        Err(ParseError { at, kind }),
        "{text}"
    );
}

#[test]
fn predicates_are_formatted_canonically() {
    check("a=1", "a = 1");
    check(
        "a < -2.50 AND b>=1e3 Or c != 'x'",
        "a < -2.5 and b >= 1000.0 or c != 'x'",
    );
    check("(a and (b)) or ((c))", "a and b or c");
    check("a and (b or c)", "a and (b or c)");
    check("(a and b) and c", "(a and b) and c");
    check("not (a or b) and not not c", "not (a or b) and not not c");
    check("not a in (1)", "a not in (1)");
    check("a not between 1 and b and c", "a not between 1 and b and c");
    check("a IS NOT Null", "a is not null");
    check("not a is null", "a is not null");
    check("1 < 2", "1 < 2");
    check(
        "vertex.a[3] = object.\"b c\"",
        "vertex.a[3] = object.\"b c\"",
    );
    check(
        "\"AND\" = \"say \"\"hi\"\"\"",
        "\"AND\" = \"say \"\"hi\"\"\"",
    );
    check("\"plain\" = 'it''s'", "plain = 'it''s'");
    check("vertex = 1 or \"a.b\"", "vertex = 1 or \"a.b\"");
    check("  true\n", "true");
    check(
        "x in ( 1 , 'a' , null, false )",
        "x in (1, 'a', null, false)",
    );
    check("a = 18446744073709551615", "a = 18446744073709551615");
    check("a = -9223372036854775808", "a = -9223372036854775808");
    check("a = .5 or b=5. or c=1E-2", "a = 0.5 or b = 5.0 or c = 0.01");
    check("\"\" = 'ü'", "\"\" = 'ü'");
}

#[test]
fn errors_contain_position_and_expectation() {
    let expected = P::Expected;
    refuse("", 0, expected(E::Operand));
    refuse("a = ", 4, expected(E::Operand));
    refuse("a === 1", 4, expected(E::Operand));
    refuse("5", 1, expected(E::Comparison));
    refuse("'x' and a", 4, expected(E::Comparison));
    refuse("(a", 2, expected(E::Closing));
    refuse("a)", 1, expected(E::End));
    refuse("()", 1, expected(E::Operand));
    refuse("a and", 5, expected(E::Operand));
    refuse("a between 1 or 2", 12, expected(E::And));
    refuse("a between 1", 11, expected(E::And));
    refuse("a not = 1", 6, expected(E::BetweenOrIn));
    refuse("a is 1", 5, expected(E::NullOrNot));
    refuse("a is not 1", 9, expected(E::Null));
    refuse("a in 1", 5, expected(E::Opening));
    refuse("a in ()", 6, expected(E::Literal));
    refuse("a in (b)", 6, expected(E::Literal));
    refuse("a in (1 2)", 8, expected(E::ListEnd));
    refuse("a[] = 1", 2, expected(E::Channel));
    refuse("a[-1] = 1", 2, expected(E::Channel));
    refuse("a[4294967296] = 1", 2, expected(E::Channel));
    refuse("a[1 = 1", 4, expected(E::ChannelEnd));
    refuse("vertex. = 1", 8, expected(E::Name));
    refuse("vertices.a = 1", 8, P::Scope);
    refuse("\"vertex\".a = 1", 8, P::Scope);
    refuse("not", 3, expected(E::Operand));
    refuse("and = 1", 0, expected(E::Operand));
    refuse("a = 'x", 4, P::UnclosedText);
    refuse("a = 'x''", 4, P::UnclosedText);
    refuse("\"a = 1", 0, P::UnclosedName);
    refuse("a = 1x", 4, P::Number);
    refuse("a = 1.2.3", 4, P::Number);
    refuse("a = 1e999", 4, P::Number);
    refuse("a = 18446744073709551616", 4, P::Number);
    refuse("a = -9223372036854775809", 4, P::Number);
    refuse("a = 1e", 4, P::Number);
    refuse("§ = 1", 0, P::Character('§'));
    refuse("a = 1;", 5, P::Character(';'));
    let unquoted = |name: &str| P::Unquoted(name.to_owned());
    refuse("a b", 0, unquoted("a b"));
    refuse("HLA-A > 3", 0, unquoted("HLA-A"));
    refuse("a > 1 and mean FA > 3", 10, unquoted("mean FA"));
    refuse("gene = HLA-A or a", 7, unquoted("HLA-A"));
    refuse("not HLA-2 > 3", 4, unquoted("HLA-2"));
    refuse("a ! 1", 2, expected(E::End));
    refuse("a is ! null", 5, expected(E::NullOrNot));
    let shown = Predicate::parse("a = ,").unwrap_err().to_string();
    assert_eq!(shown, "at byte 4: expected a column or a value");
}

#[test]
fn operators_of_other_languages_are_understood() {
    check("a == 1 && !(b <> 2 || c)", "a = 1 and not (b != 2 or c)");
    check("!a = 1 and not!b", "not a = 1 and not not b");
    check("a!=-1&&b>=-.5", "a != -1 and b >= -0.5");
    check("a between 1 and 2 && b", "a between 1 and 2 and b");
}

#[test]
fn symbols_of_other_languages_are_answered_with_the_spelling() {
    for (text, at, instead) in [
        ("a => 1", 2, ">="),
        ("a =< 1", 2, "<="),
        ("a ≥ 1", 2, ">="),
        ("a ≤ 1", 2, "<="),
        ("a ≠ 1", 2, "!="),
        ("a & b", 2, "and"),
        ("a | b", 2, "or"),
        ("a = ‘b’", 4, "'"),
        ("`a` = 1", 0, "\""),
        ("“a” = 1", 0, "\""),
    ] {
        refuse(text, at, P::Write(instead));
    }
    let shown = Predicate::parse("a => 1").unwrap_err().to_string();
    assert_eq!(shown, "at byte 2: write `>=`");
}

#[test]
fn names_have_letters_of_every_script() {
    check("größe > 1 and 名前 = 'x'", "größe > 1 and 名前 = 'x'");
    check("vertex.\"größe\" > 1", "vertex.größe > 1");
    check("α_1[2] = 3", "α_1[2] = 3");
    check("\"surface area (µm²)\" > 1", "\"surface area (µm²)\" > 1");
}

#[test]
fn depth_and_length_are_bounded() {
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    check(&nested(MAX_DEPTH), "a");
    refuse(&nested(MAX_DEPTH + 1), MAX_DEPTH, P::TooDeep);
    refuse(&nested(30_000), MAX_DEPTH, P::TooDeep);
    let nots = |depth: usize| format!("{}a in (1)", "not ".repeat(depth));
    check(&nots(1), "a not in (1)");
    assert!(Predicate::parse(&nots(MAX_DEPTH)).is_ok());
    refuse(&nots(MAX_DEPTH + 1), 4 * MAX_DEPTH, P::TooDeep);
    // A chain has no depth.
    let chain = vec!["a"; 10_000].join(" or ");
    check(&chain, &chain);
    refuse(&" ".repeat(MAX_LENGTH + 1), MAX_LENGTH, P::TooLong);
}

#[test]
fn columns_are_listed_by_scope() {
    let text = "vertex.a > 1 and (b[0] in (1) or vertex.c is null) and not object.d and b[1] between e and 2";
    let predicate = Predicate::parse(text).unwrap();
    let scopes = predicate.columns_by_scope();
    assert_eq!(scopes[&Some(Scope::Vertex)], ["a", "c"].into());
    assert_eq!(scopes[&Some(Scope::Object)], ["d"].into());
    assert_eq!(scopes[&None], ["b", "e"].into());
    assert_eq!(predicate.columns().len(), 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(1000)))]

    #[test]
    fn formatted_predicates_parse_to_the_same_tree(predicate in predicate()) {
        let text = predicate.to_string();
        prop_assert_eq!(Predicate::parse(&text), Ok(predicate), "{}", text);
    }

    #[test]
    fn any_name_and_text_can_be_written(name in any::<String>(), text in any::<String>()) {
        let quoted = name.replace('"', "\"\"");
        let text = text.replace('\'', "''");
        let source = format!("\"{quoted}\" = '{text}'");
        let predicate = Predicate::parse(&source).unwrap();
        prop_assert_eq!(&predicate.columns().first().unwrap().name, &name);
        prop_assert_eq!(Predicate::parse(&predicate.to_string()), Ok(predicate));
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        if let Err(error) = Predicate::parse(&text) {
            prop_assert!(text.is_char_boundary(error.at));
        }
    }

    #[test]
    fn no_mixture_of_tokens_panics(tokens in prop::collection::vec(prop::sample::select(vec![
        "a", "vertex", ".", "[", "]", "0", "1.5", "-2", "'x'", "\"y\"", "(", ")", ",", "=", "!=", "<",
        ">=", "and", "or", "not", "in", "is", "between", "null", "true", "'", "\"", "ü", "1e",
    ]), 0..20)) {
        for joint in ["", " "] {
            let text = tokens.join(joint);
            match Predicate::parse(&text) {
                Ok(predicate) => {
                    prop_assert_eq!(Predicate::parse(&predicate.to_string()), Ok(predicate));
                }
                Err(error) => prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at)),
            }
        }
    }
}
