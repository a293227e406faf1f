//! Link rows: `zvf_testkit::laws::link_rows` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::link_rows(bytes));
