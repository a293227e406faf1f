//! Geometry from arrays, and new stores.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::{
    exceptions::{PyKeyError, PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};
use zvf::{
    AxisSpec, BuildError, CellChecksums, CellCompression, Column, ColumnValues, CreateOptions,
    Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds, Profile, Purpose,
    Scope, ShardingPolicy, StepLinks, VertexOwners, WindingOrder, WriteReport, numeric::Kind,
};
use zvf_files::{
    AttributeRename, FileDescription, FileError, FileHeader, FileObjectIds, FileReadOptions,
    GeometryInput, GeometryReadOptions, InputFile, InputFileError, MissingPolicy, TableStream,
    check_unit,
    display::{dropped_note, len_u64},
    replace_grid, settle_units, stated_kind,
};
use zvf_model::error_chain::error_chain;

use crate::{
    dataset::open_options,
    engine,
    errors::{IntoException, exception, unreadable, unusable},
    files::grid_of,
    options::{Keywords, json},
    origin::{Origin, OriginArguments},
    phrases::in_python,
    progress::ProgressCallback,
    unfinished::warn_unfinished,
};

/// Extensions of files of tables and arrays.
const TABLES: [&str; 4] = ["npz", "csv", "arrow", "parquet"];
/// Default memory for a file that is read as a whole.
const WHOLE_MEMORY: u64 = 1 << 30;
/// Copies of the geometry in memory while a store is planned as a whole.
const COPIES: u64 = 6;

/// Writes geometry as a new store. `origin` is the store and the query that the geometry comes from,
/// if any.
#[pyfunction]
#[pyo3(signature = (address, geometry, keywords, origin=None))]
pub(crate) fn create<'py>(
    py: Python<'py>,
    address: &str,
    geometry: &Bound<'py, PyDict>,
    keywords: &Bound<'py, PyDict>,
    origin: Option<OriginArguments<'py>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let origin = Origin::of(origin)?;
    let kind = match (geometry_kind(&mut given)?, &origin) {
        (Some(kind), _) => kind,
        (None, Some(origin)) => origin.kind().ok_or_else(no_kind)?,
        (None, None) => return Err(no_kind()),
    };
    let mut design = design(&mut given, kind, address)?;
    let unit = file_unit(&mut given)?;
    let reference = reference(&mut given)?;
    let mut options = create_options(&mut given)?;
    let progress = ProgressCallback::new(given.take("progress"));
    given.finish()?;
    options.progress = progress.counter();
    let raised = |error: BuildError| zvf::Error::from(error).into_exception(py);
    let geometry = builder(geometry, kind)?;
    let (geometry, notes) = match origin {
        Some(origin) => {
            let input = origin.input(py, geometry)?;
            input.complete(&mut design);
            let (names, own) = (input.axes.as_deref(), &input.description.axes);
            settle_units(&mut design, names, own, None, unit.as_deref())
                .map_err(|error| unusable(&error))?;
            (input.geometry, input.notes)
        }
        None => {
            settle_units(&mut design, None, &[], None, unit.as_deref())
                .map_err(|error| unusable(&error))?;
            (geometry, Vec::new())
        }
    };
    set_reference(&mut design, reference.as_ref())?;
    let geometry = geometry.build().map_err(raised)?;
    let read = len_u64(geometry.vertices());
    let work = || zvf::create(address, geometry, design, &options);
    let written = engine::run_with_progress(py, work, &progress)?;
    report(py, Some(read), written, notes)
}

