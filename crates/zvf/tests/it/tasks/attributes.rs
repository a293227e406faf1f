//! Attributes that tasks compute.

use std::{path::Path, sync::Arc};

use futures_util::future::join;
use serde_json::json;
use zvf::{
    AttributeSpec, CreateOptions, Design, Error, ErrorKind, Geometry, GeometryKind, Json,
    NumericColumn, ObjectReduction, OpenOptions, Profile, StateError, TaskPlan, TaskPlanError,
    VertexFn, numeric::Kind, plan_object_attribute, plan_vertex_attribute,
};

use super::{again, assert_equal, tasks, text};
use crate::{block_on, written::random::case};

/// Two values of each vertex, some of them NaN.
fn values(axes: usize) -> Arc<VertexFn> {
    Arc::new(move |positions: &[f64]| {
        let rows = positions.chunks_exact(axes).flat_map(|row| {
            let first: f64 = row.iter().map(|at| at * 0.1).sum();
            let second = match first.abs() % 1.0 {
                0.0..0.2 => f64::NAN,
                fraction => 1.0 / fraction - row[0],
            };
            [first, second].into_iter().flat_map(f64::to_le_bytes)
        });
        Ok(rows.collect())
    })
}

fn spec(name: &str) -> AttributeSpec {
    AttributeSpec::new(name, Kind::Float64).row_shape(vec![2])
}

/// Writes an attribute in one process.
async fn write(store: &Path, spec: &AttributeSpec, rule: Option<ObjectReduction>, axes: usize) {
    let (store, values) = (text(store), values(axes));
    let written = match rule {
        None => zvf::write_vertex_attribute(store, spec, values).await,
        Some(rule) => zvf::write_object_attribute(store, spec, rule, values).await,
    };
    written.unwrap();
}

async fn plan(
    store: &Path,
    spec: &AttributeSpec,
    rule: Option<ObjectReduction>,
    count: usize,
) -> TaskPlan {
    let (store, open, recipe) = (text(store), OpenOptions::default(), json!({"n": 1}).into());
    let planned = match rule {
        None => plan_vertex_attribute(&store, spec, recipe, &open, &tasks(count)).await,
        Some(rule) => plan_object_attribute(&store, spec, rule, recipe, &open, &tasks(count)).await,
    };
    planned.unwrap()
}

/// Runs all tasks, each twice at once, and commits.
async fn finish(plan: &TaskPlan, axes: usize) {
    let open = OpenOptions::default();
    for task in (0..plan.tasks()).rev() {
        let other = again(plan);
        assert_eq!(other.recipe(), &json!({"n": 1}).into());
        let ran = join(
            plan.run_with(task, Some(values(axes)), &open),
            other.run_with(task, Some(values(axes)), &open),
        );
        let (one, two) = ran.await;
        // One may find that the other is done, or both that there is nothing to do.
        let _ = (one.unwrap(), two.unwrap());
        assert!(!plan.run(task, &open).await.unwrap());
    }
    let committed = plan.commit_in_memory(&open).await.unwrap();
    // A process that does not know of the commit repeats it.
    assert!(plan.commit_in_memory(&open).await.unwrap().is_committed());
    committed.clean(&open).await.unwrap();
}

/// Creates a random store twice; `None` if the case has no fixed chunks.
async fn created(folder: &Path, seed: u64, kind: GeometryKind) -> Option<usize> {
    let case = case(seed, kind, Profile::V09);
    case.design.chunk_shape.as_ref()?;
    let axes = usize::try_from(case.geometry.positions.width).unwrap();
    for number in ["1", "2"] {
        let store = text(&folder.join(number).join("store"));
        let (geometry, design) = (case.geometry.clone(), case.design.clone());
        zvf::create(
            &store,
            geometry.build().unwrap(),
            design,
            &CreateOptions::new(),
        )
        .await
        .unwrap();
    }
    Some(axes)
}

#[test]
fn attributes_of_tasks_equal_those_of_one_process() {
    let mut checked = 0;
    for kind in GeometryKind::ALL {
        for seed in 0..2 {
            let folder = tempfile::tempdir().unwrap();
            let about = format!("seed {seed}, {kind:?}");
            let (one, many) = (folder.path().join("1/store"), folder.path().join("2/store"));
            block_on(async {
                let Some(axes) = created(folder.path(), seed, kind).await else {
                    return;
                };
                write(&one, &spec("v"), None, axes).await;
                finish(&plan(&many, &spec("v"), None, 3).await, axes).await;
                assert_equal(&one, &many, &about);
                // Replaced by one of another form, in more tasks than there are chunks.
                let narrow = AttributeSpec::new("v", Kind::Float64)
                    .overwrite(true)
                    .memory(1)
                    .row_shape(vec![1, 2]);
                write(&one, &narrow, None, axes).await;
                finish(&plan(&many, &narrow, None, 12).await, axes).await;
                assert_equal(&one, &many, &about);
                let dataset = zvf::Dataset::open(text(&one)).await.unwrap();
                if dataset.info().await.unwrap().levels[0].objects.is_none() {
                    return;
                }
                for rule in ObjectReduction::ALL {
                    let spec = spec("of_objects").overwrite(true);
                    write(&one, &spec, Some(rule), axes).await;
                    finish(&plan(&many, &spec, Some(rule), 4).await, axes).await;
                    assert_equal(&one, &many, &format!("{about}, {rule:?}"));
                    checked += 1;
                }
            });
        }
    }
    assert!(checked >= 12, "{checked}");
}

