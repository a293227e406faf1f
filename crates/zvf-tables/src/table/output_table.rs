//! Query results as tables, for formats of columns.

use std::{borrow::Cow, collections::HashSet, fmt::Write};

use zvf::{
    Column, ColumnValues, ObjectGroup, QueryResult, Scope,
    numeric::{Kind, Value},
};
use zvf_format::numeric::NumericRows;

use crate::FileFault;
use crate::display::narrow_float;

/// Columns with an equal number of rows.
#[derive(Debug)]
pub struct OutputTable<'a> {
    /// Number of rows.
    pub rows: usize,
    /// The columns.
    pub columns: Vec<OutputColumn<'a>>,
}

/// A named column of one or more channels.
#[derive(Debug)]
pub struct OutputColumn<'a> {
    /// Name, with the scope of an attribute.
    pub name: String,
    pub(crate) cells: OutputCells<'a>,
    missing: Option<&'a [bool]>,
    #[cfg_attr(
        not(feature = "arrow"),
        expect(dead_code, reason = "only tables of Arrow have nullable columns")
    )]
    is_attribute: bool,
}

/// The values of a column.
#[derive(Debug)]
pub(crate) enum OutputCells<'a> {
    /// A range of channels of each row.
    Numbers {
        rows: NumericRows<'a>,
        /// First channel.
        first: usize,
        /// Number of channels.
        channels: usize,
    },
    /// Ids or row numbers, one or more per row.
    Integers {
        values: Cow<'a, [i64]>,
        channels: usize,
    },
    /// Text as codes of a dictionary.
    Words {
        codes: &'a [u32],
        words: &'a [String],
    },
}

impl<'a> OutputTable<'a> {
    /// Returns the table of vertices.
    ///
    /// # Errors
    ///
    /// [`FileFault`] if the result is inconsistent, or two columns have one name.
    pub fn vertices(result: &'a QueryResult) -> Result<Self, FileFault> {
        Self::vertices_after(result, 0)
    }

    /// Returns the table of the vertices of a batch, before which the result has
    /// `first_part` paths.
    ///
    /// # Errors
    ///
    /// [`FileFault`] if the result is inconsistent, or two columns have one name.
    pub fn vertices_after(result: &'a QueryResult, first_part: i64) -> Result<Self, FileFault> {
        let rows = result.positions.len();
        let mut columns = axes(result)?;
        if let Some(ids) = &result.row_ids {
            columns.push(row_ids(ids)?);
        }
        if let Some(ids) = &result.object_ids {
            columns.push(integers("object_id", Cow::Borrowed(ids.numbers()), 1));
        }
        if let Some(parts) = &result.parts {
            let mut numbers = Vec::with_capacity(rows);
            let mut objects = Vec::with_capacity(rows);
            let spans = parts.offsets.iter().zip(parts.offsets.iter().skip(1));
            for (part, ((start, end), object)) in (first_part..).zip(spans.zip(&parts.objects)) {
                for _ in *start..*end {
                    numbers.push(part);
                    objects.push(*object);
                }
            }
            columns.push(integers("part", Cow::Owned(numbers), 1));
            columns.push(integers("object_id", Cow::Owned(objects), 1));
        }
        for scope in Scope::OF_CHUNKS {
            push(&mut columns, scope.name(), result.columns(scope))?;
        }
        Self::of(rows, columns)
    }

    /// Returns the table of links; `None` without links.
    ///
    /// # Errors
    ///
    /// [`FileFault`] if the result is inconsistent, or two columns have one name.
    pub fn links(result: &'a QueryResult) -> Result<Option<Self>, FileFault> {
        let Some(links) = result.links.as_ref().filter(|links| !links.is_empty()) else {
            return Ok(None);
        };
        let ends: Result<Vec<_>, _> = links.ends.iter().map(|end| i64::try_from(*end)).collect();
        let ends = ends.map_err(|_| FileFault::Broken("a link ends beyond 63 bits"))?;
        let width = usize::try_from(links.width).unwrap_or(usize::MAX);
        let mut columns = vec![integers("links", Cow::Owned(ends), width)];
        push(&mut columns, "link", &result.link)?;
        Self::of(links.len(), columns).map(Some)
    }

