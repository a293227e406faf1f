//! Colours of vertices and links: encodes attributes as codes, and codes as colours.

use std::collections::{BTreeSet, HashMap};

use zvf::{
    format::numeric::Kind,
    query::{Column, ColumnValues, NO_OBJECT, QueryResult, SEVERAL_OBJECTS, predicate::Scope},
};

use crate::{
    color::{Background, Color},
    column::{channels, column, numbers},
    error::RenderError,
    options::{ColorBy, RenderOptions},
    palette::{self, Colormap, DISTINCT},
    view::{Vector, unit},
};

/// The source of colours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    Fixed(Color),
    Orientation,
    Object,
    Attribute(Option<Scope>, String),
}

impl Source {
    /// Returns the requested source; the default depends on the geometry.
    pub(crate) fn of(asked: &ColorBy, is_linked: bool, is_path: bool) -> Self {
        match asked {
            ColorBy::Auto if is_linked => Self::Object,
            ColorBy::Auto if is_path => Self::Orientation,
            ColorBy::Auto => Self::Fixed(palette::PLAIN),
            ColorBy::Orientation => Self::Orientation,
            ColorBy::Object => Self::Object,
            ColorBy::Fixed(color) => Self::Fixed(*color),
            ColorBy::Attribute(scope, name) => Self::Attribute(*scope, name.clone()),
        }
    }

    /// Returns whether the object of each vertex has to be known.
    pub(crate) fn needs_objects(&self) -> bool {
        match self {
            Self::Object => true,
            Self::Attribute(scope, _) => scope.is_none_or(|scope| scope == Scope::Object),
            _ => false,
        }
    }
}

/// The code of a missing value. As a float it is NaN; it is neither a category nor a colour.
const NO_VALUE: u32 = u32::MAX;
/// Maximum number of distinct categories.
const MOST_WORDS: usize = 1 << 16;
/// Maximum number of objects with a value.
const MOST_OBJECTS: usize = 1 << 23;
/// Maximum number of values sampled for the default range.
const MOST_SAMPLES: usize = 1 << 16;

/// The meaning of colour codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Number,
    Integer,
    Word,
    Color,
}

/// Encodes attributes as colour codes and collects their statistics.
#[derive(Debug, Default)]
pub(crate) struct Tints {
    meaning: Option<Meaning>,
    /// `true` if links have the attribute.
    of_links: bool,
    /// `true` if vertices have the attribute.
    of_vertices: bool,
    words: HashMap<String, u32>,
    /// Index of each object in `object_values`.
    objects: HashMap<i64, u32>,
    object_values: Vec<u32>,
    integers: BTreeSet<i64>,
    samples: Vec<f32>,
    /// Sampling interval; `seen` is the number of values so far.
    step: usize,
    seen: usize,
    /// `true` once statistics are complete.
    is_known: bool,
}

impl Tints {
    /// Stops collecting statistics, before a second pass over the data.
    pub(crate) fn settle(&mut self) {
        self.is_known = true;
    }

