//! The check that positions and a volume can meet.

use core::fmt;

use super::Affine;

/// Positions and a volume that hardly meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{inside} inside the volume: {extents}; {advice}")]
#[non_exhaustive]
pub struct ApartError {
    /// The part of the store that is inside.
    inside: &'static str,
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

/// Part of the store, and of the volume, below which they hardly meet.
const HARDLY: f64 = 0.01;

/// Checks that positions between two bounds, mapped by `affine`, can be inside a volume of this shape:
/// that a hundredth of the space between the bounds is, or a hundredth of the volume is between them,
/// and that the inverse of the map does not fit far better.
///
/// # Errors
///
/// [`ApartError`] if not.
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
    let inside = share((&first, &last), (&low, &high));
    let covered = share((&low, &high), (&first, &last));
    let (from, to) = mapped(map, &low, &high);
    let reversed = share((lower, upper), (&from, &to));
    let is_reverse = affine.is_some() && reversed > 0.5 && inside < reversed / 4.0;
    if !is_reverse && inside.max(covered) >= HARDLY {
        return Ok(());
    }
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
    let inside = if inside > 0.0 {
        "a small part of the vertices is"
    } else {
        "no vertex is"
    };
    Err(ApartError {
        inside,
        extents,
        advice,
    })
}

/// Returns a note if most vertices that were sampled are outside the volume.
pub fn outside_note(outside: u64, vertices: u64) -> Option<String> {
    (outside > vertices / 2).then(|| {
        format!(
            "{outside} of {vertices} vertices are outside the volume; check that the affine maps \
             positions to its voxels"
        )
    })
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

/// Returns the share of a box that another one covers. An axis without extent counts as covered where
/// the boxes meet, and so do bounds that are not numbers.
fn share(of: (&[f64], &[f64]), other: (&[f64], &[f64])) -> f64 {
    let axes = of.0.iter().zip(of.1).zip(other.0.iter().zip(other.1));
    axes.fold(1.0, |share, ((low, high), (from, to))| {
        if high < from || to < low {
            return 0.0;
        }
        let common = high.min(*to) - low.max(*from);
        let part = common / (high - low);
        share * if part.is_finite() { part } else { 1.0 }
    })
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
        // As in most images, the reversed matrix maps a corner of the store into the volume.
        let reversed = Affine::of(&[2.0, 0.0, -90.0, 0.0, 2.0, -90.0, 0.0, 0.0, 1.0]).unwrap();
        let found = check_overlap(&[91, 91], Some(&reversed), &[-70.0; 2], &[70.0; 2]);
        let fault = found.unwrap_err().to_string();
        assert!(
            fault.starts_with("a small part of the vertices is inside"),
            "{fault}"
        );
        assert!(fault.ends_with("give its inverse"), "{fault}");
        assert_eq!(
            check_overlap(&[40, 40], None, &[-80.0; 2], &[80.0; 2]),
            Ok(())
        );
        assert_eq!(
            said(None),
            "no vertex is inside the volume: positions from (100, 100) to (120, 120) are voxels from \
             (100, 100) to (120, 120), and the volume has (10, 10) voxels; give the affine that maps \
             positions to voxels"
        );
    }
}
