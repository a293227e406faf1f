//! Transactions of writers that die at every possible operation.

use core::time::Duration;

use zvf_store::Store;

use crate::{
    support::{Killer, Place, block_on, key},
    transactions::{ROOT, all, begun, change, left, new, old, read, state},
};

/// Kills the writer at every operation. Readers then see the old or the new state, and the next
/// transaction completes a committed one.
#[test]
fn a_crash_leaves_the_old_state_or_the_new() {
    Place::each(|place, killer| {
        let (mut before, mut during, mut after) = (0, 0, 0);
        for at in 1.. {
            let place = place.another(killer);
            let store = begun(&place, killer);
            let survived = killer.survives(at, change(&store)).is_some();
            drop(store);
            match block_on(check_after_death(&place, killer)) {
                (false, _) => before += 1,
                (true, true) => during += 1,
                (true, false) => after += 1,
            }
            if survived {
                break;
            }
        }
        // Hooks run before and after each operation, including the commit.
        assert!(
            before > 5 && during > 8 && after > 0,
            "{before} {during} {after}"
        );
    });
}

/// Checks the store after a crash. Returns whether the transaction was committed, and whether it
/// still had to be applied.
async fn check_after_death(place: &Place, killer: &Killer) -> (bool, bool) {
    let store = place.open(killer);
    let (member, root) = state(&store).await;
    let committed = member["transaction"] == 1;
    let pending = member["pending"] == true;
    let want = if committed { new() } else { old() };
    let followed = store.committed_view(&root).await.unwrap();
    assert_eq!(all(&followed).await, want, "as readers see it");

    let mut next = store.begin().await.unwrap();
    assert_eq!(next.base(), u64::from(committed));
    assert_eq!(all(&store).await, want, "as it lies there");
    let (member, _) = state(&store).await;
    assert_eq!(member.get("pending"), None);
    // A view taken before recovery still shows the committed state.
    assert_eq!(all(&followed).await, want, "as earlier readers see it");

    next.put(key("0/a"), "newer".into()).await.unwrap();
    next.touch("0/a");
    next.commit(ROOT).await.unwrap();
    assert_eq!(read(&store, "0/a").await.unwrap(), "newer");
    let swept = store.sweep(Duration::ZERO).await.unwrap();
    assert!(
        !committed || swept == 0,
        "a committed transaction left {swept} objects"
    );
    if place.path().is_some() {
        assert!(
            left(place)
                .iter()
                .all(|name| name == "lock" || name.starts_with("log/"))
        );
    }
    (committed, pending)
}

#[test]
fn recovery_survives_crashes_during_recovery() {
    Place::each(|place, killer| {
        let mut deaths = 0;
        for at in 1.. {
            let place = place.another(killer);
            let survived = killer
                .survives(at, change(&begun(&place, killer)))
                .is_some();
            let pending = block_on(state(&place.open(killer))).0["pending"] == true;
            if pending {
                for again in 1.. {
                    let place = place.another(killer);
                    killer.survives(at, change(&begun(&place, killer)));
                    let store = place.open(killer);
                    let done = killer.survives(again, store.begin()).is_some();
                    drop(store);
                    let (committed, _) = block_on(check_after_death(&place, killer));
                    assert!(committed);
                    if done {
                        break;
                    }
                    deaths += 1;
                }
            }
            if survived {
                break;
            }
        }
        assert!(deaths > 50, "{deaths}");
    });
}

#[test]
fn a_zip_file_of_a_pending_transaction_shows_the_new_state() {
    if !cfg!(feature = "zip") {
        return;
    }
    let killer = Killer::default();
    let mut pending = 0;
    for at in 1.. {
        let place = Place::folder();
        let survived = killer
            .survives(at, change(&begun(&place, &killer)))
            .is_some();
        let path = place.path().unwrap();
        block_on(async {
            let (member, root) = state(&place.open(&killer)).await;
            if member["pending"] == true {
                pending += 1;
                let zipped = zip_of(&path);
                let store = Store::open(zipped.to_str().unwrap()).unwrap();
                assert_eq!(
                    all(&store.committed_view(&root).await.unwrap()).await,
                    new()
                );
            }
        });
        if survived {
            break;
        }
    }
    assert!(pending > 8, "{pending}");
}

#[cfg(not(feature = "zip"))]
fn zip_of(_: &std::path::Path) -> std::path::PathBuf {
    std::path::PathBuf::new()
}

#[cfg(feature = "zip")]
fn zip_of(folder: &std::path::Path) -> std::path::PathBuf {
    use std::io::Write;
    let path = folder.with_extension("zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let name = entry.strip_prefix(folder).unwrap().to_str().unwrap();
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(name, options).unwrap();
            zip.write_all(&std::fs::read(&entry).unwrap()).unwrap();
        }
    }
    zip.finish().unwrap();
    path
}

#[test]
fn sweeping_keeps_committed_objects() {
    Place::each(|place, killer| {
        let mut pending = 0;
        for at in 1.. {
            let place = place.another(killer);
            let survived = killer
                .survives(at, change(&begun(&place, killer)))
                .is_some();
            let store = place.open(killer);
            block_on(async {
                if state(&store).await.0["pending"] == true {
                    pending += 1;
                    assert_eq!(store.sweep(Duration::ZERO).await.unwrap(), 0);
                    store.begin().await.unwrap();
                    assert_eq!(all(&store).await, new());
                }
            });
            if survived {
                break;
            }
        }
        assert!(pending > 8, "{pending}");
    });
}

