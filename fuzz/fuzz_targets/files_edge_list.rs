//! Edge lists and tables of nodes: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[path = "../files.rs"]
mod files;

use files::{law, samples};

libfuzzer_sys::fuzz_target!(init: files::catch_panics(), |bytes: &[u8]| {
    let (edges, nodes) = (samples::EDGES.as_bytes(), samples::NODES.as_bytes());
    match bytes.split_first() {
        Some((0, bytes)) => law::edge_list(&law::content(edges, bytes), nodes),
        Some((_, bytes)) => law::edge_list(edges, &law::content(nodes, bytes)),
        None => {}
    }
});
