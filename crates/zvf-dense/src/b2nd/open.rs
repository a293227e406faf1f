//! Opening of arrays.

use std::{path::Path, sync::Arc};

use serde_json::{Map, Value};
use zvf_format::b2nd::{
    DTYPE_NUMPY, FrameError, FrameHeader, FrameType, HEADER_LEN, Metalayers, NdError, NdForm,
    NdMetalayer, TRAILER_TAIL_LEN, Trailer, TrailerTail,
};

use super::{
    B2ndError, attributes,
    index::{Entry, Index, IndexError},
    layers::{self, Layer},
    place::ChunkLocation,
};
use crate::{
    ByteSource, ChunkGrid, DenseArray, DenseError, FileSource, Hyperslab, NumpyDtype, ReadCost,
    blosc::{BloscChunk, Decoder},
};

/// Maximum total length of variable-length metalayers, which are decoded when an array is opened. A
/// few bytes can stand for a gibibyte of zeros.
const MAX_LAYERS: u64 = 64 << 20;
/// Default memory limit of a read: 4 GiB.
pub const DEFAULT_BUDGET: u64 = 1 << 32;

/// Name of the frame file in a sparse directory.
pub const DIRECTORY_FRAME: &str = "chunks.b2frame";

/// A Blosc2 or Caterva array.
///
/// ```no_run
/// use zvf_dense::{DenseArray, Hyperslab, b2nd::B2nd};
///
/// let volume = B2nd::open("volume.b2nd".as_ref())?;
/// let plane = Hyperslab::new(&[5, 0, 0], &[6, 256, 256], None)?;
/// let bytes = volume.slice(&plane)?;
/// # Ok::<(), zvf_dense::DenseError>(())
/// ```
#[derive(Debug)]
pub struct B2nd {
    pub(super) name: String,
    pub(super) place: ChunkLocation,
    pub(super) facts: FrameFacts,
    pub(super) grid: ChunkGrid,
    pub(super) dtype: NumpyDtype,
    pub(super) index: Index,
    form: NdForm,
    metalayers: Vec<Layer>,
    vlmetalayers: Vec<Layer>,
    attributes: Map<String, Value>,
    pub(super) budget: u64,
}

/// The header of a frame. Codec and filters are the defaults of the writer; each chunk has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameFacts {
    /// Location of the chunks: in the frame, or in separate files.
    pub frame_type: FrameType,
    /// Version of the frame format.
    pub version: u8,
    /// Length of the header in bytes.
    pub header_len: u32,
    /// Length of the frame in bytes.
    pub frame_len: u64,
    /// Number of the codec.
    pub codec: u8,
    /// Compression level.
    pub level: u8,
    /// Numbers and parameters of the filters, in the order of their application.
    pub filters: Vec<(u8, u8)>,
    /// Length of an item in bytes.
    pub typesize: u32,
    /// Decoded length of a block in bytes.
    pub blocksize: u32,
    /// Decoded length of a chunk in bytes.
    pub chunksize: u32,
    /// Decoded length of all chunks in bytes.
    pub nbytes: u64,
    /// Stored length of all chunks in bytes.
    pub cbytes: u64,
    /// Chunks have dictionaries.
    pub uses_dictionary: bool,
}

impl FrameFacts {
    fn new(header: FrameHeader<'_>) -> Self {
        let filters = header
            .filters()
            .iter()
            .zip(header.filter_metas())
            .filter(|(filter, _)| **filter != 0);
        Self {
            frame_type: header.frame_type(),
            version: header.version(),
            header_len: header.header_len(),
            frame_len: header.frame_len(),
            codec: header.user_codec(),
            level: header.level(),
            filters: filters.map(|(filter, meta)| (*filter, *meta)).collect(),
            typesize: header.typesize(),
            blocksize: header.blocksize(),
            chunksize: header.chunksize(),
            nbytes: header.nbytes(),
            cbytes: header.cbytes(),
            uses_dictionary: header.uses_dictionary(),
        }
    }
}

impl B2nd {
    /// Opens a file or a sparse directory.
    ///
    /// Reads the header, the trailer and the chunk index.
    ///
    /// # Errors
    ///
    /// If the path cannot be read, or is not an array.
    pub fn open(path: &Path) -> Result<Self, DenseError> {
        Self::open_with_budget(path, DEFAULT_BUDGET)
    }

