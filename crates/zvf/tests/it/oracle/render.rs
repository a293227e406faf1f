//! Results rendered from the expected content, to test the comparison.

use std::sync::Arc;

use zvf::{ObjectIds, Owner};
use zvf_catalog::{ObjectGroup, Scope, Selection};
use zvf_format::numeric::{ByteOrder, Kind, Value, encode};
use zvf_query::{Column, ColumnValues, Links, NumericColumn, Parts, Query, QueryResult, Region};
use zvf_testkit::stores::{ExpectedAttribute, ExpectedStore, ExpectedValues as Known, Random};

use super::{
    expect::{Expected, ExpectedRow},
    filter::{attributes, value},
};

/// Renders the expected result; of clipped parts only positions.
pub(super) fn render(truth: &ExpectedStore, query: &Query, expected: &Expected) -> QueryResult {
    let kind = if truth.recipe.double {
        Kind::Float64
    } else {
        Kind::Float32
    };
    let mut result = QueryResult::default();
    result.axes.clone_from(&truth.axes);
    result.positions = NumericColumn::new(kind, u32::try_from(truth.axes.len()).unwrap());
    let spots = expected.rows.iter();
    let values = spots.flat_map(|expected_row| {
        let position = expected_row.position(truth).iter().enumerate();
        let bounds = match (&query.region, expected_row) {
            (Some(Region::Box(bbox)), ExpectedRow::Between { .. }) => Some(bbox),
            _ => None,
        };
        let inwards = position.map(move |(axis, value)| {
            let bounds = bounds.map(|bbox| [bbox.lo()[axis], bbox.hi()[axis]]);
            if kind == Kind::Float64 {
                *value
            } else {
                narrowed(*value, bounds)
            }
        });
        inwards.collect::<Vec<f64>>()
    });
    result.positions.bytes = positions(kind, &values.collect::<Vec<f64>>());
    result.objects.clone_from(&expected.objects);
    let vertices: Vec<usize> = expected.rows.iter().map(vertex).collect();
    if truth.objects.is_some() && query.owners && expected.parts.is_none() {
        let ids = vertices
            .iter()
            .map(|at| truth.vertices[*at].object.unwrap_or(Owner::NONE));
        result.object_ids = Some(ObjectIds::from_numbers(ids.collect()));
    }
    result.parts = expected.parts.as_ref().map(|parts| {
        let ends = parts.iter().map(|(_, rows)| rows.end as u64);
        Parts {
            offsets: std::iter::once(0).chain(ends).collect(),
            objects: parts.iter().map(|(id, _)| *id).collect(),
        }
    });
    result.links = expected.links.as_ref().map(|links| {
        let ends = links.iter().flat_map(|(_, ends)| ends);
        Links {
            width: u32::try_from(truth.recipe.kind.width()).unwrap(),
            ends: ends.map(|end| *end as u64).collect(),
        }
    });
    let groups = query.groups.iter().flatten().map(|id| ObjectGroup {
        id: *id,
        members: truth.groups.as_ref().unwrap()[usize::try_from(*id).unwrap()].clone(),
    });
    result.groups = groups.collect();
    let fragments: Vec<usize> = vertices
        .iter()
        .map(|at| truth.vertices[*at].fragment)
        .collect();
    let links: Vec<usize> = expected
        .links
        .as_deref()
        .unwrap_or_default()
        .iter()
        .map(|(link, _)| *link)
        .collect();
    let all = truth.objects.as_deref().unwrap_or_default();
    let row_of = |id: &i64| all.iter().position(|object| object.id == *id).unwrap();
    let objects: Vec<usize> = expected.objects.iter().map(row_of).collect();
    result.vertex = columns(truth, query, Scope::Vertex, &vertices);
    for column in &mut result.vertex {
        interpolate(truth, column, &expected.rows);
    }
    result.fragment = columns(truth, query, Scope::Fragment, &fragments);
    result.link = columns(truth, query, Scope::Link, &links);
    result.object = columns(truth, query, Scope::Object, &objects);
    result
}

/// Returns the vertex whose attributes a row has.
fn vertex(expected_row: &ExpectedRow) -> usize {
    match expected_row {
        ExpectedRow::Vertex(vertex) => *vertex,
        ExpectedRow::Between { ends, t, .. } => ends[usize::from(*t > 0.5)],
    }
}

