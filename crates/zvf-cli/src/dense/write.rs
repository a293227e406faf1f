//! Writes an array in the format that its path names.

use std::{
    env,
    error::Error,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use zvf_dense::{
    ArrayView, DenseArray, DenseSink, Hyperslab,
    b2nd::{B2nd, B2ndDesign, B2ndWriter},
    blosc::BloscCodec,
    npy::NpySink,
    tet::{self, DatasetSpec, TetWriter, WriteOptions},
};
#[cfg(feature = "zarr")]
use zvf_dense::{
    ChunkGrid,
    zarr::{ZarrCompression, ZarrSink},
};

use super::{
    format::DenseFormat,
    metalayer::{self, MetalayerValue},
    values::attributes_as_text,
};
use crate::{
    progress::{ProgressLine, ProgressMeter},
    stop::StoppableSink,
};

/// Approximate size of a chunk, in bytes, if neither the user nor the source sets one.
const CHUNK: u64 = 1 << 20;

/// Compression of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CompressionArgument {
    /// No compression.
    None,
    Zstd,
    /// Not for .tet.
    Gzip,
    /// lz4 with shuffled bytes; not for .tet.
    Blosc,
}

/// Arguments for writing an array.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DenseTargetArgs {
    /// Elements of a chunk along each axis; by default as in the source, or about 1 MiB.
    #[arg(long, value_name = "I,J,K", value_delimiter = ',')]
    chunks: Option<Vec<u64>>,
    /// Elements of a block along each axis, for .b2nd and .cat; by default as in the source if the
    /// chunks are equal, or about 32 KiB.
    #[arg(long, value_name = "I,J,K", value_delimiter = ',')]
    blocks: Option<Vec<u64>>,
    /// Metalayer of the header of a .b2nd or .cat: a JSON value, or text.
    ///
    /// Its length cannot change later. May be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = metalayer::parse)]
    metalayer: Vec<MetalayerValue>,
    /// Compression of chunks; by default none for .tet, zstd for Zarr and blosc for Blosc2.
    #[arg(long, value_name = "CODEC")]
    compression: Option<CompressionArgument>,
    /// Compression level.
    #[arg(
        long,
        value_name = "N",
        requires = "compression",
        allow_negative_numbers = true
    )]
    level: Option<i32>,
    /// Write a checksum of each chunk of a .tet; other readers ignore it.
    #[arg(long)]
    checksums: bool,
    #[arg(
        long,
        help = "Record the source in the history of a .tet, with the present time or that of the \
                variable SOURCE_DATE_EPOCH. Equal input gives equal files without this"
    )]
    history: bool,
}

/// A written array.
#[derive(Debug, Default)]
pub(crate) struct WriteOutcome {
    pub(crate) chunks: u64,
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) warnings: Vec<String>,
}

impl DenseTargetArgs {
    /// Returns the compression of a `.tet`.
    pub(crate) fn tet(&self) -> Result<tet::Compression, String> {
        match self.compression {
            None | Some(CompressionArgument::None) => Ok(tet::Compression::Raw),
            Some(CompressionArgument::Zstd) => Ok(tet::Compression::Zstd(self.zstd_level()?)),
            Some(CompressionArgument::Gzip | CompressionArgument::Blosc) => Err(
                "a .tet holds only uncompressed and zstd chunks; use --compression none or zstd"
                    .to_owned(),
            ),
        }
    }

    /// Returns the level of zstd.
    fn zstd_level(&self) -> Result<i32, String> {
        let level = self.level.unwrap_or(3);
        let level = Some(level).filter(|level| (-7..=22).contains(level));
        level.ok_or_else(|| "the level of zstd must be -7 to 22".to_owned())
    }

    /// Refuses options that have no effect on a `.tet`.
    pub(crate) fn check_tet(&self, out: &Path) -> Result<(), String> {
        self.check(DenseFormat::Tet, out)
    }

    /// Refuses options that have no effect on a format.
    fn check(&self, kind: DenseFormat, out: &Path) -> Result<(), String> {
        let is_npy = kind == DenseFormat::Npy;
        let options = [
            ("--chunks", self.chunks.is_some() && is_npy),
            (
                "--blocks",
                self.blocks.is_some() && kind != DenseFormat::B2nd,
            ),
            (
                "--metalayer",
                !self.metalayer.is_empty() && kind != DenseFormat::B2nd,
            ),
            ("--compression", self.compression.is_some() && is_npy),
            ("--checksums", self.checksums && kind != DenseFormat::Tet),
            ("--history", self.history && kind != DenseFormat::Tet),
        ];
        if let Some((option, _)) = options.into_iter().find(|(_, is_unused)| *is_unused) {
            let out = out.display();
            return Err(format!("{option} does not apply to {out}; leave it out"));
        }
        if self.compression == Some(CompressionArgument::None) && self.level.is_some() {
            return Err("--level does not apply to --compression none; leave it out".to_owned());
        }
        Ok(())
    }

