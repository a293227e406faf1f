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
/// order `names`; `None` is the order of the file.
///
/// # Errors
///
/// Returns an error if the names are the same in another order: each coordinate would get the name of
/// another axis.
pub(super) fn compare(
    given: Option<&[AxisSpec]>,
    names: Option<&[String]>,
    own: &[AxisSpec],
) -> Result<(), AxisOrderError> {
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn axes_in_another_order_are_refused() {
        let axes =
            |text: &str| -> Vec<AxisSpec> { names(text).into_iter().map(AxisSpec::new).collect() };
        let compared = |given: &str| compare(Some(&axes(given)), Some(&names("x,y,z")), &[]);
        assert!(compared("z,y,x").is_err());
        for given in ["x,y,z", "a,b,c", "x,y", "y,x"] {
            assert_eq!(compared(given), Ok(()), "{given}");
        }
        assert_eq!(compare(None, Some(&names("x,y,z")), &[]), Ok(()));
    }
}
