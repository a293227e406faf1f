//! Array metalayer: `zvf_testkit::laws::nd_metalayer` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::nd_metalayer(bytes));
