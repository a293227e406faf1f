//! The command on stores in a bucket, which `cargo xtask servers` provides.

use std::{env, fs, path::Path};

use serde_json::Value;

use crate::{tasks, zvf};

fn json(arguments: &[&str]) -> Value {
    let output = zvf(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    // Exit code 1 means that a store has errors, which is a result too.
    let is_result = output.status.success() || output.status.code() == Some(1);
    assert!(is_result, "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Removes what depends on the location: the address and the cost.
fn without_location(mut result: Value) -> Value {
    let result_of = result.as_object_mut().unwrap();
    for place in ["store", "address", "requests", "bytes_read"] {
        result_of.remove(place);
    }
    result
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
        let run = |arguments: &[&str]| {
            let of = |store: &str| {
                let mut line = vec![arguments[0], store];
                line.extend(&arguments[1..]);
                without_location(json(&line))
            };
            assert_eq!(of(&bucket), of(&disk), "{arguments:?} {bucket}");
        };
        run(&["info", "--json"]);
        run(&["query", "--json"]);
        run(&["query", "--json", "--limit", "3"]);
        run(&["query", "--json", "--count"]);
        run(&["validate", "--json"]);
    }
    println!(
        "servers: zvf info, zvf query and zvf validate: {} stores in a bucket as on disk",
        names.len()
    );
}

/// Tasks that are killed and run twice build the same store in a bucket as on disk, and leave
/// nothing behind.
#[test]
#[ignore = "needs servers: cargo xtask servers"]
#[expect(clippy::print_stdout, reason = "`xtask servers` shows this line")]
fn tasks_build_the_same_store_in_a_bucket_as_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let npz = tasks::input(folder.path(), "points");
    let design = [
        "--kind=points",
        "--chunk-shape=8,8,8",
        "--name=n",
        "--shard=none",
        "--from",
        &npz,
    ];
    let run = |words: &[&str]| {
        let output = zvf(words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {error}");
    };
    let place = format!("s3://stores/tasks-{}", std::process::id());
    let (disk, bucket) = (at("disk.zv"), format!("{place}/bucket.zv"));
    let plan = format!("{place}/plan.json");
    run(&[&["create", &disk][..], &design].concat());
    let planned = ["task", "plan", &plan, "--tasks=4", "create", &bucket];
    run(&[&planned[..], &design].concat());
    let mut numbers = tasks::Numbers(3);
    let mut killed = tasks::schedule(&plan, &mut numbers);
    run(&["task", "commit", &plan]);
    assert_eq!(files(&disk), files(&bucket));
    run(&["pyramid", &disk, "--levels=1"]);
    run(&[
        "task",
        "plan",
        &plan,
        "--tasks=4",
        "pyramid",
        &bucket,
        "--levels=1",
    ]);
    killed += tasks::schedule(&plan, &mut numbers);
    run(&["task", "commit", &plan]);
    assert_eq!(files(&disk), files(&bucket));
    println!(
        "servers: zvf task: a store and a level in a bucket as on disk, {killed} tasks killed"
    );
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
#[expect(clippy::print_stdout, reason = "`xtask servers` shows this line")]
fn exports_to_a_bucket_are_those_to_a_folder() {
    let root = env::var("ZVF_TEST_STORES").unwrap();
    let mut names = Vec::new();
    below(Path::new(&root), Path::new(&root), &mut names);
    let folder = tempfile::tempdir().unwrap();
    let mut exported = 0;
    for (at, name) in names.iter().enumerate() {
        let store = format!("{root}/{name}");
        let disk = folder.path().join(at.to_string()).display().to_string();
        let bucket = format!("s3://stores/exports-{}/{at}", std::process::id());
        let export = |target: &str| {
            zvf(&[
                "export",
                "precomputed",
                "--quiet",
                "--sharded",
                &store,
                target,
            ])
        };
        let (first, second) = (export(&disk), export(&bucket));
        let errors = [&first, &second].map(|output| String::from_utf8_lossy(&output.stderr));
        assert_eq!(first.status.code(), second.status.code(), "{errors:?}");
        if first.status.success() {
            assert!(files(&disk) == files(&bucket), "{name}");
            exported += 1;
        }
    }
    assert!(exported >= 4, "{exported} of {}", names.len());
    println!("servers: zvf export: {exported} stores in a bucket as on disk");
}

/// Returns the objects of a store but the root, whose transaction has a unique name.
fn files(address: &str) -> Vec<(String, Vec<u8>)> {
    let work = async {
        let store = zvf::OpenOptions::default().open(address).unwrap();
        let root = zvf_model::key::Key::root();
        let found = store.list_all(&root, 1 << 20).await.unwrap();
        let names: Vec<String> = found
            .into_iter()
            .map(|file| file.name)
            .filter(|name| name != "zarr.json")
            .collect();
        let keys = names
            .iter()
            .map(|name| zvf_store::Read::full(zvf_model::key::Key::parse(name).unwrap()));
        let bytes = store.read(&keys.collect::<Vec<_>>()).await.unwrap();
        let bytes = bytes.into_iter().map(|bytes| bytes.unwrap().to_vec());
        names.into_iter().zip(bytes).collect()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}
