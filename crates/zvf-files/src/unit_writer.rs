//! Coordinates of results in the unit that a format implies.

use std::path::{Path, PathBuf};

use zvf::{AxisSpec, Column, ColumnValues, QueryResult};

use crate::{
    AxisUnitError, FileError, FileFault, FileFormat, GroupTables, OutputFile, ResultWriter,
    StoreDescription, WrittenResult,
    length::{LengthFactor, LengthUnit, scale},
    values::not_finite,
};

/// A writer of files that do not name the unit of their coordinates, because the format implies it.
pub(crate) struct UnitWriter {
    writer: Box<dyn ResultWriter>,
    path: PathBuf,
    conversion: UnitConversion,
}

/// Coordinates of results in another unit.
pub(crate) struct UnitConversion {
    format: FileFormat,
    /// Axes whose coordinates are converted.
    factors: Vec<AxisFactor>,
    radius: RadiusFactor,
    /// Axes whose coordinates stay as they are, and attributes.
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
        let mut conversion = UnitConversion::new(format, description, target);
        for axis in &description.axes {
            let unit = axis.unit.as_deref().map(str::trim);
            let unit = unit.filter(|unit| !unit.is_empty());
            if let (Some(unit), None) = (unit, LengthUnit::of_axis(axis)) {
                conversion.left_out.push(format!(
                    "unit {unit} of axis {}: {format} holds {}",
                    axis.name,
                    target.plural()
                ));
            }
        }
        if conversion.is_identity() && conversion.left_out.is_empty() {
            return writer;
        }
        Box::new(Self {
            writer,
            path: path.to_path_buf(),
            conversion,
        })
    }
}

impl UnitConversion {
    /// Creates the conversion of the axes with a unit of length to `target`.
    fn new(format: FileFormat, description: &StoreDescription, target: LengthUnit) -> Self {
        let factor = |axis: &AxisSpec| {
            Some(AxisFactor {
                axis: axis.name.clone(),
                factor: LengthUnit::of_axis(axis)?.in_unit(target),
            })
        };
        let mut factors: Vec<AxisFactor> = description.axes.iter().filter_map(factor).collect();
        let radius = match factors.as_slice() {
            [first, rest @ ..] if format == FileFormat::Swc => {
                if rest.iter().all(|other| other.factor == first.factor) {
                    RadiusFactor::One(first.factor)
                } else {
                    RadiusFactor::Several
                }
            }
            _ => RadiusFactor::None,
        };
        factors.retain(|of| of.factor != LengthFactor::ONE);
        Self {
            format,
            factors,
            radius,
            left_out: Vec::new(),
        }
    }

    /// Returns the conversion to the unit in which a file is requested, if there is one, and the
    /// description of the file.
    ///
    /// # Errors
    ///
    /// [`FileFault::AxisUnit`] if the format has another unit, or an axis none that can be converted.
    pub(crate) fn requested(
        file: &OutputFile,
        description: &StoreDescription,
    ) -> Result<Option<(Self, StoreDescription)>, FileFault> {
        let Some(target) = file.unit() else {
            return Ok(None);
        };
        let (format, given) = (file.format(), || target.name.to_owned());
        let fault = |error| FileFault::AxisUnit(Box::new(error));
        if let Some(implied) = format.length_unit().filter(|implied| *implied != target) {
            let (holds, given) = (implied.plural(), given());
            return Err(fault(AxisUnitError::Format {
                format,
                holds,
                given,
            }));
        }
        let conversion = Self::new(format, description, target);
        let mut description = description.clone();
        for axis in description
            .axes
            .iter_mut()
            .filter(|axis| axis.kind == "space")
        {
            if LengthUnit::of_axis(axis).is_none() {
                let (axis, given) = (axis.name.clone(), given());
                return Err(fault(AxisUnitError::NoUnit { axis, given }));
            }
            axis.unit = Some(given());
        }
        Ok(Some((conversion, description)))
    }

    /// Returns what was not converted, one line each.
    pub(crate) fn into_left_out(self) -> Vec<String> {
        self.left_out
    }

    fn is_identity(&self) -> bool {
        self.factors.is_empty()
    }

    /// Converts the coordinates of a batch, and the radii of its vertices.
    ///
    /// # Errors
    ///
    /// [`FileFault::CoordinateRange`] if a coordinate is too large for its type.
    pub(crate) fn convert(&mut self, batch: &mut QueryResult) -> Result<(), FileFault> {
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
        if self.conversion.is_identity() {
            return self.writer.write(batch);
        }
        let mut batch = batch.clone();
        let converted = self.conversion.convert(&mut batch);
        converted.map_err(|fault| fault.of(&self.path))?;
        self.writer.write(&batch)
    }

    fn end_objects(&mut self) -> Result<(), FileError> {
        self.writer.end_objects()
    }

    fn finish(self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let mut written = self.writer.finish(tables)?;
        written.left_out.extend(self.conversion.left_out);
        Ok(written)
    }
}
