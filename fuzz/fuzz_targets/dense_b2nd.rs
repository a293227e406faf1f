//! Arrays of Blosc2 opened and read: the law in `crates/zvf-dense/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-dense/tests/laws/b2nd.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    law::array(bytes);
});
