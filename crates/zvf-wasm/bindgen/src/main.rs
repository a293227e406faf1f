//! Writes the JavaScript around a module: `zvf-bindgen MODULE FOLDER`.
//!
//! The version of the generator is that of the lock file, so that the same sources give the same bytes.

use std::env;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let module = arguments.next().context("no module")?;
    let folder = arguments.next().context("no folder")?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("zvf").typescript(true);
    bindgen.web(true)?.remove_name_section(true);
    bindgen.remove_producers_section(true).generate(folder)
}
