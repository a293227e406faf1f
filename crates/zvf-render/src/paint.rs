//! Colours of vertices and links: encodes attributes as codes, and codes as colours.

use std::collections::{BTreeMap, HashMap};

use zvf::{Column, ColumnValues, ObjectIds, Owner, QueryResult, Scope, numeric::Kind};

use crate::{
    color::{Background, Color},
    column::{channels, column, integers, numbers},
    error::RenderError,
    options::{ColorBy, RenderOptions},
    palette::{self, Categories, Colormap, MAX_INTEGER_CATEGORIES},
    scale::{self, grouped, rounded},
    view::{Vector, unit},
};

/// The source of colours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    Fixed(Color),
    Orientation,
    Object,
    /// A coordinate.
    Axis {
        column: usize,
        name: String,
    },
    Attribute(Option<Scope>, String),
}

impl Source {
    /// Returns the requested source; the default depends on the geometry.
    pub(crate) fn of(requested: &ColorBy, is_linked: bool, is_path: bool) -> Self {
        match requested {
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
const NO_VALUE: u64 = u64::MAX;
/// Maximum number of distinct categories.
const MAX_WORDS: usize = 1 << 16;
/// Maximum number of objects with a rank or a value.
const MAX_OBJECTS: usize = 1 << 23;
/// Maximum number of values sampled for the default range.
const MAX_SAMPLES: usize = 1 << 16;
/// Bits of a channel in the code of a colour, and its largest value.
const CHANNEL_BITS: u32 = 10;
const CHANNEL_MAX: u32 = (1 << CHANNEL_BITS) - 1;

/// The meaning of colour codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodeKind {
    Number,
    Integer,
    Word,
    Color,
}

/// The codes of numbers.
#[derive(Debug)]
enum NumberCodes {
    /// The code of each integer, while there are few enough for categories. A float would not tell
    /// large integers apart.
    Categories(BTreeMap<i128, u64>),
    /// The bits of a float64. A float32 does not tell times in seconds or projected coordinates apart.
    Floats,
}

impl Default for NumberCodes {
    fn default() -> Self {
        Self::Categories(BTreeMap::new())
    }
}

/// Encodes attributes as colour codes and collects their statistics.
#[derive(Debug, Default)]
pub(crate) struct ColorEncoder {
    range: Option<(f64, f64)>,
    kind: Option<CodeKind>,
    /// `true` if links have the attribute.
    of_links: bool,
    /// `true` if vertices have the attribute.
    of_vertices: bool,
    /// The number of each word, and the vertices, links or objects that have it.
    words: HashMap<String, (u64, u64)>,
    /// Index of each object in `object_values`.
    objects: HashMap<i64, u64>,
    object_values: Vec<u64>,
    numbers: NumberCodes,
    channels: Option<ChannelScale>,
    samples: Vec<f64>,
    /// Sampling interval; `seen` is the number of values so far.
    step: usize,
    seen: usize,
    /// `true` once statistics are complete.
    is_known: bool,
}

/// The values of colour channels that become black and full brightness.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ChannelScale {
    low: f64,
    high: f64,
    kind: Kind,
    largest: f64,
    is_requested: bool,
}

impl ChannelScale {
    /// Returns the scale of values of a type. It is the range of the type, or the bit depth that
    /// the values need if the type is wider.
    fn new(kind: Kind, largest: f64, requested: Option<(f64, f64)>) -> Self {
        let (low, high) = requested.unwrap_or((0.0, Self::full(kind, largest)));
        Self {
            low,
            high,
            kind,
            largest,
            is_requested: requested.is_some(),
        }
    }

    fn full(kind: Kind, largest: f64) -> f64 {
        let depths: &[f64] = match kind {
            Kind::Bool => &[1.0],
            Kind::Int8 => &[127.0],
            Kind::UInt8 => &[255.0],
            Kind::Int16 => &[255.0, 1023.0, 4095.0, 16_383.0, 32_767.0],
            // Slightly more than 1 is light that overflows, not a scale to 255.
            Kind::Float16 | Kind::Float32 | Kind::Float64 | Kind::Complex64 | Kind::Complex128
                if largest <= 2.0 =>
            {
                &[2.0]
            }
            _ => &[255.0, 1023.0, 4095.0, 16_383.0, 65_535.0],
        };
        let depth = depths.iter().copied().find(|depth| largest <= *depth);
        match depth {
            Some(2.0) => 1.0,
            Some(depth) => depth,
            None => largest.min(f64::MAX),
        }
    }

