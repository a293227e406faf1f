//! Writes a surface with the values of its vertices.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::ZlibEncoder};
use quick_xml::escape::escape;
use serde_json::{Value, json};
use zvf::{Column, NumericColumn, QueryResult, numeric::Kind};

use zvf_tables::values_beside;

use crate::{
    FileError, FileFault, FileHeader, GroupTables, ResultWriter, StoreDescription, WrittenResult,
    collected::WholeMesh,
    names::original,
    values::{narrow, narrow_coordinate, numbers, rounded_coordinates, rounded_left_out, to_f64},
    writer::{OutputSink, groups_left_out},
};
use zvf_model::base64;

/// A GIFTI file, written at the end.
#[derive(Debug)]
pub struct GiftiWriter {
    path: PathBuf,
    kept: FileHeader,
    whole: WholeMesh,
    vertex: Vec<Column>,
    source_links: Option<Vec<f64>>,
    left_out: Vec<String>,
}

impl GiftiWriter {
    /// Creates a writer.
    pub(crate) fn new(path: &Path, description: &StoreDescription) -> Self {
        let kept = description
            .headers
            .get("gifti")
            .or_else(|| description.headers.get("freesurfer"));
        Self {
            path: path.to_path_buf(),
            kept: kept.cloned().unwrap_or_default(),
            whole: WholeMesh::default(),
            vertex: Vec::new(),
            source_links: None,
            left_out: Vec::new(),
        }
    }

    fn add(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        let is_mesh = batch.links.as_ref().is_some_and(|links| links.width >= 3);
        if !is_mesh {
            return Err(FileFault::Result {
                format: "gii",
                holds: "meshes",
                remedy: "write ply or glb",
            });
        }
        let is_first = self.whole.positions.is_empty();
        self.whole.add(batch, "gii")?;
        // A batch of links has no attributes of vertices.
        if !batch.positions.is_empty() && batch.vertex.len() < self.vertex.len() {
            return Err(FileFault::Broken("a column is missing in a batch"));
        }
        for (at, column) in batch.vertex.iter().enumerate() {
            match self.vertex.get_mut(at) {
                Some(whole) if whole.name == column.name => {
                    let appended = whole.append(column.clone());
                    appended.map_err(|_| FileFault::Broken("a column changes its type"))?;
                }
                _ if is_first => self.vertex.push(column.clone()),
                _ => return Err(FileFault::Broken("a column is missing in a batch")),
            }
        }
        let mut links = batch
            .link
            .iter()
            .filter(|column| column.name == "source_link");
        if let Some(column) = links.next().and_then(numbers) {
            let rows = to_f64(&column).unwrap_or_default();
            self.source_links.get_or_insert_default().extend(rows);
        }
        Ok(())
    }

    /// Returns the rows of the result in the order of the source, and the place of each row.
    fn order(&self) -> (Vec<usize>, Vec<usize>) {
        let count = self.whole.positions.len();
        let mut rows: Vec<usize> = (0..count).collect();
        let column = self
            .vertex
            .iter()
            .find(|column| column.name == "source_row");
        let sources = column.and_then(numbers).and_then(|column| to_f64(&column));
        if let Some(sources) = sources.filter(|sources| sources.len() == count) {
            // Rows without a source, which is NaN, follow.
            rows.sort_by(|one, two| match (sources.get(*one), sources.get(*two)) {
                (Some(one), Some(two)) => one.total_cmp(two),
                _ => std::cmp::Ordering::Equal,
            });
        }
        let mut places = vec![0; count];
        for (place, row) in rows.iter().enumerate() {
            if let Some(target) = places.get_mut(*row) {
                *target = place;
            }
        }
        (rows, places)
    }

    fn triangles(&self, places: &[usize]) -> Result<NumericColumn, FileFault> {
        let mut triangles = self.whole.triangles()?;
        let sources = self.source_links.as_ref();
        if let Some(sources) = sources.filter(|sources| sources.len() == triangles.len()) {
            let mut keyed: Vec<(f64, [usize; 3])> =
                sources.iter().copied().zip(triangles).collect();
            keyed.sort_by(|(one, _), (two, _)| one.total_cmp(two));
            triangles = keyed.into_iter().map(|(_, triangle)| triangle).collect();
        }
        let corner = |row: usize| {
            let place = places.get(row).copied().unwrap_or(usize::MAX);
            i32::try_from(place).map_err(|_| FileFault::Result {
                format: "gii",
                holds: "up to 2147483647 vertices",
                remedy: "write ply",
            })
        };
        let corners = triangles.into_iter().flatten().map(corner);
        let mut column = NumericColumn::new(Kind::Int32, 3);
        let corners: Result<Vec<i32>, FileFault> = corners.collect();
        column.bytes = corners?.into_iter().flat_map(i32::to_le_bytes).collect();
        Ok(column)
    }

