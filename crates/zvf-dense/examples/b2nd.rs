//! Executes JSON requests on Blosc2 arrays, one per line. `cargo xtask conformance` and `cargo
//! xtask bench dense` drive this crate through it from Python.
//!
//! Each request has `do`, a `path`, and the parameters of the operation. Values are exchanged in
//! files of raw bytes. The result is `ok`, or `error` with the message.

use std::{
    error::Error,
    fmt::Write as _,
    fs,
    io::{self, BufRead, Write},
    path::Path,
    sync::Arc,
    time::Instant,
};

use serde_json::Value;
use zvf_dense::{
    Buffer, DenseArray, DenseSink, Hyperslab, MappedFile, NumpyDtype,
    b2nd::{B2nd, B2ndDesign, B2ndEditor, B2ndWriter},
    blosc::{BloscCodec, BloscFilter, Split},
    sample::{SampleOptions, Sampler},
    tet::{Compression, DatasetSpec, TetDtype, TetFile, TetOptions, TetWriter, WriteOptions},
};

type Done = Result<(), Box<dyn Error>>;
#[cfg(feature = "zarr")]
use zvf_dense::zarr::ZarrArray;

fn main() -> Done {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request = serde_json::from_str(&line?)?;
        match result(&request) {
            Ok(found) => writeln!(out, "ok{found}")?,
            Err(error) => writeln!(out, "error {error} ({error:?})")?,
        }
        out.flush()?;
    }
    Ok(())
}

fn result(request: &Value) -> Result<String, Box<dyn Error>> {
    let path = Path::new(text(request, "path")?);
    match text(request, "do")? {
        "write" => write(request, path)?,
        "read" => {
            let array = B2nd::open(path)?;
            let selection = selection(request, array.shape())?;
            fs::write(text(request, "raw")?, array.slice(&selection)?)?;
        }
        "attributes" => {
            let array = B2nd::open(path)?;
            let expected = request["attributes"].as_object().ok_or("no attributes")?;
            if array.attributes() != expected {
                return Err(format!("attributes are {:?}", array.attributes()).into());
            }
        }
        "edit" => edit(request, path)?,
        "tet" => write_tet(request, path)?,
        "time" => return time(request, path),
        "copy" => return copy(request),
        "sample" => return sample(request, path),
        other => return Err(format!("{other} is not known").into()),
    }
    Ok(String::new())
}

/// Opens an array; the file extension selects the format.
fn open(path: &Path) -> Result<Box<dyn DenseArray>, Box<dyn Error>> {
    let extension = path.extension().and_then(|end| end.to_str());
    Ok(match extension {
        Some("tet") => {
            let source = Arc::new(MappedFile::open(path)?);
            Box::new(TetFile::open(source, TetOptions::default())?.dataset("a")?)
        }
        #[cfg(feature = "zarr")]
        Some("zarr") => Box::new(ZarrArray::open(path, None)?),
        _ => Box::new(B2nd::open(path)?),
    })
}

/// Writes a dataset of type `<f4`.
fn write_tet(request: &Value, path: &Path) -> Done {
    let compression = if request["zstd"] == true {
        Compression::Zstd(1)
    } else {
        Compression::Raw
    };
    let (shape, chunks) = (numbers(request, "shape")?, numbers(request, "chunks")?);
    let spec = DatasetSpec::new("a", TetDtype::F32, &shape, &chunks).compressed(compression);
    let mut writer = TetWriter::create(path, vec![spec], WriteOptions::default())?;
    writer.put_array(0, &fs::read(text(request, "raw")?)?)?;
    writer.finish()?;
    Ok(())
}

/// Returns the times of memory copies in microseconds.
fn copy(request: &Value) -> Result<String, Box<dyn Error>> {
    let len = usize::try_from(request["bytes"].as_u64().ok_or("no bytes")?)?;
    let mut from = Buffer::zeros(len).ok_or("no memory")?;
    let mut to = Buffer::zeros(len).ok_or("no memory")?;
    from.fill(1);
    to.fill(2);
    timed(request, || {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&to);
        Ok(())
    })
}

/// Returns the times of sampling random positions in microseconds, including reads.
fn sample(request: &Value, path: &Path) -> Result<String, Box<dyn Error>> {
    let array = open(path)?;
    let count = usize::try_from(request["count"].as_u64().ok_or("no count")?)?;
    let extents: Vec<f64> = array
        .shape()
        .iter()
        .map(|extent| u32::try_from(*extent))
        .map(|extent| extent.map(f64::from))
        .collect::<Result<_, _>>()?;
    let mut state = 1_u64;
    let coordinates = extents.iter().cycle().take(count * extents.len());
    let positions: Vec<f64> = coordinates
        .map(|extent| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let part = u32::try_from(state >> 32).unwrap_or(0);
            f64::from(part) / f64::from(u32::MAX) * (extent - 1.0)
        })
        .collect();
    timed(request, || {
        let sampler = Sampler::new(&*array, extents.len(), &SampleOptions::default())?;
        std::hint::black_box(sampler.sample(&positions)?);
        Ok(())
    })
}