/// Returns the `f32` nearest to a value, rounded towards the inside of bounds.
#[expect(clippy::cast_possible_truncation, reason = "this is how it is stored")]
fn narrowed(value: f64, bounds: Option<[f64; 2]>) -> f64 {
    let near = value as f32;
    match bounds {
        Some([lo, _]) if f64::from(near) < lo => near.next_up().into(),
        Some([_, hi]) if f64::from(near) > hi => near.next_down().into(),
        _ => near.into(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "this is how it is stored")]
fn positions(kind: Kind, values: &[f64]) -> Vec<u8> {
    if kind == Kind::Float64 {
        return encode(values, ByteOrder::Little);
    }
    let values = values.iter().map(|value| *value as f32);
    encode(&values.collect::<Vec<f32>>(), ByteOrder::Little)
}

/// Interpolates the values of new vertices between their ends.
#[expect(clippy::cast_possible_truncation, reason = "this is how it is stored")]
fn interpolate(truth: &ExpectedStore, column: &mut Column, rows: &[ExpectedRow]) {
    let mut all = truth.vertex_attributes.iter();
    let attribute = all.find(|attribute| attribute.name == column.name).unwrap();
    let ColumnValues::Numeric(values) = &mut column.values else {
        return;
    };
    if (values.kind, values.width) != (Kind::Float32, 1) {
        return;
    }
    for (bytes, expected_row) in values.bytes.chunks_mut(4).zip(rows) {
        if let ExpectedRow::Between { ends, t, .. } = expected_row {
            let [a, b] = ends.map(|end| match value(attribute, end, 0) {
                Value::Float(value) => value,
                other => panic!("{other:?}"),
            });
            let between = (a * (1.0 - t) + b * t) as f32;
            bytes.copy_from_slice(&between.to_le_bytes());
        }
    }
}

fn columns(truth: &ExpectedStore, query: &Query, scope: Scope, rows: &[usize]) -> Vec<Column> {
    let requested = |attribute: &ExpectedAttribute| match &query.columns {
        Selection::All => true,
        Selection::Named(named) => named
            .iter()
            .any(|(of, name)| *name == attribute.name && of.is_none_or(|of| of == scope)),
    };
    let known = attributes(truth)
        .into_iter()
        .filter(|(of, attribute)| *of == scope && requested(attribute));
    known
        .map(|(_, attribute)| column(attribute, rows))
        .collect()
}

fn column(attribute: &ExpectedAttribute, rows: &[usize]) -> Column {
    let values = match &attribute.values {
        Known::Words { codes, words } => ColumnValues::Dictionary {
            codes: rows.iter().map(|row| codes[*row]).collect(),
            words: Arc::from(words.clone()),
        },
        Known::Numbers { kind, columns, .. } => {
            let mut values = NumericColumn::new(*kind, *columns);
            let bytes = rows.iter().flat_map(|row| attribute.row(*row));
            values.bytes = bytes.copied().collect();
            ColumnValues::Numeric(values)
        }
    };
    Column {
        name: attribute.name.clone(),
        values,
        nulls: Some(rows.iter().map(|row| attribute.missing[*row]).collect()),
    }
}

/// Returns copies of the result with one error each.
pub(super) fn damaged(result: &QueryResult, random: &mut Random) -> Vec<QueryResult> {
    let mut all = Vec::new();
    let mut with = |change: &mut dyn FnMut(&mut QueryResult)| {
        let mut wrong = result.clone();
        change(&mut wrong);
        all.push(wrong);
    };
    let bytes = &result.positions.bytes;
    if !bytes.is_empty() {
        let at = random.below(bytes.len());
        with(&mut |wrong| wrong.positions.bytes[at] ^= 1);
    }
    for number in 0..result.vertex.len() {
        with(&mut |wrong| {
            wrong.vertex.remove(number);
        });
    }
    let columns = result.vertex.iter().enumerate();
    for (number, column) in columns.filter(|(_, column)| !column.values.is_empty()) {
        let row = random.below(column.values.len());
        if column.is_null(row) {
            continue;
        }
        with(&mut |wrong| match &mut wrong.vertex[number].values {
            ColumnValues::Numeric(rows) => {
                let size = rows.row_size();
                rows.bytes[row * size] ^= 1;
            }
            ColumnValues::Dictionary { codes, .. } => codes[row] = u32::MAX,
        });
        with(&mut |wrong| {
            let missing = wrong.vertex[number].nulls.as_mut().unwrap();
            missing[row] = true;
        });
    }
    if let Some(ids) = result.object_ids.as_ref().filter(|ids| !ids.is_empty()) {
        let row = random.below(ids.len());
        with(&mut |wrong| {
            let mut ids = wrong.object_ids.take().unwrap().into_numbers();
            ids[row] ^= 1;
            wrong.object_ids = Some(ObjectIds::from_numbers(ids));
        });
    }
    if let Some(links) = result.links.as_ref().filter(|links| !links.is_empty()) {
        with(&mut |wrong| {
            let links = wrong.links.as_mut().unwrap();
            links
                .ends
                .truncate(links.ends.len() - usize::try_from(links.width).unwrap());
        });
        let at = random.below(links.ends.len());
        if u64::try_from(result.positions.len()).unwrap() > 1 {
            with(&mut |wrong| {
                let rows = u64::try_from(wrong.positions.len()).unwrap();
                let end = &mut wrong.links.as_mut().unwrap().ends[at];
                *end = (*end + 1) % rows;
            });
        }
    }
    if let Some(parts) = result
        .parts
        .as_ref()
        .filter(|parts| !parts.objects.is_empty())
    {
        let at = random.below(parts.objects.len());
        with(&mut |wrong| wrong.parts.as_mut().unwrap().objects[at] ^= 1);
        with(&mut |wrong| {
            let parts = wrong.parts.as_mut().unwrap();
            parts.offsets.remove(at);
            parts.objects.remove(at);
        });
    }
    let tells = result.object_ids.is_some() || result.parts.is_some();
    if tells && !result.objects.is_empty() {
        with(&mut |wrong| {
            let last = wrong.objects.pop();
            wrong.objects.retain(|id| Some(*id) != last);
        });
    }
    all
}
