//! Skeletons, legacy meshes, annotations and info documents: the law in
//! `crates/zvf-precomputed/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-precomputed/tests/laws/values.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    law::values(bytes);
});