/// Writes the geometry of a file as a new store.
#[pyfunction]
pub(crate) fn create_from_file<'py>(
    py: Python<'py>,
    address: &str,
    file: PathBuf,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let extension = file.extension().unwrap_or_default();
    let is_table = TABLES.iter().any(|own| extension.eq_ignore_ascii_case(own));
    // A table may have a geometry of its own, as GeoParquet has.
    let is_field = || InputFile::new(&file).is_ok_and(|input| !input.format().is_interchange());
    if is_table && !is_field() {
        return create_from_tables(py, address, &file, keywords);
    }
    let mut given = Keywords::new(keywords)?;
    let mut reading = FileReadOptions::default();
    reading.kind = geometry_kind(&mut given)?;
    reading.with = given.get("companions")?.unwrap_or_default();
    reading.ids = file_ids(&mut given)?;
    reading.renames = renames(&mut given)?;
    reading.nan_for_missing = missing(&mut given)? == MissingPolicy::Nan;
    let kind = reading.kind;
    let mut options = create_options(&mut given)?;
    let whole_size = options.memory.unwrap_or(WHOLE_MEMORY) / COPIES;
    reading.in_memory = whole_size;
    let open = move || zvf_files::open(&file, &reading);
    let opened = engine::run(py, engine::blocking(open))?;
    let mut reader = opened.map_err(|error| error.into_exception(py))?;
    let description = reader.description().clone();
    let mut design = design(&mut given, kind.unwrap_or(description.kind), address)?;
    description.complete(&mut design);
    settle_file_units(&mut given, &mut design, &description)?;
    let reference = reference(&mut given)?;
    set_reference(&mut design, reference.as_ref())?;
    let progress = ProgressCallback::new(given.take("progress"));
    given.finish()?;
    options.progress = progress.counter();
    let is_linked_whole = description.kind.is_linked() && reader.is_whole();
    let is_divided = description.bytes > whole_size
        && design.profile != Profile::Padded
        && !is_linked_whole
        && !options.overwrite;
    let raised = |error: zvf::Error| Python::attach(|py| error.into_exception(py));
    let (written, read, notes) = if is_divided {
        let work = || async {
            let written = zvf::create_from_source(address, reader.as_mut(), design, &options)
                .await
                .map_err(raised)?;
            Ok::<_, PyErr>((written, None, reader.description().notes.clone()))
        };
        engine::run_with_progress(py, work, &progress)?
    } else {
        let work = || async {
            let read = move || {
                let geometry = zvf_files::read_whole(reader.as_mut());
                // Some notes come with the last batch.
                geometry.map(|geometry| (geometry, reader.description().notes.clone()))
            };
            let read = engine::blocking(read).await?;
            let (geometry, notes) =
                read.map_err(|error| Python::attach(|py| unreadable(py, error)))?;
            let vertices = len_u64(geometry.vertices());
            let written = zvf::create(address, geometry, design, &options).await;
            Ok::<_, PyErr>((written.map_err(raised)?, Some(vertices), notes))
        };
        engine::run_with_progress(py, work, &progress)?
    };
    report(py, read, written, notes)
}

/// Writes the geometry of a `.npz`, or of a table and the tables beside it, as a new store.
fn create_from_tables<'py>(
    py: Python<'py>,
    address: &str,
    file: &Path,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let input = InputFile::new(file).map_err(|error| {
        let text = format!("{}: {error}", file.display());
        let class = match error {
            InputFileError::NoFile => "NotFoundError",
            _ => "InputError",
        };
        exception(py, class, &text, None, None)
    })?;
    let kind = table_kind(py, &mut given, &input)?;
    let companions: Option<Vec<PathBuf>> = given.get("companions")?;
    if companions.is_some_and(|files| !files.is_empty()) {
        return Err(PyTypeError::new_err(format!(
            "companions belong to tractograms and surfaces; the tables of links, objects and \
             groups beside {} are read without being named",
            file.display()
        )));
    }
    let mut design = design(&mut given, kind, address)?;
    let unit = file_unit(&mut given)?;
    let reference = reference(&mut given)?;
    let mut options = create_options(&mut given)?;
    let mut reading = GeometryReadOptions::new(kind);
    reading.renames = renames(&mut given)?;
    reading.missing = missing(&mut given)?;
    let progress = ProgressCallback::new(given.take("progress"));
    given.finish()?;
    options.progress = progress.counter();
    let axes = design.axes.as_ref();
    reading.axes = axes.map(|axes| axes.iter().map(|axis| axis.name.clone()).collect());
    let format = Some(input.format());
    let whole_size = options.memory.unwrap_or(WHOLE_MEMORY) / COPIES;
    if design.profile != Profile::Padded && !options.overwrite {
        reading.memory = options.memory;
        let (file, read) = (input.clone(), reading.clone());
        let open = move || TableStream::open(&file, &read, whole_size);
        let result = engine::run(py, engine::blocking(open))?;
        let opened = result.map_err(|error| error.into_exception(py))?.ok();
        if let Some(mut stream) = opened.filter(|stream| stream.bytes() > whole_size) {
            stream.complete(&mut design);
            let (names, own) = (stream.axes(), &stream.description().axes);
            settle_units(&mut design, names, own, format, unit.as_deref())
                .map_err(|error| unusable(&error))?;
            set_reference(&mut design, reference.as_ref())?;
            let notes = stream.notes().to_vec();
            let work = || zvf::create_from_source(address, &mut stream, design, &options);
            let written = engine::run_with_progress(py, work, &progress)?;
            return report(py, None, written, notes);
        }
    }
    let read = move || {
        let mut geometry = zvf_files::read(&input, &reading)?;
        geometry.separate_parts()?;
        Ok(geometry)
    };
    let read = engine::run(py, engine::blocking(read))?;
    let input: GeometryInput = read.map_err(|error: FileError| {
        exception(py, "InputError", &error_chain(&error), None, None)
    })?;
    input.complete(&mut design);
    let (names, own) = (input.axes.as_deref(), &input.description.axes);
    settle_units(&mut design, names, own, format, unit.as_deref())
        .map_err(|error| unusable(&error))?;
    set_reference(&mut design, reference.as_ref())?;
    let GeometryInput {
        geometry, notes, ..
    } = input;
    let read = len_u64(geometry.vertices());
    let work = || async {
        let geometry = geometry.build()?;
        zvf::create(address, geometry, design, &options).await
    };
    let written = engine::run_with_progress(py, work, &progress)?;
    report(py, Some(read), written, notes)
}

