//! Writes points in batches.

use std::{
    collections::BTreeMap,
    fmt,
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use laz::{LazVlrBuilder, ParLasZipCompressor};
use serde_json::Value;
use zvf::{Column, ColumnValues, QueryResult, Scope, numeric::Kind};

use super::{
    ORDER, crs,
    dimension::{self, DESCRIPTOR, Dimension, EXTRA_BYTES, SIZES, SPECIFICATION},
    header::{HAS_WAVEFORMS, LasHeader},
    numbers::{exact, frame, wide_colours},
    order::OrderedRecords,
    record::VariableRecord,
};
use crate::{
    FileError, FileFault, GroupTables, ResultWriter, StoreDescription, WrittenResult,
    input::length_of,
    library,
    names::original,
    values::{AxisOrder, numbers, whole},
    writer::{OutputSink, groups_left_out, left_out},
};

/// Size of the header of version 1.4.
const HEADER: usize = 375;
/// Bit of the global encoding: the coordinate reference system is WKT.
const IS_WKT: u8 = 16;

/// A LAS or LAZ file that is written in batches.
#[derive(Debug)]
pub struct LasWriter {
    path: PathBuf,
    is_compressed: bool,
    kept: Option<LasHeader>,
    names: Option<Value>,
    /// Record of a reference system that is not in the kept records.
    wkt: Option<VariableRecord>,
    /// The attribute by which points are sorted.
    order: Option<String>,
    file: Option<OpenFile>,
    left_out: Vec<String>,
    /// Number of coordinates that are not multiples of the scale.
    rounded: u64,
    /// Number of values of each scaled attribute that are not multiples of its scale.
    rounded_values: BTreeMap<String, u64>,
    points: u64,
    by_return: [u64; 15],
    least: [f64; 3],
    most: [f64; 3],
}

/// The file, once the first batch has decided about its columns.
#[derive(Debug)]
struct OpenFile {
    sink: PointSink,
    /// Points that are sorted before they are written.
    ordered: Option<OrderedRecords>,
    layout: Layout,
}

/// Layout of the records.
#[derive(Clone, Debug)]
struct Layout {
    /// Public header, whose counts are not yet known.
    header: Vec<u8>,
    minor: u8,
    format: u8,
    record: usize,
    scale: [f64; 3],
    offset: [f64; 3],
    /// Values and the columns from which they come.
    columns: Vec<(String, Dimension)>,
    /// The attribute by which the points are sorted.
    order: Option<String>,
    vlrs: Vec<VariableRecord>,
}

/// Target of records.
enum PointSink {
    Plain(OutputSink),
    Compressed(Box<ParLasZipCompressor<OutputSink>>),
}

impl PointSink {
    fn write(&mut self, records: &[u8]) -> Result<(), FileFault> {
        match self {
            Self::Plain(sink) => Write::write_all(sink, records)?,
            Self::Compressed(sink) => sink.compress_many(records)?,
        }
        Ok(())
    }
}

/// Returns the numbers of points in their file; `None` for other values.
fn row_numbers(column: &Column) -> Option<Vec<u64>> {
    let ColumnValues::Numeric(rows) = &column.values else {
        return None;
    };
    if rows.width != 1 || column.nulls.is_some() {
        return None;
    }
    match rows.kind {
        Kind::UInt32 => Some(rows.to_vec::<u32>()?.into_iter().map(u64::from).collect()),
        Kind::UInt64 => rows.to_vec::<u64>(),
        _ => None,
    }
}

impl fmt::Debug for PointSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Compressed(_) => "Compressed",
        })
    }
}

/// Returns whether a batch has an attribute of numbers with `width` values for each point.
fn has(batch: &QueryResult, name: &str, width: u32) -> bool {
    batch.vertex.iter().any(|column| {
        let values = &column.values;
        column.name == name
            && matches!(values, ColumnValues::Numeric(numbers) if numbers.width == width)
    })
}

