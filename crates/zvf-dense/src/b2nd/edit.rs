//! Changes to existing frames.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use zvf_format::{
    b2nd::{FrameError, FrameHeader, FrameType, Metalayers, MetalayersBuilder, NdForm},
    numeric::{ByteOrder, Dtype},
};

use super::{
    B2nd, B2ndError,
    design::{self, Layout, Lengths},
    gather,
    index::{Index, ZEROS},
    open::{DEFAULT_BUDGET, DIRECTORY_FRAME},
    place::{ChunkLocation, file_name},
};
use crate::{
    ArrayView, ChunkGrid, DenseArray, DenseError, Hyperslab, NumpyDtype,
    array::checked_len,
    blosc::{BloscCodec, BloscFilter, ChunkEncoder, HEADER_LEN, Split},
    staged,
};

/// An editor that changes an array in place: elements, shape, and metalayers in the trailer.
///
/// Before [`commit`](Self::commit), existing bytes are never overwritten. New chunks are appended
/// to the file, followed by the index and the trailer on commit. The header, which locates
/// everything else, is written last. Until then, readers see the array without the changes, also
/// after a crash; appended bytes are then unreferenced. Replaced chunks stay in the file as dead
/// space; rewrite the array to reclaim it. In a sparse directory, new chunks are new files, and
/// unreferenced files are removed.
///
/// Only one process at a time may edit an array. Chunks are written with the codec and filters of
/// the frame, but with LZ4 in place of `BloscLZ` and LZ4HC, and without unsupported filters.
///
/// ```no_run
/// use zvf_dense::{Hyperslab, b2nd::B2ndEditor};
///
/// let mut editor = B2ndEditor::open("series.b2nd".as_ref())?;
/// editor.append(0, &[0; 4 * 256])?;
/// editor.commit()?;
/// # Ok::<(), zvf_dense::DenseError>(())
/// ```
#[derive(Debug)]
pub struct B2ndEditor {
    array: B2nd,
    path: PathBuf,
    /// The file of a contiguous frame. In a sparse directory, the frame file is replaced instead.
    file: Option<File>,
    layout: Layout,
    /// Metalayers of the header in their order. The array metalayer is rebuilt on commit.
    metalayers: Vec<(String, Vec<u8>)>,
    vlmetalayers: BTreeMap<String, Vec<u8>>,
    entries: Vec<u64>,
    /// Length of the file after its header; in a directory, the total length of all chunks.
    cbytes: u64,
    /// Chunk files that are unreferenced after the next commit.
    stale: Vec<u64>,
    next_file: u64,
}

impl B2ndEditor {
    /// Opens a file or a sparse directory for editing.
    ///
    /// # Errors
    ///
    /// If the path cannot be read or written, is not an array, or has a header that cannot be
    /// rewritten.
    pub fn open(path: &Path) -> Result<Self, DenseError> {
        Self::open_with_budget(path, DEFAULT_BUDGET)
    }

