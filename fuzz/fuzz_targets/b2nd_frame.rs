//! Blosc2 frame: `zvf_testkit::laws::b2nd_frame` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::b2nd_frame(bytes));
