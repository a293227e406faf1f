//! A [`ColumnSource`] over decoded cells.

use zvf_format::{
    dictionary::{Code, DictionaryCodes},
    numeric::{Kind, NumericRows, Value},
};

use super::{ColumnRef, ColumnSource, ColumnType, Datum, FindError, Number, ResolvedColumn, Scope};

/// Columns borrowed from decoded cells. Row n of a predicate is row n of every cell.
///
/// ```
/// use zvf_format::dictionary::{Code, CodeDtype, DictionaryCodes};
/// use zvf_query::predicate::{Predicate, Scope, CellTable, Truth};
///
/// let stored = CodeDtype::with_missing(2)?;
/// let cell = stored.encode(&[Code::Category(1), Code::Missing, Code::Category(0)])?;
/// let codes = DictionaryCodes::parse(&cell, stored.dtype(), 2, stored.missing())?;
/// let mut table = CellTable::default();
/// table.add_categories(Scope::Object, "kind", codes, &["axon", "soma"])?;
///
/// let bound = Predicate::parse("kind != 'axon'")?.bind(&table)?;
/// let truths = [0, 1, 2].map(|row| bound.evaluate(&table, row));
/// assert_eq!(truths, [Truth::True, Truth::Unknown, Truth::False]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CellTable<'a> {
    columns: Vec<Entry<'a>>,
}

#[derive(Clone, Debug)]
struct Entry<'a> {
    scope: Scope,
    name: &'a str,
    data: Data<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Data<'a> {
    Rows(NumericRows<'a>),
    Categories(DictionaryCodes<'a>, &'a [&'a str]),
}

impl<'a> CellTable<'a> {
    /// Adds a column of numbers or bools without missing values.
    ///
    /// # Errors
    ///
    /// Returns [`TableError`] if the values are complex or the name is taken.
    pub fn add_numbers(
        &mut self,
        scope: Scope,
        name: &'a str,
        rows: NumericRows<'a>,
    ) -> Result<(), TableError> {
        match rows.dtype().kind() {
            kind @ (Kind::Complex64 | Kind::Complex128) => Err(TableError::Kind(kind)),
            _ => self.add(scope, name, Data::Rows(rows)),
        }
    }

    /// Adds a column of category codes with the text of each category.
    ///
    /// # Errors
    ///
    /// Returns [`TableError`] if the name is taken.
    pub fn add_categories(
        &mut self,
        scope: Scope,
        name: &'a str,
        codes: DictionaryCodes<'a>,
        categories: &'a [&'a str],
    ) -> Result<(), TableError> {
        self.add(scope, name, Data::Categories(codes, categories))
    }

    fn add(&mut self, scope: Scope, name: &'a str, data: Data<'a>) -> Result<(), TableError> {
        let taken = |entry: &Entry<'_>| entry.scope == scope && entry.name == name;
        if self.columns.iter().any(taken) {
            return Err(TableError::Duplicate);
        }
        self.columns.push(Entry { scope, name, data });
        Ok(())
    }
}

impl ColumnSource for CellTable<'_> {
    fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError> {
        let named = |entry: &Entry<'_>| {
            let scope = column.scope.is_none_or(|scope| scope == entry.scope);
            scope && entry.name == column.name
        };
        let entries = self.columns.iter().enumerate();
        let found: Vec<_> = entries.filter(|(_, entry)| named(entry)).collect();
        let (id, entry) = match found.as_slice() {
            [] => return Err(FindError::Absent),
            [one] => *one,
            several => {
                let scopes = several.iter().map(|(_, entry)| entry.scope);
                return Err(FindError::ambiguous(column, scopes, None));
            }
        };
        let (channels, column_type) = match entry.data {
            Data::Rows(rows) => {
                let column_type = match rows.dtype().kind() {
                    Kind::Bool => ColumnType::Bool,
                    Kind::Float32 => ColumnType::Float32,
                    _ => ColumnType::Numbers,
                };
                (rows.columns().get(), column_type)
            }
            Data::Categories(_, categories) => (1, ColumnType::Categories(categories.to_vec())),
        };
        Ok(ResolvedColumn {
            id,
            channels,
            column_type,
        })
    }

    fn cell(&self, id: usize, channel: u32, row: usize) -> Datum {
        match self.columns.get(id).map(|entry| entry.data) {
            Some(Data::Rows(rows)) => match rows.value(row, channel) {
                Some(Value::Bool(value)) => Datum::Bool(value),
                Some(Value::Int(value)) => Datum::Number(Number::Int(value)),
                Some(Value::UInt(value)) => Datum::Number(Number::UInt(value)),
                Some(Value::Float(value)) => Datum::Number(Number::Float(value)),
                Some(Value::Complex { .. }) | None => Datum::Missing,
            },
            Some(Data::Categories(codes, categories)) => match codes.get(row) {
                Some(Code::Category(code))
                    if usize::try_from(code).is_ok_and(|c| c < categories.len()) =>
                {
                    Datum::Category(code)
                }
                _ => Datum::Missing,
            },
            None => Datum::Missing,
        }
    }
}

/// Error of adding a column to a [`CellTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Values of this kind have no order and no literals.
    #[error("values of kind {} cannot be compared", .0.name())]
    Kind(Kind),
    /// The table already has a column of this scope and name.
    #[error("a column of this scope and name already exists")]
    Duplicate,
}
