//! Parsers of option values.

use serde_json::Value;
use zvf::{AxisSpec, CellCompression, Position, ShardingPolicy, Sphere};
use zvf_files::{FileObjectIds, LengthUnit, check_unit};
use zvf_model::{draco::PositionBits, grid::ChunkCoord};
use zvf_query::geometry::AxesError;

/// Text that is not a value of its option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("value {0}, counted from 0, is not a number")]
    Number(usize),
    #[error("value {0}, counted from 0, must be above 0")]
    Extent(usize),
    #[error(transparent)]
    Axes(#[from] AxesError),
    #[error("the radius must be a number, 0 or more")]
    Radius,
    #[error("the scale must be a number above 0")]
    Scale,
    #[error("write a chunk as numbers separated by points, as 0.-1.2")]
    Chunk,
    #[error("write a shard as auto, none, or the number of chunks along each axis, as 4,4,4")]
    Shard,
    #[error("give the lower bound of each axis, then the upper ones: {0} numbers do not pair up")]
    OddBounds(usize),
    #[error("on axis {0}, counted from 0, the lower bound is above the upper one")]
    ReversedBounds(usize),
    #[error("unknown compression {0:?}; use {words}", words = CellCompression::WORDS)]
    Compression(String),
    #[error("unknown encoding {0:?}; use raw, draco or draco:BITS")]
    Encoding(String),
    #[error("write 1 to 30 bits for a coordinate")]
    DracoBits,
    #[error("the level of {codec} must be {min} to {max}")]
    CompressionLevel {
        codec: &'static str,
        min: i64,
        max: i64,
    },
    #[error("axis {0}, counted from 0, must be NAME, NAME:UNIT or NAME:UNIT:TYPE")]
    Axis(usize),
    #[error("axis {axis}: {unit:?} {fault}")]
    Unit {
        axis: String,
        unit: String,
        fault: String,
    },
    #[error("axis {axis}: {found:?} is not a type of axes; write space, time or channel")]
    AxisType { axis: String, found: String },
    #[error("two axes are named {0:?}")]
    DuplicateAxis(String),
    #[error("write an integer, 0 or more")]
    Count,
    #[error(
        "ids of objects are integers, as the column object_id of a result has them; to select by an \
         attribute, write --where \"object.name = '{0}'\""
    )]
    Object(String),
    #[error("{0:?} is not a size; write it as 2GiB, 500MB or 1000000")]
    Size(String),
}

/// Parses finite numbers, separated by commas.
fn finite_numbers(text: &str) -> Result<Vec<f64>, ValueError> {
    let numbers = text.split(',').enumerate().map(|(at, number)| {
        let number = number.trim().parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite());
        number.ok_or(ValueError::Number(at))
    });
    numbers.collect()
}

/// A positive number for each axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExtentsArgument(pub(crate) Vec<f64>);

pub(crate) fn extents(text: &str) -> Result<ExtentsArgument, ValueError> {
    let numbers = finite_numbers(text)?;
    match numbers.iter().position(|extent| *extent <= 0.0) {
        Some(at) => Err(ValueError::Extent(at)),
        None => Ok(ExtentsArgument(numbers)),
    }
}

/// Lower and upper bounds of each axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoundsArgument {
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
}

pub(crate) fn bounds(text: &str) -> Result<BoundsArgument, ValueError> {
    let numbers = finite_numbers(text)?;
    if !numbers.len().is_multiple_of(2) {
        return Err(ValueError::OddBounds(numbers.len()));
    }
    let (lower, upper) = numbers.split_at(numbers.len() / 2);
    let mut sides = lower.iter().zip(upper);
    if let Some(axis) = sides.position(|(lower, upper)| lower > upper) {
        return Err(ValueError::ReversedBounds(axis));
    }
    Ok(BoundsArgument {
        lower: lower.to_vec(),
        upper: upper.to_vec(),
    })
}

pub(crate) fn sharding(text: &str) -> Result<ShardingPolicy, ValueError> {
    match text {
        "auto" => return Ok(ShardingPolicy::Auto),
        "none" => return Ok(ShardingPolicy::None),
        _ => {}
    }
    let chunks = text.split(',').map(|count| {
        let count = count.trim().parse::<u64>().ok();
        count.filter(|count| *count > 0).ok_or(ValueError::Shard)
    });
    Ok(ShardingPolicy::Shape(chunks.collect::<Result<_, _>>()?))
}

