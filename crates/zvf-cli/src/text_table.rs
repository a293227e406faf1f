//! Text tables for the terminal.

/// Formats rows as lines, with right-aligned columns that are two blanks apart.
pub(crate) fn align(rows: &[Vec<String>]) -> Vec<String> {
    lines(rows, |cell, width| format!("  {cell:>width$}"))
}

/// Formats rows as lines, with left-aligned columns that are two blanks apart.
pub(crate) fn align_left(rows: &[Vec<String>]) -> Vec<String> {
    let formatted = lines(rows, |cell, width| format!("  {cell:width$}"));
    let lines = formatted.iter().map(|line| line.trim_end().to_owned());
    lines.collect()
}

fn lines(rows: &[Vec<String>], pad: impl Fn(&str, usize) -> String) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| pad(cell, *width));
        cells.collect::<Vec<_>>().concat()
    };
    rows.iter().map(line).collect()
}
