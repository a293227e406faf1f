//! Reads streamlines in batches.

use std::{error::Error, path::Path};

use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, GeometrySource, NumericColumn, numeric::Kind,
};

use super::header::{NamedValues, SIZE, TrkHeader};
use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, GeometryReader,
    input::ByteReader,
    names::AttributeNames,
    reader::{PathBatch, built, note_empty, object_id},
};

/// A TRK file that is read in batches.
#[derive(Debug)]
pub struct TrkReader {
    file: ByteReader,
    header: TrkHeader,
    description: FileDescription,
    scalars: Vec<NamedValues>,
    properties: Vec<NamedValues>,
    /// Number of the next streamline.
    next: u64,
    /// Points of the next streamline, if they were read already.
    ahead: Option<u64>,
    /// Streamlines without points in this pass.
    empty: u64,
    scratch: Vec<u8>,
}

impl TrkReader {
    /// Opens a file and checks its header.
    ///
    /// # Errors
    ///
    /// [`FileError`] for a damaged header.
    pub fn open(path: &Path, options: &FileReadOptions) -> Result<Self, FileError> {
        let mut file = ByteReader::open(path, options.unpacked)?;
        let mut bytes = [0; SIZE];
        file.fill(&mut bytes, "the header")?;
        let header = TrkHeader::parse(&bytes).map_err(|fault| fault.of(path))?;
        let in_file = |fault: FileFault| fault.of(path);
        let mut names = AttributeNames::default();
        let scalars: Vec<NamedValues> = header.scalar_names().map_err(in_file)?;
        let stored: Vec<String> = scalars.iter().map(|it| names.add(&it.name)).collect();
        let scalars = with_names(scalars, stored);
        let mut object_names = AttributeNames::default();
        let properties = header.property_names().map_err(in_file)?;
        let stored = properties
            .iter()
            .map(|it| object_names.add(&it.name))
            .collect();
        let properties = with_names(properties, stored);
        let mut description = FileDescription::new(FileFormat::Trk, GeometryKind::Streamlines)
            .axes_xyz(Some("millimeter"));
        description.crs = Some(serde_json::json!({ "frame": "RAS+", "unit": "millimeter" }));
        description.header = header.to_header();
        names.record(&mut description.header, "names");
        object_names.record(&mut description.header, "object_names");
        // Positions become twice as large.
        description.bytes = file.length().saturating_mul(2);
        if header.lacks_matrix {
            description.notes.push(
                "the header has no vox_to_ras; coordinates are voxel millimetres, not those of a scanner"
                    .to_owned(),
            );
        }
        let reader = Self {
            file,
            header,
            description,
            scalars,
            properties,
            next: 0,
            ahead: None,
            empty: 0,
            scratch: Vec::new(),
        };
        Ok(reader)
    }

    fn restart(&mut self) -> Result<(), FileError> {
        self.next = 0;
        self.empty = 0;
        self.ahead = None;
        self.file.seek(u64::try_from(SIZE).unwrap_or(u64::MAX))
    }

    /// Reads the number of points of the next streamline; `None` after the last.
    fn points(&mut self) -> Result<Option<u64>, FileError> {
        if let Some(points) = self.ahead.take() {
            return Ok(Some(points));
        }
        let left = self.file.left();
        let count = self.header.count;
        if left == 0 {
            if count != 0 && count != self.next {
                return Err(self.file.error(FileFault::Count {
                    what: "streamlines",
                    found: self.next,
                    expected: count,
                }));
            }
            return Ok(None);
        }
        if count != 0 && self.next >= count {
            return Err(self.file.error(FileFault::Trailing(left)));
        }
        let bytes = self.file.array("the number of points of a streamline")?;
        let points = if self.header.is_big_endian {
            i32::from_be_bytes(bytes)
        } else {
            i32::from_le_bytes(bytes)
        };
        let points = u64::try_from(points).map_err(|_| {
            let expected = "it cannot be negative; the file is damaged";
            self.file
                .error(FileFault::field("a number of points", points, expected))
        })?;
        Ok(Some(points))
    }

    /// Returns the size of the points of a streamline, which the file has.
    fn point_bytes(&self, points: u64) -> Result<u64, FileError> {
        let row = bytes_of(self.header.scalars.saturating_add(3));
        let size = points.saturating_mul(row);
        let whole = size.saturating_add(bytes_of(self.header.properties));
        self.file.check(whole, "a streamline")?;
        Ok(size)
    }