    /// Returns the arrays of the attributes, in the order of the source. For files of their own, each array
    /// has one column: Connectome Workbench opens no file that also has others.
    fn arrays(
        &mut self,
        kept: &FileHeader,
        rows: &[usize],
        is_alone: bool,
    ) -> Result<Vec<ValueArray>, FileFault> {
        let mut columns = std::mem::take(&mut self.vertex);
        columns.retain(|column| column.name != "source_row");
        let entries = entries(kept);
        columns.sort_by_key(|column| {
            let entry = entries.get(column.name.as_str());
            entry.map_or(usize::MAX, |(place, _)| *place)
        });
        let mut arrays = Vec::new();
        for column in &columns {
            let Some(values) = self.converted(column) else {
                continue;
            };
            let values = values.take(rows.iter().copied()).ok_or(FileFault::Broken(
                "an attribute has fewer rows than vertices",
            ))?;
            let original = original(kept.get("names"), &column.name);
            let named = |name: &str| json!([["Name", name]]);
            let entry = entries.get(column.name.as_str()).map(|(_, entry)| *entry);
            let intent = entry.and_then(|entry| entry.get("intent")?.as_str());
            let unknown = if is_alone { "SHAPE" } else { "NONE" };
            let intent = intent.unwrap_or(unknown).to_owned();
            let metas = entry
                .and_then(|entry| entry.get("meta")?.as_array())
                .map(Vec::as_slice)
                .unwrap_or_default();
            let width = values.row_len();
            if intent == "TIME_SERIES" && metas.len() == width {
                arrays.extend(metas.iter().enumerate().map(|(at, meta)| ValueArray {
                    intent: intent.clone(),
                    meta: meta.clone(),
                    values: channel(&values, at),
                }));
            } else if is_alone && width > 1 {
                arrays.extend((0..width).map(|at| ValueArray {
                    intent: intent.clone(),
                    meta: named(&format!("{original}_{at}")),
                    values: channel(&values, at),
                }));
            } else {
                let meta = metas.first().cloned();
                arrays.push(ValueArray {
                    intent,
                    meta: meta.unwrap_or_else(|| named(original)),
                    values,
                });
            }
        }
        Ok(arrays)
    }

    /// Returns an attribute in a type of GIFTI.
    fn converted(&mut self, column: &Column) -> Option<NumericColumn> {
        let unsupported = || format!("vertex.{}: not supported by gii", column.name);
        let Some(values) = numbers(column) else {
            self.left_out.push(unsupported());
            return None;
        };
        if matches!(values.kind, Kind::UInt8 | Kind::Int32 | Kind::Float32) {
            return Some(values.into_owned());
        }
        let Some(floats) = to_f64(&values) else {
            self.left_out.push(unsupported());
            return None;
        };
        let holds = f64::from(i32::MIN)..=f64::from(i32::MAX);
        let is_held = || floats.iter().all(|value| holds.contains(value));
        let kind = match values.kind {
            Kind::Bool | Kind::Int8 | Kind::Int16 | Kind::UInt16 => Kind::Int32,
            Kind::UInt32 | Kind::Int64 | Kind::UInt64 if is_held() => Kind::Int32,
            _ => Kind::Float32,
        };
        let mut made = NumericColumn::new(kind, values.width);
        if kind == Kind::Int32 {
            #[expect(
                clippy::as_conversions,
                clippy::cast_possible_truncation,
                reason = "whole numbers that fit"
            )]
            let whole = |value: f64| (value as i32).to_le_bytes();
            made.bytes = floats.into_iter().flat_map(whole).collect();
            return Some(made);
        }
        let is_rounded = |value: &f64| (f64::from(narrow(*value)) - value).abs() > 0.0;
        if floats.iter().any(is_rounded) {
            let line = format!("vertex.{}: rounded to float32", column.name);
            self.left_out.push(line);
        }
        let single = |value: f64| narrow(value).to_le_bytes();
        made.bytes = floats.into_iter().flat_map(single).collect();
        Some(made)
    }
}

const FUNCTION: &str = "func";
const LABEL: &str = "label";
const SHAPE: &str = "shape";
/// Name of the metadata that name the part of the brain.
const STRUCTURE: &str = "AnatomicalStructurePrimary";

/// Values of vertices under one intent.
struct ValueArray {
    intent: String,
    meta: Value,
    values: NumericColumn,
}

