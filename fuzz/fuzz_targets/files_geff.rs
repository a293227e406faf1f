//! Graphs of geff: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[path = "../files.rs"]
mod files;

use files::{law, samples};

libfuzzer_sys::fuzz_target!(init: files::catch_panics(), |bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    let mut members = samples::geff_members();
    let place = usize::from(*which) % members.len();
    let (_, member) = &mut members[place];
    *member = law::content(member, bytes);
    law::members("a.geff", &members);
});
