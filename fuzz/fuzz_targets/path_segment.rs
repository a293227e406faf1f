//! Path segments: `zvf_testkit::laws::path_segment` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::path_segment(bytes));
