//! Changes of a store, and coarser levels.

use std::collections::BTreeMap;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf::{
    AttributeReport, AutoLevels, ChangeSummary, CrossLevel, Editor, GeometryKind, MethodKind,
    ObjectSelection, OpenOptions, PyramidLevels, PyramidOptions, Scope, TableOptions,
    coarsen::{Aggregation, Placement},
};
use zvf_files::{
    GeometryInput, StoreDescription,
    display::{dropped_note, len_u64},
    match_space, other_system,
};

use crate::{
    columns::array,
    create::{attributes, builder, file_unit, geometry, out_of_bounds, sharding},
    dataset::PyDataset,
    engine,
    errors::{IntoException, unusable},
    options::{Keywords, json},
    origin::{Origin, OriginArguments},
    progress::ProgressCallback,
    query,
    unfinished::warn_unfinished,
};

/// Adds objects. `origin` is the store and the query that the geometry comes from, if any.
#[pyfunction]
#[pyo3(signature = (dataset, geometry, keywords, origin=None))]
pub(crate) fn append<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    geometry: &Bound<'py, PyDict>,
    keywords: &Bound<'py, PyDict>,
    origin: Option<OriginArguments<'py>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let bounds = out_of_bounds(&mut given)?.unwrap_or_default();
    let renumber = |word: &str| match word {
        "keep" => Some(false),
        "new" => Some(true),
        _ => None,
    };
    let renumber = given.word("ids", renumber, "keep or new")?;
    let unit = file_unit(&mut given)?;
    let is_same_system = given.get("assume_crs")?.unwrap_or(false);
    let crs = given.take("crs").map(|crs| json(&crs)).transpose()?;
    let change = Change::new(dataset, &mut given);
    given.finish()?;
    let geometry = builder(geometry, kind_of(dataset))?;
    let mut input = match Origin::of(origin)? {
        Some(origin) => origin.input(py, geometry)?,
        None => GeometryInput::new(geometry, StoreDescription::default()),
    };
    input.crs = input.crs.or(crs);
    let current = dataset.get().current();
    let root = current.root();
    let axes: Vec<String> = root.axes.iter().map(|axis| axis.name.clone()).collect();
    match_space(root, &axes, None, unit.as_deref(), &mut input)
        .map_err(|error| unusable(&error))?;
    if let Some((of_source, of_store)) = other_system(root, &input).filter(|_| !is_same_system) {
        return Err(PyValueError::new_err(format!(
            "the coordinates of the source are in {of_source}, and those of the store in {of_store}; \
             transform them first, or pass assume_crs=True if they are the same"
        )));
    }
    let built = input.geometry.build();
    let geometry = built.map_err(|error| zvf::Error::from(error).into_exception(py))?;
    let vertices = len_u64(geometry.vertices());
    let report = change.run(py, move |editor| async move {
        let editor = editor.renumber(renumber.unwrap_or(false));
        editor.append(&geometry, bounds).await
    })?;
    let added = report
        .get_item("added")?
        .map(|added| added.extract::<u64>());
    let mut notes = input.notes;
    notes.extend(
        added
            .transpose()?
            .and_then(|added| dropped_note(vertices, added)),
    );
    report.set_item("notes", notes)?;
    Ok(report)
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
    let geometry = self::geometry(geometry, kind_of(dataset))?;
    change.run(py, move |editor| async move {
        match &remove {
            Some(ids) => editor.replace_objects(ids, &geometry, bounds).await,
            None => editor.replace(&geometry, bounds).await,
        }
    })
}

/// Returns the kind of geometry of a store, which texts of errors name.
fn kind_of(dataset: &Bound<'_, PyDataset>) -> GeometryKind {
    let dataset = dataset.get().current();
    dataset.root().first_kind().unwrap_or(GeometryKind::Points)
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
    let ids = ids.readonly().as_slice()?.to_vec();
    change.run(py, move |editor| async move {
        match transaction {
            Some(transaction) => editor.remove_objects(transaction, &ids).await,
            None => editor.remove(&ids).await,
        }
    })
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
    let query = query::query(query)?;
    change.run(py, move |editor| async move {
        editor.remove_selected(&query).await
    })
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
    let rows = rows.readonly().as_slice()?.to_vec();
    change.run(py, move |editor| async move {
        editor.remove_rows(Some(transaction), &rows).await
    })
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
    let rows = rows.readonly().as_slice()?.to_vec();
    let columns = attributes(columns)?;
    let options = table_options(Some(transaction), replace);
    change.run(py, move |editor| async move {
        let writing = editor.write_vertex_attributes(&rows, &columns, &options);
        writing.await
    })
}

