//! Writes streamlines in batches.

use core::ops::Range;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use serde_json::Value;
use zvf::{Column, ColumnValues, NumericColumn, QueryResult, Scope};

use super::header::{NAMES, NamedValues, SIZE, TrkHeader};
use crate::{
    FileError, FileFault, GroupTables, ResultWriter, StoreDescription, WrittenResult,
    affine::VoxelMap,
    display::len_u64,
    names::original,
    values::{
        AxisOrder, fits_f32, narrow, narrow_coordinate, numbers, rounded_left_out, to_f32_bytes,
    },
    voxel_grid::FileGrid,
    writer::{ObjectNumbers, OutputSink, groups_left_out, left_out, paths},
};

/// The largest number of values of a point or a streamline under one name.
const MAX_VALUES: usize = 9;

/// A TRK file that is written in batches.
#[derive(Debug)]
pub struct TrkWriter {
    sink: OutputSink,
    header: TrkHeader,
    to_file: VoxelMap,
    grid: FileGrid,
    names: Option<Value>,
    object_names: Option<Value>,
    /// The columns, once the first batch has come.
    layout: Option<Layout>,
    streamlines: u64,
    objects: ObjectNumbers,
    left_out: Vec<String>,
    /// Number of coordinates of stores with wider types that are rounded.
    rounded: usize,
    /// Object of the last streamline and its properties.
    last: (Option<i64>, Vec<u8>),
}

/// The columns that are written.
#[derive(Clone, Debug)]
struct Layout {
    coordinates: AxisOrder,
    scalars: Vec<String>,
    properties: Vec<String>,
    /// Values of a point, with its coordinates.
    point_width: usize,
    /// Values of a streamline.
    width: usize,
}

impl Layout {
    /// Returns the size in bytes of streamlines with this many points.
    fn size(&self, points: usize, streamlines: usize) -> usize {
        let of_point = self.point_width.saturating_mul(4);
        let of_streamline = self.width.saturating_add(1).saturating_mul(4);
        let points = points.saturating_mul(of_point);
        points.saturating_add(streamlines.saturating_mul(of_streamline))
    }
}

/// Coordinates of consecutive points. Those of a whole batch would take several times its size.
#[derive(Debug, Default)]
struct Block {
    first: usize,
    rows: Vec<[f64; 3]>,
}

/// Upper bound on the error of coordinates that were read from a trk file and are transformed back,
/// relative to the [magnitudes](VoxelMap::magnitudes) of the transformation.
const TRANSFORM_ERROR: f64 = 1e-12;
/// Number of points of a block.
const BLOCK: usize = 1 << 14;
/// Size in bytes of a part of a file whose coordinates are moved.
const BLOCK_BYTES: usize = 1 << 20;

impl Block {
    /// Returns the coordinates of consecutive points, from a block that begins with them unless the
    /// last one has them.
    fn of(
        &mut self,
        points: Range<usize>,
        order: &AxisOrder,
        positions: &NumericColumn,
    ) -> Result<&[[f64; 3]], FileFault> {
        let end = self.first.saturating_add(self.rows.len());
        if points.start < self.first || end < points.end {
            let end = points.end.max(points.start.saturating_add(BLOCK));
            let rows = points.start..end.min(positions.len());
            self.first = rows.start;
            let positions = positions.take(rows);
            let expected = "paths do not fit the rows of their vertices";
            self.rows = order.rows(&positions.ok_or(FileFault::Broken(expected))?)?;
        }
        let start = points.start.saturating_sub(self.first);
        let rows = self.rows.get(start..start.saturating_add(points.len()));
        rows.ok_or(FileFault::Broken(
            "paths do not fit the rows of their vertices",
        ))
    }
}

impl TrkWriter {
    /// Creates a file.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file cannot be created, or the kept header is damaged.
    pub fn create(path: &Path, description: &StoreDescription) -> Result<Self, FileError> {
        let in_file = |fault: FileFault| fault.of(path);
        let (header, grid) = match TrkHeader::kept(description).map_err(in_file)? {
            Some(kept) => {
                let grid = kept.grid();
                (kept, FileGrid::Kept(grid))
            }
            None => {
                let grid = FileGrid::of_store(description);
                let header = TrkHeader::of_grid(&grid.grid()).map_err(in_file)?;
                (header, grid)
            }
        };
        let to_file = to_file(&header).map_err(in_file)?;
        let kept = description.headers.get("trk");
        let names = |key: &str| kept.and_then(|kept| kept.get(key)).cloned();
        let mut sink = OutputSink::create(path)?;
        sink.write(&header.bytes)?;
        Ok(Self {
            names: names("names"),
            object_names: names("object_names"),
            sink,
            header,
            to_file,
            grid,
            layout: None,
            streamlines: 0,
            objects: ObjectNumbers::default(),
            left_out: Vec::new(),
            rounded: 0,
            last: (None, Vec::new()),
        })
    }