pub(crate) fn compression(text: &str) -> Result<CellCompression, ValueError> {
    let unknown = || ValueError::Compression(text.to_owned());
    let (name, level) = match text.split_once(':') {
        Some((name, level)) => (name, Some(level)),
        None => (text, None),
    };
    let default = CellCompression::new(name, None).ok_or_else(unknown)?;
    let Some(level) = level else {
        return Ok(default);
    };
    let (_, [min, max]) = default.level().ok_or_else(unknown)?;
    let level = level.parse::<i32>().ok();
    let level = level.filter(|level| (min..=max).contains(&i64::from(*level)));
    let compression = level.and_then(|level| CellCompression::new(name, Some(level)));
    let codec = default.name();
    compression.ok_or(ValueError::CompressionLevel { codec, min, max })
}

/// Encoding of vertices: `None` for none, or the bits of a coordinate with Draco.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerticesArgument(pub(crate) Option<PositionBits>);

pub(crate) fn encoding(text: &str) -> Result<VerticesArgument, ValueError> {
    let bits = match text.split_once(':') {
        Some(("draco", bits)) => {
            let bits = bits.parse().ok().and_then(PositionBits::new);
            Some(bits.ok_or(ValueError::DracoBits)?)
        }
        None if text == "draco" => Some(PositionBits::default()),
        None if text == "raw" => None,
        _ => return Err(ValueError::Encoding(text.to_owned())),
    };
    Ok(VerticesArgument(bits))
}

/// Axes: names, with optional units and types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axes(pub(crate) Vec<AxisSpec>);

pub(crate) fn axes(text: &str) -> Result<Axes, ValueError> {
    let mut axes: Vec<AxisSpec> = Vec::new();
    // Reading the file then lists its columns.
    if text.is_empty() {
        return Ok(Axes(axes));
    }
    for (at, text) in text.split(',').enumerate() {
        let mut parts = text.split(':').map(str::trim);
        let name = parts
            .next()
            .filter(|name| !name.is_empty())
            .ok_or(ValueError::Axis(at))?
            .to_owned();
        let unit = parts.next();
        let kind = parts.next();
        if parts.next().is_some() || kind == Some("") || unit == Some("") && kind.is_none() {
            return Err(ValueError::Axis(at));
        }
        if axes.iter().any(|axis| axis.name == name) {
            return Err(ValueError::DuplicateAxis(name));
        }
        let unit = unit.filter(|unit| !unit.is_empty());
        if let Some(unit) = unit
            && let Err(fault) = unit_fault(unit)
        {
            let unit = unit.to_owned();
            return Err(ValueError::Unit {
                axis: name,
                unit,
                fault,
            });
        }
        if let Some(found) = kind.filter(|kind| !AXIS_TYPES.contains(kind)) {
            let found = found.to_owned();
            return Err(ValueError::AxisType { axis: name, found });
        }
        let mut axis = AxisSpec::new(name).kind(kind.unwrap_or("space"));
        axis.unit = unit.map(str::to_owned);
        axes.push(axis);
    }
    Ok(Axes(axes))
}

/// Types of axes in OME-Zarr.
const AXIS_TYPES: [&str; 3] = ["space", "time", "channel"];

/// Checks that a unit is known, and not the type of an axis.
fn unit_fault(unit: &str) -> Result<(), String> {
    if AXIS_TYPES.contains(&unit) {
        return Err(format!("is a type; write NAME::{unit} for it"));
    }
    check_unit(unit)
}

/// Parses the unit of the coordinates of a file.
pub(crate) fn unit(text: &str) -> Result<String, String> {
    match check_unit(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(fault) => Err(format!("{text:?} {fault}")),
    }
}

/// Parses the unit of length of a file that is written.
pub(crate) fn length_unit(text: &str) -> Result<LengthUnit, String> {
    let found = LengthUnit::of(&unit(text)?);
    found.ok_or_else(|| {
        format!("{text:?} is not a metric unit of length, such as nanometer or millimeter")
    })
}

/// Parses a number of bytes, with or without a unit.
pub(crate) fn size(text: &str) -> Result<u64, ValueError> {
    let error = || ValueError::Size(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed.find(|mark: char| !mark.is_ascii_digit());
    let (number, unit) = trimmed.split_at(digits.unwrap_or(trimmed.len()));
    let number = number.parse::<u64>().map_err(|_| error())?;
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(error()),
    };
    let bytes = number.checked_mul(factor);
    bytes.filter(|bytes| *bytes > 0).ok_or_else(error)
}

/// Parses a number of items.
pub(crate) fn count(text: &str) -> Result<u64, ValueError> {
    text.trim().parse().map_err(|_| ValueError::Count)
}

