//! Surfaces of FreeSurfer: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-files/tests/laws/files.rs"]
#[allow(dead_code)]
mod law;
#[path = "../../crates/zvf-files/tests/it/samples.rs"]
#[allow(dead_code)]
mod samples;

static SAMPLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let sample = SAMPLE.get_or_init(samples::freesurfer);
    law::file("lh.pial", &law::content(sample, bytes));
});
