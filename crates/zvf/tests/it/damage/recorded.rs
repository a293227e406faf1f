//! The recorded damaged stores: every case with its outcome.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use zvf_testkit::golden::{Golden, unhex};

use super::{Files, ask, asks::Intact, chain, files, is_same, open};
use crate::block_on;

/// Does to the files what the recorded edit did.
fn apply(files: &mut Files, edit: &Json) {
    let file = edit["file"].as_str().unwrap();
    let below = |path: &str| path == file || path.starts_with(&format!("{file}/"));
    let bytes_of = |files: &mut Files, bytes: Vec<u8>| {
        files.retain(|(path, _)| path != file);
        files.push((file.to_owned(), bytes));
    };
    match edit["op"].as_str().unwrap() {
        "rm" => files.retain(|(path, _)| !below(path)),
        "hex" => bytes_of(files, unhex(edit["hex"].as_str().unwrap())),
        "rename" => {
            let to = edit["to"].as_str().unwrap();
            for (path, _) in files.iter_mut().filter(|(path, _)| below(path)) {
                *path = path.replacen(file, to, 1);
            }
        }
        op @ ("set" | "del") => {
            let (_, bytes) = files.iter().find(|(path, _)| path == file).unwrap();
            let mut json: Json = serde_json::from_slice(bytes).unwrap();
            let path = edit["path"].as_array().unwrap();
            let (last, parents) = path.split_last().unwrap();
            let mut parent = &mut json;
            for step in parents {
                parent = &mut parent[step.as_str().unwrap()];
            }
            let parent = parent.as_object_mut().unwrap();
            let field = last.as_str().unwrap();
            match op {
                "set" => parent.insert(field.to_owned(), edit["value"].clone()),
                _ => parent.remove(field),
            };
            bytes_of(files, serde_json::to_vec(&json).unwrap());
        }
        op => panic!("{op} is no known edit"),
    }
}

#[test]
fn explore() {
    let golden = Golden::open("zvf-09");
    let cases = golden.json("invalid_cases.json");
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let base = format!("{}/store.zarrvectors", case["base"].as_str().unwrap());
        block_on(async {
            let intact = Intact::of(files(&golden, &base)).await;
            let mut damaged = intact.files.clone();
            for edit in case["edits"].as_array().unwrap() {
                apply(&mut damaged, edit);
            }
            let dataset = match open(&damaged).await {
                Ok(dataset) => dataset,
                Err(error) => {
                    eprintln!("{name}: OPEN {}", chain(&error));
                    return;
                }
            };
            let mut out: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for asked in &intact.asked {
                let told = match ask(&dataset, &asked.query).await {
                    Err(error) => error,
                    Ok(answer) if is_same(&answer, &asked.answer) => "=".to_owned(),
                    Ok(answer) => format!(
                        "DIFF {} rows of {}, {:?}",
                        answer.positions.len(),
                        asked.answer.positions.len(),
                        answer.links.map(|l| l.len())
                    ),
                };
                out.entry(told).or_default().push(asked.name);
            }
            for (told, names) in out {
                eprintln!("{name}: {names:?}: {told}");
            }
        });
    }
}
