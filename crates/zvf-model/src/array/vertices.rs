//! Attributes of vertices and of fragment indexes.

use zvf_format::numeric::{ByteOrder, Dtype, Kind};

use super::check_tag;
use crate::{
    generation::Generation,
    key::Key,
    metadata::{Attributes, Fields, JsonField, JsonMembers, MetadataError, Noted, Noter},
    word::{Word, words},
};

const VERTICES: &str = "vertices";
const VERTEX_FRAGMENTS: &str = "vertex_fragments";
const LINK_FRAGMENTS: &str = "link_fragments";
const FRAGMENT_INDEX: &str = "fragment_index_v1";

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
        check_tag(&fields, &[VERTICES], &mut notes);
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

    /// Returns the attributes of the node. Those of a further geometry declare no encoding and, before
    /// 0.9, no tag.
    pub fn to_attributes(&self, generation: Generation) -> Attributes {
        let is_further = self.ndim.is_some() || self.vertex_count.is_some();
        let is_tagged = !is_further || generation.is_current();
        JsonMembers::default()
            .with_some("zv_array", is_tagged.then_some(VERTICES))
            .with("dtype", self.dtype.to_string())
            .with_some("encoding", (!is_further).then_some(self.encoding.as_str()))
            .with_some("ndim", self.ndim)
            .with_some("vertex_count", self.vertex_count)
            .finish()
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
pub enum FragmentArray {
    /// Fragments of vertices.
    Vertices,
    /// Groups of links.
    Links,
}

impl FragmentArray {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if another encoding is declared.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        let tag = check_tag(&fields, &[VERTEX_FRAGMENTS, LINK_FRAGMENTS], &mut notes);
        if let Some(encoding) = fields.get("encoding") {
            let text = encoding.text()?;
            if text != FRAGMENT_INDEX {
                return Err(encoding.unknown_word(text, "\"fragment_index_v1\""));
            }
        }
        let value = match tag {
            Some(LINK_FRAGMENTS) => Self::Links,
            _ => Self::Vertices,
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes of the node.
    pub fn to_attributes(self) -> Attributes {
        let tag = match self {
            Self::Vertices => VERTEX_FRAGMENTS,
            Self::Links => LINK_FRAGMENTS,
        };
        JsonMembers::tagged(tag)
            .with("encoding", FRAGMENT_INDEX)
            .finish()
    }
}
