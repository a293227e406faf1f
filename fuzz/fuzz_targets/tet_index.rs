//! Tetration chunk index: `zvf_testkit::laws::tet_index` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::tet_index(bytes));