impl LasWriter {
    /// Creates a writer. The file is created with the first batch.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the kept header is damaged.
    pub fn create(
        path: &Path,
        description: &StoreDescription,
        is_compressed: bool,
    ) -> Result<Self, FileError> {
        let kept = LasHeader::of_result(description).map_err(|fault| fault.of(path))?;
        let names = description.headers.get("las");
        let order = names.and_then(|kept| kept.get(ORDER));
        let mut writer = Self {
            path: path.to_path_buf(),
            is_compressed,
            kept,
            names: names.and_then(|kept| kept.get("names")).cloned(),
            wkt: None,
            order: order.and_then(Value::as_str).map(str::to_owned),
            file: None,
            left_out: Vec::new(),
            rounded: 0,
            rounded_values: BTreeMap::new(),
            points: 0,
            by_return: [0; 15],
            least: [f64::INFINITY; 3],
            most: [f64::NEG_INFINITY; 3],
        };
        if let Some(crs) = &description.crs {
            writer.use_crs(crs);
        }
        Ok(writer)
    }

    /// Replaces the reference system of the kept records if the store has another one.
    fn use_crs(&mut self, crs: &Value) {
        if let Some(kept) = &mut self.kept {
            let before = crs::of_records(&kept.vlrs).or_else(|| crs::of_records(&kept.evlrs));
            if before.is_some_and(|before| crs::are_same(&before, crs)) {
                return;
            }
            for records in [&mut kept.vlrs, &mut kept.evlrs] {
                records.retain(|record| record.user != crs::PROJECTION);
            }
            if let Some(encoding) = kept.bytes.get_mut(6) {
                // Point formats from 6 on have WKT or no reference system.
                *encoding = match kept.format {
                    0..6 => *encoding & !IS_WKT,
                    _ => *encoding | IS_WKT,
                };
            }
        }
        let wkt = crs.get("wkt").and_then(Value::as_str);
        let record = wkt.map(|wkt| {
            let text = [wkt.as_bytes(), &[0]].concat();
            VariableRecord::new(crs::PROJECTION, crs::WKT, "WKT", &text)
        });
        let reason = match record {
            Some(Some(record)) => {
                self.wkt = Some(record);
                return;
            }
            Some(None) => "too long",
            None => "las holds WKT",
        };
        let line = format!("the coordinate reference system: {reason}");
        self.left_out.push(line);
    }

    /// Chooses the point format: that of the file, as far as the batch has its values.
    fn format_of(&self, batch: &QueryResult) -> u8 {
        let (has_time, has_infrared) = (has(batch, "gps_time", 1), has(batch, "nir", 1));
        let has_colour = has(batch, "rgb", 3);
        let kept = self.kept.as_ref().map_or(6, |kept| kept.format);
        let is_old = kept < 6 && !has_infrared;
        let dimensions = dimension::of_format(kept);
        let mut waves = dimensions.iter().filter(|it| it.name.starts_with("wave_"));
        let has_waves =
            dimension::has_waves(kept) && waves.all(|it| has(batch, &it.name, it.width));
        match (is_old, has_time, has_colour) {
            (true, true, has_colour) if has_waves => 4 | u8::from(has_colour),
            (true, has_time, has_colour) => u8::from(has_time) | u8::from(has_colour) << 1,
            (false, ..) if has_waves && (has_colour || has_infrared) => 10,
            (false, ..) if has_waves => 9,
            (false, ..) if has_infrared => 8,
            (false, _, true) => 7,
            (false, _, false) => 6,
        }
    }