    /// Chooses the columns that are written.
    fn plan(&mut self, batch: &QueryResult) -> Result<Layout, FileFault> {
        if let Some(layout) = &self.layout {
            return Ok(layout.clone());
        }
        let coordinates = AxisOrder::of(batch, "trk")?;
        let before = self.header.scalar_names()?;
        let scalars = self.named(
            "vertex",
            &before,
            &batch.vertex,
            self.names.clone().as_ref(),
        );
        let before = self.header.property_names()?;
        let properties = self.named(
            "object",
            &before,
            &batch.object,
            self.object_names.clone().as_ref(),
        );
        self.header.set_scalars(&scalars.1);
        self.header.set_properties(&properties.1);
        let holds = |scope: Scope, _: &Column| matches!(scope, Scope::Vertex | Scope::Object);
        self.left_out.extend(left_out(batch, "trk", holds));
        let layout = Layout {
            coordinates,
            scalars: scalars.0,
            properties: properties.0,
            point_width: self.header.scalars.saturating_add(3),
            width: self.header.properties,
        };
        self.layout = Some(layout.clone());
        Ok(layout)
    }

    /// Returns the columns that the format holds, with their names in the file. Names that the kept
    /// header has come first, in its order.
    fn named(
        &mut self,
        scope: &str,
        before: &[NamedValues],
        columns: &[Column],
        names: Option<&Value>,
    ) -> (Vec<String>, Vec<NamedValues>) {
        let (mut stored, mut named) = (Vec::new(), Vec::<NamedValues>::new());
        let mut first = 0_usize;
        let place = |column: &&Column| {
            let name = original(names, &column.name);
            let place = before.iter().position(|it| it.name == name);
            place.unwrap_or(usize::MAX)
        };
        let mut columns: Vec<&Column> = columns.iter().collect();
        columns.sort_by_key(place);
        // The kept header has these values, also under names that the writer cannot give.
        let of_column = |column: &&Column| match &column.values {
            ColumnValues::Numeric(values) => {
                let name = original(names, &column.name).to_owned();
                Some((name, values.row_len()))
            }
            ColumnValues::Dictionary { .. } => None,
        };
        let of_header = before.iter().map(|it| Some((it.name.clone(), it.width)));
        let is_kept = columns.iter().map(of_column).eq(of_header);
        for column in columns {
            let name = original(names, &column.name);
            let limit = format!("{scope}.{}", column.name);
            let ColumnValues::Numeric(values) = &column.values else {
                self.left_out
                    .push(format!("{limit}: trk does not support text"));
                continue;
            };
            let width = values.row_len();
            let is_beyond = named.len() == NAMES || width > MAX_VALUES;
            if is_beyond && !is_kept || values.kind.name().starts_with("complex") {
                let line = format!("{limit}: trk holds 10 attributes of up to 9 numbers");
                self.left_out.push(line);
                continue;
            }
            if !fits_f32(values.kind) {
                let line = format!(
                    "{limit}: {} is rounded to float32 in trk",
                    values.kind.name()
                );
                self.left_out.push(line);
            }
            let in_file = if is_kept {
                name.to_owned()
            } else {
                name_in_file(name, width, &named)
            };
            if in_file != name {
                self.left_out
                    .push(format!("{limit}: its name becomes {in_file} in trk"));
            }
            stored.push(column.name.clone());
            named.push(NamedValues {
                name: in_file,
                first,
                width,
            });
            first = first.saturating_add(width);
        }
        (stored, named)
    }

    /// Returns the bytes of chosen columns and their bytes per row.
    fn columns(columns: &[Column], chosen: &[String]) -> Result<Vec<(Vec<u8>, usize)>, FileFault> {
        let find = |name: &String| {
            let column = columns.iter().find(|column| column.name == *name);
            let values = column.and_then(numbers);
            let bytes = values.and_then(|values| {
                let size = values.row_len().saturating_mul(4);
                Some((to_f32_bytes(&values)?, size))
            });
            bytes.ok_or(FileFault::Broken("a column is missing in a batch"))
        };
        chosen.iter().map(find).collect()
    }

