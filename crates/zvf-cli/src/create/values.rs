//! Values of the command line as what they mean.

use std::fs;

use serde_json::Value;
use zvf::build::{AxisSpec, CellCompression, ShardingPolicy};

/// Levels when none is said. At 1 zstd decodes up to twice as fast as at 3, at about
/// the same size.
const ZSTD: i32 = 1;
const GZIP: u32 = 5;

/// Why text is no value of an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("value {0}, counted from 0, is no number")]
    Number(usize),
    #[error("value {0}, counted from 0, is not above 0")]
    Extent(usize),
    #[error("a shard is auto, or chunks along each axis as 4,4,4")]
    Shard,
    #[error("bounds are the least of each axis, then the greatest: {0} numbers leave one alone")]
    Odd(usize),
    #[error("on axis {0}, counted from 0, the least is above the greatest")]
    UpsideDown(usize),
    #[error("{0:?} is none; use none, zstd, zstd:LEVEL, blosc, gzip or gzip:LEVEL")]
    Compression(String),
    #[error("levels of {0} go from {1} to {2}")]
    CompressionLevel(&'static str, i32, i32),
    #[error("axis {0}, counted from 0, is not NAME, NAME:UNIT or NAME:UNIT:TYPE")]
    Axis(usize),
    #[error("two axes are called {0:?}")]
    AxisTwice(String),
    #[error("{0:?} is no size; write it as 2GiB, 500MB or 1000000")]
    Size(String),
    #[error("{path} cannot be read: {why}")]
    CrsFile { path: String, why: String },
    #[error("this is no JSON: {0}")]
    Json(String),
}

/// Finite numbers with commas between.
fn numbers(text: &str) -> Result<Vec<f64>, ValueError> {
    let numbers = text.split(',').enumerate().map(|(at, number)| {
        let number = number.trim().parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite());
        number.ok_or(ValueError::Number(at))
    });
    numbers.collect()
}

/// A number above 0 for each axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Extents(pub(crate) Vec<f64>);

pub(crate) fn extents(text: &str) -> Result<Extents, ValueError> {
    let numbers = numbers(text)?;
    match numbers.iter().position(|extent| *extent <= 0.0) {
        Some(at) => Err(ValueError::Extent(at)),
        None => Ok(Extents(numbers)),
    }
}

/// The least and the greatest of each axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
}

pub(super) fn bounds(text: &str) -> Result<Bounds, ValueError> {
    let numbers = numbers(text)?;
    if !numbers.len().is_multiple_of(2) {
        return Err(ValueError::Odd(numbers.len()));
    }
    let (lower, upper) = numbers.split_at(numbers.len() / 2);
    let mut sides = lower.iter().zip(upper);
    if let Some(axis) = sides.position(|(lower, upper)| lower > upper) {
        return Err(ValueError::UpsideDown(axis));
    }
    Ok(Bounds {
        lower: lower.to_vec(),
        upper: upper.to_vec(),
    })
}

pub(crate) fn sharding(text: &str) -> Result<ShardingPolicy, ValueError> {
    if text == "auto" {
        return Ok(ShardingPolicy::Auto);
    }
    let chunks = text.split(',').map(|count| {
        let count = count.trim().parse::<u64>().ok();
        count.filter(|count| *count > 0).ok_or(ValueError::Shard)
    });
    Ok(ShardingPolicy::Shape(chunks.collect::<Result<_, _>>()?))
}

pub(crate) fn compression(text: &str) -> Result<CellCompression, ValueError> {
    let (name, level) = match text.split_once(':') {
        Some((name, level)) => (name, Some(level)),
        None => (text, None),
    };
    let within = |name, least: i32, most: i32| {
        let level = level.map(|level| {
            let level = level.parse::<i32>().ok();
            let level = level.filter(|level| (least..=most).contains(level));
            level.ok_or(ValueError::CompressionLevel(name, least, most))
        });
        level.transpose()
    };
    match (name, level) {
        ("none", None) => Ok(CellCompression::None),
        ("blosc", None) => Ok(CellCompression::Blosc),
        ("zstd", _) => Ok(CellCompression::Zstd(
            within("zstd", 1, 22)?.unwrap_or(ZSTD),
        )),
        ("gzip", _) => {
            let level = within("gzip", 0, 9)?;
            let level = level.and_then(|level| u32::try_from(level).ok());
            Ok(CellCompression::Gzip(level.unwrap_or(GZIP)))
        }
        _ => Err(ValueError::Compression(text.to_owned())),
    }
}

/// Names with a unit and a type where they have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axes(pub(super) Vec<AxisSpec>);

