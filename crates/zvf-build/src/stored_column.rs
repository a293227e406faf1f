//! Attributes as they are stored: numbers and metadata.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;
use zvf_format::{
    dictionary::{Code, CodeDtype},
    numeric::{ByteOrder, Dtype, Kind},
};

use crate::error::BuildError;
use zvf_model::{
    array::{CellAttribute, CellAttributeRole, Dictionary, TableType},
    column::{Column, ColumnValues, NumericColumn},
    root::AttributeDeclarations,
    scope::Scope,
    zarr::DataType,
};

/// Attribute whose values are stored in cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredColumn {
    pub(crate) name: String,
    /// Values, or dictionary codes of text.
    pub(crate) numbers: NumericColumn,
    /// Metadata of the array.
    pub(crate) metadata: CellAttribute,
}

impl StoredColumn {
    /// Converts a column; text becomes codes of a sorted dictionary, null floats become NaN.
    pub(crate) fn of(
        column: Column,
        role: CellAttributeRole,
        current: bool,
    ) -> Result<Self, BuildError> {
        let (numbers, dictionary) = match column.values {
            ColumnValues::Numeric(mut numbers) => {
                if let Some(nulls) = &column.nulls {
                    set_nan(&column.name, &mut numbers, nulls)?;
                }
                (numbers, None)
            }
            ColumnValues::Dictionary { .. } => {
                let (numbers, dictionary) = coded(&column)?;
                (numbers, Some(dictionary))
            }
        };
        let columns = numbers.row_len();
        let extent = (columns > 1).then_some(columns as u64);
        let names = (0..columns).map(|at| format!("ch{at}"));
        let metadata = CellAttribute {
            channel_names: extent.map(|_| names.collect()),
            row_shape: current.then(|| extent.into_iter().collect()),
            dictionary,
            ..CellAttribute::new(role, &column.name, little(numbers.kind))
        };
        Ok(Self {
            name: column.name,
            numbers,
            metadata,
        })
    }

    /// Sets the channel names of a declaration of the attribute, if their number is right.
    pub(crate) fn with_channel_names(
        mut self,
        specs: &AttributeDeclarations,
        scope: Scope,
    ) -> Self {
        let declared = || {
            let names = specs
                .get(scope.name())?
                .get(&self.name)?
                .get("channel_names")?
                .as_array()?
                .iter();
            names
                .map(|name| name.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
        };
        if let Some(names) = declared().filter(|names| names.len() == self.numbers.row_len()) {
            self.metadata.channel_names = Some(names);
        }
        self
    }

    /// Copies the bytes of the given rows, which exist, in order.
    pub(crate) fn gather(&self, rows: impl ExactSizeIterator<Item = usize>) -> Vec<u8> {
        self.numbers.take_existing(rows).bytes
    }
}

/// Returns the type of stored numbers.
pub(crate) fn little(kind: Kind) -> Dtype {
    Dtype::new(kind, ByteOrder::Little)
}

/// Stores NaN in rows without a value.
///
/// # Errors
///
/// [`BuildError::NullInteger`] if a null row has another type: a vertex has no place for it.
pub(crate) fn set_nan(
    name: &str,
    numbers: &mut NumericColumn,
    nulls: &[bool],
) -> Result<(), BuildError> {
    if !nulls.contains(&true) {
        return Ok(());
    }
    let Some(nan) = numbers.kind.nan() else {
        return Err(BuildError::NullInteger(name.to_owned()));
    };
    let size = numbers.row_size();
    let rows = numbers.bytes.chunks_exact_mut(size).zip(nulls);
    for (row, _) in rows.filter(|(_, is_null)| **is_null) {
        row.chunks_exact_mut(nan.len())
            .for_each(|value| value.copy_from_slice(nan));
    }
    Ok(())
}

/// Checks that the type of a column can express its rows without a value.
///
/// # Errors
///
/// [`BuildError::NullInteger`] as [`set_nan`].
pub(crate) fn check_nulls(column: &Column) -> Result<(), BuildError> {
    let has_nulls = column
        .nulls
        .as_ref()
        .is_some_and(|nulls| nulls.contains(&true));
    match &column.values {
        ColumnValues::Numeric(numbers) if has_nulls && numbers.kind.nan().is_none() => {
            Err(BuildError::NullInteger(column.name.clone()))
        }
        _ => Ok(()),
    }
}

/// Encodes text as codes of a sorted dictionary.
fn coded(column: &Column) -> Result<(NumericColumn, Dictionary), BuildError> {
    let words: BTreeSet<&str> = column.texts().flatten().collect();
    let too_many = || BuildError::UnsupportedKind {
        what: "text attribute",
        name: column.name.clone(),
        kind: format!("{} words", words.len()),
        profile: "any",
    };
    let count = u32::try_from(words.len()).map_err(|_| too_many())?;
    let dtype = if column.texts().any(|text| text.is_none()) {
        CodeDtype::with_missing(count).map_err(|_| too_many())?
    } else {
        CodeDtype::new(count)
    };
    let numbers: BTreeMap<&str, u32> = words.iter().copied().zip(0..).collect();
    let code = |text: Option<&str>| {
        let number = text.and_then(|text| numbers.get(text));
        number.map_or(Code::Missing, |number| Code::Category(*number))
    };
    let codes: Vec<Code> = column.texts().map(code).collect();
    let bytes = dtype.encode(&codes).map_err(|_| too_many())?;
    let dictionary = Dictionary {
        categories: words.into_iter().map(Value::from).collect(),
        ordered: false,
        fill: dtype.missing(),
    };
    let numbers = NumericColumn {
        bytes,
        ..NumericColumn::new(dtype.dtype().kind(), 1)
    };
    Ok((numbers, dictionary))
}

/// Column of an object or group table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    /// Type of the values.
    pub(crate) values: TableType,
    /// Size of a value in bytes.
    pub(crate) size: usize,
    pub(crate) columns: usize,
    /// Rows, with the fill value for absent ones.
    pub(crate) bytes: Vec<u8>,
    /// Fill value as JSON and as bytes.
    pub(crate) fill: (Value, Vec<u8>),
    /// Presence of each row.
    pub(crate) present: Vec<bool>,
}