    /// Moves the header to the grid that encloses all points up to now.
    fn move_header(&mut self) -> Result<(), FileFault> {
        match &self.grid {
            FileGrid::Kept(_) => Ok(()),
            FileGrid::MadeUp(_) => self.header.move_to(&self.grid.grid()),
        }
    }

    /// Moves the header to the grid that encloses all points. Returns what has to be added to the
    /// coordinates in the file.
    fn enclose(&mut self) -> Result<[f64; 3], FileFault> {
        self.move_header()?;
        let before = self.to_file.apply([0.0; 3]);
        let after = to_file(&self.header)?.apply([0.0; 3]);
        let mut shift = after;
        for (shift, before) in shift.iter_mut().zip(before) {
            *shift -= before;
        }
        Ok(shift)
    }

    fn put(&mut self, batch: &QueryResult) -> Result<Vec<u8>, FileFault> {
        let layout = self.plan(batch)?;
        let scalars = Self::columns(&batch.vertex, &layout.scalars)?;
        let properties = Self::columns(&batch.object, &layout.properties)?;
        let paths = paths(batch, "trk")?;
        let mut bytes: Vec<u8> =
            Vec::with_capacity(layout.size(batch.positions.len(), paths.len()));
        let mut world = Block::default();
        let is_wide = !fits_f32(batch.positions.kind);
        let object_rows: HashMap<i64, usize> = batch
            .objects
            .iter()
            .zip(0_usize..)
            .map(|(id, row)| (*id, row))
            .collect();
        for path in paths {
            let count = path.end.saturating_sub(path.start);
            let points = i32::try_from(count).map_err(|_| FileFault::Result {
                format: "trk",
                holds: "streamlines of up to 2147483647 points",
                remedy: "write trx",
            })?;
            bytes.extend_from_slice(&points.to_le_bytes());
            let points = world.of(path.start..path.end, &layout.coordinates, &batch.positions)?;
            self.grid.enclose(points);
            if self.streamlines == 0 {
                self.move_header()?;
                self.to_file = to_file(&self.header)?;
            }
            for (row, point) in (path.start..).zip(points) {
                let values = self.to_file.apply(*point);
                for value in values {
                    bytes.extend_from_slice(&narrow_coordinate(value, "trk")?.to_le_bytes());
                }
                if is_wide {
                    let magnitudes = self.to_file.magnitudes(*point);
                    let is_rounded = |(value, magnitude): &(f64, f64)| {
                        (f64::from(narrow(*value)) - value).abs() > TRANSFORM_ERROR * magnitude
                    };
                    let rounded = values.into_iter().zip(magnitudes).filter(is_rounded);
                    self.rounded = self.rounded.saturating_add(rounded.count());
                }
                for (values, size) in &scalars {
                    bytes.extend_from_slice(row_of(values, row, *size));
                }
            }
            if layout.width > 0 {
                if self.last.0 != Some(path.object) {
                    let row = object_rows.get(&path.object).copied();
                    self.last = (
                        Some(path.object),
                        property_row(&properties, row, layout.width),
                    );
                }
                bytes.extend_from_slice(&self.last.1);
            }
            self.streamlines = self.streamlines.saturating_add(1);
            self.objects.push(path.object);
        }
        if self.header.is_big_endian {
            let (words, _) = bytes.as_chunks_mut::<4>();
            for word in words {
                word.reverse();
            }
        }
        Ok(bytes)
    }
}

/// Returns the map from the world to coordinates of the file.
fn to_file(header: &TrkHeader) -> Result<VoxelMap, FileFault> {
    let inverse = header.to_world.inverse();
    inverse.ok_or(FileFault::Broken("vox_to_ras has no inverse"))
}

/// Words of streamlines in a file, one after another.
#[derive(Debug)]
struct FileWords {
    /// Words of a point, and of the properties of a streamline.
    point: usize,
    properties: usize,
    /// Words left of the points and of the properties of the streamline.
    in_points: usize,
    in_properties: usize,
}

