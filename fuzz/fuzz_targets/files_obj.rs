//! OBJ files: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[macro_use]
#[path = "../files.rs"]
mod files;

file_target!("a.obj", files::samples::OBJ.as_bytes().to_vec());
