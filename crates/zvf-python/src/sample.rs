//! Sampling of a volume at the vertices of a store.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use numpy::{PyArray1, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf::{
    AttributeSpec, Dataset, ObjectReduction, OpenOptions, TaskPlan, TaskPlanOptions, VertexFn,
    plan_object_attribute, plan_vertex_attribute, write_object_attribute, write_vertex_attribute,
};
use zvf_dense::{
    DenseArray,
    nifti::NiftiArray,
    sample::{
        Affine, Interpolation, Outside, SampleOptions, SampleRecipe, Sampler, check_overlap,
        outside_note,
    },
};
use zvf_files::length_scales;

use crate::{
    dataset::PyDataset,
    dense::{is_nifti, open_array, open_bytes, open_nifti},
    engine,
    errors::{IntoException, exception, unusable, warn},
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
    let mut arguments = Arguments::take(&mut given)?;
    let progress = ProgressCallback::new(given.take("progress"));
    given.finish()?;
    let sampling = arguments.open(py, volume, dataset.get())?;
    let mut spec = arguments.spec(&sampling);
    spec.progress = progress.counter();
    let (values, reduction) = (sampling.values(), arguments.reduction);
    let dataset = dataset.get();
    let store = dataset
        .options()
        .open(dataset.address())
        .map_err(|error| zvf::Error::from(error).into_exception(py))?;
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
    let outside = sampling.outside.load(Ordering::Relaxed);
    found.set_item("outside", outside)?;
    let is_told = arguments.options.outside.is_none();
    let note = outside_note(outside, report.vertices).filter(|_| is_told);
    if let Some(note) = &note {
        warn(py, "ZvfWarning", note)?;
    }
    found.set_item("notes", note.into_iter().collect::<Vec<String>>())?;
    found.set_item("chunks", report.chunks)?;
    found.set_item("bytes", report.bytes)?;
    Ok(found)
}

/// Plans the attribute of a volume, the path of a file.
pub(crate) fn plan(
    py: Python<'_>,
    dataset: &PyDataset,
    volume: &Bound<'_, PyAny>,
    mut given: Keywords<'_>,
    tasks: &TaskPlanOptions,
) -> PyResult<TaskPlan> {
    let mut arguments = Arguments::take(&mut given)?;
    given.finish()?;
    let sampling = arguments.open(py, volume, dataset)?;
    let spec = arguments.spec(&sampling);
    let path = std::path::absolute(volume.extract::<PathBuf>()?)?;
    let mut recipe = SampleRecipe::new(path.display().to_string(), arguments.options);
    recipe.dataset = arguments.dataset;
    let (recipe, open) = (recipe.to_json().into(), dataset.options());
    let address = dataset.address();
    match arguments.reduction {
        None => engine::run(
            py,
            plan_vertex_attribute(address, &spec, recipe, open, tasks),
        ),
        Some(rule) => engine::run(
            py,
            plan_object_attribute(address, &spec, rule, recipe, open, tasks),
        ),
    }
}

/// Runs a task of a planned attribute.
pub(crate) fn run_task(
    py: Python<'_>,
    plan: &TaskPlan,
    index: usize,
    open: &OpenOptions,
) -> PyResult<bool> {
    let recipe = SampleRecipe::from_json(plan.recipe().as_ref()).ok_or_else(|| {
        PyValueError::new_err(
            "the plan does not sample a volume; run it in the program that made it",
        )
    })?;
    let (dataset, budget) = (recipe.dataset.as_deref(), recipe.options.budget);
    let open_volume = || open_array(&recipe.volume, dataset, budget);
    let array = engine::compute(py, open_volume)?.map_err(|error| error.into_exception(py))?;
    let dataset = engine::run(py, Dataset::open_with(plan.store(), open))?;
    let axes = dataset.root().axes.len();
    let sampling = Sampling::new(py, Arc::from(array), axes, &recipe.options)?;
    let (plan, open, values) = (plan.clone(), open.clone(), sampling.values());
    engine::run_on_own_thread(py, &ProgressCallback::default(), async move {
        plan.run_with(index, Some(values), &open).await
    })
}

/// Arguments of sampling.
struct Arguments {
    options: SampleOptions,
    into: String,
    overwrite: bool,
    reduction: Option<ObjectReduction>,
    /// Dataset of the volume.
    dataset: Option<String>,
    /// Size in metres of the unit that the affine maps from; that of the store unless given.
    metres: Option<f64>,
}

