//! An open store.

use std::{
    sync::{PoisonError, RwLock},
    time::{Duration, Instant},
};

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};
use zvf::{BatchOptions, Follow, LevelId, OpenOptions, OperatorReport, Word};

use crate::{
    batches::PyBatches,
    columns::{array, attributes, indices},
    engine,
    options::{Keywords, from_json},
    progress::ProgressCallback,
    query,
    result::{self, EmptyBox},
};

/// Maximum number of groups listed.
const MAX_GROUPS: u64 = 1 << 20;

/// A delta, nodes with the number of ends of a link, and attributes with the nodes of their values.
type LinkList = (i32, Vec<(String, usize)>, Vec<(String, Vec<String>)>);

/// An open store. `zvf.Dataset` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "Dataset")]
#[derive(Debug)]
pub(crate) struct PyDataset {
    address: String,
    options: OpenOptions,
    current: RwLock<zvf::Dataset>,
}

impl PyDataset {
    /// Returns the state that was opened or reloaded last. Clones share caches.
    pub(crate) fn current(&self) -> zvf::Dataset {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// Returns the address, absolute for a local store: writes open it again, perhaps in another
    /// working directory.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the options of opening.
    pub(crate) fn options(&self) -> &OpenOptions {
        &self.options
    }
}

/// Opens a store.
#[pyfunction]
pub(crate) fn open(
    py: Python<'_>,
    address: &str,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyDataset> {
    let mut keywords = Keywords::new(keywords)?;
    let options = open_options(&mut keywords)?;
    keywords.finish()?;
    // Before other threads can change the working directory.
    let absolute = zvf_store::absolute_address(address);
    let dataset = engine::run(py, zvf::Dataset::open_with(address, &options))?;
    Ok(PyDataset {
        address: absolute,
        options,
        current: RwLock::new(dataset),
    })
}

/// Takes the options for opening a store.
pub(crate) fn open_options(keywords: &mut Keywords<'_>) -> PyResult<OpenOptions> {
    let mut options = OpenOptions::new();
    if let Some(anonymous) = keywords.get("anonymous")? {
        options = options.anonymous(anonymous);
    }
    if let Some(bytes) = keywords.get("memory_budget")? {
        options = options.budget(bytes);
    }
    if let Some(bytes) = keywords.get("cache")? {
        options = options.cache(bytes);
    }
    if let Some(requests) = keywords.get("concurrency")? {
        options = options.concurrency(requests);
    }
    if let Some(retries) = keywords.get("retries")? {
        options = options.retries(retries);
    }
    if let Some(seconds) = keywords.get::<f64>("timeout")? {
        let timeout = Duration::try_from_secs_f64(seconds);
        options = options.timeout(timeout.map_err(|error| {
            PyValueError::new_err(format!("timeout is {seconds} seconds: {error}"))
        })?);
    }
    if let Some(enabled) = keywords.get("node_copy")? {
        options = options.node_copy(enabled);
    }
    if let Some(enabled) = keywords.get("check_seal")? {
        options = options.seal(enabled);
    }
    let follow = |word: &str| match word {
        "never" => Some(Follow::Never),
        "when_gone" => Some(Follow::WhenGone),
        "always" => Some(Follow::Always),
        _ => None,
    };
    if let Some(follow) = keywords.word("follow", follow, "never, when_gone or always")? {
        options = options.follow(follow);
    }
    if let Some(named) = keywords.get::<Vec<(String, String)>>("options")? {
        for (name, value) in named {
            options = options.option(name, value);
        }
    }
    Ok(options)
}

#[pymethods]
impl PyDataset {
    #[getter(address)]
    fn py_address(&self) -> &str {
        &self.address
    }

    /// Opens the present state of the store.
    fn reload(&self, py: Python<'_>) -> PyResult<()> {
        let mut dataset = self.current();
        engine::run(py, dataset.reload())?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = dataset;
        Ok(())
    }

    /// Runs a query in batches.
    fn batches(&self, keywords: &Bound<'_, PyDict>) -> PyResult<PyBatches> {
        let keywords = keywords.copy()?;
        let mut given = Keywords::new(&keywords)?;
        let mut options = BatchOptions::new();
        for name in ["batch_rows", "batch_bytes"] {
            if keywords.contains(name)? {
                keywords.del_item(name)?;
            }
        }
        if let Some(rows) = given.get("batch_rows")? {
            options = options.rows(rows);
        }
        if let Some(bytes) = given.get("batch_bytes")? {
            options = options.bytes(bytes);
        }
        let query = query::query(&keywords)?;
        let dataset = self.current();
        Ok(PyBatches::new(dataset, query, options))
    }

    /// Returns what the root says.
    fn root<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dataset = self.current();
        let root = dataset.root();
        let found = PyDict::new(py);
        found.set_item("generation", dataset.detection().generation.to_string())?;
        found.set_item("kinds", texts(&root.geometry_kinds))?;
        let axes = root
            .axes
            .iter()
            .map(|axis| (axis.name.as_str(), axis.unit.as_deref()));
        found.set_item("axes", axes.collect::<Vec<_>>())?;
        let bounds = root.bounds.as_ref();
        let bounds = bounds.map(|bounds| (bounds.lower().to_vec(), bounds.upper().to_vec()));
        found.set_item("bounds", bounds)?;
        found.set_item("chunk_shape", root.chunk_shape.extents())?;
        let winding = root.kinds().any(zvf::GeometryKind::has_faces);
        let winding = winding.then(|| root.winding().as_str());
        found.set_item("winding", winding)?;
        found.set_item("capabilities", root.capabilities.clone())?;
        let conventions = PyDict::new(py);
        let word = |word: Option<&str>| word.map(str::to_owned);
        for (name, word) in [
            (
                "links_convention",
                word(root.links_convention.as_ref().map(Word::as_str)),
            ),
            (
                "object_index_convention",
                word(root.object_index_convention.as_ref().map(Word::as_str)),
            ),
            (
                "cross_chunk_strategy",
                word(root.cross_chunk_strategy.as_ref().map(Word::as_str)),
            ),
            (
                "cross_level_storage",
                word(root.cross_level_storage.as_ref().map(Word::as_str)),
            ),
        ] {
            if let Some(word) = word {
                conventions.set_item(name, word)?;
            }
        }
        found.set_item("conventions", conventions)?;
        let crs = root
            .crs
            .as_ref()
            .map(|crs| from_json(py, crs))
            .transpose()?;
        found.set_item("crs", crs)?;
        let levels = dataset.levels().iter().map(|level| level.number());
        found.set_item("levels", levels.collect::<Vec<_>>())?;
        let notes = root.notes.iter().map(ToString::to_string);
        found.set_item("notes", notes.collect::<Vec<_>>())?;
        found.set_item("transaction", dataset.transaction())?;
        Ok(found)
    }

    /// Counts the contents of every level.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = engine::run(py, self.current().info())?;
        let found = PyDict::new(py);
        found.set_item("profile", info.profile)?;
        let levels = PyList::empty(py);
        for level in &info.levels {
            let row = PyDict::new(py);
            row.set_item("level", level.level.number())?;
            row.set_item("vertices", level.vertices)?;
            row.set_item("objects", level.objects)?;
            row.set_item("links", level.links)?;
            row.set_item("chunks", level.chunks)?;
            row.set_item("bytes", level.bytes)?;
            row.set_item("is_additive", level.is_additive)?;
            row.set_item("is_behind", level.is_behind)?;
            levels.append(row)?;
        }
        found.set_item("levels", levels)?;
        found.set_item("notes", info.notes)?;
        Ok(found)
    }