pub(super) fn axes(text: &str) -> Result<Axes, ValueError> {
    let mut axes: Vec<AxisSpec> = Vec::new();
    for (at, text) in text.split(',').enumerate() {
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().filter(|name| !name.is_empty());
        let name = name.ok_or(ValueError::Axis(at))?.to_owned();
        let unit = parts.next();
        let kind = parts.next();
        if parts.next().is_some() || kind == Some("") || unit == Some("") && kind.is_none() {
            return Err(ValueError::Axis(at));
        }
        if axes.iter().any(|axis| axis.name == name) {
            return Err(ValueError::AxisTwice(name));
        }
        axes.push(AxisSpec {
            name,
            kind: kind.unwrap_or("space").to_owned(),
            unit: unit.filter(|unit| !unit.is_empty()).map(str::to_owned),
        });
    }
    Ok(Axes(axes))
}

/// Bytes, with a unit or without.
pub(super) fn size(text: &str) -> Result<u64, ValueError> {
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

/// JSON, or the JSON in a file after an @; text that does not look like JSON stands
/// for itself, as `EPSG:4326` does.
pub(super) fn crs(text: &str) -> Result<Value, ValueError> {
    let parse = |text: &str| {
        serde_json::from_str(text).map_err(|error| ValueError::Json(error.to_string()))
    };
    if let Some(path) = text.strip_prefix('@') {
        let found = fs::read_to_string(path).map_err(|error| ValueError::CrsFile {
            path: path.to_owned(),
            why: error.to_string(),
        });
        return parse(&found?);
    }
    match text.trim_start().starts_with(['{', '[', '"']) {
        true => parse(text),
        false => Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_lower_then_upper() {
        let found = bounds("-1,0, 2,3").unwrap();
        assert_eq!(found.lower, [-1.0, 0.0]);
        assert_eq!(found.upper, [2.0, 3.0]);
        assert_eq!(bounds("0,0,1"), Err(ValueError::Odd(3)));
        assert_eq!(bounds("0,5,1,4"), Err(ValueError::UpsideDown(1)));
        assert_eq!(bounds("0,inf"), Err(ValueError::Number(1)));
    }

    #[test]
    fn extents_are_above_0() {
        assert_eq!(extents("1,2.5"), Ok(Extents(vec![1.0, 2.5])));
        assert_eq!(extents("1,0"), Err(ValueError::Extent(1)));
        assert_eq!(extents("a"), Err(ValueError::Number(0)));
    }

    #[test]
    fn compression_has_levels_within_bounds() {
        assert_eq!(compression("none"), Ok(CellCompression::None));
        assert_eq!(compression("zstd"), Ok(CellCompression::Zstd(1)));
        assert_eq!(compression("zstd:19"), Ok(CellCompression::Zstd(19)));
        assert_eq!(compression("gzip"), Ok(CellCompression::Gzip(5)));
        assert_eq!(compression("gzip:0"), Ok(CellCompression::Gzip(0)));
        assert_eq!(compression("blosc"), Ok(CellCompression::Blosc));
        let level = ValueError::CompressionLevel("zstd", 1, 22);
        assert_eq!(compression("zstd:23"), Err(level));
        for text in ["lz4", "none:1", "blosc:2", ""] {
            let error = ValueError::Compression(text.to_owned());
            assert_eq!(compression(text), Err(error));
        }
    }

    #[test]
    fn axes_may_have_units_and_types() {
        let axis = |name: &str, unit: Option<&str>, kind: &str| AxisSpec {
            name: name.to_owned(),
            kind: kind.to_owned(),
            unit: unit.map(str::to_owned),
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
        assert_eq!(axes("x,x"), Err(ValueError::AxisTwice("x".to_owned())));
    }

    #[test]
    fn sizes_have_units_of_both_sorts() {
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("500 MB"), Ok(500_000_000));
        assert_eq!(size("1000000"), Ok(1_000_000));
        for text in ["", "GiB", "-1", "1.5GiB", "0", "99999999999TiB", "2XB"] {
            assert_eq!(size(text), Err(ValueError::Size(text.to_owned())));
        }
    }

    #[test]
    fn shards_are_chunks_along_axes() {
        assert_eq!(sharding("auto"), Ok(ShardingPolicy::Auto));
        assert_eq!(sharding("4, 2"), Ok(ShardingPolicy::Shape(vec![4, 2])));
        for text in ["", "0,1", "a", "1.5"] {
            assert_eq!(sharding(text), Err(ValueError::Shard));
        }
    }

    #[test]
    fn a_crs_is_json_or_in_a_file_or_a_name() {
        assert_eq!(crs("{\"a\": 1}"), Ok(serde_json::json!({ "a": 1 })));
        assert_eq!(crs("EPSG:4326"), Ok(Value::from("EPSG:4326")));
        assert!(matches!(crs("{a}"), Err(ValueError::Json(_))));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crs.json");
        fs::write(&path, "[1]").unwrap();
        let found = crs(&format!("@{}", path.display()));
        assert_eq!(found, Ok(serde_json::json!([1])));
        assert!(matches!(crs("@/no/such"), Err(ValueError::CrsFile { .. })));
    }
}
