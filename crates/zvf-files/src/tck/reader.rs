//! Reads streamlines in batches.

use std::{error::Error, path::Path};

use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, GeometrySource, NumericColumn, numeric::Kind,
};

use super::header::{SCALARS, TRACKS, TckHeader};
use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, GeometryReader,
    description::MAX_HEADER_TEXT,
    input::ByteReader,
    names::AttributeNames,
    reader::{PathBatch, built, note_empty, object_id},
};
use zvf_model::base64;

/// Rows that are read at once.
const ROWS: usize = 1 << 14;

/// A TCK file that is read in batches, with its TSF files.
#[derive(Debug)]
pub struct TckReader {
    rows: FloatRows<3>,
    scalars: Vec<TsfScalars>,
    description: FileDescription,
    /// Number of the next streamline.
    next: u64,
    /// A streamline that the next batch starts with.
    ahead: Option<Streamline>,
    /// Streamlines without points in this pass.
    empty: u64,
    /// True when the end of the data was read.
    is_over: bool,
}

/// The values of a TSF file.
#[derive(Debug)]
struct TsfScalars {
    name: String,
    rows: FloatRows<1>,
}

/// A stored streamline: little-endian numbers.
#[derive(Debug, Default)]
struct Streamline {
    points: u64,
    positions: Vec<u8>,
    scalars: Vec<Vec<u8>>,
}

impl TckReader {
    /// Opens a file and its TSF files, and checks their headers.
    ///
    /// # Errors
    ///
    /// [`FileError`] for a damaged header.
    pub fn open(path: &Path, options: &FileReadOptions) -> Result<Self, FileError> {
        let file = ByteReader::open(path, options.unpacked)?;
        let mut description = FileDescription::new(FileFormat::Tck, GeometryKind::Streamlines)
            .axes_xyz(Some("millimeter"));
        description.crs = Some(serde_json::json!({ "frame": "RAS+", "unit": "millimeter" }));
        description.bytes = file.length();
        let rows = FloatRows::open(file, TRACKS)?;
        let mut names = AttributeNames::default();
        let mut scalars = Vec::new();
        for with in &options.with {
            let file = ByteReader::open(with, options.unpacked)?;
            description.bytes = description.bytes.saturating_add(file.length());
            let stem = with.file_stem().unwrap_or_default().to_string_lossy();
            let rows = FloatRows::open(file, SCALARS)?;
            scalars.push(TsfScalars {
                name: names.add(&stem),
                rows,
            });
        }
        let mut reader = Self {
            rows,
            scalars,
            description,
            next: 0,
            ahead: None,
            empty: 0,
            is_over: false,
        };
        reader.keep_header()?;
        Ok(reader)
    }

    /// Keeps the header, and the bits of NaN and infinity.
    fn keep_header(&mut self) -> Result<(), FileError> {
        let bytes = self.rows.header.bytes.clone();
        let header = &mut self.description.header;
        if bytes.len() > MAX_HEADER_TEXT {
            let note = format!("the header has {} bytes and is not kept", bytes.len());
            self.description.notes.push(note);
        } else {
            match String::from_utf8(bytes) {
                Ok(text) => header.insert("header".to_owned(), text.into()),
                Err(error) => {
                    let text = base64::encode(error.as_bytes());
                    header.insert("header_base64".to_owned(), text.into())
                }
            };
        }
        let [nan, end] = self.rows.unusual_ends()?;
        for (key, bits) in [("nan", nan), ("end", end)] {
            if let Some(bits) = bits {
                header.insert(key.to_owned(), base64::encode(&bits).into());
            }
        }
        Ok(())
    }

    /// Reads the next streamline; `None` after the last.
    fn streamline(&mut self) -> Result<Option<Streamline>, FileError> {
        if let Some(streamline) = self.ahead.take() {
            return Ok(Some(streamline));
        }
        if self.is_over {
            return Ok(None);
        }
        let mut positions = Vec::new();
        let Some(points) = self.rows.path(&mut positions)? else {
            self.is_over = true;
            for scalars in &mut self.scalars {
                let mut values = Vec::new();
                if scalars.rows.path(&mut values)?.is_some() {
                    return Err(scalars.rows.differs(
                        "streamlines",
                        self.next.saturating_add(1),
                        self.next,
                    ));
                }
            }
            return Ok(None);
        };
        let mut all = Vec::with_capacity(self.scalars.len());
        for scalars in &mut self.scalars {
            let mut values = Vec::new();
            let found = scalars.rows.path(&mut values)?;
            if found != Some(points) {
                let found = found.unwrap_or(0);
                return Err(scalars
                    .rows
                    .differs("values of a streamline", found, points));
            }
            all.push(values);
        }
        Ok(Some(Streamline {
            points,
            positions,
            scalars: all,
        }))
    }