impl TableColumn {
    /// Converts a column, taking the row that `rows` gives for each entry; `None` and null rows
    /// are absent.
    pub(crate) fn of(column: &Column, rows: &[Option<usize>]) -> Result<Self, BuildError> {
        match &column.values {
            ColumnValues::Numeric(numbers) if column.nulls.is_none() => {
                Self::numbers(&column.name, numbers, rows)
            }
            ColumnValues::Numeric(numbers) => {
                let present = |row: &Option<usize>| row.filter(|row| !column.is_null(*row));
                let rows: Vec<Option<usize>> = rows.iter().map(present).collect();
                Self::numbers(&column.name, numbers, &rows)
            }
            ColumnValues::Dictionary { .. } => {
                let texts = rows.iter().flatten().filter_map(|row| column.text_at(*row));
                Ok(Self::text(column, rows, &unused_text(texts)))
            }
        }
    }

    fn numbers(
        name: &str,
        numbers: &NumericColumn,
        rows: &[Option<usize>],
    ) -> Result<Self, BuildError> {
        // Booleans have no value left for absent rows.
        let kind = match numbers.kind {
            Kind::Bool if rows.contains(&None) => Kind::UInt8,
            kind => kind,
        };
        let mut search = FillSearch::new(kind, numbers.row_len());
        let present = rows.iter().flatten();
        for row in present.filter_map(|row| numbers.row(*row)) {
            search.exclude(row);
        }
        let fill = search.found(name)?;
        Ok(Self::filled(name, search.kind, numbers, rows, fill))
    }

    /// Creates a column of numbers of type `kind`, with this fill value in absent rows.
    fn filled(
        name: &str,
        kind: Kind,
        numbers: &NumericColumn,
        rows: &[Option<usize>],
        fill: (Value, Vec<u8>),
    ) -> Self {
        let absent = fill.1.repeat(numbers.row_len());
        let mut bytes = Vec::with_capacity(rows.len() * absent.len());
        for row in rows {
            bytes.extend_from_slice(row.and_then(|row| numbers.row(row)).unwrap_or(&absent));
        }
        Self {
            name: name.to_owned(),
            values: little(kind).into(),
            size: kind.size(),
            columns: numbers.row_len(),
            bytes,
            fill,
            present: rows.iter().map(Option::is_some).collect(),
        }
    }

    /// Creates a column of text, with the text `fill` in absent rows.
    fn text(column: &Column, rows: &[Option<usize>], fill: &str) -> Self {
        let of = |row: &Option<usize>| row.and_then(|row| column.text_at(row));
        let texts = rows.iter().filter_map(of).chain([fill]);
        let letters = texts
            .map(|text| text.chars().count())
            .max()
            .unwrap_or(0)
            .max(1);
        let size = letters * 4;
        let mut bytes = Vec::with_capacity(rows.len() * size);
        for row in rows {
            bytes.extend(utf32(of(row).unwrap_or(fill), size));
        }
        Self {
            name: column.name.clone(),
            values: TableType::Text(letters as u64),
            size,
            columns: 1,
            bytes,
            fill: (fill.into(), utf32(fill, size)),
            present: rows.iter().map(|row| of(row).is_some()).collect(),
        }
    }

