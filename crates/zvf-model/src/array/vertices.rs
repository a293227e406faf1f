//! Attributes of vertices and of fragment indexes.

use zvf_format::numeric::{ByteOrder, Dtype, Kind};

use super::check_tag;
use crate::{
    key::Key,
    metadata::{Attributes, Fields, JsonField, MetadataError, Noted, Noter},
    word::{Word, words},
};

words! {
    /// Encoding of the coordinates in a vertex cell.
    pub enum VertexEncoding as "an encoding of vertices" {
        /// Rows of numbers.
        Raw = "raw",
        /// A Draco bitstream.
        Draco = "draco",
    }
}

/// Metadata of `vertices`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Vertices {
    /// Type of a coordinate; float32 when absent.
    pub dtype: Dtype,
    /// Encoding of cells; raw if absent.
    pub encoding: Word<VertexEncoding>,
    /// Number of axes, declared by further geometries of composite stores.
    pub ndim: Option<u64>,
    /// Number of vertices, declared by further geometries of composite stores.
    pub vertex_count: Option<u64>,
}

impl Vertices {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the dtype is not numeric.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, &["vertices"], &mut notes);
        let value = Self {
            dtype: dtype_or_float32(&fields)?,
            encoding: notes
                .word(&fields, "encoding")
                .unwrap_or(Word::Known(VertexEncoding::Raw)),
            ndim: notes.field(&fields, "ndim", JsonField::u64),
            vertex_count: notes.field(&fields, "vertex_count", JsonField::u64),
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }
}

/// Reads the `dtype`, float32 if absent.
pub(super) fn dtype_or_float32(fields: &Fields<'_>) -> Result<Dtype, MetadataError> {
    match fields.get("dtype") {
        Some(at) => at.dtype(),
        None => Ok(Dtype::new(Kind::Float32, ByteOrder::Little)),
    }
}

/// Metadata of `vertex_fragments` or `link_fragments`, which only declares fragment indexes of
/// version 1. Writers of 0.6 and 0.7 omit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FragmentArray {}

impl FragmentArray {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if another encoding is declared.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, &["vertex_fragments", "link_fragments"], &mut notes);
        if let Some(encoding) = fields.get("encoding") {
            let text = encoding.text()?;
            if text != "fragment_index_v1" {
                return Err(encoding.unknown_word(text, "\"fragment_index_v1\""));
            }
        }
        let notes = notes.finish();
        Ok(Noted {
            value: Self {},
            notes,
        })
    }
}