    /// Opens a file or a sparse directory for editing, with a memory limit of `budget` bytes.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub fn open_with_budget(path: &Path, budget: u64) -> Result<Self, DenseError> {
        let array = B2nd::open_with_budget(path, budget)?;
        let name = array.name.clone();
        let io = |error| DenseError::io(&name, error);
        let broken = |error: B2ndError| DenseError::b2nd(&name, error);
        let frame_path = match array.facts.frame_type {
            FrameType::Contiguous => path.to_owned(),
            FrameType::Sparse => path.join(DIRECTORY_FRAME),
        };
        let bytes = header_of(&frame_path, &array).map_err(io)?;
        let frame = |error: FrameError| broken(error.into());
        let header = FrameHeader::parse(&bytes).map_err(|error| frame(error.into()))?;
        let metalayers = Metalayers::parse(&bytes).map_err(|error| frame(error.into()))?;
        let spec = header.spec().ok_or_else(|| broken(B2ndError::Fixed))?;
        let chunks = array.grid.chunk_count().unwrap_or(u64::MAX);
        let needed = chunks.saturating_mul(8);
        if needed > array.budget {
            let budget = array.budget;
            return Err(DenseError::Budget { needed, budget });
        }
        let entries: Vec<u64> = match &array.index {
            Index::Each(entries) => entries.clone(),
            Index::Same(entry) => (0..chunks).map(|_| *entry).collect(),
        };
        let file = match array.facts.frame_type {
            FrameType::Contiguous => {
                let file = OpenOptions::new().read(true).write(true).open(path);
                Some(file.map_err(io)?)
            }
            FrameType::Sparse => None,
        };
        let numbers = entries.iter().filter(|entry| **entry >> 63 == 0);
        let cbytes = match &file {
            // Append after all existing bytes, including bytes outside the frame.
            Some(file) => {
                let len = file.metadata().map_err(io)?.len();
                len.saturating_sub(u64::from(array.facts.header_len))
            }
            None => array.facts.cbytes,
        };
        let layers = metalayers
            .iter()
            .map(|layer| (layer.name.to_owned(), layer.body.to_vec()));
        let vlmetalayers = array
            .vlmetalayers()
            .map(|(name, body)| (name.to_owned(), body.to_vec()));
        Ok(Self {
            path: path.to_owned(),
            file,
            layout: Layout {
                encoder: encoder(&array).map_err(broken)?,
                spec,
                metalayers: MetalayersBuilder::default(),
                trailer: Vec::new(),
            },
            metalayers: layers.collect(),
            vlmetalayers: vlmetalayers.collect(),
            next_file: numbers.max().map_or(0, |last| last.saturating_add(1)),
            entries,
            cbytes,
            stale: Vec::new(),
            array,
        })
    }

    /// Interprets the items of a Caterva array as `dtype`, to which elements are then converted.
    ///
    /// # Errors
    ///
    /// See [`B2nd::with_dtype`].
    pub fn with_dtype(mut self, dtype: NumpyDtype) -> Result<Self, DenseError> {
        self.array = self.array.with_dtype(dtype)?;
        Ok(self)
    }

    /// Returns the array with all changes so far.
    pub fn array(&self) -> &B2nd {
        &self.array
    }

    /// Writes `bytes`, in row-major order, to a selection. Partially selected chunks are read and
    /// merged.
    ///
    /// # Errors
    ///
    /// If the selection is not inside the array, the length of `bytes` does not match, or a chunk
    /// cannot be read or written. Chunks before the failing one are changed.
    pub fn update(&mut self, selection: &Hyperslab, bytes: &[u8]) -> Result<(), DenseError> {
        let needed = checked_len(&self.array, selection, bytes)?;
        let size = self.array.item_size();
        let grid = self.array.grid.clone();
        let mut cells = grid.chunks(selection);
        while let Some(parts) = cells.next() {
            let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
            let number = grid.chunk_number(&coordinate).unwrap_or(u64::MAX);
            let chunk = grid.chunk_selection(&coordinate);
            let axes = chunk.axes().iter().zip(parts);
            let is_whole = axes.fold(true, |whole, (axis, part)| {
                whole && axis.count() == part.count
            });
            let mut old = if is_whole {
                vec![0; self.array.byte_len(&chunk)?].into()
            } else {
                self.array.slice(&chunk)?
            };
            let put = gather::overlay(size, selection, bytes, &chunk, parts, &mut old);
            put.ok_or_else(|| DenseError::buffer_size(needed, bytes.len()))?;
            self.put(number, &chunk, &old)?;
        }
        Ok(())
    }

    /// Writes another array, of the shape of the selection, to a selection. Reads the part of one chunk
    /// at a time. Numbers are converted to the byte order of this array; Caterva arrays without a known
    /// type take any elements of their size.
    ///
    /// # Errors
    ///
    /// If the shape or the type differs, and as for [`update`](Self::update).
    pub fn update_from(
        &mut self,
        selection: &Hyperslab,
        source: &dyn DenseArray,
    ) -> Result<(), DenseError> {
        selection.check(self.array.shape())?;
        let source = self.converted(source)?;
        if selection.shape() != source.shape() {
            let (expected, given) = (selection.shape(), source.shape().to_vec());
            let error = B2ndError::OtherShape { expected, given };
            return Err(DenseError::b2nd(&self.array.name, error));
        }
        let grid = self.array.grid.clone();
        let mut cells = grid.chunks(selection);
        while let Some(parts) = cells.next() {
            let ranges: Vec<_> = parts
                .iter()
                .map(|part| part.at..part.at.saturating_add(part.count))
                .collect();
            let whole = Hyperslab::whole(source.shape());
            let within = |selection: &Hyperslab| -> Hyperslab {
                let axes = selection.axes().iter().zip(&ranges);
                axes.map(|(axis, range)| axis.portion(range.clone()))
                    .collect()
            };
            let bytes = source.slice_within(&within(&whole), source.scratch())?;
            self.update(&within(selection), &bytes)?;
        }
        Ok(())
    }

    /// Appends another array along an axis, with equal extents along the other axes; see
    /// [`update_from`](Self::update_from).
    ///
    /// # Errors
    ///
    /// If the shape or the type differs, and as for [`resize`](Self::resize) and
    /// [`update`](Self::update).
    pub fn append_from(&mut self, axis: usize, source: &dyn DenseArray) -> Result<(), DenseError> {
        let own = self.array.shape();
        let rows = source.shape().get(axis).copied();
        let (Some(rows), Some(_)) = (rows, own.get(axis)) else {
            return Err(self.no_axis(axis));
        };
        let expected: Vec<u64> = own
            .iter()
            .enumerate()
            .map(|(other, extent)| if other == axis { rows } else { *extent })
            .collect();
        if source.shape() != expected {
            let given = source.shape().to_vec();
            let error = B2ndError::OtherShape { expected, given };
            return Err(DenseError::b2nd(&self.array.name, error));
        }
        // Before the array grows, so that a failure changes nothing.
        self.converted(source)?;
        let added = self.grow(axis, rows)?;
        self.update_from(&added, source)
    }

    /// Extends the array by `rows` along an axis, and returns the selection of the new elements.
    fn grow(&mut self, axis: usize, rows: u64) -> Result<Hyperslab, DenseError> {
        let mut shape = self.array.shape().to_vec();
        let mut starts = vec![0; shape.len()];
        let (Some(start), Some(extent)) = (starts.get_mut(axis), shape.get_mut(axis)) else {
            return Err(self.no_axis(axis));
        };
        *start = *extent;
        *extent = extent.saturating_add(rows);
        self.resize(&shape)?;
        Ok(Hyperslab::new(&starts, &shape, None)?)
    }

    fn no_axis(&self, axis: usize) -> DenseError {
        let axes = self.array.shape().len();
        DenseError::b2nd(&self.array.name, B2ndError::NoAxis { axis, axes })
    }

    /// Returns the elements of another array in the type of this one.
    fn converted<'a>(&self, source: &'a dyn DenseArray) -> Result<ArrayView<'a>, DenseError> {
        let (own, given) = (self.array.dtype(), source.dtype());
        let is_opaque =
            self.array.form() == NdForm::Caterva && matches!(own, NumpyDtype::Opaque(_));
        let (number, other) = (own.number(), given.number());
        let is_equal = match (number, other) {
            _ if is_opaque => own.size() == given.size(),
            (Some(number), Some(other)) => number.kind() == other.kind(),
            _ => own == given,
        };
        if !is_equal {
            let (array, given) = (own.to_string(), given.to_string());
            let error = B2ndError::OtherDtype { array, given };
            return Err(DenseError::b2nd(&self.array.name, error));
        }
        let order = number.or(other).map_or(ByteOrder::Little, Dtype::order);
        ArrayView::with_order(source, Hyperslab::whole(source.shape()), order)
    }

    /// Changes the shape of the array. Elements outside the new shape are lost; new elements are
    /// zero.
    ///
    /// # Errors
    ///
    /// If the rank differs, the format does not allow the size, or a chunk at the edge cannot be
    /// read or written.
    pub fn resize(&mut self, shape: &[u64]) -> Result<(), DenseError> {
        let old = self.array.grid.clone();
        let name = self.array.name.clone();
        let broken = |error| DenseError::b2nd(&name, error);
        let chunk = old.chunk_shape().to_vec();
        let block = old.block_shape().unwrap_or_default().to_vec();
        let new = ChunkGrid::new(shape.to_vec(), chunk.clone(), Some(block.clone())).map_err(
            |source| DenseError::Grid {
                name: name.clone(),
                source,
            },
        )?;
        let typesize = self.array.facts.typesize;
        let lengths = Lengths::new(shape, &chunk, &block, typesize).map_err(broken)?;
        let chunks = new.chunk_count().unwrap_or(u64::MAX);
        let needed = chunks.saturating_mul(8);
        let budget = self.array.budget;
        if needed > budget {
            return Err(DenseError::Budget { needed, budget });
        }
        self.clear_edges(&old, &new)?;
        let mut kept = vec![false; self.entries.len()];
        let mut entries = Vec::new();
        for number in 0..chunks {
            let coordinate = new.chunk_coordinate(number);
            let from = coordinate.and_then(|at| old.chunk_number(&at));
            let from = from.and_then(|from| usize::try_from(from).ok());
            let entry = from.and_then(|from| {
                *kept.get_mut(from)? = true;
                self.entries.get(from)
            });
            entries.push(*entry.unwrap_or(&ZEROS));
        }
        let lost = self.entries.iter().zip(kept).filter(|(_, kept)| !kept);
        self.stale.extend(lost.map(|(entry, _)| *entry));
        self.entries.clone_from(&entries);
        self.array.index = Index::Each(entries);
        self.array.grid = new;
        self.array.facts.nbytes = lengths.nbytes;
        self.array.facts.chunksize = lengths.chunksize;
        self.layout.spec.nbytes = lengths.nbytes;
        self.layout.spec.chunksize = lengths.chunksize;
        Ok(())
    }

    /// Appends elements along an axis. `bytes` holds whole rows in row-major order, with the
    /// extents of the array along the other axes.
    ///
    /// # Errors
    ///
    /// If `bytes` is not a whole number of rows, and as for [`resize`](Self::resize) and
    /// [`update`](Self::update).
    pub fn append(&mut self, axis: usize, bytes: &[u8]) -> Result<(), DenseError> {
        let others = self.array.shape().iter().enumerate();
        let row = others
            .filter(|(other, _)| *other != axis)
            .map(|(_, extent)| *extent)
            .fold(u64::from(self.array.facts.typesize), u64::saturating_mul);
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let rows = len
            .checked_div(row)
            .filter(|rows| rows.saturating_mul(row) == len)
            .ok_or_else(|| {
                let needed = usize::try_from(row).unwrap_or(usize::MAX);
                DenseError::buffer_size(needed, bytes.len())
            })?;
        let added = self.grow(axis, rows)?;
        self.update(&added, bytes)
    }

    /// Sets a metalayer of the header to other content of the same length.
    ///
    /// # Errors
    ///
    /// [`B2ndError::NoLayer`] and [`B2ndError::LayerLen`].
    pub fn set_metalayer(&mut self, name: &str, body: &[u8]) -> Result<(), DenseError> {
        let form = self.array.form().name();
        let mut layers = self.metalayers.iter_mut();
        let error = match layers.find(|(layer, _)| layer == name && layer != form) {
            Some((_, old)) if old.len() == body.len() => {
                body.clone_into(old);
                return Ok(());
            }
            Some((name, old)) => B2ndError::LayerLen {
                name: name.clone(),
                len: old.len(),
                given: body.len(),
            },
            None => B2ndError::NoLayer(name.to_owned()),
        };
        Err(DenseError::b2nd(&self.array.name, error))
    }

    /// Sets a metalayer of the trailer; `None` removes it.
    pub fn set_vlmetalayer(&mut self, name: &str, body: Option<&[u8]>) {
        match body {
            Some(body) => {
                self.vlmetalayers.insert(name.to_owned(), body.to_vec());
            }
            None => {
                self.vlmetalayers.remove(name);
            }
        }
    }

    /// Makes all changes visible.
    ///
    /// # Errors
    ///
    /// If the frame cannot be written. Either all changes are visible afterwards, or none.
    pub fn commit(mut self) -> Result<(), DenseError> {
        self.publish()?;
        let name = self.array.name.clone();
        let io = |error| DenseError::io(&name, error);
        if self.file.is_none() && self.renumber().map_err(io)? {
            self.publish()?;
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), DenseError> {
        let name = self.array.name.clone();
        let broken = |error| DenseError::b2nd(&name, error);
        if self.file.is_none() {
            let bytes = self.bytes_of_files();
            self.cbytes = bytes.map_err(|error| DenseError::io(&name, error))?;
        }
        let (header, tail) = self.frame().map_err(broken)?;
        let published = match &mut self.file {
            Some(file) => {
                let end = u64::from(self.array.facts.header_len).saturating_add(self.cbytes);
                publish(file, end, &tail, &header)
            }
            None => self.publish_directory(&header, &tail),
        };
        published.map_err(|error| DenseError::io(&name, error))
    }

    /// Returns the total length of all chunk files of a directory.
    fn bytes_of_files(&self) -> io::Result<u64> {
        let numbers = self
            .entries
            .iter()
            .filter_map(|entry| u32::try_from(*entry).ok());
        let lens = numbers.map(|number| Ok(fs::metadata(self.path.join(file_name(number)))?.len()));
        lens.sum()
    }

    /// Renumbers chunk files that have too high a number, and returns whether there were any.
    /// c-blosc2 treats file numbers as offsets into the total length of all chunks, and rejects a
    /// directory if the header of a chunk would end after it. Numbers of replaced files become free
    /// only after a commit.
    fn renumber(&mut self) -> io::Result<bool> {
        let header = u64::try_from(HEADER_LEN).unwrap_or(u64::MAX);
        let max = self.cbytes.saturating_sub(header);
        let had = self.stale.len();
        let mut free = 0;
        for entry in &mut self.entries {
            if *entry <= max || *entry >> 63 == 1 {
                continue;
            }
            let high = u32::try_from(*entry).map_err(|_| io::ErrorKind::FileTooLarge)?;
            let bytes = fs::read(self.path.join(file_name(high)))?;
            let low = create_file(&self.path, &mut free, &bytes)?;
            self.stale.push(core::mem::replace(entry, low));
        }
        Ok(self.stale.len() > had)
    }

    /// Encodes the new header and tail.
    fn frame(&mut self) -> Result<(Vec<u8>, Vec<u8>), B2ndError> {
        let grid = &self.array.grid;
        let form = self.array.form();
        let block = grid.block_shape().unwrap_or_default();
        let dtype = &self.array.dtype;
        let nd = design::nd_metalayer(form, grid.shape(), grid.chunk_shape(), block, dtype)?;
        self.layout.metalayers = MetalayersBuilder::default();
        for (name, body) in &self.metalayers {
            let is_nd = name == form.name();
            // Keep the item type as written, so that the length of the header does not change.
            let body = if is_nd {
                with_axes(&nd, body)
            } else {
                body.clone()
            };
            self.layout.metalayers.push(name, &body)?;
        }
        let layers = self
            .vlmetalayers
            .iter()
            .map(|(name, body)| (name.as_str(), body.as_slice()));
        self.layout.trailer = design::trailer(layers)?;
        self.layout.spec.has_vlmetalayers = !self.vlmetalayers.is_empty();
        let tail = self.layout.tail(&self.entries)?;
        let header = self.layout.header(self.cbytes, &tail)?;
        if u32::try_from(header.len()) != Ok(self.array.facts.header_len) {
            return Err(B2ndError::Fixed);
        }
        Ok((header, tail))
    }

    fn publish_directory(&mut self, header: &[u8], tail: &[u8]) -> io::Result<()> {
        let path = self.path.join(DIRECTORY_FRAME);
        let mut file = staged::create(&path)?;
        file.write_all(header)?;
        file.write_all(tail)?;
        staged::publish(file, &path)?;
        let mut stale: BTreeSet<u64> = core::mem::take(&mut self.stale).into_iter().collect();
        for named in &self.entries {
            stale.remove(named);
        }
        for number in stale {
            if let Ok(number) = u32::try_from(number) {
                // The file is unreferenced; a failure to remove it is harmless.
                fs::remove_file(self.path.join(file_name(number))).ok();
            }
        }
        Ok(())
    }

    /// Zeroes the padding of chunks at the old edge, if the new shape would expose it.
    fn clear_edges(&mut self, old: &ChunkGrid, new: &ChunkGrid) -> Result<(), DenseError> {
        let mut cells = old.chunks(&Hyperslab::whole(old.shape()));
        while let Some(parts) = cells.next() {
            let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
            let had = old.chunk_selection(&coordinate);
            let has = new.chunk_selection(&coordinate);
            let mut axes = had.axes().iter().zip(has.axes());
            let is_kept = new.chunk_number(&coordinate).is_some();
            if !is_kept || axes.all(|(had, has)| has.count() <= had.count()) {
                continue;
            }
            let number = old.chunk_number(&coordinate).unwrap_or(u64::MAX);
            let at = usize::try_from(number).ok();
            if at.and_then(|at| self.entries.get(at)) == Some(&ZEROS) {
                continue;
            }
            let bytes = self.array.slice(&had)?;
            self.put(number, &had, &bytes)?;
        }
        Ok(())
    }

    /// Rewrites a chunk with these elements of the array.
    fn put(&mut self, number: u64, chunk: &Hyperslab, bytes: &[u8]) -> Result<(), DenseError> {
        let name = self.array.name.clone();
        let broken = |error| DenseError::b2nd(&name, error);
        let needed = u64::from(self.array.facts.chunksize);
        let budget = self.array.budget;
        let len = usize::try_from(needed)
            .ok()
            .filter(|_| needed <= budget)
            .ok_or(DenseError::Budget { needed, budget })?;
        let mut blocks = vec![0; len];
        let size = self.array.item_size();
        let shape = chunk.shape();
        let gathered = gather::blocks(&self.array.grid, size, &shape, bytes, &mut blocks);
        gathered.ok_or_else(|| DenseError::buffer_size(len, bytes.len()))?;
        let entry = if blocks.iter().all(|byte| *byte == 0) {
            ZEROS
        } else {
            let encoded = self
                .layout
                .encoder
                .encode(&blocks)
                .map_err(|error| broken(error.into()))?;
            self.store(&encoded)
                .map_err(|error| DenseError::io(&name, error))?
        };
        let at = usize::try_from(number).ok();
        let slot = at
            .and_then(|at| self.entries.get_mut(at))
            .ok_or_else(|| broken(B2ndError::Order { chunk: number }))?;
        self.stale.push(core::mem::replace(slot, entry));
        if let Index::Same(_) = self.array.index {
            self.array.index = Index::Each(self.entries.clone());
        } else if let (Index::Each(entries), Some(at)) = (&mut self.array.index, at)
            && let Some(slot) = entries.get_mut(at)
        {
            *slot = entry;
        }
        Ok(())
    }

    /// Appends an encoded chunk and returns its index entry.
    fn store(&mut self, encoded: &[u8]) -> io::Result<u64> {
        let len = u64::try_from(encoded.len()).unwrap_or(u64::MAX);
        let at = match &mut self.file {
            Some(file) => {
                let head = u64::from(self.array.facts.header_len);
                file.seek(SeekFrom::Start(head.saturating_add(self.cbytes)))?;
                file.write_all(encoded)?;
                if let ChunkLocation::Frame { chunks, .. } = &mut self.array.place {
                    chunks.end = head.saturating_add(self.cbytes).saturating_add(len);
                }
                self.cbytes
            }
            None => create_file(&self.path, &mut self.next_file, encoded)?,
        };
        self.cbytes = self.cbytes.saturating_add(len);
        Ok(at)
    }
}