    /// Describes the attributes of a level.
    fn attributes<'py>(&self, py: Python<'py>, level: u32) -> PyResult<Bound<'py, PyList>> {
        let found = engine::run(py, self.current().attributes(LevelId::new(level)))?;
        let list = PyList::empty(py);
        for attribute in found {
            let row = PyDict::new(py);
            row.set_item("family", attribute.scope.name())?;
            row.set_item("name", attribute.name)?;
            row.set_item("dtype", attribute.data_type)?;
            row.set_item("channels", attribute.channels)?;
            row.set_item("channel_names", attribute.channel_names)?;
            row.set_item("unit", attribute.unit)?;
            list.append(row)?;
        }
        Ok(list)
    }

    /// Returns the numbers of the groups with these names.
    fn group_numbers(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Vec<u64>> {
        let dataset = self.current();
        engine::run(py, async move {
            dataset.groups_named(LevelId::FULL, &names).await
        })
    }

    /// Returns the objects nearest to the position of a query, and their distances.
    fn nearest_objects(
        &self,
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
    ) -> PyResult<(Vec<i64>, Vec<f64>)> {
        let (dataset, query) = (self.current(), query::query(keywords)?);
        let found = engine::run(py, async move { dataset.nearest_objects(&query).await })?;
        Ok(found
            .iter()
            .map(|object| (object.id, object.distance))
            .unzip())
    }

    /// Returns the number of members of each group, and the attributes of groups.
    fn group_table<'py>(
        &self,
        py: Python<'py>,
        level: u32,
    ) -> PyResult<(Vec<u64>, Vec<Bound<'py, PyTuple>>)> {
        let dataset = self.current();
        let found = engine::run(py, dataset.group_table(LevelId::new(level)))?;
        let Some((groups, columns)) = found else {
            return Ok((Vec::new(), Vec::new()));
        };
        // The number of groups comes from the store and may be absurd.
        let count = groups.len().min(MAX_GROUPS);
        let members = (0..count).map(|id| groups.members(id).map_or(0, |own| own.len()));
        Ok((members.collect(), attributes(py, columns)?))
    }

    /// Lists the links of a level: delta, nodes with the number of ends, attributes with their nodes.
    fn link_info(&self, py: Python<'_>, level: u32) -> PyResult<Vec<LinkList>> {
        let found = engine::run(py, self.current().link_info(LevelId::new(level)))?;
        let texts = |keys: Vec<zvf_model::key::Key>| texts(&keys);
        let lists = found.into_iter().map(|links| {
            let families = links.families.into_iter();
            let attributes = links.attributes.into_iter();
            (
                links.delta,
                families
                    .map(|(key, ends)| (key.to_string(), ends))
                    .collect(),
                attributes.map(|(name, keys)| (name, texts(keys))).collect(),
            )
        });
        Ok(lists.collect())
    }

    /// Returns the links of each family as stored: number of ends, coordinates of the chunk of each end,
    /// row of each end, attributes.
    fn stored_links<'py>(
        &self,
        py: Python<'py>,
        level: u32,
        delta: i32,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let dataset = self.current();
        let links = dataset.stored_links(LevelId::new(level), delta);
        let found = engine::run(py, links)?;
        let families = found.into_iter().flat_map(|links| links.families);
        families
            .map(|family| {
                let ends = (0..family.len()).flat_map(|link| family.ends_of(link));
                let (mut chunks, mut rows) = (Vec::new(), Vec::new());
                for (chunk, row) in ends {
                    chunks.extend_from_slice(chunk.coords());
                    rows.push(row);
                }
                (
                    family.width,
                    array(py, chunks)?,
                    indices(py, rows)?,
                    attributes(py, family.attributes)?,
                )
                    .into_pyobject(py)
            })
            .collect()
    }

    /// Runs a query.
    fn query<'py>(
        &self,
        py: Python<'py>,
        keywords: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let query = query::query(keywords)?;
        let dataset = self.current();
        let found = engine::run(py, result::found(&dataset, &query))?;
        result::tuple(py, found)
    }

    /// Runs a query `count` times as a Rust program does, drops the results, and returns the time in
    /// seconds. The benchmark compares it with that of `query`.
    fn time_query(
        &self,
        py: Python<'_>,
        keywords: &Bound<'_, PyDict>,
        count: usize,
    ) -> PyResult<f64> {
        let query = query::query(keywords)?;
        let dataset = self.current();
        let work = async {
            let start = Instant::now();
            for _ in 0..count {
                dataset.query(&query).await?;
            }
            Ok::<_, zvf::Error>(start.elapsed())
        };
        engine::run(py, work).map(|time| time.as_secs_f64())
    }

    /// Counts what a query selects.
    fn count<'py>(
        &self,
        py: Python<'py>,
        keywords: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let query = query::query(keywords)?;
        let dataset = self.current();
        let work = async {
            let failed = |error| result::QueryFailure::of(&query, error);
            dataset.check_selection(&query).await.map_err(failed)?;
            dataset.count(&query).await.map_err(failed)
        };
        let mut counts = engine::run(py, work)?;
        if let Some(found) = EmptyBox::of(&dataset, &query).filter(|_| counts.vertices == 0) {
            counts.notes.push(found.tell(py)?);
        }
        let found = PyDict::new(py);
        found.set_item("level", counts.level.number())?;
        found.set_item("vertices", counts.vertices)?;
        found.set_item("parts", counts.parts)?;
        found.set_item("objects", counts.objects)?;
        found.set_item("links", counts.links)?;
        found.set_item("levels", result::levels(&counts.levels))?;
        found.set_item("notes", counts.notes)?;
        Ok(found)
    }

    /// Plans a query without running it.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        keywords: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let query = query::query(keywords)?;
        let plan = engine::run(py, self.current().explain(&query))?;
        let found = PyDict::new(py);
        found.set_item("requests", plan.requests())?;
        found.set_item("bytes", plan.bytes())?;
        found.set_item("at_most", plan.at_most)?;
        found.set_item("levels", result::levels(&plan.levels))?;
        found.set_item("operators", operators(py, &plan.operators)?)?;
        found.set_item("notes", plan.notes)?;
        Ok(found)
    }

    /// Runs a query and reports the requests of its operators.
    fn analyze<'py>(
        &self,
        py: Python<'py>,
        keywords: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyList>> {
        let query = query::query(keywords)?;
        let dataset = self.current();
        let work = async move { dataset.analyze(&query).await };
        let found = engine::run_on_own_thread(py, &ProgressCallback::default(), work)?;
        operators(py, &found)
    }

    /// Returns the requests and bytes of this store so far.
    fn activity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dataset = self.current();
        let activity = dataset.store().activity();
        let found = PyDict::new(py);
        found.set_item("requests", activity.requests.saturating_add(activity.lists))?;
        found.set_item("bytes_read", activity.bytes_read)?;
        Ok(found)
    }
}

