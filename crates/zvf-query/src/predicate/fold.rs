//! Constant folding of predicates.

use super::{Comparison, Literal, Operand, Predicate, Truth};

impl Predicate {
    /// Folds constants: tests without a column become constants, and constants are eliminated from
    /// `and`, `or` and `not`. The result has an equal truth for every row.
    ///
    /// [`bind`](Self::bind) no longer checks the parts that were eliminated.
    ///
    /// ```
    /// use zvf_query::predicate::Predicate;
    ///
    /// let predicate = Predicate::parse("a > 1 and (1 < 2.5 or b = 3)")?;
    /// assert_eq!(predicate.folded().to_string(), "a > 1");
    /// # Ok::<(), zvf_query::predicate::ParseError>(())
    /// ```
    #[must_use]
    pub fn folded(self) -> Self {
        match self {
            Self::Not(inner) => match inner.folded() {
                Self::Constant(truth) => Self::Constant(!truth),
                Self::Not(twice) => *twice,
                inner => Self::Not(Box::new(inner)),
            },
            Self::And(parts) => chain(parts, Truth::True, Self::And),
            Self::Or(parts) => chain(parts, Truth::False, Self::Or),
            other => match constant(&other) {
                Some(truth) => Self::Constant(truth),
                None => other,
            },
        }
    }
}

/// Folds a conjunction or disjunction. `neutral` is its identity; the negation of `neutral`
/// decides it.
fn chain(
    parts: Vec<Predicate>,
    neutral: Truth,
    join: impl Fn(Vec<Predicate>) -> Predicate,
) -> Predicate {
    let folded = parts.into_iter().map(Predicate::folded);
    let mut parts: Vec<_> = folded
        .filter(|part| *part != Predicate::Constant(neutral))
        .collect();
    if parts.contains(&Predicate::Constant(!neutral)) {
        return Predicate::Constant(!neutral);
    }
    // The remaining constants are all unknown; one of them is equivalent to several.
    if parts
        .iter()
        .all(|part| matches!(part, Predicate::Constant(_)))
    {
        parts.truncate(1);
    }
    match parts.len() {
        0 => Predicate::Constant(neutral),
        1 => parts.remove(0),
        _ => join(parts),
    }
}

/// Returns the truth of a test that does not depend on a column.
fn constant(test: &Predicate) -> Option<Truth> {
    match test {
        Predicate::Compare {
            left,
            comparison,
            right,
        } => compare(left, *comparison, right),
        Predicate::Between { operand, low, high } => {
            let above = compare(operand, Comparison::GreaterEqual, low)?;
            Some(above & compare(operand, Comparison::LessEqual, high)?)
        }
        Predicate::In { operand, list } => {
            let value = literal(operand)?;
            list.iter().try_fold(Truth::False, |found, other| {
                Some(found | compare_literals(value, Comparison::Equal, other)?)
            })
        }
        Predicate::IsNull(operand) => Some(literal(operand)?.is_null().into()),
        Predicate::Constant(truth) => Some(*truth),
        _ => None,
    }
}

fn compare(left: &Operand, comparison: Comparison, right: &Operand) -> Option<Truth> {
    compare_literals(literal(left)?, comparison, literal(right)?)
}

fn literal(operand: &Operand) -> Option<&Literal> {
    match operand {
        Operand::Literal(literal) => Some(literal),
        Operand::Column(_) => None,
    }
}

/// Compares two literals. Returns `None` if their types cannot be compared; binding reports that.
pub(super) fn compare_literals(
    left: &Literal,
    comparison: Comparison,
    right: &Literal,
) -> Option<Truth> {
    let order = match (left, right) {
        (Literal::Null, _) | (_, Literal::Null) => return Some(Truth::Unknown),
        (Literal::Number(left), Literal::Number(right)) => left.compare(*right),
        (Literal::Text(left), Literal::Text(right)) => Some(left.cmp(right)),
        (Literal::Bool(left), Literal::Bool(right)) if comparison.is_equality() => {
            Some(left.cmp(right))
        }
        _ => return None,
    };
    // Only NaN has no order.
    Some(order.map_or(Truth::Unknown, |order| comparison.accepts(order).into()))
}