    /// Returns whether the column holds text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.values, TableType::Text(_))
    }

    /// Returns the kind of the numbers; `None` for text.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.values {
            TableType::Number(dtype) => Some(dtype.kind()),
            TableType::Text(_) => None,
        }
    }

    /// Returns the type of the array.
    pub(crate) fn data_type(&self) -> DataType {
        let bytes = self.size as u64;
        self.kind()
            .map_or(DataType::FixedText { bytes }, DataType::Number)
    }

    /// Returns the shape of the array.
    pub(crate) fn shape(&self) -> Vec<u64> {
        let columns = (self.columns > 1).then_some(self.columns as u64);
        let rows = self.present.len() as u64;
        [rows].into_iter().chain(columns).collect()
    }
}

/// Search of a fill value that no row of a table consists of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FillSearch {
    /// Type of the stored values.
    pub(crate) kind: Kind,
    pub(crate) columns: usize,
    /// Values in order of preference, the convention of the format first.
    candidates: Vec<(Value, Vec<u8>)>,
    /// Values that no row consists of so far. There are up to 770 candidates, so rows look
    /// themselves up.
    possible: HashSet<Vec<u8>>,
}

impl FillSearch {
    pub(crate) fn new(kind: Kind, columns: usize) -> Self {
        let candidates = fills(kind);
        let possible = candidates.iter().map(|(_, fill)| fill.clone()).collect();
        Self {
            kind,
            columns,
            candidates,
            possible,
        }
    }

    /// Returns the size of a row.
    pub(crate) fn row_size(&self) -> usize {
        self.kind.size() * self.columns
    }

    /// Excludes the value that a row consists of.
    pub(crate) fn exclude(&mut self, row: &[u8]) {
        let kind = self.kind;
        let mut values = row.chunks_exact(kind.size());
        let Some(first) = values.next() else {
            return self.possible.clear();
        };
        if !values.all(|value| same(kind, value, first)) {
            return;
        }
        if is_nan(kind, first) {
            self.possible.retain(|fill| !is_nan(kind, fill));
        } else {
            self.possible.remove(first);
        }
    }

    /// Returns the fill value as JSON and as bytes; `name` is that of the attribute. That of booleans
    /// is a value, which does not stand for absent rows.
    pub(crate) fn found(&self, name: &str) -> Result<(Value, Vec<u8>), BuildError> {
        if self.kind == Kind::Bool {
            return Ok((false.into(), vec![0]));
        }
        let mut candidates = self.candidates.iter();
        let first = candidates.find(|(_, fill)| self.possible.contains(fill));
        first
            .cloned()
            .ok_or_else(|| BuildError::NoFillValue(name.to_owned()))
    }
}

/// Returns whether two values are equal, counting any two NaNs as equal.
fn same(kind: Kind, a: &[u8], b: &[u8]) -> bool {
    a == b || (is_nan(kind, a) && is_nan(kind, b))
}

fn is_nan(kind: Kind, bytes: &[u8]) -> bool {
    match (kind, bytes) {
        (Kind::Float16, &[a, b]) => half::f16::from_le_bytes([a, b]).is_nan(),
        (Kind::Float32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).is_nan(),
        (Kind::Float64, bytes) => {
            <[u8; 8]>::try_from(bytes).is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan())
        }
        _ => false,
    }
}

/// Encodes text as UTF-32, padded with zeros to `size` bytes.
fn utf32(text: &str, size: usize) -> Vec<u8> {
    let letters = text.chars();
    let mut bytes: Vec<u8> = letters
        .flat_map(|letter| u32::from(letter).to_le_bytes())
        .collect();
    bytes.resize(size.max(bytes.len()), 0);
    bytes
}

