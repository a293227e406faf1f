//! The check that positions and a volume can meet.

use core::fmt;

use super::Affine;

/// No position is inside the volume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no vertex is inside the volume: {extents}; {advice}")]
#[non_exhaustive]
pub struct ApartError {
    /// The extents of positions, as voxels, and of the volume.
    extents: String,
    /// Advice to the user.
    advice: &'static str,
}

/// Numbers in brackets.
struct Numbers<'n>(&'n [f64]);

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (at, number) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let rounded = (number * 100.0).round() / 100.0;
            write!(f, "{comma}{rounded}")?;
        }
        f.write_str(")")
    }
}

/// Checks that positions between two bounds, mapped by `affine`, can be inside a volume of this shape.
///
/// # Errors
///
/// [`ApartError`] if none can.
pub fn check_overlap(
    shape: &[u64],
    affine: Option<&Affine>,
    lower: &[f64],
    upper: &[f64],
) -> Result<(), ApartError> {
    let extents = shape.iter().take(lower.len());
    // Greater extents are refused.
    let extents = extents.map(|extent| u32::try_from(*extent).unwrap_or(u32::MAX));
    let shape: Vec<f64> = extents.map(f64::from).collect();
    let identity = Affine::identity(lower.len());
    let map = affine.unwrap_or(&identity);
    let (first, last) = mapped(map, lower, upper);
    let low = vec![-0.5; shape.len()];
    let high: Vec<f64> = shape.iter().map(|extent| extent - 0.5).collect();
    if meet((&first, &last), (&low, &high)) {
        return Ok(());
    }
    let (from, to) = mapped(map, &low, &high);
    let is_reverse = affine.is_some() && meet((&from, &to), (lower, upper));
    let advice = match affine {
        Some(_) if is_reverse => "the affine maps voxels to positions: give its inverse",
        Some(_) => "check that the affine maps positions to voxels of this volume",
        None => "give the affine that maps positions to voxels",
    };
    let extents = format!(
        "positions from {} to {} are voxels from {} to {}, and the volume has {} voxels",
        Numbers(lower),
        Numbers(upper),
        Numbers(&first),
        Numbers(&last),
        Numbers(&shape)
    );
    Err(ApartError { extents, advice })
}

/// Returns the bounds of a mapped box.
fn mapped(affine: &Affine, lower: &[f64], upper: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let rows = affine.rows().chunks_exact(affine.axes().saturating_add(1));
    let bounds = rows.map(|row| {
        let shift = row.last().copied().unwrap_or(0.0);
        let sides = row.iter().zip(lower.iter().zip(upper));
        let ends = sides.map(|(factor, (lower, upper))| (factor * lower, factor * upper));
        ends.fold((shift, shift), |(low, high), (a, b)| {
            (low + a.min(b), high + a.max(b))
        })
    });
    bounds.unzip()
}

/// Returns whether two boxes meet. Bounds that are not numbers meet all.
fn meet(one: (&[f64], &[f64]), other: (&[f64], &[f64])) -> bool {
    let one = one.0.iter().zip(one.1);
    let other = other.0.iter().zip(other.1);
    !one.zip(other)
        .any(|((low, high), (from, to))| high < from || to < low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_elsewhere_and_a_reversed_matrix_are_named() {
        let shape = [10, 10];
        let (lower, upper) = ([100.0, 100.0], [120.0, 120.0]);
        let to_voxels = Affine::of(&[0.5, 0.0, -50.0, 0.0, 0.5, -50.0, 0.0, 0.0, 1.0]).unwrap();
        let to_positions = Affine::of(&[2.0, 0.0, 100.0, 0.0, 2.0, 100.0, 0.0, 0.0, 1.0]).unwrap();
        assert_eq!(
            check_overlap(&shape, Some(&to_voxels), &lower, &upper),
            Ok(())
        );
        let said = |affine| {
            check_overlap(&shape, affine, &lower, &upper)
                .unwrap_err()
                .to_string()
        };
        assert!(said(Some(&to_positions)).ends_with("give its inverse"));
        assert_eq!(
            said(None),
            "no vertex is inside the volume: positions from (100, 100) to (120, 120) are voxels from \
             (100, 100) to (120, 120), and the volume has (10, 10) voxels; give the affine that maps \
             positions to voxels"
        );
    }
}