    /// Returns the table of objects; `None` without objects.
    ///
    /// # Errors
    ///
    /// [`FileFault`] if the result is inconsistent, or two columns have one name.
    pub fn objects(result: &'a QueryResult) -> Result<Option<Self>, FileFault> {
        if result.objects.is_empty() {
            return Ok(None);
        }
        let ids = Cow::Borrowed(result.objects.as_slice());
        let mut columns = vec![integers("object_id", ids, 1)];
        push(&mut columns, "object", &result.object)?;
        Self::of(result.objects.len(), columns).map(Some)
    }

    /// Returns the table of group members; `None` without members.
    pub(crate) fn groups(of: &[ObjectGroup]) -> Result<Option<Self>, FileFault> {
        let mut groups = Vec::new();
        let mut members = Vec::new();
        for group in of {
            let id = i64::try_from(group.id)
                .map_err(|_| FileFault::Broken("a group is beyond 63 bits"))?;
            groups.extend(group.members.iter().map(|_| id));
            members.extend_from_slice(&group.members);
        }
        if members.is_empty() {
            return Ok(None);
        }
        let rows = members.len();
        let columns = vec![
            integers("group", Cow::Owned(groups), 1),
            integers("object_id", Cow::Owned(members), 1),
        ];
        Self::of(rows, columns).map(Some)
    }

    /// Returns the table of group attributes, one row per group number; `None` without attributes.
    pub(crate) fn group_attributes(attributes: &'a [Column]) -> Result<Option<Self>, FileFault> {
        let Some(rows) = attributes.iter().map(|column| column.values.len()).max() else {
            return Ok(None);
        };
        let numbers: Vec<i64> = (0_i64..).take(rows).collect();
        let mut columns = vec![integers("group", Cow::Owned(numbers), 1)];
        push(&mut columns, "group", attributes)?;
        Self::of(rows, columns).map(Some)
    }

    fn of(rows: usize, columns: Vec<OutputColumn<'a>>) -> Result<Self, FileFault> {
        let mut whole = HashSet::new();
        let mut single = HashSet::new();
        for column in &columns {
            let mut channels = (0..column.channels())
                .map(|channel| column.header(channel))
                .collect::<Vec<_>>()
                .into_iter();
            if !whole.insert(&column.name) {
                return Err(FileFault::TwoColumns(column.name.clone()));
            }
            if let Some(name) = channels.find(|name| !single.insert(name.clone())) {
                return Err(FileFault::TwoColumns(name));
            }
        }
        Ok(Self { rows, columns })
    }
}

impl<'a> OutputColumn<'a> {
    /// Creates a column of an attribute.
    pub(crate) fn of(name: String, column: &'a Column) -> Result<Self, FileFault> {
        let cells = match &column.values {
            ColumnValues::Numeric(rows) => {
                let view = rows.view();
                let rows = view.ok_or(FileFault::Broken("an attribute ends inside a row"))?;
                let channels = usize::try_from(rows.columns().get());
                OutputCells::Numbers {
                    rows,
                    first: 0,
                    channels: channels.unwrap_or(usize::MAX),
                }
            }
            ColumnValues::Dictionary { codes, words } => OutputCells::Words { codes, words },
        };
        Ok(Self {
            name,
            cells,
            missing: column.nulls.as_deref(),
            is_attribute: true,
        })
    }

    /// Returns the number of channels.
    pub fn channels(&self) -> usize {
        match &self.cells {
            OutputCells::Numbers { channels, .. } | OutputCells::Integers { channels, .. } => {
                *channels
            }
            OutputCells::Words { .. } => 1,
        }
    }

    /// Returns the name of a channel, for formats with one column per channel.
    pub(crate) fn header(&self, channel: usize) -> String {
        match self.channels() {
            1 => self.name.clone(),
            _ => format!("{}[{channel}]", self.name),
        }
    }

    /// Returns whether this is an attribute, which rows of another batch may lack.
    #[cfg(feature = "arrow")]
    pub(crate) fn is_attribute(&self) -> bool {
        self.is_attribute
    }

    /// Returns whether rows may be null.
    pub fn may_miss(&self) -> bool {
        self.missing.is_some()
    }