/// Takes the voxel grid of the reference image of streamlines.
fn reference(given: &mut Keywords<'_>) -> PyResult<Option<FileHeader>> {
    let reference = given.take("reference");
    reference.map(|image| grid_of(&image)).transpose()
}

/// Sets the voxel grid of the files of a store.
fn set_reference(design: &mut Design, grid: Option<&FileHeader>) -> PyResult<()> {
    let Some(grid) = grid else {
        return Ok(());
    };
    if !design.kind.is_paths() {
        return Err(PyValueError::new_err(format!(
            "reference is the image of streamlines; leave it out for {}",
            design.kind.name()
        )));
    }
    let mut headers = design.headers.as_ref().clone();
    replace_grid(&mut headers, grid);
    design.headers = headers.into();
    Ok(())
}

/// Takes the unit of the coordinates of a file.
pub(crate) fn file_unit(given: &mut Keywords<'_>) -> PyResult<Option<String>> {
    let unit: Option<String> = given.get("unit")?;
    unit.map(|unit| known_unit("unit", unit)).transpose()
}

/// Takes the unit of the coordinates of a file, and completes the units of the axes.
pub(crate) fn settle_file_units(
    given: &mut Keywords<'_>,
    design: &mut Design,
    description: &FileDescription,
) -> PyResult<()> {
    let (unit, format) = (file_unit(given)?, description.format);
    settle_units(
        design,
        None,
        &description.axes,
        Some(format),
        unit.as_deref(),
    )
    .map_err(|error| unusable(&error))
}

/// Takes new names of attributes of a file.
fn renames(given: &mut Keywords<'_>) -> PyResult<Vec<AttributeRename>> {
    let names: Option<BTreeMap<String, String>> = given.get("rename")?;
    Ok(names
        .into_iter()
        .flatten()
        .map(|(old, new)| AttributeRename::new(old, new))
        .collect())
}

/// Takes the treatment of missing numbers of a file.
fn missing(given: &mut Keywords<'_>) -> PyResult<MissingPolicy> {
    let policy = |word: &str| match word {
        "refuse" => Some(MissingPolicy::Reject),
        "nan" => Some(MissingPolicy::Nan),
        _ => None,
    };
    let policy = given.word("missing", policy, "refuse or nan")?;
    Ok(policy.unwrap_or(MissingPolicy::Reject))
}

/// Checks that a unit is known; `what` has it.
fn known_unit(what: &str, unit: String) -> PyResult<String> {
    match check_unit(&unit) {
        Ok(()) => Ok(unit),
        Err(fault) => Err(PyValueError::new_err(format!("{what}: {unit:?} {fault}"))),
    }
}

/// Takes the options of writing.
pub(crate) fn create_options(given: &mut Keywords<'_>) -> PyResult<CreateOptions> {
    let mut options = CreateOptions::new()
        .overwrite(given.get("overwrite")?.unwrap_or(false))
        .node_copy(given.get("node_copy")?.unwrap_or(true))
        .seal(given.get("seal")?.unwrap_or(true));
    if let Some(bytes) = given.get("memory")? {
        options = options.memory(bytes);
    }
    Ok(options.open(open_options(given)?))
}

