//! Binding: resolves the columns of a predicate, checks types and translates text to codes.

use std::collections::BTreeSet;

use super::{
    ColumnRef, ColumnSource, ColumnType, Comparison, FindError, Literal, Number, Operand,
    Predicate, Truth, ValueType, fold::compare_literals,
};

/// A predicate with resolved columns, created by [`Predicate::bind`].
#[derive(Clone, Debug)]
pub struct BoundPredicate {
    pub(super) root: Node,
}

/// A node of a bound predicate.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Constant(Truth),
    IsTrue(Slot),
    IsNull(Slot),
    /// A comparison of numbers or bools.
    Compare(Term, Comparison, Term),
    /// Membership in a sorted list of numbers; the flag tells whether the list contains `null`.
    In(Slot, Vec<Number>, bool),
    /// The truth of a test for each category of a column.
    Categories(Slot, Vec<Truth>),
    /// A comparison of two category columns, by the rank of each category among those of both.
    Ranks([(Slot, Vec<usize>); 2], Comparison),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

/// A resolved column and one of its channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) id: usize,
    pub(super) channel: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Term {
    Slot(Slot),
    Number(Number),
    Bool(bool),
}

impl Predicate {
    /// Resolves columns, checks types and translates text to category codes.
    ///
    /// The result can be evaluated with every [`ColumnSource`] that has equal column ids, types
    /// and categories, such as the columns of another chunk. Each reference to a text column takes
    /// time and memory proportional to its number of categories.
    ///
    /// # Errors
    ///
    /// Returns [`BindError`] if a column cannot be resolved or operand types differ.
    pub fn bind(&self, columns: &impl ColumnSource) -> Result<BoundPredicate, BindError> {
        let root = Binder(columns).node(self)?;
        Ok(BoundPredicate { root })
    }
}

struct Binder<'a, C>(&'a C);

/// An operand of a comparison, with its type.
enum Side<'a> {
    Column(Slot, ColumnType<'a>),
    Literal(&'a Literal),
}

impl Side<'_> {
    /// Returns the operand's type; `None` for `null`, which compares with every type.
    fn type_of(&self) -> Option<ValueType> {
        match self {
            Self::Column(_, ColumnType::Bool) | Self::Literal(Literal::Bool(_)) => {
                Some(ValueType::Bool)
            }
            Self::Column(_, ColumnType::Numbers | ColumnType::Float32)
            | Self::Literal(Literal::Number(_)) => Some(ValueType::Number),
            Self::Column(_, ColumnType::Categories(_)) | Self::Literal(Literal::Text(_)) => {
                Some(ValueType::Text)
            }
            Self::Literal(Literal::Null) => None,
        }
    }

    /// Returns the operand of a numeric or bool comparison with `other`; `None` for text and `null`.
    fn term(&self, other: &Self) -> Option<Term> {
        match self {
            Self::Column(slot, ColumnType::Bool | ColumnType::Numbers | ColumnType::Float32) => {
                Some(Term::Slot(*slot))
            }
            Self::Literal(Literal::Number(number)) => Some(Term::Number(other.rounded(*number))),
            Self::Literal(Literal::Bool(value)) => Some(Term::Bool(*value)),
            _ => None,
        }
    }

    /// Rounds a number as the values of the operand are rounded: 0.1 is no 32-bit float, and would equal
    /// none. A number beyond them stays, because it is no infinity.
    fn rounded(&self, number: Number) -> Number {
        match (self, number) {
            (Self::Column(_, ColumnType::Float32), Number::Float(value)) => {
                #[expect(
                    clippy::as_conversions,
                    clippy::cast_possible_truncation,
                    reason = "std rounds an f64 to an f32 in no other way"
                )]
                let near = f64::from(value as f32);
                Number::Float(if near.is_finite() { near } else { value })
            }
            _ => number,
        }
    }
}

