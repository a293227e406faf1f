//! The XML of a file as data arrays.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use zvf::NumericColumn;

use super::array::{decode, rows};
use crate::{
    FileError, FileFault,
    input::length_of,
    xml::{XmlAttributes, XmlEvent, XmlReader},
};

/// Upper bound on nested elements. GIFTI has five levels.
const DEPTH: usize = 12;
/// Upper bound on the size of metadata and labels.
const METADATA: usize = 1 << 20;

/// Pairs of a name and a value, in the order of the file.
pub(super) type MetaData = Vec<[String; 2]>;

/// A file.
#[derive(Debug, Default)]
pub(super) struct GiftiFile {
    pub(super) meta: MetaData,
    /// Labels: key, name, red, green, blue and alpha.
    pub(super) labels: Vec<Value>,
    pub(super) arrays: Vec<DataArray>,
}

/// An array with what describes it.
#[derive(Debug)]
pub(super) struct DataArray {
    /// The intent without `NIFTI_INTENT_`.
    pub(super) intent: String,
    pub(super) meta: MetaData,
    /// Matrices: data space, transformed space and 16 numbers as text.
    pub(super) matrices: Vec<[String; 3]>,
    /// Numbers, one row for each index of the first dimension.
    pub(super) values: NumericColumn,
}

impl DataArray {
    /// Returns a value of the metadata.
    pub(super) fn named(&self, name: &str) -> Option<&str> {
        let found = self.meta.iter().find(|[key, _]| key == name);
        found.map(|[_, value]| value.as_str())
    }
}

/// Reads a file.
pub(super) fn read(path: &Path, limit: u64) -> Result<GiftiFile, FileError> {
    let mut reader = XmlReader::open(path, limit, DEPTH)?;
    let mut parser = Parser::new(path, limit);
    let mut is_gifti = false;
    while let Some(event) = reader.next()? {
        let done = match event {
            XmlEvent::Start { name, attributes } => {
                is_gifti |= name == "GIFTI";
                parser.start(&name, attributes);
                Ok(())
            }
            XmlEvent::End { name, text } => parser.end(&name, &text, reader.open_elements()),
        };
        done.map_err(|fault| reader.error(fault))?;
    }
    let done = parser.finish(is_gifti);
    done.map_err(|fault| reader.error(fault))?;
    Ok(parser.file)
}

/// The parsed part of a file.
struct Parser<'a> {
    path: &'a Path,
    /// Upper bound on the bytes of all arrays.
    limit: u64,
    unpacked: u64,
    file: GiftiFile,
    attributes: XmlAttributes,
    declared: Option<u64>,
    /// Attributes of the current array.
    array: XmlAttributes,
    values: Option<NumericColumn>,
    array_meta: MetaData,
    matrices: Vec<[String; 3]>,
    matrix: [String; 3],
    name: String,
    metadata: usize,
    /// Rows of the first points, and whether there are triangles.
    vertices: Option<u64>,
    has_triangles: bool,
}

impl<'a> Parser<'a> {
    fn new(path: &'a Path, limit: u64) -> Self {
        Self {
            path,
            limit,
            unpacked: 0,
            file: GiftiFile::default(),
            attributes: BTreeMap::new(),
            declared: None,
            array: BTreeMap::new(),
            values: None,
            array_meta: Vec::new(),
            matrices: Vec::new(),
            matrix: Default::default(),
            name: String::new(),
            metadata: 0,
            vertices: None,
            has_triangles: false,
        }
    }

    fn finish(&self, is_gifti: bool) -> Result<(), FileFault> {
        if !is_gifti {
            let expected = "a GIFTI file is one element GIFTI; it is cut off or damaged";
            return Err(FileFault::field("the element", "missing", expected));
        }
        let found = u64::try_from(self.file.arrays.len()).unwrap_or(u64::MAX);
        if let Some(expected) = self.declared.filter(|declared| *declared != found) {
            let what = "data arrays";
            return Err(FileFault::Count {
                what,
                found,
                expected,
            });
        }
        Ok(())
    }