/// Returns a report as a dict. `read` is the number of vertices of the input, if it is known.
fn report(
    py: Python<'_>,
    read: Option<u64>,
    report: WriteReport,
    mut notes: Vec<String>,
) -> PyResult<Bound<'_, PyDict>> {
    warn_unfinished(py, report.unfinished.as_ref())?;
    let found = PyDict::new(py);
    found.set_item("vertices", report.summary.vertices)?;
    found.set_item("objects", report.summary.objects)?;
    found.set_item("links", report.summary.links)?;
    found.set_item("chunks", report.summary.chunks)?;
    found.set_item("chunk_shape", report.summary.chunk_shape)?;
    found.set_item("bytes", report.bytes)?;
    notes.extend(read.and_then(|read| dropped_note(read, report.summary.vertices)));
    notes.extend(report.summary.why);
    let notes: Vec<String> = notes.iter().map(|note| in_python(note)).collect();
    found.set_item("notes", notes)?;
    Ok(found)
}

/// Copies geometry from the dictionary that `zvf._geometry` builds.
pub(crate) fn geometry(given: &Bound<'_, PyDict>, kind: GeometryKind) -> PyResult<Geometry> {
    let raised = |error: BuildError| zvf::Error::from(error).into_exception(given.py());
    builder(given, kind)?.build().map_err(raised)
}

/// Copies geometry whose columns are checked later.
pub(crate) fn builder(given: &Bound<'_, PyDict>, kind: GeometryKind) -> PyResult<GeometryBuilder> {
    let missing = || PyKeyError::new_err("positions");
    let positions = given.get_item("positions")?.ok_or_else(missing)?;
    let mut geometry = Geometry::builder(numbers(&positions)?);
    let offset = |offset: i64| {
        u64::try_from(offset).map_err(|_| {
            PyValueError::new_err(format!("part_offsets has {offset}; offsets count from 0"))
        })
    };
    let signed = ids(given, "part_offsets")?;
    let offsets = signed.map(|offsets| offsets.into_iter().map(offset).collect());
    let py = given.py();
    let raised = |error: BuildError| zvf::Error::from(error).into_exception(py);
    geometry.owners = VertexOwners::of_columns(
        kind,
        offsets.transpose()?,
        ids(given, "part_objects")?,
        ids(given, "object_ids")?,
    )
    .map_err(raised)?;
    geometry.objects = ids(given, "objects")?;
    if let Some(links) = given.get_item("links")? {
        let links: PyReadonlyArray2<'_, i64> = links.extract()?;
        let width = links.as_array().ncols();
        geometry = geometry.links(width, copy(py, links.as_slice()?));
    }
    for scope in Scope::ALL {
        *geometry.columns_mut(scope) = family(given, scope.name())?;
    }
    geometry.fragment_rows = family(given, "fragment_rows")?;
    if let Some(groups) = given.get_item("groups")? {
        let groups: BTreeMap<u32, PyReadonlyArray1<'_, i64>> = groups.extract()?;
        for (id, members) in groups {
            geometry.groups.insert(id, members.as_slice()?.to_vec());
        }
    }
    Ok(geometry)
}

/// Takes the ids of files that are an object each: `name`, `number` or a list.
fn file_ids(given: &mut Keywords<'_>) -> PyResult<Option<FileObjectIds>> {
    let Some(value) = given.take("ids") else {
        return Ok(None);
    };
    if let Ok(word) = value.extract::<String>() {
        return match word.as_str() {
            "name" => Ok(Some(FileObjectIds::Names)),
            "number" => Ok(Some(FileObjectIds::Numbers)),
            _ => {
                let why = format!("ids is {word:?}; use name, number or a list of ids");
                Err(PyValueError::new_err(why))
            }
        };
    }
    Ok(Some(FileObjectIds::List(value.extract()?)))
}

