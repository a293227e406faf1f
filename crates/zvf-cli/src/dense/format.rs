//! Opens an array of any kind.

use std::{error::Error, path::Path, sync::Arc};

use zvf::OpenOptions;
use zvf_dense::{
    ByteSource, DenseArray, DenseError, MappedFile, StoreSource,
    b2nd::{B2nd, DEFAULT_BUDGET, DIRECTORY_FRAME},
    npy::NpyArray,
    tet::{DatasetInfo, MemoryBudget, TetFile, TetOptions},
    zarr::ZarrArray,
};

/// How much memory may be used.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct MemoryArgs {
    /// The most bytes of memory for values at a time. Otherwise what a .tet asks for, or
    /// a quarter of what is free.
    #[arg(long, value_name = "BYTES")]
    memory: Option<u64>,
}

impl MemoryArgs {
    /// What was said.
    pub(crate) fn bytes(self) -> Option<u64> {
        self.memory
    }

    pub(crate) fn tet(self) -> TetOptions {
        TetOptions {
            budget: MemoryBudget {
                bytes: self.memory,
                bps: None,
            },
        }
    }
}

/// What a path is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenseFormat {
    Tet,
    Npy,
    Zarr,
    B2nd,
}

impl DenseFormat {
    /// By the end of its name; other folders are taken for Zarr, unless they are sparse directories
    /// of Blosc2.
    pub(crate) fn of(path: &Path) -> Result<Self, String> {
        let extension = path
            .extension()
            .map(|end| end.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("tet") => Ok(Self::Tet),
            Some("npy") => Ok(Self::Npy),
            Some("zarr") => Ok(Self::Zarr),
            Some("b2nd" | "b2frame" | "cat") => Ok(Self::B2nd),
            _ if path.join(DIRECTORY_FRAME).is_file() => Ok(Self::B2nd),
            _ if path.is_dir() => Ok(Self::Zarr),
            _ => Err(format!(
                "{} is called like no dense array; there are .tet, .npy, .zarr, .b2nd and .cat",
                path.display()
            )),
        }
    }
}

/// Whether what is called so has chunks of its own.
pub(crate) fn has_chunks(path: &Path) -> Result<bool, String> {
    Ok(DenseFormat::of(path)? != DenseFormat::Npy)
}

/// Opens an array of Blosc2: a file, a sparse directory, or an object at an address.
pub(crate) fn b2nd(path: &Path, memory: MemoryArgs) -> Result<B2nd, Box<dyn Error>> {
    there(path)?;
    let budget = memory.memory.unwrap_or(DEFAULT_BUDGET);
    if path.is_dir() {
        return Ok(B2nd::open_with_budget(path, budget)?);
    }
    Ok(B2nd::from_source(source(path)?, 0, budget)?)
}

/// The path as an address, if it is one.
fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|address| address.contains("://"))
}

/// Says it plainly where there is nothing; what is far away is asked later.
fn there(path: &Path) -> Result<(), String> {
    match address(path).is_some() || path.exists() {
        true => Ok(()),
        false => Err(format!(
            "{} is not there; give a .tet, .npy, .b2nd or .cat, or the folder of a Zarr array",
            path.display()
        )),
    }
}

/// A file, or an object at an address.
pub(crate) fn source(path: &Path) -> Result<Arc<dyn ByteSource>, DenseError> {
    Ok(match address(path) {
        Some(address) => Arc::new(StoreSource::open(address, &OpenOptions::default())?),
        None => Arc::new(MappedFile::open(path)?),
    })
}

/// Opens a `.tet`.
pub(crate) fn tet(path: &Path, memory: MemoryArgs) -> Result<TetFile, Box<dyn Error>> {
    there(path)?;
    Ok(TetFile::open(source(path)?, memory.tet())?)
}

/// Opens an array; in a `.tet` the dataset of this name, or the only one.
pub(crate) fn open(
    path: &Path,
    dataset: Option<&str>,
    memory: MemoryArgs,
) -> Result<Box<dyn DenseArray>, Box<dyn Error>> {
    there(path)?;
    let kind = DenseFormat::of(path)?;
    if let (Some(dataset), false) = (dataset, kind == DenseFormat::Tet) {
        return Err(format!(
            "{} has no datasets, and {dataset:?} is asked for",
            path.display()
        )
        .into());
    }
    Ok(match kind {
        DenseFormat::Tet => {
            let file = tet(path, memory)?;
            let one = match (dataset, file.datasets()) {
                (Some(name), _) => file.dataset(name)?,
                (None, [_]) => file.dataset_at(0).ok_or("there is no dataset")?,
                (None, datasets) => {
                    let names: Vec<&str> = datasets.iter().map(DatasetInfo::name).collect();
                    let names = names.join(", ");
                    return Err(format!("{}: say which dataset of: {names}", path.display()).into());
                }
            };
            Box::new(one)
        }
        DenseFormat::Npy => Box::new(NpyArray::open(source(path)?, memory.memory)?),
        DenseFormat::Zarr => Box::new(ZarrArray::open(path, memory.memory)?),
        DenseFormat::B2nd => Box::new(b2nd(path, memory)?),
    })
}