/// Rebuilds a table column from stored rows; `None` is absent.
///
/// A table without absent rows keeps the fill value `kept`. Otherwise the fill value is one that no
/// row has.
pub(crate) fn restored(
    name: &str,
    kind: Option<Kind>,
    columns: usize,
    rows: &[Option<Vec<u8>>],
    kept: Option<&(Value, Vec<u8>)>,
) -> Result<TableColumn, BuildError> {
    let given: Vec<Option<usize>> = (0..rows.len())
        .map(|at| rows[at].as_ref().map(|_| at))
        .collect();
    let kept = kept.filter(|_| !given.contains(&None));
    match kind {
        Some(kind) => {
            let mut numbers = NumericColumn::new(kind, columns as u32);
            let size = numbers.row_size();
            for row in rows {
                match row {
                    Some(row) => numbers.bytes.extend_from_slice(row),
                    None => numbers.bytes.resize(numbers.bytes.len() + size, 0),
                }
            }
            match kept {
                Some(fill) => Ok(TableColumn::filled(
                    name,
                    kind,
                    &numbers,
                    &given,
                    fill.clone(),
                )),
                None => TableColumn::numbers(name, &numbers, &given),
            }
        }
        None => {
            let text = |row: &Option<Vec<u8>>| {
                let letters = row
                    .as_ref()?
                    .chunks_exact(4)
                    .map(|letter| {
                        let mut bytes = [0; 4];
                        bytes.copy_from_slice(letter);
                        u32::from_le_bytes(bytes)
                    })
                    .map(|letter| char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER));
                let text: String = letters.collect();
                Some(text.trim_end_matches('\0').to_owned())
            };
            let column = Column::text(name, rows.iter().map(text));
            let fill = match kept {
                Some(_) => String::new(),
                None => unused_text(column.texts().flatten()),
            };
            Ok(TableColumn::text(&column, &given, &fill))
        }
    }
}

/// Returns a text that differs from all of `texts`: the empty text, the convention of the format, if
/// it is not among them.
fn unused_text<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    // Zeros at the end of a stored text are padding.
    let texts: HashSet<&str> = texts.map(|text| text.trim_end_matches('\0')).collect();
    let mut fill = String::new();
    while texts.contains(fill.as_str()) {
        fill.push('-');
    }
    fill
}

/// Returns candidate fill values, the convention of the format first.
fn fills(kind: Kind) -> Vec<(Value, Vec<u8>)> {
    macro_rules! whole {
        ($number:ty, $first:expr, $second:expr) => {{
            let mut all: Vec<$number> = vec![$first, $second];
            // Any unused value will do. Labels hardly use all of these values of a wide type.
            let (least, most) = (<$number>::MIN, <$number>::MAX);
            let near = <$number>::try_from(u8::MAX).unwrap_or(most);
            all.extend(0..=near);
            all.extend(most - near..=most);
            all.extend(least..=least + near);
            let all = all.into_iter();
            all.map(|n| (n.into(), n.to_le_bytes().to_vec())).collect()
        }};
    }
    macro_rules! float {
        ($number:ty) => {{
            let others = [<$number>::MIN, <$number>::MAX, 0.0, -1.0];
            let others = others.into_iter();
            let nan = ("NaN".into(), <$number>::NAN.to_le_bytes().to_vec());
            let others = others.map(|n| (n.into(), n.to_le_bytes().to_vec()));
            [nan].into_iter().chain(others).collect()
        }};
    }
    match kind {
        Kind::Float16 => {
            let nan = half::f16::NAN.to_le_bytes().to_vec();
            let min = half::f16::MIN;
            let min = (min.to_f64().into(), min.to_le_bytes().to_vec());
            vec![("NaN".into(), nan), min]
        }
        Kind::Float32 => float!(f32),
        Kind::Float64 => float!(f64),
        Kind::Int8 => whole!(i8, i8::MIN, i8::MAX),
        Kind::Int16 => whole!(i16, i16::MIN, i16::MAX),
        Kind::Int32 => whole!(i32, i32::MIN, i32::MAX),
        Kind::Int64 => whole!(i64, i64::MIN, i64::MAX),
        Kind::UInt16 => whole!(u16, u16::MAX, 0),
        Kind::UInt32 => whole!(u32, u32::MAX, 0),
        Kind::UInt64 => whole!(u64, u64::MAX, 0),
        Kind::Complex64 => complex::<4>(&f32::NAN.to_le_bytes()),
        Kind::Complex128 => complex::<8>(&f64::NAN.to_le_bytes()),
        _ => whole!(u8, u8::MAX, 0),
    }
}

