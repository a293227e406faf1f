//! Columns of text cells, which become attributes of numbers or text.

use zvf::{Column, NumericColumn, numeric::Kind};

use crate::{
    FileFault,
    values::{EXACT_INTEGERS, narrow},
};

/// Type of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellType {
    /// True or false.
    Bool,
    /// Integers of 32 bits.
    Int32,
    /// Integers of 64 bits.
    Int64,
    /// Floats of 32 bits.
    Float32,
    /// Floats of 64 bits.
    Float64,
    /// Text.
    Text,
}

impl CellType {
    /// Checks a cell.
    ///
    /// # Errors
    ///
    /// [`FileFault::Number`] for text that is not a value of the type.
    pub(crate) fn check(self, text: &str) -> Result<(), FileFault> {
        let (fits, what) = match self {
            Self::Bool => (boolean(text).is_some(), "true or false"),
            Self::Int32 => (text.parse::<i32>().is_ok(), "an integer of 32 bits"),
            Self::Int64 => (text.parse::<i64>().is_ok(), "an integer of 64 bits"),
            Self::Float32 | Self::Float64 => (text.parse::<f64>().is_ok(), "a number"),
            Self::Text => (true, "text"),
        };
        if fits {
            return Ok(());
        }
        Err(FileFault::Number {
            what,
            text: text.chars().take(24).collect(),
        })
    }
}

/// Booleans of XML, and as Python writes them.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}

/// Returns whether a text is an integer that a 64-bit float may not hold.
fn is_large_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer
        && digits
            .parse()
            .map_or(true, |number: u64| number > EXACT_INTEGERS)
}

/// Checks that the values of columns with these numbers of rows fit into `limit` bytes.
///
/// # Errors
///
/// [`FileFault::Unpacked`] if they do not.
pub(crate) fn check_size(
    rows: impl IntoIterator<Item = usize>,
    limit: u64,
) -> Result<(), FileFault> {
    // A number, and whether the row has one.
    let size = |rows| u64::try_from(rows).unwrap_or(u64::MAX).saturating_mul(9);
    if rows.into_iter().map(size).fold(0, u64::saturating_add) > limit {
        Err(FileFault::Unpacked { limit })
    } else {
        Ok(())
    }
}

/// Cells of a column in one text. Rows that are not set have no value, and take no memory: a file of
/// many columns may set each in one row.
#[derive(Debug, Default)]
pub(crate) struct CellColumn {
    text: String,
    /// Rows that are set, ascending, and the end of the text of each.
    cells: Vec<(usize, usize)>,
    /// The value of other rows.
    default: Option<String>,
}

impl CellColumn {
    /// Sets the cell of a row; `false` if it or a later row is set already.
    pub(crate) fn set(&mut self, row: usize, text: &str) -> bool {
        if self.cells.last().is_some_and(|(last, _)| *last >= row) {
            return false;
        }
        self.text.push_str(text);
        self.cells.push((row, self.text.len()));
        true
    }

    /// Gives all rows that are not set a value.
    pub(crate) fn fill(&mut self, text: &str) {
        self.default = Some(text.to_owned());
    }