    fn batch(&mut self, vertices: usize) -> Result<Option<GeometryBuilder>, FileError> {
        let mut batch = PathBatch::new();
        let mut positions: Vec<[[u8; 8]; 3]> = Vec::new();
        let mut columns: Vec<Vec<u8>> = vec![Vec::new(); self.scalars.len()];
        let mut properties: Vec<Vec<u8>> = vec![Vec::new(); self.properties.len()];
        let row = usize::try_from(bytes_of(self.header.scalars.saturating_add(3))).unwrap_or(12);
        while let Some(points) = self.points()? {
            // Streamlines without points end a batch, because a batch has to have points.
            if points > 0 && batch.is_full(vertices) {
                self.ahead = Some(points);
                break;
            }
            let size = self.point_bytes(points)?;
            let whole = size.saturating_add(bytes_of(self.header.properties));
            let start = self.file.at();
            self.file.take(&mut self.scratch, whole, "a streamline")?;
            order(&mut self.scratch, self.header.is_big_endian);
            let end = usize::try_from(size).unwrap_or(usize::MAX);
            let of_streamline = self.scratch.get(end..).unwrap_or_default();
            for (named, column) in self.properties.iter().zip(&mut properties) {
                column.extend_from_slice(named.of(of_streamline));
            }
            self.scratch.truncate(end);
            let before = positions.len();
            let mut are_finite = true;
            positions.extend(self.scratch.chunks_exact(row).map(|point| {
                let world = self.header.to_world.apply(point_of(point));
                are_finite &= world
                    .iter()
                    .fold(true, |all, value| all & value.is_finite());
                world.map(f64::to_le_bytes)
            }));
            if !are_finite {
                let rows = positions.get(before..).unwrap_or_default();
                let mut values = rows.iter().flatten().copied().map(f64::from_le_bytes);
                let value = values.find(|value| !value.is_finite());
                let place = crate::FilePlace::Byte(start);
                let fault = FileFault::NotFinite(value.unwrap_or(f64::NAN));
                return Err(fault.at(self.file.path(), place));
            }
            for (named, column) in self.scalars.iter().zip(&mut columns) {
                for point in self.scratch.chunks_exact(row) {
                    let scalars = point.get(12..).unwrap_or_default();
                    column.extend_from_slice(named.of(scalars));
                }
            }
            batch.push(object_id(self.next), points);
            self.empty = self.empty.saturating_add(u64::from(points == 0));
            self.next = self.next.saturating_add(1);
        }
        if self.file.left() == 0 {
            note_empty(&mut self.description.notes, self.empty);
        }
        let mut coordinates = NumericColumn::new(Kind::Float64, 3);
        coordinates.bytes = positions.into_flattened().into_flattened();
        let named = |(named, bytes): (&NamedValues, Vec<u8>)| {
            Column::new(named.name.clone(), float32(named.width, bytes))
        };
        let attributes = self.scalars.iter().zip(columns).map(named);
        let mut geometry = batch.geometry(coordinates, attributes.collect());
        if let Some(geometry) = &mut geometry {
            let properties = self.properties.iter().zip(properties).map(named);
            geometry.object = properties.collect();
        }
        Ok(geometry)
    }
}

impl GeometrySource for TrkReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        built(self.batch(vertices)?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.restart()?)
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(Geometry::new(NumericColumn::new(Kind::Float64, 3)))
    }
}

impl GeometryReader for TrkReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}

impl NamedValues {
    /// Returns the bytes of these values in a row.
    fn of<'a>(&self, row: &'a [u8]) -> &'a [u8] {
        let start = self.first.saturating_mul(4);
        let end = start.saturating_add(self.width.saturating_mul(4));
        row.get(start..end).unwrap_or_default()
    }
}

/// Gives values the names under which they are stored.
fn with_names(values: Vec<NamedValues>, names: Vec<String>) -> Vec<NamedValues> {
    let values = values.into_iter().zip(names);
    values
        .map(|(value, name)| NamedValues { name, ..value })
        .collect()
}

fn float32(width: usize, bytes: Vec<u8>) -> NumericColumn {
    let mut column = NumericColumn::new(Kind::Float32, u32::try_from(width).unwrap_or(1));
    column.bytes = bytes;
    column
}

/// Returns the bytes of `count` numbers.
fn bytes_of(numbers: usize) -> u64 {
    u64::try_from(numbers).unwrap_or(u64::MAX).saturating_mul(4)
}

/// Makes words of 4 bytes little-endian.
fn order(bytes: &mut [u8], is_big_endian: bool) {
    if is_big_endian {
        let (words, _) = bytes.as_chunks_mut::<4>();
        for word in words {
            word.reverse();
        }
    }
}

#[inline]
fn point_of(row: &[u8]) -> [f64; 3] {
    let (words, _) = row.as_chunks::<4>();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    [0, 1, 2].map(|at| f64::from(f32::from_le_bytes(word(at))))
}
