//! Permutations and placements: `zvf_testkit::laws::placement` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::placement(bytes));