/// Writes attributes of the fragments that contain the vertices with these addresses, which belong to a
/// transaction.
#[pyfunction]
pub(crate) fn write_fragment_attributes<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    rows: &Bound<'py, PyArray1<u64>>,
    columns: &Bound<'py, PyDict>,
    transaction: u64,
    replace: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::silent(dataset);
    let rows = rows.readonly().as_slice()?.to_vec();
    let columns = attributes(columns)?;
    let options = table_options(Some(transaction), replace);
    change.run(py, move |editor| async move {
        let writing = editor.write_fragment_attributes(&rows, &columns, &options);
        writing.await
    })
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
    let ids = ids.readonly().as_slice()?.to_vec();
    let columns = attributes(columns)?;
    let options = table_options(transaction, replace);
    change.run(py, move |editor| async move {
        let writing = editor.write_object_attributes(&ids, &columns, &options);
        writing.await
    })
}

/// Removes attributes, each given by its scope, if any, and its name.
#[pyfunction]
pub(crate) fn drop_attributes<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    names: Vec<(Option<String>, String)>,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::silent(dataset);
    let scope = |word: String| Scope::ALL.into_iter().find(|scope| scope.name() == word);
    let names: Vec<_> = names
        .into_iter()
        .map(|(word, name)| (word.and_then(scope), name))
        .collect();
    change.run(py, move |editor| async move {
        editor.remove_attributes(&names).await
    })
}

fn table_options(transaction: Option<u64>, replace: bool) -> TableOptions {
    let mut options = TableOptions::default();
    options.transaction = transaction;
    options.replace = replace;
    options
}

/// Rewrites a store in compact form.
#[pyfunction]
pub(crate) fn compact<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let change = Change::only(dataset, keywords)?;
    change.run(py, |editor| async move { editor.compact().await })
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

    /// Opens the store and changes it, which may compute for long. Returns the report as a dict.
    fn run<T, F>(
        self,
        py: Python<'_>,
        work: impl FnOnce(Editor) -> F + Send + 'static,
    ) -> PyResult<Bound<'_, PyDict>>
    where
        T: ChangeReport + Send + 'static,
        F: Future<Output = Result<T, zvf::Error>> + Send + 'static,
    {
        let Self {
            address,
            options,
            progress,
        } = self;
        let counter = progress.counter();
        let changed = engine::run_on_own_thread(py, &progress, async move {
            let editor = Editor::open_with(&address, &options).await?;
            let editor = match counter {
                Some(counter) => editor.progress(counter),
                None => editor,
            };
            work(editor).await
        })?;
        changed.into_dict(py)
    }
}

/// The report of a change.
trait ChangeReport {
    /// Returns the report as a dict, and warns if the change could not be finished.
    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>>;
}

impl ChangeReport for ChangeSummary {
    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        warn_unfinished(py, self.unfinished.as_ref())?;
        let found = PyDict::new(py);
        found.set_item("transaction", self.transaction)?;
        found.set_item("added", self.added)?;
        found.set_item("removed", self.removed)?;
        found.set_item("objects", array(py, self.objects)?)?;
        found.set_item("chunks", self.chunks)?;
        found.set_item("severed", self.severed)?;
        found.set_item("bytes", self.bytes)?;
        Ok(found)
    }
}

impl ChangeReport for AttributeReport {
    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        warn_unfinished(py, self.unfinished.as_ref())?;
        let found = PyDict::new(py);
        found.set_item("transaction", self.transaction)?;
        found.set_item("vertices", self.vertices)?;
        found.set_item("objects", self.objects)?;
        found.set_item("chunks", self.chunks)?;
        found.set_item("bytes", self.bytes)?;
        Ok(found)
    }
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
        if refresh {
            zvf::refresh_pyramid(dataset.address(), &options).await
        } else {
            zvf::build_pyramid(dataset.address(), &options).await
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
        found.set_item("dropped_pieces", level.dropped_pieces)?;
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
    if let Some(links) = given.word(
        "cross_level",
        CrossLevel::of_word,
        "none, implicit or explicit",
    )? {
        options.cross_level = links;
    }
    match given.get::<i64>("depth")? {
        None => {}
        Some(-1) => options.depth = None,
        Some(depth) => {
            // The format has no larger number than that of an i32.
            let levels = i32::try_from(depth).ok().map(u32::try_from);
            let Some(Ok(levels)) = levels else {
                return Err(PyValueError::new_err(format!(
                    "depth is {depth}; it is a number of levels below 2147483648, or -1 for all"
                )));
            };
            options.depth = Some(levels);
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