    fn code(&self, color: &[f64]) -> u64 {
        let span = self.high - self.low;
        let mut code = 0;
        for value in color.iter().take(3) {
            if value.is_nan() {
                return NO_VALUE;
            }
            let share = ((value - self.low) / span).clamp(0.0, 1.0);
            code = code << CHANNEL_BITS | (share * f64::from(CHANNEL_MAX)).round() as u64;
        }
        code
    }

    /// Converts codes of a scale whose full brightness was `high`.
    fn rescale(&self, high: f64, codes: &mut [u64]) {
        let ratio = high / self.high;
        for code in codes.iter_mut().filter(|code| **code != NO_VALUE) {
            *code = channels_of(*code).into_iter().fold(0, |sum, channel| {
                sum << CHANNEL_BITS | (f64::from(channel) * ratio).round() as u64
            });
        }
    }

    /// Describes the scale, such as `0 to 4095 (12 bits hold the largest value, 4012)`.
    fn describe(&self) -> String {
        let Self {
            low, high, kind, ..
        } = self;
        let type_max = match kind {
            Kind::Int8 => 127.0,
            Kind::UInt8 => 255.0,
            Kind::Int16 => 32_767.0,
            Kind::UInt16 => 65_535.0,
            _ => f64::INFINITY,
        };
        let reason = match self.is_requested {
            true => "as requested".to_owned(),
            false if *high >= type_max => format!("the range of {}", kind.name()),
            false if *high <= 1.0 => format!("{} colours", kind.name()),
            false => format!("{}, largest value {}", kind.name(), self.largest),
        };
        format!("{low} to {high} ({reason})")
    }
}

/// Returns the channels of a colour's code.
fn channels_of(code: u64) -> [u32; 3] {
    [2, 1, 0].map(|channel: u32| (code >> (channel * CHANNEL_BITS)) as u32 & CHANNEL_MAX)
}

impl ColorEncoder {
    /// Creates the encoder; `range` is the requested range of numbers or colour channels.
    pub(crate) fn new(range: Option<(f64, f64)>) -> Self {
        Self {
            range,
            ..Self::default()
        }
    }

    /// Stops collecting statistics, before a second pass over the data.
    pub(crate) fn freeze_statistics(&mut self) {
        self.is_known = true;
    }

