//! Units of coordinates: the unit of a file is what it states, or else what the caller says. A file
//! without either is in the unit of the store.

use zvf::{AxisSpec, Design};

use crate::{FileFormat, axis_unit_error::AxisUnitError, length::LengthUnit};

/// Returns the unit of an axis of a file: what the file states, or else `given`. A unit that the
/// format implies for all files gives way to `given`.
///
/// # Errors
///
/// [`AxisUnitError::Stated`] if both differ.
pub(crate) fn unit_of_axis(
    axis: &AxisSpec,
    given: Option<&str>,
    format: Option<FileFormat>,
) -> Result<Option<String>, AxisUnitError> {
    let stated = axis.unit.as_deref();
    if axis.kind != "space" {
        return Ok(stated.map(str::to_owned));
    }
    let implied = format.and_then(FileFormat::implied_unit);
    let unit = match (implied, stated, given) {
        (Some(implied), ..) => given.or(stated).or(Some(implied)),
        (None, Some(stated), Some(given)) if !is_same_unit(stated, given) => {
            return Err(AxisUnitError::Stated {
                axis: axis.name.clone(),
                stated: stated.to_owned(),
                given: given.to_owned(),
            });
        }
        (None, ..) => stated.or(given),
    };
    Ok(unit.map(str::to_owned))
}

/// Returns whether two names stand for one unit.
pub(crate) fn is_same_unit(one: &str, other: &str) -> bool {
    one == other || LengthUnit::of(one).is_some_and(|unit| Some(unit) == LengthUnit::of(other))
}

/// Completes the units of the axes of a new store, of a file that has the axes `own`, and whose
/// coordinates are named `names` unless the design names them. `given` is the unit of the file.
///
/// # Errors
///
/// [`AxisUnitError`] if the file, the design and `given` disagree.
pub fn settle_units(
    design: &mut Design,
    names: Option<&[String]>,
    own: &[AxisSpec],
    format: Option<FileFormat>,
    given: Option<&str>,
) -> Result<(), AxisUnitError> {
    if design.axes.is_none() && given.is_some() {
        let names = names.ok_or(AxisUnitError::NoAxes)?;
        design.axes = Some(names.iter().map(AxisSpec::new).collect());
    }
    for axis in design.axes.iter_mut().flatten() {
        let stated = own.iter().find(|of_file| of_file.name == axis.name);
        let mut of_file = AxisSpec::new(&axis.name).kind(&axis.kind);
        of_file.unit = stated.and_then(|of_file| of_file.unit.clone());
        let unit = unit_of_axis(&of_file, given, format)?;
        // The design has the units of the file, of which an implied one gives way.
        if given.is_some() && axis.unit == of_file.unit {
            axis.unit = None;
        }
        match (&axis.unit, unit) {
            (Some(given), Some(stated)) if !is_same_unit(given, &stated) => {
                return Err(AxisUnitError::Stated {
                    axis: of_file.name,
                    stated,
                    given: given.clone(),
                });
            }
            (Some(_), _) => {}
            (None, unit) => axis.unit = unit,
        }
    }
    Ok(())
}
