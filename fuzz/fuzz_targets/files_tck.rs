//! Files of MRtrix: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[macro_use]
#[path = "../files.rs"]
mod files;

file_target!(
    "a.tck",
    files::samples::tck(&mut files::samples::Random::new(1), "Float32LE")[0].clone()
);
