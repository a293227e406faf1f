//! Levels whose chunks are built by separate tasks equal the levels that one process builds.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use zvf::{
    CrossLevel, GeometryKind, OpenOptions, Profile, ShardingPolicy, TaskRunner, build_pyramid,
};
use zvf_store::Store;

use super::{
    equal::{Files, files},
    random::{Wanted, wanted_in},
};
use crate::block_on;

/// A call before the first task.
type Before = Box<dyn Fn() -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Runs each task twice, in reverse order.
#[derive(Default)]
struct RunsTwice {
    tasks: AtomicUsize,
    before: Option<Before>,
}

impl TaskRunner for RunsTwice {
    fn at_once(&self) -> usize {
        1
    }

    fn run(&self, tasks: &[PathBuf]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.tasks.fetch_add(tasks.len(), Ordering::Relaxed);
        if let Some(before) = &self.before {
            before()?;
        }
        for task in tasks.iter().rev().flat_map(|task| [task, task]) {
            block_on(zvf::run_task(task, &OpenOptions::default()))?;
        }
        Ok(())
    }
}

fn put(files: &Files, folder: &Path) {
    for (name, bytes) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
}

async fn of(kind: GeometryKind, profile: Profile, seed: u64, sharded: bool) -> Wanted {
    let mut wanted = wanted_in(seed, kind, profile, |design, axes| {
        if sharded {
            design.sharding = ShardingPolicy::Shape(vec![2; axes]);
        }
    })
    .await;
    wanted.options.cross_level = CrossLevel::Explicit;
    wanted
}

async fn made(files: &Files, wanted: &Wanted, runner: Option<Arc<RunsTwice>>) -> (Files, usize) {
    let folder = tempfile::tempdir().unwrap();
    put(files, folder.path());
    let address = folder.path().display().to_string();
    let mut options = wanted.options.clone();
    let shared = runner.clone();
    options.runner = shared.map(|runner| runner as Arc<dyn TaskRunner>);
    let made = build_pyramid(&address, &options).await;
    made.unwrap_or_else(|error| panic!("{error:?}, {}", wanted.about));
    let store: Store = OpenOptions::default().open(&address).unwrap();
    let tasks = runner.map_or(0, |runner| runner.tasks.load(Ordering::Relaxed));
    (self::files(&store).await, tasks)
}

#[test]
fn chunks_may_be_built_by_separate_tasks() {
    for kind in GeometryKind::ALL {
        let mut max = 0;
        for (seed, sharded) in [(40, false), (43, true)] {
            block_on(async {
                let wanted = of(kind, Profile::V09, seed, sharded).await;
                let before = files(&wanted.store).await;
                let (here, _) = made(&before, &wanted, None).await;
                let (there, tasks) = made(&before, &wanted, Some(Arc::default())).await;
                assert!(here.keys().any(|name| name.starts_with("1/")));
                let differ: Vec<&String> = here
                    .keys()
                    .chain(there.keys())
                    .filter(|name| here.get(*name) != there.get(*name))
                    .collect();
                assert!(differ.is_empty(), "{differ:?}, {}", wanted.about);
                max = max.max(tasks);
            });
        }
        assert!(max > 2, "{kind:?}: {max} tasks");
    }
}

/// No level is written if one of its tasks failed or the store changed meanwhile.
#[test]
fn a_level_with_a_failed_task_is_not_written() {
    block_on(async {
        let wanted = of(GeometryKind::Graphs, Profile::V09, 40, false).await;
        let folder = tempfile::tempdir().unwrap();
        put(&files(&wanted.store).await, folder.path());
        let address = folder.path().display().to_string();
        let store = OpenOptions::default().open(&address).unwrap();
        let changed = store.clone();
        let change = move || {
            block_on(async {
                let mut transaction = changed.begin().await.unwrap();
                let root = transaction.root().clone();
                transaction.commit(&root).await.unwrap();
            });
            Ok(())
        };
        let mut options = wanted.options.clone();
        let dies: Before = Box::new(|| Err("no process can be started".into()));
        for before in [dies, Box::new(change)] {
            let before = Some(before);
            let tasks = AtomicUsize::new(0);
            options.runner = Some(Arc::new(RunsTwice { tasks, before }));
            assert!(build_pyramid(&address, &options).await.is_err());
            let names = files(&store).await.into_keys();
            assert!(names.into_iter().all(|name| !name.starts_with("1/")));
        }
        options.runner = Some(Arc::<RunsTwice>::default());
        assert!(
            !build_pyramid(&address, &options)
                .await
                .unwrap()
                .levels
                .is_empty()
        );
    });
}

/// Before 0.9 each chunk is an array of its own, which tasks do not create.
#[test]
fn older_profiles_are_rejected() {
    block_on(async {
        let wanted = of(GeometryKind::Points, Profile::V08, 40, false).await;
        let mut options = wanted.options.clone();
        options.runner = Some(Arc::<RunsTwice>::default());
        let made = build_pyramid(&wanted.store, &options).await;
        let error = made.unwrap_err().to_string();
        assert!(error.contains("0.9"), "{error}");
    });
}
