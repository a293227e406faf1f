//! Coordinates of results in the unit that a format implies.

use std::path::{Path, PathBuf};

use zvf::{Column, ColumnValues, NumericColumn, QueryResult, numeric::Kind};

use crate::{
    FileError, FileFault, FileFormat, GroupTables, ResultDescription, ResultWriter, WrittenResult,
    length::{LengthFactor, LengthUnit},
    values::{narrow, not_finite, to_f32_bytes, to_f64},
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
        description: &ResultDescription,
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
            // In an axis of time, `m` may stand for minutes.
            match LengthUnit::of(unit).filter(|_| axis.kind == "space") {
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
                match rest.iter().all(|other| other.factor == first.factor) {
                    true => RadiusFactor::One(first.factor),
                    false => RadiusFactor::Several,
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

/// Multiplies the numbers of each row by factors, which repeat. 32-bit floats stay 32-bit floats,
/// 16-bit floats become such, and integers become 64-bit floats. Complex numbers are not changed.
fn scale(column: &mut NumericColumn, factors: &[LengthFactor]) {
    if factors.iter().all(|factor| *factor == LengthFactor::ONE) {
        return;
    }
    let kind = match column.kind {
        Kind::Complex64 | Kind::Complex128 => return,
        Kind::Float16 | Kind::Float32 => Kind::Float32,
        _ => Kind::Float64,
    };
    if column.kind != kind {
        let converted = match kind {
            Kind::Float32 => to_f32_bytes(column)
                .map(|bytes| NumericColumn::new(kind, column.width).with_bytes(bytes)),
            _ => to_f64(column).map(|values| NumericColumn::float64(column.width, values)),
        };
        // Only complex numbers have no such form.
        let Some(converted) = converted else {
            return;
        };
        *column = converted;
    }
    let factors = factors.iter().cycle();
    if kind == Kind::Float32 {
        let (words, _) = column.bytes.as_chunks_mut::<4>();
        for (word, factor) in words.iter_mut().zip(factors) {
            let scaled = factor.apply(f32::from_le_bytes(*word).into());
            *word = narrow(scaled).to_le_bytes();
        }
    } else {
        let (words, _) = column.bytes.as_chunks_mut::<8>();
        for (word, factor) in words.iter_mut().zip(factors) {
            *word = factor.apply(f64::from_le_bytes(*word)).to_le_bytes();
        }
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