    #[cfg(feature = "zarr")]
    fn zarr(&self) -> Result<ZarrCompression, String> {
        let level = |or: u32| {
            let level = self.level.map_or(Ok(or), u32::try_from);
            let level = level.ok().filter(|level| *level < 10);
            level.ok_or_else(|| "the compression level must be 0 to 9".to_owned())
        };
        Ok(match self.compression {
            None => ZarrCompression::Default,
            Some(CompressionArgument::None) => ZarrCompression::Raw,
            Some(CompressionArgument::Zstd) => ZarrCompression::Zstd(self.zstd_level()?),
            Some(CompressionArgument::Gzip) => ZarrCompression::Gzip(level(6)?),
            Some(CompressionArgument::Blosc) => ZarrCompression::Blosc(level(5)?),
        })
    }

    /// Returns the design of a Blosc2 array, with the blocks of `array` if the chunks are equal.
    fn b2nd(
        &self,
        array: &dyn DenseArray,
        chunk: &[u64],
        is_caterva: bool,
    ) -> Result<B2ndDesign, String> {
        let level = self.level.unwrap_or(5);
        let level = u8::try_from(level)
            .ok()
            .filter(|level| *level < 10)
            .ok_or("the compression level must be 0 to 9")?;
        let design = B2ndDesign::new(array.shape(), array.dtype().clone());
        let grid = array.grid();
        let mut design = match (&self.blocks, grid.block_shape()) {
            (Some(blocks), _) => {
                let blocks = extents("--blocks", blocks, array.shape())?;
                if blocks.iter().zip(chunk).any(|(block, chunk)| block > chunk) {
                    return Err(format!(
                        "--blocks has an extent above that of the chunks, {chunk:?}; blocks divide chunks"
                    ));
                }
                design.with_chunks(chunk, blocks)
            }
            (None, Some(block)) if grid.chunk_shape() == chunk => design.with_chunks(chunk, block),
            (None, _) => design.with_chunk_shape(chunk),
        };
        if is_caterva {
            design = design.for_caterva();
        }
        for layer in &self.metalayer {
            design = design.with_metalayer(&layer.name, &layer.body);
        }
        Ok(match self.compression {
            None | Some(CompressionArgument::Blosc) => design.with_codec(BloscCodec::Lz4, level),
            Some(CompressionArgument::None) => design.with_codec(BloscCodec::Lz4, 0),
            Some(CompressionArgument::Zstd) => design.with_codec(BloscCodec::Zstd, level),
            Some(CompressionArgument::Gzip) => design.with_codec(BloscCodec::Zlib, level),
        })
    }

    /// Copies the header metalayers of `array`, except those that an option sets.
    pub(super) fn keep_metalayers(&mut self, array: &B2nd) {
        for (name, body) in array.metalayers() {
            if self.metalayer.iter().all(|given| given.name != name) {
                self.metalayer.push(MetalayerValue {
                    name: name.to_owned(),
                    body: body.to_vec(),
                });
            }
        }
    }

    pub(crate) fn checksums(&self) -> bool {
        self.checksums
    }

    /// Returns the record of an operation on a source, if a history is requested.
    pub(crate) fn history(&self, operation: &str, source: &str) -> Option<Value> {
        let seconds = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(0, |since| since.as_secs())
        };
        self.history.then(|| {
            let set = env::var("SOURCE_DATE_EPOCH")
                .ok()
                .and_then(|text| text.parse().ok());
            let at: u64 = set.unwrap_or_else(seconds);
            let agent = concat!("zvf ", env!("CARGO_PKG_VERSION"));
            json!({ "op": operation, "source": source, "at": at.to_string(), "agent": agent })
        })
    }

    /// Returns the extents of chunks: the requested ones, those of the array, or near-cubes.
    pub(crate) fn chunk(
        &self,
        array: &dyn DenseArray,
        has_chunks: bool,
    ) -> Result<Vec<u64>, String> {
        let shape = array.shape();
        match &self.chunks {
            Some(chunks) => Ok(extents("--chunks", chunks, shape)?.to_vec()),
            None if has_chunks => Ok(array.grid().chunk_shape().to_vec()),
            None => Ok(cubes(shape, array.dtype().size())),
        }
    }
}

