//! Exports in tasks equal those of one process.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use zvf::{
    AutoLevels, Dataset, Editor, GeometryBuilder, GeometryKind, OpenOptions, OutOfBounds,
    PyramidOptions, TaskPlanError, TaskPlanOptions, TaskStatus, build_pyramid,
};
use zvf_serve::{
    ExportError, ExportOptions, ExportPlan, ExportReport, ExportTarget, ExportWork, LayerKind,
    MeshFormat, export, plan_export,
};

use crate::{
    export::{bucket, files, hidden},
    stores::{TestStores, block_on, graph, grouped_paths, paths, points, surfaces, trees},
};

/// A plan in a file.
struct PlanFile {
    address: String,
}

impl PlanFile {
    fn plan(&self) -> ExportPlan {
        block_on(ExportPlan::read(&self.address, &OpenOptions::default())).unwrap()
    }

    fn run(&self, task: usize) -> Result<bool, ExportError> {
        block_on(self.plan().run(task, &OpenOptions::default()))
    }

    fn commit(&self) -> Result<ExportPlan, ExportError> {
        block_on(ExportPlan::commit(&self.address, &OpenOptions::default()))
    }

    fn plan_status(&self) -> Result<TaskStatus, ExportError> {
        block_on(self.plan().status(&OpenOptions::default()))
    }

    fn missing(&self) -> Vec<usize> {
        self.plan_status().unwrap().missing
    }

    /// Runs a task that ends in a panic when it reports progress for the `last` time. Returns whether
    /// it did: a task with little to do ends before.
    fn kill(&self, task: usize, last: usize) -> bool {
        let reports = AtomicUsize::new(0);
        let report = Arc::new(move |_, _| {
            if reports.fetch_add(1, Ordering::Relaxed) >= last {
                // Without a message of the panic.
                resume_unwind(Box::new("killed by the test"));
            }
        });
        let open = OpenOptions::default();
        let work = || block_on(self.plan().run_with(task, Some(report), &open));
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(ended) => {
                ended.unwrap();
                false
            }
            Err(_) => true,
        }
    }
}

fn planned(
    stores: &TestStores,
    address: &str,
    target: &ExportTarget,
    options: &ExportOptions,
    plan: &TaskPlanOptions,
) -> Result<PlanFile, ExportError> {
    let open = OpenOptions::default();
    let planned = plan_export(address, target.clone(), options, plan, &open, &|_, _| {});
    let file = PlanFile {
        address: stores.address("plan.json"),
    };
    block_on(block_on(planned)?.write(&file.address, &open))?;
    Ok(file)
}

fn whole(address: &str, target: &Path, options: &ExportOptions) -> ExportReport {
    let work = async {
        let dataset = Dataset::open(address).await.unwrap();
        export(&dataset, target, options, &|_, _| {}).await
    };
    block_on(work).unwrap()
}

/// The folder in which the files of a target appear before the commit.
fn place(target: &ExportTarget, folder: &Path) -> PathBuf {
    match target {
        ExportTarget::Folder(folder) => hidden(folder),
        _ => folder.to_path_buf(),
    }
}

