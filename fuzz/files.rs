//! The law of files and their samples, and the target of a format that is one file.

use std::{panic, sync::OnceLock};

#[path = "../crates/zvf-files/tests/laws/files.rs"]
#[allow(dead_code)]
pub(crate) mod law;
#[path = "../crates/zvf-files/tests/it/samples.rs"]
#[allow(dead_code)]
pub(crate) mod samples;

/// Fuzzes a file of this name, whose bytes are those of the input or a changed sample.
#[allow(unused_macros)]
macro_rules! file_target {
    ($name:literal, $sample:expr) => {
        libfuzzer_sys::fuzz_target!(init: files::catch_panics(), |bytes: &[u8]| {
            files::file($name, || $sample, bytes);
        });
    };
}

/// Lets panics be caught. The readers of LAZ and GeoParquet catch those of their decoders, and the
/// hook of libFuzzer would end the process first. It ends as well at a panic that is not caught.
#[allow(dead_code)]
pub(crate) fn catch_panics() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        // Sources of packages are below the folder of cargo, and those of std below that of rustc.
        if file.contains("crates/zvf") || file.contains("fuzz") {
            abort(panic);
        }
    }));
}

/// Checks the law on an input.
#[allow(dead_code)]
pub(crate) fn file(name: &str, sample: impl FnOnce() -> Vec<u8>, bytes: &[u8]) {
    static SAMPLE: OnceLock<Vec<u8>> = OnceLock::new();
    law::file(name, &law::content(SAMPLE.get_or_init(sample), bytes));
}