    /// Returns whether a row has no value.
    pub fn is_null(&self, row: usize) -> bool {
        let missing = self.missing.and_then(|missing| missing.get(row));
        missing.copied().unwrap_or(false)
    }

    /// Returns a number, widened; `None` past the end and for text.
    pub fn value(&self, row: usize, channel: usize) -> Option<Value> {
        match &self.cells {
            OutputCells::Numbers { rows, first, .. } => {
                let column = first.checked_add(channel)?;
                rows.value(row, column.try_into().ok()?)
            }
            OutputCells::Integers { values, channels } => {
                let first = row.checked_mul(*channels)?;
                let value = values.get(first.checked_add(channel)?)?;
                Some(Value::Int(*value))
            }
            OutputCells::Words { .. } => None,
        }
    }

    /// Returns a text; `None` past the end and for numbers.
    pub fn word(&self, row: usize) -> Option<&'a str> {
        let OutputCells::Words { codes, words } = &self.cells else {
            return None;
        };
        let code = usize::try_from(*codes.get(row)?).ok()?;
        words.get(code).map(String::as_str)
    }

    /// Returns the type of numbers; `None` for text.
    pub fn kind(&self) -> Option<Kind> {
        match &self.cells {
            OutputCells::Numbers { rows, .. } => Some(rows.dtype().kind()),
            OutputCells::Integers { .. } => Some(Kind::Int64),
            OutputCells::Words { .. } => None,
        }
    }

    /// Appends a number as the shortest text that parses to it; nothing for text.
    pub fn push_number(&self, row: usize, channel: usize, out: &mut String) {
        let Some(value) = self.value(row, channel) else {
            return;
        };
        let is_wide = matches!(self.kind(), Some(Kind::Float64 | Kind::Complex128));
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Bool(value) => write!(out, "{value}"),
            Value::Int(value) => write!(out, "{value}"),
            Value::UInt(value) => write!(out, "{value}"),
            Value::Float(value) => push_float(value, is_wide, out),
            Value::Complex { re, im } => {
                let _ = push_float(re, is_wide, out);
                if im.is_nan() || im.is_sign_positive() {
                    out.push('+');
                }
                let _ = push_float(im, is_wide, out);
                write!(out, "j")
            }
        };
    }
}

/// Appends a float. One that was widened shows its own digits, not those of the f64.
fn push_float(value: f64, is_wide: bool, out: &mut String) -> std::fmt::Result {
    if is_wide {
        return write!(out, "{value:?}");
    }
    out.write_str(&narrow_float(value))
}

/// Returns one column per axis.
///
/// # Errors
///
/// [`FileFault::Broken`] if the positions end inside a row.
pub fn axes(result: &QueryResult) -> Result<Vec<OutputColumn<'_>>, FileFault> {
    let rows = result
        .positions
        .view()
        .ok_or(FileFault::Broken("positions end inside a row"))?;
    let columns = result.axes.iter().enumerate().map(|(first, name)| {
        let cells = OutputCells::Numbers {
            rows,
            first,
            channels: 1,
        };
        OutputColumn {
            name: name.clone(),
            cells,
            missing: None,
            is_attribute: false,
        }
    });
    Ok(columns.collect())
}

fn row_ids(ids: &[u64]) -> Result<OutputColumn<'_>, FileFault> {
    let ids: Result<Vec<_>, _> = ids.iter().map(|id| i64::try_from(*id)).collect();
    let ids = ids.map_err(|_| FileFault::Broken("a row id is beyond 63 bits"))?;
    Ok(integers("row_id", Cow::Owned(ids), 1))
}

fn integers<'a>(name: &str, values: Cow<'a, [i64]>, channels: usize) -> OutputColumn<'a> {
    OutputColumn {
        name: name.to_owned(),
        cells: OutputCells::Integers { values, channels },
        missing: None,
        is_attribute: false,
    }
}

fn push<'a>(
    columns: &mut Vec<OutputColumn<'a>>,
    scope: &str,
    attributes: &'a [Column],
) -> Result<(), FileFault> {
    for column in attributes {
        columns.push(OutputColumn::of(
            format!("{scope}.{}", column.name),
            column,
        )?);
    }
    Ok(())
}
