//! Link cells of a level, and renumbering of their ends.

use std::collections::{BTreeMap, BTreeSet};

use zvf_format::{
    links::{LinkRows, LinkWidth, RaggedLinks, RowForm},
    path::{Delta, Offsets},
    ragged,
};
use zvf_model::{
    array::{LinkFamily, LinkStore},
    key::Key,
    layout::{ArrayRole, LinkOffsets},
};

use super::{
    chunk::{Chunk, Fragment},
    error::{EditError, damaged, missing},
    image::{CellId, LevelSnapshot, PerChunk},
};

/// Link array with the chunk offsets of the ends after the first.
pub(super) type LinkArray = (Key, Vec<Vec<i64>>);

/// Returns the link arrays with the chunk offsets of the ends after the first.
pub(super) fn arrays(image: &LevelSnapshot) -> Result<Vec<LinkArray>, EditError> {
    let Some(family) = &image.links else {
        return Ok(Vec::new());
    };
    let arrays = image
        .arrays
        .keys()
        .filter(|array| array.is_below(&image.keys.link_family))
        .map(|array| {
            let offsets = Offsets::parse(segment(array), family.width, image.axes)
                .map_err(|error| damaged(array, error))?
                .iter()
                .map(Iterator::collect)
                .collect();
            Ok((array.clone(), offsets))
        });
    arrays.collect()
}

/// Returns the chunk offsets in the key of an array of links, or of an attribute of them.
pub(super) fn segment(array: &Key) -> &str {
    array.name().unwrap_or_default()
}

/// Returns the array of links with these chunk offsets.
pub(super) fn array(image: &LevelSnapshot, segment: &str) -> Result<Key, EditError> {
    let role = ArrayRole::Links(Delta::INTRA, LinkOffsets::Segment(segment));
    Ok(image.keys.all.node(&role)?)
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

/// Returns the related cells of a cell of an array of links: links, groups and attributes.
pub(super) fn of_cell(image: &LevelSnapshot, links: &Key, source: &[i64]) -> Vec<CellId> {
    let groups = is_zero(segment(links)).then_some(&image.keys.link_fragments);
    let arrays = [links]
        .into_iter()
        .chain(groups)
        .chain(attributes(image, segment(links)));
    let arrays = arrays.filter(|array| {
        let array = image.arrays.get(*array);
        array.is_some_and(|array| array.present.contains(source))
    });
    arrays
        .map(|array| (array.clone(), source.to_vec()))
        .collect()
}

/// Returns the attribute arrays of the array of links with these chunk offsets. All arrays of a
/// snapshot are of links inside the level.
fn attributes<'a>(image: &'a LevelSnapshot, offsets: &'a str) -> impl Iterator<Item = &'a Key> {
    let arrays = image.arrays.keys();
    arrays.filter(move |array| {
        array.is_below(&image.keys.link_attributes) && segment(array) == offsets
    })
}

/// Returns whether all offsets of a segment are zero.
pub(super) fn is_zero(segment: &str) -> bool {
    segment == "self"
        || segment
            .bytes()
            .all(|letter| matches!(letter, b'0' | b'.' | b'_'))
}

/// Decodes a link cell as a chunk whose fragments are the link groups.
pub(super) fn load(image: &LevelSnapshot, links: &Key, source: &[i64]) -> Result<Chunk, EditError> {
    let family = image.links.as_ref();
    let width = family.map_or(LinkWidth::EDGE, |family| family.width);
    let array = image.arrays.get(links);
    let form = array.map_or(RowForm::Plain, PerChunk::row_form);
    let cell = |array: &Key| image.cells.get(&(array.clone(), source.to_vec()));
    let Some(bytes) = cell(links) else {
        return Ok(Chunk::default());
    };
    let dtype = array.and_then(|array| array.cells.dtype());
    if dtype.is_some_and(|dtype| dtype.size() != 8) {
        return Err(EditError::Unsupported("links are not stored as int64"));
    }
    let mut chunk = Chunk::default();
    if is_zero(segment(links)) {
        let rows = LinkRows::parse(bytes, width, form)
            .map_err(|error| damaged(links, error).in_chunk(source))?;
        chunk.rows = rows.len() as u64;
        chunk.positions.clone_from(bytes);
        let groups = &image.keys.link_fragments;
        chunk.fragments = match cell(groups) {
            Some(index) => Chunk::fragments(groups, source, index, chunk.rows)?,
            None => vec![Fragment::Range(0, chunk.rows)],
        };
    } else {
        let rows = RaggedLinks::parse(bytes, width, form)
            .map_err(|error| damaged(links, error).in_chunk(source))?;
        let mut start = 0;
        for group in rows.groups() {
            let end = start + group.len() as u64;
            chunk.fragments.push(Fragment::Range(start, end));
            start = end;
        }
        chunk.rows = start;
        let row = (width.get() + usize::from(form == RowForm::Permuted)) * 8;
        let data = ragged::RaggedBlob::parse(bytes)
            .map_err(|error| damaged(links, error).in_chunk(source))?;
        chunk.positions = data.iter().flatten().copied().collect();
        if chunk.positions.len() as u64 != start.saturating_mul(row as u64) {
            return Err(damaged(links, "groups that do not follow each other").in_chunk(source));
        }
    }
    for array in attributes(image, segment(links)) {
        let bytes = match cell(array) {
            Some(bytes) => bytes.clone(),
            None if chunk.rows == 0 => Vec::new(),
            // Appended values would be assigned to earlier links without one.
            None => return Err(missing(array).in_chunk(source)),
        };
        if chunk.rows > 0 && !(bytes.len() as u64).is_multiple_of(chunk.rows) {
            return Err(damaged(array, "not a whole number of rows").in_chunk(source));
        }
        chunk.vertex.insert(array.clone(), bytes);
    }
    Ok(chunk)
}

/// Renumbers the ends of the links in a cell of `array`. Returns the links that lost an end, and the
/// number of these that have other ends left.
pub(super) fn renumber(
    array: &Key,
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
            let number = usize::try_from(number)
                .ok()
                .and_then(|at| rows.get(at))
                .ok_or_else(|| damaged(array, "a link to a row that does not exist"))?;
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

/// Encodes a cell of an array of links: the links, and for flat cells their groups, which are a cell
/// of `fragments`.
pub(super) fn store(
    cell: &Chunk,
    links: &Key,
    fragments: &Key,
) -> Result<(Vec<u8>, Option<Vec<u8>>), EditError> {
    if is_zero(segment(links)) {
        return Ok((cell.positions.clone(), Some(cell.index(fragments)?)));
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

/// Returns the rows of a cell, and the number that count as logical links.
pub(super) fn counted(
    bytes: &[u8],
    segment: &str,
    family: &LinkFamily,
    form: RowForm,
) -> (u64, u64) {
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
    if family.store == LinkStore::Canonical || is_zero(segment) {
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
