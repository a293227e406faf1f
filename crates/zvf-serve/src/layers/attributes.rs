//! Columns of a store as properties of annotations, attributes of skeletons, and ranges.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use zvf::{Column, ColumnValues};
use zvf_format::numeric::{Kind, NumericRows, Value};
use zvf_precomputed::{
    AttributeType, PropertySpec, PropertyType, PropertyValue, ValueLabel, VertexAttribute,
    property_ids, shader_ids,
};

/// Components of an attribute of skeletons.
const MAX_COMPONENTS: u32 = 4;
/// Words of an attribute whose numbers are kept in memory, and labels in the document.
const MAX_WORDS: usize = 1 << 16;
/// The viewer divides larger records into groups with other rules of alignment.
const MAX_PROPERTY_BYTES: usize = 200;
/// Integers up to this one are 32-bit floats without rounding.
const EXACT: u32 = 1 << 24;
/// Attributes of a skeleton: one texture each.
const MAX_ATTRIBUTES: usize = 14;

/// Facts about a column that are known only after all rows were seen.
#[derive(Clone, Debug)]
pub(crate) struct ColumnSurvey {
    pub(crate) name: String,
    /// Type and width of numbers; `None` for text.
    numbers: Option<(Kind, u32)>,
    /// Rows with a value.
    rows: u64,
    /// Range of the numbers that are finite as 32-bit floats.
    pub(crate) range: Option<(f64, f64)>,
    words: Vec<String>,
    codes: HashMap<String, u32>,
    /// True if there are more than [`MAX_WORDS`] words.
    has_more_words: bool,
}

/// Facts about the columns of one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttributeSurvey {
    pub(crate) columns: Vec<ColumnSurvey>,
    rows: u64,
}

impl AttributeSurvey {
    /// Adds the columns of a batch, which has this many rows.
    pub(crate) fn add(&mut self, columns: &[Column], rows: usize) {
        self.rows = self
            .rows
            .saturating_add(u64::try_from(rows).unwrap_or(u64::MAX));
        for column in columns {
            let known = self
                .columns
                .iter()
                .position(|known| known.name == column.name);
            let at = known.unwrap_or_else(|| {
                self.columns.push(ColumnSurvey {
                    name: column.name.clone(),
                    numbers: None,
                    rows: 0,
                    range: None,
                    words: Vec::new(),
                    codes: HashMap::new(),
                    has_more_words: false,
                });
                self.columns.len().saturating_sub(1)
            });
            if let Some(survey) = self.columns.get_mut(at) {
                survey.add(column);
            }
        }
    }
}

impl ColumnSurvey {
    fn add(&mut self, column: &Column) {
        match &column.values {
            ColumnValues::Numeric(numbers) => {
                self.numbers = Some((numbers.kind, numbers.width));
                let Some(view) = numbers.view() else { return };
                for row in (0..view.rows()).filter(|row| !column.is_null(*row)) {
                    self.rows = self.rows.saturating_add(1);
                    for channel in 0..numbers.width {
                        let value = view.value(row, channel).map(Value::to_f64);
                        let Some(value) = value.filter(|value| narrow(*value).is_finite()) else {
                            continue;
                        };
                        let (low, high) = self.range.unwrap_or((value, value));
                        self.range = Some((low.min(value), high.max(value)));
                    }
                }
            }
            ColumnValues::Dictionary { words, .. } => {
                for word in words.iter() {
                    if self.has_more_words || self.codes.contains_key(word) {
                        continue;
                    }
                    if self.words.len() >= MAX_WORDS {
                        (self.words, self.codes) = (Vec::new(), HashMap::new());
                        self.has_more_words = true;
                        continue;
                    }
                    let code = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
                    self.codes.insert(word.clone(), code);
                    self.words.push(word.clone());
                }
            }
        }
    }

    /// Notes an attribute that is left out because its words have no numbers. Returns whether it is.
    fn is_left_out(&self, notes: &mut Vec<String>) -> bool {
        if self.has_more_words {
            let name = &self.name;
            notes.push(format!(
                "attribute {name} is left out: it has more than {MAX_WORDS} different texts"
            ));
        }
        self.has_more_words
    }