    /// Appends the codes of a batch's vertices and links.
    pub(crate) fn add(
        &mut self,
        result: &QueryResult,
        source: &Source,
        vertices: &mut Vec<u64>,
        links: &mut Vec<u64>,
    ) -> Result<(), RenderError> {
        match source {
            Source::Fixed(_) | Source::Orientation => Ok(()),
            Source::Object => {
                // Consecutive vertices mostly share their object.
                let mut last = (Owner::None, NO_VALUE);
                for owner in owners_of(result) {
                    if owner != last.0 {
                        let code = owner.object().map_or(NO_VALUE, |id| self.object(id));
                        last = (owner, code);
                    }
                    vertices.push(last.1);
                }
                Ok(())
            }
            Source::Axis { column, .. } => {
                let broken = RenderError::InvalidResult("positions end inside a row");
                let values = numbers(&result.positions).ok_or(broken)?;
                self.kind = Some(CodeKind::Number);
                self.of_vertices = true;
                for row in values.chunks_exact(result.positions.row_len()) {
                    let value = row.get(*column).copied().unwrap_or(f64::NAN);
                    self.sample_value(value);
                    vertices.push(value.to_bits());
                }
                Ok(())
            }
            Source::Attribute(scope, name) => {
                let is_asked = |which: Scope| scope.is_none_or(|scope| scope == which);
                if *scope == Some(Scope::Group) {
                    return Err(RenderError::Scope(name.clone()));
                }
                let mut of_vertices = Scope::OF_CHUNKS
                    .into_iter()
                    .filter(|scope| is_asked(*scope));
                if let Some(found) =
                    of_vertices.find_map(|scope| column(result.columns(scope), name))
                {
                    self.of_vertices = true;
                    return self.values(found, vertices);
                }
                if is_asked(Scope::Link)
                    && let Some(found) = column(&result.link, name)
                {
                    self.of_links = true;
                    self.values(found, links)?;
                }
                if is_asked(Scope::Object) && !self.of_links {
                    for owner in owners_of(result) {
                        vertices.push(owner.object().map_or(NO_VALUE, |id| self.object(id)));
                    }
                    self.object_values.resize(self.objects.len(), NO_VALUE);
                    if let Some(found) = column(&result.object, name) {
                        let mut values = Vec::new();
                        self.values(found, &mut values)?;
                        for (id, value) in result.objects.iter().zip(values) {
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
    fn values(&mut self, column: &Column, into: &mut Vec<u64>) -> Result<(), RenderError> {
        let before = into.len();
        match &column.values {
            ColumnValues::Dictionary { codes, words } => {
                self.kind = Some(CodeKind::Word);
                // A dictionary may have words that no row has.
                let mut uses = vec![0_u64; words.len()];
                for (row, code) in codes.iter().enumerate() {
                    let at = usize::try_from(*code).unwrap_or(usize::MAX);
                    if let Some(count) = uses.get_mut(at).filter(|_| !column.is_null(row)) {
                        *count += 1;
                    }
                }
                let counted = words.iter().zip(uses);
                let numbers: Vec<u64> = counted
                    .map(|(word, uses)| match uses {
                        0 => NO_VALUE,
                        _ => self.word(word, uses),
                    })
                    .collect();
                into.extend(codes.iter().map(|code| {
                    let code = usize::try_from(*code).ok();
                    let number = code.and_then(|code| numbers.get(code));
                    number.copied().unwrap_or(NO_VALUE)
                }));
            }
            ColumnValues::Numeric(rows) => {
                let broken = || RenderError::InvalidResult("an attribute ends inside a row");
                let width = channels(column);
                if width == 3 || width == 4 {
                    let values = numbers(rows).ok_or_else(broken)?;
                    self.kind = Some(CodeKind::Color);
                    let channels = if width == 3 { 3 } else { 4 };
                    let scale = self.channel_scale(rows.kind, &values, channels, into);
                    into.extend(values.chunks_exact(channels).map(|color| scale.code(color)));
                } else if width == 1 {
                    let is_integer = !matches!(
                        rows.kind,
                        Kind::Float16
                            | Kind::Float32
                            | Kind::Float64
                            | Kind::Complex64
                            | Kind::Complex128
                    );
                    if is_integer {
                        self.kind = Some(CodeKind::Integer);
                        let values = integers(rows).ok_or_else(broken)?;
                        for (row, value) in values.enumerate() {
                            let code = if column.is_null(row) {
                                NO_VALUE
                            } else {
                                self.integer(value, into)
                            };
                            into.push(code);
                        }
                    } else {
                        self.kind = Some(CodeKind::Number);
                        let values = numbers(rows).ok_or_else(broken)?;
                        // Another level may have stored integers.
                        self.convert_to_floats(into);
                        for (row, value) in values.into_iter().enumerate() {
                            if !column.is_null(row) {
                                self.sample_value(value);
                            }
                            into.push(value.to_bits());
                        }
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

    /// Returns the scale of a batch's colours. If its values exceed the scale of earlier batches,
    /// their codes, in `codes` and of objects, are converted.
    fn channel_scale(
        &mut self,
        kind: Kind,
        values: &[f64],
        channels: usize,
        codes: &mut [u64],
    ) -> ChannelScale {
        let colors = values
            .chunks_exact(channels.max(1))
            .flat_map(|color| color.iter().take(3).copied());
        let largest = colors.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let Some(known) = self.channels else {
            return *self
                .channels
                .insert(ChannelScale::new(kind, largest, self.range));
        };
        let scale = ChannelScale::new(kind, largest.max(known.largest), self.range);
        if scale.high > known.high {
            scale.rescale(known.high, codes);
            scale.rescale(known.high, &mut self.object_values);
        }
        self.channels = Some(scale);
        scale
    }

    /// Returns the index of an object, or [`NO_VALUE`] beyond the limit.
    fn object(&mut self, id: i64) -> u64 {
        if let Some(number) = self.objects.get(&id) {
            return *number;
        }
        if self.objects.len() >= MAX_OBJECTS {
            return NO_VALUE;
        }
        let number = self.objects.len() as u64;
        self.objects.insert(id, number);
        number
    }

    /// Returns the number of a word that `uses` rows have.
    fn word(&mut self, word: &str, uses: u64) -> u64 {
        if let Some((number, known)) = self.words.get_mut(word) {
            *known = known.saturating_add(uses);
            return *number;
        }
        if self.words.len() >= MAX_WORDS {
            return NO_VALUE;
        }
        let number = self.words.len() as u64;
        self.words.insert(word.to_owned(), (number, uses));
        number
    }

    /// Returns the code of an integer. If it is one category too many, the codes of earlier ones are
    /// converted to floats.
    fn integer(&mut self, value: i128, codes: &mut [u64]) -> u64 {
        let float = value as f64;
        self.sample_value(float);
        if let NumberCodes::Categories(integers) = &mut self.numbers
            && self.range.is_none()
        {
            if let Some(code) = integers.get(&value) {
                return *code;
            }
            if self.is_known {
                return NO_VALUE;
            }
            let code = integers.len();
            if code < MAX_INTEGER_CATEGORIES {
                integers.insert(value, code as u64);
                return code as u64;
            }
        }
        self.convert_to_floats(codes);
        float.to_bits()
    }

    /// Converts the codes of categories of integers, in `codes` and of objects.
    fn convert_to_floats(&mut self, codes: &mut [u64]) {
        let NumberCodes::Categories(integers) =
            std::mem::replace(&mut self.numbers, NumberCodes::Floats)
        else {
            return;
        };
        let mut floats = [0; MAX_INTEGER_CATEGORIES];
        for (value, code) in integers {
            if let Some(own) = floats.get_mut(code as usize) {
                *own = (value as f64).to_bits();
            }
        }
        for code in codes.iter_mut().chain(&mut self.object_values) {
            *code = floats.get(*code as usize).copied().unwrap_or(NO_VALUE);
        }
    }

    /// Samples a value. The interval doubles whenever the sample is full.
    fn sample_value(&mut self, value: f64) {
        if self.is_known || !value.is_finite() {
            return;
        }
        let step = self.step.max(1);
        if self.seen.is_multiple_of(step) {
            self.samples.push(value);
            if self.samples.len() >= MAX_SAMPLES {
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
            Source::Fixed(color) => return Ok(Paint::new(ColorScale::Fixed(*color))),
            Source::Orientation => return Ok(Paint::new(ColorScale::Orientation)),
            Source::Object => return Ok(Paint::new(self.object_scale())),
            Source::Axis { name, .. } | Source::Attribute(_, name) => name,
        };
        let kind = self
            .kind
            .ok_or_else(|| RenderError::Attribute(name.clone()))?;
        let scale = match kind {
            // Points of a scanner without a camera have black colours.
            CodeKind::Color
                if options.color_by == ColorBy::Auto
                    && self.channels.is_some_and(|scale| scale.largest <= 0.0) =>
            {
                return Ok(Paint::new(ColorScale::Fixed(palette::PLAIN)));
            }
            CodeKind::Color => ColorScale::Color(self.channels.map(|scale| scale.describe())),
            CodeKind::Word => {
                // Sorted by name, so that colours do not depend on the order of the data.
                let mut names: Vec<(&String, &(u64, u64))> = self.words.iter().collect();
                names.sort_unstable();
                let mut ranks = vec![0; names.len()];
                for (rank, (_, (number, _))) in names.iter().enumerate() {
                    let at = usize::try_from(*number).unwrap_or(usize::MAX);
                    if let Some(own) = ranks.get_mut(at) {
                        *own = rank as u32;
                    }
                }
                let colors = Categories::new(names.len());
                let mut by_use: Vec<u32> = (0_u32..).take(names.len()).collect();
                let counts: Vec<u64> = names.iter().map(|(_, (_, uses))| *uses).collect();
                let uses = |rank: &u32| counts.get(*rank as usize).copied().unwrap_or(0);
                by_use.sort_by_key(|rank| core::cmp::Reverse(uses(rank)));
                let names = names.into_iter().map(|(name, _)| name.clone()).collect();
                ColorScale::Words {
                    ranks,
                    names,
                    by_use,
                    colors,
                }
            }
            CodeKind::Integer => match &self.numbers {
                NumberCodes::Categories(integers) if self.range.is_none() => {
                    let mut ranks = vec![0; integers.len()];
                    for (rank, code) in integers.values().enumerate() {
                        if let Some(own) = ranks.get_mut(*code as usize) {
                            *own = rank as u32;
                        }
                    }
                    ColorScale::Integers {
                        ranks,
                        values: integers.keys().copied().collect(),
                        colors: Categories::new(integers.len()),
                    }
                }
                _ => self.ramp(options),
            },
            CodeKind::Number => self.ramp(options),
        };
        let by_object = !self.of_vertices && !self.of_links;
        Ok(Paint {
            scale,
            name: name.clone(),
            by_object: by_object.then(|| self.object_values.clone()),
            of_links: self.of_links,
        })
    }

    /// Creates the scale of objects: by rank of the id, so that colours depend only on the objects
    /// in the picture.
    fn object_scale(&self) -> ColorScale {
        let mut ids: Vec<(i64, u64)> = self.objects.iter().map(|(id, at)| (*id, *at)).collect();
        ids.sort_unstable();
        let mut ranks = vec![0; ids.len()];
        for (rank, (_, at)) in ids.iter().enumerate() {
            let at = usize::try_from(*at).unwrap_or(usize::MAX);
            if let Some(own) = ranks.get_mut(at) {
                *own = rank as u32;
            }
        }
        ColorScale::Objects {
            colors: Categories::new(ids.len()),
            ids: ids.into_iter().map(|(id, _)| id).collect(),
            ranks,
        }
    }

    fn ramp(&self, options: &RenderOptions) -> ColorScale {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share: f32| {
            let last = sorted.len().saturating_sub(1) as f32;
            sorted
                .get((share * last).round() as usize)
                .copied()
                .unwrap_or(0.0)
        };
        let (low, high) = options.range.unwrap_or_else(|| (at(0.02), at(0.98)));
        let range = ColorRange::new(low, high);
        ColorScale::Numbers {
            ramp: options.colormap,
            background: options.background,
            range,
            is_requested: options.range.is_some(),
            is_below: at(0.0) < range.low,
            is_above: at(1.0) > range.high,
        }
    }
}

/// Returns the object of each vertex of a batch.
fn owners_of(result: &QueryResult) -> impl Iterator<Item = Owner> + '_ {
    let rows = result.positions.len();
    let of_parts = result.parts.as_ref().map(move |parts| {
        let spans = parts.offsets.windows(2).map(|span| match span {
            [from, to] => to.saturating_sub(*from),
            _ => 0,
        });
        let ids = spans.zip(&parts.objects).flat_map(move |(span, id)| {
            let span = usize::try_from(span).unwrap_or(usize::MAX).min(rows);
            core::iter::repeat_n(Owner::Object(*id), span)
        });
        ids.take(rows)
    });
    let of_vertices = result.object_ids.as_ref().map(ObjectIds::iter);
    let of_vertices = if of_parts.is_some() {
        None
    } else {
        of_vertices
    };
    let known = of_parts
        .into_iter()
        .flatten()
        .chain(of_vertices.into_iter().flatten());
    known.chain(core::iter::repeat(Owner::None)).take(rows)
}

/// A colour scale.
#[derive(Clone, Debug)]
pub(crate) enum ColorScale {
    Fixed(Color),
    Orientation,
    Objects {
        /// Ids in ascending order.
        ids: Vec<i64>,
        /// Rank of each object by its code.
        ranks: Vec<u32>,
        colors: Categories,
    },
    /// Colours, with the description of the scale of their channels.
    Color(Option<String>),
    Words {
        ranks: Vec<u32>,
        /// Names in ascending order.
        names: Vec<String>,
        /// Ranks of the names, the most frequent first.
        by_use: Vec<u32>,
        colors: Categories,
    },
    Integers {
        /// Rank of each value by its code.
        ranks: Vec<u32>,
        /// Values in ascending order.
        values: Vec<i128>,
        colors: Categories,
    },
    Numbers {
        ramp: Colormap,
        background: Background,
        range: ColorRange,
        is_requested: bool,
        is_below: bool,
        is_above: bool,
    },
}

/// The numbers at the ends of a colour map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColorRange {
    low: f64,
    high: f64,
}

impl ColorRange {
    /// Creates a range; one that would be empty is widened.
    fn new(low: f64, high: f64) -> Self {
        let width = match low.abs() * 1e-3 {
            width if width > 0.0 => width,
            _ => 1e-3,
        };
        // Halves are compared because `share` divides by their distance.
        let is_empty = high / 2.0 <= low / 2.0;
        let high = if is_empty { low + width } else { high };
        Self { low, high }
    }

    /// Returns the position of a number: 0 at the lower end, 1 at the upper end.
    pub(crate) fn share(self, value: f64) -> f32 {
        // The distance of two halves is always finite.
        let from_low = value / 2.0 - self.low / 2.0;
        (from_low / (self.high / 2.0 - self.low / 2.0)) as f32
    }

    /// Returns about five round numbers with their text.
    pub(crate) fn ticks(self) -> Vec<(f64, String)> {
        scale::ticks(self.low, self.high, 5)
    }

    /// Describes the range, such as `0.1 to 0.8`.
    fn describe(self) -> String {
        let step = self.high / 100.0 - self.low / 100.0;
        let [low, high] = [self.low, self.high].map(|end| rounded(end, step));
        format!("{low} to {high}")
    }
}

/// Maps colour codes to colours.
#[derive(Clone, Debug)]
pub(crate) struct Paint {
    pub(crate) scale: ColorScale,
    /// Name of the attribute.
    pub(crate) name: String,
    /// Values of objects, if codes are indices of objects.
    by_object: Option<Vec<u64>>,
    /// `true` if links have the colours.
    pub(crate) of_links: bool,
}

impl Paint {
    fn new(scale: ColorScale) -> Self {
        Self {
            scale,
            name: String::new(),
            by_object: None,
            of_links: false,
        }
    }

    /// Describes the colours, such as `fa, 0.1 to 0.8 (2nd to 98th percentile)`.
    pub(crate) fn describe(&self) -> String {
        let name = &self.name;
        let categories = |count: usize, colors: &Categories, noun: &str| match count {
            1 => format!("1 {noun}"),
            _ if count > colors.len() => format!(
                "{} {noun}s in {} repeating colours",
                grouped(count as u64),
                colors.len()
            ),
            _ => format!("{count} {noun}s"),
        };
        match &self.scale {
            ColorScale::Fixed(color) => format!("one colour, {color}"),
            ColorScale::Orientation => "orientation".to_owned(),
            ColorScale::Objects { ids, colors, .. } => {
                format!("object, {}", categories(ids.len(), colors, "object"))
            }
            ColorScale::Color(None) => name.clone(),
            ColorScale::Color(Some(scale)) => format!("{name}, {scale}"),
            ColorScale::Words { names, colors, .. } => {
                format!("{name}, {}", categories(names.len(), colors, "value"))
            }
            ColorScale::Integers { values, colors, .. } => {
                format!("{name}, {}", categories(values.len(), colors, "value"))
            }
            ColorScale::Numbers {
                range,
                is_requested,
                ..
            } => {
                let reason = if *is_requested {
                    "as requested"
                } else {
                    "2nd to 98th percentile"
                };
                format!("{name}, {} ({reason})", range.describe())
            }
        }
    }

    /// Returns the colour of a code, or of a direction for a scale by orientation.
    pub(crate) fn color(&self, tint: Option<u64>, along: Vector) -> Color {
        match &self.scale {
            ColorScale::Fixed(color) => return *color,
            ColorScale::Orientation => {
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
            return match self.scale {
                ColorScale::Objects { .. } => palette::PLAIN,
                _ => palette::MISSING,
            };
        };
        match &self.scale {
            ColorScale::Objects { ranks, colors, .. }
            | ColorScale::Words { ranks, colors, .. }
            | ColorScale::Integers { ranks, colors, .. } => {
                let at = usize::try_from(tint).unwrap_or(usize::MAX);
                let rank = ranks.get(at);
                rank.map_or(palette::MISSING, |rank| colors.color(*rank))
            }
            ColorScale::Color(_) => Color(
                channels_of(tint)
                    .map(|channel| ((channel * 255 + CHANNEL_MAX / 2) / CHANNEL_MAX) as u8),
            ),
            ColorScale::Numbers {
                ramp,
                background,
                range,
                ..
            } => {
                let value = f64::from_bits(tint);
                if value.is_nan() {
                    palette::MISSING
                } else {
                    ramp.on(*background, range.share(value))
                }
            }
            ColorScale::Fixed(_) | ColorScale::Orientation => palette::MISSING,
        }
    }
}

#[cfg(test)]
mod tests {
    use zvf::NumericColumn;

    use super::*;

    fn colors(kind: Kind, bytes: Vec<u8>) -> QueryResult {
        let mut batch = QueryResult::default();
        let mut values = NumericColumn::new(kind, 3);
        values.bytes = bytes;
        batch.positions = NumericColumn::new(Kind::Float32, 3);
        batch.positions.bytes = vec![0; values.len() * 12];
        batch.vertex = vec![Column {
            name: "rgb".to_owned(),
            values: ColumnValues::Numeric(values),
            nulls: None,
        }];
        batch
    }

    fn wide(values: &[u16]) -> QueryResult {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        colors(Kind::UInt16, bytes.collect())
    }

    /// Returns the colours and the description of batches of the attribute `rgb`.
    #[track_caller]
    fn painted(batches: &[QueryResult], range: Option<(f64, f64)>) -> (Vec<[u8; 3]>, String) {
        let source = Source::Attribute(None, "rgb".to_owned());
        let (mut encoder, mut codes) = (ColorEncoder::new(range), Vec::new());
        for batch in batches {
            encoder
                .add(batch, &source, &mut codes, &mut Vec::new())
                .unwrap();
        }
        let options = RenderOptions {
            range,
            ..RenderOptions::default()
        };
        let paint = encoder.paint(&source, &options).unwrap();
        let colors = codes
            .iter()
            .map(|code| paint.color(Some(*code), [0.0; 3]).0);
        (colors.collect(), paint.describe())
    }

    #[test]
    fn colors_are_scaled_by_their_type() {
        let (colors, scale) = painted(&[wide(&[65_535, 32_768, 0])], None);
        assert_eq!(colors, [[255, 128, 0]]);
        assert_eq!(scale, "rgb, 0 to 65535 (the range of uint16)");
        let every: Vec<u8> = (0..=254).collect();
        let (found, scale) = painted(&[self::colors(Kind::UInt8, every.clone())], None);
        assert_eq!(found.as_flattened(), every);
        assert_eq!(scale, "rgb, 0 to 255 (the range of uint8)");
        let floats = [0.5_f32, 1.0, f32::NAN, 0.5, 1.0, 1.2];
        let bytes = floats.iter().flat_map(|part| part.to_le_bytes()).collect();
        let (found, scale) = painted(&[self::colors(Kind::Float32, bytes)], None);
        assert_eq!(found, [palette::MISSING.0, [128, 255, 255]]);
        assert_eq!(scale, "rgb, 0 to 1 (float32 colours)");
    }

    #[test]
    fn colors_are_scaled_by_their_range_if_the_type_is_wider() {
        let (colors, scale) = painted(&[wide(&[255, 128, 0])], None);
        assert_eq!(colors, [[255, 128, 0]]);
        assert_eq!(scale, "rgb, 0 to 255 (uint16, largest value 255)");
        let (colors, scale) = painted(&[wide(&[4012, 2048, 0])], None);
        assert_eq!(colors, [[250, 128, 0]]);
        assert_eq!(scale, "rgb, 0 to 4095 (uint16, largest value 4012)");
        let (colors, scale) = painted(&[wide(&[200, 100, 0])], Some((100.0, 200.0)));
        assert_eq!(colors, [[255, 0, 0]]);
        assert_eq!(scale, "rgb, 100 to 200 (as requested)");
    }

    /// The first batch looks like 8-bit colours until the second one arrives.
    #[test]
    fn a_later_batch_rescales_the_colors_of_earlier_ones() {
        let batches = [wide(&[255, 0, 51]), wide(&[65_535, 257, 51_400])];
        let (colors, scale) = painted(&batches, None);
        assert_eq!(colors, [[1, 0, 0], [255, 1, 200]]);
        assert_eq!(scale, "rgb, 0 to 65535 (the range of uint16)");
    }

    fn integers(kind: Kind, values: &[u64], nulls: Option<Vec<bool>>) -> QueryResult {
        let bytes = values.iter().flat_map(|value| {
            let width = if kind == Kind::UInt64 { 8 } else { 4 };
            value.to_le_bytes().into_iter().take(width)
        });
        let mut batch = colors(kind, Vec::new());
        let mut rows = NumericColumn::new(kind, 1);
        rows.bytes = bytes.collect();
        batch.positions.bytes = vec![0; values.len() * 12];
        batch.vertex[0].values = ColumnValues::Numeric(rows);
        batch.vertex[0].nulls = nulls;
        batch
    }

    /// Large ones were drawn as vertices without a value, because a float32 is another integer.
    #[test]
    fn integers_have_distinct_colors_whatever_their_size() {
        let category = |rank| Categories::new(3).color(rank).0;
        let large = [33_554_435, 16_777_217, 16_777_216, 16_777_217];
        let nulls = Some(vec![false, false, false, true]);
        let (found, scale) = painted(&[integers(Kind::UInt32, &large, nulls)], None);
        let missing = palette::MISSING.0;
        assert_eq!(found, [category(2), category(1), category(0), missing]);
        assert_eq!(scale, "rgb, 3 values");
        // Nor does a float64 tell these apart, and the last two exceed int64.
        let ids = [720_575_940_621_039_145, 720_575_940_621_039_144];
        let batches = [ids, [u64::MAX, u64::MAX - 1]].map(|ids| integers(Kind::UInt64, &ids, None));
        let category = |rank| Categories::new(4).color(rank).0;
        let (found, scale) = painted(&batches, None);
        assert_eq!(found, [1, 0, 3, 2].map(category));
        assert_eq!(scale, "rgb, 4 values");
    }

    /// The first batch looks like categories until the second one arrives.
    #[test]
    fn codes_of_categories_become_numbers_if_there_are_too_many() {
        let values: Vec<u64> = (0..=20).rev().map(|value| value * 5).collect();
        let (first, second) = values.split_at(5);
        let mut nulls = vec![false; 5];
        nulls[1] = true;
        let first = integers(Kind::UInt32, first, Some(nulls));
        let batches = [first, integers(Kind::UInt32, second, None)];
        let (mut found, scale) = painted(&batches, None);
        assert!(scale.starts_with("rgb, 0 to 100 "), "{scale}");
        assert_eq!(found.remove(1), palette::MISSING.0);
        let floats: Vec<u8> = values
            .iter()
            .map(|value| *value as f32)
            .flat_map(f32::to_le_bytes)
            .collect();
        let mut batch = integers(Kind::UInt32, &values, None);
        let mut rows = NumericColumn::new(Kind::Float32, 1);
        rows.bytes = floats;
        batch.vertex[0].values = ColumnValues::Numeric(rows);
        let mut nulls = vec![false; values.len()];
        nulls[1] = true;
        batch.vertex[0].nulls = Some(nulls);
        let (mut expected, _) = painted(&[batch], None);
        expected.remove(1);
        assert_eq!(found, expected);
    }

    fn floats(values: &[f64]) -> QueryResult {
        let mut batch = colors(Kind::Float64, Vec::new());
        let rows = NumericColumn::float64(1, values.iter().copied());
        batch.positions.bytes = vec![0; values.len() * 12];
        batch.vertex[0].values = ColumnValues::Numeric(rows);
        batch
    }

    /// A float32 holds two of these times, one of these ids and none of the largest numbers.
    #[test]
    fn numbers_are_coloured_with_the_precision_of_float64() {
        let steps: Vec<f64> = (0..=100_u8).map(f64::from).collect();
        let (want, _) = painted(&[floats(&steps)], None);
        let check = |low: f64, step: f64, range: &str| {
            let values: Vec<f64> = steps
                .iter()
                .map(|at| (low / 2.0 + at * (step / 2.0)) * 2.0)
                .collect();
            let (found, scale) = painted(&[floats(&values)], None);
            assert_eq!(scale, format!("rgb, {range} (2nd to 98th percentile)"));
            for (found, want) in found.as_flattened().iter().zip(want.as_flattened()) {
                assert!(found.abs_diff(*want) <= 1, "{range}: {found} {want}");
            }
        };
        check(1.7e9, 1.0, "1700000002.0 to 1700000098.0");
        check(500_010.0, 0.001, "500010.0020 to 500010.0980");
        check(0.0, 1e299, "2e299 to 9.8e300");
        check(0.0, 1e-50, "2e-50 to 9.8e-49");
        check(-1.7e308, 3.4e306, "-1.64e308 to 1.64e308");
        let ids: Vec<u64> = (0..=100).map(|at| 1_000_000_000_000_000 + at).collect();
        let (found, scale) = painted(&[integers(Kind::UInt64, &ids, None)], None);
        assert_eq!(found, want);
        let range = "1000000000000002.0 to 1000000000000098.0";
        assert_eq!(scale, format!("rgb, {range} (2nd to 98th percentile)"));
    }

    #[test]
    fn equal_numbers_have_the_lowest_color() {
        for value in [0.0, 1e-300, -7.0, 1.7e9, 1e300] {
            let (found, scale) = painted(&[floats(&[value; 3])], None);
            let lowest = Colormap::default().on(Background::default(), 0.0).0;
            assert_eq!(found, [lowest; 3], "{scale}");
        }
    }

    /// A second pass over the data uses the codes of the first one.
    #[test]
    fn codes_of_integers_are_the_same_in_a_second_pass() {
        let source = Source::Attribute(None, "rgb".to_owned());
        for count in [8, 9] {
            let values: Vec<u64> = (0..count).map(|value| value << 25 | 1).collect();
            let batch = integers(Kind::UInt64, &values, None);
            let (mut encoder, mut links) = (ColorEncoder::default(), Vec::new());
            let mut passes = [Vec::new(), Vec::new()];
            for codes in &mut passes {
                encoder.add(&batch, &source, codes, &mut links).unwrap();
                encoder.freeze_statistics();
            }
            let [first, second] = passes;
            assert_eq!(first, second, "{count}");
        }
    }

    fn owned(ids: &[i64]) -> QueryResult {
        let mut batch = QueryResult::default();
        batch.positions = NumericColumn::new(Kind::Float32, 3);
        batch.positions.bytes = vec![0; ids.len() * 12];
        batch.object_ids = Some(ObjectIds::from_numbers(ids.to_vec()));
        batch
    }

    /// Ids of one segmentation often agree modulo small numbers.
    #[test]
    fn objects_are_coloured_by_rank_and_not_by_id() {
        let (mut encoder, mut codes) = (ColorEncoder::default(), Vec::new());
        for ids in [&[96, 24, 24, 720_575][..], &[24, Owner::NONE, -48, 0]] {
            encoder
                .add(&owned(ids), &Source::Object, &mut codes, &mut Vec::new())
                .unwrap();
        }
        let paint = encoder
            .paint(&Source::Object, &RenderOptions::default())
            .unwrap();
        let found: Vec<Color> = codes
            .iter()
            .map(|code| paint.color(Some(*code), [0.0; 3]))
            .collect();
        let colors = Categories::new(5);
        let ranks = [3, 2, 2, 4, 2, 9, 0, 1];
        let want = ranks.map(|rank| match rank {
            9 => palette::PLAIN,
            rank => colors.color(rank),
        });
        assert_eq!(found, want);
        assert_eq!(paint.describe(), "object, 5 objects");
    }
}
