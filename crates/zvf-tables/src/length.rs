//! Units of length, and the factors between them.

use core::fmt;

use zvf::{AxisSpec, NumericColumn, numeric::Kind};
use zvf_model::root::RootMetadata;

use crate::floats::{narrow, to_f32_bytes, to_f64};

/// A unit of length, which is a power of ten of the metre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthUnit {
    /// Full name, as in OME-Zarr.
    pub name: &'static str,
    /// Exponent to base ten of the size in metres.
    exponent: i32,
    /// Abbreviations. The case of their letters matters: `Mm` is a megametre, and `mm` a millimetre.
    symbols: &'static [&'static str],
    /// Other names, in lower case.
    words: &'static [&'static str],
}

/// The unit of tractograms and surfaces.
pub const MILLIMETER: LengthUnit = LengthUnit {
    name: "millimeter",
    exponent: -3,
    symbols: &["mm"],
    words: &[],
};

/// Known units. The first is that of other scales in precomputed data.
pub const LENGTH_UNITS: [LengthUnit; 9] = [
    LengthUnit::new("nanometer", -9, &["nm"]),
    LengthUnit {
        words: &["micron"],
        ..LengthUnit::new("micrometer", -6, &["um", "µm", "μm"])
    },
    MILLIMETER,
    LengthUnit::new("meter", 0, &["m"]),
    LengthUnit::new("picometer", -12, &["pm"]),
    LengthUnit {
        words: &["ångström"],
        ..LengthUnit::new("angstrom", -10, &["A", "Å", "\u{212b}"])
    },
    LengthUnit::new("centimeter", -2, &["cm"]),
    LengthUnit::new("decimeter", -1, &["dm"]),
    LengthUnit::new("kilometer", 3, &["km"]),
];

impl LengthUnit {
    const fn new(name: &'static str, exponent: i32, symbols: &'static [&'static str]) -> Self {
        Self {
            name,
            exponent,
            symbols,
            words: &[],
        }
    }

    /// Returns the unit of a name or an abbreviation, in the singular or the plural; `None` if it is
    /// not known.
    pub fn of(name: &str) -> Option<Self> {
        let symbol = name.trim();
        let lower = symbol.to_lowercase();
        let singular = lower.strip_suffix('s').filter(|text| text.len() > 3);
        let word = singular.unwrap_or(&lower).replace("metre", "meter");
        let mut units = LENGTH_UNITS.into_iter();
        units.find(|unit| {
            unit.symbols.contains(&symbol)
                || unit.name == word
                || unit.words.contains(&word.as_str())
        })
    }

    /// Returns the unit of coordinates along an axis of space; `None` if it has none that is known.
    pub fn of_axis(axis: &AxisSpec) -> Option<Self> {
        // In an axis of time, `m` may stand for minutes.
        let unit = axis.unit.as_deref().filter(|_| axis.kind == "space");
        Self::of(unit?)
    }

    /// Returns the size in metres.
    pub fn metres(self) -> f64 {
        LengthFactor::of_exponent(self.exponent).apply(1.0)
    }

    /// Returns the factor of lengths in this unit that are expressed in another one.
    pub fn in_unit(self, other: Self) -> LengthFactor {
        LengthFactor::of_exponent(self.exponent.saturating_sub(other.exponent))
    }

    /// Returns the name in messages.
    pub fn plural(self) -> String {
        format!("{}s", self.name.replace("meter", "metre"))
    }
}

/// Returns the size in metres of the unit of each axis of a store; `None` for an axis that has no unit of
/// length.
pub fn length_scales(root: &RootMetadata) -> Vec<Option<f64>> {
    let axes = root.axes.iter().map(|axis| {
        let mut described = AxisSpec::new(&axis.name);
        described.kind = axis.kind.clone().unwrap_or(described.kind);
        described.unit.clone_from(&axis.unit);
        LengthUnit::of_axis(&described).map(LengthUnit::metres)
    });
    axes.collect()
}

/// A power of ten by which lengths are multiplied. Negative powers are not exact in binary, so
/// lengths are divided by positive ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthFactor {
    multiplier: f64,
    divisor: f64,
}

impl LengthFactor {
    /// The factor of a unit in itself.
    pub const ONE: Self = Self {
        multiplier: 1.0,
        divisor: 1.0,
    };

    fn of_exponent(exponent: i32) -> Self {
        let power = (0..exponent.unsigned_abs()).fold(1.0, |power, _| power * 10.0);
        match exponent {
            ..0 => Self {
                divisor: power,
                ..Self::ONE
            },
            0.. => Self {
                multiplier: power,
                ..Self::ONE
            },
        }
    }

    /// Multiplies a length.
    pub fn apply(self, length: f64) -> f64 {
        length * self.multiplier / self.divisor
    }
}

/// The conversion of a coordinate from one unit of length to another.
#[derive(Clone, Debug, PartialEq)]
pub struct LengthConversion {
    factor: LengthFactor,
    /// Names of both units, if they differ.
    names: Option<(&'static str, &'static str)>,
}