    fn start(&mut self, name: &str, attributes: XmlAttributes) {
        match name {
            "GIFTI" => {
                let declared = attributes.get("NumberOfDataArrays");
                self.declared = declared.and_then(|count| count.trim().parse().ok());
            }
            "DataArray" => {
                self.array.clone_from(&attributes);
                self.values = None;
                self.array_meta.clear();
                self.matrices.clear();
            }
            "CoordinateSystemTransformMatrix" => self.matrix = Default::default(),
            _ => {}
        }
        self.attributes = attributes;
    }

    /// Ends an element, inside the elements of `open`.
    fn end(&mut self, name: &str, text: &[u8], open: &[String]) -> Result<(), FileFault> {
        if name == "Data" {
            self.values = Some(self.decode(text)?);
            return Ok(());
        }
        if name != "DataArray" {
            self.metadata = self.metadata.saturating_add(text.len());
            if self.metadata > METADATA {
                let reason = "metadata and labels are larger than 1 MiB";
                return Err(FileFault::Unsupported(reason));
            }
        }
        let text = String::from_utf8_lossy(text).into_owned();
        match name {
            "Name" => text.trim().clone_into(&mut self.name),
            "Value" => {
                let pair = [std::mem::take(&mut self.name), text];
                let is_inside = open.iter().any(|name| name == "DataArray");
                if is_inside {
                    self.array_meta.push(pair);
                } else {
                    self.file.meta.push(pair);
                }
            }
            "Label" => self.label(&text)?,
            "DataSpace" => text.trim().clone_into(&mut self.matrix[0]),
            "TransformedSpace" => text.trim().clone_into(&mut self.matrix[1]),
            "MatrixData" => {
                self.matrix[2] = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            "CoordinateSystemTransformMatrix" => {
                self.matrices.push(std::mem::take(&mut self.matrix));
            }
            "DataArray" => {
                let missing = FileFault::Unsupported("a data array has no element Data");
                let values = self.values.take().ok_or(missing)?;
                let intent = self.intent().to_owned();
                if intent == "POINTSET" {
                    let rows = u64::try_from(values.len()).unwrap_or(u64::MAX);
                    self.vertices.get_or_insert(rows);
                }
                self.has_triangles |= intent == "TRIANGLE";
                self.file.arrays.push(DataArray {
                    intent,
                    meta: std::mem::take(&mut self.array_meta),
                    matrices: std::mem::take(&mut self.matrices),
                    values,
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the intent of the current array without `NIFTI_INTENT_`.
    fn intent(&self) -> &str {
        let intent = self.array.get("Intent").map_or("NONE", String::as_str);
        intent.strip_prefix("NIFTI_INTENT_").unwrap_or(intent)
    }

    /// Decodes the current array, if the rest of the limit holds it. Values of vertices that follow the
    /// surface must have a row for each point.
    fn decode(&mut self, text: &[u8]) -> Result<NumericColumn, FileFault> {
        let is_surface = matches!(self.intent(), "POINTSET" | "TRIANGLE");
        let vertices = self.vertices.filter(|_| self.has_triangles && !is_surface);
        if let Some(vertices) = vertices {
            let found = rows(&self.array)?;
            if found != vertices {
                return Err(FileFault::OtherSurface { found, vertices });
            }
        }
        let limit = self.limit;
        let left = limit.saturating_sub(self.unpacked);
        let values = decode(&self.array, text, self.path, left).map_err(|fault| match fault {
            FileFault::Unpacked { .. } => FileFault::Unpacked { limit },
            fault => fault,
        })?;
        self.unpacked = self.unpacked.saturating_add(length_of(&values.bytes));
        Ok(values)
    }

    fn label(&mut self, name: &str) -> Result<(), FileFault> {
        // Old files say `Index` for `Key`.
        let key = self
            .attributes
            .get("Key")
            .or_else(|| self.attributes.get("Index"));
        let key = key.map_or("", |key| key.trim());
        let Ok(key) = key.parse::<i64>() else {
            return Err(FileFault::field("a key", key, "a label has an integer key"));
        };
        let channel = |name: &str| {
            let value = self.attributes.get(name);
            value.and_then(|value| value.trim().parse::<f64>().ok())
        };
        let channels = ["Red", "Green", "Blue", "Alpha"].map(channel);
        let [red, green, blue, alpha] = channels;
        let label = json!([key, name, red, green, blue, alpha]);
        self.file.labels.push(label);
        Ok(())
    }
}