    /// Appends the codes of a batch's vertices and links.
    pub(crate) fn add(
        &mut self,
        answer: &QueryResult,
        source: &Source,
        vertices: &mut Vec<u32>,
        links: &mut Vec<u32>,
    ) -> Result<(), RenderError> {
        match source {
            Source::Fixed(_) | Source::Orientation => Ok(()),
            Source::Object => {
                vertices.extend(objects_of(answer).map(|id| match id {
                    NO_OBJECT | SEVERAL_OBJECTS => NO_VALUE,
                    id => (id.rem_euclid(i64::from(NO_VALUE))) as u32,
                }));
                Ok(())
            }
            Source::Attribute(scope, name) => {
                let is_asked = |which: Scope| scope.is_none_or(|scope| scope == which);
                if *scope == Some(Scope::Group) {
                    return Err(RenderError::Scope(name.clone()));
                }
                let of_vertex = is_asked(Scope::Vertex).then(|| column(&answer.vertex, name));
                let of_fragment = is_asked(Scope::Fragment).then(|| column(&answer.fragment, name));
                if let Some(found) = of_vertex.flatten().or(of_fragment.flatten()) {
                    self.of_vertices = true;
                    return self.values(found, vertices);
                }
                if is_asked(Scope::Link)
                    && let Some(found) = column(&answer.link, name)
                {
                    self.of_links = true;
                    self.values(found, links)?;
                }
                if is_asked(Scope::Object) && !self.of_links {
                    for id in objects_of(answer) {
                        vertices.push(self.object(id));
                    }
                    self.object_values.resize(self.objects.len(), NO_VALUE);
                    if let Some(found) = column(&answer.object, name) {
                        let mut values = Vec::new();
                        self.values(found, &mut values)?;
                        for (id, value) in answer.objects.iter().zip(values) {
                            let at = self
                                .objects
                                .get(id)
                                .and_then(|at| usize::try_from(*at).ok());
                            if let Some(own) = at.and_then(|at| self.object_values.get_mut(at)) {
                                *own = value;
                            }
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// Appends the codes of a column.
    fn values(&mut self, column: &Column, into: &mut Vec<u32>) -> Result<(), RenderError> {
        let before = into.len();
        match &column.values {
            ColumnValues::Dictionary { codes, words } => {
                self.meaning = Some(Meaning::Word);
                let numbers: Vec<u32> = words.iter().map(|word| self.word(word)).collect();
                into.extend(codes.iter().map(|code| {
                    let code = usize::try_from(*code).ok();
                    let number = code.and_then(|code| numbers.get(code));
                    number.copied().unwrap_or(NO_VALUE)
                }));
            }
            ColumnValues::Numeric(rows) => {
                let broken = RenderError::InvalidResult("an attribute ends inside a row");
                let values = numbers(rows).ok_or(broken)?;
                let width = channels(column);
                if width == 3 || width == 4 {
                    self.meaning = Some(Meaning::Color);
                    let most = if rows.kind == Kind::UInt8 { 1.0 } else { 255.0 };
                    let byte = |value: f64| (value * most).round().clamp(0.0, 255.0) as u32;
                    let colors = values.chunks_exact(if width == 3 { 3 } else { 4 });
                    into.extend(colors.map(|color| {
                        color
                            .iter()
                            .take(3)
                            .fold(0, |sum, part| sum << 8 | byte(*part))
                    }));
                } else if width == 1 {
                    let is_integer = !matches!(
                        rows.kind,
                        Kind::Float16
                            | Kind::Float32
                            | Kind::Float64
                            | Kind::Complex64
                            | Kind::Complex128
                    );
                    self.meaning = Some(if is_integer {
                        Meaning::Integer
                    } else {
                        Meaning::Number
                    });
                    for (row, value) in values.into_iter().enumerate() {
                        if !column.is_null(row) {
                            self.look(value, is_integer);
                        }
                        into.push((value as f32).to_bits());
                    }
                } else {
                    let name = column.name.clone();
                    return Err(RenderError::Channels {
                        name,
                        channels: width,
                    });
                }
            }
        }
        if column.nulls.is_some() {
            for (row, value) in into.iter_mut().skip(before).enumerate() {
                if column.is_null(row) {
                    *value = NO_VALUE;
                }
            }
        }
        Ok(())
    }

    /// Returns the index of an object, or [`NO_VALUE`] beyond the limit.
    fn object(&mut self, id: i64) -> u32 {
        if let Some(number) = self.objects.get(&id) {
            return *number;
        }
        if self.objects.len() >= MOST_OBJECTS {
            return NO_VALUE;
        }
        let number = self.objects.len() as u32;
        self.objects.insert(id, number);
        number
    }

    fn word(&mut self, word: &str) -> u32 {
        if let Some(number) = self.words.get(word) {
            return *number;
        }
        if self.words.len() >= MOST_WORDS {
            return NO_VALUE;
        }
        let number = self.words.len() as u32;
        self.words.insert(word.to_owned(), number);
        number
    }

    /// Samples a value. The interval doubles whenever the sample is full.
    fn look(&mut self, value: f64, is_integer: bool) {
        if self.is_known || !value.is_finite() {
            return;
        }
        if is_integer && self.integers.len() <= DISTINCT {
            self.integers.insert(value as i64);
        }
        let step = self.step.max(1);
        if self.seen.is_multiple_of(step) {
            self.samples.push(value as f32);
            if self.samples.len() >= MOST_SAMPLES {
                let mut at = 0_usize;
                self.samples.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.step = step * 2;
            }
        }
        self.seen += 1;
    }

    /// Creates the colour scale once all values have been seen.
    pub(crate) fn paint(
        &self,
        source: &Source,
        options: &RenderOptions,
    ) -> Result<Paint, RenderError> {
        let name = match source {
            Source::Fixed(color) => return Ok(Paint::of(Kinds::Fixed(*color))),
            Source::Orientation => return Ok(Paint::of(Kinds::Orientation)),
            Source::Object => return Ok(Paint::of(Kinds::Object)),
            Source::Attribute(_, name) => name,
        };
        let meaning = self
            .meaning
            .ok_or_else(|| RenderError::Attribute(name.clone()))?;
        let kinds = match meaning {
            Meaning::Color => Kinds::Color,
            Meaning::Word => {
                // Sorted by name, so that colours do not depend on the order of the data.
                let mut names: Vec<(&String, &u32)> = self.words.iter().collect();
                names.sort_unstable();
                let mut ranks = vec![0; names.len()];
                for (rank, (_, number)) in names.iter().enumerate() {
                    let at = usize::try_from(**number).unwrap_or(usize::MAX);
                    if let Some(own) = ranks.get_mut(at) {
                        *own = rank as u32;
                    }
                }
                let names = names.into_iter().map(|(name, _)| name.clone()).collect();
                Kinds::Words { ranks, names }
            }
            Meaning::Integer if options.range.is_none() && self.integers.len() <= DISTINCT => {
                Kinds::Integers(self.integers.iter().copied().collect())
            }
            Meaning::Integer | Meaning::Number => self.numbers(options),
        };
        let by_object = !self.of_vertices && !self.of_links;
        Ok(Paint {
            kinds,
            name: name.clone(),
            by_object: by_object.then(|| self.object_values.clone()),
            of_links: self.of_links,
        })
    }

    fn numbers(&self, options: &RenderOptions) -> Kinds {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let at = |share: f32| {
            let last = sorted.len().saturating_sub(1) as f32;
            sorted
                .get((share * last).round() as usize)
                .copied()
                .unwrap_or(0.0)
        };
        let (low, high) = match options.range {
            Some((low, high)) => (low as f32, high as f32),
            None => (at(0.02), at(0.98)),
        };
        let high = if high > low {
            high
        } else {
            low + low.abs().max(1.0) * 1e-3
        };
        Kinds::Numbers {
            ramp: options.colormap,
            background: options.background,
            low,
            high,
            is_below: at(0.0) < low,
            is_above: at(1.0) > high,
        }
    }
}

/// Returns the object of each vertex of a batch.
fn objects_of(answer: &QueryResult) -> impl Iterator<Item = i64> + '_ {
    let rows = answer.positions.len();
    let of_parts = answer.parts.as_ref().map(move |parts| {
        let spans = parts.offsets.windows(2).map(|span| match span {
            [from, to] => to.saturating_sub(*from),
            _ => 0,
        });
        let ids = spans.zip(&parts.objects).flat_map(move |(span, id)| {
            let span = usize::try_from(span).unwrap_or(usize::MAX).min(rows);
            core::iter::repeat_n(*id, span)
        });
        ids.take(rows)
    });
    let of_vertices = answer.object_ids.as_ref().map(|ids| ids.iter().copied());
    let of_vertices = match of_parts.is_some() {
        true => None,
        false => of_vertices,
    };
    let known = of_parts
        .into_iter()
        .flatten()
        .chain(of_vertices.into_iter().flatten());
    known.chain(core::iter::repeat(NO_OBJECT)).take(rows)
}

/// A colour scale.
#[derive(Clone, Debug)]
pub(crate) enum Kinds {
    Fixed(Color),
    Orientation,
    Object,
    Color,
    Words {
        ranks: Vec<u32>,
        names: Vec<String>,
    },
    Integers(Vec<i64>),
    Numbers {
        ramp: Colormap,
        background: Background,
        low: f32,
        high: f32,
        is_below: bool,
        is_above: bool,
    },
}

/// Maps colour codes to colours.
#[derive(Clone, Debug)]
pub(crate) struct Paint {
    pub(crate) kinds: Kinds,
    /// Name of the attribute.
    pub(crate) name: String,
    /// Values of objects, if codes are indices of objects.
    by_object: Option<Vec<u32>>,
    /// `true` if links have the colours.
    pub(crate) of_links: bool,
}

impl Paint {
    fn of(kinds: Kinds) -> Self {
        Self {
            kinds,
            name: String::new(),
            by_object: None,
            of_links: false,
        }
    }

    /// Returns the colour of a code, or of a direction for a scale by orientation.
    pub(crate) fn color(&self, tint: Option<u32>, along: Vector) -> Color {
        match &self.kinds {
            Kinds::Fixed(color) => return *color,
            Kinds::Orientation => {
                return unit(along).map_or(palette::MISSING, palette::direction);
            }
            _ => {}
        }
        let tint = match (&self.by_object, tint) {
            (Some(values), Some(at)) => usize::try_from(at)
                .ok()
                .and_then(|at| values.get(at).copied()),
            (_, tint) => tint,
        };
        let Some(tint) = tint.filter(|tint| *tint != NO_VALUE) else {
            return match self.kinds {
                Kinds::Object => palette::PLAIN,
                _ => palette::MISSING,
            };
        };
        match &self.kinds {
            Kinds::Object => palette::category(tint),
            Kinds::Color => Color::hex(tint & 0xff_ff_ff),
            Kinds::Words { ranks, .. } => {
                let at = usize::try_from(tint).unwrap_or(usize::MAX);
                ranks
                    .get(at)
                    .map_or(palette::MISSING, |rank| palette::category(*rank))
            }
            Kinds::Integers(values) => {
                let value = f32::from_bits(tint) as i64;
                let at = values.binary_search(&value);
                at.map_or(palette::MISSING, |at| palette::category(at as u32))
            }
            Kinds::Numbers {
                ramp,
                background,
                low,
                high,
                ..
            } => {
                let value = f32::from_bits(tint);
                match value.is_nan() {
                    true => palette::MISSING,
                    false => ramp.on(*background, (value - low) / (high - low)),
                }
            }
            Kinds::Fixed(_) | Kinds::Orientation => palette::MISSING,
        }
    }
}