/// Checks that an option has an extent above 0 for each axis of a shape.
fn extents<'e>(option: &str, extents: &'e [u64], shape: &[u64]) -> Result<&'e [u64], String> {
    if extents.len() != shape.len() {
        Err(format!(
            "{option} has {} extents for an array of {} axes; give one for each axis",
            extents.len(),
            shape.len()
        ))
    } else if extents.contains(&0) {
        Err(format!(
            "{option} has an extent of 0; give one above 0 for each axis"
        ))
    } else {
        Ok(extents)
    }
}

/// Halves the longest axes of the shape until a chunk is small.
fn cubes(shape: &[u64], size: u64) -> Vec<u64> {
    let mut chunk: Vec<u64> = shape.iter().map(|extent| (*extent).max(1)).collect();
    let bytes = |chunk: &[u64]| {
        chunk
            .iter()
            .fold(size, |bytes, extent| bytes.saturating_mul(*extent))
    };
    while bytes(&chunk) > CHUNK {
        let Some(longest) = chunk
            .iter_mut()
            .max_by_key(|extent| **extent)
            .filter(|e| **e > 1)
        else {
            break;
        };
        *longest = longest.div_ceil(2);
    }
    chunk
}

/// Writes a box of an array to a path, in the format that the path names.
pub(crate) fn write(
    array: &dyn DenseArray,
    selection: Hyperslab,
    has_chunks: bool,
    out: &Path,
    target: &DenseTargetArgs,
    quiet: bool,
) -> Result<WriteOutcome, Box<dyn Error>> {
    let view = ArrayView::new(array, selection)?;
    let kind = DenseFormat::of(out)?;
    target.check(kind, out)?;
    let chunk = || target.chunk(&view, has_chunks);
    match kind {
        DenseFormat::Nifti => {
            let out = out.display();
            let message = format!(
                "{out}: NIfTI volumes are not written; use .npy, .tet, .zarr, .b2nd or .cat"
            );
            Err(message.into())
        }
        DenseFormat::Npy => write_npy(&view, out, quiet),
        #[cfg(feature = "zarr")]
        DenseFormat::Zarr => write_zarr(&view, out, chunk()?, target, quiet),
        DenseFormat::B2nd => write_b2nd(&view, out, chunk()?, target, quiet),
        DenseFormat::Tet => write_tet(&view, out, chunk()?, target, quiet),
    }
}

fn write_npy(
    view: &ArrayView<'_>,
    out: &Path,
    quiet: bool,
) -> Result<WriteOutcome, Box<dyn Error>> {
    let whole = Hyperslab::whole(view.shape()).byte_len(view.dtype().size());
    // One chunk if memory allows, so that nothing is read twice.
    let chunk = if whole.is_some_and(|bytes| bytes <= view.scratch()) {
        view.shape()
    } else {
        view.grid().chunk_shape()
    };
    let sink = NpySink::create(out, view.dtype(), view.shape(), chunk)?;
    write_array(view, Box::new(sink), out, quiet)?;
    let lost = view.attributes().keys().map(|name| {
        let out = out.display();
        format!("{out}: attribute {name:?} is left out, because .npy has none")
    });
    Ok(WriteOutcome {
        chunks: 1,
        chunk_shape: view.shape().to_vec(),
        warnings: names_left_out(view, out).into_iter().chain(lost).collect(),
    })
}

#[cfg(feature = "zarr")]
fn write_zarr(
    view: &ArrayView<'_>,
    out: &Path,
    chunk_shape: Vec<u64>,
    target: &DenseTargetArgs,
    quiet: bool,
) -> Result<WriteOutcome, Box<dyn Error>> {
    let grid = ChunkGrid::new(view.shape().to_vec(), chunk_shape.clone(), None)?;
    let chunks = grid.chunk_count().unwrap_or(u64::MAX);
    let (attributes, names) = (view.attributes(), view.dimension_names());
    let sink = ZarrSink::create(out, view.dtype(), grid, target.zarr()?, attributes, names)?;
    write_array(view, Box::new(sink), out, quiet)?;
    Ok(WriteOutcome {
        chunks,
        chunk_shape,
        warnings: Vec::new(),
    })
}

