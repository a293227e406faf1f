//! Manifests and fragments of multi-resolution meshes: the law in `crates/zvf-precomputed/tests/laws`
//! holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-precomputed/tests/laws/multilod.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    law::multilod(bytes);
});