fn operators<'py>(py: Python<'py>, operators: &[OperatorReport]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for operator in operators {
        let row = PyDict::new(py);
        row.set_item("depth", operator.depth)?;
        row.set_item("name", operator.name)?;
        row.set_item("details", &operator.details)?;
        row.set_item("level", operator.level.number())?;
        row.set_item("requests", operator.requests)?;
        row.set_item("round_trips", operator.round_trips)?;
        row.set_item("bytes", operator.bytes)?;
        list.append(row)?;
    }
    Ok(list)
}

fn texts(items: &[impl ToString]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

/// Divides a query.
#[pyfunction]
pub(crate) fn partitions<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    parts: usize,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyList>> {
    let query = query::query(keywords)?;
    let dataset = dataset.get().current();
    let found = engine::run(py, dataset.partitions(&query, parts))?;
    let list = PyList::empty(py);
    for part in found {
        let row = PyDict::new(py);
        row.set_item("text", part.to_string())?;
        row.set_item("rows", part.rows)?;
        row.set_item("bytes", part.bytes)?;
        let bounds = part.bounds.as_ref();
        row.set_item(
            "bounds",
            bounds.map(|one| (one.lo().to_vec(), one.hi().to_vec())),
        )?;
        list.append(row)?;
    }
    Ok(list)
}
