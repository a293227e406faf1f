//! Tests that a partial result is a subset of the whole: nothing invented, nothing shifted. A
//! missing value matches any value.

use std::collections::HashMap;

use zvf::Owner;
use zvf_query::{Column, ColumnValues, NumericColumn, QueryResult};

/// Returns the value of a row as bytes; `None` if it is null.
fn value(column: &Column, row: usize) -> Option<Vec<u8>> {
    if column.is_null(row) {
        return None;
    }
    match &column.values {
        ColumnValues::Numeric(rows) => Some(number(rows, row)),
        ColumnValues::Dictionary { codes, words } => {
            let code = usize::try_from(codes[row]).unwrap();
            Some(words[code].as_bytes().to_vec())
        }
    }
}

fn number(rows: &NumericColumn, row: usize) -> Vec<u8> {
    let size = rows.row_size();
    rows.bytes[row * size..][..size].to_vec()
}

/// An item of a result: its identity, and values that may be missing.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    known_by: Vec<u8>,
    object: Option<Owner>,
    values: Vec<(String, Option<Vec<u8>>)>,
}

impl Item {
    /// Returns whether this item can be what remains of `whole`.
    fn is_left_of(&self, whole: &Self) -> bool {
        let object = match (self.object, whole.object) {
            // One of several objects may remain.
            (None | Some(Owner::None), _) | (Some(_), Some(Owner::Several)) => true,
            (left, whole) => left == whole,
        };
        let of = |name: &str| whole.values.iter().find(|(n, _)| n == name);
        object
            && self.known_by == whole.known_by
            && self.values.iter().all(|(name, value)| {
                value.is_none() || of(name).is_some_and(|(_, whole)| whole == value)
            })
    }
}

fn values(columns: &[&Vec<Column>], row: usize) -> Vec<(String, Option<Vec<u8>>)> {
    let columns = columns.iter().enumerate();
    let values = columns.flat_map(|(scope, columns)| {
        let columns = columns.iter();
        columns.map(move |column| (format!("{scope}.{}", column.name), value(column, row)))
    });
    values.collect()
}

/// Lists the vertices; those of paths with their object.
fn vertices(result: &QueryResult) -> Vec<Item> {
    let mut items: Vec<Item> = (0..result.positions.len())
        .map(|row| Item {
            known_by: number(&result.positions, row),
            object: result.object_ids.as_ref().and_then(|ids| ids.get(row)),
            values: values(&[&result.vertex, &result.fragment], row),
        })
        .collect();
    for (part, rows) in parts(result) {
        for row in rows {
            items[row].object = Some(Owner::Object(part));
        }
    }
    items
}

fn parts(result: &QueryResult) -> Vec<(i64, std::ops::Range<usize>)> {
    let Some(parts) = &result.parts else {
        return Vec::new();
    };
    let offsets: Vec<usize> = parts
        .offsets
        .iter()
        .map(|at| usize::try_from(*at).unwrap())
        .collect();
    assert_eq!(offsets.len(), parts.objects.len() + 1);
    assert_eq!(offsets.last(), Some(&result.positions.len()));
    let objects = parts.objects.iter().zip(offsets.windows(2));
    objects
        .map(|(object, ends)| (*object, ends[0]..ends[1]))
        .collect()
}

/// Lists pairs of consecutive vertices of paths.
fn segments(result: &QueryResult) -> Vec<Item> {
    let mut segments = Vec::new();
    for (object, rows) in parts(result) {
        for row in rows.clone().skip(1) {
            let ends = [row - 1, row].map(|row| number(&result.positions, row));
            segments.push(Item {
                known_by: ends.concat(),
                object: Some(Owner::Object(object)),
                values: Vec::new(),
            });
        }
    }
    segments
}

fn links(result: &QueryResult) -> Vec<Item> {
    let Some(links) = &result.links else {
        return Vec::new();
    };
    let width = usize::try_from(links.width.max(1)).unwrap();
    let links = links.ends.chunks(width).enumerate();
    links
        .map(|(row, ends)| {
            let ends = ends.iter().map(|end| {
                let end = usize::try_from(*end).unwrap();
                number(&result.positions, end)
            });
            Item {
                known_by: ends.collect::<Vec<_>>().concat(),
                object: None,
                values: values(&[&result.link], row),
            }
        })
        .collect()
}

fn objects(result: &QueryResult) -> Vec<Item> {
    let objects = result.objects.iter().enumerate();
    objects
        .map(|(row, object)| Item {
            known_by: object.to_le_bytes().to_vec(),
            object: None,
            values: values(&[&result.object], row),
        })
        .collect()
}

/// Matches each item of `left` with a different item of `whole`, the most specific items first.
fn check(what: &str, left: &[Item], whole: &[Item]) -> Result<(), String> {
    let mut free: HashMap<&[u8], Vec<&Item>> = HashMap::new();
    for item in whole {
        free.entry(&item.known_by).or_default().push(item);
    }
    let open = |item: &&Item| item.values.iter().filter(|(_, v)| v.is_none()).count();
    let mut left: Vec<&Item> = left.iter().collect();
    left.sort_by_key(open);
    for item in left {
        let same = free.get_mut(item.known_by.as_slice());
        let found = same.and_then(|free| {
            let exact = free.iter().position(|whole| *whole == item);
            let at = exact.or_else(|| free.iter().position(|whole| item.is_left_of(whole)))?;
            Some(free.swap_remove(at))
        });
        if found.is_none() {
            return Err(format!("{what} that was not there: {item:?}"));
        }
    }
    Ok(())
}

/// Checks that `left` is part of `whole`; the error names an item that is not.
pub(super) fn is_part(left: &QueryResult, whole: &QueryResult) -> Result<(), String> {
    if left.parts.is_some() && whole.parts.is_none() {
        return Err("parts that were not there".to_owned());
    }
    check("a vertex", &vertices(left), &vertices(whole))?;
    check("a segment", &segments(left), &segments(whole))?;
    check("a link", &links(left), &links(whole))?;
    check("an object", &objects(left), &objects(whole))?;
    for group in &left.groups {
        let known = whole.groups.contains(group);
        let fewer = whole.groups.iter().any(|whole| {
            let mut members = group.members.iter();
            whole.id == group.id && members.all(|member| whole.members.contains(member))
        });
        if !known && !fewer {
            return Err(format!("a group that was not there: {group:?}"));
        }
    }
    Ok(())
}
