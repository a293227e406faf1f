//! Text tables for the terminal.

/// Formats rows as lines, with right-aligned columns that are two blanks apart.
pub(crate) fn align(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("  {cell:>width$}"));
        cells.collect::<Vec<_>>().concat()
    };
    rows.iter().map(line).collect()
}