    /// Returns the type of a property with these numbers, and a note if values change. Integers with
    /// missing values are floats, because these have NaN.
    fn property_type(&self, kind: Kind, has_missing: bool) -> (PropertyType, Option<&'static str>) {
        let fits = |low: f64, high: f64| {
            let range = self.range;
            range.is_none_or(|(lowest, highest)| lowest >= low && highest <= high)
        };
        match kind {
            Kind::Float64 => (PropertyType::Float32, Some("is rounded to float32")),
            Kind::Float16 | Kind::Float32 => (PropertyType::Float32, None),
            _ if has_missing && fits(-f64::from(EXACT), f64::from(EXACT)) => {
                (PropertyType::Float32, None)
            }
            _ if has_missing => (
                PropertyType::Float32,
                Some("has missing values and large integers, which are rounded to float32"),
            ),
            Kind::UInt8 | Kind::Bool => (PropertyType::Uint8, None),
            Kind::Int8 => (PropertyType::Int8, None),
            Kind::UInt16 => (PropertyType::Uint16, None),
            Kind::Int16 => (PropertyType::Int16, None),
            Kind::UInt32 => (PropertyType::Uint32, None),
            Kind::Int32 => (PropertyType::Int32, None),
            Kind::Int64 | Kind::UInt64 if fits(0.0, u32::MAX.into()) => {
                (PropertyType::Uint32, None)
            }
            Kind::Int64 if fits(i32::MIN.into(), i32::MAX.into()) => (PropertyType::Int32, None),
            Kind::Int64 | Kind::UInt64 => (
                PropertyType::Float32,
                Some("has integers above 32 bits, which are rounded to float32"),
            ),
            _ => (PropertyType::Float32, None),
        }
    }
}

/// The source of a property: a channel of a column, or a colour of all channels.
#[derive(Clone, Debug)]
struct Channel {
    column: usize,
    component: u32,
    kind: PropertyType,
    /// Words become codes; the last code stands for no value.
    words: Option<u32>,
}

/// Columns as properties of annotations.
#[derive(Clone, Debug, Default)]
pub(crate) struct PropertyPlan {
    pub(crate) specs: Vec<PropertySpec>,
    /// The name and range of each property, for shaders.
    pub(crate) ranges: Vec<Option<(f64, f64)>>,
    channels: Vec<Channel>,
    columns: Vec<ColumnSurvey>,
}

impl PropertyPlan {
    pub(crate) fn new(survey: &AttributeSurvey, notes: &mut Vec<String>) -> Self {
        let mut names = Vec::new();
        let mut plan = Self {
            columns: survey.columns.clone(),
            ..Self::default()
        };
        let mut size = 0_usize;
        for (at, column) in survey.columns.iter().enumerate() {
            let missing = survey.rows.saturating_sub(column.rows);
            let sources = sources(at, column, missing, notes);
            let added = sources.iter().map(|(_, channel)| channel.kind.size());
            let added = size.saturating_add(added.sum());
            if added > MAX_PROPERTY_BYTES {
                let name = &column.name;
                notes.push(format!(
                    "attribute {name} is left out: a record would be too large"
                ));
                continue;
            }
            size = added;
            for (name, channel) in sources {
                let labels = channel.words.map_or_else(Vec::new, |_| column.labels());
                plan.ranges.push(column.range);
                plan.specs.push(PropertySpec {
                    id: String::new(),
                    kind: channel.kind,
                    description: Some(name.clone()),
                    labels,
                });
                names.push(name);
                plan.channels.push(channel);
            }
        }
        let ids = property_ids(names.iter().map(String::as_str));
        for ((spec, id), name) in plan.specs.iter_mut().zip(ids).zip(names) {
            if id == name {
                spec.description = None;
            }
            spec.id = id;
        }
        plan
    }

