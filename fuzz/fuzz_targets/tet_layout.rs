//! Whole Tetration file: `zvf_testkit::laws::tet_layout` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::tet_layout(bytes));
