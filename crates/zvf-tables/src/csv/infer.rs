//! Type inference for the columns of csv.

use zvf::{ColumnValues, NumericColumn, numeric::Kind};

use super::record::CsvField;
use crate::table::{
    ColumnError, CsvError,
    column::{FirstText, NullPolicy},
};

/// Maximum length of a field in an error.
const MAX_SHOWN_CHARS: usize = 40;

/// Maximum integer up to which float64 represents all.
const MAX_EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
/// Number of digits of [`MAX_EXACT`].
const MIN_INEXACT_DIGITS: usize = 16;

/// The types that the fields of a column have ruled out so far.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is ruled out by itself")]
pub(super) struct TypeInference {
    rows: usize,
    has_value: bool,
    /// A field with a value is not in quotes.
    pub(super) has_unquoted: bool,
    no_bool: bool,
    no_integer: bool,
    no_float: bool,
    no_complex: bool,
    is_negative: bool,
    is_unsigned: bool,
    /// The row of the first integer that float64 cannot represent exactly.
    inexact_row: Option<usize>,
    /// The first field that is not a number.
    first_text: Option<FirstText>,
}

impl TypeInference {
    pub(super) fn observe(&mut self, field: CsvField<'_>, line: u64) {
        let row = self.rows;
        self.rows = row.saturating_add(1);
        if field.is_missing() {
            return;
        }
        let follows_numbers = self.has_value && !self.no_complex;
        self.has_value = true;
        self.has_unquoted |= !field.is_quoted;
        let text = field.text.trim();
        self.no_bool = self.no_bool || bool_of(text).is_none();
        if self.inexact_row.is_none() && is_inexact(text) {
            self.inexact_row = Some(row);
        }
        if !self.no_integer {
            if let Ok(value) = text.parse::<i64>() {
                self.is_negative |= value < 0;
                return;
            }
            if text.parse::<u64>().is_ok() {
                self.is_unsigned = true;
                return;
            }
            self.no_integer = true;
        }
        self.no_float = self.no_float || text.parse::<f64>().is_err();
        if self.no_float {
            self.no_complex = self.no_complex || complex(text).is_none();
        }
        if self.no_complex && self.first_text.is_none() {
            let text = text.chars().take(MAX_SHOWN_CHARS).collect();
            self.first_text = Some(FirstText {
                line,
                text,
                follows_numbers,
            });
        }
    }

    /// Returns the number of fields.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns whether all fields with a value are in quotes.
    pub(super) fn is_quoted(&self) -> bool {
        self.has_value && !self.has_unquoted
    }

    /// Rules out all types but text.
    pub(super) fn set_text(&mut self) {
        self.no_bool = true;
        self.no_integer = true;
        self.no_float = true;
        self.no_complex = true;
    }

    /// Returns the first field that is not a number, if the column is text because of it.
    pub(super) fn into_first_text(self) -> Option<FirstText> {
        self.first_text.filter(|_| self.no_bool)
    }

    /// Returns the kind of the numbers; `None` for text.
    fn kind(&self) -> Result<Option<Kind>, ColumnError> {
        let kind = match self {
            // Without rows, the kind must be valid for both axes and ids.
            Self { rows: 0, .. } => Some(Kind::Int64),
            Self {
                has_value: false, ..
            } => None,
            Self { no_bool: false, .. } => Some(Kind::Bool),
            Self {
                no_integer: false, ..
            } if !self.is_unsigned => Some(Kind::Int64),
            Self {
                no_integer: false, ..
            } if !self.is_negative => Some(Kind::UInt64),
            Self {
                no_integer: false, ..
            } => return Err(ColumnError::Wide),
            Self {
                no_float: false, ..
            } => Some(Kind::Float64),
            Self {
                no_complex: false, ..
            } => Some(Kind::Complex128),
            _ => None,
        };
        match (kind, self.inexact_row) {
            (Some(Kind::Float64 | Kind::Complex128), Some(row)) => Err(ColumnError::Inexact(row)),
            (kind, _) => Ok(kind),
        }
    }
}

