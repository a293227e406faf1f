//! Round numbers and their text.

/// Known units of length: name, symbol, and size in metres.
const METRES: [(&str, &str, f64); 14] = [
    ("angstrom", "Å", 1e-10),
    ("nanometer", "nm", 1e-9),
    ("nanometre", "nm", 1e-9),
    ("micrometer", "µm", 1e-6),
    ("micrometre", "µm", 1e-6),
    ("um", "µm", 1e-6),
    ("micron", "µm", 1e-6),
    ("millimeter", "mm", 1e-3),
    ("millimetre", "mm", 1e-3),
    ("centimeter", "cm", 1e-2),
    ("meter", "m", 1.0),
    ("metre", "m", 1.0),
    ("kilometer", "km", 1e3),
    ("kilometre", "km", 1e3),
];

/// Names of feet, in lower case and with blanks, and their symbol.
const FEET: [(&str, &str); 12] = [
    ("foot", "ft"),
    ("feet", "ft"),
    ("ft", "ft"),
    ("international foot", "ft"),
    ("foot (international)", "ft"),
    ("us survey foot", "ftUS"),
    ("us survey feet", "ftUS"),
    ("us foot", "ftUS"),
    ("foot us", "ftUS"),
    ("foot (us survey)", "ftUS"),
    ("ftus", "ftUS"),
    ("us-ft", "ftUS"),
];

/// Returns the largest of 1, 2 and 5 times a power of ten that is at most `max`.
pub(crate) fn round_below(max: f64) -> f64 {
    if !max.is_finite() || max <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(max.log10().floor());
    // The logarithm is not exact, so the power may be one too high.
    let steps = [5.0, 2.0, 1.0, 0.5].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step <= max * (1.0 + 1e-9))
        .unwrap_or(power)
}

/// Returns about `about` round numbers from `low` to `high`, each with its text.
pub(crate) fn ticks(low: f64, high: f64, about: u32) -> Vec<(f64, String)> {
    // The distance of two halves is always finite.
    let rough = (high / 2.0 - low / 2.0) / f64::from(about.max(1)) * 2.0;
    if !rough.is_finite() || rough <= 0.0 {
        return Vec::new();
    }
    // Multiples of a smaller step could be equal.
    let rough = rough.max(low.abs().max(high.abs()) * (4.0 * f64::EPSILON));
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    let step = step
        .into_iter()
        .find(|step| *step >= rough * (1.0 - 1e-9))
        .unwrap_or(power);
    let first = (low / step - 1e-6).ceil();
    let last = (high / step + 1e-6).floor();
    let count = (last - first).clamp(-1.0, 50.0);
    let mut values = Vec::new();
    let mut at = 0.0;
    while at <= count {
        values.push((first + at) * step);
        at += 1.0;
    }
    let largest = values.iter().fold(step, |max, value| value.abs().max(max));
    let notation = Notation::of(largest, step);
    let ticks = values.into_iter();
    ticks.map(|value| (value, notation.write(value))).collect()
}

/// The notation of numbers that are multiples of a round step.
#[derive(Clone, Copy, Debug)]
struct Notation {
    is_scientific: bool,
    /// Decimal exponent of the last digit.
    last: i32,
}

impl Notation {
    /// Chooses the notation of numbers up to `largest`: scientific for large and small numbers if
    /// that is shorter.
    fn of(largest: f64, step: f64) -> Self {
        let (_, last) = exponents(step);
        let [plain, scientific] = [false, true].map(|is_scientific| Self {
            is_scientific,
            last,
        });
        let is_usual = (1e-3..1e6).contains(&largest);
        if !is_usual && scientific.write(largest).len() < plain.write(largest).len() {
            scientific
        } else {
            plain
        }
    }

    fn write(self, value: f64) -> String {
        let places = |first: i32| usize::try_from(first - self.last).unwrap_or(0);
        if value == 0.0 {
            return "0".to_owned();
        }
        if self.is_scientific {
            let places = places(exponents(value).0);
            let text = format!("{value:.places$e}");
            // Trailing zeros are not significant: 5e-4, not 5.0e-4.
            return match text.split_once('e') {
                Some((digits, power)) if digits.contains('.') => {
                    let digits = digits.trim_end_matches('0').trim_end_matches('.');
                    format!("{digits}e{power}")
                }
                _ => text,
            };
        }
        let places = places(0);
        let text = format!("{value:.places$}");
        if text.trim_start_matches(['-', '0', '.']).is_empty() {
            "0".to_owned()
        } else {
            text
        }
    }
}

