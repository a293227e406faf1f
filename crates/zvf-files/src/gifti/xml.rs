//! The XML of a file as data arrays.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use quick_xml::{
    Reader,
    escape::unescape,
    events::{BytesStart, Event},
};
use serde_json::{Value, json};
use zvf::NumericColumn;

use super::array::decode;
use crate::{FileError, FileFault, FilePlace, input::ByteReader};

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
    let file = ByteReader::open(path, limit)?;
    let length = file.length();
    let source = BufReader::new(file.handle()?).take(length);
    let mut parser = Parser::new(path, limit);
    let mut reader = Reader::from_reader(BufReader::new(source));
    let done = parser.run(&mut reader);
    done.map_err(|fault| fault.at(path, FilePlace::Byte(reader.buffer_position())))?;
    Ok(parser.file)
}

type Source = BufReader<std::io::Take<BufReader<File>>>;

/// The parsed part of a file.
struct Parser<'a> {
    path: &'a Path,
    limit: u64,
    file: GiftiFile,
    /// Names of the open elements.
    open: Vec<String>,
    /// Text of the current element.
    text: Vec<u8>,
    attributes: BTreeMap<String, String>,
    declared: Option<u64>,
    /// Attributes of the current array.
    array: BTreeMap<String, String>,
    values: Option<NumericColumn>,
    array_meta: MetaData,
    matrices: Vec<[String; 3]>,
    matrix: [String; 3],
    name: String,
    metadata: usize,
}

impl<'a> Parser<'a> {
    fn new(path: &'a Path, limit: u64) -> Self {
        Self {
            path,
            limit,
            file: GiftiFile::default(),
            open: Vec::new(),
            text: Vec::new(),
            attributes: BTreeMap::new(),
            declared: None,
            array: BTreeMap::new(),
            values: None,
            array_meta: Vec::new(),
            matrices: Vec::new(),
            matrix: Default::default(),
            name: String::new(),
            metadata: 0,
        }
    }

    fn run(&mut self, reader: &mut Reader<Source>) -> Result<(), FileFault> {
        let mut buffer = Vec::new();
        let mut is_gifti = false;
        loop {
            buffer.clear();
            match reader.read_event_into(&mut buffer)? {
                Event::Start(start) => {
                    is_gifti |= start.name().as_ref() == b"GIFTI";
                    self.start(&start)?;
                }
                Event::Empty(start) => {
                    self.start(&start)?;
                    self.end()?;
                }
                Event::End(_) => self.end()?,
                Event::Text(text) => self.text.extend_from_slice(&text),
                Event::CData(text) => self.text.extend_from_slice(&text),
                Event::GeneralRef(name) => {
                    // Entities of XML itself; a file defines none.
                    let entity = format!("&{};", String::from_utf8_lossy(&name));
                    let text = unescape(&entity).map_err(quick_xml::Error::from)?;
                    self.text.extend_from_slice(text.as_bytes());
                }
                Event::DocType(text) if text.contains(&b'[') => {
                    let reason = "the file defines entities, which are not read; remove them";
                    return Err(FileFault::Unsupported(reason));
                }
                Event::Eof => break,
                Event::DocType(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
        if !is_gifti || !self.open.is_empty() {
            let expected = "a GIFTI file is one closed element GIFTI; it is cut off or damaged";
            let open = self.open.last().map_or("missing", String::as_str);
            return Err(FileFault::field("the element", open, expected));
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

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), FileFault> {
        if self.open.len() >= DEPTH {
            let reason = "elements are nested more than 12 deep; the file is damaged";
            return Err(FileFault::Unsupported(reason));
        }
        let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
        let mut attributes = BTreeMap::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(quick_xml::Error::from)?;
            let value = String::from_utf8_lossy(&attribute.value);
            let value = unescape(&value).map_err(quick_xml::Error::from)?;
            let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            attributes.insert(key, value.into_owned());
        }
        self.text.clear();
        match name.as_str() {
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
        self.open.push(name);
        Ok(())
    }

    fn end(&mut self) -> Result<(), FileFault> {
        let name = self.open.pop().unwrap_or_default();
        let text = std::mem::take(&mut self.text);
        if name == "Data" {
            self.values = Some(decode(&self.array, &text, self.path, self.limit)?);
            return Ok(());
        }
        if name != "DataArray" {
            self.metadata = self.metadata.saturating_add(text.len());
            if self.metadata > METADATA {
                let reason = "metadata and labels are larger than 1 MiB";
                return Err(FileFault::Unsupported(reason));
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        match name.as_str() {
            "Name" => text.trim().clone_into(&mut self.name),
            "Value" => {
                let pair = [std::mem::take(&mut self.name), text];
                let is_inside = self.open.iter().any(|name| name == "DataArray");
                match is_inside {
                    true => self.array_meta.push(pair),
                    false => self.file.meta.push(pair),
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
                let intent = self.array.get("Intent").map_or("NONE", String::as_str);
                let intent = intent.strip_prefix("NIFTI_INTENT_").unwrap_or(intent);
                self.file.arrays.push(DataArray {
                    intent: intent.to_owned(),
                    meta: std::mem::take(&mut self.array_meta),
                    matrices: std::mem::take(&mut self.matrices),
                    values: self.values.take().ok_or(missing)?,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn label(&mut self, name: &str) -> Result<(), FileFault> {
        // Old files say `Index` for `Key`.
        let key = self.attributes.get("Key");
        let key = key.or_else(|| self.attributes.get("Index"));
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
