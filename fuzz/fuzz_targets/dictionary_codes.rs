//! Dictionary codes: `zvf_testkit::laws::dictionary_codes` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::dictionary_codes(bytes));