    /// Returns the cell of a row.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        // Most columns have all rows.
        let place = match self.cells.get(row) {
            Some((found, _)) if *found == row => Ok(row),
            _ => self.cells.binary_search_by_key(&row, |(row, _)| *row),
        };
        match place {
            Ok(place) => self.text_at(place),
            Err(_) => self.default.as_deref(),
        }
    }

    /// Returns the text of a cell, which are counted from 0.
    fn text_at(&self, place: usize) -> Option<&str> {
        let before = place.checked_sub(1).and_then(|place| self.cells.get(place));
        let start = before.map_or(0, |(_, end)| *end);
        let (_, end) = self.cells.get(place)?;
        self.text.get(start..*end)
    }

    /// Returns whether no row has a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.default.is_none()
    }

    /// Returns whether each of the first `rows` rows has a value.
    fn is_full(&self, rows: usize) -> bool {
        self.cells.len() >= rows || self.default.is_some()
    }

    /// Returns the cells that are set, without the default.
    fn present(&self) -> impl Iterator<Item = &str> {
        (0..self.cells.len()).filter_map(|place| self.text_at(place))
    }

    /// Returns the narrowest of int64, float64, bool and text that holds all cells. Integers that
    /// float64 would round are text.
    fn inferred(&self) -> CellType {
        let all = |fits: fn(&str) -> bool| self.present().all(fits);
        if all(|text| text.parse::<i64>().is_ok()) {
            CellType::Int64
        } else if all(|text| text.parse::<f64>().is_ok() && !is_large_integer(text)) {
            CellType::Float64
        } else if all(|text| boolean(text).is_some()) {
            CellType::Bool
        } else {
            CellType::Text
        }
    }

    /// Returns the ids of `rows` rows: int64 if all are integers in their shortest form, otherwise text,
    /// in which different ids stay different.
    pub(crate) fn ids(&self, name: &str, rows: usize) -> Column {
        let is_integer = |text: &str| {
            let number: Option<i64> = text.parse().ok();
            number.is_some_and(|number| number.to_string() == text)
        };
        let cell_type = if self.present().all(is_integer) {
            CellType::Int64
        } else {
            CellType::Text
        };
        self.column(name, rows, Some(cell_type))
    }

    /// Returns the attribute of `rows` rows. Without a type, the cells determine it. Integers become
    /// float64 if a row has no value and all of them are exact, otherwise text; booleans become text.
    pub(crate) fn column(&self, name: &str, rows: usize, declared: Option<CellType>) -> Column {
        let mut cell_type = declared.unwrap_or_else(|| self.inferred());
        if !self.is_full(rows) {
            let is_exact = || !self.present().any(is_large_integer);
            cell_type = match cell_type {
                CellType::Int32 | CellType::Int64 if is_exact() => CellType::Float64,
                CellType::Bool | CellType::Int32 | CellType::Int64 => CellType::Text,
                other => other,
            };
        }
        let cells = || (0..rows).map(|row| self.get(row));
        let floats =
            || cells().map(|cell| cell.and_then(|text| text.parse().ok()).unwrap_or(f64::NAN));
        let numbers: NumericColumn = match cell_type {
            CellType::Text => return Column::text(name, cells()),
            CellType::Bool => {
                let values = cells().map(|cell| u8::from(cell.and_then(boolean) == Some(true)));
                NumericColumn {
                    bytes: values.collect(),
                    ..NumericColumn::new(Kind::Bool, 1)
                }
            }
            CellType::Int32 => {
                let values = cells().map(|cell| cell.and_then(|text| text.parse::<i32>().ok()));
                values.map(Option::unwrap_or_default).collect()
            }
            CellType::Int64 => {
                let values = cells().map(|cell| cell.and_then(|text| text.parse::<i64>().ok()));
                values.map(Option::unwrap_or_default).collect()
            }
            CellType::Float32 => floats().map(narrow).collect(),
            CellType::Float64 => floats().collect(),
        };
        let mut column = Column::new(name, numbers);
        if !self.is_full(rows) {
            column.nulls = Some(cells().map(|cell| cell.is_none()).collect());
        }
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(cells: &[Option<&str>]) -> &'static str {
        let mut column = CellColumn::default();
        for (row, cell) in cells.iter().enumerate() {
            if let Some(cell) = cell {
                assert!(column.set(row, cell));
            }
        }
        match column.column("a", cells.len(), None).values {
            zvf::ColumnValues::Numeric(numbers) => numbers.kind.name(),
            zvf::ColumnValues::Dictionary { .. } => "text",
        }
    }

    #[test]
    fn cells_determine_the_type() {
        assert_eq!(kind(&[Some("1"), Some("-2")]), "int64");
        assert_eq!(kind(&[Some("1"), Some("2.5")]), "float64");
        assert_eq!(kind(&[Some("true"), Some("False")]), "bool");
        assert_eq!(kind(&[Some("1"), Some("a")]), "text");
        assert_eq!(kind(&[Some("1"), None]), "float64");
        assert_eq!(kind(&[Some("9007199254740993"), None]), "text");
        assert_eq!(kind(&[Some("true"), None]), "text");
        assert_eq!(kind(&[Some("9007199254740992"), Some("0.5")]), "float64");
        assert_eq!(kind(&[Some("9007199254740993"), Some("0.5")]), "text");
        assert_eq!(kind(&[Some("18446744073709551615"), Some("1")]), "text");
    }

    #[test]
    fn different_ids_stay_different() {
        let ids = |cells: [&str; 3]| {
            let mut column = CellColumn::default();
            for (row, cell) in cells.iter().enumerate() {
                assert!(column.set(row, cell));
            }
            column.ids("node_id", cells.len())
        };
        let numbers: NumericColumn = [-1_i64, i64::MAX, 7].into_iter().collect();
        let column = ids(["-1", "9223372036854775807", "7"]);
        assert_eq!(column, Column::new("node_id", numbers));
        for cells in [
            ["1.1", "1.10", "1.2"],
            ["007", "008", "7"],
            ["+1", "1", "2"],
            ["True", "False", "0"],
            ["nan", "inf", "1"],
            ["18446744073709551615", "18446744073709551614", "1"],
        ] {
            assert_eq!(ids(cells), Column::text("node_id", cells.map(Some)));
        }
    }

    #[test]
    fn rows_without_a_cell_have_the_default() {
        let mut column = CellColumn::default();
        assert!(column.is_empty());
        assert!(column.set(1, "a") && column.set(4, "") && column.set(5, "bc"));
        let rows = |column: &CellColumn| {
            let rows = (0..7).map(|row| column.get(row).map(str::to_owned));
            rows.collect::<Vec<_>>()
        };
        let text = |text: &str| Some(text.to_owned());
        let expected = [None, text("a"), None, None, text(""), text("bc"), None];
        assert_eq!(rows(&column), expected);
        column.fill("d");
        let expected = ["d", "a", "d", "d", "", "bc", "d"].map(text);
        assert_eq!(rows(&column), expected);
        assert!(column.column("a", 7, None).nulls.is_none());
    }

    #[test]
    fn a_row_is_set_once() {
        let mut column = CellColumn::default();
        assert!(column.set(1, "a") && !column.set(1, "b"));
        let column = column.column("a", 2, None);
        assert!(column.is_null(0));
        assert_eq!(column.text_at(1), Some("a"));
    }
}
