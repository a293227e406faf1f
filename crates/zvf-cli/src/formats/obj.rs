//! Wavefront OBJ text with vertices, lines and faces.
//!
//! | line | content |
//! |---|---|
//! | `v x y z` | a vertex; z is 0 for two axes |
//! | `o object_ID` | the object of the following paths |
//! | `l a b …` | a path, or a link of two ends |
//! | `p a` | a path of one vertex, or a link of one end |
//! | `f a b c …` | a link of more ends |
//!
//! Vertices count from 1. Axes named x, y and z are written in this order, independent of their
//! order in the store. Attributes are left out.

use std::io::Write;

use zvf::{Parts, QueryResult, numeric::Kind};

use super::{
    Format, ResultWriteError,
    output_table::{OutputColumn, axes},
    staged::Staged,
};

pub(super) fn write(
    answer: &QueryResult,
    staged: &mut Staged,
) -> Result<Vec<String>, ResultWriteError> {
    let mut columns = axes(answer)?;
    if !matches!(columns.len(), 2 | 3) {
        return Err(ResultWriteError::Axes(columns.len()));
    }
    if let Some(kind) = columns.first().and_then(OutputColumn::kind)
        && matches!(kind, Kind::Bool | Kind::Complex64 | Kind::Complex128)
    {
        return Err(ResultWriteError::Coordinates {
            format: Format::Obj,
            kind: kind.name(),
        });
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
    staged.write(|sink| {
        let mut line = String::new();
        for row in 0..answer.positions.len() {
            line.push('v');
            for column in &columns {
                line.push(' ');
                column.push_number(row, 0, &mut line);
            }
            line.push_str(if columns.len() == 2 { " 0\n" } else { "\n" });
            sink.write_all(line.as_bytes())?;
            line.clear();
        }
        if let Some(parts) = &answer.parts {
            paths(parts, sink)?;
        }
        if let Some(links) = &answer.links {
            let width = usize::try_from(links.width).unwrap_or(usize::MAX);
            for ends in links.ends.chunks_exact(width.max(1)) {
                element(letter(width), ends.iter().copied(), sink)?;
            }
        }
        Ok(())
    })?;
    Ok(left_out(answer))
}

fn paths(parts: &Parts, sink: &mut impl Write) -> std::io::Result<()> {
    let spans = parts.offsets.iter().zip(parts.offsets.iter().skip(1));
    let mut last = None;
    for ((start, end), object) in spans.zip(&parts.objects) {
        if start == end {
            continue;
        }
        if last != Some(object) {
            writeln!(sink, "o object_{object}")?;
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

fn left_out(answer: &QueryResult) -> Vec<String> {
    let scopes = [
        ("vertex", &answer.vertex),
        ("fragment", &answer.fragment),
        ("link", &answer.link),
    ];
    let mut lines = Vec::new();
    if answer.object_ids.is_some() {
        lines.push("object_id: not held by obj".to_owned());
    }
    for (scope, columns) in scopes {
        let columns = columns.iter();
        lines.extend(columns.map(|column| format!("{scope}.{}: not held by obj", column.name)));
    }
    lines.extend(super::object_data_left_out(answer, Format::Obj));
    lines
}
