//! The first rows of a query result as a text table.

use zvf::QueryResult;
use zvf_files::{FileFault, OutputColumn, OutputTable};

use crate::{
    display::{count_noun, len_u64, printable},
    text_table,
};

/// Maximum number of rows shown.
const ROWS: usize = 10;
/// Maximum number of characters shown of a name or text.
const WIDTH: usize = 32;
/// Maximum number of channels shown of a column.
const CHANNELS: usize = 4;

/// Formats the first vertices and links of a result, and the first objects if they have
/// attributes.
///
/// # Errors
///
/// [`FileFault`] if the result is inconsistent.
pub fn preview(result: &QueryResult) -> Result<String, FileFault> {
    let mut lines = Vec::new();
    let vertices = OutputTable::vertices(result)?;
    if vertices.rows > 0 {
        lines.extend(shown(&vertices, "vertex", "vertices"));
    }
    if let Some(links) = OutputTable::links(result)? {
        lines.push(String::new());
        lines.extend(shown(&links, "link", "links"));
    }
    // Without attributes, the table of objects would only repeat the ids in that of vertices.
    if !result.object.is_empty()
        && let Some(objects) = OutputTable::objects(result)?
    {
        lines.push(String::new());
        lines.extend(shown(&objects, "object", "objects"));
    }
    Ok(lines.join("\n"))
}

fn shown(table: &OutputTable<'_>, singular: &str, plural: &str) -> Vec<String> {
    let titles = table.columns.iter().map(|column| readable(&column.name));
    let mut rows: Vec<Vec<String>> = vec![titles.collect()];
    rows.extend((0..table.rows.min(ROWS)).map(|row| {
        let cells = table.columns.iter().map(|column| cell(column, row));
        cells.collect()
    }));
    let mut lines = text_table::align(&rows);
    let more = table.rows.saturating_sub(ROWS);
    if more > 0 {
        let more = count_noun(len_u64(more), singular, plural);
        lines.push(format!("  … and {more} more: -o FILE.csv writes all"));
    }
    lines
}

fn cell(column: &OutputColumn<'_>, row: usize) -> String {
    if column.is_null(row) {
        return "-".to_owned();
    }
    if let Some(word) = column.word(row) {
        return readable(word);
    }
    let mut cell = String::new();
    for channel in 0..column.channels().min(CHANNELS) {
        if channel > 0 {
            cell.push(' ');
        }
        column.push_number(row, channel, &mut cell);
    }
    if column.channels() > CHANNELS {
        cell.push_str(" …");
    }
    cell
}

/// Shortens text from a store and escapes its control characters, which could otherwise control
/// the terminal.
fn readable(text: &str) -> String {
    let mut shown = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == WIDTH {
            shown.push('…');
            break;
        }
        shown.push(character);
    }
    printable(&shown)
}