/// Copies ids.
pub(crate) fn ids(given: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<Vec<i64>>> {
    let Some(ids) = given.get_item(name)? else {
        return Ok(None);
    };
    let ids: PyReadonlyArray1<'_, i64> = ids.extract()?;
    Ok(Some(copy(given.py(), ids.as_slice()?)))
}

/// Copies values without the GIL.
fn copy<T: Copy + Send + Sync>(py: Python<'_>, values: &[T]) -> Vec<T> {
    py.detach(|| values.to_vec())
}

fn family(given: &Bound<'_, PyDict>, family: &str) -> PyResult<Vec<Column>> {
    match given.get_item(family)? {
        Some(columns) => attributes(columns.cast::<PyDict>()?),
        None => Ok(Vec::new()),
    }
}

/// Copies attributes from a dictionary of columns.
pub(crate) fn attributes(columns: &Bound<'_, PyDict>) -> PyResult<Vec<Column>> {
    let columns = columns.iter().map(|(name, values)| {
        Ok(Column::new(
            name.extract::<String>()?,
            match values.extract::<Vec<Option<String>>>() {
                Ok(text) => ColumnValues::text(text),
                Err(_) => ColumnValues::Numeric(numbers(&values)?),
            },
        ))
    });
    columns.collect()
}

/// Copies numbers from `(type, width, bytes)`.
fn numbers(column: &Bound<'_, PyAny>) -> PyResult<NumericColumn> {
    let (kind, width, bytes): (String, u32, PyReadonlyArray1<'_, u8>) = column.extract()?;
    let bytes = copy(column.py(), bytes.as_slice()?);
    Ok(NumericColumn::new(self::kind(&kind)?, width).with_bytes(bytes))
}

fn kind(name: &str) -> PyResult<Kind> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| PyTypeError::new_err(format!("a store cannot hold values of {name}")))
}

fn kinds() -> String {
    GeometryKind::ALL.map(GeometryKind::name).join(", ")
}

/// Takes the kind of geometry.
pub(crate) fn geometry_kind(given: &mut Keywords<'_>) -> PyResult<Option<GeometryKind>> {
    let find = |word: &str| {
        let mut kinds = GeometryKind::ALL.into_iter();
        // `Dataset.kinds` has the words that stores have.
        let found = kinds.find(|kind| kind.name() == word);
        found.or_else(|| GeometryKind::of_word(word))
    };
    given.word("kind", find, &kinds())
}

/// Takes the kind of geometry, which must be given.
pub(crate) fn needed_kind(given: &mut Keywords<'_>) -> PyResult<GeometryKind> {
    geometry_kind(given)?.ok_or_else(no_kind)
}

/// Takes the kind of the geometry of a table: the given one, or the one that the file states.
pub(crate) fn table_kind(
    py: Python<'_>,
    given: &mut Keywords<'_>,
    file: &InputFile,
) -> PyResult<GeometryKind> {
    if let Some(kind) = geometry_kind(given)? {
        return Ok(kind);
    }
    let file = file.clone();
    let stated = engine::run(py, engine::blocking(move || stated_kind(&file)))?;
    let kind = stated.map_err(|error| error.into_exception(py))?;
    kind.ok_or_else(no_kind)
}

fn no_kind() -> PyErr {
    PyTypeError::new_err(format!("kind is missing; use one of {}", kinds()))
}

/// Takes the design of a store.
pub(crate) fn design(
    given: &mut Keywords<'_>,
    kind: GeometryKind,
    address: &str,
) -> PyResult<Design> {
    let mut design = Design::new(kind);
    design.chunk_shape = given.numbers("chunk_shape")?;
    design.bin_shape = given.numbers("bin_shape")?;
    if let Some(bounds) = given.two_rows("bounds")? {
        let (low, high) = bounds.split_at(bounds.len() / 2);
        design.bounds = Some((low.to_vec(), high.to_vec()));
    }
    if let Some(axes) = given.take("axes") {
        let axes = axes.try_iter()?.map(|axis| axis_of(&axis?));
        design.axes = Some(axes.collect::<PyResult<_>>()?);
    }
    if let Some(crs) = given.take("crs") {
        design.crs = Some(json(&crs)?.into());
    }
    design.name = given.get("name")?;
    if let Some(name) = given.get::<String>("dtype")? {
        design.dtype = Some(self::kind(&name)?);
    }
    if let Some(compression) = given.word(
        "compression",
        CellCompression::parse,
        CellCompression::WORDS,
    )? {
        design.compression = compression;
    }
    design.table_compression = given.word(
        "table_compression",
        CellCompression::parse,
        CellCompression::WORDS,
    )?;
    if !given.get("checksums")?.unwrap_or(true) {
        design.checksums = CellChecksums::Off;
    }
    let profile = |word: &str| Profile::ALL.into_iter().find(|one| one.name() == word);
    let words = Profile::ALL.map(Profile::name).join(", ");
    if let Some(profile) = given.word("profile", profile, &words)? {
        design.profile = profile;
    }
    design.sharding = match given.take("sharding") {
        Some(policy) => sharding(&policy)?,
        None if !design.profile.is_current() => ShardingPolicy::None,
        None => ShardingPolicy::for_address(address),
    };
    let purpose = |word: &str| match word {
        "auto" => Some(Purpose::Auto),
        "lookup" => Some(Purpose::Lookup),
        "scan" => Some(Purpose::Scan),
        _ => None,
    };
    if let Some(purpose) = given.word("purpose", purpose, "auto, lookup or scan")? {
        design.purpose = purpose;
    }
    if let Some(what) = out_of_bounds(given)? {
        design.out_of_bounds = what;
    }
    design.directed = given.get("directed")?.unwrap_or(design.directed);
    design.duplicate = given.get("duplicate")?.unwrap_or(design.duplicate);
    design.winding = given.word("winding", WindingOrder::of_word, "ccw or cw")?;
    design.step_links = step_links(given)?;
    let flat = given.get("flat_link_attributes")?;
    design.flat_link_attributes = flat.unwrap_or(design.flat_link_attributes);
    let owners = given.get("fragment_owners")?;
    design.fragment_owners = owners.unwrap_or(design.fragment_owners);
    Ok(design)
}

