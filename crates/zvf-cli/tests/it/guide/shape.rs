//! The shape of JSON: its keys and the types of their values.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use serde_json::Value;

/// The types of all values at one location.
#[derive(Debug, Default)]
struct Shape {
    words: BTreeSet<&'static str>,
    /// Number of objects, and for each key the number of objects that have it.
    objects: usize,
    members: BTreeMap<String, (usize, Shape)>,
    items: Option<Box<Shape>>,
}

/// Returns the shape of one or several consecutive JSON values. A key that only some of them have
/// ends in `?`.
pub(super) fn of_text(text: &str) -> Result<String, String> {
    let mut shape = Shape::default();
    for value in serde_json::Deserializer::from_str(text).into_iter() {
        shape.take(&value.map_err(|error| format!("no JSON: {error}"))?);
    }
    let mut lines = String::new();
    shape.write("", &mut lines);
    Ok(lines)
}

impl Shape {
    fn take(&mut self, value: &Value) {
        match value {
            Value::Null => drop(self.words.insert("null")),
            Value::Bool(_) => drop(self.words.insert("bool")),
            Value::Number(number) if number.is_f64() => drop(self.words.insert("number")),
            Value::Number(_) => drop(self.words.insert("integer")),
            Value::String(_) => drop(self.words.insert("text")),
            Value::Array(items) => {
                let shape = self.items.get_or_insert_default();
                for item in items {
                    shape.take(item);
                }
            }
            Value::Object(members) => {
                self.objects += 1;
                for (key, value) in members {
                    let (seen, shape) = self.members.entry(key.clone()).or_default();
                    *seen += 1;
                    shape.take(value);
                }
            }
        }
    }

    fn write(&self, indent: &str, out: &mut String) {
        let mut words: Vec<&str> = self.words.iter().copied().collect();
        if words.contains(&"number") {
            words.retain(|word| *word != "integer");
        }
        // `null` last, as in `text or null`.
        words.sort_by_key(|word| (*word == "null", *word));
        let mut first = true;
        let mut or = |out: &mut String| {
            if !std::mem::take(&mut first) {
                out.push_str(" or ");
            }
        };
        if self.objects > 0 {
            or(out);
            let inner = format!("{indent}  ");
            out.push_str("{\n");
            for (key, (seen, shape)) in &self.members {
                let mark = if *seen < self.objects { "?" } else { "" };
                write!(out, "{inner}{key:?}{mark}: ").unwrap();
                shape.write(&inner, out);
                out.push('\n');
            }
            write!(out, "{indent}}}").unwrap();
        }
        if let Some(items) = &self.items {
            or(out);
            out.push('[');
            items.write(indent, out);
            out.push(']');
        }
        for word in words {
            or(out);
            out.push_str(word);
        }
    }
}

#[test]
fn shapes_cover_all_values() {
    let text = r#"{"a": 1, "b": [{"c": null}, {"c": "x", "d": 1.5}]} {"a": 2.5, "b": []}"#;
    let shape =
        "{\n  \"a\": number\n  \"b\": [{\n    \"c\": text or null\n    \"d\"?: number\n  }]\n}";
    assert_eq!(of_text(text).unwrap(), shape);
    assert!(of_text("{").is_err());
}
