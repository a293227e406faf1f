//! A predicate as a tree.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use super::{Number, Truth};

/// What a row must satisfy; made by [`parse`](Self::parse), which documents
/// what displays as text that parses to the same tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `true`, `false` or `null`.
    Constant(Truth),
    /// A bool column that is true.
    IsTrue(ColumnRef),
    /// Two values in order.
    Compare {
        /// The one on the left.
        left: Operand,
        /// How they compare.
        comparison: Comparison,
        /// The one on the right.
        right: Operand,
    },
    /// A value from `low` to `high`, both included.
    Between {
        /// The value.
        operand: Operand,
        /// The least it may be.
        low: Operand,
        /// The greatest it may be.
        high: Operand,
    },
    /// A value that is one of a list.
    In {
        /// The value.
        operand: Operand,
        /// One or more.
        list: Vec<Literal>,
    },
    /// A value that is missing.
    IsNull(Operand),
    /// The opposite.
    Not(Box<Predicate>),
    /// All of two or more. Of none it is true.
    And(Vec<Predicate>),
    /// Any of two or more. Of none it is false.
    Or(Vec<Predicate>),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// What the row has in a column.
    Column(ColumnRef),
    /// The same for all rows.
    Literal(Literal),
}

/// A value that is written out.
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

/// An attribute by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnRef {
    /// Whose attribute it is, if the name says so.
    pub scope: Option<Scope>,
    /// Its name.
    pub name: String,
    /// Which of its values, if the name says so.
    pub channel: Option<u32>,
}

/// What an attribute belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the format's names say it")]
pub enum Scope {
    Vertex,
    Fragment,
    Link,
    Object,
    Group,
}

impl Scope {
    /// Every scope there is.
    pub const ALL: [Self; 5] = [
        Self::Vertex,
        Self::Fragment,
        Self::Link,
        Self::Object,
        Self::Group,
    ];

    /// As it stands before a name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vertex => "vertex",
            Self::Fragment => "fragment",
            Self::Link => "link",
            Self::Object => "object",
            Self::Group => "group",
        }
    }
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// Every comparison there is.
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessEqual,
        Self::Greater,
        Self::GreaterEqual,
    ];

    /// As it is written.
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

    /// Whether it holds for values in this order.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }

    /// Whether it asks for no order, which bools have none of.
    pub(super) fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }

    /// The same with the sides changed.
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
    /// Every column it needs, channels apart.
    pub fn columns(&self) -> BTreeSet<&ColumnRef> {
        let mut columns = BTreeSet::new();
        self.collect(&mut columns);
        columns
    }

    /// The names of the attributes it needs, by scope; `None` is for names
    /// without one.
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
