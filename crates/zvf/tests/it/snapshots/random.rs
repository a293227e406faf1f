//! Random readers beside a random writer.

use core::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};
use std::{sync::Mutex, thread};

use zvf::{Dataset, Editor, Follow, Location, OpenOptions, OutOfBounds, Query};
use zvf_testkit::{sample, stores::Random};

use super::{
    bucket, is_changed,
    model::{Content, Model, content},
    object,
};
use crate::block_on;

/// Readers beside the writer.
const READERS: u64 = 3;

/// Committed states, in their order.
#[derive(Default)]
struct History(Mutex<Vec<Content>>);

impl History {
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn push(&self, content: Content) {
        self.0.lock().unwrap().push(content);
    }

    /// Returns whether a state from `first` on meets a condition.
    fn any(&self, first: usize, is_met: impl Fn(&Content) -> bool) -> bool {
        let states = self.0.lock().unwrap();
        states[first..].iter().any(is_met)
    }
}

/// Makes random changes and records each state before it becomes visible.
async fn write(location: Location, mut model: Model, mut random: Random, history: &History) {
    let editor = Editor::open(location).await.unwrap();
    for _ in 0..sample::cases(10_u64) {
        let ids = model.content().ids();
        let some = ids[random.below(ids.len())];
        match random.below(4) {
            0 if ids.len() > 4 => {
                model.remove(some);
                history.push(model.content());
                editor.remove(&[some]).await.unwrap();
            }
            1 => {
                editor.compact().await.unwrap();
            }
            2 => {
                let geometry = model.add(&[some]);
                history.push(model.content());
                let bounds = OutOfBounds::Reject;
                editor
                    .replace(&geometry.build().unwrap(), bounds)
                    .await
                    .unwrap();
            }
            _ => {
                let geometry = model.add(&[ids.last().unwrap() + 1]);
                history.push(model.content());
                let bounds = OutOfBounds::Reject;
                editor
                    .append(&geometry.build().unwrap(), bounds)
                    .await
                    .unwrap();
            }
        }
    }
}

/// Runs random queries until the writer is done. Returns the number of results.
async fn read(
    location: Location,
    mut random: Random,
    history: &History,
    is_done: &AtomicBool,
) -> usize {
    let open = |random: &mut Random, location: &Location| {
        let follow = [Follow::Never, Follow::WhenGone, Follow::Always];
        let options = OpenOptions::default()
            .cache([0, 64 << 20][random.below(2)])
            .follow(follow[random.below(3)]);
        let location = location.clone();
        async move { Dataset::open_with(location, &options).await }
    };
    let mut handles: Vec<(Dataset, usize)> = Vec::new();
    let mut results = 0;
    while !is_done.load(Ordering::Relaxed) || results == 0 {
        if handles.len() < 3 || random.chance(10) {
            // The writer records states before it commits: the last one may not be visible.
            let first = history.len().saturating_sub(2);
            match open(&mut random, &location).await {
                Ok(dataset) => handles.push((dataset, first)),
                Err(error) if is_changed(&error) => continue,
                Err(error) => panic!("{error:?}"),
            }
            if handles.len() > 3 {
                handles.remove(0);
            }
        }
        let at = random.below(handles.len());
        let (dataset, first) = &mut handles[at];
        let first = *first;
        let outcome = match random.below(4) {
            0 => dataset.query(&Query::new()).await.map(|result| {
                let found = content(&result);
                assert!(history.any(first, |state| *state == found), "{found:?}");
            }),
            1 => {
                let id = i64::try_from(random.below(12)).unwrap();
                let result = dataset.query(&object(id)).await;
                result.map(|result| {
                    let found = content(&result);
                    let is_state = |state: &Content| state.only(&[id]) == found;
                    assert!(history.any(first, is_state), "{id}: {found:?}");
                })
            }
            2 => {
                let mut batches = Vec::new();
                let stop = random.chance(50);
                let query = Query::new();
                let outcome = dataset
                    .batches(&query, |batch| {
                        batches.push(content(&batch));
                        thread::yield_now();
                        if stop {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    })
                    .await
                    .map(drop);
                let is_whole = outcome.is_ok() && !stop;
                let found: Content = batches.into_iter().sum();
                let is_state = |state: &Content| {
                    if is_whole {
                        *state == found
                    } else {
                        state.contains(&found)
                    }
                };
                assert!(history.any(first, is_state), "{found:?}");
                outcome
            }
            _ => dataset.count(&Query::new()).await.map(|counts| {
                let is_state = |state: &Content| state.vertices() == counts.vertices;
                assert!(history.any(first, is_state), "{}", counts.vertices);
            }),
        };
        match outcome {
            // An object may be absent from the state.
            Ok(()) => results += 1,
            Err(error) if matches!(error.cause(), Some(zvf_query::QueryError::NoObject { .. })) => {
                results += 1;
            }
            Err(error) if is_changed(&error) => {
                if random.chance(50) {
                    drop(dataset.reload().await);
                } else {
                    drop(handles.remove(at));
                }
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    results
}

/// Creates a store, changes it, and reads it meanwhile. Returns how many queries were answered.
pub(crate) fn check(seed: u64, location: &Location, is_sealed: bool) -> usize {
    let model = block_on(Model::create(location.clone(), 8));
    if is_sealed {
        block_on(zvf::seal(location.clone())).unwrap();
    }
    let history = History::default();
    history.push(model.content());
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (1..=READERS)
            .map(|number| {
                let (history, is_done, location) = (&history, &is_done, location.clone());
                let random = Random::new(seed * 100 + number);
                scope.spawn(move || block_on(read(location, random, history, is_done)))
            })
            .collect();
        let writing = scope.spawn(|| {
            let random = Random::new(seed * 100);
            block_on(write(location.clone(), model, random, &history));
        });
        let written = writing.join();
        is_done.store(true, Ordering::Relaxed);
        let mut answered = 0;
        for reader in readers {
            let own = reader.join().unwrap();
            assert!(own > 0, "seed {seed}");
            answered += own;
        }
        written.unwrap();
        answered
    })
}

#[test]
fn readers_of_a_folder_see_committed_states_only() {
    for seed in 0..sample::cases(1_u64) {
        let folder = tempfile::tempdir().unwrap();
        let address = folder.path().join("a.zv").display().to_string();
        check(seed, &address.into(), seed % 2 == 1);
    }
}

#[test]
fn readers_of_memory_see_committed_states_only() {
    for seed in 0..sample::cases(1_u64) {
        let store = OpenOptions::default().create("memory:").unwrap();
        check(seed, &store.into(), seed % 2 == 0);
    }
}

#[test]
fn readers_of_a_bucket_see_committed_states_only() {
    for seed in 0..sample::cases(1_u64) {
        let store = bucket().create("memory:").unwrap();
        check(seed, &store.into(), seed % 2 == 0);
    }
}
