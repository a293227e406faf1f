//! Values of a coarser level, by the aggregation rule of each attribute.

use std::collections::BTreeMap;

use zvf::coarsen::Aggregation;
use zvf_format::numeric::{ByteOrder, Dtype, Kind, NumericRows, Value};

use super::{
    model::{AttributeProperties, Link},
    step::Step,
};

/// Checks attributes of vertices.
pub(super) fn check(step: &Step<'_>) {
    let keeps = step.design.method.keeps_vertices();
    for (name, about) in &step.fine.about {
        let rule = step.rule(name, about, keeps);
        let title = format!("{name} by {rule}, {}", step.about);
        let mut expected = about.clone();
        if rule == Aggregation::Count {
            expected.kind = Kind::UInt32;
            expected.columns = about.columns.map(|_| 1);
            (expected.is_coded, expected.missing) = (false, None);
        }
        assert_eq!(Some(&expected), step.coarse.about.get(name), "{title}");
        for (vertex, members) in step.coarse.vertices.iter().zip(&step.members) {
            let of = |at: &usize| step.fine.vertices[*at].values.get(name);
            let Some(values) = members.iter().map(of).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let values: Vec<&[u8]> = values.into_iter().map(Vec::as_slice).collect();
            let found = &vertex.values[name];
            if rule == Aggregation::Own && keeps {
                continue;
            }
            same(about, rule, &values, found, &title);
        }
    }
    if keeps {
        own(step, keeps);
    }
}

/// Checks that kept vertices have their own values.
fn own(step: &Step<'_>, keeps: bool) {
    let names: Vec<&String> = step
        .fine
        .about
        .iter()
        .filter(|(name, about)| step.rule(name, about, keeps) == Aggregation::Own)
        .map(|(name, _)| name)
        .collect();
    for (vertex, members) in step.coarse.vertices.iter().zip(&step.members) {
        let is_it = |at: &&usize| {
            let fine = &step.fine.vertices[**at];
            let mut all = names.iter();
            fine.bits == vertex.bits && all.all(|n| fine.values.get(*n) == vertex.values.get(*n))
        };
        let found = members.iter().find(is_it);
        assert!(
            found.is_some(),
            "{vertex:?} is none of {members:?}, {}",
            step.about
        );
    }
}

/// Checks attributes of a link that replaces others.
pub(super) fn check_link(step: &Step<'_>, of: &[&Link], found: &Link) {
    for (name, about) in &step.fine.link_about {
        let values: Option<Vec<&[u8]>> = of
            .iter()
            .map(|link| link.values.get(name).map(Vec::as_slice))
            .collect();
        let (Some(values), Some(value)) = (values, found.values.get(name)) else {
            panic!("{name} is lost, {}", step.about)
        };
        // No link is kept unchanged.
        let rule = step.rule(name, about, false);
        same(
            about,
            rule,
            &values,
            value,
            &format!("{name} by {rule}, {}", step.about),
        );
    }
}

impl Step<'_> {
    /// Returns the rule of an attribute.
    fn rule(&self, name: &str, about: &AttributeProperties, keeps: bool) -> Aggregation {
        if let Some(rule) = self.rules.get(name) {
            return match rule {
                // Counts of the previous level are added up.
                Aggregation::Count if self.fine.number > 0 => Aggregation::Sum,
                rule => *rule,
            };
        }
        let is_colour = about.kind == Kind::UInt8 && matches!(about.columns, Some(3 | 4));
        match about.kind {
            _ if keeps => Aggregation::Own,
            Kind::Float32 | Kind::Float64 if !about.is_coded => Aggregation::Mean,
            _ if is_colour && !about.is_coded => Aggregation::Mean,
            _ => Aggregation::Mode,
        }
    }
}

/// Decodes rows as numbers.
fn numbers(kind: Kind, row: &[u8]) -> Vec<Value> {
    let dtype = Dtype::new(kind, ByteOrder::Little);
    let rows = NumericRows::parse(row, dtype, core::num::NonZeroU32::MIN).unwrap();
    let count = (row.len() / kind.size()) as u64;
    (0..count as usize)
        .map(|at| rows.value(at, 0).unwrap())
        .collect()
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(value) => Some(i128::from(*value)),
        Value::Int(value) => Some(i128::from(*value)),
        Value::UInt(value) => Some(i128::from(*value)),
        _ => None,
    }
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Float(value) => *value,
        other => whole(other).unwrap() as f64,
    }
}

/// Returns whether a value counts as missing.
fn is_none(about: &AttributeProperties, value: &Value) -> bool {
    let is_missing = about.missing.map(i128::from) == whole(value);
    (about.missing.is_some() && is_missing) || matches!(value, Value::Float(x) if x.is_nan())
}

