//! Object manifest: `zvf_testkit::laws::object_manifest` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::object_manifest(bytes));
