//! Cross-chunk cell: `zvf_testkit::laws::cross_chunk_cell` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::cross_chunk_cell(bytes));
