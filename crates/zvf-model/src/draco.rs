//! Cells of vertices in the encoding `draco`: a stream with the positions of a chunk and, in meshes,
//! the triangles inside the chunk.
//!
//! | bytes | content |
//! |---|---|
//! | 0..5 | `DRACO` |
//! | 5, 6 | version of the stream |
//! | 7 | 0 for points, 1 for a mesh |
//! | 8 | method: 0 keeps the order of vertices, 1 does not |
//! | 9..11 | flags |
//!
//! Other arrays name vertices by the row that the writer gave them. The reference writes streams of
//! method 1, which loses these rows: the vertices are reordered, and vertices without a triangle are
//! dropped. Only streams of method 0 can have attributes of vertices and links between
//! chunks.
//!
//! Without the feature `draco`, streams are recognized but not decoded.

#[cfg(feature = "draco")]
mod codec;

/// A decoded cell of vertices.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DracoCell {
    /// Positions of the vertices.
    pub positions: Vec<[f32; 3]>,
    /// Triangles of rows of `positions`; none in streams of points.
    pub triangles: Vec<[u32; 3]>,
    /// Order of the vertices.
    pub order: VertexOrder,
}

/// Order of the vertices in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VertexOrder {
    /// The order in which the writer stored attributes and links.
    #[default]
    Kept,
    /// An order of the encoder.
    Lost,
}

/// Reason that a cell is not a Draco stream, or cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DracoError {
    /// The library was built without the feature `draco`.
    #[error("is encoded with Draco, which this program was built without")]
    Disabled,
    /// The bytes are not a Draco stream.
    #[error("is not a Draco stream")]
    NoStream,
    /// The stream cannot be decoded.
    #[error("is a damaged Draco stream: {0}")]
    Damaged(&'static str),
    /// The stream decodes to more than the limit.
    #[error("is a Draco stream of more than {0} bytes of positions and triangles")]
    TooLarge(u64),
    /// The stream has no positions of three 32-bit floats.
    #[error("is a Draco stream without positions of three 32-bit floats")]
    NoPositions,
    /// A triangle names a missing vertex.
    #[error("is a Draco stream with a triangle of vertex {row} of {rows}")]
    NoVertex {
        /// The vertex.
        row: u32,
        /// Number of vertices.
        rows: usize,
    },
    /// The positions or triangles cannot be encoded.
    #[error("cannot be encoded with Draco: {0}")]
    Unencodable(&'static str),
}

const MAGIC: &[u8] = b"DRACO";
/// Offset of the method, and the methods that keep the order of vertices.
const METHOD: usize = 8;
const SEQUENTIAL: u8 = 0;

impl VertexOrder {
    /// Reads the order from the start of a stream, without decoding it.
    ///
    /// # Errors
    ///
    /// [`DracoError::NoStream`] if the bytes do not start with the header of a stream.
    pub fn of(bytes: &[u8]) -> Result<Self, DracoError> {
        let method = bytes.get(METHOD).filter(|_| bytes.starts_with(MAGIC));
        match method.ok_or(DracoError::NoStream)? {
            &SEQUENTIAL => Ok(Self::Kept),
            _ => Ok(Self::Lost),
        }
    }
}

impl DracoCell {
    /// Decodes a cell. The memory of the result is at most `limit` bytes, whatever the stream
    /// claims.
    ///
    /// # Errors
    ///
    /// [`DracoError`] if the stream is damaged or too large, or if its positions are not three
    /// 32-bit floats.
    pub fn parse(bytes: &[u8], limit: u64) -> Result<Self, DracoError> {
        let order = VertexOrder::of(bytes)?;
        #[cfg(feature = "draco")]
        {
            codec::decode(bytes, limit, order)
        }
        #[cfg(not(feature = "draco"))]
        {
            let _ = (order, limit);
            Err(DracoError::Disabled)
        }
    }

    /// Encodes the cell with coordinates of `bits` bits along the extent of its positions. The
    /// stream keeps the order of vertices and triangles.
    ///
    /// # Errors
    ///
    /// [`DracoError`] if a position is not finite, or if a triangle names a missing vertex.
    pub fn encode(&self, bits: PositionBits) -> Result<Vec<u8>, DracoError> {
        self.check_triangles()?;
        let mut coordinates = self.positions.as_flattened().iter();
        if !coordinates.all(|coordinate| coordinate.is_finite()) {
            return Err(DracoError::Unencodable("a coordinate is not finite"));
        }
        if self.positions.is_empty() {
            return Err(DracoError::Unencodable("there are no vertices"));
        }
        #[cfg(feature = "draco")]
        {
            codec::encode(self, bits)
        }
        #[cfg(not(feature = "draco"))]
        {
            let _ = bits;
            Err(DracoError::Disabled)
        }
    }

    /// Returns the positions as little-endian bytes, the form of a cell without encoding.
    pub fn rows(&self) -> Vec<u8> {
        let coordinates = self.positions.as_flattened().iter();
        coordinates
            .flat_map(|coordinate| coordinate.to_le_bytes())
            .collect()
    }

    fn check_triangles(&self) -> Result<(), DracoError> {
        let rows = self.positions.len();
        let is_missing = |row: &&u32| usize::try_from(**row).map_or(true, |row| row >= rows);
        match self.triangles.as_flattened().iter().find(is_missing) {
            Some(row) => Err(DracoError::NoVertex { row: *row, rows }),
            None => Ok(()),
        }
    }
}

/// Number of bits of a quantized coordinate, from 1 to 30.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PositionBits(u8);

impl PositionBits {
    /// Returns the number, or `None` outside of 1 to 30, the range of Draco.
    pub fn new(bits: u8) -> Option<Self> {
        (1..=30).contains(&bits).then_some(Self(bits))
    }

    /// Returns the number of bits.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// 11 bits, the default of the reference.
impl Default for PositionBits {
    fn default() -> Self {
        Self(11)
    }
}
