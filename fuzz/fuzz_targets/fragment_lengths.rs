//! Lengths of fragments: `zvf_testkit::laws::fragment_lengths` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::fragment_lengths(bytes));