/// Returns an axis: its name, a pair of name and unit, or these and a type.
fn axis_of(value: &Bound<'_, PyAny>) -> PyResult<AxisSpec> {
    if let Ok(name) = value.extract::<String>() {
        return Ok(AxisSpec::new(name));
    }
    let (name, unit, kind) = match value.extract::<(String, Option<String>)>() {
        Ok((name, unit)) => (name, unit, None),
        Err(_) => value
            .extract::<(String, Option<String>, String)>()
            .map(|(name, unit, kind)| (name, unit, Some(kind)))
            .map_err(|_| {
                PyTypeError::new_err(format!(
                    "axes has {value}; an axis is its name, or a pair of name and unit, such as \
                     ('x', 'micrometer')"
                ))
            })?,
    };
    let mut axis = AxisSpec::new(name);
    axis.unit = match unit {
        Some(unit) => Some(known_unit(&format!("axis {}", axis.name), unit)?),
        None => None,
    };
    axis.kind = kind.unwrap_or(axis.kind);
    Ok(axis)
}

/// Takes the steps of paths that are stored as links: a word, or whether those between chunks are.
fn step_links(given: &mut Keywords<'_>) -> PyResult<StepLinks> {
    const NAME: &str = "step_links";
    let Some(value) = given.take(NAME) else {
        return Ok(StepLinks::None);
    };
    if let Ok(are_stored) = value.extract::<bool>() {
        let all = [StepLinks::None, StepLinks::Between];
        return Ok(all[usize::from(are_stored)]);
    }
    let steps = value.extract::<&str>().ok().and_then(StepLinks::parse);
    let unknown = || {
        format!(
            "{NAME} is {value}; use {}, or True for between",
            StepLinks::WORDS
        )
    };
    steps.ok_or_else(|| PyValueError::new_err(unknown()))
}

/// Takes the treatment of vertices outside the bounds.
pub(crate) fn out_of_bounds(given: &mut Keywords<'_>) -> PyResult<Option<OutOfBounds>> {
    let parse = |word: &str| match word {
        "raise" => Some(OutOfBounds::Reject),
        "ignore" => Some(OutOfBounds::Drop),
        "expand" => Some(OutOfBounds::Expand),
        _ => None,
    };
    given.word("out_of_bounds", parse, "raise, ignore or expand")
}

/// Parses the sharding of a level.
pub(crate) fn sharding(value: &Bound<'_, PyAny>) -> PyResult<ShardingPolicy> {
    if let Ok(shape) = value.extract::<Vec<u64>>() {
        return Ok(ShardingPolicy::Shape(shape));
    }
    match value.extract::<&str>() {
        Ok("auto") => Ok(ShardingPolicy::Auto),
        Ok("none") => Ok(ShardingPolicy::None),
        _ => Err(PyValueError::new_err(
            "sharding is auto, none, or the number of chunks along each axis, as (4, 4, 4)",
        )),
    }
}
