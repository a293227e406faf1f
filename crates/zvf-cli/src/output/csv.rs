//! csv: text in UTF-8, a row a line, a first line of names.
//!
//! Fields are quoted where RFC 4180 asks for it, and where white space at an end
//! could get lost. Lines end in `\n`. Floats are the shortest text that reads
//! back as the same number of their type; complex numbers are as `1.0+2.0j`.

use std::io::{self, Write};

use zvf::query::QueryResult;

use super::{
    Table, WriteError,
    staged::{Sink, Staged},
};

pub(super) fn write(answer: &QueryResult, staged: &mut Staged) -> Result<Vec<String>, WriteError> {
    let vertices = Table::vertices(answer)?;
    staged.write(|sink| Ok(rows(&vertices, sink)?))?;
    for (part, table) in Table::beside(answer)? {
        staged.write_beside(part, |sink| Ok(rows(&table, sink)?))?;
    }
    Ok(Vec::new())
}

fn rows(table: &Table<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut line = String::new();
    for column in &table.columns {
        for channel in 0..column.channels() {
            push_field(&column.header(channel), &mut line);
            line.push(',');
        }
    }
    end(&mut line, sink)?;
    for row in 0..table.rows {
        for column in &table.columns {
            for channel in 0..column.channels() {
                if column.is_missing(row) {
                    // An empty field.
                } else if let Some(word) = column.word(row) {
                    push_field(word, &mut line);
                } else {
                    column.push_number(row, channel, &mut line);
                }
                line.push(',');
            }
        }
        end(&mut line, sink)?;
    }
    Ok(())
}

/// The comma after the last field goes.
fn end(line: &mut String, sink: &mut Sink<'_>) -> io::Result<()> {
    line.pop();
    line.push('\n');
    sink.write_all(line.as_bytes())?;
    line.clear();
    Ok(())
}

/// Empty text is in quotes: without, it is a missing value.
fn push_field(text: &str, line: &mut String) {
    let is_plain =
        !text.is_empty() && text.trim() == text && !text.contains([',', '"', '\n', '\r']);
    if is_plain {
        line.push_str(text);
        return;
    }
    line.push('"');
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            line.push_str("\"\"");
        }
        line.push_str(part);
    }
    line.push('"');
}
