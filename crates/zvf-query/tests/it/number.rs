//! Comparison of numbers of different types by their exact values.

use std::cmp::Ordering;

use proptest::prelude::*;
use zvf_query::predicate::Number;

use crate::predicates::exact;

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::Int),
        any::<u64>().prop_map(Number::UInt),
        any::<f64>().prop_map(Number::Float),
        // Close to powers of two, where rounding begins.
        (0..65_i32, -3..4_i8).prop_map(|(power, off)| {
            Number::Float(2_f64.powi(power) * (1.0 + f64::from(off) * f64::EPSILON))
        }),
        (0..63_u32, -3..4_i64).prop_map(|(power, off)| Number::Int((1 << power) + off)),
        (0..64_u32, 0..4_u64)
            .prop_map(|(power, off)| Number::UInt((1_u64 << power).wrapping_sub(off))),
        Just(Number::Float(0.5)),
        Just(Number::Float(-0.0)),
        Just(Number::Int(0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(5000)))]

    #[test]
    fn comparing_never_rounds(a in any_number(), b in any_number()) {
        prop_assert_eq!(a.compare(b), exact(a, b), "{} and {}", a, b);
        prop_assert_eq!(a.compare(b), b.compare(a).map(Ordering::reverse));
    }
}

#[test]
fn comparisons_are_exact_where_conversion_rounds() {
    let check = |a: Number, b: Number, order| assert_eq!(a.compare(b), Some(order), "{a} and {b}");
    let float = Number::Float;
    check(
        Number::UInt(u64::MAX),
        float(18_446_744_073_709_551_616.0),
        Ordering::Less,
    );
    check(
        Number::Int(i64::MAX),
        float(9_223_372_036_854_775_808.0),
        Ordering::Less,
    );
    check(
        Number::Int(i64::MIN),
        float(-9_223_372_036_854_775_808.0),
        Ordering::Equal,
    );
    check(
        Number::Int(9_007_199_254_740_993),
        float(9_007_199_254_740_992.0),
        Ordering::Greater,
    );
    check(Number::Int(-1), Number::UInt(u64::MAX), Ordering::Less);
    check(Number::Int(-1), float(-1.5), Ordering::Greater);
    check(Number::Int(0), float(-0.0), Ordering::Equal);
    check(Number::Int(0), float(5e-324), Ordering::Less);
    check(Number::UInt(u64::MAX), float(f64::INFINITY), Ordering::Less);
    check(
        Number::Int(i64::MIN),
        float(f64::NEG_INFINITY),
        Ordering::Greater,
    );
    assert_eq!(Number::Int(0).compare(float(f64::NAN)), None);
    assert_eq!(float(f64::NAN).compare(float(f64::NAN)), None);
}
