//! The description of an array to write.

use serde_json::Value;
use zvf_format::b2nd::{
    DTYPE_NUMPY, FrameSpec, FrameType, MetalayersBuilder, NdForm, NdMetalayerBuilder,
};

use super::{B2ndError, attributes, layers::Layer};
use crate::{
    ChunkGrid, NumpyDtype,
    blosc::{BloscCodec, BloscFilter, ChunkEncoder, Split, slots},
};

/// Target length of a block in bytes; fits in the cache of a core.
const BLOCK_BYTES: u64 = 32 << 10;
/// Target length of a chunk in bytes; large enough to amortize a request.
const CHUNK_BYTES: u64 = 2 << 20;

/// The shape and type of an array, and the encoding of its chunks.
///
/// ```
/// use zvf_dense::{NumpyDtype, b2nd::B2ndDesign, blosc::{BloscCodec, BloscFilter}};
///
/// let design = B2ndDesign::new(&[400, 300], NumpyDtype::parse("<f4")?)
///     .with_chunks(&[100, 100], &[20, 50])
///     .with_codec(BloscCodec::Zstd, 3)
///     .with_filters(&[BloscFilter::BitShuffle]);
/// # Ok::<(), zvf_dense::NumpyDtypeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct B2ndDesign {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    block: Vec<u64>,
    dtype: NumpyDtype,
    form: NdForm,
    codec: BloscCodec,
    level: u8,
    filters: Vec<BloscFilter>,
    split: Split,
    metalayers: Vec<Layer>,
    vlmetalayers: Vec<Layer>,
}

impl B2ndDesign {
    /// Creates the design of a Blosc2 array with default chunk and block shapes, compressed with
    /// shuffle and LZ4.
    pub fn new(shape: &[u64], dtype: NumpyDtype) -> Self {
        let (chunk, block) = partition(shape, dtype.size());
        Self {
            shape: shape.to_vec(),
            chunk,
            block,
            dtype,
            form: NdForm::B2nd,
            codec: BloscCodec::Lz4,
            level: 5,
            filters: vec![BloscFilter::Shuffle],
            split: Split::default(),
            metalayers: Vec::new(),
            vlmetalayers: Vec::new(),
        }
    }

    /// Sets the chunk and block shapes.
    #[must_use]
    pub fn with_chunks(mut self, chunk: &[u64], block: &[u64]) -> Self {
        self.chunk = chunk.to_vec();
        self.block = block.to_vec();
        self
    }

    /// Sets the chunk shape and derives the block shape.
    #[must_use]
    pub fn with_chunk_shape(mut self, chunk: &[u64]) -> Self {
        self.block = halved(chunk, self.dtype.size(), BLOCK_BYTES);
        self.chunk = chunk.to_vec();
        self
    }

    /// Sets the codec and its level, 0 (raw) to 9.
    #[must_use]
    pub fn with_codec(mut self, codec: BloscCodec, level: u8) -> Self {
        self.codec = codec;
        self.level = level;
        self
    }

    /// Sets the filters, in the order of their application.
    #[must_use]
    pub fn with_filters(mut self, filters: &[BloscFilter]) -> Self {
        self.filters = filters.to_vec();
        self
    }

    /// Sets the policy for splitting blocks into streams.
    #[must_use]
    pub fn with_split(mut self, split: Split) -> Self {
        self.split = split;
        self
    }

    /// Writes the metalayer of Caterva, which stores the length of items but not their type.
    #[must_use]
    pub fn for_caterva(mut self) -> Self {
        self.form = NdForm::Caterva;
        self
    }

    /// Adds a metalayer to the header. Its length cannot change later.
    #[must_use]
    pub fn with_metalayer(mut self, name: &str, body: &[u8]) -> Self {
        self.metalayers.push(Layer::new(name, body.to_vec()));
        self
    }

    /// Adds an attribute: a metalayer in the trailer. Names have at most 31 bytes.
    ///
    /// # Errors
    ///
    /// [`B2ndError::Large`] if a text or list in the value is too long for MessagePack.
    pub fn with_attribute(self, name: &str, value: &Value) -> Result<Self, B2ndError> {
        let body = attributes::pack(value).ok_or(B2ndError::Large)?;
        Ok(self.with_vlmetalayer(name, &body))
    }

    /// Adds a metalayer to the trailer.
    #[must_use]
    pub fn with_vlmetalayer(mut self, name: &str, body: &[u8]) -> Self {
        self.vlmetalayers.push(Layer::new(name, body.to_vec()));
        self
    }

    /// Returns the element type.
    pub fn dtype(&self) -> &NumpyDtype {
        &self.dtype
    }

    /// Returns the shape and its division into chunks and blocks.
    ///
    /// # Errors
    ///
    /// If the shapes are inconsistent.
    pub fn grid(&self) -> Result<ChunkGrid, crate::ChunkGridError> {
        let block = Some(self.block.clone());
        ChunkGrid::new(self.shape.clone(), self.chunk.clone(), block)
    }

