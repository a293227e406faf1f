//! Reads points in batches.

use std::{error::Error, path::Path};

use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, GeometrySource, NumericColumn, numeric::Kind,
};

use super::{
    ORDER, SOURCE_ROW, crs,
    dimension::{
        Dimension, UNDESCRIBED, extra, has_waves, is_extra, names_undescribed, of_format, unscaled,
    },
    header::LasHeader,
    points::PointRecords,
};
use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, GeometryReader,
    input::ByteReader, names::AttributeNames, reader::built,
};

/// Size of the records whose values are taken together: they stay in the cache while each dimension
/// passes over them.
const CACHED: usize = 1 << 14;

/// A LAS or LAZ file that is read in batches.
#[derive(Debug)]
pub struct LasReader {
    file: ByteReader,
    header: LasHeader,
    description: FileDescription,
    dimensions: Vec<Dimension>,
    records: PointRecords,
    /// Number of points not yet read.
    left: u64,
    /// The attribute with the number of each point, if it is kept.
    order: Option<String>,
    scratch: Vec<u8>,
}

impl LasReader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the header, a record or the table of chunks is damaged.
    pub fn open(path: &Path, options: &FileReadOptions) -> Result<Self, FileError> {
        let mut file = ByteReader::open(path, options.unpacked)?;
        let header = LasHeader::read(&mut file)?;
        let record = u64::try_from(header.record).unwrap_or(u64::MAX);
        if header.points.saturating_mul(record) > options.unpacked {
            let limit = options.unpacked;
            return Err(FileFault::Unpacked { limit }.of(path));
        }
        let records = PointRecords::open(&mut file, &header)?;
        let format = if header.is_compressed {
            FileFormat::Laz
        } else {
            FileFormat::Las
        };
        let mut description = FileDescription::new(format, GeometryKind::Points).axes_xyz(None);
        let mut dimensions = of_format(header.format);
        dimensions.extend(extra(&header.vlrs, header.format, header.record));
        describe_extra(&header, &dimensions, &mut description);
        if has_waves(header.format) {
            let note = match (header.has_waveforms(), header.keeps_waveforms()) {
                (_, true) => None,
                (true, false) => Some("left out: the waveforms of the points"),
                (false, false) => Some("the waveforms of the points are in another file (.wdp)"),
            };
            description.notes.extend(note.map(str::to_owned));
        }
        if header.large > 0 {
            let large = header.large;
            let note = format!("left out: {large} extended records, which exceed 4 MiB");
            description.notes.push(note);
        }
        let mut names = AttributeNames::default();
        for dimension in &mut dimensions {
            dimension.name = names.add(&dimension.name);
        }
        let order = options.keep_order.then(|| names.add(SOURCE_ROW));
        description.header = header.kept();
        if let Some(order) = &order {
            description
                .header
                .insert(ORDER.to_owned(), order.clone().into());
        }
        names.record(&mut description.header, "names");
        description.crs = crs::of_records(&header.vlrs).or_else(|| crs::of_records(&header.evlrs));
        let scaled = dimensions.iter().filter(|it| it.scaling.is_some());
        let wider: usize = scaled
            .map(|it| it.attribute_size().saturating_sub(it.size()))
            .sum();
        let wider = u64::try_from(wider).unwrap_or(u64::MAX).saturating_add(12);
        description.bytes = header.points.saturating_mul(record.saturating_add(wider));
        Ok(Self {
            left: header.points,
            file,
            header,
            description,
            dimensions,
            records,
            order,
            scratch: Vec::new(),
        })
    }

    fn batch(&mut self, vertices: usize) -> Result<Option<GeometryBuilder>, FileError> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut wanted = u64::try_from(vertices.max(1))
            .unwrap_or(u64::MAX)
            .min(self.left);
        let record = self.header.record;
        let first = self.header.points.saturating_sub(self.left);
        let mut columns = PointColumns::new(&self.dimensions);
        while wanted > 0 {
            let step = self.records.step(record);
            let count = usize::try_from(wanted).unwrap_or(step).min(step);
            self.records
                .take(&mut self.file, &mut self.scratch, count, record)?;
            columns.reserve(count, &self.dimensions);
            let cached = (CACHED / record).max(1).saturating_mul(record);
            for records in self.scratch.chunks(cached) {
                let added = columns.add(records, &self.header, &self.dimensions);
                added.map_err(|fault| fault.of(self.file.path()))?;
            }
            let done = u64::try_from(count).unwrap_or(u64::MAX);
            wanted = wanted.saturating_sub(done);
            self.left = self.left.saturating_sub(done);
        }
        let mut geometry = columns.geometry(&self.dimensions);
        if let Some(order) = &self.order {
            let end = self.header.points.saturating_sub(self.left);
            // All batches have one type.
            let rows: NumericColumn = match u32::try_from(self.header.points) {
                Ok(_) => (first..end)
                    .filter_map(|row| u32::try_from(row).ok())
                    .collect(),
                Err(_) => (first..end).collect(),
            };
            geometry.vertex.push(Column::new(order.clone(), rows));
        }
        Ok(Some(geometry))
    }
}