impl ValueArray {
    /// Returns the part of the name of the file to which the values belong.
    fn part(&self) -> &'static str {
        match self.intent.as_str() {
            "TIME_SERIES" => FUNCTION,
            "LABEL" if self.values.kind == Kind::Int32 => LABEL,
            _ => SHAPE,
        }
    }
}

/// Returns what a header says about attributes, with their places in the file.
fn entries(kept: &FileHeader) -> HashMap<&str, (usize, &Value)> {
    let columns = kept
        .get("columns")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate();
    let mut entries = HashMap::new();
    for (place, entry) in columns {
        if let Some(name) = entry.get("attribute").and_then(Value::as_str) {
            entries.entry(name).or_insert((place, entry));
        }
    }
    entries
}

/// The text of a file.
#[derive(Debug, Default)]
struct Document {
    text: String,
    arrays: usize,
}

impl Document {
    /// Creates the document of a file with values, which names the structure that its surface does.
    fn of_values(part: &str, kept: &FileHeader) -> Self {
        let of_points = kept.get("points").and_then(|points| points.get("meta"));
        let mut pairs = [of_points, kept.get("meta")]
            .into_iter()
            .flatten()
            .filter_map(Value::as_array)
            .flatten();
        let structure = pairs.find(|pair| pair.get(0).is_some_and(|name| name == STRUCTURE));
        let mut document = Self::default();
        document.meta(structure.map(|pair| json!([pair])).as_ref());
        document.labels(kept.get("labels").filter(|_| part == LABEL));
        document
    }

    /// Writes the document to a file, which is then published.
    fn put(&self, path: &Path) -> Result<OutputSink, FileError> {
        let mut sink = OutputSink::create(path)?;
        let head = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE GIFTI SYSTEM \"http://www.nitrc.org/frs/download.php/115/gifti.dtd\">\n\
             <GIFTI Version=\"1.0\" NumberOfDataArrays=\"{}\">\n",
            self.arrays
        );
        sink.write(head.as_bytes())?;
        sink.write(self.text.as_bytes())?;
        sink.write(b"</GIFTI>\n")?;
        Ok(sink)
    }

    fn meta(&mut self, meta: Option<&Value>) {
        self.text += "<MetaData>";
        for pair in meta.and_then(Value::as_array).into_iter().flatten() {
            let text = |at: usize| pair.get(at).and_then(Value::as_str).unwrap_or_default();
            let (name, value) = (escape(text(0)), escape(text(1)));
            let _ = write!(
                self.text,
                "<MD><Name>{name}</Name><Value>{value}</Value></MD>"
            );
        }
        self.text += "</MetaData>\n";
    }

    fn labels(&mut self, labels: Option<&Value>) {
        self.text += "<LabelTable>";
        for label in labels.and_then(Value::as_array).into_iter().flatten() {
            let part = |at: usize| label.get(at).unwrap_or(&Value::Null);
            let _ = write!(self.text, "<Label Key=\"{}\"", part(0));
            for (at, channel) in ["Red", "Green", "Blue", "Alpha"].into_iter().enumerate() {
                if let Some(value) = part(at.saturating_add(2)).as_f64() {
                    // Annotations have channels of a byte.
                    let is_byte = part(at.saturating_add(2)).is_u64();
                    let value = if is_byte { value / 255.0 } else { value };
                    let _ = write!(self.text, " {channel}=\"{value}\"");
                }
            }
            let name = escape(part(1).as_str().unwrap_or_default());
            let _ = write!(self.text, ">{name}</Label>");
        }
        self.text += "</LabelTable>\n";
    }

    fn array(
        &mut self,
        intent: &str,
        meta: Option<&Value>,
        matrices: Option<&Value>,
        values: &NumericColumn,
    ) -> Result<(), FileFault> {
        self.arrays = self.arrays.saturating_add(1);
        let kind = match values.kind {
            Kind::UInt8 => "UINT8",
            Kind::Int32 => "INT32",
            _ => "FLOAT32",
        };
        let (rows, width) = (values.len(), values.width);
        let dimensions = match width {
            0 | 1 => format!("Dimensionality=\"1\" Dim0=\"{rows}\""),
            _ => format!("Dimensionality=\"2\" Dim0=\"{rows}\" Dim1=\"{width}\""),
        };
        let _ = writeln!(
            self.text,
            "<DataArray Intent=\"NIFTI_INTENT_{}\" DataType=\"NIFTI_TYPE_{kind}\" \
             ArrayIndexingOrder=\"RowMajorOrder\" {dimensions} Encoding=\"GZipBase64Binary\" \
             Endian=\"LittleEndian\" ExternalFileName=\"\" ExternalFileOffset=\"\">",
            escape(intent),
        );
        self.meta(meta);
        for matrix in matrices.and_then(Value::as_array).into_iter().flatten() {
            let text = |at: usize| matrix.get(at).and_then(Value::as_str).unwrap_or_default();
            // nibabel takes the shape of the matrix from the lines.
            let numbers: Vec<&str> = text(2).split(' ').collect();
            let lines: Vec<String> = numbers.chunks(4).map(|row| row.join(" ")).collect();
            let _ = writeln!(
                self.text,
                "<CoordinateSystemTransformMatrix><DataSpace>{}</DataSpace>\
                 <TransformedSpace>{}</TransformedSpace><MatrixData>{}</MatrixData>\
                 </CoordinateSystemTransformMatrix>",
                escape(text(0)),
                escape(text(1)),
                escape(lines.join("\n")),
            );
        }
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&values.bytes)?;
        self.text += "<Data>";
        self.text += &base64::encode(&packed.finish()?);
        self.text += "</Data>\n</DataArray>\n";
        Ok(())
    }
}