/// Returns whether the words of a column would be read as numbers or bools.
pub(super) fn is_other_than_text<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let mut inferred = TypeInference::default();
    for text in words {
        let is_quoted = false;
        inferred.observe(CsvField { text, is_quoted }, 0);
        if text.is_empty() || inferred.first_text.is_some() && inferred.no_bool {
            return false;
        }
    }
    inferred.has_value && inferred.kind() != Ok(None)
}

/// Rows of a column that is being read.
#[derive(Debug)]
enum FieldValues {
    Numbers(NumericColumn),
    Text(Vec<Option<String>>),
}

/// A column that is being read.
#[derive(Debug)]
pub(super) struct InferredValues {
    values: FieldValues,
    missing: Vec<bool>,
    has_missing: bool,
}

impl InferredValues {
    pub(super) fn new(inferred: &TypeInference) -> Result<Self, ColumnError> {
        let values = match inferred.kind()? {
            Some(kind) => FieldValues::Numbers(NumericColumn::new(kind, 1)),
            None => FieldValues::Text(Vec::new()),
        };
        Ok(Self {
            values,
            missing: Vec::new(),
            has_missing: false,
        })
    }

    pub(super) fn push(
        &mut self,
        field: CsvField<'_>,
        policy: NullPolicy,
        column: &str,
    ) -> Result<(), CsvError> {
        let is_missing = field.is_missing();
        match &mut self.values {
            FieldValues::Text(texts) => texts.push((!is_missing).then(|| field.text.to_owned())),
            FieldValues::Numbers(numbers) if is_missing => {
                if policy == NullPolicy::Reject {
                    let column = column.to_owned();
                    return Err(CsvError::Missing { column });
                }
                self.has_missing = true;
                self.missing.push(true);
                let size = numbers.row_size();
                numbers
                    .bytes
                    .resize(numbers.bytes.len().saturating_add(size), 0);
            }
            FieldValues::Numbers(numbers) => {
                if policy != NullPolicy::Reject {
                    self.missing.push(false);
                }
                let pushed = push(field.text.trim(), numbers);
                pushed.ok_or(CsvError::Changed)?;
            }
        }
        Ok(())
    }

    /// Returns the values and a mask of the missing ones, which is empty if none is missing.
    pub(super) fn finish(self) -> (ColumnValues, Vec<bool>) {
        let missing = if self.has_missing {
            self.missing
        } else {
            Vec::new()
        };
        let values = match self.values {
            FieldValues::Numbers(numbers) => numbers.into(),
            FieldValues::Text(texts) => ColumnValues::text(texts),
        };
        (values, missing)
    }
}

fn push(text: &str, numbers: &mut NumericColumn) -> Option<()> {
    let bytes = &mut numbers.bytes;
    match numbers.kind {
        Kind::Bool => bytes.push(u8::from(bool_of(text)?)),
        Kind::Int64 => bytes.extend(text.parse::<i64>().ok()?.to_le_bytes()),
        Kind::UInt64 => {
            // Accepts `-0`, which u64 does not parse.
            let value: u64 = text.parse::<i128>().ok()?.try_into().ok()?;
            bytes.extend(value.to_le_bytes());
        }
        Kind::Float64 => bytes.extend(text.parse::<f64>().ok()?.to_le_bytes()),
        _ => {
            let (re, im) = complex(text)?;
            bytes.extend(re.to_le_bytes());
            bytes.extend(im.to_le_bytes());
        }
    }
    Some(())
}

/// Returns whether a field is an integer, without point or exponent, that is too large for float64
/// to represent each integer.
fn is_inexact(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Shorter integers are smaller.
    digits.len() >= MIN_INEXACT_DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.parse::<u64>().is_ok_and(|value| value <= MAX_EXACT)
}

