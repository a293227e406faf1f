//! Frame of variable-length items: `zvf_testkit::laws::vlen_frame` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::vlen_frame(bytes));
