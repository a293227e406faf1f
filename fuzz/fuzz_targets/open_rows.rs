//! Rows behind start offsets: `zvf_testkit::laws::open_rows` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::open_rows(bytes));
