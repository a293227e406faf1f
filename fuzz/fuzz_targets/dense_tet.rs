//! Tetration files opened and read: the law in `crates/zvf-dense/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-dense/tests/laws/tet.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    law::tet(bytes);
});