impl FileWords {
    /// Returns the axis to which the next word belongs; `None` if it is no coordinate.
    fn axis(&mut self, word: [u8; 4]) -> Option<usize> {
        if self.in_points > 0 {
            // A point begins where the words that are left are those of whole points.
            let rest = self.in_points.checked_rem(self.point).unwrap_or(0);
            let place = if rest == 0 {
                0
            } else {
                self.point.saturating_sub(rest)
            };
            self.in_points = self.in_points.saturating_sub(1);
            return Some(place).filter(|place| *place < 3);
        }
        if self.in_properties > 0 {
            self.in_properties = self.in_properties.saturating_sub(1);
            return None;
        }
        let points = usize::try_from(i32::from_le_bytes(word)).unwrap_or(0);
        self.in_points = points.saturating_mul(self.point);
        self.in_properties = self.properties;
        None
    }

    /// Adds to the coordinates of all points in a file.
    fn shift(mut self, file: &mut File, by: [f64; 3]) -> io::Result<()> {
        let mut at = file.seek(SeekFrom::Start(len_u64(SIZE)))?;
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        loop {
            block.clear();
            Read::take(&mut *file, len_u64(BLOCK_BYTES)).read_to_end(&mut block)?;
            if block.is_empty() {
                return Ok(());
            }
            let (words, _) = block.as_chunks_mut::<4>();
            for word in words {
                if let Some(by) = self.axis(*word).and_then(|axis| by.get(axis)) {
                    *word = narrow(f64::from(f32::from_le_bytes(*word)) + by).to_le_bytes();
                }
            }
            file.seek(SeekFrom::Start(at))?;
            file.write_all(&block)?;
            at = at.saturating_add(len_u64(block.len()));
        }
    }
}

/// Returns the name of values in a file, which differs from those before: as much of it as the header
/// holds, with a number if other values have this name.
fn name_in_file(name: &str, width: usize, before: &[NamedValues]) -> String {
    let longest = NamedValues::longest(width);
    let letter = |c: char| if u8::try_from(c).is_ok() { c } else { '_' };
    let cut = |length: usize| name.chars().map(letter).take(length).collect::<String>();
    let mut found = cut(longest);
    let mut number = 1_usize;
    while before.iter().any(|other| other.name == found) {
        number = number.saturating_add(1);
        let end = format!("_{number}");
        found = cut(longest.saturating_sub(end.len())) + &end;
    }
    found
}

/// Returns the properties of an object, NaN if the batch does not list it.
fn property_row(properties: &[(Vec<u8>, usize)], row: Option<usize>, width: usize) -> Vec<u8> {
    match row {
        Some(row) => {
            let values = properties.iter();
            values
                .flat_map(|(values, size)| row_of(values, row, *size))
                .copied()
                .collect()
        }
        None => std::iter::repeat_n(f32::NAN.to_le_bytes(), width)
            .flatten()
            .collect(),
    }
}

fn row_of(values: &[u8], row: usize, size: usize) -> &[u8] {
    let start = row.saturating_mul(size);
    values
        .get(start..start.saturating_add(size))
        .unwrap_or_default()
}

impl ResultWriter for TrkWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        let bytes = self
            .put(batch)
            .map_err(|fault| fault.of(self.sink.path()))?;
        self.sink.write(&bytes)
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        self.left_out.extend(rounded_left_out(self.rounded));
        self.left_out.extend(self.objects.left_out("trk"));
        self.left_out.extend(groups_left_out(tables, "trk"));
        let shift = self.enclose().map_err(|fault| fault.of(self.sink.path()))?;
        if self.streamlines == 0 {
            // nibabel cannot read a file with names of values and no streamline.
            self.header.set_scalars(&[]);
            self.header.set_properties(&[]);
        }
        let header = self
            .header
            .with_count(self.streamlines)
            .map_err(|fault| fault.of(self.sink.path()))?;
        let words = FileWords {
            point: self.header.scalars.saturating_add(3),
            properties: self.header.properties,
            in_points: 0,
            in_properties: 0,
        };
        let z = self.layout.and_then(|layout| layout.coordinates.note());
        let path = self.sink.publish(|file| {
            if shift.iter().any(|distance| *distance != 0.0) {
                words.shift(file, shift)?;
            }
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header)
        })?;
        Ok(WrittenResult {
            files: vec![path],
            left_out: self.left_out,
            notes: self.grid.note().into_iter().chain(z).collect(),
        })
    }
}