    fn batch(&mut self, vertices: usize) -> Result<Option<GeometryBuilder>, FileError> {
        let mut batch = PathBatch::new();
        let mut positions = NumericColumn::new(self.rows.header.kind, 3);
        let kinds = self.scalars.iter().map(|it| it.rows.header.kind);
        let mut columns: Vec<NumericColumn> =
            kinds.map(|kind| NumericColumn::new(kind, 1)).collect();
        while let Some(streamline) = self.streamline()? {
            // Streamlines without points end a batch, because a batch has to have points.
            if streamline.points > 0 && batch.is_full(vertices) {
                self.ahead = Some(streamline);
                break;
            }
            batch.push(object_id(self.next), streamline.points);
            positions.bytes.extend_from_slice(&streamline.positions);
            for (column, values) in columns.iter_mut().zip(&streamline.scalars) {
                column.bytes.extend_from_slice(values);
            }
            self.empty = self.empty.saturating_add(u64::from(streamline.points == 0));
            self.next = self.next.saturating_add(1);
        }
        if self.is_over {
            note_empty(&mut self.description.notes, self.empty);
        }
        let attributes = self
            .scalars
            .iter()
            .zip(columns)
            .map(|(scalars, column)| Column::new(scalars.name.clone(), column));
        Ok(batch.geometry(positions, attributes.collect()))
    }

    fn restart(&mut self) -> Result<(), FileError> {
        self.next = 0;
        self.empty = 0;
        self.ahead = None;
        self.is_over = false;
        self.rows.restart()?;
        self.scalars
            .iter_mut()
            .try_for_each(|scalars| scalars.rows.restart())
    }
}

impl GeometrySource for TckReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        built(self.batch(vertices)?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.restart()?)
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(Geometry::new(NumericColumn::new(self.rows.header.kind, 3)))
    }
}

impl GeometryReader for TckReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}

/// Rows of `N` floats, read in blocks.
#[derive(Debug)]
struct FloatRows<const N: usize> {
    file: ByteReader,
    header: TckHeader,
    /// Little-endian rows that were read, and the offset of the next one.
    block: Vec<u8>,
    at: usize,
    is_scalars: bool,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowClass {
    Values,
    PathEnd,
    End,
}

impl<const N: usize> FloatRows<N> {
    fn open(mut file: ByteReader, magic: &str) -> Result<Self, FileError> {
        let header = TckHeader::read(&mut file, magic)?;
        Ok(Self {
            file,
            header,
            block: Vec::new(),
            at: 0,
            is_scalars: magic == SCALARS,
        })
    }

    fn restart(&mut self) -> Result<(), FileError> {
        self.block.clear();
        self.at = 0;
        self.file
            .seek(u64::try_from(self.header.bytes.len()).unwrap_or(u64::MAX))
    }

    fn row_size(&self) -> usize {
        self.header.kind.size().saturating_mul(N)
    }

    /// Returns the offset of the next row in the file.
    fn position(&self) -> u64 {
        let rest = self.block.len().saturating_sub(self.at);
        self.file
            .at()
            .saturating_sub(u64::try_from(rest).unwrap_or(0))
    }

