//! Edits that damage a store, in the form of the recorded cases.

use serde_json::Value as Json;

use crate::golden::{Files, unhex};

/// Applies an edit of a damaged store to its files: removes, renames or replaces a file, or sets or
/// deletes a field of its JSON.
///
/// # Panics
///
/// Panics if the edit is malformed or names a missing file or field.
pub fn apply(files: &mut Files, edit: &Json) {
    let file = text(&edit["file"]);
    let below = |path: &str| path == file || path.starts_with(&format!("{file}/"));
    let bytes_of = |files: &mut Files, bytes: Vec<u8>| {
        files.retain(|(path, _)| path != file);
        files.push((file.to_owned(), bytes));
    };
    match text(&edit["op"]) {
        "rm" => files.retain(|(path, _)| !below(path)),
        "hex" => bytes_of(files, unhex(text(&edit["hex"]))),
        "rename" => {
            let to = text(&edit["to"]);
            for (path, _) in files.iter_mut().filter(|(path, _)| below(path)) {
                *path = path.replacen(file, to, 1);
            }
        }
        op @ ("set" | "del") => {
            let (_, bytes) = files
                .iter()
                .find(|(path, _)| path == file)
                .expect("an edit as recorded");
            let mut json: Json = serde_json::from_slice(bytes).expect("an edit as recorded");
            let path = edit["path"].as_array().expect("an edit as recorded");
            let (last, parents) = path.split_last().expect("an edit as recorded");
            let mut parent = &mut json;
            for step in parents {
                parent = step_into(parent, step);
            }
            match (op, parent) {
                ("set", parent @ Json::Array(_)) => {
                    *step_into(parent, last) = edit["value"].clone();
                }
                ("set", parent) => parent[text(last)] = edit["value"].clone(),
                (_, Json::Array(items)) => {
                    items.remove(index(last));
                }
                (_, parent) => {
                    parent
                        .as_object_mut()
                        .expect("an object")
                        .remove(text(last));
                }
            }
            bytes_of(
                files,
                serde_json::to_vec(&json).expect("an edit as recorded"),
            );
        }
        op => panic!("{op} is no known edit"),
    }
}

fn text(json: &Json) -> &str {
    json.as_str().expect("text in an edit")
}

fn index(json: &Json) -> usize {
    let index = json.as_u64().expect("the number of an item");
    usize::try_from(index).expect("an item of a list")
}

/// Returns the field or item of a value that a step names.
fn step_into<'a>(json: &'a mut Json, step: &Json) -> &'a mut Json {
    match json {
        Json::Array(items) => &mut items[index(step)],
        json => &mut json[text(step)],
    }
}
