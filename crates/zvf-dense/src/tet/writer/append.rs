//! Addition of datasets to a file.

use std::{collections::HashMap, path::Path, sync::Arc};

use super::{Compression, DatasetSpec, EncodedTile, TetWriter, WriteOptions, crc};
use crate::{
    DenseArray, DenseError, FileSource,
    error::TetError,
    tet::{TetFile, TetOptions, array::StoredTile},
};

impl TetWriter {
    /// Starts a file with the datasets of the file at `path`, followed by `datasets`. It replaces
    /// the file at `path` when it is finished.
    ///
    /// The index precedes the payloads and grows, so the whole file is rewritten; payloads are
    /// copied in their stored form. Metadata and history are kept, and memory limits too unless
    /// `options` sets one. Zone maps and secondary indexes, which only derive from the data, are
    /// dropped.
    ///
    /// The id of the first new dataset is the number of existing datasets.
    ///
    /// # Errors
    ///
    /// If the file is invalid, has unnamed datasets or duplicate names, or has a dataset with a new
    /// name; if a payload differs from its checksum.
    pub fn append(
        path: &Path,
        datasets: Vec<DatasetSpec>,
        options: WriteOptions,
    ) -> Result<Self, DenseError> {
        let source = Arc::new(FileSource::open(path)?);
        let file = TetFile::open(source, TetOptions::default())?;
        let mut options = options;
        if options.memory_budget_bytes == 0 && options.memory_budget_bps == 0 {
            options.memory_budget_bytes = file.memory_budget_bytes();
            options.memory_budget_bps = file.memory_budget_bps();
        }
        let mut metadata = serde_json::Map::new();
        if let Some(footer) = file.footer() {
            options.checksums |= footer.checksums.is_some();
            let mut history = footer.history.clone();
            history.append(&mut options.history);
            options.history = history;
            metadata = footer.metadata.clone().unwrap_or_default();
        }
        let present = file.datasets().iter().map(|info| {
            let grid = info.grid();
            // Attributes and dimension names come from the metadata.
            DatasetSpec::new(info.name(), info.dtype(), grid.shape(), grid.chunk_shape())
                .compressed(Compression::Raw)
        });
        let specs = present.chain(datasets).collect();
        let mut writer = Self::start(path, specs, options, metadata)?;
        let checksums = checksums(&file)?;
        for id in 0..file.datasets().len() {
            writer.copy(&file, id, &checksums)?;
        }
        Ok(writer)
    }

    /// Copies the payloads of a dataset in their stored form. They get new checksums, so those of
    /// the file are compared.
    fn copy(
        &mut self,
        file: &TetFile,
        id: usize,
        checksums: &HashMap<(usize, u64), u32>,
    ) -> Result<(), DenseError> {
        self.turn_to(id)?;
        let Some(array) = file.dataset_at(id) else {
            return Ok(());
        };
        let chunks = array.grid().chunk_count().unwrap_or(u64::MAX);
        for number in 0..chunks {
            let StoredTile {
                bytes,
                raw_len,
                is_zstd,
            } = array.stored(number)?;
            let expected = checksums.get(&(id, number));
            if expected.is_some_and(|expected| crc(&bytes) != *expected) {
                let coordinate = array.coordinate(number);
                return Err(self.tet(TetError::Checksum {
                    dataset: id,
                    coordinate,
                }));
            }
            let encoded = EncodedTile {
                bytes: bytes.into_owned(),
                raw_len,
                is_zstd,
            };
            self.write_tile(number, &encoded)?;
            if let Some(dataset) = self.datasets.get_mut(id) {
                dataset.put = dataset.put.saturating_add(1);
            }
        }
        Ok(())
    }
}

/// Returns the stored checksums by dataset and number of the tile.
fn checksums(file: &TetFile) -> Result<HashMap<(usize, u64), u32>, DenseError> {
    let Some(spill) = file.footer().and_then(|footer| footer.checksums) else {
        return Ok(HashMap::new());
    };
    let bytes = file.source().read(spill.span())?;
    let (words, _) = bytes.as_chunks::<4>();
    file.with_index(|index| {
        let rows = index.iter().zip(words);
        let numbered = rows.filter_map(|(row, word)| {
            let id = usize::try_from(row.dataset()).ok()?;
            let grid = file.datasets().get(id)?.grid();
            let coordinate: Vec<u64> = row.coordinate().into_iter().collect();
            let number = grid.chunk_number(coordinate.get(..grid.shape().len())?)?;
            Some(((id, number), u32::from_le_bytes(*word)))
        });
        numbered.collect()
    })
}
