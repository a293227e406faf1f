//! Predicates made smaller by what is known without a row.

use super::{Comparison, Literal, Operand, Predicate, Truth};

impl Predicate {
    /// The same predicate with everything decided that no row is needed for:
    /// for every row it is what it was. What does not depend on a column
    /// becomes a constant, and constants disappear from `and`, `or` and `not`.
    ///
    /// A part that is left out is not checked any more when binding.
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

/// `neutral` changes nothing in the chain, its opposite decides it.
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
    // All constants that are left are unknown, and one of them says it all.
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

/// What a single test is for all rows.
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
        Predicate::IsNull(operand) => Some((*literal(operand)? == Literal::Null).into()),
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

/// `None` when the types cannot be compared so: binding tells the user.
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
    Some(order.is_some_and(|order| comparison.holds(order)).into())
}
