//! What the elements of an array are.

use zvf_format::numeric::{ByteOrder, Dtype, Kind};

use super::extension;
use crate::metadata::{Attributes, MetadataError, Place};

/// The `data_type` of an array.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DataType {
    /// A number or boolean. The byte order is the codec's business.
    Number(Kind),
    /// Byte strings of any length: `variable_length_bytes`, or `bytes`.
    VariableBytes,
    /// Text of any length: `string`, or `variable_length_utf8`.
    VariableText,
    /// Anything else, text of fixed length for one, by name.
    Other {
        /// The name.
        name: String,
        /// Its configuration; empty when there is none.
        configuration: Attributes,
    },
}

impl DataType {
    pub(super) fn read(place: &Place<'_>) -> Result<Self, MetadataError> {
        let (name, configuration, _) = extension(place)?;
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) {
            return Ok(Self::Number(kind));
        }
        Ok(match name {
            "variable_length_bytes" | "bytes" => Self::VariableBytes,
            "string" | "variable_length_utf8" => Self::VariableText,
            _ => Self::Other {
                name: name.to_owned(),
                configuration,
            },
        })
    }

    /// The dtype of numbers in this byte order; `None` for everything else.
    pub fn dtype(&self, order: ByteOrder) -> Option<Dtype> {
        match self {
            Self::Number(kind) => Some(Dtype::new(*kind, order)),
            _ => None,
        }
    }
}