    /// Derives the frame header, the chunk encoder and the metalayers.
    pub(super) fn layout(&self, frame_type: FrameType) -> Result<Layout, B2ndError> {
        let typesize = u32::try_from(self.dtype.size()).map_err(|_| B2ndError::Large)?;
        let nd = nd_metalayer(
            self.form,
            &self.shape,
            &self.chunk,
            &self.block,
            &self.dtype,
        )?;
        let lengths = Lengths::new(&self.shape, &self.chunk, &self.block, typesize)?;
        let encoder = ChunkEncoder::new(self.codec, typesize, lengths.blocksize)
            .with_level(self.level)
            .with_split(self.split)
            .with_filters(&self.filters)?;
        let mut metalayers = MetalayersBuilder::default();
        metalayers.push(self.form.name(), &nd)?;
        for (name, body) in super::layers::pairs(&self.metalayers) {
            metalayers.push(name, body)?;
        }
        let (filters, filter_metas) = slots(&self.filters);
        Ok(Layout {
            spec: FrameSpec {
                frame_type,
                codec: self.codec.number(),
                user_codec: self.codec.number(),
                codec_meta: 0,
                level: encoder.level(),
                split_mode: match self.split {
                    Split::Always => 1,
                    Split::Never => 2,
                    Split::Auto => 3,
                },
                filters,
                filter_metas,
                uses_dictionary: false,
                typesize,
                blocksize: lengths.blocksize,
                chunksize: lengths.chunksize,
                nbytes: lengths.nbytes,
                cbytes: 0,
                tail_len: 0,
                compression_threads: 1,
                decompression_threads: 1,
                has_vlmetalayers: !self.vlmetalayers.is_empty(),
            },
            encoder,
            metalayers,
            trailer: trailer(super::layers::pairs(&self.vlmetalayers))?,
        })
    }
}

/// The parts of a frame that do not depend on its chunks.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) spec: FrameSpec,
    pub(super) encoder: ChunkEncoder,
    pub(super) metalayers: MetalayersBuilder,
    pub(super) trailer: Vec<u8>,
}

/// Decoded lengths of a block, of a chunk, and of all chunks.
pub(super) struct Lengths {
    pub(super) blocksize: u32,
    pub(super) chunksize: u32,
    pub(super) nbytes: u64,
}

impl Lengths {
    pub(super) fn new(
        shape: &[u64],
        chunk: &[u64],
        block: &[u64],
        typesize: u32,
    ) -> Result<Self, B2ndError> {
        /// Maximum lengths that leave space for a header within 31 bits.
        const MAX_CHUNK: u64 = 0x7fff_ffff - 32;
        const MAX_BLOCK: u64 = 536_866_816;
        let product = |mut axes: &mut dyn Iterator<Item = u64>| {
            Iterator::try_fold(&mut axes, 1_u64, u64::checked_mul)
        };
        let bytes = |items: Option<u64>| items?.checked_mul(u64::from(typesize));
        let count = |(whole, part): (&u64, &u64)| match part {
            0 => 0,
            part => whole.div_ceil(*part),
        };
        let block_bytes = bytes(product(&mut block.iter().copied()));
        let blocks = product(&mut chunk.iter().zip(block).map(count));
        let chunks = product(&mut shape.iter().zip(chunk).map(count));
        let large = B2ndError::Large;
        let blocksize = block_bytes
            .filter(|len| *len <= MAX_BLOCK)
            .ok_or(large.clone())?;
        let chunksize = blocks
            .and_then(|blocks| blocks.checked_mul(blocksize))
            .filter(|len| *len <= MAX_CHUNK)
            .ok_or(large.clone())?;
        let nbytes = chunks.and_then(|chunks| chunks.checked_mul(chunksize));
        let narrow = |len| u32::try_from(len).map_err(|_| B2ndError::Large);
        Ok(Self {
            blocksize: narrow(blocksize)?,
            chunksize: narrow(chunksize)?,
            nbytes: nbytes
                .filter(|len| i64::try_from(*len).is_ok())
                .ok_or(large)?,
        })
    }
}

pub(super) fn nd_metalayer(
    form: NdForm,
    shape: &[u64],
    chunk: &[u64],
    block: &[u64],
    dtype: &NumpyDtype,
) -> Result<Vec<u8>, B2ndError> {
    if chunk.len() != shape.len() || block.len() != shape.len() {
        return Err(B2ndError::Large);
    }
    let narrow = |extent: &u64| u32::try_from(*extent).map_err(|_| B2ndError::Large);
    let mut axes = NdMetalayerBuilder::default();
    for (&extent, (chunk, block)) in shape.iter().zip(chunk.iter().zip(block)) {
        axes.push_axis(extent, narrow(chunk)?, narrow(block)?)?;
    }
    Ok(match form {
        NdForm::B2nd => axes.finish_b2nd(DTYPE_NUMPY, &dtype.to_string())?,
        NdForm::Caterva => axes.finish_caterva()?,
    })
}

/// Encodes a trailer with these metalayers, each as a chunk.
pub(super) fn trailer<'a>(
    layers: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Result<Vec<u8>, B2ndError> {
    let mut trailer = MetalayersBuilder::default();
    for (name, body) in layers {
        let len = u32::try_from(body.len()).map_err(|_| B2ndError::Large)?;
        let chunk = ChunkEncoder::new(BloscCodec::Zstd, 1, len.max(1)).encode(body)?;
        trailer.push(name, &chunk)?;
    }
    Ok(trailer.finish_trailer())
}

/// Derives chunk and block shapes for an array.
fn partition(shape: &[u64], size: u64) -> (Vec<u64>, Vec<u64>) {
    let chunk = halved(shape, size, CHUNK_BYTES);
    let block = halved(&chunk, size, BLOCK_BYTES);
    (chunk, block)
}

/// Halves the longest axis until at most `max` bytes remain, which gives parts of similar extent
/// along all axes.
fn halved(from: &[u64], size: u64, max: u64) -> Vec<u64> {
    let mut extents = from.to_vec();
    loop {
        let bytes = extents.iter().copied().fold(size, u64::saturating_mul);
        let longest = extents.iter_mut().max_by_key(|extent| **extent);
        match longest {
            Some(extent) if bytes > max && *extent > 1 => *extent = extent.div_ceil(2),
            _ => return extents,
        }
    }
}
