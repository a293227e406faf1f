//! Predicates over the known content of a store.

use std::collections::BTreeSet;

use zvf_catalog::Scope;
use zvf_format::numeric::{ByteOrder, Dtype, NumericRows, Value};
use zvf_query::predicate::{
    BoundPredicate, ColumnRef, ColumnSource, ColumnType as Type, Datum, FindError, Number,
    Predicate, ResolvedColumn,
};
use zvf_testkit::stores::{ExpectedAttribute, ExpectedStore, ExpectedValues};

/// The parts of a predicate, by scope.
pub(super) struct Filter<'a> {
    truth: &'a ExpectedStore,
    vertices: Vec<BoundPredicate>,
    objects: Vec<BoundPredicate>,
    links: Vec<BoundPredicate>,
    /// Separate predicates: different groups may satisfy them.
    groups: Vec<BoundPredicate>,
}

/// The scope of a row.
#[derive(Clone, Copy)]
enum Rows {
    /// Vertices of the object in this row, or of none.
    Vertices(Option<usize>),
    Objects,
    Links,
    Groups,
}

impl<'a> Filter<'a> {
    pub(super) fn new(truth: &'a ExpectedStore, predicate: Option<&Predicate>) -> Self {
        let mut filter = Self {
            truth,
            vertices: Vec::new(),
            objects: Vec::new(),
            links: Vec::new(),
            groups: Vec::new(),
        };
        let parts = match predicate {
            None => &[],
            Some(Predicate::And(parts)) => parts.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        for part in parts {
            let scopes: BTreeSet<Scope> = part
                .columns()
                .into_iter()
                .map(|c| scope(truth, c))
                .collect();
            let (rows, into) = if scopes == BTreeSet::from([Scope::Link]) {
                (Rows::Links, &mut filter.links)
            } else if scopes == BTreeSet::from([Scope::Object]) {
                (Rows::Objects, &mut filter.objects)
            } else if scopes == BTreeSet::from([Scope::Group]) {
                (Rows::Groups, &mut filter.groups)
            } else {
                (Rows::Vertices(None), &mut filter.vertices)
            };
            into.push(part.bind(&Table { truth, rows }).unwrap());
        }
        filter
    }

    pub(super) fn is_on_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Returns whether a part concerns only objects or groups, and is not true for vertices without
    /// an object.
    pub(super) fn is_on_objects(&self) -> bool {
        !self.object(None)
    }

    /// Evaluates the vertex part; true if it is true with one of the objects of the vertex.
    pub(super) fn vertex(&self, vertex: usize) -> bool {
        let mut owners = self.owners(vertex).into_iter();
        owners.any(|owner| self.holds(&self.vertices, Rows::Vertices(owner), vertex))
    }

    /// Evaluates the object part; true if it is true for one of the objects of the vertex.
    pub(super) fn objects_of(&self, vertex: usize) -> bool {
        let mut owners = self.owners(vertex).into_iter();
        owners.any(|owner| self.object(owner))
    }

    /// Returns the objects of a vertex, by row; `None` for a vertex without an object.
    fn owners(&self, vertex: usize) -> Vec<Option<usize>> {
        let fragment = self.truth.vertices[vertex].fragment;
        let objects = self.truth.objects.iter().flatten().enumerate();
        let owners: Vec<Option<usize>> = objects
            .filter(|(_, object)| object.fragments.contains(&fragment))
            .map(|(row, _)| Some(row))
            .collect();
        if owners.is_empty() {
            vec![None]
        } else {
            owners
        }
    }

    pub(super) fn link(&self, link: usize) -> bool {
        self.holds(&self.links, Rows::Links, link)
    }

    /// Evaluates the object part for the object in a row, or for no object.
    pub(super) fn object(&self, row: Option<usize>) -> bool {
        let Some(row) = row else {
            return self.groups.is_empty() && self.holds(&self.objects, Rows::Vertices(None), 0);
        };
        let id = self.truth.objects.iter().flatten().nth(row).unwrap().id;
        let groups = || self.truth.groups.iter().flatten().enumerate();
        let has_group = |part: &BoundPredicate| {
            let part = std::slice::from_ref(part);
            groups().any(|(group, members)| {
                members.contains(&id) && self.holds(part, Rows::Groups, group)
            })
        };
        self.holds(&self.objects, Rows::Objects, row) && self.groups.iter().all(has_group)
    }

    fn holds(&self, parts: &[BoundPredicate], rows: Rows, row: usize) -> bool {
        let table = Table {
            truth: self.truth,
            rows,
        };
        let mut parts = parts.iter();
        parts.all(|part| part.evaluate(&table, row).is_true())
    }
}

/// Returns the scope of the attribute of a column.
fn scope(truth: &ExpectedStore, column: &ColumnRef) -> Scope {
    let mut all = all_attributes(truth).into_iter();
    let found = all.find(|(scope, attribute)| {
        column.scope.is_none_or(|named| named == *scope) && attribute.name == column.name
    });
    found.unwrap().0
}

/// Returns all attributes except those of groups.
pub(super) fn attributes(truth: &ExpectedStore) -> Vec<(Scope, &ExpectedAttribute)> {
    let of = |scope, attributes: &'_ [ExpectedAttribute]| -> Vec<(Scope, usize)> {
        (0..attributes.len()).map(|at| (scope, at)).collect()
    };
    let numbered = [
        of(Scope::Vertex, &truth.vertex_attributes),
        of(Scope::Fragment, &truth.fragment_attributes),
        of(Scope::Link, &truth.link_attributes),
        of(Scope::Object, &truth.object_attributes),
    ]
    .into_iter()
    .flatten();
    numbered
        .map(|(scope, at)| {
            let attribute = match scope {
                Scope::Vertex => &truth.vertex_attributes[at],
                Scope::Fragment => &truth.fragment_attributes[at],
                Scope::Link => &truth.link_attributes[at],
                _ => &truth.object_attributes[at],
            };
            (scope, attribute)
        })
        .collect()
}