    /// Returns the first property of numbers that differ, with their range.
    pub(crate) fn first_number(&self) -> Option<(&str, (f64, f64))> {
        let mut known = self.specs.iter().zip(&self.ranges);
        known.find_map(|(spec, range)| {
            let is_number = !matches!(spec.kind, PropertyType::Rgb | PropertyType::Rgba);
            let range = range.filter(|(low, high)| is_number && low < high)?;
            Some((spec.id.as_str(), range))
        })
    }

    /// Returns the names of the columns.
    #[cfg(feature = "server")]
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Prepares the columns of a batch.
    pub(crate) fn bind<'a>(&'a self, columns: &'a [Column]) -> BoundProperties<'a> {
        let bound = self.columns.iter().map(|survey| {
            let column = columns.iter().find(|column| column.name == survey.name)?;
            Some(match &column.values {
                ColumnValues::Numeric(numbers) => BoundColumn::Numbers(column, numbers.view()?),
                ColumnValues::Dictionary { codes, words } => {
                    let map = words.iter().map(|word| survey.codes.get(word).copied());
                    BoundColumn::Words(codes, map.collect())
                }
            })
        });
        BoundProperties {
            plan: self,
            columns: bound.collect(),
        }
    }
}

/// Returns the properties of a column with their names.
fn sources(
    at: usize,
    column: &ColumnSurvey,
    missing: u64,
    notes: &mut Vec<String>,
) -> Vec<(String, Channel)> {
    let source = |component, kind, words| Channel {
        column: at,
        component,
        kind,
        words,
    };
    if column.is_left_out(notes) {
        return Vec::new();
    }
    let Some((kind, width)) = column.numbers else {
        let none = u32::try_from(column.words.len()).unwrap_or(u32::MAX);
        let kind = match none {
            0..=0xff => PropertyType::Uint8,
            0x100..=0xffff => PropertyType::Uint16,
            _ => PropertyType::Uint32,
        };
        return vec![(column.name.clone(), source(0, kind, Some(none)))];
    };
    let name = &column.name;
    if matches!(kind, Kind::Complex64 | Kind::Complex128) {
        notes.push(format!("attribute {name} is left out: it is complex"));
        return Vec::new();
    }
    let colour = match (kind, width) {
        (Kind::UInt8, 3) => Some(PropertyType::Rgb),
        (Kind::UInt8, 4) => Some(PropertyType::Rgba),
        _ => None,
    };
    if missing > 0 {
        let shown = colour.map_or("NaN", |_| "zeros");
        notes.push(format!(
            "{missing} values of attribute {name} are missing, and shown as {shown}"
        ));
    }
    if let Some(colour) = colour {
        return vec![(name.clone(), source(0, colour, None))];
    }
    let (property, note) = column.property_type(kind, missing > 0);
    notes.extend(note.map(|note| format!("attribute {name} {note}")));
    let channels = (0..width).map(|channel| {
        let name = match width {
            1 => column.name.clone(),
            _ => format!("{}_{channel}", column.name),
        };
        (name, source(channel, property, None))
    });
    channels.collect()
}

impl ColumnSurvey {
    fn labels(&self) -> Vec<ValueLabel> {
        let labels = self.words.iter().map(String::as_str).chain(["(none)"]);
        let labels = (0_u32..).zip(labels).map(|(code, label)| ValueLabel {
            value: code.into(),
            label: label.to_owned(),
        });
        labels.collect()
    }
}

enum BoundColumn<'a> {
    Numbers(&'a Column, NumericRows<'a>),
    /// Codes of the batch, and the code of the plan for each.
    Words(&'a [u32], Vec<Option<u32>>),
}

/// The properties of a batch.
pub(crate) struct BoundProperties<'a> {
    plan: &'a PropertyPlan,
    columns: Vec<Option<BoundColumn<'a>>>,
}

