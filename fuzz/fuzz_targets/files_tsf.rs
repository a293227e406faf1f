//! Values of the vertices of tracks of MRtrix: the law in
//! `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[path = "../files.rs"]
mod files;

use files::{law, samples};

libfuzzer_sys::fuzz_target!(init: files::catch_panics(), |bytes: &[u8]| {
    let [tracks, values] = samples::tck(&mut samples::Random::new(1), "Float32LE");
    let values = law::content(&values, bytes);
    law::file_with(("a.tck", &tracks), ("fa.tsf", &values));
});
