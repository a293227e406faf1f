//! Attributes of vertices and of fragment indexes.

use zvf_format::numeric::{ByteOrder, Dtype, Kind};

use super::check_tag;
use crate::{
    key::Key,
    metadata::{Attributes, Fields, JsonField, MetadataError, Noted, Noter},
    name::words,
};

words! {
    /// How the bytes of a vertex cell hold coordinates.
    pub enum VertexEncoding as "an encoding of vertices" {
        /// Rows of numbers.
        Raw = "raw",
        /// A Draco bitstream.
        Draco = "draco",
    }
}

/// What `vertices` says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Vertices {
    /// Type of a coordinate; float32 when absent.
    pub dtype: Dtype,
    /// How cells hold them; raw when absent.
    pub encoding: VertexEncoding,
    /// Axes, as further geometries of composite stores say.
    pub ndim: Option<u64>,
    /// Vertices, as further geometries of composite stores say.
    pub vertex_count: Option<u64>,
}

impl Vertices {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] when the dtype is no number.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, &["vertices"], &mut notes);
        let value = Self {
            dtype: dtype_or_float32(&fields)?,
            encoding: notes
                .word(&fields, "encoding")
                .unwrap_or(VertexEncoding::Raw),
            ndim: notes.field(&fields, "ndim", JsonField::u64),
            vertex_count: notes.field(&fields, "vertex_count", JsonField::u64),
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }
}

/// The `dtype`, float32 when absent.
pub(super) fn dtype_or_float32(fields: &Fields<'_>) -> Result<Dtype, MetadataError> {
    match fields.get("dtype") {
        Some(at) => at.dtype(),
        None => Ok(Dtype::new(Kind::Float32, ByteOrder::Little)),
    }
}

/// What `vertex_fragments` or `link_fragments` says: that it holds fragment
/// indexes of version 1, which all do. Writers of 0.6 and 0.7 left it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FragmentArray {}

impl FragmentArray {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] when another encoding is declared.
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