    /// Chooses format, scale and columns.
    fn plan(&mut self, batch: &QueryResult, rows: &[[f64; 3]]) -> Layout {
        let format = self.format_of(batch);
        let is_old = format < 6;
        let kept = self.kept.as_ref();
        let kept_minor = kept.map_or(4, |kept| kept.minor);
        let minor = match (is_old, format) {
            // Earlier versions have no WKT.
            _ if self.wkt.is_some() => 4,
            (true, 4 | 5) => kept_minor.max(3),
            (true, _) => kept_minor.max(2),
            (false, _) => 4,
        };
        let mut header = kept.map_or_else(Vec::new, |kept| kept.bytes.clone());
        header.resize(header_size(minor), 0);
        if kept.is_none() {
            put(&mut header, 0, b"LASF");
            put(&mut header, 26, b"zvf");
            put(&mut header, 58, b"zvf");
        }
        let (scale, offset) = match kept {
            Some(kept) => (kept.scale, kept.offset),
            None => frame(rows),
        };
        let mut columns = Vec::new();
        for standard in dimension::of_format(format) {
            if has(batch, &standard.name, standard.width) {
                columns.push((standard.name.clone(), standard));
            }
        }
        let mut record = SIZES.get(usize::from(format)).copied().unwrap_or(20);
        let mut vlrs = kept.map_or_else(Vec::new, |kept| kept.vlrs.clone());
        let is_extra = dimension::is_extra;
        let described: Vec<[u8; DESCRIPTOR]> = vlrs
            .iter()
            .filter(|vlr| is_extra(vlr))
            .flat_map(|vlr| vlr.data().as_chunks::<DESCRIPTOR>().0.to_vec())
            .collect();
        let order = self.order_of(batch);
        let is_standard = |name: &str| {
            columns.iter().any(|(known, _)| known == name) || order.as_deref() == Some(name)
        };
        let mut others: Vec<&Column> = batch
            .vertex
            .iter()
            .filter(|column| !is_standard(&column.name))
            .collect();
        // Extra bytes of the file keep their order, and new ones follow.
        others.sort_by_key(|column| {
            let name = original(self.names.as_ref(), &column.name);
            let place = described
                .iter()
                .position(|kept| dimension::name_of(kept) == name);
            place.unwrap_or(usize::MAX)
        });
        let mut extra = Vec::new();
        for column in others {
            match self.extra(column, &described, record) {
                Ok((dimension, descriptor)) => {
                    record = record.saturating_add(dimension.size());
                    extra.extend(descriptor);
                    columns.push((column.name.clone(), dimension));
                }
                Err(reason) => {
                    let line = format!("vertex.{}: {reason}", column.name);
                    self.left_out.push(line);
                }
            }
        }
        if extra != described.as_flattened() {
            vlrs.retain(|vlr| !is_extra(vlr));
            if !extra.is_empty() {
                vlrs.extend(VariableRecord::new(
                    SPECIFICATION,
                    EXTRA_BYTES,
                    "extra bytes",
                    &extra,
                ));
            }
        }
        let is_raised = !is_old && kept.is_none_or(|kept| kept.format < 6);
        let is_wkt = self.wkt.is_some() || is_raised && !crs::has_keys(&vlrs);
        if let Some(encoding) = header.get_mut(6).filter(|_| is_wkt) {
            *encoding |= IS_WKT;
        }
        vlrs.extend(self.wkt.clone());
        self.list_left_out(batch);
        Layout {
            header,
            minor,
            format,
            record,
            scale,
            offset,
            columns,
            order,
            vlrs,
        }
    }

    /// Returns the attribute by which points are sorted, if the batch has it.
    fn order_of(&self, batch: &QueryResult) -> Option<String> {
        let order = self.order.as_ref()?;
        let mut columns = batch.vertex.iter();
        let rows = columns.find(|column| column.name == *order)?;
        row_numbers(rows).map(|_| order.clone())
    }

    fn list_left_out(&mut self, batch: &QueryResult) {
        let holds = |scope: Scope, _: &Column| scope == Scope::Vertex;
        self.left_out.extend(left_out(batch, "las", holds));
        if batch.object_ids.is_some() {
            self.left_out
                .push("the objects of the points: not supported by las".to_owned());
        }
    }