    /// Reads the next block if the last one is used up. Returns false at the end of the file.
    fn load(&mut self) -> Result<bool, FileError> {
        if self.at < self.block.len() {
            return Ok(true);
        }
        let row = u64::try_from(self.row_size()).unwrap_or(u64::MAX);
        let left = self.file.left();
        if left == 0 {
            return Ok(false);
        }
        if left < row {
            return Err(self.file.error(FileFault::Truncated {
                what: "a row",
                needed: row,
                left,
            }));
        }
        let rows = left
            .checked_div(row)
            .unwrap_or(0)
            .min(u64::try_from(ROWS).unwrap_or(1));
        let size = rows.saturating_mul(row);
        self.file.take(&mut self.block, size, "rows")?;
        self.at = 0;
        if self.header.is_big_endian {
            let size = self.header.kind.size();
            self.block.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        Ok(true)
    }

    /// Appends the rows of the next path, and returns their number; `None` after the last path.
    fn path(&mut self, values: &mut Vec<u8>) -> Result<Option<u64>, FileError> {
        let row_size = self.row_size();
        let mut points = 0_u64;
        loop {
            if !self.load()? {
                if self.is_scalars && points == 0 {
                    return Ok(None);
                }
                let what = if points == 0 {
                    "the row of infinities at the end"
                } else {
                    "the end of a streamline"
                };
                let needed = u64::try_from(row_size).unwrap_or(u64::MAX);
                return Err(self.file.error(FileFault::Truncated {
                    what,
                    needed,
                    left: 0,
                }));
            }
            let rest = self.block.get(self.at..).unwrap_or_default();
            let mut length = 0_usize;
            let mut class = RowClass::Values;
            for row in rest.chunks_exact(row_size) {
                class = classify(row, self.header.kind).map_err(|value| {
                    let at = self
                        .position()
                        .saturating_add(u64::try_from(length).unwrap_or(0));
                    let place = crate::FilePlace::Byte(at);
                    FileFault::NotFinite(value).at(self.file.path(), place)
                })?;
                if class != RowClass::Values {
                    break;
                }
                length = length.saturating_add(row_size);
            }
            values.extend_from_slice(rest.get(..length).unwrap_or_default());
            points = points.saturating_add(u64::try_from(length / row_size).unwrap_or(0));
            self.at = self.at.saturating_add(length);
            if class != RowClass::Values {
                self.at = self.at.saturating_add(row_size);
            }
            match class {
                RowClass::Values => {}
                RowClass::PathEnd => return Ok(Some(points)),
                RowClass::End if points > 0 => {
                    return Err(self.file.error(FileFault::Truncated {
                        what: "the end of the last streamline, a row of NaN,",
                        needed: u64::try_from(row_size).unwrap_or(u64::MAX),
                        left: 0,
                    }));
                }
                RowClass::End => {
                    let position = self.position();
                    let trailing = self.file.length().saturating_sub(position);
                    if trailing > 0 {
                        let place = crate::FilePlace::Byte(position);
                        return Err(FileFault::Trailing(trailing).at(self.file.path(), place));
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Returns the bytes of the first row of NaN and of the last row, if MRtrix writes other bytes
    /// today.
    fn unusual_ends(&mut self) -> Result<[Option<Vec<u8>>; 2], FileError> {
        let usual = [f64::NAN, f64::INFINITY].map(|value| self.encoded(value));
        let start = self.position();
        let mut nan = None;
        while self.load()? {
            let kind = self.header.kind;
            let size = self.row_size();
            let mut rows = self.block.chunks_exact(size);
            if let Some(row) = rows.find(|row| classify(row, kind) == Ok(RowClass::PathEnd)) {
                nan = Some(row.to_vec());
                break;
            }
            self.at = self.block.len();
        }
        let size = u64::try_from(self.row_size()).unwrap_or(u64::MAX);
        let last = self.file.length().saturating_sub(size);
        let mut end = None;
        if last >= start {
            self.file.seek(last)?;
            let mut row = Vec::new();
            self.file.take(&mut row, size, "the last row")?;
            if self.header.is_big_endian {
                row.chunks_exact_mut(self.header.kind.size())
                    .for_each(<[u8]>::reverse);
            }
            end = Some(row);
        }
        self.restart()?;
        let [usual_nan, usual_end] = usual;
        let kind = self.header.kind;
        let is_end = |row: &Vec<u8>| classify(row, kind) == Ok(RowClass::End);
        Ok([
            nan.filter(|row| *row != usual_nan),
            end.filter(|row| *row != usual_end && is_end(row)),
        ])
    }

    /// Returns a row of equal values.
    fn encoded(&self, value: f64) -> Vec<u8> {
        super::writer::row_of(value, self.header.kind, N)
    }

    /// Returns the error of a TSF file that does not fit its TCK file.
    fn differs(&self, what: &'static str, found: u64, expected: u64) -> FileError {
        self.file.error(FileFault::Count {
            what,
            found,
            expected,
        })
    }
}

/// Classifies a little-endian row; the error is a value that cannot be in it.
fn classify(row: &[u8], kind: Kind) -> Result<RowClass, f64> {
    let mut numbers = 0_usize;
    let (mut nans, mut infinite) = (0_usize, 0_usize);
    let mut odd = 0.0;
    let mut count = |value: f64| {
        numbers = numbers.saturating_add(1);
        if value.is_nan() {
            nans = nans.saturating_add(1);
            odd = value;
        } else if value.is_infinite() {
            infinite = infinite.saturating_add(1);
            odd = value;
        }
    };
    if kind == Kind::Float64 {
        let (values, _) = row.as_chunks::<8>();
        for value in values {
            count(f64::from_le_bytes(*value));
        }
    } else {
        let (values, _) = row.as_chunks::<4>();
        for value in values {
            count(f32::from_le_bytes(*value).into());
        }
    }
    match (nans, infinite) {
        (0, 0) => Ok(RowClass::Values),
        (some, 0) if some == numbers => Ok(RowClass::PathEnd),
        (0, some) if some == numbers => Ok(RowClass::End),
        _ => Err(odd),
    }
}
