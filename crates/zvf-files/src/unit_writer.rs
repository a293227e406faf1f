//! Coordinates of results in the unit that a format implies.

use std::path::{Path, PathBuf};

use zvf::{Column, ColumnValues, QueryResult};

use crate::{
    FileError, FileFault, FileFormat, GroupTables, ResultWriter, StoreDescription, WrittenResult,
    length::{LengthFactor, LengthUnit, scale},
    values::not_finite,
};

/// A writer of files that do not name the unit of their coordinates, because the format implies it.
pub(crate) struct UnitWriter {
    writer: Box<dyn ResultWriter>,
    path: PathBuf,
    format: FileFormat,
    /// Axes whose coordinates are converted.
    factors: Vec<AxisFactor>,
    radius: RadiusFactor,
    left_out: Vec<String>,
}

/// The factor of an axis of the store.
struct AxisFactor {
    axis: String,
    factor: LengthFactor,
}

/// The conversion of the attribute `radius` of vertices.
enum RadiusFactor {
    None,
    One(LengthFactor),
    /// The axes have several factors.
    Several,
}

impl UnitWriter {
    /// Wraps the writer of a format if axes of the result have other units than the format implies.
    pub(crate) fn wrap(
        writer: Box<dyn ResultWriter>,
        path: &Path,
        format: FileFormat,
        description: &StoreDescription,
    ) -> Box<dyn ResultWriter> {
        let Some(target) = format.length_unit() else {
            return writer;
        };
        let (mut factors, mut left_out) = (Vec::new(), Vec::new());
        for axis in &description.axes {
            let unit = axis.unit.as_deref().map(str::trim);
            let Some(unit) = unit.filter(|unit| !unit.is_empty()) else {
                continue;
            };
            match LengthUnit::of_axis(axis) {
                Some(unit) => factors.push(AxisFactor {
                    axis: axis.name.clone(),
                    factor: unit.in_unit(target),
                }),
                None => left_out.push(format!(
                    "unit {unit} of axis {}: {format} holds {}",
                    axis.name,
                    target.plural()
                )),
            }
        }
        let has_radius = format == FileFormat::Swc;
        let radius = match factors.as_slice() {
            [first, rest @ ..] if has_radius => {
                if rest.iter().all(|other| other.factor == first.factor) {
                    RadiusFactor::One(first.factor)
                } else {
                    RadiusFactor::Several
                }
            }
            _ => RadiusFactor::None,
        };
        factors.retain(|of| of.factor != LengthFactor::ONE);
        if factors.is_empty() && left_out.is_empty() {
            return writer;
        }
        Box::new(Self {
            writer,
            path: path.to_path_buf(),
            format,
            factors,
            radius,
            left_out,
        })
    }

    /// Converts the coordinates of a batch, and the radii of its vertices.
    fn convert(&mut self, batch: &mut QueryResult) -> Result<(), FileFault> {
        let factor = |axis: &String| {
            let found = self.factors.iter().find(|of| of.axis == *axis);
            found.map_or(LengthFactor::ONE, |of| of.factor)
        };
        let factors: Vec<LengthFactor> = batch.axes.iter().map(factor).collect();
        scale(&mut batch.positions, &factors);
        if let Some(value) = not_finite(&batch.positions) {
            let format = self.format.extension();
            return Err(FileFault::CoordinateRange { format, value });
        }
        let is_radius = |column: &&mut Column| column.name == "radius";
        let Some(radius) = batch.vertex.iter_mut().find(is_radius) else {
            return Ok(());
        };
        match self.radius {
            RadiusFactor::None => {}
            RadiusFactor::One(factor) => {
                if let ColumnValues::Numeric(numbers) = &mut radius.values {
                    scale(numbers, &[factor]);
                }
            }
            RadiusFactor::Several => {
                let line = "vertex.radius: kept as it is, because the units of axes differ";
                self.left_out.push(line.to_owned());
                self.radius = RadiusFactor::None;
            }
        }
        Ok(())
    }
}

impl ResultWriter for UnitWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        if self.factors.is_empty() {
            return self.writer.write(batch);
        }
        let mut batch = batch.clone();
        let converted = self.convert(&mut batch);
        converted.map_err(|fault| fault.of(&self.path))?;
        self.writer.write(&batch)
    }

    fn end_objects(&mut self) -> Result<(), FileError> {
        self.writer.end_objects()
    }

    fn finish(self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let mut written = self.writer.finish(tables)?;
        written.left_out.extend(self.left_out);
        Ok(written)
    }
}
