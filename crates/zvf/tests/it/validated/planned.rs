//! Validations that tasks divide, from the plan to the report.

use std::{collections::BTreeMap, fs, path::Path};

use zvf::{
    CreateOptions, Design, Error, Geometry, GeometryKind, NumericColumn, OpenOptions,
    ShardingPolicy, TaskPlan, TaskPlanError, TaskPlanOptions, ValidateOptions, ValidationPlan,
    ValidationReport, ValidationWork, plan_validation, validate,
};
use zvf_testkit::{
    corpus::cases,
    golden::{Files, Golden},
};

use crate::block_on;

fn open() -> OpenOptions {
    OpenOptions::default()
}

/// Writes the files of a store to a folder.
fn write(files: &Files, folder: &Path) {
    for (key, bytes) in files {
        let file = folder.join(key);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
}

/// Reads all files below a folder.
fn read(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(read(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(path).unwrap());
        }
    }
    found
}

/// Validates a store with a plan whose tasks run in reverse order and twice.
async fn planned(store: &str, plan: &str, tasks: usize, limit: usize) -> ValidationReport {
    let tasks_of = TaskPlanOptions::new().tasks(tasks);
    plan_validation(store, plan, ValidationWork::default(), &tasks_of, &open())
        .await
        .unwrap();
    let planned = ValidationPlan::read(plan, &open()).await.unwrap();
    assert_eq!(planned.tasks(), tasks);
    for task in (0..tasks).rev() {
        assert!(planned.run(task, &open()).await.unwrap());
        assert!(!planned.run(task, &open()).await.unwrap());
    }
    let committed = ValidationPlan::commit_with(plan, Some(limit), &open())
        .await
        .unwrap();
    committed.report().unwrap()
}

/// Compares the report of a plan with that of one process.
#[track_caller]
fn check(store: &Path, tasks: usize) -> ValidationReport {
    let before = read(store);
    let jobs = tempfile::tempdir().unwrap();
    let plan = jobs.path().join("plan.json").display().to_string();
    let address = store.display().to_string();
    let report = block_on(async {
        let mut last = None;
        for limit in [1, usize::MAX] {
            let report = planned(&address, &plan, tasks, limit).await;
            let options = ValidateOptions::default().max_findings_per_rule(limit.min(1000));
            assert_eq!(report, validate(&address, &options).await.unwrap());
            last = Some(report);
        }
        last.unwrap()
    });
    assert_eq!(read(store), before, "the store was changed");
    assert_eq!(fs::read_dir(jobs.path()).unwrap().count(), 1);
    report
}

#[test]
fn plans_report_what_one_process_reports() {
    for (number, case) in cases().into_iter().enumerate().step_by(7) {
        let mut files = Golden::open(&case.archive).store(&case.store);
        case.damage(&mut files);
        let folder = tempfile::tempdir().unwrap();
        write(&files, folder.path());
        check(folder.path(), [1, 3, 16][number % 3]);
    }
}

/// Creates a sealed store of points in 30 chunks.
async fn create(address: &str, sharding: ShardingPolicy) {
    let positions = (0..3000_u16).map(f32::from);
    let points = Geometry::new(NumericColumn::float32(3, positions));
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![100.0; 3]);
    design.sharding = sharding;
    let options = CreateOptions::default();
    zvf::create(address, &points, design, &options)
        .await
        .unwrap();
}

#[test]
fn plans_compare_sealed_stores_with_their_inventory() {
    for sharding in [ShardingPolicy::None, ShardingPolicy::Shape(vec![4; 3])] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("points.zv");
        let address = store.display().to_string();
        block_on(create(&address, sharding));
        assert!(check(&store, 3).findings.is_empty());
        let files: Vec<String> = read(&store).into_keys().collect();
        let cells: Vec<&String> = files
            .iter()
            .filter(|file| file.contains("/vertices/c/"))
            .collect();
        for (at, cell) in cells.iter().enumerate().step_by(cells.len().div_ceil(2)) {
            let mut bytes = fs::read(cell).unwrap();
            let last = bytes.len() - 1 - at % 3;
            bytes[last] ^= 1;
            fs::write(cell, bytes).unwrap();
        }
        fs::remove_file(cells.last().unwrap()).unwrap();
        fs::write(store.join("0/vertices/c/extra"), "extra").unwrap();
        let report = check(&store, 3);
        let differences = report
            .findings
            .iter()
            .filter(|finding| finding.rule.code == "ZV-L3-123");
        assert!(differences.count() >= 3, "{:#?}", report.findings);
    }
}

