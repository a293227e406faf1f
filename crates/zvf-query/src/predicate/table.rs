//! Cells of a store as columns.

use zvf_format::{
    dictionary::{Code, DictionaryCodes},
    numeric::{Kind, NumericRows, Value},
};

use super::{ColumnRef, ColumnSource, ColumnType, Datum, FindError, Number, ResolvedColumn, Scope};

/// Columns whose rows are those of cells, borrowed; row n of a predicate is
/// row n of each.
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
    Words(DictionaryCodes<'a>, &'a [&'a str]),
}

impl<'a> CellTable<'a> {
    /// Adds numbers or bools; no value of them is missing.
    ///
    /// # Errors
    ///
    /// [`TableError`] when they are complex or the name is taken.
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

    /// Adds codes and the words they stand for.
    ///
    /// # Errors
    ///
    /// [`TableError`] when the name is taken.
    pub fn add_categories(
        &mut self,
        scope: Scope,
        name: &'a str,
        codes: DictionaryCodes<'a>,
        words: &'a [&'a str],
    ) -> Result<(), TableError> {
        self.add(scope, name, Data::Words(codes, words))
    }

    fn add(&mut self, scope: Scope, name: &'a str, data: Data<'a>) -> Result<(), TableError> {
        let taken = |entry: &Entry<'_>| entry.scope == scope && entry.name == name;
        if self.columns.iter().any(taken) {
            return Err(TableError::Taken);
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
        let mut found = entries.filter(|(_, entry)| named(entry));
        let (id, entry) = found.next().ok_or(FindError::Absent)?;
        if found.next().is_some() {
            return Err(FindError::Ambiguous);
        }
        let (channels, values) = match entry.data {
            Data::Rows(rows) => {
                let values = match rows.dtype().kind() {
                    Kind::Bool => ColumnType::Bool,
                    _ => ColumnType::Numbers,
                };
                (rows.columns().get(), values)
            }
            Data::Words(_, words) => (1, ColumnType::Categories(words.to_vec())),
        };
        Ok(ResolvedColumn {
            id,
            channels,
            values,
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
            Some(Data::Words(codes, words)) => match codes.get(row) {
                Some(Code::Category(code))
                    if usize::try_from(code).is_ok_and(|c| c < words.len()) =>
                {
                    Datum::Category(code)
                }
                _ => Datum::Missing,
            },
            None => Datum::Missing,
        }
    }
}

/// Why a column is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Values of this kind have no order and no literal.
    #[error("values of kind {} do not compare", .0.name())]
    Kind(Kind),
    /// The scope has a column of this name.
    #[error("there is a column of this scope and name")]
    Taken,
}
