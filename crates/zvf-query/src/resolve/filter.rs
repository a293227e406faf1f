//! Predicates taken apart by what their rows are.

use crate::{
    catalog::schema::Names,
    error::QueryError,
    predicate::{ColumnRef, Operand, Predicate, Scope},
};

/// A predicate as parts that must all hold, each about rows of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// About vertices, the fragments and objects they belong to.
    pub(crate) vertex: Option<Predicate>,
    /// About links alone.
    pub(crate) link: Option<Predicate>,
    /// About objects alone.
    pub(crate) object: Option<Predicate>,
    /// About groups alone, each for itself: `a` and `b` need not hold of one
    /// group.
    pub(crate) group: Vec<Predicate>,
    /// What is false of every row.
    pub(crate) is_never: bool,
    /// All columns it looks at.
    pub(crate) names: Names,
}

impl Filter {
    /// Takes `predicate` apart. Its columns must have scopes.
    ///
    /// # Errors
    ///
    /// [`QueryError::Scopes`] when a part compares rows of different kinds.
    pub(crate) fn new(predicate: &Predicate) -> Result<Self, QueryError> {
        let mut filter = Self::default();
        let parts = match predicate.clone().folded() {
            Predicate::And(parts) => parts,
            part => vec![part],
        };
        let (mut vertex, mut link, mut object) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            let mut scopes: Vec<Scope> = Vec::new();
            for column in part.columns() {
                let scope = column.scope.unwrap_or(Scope::Vertex);
                filter.names.add(scope, &column.name);
                if !scopes.contains(&scope) {
                    scopes.push(scope);
                }
            }
            scopes.sort_unstable();
            match scopes.as_slice() {
                [] => {
                    // A constant that is left is not true.
                    let is_true = Predicate::Constant(crate::predicate::Truth::True);
                    filter.is_never |= part != is_true;
                }
                [Scope::Link] => link.push(part),
                [Scope::Object] => object.push(part),
                [Scope::Group] => filter.group.push(part),
                several => {
                    let alone = several.iter();
                    let mut alone = alone.filter(|s| matches!(s, Scope::Link | Scope::Group));
                    let Some(right) = alone.next() else {
                        vertex.push(part);
                        continue;
                    };
                    let left = several.iter().find(|scope| *scope != right);
                    return Err(QueryError::Scopes {
                        part: part.to_string(),
                        left: *left.unwrap_or(right),
                        right: *right,
                    });
                }
            }
        }
        filter.vertex = join(vertex);
        filter.link = join(link);
        filter.object = join(object);
        Ok(filter)
    }

    /// Whether vertices must be looked at one by one.
    pub(crate) fn looks_at_vertices(&self) -> bool {
        self.vertex.is_some()
    }

    /// Whether the vertex part needs objects.
    pub(crate) fn vertex_needs_objects(&self) -> bool {
        let columns = self.vertex.iter().flat_map(Predicate::columns);
        columns
            .into_iter()
            .any(|column| column.scope == Some(Scope::Object))
    }

    /// Whether objects must be looked at one by one.
    pub(crate) fn looks_at_objects(&self) -> bool {
        self.object.is_some() || !self.group.is_empty()
    }
}

fn join(mut parts: Vec<Predicate>) -> Option<Predicate> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(Predicate::And(parts)),
    }
}

/// Gives every column of a predicate its scope.
pub(crate) fn with_scopes<E>(
    predicate: Predicate,
    find: &impl Fn(&ColumnRef) -> Result<Scope, E>,
) -> Result<Predicate, E> {
    let column = |mut column: ColumnRef| {
        if column.scope.is_none() {
            column.scope = Some(find(&column)?);
        }
        Ok(column)
    };
    let operand = |operand: Operand| {
        Ok(match operand {
            Operand::Column(name) => Operand::Column(column(name)?),
            literal @ Operand::Literal(_) => literal,
        })
    };
    let all = |parts: Vec<Predicate>| {
        let parts = parts.into_iter().map(|part| with_scopes(part, find));
        parts.collect::<Result<Vec<_>, E>>()
    };
    Ok(match predicate {
        Predicate::Constant(truth) => Predicate::Constant(truth),
        Predicate::IsTrue(name) => Predicate::IsTrue(column(name)?),
        Predicate::Compare {
            left,
            comparison,
            right,
        } => Predicate::Compare {
            left: operand(left)?,
            comparison,
            right: operand(right)?,
        },
        Predicate::Between {
            operand: value,
            low,
            high,
        } => Predicate::Between {
            operand: operand(value)?,
            low: operand(low)?,
            high: operand(high)?,
        },
        Predicate::In {
            operand: value,
            list,
        } => Predicate::In {
            operand: operand(value)?,
            list,
        },
        Predicate::IsNull(value) => Predicate::IsNull(operand(value)?),
        Predicate::Not(inner) => Predicate::Not(Box::new(with_scopes(*inner, find)?)),
        Predicate::And(parts) => Predicate::And(all(parts)?),
        Predicate::Or(parts) => Predicate::Or(all(parts)?),
    })
}
