//! Properties of annotations.

/// The type of a property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum PropertyType {
    #[default]
    Float32,
    Int32,
    Uint32,
    Int16,
    Uint16,
    Int8,
    Uint8,
    Rgb,
    Rgba,
}

impl PropertyType {
    /// All types.
    pub const ALL: [Self; 9] = [
        Self::Float32,
        Self::Int32,
        Self::Uint32,
        Self::Int16,
        Self::Uint16,
        Self::Int8,
        Self::Uint8,
        Self::Rgb,
        Self::Rgba,
    ];

    /// Returns the name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Int32 => "int32",
            Self::Uint32 => "uint32",
            Self::Int16 => "int16",
            Self::Uint16 => "uint16",
            Self::Int8 => "int8",
            Self::Uint8 => "uint8",
            Self::Rgb => "rgb",
            Self::Rgba => "rgba",
        }
    }

    /// Returns the size of a value.
    pub fn size(self) -> usize {
        match self {
            Self::Float32 | Self::Int32 | Self::Uint32 | Self::Rgba => 4,
            Self::Rgb => 3,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int8 | Self::Uint8 => 1,
        }
    }

    /// Returns the size to which a value is aligned, by which properties are sorted.
    pub(crate) fn alignment(self) -> usize {
        match self {
            Self::Float32 | Self::Int32 | Self::Uint32 => 4,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int8 | Self::Uint8 | Self::Rgb | Self::Rgba => 1,
        }
    }
}

/// A value of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum PropertyValue {
    Float32(f32),
    Int32(i32),
    Uint32(u32),
    Int16(i16),
    Uint16(u16),
    Int8(i8),
    Uint8(u8),
    Rgb([u8; 3]),
    Rgba([u8; 4]),
}

impl PropertyValue {
    /// Returns the type of the value.
    pub fn kind(self) -> PropertyType {
        match self {
            Self::Float32(_) => PropertyType::Float32,
            Self::Int32(_) => PropertyType::Int32,
            Self::Uint32(_) => PropertyType::Uint32,
            Self::Int16(_) => PropertyType::Int16,
            Self::Uint16(_) => PropertyType::Uint16,
            Self::Int8(_) => PropertyType::Int8,
            Self::Uint8(_) => PropertyType::Uint8,
            Self::Rgb(_) => PropertyType::Rgb,
            Self::Rgba(_) => PropertyType::Rgba,
        }
    }

    pub(crate) fn write(self, to: &mut Vec<u8>) {
        match self {
            Self::Float32(value) => to.extend_from_slice(&value.to_le_bytes()),
            Self::Int32(value) => to.extend_from_slice(&value.to_le_bytes()),
            Self::Uint32(value) => to.extend_from_slice(&value.to_le_bytes()),
            Self::Int16(value) => to.extend_from_slice(&value.to_le_bytes()),
            Self::Uint16(value) => to.extend_from_slice(&value.to_le_bytes()),
            Self::Int8(value) => to.extend_from_slice(&value.to_le_bytes()),
            Self::Uint8(value) => to.push(value),
            Self::Rgb(value) => to.extend_from_slice(&value),
            Self::Rgba(value) => to.extend_from_slice(&value),
        }
    }

    /// Reads a value from bytes of its size.
    pub(crate) fn read(kind: PropertyType, bytes: &[u8]) -> Option<Self> {
        let four = bytes.first_chunk::<4>();
        let two = bytes.first_chunk::<2>();
        Some(match kind {
            PropertyType::Float32 => Self::Float32(f32::from_le_bytes(*four?)),
            PropertyType::Int32 => Self::Int32(i32::from_le_bytes(*four?)),
            PropertyType::Uint32 => Self::Uint32(u32::from_le_bytes(*four?)),
            PropertyType::Int16 => Self::Int16(i16::from_le_bytes(*two?)),
            PropertyType::Uint16 => Self::Uint16(u16::from_le_bytes(*two?)),
            PropertyType::Int8 => Self::Int8(i8::from_le_bytes([*bytes.first()?])),
            PropertyType::Uint8 => Self::Uint8(*bytes.first()?),
            PropertyType::Rgb => Self::Rgb(*bytes.first_chunk::<3>()?),
            PropertyType::Rgba => Self::Rgba(*four?),
        })
    }
}

/// A property of the annotations of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PropertySpec {
    /// Identifier, of the form `[a-z][a-zA-Z0-9_]*`.
    pub id: String,
    /// Type of the values.
    pub kind: PropertyType,
    /// Text that the viewer shows.
    pub description: Option<String>,
    /// Names of values; not for colours.
    pub labels: Vec<ValueLabel>,
}

/// The name of a value of a property.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueLabel {
    /// The value.
    pub value: f64,
    /// Its name.
    pub label: String,
}