/// Returns all attributes.
pub(super) fn all_attributes(truth: &ExpectedStore) -> Vec<(Scope, &ExpectedAttribute)> {
    let groups = truth
        .group_attributes
        .iter()
        .map(|attribute| (Scope::Group, attribute));
    attributes(truth).into_iter().chain(groups).collect()
}

struct Table<'a> {
    truth: &'a ExpectedStore,
    rows: Rows,
}

impl ColumnSource for Table<'_> {
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError> {
        let all = all_attributes(self.truth).into_iter().enumerate();
        let mut found = all.filter(|(_, (scope, attribute))| {
            column.scope.is_none_or(|named| named == *scope) && attribute.name == column.name
        });
        let (id, (scope, attribute)) = found.next().ok_or(FindError::Absent)?;
        if let Some((_, (other, _))) = found.next() {
            return Err(FindError::ambiguous(column, [scope, other], None));
        }
        let (channels, values) = match &attribute.values {
            ExpectedValues::Words { words, .. } => (
                1,
                Type::Categories(words.iter().map(String::as_str).collect()),
            ),
            ExpectedValues::Numbers { kind, columns, .. } => {
                let is_bool = *kind == zvf_format::numeric::Kind::Bool;
                (*columns, if is_bool { Type::Bool } else { Type::Numbers })
            }
        };
        Ok(ResolvedColumn {
            id,
            channels,
            column_type: values,
        })
    }

    fn cell(&self, id: usize, channel: u32, row: usize) -> Datum {
        let (scope, attribute) = all_attributes(self.truth)[id];
        let row = match (self.rows, scope) {
            (Rows::Vertices(_), Scope::Fragment) => Some(self.truth.vertices[row].fragment),
            (Rows::Vertices(owner), Scope::Object) => owner,
            _ => Some(row),
        };
        let Some(row) = row.filter(|row| !attribute.missing[*row]) else {
            return Datum::Missing;
        };
        match &attribute.values {
            ExpectedValues::Words { codes, .. } => Datum::Category(codes[row]),
            ExpectedValues::Numbers { .. } => match value(attribute, row, channel) {
                Value::Bool(value) => Datum::Bool(value),
                Value::Int(value) => Datum::Number(Number::Int(value)),
                Value::UInt(value) => Datum::Number(Number::UInt(value)),
                Value::Float(value) => Datum::Number(Number::Float(value)),
                Value::Complex { .. } => Datum::Missing,
            },
        }
    }
}

/// Returns one number of an attribute.
pub(super) fn value(attribute: &ExpectedAttribute, row: usize, channel: u32) -> Value {
    let ExpectedValues::Numbers {
        kind,
        columns,
        bytes,
    } = &attribute.values
    else {
        panic!("{attribute:?}")
    };
    let dtype = Dtype::new(*kind, ByteOrder::Little);
    let rows = NumericRows::parse(bytes, dtype, (*columns).try_into().unwrap()).unwrap();
    rows.value(row, channel).unwrap()
}