/// Exports in tasks, which run in a mixed order, are killed, and run twice at once.
fn check_tasks(
    stores: &TestStores,
    address: &str,
    options: &ExportOptions,
    expected: &BTreeMap<PathBuf, Vec<u8>>,
    whole: &ExportReport,
) {
    for tasks in [1, 3, 7] {
        let name = format!("tasks-{tasks}");
        let folder = stores.folder.path().join(format!("{name}-folder"));
        let targets = [
            (ExportTarget::from(folder.as_path()), folder),
            bucket(stores, &name),
        ];
        for (target, folder) in targets {
            let plan = TaskPlanOptions::new().tasks(tasks);
            let url = Some("http://localhost".to_owned());
            let plan = planned(stores, address, &target, &options.clone().url(url), &plan).unwrap();
            let working: Vec<usize> = plan.missing();
            let case = format!("{address} {target:?} {options:?} {working:?} of {tasks}");
            for (at, task) in working.iter().rev().enumerate() {
                let refused = plan.commit();
                let left = working.len() - at;
                match refused {
                    Err(ExportError::Plan {
                        source: TaskPlanError::Missing { missing, .. },
                        ..
                    }) => assert_eq!(missing, working[..left], "{case}"),
                    other => panic!("{case}: {other:?}"),
                }
                let is_left = tasks != 3 || plan.kill(*task, at) && plan.kill(*task, 0);
                // At once.
                let plan = &plan;
                let both = thread::scope(|scope| {
                    let run = || scope.spawn(move || plan.run(*task).unwrap());
                    [run(), run()].map(|thread| thread.join().unwrap())
                });
                assert_eq!(both.contains(&true), is_left, "{case}");
                assert!(!plan.run(*task).unwrap(), "{case}");
                let is_document = |name: &PathBuf| name.ends_with("info");
                let found = files(&place(&target, &folder));
                assert!(!found.keys().any(is_document), "{case}");
                if matches!(target, ExportTarget::Folder(_)) {
                    assert!(!folder.exists(), "{case}");
                }
            }
            let committed = plan.commit().unwrap();
            let found = files(&folder);
            let names = |files: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> {
                files.keys().cloned().collect()
            };
            assert_eq!(names(&found), names(expected), "{case}");
            for (name, bytes) in expected {
                assert!(found[name] == *bytes, "{case}: {}", name.display());
            }
            assert!(!hidden(&folder).exists(), "{case}");
            let report = committed.report().unwrap();
            assert_eq!(
                (report.files, report.bytes, &report.notes),
                (whole.files, whole.bytes, &whole.notes),
                "{case}"
            );
            let link = whole.viewer_link(address, "http://localhost");
            assert_eq!(ExportWork::viewer_link(&committed), Some(link), "{case}");
            // What a scheduler repeats has no effect.
            assert_eq!(plan.commit().unwrap(), committed, "{case}");
            assert!(!plan.run(0).unwrap(), "{case}");
            assert!(plan.missing().is_empty(), "{case}");
            assert!(files(&folder) == found, "{case}");
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}

/// Checks the exports of a store as files, as shards, and as many shards.
fn check(kind: GeometryKind, geometry: &GeometryBuilder) {
    check_with(kind, geometry, 0, &[MeshFormat::Draco]);
}

fn check_with(kind: GeometryKind, geometry: &GeometryBuilder, levels: u32, formats: &[MeshFormat]) {
    let stores = TestStores::new();
    let address = stores.create("a.zv", kind, geometry);
    if levels > 0 {
        let mut auto = AutoLevels::default();
        auto.levels = Some(levels);
        let options = PyramidOptions::new().levels(auto);
        block_on(build_pyramid(address.as_str(), &options)).unwrap();
    }
    for format in formats {
        let form = ExportOptions::new().mesh_format(*format);
        let sharded = form.clone().sharded(true);
        let many = sharded.clone().shard_bytes(1 << 10);
        for (options, has_many) in [(form, false), (sharded, false), (many, true)] {
            let folder = stores.folder.path().join("whole");
            let report = whole(&address, &folder, &options);
            let expected = files(&folder);
            let shard = |name: &&PathBuf| name.extension().is_some_and(|end| end == "shard");
            let shards = expected.keys().filter(shard).count();
            let folders: BTreeSet<&Path> =
                expected.keys().filter_map(|name| name.parent()).collect();
            // Tasks write several shards of an index, except of legacy meshes, which have none.
            if has_many && *format == MeshFormat::Draco {
                assert!(shards > 2 * folders.len(), "{shards} {folders:?}");
            }
            check_tasks(&stores, &address, &options, &expected, &report);
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}

#[test]
fn tasks_export_points_as_one_process_does() {
    // More points than a cell has.
    let points = points(12_000);
    check_with(GeometryKind::Points, &points, 1, &[MeshFormat::Draco]);
}

#[test]
fn tasks_export_lines_as_one_process_does() {
    check(GeometryKind::Lines, &paths(300, 2));
}

#[test]
fn tasks_export_streamlines_as_one_process_does() {
    check(GeometryKind::Streamlines, &grouped_paths(300, 9));
}

#[test]
fn tasks_export_skeletons_as_one_process_does() {
    let trees = trees(40, 30);
    check_with(GeometryKind::Skeletons, &trees, 1, &[MeshFormat::Draco]);
}

#[test]
fn tasks_export_graphs_as_one_process_does() {
    check(GeometryKind::Graphs, &graph(2000));
}

#[test]
fn tasks_export_meshes_as_one_process_does() {
    let formats = [MeshFormat::Draco, MeshFormat::Legacy];
    check_with(GeometryKind::Mesh, &surfaces(9, 12), 1, &formats);
}

/// Creates streamlines, and plans their export to a folder and to a bucket.
fn plans(stores: &TestStores) -> (String, Vec<(ExportTarget, PathBuf)>) {
    let address = stores.create("a.zv", GeometryKind::Streamlines, &paths(60, 5));
    let folder = stores.folder.path().join("folder");
    let targets = vec![
        (ExportTarget::from(folder.as_path()), folder),
        bucket(stores, "bucket"),
    ];
    (address, targets)
}

fn problem<T: core::fmt::Debug>(result: Result<T, ExportError>) -> TaskPlanError {
    match result {
        Err(ExportError::Plan { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}

fn run_all(plan: &PlanFile) {
    for task in plan.missing() {
        assert!(plan.run(task).unwrap());
    }
}

#[test]
fn a_changed_store_needs_another_plan() {
    let stores = TestStores::new();
    let (address, targets) = plans(&stores);
    let options = ExportOptions::new();
    let append = |first: i64| {
        let editor = block_on(Editor::open(address.as_str())).unwrap();
        let mut more = paths(10, 9);
        *more.owners.ids_mut().unwrap() = (first..first + 10).collect();
        block_on(editor.append(&more.build().unwrap(), OutOfBounds::Expand)).unwrap();
    };
    for ((target, folder), number) in targets.into_iter().zip(1..) {
        let restart = TaskPlanOptions::new().tasks(2);
        let plan = planned(&stores, &address, &target, &options, &restart).unwrap();
        plan.run(0).unwrap();
        append(number * 1000);
        assert_eq!(problem(plan.run(1)), TaskPlanError::Replaced);
        // Between the last task and the commit.
        let restart = restart.replaces_unfinished(true);
        let plan = planned(&stores, &address, &target, &options, &restart).unwrap();
        run_all(&plan);
        append(number * 1000 + 500);
        assert_eq!(problem(plan.commit()), TaskPlanError::Replaced);
        let plan = planned(&stores, &address, &target, &options, &restart).unwrap();
        run_all(&plan);
        plan.commit().unwrap();
        let reference = stores.folder.path().join(format!("reference-{number}"));
        whole(&address, &reference, &options);
        assert!(files(&folder) == files(&reference), "{target:?}");
    }
}

#[test]
fn a_plan_reserves_its_target() {
    let stores = TestStores::new();
    let (address, targets) = plans(&stores);
    let options = ExportOptions::new();
    for (target, folder) in targets {
        let once = TaskPlanOptions::new().tasks(2);
        let old = planned(&stores, &address, &target, &options, &once).unwrap();
        let old = PlanFile {
            address: {
                let kept = stores.address("old.json");
                fs::rename(&old.address, &kept).unwrap();
                kept
            },
        };
        let refused = planned(&stores, &address, &target, &options, &once).err();
        assert!(
            matches!(refused, Some(ExportError::Planned(_))),
            "{refused:?}"
        );
        let work = async {
            let dataset = Dataset::open(&address).await.unwrap();
            export(&dataset, target.clone(), &options, &|_, _| {}).await
        };
        let refused = block_on(work).err();
        assert!(
            matches!(refused, Some(ExportError::Planned(_))),
            "{refused:?}"
        );
        old.run(0).unwrap();
        let restart = once.replaces_unfinished(true);
        let sharded = options.clone().sharded(true);
        let plan = planned(&stores, &address, &target, &sharded, &restart).unwrap();
        assert_eq!(problem(old.run(1)), TaskPlanError::Replaced);
        assert_eq!(problem(old.commit()), TaskPlanError::Replaced);
        assert_eq!(problem(old.plan_status()), TaskPlanError::Replaced);
        run_all(&plan);
        plan.commit().unwrap();
        assert_eq!(problem(old.run(1)), TaskPlanError::Replaced);
        let reference = stores.folder.path().join("reference");
        whole(&address, &reference, &sharded);
        assert!(files(&folder) == files(&reference), "{target:?}");
        fs::remove_dir_all(reference).unwrap();
        // A complete export is not overwritten.
        let refused = planned(&stores, &address, &target, &options, &restart).err();
        assert!(
            matches!(
                refused,
                Some(ExportError::Exists(_) | ExportError::NotEmpty(_))
            ),
            "{refused:?}"
        );
    }
}

#[test]
fn a_plan_that_fails_leaves_nothing() {
    let stores = TestStores::new();
    let (address, targets) = plans(&stores);
    let options = ExportOptions::new().properties(Some(vec!["none".to_owned()]));
    for (target, folder) in targets {
        let plan = TaskPlanOptions::new();
        let refused = planned(&stores, &address, &target, &options, &plan).err();
        assert!(
            matches!(refused, Some(ExportError::Layer(_))),
            "{refused:?}"
        );
        let place = place(&target, &folder);
        assert!(!place.exists() || files(&place).is_empty());
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let stores = TestStores::new();
    let (address, targets) = plans(&stores);
    let (options, restart) = (
        ExportOptions::new(),
        TaskPlanOptions::new().replaces_unfinished(true),
    );
    for (target, folder) in targets {
        let place = place(&target, &folder);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("letter.txt"), "Dear").unwrap();
        let refused = planned(&stores, &address, &target, &options, &restart).err();
        assert!(
            matches!(refused, Some(ExportError::NotEmpty(_))),
            "{refused:?}"
        );
        // An interrupted export, which its command continues.
        let name = match target {
            ExportTarget::Folder(_) => ".zvf-export.json",
            _ => "zvf-export.json",
        };
        fs::write(place.join(name), "{\"export\": {}}\n").unwrap();
        let refused = planned(&stores, &address, &target, &options, &restart).err();
        assert!(
            matches!(refused, Some(ExportError::Unfinished(_))),
            "{refused:?}"
        );
        assert_eq!(files(&place).len(), 2);
    }
}

#[test]
fn a_commit_checks_what_tasks_have_written() {
    let stores = TestStores::new();
    let (address, targets) = plans(&stores);
    let options = ExportOptions::new().layers([LayerKind::Skeletons]);
    for (target, folder) in targets {
        let plan = TaskPlanOptions::new().tasks(2);
        let plan = planned(&stores, &address, &target, &options, &plan).unwrap();
        assert!(matches!(
            problem(plan.run(2)),
            TaskPlanError::NoTask { index: 2, tasks: 2 }
        ));
        let place = place(&target, &folder);
        let own = |wanted: &str| {
            let names = files(&place).into_keys();
            let is_wanted = |name: &PathBuf| name.to_str().unwrap().contains(wanted);
            place.join(names.filter(is_wanted).min().unwrap())
        };
        let list = own("/parts/");
        let bytes = fs::read(&list).unwrap();
        fs::write(&list, &bytes[8..]).unwrap();
        assert!(matches!(problem(plan.run(0)), TaskPlanError::Object(_)));
        let mut other = bytes.clone();
        other[0] ^= 1;
        fs::write(&list, &other).unwrap();
        assert!(matches!(problem(plan.run(0)), TaskPlanError::Object(_)));
        fs::write(&list, &bytes).unwrap();
        run_all(&plan);

        let skeleton = place.join("skeletons/7");
        let bytes = fs::read(&skeleton).unwrap();
        for other in [None, Some(&bytes[1..])] {
            match other {
                None => fs::remove_file(&skeleton).unwrap(),
                Some(other) => fs::write(&skeleton, other).unwrap(),
            }
            let expected = TaskPlanError::File("skeletons/7".to_owned());
            assert_eq!(problem(plan.commit()), expected);
        }
        fs::write(&skeleton, &bytes).unwrap();
        fs::write(place.join("skeletons/600"), "").unwrap();
        let expected = TaskPlanError::Foreign("skeletons/600".to_owned());
        assert_eq!(problem(plan.commit()), expected);
        fs::remove_file(place.join("skeletons/600")).unwrap();
        // A result that names the file of another task.
        let result = own("/results/");
        let bytes = fs::read_to_string(&result).unwrap();
        fs::write(&result, bytes.replace("skeletons/7\"", "skeletons/59\"")).unwrap();
        let expected = TaskPlanError::Twice("skeletons/59".to_owned());
        assert_eq!(problem(plan.commit()), expected);
        fs::write(&result, &bytes[1..]).unwrap();
        assert!(matches!(problem(plan.commit()), TaskPlanError::Object(_)));
        fs::write(&result, bytes).unwrap();
        plan.commit().unwrap();
        let reference = stores.folder.path().join("reference");
        whole(&address, &reference, &options);
        assert!(files(&folder) == files(&reference), "{target:?}");
        fs::remove_dir_all(reference).unwrap();
    }
}

/// The commit is killed when it has published the export and writes the plan.
#[test]
fn a_killed_commit_is_repeated() {
    let stores = TestStores::new();
    let (address, targets) = plans(&stores);
    let options = ExportOptions::new();
    let reference = stores.folder.path().join("reference");
    whole(&address, &reference, &options);
    for (target, folder) in targets {
        let plan = TaskPlanOptions::new();
        let plan = planned(&stores, &address, &target, &options, &plan).unwrap();
        run_all(&plan);
        if let ExportTarget::Folder(folder) = &target {
            // The commit fails after its checks.
            fs::create_dir(folder).unwrap();
            let refused = plan.commit();
            assert!(
                matches!(refused, Err(ExportError::Exists(_))),
                "{refused:?}"
            );
            fs::remove_dir(folder).unwrap();
        }
        let kill = Arc::new(|_: &str, _: &zvf_model::key::Key| {
            resume_unwind(Box::new("killed by the test"));
        });
        let open = OpenOptions::default().write_hook(kill);
        let work = AssertUnwindSafe(|| block_on(ExportPlan::commit(&plan.address, &open)));
        assert!(catch_unwind(work).is_err());
        assert!(!plan.plan().is_committed());
        assert!(folder.join("annotations/info").exists());
        assert!(files(&folder).len() > files(&reference).len());
        // Nothing is left to do for tasks.
        assert!(!plan.run(0).unwrap());
        assert!(plan.missing().is_empty());
        let committed = plan.commit().unwrap();
        assert_eq!(plan.commit().unwrap(), committed);
        assert!(files(&folder) == files(&reference), "{target:?}");
    }
}

#[test]
fn files_that_are_not_plans_are_refused() {
    let stores = TestStores::new();
    let read = |text: Option<&str>| {
        let address = stores.address("plan.json");
        if let Some(text) = text {
            fs::write(&address, text).unwrap();
        }
        block_on(ExportPlan::find(&address, &OpenOptions::default()))
    };
    assert_eq!(problem(read(None)), TaskPlanError::Absent);
    assert_eq!(problem(read(Some("{"))), TaskPlanError::Invalid);
    assert_eq!(problem(read(Some("{}"))), TaskPlanError::Invalid);
    let job = r#"{"job": "export precomputed"}"#;
    assert_eq!(problem(read(Some(job))), TaskPlanError::Invalid);
    assert_eq!(read(Some(r#"{"job": "create"}"#)).unwrap(), None);
}
