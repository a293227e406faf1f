//! Changes of a store, and coarser levels.

use std::collections::BTreeMap;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf::{
    AttributeReport, AutoLevels, ChangeSummary, CrossLevel, Editor, MethodKind, ObjectSelection,
    OpenOptions, PyramidLevels, PyramidOptions, TableOptions,
    coarsen::{Aggregation, Placement},
};

use crate::{
    columns::array,
    create::{attributes, geometry, out_of_bounds, sharding},
    dataset::PyDataset,
    engine,
    errors::unusable,
    options::Keywords,
    progress::ProgressCallback,
    query,
    unfinished::warn_unfinished,
};

/// Adds objects.
#[pyfunction]
pub(crate) fn append<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    geometry: &Bound<'py, PyDict>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let bounds = out_of_bounds(&mut given)?.unwrap_or_default();
    let change = Change::new(dataset, &mut given);
    given.finish()?;
    let geometry = self::geometry(geometry)?;
    let editor = change.editor();
    let changed = change.run(
        py,
        async move { editor.await?.append(&geometry, bounds).await },
    )?;
    summary(py, changed)
}

/// Replaces objects by those of the geometry: the given ones, or those of equal ids.
#[pyfunction]
pub(crate) fn replace<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    geometry: &Bound<'py, PyDict>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let bounds = out_of_bounds(&mut given)?.unwrap_or_default();
    let remove = given.ids("remove")?;
    let change = Change::new(dataset, &mut given);
    given.finish()?;
    let geometry = self::geometry(geometry)?;
    let editor = change.editor();
    let changed = change.run(py, async move {
        let editor = editor.await?;
        match &remove {
            Some(ids) => editor.replace_objects(ids, &geometry, bounds).await,
            None => editor.replace(&geometry, bounds).await,
        }
    })?;
    summary(py, changed)
}

/// Removes objects, if the store is at the given transaction.
#[pyfunction]
pub(crate) fn remove<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    ids: &Bound<'py, PyArray1<i64>>,
    transaction: Option<u64>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::only(dataset, keywords)?;
    let (editor, ids) = (change.editor(), ids.readonly().as_slice()?.to_vec());
    let changed = change.run(py, async move {
        let editor = editor.await?;
        match transaction {
            Some(transaction) => editor.remove_objects(transaction, &ids).await,
            None => editor.remove(&ids).await,
        }
    })?;
    summary(py, changed)
}

/// Removes the vertices that a query selects.
#[pyfunction]
pub(crate) fn remove_selected<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    query: &Bound<'py, PyDict>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::only(dataset, keywords)?;
    let (editor, query) = (change.editor(), query::query(query)?);
    let changed = change.run(
        py,
        async move { editor.await?.remove_selected(&query).await },
    )?;
    summary(py, changed)
}

/// Removes the vertices with these addresses, which belong to a transaction.
#[pyfunction]
pub(crate) fn remove_rows<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    rows: &Bound<'py, PyArray1<u64>>,
    transaction: u64,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::only(dataset, keywords)?;
    let (editor, rows) = (change.editor(), rows.readonly().as_slice()?.to_vec());
    let changed = change.run(py, async move {
        editor.await?.remove_rows(Some(transaction), &rows).await
    })?;
    summary(py, changed)
}

/// Writes attributes of the vertices with these addresses, which belong to a transaction.
#[pyfunction]
pub(crate) fn write_vertex_attributes<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    rows: &Bound<'py, PyArray1<u64>>,
    columns: &Bound<'py, PyDict>,
    transaction: u64,
    replace: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::silent(dataset);
    let (editor, rows) = (change.editor(), rows.readonly().as_slice()?.to_vec());
    let columns = attributes(columns)?;
    let mut options = TableOptions::default();
    options.transaction = Some(transaction);
    options.replace = replace;
    let written = change.run(py, async move {
        let editor = editor.await?;
        let writing = editor.write_vertex_attributes(&rows, &columns, &options);
        writing.await
    })?;
    written_attributes(py, &written)
}

