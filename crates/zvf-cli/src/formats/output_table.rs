//! An answer as tables, for formats that hold columns.

use std::{borrow::Cow, collections::HashSet, fmt::Write};

use zvf::{
    Column, ColumnValues, QueryResult,
    numeric::{Kind, Value},
};
use zvf_format::numeric::NumericRows;

use super::ResultWriteError;

/// Columns of equally many rows.
#[derive(Debug)]
pub(crate) struct OutputTable<'a> {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<OutputColumn<'a>>,
}

/// A named column, of one channel or more.
#[derive(Debug)]
pub(crate) struct OutputColumn<'a> {
    pub(crate) name: String,
    pub(crate) cells: OutputCells<'a>,
    missing: Option<&'a [bool]>,
}

/// The values of a column.
#[derive(Debug)]
pub(crate) enum OutputCells<'a> {
    /// Some of the numbers in each row.
    Numbers {
        rows: NumericRows<'a>,
        /// The first of them.
        first: usize,
        /// How many.
        channels: usize,
    },
    /// Ids and rows, some in a row.
    Integers {
        values: Cow<'a, [i64]>,
        channels: usize,
    },
    /// Words by their numbers.
    Words {
        codes: &'a [u32],
        words: &'a [String],
    },
}

impl<'a> OutputTable<'a> {
    /// A row a vertex.
    pub(crate) fn vertices(answer: &'a QueryResult) -> Result<Self, ResultWriteError> {
        let rows = answer.positions.len();
        let mut columns = axes(answer)?;
        if let Some(ids) = &answer.object_ids {
            columns.push(integers("object_id", Cow::Borrowed(ids), 1));
        }
        if let Some(parts) = &answer.parts {
            let mut numbers = Vec::with_capacity(rows);
            let mut objects = Vec::with_capacity(rows);
            let spans = parts.offsets.iter().zip(parts.offsets.iter().skip(1));
            for (part, ((start, end), object)) in (0_i64..).zip(spans.zip(&parts.objects)) {
                for _ in *start..*end {
                    numbers.push(part);
                    objects.push(*object);
                }
            }
            columns.push(integers("part", Cow::Owned(numbers), 1));
            columns.push(integers("object", Cow::Owned(objects), 1));
        }
        push(&mut columns, "vertex", &answer.vertex)?;
        push(&mut columns, "fragment", &answer.fragment)?;
        Self::of(rows, columns)
    }

    /// A row a link; `None` when there is none.
    pub(crate) fn links(answer: &'a QueryResult) -> Result<Option<Self>, ResultWriteError> {
        let Some(links) = answer.links.as_ref().filter(|links| !links.is_empty()) else {
            return Ok(None);
        };
        let ends = links.ends.iter().map(|end| i64::try_from(*end));
        let ends: Result<Vec<_>, _> = ends.collect();
        let ends = ends.map_err(|_| ResultWriteError::Broken("a link ends beyond 63 bits"))?;
        let width = usize::try_from(links.width).unwrap_or(usize::MAX);
        let mut columns = vec![integers("links", Cow::Owned(ends), width)];
        push(&mut columns, "link", &answer.link)?;
        Self::of(links.len(), columns).map(Some)
    }

    /// A row an object; `None` when there is none.
    pub(crate) fn objects(answer: &'a QueryResult) -> Result<Option<Self>, ResultWriteError> {
        if answer.objects.is_empty() {
            return Ok(None);
        }
        let ids = Cow::Borrowed(answer.objects.as_slice());
        let mut columns = vec![integers("object_id", ids, 1)];
        push(&mut columns, "object", &answer.object)?;
        Self::of(answer.objects.len(), columns).map(Some)
    }

