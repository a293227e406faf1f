//! Elements and text of XML files, with bounded nesting and without the entities of a file.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use quick_xml::{
    Reader,
    escape::unescape,
    events::{BytesStart, Event},
};

use crate::{FileError, FileFault, FilePlace, input::ByteReader, library};

type Source = BufReader<std::io::Take<File>>;

/// Attributes of an element by name.
pub(crate) type XmlAttributes = BTreeMap<String, String>;

/// The start or the end of an element.
#[derive(Debug)]
pub(crate) enum XmlEvent {
    /// An element begins.
    Start {
        /// Its name without a prefix.
        name: String,
        attributes: XmlAttributes,
    },
    /// An element ends.
    End {
        name: String,
        /// Text since the last start or end.
        text: Vec<u8>,
    },
}

/// Elements of a file. A document type is not fetched, and entities that a file defines are refused.
pub(crate) struct XmlReader {
    path: PathBuf,
    reader: Reader<Source>,
    buffer: Vec<u8>,
    /// Names of the open elements.
    open: Vec<String>,
    /// Upper bound on nested elements.
    depth: usize,
    text: Vec<u8>,
    /// The element that has begun is empty, so that its end comes next.
    is_empty: bool,
}

impl XmlReader {
    /// Opens a file, which is unpacked to at most `limit` bytes.
    pub(crate) fn open(path: &Path, limit: u64, depth: usize) -> Result<Self, FileError> {
        let file = ByteReader::open(path, limit)?;
        let length = file.length();
        let source = BufReader::with_capacity(1 << 16, file.handle()?.take(length));
        Ok(Self {
            path: path.to_path_buf(),
            reader: Reader::from_reader(source),
            buffer: Vec::new(),
            open: Vec::new(),
            depth,
            text: Vec::new(),
            is_empty: false,
        })
    }

    /// Adds the file and the position to a fault.
    pub(crate) fn error(&self, fault: FileFault) -> FileError {
        fault.at(&self.path, FilePlace::Byte(self.reader.buffer_position()))
    }

    /// Returns the names of the open elements, the outermost first.
    pub(crate) fn open_elements(&self) -> &[String] {
        &self.open
    }

    /// Returns the next start or end of an element; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<XmlEvent>, FileError> {
        let found = self.event();
        found.map_err(|fault| self.error(fault))
    }

    fn event(&mut self) -> Result<Option<XmlEvent>, FileFault> {
        if std::mem::take(&mut self.is_empty) {
            return Ok(Some(self.end()));
        }
        loop {
            self.buffer.clear();
            match self
                .reader
                .read_event_into(&mut self.buffer)
                .map_err(library::xml)?
            {
                Event::Start(start) => {
                    let start = element(&start)?;
                    return self.start(start).map(Some);
                }
                Event::Empty(start) => {
                    let start = element(&start)?;
                    self.is_empty = true;
                    return self.start(start).map(Some);
                }
                Event::End(_) => return Ok(Some(self.end())),
                Event::Text(text) => self.text.extend_from_slice(&text),
                Event::CData(text) => self.text.extend_from_slice(&text),
                Event::GeneralRef(name) => {
                    // Entities of XML itself; a file defines none.
                    let entity = format!("&{};", String::from_utf8_lossy(&name));
                    let text = unescape(&entity).map_err(library::xml)?;
                    self.text.extend_from_slice(text.as_bytes());
                }
                Event::DocType(text) if text.contains(&b'[') => {
                    let reason = "the file defines entities, which are not supported; remove them";
                    return Err(FileFault::Unsupported(reason));
                }
                Event::Eof => break,
                Event::DocType(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
        if let Some(open) = self.open.last() {
            let expected = "the element is not closed; the file is cut off or damaged";
            return Err(FileFault::field("the last element", open, expected));
        }
        Ok(None)
    }

    fn start(&mut self, start: (String, XmlAttributes)) -> Result<XmlEvent, FileFault> {
        if self.open.len() >= self.depth {
            let reason = "elements are nested deeper than the format allows; the file is damaged";
            return Err(FileFault::Unsupported(reason));
        }
        let (name, attributes) = start;
        self.text.clear();
        self.open.push(name.clone());
        Ok(XmlEvent::Start { name, attributes })
    }

    fn end(&mut self) -> XmlEvent {
        XmlEvent::End {
            name: self.open.pop().unwrap_or_default(),
            text: std::mem::take(&mut self.text),
        }
    }
}

/// Returns the name and the attributes of an element.
fn element(start: &BytesStart<'_>) -> Result<(String, XmlAttributes), FileFault> {
    let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
    let mut attributes = BTreeMap::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(library::xml)?;
        let value = String::from_utf8_lossy(&attribute.value);
        let value = unescape(&value).map_err(library::xml)?;
        let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
        attributes.insert(key, value.into_owned());
    }
    Ok((name, attributes))
}
