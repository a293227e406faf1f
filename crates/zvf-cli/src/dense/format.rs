//! Formats of dense arrays, by file name, and opening them.

use std::{error::Error, path::Path, sync::Arc};

use zvf::OpenOptions;
#[cfg(feature = "zarr")]
use zvf_dense::zarr::ZarrArray;
use zvf_dense::{
    ByteSource, DenseArray, DenseError, MappedFile, NumpyDtype, StoreSource,
    b2nd::{B2nd, B2ndEditor, DEFAULT_BUDGET, DIRECTORY_FRAME},
    nifti::NiftiArray,
    npy::NpyArray,
    tet::{DatasetInfo, MemoryBudget, TetFile, TetOptions},
};

/// Memory limit.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct MemoryArgs {
    /// Maximum number of bytes for values. By default, the limit recorded in a .tet or a quarter of
    /// the memory of the host, 4 GiB for Blosc2, and 1 GiB for other formats.
    #[arg(long, value_name = "BYTES")]
    memory: Option<u64>,
}

impl MemoryArgs {
    /// Returns the argument of a limit.
    pub(crate) fn of(memory: Option<u64>) -> Self {
        Self { memory }
    }

    /// Returns the limit, if given.
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

/// Type of items.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ItemTypeArgs {
    /// Type of the items of a Caterva array, which does not record it, as in NumPy: f4, <i2.
    #[arg(long, value_name = "TYPE", value_parser = NumpyDtype::parse)]
    dtype: Option<NumpyDtype>,
}

impl ItemTypeArgs {
    /// Returns the array with items of this type, if given.
    pub(crate) fn apply(&self, array: B2nd) -> Result<B2nd, DenseError> {
        match &self.dtype {
            Some(dtype) => array.with_dtype(dtype.clone()),
            None => Ok(array),
        }
    }
}

/// A format of dense arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenseFormat {
    Tet,
    Npy,
    Nifti,
    #[cfg(feature = "zarr")]
    Zarr,
    B2nd,
}

impl DenseFormat {
    /// Returns the format that a path names. A folder without a known extension is a sparse
    /// directory of Blosc2 if it has that frame file, otherwise Zarr.
    pub(crate) fn of(path: &Path) -> Result<Self, String> {
        let extension = path
            .extension()
            .map(|end| end.to_string_lossy().to_lowercase());
        let name = path.file_name().unwrap_or_default();
        if name.to_string_lossy().to_lowercase().ends_with(".nii.gz") {
            return Ok(Self::Nifti);
        }
        match extension.as_deref() {
            Some("tet") => Ok(Self::Tet),
            Some("npy") => Ok(Self::Npy),
            Some("nii") => Ok(Self::Nifti),
            Some("zarr") => Self::zarr(path),
            Some("b2nd" | "b2frame" | "cat") => Ok(Self::B2nd),
            _ if path.join(DIRECTORY_FRAME).is_file() => Ok(Self::B2nd),
            _ if path.is_dir() => Self::zarr(path),
            _ => Err(format!(
                "{} has no extension of a dense array; use .tet, .npy, .nii, .nii.gz, .zarr, .b2nd or .cat",
                path.display()
            )),
        }
    }

    #[cfg(feature = "zarr")]
    #[expect(clippy::unnecessary_wraps, reason = "fails without the feature")]
    fn zarr(_: &Path) -> Result<Self, String> {
        Ok(Self::Zarr)
    }

    #[cfg(not(feature = "zarr"))]
    fn zarr(path: &Path) -> Result<Self, String> {
        Err(format!(
            "{} is a Zarr array, which this build of zvf neither reads nor writes; install zvf \
             with --features zarr",
            path.display()
        ))
    }
}

/// Returns whether arrays of the format have chunks.
pub(crate) fn has_chunks(path: &Path) -> Result<bool, String> {
    let format = DenseFormat::of(path)?;
    Ok(!matches!(format, DenseFormat::Npy | DenseFormat::Nifti))
}

/// Opens a Blosc2 array: a file, a sparse directory, or an object at an address.
pub(crate) fn b2nd(path: &Path, memory: MemoryArgs) -> Result<B2nd, Box<dyn Error>> {
    check_exists(path)?;
    let budget = memory.memory.unwrap_or(DEFAULT_BUDGET);
    if path.is_dir() {
        return Ok(B2nd::open_with_budget(path, budget)?);
    }
    Ok(B2nd::from_source(source(path)?, 0, budget)?)
}