impl<C: ColumnSource> Binder<'_, C> {
    fn node(&self, predicate: &Predicate) -> Result<Node, BindError> {
        let nodes = |parts: &[Predicate]| {
            let nodes = parts.iter().map(|part| self.node(part));
            nodes.collect::<Result<_, _>>()
        };
        Ok(match predicate {
            Predicate::Constant(truth) => Node::Constant(*truth),
            Predicate::IsTrue(column) => match self.column(column)? {
                (slot, ColumnType::Bool) => Node::IsTrue(slot),
                _ => return Err(BindError::NotBool(column.clone())),
            },
            Predicate::Compare {
                left,
                comparison,
                right,
            } => self.compare(left, *comparison, right)?,
            Predicate::Between { operand, low, high } => Node::And(vec![
                self.compare(operand, Comparison::GreaterEqual, low)?,
                self.compare(operand, Comparison::LessEqual, high)?,
            ]),
            Predicate::In { operand, list } => self.is_in(operand, list)?,
            Predicate::IsNull(operand) => match self.side(operand)? {
                Side::Column(slot, _) => Node::IsNull(slot),
                Side::Literal(literal) => Node::Constant(literal.is_null().into()),
            },
            Predicate::Not(inner) => Node::Not(Box::new(self.node(inner)?)),
            Predicate::And(parts) => Node::And(nodes(parts)?),
            Predicate::Or(parts) => Node::Or(nodes(parts)?),
        })
    }

    fn column(&self, column: &ColumnRef) -> Result<(Slot, ColumnType<'_>), BindError> {
        let found = self.0.find(column).map_err(|source| BindError::Find {
            column: column.clone(),
            source,
        })?;
        let channels = found.channels;
        let channel = match column.channel {
            Some(channel) if channel < channels => channel,
            None if channels == 1 => 0,
            _ => {
                let column = column.clone();
                return Err(BindError::Channel { column, channels });
            }
        };
        let id = found.id;
        Ok((Slot { id, channel }, found.column_type))
    }

    fn side<'a>(&'a self, operand: &'a Operand) -> Result<Side<'a>, BindError> {
        Ok(match operand {
            Operand::Literal(literal) => Side::Literal(literal),
            Operand::Column(column) => {
                let (slot, values) = self.column(column)?;
                Side::Column(slot, values)
            }
        })
    }

    fn compare(
        &self,
        left: &Operand,
        comparison: Comparison,
        right: &Operand,
    ) -> Result<Node, BindError> {
        compare(&self.side(left)?, comparison, &self.side(right)?)
    }

    fn is_in(&self, operand: &Operand, list: &[Literal]) -> Result<Node, BindError> {
        let side = self.side(operand)?;
        for literal in list {
            check_types(&side, Comparison::Equal, &Side::Literal(literal))?;
        }
        let has_null = list.iter().any(Literal::is_null);
        match side {
            Side::Column(slot, ColumnType::Numbers | ColumnType::Float32) => {
                let mut numbers: Vec<_> = list
                    .iter()
                    .filter_map(|literal| match literal {
                        Literal::Number(number) => {
                            (!number.is_nan()).then(|| side.rounded(*number))
                        }
                        _ => None,
                    })
                    .collect();
                numbers.sort_by(|a, b| a.compare(*b).unwrap_or(std::cmp::Ordering::Equal));
                Ok(Node::In(slot, numbers, has_null))
            }
            Side::Column(slot, ColumnType::Categories(words)) => {
                let listed: BTreeSet<_> = list.iter().filter_map(text).collect();
                let otherwise = if has_null {
                    Truth::Unknown
                } else {
                    Truth::False
                };
                let truth = |word: &&str| {
                    if listed.contains(word) {
                        Truth::True
                    } else {
                        otherwise
                    }
                };
                Ok(Node::Categories(slot, words.iter().map(truth).collect()))
            }
            // A bool column or a literal: too few distinct values for a sorted list.
            side => {
                let equals = |literal| compare(&side, Comparison::Equal, &Side::Literal(literal));
                let nodes = list.iter().map(equals);
                Ok(Node::Or(nodes.collect::<Result<_, _>>()?))
            }
        }
    }
}

