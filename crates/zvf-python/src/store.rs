//! Operations on whole stores: validation, repair, migration.

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf::{
    CellCompression, Depth, Finding, MigrateOptions, MigrationNote, Profile, Progress, Remedy,
    ValidateOptions, ValidationReport,
};

use crate::{
    dataset::open_options, engine, errors::IntoException, options::Keywords,
    progress::ProgressCallback, unfinished::warn_unfinished,
};

/// Checks a store.
#[pyfunction]
pub(crate) fn validate<'py>(
    py: Python<'py>,
    address: &str,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let progress = ProgressCallback::new(given.take("progress"));
    let options = validate_options(&mut given)?;
    let store = opened(py, address, given)?;
    let counter = progress.counter();
    let report = engine::run_on_own_thread(py, &progress, async move {
        validated(store, &options, counter).await
    })?;
    validation(py, &report)
}

/// Checks a store, and seals it if there is no error.
#[pyfunction]
pub(crate) fn seal<'py>(
    py: Python<'py>,
    address: &str,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let progress = ProgressCallback::new(given.take("progress"));
    let options = validate_options(&mut given)?;
    let store = opened(py, address, given)?;
    let counter = progress.counter();
    let (report, transaction) = engine::run_on_own_thread(py, &progress, async move {
        let mut report = validated(store.clone(), &options, counter).await?;
        let transaction = zvf::seal_validated(store, &mut report).await?;
        Ok::<_, zvf::Error>((report, transaction))
    })?;
    let found = validation(py, &report)?;
    found.set_item("transaction", transaction)?;
    Ok(found)
}

/// Makes the repairs that need no choice, and checks the store.
#[pyfunction]
pub(crate) fn repair<'py>(
    py: Python<'py>,
    address: &str,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let options = validate_options(&mut given)?;
    let trusts_files = given.get("trust_files")?.unwrap_or(false);
    let store = opened(py, address, given)?;
    let progress = ProgressCallback::default();
    let report = engine::run_on_own_thread(py, &progress, async move {
        if trusts_files {
            zvf::repair_trusting_files(store, &options).await
        } else {
            zvf::repair(store, &options).await
        }
    })?;
    warn_unfinished(py, report.unfinished.as_ref())?;
    let found = validation(py, &report.left)?;
    found.set_item("repaired", findings(py, &report.repaired)?)?;
    found.set_item("trusted", report.trusted)?;
    found.set_item("transaction", report.transaction)?;
    Ok(found)
}

async fn validated(
    store: zvf::Store,
    options: &ValidateOptions,
    progress: Option<Progress>,
) -> Result<ValidationReport, zvf::Error> {
    match progress {
        None => zvf::validate(store, options).await,
        Some(progress) => zvf::validate_with_progress(store, options, progress).await,
    }
}

fn opened(py: Python<'_>, address: &str, mut given: Keywords<'_>) -> PyResult<zvf::Store> {
    let open = open_options(&mut given)?;
    given.finish()?;
    let store = open.open(address);
    store.map_err(|error| zvf::Error::from(error).into_exception(py))
}

pub(crate) fn validate_options(given: &mut Keywords<'_>) -> PyResult<ValidateOptions> {
    let mut options = ValidateOptions::default();
    if let Some(level) = given.get::<u8>("level")? {
        let depth = Depth::ALL.into_iter().find(|depth| depth.number() == level);
        let wrong = || PyValueError::new_err(format!("level is {level}; it is 1, 2, 3 or 4"));
        options = options.depth(depth.ok_or_else(wrong)?);
    }
    if let Some(limit) = given.get("limit")? {
        options = options.max_findings_per_rule(limit);
    }
    Ok(options)
}

/// Returns the members of `zvf.Validation`.
pub(crate) fn validation<'py>(
    py: Python<'py>,
    report: &ValidationReport,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("findings", findings(py, &report.findings)?)?;
    found.set_item("unlisted", &report.unlisted)?;
    found.set_item("cells", report.cells)?;
    found.set_item("bytes", report.bytes)?;
    found.set_item("ok", report.is_ok())?;
    Ok(found)
}

fn findings<'py>(py: Python<'py>, findings: &[Finding]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let found = findings.iter().map(|finding| {
        let row = PyDict::new(py);
        row.set_item("code", finding.rule.code)?;
        row.set_item("severity", finding.rule.severity.to_string())?;
        row.set_item("title", finding.rule.title)?;
        row.set_item("path", &finding.path)?;
        row.set_item("location", &finding.location)?;
        row.set_item("message", &finding.message)?;
        row.set_item("remedy", finding.rule.remedy.text())?;
        let repairable = finding.fix.is_some() && matches!(finding.rule.remedy, Remedy::Repair(_));
        row.set_item("repairable", repairable)?;
        Ok(row)
    });
    found.collect()
}

/// Takes the options of a migration.
pub(crate) fn migrate_options(given: &mut Keywords<'_>) -> PyResult<MigrateOptions> {
    let mut options = MigrateOptions::default();
    let profile = |word: &str| match word {
        "0.9" => Some(Profile::V09),
        "0.10" => Some(Profile::V10),
        "0.8" => Some(Profile::V08),
        _ => None,
    };
    if let Some(profile) = given.word("profile", profile, "0.9, 0.10 or 0.8")? {
        options = MigrateOptions::new(profile);
    }
    if let Some(compression) = given.word(
        "compression",
        CellCompression::parse,
        CellCompression::WORDS,
    )? {
        options.compression = compression;
    }
    options.name = given.get("name")?;
    options.node_copy = given.get("node_copy")?.unwrap_or(true);
    options.seal = given.get("seal")?.unwrap_or(true);
    options.skip_damaged = given.get("skip_damaged")?.unwrap_or(false);
    options.overwrite = given.get("overwrite")?.unwrap_or(false);
    options.open = open_options(given)?;
    Ok(options)
}

/// Rewrites a store in another generation.
#[pyfunction]
pub(crate) fn migrate<'py>(
    py: Python<'py>,
    source: &str,
    target: &str,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let mut options = migrate_options(&mut given)?;
    let progress = ProgressCallback::new(given.take("progress"));
    given.finish()?;
    options.progress = progress.counter();
    let work = || zvf::migrate(source, target, &options);
    let report = engine::run_with_progress(py, work, &progress)?;
    warn_unfinished(py, report.unfinished.as_ref())?;
    let found = PyDict::new(py);
    found.set_item("from_generation", report.from.to_string())?;
    found.set_item("to_generation", report.to.name())?;
    found.set_item("levels", report.levels)?;
    found.set_item("vertices", report.vertices)?;
    found.set_item("objects", report.objects)?;
    found.set_item("links", report.links)?;
    found.set_item("bytes", report.bytes)?;
    found.set_item("repaired", notes(&report.repaired))?;
    found.set_item("lost", notes(&report.lost))?;
    Ok(found)
}

fn notes(notes: &[MigrationNote]) -> Vec<String> {
    let texts = notes.iter().map(|note| {
        let why = note
            .why
            .as_ref()
            .map(|why| format!(": {why}"))
            .unwrap_or_default();
        format!("{}: {} {}{why}", note.path, note.count, note.what)
    });
    texts.collect()
}
