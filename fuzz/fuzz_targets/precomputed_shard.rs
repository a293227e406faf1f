//! Shards and lists of annotations: the law in `crates/zvf-precomputed/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-precomputed/tests/laws/shard.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    law::shard(bytes);
});
