//! Link cells of a level, and renumbering of their ends.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use zvf_format::{
    links::{LinkRows, LinkWidth, RaggedLinks, RowForm},
    path::Offsets,
    ragged,
};

use super::{
    chunk::{Chunk, Fragment},
    error::{EditError, damaged, missing},
    image::{CellId, Family, LevelSnapshot},
};

/// Link array: path, last segment, and chunk offsets of the ends after the first.
pub(super) type LinkArray = (String, String, Vec<Vec<i64>>);

/// Returns the link arrays: path, last segment, and chunk offsets of the ends after the first.
pub(super) fn arrays(image: &LevelSnapshot) -> Result<Vec<LinkArray>, EditError> {
    let Some(family) = &image.links else {
        return Ok(Vec::new());
    };
    let mut arrays = Vec::new();
    for path in image.arrays.keys() {
        if let Some(segment) = path.strip_prefix("0/links/0/") {
            arrays.push((
                path.clone(),
                segment.to_owned(),
                offsets(path, segment, family.width, image.axes)?,
            ));
        }
    }
    Ok(arrays)
}

fn offsets(
    path: &str,
    segment: &str,
    width: LinkWidth,
    axes: usize,
) -> Result<Vec<Vec<i64>>, EditError> {
    let offsets = Offsets::parse(segment, width, axes).map_err(|error| damaged(path, error))?;
    Ok(offsets.iter().map(Iterator::collect).collect())
}

/// Returns the chunk at an offset.
pub(super) fn at(source: &[i64], offset: &[i64]) -> Vec<i64> {
    let steps = source.iter().zip(offset);
    steps.map(|(at, step)| at.saturating_add(*step)).collect()
}

/// Returns whether a cell has ends in one of these chunks.
pub(super) fn touches(source: &[i64], offsets: &[Vec<i64>], chunks: &BTreeSet<Vec<i64>>) -> bool {
    chunks.contains(source)
        || offsets
            .iter()
            .any(|offset| chunks.contains(&at(source, offset)))
}

/// Returns the related cells of a link cell: links, groups and attributes.
pub(super) fn of_cell(image: &LevelSnapshot, segment: &str, source: &[i64]) -> Vec<CellId> {
    let mut keys = vec![(format!("0/links/0/{segment}"), source.to_vec())];
    if is_zero(segment) {
        keys.push(("0/link_fragments".to_owned(), source.to_vec()));
    }
    let attributes = attributes(image, segment);
    keys.extend(attributes.map(|path| (path, source.to_vec())));
    keys.retain(|(path, chunk)| {
        let array = image.arrays.get(path);
        array.is_some_and(|array| array.present.contains(chunk))
    });
    keys
}

/// Returns the paths of the attribute arrays of a link array.
pub(super) fn attributes(image: &LevelSnapshot, segment: &str) -> impl Iterator<Item = String> {
    let end = format!("/0/{segment}");
    let paths = image
        .arrays
        .keys()
        .filter(move |path| path.starts_with("0/link_attributes/") && path.ends_with(&end));
    paths.cloned().collect::<Vec<_>>().into_iter()
}

/// Returns whether all offsets of a segment are zero.
pub(super) fn is_zero(segment: &str) -> bool {
    segment == "self"
        || segment
            .bytes()
            .all(|letter| matches!(letter, b'0' | b'.' | b'_'))
}

/// Decodes a link cell as a chunk whose fragments are the link groups.
pub(super) fn load(
    image: &LevelSnapshot,
    segment: &str,
    source: &[i64],
) -> Result<Chunk, EditError> {
    let path = format!("0/links/0/{segment}");
    let width = image.links.map_or(LinkWidth::EDGE, |family| family.width);
    let array = image.arrays.get(&path);
    let form = array.map_or(RowForm::Plain, |array| array.row_form);
    let cell = |path: &str| image.cells.get(&(path.to_owned(), source.to_vec()));
    let Some(bytes) = cell(&path) else {
        return Ok(Chunk::default());
    };
    let dtype = array.and_then(|array| array.dtype);
    if dtype.is_some_and(|dtype| dtype.size() != 8) {
        return Err(EditError::Unsupported("links are not stored as int64"));
    }
    let mut chunk = Chunk::default();
    if is_zero(segment) {
        let rows = LinkRows::parse(bytes, width, form)
            .map_err(|error| damaged(&path, error).in_chunk(source))?;
        chunk.rows = rows.len() as u64;
        chunk.positions.clone_from(bytes);
        chunk.fragments = match cell("0/link_fragments") {
            Some(index) => Chunk::fragments("0/link_fragments", source, index, chunk.rows)?,
            None => vec![Fragment::Range(0, chunk.rows)],
        };
    } else {
        let links = RaggedLinks::parse(bytes, width, form)
            .map_err(|error| damaged(&path, error).in_chunk(source))?;
        let mut start = 0;
        for group in links.groups() {
            let end = start + group.len() as u64;
            chunk.fragments.push(Fragment::Range(start, end));
            start = end;
        }
        chunk.rows = start;
        let row = (width.get() + usize::from(form == RowForm::Permuted)) * 8;
        let data = ragged::RaggedBlob::parse(bytes)
            .map_err(|error| damaged(&path, error).in_chunk(source))?;
        chunk.positions = data.iter().flatten().copied().collect();
        if chunk.positions.len() as u64 != start.saturating_mul(row as u64) {
            return Err(damaged(&path, "groups that do not follow each other").in_chunk(source));
        }
    }
    for path in attributes(image, segment) {
        let bytes = match cell(&path) {
            Some(bytes) => bytes.clone(),
            None if chunk.rows == 0 => Vec::new(),
            // Appended values would be assigned to earlier links without one.
            None => return Err(missing(&path).in_chunk(source)),
        };
        if chunk.rows > 0 && !(bytes.len() as u64).is_multiple_of(chunk.rows) {
            return Err(damaged(&path, "not a whole number of rows").in_chunk(source));
        }
        chunk.vertex.insert(path, bytes);
    }
    Ok(chunk)
}

