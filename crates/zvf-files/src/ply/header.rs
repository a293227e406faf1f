//! The header: elements and their properties.

use zvf::numeric::Kind;

use crate::{
    AttributeRename, FileError, FileFault, FilePlace, description::MAX_HEADER_TEXT,
    input::ByteReader,
};

/// Upper bound on the number of lines.
const MAX_LINES: u64 = 1 << 16;
/// Upper bound on the length of a line.
const LONGEST_LINE: usize = 1 << 16;

/// Form of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlyForm {
    Ascii,
    LittleEndian,
    BigEndian,
}

/// A property of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PropertyDeclaration {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Type of the count, for a list.
    pub(super) count: Option<Kind>,
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ElementDeclaration {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) properties: Vec<PropertyDeclaration>,
}

/// A valid header.
#[derive(Clone, Debug)]
pub(super) struct PlyHeader {
    pub(super) form: PlyForm,
    pub(super) elements: Vec<ElementDeclaration>,
    /// Lines `comment` and `obj_info`, except the lines that `zvf query -o` adds; `None` if they
    /// are longer than 8 MiB.
    pub(super) comments: Option<Vec<String>>,
    /// Number of lines.
    pub(super) lines: u64,
}

/// Names of the properties of coordinates.
pub(super) const AXES: [&str; 3] = ["x", "y", "z"];

impl PlyHeader {
    /// Names properties of vertices as coordinates, such as `px` as `x`.
    pub(super) fn rename_axes(&mut self, renames: &[AttributeRename]) {
        let vertices = self.elements.iter_mut().filter(|it| it.name == "vertex");
        for property in vertices.flat_map(|element| &mut element.properties) {
            let old = |rename: &&AttributeRename| {
                let name = rename.old.strip_prefix("vertex.").unwrap_or(&rename.old);
                AXES.contains(&rename.new.as_str()) && name == property.name
            };
            if let Some(rename) = renames.iter().find(old) {
                property.name.clone_from(&rename.new);
            }
        }
    }
}

impl PropertyDeclaration {
    /// Returns whether the property is the corners of a face.
    pub(super) fn is_corners(&self) -> bool {
        self.count.is_some() && matches!(self.name.as_str(), "vertex_indices" | "vertex_index")
    }
}

impl ElementDeclaration {
    /// Returns the scalar property of this name.
    pub(super) fn scalar(&self, name: &str) -> Option<&PropertyDeclaration> {
        let mut scalars = self.properties.iter().filter(|it| it.count.is_none());
        scalars.find(|property| property.name == name)
    }

    /// Returns whether a property is a list.
    pub(super) fn has_lists(&self) -> bool {
        self.properties.iter().any(|it| it.count.is_some())
    }

    /// Returns the least number of bytes of all rows.
    pub(super) fn least(&self, form: PlyForm) -> u64 {
        let size = |property: &PropertyDeclaration| match form {
            // A digit and a blank or the end of a line.
            PlyForm::Ascii => 2,
            _ => u64::try_from(property.count.unwrap_or(property.kind).size()).unwrap_or(8),
        };
        let row = self
            .properties
            .iter()
            .map(size)
            .fold(0, u64::saturating_add);
        self.rows.saturating_mul(row.max(1))
    }
}