/// Returns the decimal exponents of the first and of the last digit of a number, rounded to three
/// digits.
fn exponents(number: f64) -> (i32, i32) {
    let text = format!("{number:.2e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let first = power.parse().unwrap_or(0);
    let digits = digits.trim_end_matches('0').trim_start_matches('-');
    let places = digits.len().saturating_sub("1.".len());
    (first, first - i32::try_from(places).unwrap_or(0))
}

/// Writes a number, a multiple of `step`.
fn written(value: f64, step: f64) -> String {
    Notation::of(value.abs().max(step.abs()), step).write(value)
}

/// Writes a number rounded to a step of at most `resolution`, or to the digits of a float64.
pub(crate) fn rounded(value: f64, resolution: f64) -> String {
    let step = round_below(resolution.max(value.abs() * (2.0 * f64::EPSILON)));
    let near = (value / step).round() * step;
    written(if near.is_finite() { near } else { value }, step)
}

/// Returns the symbol of a unit of length, or the unit itself.
pub(crate) fn symbol(unit: &str) -> &str {
    let lower = unit.to_lowercase().replace('_', " ");
    let known = METRES
        .iter()
        .find(|(name, _, _)| *name == lower)
        .map(|(_, symbol, _)| *symbol);
    let feet = || FEET.iter().find(|(name, _)| *name == lower);
    known
        .or_else(|| feet().map(|(_, symbol)| *symbol))
        .unwrap_or(unit)
}

/// Returns a round length of at most `max` units, and its text.
pub(crate) fn bar(max: f64, unit: Option<&str>) -> (f64, String) {
    let unit = unit.map(symbol);
    let metres = METRES
        .iter()
        .find(|(_, symbol, _)| unit.is_some_and(|unit| *symbol == unit));
    let Some((_, _, metres)) = metres else {
        let length = round_below(max);
        return (
            length,
            format!("{} {}", written(length, length), unit.unwrap_or("units")),
        );
    };
    let fits = |(_, symbol, _): &&(&str, &str, f64)| ["nm", "µm", "mm", "m", "km"].contains(symbol);
    let mut units = METRES.iter().filter(fits);
    let best = units.rfind(|(_, _, size)| max * metres >= *size);
    let (_, symbol, size) = best.unwrap_or(&METRES[1]);
    let length = round_below(max * metres / size);
    (
        length * size / metres,
        format!("{} {symbol}", written(length, length)),
    )
}

/// Writes a count with spaces between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_ticks(low: f64, high: f64, want: &[&str]) {
        let found: Vec<String> = ticks(low, high, 4)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(found, want);
    }

    #[test]
    fn ticks_are_round() {
        check_ticks(0.0, 1.0, &["0", "0.25", "0.50", "0.75", "1.00"]);
        check_ticks(0.13, 0.87, &["0.2", "0.4", "0.6", "0.8"]);
        check_ticks(-3.0, 17.0, &["0", "5", "10", "15"]);
        check_ticks(0.0, 4e7, &["0", "1e7", "2e7", "3e7", "4e7"]);
        check_ticks(
            0.0,
            1e-3,
            &["0", "0.00025", "0.00050", "0.00075", "0.00100"],
        );
        check_ticks(1.0, 1.0, &[]);
        check_ticks(f64::NAN, 1.0, &[]);
        check_ticks(f64::NEG_INFINITY, f64::INFINITY, &[]);
    }

    /// All ticks were `5.4e6` above a million.
    #[test]
    fn ticks_differ_whatever_their_size() {
        let check = check_ticks;
        check(5_399_991.0, 5_400_009.0, &["5399995", "5400000", "5400005"]);
        check(1.2e6, 1.9e6, &["1.2e6", "1.4e6", "1.6e6", "1.8e6"]);
        check(
            1e15 + 0.1,
            1e15 + 3.9,
            &["1000000000000001", "1000000000000002", "1000000000000003"],
        );
        check(1e18, 1e18 + 256.0, &["1e18"]);
        check(
            0.1 + 1e-9,
            0.1 + 3.9e-9,
            &["0.100000001", "0.100000002", "0.100000003"],
        );
        check(
            -3.1e-12,
            -2.3e-12,
            &["-3e-12", "-2.8e-12", "-2.6e-12", "-2.4e-12"],
        );
        check(1e-50, 4.1e-50, &["1e-50", "2e-50", "3e-50", "4e-50"]);
        check(1e300, 4.1e300, &["1e300", "2e300", "3e300", "4e300"]);
        check(-f64::MAX, f64::MAX, &["-1e308", "0", "1e308"]);
    }

    #[test]
    fn ends_of_ranges_are_rounded() {
        assert_eq!(rounded(1_700_000_002.3, 0.96), "1700000002.5");
        assert_eq!(rounded(f64::MAX, 1e306), "1.8e308");
        assert_eq!(rounded(0.123_456, 0.007), "0.125");
        assert_eq!(rounded(1234.567, 3.0), "1234");
        assert_eq!(rounded(0.0, 0.007), "0");
    }

    #[test]
    fn scale_bars_have_a_unit_that_fits() {
        assert_eq!(bar(37.0, Some("millimeter")).1, "20 mm");
        assert_eq!(bar(3700.0, Some("micrometer")).1, "2 mm");
        assert_eq!(bar(0.37, Some("µm")).1, "200 nm");
        assert_eq!(bar(37.0, None).1, "20 units");
        assert_eq!(bar(0.004, Some("parsec")).1, "0.002 parsec");
        for (unit, text) in [
            ("Metre", "20 m"),
            ("US survey foot", "20 ftUS"),
            ("Foot_US", "20 ftUS"),
            ("foot", "20 ft"),
            ("degree", "20 degree"),
        ] {
            assert_eq!(bar(37.0, Some(unit)).1, text);
        }
        assert!((bar(3700.0, Some("micrometer")).0 - 2000.0).abs() < 1e-6);
        assert!((bar(f64::NAN, None).0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn counts_have_spaces_between_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1234), "1 234");
        assert_eq!(grouped(100_000_000), "100 000 000");
    }
}
