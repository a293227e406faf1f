//! Coordinates in the unit of their axis.

use zvf::{AxisSpec, NumericColumn, numeric::Kind};
use zvf_precomputed::{Dimension, IDENTITY};

use crate::{FileFault, affine::VoxelMap, length::LENGTH_UNITS, values::narrow};

/// Units of time with their sizes in seconds.
const TIMES: [(f64, &str); 6] = [
    (1.0, "second"),
    (1e-3, "millisecond"),
    (1e-6, "microsecond"),
    (1e-9, "nanosecond"),
    (60.0, "minute"),
    (3600.0, "hour"),
];
/// Prefixes of SI units.
const PREFIXES: [(&str, f64); 16] = [
    ("p", 1e-12),
    ("n", 1e-9),
    ("µ", 1e-6),
    ("μ", 1e-6),
    ("u", 1e-6),
    ("m", 1e-3),
    ("c", 1e-2),
    ("d", 1e-1),
    ("da", 1e1),
    ("h", 1e2),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("f", 1e-15),
    ("a", 1e-18),
];

/// Positions of three axes that a transform takes to nanometres.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelSpace {
    /// `None` for the identity.
    map: Option<VoxelMap>,
}

impl ModelSpace {
    /// Reads a transform.
    pub(super) fn of(transform: [f64; 12]) -> Result<Self, FileFault> {
        if let Some(number) = transform.iter().find(|number| !number.is_finite()) {
            let expected = "the transform has finite numbers; repair it";
            return Err(FileFault::field("transform", number, expected));
        }
        let is_identity = transform == IDENTITY;
        let rows = transform.as_chunks::<4>().0.first_chunk::<3>().copied();
        Ok(Self {
            map: rows.filter(|_| !is_identity).map(VoxelMap),
        })
    }

    /// Returns the factor of lengths; `None` if it depends on their direction.
    pub(super) fn scale(&self) -> Option<f64> {
        self.map.map_or(Some(1.0), |map| map.uniform_scale())
    }

    /// Returns a column for positions.
    pub(super) fn column(&self) -> NumericColumn {
        let kind = match self.map {
            None => Kind::Float32,
            Some(_) => Kind::Float64,
        };
        NumericColumn::new(kind, 3)
    }

    /// Appends a position.
    pub(super) fn push(&self, at: [f64; 3], to: &mut NumericColumn) -> Result<(), FileFault> {
        let position = self.map.map_or(at, |map| map.apply(at));
        for number in position {
            let stored = match self.map {
                None => f64::from(narrow(number)),
                Some(_) => number,
            };
            if !stored.is_finite() {
                return Err(FileFault::NotFinite(stored));
            }
            match self.map {
                None => to.bytes.extend_from_slice(&narrow(number).to_le_bytes()),
                Some(_) => to.bytes.extend_from_slice(&number.to_le_bytes()),
            }
        }
        Ok(())
    }
}

/// The factors that take coordinates of annotations to the units of their axes.
#[derive(Clone, Debug)]
pub(super) struct AxisFactors {
    factors: Vec<f64>,
    is_float32: bool,
}

impl AxisFactors {
    /// Chooses a unit for each axis.
    pub(super) fn of(dimensions: &[Dimension]) -> (Self, Vec<AxisSpec>) {
        let (factors, axes): (Vec<f64>, Vec<AxisSpec>) = dimensions.iter().map(axis_of).unzip();
        let is_float32 = factors
            .iter()
            .all(|factor| (factor - 1.0).abs() < f64::EPSILON);
        (
            Self {
                factors,
                is_float32,
            },
            axes,
        )
    }

    /// Returns a column for positions.
    pub(super) fn column(&self) -> NumericColumn {
        let kind = if self.is_float32 {
            Kind::Float32
        } else {
            Kind::Float64
        };
        NumericColumn::new(kind, u32::try_from(self.factors.len()).unwrap_or(u32::MAX))
    }