/// Writes attributes of the objects with these ids, if the store is at the given transaction.
#[pyfunction]
pub(crate) fn write_object_attributes<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    ids: &Bound<'py, PyArray1<i64>>,
    columns: &Bound<'py, PyDict>,
    transaction: Option<u64>,
    replace: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::silent(dataset);
    let (editor, ids) = (change.editor(), ids.readonly().as_slice()?.to_vec());
    let columns = attributes(columns)?;
    let mut options = TableOptions::default();
    options.transaction = transaction;
    options.replace = replace;
    let written = change.run(py, async move {
        let editor = editor.await?;
        let writing = editor.write_object_attributes(&ids, &columns, &options);
        writing.await
    })?;
    written_attributes(py, &written)
}

fn written_attributes<'py>(
    py: Python<'py>,
    written: &AttributeReport,
) -> PyResult<Bound<'py, PyDict>> {
    warn_unfinished(py, written.unfinished.as_ref())?;
    let found = PyDict::new(py);
    found.set_item("transaction", written.transaction)?;
    found.set_item("vertices", written.vertices)?;
    found.set_item("objects", written.objects)?;
    found.set_item("chunks", written.chunks)?;
    found.set_item("bytes", written.bytes)?;
    Ok(found)
}

/// Rewrites a store in compact form.
#[pyfunction]
pub(crate) fn compact<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::only(dataset, keywords)?;
    let editor = change.editor();
    let changed = change.run(py, async move { editor.await?.compact().await })?;
    summary(py, changed)
}

/// A change of a store.
struct Change {
    address: String,
    options: OpenOptions,
    progress: ProgressCallback,
}

impl Change {
    /// Takes the callback for progress.
    fn new(dataset: &Bound<'_, PyDataset>, given: &mut Keywords<'_>) -> Self {
        Self {
            progress: ProgressCallback::new(given.take("progress")),
            ..Self::silent(dataset)
        }
    }

    /// Takes the callback for progress, the only keyword.
    fn only(dataset: &Bound<'_, PyDataset>, keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut given = Keywords::new(keywords)?;
        let change = Self::new(dataset, &mut given);
        given.finish()?;
        Ok(change)
    }

    /// Creates a change that reports no progress.
    fn silent(dataset: &Bound<'_, PyDataset>) -> Self {
        let dataset = dataset.get();
        Self {
            address: dataset.address().to_owned(),
            options: dataset.options().clone(),
            progress: ProgressCallback::default(),
        }
    }

    /// Opens the store.
    fn editor(&self) -> impl Future<Output = Result<Editor, zvf::Error>> + Send + use<> {
        let (address, options) = (self.address.clone(), self.options.clone());
        let counter = self.progress.counter();
        async move {
            let editor = Editor::open_with(&address, &options).await?;
            Ok(match counter {
                Some(counter) => editor.progress(counter),
                None => editor,
            })
        }
    }

    /// Runs the change, which may compute for long.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl Future<Output = Result<T, zvf::Error>> + Send + 'static,
    ) -> PyResult<T> {
        engine::run_on_own_thread(py, &self.progress, work)
    }
}

fn summary(py: Python<'_>, changed: ChangeSummary) -> PyResult<Bound<'_, PyDict>> {
    warn_unfinished(py, changed.unfinished.as_ref())?;
    let found = PyDict::new(py);
    found.set_item("transaction", changed.transaction)?;
    found.set_item("added", changed.added)?;
    found.set_item("removed", changed.removed)?;
    found.set_item("objects", array(py, changed.objects)?)?;
    found.set_item("chunks", changed.chunks)?;
    found.set_item("severed", changed.severed)?;
    found.set_item("bytes", changed.bytes)?;
    Ok(found)
}

/// Builds coarser levels, or refreshes outdated ones.
#[pyfunction]
pub(crate) fn pyramid<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let mut given = Keywords::new(keywords)?;
    let progress = ProgressCallback::new(given.take("progress"));
    let refresh = given.get("refresh")?.unwrap_or(false);
    let mut options = pyramid_options(&mut given)?;
    given.finish()?;
    options.progress = progress.level_counter();
    let dataset = dataset.get();
    options.open = dataset.options().clone();
    let work = || async {
        match refresh {
            true => zvf::refresh_pyramid(dataset.address(), &options).await,
            false => zvf::build_pyramid(dataset.address(), &options).await,
        }
    };
    let report = engine::run_with_progress(py, work, &progress)?;
    let mut unfinished = report.levels.iter().map(|level| level.unfinished.as_ref());
    warn_unfinished(py, unfinished.next_back().flatten())?;
    let levels = report.levels.into_iter().map(|level| {
        let found = PyDict::new(py);
        found.set_item("level", level.level.number())?;
        found.set_item("method", level.method)?;
        found.set_item("vertices", level.vertices)?;
        found.set_item("objects", level.objects)?;
        found.set_item("links", level.links)?;
        found.set_item("chunks", level.chunks)?;
        found.set_item("bytes", level.bytes)?;
        found.set_item("error", level.error)?;
        Ok(found)
    });
    levels.collect()
}

