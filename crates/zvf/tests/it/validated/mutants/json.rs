//! Mutants of every value of a JSON document.

use serde_json::{Value, json};

use super::Mutant;

/// Returns documents in which one value is changed, of another type, null or removed.
pub(in super::super) fn mutants(file: &str, bytes: &[u8]) -> Vec<Mutant> {
    let document: Value = serde_json::from_slice(bytes).unwrap();
    let mut places = Vec::new();
    collect(&document, &mut Vec::new(), &mut places);
    let mut mutants = Vec::new();
    for place in &places {
        for other in others(at(&document, place)) {
            let mut changed = document.clone();
            set(&mut changed, place, other.as_ref());
            let place = place.join("/");
            let what = match &other {
                None => format!("{place} gone"),
                Some(other) => format!("{place} = {other}"),
            };
            mutants.push(Mutant {
                file: file.to_owned(),
                what,
                bytes: serde_json::to_vec(&changed).unwrap(),
            });
        }
    }
    mutants
}

fn collect(value: &Value, path: &mut Vec<String>, places: &mut Vec<Vec<String>>) {
    if !path.is_empty() {
        places.push(path.clone());
    }
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        path.push(name);
        collect(child, path, places);
        path.pop();
    }
}

fn at<'a>(document: &'a Value, place: &[String]) -> &'a Value {
    place.iter().fold(document, |value, name| match value {
        Value::Array(items) => &items[name.parse::<usize>().unwrap()],
        value => &value[name.as_str()],
    })
}

fn set(document: &mut Value, place: &[String], other: Option<&Value>) {
    let (last, parents) = place.split_last().unwrap();
    let parent = parents.iter().fold(document, |value, name| match value {
        Value::Array(items) => &mut items[name.parse::<usize>().unwrap()],
        value => &mut value[name.as_str()],
    });
    match (parent, other) {
        (Value::Array(items), None) => {
            items.remove(last.parse().unwrap());
        }
        (Value::Array(items), Some(other)) => items[last.parse::<usize>().unwrap()] = other.clone(),
        (Value::Object(fields), None) => {
            fields.remove(last);
        }
        (parent, Some(other)) => parent[last.as_str()] = other.clone(),
        (_, None) => {}
    }
}

/// Returns replacements of a value; `None` removes it.
fn others(value: &Value) -> Vec<Option<Value>> {
    let mut others = vec![None, Some(Value::Null)];
    let more: Vec<Value> = match value {
        Value::Null => vec![json!(0)],
        Value::Bool(flag) => vec![json!(!flag), json!("yes")],
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(n), _) => vec![
                json!(n.wrapping_add(1)),
                json!(n.wrapping_sub(1)),
                json!(-7),
                json!("1"),
                json!(1e18),
            ],
            (_, Some(n)) => vec![json!(n + 1.0), json!(-n - 0.5), json!("1"), json!(1e300)],
            _ => vec![json!("1")],
        },
        Value::String(text) => {
            vec![
                json!(""),
                json!(format!("{text}x")),
                json!("../x"),
                json!(1),
            ]
        }
        Value::Array(items) => {
            let doubled: Vec<&Value> = items.iter().chain(items.last()).collect();
            vec![json!([]), json!(doubled), json!({})]
        }
        Value::Object(_) => vec![json!({}), json!([])],
    };
    others.extend(more.into_iter().map(Some));
    others.retain(|other| other.as_ref() != Some(value));
    others
}
