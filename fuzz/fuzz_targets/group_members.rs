//! Group members: `zvf_testkit::laws::group_members` holds for any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zvf_testkit::laws::group_members(bytes));
