//! Sampling of a volume at the vertices of a store.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use numpy::{PyArray1, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf::{AttributeSpec, ObjectReduction, write_object_attribute, write_vertex_attribute};
use zvf_dense::{
    DenseArray,
    nifti::NiftiArray,
    sample::{Affine, Interpolation, Outside, SampleOptions, Sampler},
};

use crate::{
    dataset::PyDataset,
    dense::{is_nifti, open_array, open_bytes, open_nifti},
    engine,
    errors::{IntoException, unusable},
    options::Keywords,
    progress::ProgressCallback,
    unfinished::warn_unfinished,
};

/// Samples a volume, the path of a file or the bytes of a `.npy` file, and writes an attribute.
#[pyfunction]
pub(crate) fn sample<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    volume: &Bound<'py, PyAny>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let interpolation = |word: &str| match word {
        "nearest" => Some(Interpolation::Nearest),
        "linear" => Some(Interpolation::Linear),
        "cubic" => Some(Interpolation::Cubic),
        _ => None,
    };
    let mut options = SampleOptions::default();
    if let Some(way) = given.word("interpolation", interpolation, "nearest, linear or cubic")? {
        options.interpolation = way;
    }
    if let Some(numbers) = given.get::<Vec<f64>>("affine")? {
        options.affine = Some(Affine::of(&numbers).map_err(|error| unusable(&error))?);
    }
    options.outside = match given.take("outside")? {
        None => None,
        Some(value) => Some(match value.extract::<String>().as_deref() {
            Ok("edge") => Outside::Edge,
            Ok(_) => return Err(PyValueError::new_err("outside is a number, or \"edge\"")),
            Err(_) => Outside::Fill(value.extract()?),
        }),
    };
    options.budget = given.get("memory")?;
    let into: String = given.get("into")?.unwrap_or_default();
    let overwrite = given.get("overwrite")?.unwrap_or(false);
    let reduction = |word: &str| match word {
        "mean" => Some(ObjectReduction::Mean),
        "sum" => Some(ObjectReduction::Sum),
        "min" => Some(ObjectReduction::Min),
        "max" => Some(ObjectReduction::Max),
        _ => None,
    };
    let reduction = given.word("reduce", reduction, "mean, sum, min or max")?;
    let name: Option<String> = given.get("dataset")?;
    let progress = ProgressCallback::new(given.take("progress")?);
    given.finish()?;
    let (array, own) = self::volume(py, volume, name.as_deref(), options.budget)?;
    options.affine = options.affine.or(own);
    let dataset = dataset.get();
    let axes = dataset.current().root().axes.len();
    if let Some(affine) = options.affine.as_ref()
        && affine.axes() != axes
    {
        return Err(PyValueError::new_err(format!(
            "the affine is for {} axes, and {} has {axes}",
            affine.axes(),
            dataset.address()
        )));
    }
    let sampler = Sampler::new(array, axes, &options);
    let sampler = Arc::new(sampler.map_err(|error| error.into_exception(py))?);
    let mut spec = AttributeSpec::new(&into, sampler.kind());
    spec.row_shape = sampler.row_shape().to_vec();
    spec.overwrite = overwrite;
    spec.progress = progress.counter();
    let outside = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&outside);
    let values = Arc::new(move |positions: &[f64]| {
        let sampled = sampler.sample(positions)?;
        counted.fetch_add(sampled.outside, Ordering::Relaxed);
        Ok(sampled.values)
    });
    let store = dataset.options().open(dataset.address());
    let store = store.map_err(|error| zvf::Error::Open(error).into_exception(py))?;
    let report = engine::run_on_own_thread(py, &progress, async move {
        match reduction {
            None => write_vertex_attribute(store, &spec, values).await,
            Some(rule) => write_object_attribute(store, &spec, rule, values).await,
        }
    })?;
    warn_unfinished(py, report.unfinished.as_ref())?;
    let found = PyDict::new(py);
    found.set_item("transaction", report.transaction)?;
    found.set_item("vertices", report.vertices)?;
    found.set_item("outside", outside.load(Ordering::Relaxed))?;
    found.set_item("chunks", report.chunks)?;
    found.set_item("bytes", report.bytes)?;
    Ok(found)
}

/// Opens the volume, and returns the map from positions to voxels that a NIfTI file has.
fn volume(
    py: Python<'_>,
    volume: &Bound<'_, PyAny>,
    dataset: Option<&str>,
    memory: Option<u64>,
) -> PyResult<(Arc<dyn DenseArray>, Option<Affine>)> {
    if let Ok(bytes) = volume.cast::<PyArray1<u8>>() {
        let array = open_bytes(bytes.readonly().as_slice()?.to_vec());
        return Ok((
            Arc::new(array.map_err(|error| error.into_exception(py))?),
            None,
        ));
    }
    let path: String = volume.extract()?;
    if !is_nifti(&path) {
        let array = open_array(&path, dataset, memory);
        let array = array.map_err(|error| error.into_exception(py))?;
        return Ok((Arc::from(array), None));
    }
    let array: NiftiArray = open_nifti(&path, memory).map_err(|error| error.into_exception(py))?;
    let map = array.world_to_voxel();
    let map = map.map_err(|error| error.into_exception(py))?.clone();
    Ok((Arc::new(array), Some(map)))
}
