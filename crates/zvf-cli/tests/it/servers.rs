//! The command on stores in a bucket, which `cargo xtask servers` provides.

use std::{env, fs, path::Path};

use serde_json::Value;

use crate::zvf;

fn json(arguments: &[&str]) -> Value {
    let output = zvf(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    // Exit code 1 means that a store has errors, which is a result too.
    let is_answer = output.status.success() || output.status.code() == Some(1);
    assert!(is_answer, "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Removes what depends on the location: the address and the cost.
fn told(mut answer: Value) -> Value {
    let answer_of = answer.as_object_mut().unwrap();
    for place in ["store", "address", "requests", "bytes_read"] {
        answer_of.remove(place);
    }
    answer
}

/// Lists the names of the stores below a folder.
fn below(folder: &Path, root: &Path, found: &mut Vec<String>) {
    if folder.join("zarr.json").exists() {
        let name = folder.strip_prefix(root).unwrap();
        found.push(name.to_str().unwrap().to_owned());
        return;
    }
    for entry in fs::read_dir(folder).unwrap() {
        below(&entry.unwrap().path(), root, found);
    }
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
#[expect(clippy::print_stdout, reason = "`xtask servers` shows this line")]
fn stores_in_a_bucket_give_the_results_of_a_folder() {
    let root = env::var("ZVF_TEST_STORES").unwrap();
    let mut names = Vec::new();
    below(Path::new(&root), Path::new(&root), &mut names);
    assert!(names.len() >= 8, "{names:?}");
    for name in &names {
        let (disk, bucket) = (format!("{root}/{name}"), format!("s3://stores/{name}"));
        let ask = |arguments: &[&str]| {
            let of = |store: &str| {
                let mut line = vec![arguments[0], store];
                line.extend(&arguments[1..]);
                told(json(&line))
            };
            assert_eq!(of(&bucket), of(&disk), "{arguments:?} {bucket}");
        };
        ask(&["info", "--json"]);
        ask(&["query", "--json"]);
        ask(&["query", "--json", "--limit", "3"]);
        ask(&["query", "--json", "--count"]);
        ask(&["validate", "--json"]);
    }
    println!(
        "servers: zvf info, zvf query and zvf validate: {} stores in a bucket as on disk",
        names.len()
    );
}
