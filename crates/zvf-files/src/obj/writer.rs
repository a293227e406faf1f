//! Wavefront OBJ text with vertices, lines and faces.
//!
//! | line | content |
//! |---|---|
//! | `v x y z` | a vertex; z is 0 for two axes |
//! | `o NAME` | the object of the following lines |
//! | `l a b …` | a path, or a link of two ends |
//! | `p a` | a path of one vertex, or a link of one end |
//! | `f a b c …` | a link of more ends |
//!
//! Vertices count from 1. Axes named x, y and z are written in this order, independent of their
//! order in the store. Links are grouped by the object of their vertices; those without an object,
//! or between two, come first. `NAME` is the attribute `object.name` if all names differ, their words
//! are separated by single blanks, and none ends in `\`, which continues a line. Otherwise, and for
//! objects without a name, it is `object_ID`. A reader restores the ids from `object_ID`, and numbers
//! other objects from 1. Other attributes are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use zvf::{Column, ObjectIds, Owner, Parts, QueryResult, Scope, numeric::Kind};

use zvf_tables::{
    FileError, FileFault, FileFormat, OutputColumn, Staged, axis_columns, object_data_left_out,
};

pub(crate) fn write(result: &QueryResult, staged: &mut Staged) -> Result<Vec<String>, FileError> {
    let mut columns = axis_columns(result).map_err(FileFault::of_result)?;
    if !matches!(columns.len(), 2 | 3) {
        return Err(FileFault::Axes(columns.len()).of_result());
    }
    if let Some(kind) = columns.first().and_then(OutputColumn::kind)
        && matches!(kind, Kind::Bool | Kind::Complex64 | Kind::Complex128)
    {
        let (format, kind) = (FileFormat::Obj.extension(), kind.name());
        return Err(FileFault::InexactCoordinates { format, kind }.of_result());
    }
    let names = ["x", "y", "z"];
    let place = |column: &OutputColumn<'_>| {
        let mut names = names.iter().take(columns.len());
        names.position(|name| column.name.eq_ignore_ascii_case(name))
    };
    let mut places: Vec<_> = columns.iter().filter_map(place).collect();
    places.sort_unstable();
    places.dedup();
    if places.len() == columns.len() {
        columns.sort_by_key(|column| column.name.to_ascii_lowercase());
    }
    let names = object_names(result);
    staged.write(|sink| {
        let mut line = String::new();
        for row in 0..result.positions.len() {
            line.push('v');
            for column in &columns {
                line.push(' ');
                column.push_number(row, 0, &mut line);
            }
            line.push_str(if columns.len() == 2 { " 0\n" } else { "\n" });
            sink.write_all(line.as_bytes())?;
            line.clear();
        }
        if let Some(parts) = &result.parts {
            paths(parts, names.as_ref(), sink)?;
        }
        Ok(links(result, names.as_ref(), sink)?)
    })?;
    Ok(left_out(result, names.as_ref()))
}

/// Returns the `object.name` of each object that has one. Returns `None` if a name occurs twice, is
/// not a line of words that a reader returns, or is `object_ID` with the id of another object.
fn object_names(result: &QueryResult) -> Option<BTreeMap<i64, &str>> {
    let column = result.object.iter().find(|column| column.name == "name")?;
    let names: Vec<Option<&str>> = column.texts().collect();
    let is_own = |id: &i64, name: &str| {
        let other = name.strip_prefix("object_").map(str::parse::<i64>);
        other.and_then(Result::ok).is_none_or(|other| other == *id)
    };
    // Readers join words by one blank, and a line that ends in `\` with the next one.
    let is_line = |name: &str| {
        let words: Vec<&str> = name.split_ascii_whitespace().collect();
        !name.is_empty()
            && words.join(" ") == name
            && !name.ends_with('\\')
            && !name.chars().any(char::is_control)
    };
    let named: BTreeMap<i64, &str> = result
        .objects
        .iter()
        .zip(&names)
        .filter_map(|(id, name)| Some((*id, (*name)?)))
        .collect();
    let distinct: BTreeSet<&str> = named.values().copied().collect();
    let is_usable = named
        .iter()
        .all(|(id, name)| is_line(name) && is_own(id, name));
    (is_usable && distinct.len() == named.len() && names.len() == result.objects.len())
        .then_some(named)
}

/// Starts an object.
fn begin(
    object: i64,
    names: Option<&BTreeMap<i64, &str>>,
    sink: &mut impl Write,
) -> std::io::Result<()> {
    match names.and_then(|names| names.get(&object)) {
        Some(name) => writeln!(sink, "o {name}"),
        None => writeln!(sink, "o object_{object}"),
    }
}