/// Returns one column of an attribute.
fn channel(values: &NumericColumn, at: usize) -> NumericColumn {
    let size = values.kind.size().max(1);
    let row = size.saturating_mul(values.row_len()).max(1);
    let start = at.saturating_mul(size);
    let rows = values.bytes.chunks_exact(row);
    let numbers = rows.filter_map(|row| row.get(start..start.saturating_add(size)));
    let mut column = NumericColumn::new(values.kind, 1);
    column.bytes = numbers.flatten().copied().collect();
    column
}

impl ResultWriter for GiftiWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        let added = self.add(batch);
        added.map_err(|fault| fault.of(&self.path))
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let path = self.path.clone();
        let in_file = |fault: FileFault| fault.of(&path);
        let (rows, places) = self.order();
        let points: Vec<f64> = rows
            .iter()
            .filter_map(|row| self.whole.positions.get(*row))
            .flatten()
            .copied()
            .collect();
        let mut positions = NumericColumn::new(Kind::Float32, 3);
        for value in &points {
            let near = narrow_coordinate(*value, "gii").map_err(in_file)?;
            positions.bytes.extend(near.to_le_bytes());
        }
        let rounded = rounded_left_out(rounded_coordinates(&points));
        self.left_out.extend(rounded);
        let triangles = self.triangles(&places).map_err(in_file)?;
        if positions.is_empty() || triangles.is_empty() {
            return Err(in_file(FileFault::Result {
                format: "gii",
                holds: "surfaces of at least one triangle",
                remedy: "select more, or write ply",
            }));
        }
        let kept = self.kept.clone();
        let mut surface = Document::default();
        surface.meta(kept.get("meta"));
        let is_alone = values_beside(&self.path, "shape").is_some();
        if !is_alone {
            surface.labels(kept.get("labels"));
        }
        let of = |name: &str, key: &str| kept.get(name).and_then(|it| it.get(key));
        for (name, intent, values) in [
            ("points", "POINTSET", &positions),
            ("triangles", "TRIANGLE", &triangles),
        ] {
            let written = surface.array(intent, of(name, "meta"), of(name, "matrices"), values);
            written.map_err(in_file)?;
        }
        let mut beside: BTreeMap<&str, Document> = BTreeMap::new();
        let arrays = self.arrays(&kept, &rows, is_alone).map_err(in_file)?;
        for array in arrays {
            let part = array.part();
            let document = if is_alone {
                beside
                    .entry(part)
                    .or_insert_with(|| Document::of_values(part, &kept))
            } else {
                &mut surface
            };
            let written = document.array(&array.intent, Some(&array.meta), None, &array.values);
            written.map_err(in_file)?;
        }
        let mut files = Vec::new();
        let sink = surface.put(&self.path)?;
        for (part, document) in beside {
            if let Some(path) = values_beside(&self.path, part) {
                files.push(document.put(&path)?.publish(|_| Ok(()))?);
            }
        }
        files.insert(0, sink.publish(|_| Ok(()))?);
        let whole = std::mem::take(&mut self.whole.left_out).into_iter();
        let is_lost =
            |line: &String| !line.starts_with("vertex.") && !line.starts_with("link.source_link:");
        self.left_out.extend(whole.filter(is_lost));
        self.left_out.extend(groups_left_out(tables, "gii"));
        Ok(WrittenResult {
            files,
            left_out: self.left_out,
            ..WrittenResult::default()
        })
    }
}