/// Opens a Blosc2 array for changes in place.
pub(crate) fn b2nd_editor(
    path: &Path,
    item: &ItemTypeArgs,
    memory: MemoryArgs,
) -> Result<B2ndEditor, Box<dyn Error>> {
    check_exists(path)?;
    if address(path).is_some() {
        let path = path.display();
        return Err(format!("{path} is not a local file; only local arrays are changed").into());
    }
    let budget = memory.memory.unwrap_or(DEFAULT_BUDGET);
    let editor = B2ndEditor::open_with_budget(path, budget)?;
    Ok(match &item.dtype {
        Some(dtype) => editor.with_dtype(dtype.clone())?,
        None => editor,
    })
}

/// Returns the path as an address, if it has a scheme.
fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|address| address.contains("://"))
}

/// Checks that a local path exists; remote objects are checked when read.
fn check_exists(path: &Path) -> Result<(), String> {
    if address(path).is_some() || path.exists() {
        Ok(())
    } else {
        Err(format!(
            "{} does not exist; give a .tet, .npy, .nii, .nii.gz, .b2nd or .cat file, or the folder of a Zarr array",
            path.display()
        ))
    }
}

/// Opens a file, or an object at an address, as a source of bytes.
pub(crate) fn source(path: &Path) -> Result<Arc<dyn ByteSource>, DenseError> {
    Ok(match address(path) {
        Some(address) => Arc::new(StoreSource::open(address, &OpenOptions::default())?),
        None => Arc::new(MappedFile::open(path)?),
    })
}

/// Opens a `.tet`.
pub(crate) fn tet(path: &Path, memory: MemoryArgs) -> Result<TetFile, Box<dyn Error>> {
    check_exists(path)?;
    Ok(TetFile::open(source(path)?, memory.tet())?)
}

/// Opens a NIfTI volume; `None` if the path names another format.
pub(crate) fn nifti(path: &Path, memory: MemoryArgs) -> Result<Option<NiftiArray>, Box<dyn Error>> {
    check_exists(path)?;
    Ok(match DenseFormat::of(path)? {
        DenseFormat::Nifti => Some(NiftiArray::open(source(path)?, memory.memory)?),
        _ => None,
    })
}

/// Opens an array; in a `.tet`, the named dataset, or the only one.
pub(crate) fn open(
    path: &Path,
    dataset: Option<&str>,
    memory: MemoryArgs,
) -> Result<Box<dyn DenseArray>, Box<dyn Error>> {
    check_exists(path)?;
    let kind = DenseFormat::of(path)?;
    if let (Some(dataset), false) = (dataset, kind == DenseFormat::Tet) {
        return Err(format!(
            "{} has no named datasets; leave out {dataset:?}",
            path.display()
        )
        .into());
    }
    Ok(match kind {
        DenseFormat::Tet => {
            let file = tet(path, memory)?;
            let one = match (dataset, file.datasets()) {
                (Some(name), _) => file.dataset(name)?,
                (None, [_]) => file.dataset_at(0).ok_or("the file has no dataset")?,
                (None, datasets) => {
                    let names: Vec<&str> = datasets.iter().map(DatasetInfo::name).collect();
                    let names = names.join(", ");
                    return Err(format!(
                        "{} has several datasets; name one of {names}",
                        path.display()
                    )
                    .into());
                }
            };
            Box::new(one)
        }
        DenseFormat::Nifti => Box::new(NiftiArray::open(source(path)?, memory.memory)?),
        DenseFormat::Npy => Box::new(NpyArray::open(source(path)?, memory.memory)?),
        #[cfg(feature = "zarr")]
        DenseFormat::Zarr => Box::new(ZarrArray::open(path, memory.memory)?),
        DenseFormat::B2nd => Box::new(b2nd(path, memory)?),
    })
}

/// Opens an array like [`open`], with items of this type, if given.
pub(crate) fn open_typed(
    path: &Path,
    dataset: Option<&str>,
    item: &ItemTypeArgs,
    memory: MemoryArgs,
) -> Result<Box<dyn DenseArray>, Box<dyn Error>> {
    if item.dtype.is_none() {
        return open(path, dataset, memory);
    }
    if DenseFormat::of(path)? != DenseFormat::B2nd {
        let path = path.display();
        return Err(format!("{path} records the type of its items; leave out --dtype").into());
    }
    Ok(Box::new(item.apply(b2nd(path, memory)?)?))
}