    /// Opens a file or a sparse directory with a memory limit of `budget` bytes; see
    /// [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub fn open_with_budget(path: &Path, budget: u64) -> Result<Self, DenseError> {
        if path.is_dir() {
            let frame = FileSource::open(&path.join(DIRECTORY_FRAME))?;
            let opened = OpenFrame::read(&frame, 0, FrameType::Sparse, budget)?;
            let name = path.display().to_string();
            return Ok(opened.array(name, ChunkLocation::Directory(path.to_owned()), budget));
        }
        Self::from_source(Arc::new(FileSource::open(path)?), 0, budget)
    }

    /// Opens the frame at `offset` of a source: memory, a mapped file, or a container that embeds a
    /// frame.
    ///
    /// # Errors
    ///
    /// If the source cannot be read, or has no array at `offset`.
    pub fn from_source(
        source: Arc<dyn ByteSource>,
        offset: u64,
        budget: u64,
    ) -> Result<Self, DenseError> {
        let opened = OpenFrame::read(&*source, offset, FrameType::Contiguous, budget)?;
        let start = offset.saturating_add(u64::from(opened.facts.header_len));
        let chunks = start..start.saturating_add(opened.facts.cbytes);
        let name = source.name().to_owned();
        Ok(opened.array(name, ChunkLocation::Frame { source, chunks }, budget))
    }

    /// Decodes all stored blocks with elements of the array, one chunk at a time. Calls `broken` with
    /// each damaged chunk and the error. Chunks that share one index entry are damaged alike, and only
    /// the first is decoded.
    pub fn verify(&self, broken: &mut dyn FnMut(u64, DenseError)) {
        let shares_entry = matches!(self.index, Index::Same(_));
        let mut cells = self.grid.chunks(&Hyperslab::whole(self.grid.shape()));
        let mut chunk = 0_u64;
        while let Some(parts) = cells.next() {
            let is_stored = !matches!(self.index.get(chunk), Ok(Entry::Special(_)));
            if is_stored {
                let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
                let selection = self.grid.chunk_selection(&coordinate);
                if let Err(error) = self.slice(&selection) {
                    broken(chunk, error);
                }
            }
            if shares_entry {
                return;
            }
            chunk = chunk.saturating_add(1);
        }
    }

    /// Returns the header of the frame.
    pub fn facts(&self) -> &FrameFacts {
        &self.facts
    }

    /// Returns the form of the array. Caterva does not store the item type, so its items are opaque
    /// bytes.
    pub fn form(&self) -> NdForm {
        self.form
    }

    /// Interprets the items of a Caterva array as `dtype`.
    ///
    /// # Errors
    ///
    /// If the size differs, or the array records another type.
    pub fn with_dtype(mut self, dtype: NumpyDtype) -> Result<Self, DenseError> {
        let typesize = self.facts.typesize;
        let size = dtype.size();
        let error = if self.form == NdForm::B2nd && dtype != self.dtype {
            B2ndError::OtherDtype {
                array: self.dtype.to_string(),
                given: dtype.to_string(),
            }
        } else if size != u64::from(typesize) {
            B2ndError::Typesize {
                typesize,
                dtype: size,
            }
        } else {
            self.dtype = dtype;
            return Ok(self);
        };
        Err(DenseError::b2nd(&self.name, error))
    }

    /// Iterates over the user metalayers of the header: names and bodies.
    pub fn metalayers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        layers::pairs(&self.metalayers)
    }

    /// Iterates over the variable-length metalayers: names and decoded bodies.
    pub fn vlmetalayers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        layers::pairs(&self.vlmetalayers)
    }
}

/// An opened frame without the location of its chunks.
struct OpenFrame {
    facts: FrameFacts,
    grid: ChunkGrid,
    dtype: NumpyDtype,
    form: NdForm,
    index: Index,
    metalayers: Vec<Layer>,
    vlmetalayers: Vec<Layer>,
}

impl OpenFrame {
    fn read(
        source: &dyn ByteSource,
        offset: u64,
        kind: FrameType,
        budget: u64,
    ) -> Result<Self, DenseError> {
        let name = source.name();
        let broken = |error: B2ndError| DenseError::b2nd(name, error);
        let frame = |error: FrameError| broken(error.into());
        let left = source.len().saturating_sub(offset);
        let read = |start: u64, len: u64| {
            // A file that ends early is a damaged frame, not an I/O error.
            let end = start
                .checked_add(len)
                .filter(|end| *end <= left)
                .ok_or_else(|| frame(FrameError::Truncated))?;
            source.read(offset.saturating_add(start)..offset.saturating_add(end))
        };
        let fixed = read(0, HEADER_LEN)?;
        let header = FrameHeader::parse(&fixed).map_err(|error| frame(error.into()))?;
        match (kind, header.frame_type()) {
            (FrameType::Contiguous, FrameType::Sparse) => return Err(broken(B2ndError::Sparse)),
            (FrameType::Sparse, FrameType::Contiguous) => {
                return Err(broken(B2ndError::Contiguous));
            }
            _ => {}
        }
        if header.frame_len() > left {
            return Err(frame(FrameError::Truncated));
        }
        let head = read(0, u64::from(header.header_len()))?;
        let metalayers = Metalayers::parse(&head).map_err(|error| frame(error.into()))?;
        let nd = nd(header, &metalayers).map_err(broken)?;
        let dtype = dtype(name, &nd, header.typesize())?;
        let wide = |extents: &mut dyn Iterator<Item = u32>| extents.map(u64::from).collect();
        let grid = ChunkGrid::new(
            nd.shape().iter().collect(),
            wide(&mut nd.chunk_shape().iter()),
            Some(wide(&mut nd.block_shape().iter())),
        )
        .map_err(|source| DenseError::Grid {
            name: name.to_owned(),
            source,
        })?;

        // The chunks are followed by the index and the trailer.
        let rest = header.chunks_span().end;
        let tail_start = header.frame_len().saturating_sub(TRAILER_TAIL_LEN);
        let tail = read(tail_start, TRAILER_TAIL_LEN)?;
        let tail = TrailerTail::parse(&tail).map_err(|error| frame(error.into()))?;
        let trailer_len = tail.trailer_len();
        let index_len = header
            .frame_len()
            .checked_sub(rest)
            .and_then(|len| len.checked_sub(u64::from(trailer_len)))
            .ok_or_else(|| frame(FrameError::TrailerLen(trailer_len)))?;
        let trailer = read(rest.saturating_add(index_len), u64::from(trailer_len))?;
        let trailer = Trailer::parse(&trailer).map_err(|error| frame(error.into()))?;
        let index_chunk = read(rest, index_len)?;
        let index =
            Index::parse(&index_chunk, header.chunk_count(), budget).map_err(
                |error| match error {
                    IndexError::Frame(error) => broken(error),
                    IndexError::Budget(needed) => DenseError::Budget { needed, budget },
                },
            )?;

        let kept = metalayers
            .iter()
            .filter(|layer| layer.name != nd.form().name());
        Ok(Self {
            facts: FrameFacts::new(header),
            grid,
            dtype,
            form: nd.form(),
            index,
            metalayers: kept.map(Layer::copied).collect(),
            vlmetalayers: vlmetalayers(name, trailer, budget)?,
        })
    }