fn write_b2nd(
    view: &ArrayView<'_>,
    out: &Path,
    chunk_shape: Vec<u64>,
    target: &DenseTargetArgs,
    quiet: bool,
) -> Result<WriteOutcome, Box<dyn Error>> {
    let is_caterva = out
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("cat"));
    let mut design = target.b2nd(view, &chunk_shape, is_caterva)?;
    let mut warnings = Vec::from_iter(names_left_out(view, out));
    for (name, value) in view.attributes() {
        if (1..=31).contains(&name.len()) {
            design = design.with_attribute(name, value)?;
        } else {
            let out = out.display();
            warnings.push(format!(
                "{out}: attribute {name:?} is left out, because its name is too long"
            ));
        }
    }
    let sink = B2ndWriter::create(out, &design)?;
    let chunks = sink.grid().chunk_count().unwrap_or(u64::MAX);
    write_array(view, Box::new(sink), out, quiet)?;
    Ok(WriteOutcome {
        chunks,
        chunk_shape,
        warnings,
    })
}

fn write_tet(
    view: &ArrayView<'_>,
    out: &Path,
    chunk_shape: Vec<u64>,
    target: &DenseTargetArgs,
    quiet: bool,
) -> Result<WriteOutcome, Box<dyn Error>> {
    let (spec, warnings) = spec(view, &name(view, out), &chunk_shape, target)?;
    let options = WriteOptions {
        checksums: target.checksums,
        history: target.history("convert", view.name()).into_iter().collect(),
        ..WriteOptions::default()
    };
    let mut writer = TetWriter::create(out, vec![spec], options)?;
    let sink = writer.sink(0)?;
    let chunks = sink.grid().chunk_count().unwrap_or(u64::MAX);
    write_array(view, Box::new(sink), out, quiet)?;
    writer.finish()?;
    Ok(WriteOutcome {
        chunks,
        chunk_shape,
        warnings,
    })
}

/// Returns a line if the names of axes are left out.
fn names_left_out(array: &dyn DenseArray, out: &Path) -> Option<String> {
    let names = array.dimension_names()?.join(", ");
    let out = out.display();
    Some(format!(
        "{out}: the names of the axes are left out: {names}"
    ))
}

/// Returns a dataset's name: that of the array, or of its file.
pub(crate) fn name(array: &dyn DenseArray, out: &Path) -> String {
    let path = Path::new(array.name());
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let is_file = DenseFormat::of(path).is_ok();
    let name = if is_file {
        stem
    } else {
        Some(array.name().to_owned())
    };
    let or = || {
        out.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    name.filter(|name| !name.is_empty())
        .or_else(or)
        .unwrap_or_default()
}

/// Returns the `.tet` dataset of an array, and a line for each attribute it cannot hold.
pub(crate) fn spec(
    array: &dyn DenseArray,
    name: &str,
    chunk: &[u64],
    target: &DenseTargetArgs,
) -> Result<(DatasetSpec, Vec<String>), Box<dyn Error>> {
    let dtype = tet::dtype_of(array.dtype());
    let dtype = dtype.map_err(|_| {
        format!(
            "elements are {}, but a .tet holds only f2, f4, f8, i2, i4, i8, u1, u2, u4 and u8",
            array.dtype()
        )
    })?;
    let (attributes, lost) = attributes_as_text(array.attributes());
    let lost = lost
        .into_iter()
        .map(|key| format!("{name}: attribute {key:?} does not fit in a .tet and is left out"));
    let names = array.dimension_names();
    let spec = DatasetSpec::new(name, dtype, array.shape(), chunk)
        .compressed(target.tet()?)
        .attributes(attributes)
        .dimension_names(names.map(<[String]>::to_vec));
    Ok((spec, lost.collect()))
}

/// Writes an array to a sink with a progress line.
pub(crate) fn write_array(
    array: &dyn DenseArray,
    sink: Box<dyn DenseSink + '_>,
    out: &Path,
    quiet: bool,
) -> Result<(), Box<dyn Error>> {
    let meter = ProgressMeter::default();
    let what = format!("writing {}", out.display());
    let _progress = ProgressLine::with_meter(quiet, what, meter.clone());
    let total = sink.grid().chunk_count().unwrap_or(u64::MAX);
    let mut done = 0_u64;
    let name = out.display().to_string();
    let sink = Box::new(StoppableSink { name, sink });
    zvf_dense::convert(array, sink, &mut |_| {
        done = done.saturating_add(1);
        meter.set(done, total);
    })?;
    Ok(())
}
