//! Graphs of geff: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-files/tests/laws/files.rs"]
#[allow(dead_code)]
mod law;
#[path = "../../crates/zvf-files/tests/it/samples.rs"]
#[allow(dead_code)]
mod samples;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    let mut members = samples::geff_members();
    let place = usize::from(*which) % members.len();
    let (_, member) = &mut members[place];
    *member = law::content(member, bytes);
    law::members("a.geff", &members);
});
