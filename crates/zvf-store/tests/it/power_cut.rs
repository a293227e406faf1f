//! Power cuts: writes that were not synced are lost, or reach the disk in another order.
//!
//! A child process writes a store under `strace`, which records its system calls. A
//! [model of a disk](disk) replays them up to a random call and then loses a random part of what
//! was not synced. What is left is written to a folder and opened.

mod disk;
mod trace;

use std::{collections::BTreeMap, env, fs, path::Path, process::Command};

use bytes::Bytes;
use zvf_model::{error_chain::error_chain, key::Key};
use zvf_store::{OpenOptions, Store};
use zvf_testkit::{sample, stores::Random};

use self::{disk::Disk, trace::Call};
use crate::{
    support::{block_on, full, key},
    transactions::ROOT,
};

/// Power cuts of one run in CI, a sample of the cuts of `cargo xtask nightly`.
const CUTS: u64 = 150;
/// Transactions after the creation.
const TRANSACTIONS: usize = 6;
/// The folder that the child process writes to.
const FOLDER: &str = "ZVF_POWER_CUT_FOLDER";
/// Set if the child process syncs its writes.
const DURABLE: &str = "ZVF_POWER_CUT_DURABLE";
/// A path that does not exist. The child process looks it up with the number of a state after the
/// commit of the state has returned.
const MARK: &str = "/zvf-power-cut/";

/// Objects as they are read: their bytes if they exist, or the text of an error.
type FoundObjects = Vec<(String, Result<Option<Vec<u8>>, String>)>;
/// Objects by key.
type Objects = BTreeMap<String, Vec<u8>>;

/// Returns the objects after the creation and after each transaction: cells and nodes that appear,
/// change, disappear and appear again, in folders that come and go.
fn states() -> Vec<Objects> {
    let mut random = Random::new(11);
    let names = [
        "0/a",
        "0/b",
        "0/x/c",
        "0/x/d",
        "0/y/z/e",
        "1/zarr.json",
        "1/v/c/0/0",
    ];
    let mut states = vec![Objects::new()];
    for number in 0..=TRANSACTIONS {
        let mut next = states[number].clone();
        for name in names {
            if random.chance(40) && number > 0 {
                next.remove(name);
            } else if random.chance(60) || number == 0 {
                let length = random.below(6_000);
                let text = format!("{name} in state {number} ");
                next.insert(name.to_owned(), text.bytes().cycle().take(length).collect());
            }
        }
        states.push(next);
    }
    states.split_off(1)
}

/// Creates the store and commits all transactions.
async fn write(store: &Store) {
    let mark = |number: usize| drop(fs::metadata(format!("{MARK}{number}")));
    let bytes = |objects: &Objects| -> Vec<(Key, Bytes)> {
        let objects = objects.iter();
        objects
            .map(|(name, bytes)| (key(name), bytes.clone().into()))
            .collect()
    };
    let states = states();
    let mut creation = store.begin_create().await.unwrap();
    creation.write_seal();
    creation.put_many(bytes(&states[0])).await.unwrap();
    creation.commit(ROOT).await.unwrap();
    mark(0);
    for (number, pair) in states.windows(2).enumerate() {
        let [before, after] = pair else {
            unreachable!()
        };
        let mut transaction = store.begin().await.unwrap();
        let is_new = |(name, bytes): &(&String, &Vec<u8>)| before.get(*name) != Some(bytes);
        let changed = after
            .iter()
            .filter(is_new)
            .map(|(name, bytes)| (name.clone(), bytes.clone()));
        transaction
            .put_many(bytes(&changed.collect()))
            .await
            .unwrap();
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            transaction.delete(key(name)).await.unwrap();
        }
        let root = transaction.root().clone();
        let committed = transaction.commit(&root).await.unwrap();
        assert!(committed.unfinished.is_none());
        mark(number + 1);
    }
}

/// The child process; passes without effect in a run of all tests.
#[test]
fn the_child_process_of_power_cuts() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let path = Path::new(&folder).join("a.zv").display().to_string();
    let options = OpenOptions::default().durable(env::var_os(DURABLE).is_some());
    block_on(write(&options.create(&path).unwrap()));
}

/// Runs the child process under `strace` and returns its calls, or `None` if there is no `strace`.
fn record(folder: &Path, is_durable: bool) -> Option<Vec<Call>> {
    let trace = folder.join("trace");
    let written = folder.join("written");
    fs::create_dir(&written).unwrap();
    let mut command = Command::new("strace");
    command
        .args(trace::ARGUMENTS)
        .arg("-o")
        .arg(&trace)
        .arg(env::current_exe().unwrap())
        .args(["--exact", "power_cut::the_child_process_of_power_cuts"])
        .env(FOLDER, &written);
    if is_durable {
        command.env(DURABLE, "1");
    }
    let Ok(output) = command.output() else {
        return missing("strace cannot be started; install it");
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        // Containers may forbid tracing.
        assert!(said.contains("ptrace"), "{said}");
        return missing("strace may not trace processes here");
    }
    let text = fs::read_to_string(&trace).unwrap();
    let calls = trace::parse(&text, &written.display().to_string(), MARK);
    let marks = calls.iter().filter(|call| matches!(call, Call::Mark(_)));
    assert_eq!(marks.count(), TRANSACTIONS + 1);
    Some(calls)
}

/// Skips the test, except in nightly runs, which must not.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn missing(why: &str) -> Option<Vec<Call>> {
    let is_required = env::var_os("ZVF_TEST_ALL").is_some() && env::var_os("CI").is_some();
    assert!(!is_required, "{why}");
    eprintln!("SKIPPED: {why}");
    None
}