impl BoundProperties<'_> {
    /// Appends the values of a row; `None` stands for a row without values.
    pub(crate) fn push(&self, row: Option<usize>, to: &mut Vec<PropertyValue>) {
        for channel in &self.plan.channels {
            let column = self.columns.get(channel.column).and_then(Option::as_ref);
            to.push(match (column, row) {
                (Some(BoundColumn::Numbers(column, view)), Some(row)) if !column.is_null(row) => {
                    let number = |at: u32| view.value(row, at).map_or(0.0, Value::to_f64);
                    match channel.kind {
                        PropertyType::Rgb => {
                            PropertyValue::Rgb([0, 1, 2].map(|at| byte(number(at))))
                        }
                        PropertyType::Rgba => {
                            PropertyValue::Rgba([0, 1, 2, 3].map(|at| byte(number(at))))
                        }
                        kind => value(kind, number(channel.component)),
                    }
                }
                (Some(BoundColumn::Words(codes, map)), Some(row)) => {
                    let code = codes.get(row).and_then(|code| usize::try_from(*code).ok());
                    let code = code.and_then(|code| map.get(code).copied().flatten());
                    value(channel.kind, code.or(channel.words).unwrap_or(0).into())
                }
                _ => match channel.words {
                    Some(none) => value(channel.kind, none.into()),
                    None => value(channel.kind, f64::NAN),
                },
            });
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from floats saturate; the survey has checked the range"
)]
fn value(kind: PropertyType, number: f64) -> PropertyValue {
    match kind {
        PropertyType::Int32 => PropertyValue::Int32(number as i32),
        PropertyType::Uint32 => PropertyValue::Uint32(number as u32),
        PropertyType::Int16 => PropertyValue::Int16(number as i16),
        PropertyType::Uint16 => PropertyValue::Uint16(number as u16),
        PropertyType::Int8 => PropertyValue::Int8(number as i8),
        PropertyType::Uint8 => PropertyValue::Uint8(number as u8),
        PropertyType::Rgb => PropertyValue::Rgb([0; 3]),
        PropertyType::Rgba => PropertyValue::Rgba([0; 4]),
        _ => PropertyValue::Float32(number as f32),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from floats saturate"
)]
fn byte(number: f64) -> u8 {
    number as u8
}

/// Columns as attributes of skeletons: float32, up to four components each.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkeletonPlan {
    pub(crate) attributes: Vec<VertexAttribute>,
    /// The range of each attribute, if it is known.
    pub(crate) ranges: Vec<Option<(f64, f64)>>,
    sources: Vec<SkeletonSource>,
}

#[derive(Clone, Debug)]
struct SkeletonSource {
    name: String,
    first: u32,
    components: u32,
    codes: HashMap<String, u32>,
}

impl SkeletonPlan {
    /// Returns the attributes of the columns, and `further` ones that the caller appends.
    pub(crate) fn new(
        survey: &AttributeSurvey,
        further: &[VertexAttribute],
        notes: &mut Vec<String>,
    ) -> Self {
        let mut plan = Self::default();
        let mut names = Vec::new();
        for column in &survey.columns {
            if column.is_left_out(notes) {
                continue;
            }
            let width = match column.numbers {
                Some((Kind::Complex64 | Kind::Complex128, _)) => {
                    notes.push(format!(
                        "attribute {} is left out: it is complex",
                        column.name
                    ));
                    continue;
                }
                Some((kind, width)) => {
                    let is_exact = column
                        .range
                        .is_none_or(|(low, high)| low.abs().max(high.abs()) <= f64::from(EXACT));
                    let is_integer = matches!(
                        kind,
                        Kind::Int32 | Kind::UInt32 | Kind::Int64 | Kind::UInt64
                    );
                    if kind == Kind::Float64 || is_integer && !is_exact {
                        notes.push(format!("attribute {} is rounded to float32", column.name));
                    }
                    width
                }
                None => {
                    notes.push(format!(
                        "attribute {} is text, for which skeletons have numbers without labels",
                        column.name
                    ));
                    1
                }
            };
            let step = usize::try_from(MAX_COMPONENTS).unwrap_or(4);
            for first in (0..width).step_by(step) {
                let components = width.saturating_sub(first).min(MAX_COMPONENTS);
                if plan.attributes.len().saturating_add(further.len()) >= MAX_ATTRIBUTES {
                    notes.push(format!(
                        "attribute {} is left out: a skeleton has {MAX_ATTRIBUTES} attributes at most",
                        column.name
                    ));
                    continue;
                }
                names.push(match width {
                    0..=MAX_COMPONENTS => column.name.clone(),
                    _ => format!("{}_{first}", column.name),
                });
                plan.attributes.push(VertexAttribute {
                    id: String::new(),
                    data_type: AttributeType::Float32,
                    components,
                });
                plan.ranges.push(column.range);
                plan.sources.push(SkeletonSource {
                    name: column.name.clone(),
                    first,
                    components,
                    codes: column.codes.clone(),
                });
            }
        }
        let names = names.iter().map(String::as_str);
        let ids = shader_ids(names.chain(further.iter().map(|own| own.id.as_str())));
        plan.attributes.extend_from_slice(further);
        for (attribute, id) in plan.attributes.iter_mut().zip(ids) {
            attribute.id = id;
        }
        plan
    }

