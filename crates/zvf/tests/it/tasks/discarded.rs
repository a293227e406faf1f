//! Tasks that still run when their plan is discarded.

use std::{
    error::Error,
    path::Path,
    sync::{Arc, Once},
    thread,
};

use zvf::{
    CreateOptions, Dataset, Design, Geometry, GeometryKind, GeometrySource, MigrateOptions,
    NumericColumn, OpenOptions, ShardingPolicy, TaskPlan, plan_create, plan_migrate,
};

use super::{assert_equal, files, tasks, text};
use crate::block_on;

/// Points that one process reads.
struct Points {
    left: Option<Geometry>,
    all: Geometry,
}

impl GeometrySource for Points {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        Ok(self.left.take())
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.left = Some(self.all.clone());
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(Geometry::new(NumericColumn::float32(3, [])))
    }
}

/// Returns points on a line, each in a chunk of its own, and two chunks in a shard.
fn points() -> Geometry {
    let positions = (0..600_u16).flat_map(|at| [f32::from(at), 0.5, 0.5]);
    Geometry::new(NumericColumn::float32(3, positions))
}

fn design() -> Design {
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![1.0; 3]);
    design.sharding = ShardingPolicy::Shape(vec![2, 1, 1]);
    design
}

async fn planned(address: &str) -> TaskPlan {
    let (left, all) = (Some(points()), points());
    let (mut source, options) = (Points { left, all }, CreateOptions::default());
    let tasks = tasks(1);
    let plan = plan_create(address, &mut source, design(), &options, &tasks);
    plan.await.unwrap()
}

/// Returns options that call `between` on a thread of its own before the first cell is put. Other
/// cells wait for it.
fn at_first_cell(between: impl Fn() + Send + Sync + Clone + 'static) -> OpenOptions {
    let once = Once::new();
    OpenOptions::default().write_hook(Arc::new(move |_, key| {
        if key.as_str().starts_with("0/") {
            once.call_once(|| thread::spawn(between.clone()).join().unwrap());
        }
    }))
}

/// Runs the task of a plan that is discarded after the task began.
fn check(plan: &TaskPlan, target: &Path) {
    let discarded = plan.clone();
    let open = at_first_cell(move || {
        block_on(discarded.discard(&OpenOptions::default())).unwrap();
    });
    let said = block_on(plan.run(0, &open)).unwrap_err().to_string();
    assert!(said.contains("plan again"), "{said}");
    assert!(files(target).is_empty(), "{:?}", files(target).keys());
    let (address, points, options) = (text(target), points(), CreateOptions::default());
    let created = zvf::create(&address, &points, design(), &options);
    drop(block_on(created).unwrap());
}

#[test]
fn a_task_takes_back_what_it_put_after_its_plan_was_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let (created, migrated) = (
        folder.path().join("created"),
        folder.path().join("migrated"),
    );
    check(&block_on(planned(&text(&created))), &created);
    let options = MigrateOptions::default();
    let (source, address, tasks) = (text(&created), text(&migrated), tasks(1));
    let plan = plan_migrate(&source, &address, &options, &tasks);
    check(&block_on(plan).unwrap(), &migrated);
}

#[test]
fn a_task_puts_nothing_into_the_store_of_another_plan() {
    let folder = tempfile::tempdir().unwrap();
    let (target, expected) = (folder.path().join("1/store"), folder.path().join("2/store"));
    let plan = block_on(planned(&text(&target)));
    let (discarded, address) = (plan.clone(), text(&target));
    let open = at_first_cell(move || {
        block_on(async {
            discarded.discard(&OpenOptions::default()).await.unwrap();
            planned(&address)
                .await
                .write(&format!("{address}.plan"), &OpenOptions::default())
                .await
        })
        .unwrap();
    });
    let said = block_on(plan.run(0, &open)).unwrap_err().to_string();
    assert!(said.contains("plan again"), "{said}");
    let cells = files(&target)
        .into_keys()
        .filter(|name| name.contains("/c/"))
        .count();
    assert!(cells < 200, "{cells} of 600 objects were put");
    let open = OpenOptions::default();
    block_on(async {
        let path = format!("{}.plan", text(&target));
        let next = TaskPlan::read(&path, &open).await.unwrap();
        assert!(next.run(0, &open).await.unwrap());
        assert!(TaskPlan::commit(&path, &open).await.unwrap().is_committed());
        let options = CreateOptions::default();
        zvf::create(&text(&expected), &points(), design(), &options)
            .await
            .unwrap();
        assert_eq!(
            Dataset::open(&text(&target)).await.unwrap().levels().len(),
            1
        );
    });
    assert_equal(&target, &expected, "the second plan");
}
