//! TRX files: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[macro_use]
#[path = "../files.rs"]
mod files;

file_target!(
    "a.trx",
    files::samples::trx(
        &files::samples::trx_members(&mut files::samples::Random::new(1)),
        zip::CompressionMethod::Stored
    )
);
