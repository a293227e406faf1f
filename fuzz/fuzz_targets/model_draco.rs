//! Draco streams of vertices: the law in `crates/zvf-model/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-model/tests/laws/draco.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    law::draco(bytes);
    // The start that every stream has, for an empty corpus.
    law::draco(&[b"DRACO\x02\x02", bytes].concat());
});