/// Returns the problem of a plan.
#[track_caller]
fn problem<T>(result: Result<T, Error>) -> TaskPlanError {
    let error = result.map(|_| ()).unwrap_err();
    let problem = error.cause::<TaskPlanError>().cloned();
    problem.unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn plans_of_attributes_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("1/store");
    let open = OpenOptions::default();
    block_on(async {
        let positions = (0..300_u16).map(f32::from);
        let points = Geometry::new(NumericColumn::float32(3, positions));
        let mut design = Design::new(GeometryKind::Points);
        design.chunk_shape = Some(vec![20.0; 3]);
        let options = CreateOptions::new();
        zvf::create(&text(&store), points, design, &options)
            .await
            .unwrap();
        let axes = 3;
        let first = plan(&store, &spec("v"), None, 2).await;
        assert_eq!(problem(first.run(0, &open).await), TaskPlanError::NoValues);
        let expected = TaskPlanError::NoTask { index: 2, tasks: 2 };
        assert_eq!(
            problem(first.run_with(2, Some(values(axes)), &open).await),
            expected
        );
        assert!(first.run_with(0, Some(values(axes)), &open).await.unwrap());
        let missing = TaskPlanError::Missing {
            missing: vec![1],
            tasks: 2,
        };
        assert_eq!(problem(first.commit_in_memory(&open).await), missing);
        // A function that fails or returns too few values leaves the task undone.
        let fails: Arc<VertexFn> = Arc::new(|_| Err("no volume".into()));
        let failed = first.run_with(1, Some(fails), &open).await.unwrap_err();
        assert!(failed.is_from_caller(), "{failed}");
        let short: Arc<VertexFn> = Arc::new(|_| Ok(vec![0; 3]));
        let failed = first.run_with(1, Some(short), &open).await.unwrap_err();
        assert!(failed.kind() == ErrorKind::InvalidInput, "{failed}");
        assert_eq!(first.status(&open).await.unwrap().missing, [1]);
        // Readers see no change.
        let dataset = zvf::Dataset::open(text(&store)).await.unwrap();
        assert_eq!(dataset.transaction(), 0);
        // Another change invalidates the plan.
        write(&store, &spec("w"), None, axes).await;
        let outdated = first.run_with(1, Some(values(axes)), &open).await;
        assert_eq!(problem(outdated), TaskPlanError::Outdated);
        first.discard(&open).await.unwrap();
        assert_eq!(problem(first.status(&open).await), TaskPlanError::Outdated);
        let second = plan(&store, &spec("v"), None, 1).await;
        assert!(second.run_with(0, Some(values(axes)), &open).await.unwrap());
        write(&store, &spec("u"), None, axes).await;
        let outdated = second.commit_in_memory(&open).await;
        assert_eq!(problem(outdated), TaskPlanError::Outdated);
        let (store, known, one) = (text(&store), spec("w"), tasks(1));
        let exists = plan_vertex_attribute(&store, &known, Json::default(), &open, &one)
            .await
            .unwrap_err();
        assert!(
            matches!(exists.cause(), Some(StateError::AttributeExists { .. })),
            "{exists}"
        );
    });
}

#[test]
fn values_of_vertices_are_reduced_to_objects() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    // Two paths through several chunks, and one whose values are all NaN.
    let paths = Geometry::builder(NumericColumn::float32(
        1,
        [1.0, 2.0, 11.0, 25.0, 3.0, 4.0, 14.0, 100.0],
    ))
    .paths(vec![0, 4, 7, 8], vec![7, 9, 4]);
    let mut design = Design::new(GeometryKind::Streamlines);
    design.chunk_shape = Some(vec![10.0]);
    let of_each = |positions: &[f64]| {
        let value = |at: &f64| if *at > 20.0 { f64::NAN } else { at * 2.0 };
        Ok(positions
            .iter()
            .flat_map(|at| value(at).to_le_bytes())
            .collect())
    };
    block_on(async {
        let (address, options) = (text(&store), CreateOptions::new());
        zvf::create(&address, paths.build().unwrap(), design, &options)
            .await
            .unwrap();
        for (rule, seven, nine) in [
            (ObjectReduction::Sum, 28.0, 42.0),
            (ObjectReduction::Mean, 28.0 / 3.0, 14.0),
            (ObjectReduction::Min, 2.0, 6.0),
            (ObjectReduction::Max, 22.0, 28.0),
        ] {
            let spec = AttributeSpec::new("v", Kind::Float64).overwrite(true);
            let written = zvf::write_object_attribute(&address, &spec, rule, Arc::new(of_each));
            assert_eq!(written.await.unwrap().vertices, 8);
            let dataset = zvf::Dataset::open(&address).await.unwrap();
            let found = dataset.query(&zvf::Query::new()).await.unwrap();
            let column = found
                .object
                .iter()
                .find(|column| column.name == "v")
                .unwrap();
            let value = |id: i64| {
                let row = found.objects.iter().position(|found| *found == id).unwrap();
                let zvf::ColumnValues::Numeric(numbers) = &column.values else {
                    panic!("{column:?}")
                };
                let bytes = numbers.row(row).unwrap().try_into().unwrap();
                (!column.is_null(row)).then(|| f64::from_le_bytes(bytes))
            };
            let values = (value(7), value(9), value(4));
            assert_eq!(values, (Some(seven), Some(nine), None), "{rule:?}");
        }
    });
}