fn complex<const N: usize>(nan: &[u8; N]) -> Vec<(Value, Vec<u8>)> {
    vec![(["NaN", "NaN"].into(), nan.repeat(2))]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attribute(kind: Kind, bytes: &[u8]) -> Column {
        let numbers = NumericColumn {
            bytes: bytes.to_vec(),
            ..NumericColumn::new(kind, 1)
        };
        Column::new("a", numbers)
    }

    #[test]
    fn null_floats_of_vertices_are_nan() {
        let column = Column {
            nulls: Some(vec![true, false]),
            ..Column::new("radius", NumericColumn::float32(1, [1.5, 2.5]))
        };
        let stored = StoredColumn::of(column, CellAttributeRole::Vertex, true).unwrap();
        let values = stored.numbers.to_vec::<f32>().unwrap();
        assert!(values[0].is_nan());
        assert!((values[1] - 2.5).abs() < f32::EPSILON);
        let halves = NumericColumn {
            bytes: vec![0x00, 0x3e, 0x00, 0x41],
            ..NumericColumn::new(Kind::Float16, 1)
        };
        let column = Column {
            nulls: Some(vec![true, false]),
            ..Column::new("radius", halves)
        };
        let stored = StoredColumn::of(column, CellAttributeRole::Vertex, true).unwrap();
        assert_eq!(stored.numbers.bytes, [0x00, 0x7e, 0x00, 0x41]);
    }

    #[test]
    fn fill_value_never_equals_a_present_value() {
        let check = |kind: Kind, bytes: &[u8], expected: Option<Value>| {
            let rows: Vec<_> = (0..bytes.len() / kind.size())
                .map(Some)
                .chain([None])
                .collect();
            let column = TableColumn::of(&attribute(kind, bytes), &rows);
            assert_eq!(
                column.ok().map(|column| column.fill.0),
                expected,
                "{kind:?}"
            );
        };
        check(Kind::UInt8, &[1, 2], Some(json!(255)));
        check(Kind::UInt8, &[255, 2], Some(json!(0)));
        check(Kind::UInt8, &[255, 0, 1], Some(json!(2)));
        let all: Vec<u8> = (0..=255).collect();
        check(Kind::UInt8, &all, None);
        check(Kind::Bool, &[0, 1], Some(json!(255)));
        let complete =
            TableColumn::of(&attribute(Kind::Bool, &[0, 1]), &[Some(0), Some(1)]).unwrap();
        assert_eq!(
            (complete.kind(), complete.fill.0),
            (Some(Kind::Bool), json!(false))
        );
        check(Kind::Float32, &1f32.to_le_bytes(), Some(json!("NaN")));
        check(
            Kind::Float32,
            &(-f32::NAN).to_le_bytes(),
            Some(json!(f32::MIN)),
        );
        check(Kind::Int32, &i32::MIN.to_le_bytes(), Some(json!(i32::MAX)));
        let labels: Vec<u8> = (0..998u16)
            .chain([u16::MAX])
            .flat_map(u16::to_le_bytes)
            .collect();
        check(Kind::UInt16, &labels, Some(json!(65_280)));
        let labels: Vec<u8> = (0..998i32)
            .chain([i32::MIN, i32::MAX])
            .flat_map(i32::to_le_bytes)
            .collect();
        check(Kind::Int32, &labels, Some(json!(i32::MAX - 255)));
        let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        check(Kind::UInt16, &all, None);
    }

    #[test]
    fn fill_text_never_equals_a_present_text() {
        let check = |texts: &[Option<&str>], expected: &str| {
            let rows: Vec<_> = (0..texts.len()).map(Some).chain([None]).collect();
            let texts = texts.iter().map(|text| text.map(str::to_owned));
            let column = TableColumn::of(&Column::text("a", texts), &rows).unwrap();
            assert_eq!(column.fill.0, json!(expected));
            assert_eq!(column.bytes.len(), rows.len() * column.size);
        };
        check(&[Some("-")], "");
        check(&[None, Some("")], "-");
        check(&[Some("--"), Some("\0"), Some("-")], "---");
    }

    #[test]
    fn rows_of_several_columns_exclude_the_value_that_fills_them() {
        let found = |rows: &[[f32; 2]]| {
            let mut search = FillSearch::new(Kind::Float32, 2);
            for row in rows {
                search.exclude(&row.map(f32::to_le_bytes).concat());
            }
            search.found("a").unwrap().0
        };
        let lowest = json!(f32::MIN);
        assert_eq!(found(&[[1.0, 2.0], [f32::NAN, 1.0]]), json!("NaN"));
        assert_eq!(found(&[[f32::NAN, -f32::NAN]]), lowest);
        assert_eq!(found(&[[f32::NAN; 2], [f32::MIN, 0.0]]), lowest);
        assert_ne!(found(&[[f32::NAN; 2], [f32::MIN; 2]]), lowest);
    }
}