/// Parses a bool as zvf, Python or spreadsheets write it.
fn bool_of(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Parses a complex number such as `1.0-2.5j`, or a real number.
fn complex(text: &str) -> Option<(f64, f64)> {
    let Some(parts) = text.strip_suffix('j') else {
        return Some((text.parse().ok()?, 0.0));
    };
    let mut signs = parts.char_indices().skip(1).filter(|(at, mark)| {
        let before = parts.get(..*at).unwrap_or_default();
        matches!(mark, '+' | '-') && !before.ends_with(['e', 'E'])
    });
    let (re, im) = parts.split_at(signs.next()?.0);
    Some((re.parse().ok()?, im.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], expected: &Result<Option<Kind>, ColumnError>) {
        let mut inferred = TypeInference::default();
        for text in texts {
            let is_quoted = false;
            inferred.observe(CsvField { text, is_quoted }, 1);
        }
        assert_eq!(&inferred.kind(), expected, "{texts:?}");
    }

    #[test]
    fn a_column_is_the_first_that_all_its_fields_are() {
        check(&["true", "", "False"], &Ok(Some(Kind::Bool)));
        check(&["1", "-2", " 3 "], &Ok(Some(Kind::Int64)));
        check(&["1", "18446744073709551615"], &Ok(Some(Kind::UInt64)));
        check(&["-1", "18446744073709551615"], &Err(ColumnError::Wide));
        check(
            &["1", "2.5", "NaN", "1e20", "-inf"],
            &Ok(Some(Kind::Float64)),
        );
        check(
            &["1.0-2.5j", "-0.0+NaNj", "1e-5+1e-7j", "2"],
            &Ok(Some(Kind::Complex128)),
        );
        check(&["2", "1.5", "1.0+0.1j"], &Ok(Some(Kind::Complex128)));
        check(&["1", "true"], &Ok(None));
        check(&["true", "1"], &Ok(None));
        check(&["1.5", "a"], &Ok(None));
        check(&["", ""], &Ok(None));
        check(&[], &Ok(Some(Kind::Int64)));
    }

    /// Regression test: `-0` beside an integer above 2^63 was refused as a change of the file.
    #[test]
    fn fields_that_a_column_is_inferred_from_can_be_read() {
        let fields: Vec<&str> =
            "|true|False|1|-2|-0|+5|00| 7 |18446744073709551615|+18446744073709551615\
            |1e3|.5|1.|nan|-inf|Infinity|1+2j|2j|NaN-1j|1e-5+1e-7j|-|+|.|1_0|0x1|9007199254740993|a"
                .split('|')
                .collect();
        let triples = fields.iter().flat_map(|one| {
            let pairs = fields
                .iter()
                .flat_map(|two| fields.iter().map(move |three| (two, three)));
            pairs.map(move |(two, three)| [*one, *two, *three])
        });
        for texts in triples {
            let record = texts.map(|text| CsvField {
                text,
                is_quoted: false,
            });
            let mut inferred = TypeInference::default();
            for field in &record {
                inferred.observe(*field, 1);
            }
            let Ok(mut values) = InferredValues::new(&inferred) else {
                continue;
            };
            for field in record {
                let pushed = values.push(field, NullPolicy::Keep, "a");
                assert!(pushed.is_ok(), "{texts:?}: {pushed:?}");
            }
        }
        let mut numbers = NumericColumn::new(Kind::UInt64, 1);
        push("-0", &mut numbers).unwrap();
        assert_eq!(numbers.bytes, [0; 8]);
        assert_eq!(push("-1", &mut numbers), None);
    }

    /// Ids of segments came out as other ids if one field of the column was a float.
    #[test]
    fn integers_are_not_rounded_to_floats() {
        let inexact = |row| Err(ColumnError::Inexact(row));
        check(&["720575940621039145", "nan"], &inexact(0));
        check(&["0.5", "", "-9007199254740993"], &inexact(2));
        check(&["18446744073709551616"], &inexact(0));
        check(&["1", "+9007199254740993", "1.0+2.0j"], &inexact(1));
        check(
            &["9007199254740992", "-9007199254740992", "nan"],
            &Ok(Some(Kind::Float64)),
        );
        check(
            &[
                "1e17",
                "12345678901234567890.0",
                "0000000000000000001",
                "nan",
            ],
            &Ok(Some(Kind::Float64)),
        );
        check(&["720575940621039145", "1"], &Ok(Some(Kind::Int64)));
        check(&["720575940621039145", "nan", "axon"], &Ok(None));
    }
}
