//! GLB files: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[macro_use]
#[path = "../files.rs"]
mod files;

file_target!("a.glb", files::samples::glb());