/// Parses the number or the name of a group.
pub(crate) fn group(text: &str) -> Result<String, ValueError> {
    match text.trim().parse::<i64>() {
        Ok(number) if number < 0 => Err(ValueError::Count),
        _ => Ok(text.to_owned()),
    }
}

/// Parses the id of an object.
pub(crate) fn object(text: &str) -> Result<i64, ValueError> {
    let id = text.trim().parse().ok();
    id.ok_or_else(|| ValueError::Object(text.trim().to_owned()))
}

/// Parses ids of objects separated by commas, `name`, `number`, or the name of a table.
pub(crate) fn object_ids(text: &str) -> Result<FileObjectIds, ValueError> {
    match text {
        "name" => return Ok(FileObjectIds::Names),
        "number" => return Ok(FileObjectIds::Numbers),
        _ => {}
    }
    let is_list = text.split(',').all(|id| {
        id.trim()
            .trim_start_matches('-')
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    });
    if !is_list {
        return Ok(FileObjectIds::Table(text.into()));
    }
    let ids: Result<Vec<i64>, ValueError> = text.split(',').map(object).collect();
    ids.map(FileObjectIds::List)
}

/// Parses numbers separated by commas; infinity is allowed.
fn numbers_or_infinity(text: &str) -> Result<Vec<f64>, ValueError> {
    let numbers = text.split(',').enumerate().map(|(at, number)| {
        let number = number.trim().parse::<f64>().ok();
        let number = number.filter(|number| !number.is_nan());
        number.ok_or(ValueError::Number(at))
    });
    numbers.collect()
}

/// Parses a centre, followed by a radius.
pub(crate) fn sphere(text: &str) -> Result<Sphere, ValueError> {
    let mut numbers = numbers_or_infinity(text)?;
    let radius = numbers
        .pop()
        .filter(|radius| *radius >= 0.0)
        .ok_or(ValueError::Radius)?;
    Ok(Sphere::new(&numbers, radius)?)
}

pub(crate) fn position(text: &str) -> Result<Position, ValueError> {
    Ok(Position::new(&numbers_or_infinity(text)?)?)
}

pub(crate) fn scale(text: &str) -> Result<f64, ValueError> {
    let scale = text.trim().parse::<f64>().ok();
    let scale = scale.filter(|scale| *scale > 0.0);
    scale.ok_or(ValueError::Scale)
}

pub(crate) fn chunk(text: &str) -> Result<ChunkCoord, ValueError> {
    let arity = text.split('.').count();
    ChunkCoord::parse(text, arity).map_err(|_| ValueError::Chunk)
}