/// Environment variables of the child process: the path of its store, and the operation at which it
/// aborts.
const CHILD: [&str; 2] = ["ZVF_TEST_STORE", "ZVF_TEST_KILL_AT"];

/// The child process of the next test. Does nothing without its environment variables.
#[test]
fn a_process_that_is_killed() {
    let [Ok(path), Ok(at)] = CHILD.map(std::env::var) else {
        return;
    };
    let left = std::sync::atomic::AtomicUsize::new(at.parse().unwrap());
    let options = zvf_store::OpenOptions::default().write_hook(std::sync::Arc::new(move |_, _| {
        if left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    }));
    block_on(change(&options.create(&path).unwrap())).unwrap();
}

#[test]
fn a_killed_process_leaves_the_old_state_or_the_new_and_no_lock() {
    let killer = Killer::default();
    let (mut before, mut during) = (0, 0);
    for at in (1..).step_by(3) {
        let place = Place::folder();
        begun(&place, &killer);
        let path = place.path().unwrap();
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crashes::a_process_that_is_killed"])
            .envs([
                (CHILD[0], path.to_str().unwrap()),
                (CHILD[1], &at.to_string()),
            ])
            .output()
            .unwrap();
        match block_on(check_after_death(&place, &killer)) {
            (false, _) => before += 1,
            (true, pending) => during += usize::from(pending),
        }
        if child.status.success() {
            break;
        }
    }
    assert!(before > 2 && during > 3, "{before} {during}");
}

/// `object_store` writes to a temporary file next to the target, and omits it from listings.
#[test]
fn temporary_files_of_killed_processes_are_swept() {
    let killer = Killer::default();
    let place = Place::folder();
    let store = begun(&place, &killer);
    let path = place.path().unwrap();
    let unfinished = [
        ".zvf/0123abcd/0#1",
        "0/vertices/c/0/0#12",
        "0/zarr.json#1",
        "zarr.json#2",
    ];
    let others = ["0/notes#1", "0/vertices/c/0/0#x", "zarr.json#"];
    for name in unfinished.iter().chain(&others) {
        let path = path.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "half").unwrap();
    }
    assert_eq!(block_on(store.sweep(Duration::from_hours(1))).unwrap(), 0);
    assert_eq!(block_on(store.sweep(Duration::ZERO)).unwrap(), 4);
    for name in unfinished {
        assert!(!path.join(name).exists(), "{name}");
    }
    for name in others {
        assert!(path.join(name).exists(), "{name}");
    }
    assert!(!path.join(".zvf/0123abcd").exists());
    assert_eq!(block_on(read(&store, "0/a")).unwrap(), "old a");
}

/// `object_store` deletes a file and then its folder, if that is empty.
#[test]
fn an_empty_folder_left_by_a_killed_process_is_removed() {
    let killer = Killer::default();
    let mut pending = 0;
    for at in 1.. {
        let place = Place::folder();
        let survived = killer
            .survives(at, change(&begun(&place, &killer)))
            .is_some();
        let store = place.open(&killer);
        block_on(async {
            let (member, root) = state(&store).await;
            let emptied = place.path().unwrap().join("0/x");
            if member["pending"] == true && emptied.exists() {
                pending += 1;
                std::fs::remove_file(emptied.join("b")).unwrap();
                assert_eq!(
                    all(&store.committed_view(&root).await.unwrap()).await,
                    new()
                );
                store.begin().await.unwrap();
                assert_eq!(all(&store).await, new());
            }
        });
        if survived {
            break;
        }
    }
    assert!(pending > 0);
}

/// Replaces files with folders: chunks of stores with more axes lie deeper.
async fn deepen(store: &Store) -> Result<u64, zvf_store::CommitError> {
    let mut transaction = store.begin().await?;
    transaction.delete(key("0/x/b")).await?;
    transaction.delete(key("0/a")).await?;
    let puts = [
        ("0/x/b/c", "deeper"),
        ("0/a/b/c", "deeper"),
        ("0/x/d", "beside"),
    ];
    for (at, text) in puts {
        transaction.put(key(at), text.into()).await?;
    }
    Ok(transaction.commit(ROOT).await?.transaction)
}

/// Replaces folders with files, after `deepen`.
async fn flatten(store: &Store) -> Result<u64, zvf_store::CommitError> {
    let mut transaction = store.begin().await?;
    for at in ["0/x/b/c", "0/a/b/c", "0/x/d"] {
        transaction.delete(key(at)).await?;
    }
    transaction.put(key("0/x"), "flat".into()).await?;
    transaction.put(key("0/a/b"), "flat".into()).await?;
    Ok(transaction.commit(ROOT).await?.transaction)
}

#[test]
fn files_and_folders_replace_each_other_despite_crashes() {
    Place::each(|place, killer| {
        for flat in [false, true] {
            for at in 1.. {
                let place = place.another(killer);
                let store = begun(&place, killer);
                if flat {
                    block_on(deepen(&store)).unwrap();
                }
                let survived = if flat {
                    killer.survives(at, flatten(&store))
                } else {
                    killer.survives(at, deepen(&store))
                };
                let store = place.open(killer);
                block_on(async {
                    let next = store.begin().await.unwrap();
                    let deep = read(&store, "0/a/b/c").await.is_some();
                    let done = next.base() == 1 + u64::from(flat);
                    assert_eq!(deep, done != flat, "at {at}");
                    assert_eq!(read(&store, "0/a/b").await.is_some(), flat && done);
                    assert_eq!(read(&store, "0/x/b").await.is_some(), !flat && !done);
                });
                if survived.is_some() {
                    break;
                }
            }
        }
    });
}
