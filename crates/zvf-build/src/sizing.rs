//! Choice of chunk and bin shapes for a design that leaves them open.

use rayon::prelude::*;

use crate::{
    GeometryKind, coordinates,
    design::{Design, Purpose},
};
use zvf_model::column::NumericColumn;

/// Target size of a vertex cell for single objects and small boxes.
const LOOKUP_CELL_BYTES: u64 = 128 << 10;
/// Target sizes of a vertex cell for objects, boxes and whole reads, in small and in large stores.
const MIXED_CELL_BYTES: (u64, u64) = (512 << 10, 2 << 20);
/// Size of the positions up to which cells of objects have the smaller size.
const SMALL_STORE_BYTES: u64 = 32 << 20;
/// Target size of a vertex cell for scans.
const SCAN_CELL_BYTES: u64 = 1 << 20;
/// Target number of vertices in a bin.
const BIN: f64 = 100.0;
/// Upper bound on sampled vertices.
const SAMPLE: usize = 50_000;
/// Minimum number of sampled vertices for which another thread saves time.
const MIN_PART: usize = 4096;
/// Upper bound on bins of a chunk: each takes 16 bytes of its fragment index.
const MAX_BINS: f64 = 4096.0;

/// Meaning of the fragments of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentKind {
    /// Parts of objects.
    Objects,
    /// Bins, which follow from the position.
    Bins,
}

impl FragmentKind {
    /// Returns the kind for geometry with or without objects.
    pub(crate) fn of_geometry(has_objects: bool) -> Self {
        if has_objects {
            Self::Objects
        } else {
            Self::Bins
        }
    }
}

/// Returns the target size of a vertex cell for positions of a total size, and the purpose that it
/// suits.
pub(crate) fn target(
    design: &Design,
    fragments: FragmentKind,
    positions: u64,
) -> (u64, &'static str) {
    let lookup = (LOOKUP_CELL_BYTES, "queries of single objects and boxes");
    let scan = (SCAN_CELL_BYTES, "scans of the whole store");
    match (design.purpose, fragments) {
        (Purpose::Lookup, _) => lookup,
        // A box of a mesh tests every face of the chunks that it touches.
        (Purpose::Auto, _) if design.kind == GeometryKind::Mesh => lookup,
        // Fewer pieces of each object outweigh the larger cells.
        (Purpose::Auto, FragmentKind::Objects) => (
            mixed_cell_bytes(positions),
            "objects, boxes and the whole store",
        ),
        (Purpose::Scan, _) | (Purpose::Auto, FragmentKind::Bins) => scan,
    }
}

/// Doubles the size of a cell for a store of four times the size, so that the cells become both
/// larger and more.
fn mixed_cell_bytes(positions: u64) -> u64 {
    let (min, max) = MIXED_CELL_BYTES;
    let growth = positions.min(1 << 40) * (min * min / SMALL_STORE_BYTES);
    growth.isqrt().clamp(min, max)
}

/// Chosen shapes and the reason.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChosenShapes {
    /// Extent of a chunk along each axis.
    pub(crate) chunk: Vec<f64>,
    /// Number of bins of a chunk along each axis.
    pub(crate) bins: u32,
    /// Human-readable reason.
    pub(crate) why: String,
}