/// Parses a JSON number, bool or string; other text is taken literally.
pub(crate) fn chunked_by(text: &str) -> Value {
    let value = serde_json::from_str::<Value>(text).ok();
    let value = value.filter(|value| !value.is_array() && !value.is_object() && !value.is_null());
    value.unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_lower_then_upper() {
        let found = bounds("-1,0, 2,3").unwrap();
        assert_eq!(found.lower, [-1.0, 0.0]);
        assert_eq!(found.upper, [2.0, 3.0]);
        assert_eq!(bounds("0,0,1"), Err(ValueError::OddBounds(3)));
        assert_eq!(bounds("0,5,1,4"), Err(ValueError::ReversedBounds(1)));
        assert_eq!(bounds("0,inf"), Err(ValueError::Number(1)));
    }

    #[test]
    fn extents_must_be_positive() {
        assert_eq!(extents("1,2.5"), Ok(ExtentsArgument(vec![1.0, 2.5])));
        assert_eq!(extents("1,0"), Err(ValueError::Extent(1)));
        assert_eq!(extents("a"), Err(ValueError::Number(0)));
    }

    #[test]
    fn compression_levels_are_range_checked() {
        assert_eq!(compression("none"), Ok(CellCompression::None));
        assert_eq!(compression("zstd"), Ok(CellCompression::Zstd(1)));
        assert_eq!(compression("zstd:19"), Ok(CellCompression::Zstd(19)));
        assert_eq!(compression("gzip"), Ok(CellCompression::Gzip(5)));
        assert_eq!(compression("gzip:0"), Ok(CellCompression::Gzip(0)));
        assert_eq!(compression("blosc"), Ok(CellCompression::Blosc));
        assert_eq!(compression("auto"), Ok(CellCompression::Auto));
        let level = ValueError::CompressionLevel {
            codec: "zstd",
            min: 1,
            max: 22,
        };
        assert_eq!(compression("zstd:23"), Err(level));
        for text in ["lz4", "none:1", "blosc:2", ""] {
            let error = ValueError::Compression(text.to_owned());
            assert_eq!(compression(text), Err(error));
        }
    }

    #[test]
    fn bits_of_encoded_vertices_are_range_checked() {
        let draco = |bits| Ok(VerticesArgument(PositionBits::new(bits)));
        assert_eq!(encoding("raw"), Ok(VerticesArgument(None)));
        assert_eq!(encoding("draco"), draco(11));
        assert_eq!(encoding("draco:1"), draco(1));
        assert_eq!(encoding("draco:30"), draco(30));
        for text in ["draco:0", "draco:31", "draco:", "draco:x"] {
            assert_eq!(encoding(text), Err(ValueError::DracoBits));
        }
        for text in ["", "Draco", "raw:1", "gzip"] {
            assert_eq!(encoding(text), Err(ValueError::Encoding(text.to_owned())));
        }
    }

    #[test]
    fn axes_may_have_units_and_types() {
        let axis = |name: &str, unit: Option<&str>, kind: &str| {
            let mut axis = AxisSpec::new(name).kind(kind);
            axis.unit = unit.map(str::to_owned);
            axis
        };
        let expected = vec![
            axis("x", Some("micrometer"), "space"),
            axis("t", Some("second"), "time"),
            axis("c", None, "channel"),
            axis("y", None, "space"),
        ];
        let found = axes("x:micrometer,t:second:time,c::channel, y");
        assert_eq!(found, Ok(Axes(expected)));
        assert_eq!(axes("x,,y"), Err(ValueError::Axis(1)));
        assert_eq!(axes("x:"), Err(ValueError::Axis(0)));
        assert_eq!(axes("x:a:b:c"), Err(ValueError::Axis(0)));
        let said = axes("x:foo").unwrap_err().to_string();
        assert!(
            said.starts_with("axis x: \"foo\" is not a known unit"),
            "{said}"
        );
        let said = axes("x,t:second:tim").unwrap_err().to_string();
        assert!(said.contains("\"tim\" is not a type of axes"), "{said}");
        assert_eq!(axes("x,x"), Err(ValueError::DuplicateAxis("x".to_owned())));
    }

    #[test]
    fn sizes_have_decimal_or_binary_units() {
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("500 MB"), Ok(500_000_000));
        assert_eq!(size("1000000"), Ok(1_000_000));
        for text in ["", "GiB", "-1", "1.5GiB", "0", "99999999999TiB", "2XB"] {
            assert_eq!(size(text), Err(ValueError::Size(text.to_owned())));
        }
    }

    #[test]
    fn shards_are_counts_of_chunks_per_axis() {
        assert_eq!(sharding("auto"), Ok(ShardingPolicy::Auto));
        assert_eq!(sharding("none"), Ok(ShardingPolicy::None));
        assert_eq!(sharding("4, 2"), Ok(ShardingPolicy::Shape(vec![4, 2])));
        for text in ["", "0,1", "a", "1.5"] {
            assert_eq!(sharding(text), Err(ValueError::Shard));
        }
    }

    #[test]
    fn the_last_number_of_a_sphere_is_its_radius() {
        let found = sphere("-1, 2.5,-3,4").unwrap();
        assert_eq!(found.centre(), [-1.0, 2.5, -3.0]);
        assert!((4.0..=4.0).contains(&found.radius()));
        assert_eq!(sphere("1,2,-4"), Err(ValueError::Radius));
        assert_eq!(sphere("4"), Err(ValueError::Axes(AxesError(0))));
        assert_eq!(sphere("1,x,2"), Err(ValueError::Number(1)));
        assert_eq!(sphere("1,nan,2"), Err(ValueError::Number(1)));
    }

    #[test]
    fn chunk_numbers_are_separated_by_points_and_may_be_negative() {
        assert_eq!(chunk("0.-1.2").unwrap().coords(), [0, -1, 2]);
        assert_eq!(chunk("7").unwrap().coords(), [7]);
        for text in ["", "0..1", "0,1", "a.b", "0.1."] {
            assert_eq!(chunk(text), Err(ValueError::Chunk), "{text}");
        }
    }

    #[test]
    fn a_scale_must_be_positive() {
        assert_eq!(scale("2.5"), Ok(2.5));
        for text in ["0", "-1", "nan", "x"] {
            assert_eq!(scale(text), Err(ValueError::Scale), "{text}");
        }
    }

    #[test]
    fn a_value_that_is_not_json_is_text() {
        assert_eq!(chunked_by("5"), Value::from(5));
        assert_eq!(chunked_by("true"), Value::from(true));
        assert_eq!(chunked_by("\"5\""), Value::from("5"));
        assert_eq!(chunked_by("axon"), Value::from("axon"));
        assert_eq!(chunked_by("[1]"), Value::from("[1]"));
    }
}
