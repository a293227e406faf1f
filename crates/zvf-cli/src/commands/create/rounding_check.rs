//! The warning about coordinates that lose precision.

use std::error::Error;

use zvf::{
    ColumnValues, Geometry, GeometrySource, LinkNumbering, NumericColumn, Scope, numeric::Kind,
};
use zvf_build::Rounding;

use crate::{display::len_u64, progress::ProgressMeter};

/// Ratio of error to extent above which rounding is reported. Coordinates around 0 that are
/// stored as float32 stay below it.
const MIN_REPORTED: f64 = 1e-6;

/// Measures the rounding of coordinates, if a type is requested that can lose digits.
#[derive(Debug, Default)]
pub(super) struct RoundingCheck {
    rounding: Option<Rounding>,
    kind: Option<Kind>,
}

impl RoundingCheck {
    pub(super) fn new(kind: Option<Kind>) -> Self {
        Self {
            rounding: kind.map(Rounding::new),
            kind,
        }
    }

    /// Measures positions. Coordinates that the type cannot hold are an error of the creation.
    pub(super) fn add(&mut self, positions: &NumericColumn) {
        let is_other = Some(positions.kind) != self.kind;
        if let Some(rounding) = self.rounding.as_mut().filter(|_| is_other)
            && rounding.add(positions).is_err()
        {
            self.rounding = None;
        }
    }

    /// Returns the warning, if the error is large.
    pub(super) fn warning(&self, axes: &[String]) -> Option<String> {
        let worst = self.rounding.as_ref()?.worst()?;
        if worst.error <= worst.extent * MIN_REPORTED {
            return None;
        }
        let unnamed = || format!("axis {}", worst.axis);
        let axis = axes.get(worst.axis).cloned().unwrap_or_else(unnamed);
        Some(format!(
            "--dtype {} moves {axis} by up to {}, of an extent of {}; leave out --dtype, or subtract an offset first",
            self.kind?.name(),
            worst.error,
            worst.extent,
        ))
    }
}

/// A source whose positions are measured while they are read for the first time.
pub(super) struct MeasuredSource<'a, S: ?Sized> {
    pub(super) source: &'a mut S,
    pub(super) check: &'a mut RoundingCheck,
    pub(super) is_measured: bool,
    /// Number of vertices that were read for the first time.
    pub(super) vertices: u64,
    /// Counts the bytes of each pass.
    pub(super) meter: ProgressMeter,
    pub(super) size: u64,
}

/// Returns the bytes of the positions and of the attributes of vertices.
fn size_of(batch: &Geometry) -> usize {
    let columns = batch
        .columns(Scope::Vertex)
        .iter()
        .map(|column| match &column.values {
            ColumnValues::Numeric(numbers) => numbers.bytes.len(),
            ColumnValues::Dictionary { .. } => 0,
        });
    columns.fold(batch.positions().bytes.len(), usize::saturating_add)
}

impl<S: GeometrySource + ?Sized> GeometrySource for MeasuredSource<'_, S> {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let batch = self.source.next(vertices)?;
        if let Some(batch) = &batch {
            self.meter
                .add_read(u64::try_from(size_of(batch)).unwrap_or(0));
        }
        if let Some(batch) = batch.as_ref().filter(|_| !self.is_measured) {
            self.check.add(batch.positions());
            self.vertices = self.vertices.saturating_add(len_u64(batch.vertices()));
        }
        Ok(batch)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.is_measured = true;
        self.meter.start_reading(self.size);
        self.source.rewind()
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        self.source.tables()
    }

    fn link_numbering(&self) -> LinkNumbering {
        self.source.link_numbering()
    }
}
