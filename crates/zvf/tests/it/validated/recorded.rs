//! The recorded stores: what is found in healthy ones, and in the damaged ones.

use zvf::validation::Options;
use zvf_testkit::{damage::apply, golden::Golden};

use super::{files, findings};

#[test]
fn damaged_stores_are_found_out() {
    let golden = Golden::open("zvf-09");
    let cases = golden.json("invalid_cases.json");
    for case in cases.as_array().unwrap() {
        let base = format!("{}/store.zarrvectors", case["base"].as_str().unwrap());
        let mut damaged = files(&golden, &base);
        for edit in case["edits"].as_array().unwrap() {
            apply(&mut damaged, edit);
        }
        let found = findings(&damaged, &Options::default());
        println!("{}: {found:#?}", case["name"]);
    }
}