    fn array(self, name: String, place: ChunkLocation, budget: u64) -> B2nd {
        B2nd {
            name,
            place,
            facts: self.facts,
            grid: self.grid,
            dtype: self.dtype,
            index: self.index,
            form: self.form,
            metalayers: self.metalayers,
            attributes: attributes::of(&self.vlmetalayers),
            vlmetalayers: self.vlmetalayers,
            budget,
        }
    }
}

/// Parses the array metalayer: of Blosc2, or else of Caterva.
fn nd<'a>(
    header: FrameHeader<'_>,
    metalayers: &Metalayers<'a>,
) -> Result<NdMetalayer<'a>, B2ndError> {
    let mut forms = [NdForm::B2nd, NdForm::Caterva].into_iter();
    let found = forms.find_map(|form| Some((form, metalayers.get(form.name())?)));
    let (form, body) = found.ok_or(B2ndError::NoArray)?;
    let nd = NdMetalayer::parse(form, body).map_err(NdError::from)?;
    nd.check(&header).map_err(NdError::from)?;
    match nd.dtype_format() {
        Some(format) if format != DTYPE_NUMPY => Err(B2ndError::DtypeFormat(format)),
        _ => Ok(nd),
    }
}

fn dtype(name: &str, nd: &NdMetalayer<'_>, typesize: u32) -> Result<NumpyDtype, DenseError> {
    let dtype = match nd.dtype() {
        Some(text) => NumpyDtype::parse(text),
        None => NumpyDtype::parse(&format!("|V{typesize}")),
    };
    let dtype = dtype.map_err(|source| DenseError::Dtype {
        name: name.to_owned(),
        source,
    })?;
    if dtype.size() != u64::from(typesize) {
        let dtype = dtype.size();
        let error = B2ndError::Typesize { typesize, dtype };
        return Err(DenseError::b2nd(name, error));
    }
    Ok(dtype)
}

/// Decodes the metalayers of a trailer; their total length may exceed neither the budget nor
/// [`MAX_LAYERS`].
fn vlmetalayers(name: &str, trailer: Trailer<'_>, budget: u64) -> Result<Vec<Layer>, DenseError> {
    let mut decoder = Decoder::default();
    let mut left = budget.min(MAX_LAYERS);
    let decoded = trailer.metalayers().iter().map(|layer| {
        let broken = |source| {
            let name_of_layer = layer.name.to_owned();
            let error = B2ndError::Layer {
                name: name_of_layer,
                source,
            };
            DenseError::b2nd(name, error)
        };
        let chunk = BloscChunk::parse(layer.body).map_err(broken)?;
        let needed = u64::from(chunk.header().nbytes());
        let within = left.checked_sub(needed);
        left = within.ok_or_else(|| {
            if budget < MAX_LAYERS {
                DenseError::Budget { needed, budget }
            } else {
                DenseError::b2nd(name, B2ndError::Layers(MAX_LAYERS))
            }
        })?;
        let len = usize::try_from(needed).unwrap_or(usize::MAX);
        let mut body = vec![0; len];
        let typesize = u32::from(chunk.header().typesize());
        let decoded = chunk.decode(typesize, &mut decoder, &mut body);
        decoded.map_err(broken)?;
        Ok(Layer::new(layer.name, body))
    });
    decoded.collect()
}

impl DenseArray for B2nd {
    fn name(&self) -> &str {
        &self.name
    }

    fn dtype(&self) -> &NumpyDtype {
        &self.dtype
    }

    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    fn budget(&self) -> u64 {
        self.budget
    }

    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        self.plan(selection)
    }

    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError> {
        self.read(selection, into)
    }
}
