//! Names of units of axes.

use zvf_model::closest::closest;

/// Units of axes: those of OME-Zarr by name, further ones of UDUNITS-2 that surveyors and
/// microscopists use, and common symbols.
const UNITS: [&str; 90] = [
    // Lengths of OME-Zarr.
    "angstrom",
    "attometer",
    "centimeter",
    "decimeter",
    "exameter",
    "femtometer",
    "foot",
    "gigameter",
    "hectometer",
    "inch",
    "kilometer",
    "megameter",
    "meter",
    "micrometer",
    "mile",
    "millimeter",
    "nanometer",
    "parsec",
    "petameter",
    "picometer",
    "terameter",
    "yard",
    "yoctometer",
    "yottameter",
    "zeptometer",
    "zettameter",
    // Times of OME-Zarr.
    "attosecond",
    "centisecond",
    "day",
    "decisecond",
    "exasecond",
    "femtosecond",
    "gigasecond",
    "hectosecond",
    "hour",
    "kilosecond",
    "megasecond",
    "microsecond",
    "millisecond",
    "minute",
    "nanosecond",
    "petasecond",
    "picosecond",
    "second",
    "terasecond",
    "yoctosecond",
    "yottasecond",
    "zeptosecond",
    "zettasecond",
    // Others of UDUNITS-2.
    "arc_minute",
    "arc_second",
    "astronomical_unit",
    "degree",
    "dalton",
    "electronvolt",
    "hertz",
    "international_foot",
    "kelvin",
    "light_year",
    "micron",
    "nautical_mile",
    "pascal",
    "percent",
    "radian",
    "US_survey_foot",
    "volt",
    "year",
    // Without a length.
    "pixel",
    "voxel",
    // Symbols and other spellings.
    "Å",
    "cm",
    "deg",
    "ft",
    "ftUS",
    "h",
    "Hz",
    "km",
    "m",
    "metre",
    "millimetre",
    "micrometre",
    "nanometre",
    "mm",
    "ms",
    "nm",
    "rad",
    "s",
    "um",
    "us-ft",
    "µm",
];

/// Checks that a unit is known.
///
/// # Errors
///
/// Returns the end of a sentence that starts with the unit: the unit that is likely meant, or what
/// to write.
pub fn check_unit(unit: &str) -> Result<(), String> {
    if UNITS.contains(&unit) {
        return Ok(());
    }
    let singular = unit.strip_suffix('s').unwrap_or(unit);
    let meant = UNITS
        .into_iter()
        .find(|known| *known == singular)
        .or_else(|| closest(unit, UNITS).filter(|known| known.len() > 3));
    Err(match meant {
        Some(known) => format!("is not a known unit; did you mean {known}?"),
        None => "is not a known unit; write one of OME-Zarr, such as micrometer, millimeter, \
                 meter, foot, second or degree, or leave it out"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::check_unit as check;

    #[test]
    fn unknown_units_get_a_suggestion() {
        for unit in ["micrometer", "µm", "foot", "ftUS", "second", "degree"] {
            assert_eq!(check(unit), Ok(()), "{unit}");
        }
        for (unit, sentence) in [
            ("micrometr", "did you mean micrometer?"),
            ("meters", "did you mean meter?"),
            ("foo", "did you mean foot?"),
            ("grey_level", "such as micrometer"),
        ] {
            let said = check(unit).unwrap_err();
            assert!(said.contains(sentence), "{unit}: {said}");
        }
    }
}
