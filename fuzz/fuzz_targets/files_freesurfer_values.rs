//! Values of the vertices of surfaces of FreeSurfer: the law in
//! `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[path = "../files.rs"]
mod files;

use files::{law, samples};

libfuzzer_sys::fuzz_target!(init: files::catch_panics(), |bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    let all = samples::freesurfer_values();
    let (name, values) = &all[usize::from(*which) % all.len()];
    let values = law::content(values, bytes);
    law::file_with(("lh.pial", &samples::freesurfer()), (name, &values));
});