fn paths(
    parts: &Parts,
    names: Option<&BTreeMap<i64, &str>>,
    sink: &mut impl Write,
) -> std::io::Result<()> {
    let spans = parts.offsets.iter().zip(parts.offsets.iter().skip(1));
    let mut last = None;
    for ((start, end), object) in spans.zip(&parts.objects) {
        if start == end {
            continue;
        }
        if last != Some(object) {
            begin(*object, names, sink)?;
            last = Some(object);
        }
        let letter = if end.saturating_sub(*start) == 1 {
            'p'
        } else {
            'l'
        };
        element(letter, *start..*end, sink)?;
    }
    Ok(())
}

/// Writes the links of each object below its name.
fn links(
    result: &QueryResult,
    names: Option<&BTreeMap<i64, &str>>,
    sink: &mut impl Write,
) -> std::io::Result<()> {
    let Some(links) = &result.links else {
        return Ok(());
    };
    let width = usize::try_from(links.width).unwrap_or(usize::MAX).max(1);
    let object_of = |ends: &[u64]| object_of(result, ends);
    let mut rows: Vec<_> = links.ends.chunks_exact(width).collect();
    // The sort is stable: links of an object keep their order.
    rows.sort_by_cached_key(|ends| object_of(ends));
    let mut last = None;
    for ends in rows {
        let object = object_of(ends);
        if let Some(object) = object.filter(|_| object != last) {
            begin(object, names, sink)?;
        }
        last = object;
        element(letter(width), ends.iter().copied(), sink)?;
    }
    Ok(())
}

/// Returns the object of all vertices of a link.
fn object_of(result: &QueryResult, ends: &[u64]) -> Option<i64> {
    let ids = result.object_ids.as_ref()?;
    let mut owners = ends.iter().map(|end| {
        let vertex = usize::try_from(*end).ok()?;
        ids.get(vertex)?.object()
    });
    let first = owners.next()?;
    owners.all(|other| other == first).then_some(first)?
}

fn letter(width: usize) -> char {
    match width {
        1 => 'p',
        2 => 'l',
        _ => 'f',
    }
}

fn element(
    letter: char,
    vertices: impl Iterator<Item = u64>,
    sink: &mut impl Write,
) -> std::io::Result<()> {
    write!(sink, "{letter}")?;
    for vertex in vertices {
        write!(sink, " {}", vertex.saturating_add(1))?;
    }
    writeln!(sink)
}

/// Returns whether a reader gives the vertices the same objects: `object_ID` has the id, others are
/// numbered from 1, and vertices without links belong to object 0.
fn keeps_ids(result: &QueryResult, names: Option<&BTreeMap<i64, &str>>) -> bool {
    let Some(links) = result.links.as_ref().filter(|links| !links.is_empty()) else {
        return false;
    };
    let owners = result.object_ids.iter().flat_map(ObjectIds::iter);
    let mut are_kept: Vec<bool> = owners.map(|owner| owner == Owner::Object(0)).collect();
    let width = usize::try_from(links.width).unwrap_or(usize::MAX).max(1);
    let mut is_grouped = true;
    for ends in links.ends.chunks_exact(width) {
        is_grouped &= object_of(result, ends).is_some();
        for end in ends {
            let vertex = usize::try_from(*end).unwrap_or(usize::MAX);
            if let Some(is_kept) = are_kept.get_mut(vertex) {
                *is_kept = true;
            }
        }
    }
    is_grouped &= are_kept.iter().all(|is_kept| *is_kept);
    let mut named = names.into_iter().flat_map(BTreeMap::keys);
    let is_numbered = named.by_ref().zip(1..).all(|(id, number)| *id == number);
    let is_all = names.is_none_or(|names| names.is_empty() || names.len() == result.objects.len());
    is_grouped && is_numbered && is_all
}

fn left_out(result: &QueryResult, names: Option<&BTreeMap<i64, &str>>) -> Vec<String> {
    let mut lines = Vec::new();
    if result.object_ids.is_some() && !keeps_ids(result, names) {
        lines.push("object_id: not supported by obj".to_owned());
    }
    let of_objects = |scope: Scope, _: &Column| scope == Scope::Object;
    lines.extend(crate::writer::left_out(result, "obj", of_objects));
    let name = names.map(|_| format!("object.name: not supported by {}", FileFormat::Obj));
    let others = object_data_left_out(result, FileFormat::Obj);
    lines.extend(others.filter(|line| Some(line) != name.as_ref()));
    lines
}
