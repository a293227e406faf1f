//! Fragment index: `zvf_testkit::laws::fragment_index` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::fragment_index(bytes));