impl Arguments {
    fn take(given: &mut Keywords<'_>) -> PyResult<Self> {
        let interpolation = |word: &str| {
            let mut methods = Interpolation::ALL.into_iter();
            methods.find(|method| method.name() == word)
        };
        let mut options = SampleOptions::default();
        if let Some(way) = given.word("interpolation", interpolation, "nearest, linear or cubic")? {
            options.interpolation = way;
        }
        if let Some(numbers) = given.get::<Vec<f64>>("affine")? {
            options.affine = Some(Affine::of(&numbers).map_err(|error| unusable(&error))?);
        }
        options.outside = match given.take("outside") {
            None => None,
            Some(value) => Some(match value.extract::<String>().as_deref() {
                Ok("edge") => Outside::Edge,
                Ok(_) => return Err(PyValueError::new_err("outside is a number, or \"edge\"")),
                Err(_) => Outside::Fill(value.extract()?),
            }),
        };
        options.budget = given.get("memory")?;
        let reduction = |word: &str| {
            let mut rules = ObjectReduction::ALL.into_iter();
            rules.find(|rule| rule.name() == word)
        };
        Ok(Self {
            options,
            into: given.get("into")?.unwrap_or_default(),
            overwrite: given.get("overwrite")?.unwrap_or(false),
            reduction: given.word("reduce", reduction, "mean, sum, min or max")?,
            dataset: given.get("dataset")?,
            metres: given.get("metres")?,
        })
    }

    /// Opens the volume. The affine of a NIfTI file is used unless one was given.
    fn open(
        &mut self,
        py: Python<'_>,
        volume: &Bound<'_, PyAny>,
        dataset: &PyDataset,
    ) -> PyResult<Sampling> {
        let budget = self.options.budget;
        let current = dataset.current();
        let scales = length_scales(current.root());
        let (array, own) = self::volume(py, volume, self.dataset.as_deref(), budget, &scales)?;
        let given = self.options.affine.take();
        self.options.affine = match self.metres {
            // The affine of an image is in its own unit.
            Some(unit) => {
                let factors = scales.iter().map(|own| own.map_or(1.0, |own| own / unit));
                given.map(|given| given.scaled(&factors.collect::<Vec<f64>>()))
            }
            None => given.or(own),
        };
        let axes = current.root().axes.len();
        if let Some(affine) = self.options.affine.as_ref()
            && affine.axes() != axes
        {
            return Err(PyValueError::new_err(format!(
                "the affine is for {} axes, and {} has {axes}",
                affine.axes(),
                dataset.address()
            )));
        }
        if let Some(bounds) = current.root().bounds.as_ref()
            && self.options.outside.is_none()
            && array.shape().len() >= axes
        {
            let affine = self.options.affine.as_ref();
            check_overlap(array.shape(), affine, bounds.lower(), bounds.upper())
                .map_err(|error| exception(py, "InputError", &error.to_string(), None, None))?;
        }
        Sampling::new(py, array, axes, &self.options)
    }

    fn spec(&self, sampling: &Sampling) -> AttributeSpec {
        let mut spec = AttributeSpec::new(&self.into, sampling.sampler.kind());
        spec.row_shape = sampling.sampler.row_shape().to_vec();
        spec.overwrite = self.overwrite;
        spec
    }
}

/// A volume that is sampled.
struct Sampling {
    sampler: Arc<Sampler<Arc<dyn DenseArray>>>,
    /// Number of vertices outside the volume so far.
    outside: Arc<AtomicU64>,
}

impl Sampling {
    fn new(
        py: Python<'_>,
        array: Arc<dyn DenseArray>,
        axes: usize,
        options: &SampleOptions,
    ) -> PyResult<Self> {
        let sampler = engine::compute(py, || Sampler::new(array, axes, options))?;
        Ok(Self {
            sampler: Arc::new(sampler.map_err(|error| error.into_exception(py))?),
            outside: Arc::default(),
        })
    }

    /// Returns the function that samples.
    fn values(&self) -> Arc<VertexFn> {
        let (sampler, outside) = (Arc::clone(&self.sampler), Arc::clone(&self.outside));
        Arc::new(move |positions: &[f64]| {
            let sampled = sampler.sample(positions)?;
            outside.fetch_add(sampled.outside, Ordering::Relaxed);
            Ok(sampled.values)
        })
    }
}

/// Opens the volume, and returns the map from positions to voxels that a NIfTI file has.
fn volume(
    py: Python<'_>,
    volume: &Bound<'_, PyAny>,
    dataset: Option<&str>,
    memory: Option<u64>,
    scales: &[Option<f64>],
) -> PyResult<(Arc<dyn DenseArray>, Option<Affine>)> {
    if let Ok(bytes) = volume.cast::<PyArray1<u8>>() {
        let bytes = bytes.readonly().as_slice()?.to_vec();
        let array = engine::compute(py, || open_bytes(bytes))?;
        return Ok((
            Arc::new(array.map_err(|error| error.into_exception(py))?),
            None,
        ));
    }
    let path: String = volume.extract()?;
    if !is_nifti(&path) {
        let array = engine::compute(py, || open_array(&path, dataset, memory))?
            .map_err(|error| error.into_exception(py))?;
        return Ok((Arc::from(array), None));
    }
    let array: NiftiArray = engine::compute(py, || open_nifti(&path, memory))?
        .map_err(|error| error.into_exception(py))?;
    let map = array
        .map_from(scales)
        .map_err(|error| error.into_exception(py))?;
    Ok((Arc::new(array), Some(map)))
}
