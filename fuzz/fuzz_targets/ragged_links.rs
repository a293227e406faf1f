//! Ragged link rows: `zvf_testkit::laws::ragged_links` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::ragged_links(bytes));