/// Replays calls up to a random one and cuts the power. Returns the number of states whose commit
/// had returned.
fn cut(calls: &[Call], random: &mut Random, folder: &Path) -> usize {
    let mut disk = Disk::default();
    let mut committed = 0;
    for call in &calls[..random.below(calls.len() + 1)] {
        if let Call::Mark(number) = call {
            committed = number + 1;
        }
        disk.replay(call);
    }
    disk.write_what_is_left(random, folder);
    committed
}

/// Reads all objects that exist in any state. `Err` for an object that is refused.
async fn read_all(store: &Store, states: &[Objects]) -> FoundObjects {
    let mut names: Vec<&String> = states.iter().flat_map(Objects::keys).collect();
    names.sort_unstable();
    names.dedup();
    let mut found = Vec::new();
    for name in names {
        let read = store
            .read_one(full(name))
            .await
            .map(|bytes| bytes.map(|bytes| bytes.to_vec()));
        found.push((name.clone(), read.map_err(|error| error_chain(&error))));
    }
    found
}

fn present(found: FoundObjects) -> Objects {
    let found = found.into_iter();
    found
        .filter_map(|(name, read)| Some((name, read.unwrap()?)))
        .collect()
}

/// Checks that a store of durable writes is in a state whose commit had begun, and no older than
/// the last one that had returned.
async fn check_durable(path: &str, committed: usize, states: &[Objects]) -> Option<usize> {
    let Ok(store) = OpenOptions::default().open(path) else {
        assert_eq!(committed, 0, "the store is gone");
        return None;
    };
    let Some(root) = store.read_one(full("zarr.json")).await.unwrap() else {
        assert_eq!(committed, 0, "the root is gone");
        return None;
    };
    let json: serde_json::Value = serde_json::from_slice(&root).unwrap();
    let number = json["attributes"]["zvf"]["transaction"]
        .as_u64()
        .unwrap_or(0);
    let number = usize::try_from(number).unwrap();
    assert!((committed.saturating_sub(1)..=committed).contains(&number));
    let view = store
        .committed_view(&root)
        .await
        .unwrap()
        .with_seal(&root)
        .unwrap();
    assert!(view.is_sealed());
    assert_eq!(present(read_all(&view, states).await), states[number]);
    // The next writer finishes a commit.
    let transaction = store.begin().await.unwrap();
    assert_eq!(usize::try_from(transaction.base()).unwrap(), number);
    transaction.abort().await.unwrap();
    assert_eq!(present(read_all(&store, states).await), states[number]);
    let listed = store
        .list_all(&Key::root(), 1_000)
        .await
        .unwrap()
        .into_iter()
        .map(|file| file.name)
        .filter(|name| name != "zarr.json");
    assert!(listed.eq(states[number].keys().cloned()));
    Some(number)
}

/// Checks that a sealed store of writes that were not synced gives the objects of one state, and
/// errors. Returns the numbers of exact and of refused objects.
async fn check_sealed(path: &str, states: &[Objects]) -> [usize; 2] {
    let refused = [0, states[0].len()];
    let Ok(store) = OpenOptions::default().open(path) else {
        return refused;
    };
    let Ok(Some(root)) = store.read_one(full("zarr.json")).await else {
        return refused;
    };
    let Ok(json) = serde_json::from_slice::<serde_json::Value>(&root) else {
        return refused;
    };
    let number = json["attributes"]["zvf"]["transaction"]
        .as_u64()
        .unwrap_or(0);
    let Ok(view) = store.committed_view(&root).await else {
        return refused;
    };
    let Ok(view) = view.with_seal(&root) else {
        return refused;
    };
    assert!(view.is_sealed());
    let state = &states[usize::try_from(number).unwrap()];
    let mut counts = [0, 0];
    for (name, read) in read_all(&view, states).await {
        match read {
            Ok(found) => {
                assert_eq!(found.as_ref(), state.get(&name), "{name}");
                counts[0] += 1;
            }
            Err(_) => counts[1] += 1,
        }
    }
    counts
}

#[test]
#[expect(clippy::print_stdout, reason = "what was seen is worth showing")]
fn a_power_cut_leaves_every_commit_that_returned_if_writes_are_durable() {
    let folder = tempfile::tempdir().unwrap();
    let Some(calls) = record(folder.path(), true) else {
        return;
    };
    let (states, mut random) = (states(), Random::new(1));
    let mut found = BTreeMap::<_, usize>::new();
    for _ in 0..sample::cases(CUTS) {
        let left = tempfile::tempdir().unwrap();
        let committed = cut(&calls, &mut random, left.path());
        let path = left.path().join("a.zv").display().to_string();
        let number = block_on(check_durable(&path, committed, &states));
        *found.entry(number).or_default() += 1;
    }
    println!("power cuts: {} calls, states {found:?}", calls.len());
    assert_eq!(
        found.len(),
        TRANSACTIONS + 2,
        "each state and none: {found:?}"
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "what was seen is worth showing")]
fn a_sealed_store_is_exact_or_refused_after_a_power_cut() {
    let folder = tempfile::tempdir().unwrap();
    let Some(calls) = record(folder.path(), false) else {
        return;
    };
    let (states, mut random) = (states(), Random::new(2));
    let mut sums = [0, 0];
    for _ in 0..sample::cases(CUTS) {
        let left = tempfile::tempdir().unwrap();
        cut(&calls, &mut random, left.path());
        let path = left.path().join("a.zv").display().to_string();
        let counts = block_on(check_sealed(&path, &states));
        sums = [sums[0] + counts[0], sums[1] + counts[1]];
    }
    println!(
        "power cuts without sync: {} calls, exact and refused objects {sums:?}",
        calls.len()
    );
    assert!(sums[0] > 0 && sums[1] > 0, "{sums:?}");
}