/// Writes a chunk to a new file of a directory, under the next free number, and returns the number.
fn create_file(folder: &Path, next: &mut u64, encoded: &[u8]) -> io::Result<u64> {
    loop {
        let number = *next;
        *next = next.saturating_add(1);
        let name = u32::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let path = folder.join(file_name(name));
        match OpenOptions::new().write(true).create_new(true).open(path) {
            // The file belongs to another chunk or to an interrupted edit.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => {
                let mut file = file?;
                file.write_all(encoded)?;
                file.sync_all()?;
                return Ok(number);
            }
        }
    }
}

/// Writes the tail at `end` and syncs it to disk before the header is written.
fn publish(file: &mut File, end: u64, tail: &[u8], header: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(end))?;
    file.write_all(tail)?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(header)?;
    file.sync_all()
}

/// Reads the header of the frame again.
fn header_of(path: &Path, array: &B2nd) -> io::Result<Vec<u8>> {
    let len = usize::try_from(array.facts.header_len).unwrap_or(usize::MAX);
    let mut bytes = vec![0; len];
    File::open(path)?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Combines the axes of one array metalayer with the item type of another.
fn with_axes(axes: &[u8], dtype: &[u8]) -> Vec<u8> {
    let rank = usize::from(*axes.get(2).unwrap_or(&0));
    // Three bytes, three list headers, and 19 bytes of markers and numbers per axis.
    let end = rank.saturating_mul(19).saturating_add(6);
    let (head, rest) = (axes.get(..end), dtype.get(end..));
    [head.unwrap_or_default(), rest.unwrap_or_default()].concat()
}

/// Creates an encoder with the parameters of the frame, as far as encoding supports them.
fn encoder(array: &B2nd) -> Result<ChunkEncoder, B2ndError> {
    let facts = &array.facts;
    let codec = match facts.codec {
        4 => BloscCodec::Zlib,
        5 => BloscCodec::Zstd,
        _ => BloscCodec::Lz4,
    };
    let filters: Vec<BloscFilter> = facts
        .filters
        .iter()
        .filter_map(|(filter, meta)| {
            let all = [
                BloscFilter::Shuffle,
                BloscFilter::BitShuffle,
                BloscFilter::Delta,
                BloscFilter::ByteDelta,
                BloscFilter::TruncPrec(meta.cast_signed()),
            ];
            all.into_iter().find(|known| known.numbers().0 == *filter)
        })
        .collect();
    let encoder = ChunkEncoder::new(codec, facts.typesize, facts.blocksize)
        .with_level(facts.level)
        .with_split(Split::Auto);
    Ok(encoder.with_filters(&filters)?)
}
