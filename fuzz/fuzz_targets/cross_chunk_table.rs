//! Cross-chunk table: `zvf_testkit::laws::cross_chunk_table` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::cross_chunk_table(bytes));