    /// Appends the coordinates of points.
    pub(super) fn push(&self, points: &[f32], to: &mut NumericColumn) -> Result<(), FileFault> {
        for (number, factor) in points.iter().zip(self.factors.iter().cycle()) {
            if !number.is_finite() {
                return Err(FileFault::NotFinite(f64::from(*number)));
            }
            if self.is_float32 {
                to.bytes.extend_from_slice(&number.to_le_bytes());
            } else {
                let number = f64::from(*number) * factor;
                to.bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Returns an axis, and the factor of its coordinates.
fn axis_of(dimension: &Dimension) -> (f64, AxisSpec) {
    let mut axis = AxisSpec::new(dimension.name.as_str());
    let (base, scale) = base_unit(&dimension.unit, dimension.scale);
    let is_same = |size: f64| (scale - size).abs() < 1e-12 * size;
    let units = units_of(base);
    let mut same = units.iter().filter(|(size, _)| is_same(*size));
    let (size, unit) = match (same.next(), units.first()) {
        (Some((size, unit)), _) | (None, Some((size, unit))) => (*size, Some(*unit)),
        (None, None) => (1.0, Some(base).filter(|base| !base.is_empty())),
    };
    let kind = match base {
        "s" => "time",
        "Hz" | "rad/s" => "channel",
        _ => "space",
    };
    axis = axis.kind(kind);
    axis.unit = unit.map(str::to_owned);
    let factor = if is_same(size) {
        1.0
    } else {
        rounded(scale / size)
    };
    (factor, axis)
}

/// Returns the units with a base unit, with their sizes. The first is that of other sizes.
fn units_of(base: &str) -> Vec<(f64, &'static str)> {
    match base {
        "m" => LENGTH_UNITS.map(|unit| (unit.metres(), unit.name)).to_vec(),
        "s" => TIMES.to_vec(),
        _ => Vec::new(),
    }
}

/// Divides a unit into a prefix and a base unit, and multiplies the scale by the prefix.
fn base_unit(unit: &str, scale: f64) -> (&str, f64) {
    for base in ["rad/s", "Hz", "m", "s"] {
        let Some(prefix) = unit.strip_suffix(base) else {
            continue;
        };
        if prefix.is_empty() {
            return (base, scale);
        }
        if let Some((_, size)) = PREFIXES.iter().find(|(name, _)| *name == prefix) {
            return (base, scale * size);
        }
    }
    (unit, scale)
}

/// Rounds a ratio that is almost a whole number, as 4e-9 / 1e-9.
fn rounded(ratio: f64) -> f64 {
    let whole = ratio.round();
    if (whole - ratio).abs() < 1e-9 * whole {
        whole
    } else {
        ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: f64, unit: &str) -> (f64, Option<String>) {
        let (factor, axis) = axis_of(&Dimension {
            name: "x".to_owned(),
            scale,
            unit: unit.to_owned(),
        });
        (factor, axis.unit)
    }

    #[test]
    fn scales_that_are_units_keep_the_numbers() {
        for (scale, unit, name) in [
            (1e-9, "m", "nanometer"),
            (1e-6, "m", "micrometer"),
            (1.0, "um", "micrometer"),
            (1e-3, "m", "millimeter"),
            (1.0, "m", "meter"),
            (1e-3, "s", "millisecond"),
            (60.0, "s", "minute"),
            (1.0, "Hz", "Hz"),
        ] {
            assert_eq!(axis(scale, unit), (1.0, Some(name.to_owned())), "{name}");
        }
        assert_eq!(axis(1.0, ""), (1.0, None));
    }

    #[test]
    fn other_scales_become_factors() {
        assert_eq!(axis(4e-9, "m"), (4.0, Some("nanometer".to_owned())));
        assert_eq!(axis(4.0, "nm"), (4.0, Some("nanometer".to_owned())));
        assert_eq!(axis(40e-9, "m"), (40.0, Some("nanometer".to_owned())));
        assert_eq!(axis(2.5e-3, "s"), (0.0025, Some("second".to_owned())));
        assert_eq!(axis(0.5, ""), (0.5, None));
        assert_eq!(axis(3.0, "voxel"), (3.0, Some("voxel".to_owned())));
    }
}