    /// Returns the place and the description of a column that is not a value of the point format.
    fn extra(
        &self,
        column: &Column,
        described: &[[u8; DESCRIPTOR]],
        at: usize,
    ) -> Result<(Dimension, [u8; DESCRIPTOR]), &'static str> {
        let values = numbers(column).ok_or("las does not support text")?;
        let name = original(self.names.as_ref(), &column.name);
        let kind = match values.kind {
            Kind::Bool => Kind::UInt8,
            Kind::Float16 => Kind::Float32,
            kind => kind,
        };
        let scaled = described
            .iter()
            .filter(|kept| kind == Kind::Float64 && dimension::name_of(*kept) == name)
            .find_map(|kept| Some((dimension::described_at(kept, at)?, *kept)))
            .filter(|(it, _)| it.scaling.is_some() && it.width == values.width);
        if let Some(scaled) = scaled.filter(|(it, _)| is_within(at, it)) {
            return Ok(scaled);
        }
        let made = dimension::descriptor(name, kind, values.width)
            .ok_or("las holds names of 32 bytes, and up to 3 real numbers a point")?;
        // The kept description has a scale, an offset and a text besides.
        let is_same = |kept: &&[u8; DESCRIPTOR]| kept.get(2..36) == made.get(2..36);
        let is_typed = |kept: &&[u8; DESCRIPTOR]| {
            kept.get(2) == made.get(2) && kept.get(4..36) == made.get(4..36)
        };
        let is_raw = made.get(2) == Some(&0);
        let kept = if is_raw {
            described.iter().find(is_same)
        } else {
            described.iter().find(is_typed)
        };
        let dimension = dimension::of_descriptor(&column.name, kind, values.width, at);
        if !is_within(at, &dimension) {
            return Err("las holds records of up to 65535 bytes");
        }
        Ok((dimension, kept.copied().unwrap_or(made)))
    }

    /// Creates the file and writes everything before the points.
    fn start(&self, layout: Layout) -> Result<OpenFile, FileError> {
        let in_file = |fault: FileFault| fault.of(&self.path);
        let mut layout = layout;
        let size = SIZES.get(usize::from(layout.format)).copied().unwrap_or(0);
        let extra = u16::try_from(layout.record.saturating_sub(size)).unwrap_or(u16::MAX);
        let compression = if self.is_compressed {
            let builder = LazVlrBuilder::default().with_point_format(layout.format, extra);
            let vlr = builder.map_err(library::laz).map_err(in_file)?.build();
            let mut data = Vec::new();
            vlr.write_to(&mut data)
                .map_err(|source| in_file(source.into()))?;
            let record = VariableRecord::new("laszip encoded", 22204, "zvf", &data);
            layout.vlrs.extend(record);
            Some(vlr)
        } else {
            None
        };
        layout.vlrs.retain({
            let is_compressed = self.is_compressed;
            move |vlr| is_compressed || vlr.user != "laszip encoded"
        });
        let mut bytes = layout.header.clone();
        for vlr in &layout.vlrs {
            bytes.extend_from_slice(&vlr.bytes);
        }
        let start = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let count = u32::try_from(layout.vlrs.len()).unwrap_or(u32::MAX);
        let header = &mut layout.header;
        let size = u16::try_from(header.len()).unwrap_or(0);
        put(header, 24, &[1, layout.minor]);
        put(header, 94, &size.to_le_bytes());
        put(header, 96, &start.to_le_bytes());
        put(header, 100, &count.to_le_bytes());
        put(
            header,
            104,
            &[layout.format | u8::from(self.is_compressed) << 7],
        );
        let record = u16::try_from(layout.record).unwrap_or(u16::MAX);
        put(header, 105, &record.to_le_bytes());
        for (axis, (scale, offset)) in layout.scale.iter().zip(&layout.offset).enumerate() {
            let at = axis.saturating_mul(8);
            put(header, at.saturating_add(131), &scale.to_le_bytes());
            put(header, at.saturating_add(155), &offset.to_le_bytes());
        }
        let mut sink = OutputSink::create(&self.path)?;
        OutputSink::write(&mut sink, &bytes)?;
        let sink = match compression {
            Some(vlr) => {
                let compressor = ParLasZipCompressor::new(sink, vlr)
                    .map_err(library::laz)
                    .map_err(in_file)?;
                PointSink::Compressed(Box::new(compressor))
            }
            None => PointSink::Plain(sink),
        };
        let ordered = match layout.order {
            None => None,
            Some(_) => {
                let folder = self.path.parent();
                let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
                let created =
                    OrderedRecords::create(folder.unwrap_or(Path::new(".")), layout.record);
                Some(created.map_err(|source| in_file(source.into()))?)
            }
        };
        Ok(OpenFile {
            sink,
            ordered,
            layout,
        })
    }

    /// Returns the records of a batch.
    fn records(
        &mut self,
        batch: &QueryResult,
        rows: &[[f64; 3]],
        layout: &Layout,
    ) -> Result<Vec<u8>, FileFault> {
        let mut records = vec![0; rows.len().saturating_mul(layout.record)];
        for (row, record) in rows
            .iter()
            .zip(records.chunks_exact_mut(layout.record.max(1)))
        {
            let (words, _) = record.as_chunks_mut::<4>();
            let axes = layout.scale.iter().zip(&layout.offset);
            let bounds = self.least.iter_mut().zip(&mut self.most);
            for (((word, value), (scale, offset)), (least, most)) in
                words.iter_mut().zip(row).zip(axes).zip(bounds)
            {
                let whole = whole((value - offset) / scale);
                let Some(whole) = whole else {
                    let expected = "it is beyond 32 bits at the scale of the file; write npz";
                    return Err(FileFault::field("a coordinate", value, expected));
                };
                let written = f64::from(whole) * scale + offset;
                // The last bits of a product are no rounding.
                let is_rounded = (written - value).abs() > scale.abs() / 1000.0;
                self.rounded = self.rounded.saturating_add(u64::from(is_rounded));
                *least = least.min(written);
                *most = most.max(written);
                *word = whole.to_le_bytes();
            }
        }
        for (name, dimension) in &layout.columns {
            let column = batch.vertex.iter().find(|column| column.name == *name);
            let values = column
                .and_then(numbers)
                .ok_or(FileFault::Broken("a column is missing in a batch"))?;
            if values.width != dimension.width {
                return Err(FileFault::Broken("a column changes its width"));
            }
            let is_colour = name == "rgb" && dimension.kind == Kind::UInt16;
            let bytes = match (values.kind, &dimension.scaling) {
                (Kind::UInt8, None) if is_colour => wide_colours(&values.bytes).into(),
                (_, None) => exact(name, &values, dimension.kind)?,
                (_, Some(scaling)) => {
                    let (bytes, rounded) = scaling.restore(name, &values, dimension.kind)?;
                    let of_name = self.rounded_values.entry(name.clone()).or_default();
                    *of_name = of_name.saturating_add(rounded);
                    bytes.into()
                }
            };
            if let Some(value) = dimension.write(&bytes, &mut records, layout.record) {
                let expected = "the point format has fewer bits for it; leave the attribute out with --select, or write ply or geoparquet";
                let found = format!("{value} in {name}");
                return Err(FileFault::field("a value", found, expected));
            }
            if name == "return_number" {
                for value in bytes.iter() {
                    let place = usize::from(*value).checked_sub(1);
                    if let Some(count) = place.and_then(|place| self.by_return.get_mut(place)) {
                        *count = count.saturating_add(1);
                    }
                }
            }
        }
        self.points = self
            .points
            .saturating_add(u64::try_from(rows.len()).unwrap_or(0));
        Ok(records)
    }

    /// Puts counts and bounds into the header.
    fn complete(&self, header: &mut [u8], layout: &Layout) -> Result<(), FileFault> {
        let old = u32::try_from(self.points).ok();
        if old.is_none() && layout.minor < 4 {
            return Err(FileFault::Result {
                format: "las before version 1.4",
                holds: "up to 4294967295 points",
                remedy: "write parts of the store",
            });
        }
        let old = old.filter(|_| layout.format < 6);
        put(header, 107, &old.unwrap_or(0).to_le_bytes());
        for (place, count) in self.by_return.iter().enumerate().take(5) {
            let count = u32::try_from(*count).ok().filter(|_| old.is_some());
            let at = place.saturating_mul(4).saturating_add(111);
            put(header, at, &count.unwrap_or(0).to_le_bytes());
        }
        for (axis, (least, most)) in self.least.iter().zip(&self.most).enumerate() {
            let at = axis.saturating_mul(16).saturating_add(179);
            let bound = |value: &f64| if value.is_finite() { *value } else { 0.0 };
            put(header, at, &bound(most).to_le_bytes());
            put(header, at.saturating_add(8), &bound(least).to_le_bytes());
        }
        if layout.minor == 3 {
            put(header, 227, &[0; 8]);
        }
        if layout.minor == 4 {
            put(header, 227, &[0; 8]);
            put(header, 235, &[0; 12]);
            put(header, 247, &self.points.to_le_bytes());
            for (place, count) in self.by_return.iter().enumerate() {
                let at = place.saturating_mul(8).saturating_add(255);
                put(header, at, &count.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Returns whether a record may have a value at an offset.
fn is_within(at: usize, dimension: &Dimension) -> bool {
    u16::try_from(at.saturating_add(dimension.size())).is_ok()
}

/// Returns the size of the header of a version, of 1.2 and earlier ones without unknown fields.
fn header_size(minor: u8) -> usize {
    match minor {
        4 => HEADER,
        3 => 235,
        _ => 227,
    }
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    let target = bytes.get_mut(at..at.saturating_add(field.len()));
    if let Some(target) = target {
        target.copy_from_slice(field);
    }
}

impl ResultWriter for LasWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        let path = self.path.clone();
        let in_file = |fault: FileFault| fault.of(&path);
        let remedy = match (&batch.parts, &batch.links) {
            (None, None) => None,
            (Some(_), _) => Some("the result has paths; write trk, tck, trx or csv"),
            (_, Some(links)) if links.width == 2 => {
                Some("the result has edges; write ply, obj or csv, or swc for trees")
            }
            _ => Some("the result has faces; write ply, obj, stl or gii"),
        };
        if let Some(remedy) = remedy {
            return Err(in_file(FileFault::Result {
                format: "las",
                holds: "points",
                remedy,
            }));
        }
        let coordinates = AxisOrder::of(batch, "las").map_err(in_file)?;
        let rows = coordinates.rows(&batch.positions).map_err(in_file)?;
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let layout = self.plan(batch, &rows);
                self.start(layout)?
            }
        };
        let records = self.records(batch, &rows, &file.layout).map_err(in_file)?;
        match (&mut file.ordered, &file.layout.order) {
            (Some(ordered), Some(order)) => {
                let rows = batch
                    .vertex
                    .iter()
                    .find(|column| column.name == *order)
                    .and_then(row_numbers);
                let missing = FileFault::Broken("a column is missing in a batch");
                let rows = rows.ok_or_else(|| in_file(missing))?;
                let pushed = ordered.push(&rows, &records);
                pushed.map_err(|source| in_file(source.into()))?;
            }
            _ => file.sink.write(&records).map_err(in_file)?,
        }
        self.file = Some(file);
        Ok(())
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let path = self.path.clone();
        let in_file = |fault: FileFault| fault.of(&path);
        self.left_out.extend(groups_left_out(tables, "las"));
        let Some(file) = self.file.take() else {
            return Err(in_file(FileFault::Empty));
        };
        let OpenFile {
            mut sink,
            ordered,
            layout,
        } = file;
        if let Some(ordered) = ordered {
            let merged = ordered.merge(|records| sink.write(records));
            merged.map_err(in_file)?;
        }
        let mut sink = match sink {
            PointSink::Plain(sink) => sink,
            PointSink::Compressed(mut sink) => {
                sink.done()
                    .map_err(|source| in_file(library::laz(source)))?;
                sink.into_inner()
            }
        };
        let mut header = layout.header.clone();
        self.complete(&mut header, &layout).map_err(in_file)?;
        let kept = self.kept.take();
        if kept.as_ref().is_some_and(|kept| !kept.keeps_waveforms())
            && let Some(encoding) = header.get_mut(6)
        {
            *encoding &= !HAS_WAVEFORMS;
        }
        let extended = kept.map_or_else(Vec::new, |kept| kept.evlrs);
        if !extended.is_empty() && layout.minor == 4 {
            let end = sink
                .seek(SeekFrom::End(0))
                .map_err(|source| in_file(source.into()))?;
            let count = u32::try_from(extended.len()).unwrap_or(u32::MAX);
            put(&mut header, 235, &end.to_le_bytes());
            put(&mut header, 243, &count.to_le_bytes());
            let mut at = end;
            for record in &extended {
                if record.is_waveforms() {
                    put(&mut header, 227, &at.to_le_bytes());
                }
                sink.write(&record.bytes)?;
                at = at.saturating_add(length_of(&record.bytes));
            }
        }
        let path = sink.publish(|file| {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header)
        })?;
        if self.rounded > 0 {
            let (rounded, [x, y, z]) = (self.rounded, layout.scale);
            let line = format!("{rounded} coordinates are rounded to multiples of {x}, {y}, {z}");
            self.left_out.push(line);
        }
        for (name, rounded) in self
            .rounded_values
            .iter()
            .filter(|(_, rounded)| **rounded > 0)
        {
            let line =
                format!("{rounded} values of vertex.{name} are rounded to multiples of its scale");
            self.left_out.push(line);
        }
        Ok(WrittenResult {
            files: vec![path],
            left_out: self.left_out,
            ..WrittenResult::default()
        })
    }
}
