//! Tasks of a plan write the result of one process.

mod attributes;
mod discarded;
mod migrations;

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};
use zvf::{Plan, StoreWork, TaskPlan, TaskPlanError, TaskPlanOptions, ValidationWork, Work};

/// Writes the files of a store to a folder.
fn write_files<'f>(folder: &Path, files: impl IntoIterator<Item = (&'f str, &'f [u8])>) {
    for (key, bytes) in files {
        let path = folder.join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Returns the files of a store. Transactions have unique names, which are left out.
fn files(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    add_files(store, "", &mut found);
    found.retain(|name, _| !name.starts_with(".zvf/log/") && name != ".zvf/lock");
    let Some(root) = found.get("zarr.json") else {
        return found;
    };
    let root = String::from_utf8(root.clone()).unwrap();
    let json: Value = serde_json::from_str(&root).unwrap();
    let Some(id) = json.pointer("/attributes/zvf/id").and_then(Value::as_str) else {
        return found;
    };
    // Leaves of the inventory are named by the transaction, too.
    found.insert("zarr.json".to_owned(), root.replace(id, "").into_bytes());
    let files = found.into_iter();
    files
        .map(|(name, bytes)| (name.replace(id, ""), bytes))
        .collect()
}

fn add_files(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            add_files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

/// Checks that two stores have equal files.
#[track_caller]
fn assert_equal(one: &Path, other: &Path, about: &str) {
    let (one, other) = (files(one), files(other));
    let names = one.keys().chain(other.keys());
    let differ: Vec<&String> = names
        .filter(|name| one.get(*name) != other.get(*name))
        .collect();
    assert!(differ.is_empty(), "{differ:?}: {about}");
}

/// Returns a plan as another process reads it.
fn again(plan: &TaskPlan) -> TaskPlan {
    let text = plan.to_json().to_string();
    TaskPlan::from_json(&text.parse().unwrap()).unwrap()
}

fn tasks(count: usize) -> TaskPlanOptions {
    TaskPlanOptions::new().tasks(count)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Checks that a plan is read and written again, and refused if a member is missing or of another
/// type. Some members may be anything, and the report may be missing.
#[track_caller]
fn check_members<W: Work>(plan: &Value, free: &[&str]) {
    let read = |json: Value| Plan::<W>::from_json(&json.into()).map(|plan| plan.to_json());
    assert_eq!(read(plan.clone()), Ok(plan.clone().into()));
    for name in plan.as_object().unwrap().keys() {
        let mut damaged = plan.clone();
        damaged[name] = json!([-1]);
        if !free.contains(&name.as_str()) {
            assert_eq!(read(damaged.clone()), Err(TaskPlanError::Invalid), "{name}");
        }
        damaged.as_object_mut().unwrap().remove(name);
        if name != "committed" {
            assert_eq!(read(damaged), Err(TaskPlanError::Invalid), "{name}");
        }
    }
}

#[test]
fn damaged_plans_are_refused() {
    let plan = json!({
        "zvf_task_plan": 3, "store": "a.zv", "id": "0f", "job": "pyramid", "tasks": 2,
        "committed": null, "level": 1, "recipe": null, "parts": 3, "phase": "write", "writers": 2,
    });
    check_members::<StoreWork>(&plan, &["recipe"]);
    for (name, value) in [("tasks", json!(0)), ("job", json!("validate"))] {
        let mut other = plan.clone();
        other[name] = value;
        assert!(TaskPlan::from_json(&other.into()).is_err(), "{name}");
    }
    let plan = json!({
        "zvf_task_plan": 3, "store": "a.zv", "id": "0f", "job": "validate", "tasks": 2,
        "committed": null, "depth": 4, "limit": null, "anonymous": false,
    });
    check_members::<ValidationWork>(&plan, &[]);
}
