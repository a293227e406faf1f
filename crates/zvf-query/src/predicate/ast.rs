//! The syntax tree of a predicate.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use zvf_catalog::Scope;

use super::{Number, Truth};

/// A condition on the attributes of a row.
///
/// Created by [`parse`](Self::parse). Displays as text that parses to an equal tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `true`, `false` or `null`.
    Constant(Truth),
    /// A bool column.
    IsTrue(ColumnRef),
    /// A comparison of two values.
    Compare {
        /// The left operand.
        left: Operand,
        /// The comparison operator.
        comparison: Comparison,
        /// The right operand.
        right: Operand,
    },
    /// A test for a value from `low` to `high`, inclusive.
    Between {
        /// The tested value.
        operand: Operand,
        /// The lower bound.
        low: Operand,
        /// The upper bound.
        high: Operand,
    },
    /// A test for membership in a list.
    In {
        /// The tested value.
        operand: Operand,
        /// One or more literals.
        list: Vec<Literal>,
    },
    /// A test for a missing value or NaN.
    IsNull(Operand),
    /// A negation.
    Not(Box<Predicate>),
    /// A conjunction of two or more predicates; an empty one is true.
    And(Vec<Predicate>),
    /// A disjunction of two or more predicates; an empty one is false.
    Or(Vec<Predicate>),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The row's value in a column.
    Column(ColumnRef),
    /// A constant.
    Literal(Literal),
}

/// A constant in a predicate.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// The missing value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer or float.
    Number(Number),
    /// Text.
    Text(String),
}

impl Literal {
    /// Returns `true` for `null` and for NaN.
    pub(super) fn is_null(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Number(number) => number.is_nan(),
            Self::Bool(_) | Self::Text(_) => false,
        }
    }
}

/// A reference to an attribute by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnRef {
    /// Scope of the attribute, if the reference has one.
    pub scope: Option<Scope>,
    /// Name of the attribute.
    pub name: String,
    /// Index of the channel, if the reference has one.
    pub channel: Option<u32>,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// All comparison operators.
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessEqual,
        Self::Greater,
        Self::GreaterEqual,
    ];

    /// Returns the operator's symbol in a predicate.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// Returns whether the comparison is true for operands in this order.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }

    /// Returns whether the operator tests equality only, and therefore applies to bools.
    pub(super) fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }

    /// Returns the operator for exchanged operands.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }
}

impl Predicate {
    /// Returns the columns the predicate refers to, one entry per channel.
    pub fn columns(&self) -> BTreeSet<&ColumnRef> {
        let mut columns = BTreeSet::new();
        self.collect(&mut columns);
        columns
    }

    /// Returns the names of the attributes the predicate refers to, by scope; the key `None` holds
    /// names without a scope.
    pub fn columns_by_scope(&self) -> BTreeMap<Option<Scope>, BTreeSet<&str>> {
        let mut scopes: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for column in self.columns() {
            let names = scopes.entry(column.scope).or_default();
            names.insert(column.name.as_str());
        }
        scopes
    }

    fn collect<'a>(&'a self, columns: &mut BTreeSet<&'a ColumnRef>) {
        let mut add = |operands: &[&'a Operand]| {
            for operand in operands {
                if let Operand::Column(column) = operand {
                    columns.insert(column);
                }
            }
        };
        match self {
            Self::Constant(_) => {}
            Self::IsTrue(column) => {
                columns.insert(column);
            }
            Self::Compare { left, right, .. } => add(&[left, right]),
            Self::Between { operand, low, high } => add(&[operand, low, high]),
            Self::In { operand, .. } | Self::IsNull(operand) => add(&[operand]),
            Self::Not(inner) => inner.collect(columns),
            Self::And(parts) | Self::Or(parts) => {
                for part in parts {
                    part.collect(columns);
                }
            }
        }
    }
}