/// Compares the aggregation of rows with the stored value.
fn same(about: &AttributeProperties, rule: Aggregation, rows: &[&[u8]], found: &[u8], title: &str) {
    let all: Vec<Vec<Value>> = rows.iter().map(|row| numbers(about.kind, row)).collect();
    let has_all = |row: &&Vec<Value>| row.iter().all(|value| !is_none(about, value));
    if rule == Aggregation::Own {
        assert!(
            rows.contains(&found),
            "{found:?} is none of {rows:?}, {title}"
        );
        return;
    }
    if rule == Aggregation::Count {
        let count = all.iter().filter(has_all).count() as u32;
        assert_eq!(count.to_le_bytes(), found, "{title}");
        return;
    }
    let found_numbers = numbers(about.kind, found);
    if rule == Aggregation::Mode {
        let mut often: BTreeMap<Vec<(i128, i64)>, usize> = BTreeMap::new();
        for row in all.iter().filter(has_all) {
            *often.entry(row.iter().map(ordered).collect()).or_default() += 1;
        }
        let max = often.values().max();
        let min = often.iter().find(|(_, count)| Some(*count) == max);
        let Some((expected, _)) = min else {
            return nothing(about, &found_numbers, title);
        };
        let found: Vec<_> = found_numbers.iter().map(ordered).collect();
        assert_eq!(expected, &found, "{title}");
        return;
    }
    let columns = found_numbers.len();
    for column in 0..columns {
        let values: Vec<&Value> = all
            .iter()
            .map(|row| &row[column])
            .filter(|value| !is_none(about, value))
            .collect();
        let found = &found_numbers[column];
        if values.is_empty() {
            nothing(about, core::slice::from_ref(found), title);
            continue;
        }
        match values[0] {
            Value::Float(_) => {
                let floats = values.iter().map(|value| float(value));
                let expected = match rule {
                    Aggregation::Mean => floats.sum::<f64>() / values.len() as f64,
                    Aggregation::Sum => floats.sum(),
                    Aggregation::Min => floats.fold(f64::INFINITY, f64::min),
                    Aggregation::Max => floats.fold(f64::NEG_INFINITY, f64::max),
                    other => panic!("{other}"),
                };
                let off = (expected - float(found)).abs();
                assert!(
                    off <= 1e-6 * expected.abs().max(1.0),
                    "{expected}, {found:?}, {title}"
                );
            }
            _ => {
                let wholes: Vec<i128> = values.iter().map(|value| whole(value).unwrap()).collect();
                let count = wholes.len() as i128;
                let sum: i128 = wholes.iter().sum();
                let expected = match rule {
                    // Round half away from zero.
                    Aggregation::Mean => {
                        let half = (2 * sum.abs() + count) / (2 * count);
                        half * sum.signum()
                    }
                    Aggregation::Sum => sum.clamp(least(about.kind), greatest(about.kind)),
                    Aggregation::Min => *wholes.iter().min().unwrap(),
                    Aggregation::Max => *wholes.iter().max().unwrap(),
                    other => panic!("{other}"),
                };
                assert_eq!(Some(expected), whole(found), "{wholes:?}, {title}");
            }
        }
    }
}

/// Asserts that the value is NaN, the missing word, or zero.
fn nothing(about: &AttributeProperties, found: &[Value], title: &str) {
    for value in found {
        let is_nothing = match (about.missing, value) {
            (Some(code), value) => whole(value) == Some(code.into()),
            (None, Value::Float(value)) => value.is_nan(),
            (None, value) => whole(value) == Some(0),
        };
        assert!(is_nothing, "{value:?} of nothing, {title}");
    }
}

/// Returns an integer with the same order as the value.
fn ordered(value: &Value) -> (i128, i64) {
    match value {
        Value::Float(value) => {
            let bits = value.to_bits() as i64;
            (0, bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed())
        }
        other => (whole(other).unwrap(), 0),
    }
}

fn least(kind: Kind) -> i128 {
    match kind {
        Kind::Int8 => i8::MIN.into(),
        Kind::Int16 => i16::MIN.into(),
        Kind::Int32 => i32::MIN.into(),
        Kind::Int64 => i64::MIN.into(),
        _ => 0,
    }
}

fn greatest(kind: Kind) -> i128 {
    match kind {
        Kind::Bool => 1,
        Kind::Int8 => i8::MAX.into(),
        Kind::Int16 => i16::MAX.into(),
        Kind::Int32 => i32::MAX.into(),
        Kind::Int64 => i64::MAX.into(),
        Kind::UInt8 => u8::MAX.into(),
        Kind::UInt16 => u16::MAX.into(),
        Kind::UInt32 => u32::MAX.into(),
        _ => u64::MAX.into(),
    }
}