impl PlyHeader {
    /// Reads the header, and moves to the data.
    pub(super) fn read(file: &mut ByteReader) -> Result<Self, FileError> {
        let path = file.path().to_path_buf();
        let mut bytes = Vec::new();
        let mut form = None;
        let mut elements: Vec<ElementDeclaration> = Vec::new();
        let mut comments = Vec::new();
        let mut length = 0_usize;
        for line in 1..=MAX_LINES {
            file.line(&mut bytes)?;
            let in_line = |fault: FileFault| fault.at(&path, FilePlace::Line(line));
            if bytes.is_empty() || bytes.len() > LONGEST_LINE {
                let expected =
                    "the header ends with a line end_header; the file is cut off or another format";
                return Err(in_line(FileFault::field(
                    "end_header",
                    "not there",
                    expected,
                )));
            }
            let text = String::from_utf8_lossy(&bytes);
            let words: Vec<&str> = text.split_whitespace().collect();
            match words.as_slice() {
                ["ply"] if line == 1 => {}
                _ if line == 1 => {
                    let found: String = text.trim().chars().take(24).collect();
                    let expected = "a PLY file starts with a line ply";
                    return Err(in_line(FileFault::field(
                        "the first line",
                        format!("{found:?}"),
                        expected,
                    )));
                }
                ["end_header"] => {
                    let Some(form) = form else {
                        let expected = "the header must have this line";
                        return Err(in_line(FileFault::field("format", "absent", expected)));
                    };
                    return Ok(Self {
                        form,
                        elements,
                        comments: (length <= MAX_HEADER_TEXT).then_some(comments),
                        lines: line,
                    });
                }
                ["comment", "level", _] | [] => {}
                ["comment" | "obj_info", ..] => {
                    length = length.saturating_add(text.len());
                    if length <= MAX_HEADER_TEXT {
                        comments.push(text.trim().to_owned());
                    }
                }
                ["format", name, "1.0"] if form.is_none() => {
                    form = Some(match *name {
                        "ascii" => PlyForm::Ascii,
                        "binary_little_endian" => PlyForm::LittleEndian,
                        "binary_big_endian" => PlyForm::BigEndian,
                        _ => return Err(in_line(unknown(&text))),
                    });
                }
                ["element", name, rows] => {
                    if elements.iter().any(|other| other.name == *name) {
                        return Err(in_line(FileFault::Twice((*name).to_owned())));
                    }
                    let rows = rows.parse().map_err(|_| in_line(unknown(&text)))?;
                    let name = (*name).to_owned();
                    elements.push(ElementDeclaration {
                        name,
                        rows,
                        properties: Vec::new(),
                    });
                }
                ["property", rest @ ..] => {
                    let element = elements.last_mut().ok_or_else(|| in_line(unknown(&text)))?;
                    let property = property(rest).ok_or_else(|| in_line(unknown(&text)))?;
                    if element
                        .properties
                        .iter()
                        .any(|other| other.name == property.name)
                    {
                        return Err(in_line(FileFault::Twice(property.name)));
                    }
                    element.properties.push(property);
                }
                _ => return Err(in_line(unknown(&text))),
            }
        }
        let expected = "a header has up to 65536 lines";
        Err(FileFault::field("the header", "longer", expected).of(&path))
    }
}

fn unknown(line: &str) -> FileFault {
    let line: String = line.trim().chars().take(48).collect();
    let expected = "it is not a line of a PLY header; the file is damaged";
    FileFault::field("a line of the header", format!("{line:?}"), expected)
}

fn property(words: &[&str]) -> Option<PropertyDeclaration> {
    let (count, kind, name) = match words {
        ["list", count, kind, name] => {
            let count = kind_of(count)?;
            let is_float = matches!(count, Kind::Float32 | Kind::Float64);
            (Some(count).filter(|_| !is_float).map(Some)?, kind, name)
        }
        [kind, name] => (None, kind, name),
        _ => return None,
    };
    Some(PropertyDeclaration {
        name: (*name).to_owned(),
        kind: kind_of(kind)?,
        count,
    })
}

fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "char" | "int8" => Kind::Int8,
        "uchar" | "uint8" => Kind::UInt8,
        "short" | "int16" => Kind::Int16,
        "ushort" | "uint16" => Kind::UInt16,
        "int" | "int32" => Kind::Int32,
        "uint" | "uint32" => Kind::UInt32,
        "float" | "float32" => Kind::Float32,
        "double" | "float64" => Kind::Float64,
        _ => return None,
    })
}
