//! Predicates split by the rows that they are about.

use core::convert::Infallible;

use zvf_catalog::Names;

use crate::{
    error::QueryError,
    predicate::{ColumnRef, Literal, Operand, Predicate, Scope, Truth},
    resolve::axes::{AxisColumns, AxisFilter},
};

/// A predicate as a conjunction of parts, each about rows of one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopedPredicates {
    /// The part about vertices, with their fragments and objects.
    pub(crate) vertex: Option<Predicate>,
    /// The part about links alone.
    pub(crate) link: Option<Predicate>,
    /// The part about objects alone.
    pub(crate) object: Option<Predicate>,
    /// The parts about groups alone. Different groups of an object may satisfy different parts.
    pub(crate) group: Vec<Predicate>,
    /// True if the predicate is false for every row.
    pub(crate) is_never: bool,
    /// All attributes that the predicate reads.
    pub(crate) names: Names,
    /// Columns of the vertex part that are axes.
    pub(crate) axes: AxisColumns,
    /// Conditions of the vertex part on axes alone.
    pub(crate) by_axes: Option<AxisFilter>,
}

impl ScopedPredicates {
    /// Splits `predicate`, whose columns must have scopes. Columns of vertices that are in `axes` are
    /// axes, all others attributes.
    ///
    /// # Errors
    ///
    /// [`QueryError::Scopes`] if a part combines rows of scopes that are not related, and
    /// [`QueryError::Bind`] if a part compares an axis with text.
    pub(crate) fn new(predicate: &Predicate, axes: AxisColumns) -> Result<Self, QueryError> {
        let mut filter = Self {
            axes,
            ..Self::default()
        };
        let parts = match predicate.clone().folded() {
            Predicate::And(parts) => parts,
            part => vec![part],
        };
        let (mut vertex, mut link, mut object) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            let mut scopes: Vec<Scope> = Vec::new();
            for column in part.columns() {
                let scope = column.scope.unwrap_or(Scope::Vertex);
                if scope != Scope::Vertex || !filter.axes.contains_key(&column.name) {
                    filter.names.add(scope, &column.name);
                }
                if !scopes.contains(&scope) {
                    scopes.push(scope);
                }
            }
            scopes.sort_unstable();
            match scopes.as_slice() {
                [] => {
                    // Only a constant has no columns.
                    let is_true = Predicate::Constant(Truth::True);
                    filter.is_never |= part != is_true;
                }
                [Scope::Link] => link.push(part),
                [Scope::Object] => object.push(part),
                [Scope::Group] => filter.group.push(part),
                several => {
                    let mut alone = several
                        .iter()
                        .filter(|s| matches!(s, Scope::Link | Scope::Group));
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
        if let Some(vertex) = filter.vertex.as_ref().filter(|_| !filter.axes.is_empty()) {
            filter.by_axes = AxisFilter::new(vertex, &filter.axes)?;
        }
        filter.link = join(link);
        filter.object = join(object);
        Ok(filter)
    }

    /// Makes the part about objects one about vertices if it is true for vertices without an object,
    /// which no selection of objects finds.
    pub(crate) fn include_vertices_without_objects(&mut self) {
        if !self.group.is_empty() {
            return;
        }
        let is_true = |object: &mut Predicate| truth_without_values(object.clone()).is_true();
        let Some(object) = self.object.take_if(is_true) else {
            return;
        };
        self.vertex = join(self.vertex.take().into_iter().chain([object]).collect());
    }

    /// Returns whether the part about vertices reads attributes of objects.
    pub(crate) fn vertex_needs_objects(&self) -> bool {
        let columns = self.vertex.iter().flat_map(Predicate::columns);
        columns
            .into_iter()
            .any(|column| column.scope == Some(Scope::Object))
    }

    /// Returns whether the predicate selects objects.
    pub(crate) fn selects_by_object(&self) -> bool {
        self.object.is_some() || !self.group.is_empty()
    }
}

fn join(mut parts: Vec<Predicate>) -> Option<Predicate> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(Predicate::And(parts)),
    }
}

/// Sets the scope of every column of a predicate that has none.
pub(crate) fn with_scopes<E>(
    predicate: Predicate,
    find: &impl Fn(&ColumnRef) -> Result<Scope, E>,
) -> Result<Predicate, E> {
    replace_columns(predicate, &|mut column| {
        if column.scope.is_none() {
            column.scope = Some(find(&column)?);
        }
        Ok(Operand::Column(column))
    })
}

/// Returns the truth of a predicate for a row without values.
fn truth_without_values(predicate: Predicate) -> Truth {
    let null = |_| Ok::<_, Infallible>(Operand::Literal(Literal::Null));
    let Ok(constant) = replace_columns(predicate, &null);
    match constant.folded() {
        Predicate::Constant(truth) => truth,
        _ => Truth::Unknown,
    }
}

/// Replaces the columns of a predicate by columns or literals.
fn replace_columns<E>(
    predicate: Predicate,
    replace: &impl Fn(ColumnRef) -> Result<Operand, E>,
) -> Result<Predicate, E> {
    let operand = |operand: Operand| match operand {
        Operand::Column(column) => replace(column),
        literal @ Operand::Literal(_) => Ok(literal),
    };
    let all = |parts: Vec<Predicate>| {
        let parts = parts.into_iter().map(|part| replace_columns(part, replace));
        parts.collect::<Result<Vec<_>, E>>()
    };
    Ok(match predicate {
        Predicate::Constant(truth) => Predicate::Constant(truth),
        Predicate::IsTrue(column) => match replace(column)? {
            Operand::Column(column) => Predicate::IsTrue(column),
            Operand::Literal(Literal::Bool(value)) => Predicate::Constant(value.into()),
            Operand::Literal(_) => Predicate::Constant(Truth::Unknown),
        },
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
        Predicate::Not(inner) => Predicate::Not(Box::new(replace_columns(*inner, replace)?)),
        Predicate::And(parts) => Predicate::And(all(parts)?),
        Predicate::Or(parts) => Predicate::Or(all(parts)?),
    })
}
