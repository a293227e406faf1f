//! The space of a store: axes, units and bounds.

use zvf::Dataset;
use zvf_precomputed::{Dimension, Dimensions};

/// Metres in a nanometre.
const NANOMETRE: f64 = 1e-9;

/// Axes of a store with their units.
#[derive(Clone, Debug)]
pub(crate) struct ViewerSpace {
    pub(crate) dimensions: Dimensions,
    /// Things about the units that a user should know.
    pub(crate) notes: Vec<String>,
}

impl ViewerSpace {
    pub(crate) fn of(dataset: &Dataset) -> Self {
        let mut notes = Vec::new();
        let axes = dataset.root().axes.iter().map(|axis| {
            let known = axis.unit.as_deref().and_then(unit);
            let (known, default) = match axis.kind.as_deref() {
                Some("time") => (known.filter(|(_, base)| *base == "s"), (1.0, "s")),
                Some("space") | None => (known, (NANOMETRE, "m")),
                // Numbers of channels, for example.
                Some(_) => (Some((1.0, "")), (1.0, "")),
            };
            let (scale, unit) = known.unwrap_or(default);
            if known.is_none() && notes.is_empty() {
                let shown = match unit {
                    "s" => "1 unit is shown as 1 s",
                    _ => "1 unit is shown as 1 nm",
                };
                let name = &axis.name;
                notes.push(match &axis.unit {
                    Some(unit) => format!(
                        "the unit {unit:?} of axis {name} is not known to Neuroglancer: {shown}"
                    ),
                    None => format!("axis {name} has no unit: {shown}"),
                });
            }
            Dimension {
                name: axis.name.clone(),
                scale,
                unit: unit.to_owned(),
            }
        });
        let dimensions = Dimensions(axes.collect());
        Self { dimensions, notes }
    }

    pub(crate) fn rank(&self) -> usize {
        self.dimensions.0.len()
    }

    /// Returns nanometres per unit of each axis; `None` unless there are three axes of space.
    pub(crate) fn nanometres(&self) -> Option<[f64; 3]> {
        let axes: Option<Vec<f64>> = self
            .dimensions
            .0
            .iter()
            .map(|axis| {
                let is_space = axis.unit == "m";
                is_space.then(|| rounded(axis.scale / NANOMETRE))
            })
            .collect();
        <[f64; 3]>::try_from(axes?).ok()
    }
}

/// Rounds a ratio that is almost a whole number, as 1e-6 / 1e-9, or the inverse of one.
fn rounded(ratio: f64) -> f64 {
    let is_close = |whole: f64, ratio: f64| (whole - ratio).abs() < 1e-9 * whole;
    let (whole, inverse) = (ratio.round(), ratio.recip().round());
    if is_close(whole, ratio) {
        whole
    } else if is_close(inverse, ratio.recip()) {
        inverse.recip()
    } else {
        ratio
    }
}

/// Returns scale and base unit of a unit of length or time.
fn unit(name: &str) -> Option<(f64, &'static str)> {
    Some(match name.to_lowercase().as_str() {
        "m" | "meter" | "metre" | "meters" => (1.0, "m"),
        "dm" | "decimeter" | "decimetre" => (1e-1, "m"),
        "cm" | "centimeter" | "centimetre" => (1e-2, "m"),
        "mm" | "millimeter" | "millimetre" | "millimeters" => (1e-3, "m"),
        "um" | "µm" | "μm" | "micrometer" | "micrometre" | "micron" | "microns" | "micrometers" => {
            (1e-6, "m")
        }
        "nm" | "nanometer" | "nanometre" | "nanometers" => (1e-9, "m"),
        "pm" | "picometer" | "picometre" => (1e-12, "m"),
        "a" | "å" | "angstrom" | "ångström" => (1e-10, "m"),
        "km" | "kilometer" | "kilometre" => (1e3, "m"),
        "s" | "second" | "seconds" => (1.0, "s"),
        "ms" | "millisecond" | "milliseconds" => (1e-3, "s"),
        "us" | "µs" | "microsecond" | "microseconds" => (1e-6, "s"),
        "ns" | "nanosecond" | "nanoseconds" => (1e-9, "s"),
        "min" | "minute" | "minutes" => (60.0, "s"),
        "h" | "hour" | "hours" => (3600.0, "s"),
        "d" | "day" | "days" => (86_400.0, "s"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The letter has two code points.
    #[test]
    fn angstroms_are_known_in_upper_case() {
        for name in ["\u{c5}", "\u{212b}", "\u{c5}ngstr\u{f6}m", "\u{e5}", "A"] {
            assert_eq!(unit(name), Some((1e-10, "m")), "{name}");
        }
        assert_eq!(unit("\u{b5}m"), Some((1e-6, "m")));
    }

    #[test]
    fn scales_to_nanometres_are_exact() {
        for (name, nanometres) in [
            ("mm", 1e6),
            ("um", 1e3),
            ("nanometer", 1.0),
            ("m", 1e9),
            ("pm", 1e-3),
        ] {
            let (scale, unit) = unit(name).unwrap();
            let axis = Dimension {
                name: "x".to_owned(),
                scale,
                unit: unit.to_owned(),
            };
            let space = ViewerSpace {
                dimensions: Dimensions(vec![axis; 3]),
                notes: Vec::new(),
            };
            assert_eq!(space.nanometres(), Some([nanometres; 3]), "{name}");
        }
    }
}
