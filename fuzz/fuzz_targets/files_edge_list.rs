//! Edge lists and tables of nodes: the law in `crates/zvf-files/tests/laws` holds for any bytes.
#![no_main]

#[path = "../../crates/zvf-files/tests/laws/files.rs"]
#[allow(dead_code)]
mod law;
#[path = "../../crates/zvf-files/tests/it/samples.rs"]
#[allow(dead_code)]
mod samples;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (edges, nodes) = (samples::EDGES.as_bytes(), samples::NODES.as_bytes());
    match bytes.split_first() {
        Some((0, bytes)) => law::edge_list(&law::content(edges, bytes), nodes),
        Some((_, bytes)) => law::edge_list(edges, &law::content(nodes, bytes)),
        None => {}
    }
});