impl LengthConversion {
    /// Returns the conversion between two units. Coordinates in an unknown unit are not converted.
    pub fn between(from: Option<&str>, to: Option<&str>) -> Self {
        let unit = |name: Option<&str>| LengthUnit::of(name?);
        match (unit(from), unit(to)) {
            (Some(from), Some(to)) if from != to => Self {
                factor: from.in_unit(to),
                names: Some((from.name, to.name)),
            },
            _ => Self {
                factor: LengthFactor::ONE,
                names: None,
            },
        }
    }

    /// Returns whether coordinates stay as they are.
    pub fn is_identity(&self) -> bool {
        self.factor == LengthFactor::ONE
    }
}

impl fmt::Display for LengthConversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names {
            Some((from, to)) => write!(f, "from {from} to {to}"),
            None => f.write_str("to the same unit"),
        }
    }
}

/// Converts the numbers of each row, for which the conversions repeat. 32-bit floats stay 32-bit
/// floats, 16-bit floats become such, and integers become 64-bit floats. Complex numbers are not
/// changed.
pub fn convert_lengths(column: &mut NumericColumn, conversions: &[LengthConversion]) {
    let factors: Vec<LengthFactor> = conversions.iter().map(|each| each.factor).collect();
    scale(column, &factors);
}

/// Multiplies the numbers of each row by factors, as [`convert_lengths`] does.
pub fn scale(column: &mut NumericColumn, factors: &[LengthFactor]) {
    if factors.iter().all(|factor| *factor == LengthFactor::ONE) {
        return;
    }
    let kind = match column.kind {
        Kind::Complex64 | Kind::Complex128 => return,
        Kind::Float16 | Kind::Float32 => Kind::Float32,
        _ => Kind::Float64,
    };
    if column.kind != kind {
        let converted = match kind {
            Kind::Float32 => to_f32_bytes(column)
                .map(|bytes| NumericColumn::new(kind, column.width).with_bytes(bytes)),
            _ => to_f64(column).map(|values| NumericColumn::float64(column.width, values)),
        };
        // Only complex numbers have no such form.
        let Some(converted) = converted else {
            return;
        };
        *column = converted;
    }
    let factors = factors.iter().cycle();
    if kind == Kind::Float32 {
        let (words, _) = column.bytes.as_chunks_mut::<4>();
        for (word, factor) in words.iter_mut().zip(factors) {
            let scaled = factor.apply(f32::from_le_bytes(*word).into());
            *word = narrow(scaled).to_le_bytes();
        }
    } else {
        let (words, _) = column.bytes.as_chunks_mut::<8>();
        for (word, factor) in words.iter_mut().zip(factors) {
            *word = factor.apply(f64::from_le_bytes(*word)).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_abbreviations_are_known() {
        for (name, expected) in [
            ("nanometer", Some("nanometer")),
            ("Nanometres", Some("nanometer")),
            ("nm", Some("nanometer")),
            ("microns", Some("micrometer")),
            ("\u{b5}m", Some("micrometer")),
            ("\u{3bc}m", Some("micrometer")),
            (" mm ", Some("millimeter")),
            ("metre", Some("meter")),
            ("meters", Some("meter")),
            ("\u{c5}", Some("angstrom")),
            ("\u{212b}", Some("angstrom")),
            ("kilometers", Some("kilometer")),
            ("\u{c5}ngstr\u{f6}ms", Some("angstrom")),
            ("A", Some("angstrom")),
            ("Mm", None),
            ("MM", None),
            ("Pm", None),
            ("NM", None),
            ("M", None),
            ("ms", None),
            ("second", None),
            ("voxel", None),
            ("foot", None),
            ("s", None),
            ("", None),
        ] {
            let found = LengthUnit::of(name).map(|unit| unit.name);
            assert_eq!(found, expected, "{name:?}");
        }
    }

    #[test]
    fn sizes_and_factors_are_the_nearest_numbers() {
        let sizes = LENGTH_UNITS.map(LengthUnit::metres);
        let expected = [1e-9, 1e-6, 1e-3, 1.0, 1e-12, 1e-10, 1e-2, 1e-1, 1e3];
        assert_eq!(sizes.map(f64::to_bits), expected.map(f64::to_bits));
        let millimetres = |name: &str, length: f64| {
            let factor = LengthUnit::of(name).map(|unit| unit.in_unit(MILLIMETER));
            factor.map(|factor| factor.apply(length))
        };
        assert_eq!(millimetres("nm", 1_234_567.0), Some(1.234_567));
        assert_eq!(millimetres("um", 0.3), Some(0.0003));
        assert_eq!(millimetres("m", 0.007), Some(7.0));
        assert_eq!(millimetres("mm", 0.1), Some(0.1));
        assert_eq!(MILLIMETER.in_unit(MILLIMETER), LengthFactor::ONE);
        assert_eq!(MILLIMETER.plural(), "millimetres");
    }
}
