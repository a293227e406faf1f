//! Batches of geometry as bytes, for the tasks that read them again.
//!
//! ```text
//! u64  length of the header
//! JSON header: types, counts, groups
//! ...  positions
//! u64  offsets of paths
//! i64  ids of paths, of the objects of vertices, of the objects that tables describe
//! i64  ends of links
//! ...  values and nulls of each column
//! ```

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zvf_model::column::{Column, ColumnValues, NULL_CODE, NumericColumn};

use crate::{
    error::BuildError,
    geometry::{Geometry, LinkEnds, VertexOwners},
    large::json::{integers, numeric, texts},
    large::piece::{damaged, numbers, take},
};

/// Encodes a batch.
pub fn encode_batch(batch: &Geometry) -> Vec<u8> {
    let batch = batch.as_builder();
    let families = [
        &batch.vertex,
        &batch.object,
        &batch.fragment,
        &batch.fragment_rows,
        &batch.group,
        &batch.link,
    ];
    let positions = &batch.positions;
    let (part_objects, object_ids) = match &batch.owners {
        VertexOwners::Unnamed => (None, None),
        VertexOwners::Vertices(ids) => (None, Some(ids)),
        VertexOwners::Paths { objects, .. } => (objects.as_ref(), None),
    };
    let objects = batch.objects.as_ref();
    let header = json!({
        "positions": [positions.kind.name(), positions.width],
        "vertices": positions.len(),
        "part_offsets": batch.owners.offsets().map(<[u64]>::len),
        "part_objects": part_objects.map(Vec::len),
        "object_ids": object_ids.map(Vec::len),
        "objects": objects.map(Vec::len),
        "link_width": batch.links.width,
        "link_ends": batch.links.ends.len(),
        "groups": batch.groups,
        "columns": families.map(|columns| columns.iter().map(column).collect::<Vec<_>>()),
    })
    .to_string();
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.bytes());
    out.extend(&positions.bytes);
    let offsets = batch.owners.offsets().into_iter().flatten();
    out.extend(offsets.flat_map(|offset| offset.to_le_bytes()));
    for ids in [part_objects, object_ids, objects] {
        out.extend(ids.into_iter().flatten().flat_map(|id| id.to_le_bytes()));
    }
    out.extend(batch.links.ends.iter().flat_map(|end| end.to_le_bytes()));
    for column in families.into_iter().flatten() {
        match &column.values {
            ColumnValues::Numeric(numbers) => out.extend(&numbers.bytes),
            ColumnValues::Dictionary { codes, .. } => {
                out.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
            }
        }
        let nulls = column.nulls.iter().flatten();
        out.extend(nulls.map(|is_null| u8::from(*is_null)));
    }
    out
}

/// Decodes the output of [`encode_batch`].
///
/// # Errors
///
/// [`BuildError`] when the bytes are not an output of `encode_batch`.
pub fn decode_batch(mut bytes: &[u8]) -> Result<Geometry, BuildError> {
    let bytes = &mut bytes;
    let header = read_header(bytes)?;
    let (kind, width) = numeric_type(&header["positions"])?;
    let empty = NumericColumn::new(kind, width);
    let size = count(&header["vertices"])?.saturating_mul(empty.row_size());
    let mut batch = Geometry::builder(empty.with_bytes(take(bytes, size)?.to_vec()));
    let offsets = optional_numbers(&header["part_offsets"], bytes, u64::from_le_bytes)?;
    let mut ids = |name: &str| optional_numbers(&header[name], bytes, i64::from_le_bytes);
    batch.owners = match (offsets, ids("part_objects")?, ids("object_ids")?) {
        (None, None, None) => VertexOwners::Unnamed,
        (None, None, Some(ids)) => VertexOwners::Vertices(ids),
        (Some(offsets), objects, None) => VertexOwners::Paths { offsets, objects },
        _ => return Err(damaged()),
    };
    batch.objects = ids("objects")?;
    batch.links = LinkEnds {
        width: count(&header["link_width"])?,
        ends: ids("link_ends")?.ok_or_else(damaged)?,
    };
    batch.groups = groups(&header["groups"]).ok_or_else(damaged)?;
    let families = [
        &mut batch.vertex,
        &mut batch.object,
        &mut batch.fragment,
        &mut batch.fragment_rows,
        &mut batch.group,
        &mut batch.link,
    ];
    for (columns, family) in families.into_iter().zip(0..) {
        for one in header["columns"][family].as_array().ok_or_else(damaged)? {
            columns.push(read_column(one, bytes)?);
        }
    }
    if !bytes.is_empty() {
        return Err(damaged());
    }
    batch.build().map_err(|_| damaged())
}

