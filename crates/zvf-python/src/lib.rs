//! `zvf._zvf`: the extension module of the Python package `zvf`.
//!
//! The package in `python/zvf` is the public interface: it documents and types everything. This
//! module converts arguments to types of the engine, runs the engine without the GIL, and converts
//! results to arrays without copying columns.
//!
//! | module | content |
//! |---|---|
//! | `dataset`, `query`, `result` | open stores, queries from keyword arguments, results |
//! | `batches`, `task` | results in batches, queries that an event loop awaits |
//! | `plan`, `validation_plan`, `export_plan` | work divided into tasks, queries divided into parts |
//! | `create`, `edit`, `store` | new stores from arrays, changes and levels, operations on whole stores |
//! | `dense`, `sample`, `picture` | dense arrays, volumes as attributes, pictures |
//! | `files`, `serve` | results as files, conversions, sources and servers of Neuroglancer |
//! | `columns`, `arrow`, `arrow_input` | columns ↔ NumPy arrays, arrays → Arrow data, Arrow data → columns |
//! | `engine`, `progress` | the runtime, Ctrl-C, forks, callbacks |
//! | `errors` | errors → exceptions |
//! | `options` | keyword arguments |

mod arrow;
mod arrow_input;
mod batches;
mod columns;
mod create;
mod dataset;
mod dense;
mod edit;
mod engine;
mod errors;
mod files;
mod options;
mod origin;
mod phrases;
mod picture;
mod plan;
mod plan_file;
mod progress;
mod query;
mod result;
mod sample;
mod serve;
mod store;
mod task;
mod unfinished;

use std::ffi::OsString;

use numpy::PyArrayMethods as _;
use pyo3::prelude::*;

/// Runs the command `zvf` with these arguments, the first of which is the path of the script.
/// `starts` are the words that start the command in another process. Returns the exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>, starts: Vec<OsString>) -> u8 {
    py.detach(|| zvf_cli::run_in_program(arguments, starts))
}

#[pymodule(gil_used = false)]
fn _zvf(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Load NumPy's C interfaces now: loading them later panics if a signal handler raises.
    drop(numpy::PyArray1::<u8>::zeros(module.py(), 0, false).readonly());
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DEBUG", cfg!(debug_assertions))?;
    module.add_class::<dataset::PyDataset>()?;
    module.add_function(wrap_pyfunction!(dataset::open, module)?)?;
    module.add_function(wrap_pyfunction!(create::create, module)?)?;
    module.add_class::<arrow::PyColumns>()?;
    module.add_function(wrap_pyfunction!(arrow_input::arrow_columns, module)?)?;
    module.add_function(wrap_pyfunction!(arrow_input::arrow_column, module)?)?;
    module.add_class::<arrow_input::PySpooledTable>()?;
    module.add_function(wrap_pyfunction!(arrow_input::taken_table, module)?)?;
    module.add_class::<batches::PyBatches>()?;
    module.add_class::<task::PyTask>()?;
    module.add_function(wrap_pyfunction!(task::start_query, module)?)?;
    module.add_function(wrap_pyfunction!(edit::append, module)?)?;
    module.add_function(wrap_pyfunction!(edit::replace, module)?)?;
    module.add_function(wrap_pyfunction!(edit::remove, module)?)?;
    module.add_function(wrap_pyfunction!(edit::remove_selected, module)?)?;
    module.add_function(wrap_pyfunction!(edit::remove_rows, module)?)?;
    module.add_function(wrap_pyfunction!(edit::write_vertex_attributes, module)?)?;
    module.add_function(wrap_pyfunction!(edit::write_fragment_attributes, module)?)?;
    module.add_function(wrap_pyfunction!(edit::write_object_attributes, module)?)?;
    module.add_function(wrap_pyfunction!(edit::drop_attributes, module)?)?;
    module.add_function(wrap_pyfunction!(edit::compact, module)?)?;
    module.add_function(wrap_pyfunction!(edit::pyramid, module)?)?;
    module.add_class::<dense::PyDenseArray>()?;
    module.add_class::<picture::PyPicture>()?;
    module.add_function(wrap_pyfunction!(create::create_from_file, module)?)?;
    module.add_class::<plan::PyTaskPlan>()?;
    module.add_function(wrap_pyfunction!(plan::plan_create, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_shares, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_pyramid, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_sample, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_migrate, module)?)?;
    module.add_function(wrap_pyfunction!(plan::read_plan, module)?)?;
    module.add_class::<plan_file::PyPlanFile>()?;
    module.add_function(wrap_pyfunction!(plan_file::plan_validation, module)?)?;
    module.add_function(wrap_pyfunction!(plan_file::plan_export, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::partitions, module)?)?;
    module.add_function(wrap_pyfunction!(dense::open_dense, module)?)?;
    module.add_function(wrap_pyfunction!(files::save_result, module)?)?;
    module.add_function(wrap_pyfunction!(files::export_precomputed, module)?)?;
    module.add_function(wrap_pyfunction!(files::command, module)?)?;
    module.add_function(wrap_pyfunction!(picture::draw, module)?)?;
    module.add_function(wrap_pyfunction!(sample::sample, module)?)?;
    module.add_class::<serve::PyServer>()?;
    module.add_function(wrap_pyfunction!(serve::serve, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(store::validate, module)?)?;
    module.add_function(wrap_pyfunction!(store::repair, module)?)?;
    module.add_function(wrap_pyfunction!(store::seal, module)?)?;
    module.add_function(wrap_pyfunction!(store::migrate, module)?)?;
    Ok(())
}