    /// Returns the sources of the attributes as JSON, for [`restore`](Self::restore).
    pub(crate) fn to_json(&self) -> Json {
        let sources = self.sources.iter().map(|source| {
            let mut words: Vec<(u32, &str)> = source
                .codes
                .iter()
                .map(|(word, code)| (*code, word.as_str()))
                .collect();
            words.sort_unstable();
            let words: Vec<&str> = words.into_iter().map(|(_, word)| word).collect();
            json!({
                "name": source.name,
                "first": source.first,
                "components": source.components,
                "words": words,
            })
        });
        sources.collect()
    }

    /// Restores the plan of these attributes, without ranges, from the sources that
    /// [`to_json`](Self::to_json) returned.
    pub(crate) fn restore(attributes: &[VertexAttribute], sources: &Json) -> Option<Self> {
        let number = |value: &Json| u32::try_from(value.as_u64()?).ok();
        let sources = sources.as_array()?.iter().map(|source| {
            let words = source.get("words")?.as_array()?.iter().zip(0..);
            let codes = words.map(|(word, code)| Some((word.as_str()?.to_owned(), code)));
            Some(SkeletonSource {
                name: source.get("name")?.as_str()?.to_owned(),
                first: number(source.get("first")?)?,
                components: number(source.get("components")?)?,
                codes: codes.collect::<Option<_>>()?,
            })
        });
        Some(Self {
            attributes: attributes.to_vec(),
            ranges: Vec::new(),
            sources: sources.collect::<Option<_>>()?,
        })
    }

    /// Appends rows of a batch to the columns of a skeleton, as bytes of float32.
    pub(crate) fn push(&self, columns: &[Column], rows: &[usize], to: &mut [Vec<u8>]) {
        for (source, to) in self.sources.iter().zip(to) {
            let column = columns.iter().find(|column| column.name == source.name);
            let view = column.and_then(|column| match &column.values {
                ColumnValues::Numeric(numbers) => numbers.view(),
                ColumnValues::Dictionary { .. } => None,
            });
            for row in rows {
                for channel in source.first..source.first.saturating_add(source.components) {
                    let number = match (column, &view) {
                        (Some(column), _) if column.is_null(*row) => f64::NAN,
                        (_, Some(view)) => {
                            view.value(*row, channel).map_or(f64::NAN, Value::to_f64)
                        }
                        (Some(column), None) => {
                            let code = column.text_at(*row).and_then(|word| source.codes.get(word));
                            code.map_or(f64::NAN, |code| f64::from(*code))
                        }
                        (None, None) => f64::NAN,
                    };
                    to.extend_from_slice(&narrow(number).to_le_bytes());
                }
            }
        }
    }
}

/// Rounds to float32.
#[expect(
    clippy::cast_possible_truncation,
    reason = "precomputed formats have 32-bit floats"
)]
pub(crate) fn narrow(number: f64) -> f32 {
    number as f32
}
