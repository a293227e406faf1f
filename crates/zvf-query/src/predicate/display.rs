//! Formatting of predicates as text that parses to an equal tree.

use std::fmt::{self, Display, Formatter, Write};

use super::{
    ColumnRef, Literal, Operand, Predicate,
    lexer::{KEYWORDS, is_name_part, is_name_start},
};

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(truth) => write!(f, "{truth}"),
            Self::IsTrue(column) => write!(f, "{column}"),
            Self::Compare {
                left,
                comparison,
                right,
            } => write!(f, "{left} {} {right}", comparison.symbol()),
            Self::Between { operand, low, high } => between(f, operand, "", low, high),
            Self::In { operand, list } => is_in(f, operand, "", list),
            Self::IsNull(operand) => write!(f, "{operand} is null"),
            Self::Not(inner) => match &**inner {
                Self::Between { operand, low, high } => between(f, operand, "not ", low, high),
                Self::In { operand, list } => is_in(f, operand, "not ", list),
                Self::IsNull(operand) => write!(f, "{operand} is not null"),
                Self::And(_) | Self::Or(_) => write!(f, "not ({inner})"),
                _ => write!(f, "not {inner}"),
            },
            Self::And(parts) if parts.is_empty() => f.write_str("true"),
            Self::Or(parts) if parts.is_empty() => f.write_str("false"),
            Self::And(parts) => joined(f, parts, " and ", |part| {
                matches!(part, Self::And(_) | Self::Or(_))
            }),
            Self::Or(parts) => joined(f, parts, " or ", |part| matches!(part, Self::Or(_))),
        }
    }
}

fn between(
    f: &mut Formatter<'_>,
    operand: &Operand,
    not: &str,
    low: &Operand,
    high: &Operand,
) -> fmt::Result {
    write!(f, "{operand} {not}between {low} and {high}")
}

fn is_in(f: &mut Formatter<'_>, operand: &Operand, not: &str, list: &[Literal]) -> fmt::Result {
    write!(f, "{operand} {not}in (")?;
    for (at, literal) in list.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        write!(f, "{comma}{literal}")?;
    }
    f.write_char(')')
}

fn joined(
    f: &mut Formatter<'_>,
    parts: &[Predicate],
    word: &str,
    needs_parentheses: impl Fn(&Predicate) -> bool,
) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(word)?;
        }
        if needs_parentheses(part) {
            write!(f, "({part})")?;
        } else {
            write!(f, "{part}")?;
        }
    }
    Ok(())
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(column) => write!(f, "{column}"),
            Self::Literal(literal) => write!(f, "{literal}"),
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}

impl Display for ColumnRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(scope) = self.scope {
            write!(f, "{}.", scope.name())?;
        }
        let mut rest = self.name.chars();
        let is_plain = rest.next().is_some_and(is_name_start) && rest.all(is_name_part);
        let is_keyword = |word: &&str| word.eq_ignore_ascii_case(&self.name);
        if is_plain && !KEYWORDS.iter().any(is_keyword) {
            f.write_str(&self.name)?;
        } else {
            write!(f, "\"{}\"", self.name.replace('"', "\"\""))?;
        }
        match self.channel {
            Some(channel) => write!(f, "[{channel}]"),
            None => Ok(()),
        }
    }
}