#[track_caller]
fn problem<T>(result: Result<T, Error>) -> TaskPlanError {
    let error = result.map(|_| ()).unwrap_err();
    let problem = error.cause::<TaskPlanError>().cloned();
    problem.unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn plans_are_used_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (store, plan) = (at("points.zv"), at("jobs/plan.json"));
    block_on(async {
        create(&store, ShardingPolicy::None).await;
        let absent = problem(ValidationPlan::read(&plan, &open()).await);
        assert_eq!(absent, TaskPlanError::Absent);
        let tasks_of = TaskPlanOptions::new().tasks(4);
        let planned = plan_validation(&store, &plan, ValidationWork::default(), &tasks_of, &open())
            .await
            .unwrap();
        let inside = format!("{store}/plan.json");
        let inside = plan_validation(
            &store,
            &inside,
            ValidationWork::default(),
            &tasks_of,
            &open(),
        )
        .await;
        assert_eq!(problem(inside), TaskPlanError::InStore);
        // The plan of one job is not that of another.
        let other = problem(TaskPlan::read(&plan, &open()).await);
        assert_eq!(other, TaskPlanError::Invalid);
        let missing = |missing: &[usize]| TaskPlanError::Missing {
            missing: missing.to_vec(),
            tasks: 4,
        };
        let none = problem(planned.run(4, &open()).await);
        assert_eq!(none, TaskPlanError::NoTask { index: 4, tasks: 4 });
        let early = problem(ValidationPlan::commit_with(&plan, Some(9), &open()).await);
        assert_eq!(early, missing(&[0, 1, 2, 3]));
        planned.run(0, &open()).await.unwrap();
        planned.run(2, &open()).await.unwrap();
        let status = planned.status(&open()).await.unwrap();
        assert_eq!((status.tasks, status.missing), (4, vec![1, 3]));
        let early = problem(ValidationPlan::commit_with(&plan, Some(9), &open()).await);
        assert_eq!(early, missing(&[1, 3]));

        // Another plan at the address replaces this one, whose tasks then fail.
        let again = plan_validation(&store, &plan, ValidationWork::default(), &tasks_of, &open())
            .await
            .unwrap();
        assert_eq!(
            problem(planned.run(1, &open()).await),
            TaskPlanError::Outdated
        );
        for task in 0..4 {
            again.run(task, &open()).await.unwrap();
        }
        let mut results = read(&folder.path().join("jobs/.zvf"))
            .into_keys()
            .filter(|file| file.ends_with("result-1"));
        let result = results.next().unwrap();
        let whole = fs::read(&result).unwrap();
        fs::write(&result, &whole[..whole.len() - 1]).unwrap();
        let damaged = problem(ValidationPlan::commit_with(&plan, Some(9), &open()).await);
        assert_eq!(damaged, TaskPlanError::Damaged { task: 1 });
        fs::write(&result, whole).unwrap();

        // A transaction outdates tasks and the commit.
        zvf::seal(store.as_str()).await.unwrap();
        let outdated = problem(ValidationPlan::commit_with(&plan, Some(9), &open()).await);
        assert_eq!(outdated, TaskPlanError::Outdated);
        let tasks_of = TaskPlanOptions::new().tasks(1);
        let planned = plan_validation(&store, &plan, ValidationWork::default(), &tasks_of, &open())
            .await
            .unwrap();
        zvf::seal(store.as_str()).await.unwrap();
        assert_eq!(
            problem(planned.run(0, &open()).await),
            TaskPlanError::Outdated
        );

        let planned = plan_validation(&store, &plan, ValidationWork::default(), &tasks_of, &open())
            .await
            .unwrap();
        planned.run(0, &open()).await.unwrap();
        let first = ValidationPlan::commit_with(&plan, Some(9), &open())
            .await
            .unwrap();
        assert!(first.report().unwrap().is_ok());
        assert_eq!(
            first,
            ValidationPlan::commit_with(&plan, Some(9), &open())
                .await
                .unwrap()
        );
        let after = ValidationPlan::read(&plan, &open()).await.unwrap();
        assert!(!after.run(0, &open()).await.unwrap());
        assert!(after.status(&open()).await.unwrap().is_committed);
    });
}