    /// A row a member of a group; `None` when there is none.
    pub(crate) fn groups(answer: &'a QueryResult) -> Result<Option<Self>, ResultWriteError> {
        let mut groups = Vec::new();
        let mut members = Vec::new();
        for group in &answer.groups {
            let id = i64::try_from(group.id);
            let id = id.map_err(|_| ResultWriteError::Broken("a group is beyond 63 bits"))?;
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

    /// What goes beside the vertices, with the part of the file's name.
    pub(crate) fn sidecars(
        answer: &'a QueryResult,
    ) -> Result<Vec<(&'static str, Self)>, ResultWriteError> {
        let tables = [
            ("links", Self::links(answer)?),
            ("objects", Self::objects(answer)?),
            ("groups", Self::groups(answer)?),
        ];
        let there = tables.into_iter();
        Ok(there
            .filter_map(|(part, table)| Some((part, table?)))
            .collect())
    }

    fn of(rows: usize, columns: Vec<OutputColumn<'a>>) -> Result<Self, ResultWriteError> {
        let mut whole = HashSet::new();
        let mut single = HashSet::new();
        for column in &columns {
            let channels = (0..column.channels()).map(|channel| column.header(channel));
            let mut channels = channels.collect::<Vec<_>>().into_iter();
            if !whole.insert(&column.name) {
                return Err(ResultWriteError::TwoColumns(column.name.clone()));
            }
            if let Some(name) = channels.find(|name| !single.insert(name.clone())) {
                return Err(ResultWriteError::TwoColumns(name));
            }
        }
        Ok(Self { rows, columns })
    }
}

impl<'a> OutputColumn<'a> {
    /// An attribute under this name.
    pub(crate) fn of(name: String, column: &'a Column) -> Result<Self, ResultWriteError> {
        let cells = match &column.values {
            ColumnValues::Numeric(rows) => {
                let view = rows.view();
                let rows =
                    view.ok_or(ResultWriteError::Broken("an attribute ends inside a row"))?;
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
        })
    }

    pub(crate) fn channels(&self) -> usize {
        match &self.cells {
            OutputCells::Numbers { channels, .. } | OutputCells::Integers { channels, .. } => {
                *channels
            }
            OutputCells::Words { .. } => 1,
        }
    }

    /// The name of one channel where each has a column of its own.
    pub(crate) fn header(&self, channel: usize) -> String {
        match self.channels() {
            1 => self.name.clone(),
            _ => format!("{}[{channel}]", self.name),
        }
    }

    /// Whether rows may lack a value.
    pub(crate) fn may_miss(&self) -> bool {
        self.missing.is_some()
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        let missing = self.missing.and_then(|missing| missing.get(row));
        missing.copied().unwrap_or(false)
    }

    /// A number, widened; `None` when there is none or it is a word.
    pub(crate) fn value(&self, row: usize, channel: usize) -> Option<Value> {
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

    /// A word; `None` when there is none or it is a number.
    pub(crate) fn word(&self, row: usize) -> Option<&'a str> {
        let OutputCells::Words { codes, words } = &self.cells else {
            return None;
        };
        let code = usize::try_from(*codes.get(row)?).ok()?;
        words.get(code).map(String::as_str)
    }

    /// What a number is; `None` of words.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match &self.cells {
            OutputCells::Numbers { rows, .. } => Some(rows.dtype().kind()),
            OutputCells::Integers { .. } => Some(Kind::Int64),
            OutputCells::Words { .. } => None,
        }
    }

    /// Adds a number as the shortest text that reads back as the same; nothing
    /// of words.
    pub(crate) fn push_number(&self, row: usize, channel: usize, out: &mut String) {
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

/// A float that was narrower must show its own digits, not those of the f64
/// next to it.
fn push_float(value: f64, is_wide: bool, out: &mut String) -> std::fmt::Result {
    if is_wide {
        return write!(out, "{value:?}");
    }
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "it was widened from an f32 or less"
    )]
    let value = value as f32;
    write!(out, "{value:?}")
}

/// A column an axis.
pub(crate) fn axes(answer: &QueryResult) -> Result<Vec<OutputColumn<'_>>, ResultWriteError> {
    let rows = answer.positions.view();
    let rows = rows.ok_or(ResultWriteError::Broken("positions end inside a row"))?;
    let columns = answer.axes.iter().enumerate().map(|(first, name)| {
        let cells = OutputCells::Numbers {
            rows,
            first,
            channels: 1,
        };
        OutputColumn {
            name: name.clone(),
            cells,
            missing: None,
        }
    });
    Ok(columns.collect())
}

fn integers<'a>(name: &str, values: Cow<'a, [i64]>, channels: usize) -> OutputColumn<'a> {
    OutputColumn {
        name: name.to_owned(),
        cells: OutputCells::Integers { values, channels },
        missing: None,
    }
}

fn push<'a>(
    columns: &mut Vec<OutputColumn<'a>>,
    scope: &str,
    attributes: &'a [Column],
) -> Result<(), ResultWriteError> {
    for column in attributes {
        columns.push(OutputColumn::of(
            format!("{scope}.{}", column.name),
            column,
        )?);
    }
    Ok(())
}