/// Reads the length of a header and the header.
pub(super) fn read_header(bytes: &mut &[u8]) -> Result<Value, BuildError> {
    let mut length = [0; 8];
    length.copy_from_slice(take(bytes, 8)?);
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(|_| damaged())?;
    serde_json::from_slice(take(bytes, length)?).map_err(|_| damaged())
}

/// Parses a number of items.
pub(super) fn count(json: &Value) -> Result<usize, BuildError> {
    let count = json.as_u64().ok_or_else(damaged)?;
    usize::try_from(count).map_err(|_| damaged())
}

fn optional_numbers<T>(
    json: &Value,
    bytes: &mut &[u8],
    number: impl Fn([u8; 8]) -> T,
) -> Result<Option<Vec<T>>, BuildError> {
    if json.is_null() {
        return Ok(None);
    }
    let found = take(bytes, count(json)?.saturating_mul(8))?;
    Ok(Some(numbers(found).map(number).collect()))
}

fn numeric_type(json: &Value) -> Result<(zvf_format::numeric::Kind, u32), BuildError> {
    let kind = numeric(&json[0]).ok_or_else(damaged)?;
    let width = json[1].as_u64().and_then(|width| u32::try_from(width).ok());
    Ok((kind, width.ok_or_else(damaged)?))
}

fn column(column: &Column) -> Value {
    let (numbers, words) = match &column.values {
        ColumnValues::Numeric(numbers) => (Some(json!([numbers.kind.name(), numbers.width])), None),
        ColumnValues::Dictionary { words, .. } => (None, Some(words)),
    };
    json!({
        "name": column.name,
        "rows": column.values.len(),
        "numbers": numbers,
        "words": words.map(|words| words.to_vec()),
        "nulls": column.nulls.is_some(),
    })
}

fn read_column(json: &Value, bytes: &mut &[u8]) -> Result<Column, BuildError> {
    let name = json["name"].as_str().ok_or_else(damaged)?;
    let rows = count(&json["rows"])?;
    let values = match &json["numbers"] {
        Value::Null => {
            let words = texts(&json["words"]).ok_or_else(damaged)?;
            let codes = take(bytes, rows.saturating_mul(4))?;
            let codes: Vec<u32> = numbers(codes).map(u32::from_le_bytes).collect();
            let is_word = |code: &u32| *code == NULL_CODE || (*code as usize) < words.len();
            if !codes.iter().all(is_word) {
                return Err(damaged());
            }
            let words = words.into();
            ColumnValues::Dictionary { codes, words }
        }
        both => {
            let (kind, width) = numeric_type(both)?;
            let empty = NumericColumn::new(kind, width);
            let values = take(bytes, rows.saturating_mul(empty.row_size()))?;
            ColumnValues::Numeric(empty.with_bytes(values.to_vec()))
        }
    };
    let mut column = Column::new(name, values);
    if json["nulls"].as_bool().ok_or_else(damaged)? {
        let nulls = take(bytes, rows)?.iter().map(|byte| *byte != 0);
        column.nulls = Some(nulls.collect());
    }
    Ok(column)
}

fn groups(json: &Value) -> Option<BTreeMap<u32, Vec<i64>>> {
    let groups = json.as_object()?.iter();
    groups
        .map(|(group, members)| Some((group.parse().ok()?, integers(members)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_back_and_cut_ones_are_rejected() {
        let mut side = Column::text("side", [Some("left"), Some("right")]);
        side.nulls = Some(vec![false, true]);
        let batch = Geometry::builder(NumericColumn::float32(2, [0.5, -1.0, f32::NAN, 3.0]))
            .paths(vec![0, 1, 2], vec![-4, 9])
            .objects(vec![9, -4])
            .vertex(vec![
                Column::new("q", NumericColumn::float64(1, [1.0, 2.0])),
                Column::text("name", [Some("a"), None]),
            ])
            .object(vec![side])
            .groups([(3, vec![9])].into())
            .links(3, vec![0, 1, 0])
            .link(vec![Column::new("w", NumericColumn::float32(1, [7.0]))])
            .build()
            .unwrap();
        let bytes = encode_batch(&batch);
        let again = decode_batch(&bytes).unwrap();
        // NaN is not equal to itself.
        assert_eq!(again.positions().bytes, batch.positions().bytes);
        let emptied = |batch: Geometry| batch.into_builder().positions(NumericColumn::default());
        assert_eq!(emptied(again), emptied(batch));
        for end in 0..bytes.len() {
            assert!(decode_batch(&bytes[..end]).is_err(), "{end}");
        }
        assert!(decode_batch(&[&bytes[..], &[0]].concat()).is_err());
    }
}