/// Renumbers the ends of a cell's links. Returns the links that lost an end, and the number of
/// these that have other ends left.
pub(super) fn renumber(
    cell: &mut Chunk,
    ends: &[Vec<i64>],
    form: RowForm,
    moved: &BTreeMap<Vec<i64>, Vec<Option<u64>>>,
) -> Result<(Vec<bool>, usize), EditError> {
    let columns = ends.len() + usize::from(form == RowForm::Permuted);
    let mut removed = Vec::new();
    let mut severed = 0;
    for row in cell.positions.chunks_exact_mut(columns * 8) {
        let first = columns - ends.len();
        let (mut lost, mut left) = (false, false);
        for (value, chunk) in row.chunks_exact_mut(8).skip(first).zip(ends) {
            let Some(rows) = moved.get(chunk) else {
                left = true;
                continue;
            };
            let mut bytes = [0; 8];
            bytes.copy_from_slice(value);
            let number = i64::from_le_bytes(bytes);
            let number = usize::try_from(number).ok().and_then(|at| rows.get(at));
            let number = number
                .ok_or_else(|| damaged("0/links/0", "a link to a row that does not exist"))?;
            match number {
                Some(number) => {
                    value.copy_from_slice(&number.to_le_bytes());
                    left = true;
                }
                None => lost = true,
            }
        }
        severed += usize::from(lost && left);
        removed.push(lost);
    }
    Ok((removed, severed))
}

/// Encodes a link cell: the links, and for flat cells their groups.
pub(super) fn store(cell: &Chunk, segment: &str) -> Result<(Vec<u8>, Option<Vec<u8>>), EditError> {
    if is_zero(segment) {
        return Ok((cell.positions.clone(), Some(cell.index()?)));
    }
    let rows = usize::try_from(cell.rows).unwrap_or(0).max(1);
    let size = cell.positions.len() / rows;
    let groups: Vec<Vec<u8>> = cell
        .fragments
        .iter()
        .map(|group| {
            let rows = group.rows().map(|row| row as usize * size);
            rows.flat_map(|at| cell.positions[at..at + size].iter().copied())
                .collect()
        })
        .filter(|group: &Vec<u8>| !group.is_empty())
        .collect();
    Ok((ragged::encode(&groups), None))
}

/// Reads a count from a family's node.
pub(super) fn count(node: &Value, name: &str) -> u64 {
    node["attributes"][name].as_u64().unwrap_or(0)
}

/// Returns the rows of a cell, and the number that count as logical links.
pub(super) fn counted(bytes: &[u8], segment: &str, family: Family, form: RowForm) -> (u64, u64) {
    let columns = family.width.get() + usize::from(form == RowForm::Permuted);
    let data: Vec<u8> = if is_zero(segment) {
        bytes.to_vec()
    } else {
        match ragged::RaggedBlob::parse(bytes) {
            Ok(groups) => groups.iter().flatten().copied().collect(),
            Err(_) => Vec::new(),
        }
    };
    let rows = (data.len() / (columns * 8)) as u64;
    if !family.duplicate || is_zero(segment) {
        return (rows, rows);
    }
    (rows, if is_leading(segment) { rows } else { 0 })
}

/// Returns whether copies in this array are the leading ones: those whose first end is in the
/// lowest chunk.
pub(super) fn is_leading(segment: &str) -> bool {
    segment.split('_').all(|offset| {
        let first = offset.split('.').find(|number| *number != "0");
        first.is_none_or(|number| number.starts_with('+'))
    })
}