/// Chooses cubic chunks in which the median vertex shares its chunk with about as many bytes as the
/// access pattern wants.
pub(crate) fn choose(
    positions: &NumericColumn,
    vertices: u64,
    lower: &[f64],
    upper: &[f64],
    design: &Design,
    fragments: FragmentKind,
) -> ChosenShapes {
    let has_objects = fragments == FragmentKind::Objects;
    let row = positions.row_size() as u64;
    let (target, purpose) = target(design, fragments, vertices.saturating_mul(row));
    #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
    let target = target as f64;
    let max = lower
        .iter()
        .zip(upper)
        .fold(0.0, |max: f64, (lo, hi)| max.max(hi - lo));
    // All vertices may be at one position, and a chunk needs an extent.
    let far = lower
        .iter()
        .chain(upper)
        .fold(0.0, |far: f64, x| far.max(x.abs()));
    let max = if max > far * 1e-9 {
        max
    } else if far > 0.0 {
        far
    } else {
        1.0
    };
    let axes = positions.row_len();
    let sample = Sample::of(positions, vertices);
    let bytes = as_float(positions.row_size());
    let mut edge = round_up(max);
    let mut shared = sample.neighbours(edge);
    // Shrinks the edge while cells are too full; identical coordinates end the search.
    for _ in 0..128 {
        if shared * bytes <= target * std::f64::consts::SQRT_2 {
            break;
        }
        let next = round_up(edge / std::f64::consts::SQRT_2 * 0.95);
        let found = sample.neighbours(next);
        if next >= edge || next <= max * 1e-9 {
            break;
        }
        (edge, shared) = (next, found);
    }
    let bins = if has_objects {
        1.0
    } else {
        let per_axis = (shared / BIN).powf(1.0 / as_float(axes)).round();
        // The power may be slightly below a whole number.
        let max = MAX_BINS.powf(1.0 / as_float(axes)) + 1e-9;
        per_axis.clamp(1.0, max.floor())
    };
    let why = format!(
        "edge {edge}: about {shared:.0} vertices ({:.0} kB) in a chunk, for {purpose}",
        shared * bytes / 1024.0
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped"
    )]
    let bins = bins as u32;
    ChosenShapes {
        chunk: vec![edge; axes],
        bins,
        why,
    }
}

/// Sample of the vertices.
struct Sample {
    values: Vec<f64>,
    axes: usize,
    /// Number of vertices that one sampled vertex represents.
    scale: f64,
}

impl Sample {
    fn of(positions: &NumericColumn, vertices: u64) -> Self {
        let rows = positions.len();
        let step = rows.div_ceil(SAMPLE).max(1);
        let (mut values, mut row) = (Vec::new(), Vec::new());
        let mut count = 0usize;
        for at in (0..rows).step_by(step) {
            coordinates::block(positions, at..at + 1, &mut row);
            values.extend_from_slice(&row);
            count += 1;
        }
        let all = usize::try_from(vertices).unwrap_or(usize::MAX);
        let scale = as_float(all.saturating_sub(1)) / as_float(count.saturating_sub(1)).max(1.0);
        Self {
            values,
            axes: positions.row_len(),
            scale,
        }
    }

    /// Estimates the number of vertices in the chunk of the median vertex. A few crowded chunks do
    /// not decide alone, but the fullest counts with a sixteenth of its vertices.
    fn neighbours(&self, edge: f64) -> f64 {
        let positions = self.values.par_chunks_exact(self.axes);
        let mut chunks: Vec<u64> = positions
            .with_min_len(MIN_PART)
            .map(|position| {
                let steps = position.iter().map(|x| coordinates::floor(x / edge));
                // A hash collision, of probability 2^-30, only blurs an estimate.
                steps.fold(0u64, |mixed, step| mix(mixed ^ step.cast_unsigned()))
            })
            .collect();
        chunks.par_sort_unstable();
        let mut counts: Vec<usize> = chunks.chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
        counts.sort_unstable();
        let half = self.values.len() / self.axes.max(1) / 2;
        let mut seen = 0;
        let middle = counts.iter().find(|count| {
            seen += **count;
            seen > half
        });
        let of = |count: usize| 1.0 + as_float(count.saturating_sub(1)) * self.scale;
        let max = counts.last().copied().unwrap_or(1);
        of(middle.copied().unwrap_or(1)).max(of(max) / 16.0)
    }
}

/// Mixes all bits of a number.
fn mix(number: u64) -> u64 {
    let product = u128::from(number ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product ^ (product >> 64)) as u64
}