fn timed(request: &Value, mut act: impl FnMut() -> Done) -> Result<String, Box<dyn Error>> {
    let mut times = String::new();
    for _ in 0..request["rounds"].as_u64().ok_or("no rounds")? {
        let start = Instant::now();
        act()?;
        write!(times, " {}", start.elapsed().as_secs_f64() * 1e6)?;
    }
    Ok(times)
}

/// Returns the time of reading each selection in microseconds.
fn time(request: &Value, path: &Path) -> Result<String, Box<dyn Error>> {
    let array = open(path)?;
    let mut times = String::new();
    for request in request["selections"].as_array().ok_or("no selections")? {
        let selection = selection(request, array.shape())?;
        // Read into existing or new memory.
        let mut room = if request["into"] == true {
            Buffer::zeros(array.byte_len(&selection)?).ok_or("no memory")?
        } else {
            Vec::new().into()
        };
        room.fill(1);
        let start = Instant::now();
        if room.is_empty() {
            room = array.slice(&selection)?;
        } else {
            array.slice_into(&selection, &mut room)?;
        }
        let taken = start.elapsed();
        std::hint::black_box(room);
        write!(times, " {}", taken.as_secs_f64() * 1e6)?;
    }
    Ok(times)
}

fn write(request: &Value, path: &Path) -> Done {
    let dtype = NumpyDtype::parse(text(request, "dtype")?)?;
    let mut design = B2ndDesign::new(&numbers(request, "shape")?, dtype)
        .with_codec(codec(text(request, "codec")?)?, level(request)?)
        .with_filters(&filters(request)?)
        .with_split(match text(request, "split")? {
            "always" => Split::Always,
            "never" => Split::Never,
            _ => Split::Auto,
        });
    if request.get("chunks").is_some() {
        let (chunks, blocks) = (numbers(request, "chunks")?, numbers(request, "blocks")?);
        design = design.with_chunks(&chunks, &blocks);
    }
    if request["form"] == "caterva" {
        design = design.for_caterva();
    }
    if let Some(layer) = request["layer"].as_str() {
        design = design.with_metalayer("fixed", layer.as_bytes());
        design = design.with_vlmetalayer("variable", layer.as_bytes());
    }
    for (name, value) in request["attributes"].as_object().into_iter().flatten() {
        design = design.with_attribute(name, value)?;
    }
    let mut writer = Box::new(if request["sparse"] == true {
        B2ndWriter::create_directory(path, &design)?
    } else {
        B2ndWriter::create(path, &design)?
    });
    writer.put_all(&fs::read(text(request, "raw")?)?)?;
    writer.finish()?;
    Ok(())
}

fn edit(request: &Value, path: &Path) -> Done {
    let mut editor = B2ndEditor::open(path)?;
    if request.get("shape").is_some() {
        editor.resize(&numbers(request, "shape")?)?;
    }
    if request.get("raw").is_some() {
        let selection = selection(request, editor.array().shape())?;
        editor.update(&selection, &fs::read(text(request, "raw")?)?)?;
    }
    if let Some(layer) = request["fixed"].as_str() {
        editor.set_metalayer("fixed", layer.as_bytes())?;
    }
    if let Some(layer) = request["layer"].as_str() {
        editor.set_vlmetalayer("variable", Some(layer.as_bytes()));
    }
    editor.commit()?;
    Ok(())
}

fn selection(request: &Value, shape: &[u64]) -> Result<Hyperslab, Box<dyn Error>> {
    if request.get("start").is_none() {
        return Ok(Hyperslab::whole(shape));
    }
    let (start, stop) = (numbers(request, "start")?, numbers(request, "stop")?);
    let step = request
        .get("step")
        .map(|_| numbers(request, "step"))
        .transpose()?;
    Ok(Hyperslab::new(&start, &stop, step.as_deref())?)
}

fn text<'a>(request: &'a Value, name: &str) -> Result<&'a str, Box<dyn Error>> {
    let text = request[name].as_str();
    text.ok_or_else(|| format!("{name} is not text").into())
}

fn numbers(request: &Value, name: &str) -> Result<Vec<u64>, Box<dyn Error>> {
    let list = request[name].as_array();
    let list = list.and_then(|list| list.iter().map(Value::as_u64).collect());
    list.ok_or_else(|| format!("{name} is not a list of numbers").into())
}

fn level(request: &Value) -> Result<u8, Box<dyn Error>> {
    let level = request["level"].as_u64().ok_or("no level")?;
    Ok(u8::try_from(level)?)
}

fn codec(name: &str) -> Result<BloscCodec, Box<dyn Error>> {
    Ok(match name {
        "lz4" => BloscCodec::Lz4,
        "zlib" => BloscCodec::Zlib,
        "zstd" => BloscCodec::Zstd,
        other => return Err(format!("codec {other}").into()),
    })
}

fn filters(request: &Value) -> Result<Vec<BloscFilter>, Box<dyn Error>> {
    let list = request["filters"].as_array().ok_or("no filters")?;
    let filters = list.iter().map(|name| match name.as_str() {
        Some("shuffle") => Ok(BloscFilter::Shuffle),
        Some("bitshuffle") => Ok(BloscFilter::BitShuffle),
        Some("delta") => Ok(BloscFilter::Delta),
        Some("bytedelta") => Ok(BloscFilter::ByteDelta),
        _ => Err(format!("filter {name}").into()),
    });
    filters.collect()
}