fn text(literal: &Literal) -> Option<&str> {
    match literal {
        Literal::Text(text) => Some(text),
        _ => None,
    }
}

fn check_types(left: &Side<'_>, comparison: Comparison, right: &Side<'_>) -> Result<(), BindError> {
    match left.type_of().zip(right.type_of()) {
        Some((left, right)) if left != right => Err(BindError::Types { left, right }),
        Some((ValueType::Bool, _)) if !comparison.is_equality() => Err(BindError::Order),
        _ => Ok(()),
    }
}

fn compare(left: &Side<'_>, comparison: Comparison, right: &Side<'_>) -> Result<Node, BindError> {
    check_types(left, comparison, right)?;
    Ok(match (left, right) {
        (Side::Literal(left), Side::Literal(right)) => {
            let truth = compare_literals(left, comparison, right);
            Node::Constant(truth.unwrap_or(Truth::Unknown))
        }
        (Side::Column(slot, ColumnType::Categories(words)), Side::Literal(Literal::Text(text))) => {
            Node::Categories(*slot, truths(words, comparison, text))
        }
        (Side::Literal(Literal::Text(text)), Side::Column(slot, ColumnType::Categories(words))) => {
            Node::Categories(*slot, truths(words, comparison.mirrored(), text))
        }
        (
            Side::Column(a, ColumnType::Categories(left)),
            Side::Column(b, ColumnType::Categories(right)),
        ) => {
            let all: BTreeSet<_> = left.iter().chain(right).copied().collect();
            let all: Vec<_> = all.into_iter().collect();
            let ranks = |words: &[&str]| {
                let rank = |word: &&str| all.partition_point(|other| other < word);
                words.iter().map(rank).collect()
            };
            Node::Ranks([(*a, ranks(left)), (*b, ranks(right))], comparison)
        }
        _ => match (left.term(right), right.term(left)) {
            (Some(left), Some(right)) => Node::Compare(left, comparison, right),
            // One operand is `null`.
            _ => Node::Constant(Truth::Unknown),
        },
    })
}

fn truths(words: &[&str], comparison: Comparison, text: &str) -> Vec<Truth> {
    let truth = |word: &&str| comparison.accepts((*word).cmp(text)).into();
    words.iter().map(truth).collect()
}

/// Error of [`Predicate::bind`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// No column, or more than one, has this name.
    #[error("column {column}")]
    Find {
        /// The column.
        column: ColumnRef,
        /// The cause.
        source: FindError,
    },
    /// The channel does not exist, or the reference lacks one and the column has several.
    #[error("{column}: {}", channels_of(column, *channels))]
    Channel {
        /// The column.
        column: ColumnRef,
        /// Number of channels.
        channels: u32,
    },
    /// A column without a comparison is not a bool column.
    #[error("{0} is not a bool column; compare it with a value")]
    NotBool(ColumnRef),
    /// The operands have different types.
    #[error("cannot compare {left} with {right}")]
    Types {
        /// Type of the left operand.
        left: ValueType,
        /// Type of the right operand.
        right: ValueType,
    },
    /// An order comparison of bools.
    #[error("bools have no order; compare them with = or !=")]
    Order,
}

/// Returns what to write instead of a column with a wrong channel or none.
fn channels_of(column: &ColumnRef, channels: u32) -> String {
    let whole = ColumnRef {
        channel: None,
        ..column.clone()
    };
    match channels.checked_sub(1) {
        None | Some(0) => format!("the attribute has one channel; write {whole}"),
        Some(last) => format!(
            "the attribute has {channels} channels, counted from 0; write {whole}[0] to {whole}[{last}]"
        ),
    }
}