/// Rounds up to a short decimal: 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps
        .iter()
        .find(|step| *step * power >= value * (1.0 - 1e-9));
    let edge = step.unwrap_or(&10.0) * power;
    // 3.0 * 0.1 is not 0.3, but the formatted text parses to it.
    let short: Option<f64> = format!("{edge:.3e}").parse().ok();
    match short.unwrap_or(edge) {
        edge if edge.is_finite() && edge > 0.0 => edge,
        _ => 1.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts for estimates")]
fn as_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_round_up_to_short_decimals() {
        let check = |value: f64, expected: f64| {
            assert!(
                (round_up(value) - expected).abs() <= expected * 1e-12,
                "{value}"
            );
        };
        check(100.0, 100.0);
        check(101.0, 120.0);
        check(0.21, 0.25);
        check(9.0, 10.0);
        check(0.0, 1.0);
    }

    #[test]
    fn chunk_size_follows_the_purpose() {
        // A lattice of 100^3 vertices is 12 MB.
        let values = (0..1_000_000u32)
            .flat_map(|at| [at % 100, at / 100 % 100, at / 10_000].map(|x| f64::from(x) as f32));
        let positions = NumericColumn::float32(3, values);
        let bounds = (&[0.0; 3][..], &[99.0; 3][..]);
        let (bins, objects) = (FragmentKind::Bins, FragmentKind::Objects);
        for (kind, purpose, fragments, target) in [
            (GeometryKind::Points, Purpose::Lookup, bins, 128),
            (GeometryKind::Points, Purpose::Auto, bins, 1024),
            (GeometryKind::Streamlines, Purpose::Lookup, objects, 128),
            (GeometryKind::Streamlines, Purpose::Auto, objects, 512),
            (GeometryKind::Streamlines, Purpose::Scan, objects, 1024),
            (GeometryKind::Mesh, Purpose::Auto, objects, 128),
            (GeometryKind::Mesh, Purpose::Auto, bins, 128),
        ] {
            let mut design = Design::new(kind);
            design.purpose = purpose;
            let chosen = choose(
                &positions, 1_000_000, bounds.0, bounds.1, &design, fragments,
            );
            let bytes = chosen.chunk[0].powi(3) * 12.0;
            let ratio = bytes / 1024.0 / f64::from(target);
            assert!((0.3..2.0).contains(&ratio), "{ratio}: {chosen:?}");
            assert_eq!(chosen.bins > 1, fragments == bins);
        }
    }

    #[test]
    fn cells_of_objects_grow_with_the_store() {
        let target = |megabytes: u64| {
            let design = Design::new(GeometryKind::Streamlines);
            target(&design, FragmentKind::Objects, megabytes << 20).0 >> 10
        };
        assert_eq!([0, 12, 32].map(target), [512; 3]);
        assert_eq!(target(128), 1024);
        assert_eq!([512, 1 << 20, u64::MAX >> 20].map(target), [2048; 3]);
    }

    #[test]
    fn identical_positions_end_the_search() {
        let positions = NumericColumn::float32(2, vec![5.0; 600_000]);
        let chosen = choose(
            &positions,
            300_000,
            &[5.0; 2],
            &[5.0; 2],
            &Design::new(GeometryKind::Points),
            FragmentKind::Bins,
        );
        assert!(chosen.chunk[0] > 0.0);
    }

    #[test]
    fn single_position_gets_a_countable_chunk() {
        for (x, expected) in [(0.0, 1.0), (5.0, 5.0), (-2e9, 2e9)] {
            let positions = NumericColumn::float64(2, [x, x]);
            let chosen = choose(
                &positions,
                1,
                &[x; 2],
                &[x; 2],
                &Design::new(GeometryKind::Points),
                FragmentKind::Objects,
            );
            assert!(
                (chosen.chunk[0] - expected).abs() <= expected * 1e-9,
                "{chosen:?}"
            );
        }
    }
}
