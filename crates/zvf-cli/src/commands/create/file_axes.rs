//! Axes of the command line compared with those of the file.

use zvf::AxisSpec;

/// Axes that have the names of the file's axes in another order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--axes {given} would exchange the axes {file} of the file; give them in the order of the file"
)]
pub struct AxisOrderError {
    /// Axes of the command line.
    given: String,
    /// Axes of the file.
    file: String,
}

/// Compares the axes of `--axes` with the axes `own` of the file, whose coordinates were read in the
/// order `names`; `None` is the order of the file. Returns a warning if units differ.
///
/// # Errors
///
/// Returns an error if the names are the same in another order: each coordinate would get the name of
/// another axis.
pub(super) fn compare(
    given: Option<&[AxisSpec]>,
    names: Option<&[String]>,
    own: &[AxisSpec],
) -> Result<Option<String>, AxisOrderError> {
    let given = given.unwrap_or_default();
    let names_of = |axes: &[AxisSpec]| -> Vec<String> {
        let axes = axes.iter();
        axes.map(|axis| axis.name.clone()).collect()
    };
    let ordered = names_of(given);
    let file = names.map_or_else(|| names_of(own), <[String]>::to_vec);
    let is_permuted = ordered.len() == file.len() && ordered.iter().all(|name| file.contains(name));
    if ordered != file && is_permuted {
        let (given, file) = (ordered.join(","), file.join(","));
        return Err(AxisOrderError { given, file });
    }
    let differing: Vec<String> = given
        .iter()
        .filter_map(|axis| {
            let of_file = own.iter().find(|of_file| of_file.name == axis.name)?;
            let (unit, file) = (axis.unit.as_deref()?, of_file.unit.as_deref()?);
            (unit != file).then(|| {
                format!(
                    "{} is in {file} in the file and {unit} in --axes",
                    axis.name
                )
            })
        })
        .collect();
    Ok((!differing.is_empty()).then(|| {
        let differing = differing.join("; ");
        format!("coordinates are not converted: {differing}")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    fn axes(text: &str, unit: Option<&str>) -> Vec<AxisSpec> {
        let axis = |name: String| {
            let mut axis = AxisSpec::new(&name);
            axis.unit = unit.map(str::to_owned);
            axis
        };
        names(text).into_iter().map(axis).collect()
    }

    #[test]
    fn axes_in_another_order_are_refused() {
        let compared = |given: &str| compare(Some(&axes(given, None)), Some(&names("x,y,z")), &[]);
        assert!(compared("z,y,x").is_err());
        for given in ["x,y,z", "a,b,c", "x,y", "y,x"] {
            assert_eq!(compared(given).unwrap(), None, "{given}");
        }
        assert_eq!(compare(None, Some(&names("x,y,z")), &[]).unwrap(), None);
    }

    #[test]
    fn other_units_are_reported() {
        let own = axes("x,y", Some("millimeter"));
        let compared = |unit| compare(Some(&axes("x,y", unit)), None, &own).unwrap();
        assert_eq!(compared(None), None);
        assert_eq!(compared(Some("millimeter")), None);
        assert_eq!(
            compared(Some("micrometer")).unwrap(),
            "coordinates are not converted: x is in millimeter in the file and micrometer in --axes; \
             y is in millimeter in the file and micrometer in --axes"
        );
    }
}
