//! Rows of numbers: `zvf_testkit::laws::numeric_rows` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::numeric_rows(bytes));
