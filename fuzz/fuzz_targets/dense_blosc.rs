//! Blosc chunks decoded, whole and block by block: the law in `crates/zvf-dense/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-dense/tests/laws/blosc.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    law::chunks(bytes);
});