/// Takes the options of `zvf pyramid`.
pub(crate) fn pyramid_options(given: &mut Keywords<'_>) -> PyResult<PyramidOptions> {
    let mut automatic = AutoLevels::default();
    let method = |word: &str| MethodKind::ALL.into_iter().find(|one| one.name() == word);
    let words = MethodKind::ALL.map(MethodKind::name).join(", ");
    automatic.method = given.word("method", method, &words)?;
    automatic.levels = given.get("levels")?;
    automatic.factors = factors(given, "factors", |factor| factor > 1.0, "above 1")?;
    automatic.cell = given.numbers("cell")?;
    automatic.tolerance = given.get("tolerance")?;
    if automatic
        .tolerance
        .is_some_and(|distance: f64| distance.is_nan() || distance <= 0.0)
    {
        return Err(PyValueError::new_err(
            "tolerance must be a distance above 0",
        ));
    }
    if given.get("medoid")?.unwrap_or(false) {
        automatic.placement = Placement::Medoid;
    }
    automatic.share = given.get("share")?.unwrap_or(false);
    automatic.keep = given.get("keep")?;
    automatic.seed = given.get("seed")?.unwrap_or(0);
    automatic.cull = given.get("cull")?.unwrap_or(0);
    automatic.additive = given.get("additive")?.unwrap_or(false);
    automatic.chunk_scale = given.get("chunk_scale")?;
    if let Some(policy) = given.take("sharding") {
        automatic.sharding = Some(sharding(&policy)?);
    }
    let choice: String = given
        .get("sparsity_by")?
        .unwrap_or_else(|| "random".to_owned());
    for fewer in factors(given, "sparsity", |factor| factor >= 1.0, "1 or more")? {
        let kept = ObjectSelection::parse(&choice, automatic.seed, 1.0 / fewer);
        let wrong = || {
            PyValueError::new_err(format!(
                "sparsity_by is {choice:?}; use random, length, coverage, group or attribute:NAME"
            ))
        };
        automatic.sparsity.push(kept.ok_or_else(wrong)?);
    }
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Auto(automatic);
    options.refinement = given.get("refinement")?.unwrap_or(false);
    let rules: Option<BTreeMap<String, String>> = given.get("rules")?;
    for (name, rule) in rules.into_iter().flatten() {
        let text = format!("{name}={rule}");
        let (_, rule) = Aggregation::of_attribute(&text).map_err(|error| unusable(&error))?;
        options.rules.insert(name, rule);
    }
    let links = |word: &str| match word {
        "none" => Some(CrossLevel::None),
        "implicit" => Some(CrossLevel::Implicit),
        "explicit" => Some(CrossLevel::Explicit),
        _ => None,
    };
    if let Some(links) = given.word("cross_level", links, "none, implicit or explicit")? {
        options.cross_level = links;
    }
    match given.get::<i64>("depth")? {
        None => {}
        Some(-1) => options.depth = None,
        Some(depth) => {
            let depth = u32::try_from(depth).map_err(|_| {
                PyValueError::new_err(format!(
                    "depth is {depth}; it is a number of levels, or -1 for all"
                ))
            })?;
            options.depth = Some(depth);
        }
    }
    options.overwrite = given.get("overwrite")?.unwrap_or(false);
    Ok(options)
}

/// Takes factors within limits.
fn factors(
    given: &mut Keywords<'_>,
    name: &'static str,
    fits: impl Fn(f64) -> bool,
    limits: &str,
) -> PyResult<Vec<f64>> {
    let factors = given.numbers(name)?.unwrap_or_default();
    let mut wrong = factors
        .iter()
        .filter(|factor| !(fits(**factor) && factor.is_finite()));
    match wrong.next() {
        Some(factor) => Err(PyValueError::new_err(format!(
            "{name} has {factor}; every factor must be {limits}"
        ))),
        None => Ok(factors),
    }
}