/// Coordinates and values of points.
struct PointColumns {
    positions: Vec<[[u8; 8]; 3]>,
    /// The bytes of each dimension.
    values: Vec<Vec<u8>>,
}

impl PointColumns {
    fn new(dimensions: &[Dimension]) -> Self {
        Self {
            positions: Vec::new(),
            values: vec![Vec::new(); dimensions.len()],
        }
    }

    /// Reserves room for points that were read.
    fn reserve(&mut self, points: usize, dimensions: &[Dimension]) {
        self.positions.reserve(points);
        for (values, dimension) in self.values.iter_mut().zip(dimensions) {
            values.reserve(points.saturating_mul(dimension.attribute_size()));
        }
    }

    /// Adds records.
    fn add(
        &mut self,
        records: &[u8],
        header: &LasHeader,
        dimensions: &[Dimension],
    ) -> Result<(), FileFault> {
        let ([x, y, z], [from_x, from_y, from_z]) = (header.scale, header.offset);
        let record = header.record;
        let start = self.positions.len();
        let mut are_finite = true;
        self.positions
            .extend(records.chunks_exact(record).map(|point| {
                let (words, _) = point.as_chunks::<4>();
                let whole = |word: &[u8; 4]| f64::from(i32::from_le_bytes(*word));
                let row = match words {
                    [one, two, three, ..] => [
                        whole(one) * x + from_x,
                        whole(two) * y + from_y,
                        whole(three) * z + from_z,
                    ],
                    _ => [0.0; 3],
                };
                are_finite &= row.iter().fold(true, |all, value| all & value.is_finite());
                row.map(f64::to_le_bytes)
            }));
        if !are_finite {
            let rows = self.positions.get(start..).unwrap_or_default();
            let mut values = rows.iter().flatten().copied().map(f64::from_le_bytes);
            let value = values.find(|value| !value.is_finite());
            return Err(FileFault::NotFinite(value.unwrap_or(f64::NAN)));
        }
        for (dimension, values) in dimensions.iter().zip(&mut self.values) {
            dimension.read(records, record, values);
        }
        Ok(())
    }

    fn geometry(self, dimensions: &[Dimension]) -> GeometryBuilder {
        let mut coordinates = NumericColumn::new(Kind::Float64, 3);
        coordinates.bytes = self.positions.into_flattened().into_flattened();
        let mut geometry = Geometry::builder(coordinates);
        let columns = dimensions
            .iter()
            .zip(self.values)
            .map(|(dimension, bytes)| {
                let mut values = NumericColumn::new(dimension.attribute_kind(), dimension.width);
                values.bytes = bytes;
                Column::new(dimension.name.clone(), values)
            });
        geometry.vertex = columns.collect();
        geometry
    }
}

/// Notes extra bytes that the records of the file do not describe as LAS defines.
fn describe_extra(header: &LasHeader, dimensions: &[Dimension], to: &mut FileDescription) {
    let descriptions = header.vlrs.iter().filter(|vlr| is_extra(vlr)).count();
    if descriptions > 1 {
        let note = format!(
            "the file has {descriptions} records that describe extra bytes; the first one was used"
        );
        to.notes.push(note);
    }
    for name in unscaled(&header.vlrs) {
        let note = format!(
            "{name}: its scale and offset are not applied, because float64 would round numbers of 64 bits"
        );
        to.notes.push(note);
    }
    let undescribed = dimensions.iter().find(|it| it.name == UNDESCRIBED);
    if let Some(rest) = undescribed.filter(|_| !names_undescribed(&header.vlrs)) {
        let bytes = rest.size();
        let note = format!(
            "{bytes} extra bytes of each point have no description; they are the attribute \
             {UNDESCRIBED}"
        );
        to.notes.push(note);
    }
}

impl GeometrySource for LasReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        built(self.batch(vertices)?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.records = PointRecords::open(&mut self.file, &self.header)?;
        self.left = self.header.points;
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(Geometry::new(NumericColumn::new(Kind::Float64, 3)))
    }
}

impl GeometryReader for LasReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}
