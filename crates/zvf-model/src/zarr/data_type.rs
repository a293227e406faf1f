//! Data types of arrays.

use serde_json::Value;
use zvf_format::numeric::{ByteOrder, Dtype, Kind};

use super::{extension, named};
use crate::metadata::{Attributes, Excerpt, JsonField, JsonMembers, MetadataError, MetadataFault};

/// The `data_type` of an array.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DataType {
    /// A number or boolean. The codec defines the byte order.
    Number(Kind),
    /// Byte strings of any length: `variable_length_bytes`, or `bytes`.
    VariableBytes,
    /// Text of any length: `string`, or `variable_length_utf8`.
    VariableText,
    /// Text of fixed length: `fixed_length_utf32`, four bytes a character in the codec's byte
    /// order, zeros after the last one.
    FixedText {
        /// Bytes of an element, a multiple of four.
        bytes: u64,
    },
    /// Anything else, by name.
    Other {
        /// The name.
        name: String,
        /// Its configuration; empty when there is none.
        configuration: Attributes,
    },
}

impl DataType {
    pub(super) fn read(place: &JsonField<'_>) -> Result<Self, MetadataError> {
        let (name, given) = extension(place)?;
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) {
            return Ok(Self::Number(kind));
        }
        Ok(match name {
            VARIABLE_BYTES | "bytes" => Self::VariableBytes,
            VARIABLE_TEXT | "variable_length_utf8" => Self::VariableText,
            FIXED_TEXT => Self::FixedText {
                bytes: text_bytes(place, given.map(|(_, at)| at))?,
            },
            _ => Self::Other {
                name: name.to_owned(),
                configuration: given.map(|(members, _)| members).unwrap_or_default(),
            },
        })
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Number(kind) => kind.name().into(),
            Self::VariableBytes => VARIABLE_BYTES.into(),
            Self::VariableText => VARIABLE_TEXT.into(),
            Self::FixedText { bytes } => {
                let length = JsonMembers::default().with(LENGTH, *bytes).finish();
                named(FIXED_TEXT, Some(&length)).into()
            }
            Self::Other {
                name,
                configuration,
            } if configuration.is_empty() => name.as_str().into(),
            Self::Other {
                name,
                configuration,
            } => named(name, Some(configuration)).into(),
        }
    }

    /// Returns the dtype of numbers in this byte order; `None` for everything else.
    pub fn dtype(&self, order: ByteOrder) -> Option<Dtype> {
        match self {
            Self::Number(kind) => Some(Dtype::new(*kind, order)),
            _ => None,
        }
    }
}

const VARIABLE_BYTES: &str = "variable_length_bytes";
const VARIABLE_TEXT: &str = "string";
const FIXED_TEXT: &str = "fixed_length_utf32";
const LENGTH: &str = "length_bytes";

/// Bytes of a UTF-32 character.
const CHARACTER: u64 = 4;

/// Returns the `length_bytes` of text: one whole character or more.
fn text_bytes(place: &JsonField<'_>, given: Option<JsonField<'_>>) -> Result<u64, MetadataError> {
    let Some(configuration) = given else {
        return Err(place.error(MetadataFault::Missing));
    };
    let length = configuration.fields()?.require(LENGTH)?;
    // Lengths beyond the limit of a chunk are rejected here, where the path is known.
    let bytes = length.unsigned(CHARACTER, u64::from(u32::MAX))?;
    if bytes % CHARACTER == 0 {
        return Ok(bytes);
    }
    let found = Excerpt::of(&bytes.to_string());
    let with = "whole characters of four bytes";
    Err(length.error(MetadataFault::Disagrees { found, with }))
}
