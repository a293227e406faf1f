//! How an array is to be written.

use serde_json::Value;
use zvf_format::b2nd::{
    DTYPE_NUMPY, FrameSpec, FrameType, MetalayersBuilder, NdForm, NdMetalayerBuilder,
};

use super::{B2ndError, attributes, layers::Layer};
use crate::{
    ChunkGrid, Dtype,
    blosc::{BloscCodec, BloscFilter, ChunkEncoder, Split, slots},
};

/// Bytes of a block that fits the cache next to a core.
const BLOCK_BYTES: u64 = 32 << 10;
/// Bytes of a chunk that is worth a request.
const CHUNK_BYTES: u64 = 2 << 20;

/// What an array is, and how its chunks are encoded.
///
/// ```
/// use zvf_dense::{Dtype, b2nd::B2ndDesign, blosc::{BloscCodec, BloscFilter}};
///
/// let design = B2ndDesign::new(&[400, 300], Dtype::parse("<f4")?)
///     .with_chunks(&[100, 100], &[20, 50])
///     .with_codec(BloscCodec::Zstd, 3)
///     .with_filters(&[BloscFilter::BitShuffle]);
/// # Ok::<(), zvf_dense::DtypeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct B2ndDesign {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    block: Vec<u64>,
    dtype: Dtype,
    form: NdForm,
    codec: BloscCodec,
    level: u8,
    filters: Vec<BloscFilter>,
    split: Split,
    metalayers: Vec<Layer>,
    vlmetalayers: Vec<Layer>,
}

impl B2ndDesign {
    /// An array of Blosc2, compressed with LZ4 after a shuffle, in chunks and
    /// blocks that suit its shape.
    pub fn new(shape: &[u64], dtype: Dtype) -> Self {
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

    /// Cut into these chunks and blocks.
    #[must_use]
    pub fn with_chunks(mut self, chunk: &[u64], block: &[u64]) -> Self {
        self.chunk = chunk.to_vec();
        self.block = block.to_vec();
        self
    }

    /// Cut into these chunks, and they into blocks that suit them.
    #[must_use]
    pub fn with_chunk_shape(mut self, chunk: &[u64]) -> Self {
        self.block = halved(chunk, self.dtype.size(), BLOCK_BYTES);
        self.chunk = chunk.to_vec();
        self
    }

    /// With this codec, at level 0 (raw) to 9.
    #[must_use]
    pub fn with_codec(mut self, codec: BloscCodec, level: u8) -> Self {
        self.codec = codec;
        self.level = level;
        self
    }

    /// With these filters, the first one applied first.
    #[must_use]
    pub fn with_filters(mut self, filters: &[BloscFilter]) -> Self {
        self.filters = filters.to_vec();
        self
    }

    /// With blocks split in this way.
    #[must_use]
    pub fn with_split(mut self, split: Split) -> Self {
        self.split = split;
        self
    }

    /// For Caterva, which does not keep what items are, only how long.
    #[must_use]
    pub fn for_caterva(mut self) -> Self {
        self.form = NdForm::Caterva;
        self
    }

    /// With a metalayer in the header, whose length is for ever.
    #[must_use]
    pub fn with_metalayer(mut self, name: &str, body: &[u8]) -> Self {
        self.metalayers.push(Layer::new(name, body.to_vec()));
        self
    }

    /// With an attribute: a metalayer in the trailer, of at most 31 bytes of name.
    ///
    /// # Errors
    ///
    /// [`B2ndError::Large`] when it takes 4 GiB or more.
    pub fn with_attribute(self, name: &str, value: &Value) -> Result<Self, B2ndError> {
        let body = attributes::encode(value).ok_or(B2ndError::Large)?;
        Ok(self.with_vlmetalayer(name, &body))
    }

    /// With a metalayer in the trailer.
    #[must_use]
    pub fn with_vlmetalayer(mut self, name: &str, body: &[u8]) -> Self {
        self.vlmetalayers.push(Layer::new(name, body.to_vec()));
        self
    }

    /// What an element is.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// Its shape, and how it is cut.
    ///
    /// # Errors
    ///
    /// When the shapes do not go together.
    pub fn grid(&self) -> Result<ChunkGrid, crate::ChunkGridError> {
        let block = Some(self.block.clone());
        ChunkGrid::new(self.shape.clone(), self.chunk.clone(), block)
    }

    /// The lengths and parts that are the same for all chunks.
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

/// What is the same for all chunks of a frame that is written.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) spec: FrameSpec,
    pub(super) encoder: ChunkEncoder,
    pub(super) metalayers: MetalayersBuilder,
    pub(super) trailer: Vec<u8>,
}

/// Decoded lengths of blocks, chunks and all.
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
        /// Both leave room for a header within 31 bits.
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
        let chunksize = blocks.and_then(|blocks| blocks.checked_mul(blocksize));
        let chunksize = chunksize.filter(|len| *len <= MAX_CHUNK);
        let chunksize = chunksize.ok_or(large.clone())?;
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
    dtype: &Dtype,
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

/// A trailer with these metalayers, each a chunk.
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

/// Chunks and blocks for an array of this shape.
fn partition(shape: &[u64], size: u64) -> (Vec<u64>, Vec<u64>) {
    let chunk = halved(shape, size, CHUNK_BYTES);
    let block = halved(&chunk, size, BLOCK_BYTES);
    (chunk, block)
}

/// Halves the longest axis until no more than `most` bytes are left, so that the
/// parts are about as long everywhere.
fn halved(from: &[u64], size: u64, most: u64) -> Vec<u64> {
    let mut extents = from.to_vec();
    loop {
        let bytes = extents.iter().copied().fold(size, u64::saturating_mul);
        let longest = extents.iter_mut().max_by_key(|extent| **extent);
        match longest {
            Some(extent) if bytes > most && *extent > 1 => *extent = extent.div_ceil(2),
            _ => return extents,
        }
    }
}
